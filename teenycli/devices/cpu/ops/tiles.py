"""Copies of boxes of a tensor, as a tensor map describes them (PTX ISA 9.7.9.27: cp.async.bulk.tensor, tiled mode)."""

from __future__ import annotations

from teenycli.devices.cpu.gather import require_locate
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.async_copies import access_at, complete_bytes, full_address, located, named_operands
from teenycli.devices.cpu.ops.lanes import each_lane
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.tensormaps import BOX, EXTENTS, FILL, RANK, SIZES, STEPS, STRIDES, SWIZZLE, TYPE
from teenycli.devices.cpu.value import Unit, Writer
from teenycli.launch.plan import TensorMap
from teenycli.ptx.code import Mem


def _is_tiled(mods: Mods) -> bool:
    """Tiles between global memory and this block's shared memory; not to many CTAs, and nothing added."""
    plain = "tensor" in mods and not {"multicast", "reduce", "group"} & mods.keys()
    return plain and mods.get("mode", "tile") == "tile"


@lowers("cp", takes=lambda mods: _is_tiled(mods) and "prefetch" in mods)
def _prefetch(*_: object) -> None:
    """There is no cache to bring it to."""


@lowers("cp", takes=lambda mods: _is_tiled(mods) and "prefetch" not in mods)
def _tile(x: Lowering, inst: Inst) -> None:
    given, is_store = named_operands(inst), inst.op.mods["dst"] == "global"
    tensor, shared = (given["d"], given["a"]) if is_store else (given["a"], given["d"])
    assert isinstance(tensor, Mem)
    map, map_at = access_at(x, inst, tensor, "generic", 8, store=False)
    room, room_at = access_at(x, inst, shared, "shared", 16, store=not is_store)
    coordinates = [x.read(each, "i32") for operand in tensor.coords for each in x.elements(operand)]
    helper = _copy(x.unit, room.window, is_store=is_store)

    def copy(lane: str, values: list[str]) -> str:
        at, to, *where = values
        # Among parameters a map is at a multiple of 64 within the GPU's constant bank, and not from its beginning.
        host = located(x, map.window, at, TensorMap.SIZE, lane, store=False, align=8)
        numbers = ", ".join(f"i32 {each}" for each in [*where, *("0",) * (RANK - len(where))])
        given = f"ptr %ctx, i64 {host}, i64 {to}, {numbers}, i32 {x.site()}, i32 {lane}"
        moved = x.w.assign(f"call i64 @{helper}({given})")
        x.w.go_on(x.w.assign(f"icmp sge i64 {moved}, 0"))
        return moved

    moved = each_lane(x, [full_address(x, map, map_at), full_address(x, room, room_at), *coordinates], "i64", copy)
    if "mbar" in given:
        complete_bytes(x, inst, given["mbar"], moved)


# --- one copy --------------------------------------------------------------------------------------------------------


class _Map:
    """The numbers of a map, as i64 names of the function that reads them."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        self.address = self._field(0, 8)
        kind = self._field(TYPE, 1)
        place = w.assign(f"getelementptr i8, ptr @teeny.tile.sizes, i64 {kind}")
        self.size = w.assign(f"zext i8 {w.assign(f'load i8, ptr {place}')} to i64")
        self.extents = [self._field(EXTENTS + 8 * k, 8) for k in range(RANK)]
        self.strides = [self.size, *(self._field(STRIDES + 8 * k, 8) for k in range(RANK - 1))]
        self.steps = [self._at_least_one(self._field(STEPS + k, 1)) for k in range(RANK)]
        #: Elements of the box in shared memory.
        self.counts = [self._count(k) for k in range(RANK)]
        self.swizzle = w.assign(f"sub i64 {w.assign(f'shl i64 1, {self._field(SWIZZLE, 1)}')}, 1")
        self.fills = w.assign(f"icmp ne i64 {self._field(FILL, 1)}, 0")

    def _field(self, offset: int, size: int) -> str:
        w, kind = self.w, f"i{8 * size}"
        place = w.assign(f"getelementptr i8, ptr %map, i64 {offset}")
        value = w.assign(f"load {kind}, ptr {place}, align 1")
        return value if size == 8 else w.assign(f"zext {kind} {value} to i64")

    def _at_least_one(self, value: str) -> str:
        """Dimensions beyond the rank have one element, whatever the map says of them."""
        return _chosen(self.w, "ugt", value, "1")

    def _count(self, k: int) -> str:
        w = self.w
        box = self._at_least_one(self._field(BOX + 2 * k, 2))
        up = w.assign(f"add i64 {box}, {w.assign(f'sub i64 {self.steps[k]}, 1')}")
        return w.assign(f"udiv i64 {up}, {self.steps[k]}")


def _copy(unit: Unit, window: str, *, is_store: bool) -> str:
    """``i64 @teeny.tile…(ctx, map, shared address, five coordinates, site, lane)``: the bytes of the box, or -1 after a
    fault."""
    name = f"teeny.tile.{'store' if is_store else 'load'}.{window}"
    if name in unit.helpers:
        return name
    sizes = ", ".join(f"i8 {size}" for size in (*SIZES, 1, 1, 1))
    unit.helpers.setdefault("teeny.tile.sizes", f"@teeny.tile.sizes = internal constant [16 x i8] [{sizes}]")
    near = require_locate(unit, window + ("" if is_store else ".store"), run=True)
    far = require_locate(unit, "generic" + (".store" if is_store else ""), run=True)
    w = Writer(unit)
    w.current = "entry"
    _box(w, near, far, is_store=is_store)
    coordinates = ", ".join(f"i32 %c{k}" for k in range(RANK))
    params = f"ptr %ctx, i64 %maphost, i64 %shared, {coordinates}, i32 %site, i32 %lane"
    head = f"define internal i64 @{name}({params}) noinline nounwind #0 {{"
    unit.helpers[name] = "\n".join([head, "entry:", *w.lines, "dead:", "  ret i64 -1", "}\n"])
    return name


def _box(w: Writer, near: str, far: str, *, is_store: bool) -> None:
    w.line("%map = inttoptr i64 %maphost to ptr")
    of = _Map(w)
    starts = [w.assign(f"sext i32 %c{k} to i64") for k in range(RANK)]
    rows = "1"
    for k in range(1, RANK):
        rows = w.assign(f"mul i64 {rows}, {of.counts[k]}")
    line = w.assign(f"mul i64 {of.counts[0]}, {of.size}")
    total = w.assign(f"mul i64 {rows}, {line}")
    begin = _located(w, near, "%shared", total, "128")
    window = w.assign(f"sub i64 {begin}, %shared")

    def row(names: list[str]) -> list[str]:
        number = names[0]
        address, is_in = _row_address(w, of, starts, number)
        low, high = _run(w, of, starts[0])
        some = w.assign(f"and i1 {is_in}, {w.assign(f'icmp slt i64 {low}, {high}')}")
        host = _run_host(w, of, far, address, starts[0], (low, high), some)
        shared = w.assign(f"add i64 %shared, {w.assign(f'mul i64 {number}, {line}')}")

        def element(inner: list[str]) -> list[str]:
            k = inner[0]
            at = w.assign(f"add i64 {shared}, {w.assign(f'mul i64 {k}, {of.size}')}")
            turned = w.assign(f"and i64 {w.assign(f'lshr i64 {at}, 7')}, {of.swizzle}")
            at = w.assign(f"xor i64 {at}, {w.assign(f'shl i64 {turned}, 4')}")
            near_host = w.assign(f"add i64 {window}, {at}")
            inside = w.assign(f"and i1 {w.assign(f'icmp sge i64 {k}, {low}')}, {w.assign(f'icmp slt i64 {k}, {high}')}")
            inside = w.assign(f"and i1 {inside}, {some}")
            step = w.assign(f"mul i64 {w.assign(f'mul i64 {k}, {of.steps[0]}')}, {of.size}")
            far_host = w.assign(f"add i64 {host}, {step}")
            _move(w, of, near_host, far_host, inside, is_store=is_store)
            return [w.assign(f"add i64 {k}, 1")]

        w.loop([("i64", "0")], lambda inner: w.assign(f"icmp ult i64 {inner[0]}, {of.counts[0]}"), element)
        return [w.assign(f"add i64 {number}, 1")]

    w.loop([("i64", "0")], lambda names: w.assign(f"icmp ult i64 {names[0]}, {rows}"), row)
    w.line(f"ret i64 {total}")


def _row_address(w: Writer, of: _Map, starts: list[str], number: str) -> tuple[str, str]:
    """The address of coordinate 0 of a row of the box, by its number; and whether the row is within the tensor."""
    address, is_in, rest = of.address, "true", number
    for k in range(1, RANK):
        index = w.assign(f"urem i64 {rest}, {of.counts[k]}")
        rest = w.assign(f"udiv i64 {rest}, {of.counts[k]}")
        place = w.assign(f"add i64 {starts[k]}, {w.assign(f'mul i64 {index}, {of.steps[k]}')}")
        extent = _chosen(w, "ugt", of.extents[k], "1")
        is_in = w.assign(f"and i1 {is_in}, {w.assign(f'icmp ult i64 {place}, {extent}')}")
        address = w.assign(f"add i64 {address}, {w.assign(f'mul i64 {place}, {of.strides[k]}')}")
    return address, is_in


def _run(w: Writer, of: _Map, start: str) -> tuple[str, str]:
    """The first element of a row that is within the tensor, and the one after the last."""
    step = of.steps[0]
    up = w.assign(f"sub i64 {step}, 1")
    before = _chosen(w, "sgt", w.assign(f"sub i64 0, {start}"), "0")
    low = w.assign(f"udiv i64 {w.assign(f'add i64 {before}, {up}')}, {step}")
    left = _chosen(w, "sgt", w.assign(f"sub i64 {of.extents[0]}, {start}"), "0")
    most = w.assign(f"udiv i64 {w.assign(f'add i64 {left}, {up}')}, {step}")
    return low, _chosen(w, "slt", most, of.counts[0])


def _chosen(w: Writer, test: str, a: str, b: str) -> str:
    """``a`` if it is ``test`` (``ugt``: greater) than ``b``, else ``b``."""
    return w.assign(f"select i1 {w.assign(f'icmp {test} i64 {a}, {b}')}, i64 {a}, i64 {b}")


def _run_host(w: Writer, of: _Map, far: str, address: str, start: str, run: tuple[str, str], some: str) -> str:
    """Where element 0 of a row is, or would be, in the host's memory; those of the run are checked, if there are."""
    low, high = run
    check, checked = w.fresh_label("check"), w.fresh_label("checked")
    before = w.current
    w.branch(some, check, checked)
    w.label(check)
    step = w.assign(f"mul i64 {of.steps[0]}, {of.size}")
    base = w.assign(f"add i64 {address}, {w.assign(f'mul i64 {start}, {of.size}')}")
    skipped = w.assign(f"mul i64 {low}, {step}")
    first = w.assign(f"add i64 {base}, {skipped}")
    between = w.assign(f"sub i64 {w.assign(f'sub i64 {high}, {low}')}, 1")
    span = w.assign(f"add i64 {w.assign(f'mul i64 {between}, {step}')}, {of.size}")
    host = w.assign(f"sub i64 {_located(w, far, first, span, '1')}, {skipped}")
    end = w.current
    w.jump(checked)
    w.label(checked)
    return w.assign(f"phi i64 [ 0, %{before} ], [ {host}, %{end} ]")


def _located(w: Writer, locate: str, address: str, span: str, align: str) -> str:
    """A checked host address; leaves the function after a fault."""
    given = f"ptr %ctx, i64 {address}, i64 {span}, i64 {align}, i32 %site, i32 %lane"
    host = w.assign(f"call i64 @{locate}({given})")
    w.go_on(w.assign(f"icmp ne i64 {host}, 0"))
    return host


def _move(w: Writer, of: _Map, near: str, far: str, inside: str, *, is_store: bool) -> None:
    """One element, of whatever size: to shared memory, from beyond the tensor too, as zero or NaN; or out of it."""
    done = w.fresh_label("moved")
    cases = {size: w.fresh_label(f"of{size}") for size in (1, 2, 4, 8)}
    table = " ".join(f"i64 {size}, label %{label}" for size, label in cases.items() if size > 1)
    w.line(f"switch i64 {of.size}, label %{cases[1]} [{table}]")
    for size, label in cases.items():
        w.label(label)
        kind = f"i{8 * size}"
        shared = w.assign(f"inttoptr i64 {near} to ptr")
        read, skip = w.fresh_label("read"), w.fresh_label("beyond")
        w.branch(inside, read, done if is_store else skip)
        w.label(read)
        tensor = w.assign(f"inttoptr i64 {far} to ptr")
        source, target = (shared, tensor) if is_store else (tensor, shared)
        w.line(f"store {kind} {w.assign(f'load {kind}, ptr {source}, align 1')}, ptr {target}, align 1")
        w.jump(done)
        if not is_store:
            w.label(skip)
            nan = {1: 0, 2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FF8000000000000}[size]
            filled = w.assign(f"select i1 {of.fills}, {kind} {nan}, {kind} 0")
            w.line(f"store {kind} {filled}, ptr {shared}, align 1")
            w.jump(done)
    w.label(done)
