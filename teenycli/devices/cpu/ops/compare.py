"""Comparison and selection (PTX ISA 9.7.6 and 9.7.7): set, setp, selp, slct."""

from __future__ import annotations

from teenycli.devices.cpu import fp
from teenycli.devices.cpu.lower import Lowering, stored_type
from teenycli.devices.cpu.ops.floats import flush_half
from teenycli.devices.cpu.ops.integers import halves, pack
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import lowers
from teenycli.devices.cpu.value import Value, constant_of_bits, integer
from teenycli.ptx.code import Operand, Pair, Reg

_INT = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "lo": "lt", "ls": "le", "hi": "gt",
        "hs": "ge"}  # fmt: skip
_FLOAT = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq", "neu": "une",
          "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno"}  # fmt: skip


def _compare(x: Lowering, inst: Inst, type: str, a: Operand | None, b: Operand | None) -> Value:
    """The comparison of two operands of a scalar PTX type, ``.ftz`` applied."""
    w, mods = x.w, inst.op.mods
    cmp = mods["cmp"]
    if type in ("f32", "f64"):
        kind = "float" if type == "f32" else "double"
        p, q = x.read(a, kind), x.read(b, kind)
        if "ftz" in mods and kind == "float":
            p, q = fp.flush(w, p), fp.flush(w, q)
        return w.compare(f"fcmp {_FLOAT[cmp]}", p, q)
    if type in ("f16", "bf16"):
        return _compare_half(x, inst, type, x.read(a, "i16"), x.read(b, "i16"))
    p, q = (x.read(operand, f"i{type[1:]}") for operand in (a, b))
    order = _INT[cmp]
    sign = "" if order in ("eq", "ne") else "s" if type[0] == "s" and cmp not in ("lo", "ls", "hi", "hs") else "u"
    return w.compare(f"icmp {sign}{order}", p, q)


def _compare_half(x: Lowering, inst: Inst, type: str, a: Value, b: Value) -> Value:
    if "ftz" in inst.op.mods:
        a, b = flush_half(x, a), flush_half(x, b)
    return x.w.compare(f"fcmp {_FLOAT[inst.op.mods['cmp']]}", fp.widen(x.w, type, a), fp.widen(x.w, type, b))


def _with_bool(x: Lowering, inst: Inst, test: Value) -> Value:
    """The boolean operator with the third operand, where there is one."""
    if "bool" not in inst.op.mods:
        return test
    return x.w.binary(inst.op.mods["bool"], test, x.read(inst.op.operands[3], "i1"))


@lowers("setp")
def _setp(x: Lowering, inst: Inst) -> None:
    """``p|q``: p is the comparison, q its negation, each combined with c; for a pair of halves one each."""
    target, a, b = inst.op.operands[:3]
    type = inst.op.mods["type"]
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    if type.endswith("x2"):
        tests = _compare_pairs(x, inst, type, a, b)
    else:
        test = _compare(x, inst, type, a, b)
        tests = (test, x.w.negate(test) if second is not None else test)
    # Both before either is written: c may be one of them.
    results = [_with_bool(x, inst, t) for t in tests]
    x.write(first, results[0])
    x.write(second, results[1])


def _compare_pairs(x: Lowering, inst: Inst, type: str, a: Operand | None, b: Operand | None) -> tuple[Value, Value]:
    p, q = (halves(x.w, x.read(operand, "i32")) for operand in (a, b))
    low, high = (_compare_half(x, inst, type.removesuffix("x2"), p[k], q[k]) for k in (0, 1))
    return low, high


@lowers("set")
def _set(x: Lowering, inst: Inst) -> None:
    """All ones for an integer result, 1.0 for a floating one."""
    w, mods = x.w, inst.op.mods
    target, a, b = inst.op.operands[:3]
    dtype, atype = mods["dtype"], mods["atype"]
    if atype.endswith("x2"):
        tests = [_with_bool(x, inst, t) for t in _compare_pairs(x, inst, atype, a, b)]
        true = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(dtype, -1)
        low, high = (w.select(t, integer("i16", true), integer("i16", 0)) for t in tests)
        x.write(target, pack(w, low, high))
        return
    test = _with_bool(x, inst, _compare(x, inst, atype, a, b))
    kind = f"i{dtype.lstrip('bfsu')}" if dtype not in ("f16", "bf16") else "i16"
    true = {"f32": 0x3F800000, "f64": 0x3FF0000000000000, "f16": 0x3C00, "bf16": 0x3F80}.get(dtype, -1)
    x.write(target, w.select(test, integer(kind, true), integer(kind, 0)), signed=dtype[0] == "s")


def raw_or_bits(x: Lowering, operand: Operand | None, type: str) -> Value:
    """A value to be moved as it is: a raw float stays one."""
    assert x.inst is not None
    if isinstance(operand, Reg):
        value = x.load(x.inst.scope.cell(operand))
        if value.raw and type in ("f32", "b32"):
            return value
    return x.read(operand, f"i{type.lstrip('bfsu')}")


@lowers("selp")
def _selp(x: Lowering, inst: Inst) -> None:
    w, type = x.w, inst.op.mods["type"]
    target, a, b, c = inst.op.operands
    p, q = raw_or_bits(x, a, type), raw_or_bits(x, b, type)
    if p.type != q.type:  # one raw float, and bits that are not to be touched
        p, q = w.bitcast(p, "i32"), w.bitcast(q, "i32")
    x.write(target, w.select(x.read(c, "i1"), p, q))


@lowers("slct")
def _slct(x: Lowering, inst: Inst) -> None:
    """a when c is not negative, else b; a float c that is NaN chooses b."""
    w, mods = x.w, inst.op.mods
    target, a, b, c = inst.op.operands
    kind = stored_type(mods["dtype"])
    if mods["ctype"] == "f32":
        test = x.read(c, "float")
        test = fp.flush(w, test) if "ftz" in mods else test
        chosen = w.compare("fcmp oge", test, constant_of_bits("float", 0))
    else:
        chosen = w.compare("icmp sge", x.read(c, "i32"), integer("i32", 0))
    x.write(target, w.select(chosen, x.read(a, kind), x.read(b, kind)))
