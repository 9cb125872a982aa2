"""A walk: the slice of an entry run for many threads at once, to see where each reads and writes.

Threads go in lockstep as far as they go the same way; those at the earliest block go first. Where the way of some
hangs on what is not known (data, other lanes), they go on where all ways meet, and what lies between may have happened
or not.

Of an instruction the lanes are in two masks: those that run it, and those that perhaps do, its guard not being known.
May import the rest of ``footprint``, and ``ptx``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from teenycli.footprint.arena import HALF, LOCAL, PARAM, SHIFT, WINDOWS
from teenycli.footprint.bounds import Comparison
from teenycli.footprint.cells import Cells
from teenycli.footprint.effects import effect_of
from teenycli.footprint.integers import typed
from teenycli.footprint.lanes import UNSIGNED, Array, Value, constant, has_any, resize, unknown
from teenycli.footprint.meanings import packed, predicates, result, unpacked
from teenycli.footprint.slices import Slice
from teenycli.footprint.steps import Source, Step
from teenycli.footprint.threads import Frame, Threads
from teenycli.footprint.trace import Access, Bound, Trace
from teenycli.ptx.code import Code, Mem, Op, Operand, Reg, Symbol, Table, Vec
from teenycli.ptx.model import Function, Int, Space, Variable, type_width

#: How deep calls are followed.
_DEPTH = 8
#: What a step costs beside its lanes, in operations on lanes.
_OVERHEAD = 1000


class SpentError(Exception):
    """The work that a walk may take is done."""


class Budget(Struct):
    """Operations on lanes that are left."""

    left: int

    def take(self, amount: int) -> None:
        """Raises SpentError when it is used up."""
        self.left -= amount
        if self.left < 0:
            raise SpentError


class Guide(Struct, frozen=True):
    """What a walk asks about the kernel: the slice of a function, where it has a body; the parameters (bits) that the
    addresses of an instruction are made of, and the buffers that these may lie in; its comparisons of indices."""

    slice_of: Callable[[Function], Slice | None]
    origins: Callable[[Code, Op], int]
    buffers_of: Callable[[int], list[str]]
    comparisons: Mapping[int, Comparison]


class Walk:
    """One walk of some threads, noted in ``trace``."""

    def __init__(self, trace: Trace, threads: Threads, guide: Guide, budget: Budget) -> None:
        self.trace, self.threads, self.guide, self.budget = trace, threads, guide, budget
        #: Masks that are known by being these very objects.
        self.nobody, self.everybody = np.zeros(threads.count, np.bool_), np.ones(threads.count, np.bool_)
        self.gone = self.nobody
        #: Lanes that may have ended within a call: nothing that they touch from then on is sure.
        self.doubtful = self.nobody
        #: The mask that was last asked whether it has all that are left, and the answer.
        self._asked: tuple[Array, bool] = self.nobody, False
        #: By access what it was last made with: the register in its brackets, and the masks.
        self._made: dict[int, tuple[Value, Array, Array, Array]] = {}
        self.locals = Cells()

    def run(self, entry: Slice) -> None:
        """Walk all threads to their ends. Raises SpentError."""
        self._function(Frame(entry), self.everybody)

    # --- ways ---

    def _function(self, frame: Frame, lanes: Array) -> None:
        graph = frame.slice.graph
        waiting: dict[int, Array] = {0: lanes}
        while waiting:
            at = min(waiting)
            lanes = self._left(waiting.pop(at))
            if at == graph.end or lanes is self.nobody:
                continue
            steps = frame.slice.steps[at]
            self.budget.take((len(steps) + 2) * (self.threads.count + _OVERHEAD))
            for step in steps:
                self._step(frame, step, lanes)
                if step.op.call is not None:
                    lanes = self._left(lanes)
            for target, some in self._ways(frame, at, lanes):
                waiting[target] = waiting[target] | some if target in waiting else some

    def _left(self, lanes: Array) -> Array:
        """Those of ``lanes`` that have not ended."""
        left = lanes if self.gone is self.nobody else lanes & ~self.gone
        count = np.count_nonzero(left)
        return self.nobody if not count else self.everybody if count == len(left) else left

    def _ways(self, frame: Frame, at: int, lanes: Array) -> Iterator[tuple[int, Array]]:
        """Where the lanes of a block go on."""
        graph = frame.slice.graph
        block = graph.blocks[at]
        if block.branch is None:
            yield block.targets[0], lanes
            return
        taken, perhaps = self._guarded(frame, block.branch, lanes)
        if self._any(perhaps):
            yield self._pass_over(frame, at, perhaps), perhaps
        rest = self.nobody if taken is lanes else lanes & ~taken & ~perhaps
        if self._any(rest):
            yield block.targets[-1], rest
        if not self._any(taken) or block.branch.opcode == "ret":
            return
        if block.branch.opcode == "bra":
            yield block.targets[0], taken
        elif block.branch.opcode == "brx":
            yield from self._switch(frame, at, block.branch, taken)
        else:
            self.gone = self.gone | taken
            self._asked = self.nobody, False

    def _switch(self, frame: Frame, at: int, branch: Op, lanes: Array) -> Iterator[tuple[int, Array]]:
        index, table = self.threads.read(frame, branch.operands[0], 32), branch.operands[1]
        assert isinstance(table, Table)
        perhaps = lanes & ~index.known
        if perhaps.any():
            yield self._pass_over(frame, at, perhaps), perhaps
        for number, label in enumerate(table.labels):
            some = lanes & index.known & (index.bits == number)
            if some.any():
                yield frame.slice.graph.block_at(label), some

    def _guarded(self, frame: Frame, op: Op, lanes: Array) -> tuple[Array, Array]:
        """Of ``lanes`` those that run ``op``, and those that perhaps do."""
        if op.guard is None:
            return lanes, self.nobody
        guard = self.threads.read(frame, op.guard, 1)
        if guard.certain and len(guard.bits) == 1:
            return lanes if guard.bits[0] else self.nobody, self.nobody
        if guard.certain:
            return lanes & guard.bits, self.nobody
        return lanes & guard.known & guard.bits, lanes & ~guard.known

    def _any(self, lanes: Array) -> bool:
        """Whether there are any ``lanes``, at no cost where it is ``nobody``."""
        return lanes is not self.nobody and has_any(lanes)

    def _are_all(self, lanes: Array) -> bool:
        """Whether no lane is left besides ``lanes``."""
        if lanes is self.everybody:
            return True
        if self._asked[0] is not lanes:
            self._asked = lanes, bool((lanes | self.gone).all())
        return self._asked[1]

    def _pass_over(self, frame: Frame, at: int, lanes: Array) -> int:
        """``lanes`` go some way from block ``at`` on: what is written there is not known any more, nor what is touched.
        Returns the block where all ways meet."""
        graph = frame.slice.graph
        meeting = graph.meeting(at)
        between = graph.between(at, meeting)
        if frame.depth and any(graph.ends_thread(k) for k in (at, *between)):
            self.doubtful = self.doubtful | lanes
        passed = [step for k in between for step in frame.slice.steps[k]]
        self.budget.take(len(passed) * (self.threads.count + _OVERHEAD))
        for step in passed:
            if step.op.call is not None:
                self._lose(frame, step, lanes)
                continue
            self._forget(frame, step, lanes)
            if step.in_memory:
                self._blur(frame, step.op, lanes)
                if step.op.opcode == "st" and step.space in ("", "local"):
                    self.locals.spoil(lanes)
                elif step.op.opcode == "st" and step.space == "param":
                    frame.cells.spoil(lanes)
        return meeting

    def _forget(self, frame: Frame, step: Step, lanes: Array) -> None:
        """The results of ``step`` are not known in ``lanes``."""
        for register in step.written:
            old = frame.registers.get(register)
            width = type_width(register.type) or 64
            frame.registers[register] = unknown(width) if old is None else old.only(~lanes)

    def _blur(self, frame: Frame, op: Op, lanes: Array) -> None:
        """``op`` touches memory somewhere in ``lanes``."""
        reads, writes = effect_of(op)
        if reads or writes:
            self.trace.blur(self.guide.buffers_of(self._doubt(frame, op)), reads, writes)
            self.trace.stir(self.threads.where, lanes)

    def _doubt(self, frame: Frame, op: Op) -> int:
        """Note that ``op`` may access memory, or not; returns the parameters that its addresses are made of."""
        origins = self.guide.origins(frame.slice.code, op)
        self.trace.doubtful |= origins
        return origins

    # --- steps ---

    def _step(self, frame: Frame, step: Step, lanes: Array) -> None:
        op, perhaps = step.op, self.nobody
        if op.guard is not None:
            lanes, perhaps = self._guarded(frame, op, lanes)
            if not (self._any(lanes) or self._any(perhaps)):
                return
        if op.call is not None:
            self._call(frame, step, lanes, perhaps)
        elif step.in_memory:
            self._memory(frame, step, lanes, perhaps)
        else:
            for target, value in self._results(frame, step, lanes, perhaps):
                self._write(frame, target, value, lanes, perhaps, step.signed)

    def _results(
        self, frame: Frame, step: Step, lanes: Array, perhaps: Array
    ) -> Iterator[tuple[Operand | None, Value]]:
        """What an instruction without memory writes, and where."""
        op, read = step.op, self.threads.read
        if op.opcode == "mov" and isinstance(step.target, Vec):
            part = step.sources[0].width // len(step.target.items)
            whole = read(frame, step.sources[0].operand, step.sources[0].width)
            yield from ((item, unpacked(whole, k, part)) for k, item in enumerate(step.target.items))
            return
        if op.opcode == "mov" and isinstance(step.sources[0].operand, Vec):
            width, items = type_width(op.mods["type"]) or 64, step.sources[0].operand.items
            parts = [read(frame, item, width // len(items)) for item in items]
            yield step.target, packed(parts, width // len(items), width) if width <= 64 else unknown(64)
            return
        values = [self._value(frame, source) for source in step.sources]
        if op.opcode == "setp":
            if id(op) in self.guide.comparisons:
                self._compare(op, values, lanes, perhaps)
            yield from zip((step.target, step.second), predicates(step, values), strict=True)
            return
        yield step.target, result(step, values)
        if step.second is not None:
            yield step.second, unknown(1)

    def _compare(self, op: Op, values: Sequence[Value], lanes: Array, perhaps: Array) -> None:
        """Note how near to a number that is passed the indices of ``lanes`` come."""
        bounds, comparison = self.trace.bounds, self.guide.comparisons[id(op)]
        units = comparison.units
        known = bounds.get(units)
        index, limit = values[comparison.index], values[1 - comparison.index]
        if len(index.bits) == 1 or (known is None and units in bounds) or (known is not None and known.nearest >= 0):
            return
        if not (index.certain and limit.certain and len(limit.bits) == 1) or self._any(perhaps):
            bounds[units] = None
            return
        most, last = (int(typed(bits, op.mods).max()) for bits in (index.bits[lanes], limit.bits))
        last -= comparison.strict
        if known is None or most - last > known.nearest:
            bounds[units] = Bound(op, units, self.threads.where.launch, last, most - last)

    def _value(self, frame: Frame, source: Source) -> Value:
        held = None if source.register is None else frame.registers.get(source.register)
        if held is not None and held.bits.dtype is UNSIGNED[source.width]:
            return held
        return self.threads.read(frame, source.operand, source.width)

    def _write(
        self, frame: Frame, target: Operand | None, value: Value, lanes: Array, perhaps: Array, signed: bool = False
    ) -> None:
        if not isinstance(target, Reg):
            return
        register = target.register
        width = type_width(register.type) or 64
        if register.vector > 1 or width > 64:
            return  # never read either
        if target.part is not None or value.lost:  # of a part, some bytes of it, in a video instruction
            value = unknown(width)
        elif value.bits.dtype is not UNSIGNED[width]:
            value = Value(resize(value.bits, width, signed), value.known)
        old = frame.registers.get(register)
        if old is not None and not self._are_all(lanes):
            value = value.where(lanes, old)
        frame.registers[register] = value.only(~perhaps) if self._any(perhaps) else value

    # --- memory ---

    def _memory(self, frame: Frame, step: Step, lanes: Array, perhaps: Array) -> None:
        op = step.op
        if op.opcode in ("ld", "ldu"):
            self._load(frame, step, lanes, perhaps)
        elif op.opcode == "st" and "type" in op.mods and self._keep(frame, step, lanes, perhaps):
            return
        elif step.written:
            self._forget(frame, step, lanes | perhaps)
        if step.access is None:
            self._blur(frame, op, lanes | perhaps)
            return
        if op.opcode == "cp":
            lanes, perhaps = self._copying(frame, op, lanes, perhaps)
        self._touch(frame, *step.access, lanes, perhaps)

    def _touch(self, frame: Frame, access: Access, mem: Mem, lanes: Array, perhaps: Array) -> None:
        if self._is_again(frame, access, mem, lanes, perhaps):
            return
        address = self.threads.address(frame, mem)
        if access.is_shared:
            address = Value((address.bits & np.uint64(2**32 - 1)) + np.uint64(WINDOWS["shared"]), address.known)
        lost = self.nobody if address.certain else (lanes | perhaps) & ~address.known
        if self._any(lost):
            self._blur(frame, access.op, lost)
        for some, sure in self._certainty(lanes, perhaps):
            chosen = some if address.certain else some & address.known
            count = int(np.count_nonzero(chosen))
            if count:
                if not sure:
                    self._doubt(frame, access.op)
                self.budget.take(count * 4)
                self.trace.touch(self.threads.arena, access, self.threads.where, chosen, address.bits, sure)

    def _is_again(self, frame: Frame, access: Access, mem: Mem, lanes: Array, perhaps: Array) -> bool:
        """Whether it is the access that was made before, as one in a loop may be, by an address from outside of it."""
        if not isinstance(mem.base, Reg) or mem.base.register not in frame.registers:
            return False
        now, before = (frame.registers[mem.base.register], lanes, perhaps, self.doubtful), self._made.get(id(access))
        self._made[id(access)] = now
        return before is not None and all(map(operator.is_, now, before))

    def _certainty(self, lanes: Array, perhaps: Array) -> Iterator[tuple[Array, bool]]:
        """The lanes that surely do something, and those that perhaps do."""
        doubtful = self.doubtful is not self.nobody
        yield (lanes & ~self.doubtful if doubtful else lanes), True
        if doubtful or perhaps is not self.nobody:
            yield (perhaps | lanes & self.doubtful if doubtful else perhaps), False

    def _copying(self, frame: Frame, op: Op, lanes: Array, perhaps: Array) -> tuple[Array, Array]:
        """Of the lanes of a ``cp.async`` those that copy all of it, and those that may copy some: its last operand is
        how much, or whether nothing is read (PTX ISA, "cp.async")."""
        size = op.operands[3] if len(op.operands) > 3 + ("cachehint" in op.mods) else None
        if size is None:
            return lanes, perhaps
        ignored = isinstance(size, Reg) and size.register.type == "pred"
        copied = self.threads.read(frame, size, 1 if ignored else 32)
        whole = op.operands[2].value if isinstance(op.operands[2], Int) else 0
        everything, some = (~copied.bits, ~copied.bits) if ignored else (copied.bits == whole, copied.bits > 0)
        sure = lanes & copied.known & everything
        return sure, (perhaps | lanes & ~sure) & (~copied.known | some)

    def _load(self, frame: Frame, step: Step, lanes: Array, perhaps: Array) -> None:
        op = step.op
        target, mem = op.operands[0], op.operands[1]
        assert isinstance(mem, Mem)
        size = (type_width(op.mods["type"]) or 64) // 8
        for k, item in enumerate(target.items if isinstance(target, Vec) else (target,)):
            value = self._held(frame, step, mem, k * size, size, lanes)
            self._write(frame, item, unknown(64) if value is None else value, lanes, perhaps, op.mods["type"][0] == "s")

    def _held(self, frame: Frame, step: Step, mem: Mem, skip: int, size: int, lanes: Array) -> Value | None:
        """What a load finds where that can be known: parameters, results of calls, the thread's own memory, buffers
        that nobody changes."""
        if step.space in ("shared", "const"):
            return None
        if step.space == "global":
            return self._content(frame, mem, skip, size, lanes)
        if isinstance(mem.base, Variable) and self._is_between_calls(mem.base):
            return frame.cells.load(id(mem.base), mem.offset + skip, size)
        window, offset = self._window(frame, step, mem, lanes)
        if window == PARAM and offset + skip >= 0:
            raw = self.threads.params[offset + skip : offset + skip + size]
            return constant(int.from_bytes(raw, "little"), 8 * size) if len(raw) == size else None
        if window == LOCAL:
            return self.locals.load(0, offset + skip, size)
        return self._content(frame, mem, skip, size, lanes) if step.space == "" else None

    def _content(self, frame: Frame, mem: Mem, skip: int, size: int, lanes: Array) -> Value | None:
        """What a load finds in a buffer whose content is known, if all lanes mean the same one."""
        if not self.trace.contents or size > 8:
            return None
        address = self.threads.address(frame, mem)
        told = lanes & address.known
        bits = address.bits + np.uint64(skip)
        places = bits + np.uint64(HALF) >> np.uint64(SHIFT)
        place = int(places[int(told.argmax()) if len(places) > 1 else 0]) if told.any() else 0
        name = self.threads.arena.buffer_at(place)
        content = None if name is None else self.trace.contents.get(name)
        if content is None or len(content) < size:
            return None
        offsets = (bits - np.uint64(place << SHIFT)).view(np.int64)
        inside = (offsets >= 0) & (offsets + size <= len(content)) & (offsets % size == 0)
        elements = content[: len(content) // size * size].view(UNSIGNED[8 * size])
        found = elements[np.where(inside, offsets // size, 0)]
        self.trace.guided = True
        return Value(found, address.known & (places == place) & inside)

    def _is_between_calls(self, variable: Variable) -> bool:
        """Whether it is a ``.param`` variable, or a function's parameter, and no parameter of the entry."""
        return variable.space is Space.PARAM and id(variable) not in self.threads.offsets

    def _window(self, frame: Frame, step: Step, mem: Mem, lanes: Array) -> tuple[int | None, int]:
        """The window that all ``lanes`` use, and their one offset in it; None where they differ or it is not known."""
        address = self.threads.address(frame, mem)
        chosen = address.bits[lanes] if len(address.bits) > 1 else address.bits
        if not (address.certain or (address.known | ~lanes).all()):
            return None, 0
        if len(address.bits) > 1 and (not len(chosen) or (chosen != chosen[0]).any()):
            return None, 0
        first = int(chosen[0])
        if step.space in ("local", "param"):
            return (LOCAL if step.space == "local" else PARAM), first
        place = first + HALF >> SHIFT
        return place, first - (place << SHIFT)

    def _keep(self, frame: Frame, step: Step, lanes: Array, perhaps: Array) -> bool:
        """Store what may be loaded again; whether that is where ``step`` stores."""
        op = step.op
        mem, source = op.operands[0], op.operands[1]
        assert isinstance(mem, Mem)
        size = (type_width(op.mods["type"]) or 64) // 8
        if isinstance(mem.base, Variable) and self._is_between_calls(mem.base):
            cells, variable, offset = frame.cells, id(mem.base), mem.offset
        else:
            if step.space not in ("", "local"):
                return False
            window, offset = self._window(frame, step, mem, lanes | perhaps)
            if window != LOCAL:
                if self._may_be_local(frame, step, mem, lanes | perhaps):
                    self.locals.spoil(lanes | perhaps)
                return step.space == "local"
            cells, variable = self.locals, 0
        for k, item in enumerate(source.items if isinstance(source, Vec) else (source,)):
            value = self.threads.read(frame, item, 8 * size)
            cells.store(variable, offset + k * size, size, value, lanes, perhaps)
        return True

    def _may_be_local(self, frame: Frame, step: Step, mem: Mem, lanes: Array) -> bool:
        address = self.threads.address(frame, mem)
        places = (address.bits + np.uint64(HALF)) >> np.uint64(SHIFT)
        return step.space == "local" or bool((lanes & (~address.known | (places == LOCAL))).any())

    # --- calls ---

    def _call(self, frame: Frame, step: Step, lanes: Array, perhaps: Array) -> None:
        call = step.op.call
        assert call is not None
        callee = self.guide.slice_of(call.target) if isinstance(call.target, Function) else None
        if callee is None or frame.depth >= _DEPTH or perhaps.any():
            self._lose(frame, step, lanes | perhaps)
            return
        inner, function = Frame(callee, frame.depth + 1), callee.code.function
        for formal, argument in zip(function.params, call.args, strict=False):
            self._hand_over(frame, argument, inner, formal)
        self._function(inner, lanes)
        for formal, operand in zip(function.returns, call.returns, strict=False):
            self._hand_back(inner, formal, frame, operand, lanes)

    def _lose(self, frame: Frame, step: Step, lanes: Array) -> None:
        """A call that is not followed may touch everything."""
        self.trace.blur(list(self.trace.buffers), True, True)
        self.trace.stir(self.threads.where, lanes)
        self._forget(frame, step, lanes)
        frame.cells, self.locals = Cells(), Cells()

    def _hand_over(self, frame: Frame, argument: Operand, inner: Frame, formal: Variable) -> None:
        if isinstance(argument, Symbol) and isinstance(argument.target, Variable):
            inner.cells.copy(frame.cells, id(argument.target), id(formal))
            return
        value = self.threads.read(frame, argument, formal.size * 8)
        if formal.space is not Space.REG:
            inner.cells.store(id(formal), 0, formal.size, value, self.everybody, self.nobody)
        for register in (r for r in inner.slice.code.registers if r.name == formal.name):
            inner.registers[register] = value

    def _hand_back(self, inner: Frame, formal: Variable, frame: Frame, operand: Operand, lanes: Array) -> None:
        if isinstance(operand, Symbol) and isinstance(operand.target, Variable):
            frame.cells.pour(inner.cells, id(formal), id(operand.target), lanes)
            return
        if formal.space is Space.REG:
            held = next((value for register, value in inner.registers.items() if register.name == formal.name), None)
        else:
            held = inner.cells.load(id(formal), 0, formal.size)
        self._write(frame, operand, unknown(64) if held is None else held, lanes, self.nobody)
