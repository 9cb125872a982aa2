"""PTX files as text. May import ``errors``, ``reading``, ``ptx.cubin``, ``ptx.fatbin`` and ``ptx.model``."""

from __future__ import annotations

import os
import sys

from teenycli.errors import Place, TeenyError
from teenycli.ptx import cubin, fatbin
from teenycli.ptx.model import Source
from teenycli.reading import read_bytes, within

STDIN = "-"
_MAGIC = {
    b"\x7fELF": "a cubin (ELF)",
    b"\x50\xed\x55\xba": "a fatbin",
    b"PK\x03\x04": "a zip archive",
    b"BC\xc0\xde": "LLVM bitcode",
}


_TEXT_ONLY = "give the .ptx text: nvcc -ptx, or cuobjdump -ptx FILE; `run` and `entries` take a cubin and a fatbin"
#: The largest PTX text that is read, in bytes: thirty times the largest seen.
LARGEST = 2**30


def read_source(path: str | os.PathLike[str], code: bool = False) -> Source:
    """The text of a PTX file, or of standard input for ``-``; NUL bytes at the end are dropped.

    With ``code`` machine code will do too: a cubin, or a fatbin, whose PTX is taken where there is some.

    Raises TeenyError: ``file-not-found``, ``not-a-file``, ``unreadable``, ``file-too-large``, ``not-ptx`` (binary
    content, empty).
    """
    name = "<stdin>" if str(path) == STDIN else str(path)
    where = Place(name)
    data = within(_read_stdin(), LARGEST, where) if str(path) == STDIN else read_bytes(name, LARGEST, ".ptx")
    if code and data.startswith((cubin.MAGIC, fatbin.MAGIC)):
        return _read_code(name, data, where)
    stripped = data.rstrip(b"\0") if data.endswith(b"\0") else data
    del data
    for magic, what in _MAGIC.items():
        if stripped.startswith(magic):
            raise TeenyError("not-ptx", f"this is {what}, not PTX text", where=where, hint=_TEXT_ONLY)
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


def _read_code(name: str, data: bytes, where: Place) -> Source:
    if data.startswith(fatbin.MAGIC):
        part = fatbin.choose(data, where)
        if part.is_ptx:
            return Source(name, part.data.rstrip(b"\0").decode("utf-8", "replace"))
        data = part.data
    return Source(name, cubin.declarations(cubin.read_cubin(data, where)), data)


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise TeenyError("unreadable", "there is no standard input", where=Place("<stdin>"))
    try:
        return sys.stdin.buffer.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise TeenyError("unreadable", f"cannot read standard input: {error}", where=Place("<stdin>")) from None
