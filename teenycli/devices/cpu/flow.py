"""What control flow says about a program: block order, liveness, where lanes diverge, which cells are uniform.

Lanes of a warp run the lowest block first. The order is topological, with every loop in one piece (a weak topological
order), so lanes that part meet again at the first block that all of them reach.

May import ``program`` and ``ptx``.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from teenycli.devices.cpu.program import (
    Block,
    Cell,
    Handover,
    Inst,
    Program,
    Step,
    Transfer,
    cells_read,
    cells_written,
    registers_in,
)
from teenycli.ptx.code import Mem, Reg, specials_in
from teenycli.ptx.postdominators import postdominators
from teenycli.ptx.warps import WHOLE

#: Special registers that differ between the lanes of a warp.
_VARYING_SPECIALS = frozenset(
    {"%tid", "%laneid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge"}
)
#: Instructions whose results differ between lanes whatever their operands, and such as give all lanes the same.
_VARYING = frozenset({"atom", "shfl", "match", "alloca", "elect", "call", "mbarrier"}) | WHOLE
_UNIFORM = frozenset({"vote", "activemask", "redux"})


class Loop(Struct):
    """A strongly connected part of the graph: ``first`` to ``last`` in the order, ``first`` being its head."""

    first: int
    last: int
    blocks: int
    single_latch: bool


class Flow(Struct):
    """Facts about an ordered program. Sets of blocks and of cells are the bits of integers, by index."""

    blocks: list[Block]
    cells: list[Cell]
    loops: list[Loop]
    live_in: list[int]
    live_out: list[int]
    divergent: int = 0
    varying: int = 0
    #: Whether lanes of a warp may wait at a barrier while others go on.
    split_barriers: bool = False
    defs: dict[Cell, list[int]] = field(default_factory=dict)

    def is_divergent(self, block: Block) -> bool:
        """Whether ``block`` may run while other lanes of the warp are parked elsewhere."""
        return bool(self.divergent >> block.index & 1)

    def is_uniform(self, cell: Cell) -> bool:
        return not self.varying >> cell.index & 1

    def is_cyclic(self, block: Block) -> bool:
        return any(loop.blocks >> block.index & 1 for loop in self.loops)

    def innermost(self, block: Block) -> Loop | None:
        inside = [loop for loop in self.loops if loop.blocks >> block.index & 1]
        return min(inside, key=lambda loop: loop.blocks.bit_count(), default=None)

    def must_merge(self, cell: Cell, block: Block) -> bool:
        """Whether a write of ``cell`` in ``block`` must keep what lanes that are not active hold.

        No lane is parked, or none that is parked will read what it holds now.
        """
        if not self.is_divergent(block):
            return False
        bit = 1 << cell.index
        if not any(live & bit for live in self.live_in):
            return False
        if self.split_barriers or len(self.defs[cell]) > 1:
            return True
        loop = self.innermost(block)
        if loop is None:
            return False
        if not loop.single_latch or self.live_in[loop.first] & bit:
            return True
        return any(self.live_in[k] & bit for k in range(loop.last + 1, len(self.blocks)))


def analyse(program: Program) -> Flow:
    """Order the program's blocks and learn what :class:`Flow` holds."""
    _thread(program.start)
    reachable = _reachable(program.start)
    loops: list[tuple[Block, set[Block]]] = []
    order: list[Block] = []
    _order(reachable, program.start, order, loops)
    bare = [b for b in order if b.is_bare_exit]
    order = [b for b in order if not b.is_bare_exit] + bare
    for index, block in enumerate(order):
        block.index = index
    cells, defs = _number_cells(order)
    live_in, live_out = _liveness(order)
    flow = Flow(order, cells, [_loop(head, members) for head, members in loops], live_in, live_out, defs=defs)
    _mark_spins(flow)
    _Uniformity(flow).run()
    program.blocks = order
    return flow


# --- order -------------------------------------------------------------------------------------------------------


def _reachable(start: Block) -> list[Block]:
    seen = {start}
    order = [start]
    for block in order:
        for target in block.targets:
            if target not in seen:
                seen.add(target)
                order.append(target)
    return order


def _thread(start: Block) -> None:
    """Let every edge into an empty block that only jumps go to where the jump goes."""
    for block in _reachable(start):
        for k, target in enumerate(block.targets):
            seen = set()
            while target.kind == "jump" and not target.steps and target not in seen:
                seen.add(target)
                target = target.targets[0]
            block.targets[k] = target


def _order(nodes: Iterable[Block], start: Block, out: list[Block], loops: list[tuple[Block, set[Block]]]) -> None:
    """Append ``nodes`` to ``out``, topologically; each cycle in one piece, its head first."""
    work: list[tuple[set[Block], Block] | Block] = [(set(nodes), start)]
    while work:
        item = work.pop()
        if isinstance(item, Block):
            out.append(item)
            continue
        inside, first = item
        pending: list[tuple[set[Block], Block] | Block] = []
        for part in _components(inside, first):
            head = part[0]
            pending.append(head)
            if len(part) > 1 or head in head.targets:
                members = set(part)
                loops.append((head, members))
                latches = [block for block in part if head in block.targets]
                if len(latches) > 1:
                    _join(latches, head, [blocks for _, blocks in loops if head in blocks])
                rest = members - {head}
                if rest:
                    entry = next((t for t in head.targets if t in rest), part[1])
                    pending.append((rest, entry))
        work.extend(reversed(pending))


def _join(latches: list[Block], head: Block, around: list[set[Block]]) -> None:
    """Lead all ways back to the head of a loop through one block, which then comes last.

    There lanes that go round again wait for those that are still within, as threads of a warp do on a GPU; else they
    would come to an instruction of the whole warp one by one. ``around`` are the loops that this one belongs to.
    """
    latch = Block(kind="jump", last=latches[0].last, targets=[head])
    for block in latches:
        block.targets = [latch if target is head else target for target in block.targets]
    for blocks in around:
        blocks.add(latch)


def _components(inside: set[Block], start: Block) -> list[list[Block]]:
    """Strongly connected components of ``inside`` in topological order, each with the node met first in front.

    Tarjan's algorithm, without recursion. Nodes that ``start`` does not reach are taken up afterwards.
    """
    number: dict[Block, int] = {}
    low: dict[Block, int] = {}
    stack: list[Block] = []
    on_stack: set[Block] = set()
    found: list[list[Block]] = []
    for root in [start, *inside]:
        if root in number or root not in inside:
            continue
        trail = [(root, iter(root.targets))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while trail:
            node, targets = trail[-1]
            child = next((t for t in targets if t in inside and (t not in number or t in on_stack)), None)
            if child is None:
                trail.pop()
                if trail:
                    low[trail[-1][0]] = min(low[trail[-1][0]], low[node])
                if low[node] == number[node]:
                    at = stack.index(node)
                    part = stack[at:]
                    del stack[at:]
                    on_stack.difference_update(part)
                    found.append(part)
            elif child in on_stack:
                low[node] = min(low[node], number[child])
            else:
                number[child] = low[child] = len(number)
                stack.append(child)
                on_stack.add(child)
                trail.append((child, iter(child.targets)))
    return found[::-1]


def _loop(head: Block, members: set[Block]) -> Loop:
    indices = [b.index for b in members]
    last = max(indices)
    latches = [b for b in members if any(t is head for t in b.targets)]
    bits = sum(1 << i for i in indices)
    single = len(latches) == 1 and latches[0].index == last and min(indices) == head.index
    return Loop(head.index, last, bits, single and last - head.index + 1 == len(indices))


def _mark_spins(flow: Flow) -> None:
    """Find back edges of loops that go by what others may write: there a warp gives way now and then."""
    for loop in flow.loops:
        inside = [block for block in flow.blocks if loop.blocks >> block.index & 1]
        steps = [step for block in inside for step in block.steps]
        sleeps = any(isinstance(step, Inst) and step.op.opcode == "nanosleep" for step in steps)
        decide = _deciding(inside)
        if any(
            isinstance(step, Inst) and _watches(step, sleeps) and decide & set(cells_written(step)) for step in steps
        ):
            looks = next((step for step in steps if isinstance(step, Inst) and _looks(step)), None)
            written = sum({1 << cell.index for step in steps for cell in cells_written(step)})
            if written & flow.live_in[loop.first] or not all(_only_looks(step) for step in steps):
                looks = None
            for block in inside:
                block.spins |= any(t.index <= block.index for t in block.targets if loop.blocks >> t.index & 1)
                block.looks = block.looks or looks


def _looks(inst: Inst) -> bool:
    return inst.op.opcode == "mbarrier" and bool({"test_wait", "try_wait"} & inst.op.mods.keys())


def _deciding(inside: list[Block]) -> set[Cell]:
    """Cells of a loop that the way through it depends on; memory that it stores to and loads from is taken as one."""
    found = {cell for block in inside if block.kind in ("branch", "switch") for cell in _condition(block)}
    steps = [step for block in inside for step in block.steps]
    stored = {cell for step in steps if _is_plain(step, "st") for cell in cells_read(step)}
    size = -1
    while size != len(found):
        size = len(found)
        for step in steps:
            if not found.isdisjoint(cells_written(step)):
                found.update(cells_read(step))
                if _is_plain(step, "ld"):
                    found |= stored
    return found


def _is_plain(step: Step, opcode: str) -> bool:
    """Whether a step loads, or stores, what this very block of threads may have left there."""
    return (
        isinstance(step, Inst)
        and step.op.opcode == opcode
        and step.op.mods.get("space", "").split("::")[0] in ("", "local", "param", "shared")
    )


def _watches(inst: Inst, sleeps: bool) -> bool:
    """Whether an instruction may see what another thread has just written; any load may, in a loop that ``sleeps``."""
    if inst.op.opcode == "ld":
        return sleeps or inst.op.mods.get("sem") in ("volatile", "relaxed", "acquire")
    return inst.op.opcode == "atom" or _looks(inst)


#: What a loop may do each time round and, with nothing carried from one round to the next, be where it was.
_IDLE = frozenset({"setp", "selp", "and", "or", "xor", "not", "shl", "shr", "add", "sub", "cvt", "nanosleep"})


def _only_looks(step: Step) -> bool:
    """Whether a step comes to the same from the same registers, as long as no mbarrier changes."""
    if isinstance(step, Handover):
        return False
    if step.op.opcode == "mov":
        return not any(specials_in(operand) for operand in step.op.operands)
    return step.op.opcode in _IDLE or _looks(step)


def _condition(block: Block) -> list[Cell]:
    """What a block's branch, switch or indirect call goes by."""
    inst = block.last
    assert inst is not None
    return [inst.scope.cell(inst.guard)] if block.kind == "branch" else cells_read(inst)  # type: ignore[arg-type]


# --- liveness ----------------------------------------------------------------------------------------------------


def _steps(block: Block) -> list[Step]:
    if block.last is not None and block.kind in ("branch", "switch", "dispatch", "suspend", "meet", "trap"):
        return [*block.steps, block.last]
    return block.steps


def _number_cells(order: list[Block]) -> tuple[list[Cell], dict[Cell, list[int]]]:
    cells: list[Cell] = []
    defs: dict[Cell, list[int]] = {}
    seen: set[Cell] = set()
    for block in order:
        for step in _steps(block):
            written = cells_written(step)
            for cell in (*cells_read(step), *written):
                if cell not in seen:
                    seen.add(cell)
                    cell.index = len(cells)
                    cells.append(cell)
            for cell in written:
                defs.setdefault(cell, []).append(block.index)
    for cell in cells:
        defs.setdefault(cell, [])
    return cells, defs


def _is_partial(step: Step) -> bool:
    """Whether a write may leave a lane's old value: under a guard."""
    return isinstance(step, Inst) and step.guard is not None


def _liveness(order: list[Block]) -> tuple[list[int], list[int]]:
    uses, kills = [], []
    for block in order:
        use = kill = 0
        for step in _steps(block):
            for cell in cells_read(step):
                use |= (1 << cell.index) & ~kill
            for cell in cells_written(step):
                if _is_partial(step):
                    use |= (1 << cell.index) & ~kill
                else:
                    kill |= 1 << cell.index
        uses.append(use)
        kills.append(kill)
    live_in, live_out = [0] * len(order), [0] * len(order)
    changed = True
    while changed:
        changed = False
        for block in reversed(order):
            k = block.index
            out = 0
            for target in block.targets:
                out |= live_in[target.index]
            before = uses[k] | out & ~kills[k]
            if out != live_out[k] or before != live_in[k]:
                live_out[k], live_in[k] = out, before
                changed = True
    return live_in, live_out


# --- divergence --------------------------------------------------------------------------------------------------


class _Uniformity:
    """Which cells differ between lanes, and which blocks may run with lanes parked elsewhere.

    Begins with nothing varying and adds what must be, until nothing changes.
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.post = _postdominators(flow.blocks)
        self.done: set[Block] = set()

    def run(self) -> None:
        changed = True
        while changed:
            changed = False
            for block in self.flow.blocks:
                for step in _steps(block):
                    changed |= self._step(step, block)
                if (
                    block.kind in ("branch", "switch", "dispatch", "return")
                    and block not in self.done
                    and self._varies(block)
                ):
                    self.done.add(block)
                    self._diverge(block)
                    changed = True

    def _varies(self, block: Block) -> bool:
        inst = block.last
        if inst is None:  # a return: lanes may have come from different calls
            return True
        return any(not self.flow.is_uniform(cell) for cell in _condition(block))

    def _step(self, step: Step, block: Block) -> bool:
        flow = self.flow
        written = [cell for cell in cells_written(step) if flow.is_uniform(cell)]
        if not written:
            return False
        varies = self._is_varying(step)
        if not varies and flow.is_divergent(block):
            once = not flow.split_barriers and not flow.is_cyclic(block)
            varies = not once or any(len(flow.defs[cell]) > 1 for cell in written)
        if varies:
            for cell in written:
                flow.varying |= 1 << cell.index
        return varies

    def _is_varying(self, step: Step) -> bool:
        if any(not self.flow.is_uniform(cell) for cell in cells_read(step)):
            return isinstance(step, Handover) or step.guard is not None or not self._is_collective(step)
        if isinstance(step, Handover):
            return isinstance(step, Transfer) or any(not isinstance(m.source, Reg) for m in step.moves)
        op = step.op
        if op.opcode in _VARYING or any(
            special.name in _VARYING_SPECIALS for operand in op.operands for special in specials_in(operand)
        ):
            return True
        return op.opcode in ("ld", "ldu") and _reads_private(step)

    def _is_collective(self, inst: Inst) -> bool:
        """Whether all lanes that run ``inst`` together get one result: so it is when they share a member mask."""
        if inst.op.opcode not in _UNIFORM:
            return False
        return all(self.flow.is_uniform(inst.scope.cell(reg)) for reg in registers_in(inst.op.operands[-1]))

    def _diverge(self, branch: Block) -> None:
        """Mark the blocks that may run while lanes that took another way out of ``branch`` are parked."""
        flow = self.flow
        for p in range(branch.index + 1, len(flow.blocks)):
            if self.post[branch.index] >> p & 1:
                region = self._region(branch, p)
                if region.bit_length() <= p and not self._stops(region):
                    flow.divergent |= region
                    return
        region = self._region(branch, -1)
        flow.divergent |= region
        flow.split_barriers |= self._stops(region)

    def _stops(self, region: int) -> bool:
        return any(b.kind in ("suspend", "meet") or b.spins for b in self.flow.blocks if region >> b.index & 1)

    def _region(self, branch: Block, stop: int) -> int:
        """Blocks reached from ``branch`` without passing ``stop``."""
        seen = 0
        work = [t for t in branch.targets if not t.is_bare_exit]
        while work:
            block = work.pop()
            if block.index != stop and not seen >> block.index & 1:
                seen |= 1 << block.index
                work += [t for t in block.targets if not t.is_bare_exit]
        return seen


def _reads_private(inst: Inst) -> bool:
    """Whether a load may give lanes different values from one address: local memory, or who knows."""
    space = inst.op.mods.get("space")
    if space is None:
        return True
    if space in ("global", "const") or space.startswith("shared"):
        return False
    if space == "local":
        return True
    mem = inst.op.operands[1]
    assert isinstance(mem, Mem)
    return not inst.scope.program.is_entry_param(inst.scope, mem)


def _postdominators(blocks: list[Block]) -> list[int]:
    """For each block the set of blocks that every way to the end passes, itself among them.

    Ways out through a bare exit or a trap do not count: those lanes are gone, and wait for nobody.
    """
    staying = [[target for target in block.targets if not target.is_bare_exit] for block in blocks]
    ways = [[target.index for target in targets if target.kind != "trap"] for targets in staying]
    return postdominators(ways, {block.index for block, targets in zip(blocks, staying, strict=True) if not targets})
