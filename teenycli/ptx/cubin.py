"""Machine code (a cubin) as far as a launch needs it: the entries with the places of their parameters, what they demand
of a launch, their shared memory. Read from the ELF file's symbols and ``.nv.info`` sections.

The numbers of attributes are those that ptxas 13.0 writes for kernels whose PTX is known (``tests/ptx/test_cubin.py``).

May import ``arch`` and ``errors``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from msgspec import Struct, field

from teenycli.arch import limits_of, param_base
from teenycli.errors import Place, TeenyError

MAGIC = b"\x7fELF"
_MACHINE = 190  # EM_CUDA
_ABI = 8  # EI_ABIVERSION since CUDA 12.9 or so; before it the flags are laid out otherwise

#: Attributes of ``.nv.info.NAME``.
_MAXNTID, _REQNTID, _PARAM, _PARAM_WIDE, _CLUSTER = 0x05, 0x10, 0x17, 0x45, 0x3D
#: Formats of attributes; the last is followed by as many bytes as its half-word says.
_HAS_BYTES = 4
_MOST_ALIGN = 128

Triple = tuple[int, int, int]


class Parameter(Struct, frozen=True):
    """``offset`` and ``size`` in bytes."""

    offset: int
    size: int


class Entry(Struct):
    """A kernel; ``shared`` is its static shared memory in bytes."""

    name: str
    params: dict[int, Parameter] = field(default_factory=dict)
    maxntid: Triple | None = None
    reqntid: Triple | None = None
    cluster: Triple | None = None
    shared: int = 0


class Cubin(Struct, frozen=True):
    """Machine code for the architecture ``sm``."""

    sm: int
    entries: tuple[Entry, ...]


class _Section(Struct, frozen=True):
    name: str
    kind: int
    offset: int
    size: int
    link: int


def read_cubin(data: bytes, where: Place) -> Cubin:
    """Raises TeenyError ``not-ptx`` for an ELF file that is no machine code of a GPU, is cut off, or is of an older
    toolkit's layout."""
    try:
        return _read(data, where)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise TeenyError("not-ptx", "this cubin is cut off, or damaged", where=where) from None


def _read(data: bytes, where: Place) -> Cubin:
    if data[4:6] != b"\x02\x01" or struct.unpack_from("<H", data, 18)[0] != _MACHINE:
        raise TeenyError("not-ptx", "this is an ELF file, but no machine code of a GPU", where=where,
                         hint="give the PTX, or the cubin")  # fmt: skip
    if data[8] < _ABI:
        raise TeenyError("not-ptx", "this cubin is of a toolkit before CUDA 13, whose layout is not known here",
                         where=where, hint="give the PTX: nvcc -ptx, or cuobjdump -ptx FILE")  # fmt: skip
    sm = struct.unpack_from("<I", data, 48)[0] >> 8 & 0xFF
    sections = list(_sections(data))
    entries = {name: Entry(name) for name in _kernels(data, sections)}
    for section in sections:
        for prefix, read in ((".nv.info.", _read_info), (".nv.shared.", _read_shared)):
            entry = entries.get(section.name.removeprefix(prefix)) if section.name.startswith(prefix) else None
            if entry is not None:
                read(data, section, entry, sm)
    return Cubin(sm, tuple(entries.values()))


def _sections(data: bytes) -> Iterator[_Section]:
    start, size, count, names = (
        struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HHH", data, 58),
    )  # fmt: skip
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, start + k * size) for k in range(count)]
    strings = rows[names][4]
    for name, kind, _, _, offset, nbytes, link, *_ in rows:
        yield _Section(_text(data, strings + name), kind, offset, nbytes, link)


def _kernels(data: bytes, sections: list[_Section]) -> Iterator[str]:
    """Names of the functions that are entries, in the order of the symbols: those with parameters' attributes."""
    described = {section.name.removeprefix(".nv.info.") for section in sections if section.name.startswith(".nv.info.")}
    for section in sections:
        if section.kind != 2:  # SHT_SYMTAB
            continue
        strings = sections[section.link].offset
        for at in range(section.offset, section.offset + section.size, 24):
            name, info, other = struct.unpack_from("<IBB", data, at)
            is_entry = info & 0xF == 2 and other & 0x10  # STT_FUNC, and the mark of an entry
            if is_entry and (text := _text(data, strings + name)) in described:
                yield text


def _read_shared(_data: bytes, section: _Section, entry: Entry, sm: int) -> None:
    """From sm_90 on the section counts what the system takes of each block, too."""
    entry.shared = max(0, section.size - (limits_of(sm).shared_reserved if sm >= 90 else 0))


def _read_info(data: bytes, section: _Section, entry: Entry, _sm: int) -> None:
    at, end = section.offset, section.offset + section.size
    while at + 4 <= end:
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != _HAS_BYTES:
            continue
        if attribute == _PARAM:
            _, ordinal, offset, packed = struct.unpack_from("<IHHI", data, at)
            entry.params[ordinal] = Parameter(offset, packed >> 18)
        elif attribute == _PARAM_WIDE:
            _, ordinal, offset, nbytes = struct.unpack_from("<IHHI", data, at)
            entry.params[ordinal] = Parameter(offset, nbytes & 0xFFFFFF)
        elif attribute in (_MAXNTID, _REQNTID, _CLUSTER):
            extents: Triple = struct.unpack_from("<III", data, at)
            setattr(entry, {_MAXNTID: "maxntid", _REQNTID: "reqntid", _CLUSTER: "cluster"}[attribute], extents)
        at += size


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


# --- as PTX ------------------------------------------------------------------------------------------------------


def declarations(cubin: Cubin) -> str:
    """PTX that declares what the cubin has, with empty bodies: the parameters at their places, the directives."""
    entries = "".join(_declaration(entry, cubin.sm) for entry in cubin.entries)
    return f".version 8.7\n.target sm_{cubin.sm}\n.address_size 64\n{entries}"


def _declaration(entry: Entry, sm: int) -> str:
    rules = [f".{name} {', '.join(map(str, extents))}" for name, extents in
             (("reqntid", entry.reqntid), ("maxntid", entry.maxntid), ("reqnctapercluster", entry.cluster))
             if extents is not None]  # fmt: skip
    params, end = [], 0
    for ordinal, param in sorted(entry.params.items()):
        params.append(f".param {_type(param, end, sm, f'{entry.name}_param_{ordinal}')}")
        end = param.offset + param.size
    body = (
        f"\n.shared .align 16 .b8 static[{entry.shared}];\n.reg .b32 %r;\nmov.u32 %r, static;" if entry.shared else ""
    )
    return f".visible .entry {entry.name}({', '.join(params)}) {' '.join(rules)} {{{body} ret; }}\n"


def _type(param: Parameter, end: int, sm: int, name: str) -> str:
    """A declaration that lies where the parameter does, behind ``end``: a number where it may be one."""
    base = param_base(sm) or 0
    if param.size in (1, 2, 4, 8) and (base + param.offset) % param.size == 0:
        natural = -(-(base + end) // param.size) * param.size - base
        if natural == param.offset:
            return f".b{8 * param.size} {name}"
    align = 1
    while -(-(base + end) // align) * align - base < param.offset and align < _MOST_ALIGN:
        align *= 2
    return f".align {align} .b8 {name}[{param.size}]"
