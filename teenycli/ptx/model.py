"""The outline of a PTX text, as data: a module's functions with parameters and directives, its variables, and where
each body lies. What is inside a body is ``ptx.code``.

Positions are carried by every node; equality ignores them. Imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from teenycli.ptx.code import Code


class Space(StrEnum):
    """State spaces (PTX ISA, "State Spaces")."""

    REG = "reg"
    CONST = "const"
    GLOBAL = "global"
    LOCAL = "local"
    PARAM = "param"
    SHARED = "shared"
    TEX = "tex"
    GENERIC = "generic"


#: Width in bits of the types that instructions name and no variable has.
_PACKED_WIDTHS = {
    "e4m3": 8, "e5m2": 8, "e4m3x2": 16, "e5m2x2": 16, "e2m1x2": 8, "e2m3x2": 16, "e3m2x2": 16, "ue8m0x2": 16,
    "e4m3x4": 32, "e5m2x4": 32, "e2m1x4": 16, "e2m3x4": 32, "e3m2x4": 32, "u16x2": 32, "s16x2": 32, "f32x2": 64,
    "u8x4": 32, "s8x4": 32,
}  # fmt: skip

#: Size in bytes of each fundamental type that memory can hold, and the natural alignment (the same number).
TYPE_SIZES: Mapping[str, int] = {
    **{f"{letter}{bits}": bits // 8 for letter in "bsu" for bits in (8, 16, 32, 64)},
    "b128": 16, "f16": 2, "f16x2": 4, "bf16": 2, "bf16x2": 4, "f32": 4, "f64": 8, "tf32": 4,
    "texref": 8, "samplerref": 8, "surfref": 8,
}  # fmt: skip


@cache
def type_width(name: str) -> int | None:
    """Width in bits of a register or instruction type; 1 for ``pred``, None for one that has no single width."""
    if name == "pred":
        return 1
    size = TYPE_SIZES.get(name)
    return size * 8 if size is not None else _PACKED_WIDTHS.get(name)


class Position(NamedTuple):
    """Line and column in the PTX text, both from 1."""

    line: int = 0
    column: int = 0


# --- constants ---------------------------------------------------------------------------------------------------


class Int(Struct, frozen=True):
    """An integer constant, as 64-bit two's complement in a Python int; ``unsigned`` when PTX types it so."""

    value: int
    unsigned: bool = False


class Float(Struct, frozen=True):
    """A floating-point constant as bits: of a single (``0f…``) when ``width`` is 32, else of a double."""

    bits: int
    width: int


# --- outline -----------------------------------------------------------------------------------------------------


class Pointer(NamedTuple):
    """``.ptr`` on a parameter: the space it points to (None when not given) and the promised alignment in bytes."""

    space: Space | None
    align: int


class SymbolInit(Struct, frozen=True):
    """An address in an initialiser: ``sym+4``, ``generic(sym)``, or a byte of one, ``0xff00(sym)``."""

    name: str
    offset: int = 0
    generic: bool = False
    mask: int | None = None


#: An initialiser as it stands: integers, bit patterns of floats, addresses, nested tuples.
Init = int | SymbolInit | tuple["Init", ...]


def symbols_in(init: Init | None) -> Iterator[str]:
    """The names whose addresses stand in ``init``, in order."""
    if isinstance(init, SymbolInit):
        yield init.name
    elif isinstance(init, tuple):
        for item in init:
            yield from symbols_in(item)


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable outside register space, or a parameter.

    ``type`` is the fundamental type without its dot; ``vector`` is 1, 2 or 4; ``dims`` has one number per array
    dimension, None for ``[]``. ``align`` is the effective alignment in bytes. ``linking`` is extern, visible, weak,
    common or None.
    """

    name: str
    space: Space
    type: str
    vector: int = 1
    dims: tuple[int | None, ...] = ()
    align: int = 1
    init: Init | None = None
    linking: str | None = None
    managed: bool = False
    pointer: Pointer | None = None
    at: Position = field(default=Position(), compare=False)

    @property
    def size(self) -> int:
        """Bytes the variable takes; an unsized dimension counts as zero."""
        size = TYPE_SIZES[self.type] * self.vector
        for dim in self.dims:
            size *= dim or 0
        return size

    @property
    def declared_type(self) -> str:
        """As PTX spells it: ``u64``, ``v2.f32``, ``b8[24]``."""
        vector = f"v{self.vector}." if self.vector > 1 else ""
        return vector + self.type + "".join(f"[{'' if d is None else d}]" for d in self.dims)


Triple = tuple[int, int, int]


class Directives(Struct, frozen=True):
    """Performance-tuning and cluster directives between ``)`` and ``{`` (PTX ISA, "Performance-Tuning Directives").

    Triples are padded with 1. ``noreturn`` and ``unknown`` complete what may stand there on a ``.func``.
    """

    reqntid: Triple | None = None
    maxntid: Triple | None = None
    minnctapersm: int | None = None
    maxnreg: int | None = None
    explicitcluster: bool = False
    reqnctapercluster: Triple | None = None
    maxclusterrank: int | None = None
    blocksareclusters: bool = False
    noreturn: bool = False
    pragmas: tuple[str, ...] = ()


class BodyText(NamedTuple):
    """Where a body lies: offsets of its ``{`` and of the character after its ``}``, and the line of the ``{``."""

    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class Function:
    """An ``.entry`` or a ``.func``. ``body`` is None for a declaration. ``returns`` is empty for an entry.

    Parameters of a ``.func`` may lie in register space (``Space.REG``); those of an entry never do.
    """

    name: str
    is_entry: bool
    params: tuple[Variable, ...]
    returns: tuple[Variable, ...] = ()
    directives: Directives = field(default=Directives())
    linking: str | None = None
    body: BodyText | None = field(default=None, compare=False)
    at: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one PTX file, without NUL tail, and the name that messages give it.

    Where the file holds machine code, that is ``image``, and the text declares its entries, with nothing in them.
    """

    name: str
    text: str = field(repr=False)
    image: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Module:
    """One PTX file's outline.

    ``version`` is (major, minor). ``target`` is the first architecture that ``.target`` names, such as ``sm_90a``;
    ``target_options`` the rest (``debug``, ``texmode_independent``, …). ``files`` maps ``.file`` indices to names;
    those inside bodies are not in it until the body is parsed. ``aliases`` maps an alias to its aliasee.
    ``sections`` tells where the sections of debugging information lie.
    """

    source: Source
    version: tuple[int, int]
    target: str
    target_options: tuple[str, ...] = ()
    address_size: int = 32
    functions: tuple[Function, ...] = ()
    variables: tuple[Variable, ...] = ()
    files: Mapping[int, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    sections: tuple[BodyText, ...] = ()
    #: The entries with a body, in the order of the text; and the functions with one that may be called.
    entries: tuple[Function, ...] = field(init=False, compare=False, repr=False)
    callees: tuple[Function, ...] = field(init=False, compare=False, repr=False)
    #: What ``ptx.code_of`` has made already, by function name.
    codes: dict[str, Code] = field(default_factory=dict, compare=False, repr=False)
    #: What the rooms above have made of its entries, by whatever tells it apart, for as long as the module lives.
    kept: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        bodies = [function for function in self.functions if function.body is not None]
        object.__setattr__(self, "entries", tuple(f for f in bodies if f.is_entry))
        object.__setattr__(self, "callees", tuple(f for f in bodies if not f.is_entry))
