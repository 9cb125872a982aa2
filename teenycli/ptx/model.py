"""What PTX text says, as data: modules, functions, variables; and a body as resolved code.

Two levels. The *outline* of a module (functions with parameters and directives, variables, where each body lies in
the text) is cheap. The *code* of one function (every instruction matched with its row of the instruction table,
every name resolved to what it stands for) is made when something asks: ``ptx.code_of``.

Positions are carried by every node; equality ignores them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from teenycli.ptx.isa import Form


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


def type_width(name: str) -> int | None:
    """Width in bits of a register or instruction type; 1 for ``pred``, None for one that has no single width."""
    if name == "pred":
        return 1
    size = TYPE_SIZES.get(name)
    return size * 8 if size is not None else _PACKED_WIDTHS.get(name)


@dataclass(frozen=True, slots=True)
class Position:
    """Line and column in the PTX text, both from 1."""

    line: int = 0
    column: int = 0


# --- outline -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pointer:
    """``.ptr`` on a parameter: the space it points to (None when not given) and the promised alignment in bytes."""

    space: Space | None
    align: int


@dataclass(frozen=True, slots=True)
class SymbolInit:
    """An address in an initialiser: ``sym+4``, ``generic(sym)``, or a byte of one, ``0xff00(sym)``."""

    name: str
    offset: int = 0
    generic: bool = False
    mask: int | None = None


#: An initialiser as it stands: integers, bit patterns of floats, addresses, nested tuples.
Init = int | SymbolInit | tuple["Init", ...]


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


@dataclass(frozen=True, slots=True)
class Directives:
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


@dataclass(frozen=True, slots=True)
class BodyText:
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
    directives: Directives = Directives()
    linking: str | None = None
    body: BodyText | None = field(default=None, compare=False)
    at: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one PTX file, without NUL tail, and the name that messages give it."""

    name: str
    text: str = field(repr=False)


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
    #: What ``ptx.code_of`` has made already, by function name.
    codes: dict[str, Code] = field(default_factory=dict, compare=False, repr=False)

    @property
    def entries(self) -> tuple[Function, ...]:
        """The entries with a body, in the order of the text."""
        return tuple(f for f in self.functions if f.is_entry and f.body is not None)


# --- code --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Register:
    """A register, after scoping: two of the same name in different scopes are two objects. Compared by identity.

    ``type`` is as declared (``b32``, ``f64``, ``pred``); ``vector`` is 1, 2 or 4 (``.reg .v4 .f32 %v``).
    """

    name: str
    type: str
    vector: int = 1


@dataclass(frozen=True, slots=True)
class Reg:
    """A use of a register. ``part`` is the component of a vector register (``x y z w``) or, in a video
    instruction, a selector (``b0`` to ``b3``, ``h0``, ``h1``, ``b10`` …); ``negated`` is ``!p`` or ``-a``."""

    register: Register
    part: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Special:
    """A special register: ``%tid`` with part ``x``, ``%clock64`` with part None."""

    name: str
    part: str | None = None


@dataclass(frozen=True, slots=True)
class Int:
    """An integer constant, as 64-bit two's complement in a Python int; ``unsigned`` when PTX types it so."""

    value: int
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point constant as bits: of a single (``0f…``) when ``width`` is 32, else of a double."""

    bits: int
    width: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable or function, plus an offset in bytes."""

    target: Variable | Function
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Mem:
    """An address operand ``[base + offset]``. ``coords`` holds what follows a comma inside the brackets
    (texture and tensor coordinates); ``part`` is what follows them (``unified``)."""

    base: Reg | Variable | Function | int
    offset: int = 0
    coords: tuple[Operand, ...] = ()
    part: str | None = None


@dataclass(frozen=True, slots=True)
class Vec:
    """``{a, b, …}``; an item is None for the sink ``_``."""

    items: tuple[Operand | None, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """``d|p``: two destinations; either may be None for ``_``."""

    first: Operand | None
    second: Operand | None


@dataclass(frozen=True, slots=True)
class Label:
    """A label of this function, unique after scoping."""

    name: str


@dataclass(frozen=True, slots=True)
class Table:
    """What ``.branchtargets`` (labels), ``.calltargets`` (functions) or ``.callprototype`` (params, returns) names."""

    name: str
    labels: tuple[Label, ...] = ()
    functions: tuple[Function, ...] = ()
    params: tuple[Variable, ...] = ()
    returns: tuple[Variable, ...] = ()


Operand = Reg | Special | Int | Float | Symbol | Mem | Vec | Pair | Label | Table


@dataclass(frozen=True, slots=True)
class Call:
    """The operands of a ``call``: returns and arguments are Reg, Int, Float, Symbol or (a ``.param`` variable)
    Symbol; ``target`` a Function or, for an indirect call, a Reg, with ``table`` its prototype or targets."""

    target: Function | Reg
    returns: tuple[Operand, ...] = ()
    args: tuple[Operand, ...] = ()
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction. ``mods`` has the named modifiers of its ``form`` (``{"type": "f32", "rnd": "rn"}``);
    operands come in the form's order. ``guard`` is the predicate of ``@p``. ``loc`` is the ``.loc`` in force as
    (file index, line, column)."""

    form: Form
    opcode: str
    mods: Mapping[str, str]
    operands: tuple[Operand | None, ...]
    guard: Reg | None = None
    call: Call | None = None
    loc: Triple | None = field(default=None, compare=False)
    at: Position = field(default=Position(), compare=False)


@dataclass(frozen=True, slots=True)
class Code:
    """A function's body: instructions in order, labels by unique name as indices into ``ops`` (the length of
    ``ops`` when nothing follows), registers, variables declared inside (shared, local, param, global, const)."""

    function: Function
    ops: tuple[Op, ...]
    labels: Mapping[str, int]
    registers: tuple[Register, ...]
    variables: tuple[Variable, ...]
    files: Mapping[int, str] = field(default_factory=dict)
