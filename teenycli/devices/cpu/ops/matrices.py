"""Matrices of 8 by 8 elements of 16 bits between shared memory and a warp (PTX ISA 9.7.14: ldmatrix, stmatrix,
movmatrix).

A row of eight elements is 16 bytes, in four lanes a word each. So a matrix whose rows lie one after the other in memory
is a vector of the warp, and that is the way they go: by rows into a room of the function, or out of it.
"""

from __future__ import annotations

from teenycli.devices.cpu.gather import require_hosts
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.native import COLD, each_lane
from teenycli.devices.cpu.ops.access import address_of, addresses
from teenycli.devices.cpu.ops.async_copies import access_at, named_operands, window_of
from teenycli.devices.cpu.ops.fragments import LANES, picked
from teenycli.devices.cpu.ops.outlined import outlined
from teenycli.devices.cpu.ops.parts import part_bits
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.value import Unit, Value, Writer, integer, lane_constants
from teenycli.ptx.code import Operand

#: Rows of a matrix, and their bytes.
_ROWS, _ROW = 8, 16
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}


def _eights(mods: Mods) -> bool:
    return mods.get("shape") == "m8n8"


@lowers("ldmatrix", takes=_eights)
def _ldmatrix(x: Lowering, inst: Inst) -> None:
    """Lane ``8 * m + r`` has the address of row r of matrix m."""
    given, count = named_operands(inst), _COUNTS[inst.op.mods["num"]]
    _move_rows(x, inst, given["a"], count, is_store=False)
    found = [
        Value("i32", x.w.assign(f"load {x.w.vector('i32')}, ptr {_matrix(x, m)}, align 64"), False)
        for m in range(count)
    ]
    for target, value in zip(x.elements(given["d"]), found, strict=True):
        x.write(target, _turned(x, value) if "trans" in inst.op.mods else value)


@lowers("stmatrix", takes=_eights)
def _stmatrix(x: Lowering, inst: Inst) -> None:
    given, count = named_operands(inst), _COUNTS[inst.op.mods["num"]]
    for m, operand in enumerate(x.elements(given["b"])):
        value = x.read(operand, "i32")
        text = x.w.lanes(_turned(x, value) if "trans" in inst.op.mods else value)
        x.w.line(f"store {x.w.vector('i32')} {text}, ptr {_matrix(x, m)}, align 64")
    _move_rows(x, inst, given["a"], count, is_store=True)


@lowers("movmatrix")
def _movmatrix(x: Lowering, inst: Inst) -> None:
    given = named_operands(inst)
    x.write(given["d"], _turned(x, x.read(given["a"], "i32")))


# --- rows ------------------------------------------------------------------------------------------------------------


def _matrix(x: Lowering, m: int) -> str:
    """Where matrix m is in the room."""
    room = x.room("matrices", 4 * _ROWS * _ROW)
    return x.w.assign(f"getelementptr i8, ptr {room}, i64 {m * _ROWS * _ROW}") if m else room


def _move_rows(x: Lowering, inst: Inst, mem: Operand, count: int, *, is_store: bool) -> None:
    """The rows of so many matrices between the addresses that the first lanes have and the room."""
    w, g = x.w, x.unit.group
    access, at = access_at(x, inst, mem, window_of(inst.op.mods.get("space")), _ROW, store=is_store)
    helper = _rows(x.unit, access.window + (".store" if is_store else ""), is_store=is_store)
    lanes = w.lanes(address_of(x, at))
    acting = w.assign(f"and i32 {x.bits_of(x.exec)}, {integer('i32', (1 << _ROWS * count) - 1).text}")
    for part in range(LANES // g):
        room = w.assign(f"getelementptr i8, ptr {_matrix(x, 0)}, i64 {part * g * _ROW}")
        places, mask = addresses(x, access, lanes, part), part_bits(x, acting, part)
        w.line(f"call void @{helper}(ptr %ctx, <{g} x i64> {places}, i{g} {mask}, i32 {x.site()}, i32 {part * g}, "
               f"ptr {room})")  # fmt: skip
    x.check_dead()


def _rows(unit: Unit, space: str, *, is_store: bool) -> str:
    """``void @teeny.rows…(ctx, addresses, mask, site, first lane, room)``: each acting lane's row, checked."""
    name = f"teeny.rows.{space}"
    if name in unit.helpers:
        return name
    g, hosts = unit.group, require_hosts(unit, space)
    source, target = ("%row", "%p") if is_store else ("%p", "%row")
    body = f"""
  %place = getelementptr i64, ptr %hosts, i32 %lane
  %host = load i64, ptr %place
  %p = inttoptr i64 %host to ptr
  %row = getelementptr [{_ROW} x i8], ptr %room, i32 %lane
  %words = load <4 x i32>, ptr {source}, align 4
  store <4 x i32> %words, ptr {target}, align 4
  br label %next
next:
  br label %head"""
    params = f"ptr %ctx, <{g} x i64> %addresses, i{g} %mask, i32 %site, i32 %lane0"
    unit.helpers[name] = f"""
define internal void @{name}({params}, ptr %room) {COLD} #0 {{
entry:
  %hosts = alloca <{g} x i64>
  %fine = call i1 @{hosts}({params}, i64 {_ROW}, ptr %hosts)
  br i1 %fine, label %begin, label %out
{each_lane(g, body, entry="begin")}}}
"""
    return name


# --- columns ---------------------------------------------------------------------------------------------------------


def _turned(x: Lowering, matrix: Value) -> Value:
    """The matrix with rows and columns exchanged."""
    return outlined(x, "transposed", [matrix], ["i32"], _transposed)[0]


def _transposed(w: Writer, given: list[Value]) -> list[Value]:
    """Lane ``4 * row + k`` has elements 2k and 2k + 1 of its row: they come from lanes that have it as a column, out of
    the lower halves where it is even."""
    first, second = (
        picked(w, given, tuple((0, 4 * (2 * (lane % 4) + h) + lane // 8) for lane in range(LANES))) for h in (0, 1)
    )
    low = w.either(w.both(first, integer("i32", 0xFFFF)), w.binary("shl", second, integer("i32", 16)))
    high = w.either(w.binary("lshr", first, integer("i32", 16)), w.both(second, integer("i32", -65536)))
    return [w.select(lane_constants("i1", (lane // 4 % 2 for lane in range(LANES))), high, low)]
