"""Which form of the instruction table an instruction is, or why it is none.

The rules for operand types are those that ptxas applies (PTX ISA, "Type Checking and Operand Size"): an untyped
(.b) instruction type takes any register of its width, an integer type takes .b, .u and .s registers, a floating-point
type .b and .f; constants are floating-point where the type is, else integers.

May import ``arch`` and the rest of ``ptx`` but ``resolve``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from teenycli.arch import parse_target
from teenycli.errors import did_you_mean
from teenycli.ptx.code import Label, Mem, Operand, Pair, Reg, Register, Special, Symbol, Table, Vec
from teenycli.ptx.isa import PARTS, Form, OperandSpec, Role, constant_fits, forms_of, register_fits, rows
from teenycli.ptx.lexer import Cursor
from teenycli.ptx.model import Float, Function, Int, Module, Variable, type_width
from teenycli.ptx.specials import SHRINKABLE, SPECIALS, VECTOR_SPECIALS
from teenycli.ptx.syntax import RawOp

Candidate = tuple[Form, Mapping[str, str]]

#: How a complaint about the number of operands begins.
_COUNT = "takes"
_GENERIC_MEMORY = frozenset({"ld", "ldu", "st", "atom", "red"})


@lru_cache(maxsize=4096)
def candidates(opcode: str, modifiers: tuple[str, ...]) -> tuple[Candidate, ...]:
    """The forms of ``opcode`` that take these modifiers, with the modifiers named."""
    found = []
    for form in forms_of(opcode):
        mods = form.match(modifiers)
        if mods is not None:
            found.append((form, mods))
    return tuple(found)


class Matcher:
    """Matches the instructions of one body; errors go through its cursor."""

    def __init__(self, cursor: Cursor, module: Module) -> None:
        self.cursor = cursor
        self.wide_addresses = module.address_size == 64
        self.version = module.version
        self.sm = parse_target(module.target).sm

    def match(
        self, raw: RawOp, given: tuple[Operand | None, ...]
    ) -> tuple[Form, Mapping[str, str], tuple[Operand | None, ...]]:
        """The form, its named modifiers, and the operands: as given, but for a vector of one in a scalar's place.

        Raises TeenyError ``unknown-opcode``, ``bad-modifier`` or ``bad-operand``.
        """
        found = candidates(raw.opcode, raw.modifiers)
        if not found:
            self._fail_modifiers(raw)
        problem: str | None = None
        for form, mods in found:
            operands = _unwrapped(form, mods, given)
            why = self._mismatch(form, mods, operands)
            if why is None and form.given_up(self.version, self.sm):
                why = f"is no instruction of PTX {self.version[0]}.{self.version[1]} for sm_{self.sm} any more"
            if why is None:
                return form, mods, operands
            # The first form's complaint, unless a later one got as far as the operands' kinds.
            if problem is None or (problem.startswith(_COUNT) and not why.startswith(_COUNT)):
                problem = why
        spelled = ".".join((raw.opcode, *raw.modifiers))
        self.cursor.fail_at(raw.start, f"'{spelled}' {problem}", id="bad-operand")

    def _fail_modifiers(self, raw: RawOp) -> None:
        forms = forms_of(raw.opcode)
        if not forms:
            self.cursor.fail_at(
                raw.start, f"unknown instruction '{raw.opcode}'", did_you_mean(raw.opcode, rows()), id="unknown-opcode"
            )
        known = {choice for form in forms for slot in form.modifiers for choice in slot.choices}
        for modifier in raw.modifiers:
            if modifier not in known:
                self.cursor.fail_at(
                    raw.start,
                    f"'{raw.opcode}' takes no '.{modifier}'",
                    did_you_mean(modifier, known),
                    id="bad-modifier",
                )
        given = "".join(f".{m}" for m in raw.modifiers) or "none"
        texts = "; ".join(form.text for form in forms[:4]) + ("; …" if len(forms) > 4 else "")
        self.cursor.fail_at(
            raw.start,
            f"the modifiers of '{raw.opcode}' make no form of it: {given}",
            f"forms: {texts}",
            id="bad-modifier",
        )

    def _mismatch(self, form: Form, mods: Mapping[str, str], operands: Sequence[Operand | None]) -> str | None:
        if form.opcode == "call":
            return None
        specs = form.specs(mods, len(operands))
        if specs is None:
            return f"{_COUNT} {_count_of(form, mods)}, not {len(operands)}"
        for index, (spec, operand) in enumerate(zip(specs, operands, strict=True)):
            why = self._operand(form, mods, spec, operand)
            if why is not None:
                return f"does not take its operand {index + 1}: {why}"
        return None

    def _operand(self, form: Form, mods: Mapping[str, str], spec: OperandSpec, operand: Operand | None) -> str | None:
        if spec.role is Role.ADDRESS:
            return self._address(form, mods, spec, operand)
        if spec.role is Role.LABEL:
            return None if isinstance(operand, Label) else "a label is wanted"
        if spec.role is Role.TABLE:
            return None if isinstance(operand, Table) else "a table of targets is wanted"
        if isinstance(operand, Pair):
            return self._pair(form, mods, spec, operand)
        return "a pair 'd|p' is wanted" if spec.pair else self._value(form, mods, spec, operand)

    def _pair(self, form: Form, mods: Mapping[str, str], spec: OperandSpec, pair: Pair) -> str | None:
        if spec.pair is None:
            return "it takes no pair 'd|p'"
        why = self._value(form, mods, spec, pair.first)
        if why is not None:
            return why
        if pair.second is None:
            return None if spec.second_sink else "'_' cannot stand after '|' here"
        if not isinstance(pair.second, Reg) or pair.second.register.type != "pred":
            return "what follows '|' must be a predicate"
        return None

    def _value(self, form: Form, mods: Mapping[str, str], spec: OperandSpec, operand: Operand | None) -> str | None:
        kind = form.type_of(spec, mods)
        length = form.count_of(spec, mods)
        if spec.vector == "braces" or length is not None:
            packed = form.operands[0].type == "any" or form.operands[-1].type == "any"
            if form.opcode == "mov" and packed and isinstance(operand, Vec):
                return _packing(mods["type"], operand)
            return _vector(kind, spec, operand, length)
        return _scalar(kind, spec, operand)

    def _address(self, form: Form, mods: Mapping[str, str], spec: OperandSpec, operand: Operand | None) -> str | None:
        if not isinstance(operand, Mem):
            return "an address in brackets is wanted"
        if operand.part is not None and not _is_part(spec, operand.part):
            return f"it takes no '.{operand.part}' after the address"
        coords = spec.coords
        if len(operand.coords) < len(coords):
            coords = tuple(coord for coord in coords if not coord.optional)
        if len(operand.coords) != len(coords):
            return f"its address takes {len(coords) or 'no'} coordinates after a comma, not {len(operand.coords)}"
        for coord, given in zip(coords, operand.coords, strict=True):
            why = self._operand(form, mods, coord, given)
            if why is not None:
                return why
        if isinstance(operand.base, int) and mods.get("space") != "local":
            return f"a constant address is legal in .local only: {operand.base}"
        if form.opcode in _GENERIC_MEMORY and not isinstance(operand.base, Reg | int):
            return _wrong_space(mods.get("space"), operand.base)
        return self._base(form, mods, spec, operand.base.register) if isinstance(operand.base, Reg) else None

    def _base(self, form: Form, mods: Mapping[str, str], spec: OperandSpec, held: Register) -> str | None:
        kind = form.type_of(spec, mods)
        if kind is not None:
            return _type_clash(kind, held.type, held.name, relaxed=False)
        space = mods.get("space")
        narrow = form.opcode in _GENERIC_MEMORY and space in (None, "global") and type_width(held.type) == 32
        if narrow and self.wide_addresses:
            return f"'{held.name}' is .{held.type}, but a {space or 'generic'} address has 64 bits"
        return f"'{held.name}' is .{held.type}, which holds no address" if held.type == "b128" else None


def _unwrapped(form: Form, mods: Mapping[str, str], operands: tuple[Operand | None, ...]) -> tuple[Operand | None, ...]:
    """``ld.global.b32 {%r1}, [%rd1]`` is how Triton writes a scalar."""
    if not any(isinstance(operand, Vec) and len(operand.items) == 1 for operand in operands):
        return operands
    specs = form.specs(mods, len(operands))
    if specs is None:
        return operands
    return tuple(
        operand.items[0]
        if isinstance(operand, Vec) and len(operand.items) == 1 and not _is_vector(spec, mods)
        else operand
        for spec, operand in zip(specs, operands, strict=True)
    )


def _is_vector(spec: OperandSpec, mods: Mapping[str, str]) -> bool:
    return spec.vector == "braces" or (spec.vector == "vec" and "vec" in mods)


def _count_of(form: Form, mods: Mapping[str, str]) -> str:
    counts = [n for n in range(len(form.operands) + 1) if form.specs(mods, n) is not None]
    wanted = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{wanted} operand{'s' if counts[-1] != 1 else ''}"


def _wrong_space(space: str | None, base: Variable | Function) -> str | None:
    """A symbol lies in the space that the instruction names, if it names one."""
    if isinstance(base, Function):
        return f"'{base.name}' is a function"
    if space is None or space.partition("::")[0] == base.space:
        return None
    return f"'{base.name}' lies in .{base.space}, not in .{space}"


def _is_part(spec: OperandSpec, part: str) -> bool:
    return spec.part is not None and PARTS[spec.part].fullmatch(part) is not None


def _vector(kind: str | None, spec: OperandSpec, operand: Operand | None, length: int | None) -> str | None:
    if isinstance(operand, Reg) and operand.register.vector > 1 and operand.part is None:
        held = operand.register.vector
        return None if length in (None, held) else f"'{operand.register.name}' has {held} elements, not {length}"
    if (isinstance(operand, Special) and spec.special and operand.part is None) or (operand is None and spec.sink):
        return None
    if not isinstance(operand, Vec):
        return "a vector in braces is wanted"
    if length is not None and len(operand.items) != length:
        return f"a vector of {length} is wanted, not of {len(operand.items)}"
    if None in operand.items and not (spec.sink or spec.role is Role.DST):
        return "'_' can stand in a vector of results only"
    for item in operand.items:
        why = None if item is None else _scalar(kind, spec, item)
        if why is not None:
            return why
    widths = {type_width(item.register.type) for item in operand.items if isinstance(item, Reg)}
    return "the elements of the vector differ in width" if len(widths) > 1 else None


def _scalar(kind: str | None, spec: OperandSpec, operand: Operand | None) -> str | None:
    if operand is None:
        return None if spec.sink else "'_' cannot stand here"
    if isinstance(operand, Reg):
        return _register(kind, spec, operand)
    if spec.role is Role.DST:
        return "its result needs a register"
    if isinstance(operand, Int | Float):
        return _constant(kind, spec, operand)
    if isinstance(operand, Special):
        return _special(kind, spec, operand)
    if isinstance(operand, Symbol):
        is_variable = isinstance(operand.target, Variable)
        if spec.special or (spec.address and is_variable):
            return None
        return f"the address of '{operand.target.name}' must be moved to a register first"
    return {
        Mem: "a register or a constant is wanted, not an address",
        Vec: "it takes no vector",
        Label: "a label is no value",
        Table: "a table of targets is no value",
    }.get(type(operand), "a register or a constant is wanted")


def _register(kind: str | None, spec: OperandSpec, operand: Reg) -> str | None:
    register = operand.register
    if spec.role is Role.CONST:
        return f"a constant is wanted, not '{register.name}'"
    if spec.name == "_":
        return f"only '_' can stand here, not '{register.name}'"
    if operand.negated and register.type != "pred" and not spec.negatable:
        return f"it takes no sign before '{register.name}'"
    if operand.negated and spec.role is Role.DST:
        return f"a result cannot be negated: '{register.name}'"
    if register.vector > 1 and operand.part is None:
        return f"'{register.name}' is a vector"
    if register.vector == 1 and operand.part is not None and not _is_part(spec, operand.part):
        return f"'{register.name}' has no part '.{operand.part}' here"
    return None if kind is None else _type_clash(kind, register.type, register.name, spec.relaxed)


def _type_clash(kind: str, held: str, name: str, relaxed: bool) -> str | None:
    return None if register_fits(kind, held, relaxed=relaxed) else f"'{name}' is .{held}, .{kind} is wanted"


def _constant(kind: str | None, spec: OperandSpec, constant: Int | Float) -> str | None:
    if spec.register:
        return "a register is wanted, not a constant"
    is_float = isinstance(constant, Float)
    if kind is None:
        return None
    if not constant_fits(kind, is_float=is_float):
        return f"{'a floating-point constant' if is_float else 'an integer'} is no .{kind}"
    if isinstance(constant, Float) and kind[0] == "b" and kind != f"b{constant.width}":
        return f"a floating-point constant of {constant.width} bits is no .{kind}"
    if spec.values and isinstance(constant, Int) and constant.value not in spec.values:
        return f"{spec.name} is {' or '.join(map(str, spec.values))}, not {constant.value}"
    return None


def _special(kind: str | None, spec: OperandSpec, operand: Special) -> str | None:
    if not spec.special:
        return f"'{operand.name}' must be moved to a register first"
    if operand.name in VECTOR_SPECIALS and operand.part is None:
        return f"'{operand.name}' needs a component, as in '{operand.name}.x'"
    if kind is None or kind in SHRINKABLE.get(operand.name, ()):
        return None
    return _type_clash(kind, SPECIALS[operand.name], operand.name, relaxed=False)


def _packing(kind: str, vector: Vec) -> str | None:
    """``mov.b64 d, {a, b}``: equal parts that make up the whole; a part may be ``_``."""
    whole = type_width(kind)
    for item in vector.items:
        if isinstance(item, Reg):
            part = type_width(item.register.type)
            if part is not None and part * len(vector.items) != whole:
                held = item.register
                return f"{len(vector.items)} parts such as '{held.name}' (.{held.type}) make no .{kind}"
    return None
