"""Products of matrices by a warp group (PTX ISA 9.7.15: wgmma), dense, of floats and bytes.

Each of the group's four warps has 16 rows of the result, laid out as ``mma`` has them, and computes them by itself when
it comes to the instruction: what is asynchronous may be done at once. B, and A where no registers hold it, lie in
shared memory as a descriptor says.
"""

from __future__ import annotations

from msgspec import Struct

from teenycli.devices.cpu import fp
from teenycli.devices.cpu.gather import require_locate
from teenycli.devices.cpu.layout import FaultKind
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.native import context_at
from teenycli.devices.cpu.ops.access import Access
from teenycli.devices.cpu.ops.async_copies import named_operands
from teenycli.devices.cpu.ops.formats import FORMATS, decode
from teenycli.devices.cpu.ops.fragments import LANES, of_a, owners, picked
from teenycli.devices.cpu.ops.integers import halves, pack
from teenycli.devices.cpu.ops.memory import gather
from teenycli.devices.cpu.ops.products import KINDS, shape_of
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.value import Unit, Value, Writer, integer, lane_constants
from teenycli.ptx.code import Operand, Vec
from teenycli.ptx.model import Int

#: Bytes of an element, by type.
_SIZES = {type: 4 // KINDS[type].parts for type in ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8")}


@lowers("wgmma", takes=lambda mods: bool({"fence", "commit_group", "wait_group"} & mods.keys()))
def _in_order(*_: object) -> None:
    """All is done when it is issued."""


def _takes(mods: Mods) -> bool:
    return "mma_async" in mods and "sp" not in mods and {mods["atype"], mods["btype"]} <= _SIZES.keys()


@lowers("wgmma", takes=_takes)
def _product(x: Lowering, inst: Inst) -> None:
    given, mods, w = named_operands(inst), inst.op.mods, x.w
    going = "true" if x.guard is None else w.assign(f"icmp ne i{w.width} {x.bits_of(x.exec)}, 0")
    _, columns, depth = shape_of(mods)
    kind = "i32" if mods["dtype"] == "s32" else "float"
    constants = {name: operand.value for name, operand in given.items() if isinstance(operand, Int)}
    left = _elements_of_a(x, mods, given["a"], depth, going, transposed=constants.get("trans_a", 0) == 1)
    if constants.get("scale_a", 1) * constants.get("scale_b", 1) < 0:
        left = [w.unary("fneg", element) for element in left]
    a = x.room(f"wgmma.a.{depth}", 2 * depth * LANES * 4)
    for k, element in enumerate(left):
        _store(w, a, k, element)
    b = x.room(f"wgmma.b.{columns}.{depth}", depth * columns * 4)
    loader = _loader(x.unit, mods["btype"], depth, transposed=constants.get("trans_b", 0) == 1)
    desc = _checked(x, given["b"], going).text
    args = f"i1 {going}, i64 {desc}, ptr {b}, i64 {columns}, i32 {x.site()}"
    w.go_on(w.assign(f"call i1 @{loader}(ptr %ctx, {args})"))
    d = x.room(f"wgmma.d.{columns}", columns // 2 * LANES * 4)
    targets = x.elements(given["d"])
    keeps = x.read(given["c"], "i1")
    for k, value in enumerate(_sums(x, mods["dtype"], targets)):
        _store(w, d, k, w.select(keeps, value, Value(kind, "0" if kind == "i32" else "0.0", True)))
    multiplier = _multiplier(x.unit, kind, depth, clamps="satfinite" in mods)
    w.line(f"call void @{multiplier}(ptr {d}, ptr {a}, ptr {b}, i64 {columns})")
    sums = [Value(kind, _load(w, d, k, kind), False, kind == "float") for k in range(columns // 2)]
    if mods["dtype"] == "f16":
        sums = [pack(w, *(fp.narrow(w, "f16", each) for each in sums[k : k + 2])) for k in range(0, len(sums), 2)]
    for target, value in zip(targets, sums, strict=True):
        x.write(target, value)


def _store(w: Writer, room: str, k: int, value: Value) -> None:
    place = w.assign(f"getelementptr i8, ptr {room}, i64 {k * LANES * 4}")
    w.line(f"store {w.vector(value.type)} {w.lanes(value)}, ptr {place}, align 64")


def _load(w: Writer, room: str, k: int, kind: str) -> str:
    place = w.assign(f"getelementptr i8, ptr {room}, i64 {k * LANES * 4}")
    return w.assign(f"load {w.vector(kind)}, ptr {place}, align 64")


def _sums(x: Lowering, dtype: str, registers: list[Operand | None]) -> list[Value]:
    if dtype != "f16":
        return [x.read(register, "i32" if dtype == "s32" else "float") for register in registers]
    pairs = [halves(x.w, x.read(register, "i32")) for register in registers]
    return [fp.widen(x.w, "f16", half) for pair in pairs for half in pair]


# --- A ---------------------------------------------------------------------------------------------------------------


def _elements_of_a(x: Lowering, mods: Mods, a: Operand, depth: int, going: str, *, transposed: bool) -> list[Value]:
    """For rows of the upper eight and then of the lower, the elements along K, each where its row is wanted."""
    w, kind = x.w, KINDS[mods["atype"]]
    layout = of_a(2, 4, kind.parts)
    if isinstance(a, Vec):
        registers = [w.varying(x.read(register, "i32")) for register in x.elements(a)]
    else:
        registers = _fragment(x, mods["atype"], _checked(x, a, going), transposed=transposed)
    elements = [element for register in registers for element in kind.split(w, register)]
    where = owners(layout)
    return [
        picked(w, elements, tuple(where[lane // 4 + 8 * half, k] for lane in range(LANES)))
        for half in (0, 1)
        for k in range(depth)
    ]


def _fragment(x: Lowering, type: str, desc: Value, *, transposed: bool) -> list[Value]:
    """The registers that would hold this warp's rows of A."""
    w, size, parts = x.w, _SIZES[type], KINDS[type].parts
    layout = of_a(2, 4, parts)
    matrix = Descriptor.read(w, desc)
    first = w.resize(w.both(Value("i32", "%w", True), integer("i32", 3)), "i64")
    first = w.binary("shl", first, integer("i64", 4))
    each = size if transposed else 4
    access = Access("shared", 1, each, 0, store=False)
    found = []
    for places in layout[:: 1 if transposed else parts]:
        rows = w.add(first, lane_constants("i64", [row for row, _ in places]))
        place = matrix.place(w, rows, lane_constants("i64", [k for _, k in places]), size, transposed=transposed)
        found.append(gather(x, access, place)[0])
    if not transposed:
        return found
    return [pack(w, *found[k : k + 2]) for k in range(0, len(found), 2)]


def _checked(x: Lowering, operand: Operand, going: str) -> Value:
    """A descriptor, which all lanes share; a fault where its pattern begins elsewhere than at a multiple of itself
    and some lane is ``going`` to multiply."""
    w = x.w
    desc = w.first(x.read(operand, "i64"))
    offset = w.both(w.binary("lshr", desc, integer("i64", 49)), integer("i64", 7))
    bad, fine = w.fresh_label("shifted"), w.fresh_label("aligned")
    shifted = w.compare("icmp ne", offset, integer("i64", 0)).text
    w.branch(w.assign(f"and i1 {shifted}, {going}"), bad, fine, likely=False)
    w.label(bad)
    x.fault(FaultKind.DESCRIPTOR, "0", offset.text)
    w.label(fine)
    return desc


# --- descriptors -----------------------------------------------------------------------------------------------------


class Descriptor(Struct, frozen=True):
    """A matrix in shared memory (PTX ISA, "Matrix Descriptor Format"): where it begins, the bytes from one group of
    eight to the next along K or across (``leading``, ``stride``), the bytes of a row of the pattern in which 16-byte
    chunks are exchanged (16 where none are), and by which bits they are."""

    start: Value
    leading: Value
    stride: Value
    pitch: Value
    swizzle: Value

    @classmethod
    def read(cls, w: Writer, desc: Value) -> Descriptor:
        def field(shift: int, bits: int) -> Value:
            moved = w.binary("lshr", desc, integer("i64", shift))
            return w.both(moved, integer("i64", (1 << bits) - 1))

        def bytes_of(shift: int) -> Value:
            return w.binary("shl", field(shift, 14), integer("i64", 4))

        mode = field(62, 2)
        # 1: 128 bytes, 2: 64, 3: 32, 0: none, as if of 16.
        is_plain = w.compare("icmp eq", mode, integer("i64", 0))
        pitch = w.select(is_plain, integer("i64", 16), w.binary("lshr", integer("i64", 256), mode))
        swizzle = w.sub(w.binary("lshr", pitch, integer("i64", 4)), integer("i64", 1))
        return cls(bytes_of(0), bytes_of(16), bytes_of(32), pitch, swizzle)

    def place(self, w: Writer, across: Value, along: Value, size: int, *, transposed: bool) -> Value:
        """The shared address of an element of ``size`` bytes: the row of A (column of B), and K."""

        def scaled(value: Value, divisor: Value, unit: Value) -> Value:
            return w.binary("mul", w.binary("udiv", value, divisor), unit)

        eight = integer("i64", 8)
        if transposed:
            # Rows of the pattern lie along K, so many of A's rows in each.
            per = w.binary("lshr", self.pitch, integer("i64", size // 2))
            is_plain = w.compare("icmp eq", self.pitch, integer("i64", 16))
            outer, inner = (
                w.select(is_plain, self.stride, self.leading), w.select(is_plain, self.leading, self.stride)
            )  # fmt: skip
            at = w.add(scaled(across, per, outer), w.binary("mul", w.binary("urem", across, per), integer("i64", size)))
            at = w.add(at, w.binary("mul", w.binary("urem", along, eight), self.pitch))
            at = w.add(at, scaled(along, eight, inner))
        else:
            nbytes = w.binary("mul", along, integer("i64", size))
            at = w.add(scaled(across, eight, self.stride), w.binary("mul", w.binary("urem", across, eight), self.pitch))
            at = w.add(at, scaled(nbytes, self.pitch, self.leading))
            at = w.add(at, w.binary("urem", nbytes, self.pitch))
        at = w.add(at, self.start)
        turned = w.both(w.binary("lshr", at, integer("i64", 7)), self.swizzle)
        return w.differ(at, w.binary("shl", turned, integer("i64", 4)))


# --- B, and the sums -------------------------------------------------------------------------------------------------


def _loader(unit: Unit, type: str, depth: int, *, transposed: bool) -> str:
    """``i1 @teeny.wgmma.b…(ctx, going, descriptor, to, columns, site)``: B as singles or words, a row of it after the
    other; false after a fault."""
    name = f"teeny.wgmma.b.{type}{'.trans' if transposed else ''}"
    if name in unit.helpers:
        return name
    locate, size = require_locate(unit, "shared"), _SIZES[type]
    w = Writer(unit)
    w.current = "entry"
    w.branch("%going", "load", "done")
    w.label("done")
    w.line("ret i1 true")
    w.label("load")
    matrix = Descriptor.read(w, Value("i64", "%desc", True))
    base, have = (
        w.assign(f"load i64, ptr {w.assign(f'getelementptr i8, ptr %ctx, i64 {context_at(field)}')}")
        for field in ("shared", "shared_size")
    )
    limit = w.assign(f"sub i64 {have}, {size}")

    def column(outer: list[str]) -> list[str]:
        def element(inner: list[str]) -> list[str]:
            k, n = inner[0], outer[0]
            place = matrix.place(w, Value("i64", n, True), Value("i64", k, True), size, transposed=transposed).text
            bad, good = w.fresh_label("bad"), w.fresh_label("good")
            w.branch(w.assign(f"icmp sle i64 {place}, {limit}"), good, bad, likely=True)
            w.label(bad)
            w.line(f"call i64 @{locate}(ptr %ctx, i64 {place}, i64 {size}, i32 %site, i32 0)")
            w.line("ret i1 false")
            w.label(good)
            pointer = w.assign(f"inttoptr i64 {w.assign(f'add i64 {base}, {place}')} to ptr")
            value = _scalar(w, type, w.assign(f"load i{8 * size}, ptr {pointer}, align 1"))
            at = w.assign(f"add i64 {w.assign(f'mul i64 {k}, %columns')}, {n}")
            w.line(f"store {value.type} {value.text}, ptr {w.assign(f'getelementptr i32, ptr %to, i64 {at}')}")
            return [w.assign(f"add i64 {k}, 1")]

        w.loop([("i64", "0")], lambda inner: w.assign(f"icmp ult i64 {inner[0]}, {depth}"), element)
        return [w.assign(f"add i64 {outer[0]}, 1")]

    w.loop([("i64", "0")], lambda outer: w.assign(f"icmp ult i64 {outer[0]}, %columns"), column)
    params = "ptr %ctx, i1 %going, i64 %desc, ptr %to, i64 %columns, i32 %site"
    head = f"define internal i1 @{name}({params}) noinline nounwind #0 {{"
    unit.helpers[name] = "\n".join([head, "entry:", *w.lines, "  ret i1 true", "}\n"])
    return name


def _scalar(w: Writer, type: str, loaded: str) -> Value:
    """An element in memory as a single or a word."""
    raw = Value(f"i{8 * _SIZES[type]}", loaded, True)
    if type in ("s8", "u8"):
        return w.resize(raw, "i32", signed=type == "s8")
    if type == "tf32":
        return KINDS["tf32"].split(w, raw)[0]
    if type in ("e4m3", "e5m2"):
        return decode(w, FORMATS[f"{type}x2"], w.resize(raw, "i32"))
    return fp.widen(w, type, raw)


def _multiplier(unit: Unit, kind: str, depth: int, *, clamps: bool) -> str:
    """``void @teeny.wgmma…(d, a, b, columns)``: eight columns of D after the other; ``clamps`` where it is of integers
    whose sum stays within what they can hold."""
    name = f"teeny.wgmma.{kind}.{depth}{'.satfinite' if clamps else ''}"
    if name in unit.helpers:
        return name
    w = Writer(unit)
    w.current = "entry"

    def block(names: list[str]) -> list[str]:
        column = names[0]
        room = w.assign(f"getelementptr i8, ptr %d, i64 {w.assign(f'mul i64 {column}, {LANES * 4 // 2}')}")
        held = [Value(kind, _load(w, room, e, kind), False) for e in range(4)]
        sums = [integer(kind, 0)] * 4 if clamps else list(held)
        for k in range(depth):
            at = w.assign(f"add i64 {w.assign(f'mul i64 %columns, {k}')}, {column}")
            row = w.assign(f"load <8 x {kind}>, ptr {w.assign(f'getelementptr i32, ptr %b, i64 {at}')}, align 4")
            for e in range(4):
                picks = ", ".join(f"i32 {lane % 4 * 2 + e % 2}" for lane in range(LANES))
                spread = w.assign(f"shufflevector <8 x {kind}> {row}, <8 x {kind}> poison, <{LANES} x i32> <{picks}>")
                p, q = Value(kind, _load(w, "%a", e // 2 * depth + k, kind), False), Value(kind, spread, False)
                sums[e] = w.add(sums[e], w.binary("mul", p, q)) if kind == "i32" else w.intrinsic("fma", p, q, sums[e])
        for e, (value, before) in enumerate(zip(sums, held, strict=True)):
            _store(w, room, e, w.intrinsic("sadd.sat", before, value) if clamps else value)
        return [w.assign(f"add i64 {column}, 8")]

    w.loop([("i64", "0")], lambda names: w.assign(f"icmp ult i64 {names[0]}, %columns"), block)
    head = f"define internal void @{name}(ptr %d, ptr %a, ptr %b, i64 %columns) noinline nounwind #0 {{"
    unit.helpers[name] = "\n".join([head, "entry:", *w.lines, "  ret void", "}\n"])
    return name
