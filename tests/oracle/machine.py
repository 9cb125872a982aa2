"""The machine: threads that step through a body one at a time and meet at warp operations and barriers.

A thread is a generator. It runs until it must wait for others, then yields what it brings; the CTA goes round its
threads and lets those on that have met. Of the control flow instructions it has bra, brx.idx, ret and exit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from teenycli.ptx.code import Code, Label, Mem, Op, Operand, Pair, Reg, Register, Special, Symbol, Table, Vec
from teenycli.ptx.isa import OperandSpec, Role
from teenycli.ptx.model import TYPE_SIZES, Float, Function, Int, Space, Variable, type_width
from tests.oracle import convert, floating, integers, video, warps
from tests.oracle.floats import FORMATS, decode, encode
from tests.oracle.meaning import MEANINGS, Bits, number
from tests.oracle.memory import Memory

WARP = 32
_FAMILIES = (integers, floating, convert)
_LANES = ("shfl", "vote", "match", "redux", "activemask")
_CARRY = ("addc", "subc", "madc")


class OpenError(Exception):
    """The program's course hangs on what the ISA leaves open."""


@dataclass(slots=True)
class Thread:
    """A thread's registers, carry flag, special registers and where its variables lie."""

    index: tuple[int, int, int]
    flat: int
    specials: Mapping[tuple[str, str | None], int]
    places: Mapping[str, int]
    registers: dict[Register, Bits] = field(default_factory=dict)
    carry: Bits = None


Getter = Callable[[Thread], Any]
Setter = Callable[[Thread, Any], None]


@dataclass(frozen=True, slots=True)
class Meeting:
    """What a thread waits for: others at the same instruction, of its warp or of the CTA."""

    op: Op
    sources: tuple[Any, ...]
    members: int | None
    results: Sequence[Setter]


Course = Generator[Meeting, Any, None]


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction made ready: how to test its guard, and what to do."""

    op: Op
    guard: Getter | None
    act: Callable[[Thread], Any]


# --- operands --------------------------------------------------------------------------------------------------------


def _constant(operand: Int | Float, type: str | None) -> int:
    """A constant's bits as an operand of ``type``; a double narrows to a single."""
    if isinstance(operand, Int):
        return operand.value & (1 << (type_width(type or "b64") or 64)) - 1
    if type in ("f32", "b32") and operand.width == 64:
        bits = encode(FORMATS["f32"], decode(FORMATS["f64"], operand.bits))
        assert bits is not None
        return bits
    return operand.bits


def getter(operand: Operand | None, type: str | None) -> Getter:
    """Reads an operand's bits, no more of them than ``type`` has."""
    if isinstance(operand, Reg):
        register, negated = operand.register, operand.negated
        mask = (1 << (type_width(type or register.type) or 64)) - 1
        if negated and register.type == "pred":
            return lambda t: None if (v := t.registers.get(register)) is None else 1 - v
        return lambda t: None if (v := t.registers.get(register)) is None else v & mask
    if isinstance(operand, Int | Float):
        value = _constant(operand, type)
        return lambda _: value
    if isinstance(operand, Special):
        key = operand.name, operand.part
        return lambda t: t.specials[key]
    if isinstance(operand, Symbol):
        name, offset = operand.target.name, operand.offset
        return lambda t: t.places[name] + offset
    if isinstance(operand, Vec):
        parts = [getter(item, type) for item in operand.items]
        return lambda t: [part(t) for part in parts]
    raise AssertionError(operand)


def setter(operand: Operand | None, type: str | None) -> Setter:
    """Writes an operand; a register wider than ``type`` gets the sign of a signed one, else zeros (PTX ISA,
    "Operand Size Exceeding Instruction-Type Size")."""
    if operand is None:
        return lambda _t, _v: None
    if isinstance(operand, Reg):
        register = operand.register
        bits, held = type_width(type or register.type) or 64, type_width(register.type) or 64
        wider = (1 << held) - (1 << bits) if held > bits and type and type[0] == "s" else 0

        def write(t: Thread, value: Bits) -> None:
            if value is not None and wider and value >> bits - 1 & 1:
                value |= wider
            t.registers[register] = value

        return write
    if isinstance(operand, Vec):
        parts = [setter(item, type) for item in operand.items]

        def spread(t: Thread, values: Sequence[Bits]) -> None:
            for part, value in zip(parts, values, strict=True):
                part(t, value)

        return spread
    raise AssertionError(operand)


def address(operand: Operand | None) -> Getter:
    assert isinstance(operand, Mem)
    base, offset = operand.base, operand.offset
    if isinstance(base, Reg):
        register = base.register

        def at(t: Thread) -> int:
            value = t.registers.get(register)
            if value is None:
                raise OpenError("address")
            return value + offset

        return at
    if isinstance(base, int):
        return lambda _: base + offset
    name = base.name
    return lambda t: t.places[name] + offset


# --- instructions ----------------------------------------------------------------------------------------------------


class Machine:
    """One body made ready to run."""

    def __init__(self, code: Code, memory: Memory) -> None:
        assert all(_FAMILIES)
        self.code, self.memory = code, memory
        self.steps = [_Step(op, getter(op.guard, "pred") if op.guard else None, self._act(op)) for op in code.ops]

    def _specs(self, op: Op) -> list[tuple[OperandSpec, Operand | None, str | None]]:
        return [(s, o, op.form.type_of(s, op.mods)) for s, o in zip(op.specs, op.operands, strict=True)]

    def _act(self, op: Op) -> Callable[[Thread], Any]:
        if op.opcode in ("ret", "exit"):
            return lambda _: None
        if op.opcode in ("bra", "brx"):
            return self._goal(op)
        if op.opcode in ("ld", "ldu"):
            return self._load(op)
        if op.opcode == "st":
            return self._store(op)
        if op.opcode in ("atom", "red"):
            return self._atomic(op)
        if op.opcode == "mov" and any(isinstance(o, Vec) for o in op.operands):
            return self._repack(op)
        if op.opcode in (*_LANES, "bar", "barrier"):
            return self._bring(op)
        return self._compute(op)

    def _goal(self, op: Op) -> Callable[[Thread], str]:
        """The label that a branch leads to."""
        if op.opcode == "bra":
            (label,) = op.operands
            assert isinstance(label, Label)
            name = label.name
            return lambda _: name
        index, table = op.operands
        assert isinstance(table, Table)
        read, goals = getter(index, "u32"), table.labels

        def choose(t: Thread) -> str:
            k = read(t)
            if k is None or k >= len(goals):
                raise OpenError("index of a branch")
            return goals[k].name

        return choose

    def _ends(self, op: Op) -> tuple[list[Getter], list[Setter]]:
        """How to read an instruction's sources and write its results, in order."""
        sources, results = [], []
        for spec, operand, type in self._specs(op):
            if spec.part is not None and isinstance(operand, Reg):
                # Its part and sign are the instruction's own to read.
                operand = Reg(operand.register)
            if spec.role is not Role.DST:
                sources.append(getter(operand, type))
            elif isinstance(operand, Pair):
                results += [setter(operand.first, type), setter(operand.second, "pred")]
            else:
                results.append(setter(operand, type))
        return sources, results

    def _compute(self, op: Op) -> Callable[[Thread], None]:
        sources, results = self._ends(op)
        sets_carry, takes_carry = "cc" in op.mods, op.opcode in _CARRY
        if video.is_video(op.opcode):
            meaning = video.video(op)
        else:
            meaning = integers.carrying(op.opcode, op.mods) if takes_carry else MEANINGS[op.opcode](op.mods)
        count = len(results)

        def act(t: Thread) -> None:
            given: list[Bits] = []
            for source in sources:
                value = source(t)
                given += value if isinstance(value, list) else [value]
            if takes_carry:
                given.append(t.carry)
            found = None if None in given else meaning(*given)
            if sets_carry or takes_carry:
                found, carry = (None, None) if found is None else found
                if sets_carry:
                    t.carry = carry
            if not isinstance(found, tuple):
                found = (found,) * count
            for result, value in zip(results, found, strict=False):
                result(t, value)

        return act

    def _repack(self, op: Op) -> Callable[[Thread], None]:
        """``mov`` between one register and several parts of it."""
        target, source = op.operands
        bits = type_width(op.mods["type"]) or 0
        if isinstance(source, Vec):
            part = bits // len(source.items)
            getters = [getter(item, f"b{part}") for item in source.items]
            write = setter(target, op.mods["type"])

            def pack(t: Thread) -> None:
                values = [g(t) for g in getters]
                write(t, None if None in values else sum(v << part * k for k, v in enumerate(values)))

            return pack
        assert isinstance(target, Vec)
        part = bits // len(target.items)
        read = getter(source, op.mods["type"])
        setters = [setter(item, f"b{part}") for item in target.items]

        def unpack(t: Thread) -> None:
            value = read(t)
            for k, one in enumerate(setters):
                one(t, None if value is None else value >> part * k & (1 << part) - 1)

        return unpack

    # --- memory ------------------------------------------------------------------------------------------------------

    def _load(self, op: Op) -> Callable[[Thread], None]:
        target, at, type = op.operands[0], address(op.operands[1]), op.mods["type"]
        size = TYPE_SIZES[type]
        write = setter(target, type)
        memory, count = self.memory, len(target.items) if isinstance(target, Vec) else 0

        def act(t: Thread) -> None:
            where = at(t)
            assert where % (size * (count or 1)) == 0
            if count:
                write(t, [memory.load(where + size * k, size) for k in range(count)])
            else:
                write(t, memory.load(where, size))

        return act

    def _store(self, op: Op) -> Callable[[Thread], None]:
        at, source, type = address(op.operands[0]), op.operands[1], op.mods["type"]
        size = TYPE_SIZES[type]
        read = getter(source, type)
        memory, is_vector = self.memory, isinstance(source, Vec)

        def act(t: Thread) -> None:
            where, values = at(t), read(t)
            for k, value in enumerate(values if is_vector else [values]):
                memory.store(where + size * k, size, value)

        return act

    def _atomic(self, op: Op) -> Callable[[Thread], None]:
        operands = list(op.operands)
        type, name = op.mods["type"], op.mods["op"]
        size = TYPE_SIZES[type]
        write = setter(operands.pop(0), type) if op.opcode == "atom" else None
        at = address(operands.pop(0))
        sources = [getter(operand, type) for operand in operands]
        update = _updates(name, type)

        def act(t: Thread) -> None:
            where = at(t)
            old = self.memory.load(where, size)
            given = [source(t) for source in sources]
            self.memory.store(where, size, None if old is None or None in given else update(old, *given))
            if write is not None:
                write(t, old)

        return act

    # --- meetings ----------------------------------------------------------------------------------------------------

    def _bring(self, op: Op) -> Callable[[Thread], Meeting]:
        sources, results = self._ends(op)
        in_warp = op.opcode in _LANES
        has_members = in_warp and op.opcode != "activemask"

        def act(t: Thread) -> Meeting:
            given = tuple(source(t) for source in sources)
            if None in given:
                raise OpenError("what lanes exchange")
            return Meeting(op, given, given[-1] if has_members else -1 if in_warp else None, results)

        return act

    def course(self, t: Thread) -> Course:
        """Runs one thread to its end."""
        steps, labels = self.steps, self.code.labels
        at = 0
        while at < len(steps):
            step = steps[at]
            at += 1
            if step.guard is not None:
                passes = step.guard(t)
                if passes is None:
                    raise OpenError("guard")
                if not passes:
                    continue
            op = step.op
            if op.opcode in ("bra", "brx"):
                at = labels[step.act(t)]
            elif op.opcode in ("ret", "exit"):
                return
            else:
                meeting = step.act(t)
                if meeting is not None:
                    answer = yield meeting
                    values = answer if isinstance(answer, tuple) else (answer,)
                    for result, value in zip(meeting.results, values, strict=False):
                        result(t, value)


def _updates(op: str, type: str) -> Callable[..., int]:
    """What ``atom`` and ``red`` leave in memory, integers."""
    value, mask = number(type), (1 << 8 * TYPE_SIZES[type]) - 1
    rules: dict[str, Callable[..., int]] = {
        "add": lambda a, b: a + b, "min": lambda a, b: min(value(a), value(b)),
        "max": lambda a, b: max(value(a), value(b)), "and": lambda a, b: a & b, "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b, "exch": lambda _a, b: b, "inc": lambda a, b: 0 if a >= b else a + 1,
        "dec": lambda a, b: b if a == 0 or a > b else a - 1, "cas": lambda a, b, c: c if a == b else a,
    }  # fmt: skip
    rule = rules[op]
    return lambda *args: rule(*args) & mask


# --- a CTA -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grid:
    """A launch: how many CTAs of how many threads, and the values of the parameters."""

    ctas: int
    threads: int
    parameters: Sequence[bytes]


def run(code: Code, memory: Memory, grid: Grid, constants: Mapping[str, int]) -> list[int]:
    """Run a grid of one-dimensional CTAs. ``constants`` are the addresses of module variables.

    Gives the CTAs that were given up, as a branch, an address or what lanes exchange hung on what the ISA leaves open.
    """
    machine = Machine(code, memory)
    places = dict(constants)
    for variable, value in zip(code.function.params, grid.parameters, strict=True):
        places[variable.name] = memory.add(list(value))
    given_up = []
    for cta in range(grid.ctas):
        try:
            _run_cta(machine, cta, grid, places)
        except OpenError:
            given_up.append(cta)
    return given_up


def _run_cta(machine: Machine, cta: int, grid: Grid, places: Mapping[str, int]) -> None:
    shared = {v.name: _room(machine.memory, v) for v in machine.code.variables if v.space is Space.SHARED}
    threads = []
    for flat in range(grid.threads):
        local = {v.name: _room(machine.memory, v) for v in machine.code.variables if v.space is Space.LOCAL}
        specials = _specials(flat, cta, grid)
        threads.append(Thread((flat, 0, 0), flat, specials, {**places, **shared, **local}))
    waiting: dict[int, Meeting] = {}
    courses = {t.flat: machine.course(t) for t in threads}
    for flat in list(courses):
        _go_on(courses, waiting, flat, None)
    while courses:
        answers = _warp_answers(courses, waiting) or _barrier_answers(courses, waiting)
        assert answers, "deadlock"
        for flat, answer in answers.items():
            _go_on(courses, waiting, flat, answer)


def _room(memory: Memory, variable: Variable | Function) -> int:
    assert isinstance(variable, Variable)
    return memory.add([None] * variable.size)


def _specials(flat: int, cta: int, grid: Grid) -> dict[tuple[str, str | None], int]:
    lane = flat % WARP
    return {
        ("%tid", "x"): flat, ("%ctaid", "x"): cta, ("%ntid", "x"): grid.threads, ("%nctaid", "x"): grid.ctas,
        ("%laneid", None): lane, ("%warpid", None): flat // WARP, ("%lanemask_lt", None): (1 << lane) - 1,
        ("%lanemask_eq", None): 1 << lane,
    }  # fmt: skip


def _go_on(courses: dict[int, Course], waiting: dict[int, Meeting], flat: int, answer: Any) -> None:
    """Run a thread to where it next waits, or to its end."""
    waiting.pop(flat, None)
    try:
        waiting[flat] = courses[flat].send(answer)
    except StopIteration:
        del courses[flat]


def _warp_answers(courses: Mapping[int, Course], waiting: Mapping[int, Meeting]) -> dict[int, Any]:
    """The first warp operation that all its living members have reached."""
    for flat, meeting in waiting.items():
        if meeting.members is None:
            continue
        first = flat - flat % WARP
        crew = [first + k for k in range(WARP) if meeting.members >> k & 1 and first + k in courses]
        if all(k in waiting and waiting[k].op is meeting.op for k in crew):
            given = {k - first: waiting[k].sources for k in crew}
            found = warps.result(meeting.op.opcode, meeting.op.mods, given)
            return {first + lane: value for lane, value in found.items()}
    return {}


def _barrier_answers(courses: Mapping[int, Course], waiting: Mapping[int, Meeting]) -> dict[int, Any]:
    """A barrier that every living thread has reached."""
    if any(k not in waiting or waiting[k].members is not None for k in courses):
        return {}
    op = next(iter(waiting.values())).op
    if "red" in op.mods:
        votes = [meeting.sources[-1] for meeting in waiting.values()]
        return dict.fromkeys(waiting, warps.barrier_reduction(op.mods, votes))
    return dict.fromkeys(waiting, ())
