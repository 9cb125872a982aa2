"""Control flow by mask: the blocks of a kernel, its branches, the scheduler of a warp's lanes, waiting and leaving.

Each block of the program becomes one or more LLVM blocks. While a block runs, ``mask`` holds its active lanes; every
other lane that lives is parked: ``pcs`` holds the index of the block it waits for, ``low`` the least of them. Lanes
run lowest block first (see ``flow``), so a jump goes through the scheduler only when a parked lane may wait at or
before its target. A warp that has to wait stores its lanes' pcs in its frame, and returns.

May import ``ops``, ``lower`` and what they may import.
"""

from __future__ import annotations

from ctypes import sizeof

from teenycli.devices.cpu import native
from teenycli.devices.cpu.layout import (
    DONE,
    FAULTED,
    LANES_DIFFER,
    MEETING_PC,
    NO_PC,
    STALLED,
    SUSPENDED,
    WAITING_PC,
    FaultKind,
    FrameHead,
    Launch,
    WarpState,
    offset,
)
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.access import plan_block
from teenycli.devices.cpu.ops.calls import hand_over, transfer
from teenycli.devices.cpu.ops.sync import arrive, population
from teenycli.devices.cpu.ops.warp import check_members
from teenycli.devices.cpu.program import Block, Handover, Step, Transfer
from teenycli.devices.cpu.registry import find
from teenycli.devices.cpu.value import Value, integer

#: Up to so many lines of LLVM text the warp function is copied into the driver's loop.
INLINE_LINES = 220

#: Rounds of a loop that may wait for others before it gives way.
SPIN_ROUNDS = 32


class Control:
    """Writes the warp function of one kernel."""

    def __init__(self, x: Lowering) -> None:
        self.x = x
        self.w = x.w
        self.lanes = x.w.vector("i32")
        self.mask_type = x.w.vector("i1")
        self.parking: set[int] = set()
        self.stalls = any(block.looks for block in x.flow.blocks)

    def function(self) -> str:
        """The LLVM text of the warp function."""
        w = self.w
        for block in self.x.flow.blocks:
            self._block(block)
        for index in sorted(self.parking):
            w.label(f"park{index}")
            self._park(w.assign(f"load {self.mask_type}, ptr %maskp"), index)
            w.jump("sched")
        if self.x.scheduled:
            self._scheduler()
        if any(block.spins for block in self.x.flow.blocks):
            self._others()
        w.label("finish")
        self._set_state(WarpState.DONE)
        w.line(f"ret i32 {DONE}")
        w.label("dead")
        w.line(f"ret i32 {FAULTED}")
        body, w.lines = w.lines, []
        entry = self._entry()
        kind = "alwaysinline" if len(body) < INLINE_LINES and not self.x.suspends else "noinline"
        return "\n".join(
            [f"define internal i32 @warp(ptr %ctx, ptr %launch, i32 %w, ptr %frame) {kind} #0 {{", *entry, *body, "}"]
        )

    # --- entry and exit ----------------------------------------------------------------------------------------

    def _entry(self) -> list[str]:
        """The entry block: slots, the mask of a fresh warp, or the pcs of one that waited."""
        w, x = self.w, self.x
        threads = x.field("launch", "threads", "i32")
        left = w.assign(f"sub i32 {threads}, %t0")
        inside = w.assign(f"icmp sgt {self.lanes} {w.splat('i32', left, w.width)}, {w.iota()}")
        w.line(f"store {self.mask_type} {inside}, ptr %maskp")
        w.line(f"store {self.lanes} splat (i32 {NO_PC}), ptr %pcsp")
        w.line(f"store i32 {NO_PC}, ptr %lowp")
        if x.suspends:
            fresh = w.assign(f"icmp eq i32 {w.assign('load i32, ptr %frame')}, {int(WarpState.FRESH)}")
            w.branch(fresh, "fresh", "resume")
            w.label("resume")
            self._resume()
            w.label("fresh")
        w.lines += x.zero_lines()
        w.jump(f"b{x.flow.blocks[0].index}")
        return [
            "entry:",
            f"  %maskp = alloca {self.mask_type}",
            f"  %pcsp = alloca {self.lanes}",
            "  %lowp = alloca i32",
            "  %spinp = alloca i32",
            f"  store i32 {SPIN_ROUNDS}, ptr %spinp",
            "  %swappedp = alloca i1",
            "  store i1 false, ptr %swappedp",
            "  %movedp = alloca i1",
            "  store i1 false, ptr %movedp",
            "  %scratch = alloca [64 x i8], align 64",
            f"  %t0 = mul i32 %w, {w.width}",
            *w.head,
            *x.slot_lines(),
            *w.lines,
        ]

    def _resume(self) -> None:
        """Go on where the warp waited: all lanes at one block, or each at its pc."""
        w, x = self.w, self.x
        x.copy_slots(save=False)
        place = w.assign(f"load i32, ptr {self._head('resume')}")
        bits = w.assign(f"load i{w.width}, ptr {self._head('mask')}")
        w.line(f"store {self.mask_type} {w.assign(f'bitcast i{w.width} {bits} to {self.mask_type}')}, ptr %maskp")
        targets = {b.targets[0].index for b in x.flow.blocks if b.kind == "suspend" and not x.flow.is_divergent(b)}
        cases = " ".join(f"i32 {k}, label %b{k}" for k in sorted(targets))
        w.line(f"switch i32 {place}, label %parted [{cases}]")
        w.label("parted")
        pcs = w.assign(f"load {self.lanes}, ptr {self._frame(sizeof(FrameHead))}, align 4")
        w.line(f"store {self.lanes} {pcs}, ptr %pcsp")
        w.jump("sched")

    def _frame(self, place: int) -> str:
        return self.w.assign(f"getelementptr i8, ptr %frame, i64 {place}")

    def _head(self, field: str) -> str:
        return self._frame(offset(FrameHead, field))

    def _set_head(self, field: str, value: str) -> None:
        self.w.line(f"store i32 {value}, ptr {self._head(field)}")

    def _set_state(self, state: WarpState) -> None:
        if self.x.suspends:
            self._set_head("state", str(int(state)))

    # --- blocks ------------------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        w, x = self.w, self.x
        w.label(f"b{block.index}")
        x.begin(block, plan_block(x, block))
        x.mask = w.assign(f"load {self.mask_type}, ptr %maskp")
        if self.stalls and block.looks is None:
            w.line("store i1 true, ptr %movedp")
        for step in block.steps:
            self._step(step)
        x.inst, x.guard = block.last, None
        getattr(self, f"_end_{block.kind}")(block)

    def _step(self, step: Step) -> None:
        x = self.x
        if isinstance(step, Handover):
            x.inst, x.guard = step.inst, None
            if isinstance(step, Transfer):
                transfer(x, step)
            else:
                hand_over(x, step)
            return
        x.inst, x.guard = step, None
        if step.guard is not None:
            x.guard = x.read(step.guard, "i1")
        lower = find(step.op.opcode, step.op.mods)
        assert lower is not None, step.op
        lower(x, step)

    # --- ends of blocks ----------------------------------------------------------------------------------------

    def _end_jump(self, block: Block) -> None:
        self.x.flush()
        self._go(block, block.targets[0])

    def _end_exit(self, block: Block) -> None:
        self._leave(block)

    def _end_trap(self, block: Block) -> None:
        inst = block.last
        assert inst is not None
        self.x.fault(FaultKind.TRAP, self._first_lane())

    def _first_lane(self) -> str:
        return native.first_lane(self.w, self.x.bits_of(self.x.active))

    def _end_branch(self, block: Block) -> None:
        inst, x, w = block.last, self.x, self.w
        assert inst is not None
        assert inst.guard is not None
        condition = x.read(inst.guard, "i1")
        x.flush()
        taken, other = block.targets
        if taken is other:
            self._go(block, taken)
        elif condition.uniform:
            yes, no = w.fresh_label("yes"), w.fresh_label("no")
            w.branch(condition.text, yes, no)
            w.label(yes)
            self._go(block, taken)
            w.label(no)
            self._go(block, other)
        else:
            self._diverge(block, condition, taken, other)

    def _diverge(self, block: Block, condition: Value, taken: Block, other: Block) -> None:
        """A branch on which lanes may differ: all one way, or the lower target first and the rest parked."""
        w, x = self.w, self.x
        goes = w.both(x.active, condition).text
        stays = w.both(x.active, w.negate(condition)).text
        all_stay = w.assign(f"icmp eq i{w.width} {w.bits(goes)}, 0")
        yes, no, test = w.fresh_label("yes"), w.fresh_label("no"), w.fresh_label("test")
        mixed = w.fresh_label("mixed")
        w.branch(all_stay, no, test)
        w.label(test)
        all_go = w.assign(f"icmp eq i{w.width} {w.bits(stays)}, 0")
        w.branch(all_go, yes, mixed)
        w.label(yes)
        self._go(block, taken)
        w.label(no)
        self._go(block, other)
        w.label(mixed)
        if taken.is_bare_exit or other.is_bare_exit:
            rest = stays if taken.is_bare_exit else goes
            w.line(f"store {self.mask_type} {rest}, ptr %maskp")
            self._go(block, other if taken.is_bare_exit else taken)
            return
        first, second = (taken, other) if taken.index < other.index else (other, taken)
        now, later = (goes, stays) if first is taken else (stays, goes)
        self._park(later, second.index)
        low = w.assign("load i32, ptr %lowp")
        least = w.assign(f"call i32 @llvm.umin.i32(i32 {low}, i32 {second.index})")
        x.unit.declare("llvm.umin.i32", "i32", ["i32", "i32"])
        w.line(f"store i32 {least}, ptr %lowp")
        w.line(f"store {self.mask_type} {now}, ptr %maskp")
        self._go(block, first)

    def _end_switch(self, block: Block) -> None:
        """``brx.idx``: lanes that agree jump; else each is parked at its own target."""
        inst, x, w = block.last, self.x, self.w
        assert inst is not None
        index = x.read(inst.op.operands[0], "i32")
        x.flush()
        self._check_index(index, len(block.targets))
        if index.uniform:
            labels = [w.fresh_label("case") for _ in block.targets]
            cases = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(labels))
            w.line(f"switch i32 {index.text}, label %dead [{cases}]")
            for label, target in zip(labels, block.targets, strict=True):
                w.label(label)
                self._go(block, target)
            return
        pcs = Value("i32", w.assign(f"load {self.lanes}, ptr %pcsp"), False)
        for k, target in enumerate(block.targets):
            here = w.both(x.active, w.compare("icmp eq", index, integer("i32", k)))
            place = NO_PC if target.is_bare_exit else target.index
            pcs = w.select(here, integer("i32", place), pcs)
        w.line(f"store {self.lanes} {pcs.text}, ptr %pcsp")
        self._check_stop()
        w.jump("sched")

    def _end_dispatch(self, block: Block) -> None:
        """An indirect call: each lane goes to the routine whose address it holds."""
        inst, x, w = block.last, self.x, self.w
        assert inst is not None
        assert inst.op.call is not None
        address = x.read(inst.op.call.target, "i64")  # type: ignore[arg-type]
        x.flush()
        goes = []
        known = integer("i1", 0)
        for target in block.targets:
            place = x.program.function_address(target.enters.function)  # type: ignore[union-attr]
            here = w.varying(w.compare("icmp eq", address, integer("i64", place)))
            known = w.either(w.varying(known), here)
            goes.append(here)
        lost = w.bits(w.lanes(w.both(x.active, w.negate(known))))
        wild, fine = w.fresh_label("wild"), w.fresh_label("fine")
        w.branch(w.assign(f"icmp ne i{w.width} {lost}, 0"), wild, fine, likely=False)
        w.label(wild)
        lane = native.first_lane(w, lost)
        one = w.assign(f"extractelement {w.vector('i64')} {w.lanes(address)}, i32 {lane}")
        x.fault(FaultKind.BAD_CALL, lane, one)
        w.label(fine)
        self._part(block, goes)

    def _end_return(self, block: Block) -> None:
        """A routine's end: each lane goes back to where its call came from."""
        x, w = self.x, self.w
        last = block.steps[-1]
        x.inst = last.inst if isinstance(last, Transfer) else None
        number = x.read_cell(x.program.common_cell(x.program.back), "i32")
        x.flush()
        self._check_index(number, len(block.targets))
        self._part(block, [w.compare("icmp eq", number, integer("i32", k)) for k in range(len(block.targets))])

    def _part(self, block: Block, goes: list[Value]) -> None:
        """Active lanes go to the target whose mask they are in; each is in one."""
        x, w = self.x, self.w
        if len(block.targets) == 1:
            self._go(block, block.targets[0])
            return
        pcs = Value("i32", w.assign(f"load {self.lanes}, ptr %pcsp"), False)
        for here, target in zip(goes, block.targets, strict=True):
            pcs = w.select(w.both(x.active, here), integer("i32", target.index), pcs)
        w.line(f"store {self.lanes} {w.lanes(pcs)}, ptr %pcsp")
        self._check_stop()
        w.jump("sched")

    def _check_index(self, index: Value, count: int) -> None:
        """An index past the table is a fault, where the hardware's behaviour is undefined."""
        x, w = self.x, self.w
        outside = w.both(x.active, w.compare("icmp uge", index, integer("i32", count)))
        wild, fine = w.fresh_label("wild"), w.fresh_label("fine")
        bits = w.bits(outside.text)
        w.branch(w.assign(f"icmp ne i{w.width} {bits}, 0"), wild, fine, likely=False)
        w.label(wild)
        x.fault(FaultKind.BRANCH, native.first_lane(w, bits))
        w.label(fine)

    def _end_suspend(self, block: Block) -> None:
        """A barrier: active lanes wait, parked ones run on; when all wait the warp does."""
        x, w = self.x, self.w
        inst = block.last
        assert inst is not None
        identity = arrive(x, inst)
        x.flush()
        self._set_head("site", str(inst.site))
        resume = block.targets[0].index
        if not x.flow.is_divergent(block):
            self._set_head("resume", str(resume))
            self._set_head("barrier", identity.text)
            self._set_head("alive", population(x, x.active))
            w.line(f"store i{w.width} {x.bits_of(x.active)}, ptr {self._head('mask')}")
            w.jump("wait")
            return
        self._note(identity)
        self._park(x.mask, WAITING_PC + resume)
        w.jump("sched")

    def _end_meet(self, block: Block) -> None:
        """``bar.warp.sync``: where lanes may be elsewhere, active ones wait till all they name have come to one."""
        x, w = self.x, self.w
        inst = block.last
        assert inst is not None
        members = x.read(inst.op.operands[0], "i32")
        check_members(x, members)
        w.line("fence seq_cst")
        x.flush()
        if not x.flow.is_divergent(block):
            self._go(block, block.targets[0])
            return
        self._set_head("site", str(inst.site))
        self._note(members)
        self._park(x.mask, MEETING_PC + block.targets[0].index)
        w.jump("sched")

    def _note(self, value: Value) -> None:
        """What active lanes wait for: a barrier's number, or the lanes that they are to meet."""
        x, w = self.x, self.w
        place = self._frame(sizeof(FrameHead) + 4 * w.width)
        held = w.assign(f"load {self.lanes}, ptr {place}, align 4")
        new = w.select(x.active, value, Value("i32", held, False))
        w.line(f"store {self.lanes} {new.text}, ptr {place}, align 4")

    def _met(self, pcs: str) -> tuple[str, str]:
        """The pcs once those that have met go on, and whether any do."""
        w, lanes = self.w, self.lanes
        held = w.assign(f"load {lanes}, ptr {self._frame(sizeof(FrameHead) + 4 * w.width)}, align 4")
        living = w.assign(f"icmp ne {lanes} {pcs}, splat (i32 {NO_PC})")
        here = w.assign(f"icmp uge {lanes} {pcs}, splat (i32 {MEETING_PC})")
        waiting = w.assign(f"and {self.mask_type} {living}, {here}")
        absent = w.bits(
            w.assign(f"and {self.mask_type} {living}, {w.assign(f'xor {self.mask_type} {here}, splat (i1 true)')}")
        )
        wide = absent if w.width == 32 else w.assign(f"zext i{w.width} {absent} to i32")
        missing = w.assign(f"and {lanes} {held}, {w.splat('i32', wide, w.width)}")
        whole = w.assign(f"icmp eq {lanes} {missing}, zeroinitializer")
        go = w.assign(f"and {self.mask_type} {waiting}, {whole}")
        on = w.assign(f"sub {lanes} {pcs}, splat (i32 {MEETING_PC})")
        any_go = w.assign(f"icmp ne i{w.width} {w.bits(go)}, 0")
        return w.assign(f"select {self.mask_type} {go}, {lanes} {on}, {lanes} {pcs}"), any_go

    # --- jumps -------------------------------------------------------------------------------------------------

    def _go(self, block: Block, target: Block) -> None:
        """Jump with the lanes in ``maskp``."""
        w = self.w
        if target.is_bare_exit:
            self._leave(block)
        elif target.index <= block.index:
            self._check_stop()
            if block.spins:
                self._give_way(block, target)
            w.jump(f"b{target.index}")
        elif self._alone(block):
            w.jump(f"b{target.index}")
        else:
            low = w.assign("load i32, ptr %lowp")
            free = w.assign(f"icmp ugt i32 {low}, {target.index}")
            self.parking.add(target.index)
            w.branch(free, f"b{target.index}", f"park{target.index}")

    def _alone(self, block: Block) -> bool:
        """Whether every living lane of the warp is active when ``block`` runs."""
        x = self.x
        return not x.scheduled or not (x.flow.is_divergent(block) or x.flow.split_barriers)

    def _give_way(self, block: Block, target: Block) -> None:
        """After so many rounds of a loop that may wait, let them run: this warp's lanes, then other warps."""
        w = self.w
        left = w.assign("load i32, ptr %spinp")
        fewer = w.assign(f"sub i32 {left}, 1")
        w.line(f"store i32 {fewer}, ptr %spinp")
        yields, on = w.fresh_label("yields"), w.fresh_label("on")
        w.branch(w.assign(f"icmp eq i32 {fewer}, 0"), yields, on, likely=False)
        w.label(yields)
        w.line(f"store i32 {SPIN_ROUNDS}, ptr %spinp")
        stands = block.looks or block.last
        if stands is not None:
            self._set_head("site", str(stands.site))
        self._park(w.assign(f"load {self.mask_type}, ptr %maskp"), target.index)
        w.line(f"store i32 {target.index}, ptr %lowp")
        w.jump("giveway")
        w.label(on)

    def _others(self) -> None:
        """Lanes parked elsewhere than at the loop in ``low`` run on; with none, or after one turn, the next warp."""
        w = self.w
        w.label("giveway")
        pcs = w.assign(f"load {self.lanes}, ptr %pcsp")
        if self.x.meets:
            pcs, _ = self._met(pcs)
        loop = w.assign("load i32, ptr %lowp")
        spinning = w.assign(f"icmp eq {self.lanes} {pcs}, {w.splat('i32', loop, w.width)}")
        others = w.assign(f"select {self.mask_type} {spinning}, {self.lanes} splat (i32 {NO_PC}), {self.lanes} {pcs}")
        lowest = w.reduce("umin", others, "i32")
        nobody = w.assign(f"icmp uge i32 {lowest}, {WAITING_PC}")
        w.branch(w.assign(f"select i1 {nobody}, i1 true, i1 {w.assign('load i1, ptr %swappedp')}"), "pause", "swap")
        w.label("swap")
        w.line("store i1 true, ptr %swappedp")
        mine = w.assign(f"icmp eq {self.lanes} {pcs}, {w.splat('i32', lowest, w.width)}")
        self._run(mine, pcs, lowest)
        w.label("pause")
        self._save_lanes(pcs)
        self.x.copy_slots(save=True)
        self._set_state(WarpState.READY)
        moved = w.assign("load i1, ptr %movedp") if self.stalls else "true"
        w.line(f"ret i32 {w.assign(f'select i1 {moved}, i32 {SUSPENDED}, i32 {STALLED}')}")

    def _leave(self, block: Block) -> None:
        """Active lanes exit; parked ones go on."""
        self.w.jump("finish" if self._alone(block) else "sched")

    def _park(self, mask: str, index: int) -> None:
        w = self.w
        pcs = w.assign(f"load {self.lanes}, ptr %pcsp")
        new = w.assign(f"select {self.mask_type} {mask}, {self.lanes} splat (i32 {index}), {self.lanes} {pcs}")
        w.line(f"store {self.lanes} {new}, ptr %pcsp")

    def _check_stop(self) -> None:
        """On a back edge: whether the launch is to end."""
        w, x = self.w, self.x
        place = w.assign(f"getelementptr i8, ptr %launch, i64 {offset(Launch, 'stop')}")
        stop = w.assign(f"load atomic i32, ptr {place} monotonic, align 4")
        stopped, on = w.fresh_label("stopped"), w.fresh_label("on")
        w.branch(w.assign(f"icmp ne i32 {stop}, 0"), stopped, on, likely=False)
        w.label(stopped)
        if x.inst is None:
            w.jump("dead")
        else:
            x.fault(FaultKind.STOPPED)
        w.label(on)

    def _scheduler(self) -> None:
        """Take the parked lanes with the lowest pc; when there are none, or all wait, leave."""
        w, x = self.w, self.x
        w.label("sched")
        pcs = w.assign(f"load {self.lanes}, ptr %pcsp")
        lowest = w.reduce("umin", pcs, "i32")
        mine = w.assign(f"icmp eq {self.lanes} {pcs}, {w.splat('i32', lowest, w.width)}")
        if x.suspends:
            waits = w.assign(f"icmp uge i32 {lowest}, {WAITING_PC}")
            runs = w.fresh_label("runs")
            w.branch(waits, "idle", runs)
            w.label(runs)
        self._run(mine, pcs, lowest)
        if x.suspends:
            self._idle(lowest, pcs)

    def _run(self, mine: str, pcs: str, place: str) -> None:
        """Go on at block ``place`` with the lanes in ``mine``; the others stay parked."""
        w = self.w
        rest = w.assign(f"select {self.mask_type} {mine}, {self.lanes} splat (i32 {NO_PC}), {self.lanes} {pcs}")
        w.line(f"store {self.lanes} {rest}, ptr %pcsp")
        w.line(f"store i32 {w.reduce('umin', rest, 'i32')}, ptr %lowp")
        w.line(f"store {self.mask_type} {mine}, ptr %maskp")
        cases = " ".join(f"i32 {b.index}, label %b{b.index}" for b in self._resumable())
        w.line(f"switch i32 {place}, label %finish [{cases}]")

    def _save_lanes(self, pcs: str) -> None:
        """Keep every lane's pc in the frame."""
        w = self.w
        w.line(f"store {self.lanes} {pcs}, ptr {self._frame(sizeof(FrameHead))}, align 4")
        self._set_head("resume", str(LANES_DIFFER))
        living = w.assign(f"icmp ne {self.lanes} {pcs}, splat (i32 {NO_PC})")
        self._set_head("alive", population(self.x, Value("i1", living, False)))

    def _resumable(self) -> list[Block]:
        """Blocks at which a lane may be parked."""
        flow = self.x.flow
        if flow.split_barriers:
            return flow.blocks
        found = {t.index for b in flow.blocks if b.kind in ("suspend", "meet") for t in b.targets} | self.parking
        for block in flow.blocks:
            if block.kind in ("switch", "branch", "dispatch", "return") or block.spins or flow.is_divergent(block):
                found |= {t.index for t in block.targets}
        return [flow.blocks[k] for k in sorted(found)]

    def _idle(self, lowest: str, pcs: str) -> None:
        """Every lane waits, or is gone."""
        w = self.w
        w.label("idle")
        gone = w.assign(f"icmp eq i32 {lowest}, {NO_PC}")
        w.branch(gone, "finish", "suspend")
        w.label("suspend")
        if self.x.meets:
            later, any_go = self._met(pcs)
            w.line(f"store {self.lanes} {later}, ptr %pcsp")
            w.branch(any_go, "sched", "stay")
            w.label("stay")
        self._save_lanes(pcs)
        w.jump("wait")
        w.label("wait")
        self.x.copy_slots(save=True)
        self._set_state(WarpState.WAITING)
        w.line(f"ret i32 {SUSPENDED}")
