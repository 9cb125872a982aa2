"""Arrays in files: ``.npy``, ``.npz``, ``.safetensors`` and ``.bin`` (raw, little-endian); the third is only read.

A file is judged by its header before its data is read, so a broken or hostile one costs nothing. Written files are
complete or not there: they are made beside their place and renamed.

May import ``dtypes``, ``errors`` and, in this room, ``convert``.
"""

from __future__ import annotations

import ast
import json
import math
import os
import re
import shutil
import stat
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from msgspec import Struct

from teenycli.dtypes import DTYPES, DType, Kind
from teenycli.errors import TeenyError, did_you_mean
from teenycli.tensors.convert import Array, contiguous, format_shape, numpy_dtype, raw_bytes, require_numbers

#: What each suffix can do, for messages.
READABLE = (".npy", ".npz", ".safetensors", ".bin")
WRITABLE = (".npy", ".npz", ".bin")

_FILE = re.compile(r"@?(?P<path>.*?\.(?:npy|npz|safetensors|bin))(?::(?P<key>.+))?", re.IGNORECASE | re.DOTALL)
_SAFETENSORS = {
    "BOOL": "bool", "BF16": "bf16", "F16": "f16", "F32": "f32", "F64": "f64", "F8_E4M3": "e4m3", "F8_E5M2": "e5m2",
    **{f"{letter}{bits}": f"{letter.lower()}{bits}" for letter in "IU" for bits in (8, 16, 32, 64)},
}  # fmt: skip
#: Longest header of an array in .npy format that is looked at, in bytes. A plain array's has 128.
_HEADER_LIMIT = 10_000
_BROKEN = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, KeyError)


class FileRef(Struct, frozen=True):
    """A file as an initialiser, a reference or a save names it; ``key`` is what follows the suffix's colon."""

    path: str
    key: str | None = None

    @property
    def suffix(self) -> str:
        return Path(self.path).suffix.lower()

    def __str__(self) -> str:
        return self.path if self.key is None else f"{self.path}:{self.key}"


def parse_file(text: str) -> FileRef | None:
    """``weights.npz:fc1`` as a :class:`FileRef`, a leading ``@`` or not; None when it ends like no file of ours.

    Raises TeenyError ``unknown-file-type`` for a text that begins with ``@`` and has another suffix.
    """
    match = _FILE.fullmatch(text)
    if match is not None:
        return FileRef(match["path"], match["key"])
    if not text.startswith("@"):
        return None
    raise _unknown_type(text[1:], READABLE)


def _unknown_type(path: str, known: Sequence[str]) -> TeenyError:
    suffix = Path(path).suffix
    message = f"'{path}' ends in '{suffix}'" if suffix else f"'{path}' has no file type"
    return TeenyError("unknown-file-type", message, hint=f"use one of {' '.join(known)}")


# --- reading -----------------------------------------------------------------------------------------------------


def load(ref: FileRef, folder: Path, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array that ``ref`` names, of exactly ``shape``, with the elements' type as stored (``dtype`` in a .bin).

    ``folder`` is what a relative path is relative to. Raises TeenyError: ``missing-file``, ``unreadable-file``,
    ``file-key``, ``array-shape``, ``byte-count``, ``element-type``, ``missing-extra``.
    """
    with _opened(ref, folder) as stream:
        if ref.suffix == ".bin":
            return _read_bin(stream, ref, dtype, shape)
        if ref.suffix == ".npy":
            _refuse_key(ref)
            return _read_npy(stream, str(ref), shape)
        if ref.suffix == ".npz":
            with zipfile.ZipFile(stream) as archive:
                key = _choose_key(ref, _members(archive))
                with _member(archive, f"{key}.npy", ref.path) as member:
                    return _read_npy(member, f"{ref.path}:{key}", shape)
        return _read_safetensors(stream, ref, folder, shape)


def keys(ref: FileRef, folder: Path) -> list[str]:
    """The keys of an .npz or .safetensors file; none for the other types."""
    with _opened(ref, folder) as stream:
        if ref.suffix == ".npz":
            with zipfile.ZipFile(stream) as archive:
                return _members(archive)
        return list(_safetensors_header(stream, ref, folder)) if ref.suffix == ".safetensors" else []


@contextmanager
def _opened(ref: FileRef, folder: Path) -> Iterator[IO[bytes]]:
    path = folder / ref.path
    try:
        # A FIFO or a device could block for ever, or never end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise TeenyError("unreadable-file", f"{ref.path}: not a regular file")
        with path.open("rb") as stream:
            yield stream
    except FileNotFoundError:
        raise _missing(ref, path) from None
    except OSError as error:
        raise TeenyError("unreadable-file", f"{ref.path}: {error.strerror or error}") from None
    except _BROKEN as error:
        raise TeenyError("unreadable-file", f"{ref.path}: not a sound {ref.suffix} file: {error}") from None


def _missing(ref: FileRef, path: Path) -> TeenyError:
    if not path.parent.is_dir():
        return TeenyError("missing-file", f"{ref.path}: no such file; the folder {path.parent} is not there either")
    near = did_you_mean(path.name, [entry.name for entry in path.parent.iterdir()])
    return TeenyError("missing-file", f"{ref.path}: no such file in {path.parent}", hint=near)


def _check_shape(label: str, stored: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if stored == shape:
        return
    same = math.prod(stored) == math.prod(shape)
    hint = "the number of elements agrees: reshape the array, then save it again" if same else None
    message = f"{label}: its shape is {format_shape(stored)}, not {format_shape(shape)}"
    raise TeenyError("array-shape", message, hint=hint)


def _refuse_key(ref: FileRef) -> None:
    if ref.key is not None:
        message = f"{ref}: a {ref.suffix} file holds one array, without keys"
        raise TeenyError("file-key", message, hint=f"write {ref.path}")


def _choose_key(ref: FileRef, known: list[str]) -> str:
    """The key asked for, or the only one."""
    if ref.key in known:
        return ref.key
    held = f"it holds {', '.join(known[:20])}{' …' if len(known) > 20 else ''}" if known else "it holds no array"
    if ref.key is not None:
        raise TeenyError("file-key", f"{ref.path}: no array '{ref.key}'; {held}", hint=did_you_mean(ref.key, known))
    if len(known) != 1:
        example = f"{ref.path}:{known[0]}" if known else None
        raise TeenyError("file-key", f"{ref.path}: which array? {held}", hint=example and f"write {example}")
    return known[0]


def _read_bin(stream: IO[bytes], ref: FileRef, dtype: DType, shape: tuple[int, ...]) -> Array:
    _refuse_key(ref)
    found, expected = os.fstat(stream.fileno()).st_size, math.prod(shape) * dtype.size
    if found != expected:
        raise TeenyError(
            "byte-count", f"{ref}: it has {found:,} bytes, {dtype}{format_shape(shape)} takes {expected:,}"
        )
    return _filled(np.empty(shape, numpy_dtype(dtype)), stream, str(ref))


def _filled(out: Array, stream: IO[bytes], label: str) -> Array:
    """``out``, a C-ordered array, with its bytes read from ``stream``."""
    view = raw_bytes(out).data
    done = 0
    while done < len(view):
        piece = stream.read(min(len(view) - done, 1 << 24))
        if not piece:
            raise TeenyError("byte-count", f"{label}: its data ends after {done:,} bytes of {len(view):,}")
        view[done : done + len(piece)] = piece
        done += len(piece)
    return out


def _read_npy(stream: IO[bytes], label: str, shape: tuple[int, ...]) -> Array:
    """An array in numpy's .npy format (NEP 1)."""
    dtype, stored, fortran = _npy_header(stream, label)
    _check_shape(label, stored, shape)
    if not fortran:
        return _filled(np.empty(shape, dtype), stream, label)
    return _filled(np.empty(shape[::-1], dtype), stream, label).T


def _npy_header(stream: IO[bytes], label: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    broken = TeenyError("unreadable-file", f"{label}: its .npy header is damaged")
    start = stream.read(8)
    if start[:6] != b"\x93NUMPY" or len(start) < 8:
        raise TeenyError("unreadable-file", f"{label}: not in .npy format")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    if length > _HEADER_LIMIT:
        raise broken
    try:
        header = ast.literal_eval(stream.read(length).decode("utf-8" if start[6] >= 3 else "latin-1"))
        descr, stored, fortran = header["descr"], header["shape"], header["fortran_order"]
        with warnings.catch_warnings():  # numpy deprecates some names of types, which are refused below in any case
            warnings.simplefilter("ignore")
            dtype = np.dtype(descr) if isinstance(descr, str) else None
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise broken from None
    if not (isinstance(stored, tuple) and all(type(dim) is int and dim >= 0 for dim in stored)):
        raise broken
    if dtype is None:
        raise TeenyError("element-type", f"{label}: its elements are records, not numbers")
    require_numbers(dtype, label)
    return dtype, stored, bool(fortran)


def _member(archive: zipfile.ZipFile, name: str, label: str) -> IO[bytes]:
    method = archive.getinfo(name).compress_type
    if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        message = f"{label}: '{name}' is compressed by zip method {method}, not as numpy does"
        raise TeenyError("unreadable-file", message)
    return archive.open(name)


def _members(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def _safetensors_header(stream: IO[bytes], ref: FileRef, folder: Path) -> dict[str, dict[str, Any]]:
    """The header as safetensors' own reader found it sound: by key, ``dtype``, ``shape`` and ``data_offsets``."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise TeenyError(
            "missing-extra",
            f"{ref.path}: reading .safetensors needs the package 'safetensors', which is not installed",
            hint="pip install 'teenycli[safetensors]'",
        ) from None
    try:
        with safe_open(folder / ref.path, framework="np"):
            pass
    except SafetensorError as error:
        raise TeenyError("unreadable-file", f"{ref.path}: not a sound .safetensors file: {error}") from None
    header: dict[str, dict[str, Any]] = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    header.pop("__metadata__", None)
    return header


def _read_safetensors(stream: IO[bytes], ref: FileRef, folder: Path, shape: tuple[int, ...]) -> Array:
    # The library has no numpy type for fp8: it judges the header, the bytes are read here.
    header = _safetensors_header(stream, ref, folder)
    data = stream.tell()
    key = _choose_key(ref, list(header))
    row = header[key]
    label = f"{ref.path}:{key}"
    _check_shape(label, tuple(row["shape"]), shape)
    if row["dtype"] not in _SAFETENSORS:
        raise TeenyError("element-type", f"{label}: its elements are of type {row['dtype']}", hint="known here are "
                         + " ".join(_SAFETENSORS))  # fmt: skip
    stream.seek(data + row["data_offsets"][0])
    return _filled(np.empty(shape, numpy_dtype(DTYPES[_SAFETENSORS[row["dtype"]]])), stream, label)


# --- writing -----------------------------------------------------------------------------------------------------


class Save(Struct, frozen=True, eq=False):
    """An array to be saved: the output's name, the file, and the element type; ``array`` is None until it is known.

    In an .npz the array's key is the file's, or else the output's name.
    """

    name: str
    file: FileRef
    dtype: DType
    array: Array | None = None

    @property
    def key(self) -> str:
        return self.file.key or self.name


def check_saves(saves: Iterable[Save], folder: Path) -> None:
    """Find out, before anything is computed, what would keep ``saves`` from being written.

    Raises TeenyError: ``unknown-file-type``, ``save-conflict`` when two take the same place, ``unwritable-path``.
    """
    taken: dict[tuple[Path, str | None], str] = {}
    for save in saves:
        if save.file.suffix not in WRITABLE:
            raise _unknown_type(save.file.path, WRITABLE)
        in_archive = save.file.suffix == ".npz"
        if not in_archive:
            _refuse_key(save.file)
        place = _writable(folder / save.file.path, save.file.path), save.key if in_archive else None
        if place in taken:
            hint = "give each a key: file.npz:key" if in_archive else "several fit in one .npz"
            where = f"{save.file.path}:{save.key}" if in_archive else save.file.path
            raise TeenyError("save-conflict", f"'{taken[place]}' and '{save.name}' both go to {where}", hint=hint)
        taken[place] = save.name


def _writable(path: Path, shown: str) -> Path:
    """``path`` with links followed, when a file can be put there."""
    reason = None
    try:
        path = path.resolve()
        if path.is_dir():
            reason = "it is a folder"
        elif path.exists() and not path.is_file():
            reason = "it is not a regular file"
        elif not path.parent.is_dir():
            reason = f"there is no folder {path.parent}"
        elif not os.access(path if path.exists() else path.parent, os.W_OK):
            reason = "permission denied"
    except OSError as error:
        reason = error.strerror or str(error)
    except (RuntimeError, ValueError) as error:  # a loop of links; a NUL in the name
        reason = str(error)
    if reason:
        raise _unwritable(shown, reason)
    return path


def _unwritable(shown: str, reason: str) -> TeenyError:
    return TeenyError("unwritable-path", f"cannot write {shown}: {reason}")


def save_all(saves: Sequence[Save], folder: Path) -> list[Path]:
    """Write ``saves``, those of one .npz together, and return the files in the order in which they were first named.

    bf16 and fp8 become float32 in .npy and .npz (exact), raw bits in .bin. Raises TeenyError as ``check_saves``.
    """
    check_saves(saves, folder)
    files: dict[Path, list[Save]] = {}
    for save in saves:
        files.setdefault(folder / save.file.path, []).append(save)
    for path, group in files.items():
        with _replacing(path, group[0].file.path) as stream:
            _write(stream, group)
    return list(files)


@contextmanager
def _replacing(path: Path, shown: str) -> Iterator[IO[bytes]]:
    """A stream whose contents become the file ``path`` when all went well, and leave no trace when not."""
    # A link stays a link: what it points to is replaced.
    path = path.resolve()
    beside = path.with_name(f".{path.name[:100]}.{os.urandom(6).hex()}.tmp")
    try:
        # "x" makes the file under the user's umask, as a plain open would.
        with beside.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    except OSError as error:
        raise _unwritable(shown, error.strerror or str(error)) from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _write(stream: IO[bytes], group: list[Save]) -> None:
    suffix = group[0].file.suffix
    if suffix == ".bin":
        stream.write(raw_bytes(_array(group[0])).data)
    elif suffix == ".npy":
        np.lib.format.write_array(stream, portable(_array(group[0]), group[0].dtype), allow_pickle=False)
    else:
        # np.savez takes keys as keyword arguments, so that an output named "file" would collide with its own.
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for save in group:
                with archive.open(f"{save.key}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, portable(_array(save), save.dtype), allow_pickle=False)


def _array(save: Save) -> Array:
    if save.array is None:
        raise ValueError(f"nothing to save for {save.name}")
    return contiguous(save.array, save.dtype)


def portable(array: Array, dtype: DType) -> Array:
    """``array`` with a dtype that numpy alone can read: bf16 and fp8 as float32, any bool byte but 0 as True."""
    if dtype.kind is Kind.BOOL:
        return np.not_equal(array.view(np.uint8), 0)
    if dtype.is_float and dtype.size < 4 and dtype.name != "f16":
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return array.astype(np.float32)
    return array
