"""Video instructions, scalar and SIMD (PTX ISA 9.7.18): parts of registers picked, operated on, merged or added up.

Inputs are extended to 64 bits, in which every sum is exact; products and shifts to the left take 128.
"""

from __future__ import annotations

from msgspec.structs import replace

from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.convert import clamp
from teenycli.devices.cpu.ops.integers import extreme
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import lowers
from teenycli.devices.cpu.value import Value, integer
from teenycli.ptx.code import Operand, Reg

_ARITHMETIC = ("vadd", "vsub", "vabsdiff", "vmin", "vmax")
_PACKED = (*_ARITHMETIC, "vavrg")


def part_of(x: Lowering, value: Value, start: int, bits: int, type: str, to: str = "i64") -> Value:
    """``bits`` bits of an i32 or i64 from ``start`` on, sign- or zero-extended by the PTX type."""
    w = x.w
    moved = w.binary("lshr", value, integer(value.type, start)) if start else value
    if bits == 32:
        field = w.resize(moved, "i32")
        return w.cast("sext" if type[0] == "s" else "zext", field, to)
    return w.cast("sext" if type[0] == "s" else "zext", w.cast("trunc", moved, f"i{bits}"), to)


def _place(operand: Operand | None) -> tuple[int, int]:
    """Where the part of a register that an operand selects begins, and its bits: the whole where none is."""
    part = operand.part if isinstance(operand, Reg) else None
    if part is None:
        return 0, 32
    bits = 8 if part[0] == "b" else 16
    return int(part[1]) * bits, bits


def _scalar(x: Lowering, operand: Operand | None, type: str, to: str = "i64") -> Value:
    start, bits = _place(operand)
    given = replace(operand, negated=False) if isinstance(operand, Reg) else operand
    return part_of(x, x.read(given, "i32"), start, bits, type, to)


def _combine(x: Lowering, name: str, a: Value, b: Value) -> Value:
    """One of the six operations on values of i64 that are far from overflow."""
    w = x.w
    if name in ("vmin", "vmax"):
        return extreme(w, name[1:], a, b, True)
    if name == "vabsdiff":
        return w.intrinsic("abs", w.sub(a, b), extra="i1 false")
    if name == "vsub":
        return w.sub(a, b)
    total = w.add(a, b)
    if name == "vadd":
        return total
    # Halved and rounded half away from zero.
    carry = w.cast("zext", w.compare("icmp sge", total, integer("i64", 0)), "i64")
    return w.binary("ashr", w.add(total, carry), integer("i64", 1))


def _finish(x: Lowering, inst: Inst, value: Value, dtype: str) -> None:
    """Saturate to the destination, or the part of it that is meant; then the second operation, or the merge."""
    w, mods = x.w, inst.op.mods
    target = inst.op.operands[0]
    start, bits = _place(target)
    if "sat" in mods:
        value = clamp(x, value, True, f"{dtype[0]}{bits}")
    result = w.cast("trunc", value, "i32")
    if len(inst.op.operands) > 3:
        c = x.read(inst.op.operands[3], "i32")
        if "op" not in mods:
            result = _merge(x, result, c, start, bits)
        elif mods["op"] == "add":
            result = w.add(result, c)
        else:
            result = extreme(w, mods["op"], result, c, dtype[0] == "s")
    x.write(target, result)


def _merge(x: Lowering, result: Value, c: Value, start: int, bits: int) -> Value:
    """``c`` with ``bits`` bits from ``start`` on replaced by the lowest of ``result``."""
    w = x.w
    if bits == 32:
        return result
    field = ((1 << bits) - 1) << start
    moved = w.binary("shl", result, integer("i32", start)) if start else result
    return w.either(w.both(moved, integer("i32", field)), w.both(c, integer("i32", ~field)))


@lowers(*_ARITHMETIC)
def _arithmetic(x: Lowering, inst: Inst) -> None:
    mods = inst.op.mods
    a = _scalar(x, inst.op.operands[1], mods["atype"])
    b = _scalar(x, inst.op.operands[2], mods["btype"])
    _finish(x, inst, _combine(x, inst.op.opcode, a, b), mods["dtype"])


@lowers("vshl", "vshr")
def _shift(x: Lowering, inst: Inst) -> None:
    """The amount is unsigned, held to 32 (``.clamp``) or taken modulo 32 (``.wrap``)."""
    w, mods = x.w, inst.op.mods
    a = _scalar(x, inst.op.operands[1], mods["atype"], "i128")
    amount = _scalar(x, inst.op.operands[2], "u32", "i128")
    if mods["mode"] == "wrap":
        amount = w.both(amount, integer("i128", 31))
    else:
        amount = extreme(w, "min", amount, integer("i128", 32), False)
    result = w.binary("shl" if inst.op.opcode == "vshl" else "ashr", a, amount)
    _finish(x, inst, result, mods["dtype"])


@lowers("vset")
def _set(x: Lowering, inst: Inst) -> None:
    w, mods = x.w, inst.op.mods
    a = _scalar(x, inst.op.operands[1], mods["atype"])
    b = _scalar(x, inst.op.operands[2], mods["btype"])
    _finish(x, inst, w.cast("zext", _test(x, mods["cmp"], a, b), "i64"), "u32")


def _test(x: Lowering, cmp: str, a: Value, b: Value) -> Value:
    return x.w.compare(f"icmp {cmp if cmp in ('eq', 'ne') else 's' + cmp}", a, b)


@lowers("vmad")
def _mad(x: Lowering, inst: Inst) -> None:
    """``a * b + c``, one more with ``.po``, shifted down by 7 or 15; signed when anything in it is."""
    w, mods = x.w, inst.op.mods
    a, b, c = inst.op.operands[1:4]
    minus = [isinstance(operand, Reg) and operand.negated for operand in (a, b, c)]
    minus_product, minus_c = minus[0] != minus[1], minus[2]
    signed = "s32" in (mods["atype"], mods["btype"]) or minus_product or minus_c
    product = w.binary("mul", _scalar(x, a, mods["atype"], "i128"), _scalar(x, b, mods["btype"], "i128"))
    addend = _scalar(x, c, "s32" if signed else "u32", "i128")
    if minus_product:
        total = w.sub(addend, product)
    elif minus_c:
        total = w.sub(product, addend)
    else:
        total = w.add(product, addend)
    if "po" in mods:
        total = w.add(total, integer("i128", 1))
    if "scale" in mods:
        total = w.binary("ashr", total, integer("i128", int(mods["scale"].removeprefix("shr"))))
    if "sat" in mods:
        total = clamp(x, total, True, "s32" if signed else "u32")
    x.write(inst.op.operands[0], w.cast("trunc", total, "i32"))


# --- SIMD ------------------------------------------------------------------------------------------------------------


def _lanes(x: Lowering, inst: Inst, index: int, type: str, count: int) -> list[Value]:
    """The halves or bytes that operand ``index`` selects out of b:a, lowest first.

    By default a selects its own elements, and b its own.
    """
    w, bits = x.w, 32 // count
    operand = inst.op.operands[index]
    assert isinstance(operand, Reg)
    both = w.either(
        w.binary("shl", w.cast("zext", x.read(inst.op.operands[2], "i32"), "i64"), integer("i64", 32)),
        w.cast("zext", x.read(inst.op.operands[1], "i32"), "i64"),
    )
    first = 0 if index == 1 else count
    picks = list(range(first, first + count))
    if operand.part is not None:
        picks = [int(digit) for digit in reversed(operand.part[1:])]
    return [part_of(x, both, pick * bits, bits, type) for pick in picks]


def _write_lanes(x: Lowering, inst: Inst, results: list[Value], dtype: str) -> None:
    """Saturate; then add the elements of the mask to c (``.add``), or put them in its place."""
    w, mods = x.w, inst.op.mods
    count, target = len(results), inst.op.operands[0]
    bits = 32 // count
    assert isinstance(target, Reg)
    mask = {int(digit) for digit in target.part[1:]} if target.part else set(range(count))
    total = x.read(inst.op.operands[3], "i32")
    for k in sorted(mask):
        value = clamp(x, results[k], True, f"{dtype[0]}{bits}") if "sat" in mods else results[k]
        value = w.cast("trunc", value, "i32")
        total = w.add(total, value) if "add" in mods else _merge(x, value, total, k * bits, bits)
    x.write(target, total)


@lowers(*(f"{name}{n}" for name in _PACKED for n in (2, 4)))
def _packed(x: Lowering, inst: Inst) -> None:
    mods, name = inst.op.mods, inst.op.opcode
    count = int(name[-1])
    a = _lanes(x, inst, 1, mods["atype"], count)
    b = _lanes(x, inst, 2, mods["btype"], count)
    results = [_combine(x, name[:-1], p, q) for p, q in zip(a, b, strict=True)]
    _write_lanes(x, inst, results, mods["dtype"])


@lowers("vset2", "vset4")
def _packed_set(x: Lowering, inst: Inst) -> None:
    w, mods = x.w, inst.op.mods
    count = int(inst.op.opcode[-1])
    a = _lanes(x, inst, 1, mods["atype"], count)
    b = _lanes(x, inst, 2, mods["btype"], count)
    tests = [w.cast("zext", _test(x, mods["cmp"], p, q), "i64") for p, q in zip(a, b, strict=True)]
    _write_lanes(x, inst, tests, "u32")
