"""Which of its indices in the grid and the block a thread asks for. May import ``ptx.code``."""

from __future__ import annotations

from collections.abc import Iterable

from teenycli.ptx.code import Code, specials_in

#: Registers that tell threads of a block apart, and blocks, without naming a dimension.
_OF_BLOCK = frozenset({
    "%laneid", "%warpid", "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt",
})  # fmt: skip
_OF_GRID = frozenset({"%clusterid", "%cluster_ctaid", "%cluster_ctarank", "%smid", "%gridid"})


def axes_read(codes: Iterable[Code]) -> tuple[str, str]:
    """The dimensions of ``%tid`` and of ``%ctaid`` that any of the bodies reads, of ``xyz``; all three where another
    register tells threads, or blocks, apart (PTX ISA, "Special Registers")."""
    read = [special for code in codes for op in code.ops for each in op.operands for special in specials_in(each)]
    specials, names = {(special.name, special.part) for special in read}, {special.name for special in read}

    def axes(name: str, others: frozenset[str]) -> str:
        whole = bool(names & others) or (name, None) in specials
        return "xyz" if whole else "".join(axis for axis in "xyz" if (name, axis) in specials)

    return axes("%tid", _OF_BLOCK), axes("%ctaid", _OF_GRID)
