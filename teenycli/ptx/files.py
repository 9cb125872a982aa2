"""PTX files as text. May import ``errors`` and ``ptx.model``."""

from __future__ import annotations

import os
import stat
import sys

from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.ptx.model import Source

STDIN = "-"
_MAGIC = {
    b"\x7fELF": "a cubin (ELF)",
    b"\x50\xed\x55\xba": "a fatbin",
    b"PK\x03\x04": "a zip archive",
    b"BC\xc0\xde": "LLVM bitcode",
}


#: The largest PTX text that is read, in bytes: thirty times the largest seen.
LARGEST = 2**30


def read_source(path: str | os.PathLike[str]) -> Source:
    """The text of a PTX file, or of standard input for ``-``; NUL bytes at the end are dropped.

    Raises TeenyError: ``file-not-found``, ``not-a-file``, ``unreadable``, ``file-too-large``, ``not-ptx`` (binary
    content, empty).
    """
    name = "<stdin>" if str(path) == STDIN else str(path)
    data = _read_stdin() if str(path) == STDIN else _read(name)
    where = Place(name)
    if len(data) > LARGEST:
        raise TeenyError("file-too-large", f"the text is longer than {LARGEST:,} bytes", where=where)
    stripped = data.rstrip(b"\0") if data.endswith(b"\0") else data
    del data
    for magic, what in _MAGIC.items():
        if stripped.startswith(magic):
            raise TeenyError("not-ptx", f"this is {what}, not PTX text", where=where, hint="give the .ptx text")
    if not stripped or stripped.isspace():
        raise TeenyError("not-ptx", "the file is empty", where=where)
    nul = stripped.find(b"\0")
    if nul >= 0:
        raise TeenyError("not-ptx", f"binary data, not PTX text: a NUL byte at offset {nul}", where=where)
    if b"\n" not in stripped and b"\r" in stripped:
        stripped = stripped.replace(b"\r", b"\n")  # the line ends of old Macs
    try:
        return Source(name, stripped.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        # Comments and strings may hold any 8-bit text; what is not ASCII elsewhere is a syntax error later.
        if stripped.lstrip()[:1] in (b".", b"/", b"#"):
            return Source(name, stripped.decode("latin-1"))
        raise TeenyError(
            "not-ptx",
            f"binary data, not PTX text: byte {error.object[error.start]:#04x} at offset {error.start}",
            where=where,
        ) from None


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise TeenyError("unreadable", "there is no standard input", where=Place("<stdin>"))
    try:
        return sys.stdin.buffer.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise TeenyError("unreadable", f"cannot read standard input: {error}", where=Place("<stdin>")) from None


def _read(path: str) -> bytes:
    where = Place(path)
    try:
        kind = os.stat(path).st_mode  # noqa: PTH116  (pathlib would cost every start of the command 4 ms)
        piped = path.startswith(("/dev/fd/", "/proc/self/fd/", "/dev/stdin"))  # as a shell passes <(command)
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or piped):
            hint = "to read from a pipe, give - for standard input"
            raise TeenyError("not-a-file", "this is a device or a pipe, not a file", where=where, hint=hint)
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(LARGEST + 1)
    except FileNotFoundError:
        raise TeenyError("file-not-found", "there is no such file", where=where, hint=_neighbours(path)) from None
    except IsADirectoryError:
        raise TeenyError("not-a-file", "this is a directory, not a file", where=where) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TeenyError("unreadable", f"cannot read the file: {reason}", where=where) from None


def _neighbours(path: str) -> str | None:
    """A file beside it with a name like it."""
    folder, name = os.path.split(path)
    try:
        return did_you_mean(name, [other for other in os.listdir(folder or ".") if other.endswith(".ptx")])  # noqa: PTH208
    except (OSError, ValueError):
        return None
