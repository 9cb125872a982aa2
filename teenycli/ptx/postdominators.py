"""Where the ways through a graph of blocks meet again. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def postdominators(ways: Sequence[Sequence[int]], ends: Collection[int]) -> list[int]:
    """For each block the set of blocks (bits, by index) that every way from it to the end passes, itself among them.

    ``ways`` has the blocks that may follow each; ``ends`` are those at which a way is at its end. A block that leads
    nowhere and is no end has all of them: no way from it counts.
    """
    everything = (1 << len(ways)) - 1
    after = [1 << k if k in ends else everything for k in range(len(ways))]
    changed = True
    while changed:
        changed = False
        for k in range(len(ways) - 1, -1, -1):
            if not ways[k]:
                continue
            common = everything
            for target in ways[k]:
                common &= after[target]
            common |= 1 << k
            if common != after[k]:
                after[k], changed = common, True
    return after
