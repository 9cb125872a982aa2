"""How a body makes addresses: by which parameters it multiplies an index, and how far an index can reach.

An address is a sum: a pointer, and terms that are constants times something. A parameter that an index is multiplied
with, where nothing but constants is multiplied on top of that, is the distance from one index to the next: a stride.
Where 32 bits of an index are widened to 64, the term reaches 2**31 (or 2**32) times its constants, and no further.

May import the rest of ``ptx``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import inf

from msgspec import Struct

from teenycli.ptx.code import Code, Mem, Op, Operand, Reg, Register
from teenycli.ptx.flow import Flow, registers_in
from teenycli.ptx.graph import FOREIGN, HELD, numbers, poured
from teenycli.ptx.model import Int, type_width

#: Opcodes of which the result is the sum of operands, or one of them; ``or`` adds what has no bit in common.
_SUMS = frozenset({"add", "sub", "mov", "cvta", "cvt", "selp", "or"})
_PRODUCTS = frozenset({"mul", "mad", "fma", "mul24", "mad24"})
#: How often the body is gone over before what still grows is taken to grow without end.
_PASSES = 4

#: A parameter and the offset in it that is loaded.
Unit = tuple[int, int]


class Reached(Struct, frozen=True):
    """What is known of the memory accesses through one pointer.

    ``strides`` are the parameters that an index is multiplied with, ``parts`` those that are themselves added to the
    address, the pointer among them. ``reach`` is how many bytes from the pointer the furthest of the accesses can be:
    infinity where nothing bounds it.
    """

    strides: frozenset[Unit]
    parts: frozenset[Unit]
    reach: float


def reached(flow: Flow) -> dict[Unit, Reached]:
    """Of every unit that is part of an address in the entry itself, the accesses that it is part of, all in one."""
    code, held = flow.code, _held(flow)
    edges = _by_source(_linear(code))
    parts = poured(held, edges)
    strides = poured(_factors(code, held), edges)
    reaches = _reaches(code, held)
    furthest: dict[tuple[int, int], float] = defaultdict(float)
    for op in code.ops:
        for mem in (operand for operand in op.operands if isinstance(operand, Mem)):
            if isinstance(mem.base, Reg):
                register = mem.base.register
                made = strides.get(register, 0), parts.get(register, 0)
                furthest[made] = max(furthest[made], reaches.get(register, inf) + abs(mem.offset))
    return _by_unit(flow, furthest)


def _by_unit(flow: Flow, furthest: dict[tuple[int, int], float]) -> dict[Unit, Reached]:
    """Of accesses, by the tokens (bits) of their strides and parts, and how far they reach, those of each unit."""
    found: dict[Unit, tuple[int, int, float]] = {}
    for (strides, parts), reach in furthest.items():
        for unit in set(_units(flow, parts)):
            known = found.get(unit, (0, 0, 0))
            found[unit] = known[0] | strides, known[1] | parts, max(known[2], reach)
    units = lru_cache(lambda bits: frozenset(_units(flow, bits)))
    return {unit: Reached(units(strides), units(parts), reach) for unit, (strides, parts, reach) in found.items()}


def _held(flow: Flow) -> dict[Register, int]:
    """Which values of parameters a register of the entry itself may hold: the numbers of their tokens, a bit each."""
    graph = flow.graph
    own = {number for number, token in enumerate(graph.tokens) if token != FOREIGN}
    found: dict[Register, int] = {}
    for register, node in flow.frames[0].nodes.items():
        bits = sum(1 << number for number in numbers(graph.state[node], HELD) if number in own)
        if bits:
            found[register] = bits
    return found


def _units(flow: Flow, bits: int) -> Iterator[Unit]:
    while bits:
        lowest = bits & -bits
        token = flow.graph.tokens[lowest.bit_length() - 1]
        yield token.param, token.offset
        bits ^= lowest


def _factors(code: Code, held: dict[Register, int]) -> dict[Register, int]:
    """The products of something that is no constant, by the parameter that is the other factor. Of two parameters
    nothing tells which is the index; and a quotient times its divisor is how compilers write a remainder."""
    scaled = poured(held, _by_source(_scalings(code)))
    divisors = _divisors(code, scaled)
    found: dict[Register, int] = defaultdict(int)
    for op in code.ops:
        factors = [each.register for each in op.operands[1:3] if isinstance(each, Reg)]
        if op.opcode in _PRODUCTS and op.call is None and len(factors) == 2:
            one, other = (scaled.get(register, 0) for register in factors)
            by = divisors.get(factors[0], 0) | divisors.get(factors[1], 0)
            if not (one and other) and not (one | other) & by:
                for target in registers_in(op.operands[0]):
                    found[target] |= one | other
    return found


def _divisors(code: Code, scaled: dict[Register, int]) -> dict[Register, int]:
    """By which parameters quotients are divided."""
    found: dict[Register, int] = defaultdict(int)
    for op in code.ops:
        if op.opcode == "div" and isinstance(op.operands[2], Reg):
            for target in registers_in(op.operands[0]):
                found[target] |= scaled.get(op.operands[2].register, 0)
    return poured(found, _by_source(_scalings(code)))


# --- terms -----------------------------------------------------------------------------------------------------------


def _linear(code: Code) -> Iterator[tuple[Register, Register]]:
    """(source, target) of instructions that add, or multiply with a constant."""
    yield from _scalings(code)
    for op in code.ops:
        if op.call is not None or not op.operands:
            continue
        sources: tuple[Operand | None, ...] = ()
        if op.opcode in _SUMS:
            sources = op.operands[1:3]
        elif op.opcode in ("mad", "fma", "mad24"):
            sources = op.operands[3:4]
        for target in registers_in(op.operands[0]):
            for operand in sources:
                yield from ((source, target) for source in registers_in(operand) if source.type != "pred")


def _scalings(code: Code) -> Iterator[tuple[Register, Register]]:
    """(source, target) of instructions that multiply with a constant, widen, or move."""
    for op in code.ops:
        if op.call is not None or not op.operands:
            continue
        if op.opcode in ("mov", "cvt", "cvta"):
            sources = op.operands[1:2]
        elif op.opcode == "shl" or op.opcode in _PRODUCTS:
            sources = op.operands[1:3] if any(isinstance(each, Int) for each in op.operands[1:3]) else ()
            sources = sources[:1] if op.opcode == "shl" else sources
        else:
            continue
        for target in registers_in(op.operands[0]):
            for operand in sources:
                yield from ((source, target) for source in registers_in(operand))


def _by_source(edges: Iterable[tuple[Register, Register]]) -> dict[Register, list[Register]]:
    """The targets of each source."""
    found: dict[Register, list[Register]] = defaultdict(list)
    for source, target in edges:
        found[source].append(target)
    return found


# --- reach -----------------------------------------------------------------------------------------------------------


def _reaches(code: Code, held: dict[Register, int]) -> dict[Register, float]:
    """How far from where it began each register of 64 bits can be: what a pointer parameter is counts as zero."""
    known: dict[Register, float] = {}
    growing: set[Register] = set()
    for turn in range(_PASSES):
        growing.clear()
        for op in code.ops:
            for target in registers_in(op.operands[0]) if op.operands and op.call is None else ():
                if (type_width(target.type) or 0) != 64:
                    continue
                reach = _reach(op, known) if op.opcode != "ld" else 0 if held.get(target) else inf
                if reach > known.get(target, -1):
                    known[target] = inf if turn and target in known else reach
                    growing.add(target)
        if not growing:
            break
    return {register: inf if register in growing else reach for register, reach in known.items()}


def _reach(op: Op, known: dict[Register, float]) -> float:
    """The reach of the 64 bits that ``op`` makes, infinity where nothing is known of it."""
    if not isinstance(op.operands[0], Reg):
        return inf
    args = [_known(operand, known) for operand in op.operands[1:]]
    match op.opcode:
        case "mov" | "cvta":
            return args[0]
        case "add" | "sub" | "or":
            return args[0] + args[1]
        case "selp":
            return max(args[:2])
        case "and":
            return min(args[:2])
        case "shl":
            return args[0] * 2.0 ** min(args[1], 64) if isinstance(op.operands[2], Int) else inf
        case "cvt":
            return _widened(op.mods.get("atype", ""), args[0])
        case "mul" | "mad":
            return _product(op, args) + (args[2] if op.opcode == "mad" else 0)
    return inf


def _known(operand: Operand | None, known: dict[Register, float]) -> float:
    if isinstance(operand, Int):
        return abs(operand.value)
    return known.get(operand.register, 0) if isinstance(operand, Reg) else 0


def _widened(kind: str, reach: float) -> float:
    """The reach of an integer of a type made 64 bits wide."""
    bits = type_width(kind) or 64
    if bits == 64:
        return reach
    return 2.0 ** (bits - (kind[0] == "s")) if kind[:1] in ("s", "u") else inf


def _product(op: Op, args: list[float]) -> float:
    constants = [args[k] for k in (0, 1) if isinstance(op.operands[1 + k], Int)]
    if len(constants) != 1:
        return inf
    variable = args[1] if isinstance(op.operands[1], Int) else args[0]
    return constants[0] * _widened(op.mods.get("type", ""), variable)
