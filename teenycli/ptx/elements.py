"""What memory holds, by what becomes of the registers that are loaded from it and stored to it: a ``b32`` that is added
as ``f32`` is one. May import ``ptx.flow`` and what it may.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from teenycli.ptx.code import Op, Vec
from teenycli.ptx.flow import Flow, Record
from teenycli.ptx.graph import COPY, SLICE, poured
from teenycli.ptx.model import Int, type_width

#: Element types by the name of the instruction type that works on them, packed ones unpacked.
FLOATS = {
    "f16": "f16", "f16x2": "f16", "bf16": "bf16", "bf16x2": "bf16", "f32": "f32", "tf32": "f32", "f32x2": "f32",
    "f64": "f64", "e4m3": "e4m3", "e4m3x2": "e4m3", "e4m3x4": "e4m3", "e5m2": "e5m2", "e5m2x2": "e5m2",
    "e5m2x4": "e5m2",
}  # fmt: skip
_FLOAT_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8}
#: Opcodes that take integers for numbers; shifts and logic take the bits of anything.
_COUNTS = frozenset({
    "add", "sub", "mul", "mad", "div", "rem", "setp", "min", "max", "abs", "neg", "cvt", "atom", "red", "dp4a", "dp2a",
})  # fmt: skip


class Elements:
    """As what the registers of a flow are read, and as what they are written: along copies, in their direction, since
    one zero may serve a counter and a float, and not through memory where one place cannot be told from another."""

    def __init__(self, flow: Flow) -> None:
        self._names: list[str] = ["ptr"]
        self._bits: dict[int, list[int]] = {}
        reads: dict[int, int] = defaultdict(int)
        writes: dict[int, int] = defaultdict(int)
        for frame in flow.frames:
            for record in frame.records:
                self._observe(record, reads, writes)
        forward: dict[int, list[int]] = {}
        backward: dict[int, list[int]] = defaultdict(list)
        for source, edges in enumerate(flow.graph.edges):
            targets = [target for target, kind, _ in edges if kind in (COPY, SLICE)]
            if targets:
                forward[source] = targets
                for target in targets:
                    backward[target].append(source)
        self._fitting: dict[int, int] = {}
        self._widths = {
            node: type_width(register.type) or 64 for frame in flow.frames for register, node in frame.nodes.items()
        }
        self._reads = poured(reads, backward, self._holdable)
        self._writes = poured(writes, forward, self._holdable)
        for widened in (self._halves, self._extended):  # the second goes by what the first has told
            wider = widened(flow)
            if wider:
                self._reads = poured(self._reads | wider, backward, self._holdable)

    def _halves(self, flow: Flow) -> dict[int, int]:
        """What is read as f32 with nothing but its upper half: a bf16 that was widened by moving its bits."""
        halves = (each for each in _records(flow) if len(each.values) == 1 and _is_upper_half(each.op))
        return self._told("f32", "bf16", halves)

    def _extended(self, flow: Flow) -> dict[int, int]:
        """What is filled up with zeros before its upper half is made of it."""
        widening = (r for r in _records(flow) if r.op.opcode == "cvt" and r.shape.types[:2] == ("u32", "u16"))
        return self._told("bf16", "bf16", widening)

    def _told(self, read: str, told: str, records: Iterable[Record]) -> dict[int, int]:
        """What goes into ``records`` is ``told`` where the results are ``read`` as something."""
        found: dict[int, int] = {}
        for record in records:
            if any(self._reads.get(target, 0) & self._bit(read) for target in record.targets):
                found |= {node: self._reads.get(node, 0) | self._bit(told) for _, node in record.values}
        return found

    def _observe(self, record: Record, reads: dict[int, int], writes: dict[int, int]) -> None:
        for _, node in record.bases:
            reads[node] |= 1
        if record.op.opcode in ("ld", "ldu", "st", "mov") or _asks_for_sign(record.op):
            return
        bits = self._bits.get(id(record.shape))
        if bits is None:
            bits = self._bits[id(record.shape)] = self._telling(record)
        for place, node in record.values:
            if place < len(bits) and bits[place]:
                reads[node] |= bits[place]
        if bits and bits[0]:
            for node in record.targets:
                reads[node] |= bits[0]
                writes[node] |= bits[0]

    def _telling(self, record: Record) -> list[int]:
        """For each operand of an instruction the bit of its type, 0 where it says nothing of what the value is."""
        kinds = [kind or "" for kind in record.shape.types]
        counts = record.op.opcode in _COUNTS and not _orders(record.op)
        if record.op.opcode == "cvt":  # between integers it only moves bits
            counts = any(kind in FLOATS for kind in kinds)
        return [self._bit(kind) if kind in FLOATS or (counts and kind not in ("", "pred")) else 0 for kind in kinds]

    def _bit(self, kind: str) -> int:
        if kind not in self._names:
            self._names.append(kind)
        return 1 << self._names.index(kind)

    def of(self, record: Record, declared: str) -> str:
        """The element type of a memory access: that of the registers moved, else as the access says."""
        width = type_width(declared) or 8
        if declared in FLOATS:
            return FLOATS[declared]
        if not record.values and not record.targets:
            return f"b{width}"  # a constant: compilers store that of a float as an integer
        kinds = self._moved(record)
        if _orders(record.op):
            declared = f"b{width}"
        elif record.op.opcode in ("atom", "red") and record.op.mods.get("op") in ("add", "inc", "dec"):
            return f"s{width}"  # by no type of floats: integers are counted
        floats = {FLOATS[kind] for kind in kinds if kind in FLOATS}
        fitting = sorted(kind for kind in floats if _FLOAT_BITS[kind] <= width)
        if fitting:
            return max(fitting, key=lambda kind: _FLOAT_BITS[kind])  # a narrow one is packed, if none has its width
        if "ptr" in kinds and width == 64:
            return "ptr"
        if any(kind[0] == "s" for kind in kinds) or declared[0] == "s":
            return f"s{width}"
        return f"u{width}" if declared[0] == "u" or any(kind[0] == "u" for kind in kinds) else f"b{width}"

    def _moved(self, record: Record) -> set[str]:
        """What is known of the registers that a memory access moves."""
        bits = 0
        for _, node in record.values:
            bits |= self._writes.get(node, 0)
        for node in record.targets:
            bits |= self._reads.get(node, 0)
        return {name for k, name in enumerate(self._names) if bits >> k & 1}

    def _holdable(self, node: int) -> int:
        """The types that fit a register: half of a packed word holds no f32, though it becomes part of one."""
        width = self._widths.get(node, 64)
        if width not in self._fitting:
            sizes = [_FLOAT_BITS.get(FLOATS.get(name, ""), 0) for name in self._names]
            self._fitting[width] = sum(1 << k for k, size in enumerate(sizes) if size <= width)
        return self._fitting[width]


def _asks_for_sign(op: Op) -> bool:
    """Whether integers are compared with 0 or -1 alone, as the sign of a float is asked for."""
    return op.opcode == "setp" and any(operand in (Int(0), Int(-1)) for operand in op.operands)


def _orders(op: Op) -> bool:
    """Whether it is an atomic minimum or maximum of integers: the order of floats of one sign is that of their bits."""
    return op.opcode in ("atom", "red") and op.mods.get("op") in ("min", "max") and op.mods["type"] not in FLOATS


def _records(flow: Flow) -> Iterator[Record]:
    return (record for frame in flow.frames for record in frame.records)


def _is_upper_half(op: Op) -> bool:
    """Whether an instruction makes a word whose lower half is zero, the upper one as it comes."""
    last = op.operands[-1]
    if op.opcode == "mov":
        return isinstance(last, Vec) and len(last.items) == 2 and last.items[0] == Int(0)
    if not isinstance(last, Int) or op.mods.get("type") != "b32":
        return False
    return last.value % 2**32 == 0xFFFF0000 if op.opcode == "and" else op.opcode == "shl" and last.value == 16
