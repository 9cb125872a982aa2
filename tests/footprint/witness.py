"""What a kernel does to each byte of its buffers when it runs: PTX that is put in before every load, store and atomic.

Each buffer has two twins of its size, one for reads and one for writes, whose ids lie a fixed step behind its own (an
address of the CPU device is an id and an offset). Before an instruction touches memory, the same threads put ones into
the same bytes of a twin. What reads or writes otherwise (tensor copies, bulk copies, fragments of matrices) is named in
``unseen``; of the buffers that it may reach the table of addresses tells, by what faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cpu import CpuDevice
from teenycli.devices.cpu.layout import FIRST_BUFFER, ID_SHIFT
from teenycli.devices.cpu.registry import supports_mods
from teenycli.errors import TeenyError
from teenycli.launch.plan import Buffer, Plan
from teenycli.ptx import code_of, outline
from teenycli.ptx.code import Mem, Op, Reg
from teenycli.ptx.model import TYPE_SIZES, Function, Int, Module, Source
from teenycli.ptx.search import reached

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
#: What has an address in brackets and moves nothing.
_STILL = ("prefetch", "prefetchu", "discard", "applypriority", "mbarrier", "createpolicy")


@dataclass(frozen=True)
class Witnessed:
    """A kernel that keeps a log, and the instructions of it that are not in the log."""

    module: Module
    unseen: tuple[Op, ...]


@dataclass(frozen=True)
class Log:
    """By buffer a bool an element of its memory: whether any byte of it was read, and written."""

    read: Arrays
    written: Arrays
    after: Arrays


# --- the text --------------------------------------------------------------------------------------------------------


def witnessed(module: Module, entry: Function, buffers: int) -> Witnessed:
    """``entry`` with a log of what it does to ``buffers``, which must be the first that the device has."""
    text = module.source.text
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    marks: dict[int, str | None] = {}
    unseen = []
    for op in (op for function in reached(module, entry) for op in code_of(module, function).ops):
        mark = _mark(op, buffers)
        at = starts[op.at.line - 1] + op.at.column - 1
        at = text.rindex("@", 0, at) if op.guard is not None else at
        if mark is None and _may_touch(op):
            unseen.append(op)
        elif mark or (mark is None and op.call is None and not supports_mods(op.opcode, dict(op.mods))):
            marks[at] = mark
    for at in sorted(marks, reverse=True):
        mark, rest = marks[at], text[at:]
        text = text[:at] + (rest.partition(";")[2] if mark is None else mark + rest)
    return Witnessed(outline(Source(module.source.name, text)), tuple(unseen))


def _may_touch(op: Op) -> bool:
    """Whether an instruction that leaves no mark may touch a buffer."""
    space = op.mods.get("space", "").partition("::")[0]
    if op.opcode == "cp":
        return any(isinstance(each, Mem) for each in op.operands) and "mbarrier" not in op.mods
    has_address = any(isinstance(each, Mem) for each in op.operands)
    return has_address and space in ("", "global") and op.opcode not in _STILL


def _mark(op: Op, buffers: int) -> str | None:
    """PTX that marks what ``op`` is about to touch; empty where that is no buffer, None where it cannot be told."""
    copies = op.opcode == "cp" and "cop" in op.mods
    if not copies and (op.opcode not in ("ld", "ldu", "st", "atom", "red") or "type" not in op.mods):
        return None
    if not copies and op.mods.get("space", "").partition("::")[0] not in ("", "global"):
        return ""
    mem = op.operands[1] if copies else next(each for each in op.operands if isinstance(each, Mem))
    if not isinstance(mem, Mem) or not isinstance(mem.base, Reg) or mem.base.register.type not in ("b64", "u64", "s64"):
        return ""
    if copies:
        assert isinstance(op.operands[2], Int)
        size = op.operands[2].value
    else:
        size = TYPE_SIZES[op.mods["type"]] * _VECTORS.get(op.mods.get("vec", ""), 1)
    twins = {"ld": (1,), "ldu": (1,), "cp": (1,), "st": (2,)}.get(op.opcode, (1, 2))
    lines = [
        ".reg .b64 w_at, w_id; .reg .pred w_is, w_or;",
        f"add.s64 w_at, {mem.base.register.name}, {mem.offset}; shr.u64 w_id, w_at, {ID_SHIFT};",
        f"sub.u64 w_id, w_id, {FIRST_BUFFER}; setp.lt.u64 w_is, w_id, {buffers};",
    ]
    if op.guard is not None:
        name = op.guard.register.name
        lines += [f"not.pred w_or, {name}; and.pred w_is, w_is, w_or;"] if op.guard.negated else [
            f"and.pred w_is, w_is, {name};"]  # fmt: skip
    for twin in twins:
        lines.append(f"add.s64 w_id, w_at, {twin * buffers << ID_SHIFT};")
        lines += _copied(op, size) if copies and len(op.operands) > 3 and "cachehint" not in op.mods else _ones(size)
    return "{ " + " ".join(lines) + " }\n"


def _ones(size: int) -> Iterator[str]:
    """Ones in ``size`` bytes, in pieces of eight at most, so that no alignment is asked for that the access lacks."""
    piece = min(size, 8)
    ones = int.from_bytes(b"\1" * piece, "little")
    for at in range(0, size, piece):
        yield f"@w_is st.global.u{8 * piece} [w_id+{at}], {ones};"


def _copied(op: Op, size: int) -> Iterator[str]:
    """Ones in as many bytes as a ``cp.async`` reads: its last operand says how many, or that it reads none."""
    last = op.operands[3]
    assert isinstance(last, Reg | Int)
    name = last.register.name if isinstance(last, Reg) else str(last.value)
    if isinstance(last, Reg) and last.register.type == "pred":
        yield f"not.pred w_or, {name};" if not last.negated else f"and.pred w_or, {name}, {name};"
        yield "and.pred w_is, w_is, w_or;"
        yield from _ones(size)
        return
    for at in range(size):
        yield f"setp.gt.u32 w_or, {name}, {at}; and.pred w_or, w_or, w_is; @w_or st.global.u8 [w_id+{at}], 1;"


# --- the run ---------------------------------------------------------------------------------------------------------


def ran(plan: Plan, kernel: Witnessed, arrays: Arrays, timeout: float = 60) -> Log:
    """Run all launches of a plan on a CPU device of their own. Raises what the device raises."""
    with CpuDevice(threads=1) as device:
        held = {b.name: device.upload(b.name, memory_of(b, arrays[b.name]), b.align) for b in plan.buffers}
        twins = [
            [device.upload(f"{b.name} ({which})", np.zeros(b.nbytes, np.uint8), b.align) for b in plan.buffers]
            for which in ("read", "written")
        ]
        assert all(b.address >> ID_SHIFT == FIRST_BUFFER + k for k, b in enumerate(held.values()))
        for launch in plan.launches:
            device.prepare(device.load(kernel.module, launch.entry), launch, dict(held))(timeout)
        read, written = ({b.name: _elements(b, device.download(t)) for b, t in zip(plan.buffers, each, strict=True)}
                         for each in twins)  # fmt: skip
        return Log(read, written, {name: device.download(each) for name, each in held.items()})


def refuses(plan: Plan, module: Module, arrays: Arrays, name: str, column: int) -> bool:
    """Whether a run faults when buffer ``name`` cannot be read (column 1 of the address table) or written (2)."""
    with CpuDevice(threads=1) as device:
        held: dict[str, DeviceBuffer] = {
            b.name: device.upload(b.name, memory_of(b, arrays[b.name]), b.align) for b in plan.buffers
        }
        device._space.rows[held[name].address >> ID_SHIFT][column] = 0
        try:
            for launch in plan.launches:
                device.prepare(device.load(module, launch.entry), launch, held)(60)
        except TeenyError as error:
            if error.finding.id not in ("out-of-bounds", "read-only"):
                raise
            return True
        return False


def memory_of(buffer: Buffer, array: Array) -> npt.NDArray[np.uint8]:
    """The bytes of a buffer's memory, zeros between rows."""
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    count, elems, stride = buffer.rows
    if not buffer.is_padded:
        return raw
    memory = np.zeros((count, stride * buffer.dtype.size), np.uint8)
    memory[:, : elems * buffer.dtype.size] = raw.reshape(count, -1)
    return memory.reshape(-1)


def _elements(buffer: Buffer, marks: Array) -> Array:
    each = marks.reshape(-1, buffer.dtype.size)
    return np.asarray(each.any(axis=1))
