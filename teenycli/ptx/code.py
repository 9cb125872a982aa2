"""A function's body as resolved code: every instruction matched with its form of the instruction table, every name
with what it stands for. Made when something asks: ``ptx.code_of``.

Positions are carried by every instruction; equality ignores them. May import ``ptx.model``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import Struct

from teenycli.ptx.model import Float, Function, Int, Position, Triple, Variable

if TYPE_CHECKING:
    from teenycli.ptx.isa import Form, OperandSpec
    from teenycli.ptx.model import Module


class Register(Struct, frozen=True, eq=False):
    """A register, after scoping: two of the same name in different scopes are two objects. Compared by identity.

    ``type`` is as declared (``b32``, ``f64``, ``pred``); ``vector`` is 1, 2 or 4 (``.reg .v4 .f32 %v``).
    """

    name: str
    type: str
    vector: int = 1


class Reg(Struct, frozen=True):
    """A use of a register. ``part`` is the component of a vector register (``x y z w``) or, in a video
    instruction, a selector (``b0`` to ``b3``, ``h0``, ``h1``, ``b10`` …); ``negated`` is ``!p`` or ``-a``."""

    register: Register
    part: str | None = None
    negated: bool = False


class Special(Struct, frozen=True):
    """A special register: ``%tid`` with part ``x``, ``%clock64`` with part None."""

    name: str
    part: str | None = None


class Symbol(Struct, frozen=True):
    """The address of a variable or function, plus an offset in bytes."""

    target: Variable | Function
    offset: int = 0


class Mem(Struct, frozen=True):
    """An address operand ``[base + offset]``. ``coords`` holds what follows a comma inside the brackets
    (texture and tensor coordinates); ``part`` is what follows them (``unified``)."""

    base: Reg | Variable | Function | int
    offset: int = 0
    coords: tuple[Operand, ...] = ()
    part: str | None = None


class Vec(Struct, frozen=True):
    """``{a, b, …}``; an item is None for the sink ``_``."""

    items: tuple[Operand | None, ...]


class Pair(Struct, frozen=True):
    """``d|p``: two destinations; either may be None for ``_``."""

    first: Operand | None
    second: Operand | None


class Label(Struct, frozen=True):
    """A label of this function, unique after scoping."""

    name: str


class Table(Struct, frozen=True):
    """What ``.branchtargets`` (labels), ``.calltargets`` (functions) or ``.callprototype`` (params, returns) names."""

    name: str
    labels: tuple[Label, ...] = ()
    functions: tuple[Function, ...] = ()
    params: tuple[Variable, ...] = ()
    returns: tuple[Variable, ...] = ()


Operand = Reg | Special | Int | Float | Symbol | Mem | Vec | Pair | Label | Table


def specials_in(operand: Operand | None) -> Iterator[Special]:
    """The special registers that an operand reads."""
    if isinstance(operand, Special):
        yield operand
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from specials_in(item)


class Call(Struct, frozen=True):
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
    (file index, line, column), ``inlined_at`` where that was inlined, and that again, outwards."""

    form: Form
    opcode: str
    mods: Mapping[str, str]
    operands: tuple[Operand | None, ...]
    guard: Reg | None = None
    call: Call | None = None
    loc: Triple | None = field(default=None, compare=False)
    inlined_at: tuple[Triple, ...] = field(default=(), compare=False)
    at: Position = field(default=Position(), compare=False)

    @property
    def specs(self) -> tuple[OperandSpec, ...]:
        """What the form says of each operand; nothing of a call's."""
        return self.form.specs(self.mods, len(self.operands)) or ()


@dataclass(frozen=True, slots=True)
class Code:
    """A function's body: instructions in order, labels by unique name as indices into ``ops`` (the length of
    ``ops`` when nothing follows), registers, variables declared inside (shared, local, param, global, const).
    ``module`` is where the functions that it calls are found."""

    function: Function
    ops: tuple[Op, ...]
    labels: Mapping[str, int]
    registers: tuple[Register, ...]
    variables: tuple[Variable, ...]
    files: Mapping[int, str] = field(default_factory=dict)
    module: Module | None = field(default=None, compare=False, repr=False)
