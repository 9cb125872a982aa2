"""Products of matrices by a warp whose fragments are nobody's business (PTX ISA 9.7.14: wmma): loads, products, stores.

Which lane holds which element is left open; here it is as in ``mma``. Registers of a fragment beyond those that hold an
element repeat others.
"""

from __future__ import annotations

from msgspec.structs import replace

from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.access import Access
from teenycli.devices.cpu.ops.async_copies import access_at, full_address, named_operands, window_of
from teenycli.devices.cpu.ops.fragments import Layout, of_a, of_b, of_c
from teenycli.devices.cpu.ops.memory import gather, scatter
from teenycli.devices.cpu.ops.products import KINDS, SUMS, Product, depth_of, product_of, shape_of
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.value import Value, integer, lane_constants

#: Bits of an element in memory.
_BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip


def _layout(which: str, type: str, shape: tuple[int, int, int]) -> Layout:
    """Where the elements of operand a, b, c or d lie; of single bits, words of 32."""
    m, n, k = shape
    if which in "cd":
        return of_c(m // 8, n // 8)
    parts = KINDS[type].parts
    deep = depth_of(type, k)
    if which == "a":
        return of_a(m // 8, m * deep // (32 * parts), parts)
    return of_b(n // 8, n * deep // (32 * parts), parts)


def _which(mods: Mods) -> str:
    return next(letter for letter in "abcd" if letter in mods)


# --- memory ----------------------------------------------------------------------------------------------------------


def _places(x: Lowering, inst: Inst, layout: Layout, *, store: bool) -> tuple[Access, list[Value], int]:
    """An access of a register or, where a register's elements do not lie together, of an element; the address of each
    lane's, one register after the other; and how many make a register."""
    given, mods, w = named_operands(inst), inst.op.mods, x.w
    which, type = _which(mods), mods["type"]
    bits, is_row = _BITS[type], mods["layout"] == "row"
    element = 32 if type == "b1" else bits  # as the layout counts them: of single bits a word
    per = max(32 // element, 1)
    together = is_row == (which != "b")
    size = max(element, 32) if together else element
    access, at = access_at(x, inst, given["a"], window_of(mods.get("space")), size // 8, store=store)
    access = replace(access, count=1, size=size // 8)
    start = full_address(x, access, at)
    m, n, k = shape_of(mods)
    rows, columns = {"a": (m, k), "b": (k, n)}.get(which, (m, n))
    stride = x.read(given["stride"], "i32") if "stride" in given else integer("i32", columns if is_row else rows)
    stride = w.binary("mul", w.resize(stride, "i64"), integer("i64", bits))
    found = []
    for places in layout[:: per if together else 1]:
        major, minor = ([place[axis if is_row else 1 - axis] for place in places] for axis in (0, 1))
        lines = w.binary("mul", stride, lane_constants("i64", major))
        offset = w.add(lines, lane_constants("i64", [element * each for each in minor]))
        found.append(w.add(start, w.binary("lshr", offset, integer("i64", 3))))
    return access, found, 1 if together else per


@lowers("wmma", takes=lambda mods: "load" in mods)
def _load(x: Lowering, inst: Inst) -> None:
    w, mods = x.w, inst.op.mods
    layout = _layout(_which(mods), mods["type"], shape_of(mods))
    access, places, per = _places(x, inst, layout, store=False)
    loaded = [gather(x, access, place)[0] for place in places]
    registers = []
    for k in range(0, len(loaded), per):
        word = loaded[k]
        for j in range(1, per):
            upper = w.binary("shl", w.cast("zext", loaded[k + j], "i32"), integer("i32", 32 // per * j))
            word = w.either(w.cast("zext", word, "i32") if j == 1 else word, upper)
        registers.append(word)
    for k, target in enumerate(x.elements(named_operands(inst)["d"])):
        x.write(target, registers[k % len(registers)])


@lowers("wmma", takes=lambda mods: "store" in mods)
def _store(x: Lowering, inst: Inst) -> None:
    w, mods = x.w, inst.op.mods
    layout = _layout("d", mods["type"], shape_of(mods))
    access, places, per = _places(x, inst, layout, store=True)
    kind = f"i{max(_BITS[mods['type']], 32)}"
    for k, operand in enumerate(x.elements(named_operands(inst)["b"])):
        word = w.varying(x.read(operand, kind))
        for j in range(per):
            part = w.binary("lshr", word, integer(kind, 32 // per * j)) if j else word
            scatter(x, access, places[k * per + j], [w.resize(part, f"i{8 * access.size}")])


# --- products --------------------------------------------------------------------------------------------------------


def _takes(mods: Mods) -> bool:
    """Floating-point sums that are held to the finite went with PTX 6.4."""
    return "mma" in mods and not ("satfinite" in mods and mods["ctype"] != "s32")


@lowers("wmma", takes=_takes)
def _mma(x: Lowering, inst: Inst) -> None:
    given, mods = named_operands(inst), inst.op.mods
    shape, atype = shape_of(mods), mods.get("atype", "f16")
    a, b, c = (_layout(which, atype, shape) for which in "abc")
    product = Product(
        atype, mods.get("btype", atype), mods["ctype"], mods["dtype"], a, b, c,
        depth_of(atype, shape[2]), mods,
    )  # fmt: skip
    kind = KINDS[atype]
    # Registers beyond those of the layout repeat others.
    held = ((a, kind.held, kind.parts), (b, kind.held, kind.parts), (c, SUMS[mods["ctype"]][0], 1))
    registers = [
        [x.read(operand, type) for operand in x.elements(given[which])[: len(layout) // parts]]
        for which, (layout, type, parts) in zip("abc", held, strict=True)
    ]
    targets = x.elements(given["d"])
    for target, value in zip(targets, product_of(x, f"wmma.{mods['shape']}", product, registers), strict=True):
        x.write(target, value)
