"""Basic blocks of a body, and where ways that part meet again.

May import ``ptx.code``.
"""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from teenycli.ptx.code import Code, Label, Op, Table
from teenycli.ptx.postdominators import postdominators

#: What ends the way of a lane through a function, and what ends the lane.
_ENDS = frozenset({"ret", "exit", "trap"})


class Block(Struct, frozen=True):
    """Instructions ``start`` to ``stop`` (exclusive). ``targets`` are the indices of blocks that may follow.

    ``branch`` is the last instruction, where it is a jump or an end, which the block's targets come from.
    """

    start: int
    stop: int
    targets: tuple[int, ...]
    branch: Op | None = None


class Graph:
    """The blocks of a body in the order of the text. Index ``end`` stands for where lanes leave the function."""

    def __init__(self, code: Code) -> None:
        self.code = code
        leaders = {0, len(code.ops)}
        for index, op in enumerate(code.ops):
            if _is_jump(op):
                leaders.add(index + 1)
                leaders.update(code.labels[label.name] for label in _labels(op))
        starts = sorted(leaders)[:-1] if code.ops else []
        self.end = len(starts)
        self._at = {start: k for k, start in enumerate(starts)} | {len(code.ops): self.end}
        stops = [*starts[1:], len(code.ops)][: self.end]
        self.blocks = [self._block(start, stop) for start, stop in zip(starts, stops, strict=True)]

    def block_at(self, label: Label) -> int:
        """The block that begins at ``label``."""
        return self._at[self.code.labels[label.name]]

    def ends_thread(self, block: int) -> bool:
        """Whether lanes may end there for good, out of all calls."""
        branch = self.blocks[block].branch
        return branch is not None and branch.opcode == "exit"

    def _block(self, start: int, stop: int) -> Block:
        last, after = self.code.ops[stop - 1], self._at[stop]
        if not _is_jump(last):
            return Block(start, stop, (after,))
        targets = [self.block_at(label) for label in _labels(last)]
        if last.opcode in _ENDS and last.opcode != "trap":
            targets.append(self.end)
        if last.guard is not None or (last.opcode == "brx" and not targets):
            targets.append(after)
        return Block(start, stop, tuple(dict.fromkeys(targets)), last)

    @cached_property
    def _after(self) -> list[int]:
        """For each block the set of blocks (bits) that every way from it to the end passes. Ways into a trap do not
        count, since no lane comes back from them."""
        return postdominators([*(block.targets for block in self.blocks), ()], {self.end})

    @cached_property
    def _by_after(self) -> dict[int, int]:
        """The block of each of these sets. Each has its own, which it is in, dead ends aside."""
        return {after: k for k, after in enumerate(self._after)}

    def meeting(self, block: int) -> int:
        """The first block that all ways out of ``block`` pass; ``end`` where there is none before."""
        common = self._after[block] & ~(1 << block)
        first = self._by_after.get(common, self.end)
        return first if common >> first & 1 else self.end

    def between(self, block: int, meeting: int) -> list[int]:
        """The blocks that lanes may pass on their ways out of ``block`` before they meet."""
        seen: set[int] = set()
        waiting = [*self.blocks[block].targets]
        while waiting:
            k = waiting.pop()
            if k not in (meeting, self.end) and k not in seen:
                seen.add(k)
                waiting += self.blocks[k].targets
        return sorted(seen)


def _is_jump(op: Op) -> bool:
    return op.opcode in ("bra", "brx") or op.opcode in _ENDS


def _labels(op: Op) -> tuple[Label, ...]:
    """Where a jump may go, fall-through aside."""
    labels: list[Label] = []
    for operand in op.operands:
        if isinstance(operand, Label):
            labels.append(operand)
        elif isinstance(operand, Table):
            labels += operand.labels
    return tuple(labels)
