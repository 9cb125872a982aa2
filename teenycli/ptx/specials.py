"""Special registers and the type each has (PTX ISA, "Special Registers"). Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Mapping

_VECTORS = (
    "%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid",
)  # fmt: skip
_WORDS = (
    "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "%cluster_ctarank", "%cluster_nctarank",
    "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt", "%clock", "%clock_hi",
    "%globaltimer_lo", "%globaltimer_hi", "%total_smem_size", "%aggr_smem_size", "%dynamic_smem_size",
    "%reserved_smem_offset_begin", "%reserved_smem_offset_end", "%reserved_smem_offset_cap",
    *(f"%pm{n}" for n in range(8)), *(f"%envreg{n}" for n in range(32)),
    *(f"%reserved_smem_offset_{n}" for n in range(2)),
)  # fmt: skip
_LONGS = ("%clock64", "%globaltimer", "%current_graph_exec", *(f"%pm{n}_64" for n in range(8)))

#: Type of each special register without components; a vector's components are u32.
SPECIALS: Mapping[str, str] = {
    **dict.fromkeys((*_VECTORS, *_WORDS), "u32"), **dict.fromkeys(_LONGS, "u64"), "%is_explicit_cluster": "pred",
}  # fmt: skip
VECTOR_SPECIALS = frozenset(_VECTORS)
#: Registers that grew: once 16 bits, or 32, and still read as such by old PTX.
SHRINKABLE = {**dict.fromkeys(_VECTORS[:4], ("u16", "u32")), "%gridid": ("u32", "u64")}
