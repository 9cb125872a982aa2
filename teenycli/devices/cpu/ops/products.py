"""Products of matrices by a warp (PTX ISA 9.7.14: mma), dense.

Every element of the result is in one lane, where a row of A and a column of B come together, one element of each at a
time: A's and B's are sent there from the lanes that have them. Sums of floating-point products are made one after the
other by fma in float32, more exact than the text asks for; integers wrap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from teenycli.devices.cpu import fp
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.async_copies import named_operands
from teenycli.devices.cpu.ops.formats import FORMATS, decode
from teenycli.devices.cpu.ops.fragments import Layout, of_a, of_b, of_c, owners, picked
from teenycli.devices.cpu.ops.integers import halves, pack
from teenycli.devices.cpu.ops.outlined import outlined
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.value import Value, Writer, integer

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


class Kind(Struct, frozen=True):
    """How elements of A or B lie in a register of the LLVM type ``held``: ``parts`` of them, taken out by ``split``."""

    held: str
    parts: int
    split: Callable[[Writer, Value], list[Value]]


def _halves(type: str, w: Writer, register: Value) -> list[Value]:
    return [fp.widen(w, type, half) for half in halves(w, register)]


def _tf32(w: Writer, register: Value) -> list[Value]:
    """The lower 13 bits are none of a tf32's."""
    return [w.cast("bitcast", w.both(register, integer("i32", -(1 << 13))), "float")]


def _eighths(type: str, w: Writer, register: Value) -> list[Value]:
    codes = [w.binary("lshr", register, integer("i32", 8 * k)) if k else register for k in range(4)]
    return [decode(w, FORMATS[f"{type}x2"], code) for code in codes]


def _integers(bits: int, signed: bool, w: Writer, register: Value) -> list[Value]:
    found = []
    for k in range(32 // bits):
        top = w.binary("shl", register, integer("i32", 32 - bits * (k + 1)))
        found.append(w.binary("ashr" if signed else "lshr", top, integer("i32", 32 - bits)))
    return found


def _whole(_: Writer, register: Value) -> list[Value]:
    return [register]


KINDS = {
    "f16": Kind("i32", 2, partial(_halves, "f16")),
    "bf16": Kind("i32", 2, partial(_halves, "bf16")),
    "tf32": Kind("i32", 1, _tf32),
    "e4m3": Kind("i32", 4, partial(_eighths, "e4m3")),
    "e5m2": Kind("i32", 4, partial(_eighths, "e5m2")),
    "f64": Kind("double", 1, _whole),
    "s8": Kind("i32", 4, partial(_integers, 8, True)),
    "u8": Kind("i32", 4, partial(_integers, 8, False)),
    "s4": Kind("i32", 8, partial(_integers, 4, True)),
    "u4": Kind("i32", 8, partial(_integers, 4, False)),
    # Of single bits a register is taken as one: its products are counted.
    "b1": Kind("i32", 1, _whole),
}
#: The LLVM types of an accumulator, by PTX type: of a register, and of what is summed.
SUMS = {"f16": ("i32", "float"), "f32": ("float", "float"), "f64": ("double", "double"), "s32": ("i32", "i32")}
_WHOLE = ("f32", "f64", "s32")


class Product(Struct, frozen=True):
    """What an instruction multiplies: types, where the elements of A, B and C lie, and how many products make one of
    D, which lies as C does."""

    atype: str
    btype: str
    ctype: str
    dtype: str
    a: Layout
    b: Layout
    c: Layout
    depth: int
    mods: Mods


def _takes(mods: Mods) -> bool:
    """Dense products without scales. m8n8k4 of f16 is Volta's, whose fragments lie otherwise."""
    if "sp" in mods or "scale" in mods or "block_scale" in mods or {mods["atype"], mods["btype"]} - KINDS.keys():
        return False
    return not (mods["shape"] == "m8n8k4" and mods["atype"] == "f16")


@lowers("mma", takes=_takes)
def _mma(x: Lowering, inst: Inst) -> None:
    given, mods = named_operands(inst), inst.op.mods
    (rows, columns, depth), kind = shape_of(mods), KINDS[mods["atype"]]
    a, b, c = (x.elements(given[name]) for name in "abc")
    product = Product(
        mods["atype"], mods["btype"], mods["ctype"], mods["dtype"], of_a(rows // 8, len(a), kind.parts),
        of_b(columns // 8, len(b), kind.parts), of_c(rows // 8, columns // 8),
        depth_of(mods["atype"], depth), mods,
    )  # fmt: skip
    held = kind.held, kind.held, SUMS[mods["ctype"]][0]
    registers = [[x.read(operand, type) for operand in each] for each, type in zip((a, b, c), held, strict=True)]
    found = product_of(x, f"mma.{mods['shape']}", product, registers)
    for target, value in zip(x.elements(given["d"]), found, strict=True):
        x.write(target, value)


def depth_of(type: str, k: int) -> int:
    """How many elements of A, as ``KINDS`` counts them, lie along K: single bits are 32 to one."""
    return k // 32 if type == "b1" else k


def shape_of(mods: Mods) -> tuple[int, int, int]:
    """Rows, columns, and how many products make an element."""
    found = _SHAPE.fullmatch(mods["shape"])
    assert found is not None, mods
    rows, columns, depth = map(int, found.groups())
    return rows, columns, depth


def product_of(x: Lowering, name: str, product: Product, given: Sequence[Sequence[Value]]) -> list[Value]:
    """The registers of D, by a function of the module named for the types and for ``name``; ``given`` are those of A,
    B and C."""
    of, mods = product, product.mods
    name = f"{name}.{of.atype}.{of.btype}.{of.ctype}.{of.dtype}"
    name += "".join(f".{mods[slot]}" for slot in ("rnd", "op", "satfinite") if slot in mods)
    count = len(of.c) // (2 if of.dtype == "f16" else 1)
    a, b = len(given[0]), len(given[1])
    return outlined(
        x, name, [x.w.varying(register) for each in given for register in each], [SUMS[of.dtype][0]] * count,
        lambda w, values: _multiplied(w, product, values[:a], values[a : a + b], values[a + b :]),
    )  # fmt: skip


def _multiplied(w: Writer, product: Product, a: Sequence[Value], b: Sequence[Value], c: Sequence[Value]) -> list[Value]:
    """The registers of D, of those of A, B and C."""
    left = [element for register in a for element in KINDS[product.atype].split(w, register)]
    right = [element for register in b for element in KINDS[product.btype].split(w, register)]
    sums = [element for register in c for element in _summands(w, product.ctype, register)]
    of_left, of_right = owners(product.a), owners(product.b)
    starts = [integer("i32", 0) for _ in sums] if product.ctype == "s32" else sums
    totals = list(starts)
    for k in range(product.depth):
        known: dict[object, Value] = {}

        def sent(source: list[Value], order: tuple[tuple[int, int], ...], known: dict[object, Value] = known) -> Value:
            key = id(source), order
            if key not in known:
                known[key] = picked(w, source, order)
            return known[key]

        for e, places in enumerate(product.c):
            p = sent(left, tuple(of_left[row, k] for row, _ in places))
            q = sent(right, tuple(of_right[k, column] for _, column in places))
            totals[e] = _added(w, product, p, q, totals[e])
    if product.ctype == "s32":
        add = "sadd.sat" if "satfinite" in product.mods else None
        totals = [w.intrinsic(add, s, t) if add else w.add(s, t) for s, t in zip(sums, totals, strict=True)]
    return _registers(w, product.dtype, totals)


def _added(w: Writer, product: Product, p: Value, q: Value, total: Value) -> Value:
    """``p * q + total``."""
    if product.atype == "b1":
        bits = w.both(p, q) if product.mods["op"] == "and" else w.differ(p, q)
        return w.add(total, w.intrinsic("ctpop", bits))
    if total.type == "i32":
        return w.add(total, w.binary("mul", p, q))
    return fp.arithmetic(w, "fma", product.mods.get("rnd", "rn"), p, q, total)


def _summands(w: Writer, type: str, register: Value) -> list[Value]:
    return [register] if type in _WHOLE else [fp.widen(w, type, half) for half in halves(w, register)]


def _registers(w: Writer, type: str, totals: Sequence[Value]) -> list[Value]:
    if type in _WHOLE:
        return [*totals]
    narrow = [fp.narrow(w, type, total) for total in totals]
    return [pack(w, *narrow[k : k + 2]) for k in range(0, len(narrow), 2)]
