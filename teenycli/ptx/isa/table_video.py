"""Video instructions: scalar and SIMD (PTX ISA 9.7.18)."""

from __future__ import annotations

from teenycli.ptx.isa import TABLE

row, form = TABLE.row, TABLE.form

_SIGNS = "u32 s32"


def _scalar(opcode: str, modifiers: str, result: str, **classes: str) -> None:
    """The three forms of a scalar video instruction: plain, with a second operation, merging into part of c."""
    row(opcode, tier=1, doc=f"Scalar Video Instructions: {opcode}")
    sources = "a.half:atype, b.half:btype"
    form(f"{opcode}{modifiers} d:{result}, {sources}", classes, ptx=(2, 0), sm=20)
    form(f"{opcode}{modifiers}.op d:{result}, {sources}, c:{result}", classes, op="add min max", ptx=(2, 0), sm=20)
    form(f"{opcode}{modifiers} d.half:{result}, {sources}, c:{result}", classes, ptx=(2, 0), sm=20)


for opcode in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
    _scalar(opcode, ".dtype.atype.btype{.sat}", "dtype", dtype=_SIGNS, atype=_SIGNS, btype=_SIGNS)
for opcode in ("vshl", "vshr"):
    _scalar(opcode, ".dtype.atype.btype{.sat}.mode", "dtype", dtype=_SIGNS, atype=_SIGNS, btype="u32",
            mode="clamp wrap")  # fmt: skip
_scalar("vset", ".atype.btype.cmp", "u32", atype=_SIGNS, btype=_SIGNS)

row("vmad", tier=1, doc="Scalar Video Instructions: vmad")
form("vmad.dtype.atype.btype{.sat}{.scale} d:dtype, -a.half:atype, -b.half:btype, -c:dtype", dtype=_SIGNS,
     atype=_SIGNS, btype=_SIGNS, scale="shr7 shr15", ptx=(2, 0), sm=20)  # fmt: skip
form("vmad.dtype.atype.btype.po{.sat}{.scale} d:dtype, a.half:atype, b.half:btype, c:dtype", dtype=_SIGNS,
     atype=_SIGNS, btype=_SIGNS, scale="shr7 shr15", ptx=(2, 0), sm=20)  # fmt: skip

for n in (2, 4):
    for opcode in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"):
        row(f"{opcode}{n}", tier=1, doc=f"SIMD Video Instructions: {opcode}{n}")
        operands = f"d.mask{n}:dtype, $a.pick{n}:atype, $b.pick{n}:btype, $c:dtype"
        form(f"{opcode}{n}.dtype.atype.btype{{.sat}} {operands}", dtype=_SIGNS, atype=_SIGNS, btype=_SIGNS,
             ptx=(3, 0), sm=30)  # fmt: skip
        form(f"{opcode}{n}.dtype.atype.btype.add {operands}", dtype=_SIGNS, atype=_SIGNS, btype=_SIGNS, ptx=(3, 0),
             sm=30)  # fmt: skip
    row(f"vset{n}", tier=1, doc=f"SIMD Video Instructions: vset{n}")
    form(f"vset{n}.atype.btype.cmp{{.add}} d.mask{n}:u32, $a.pick{n}:atype, $b.pick{n}:btype, $c:u32", atype=_SIGNS,
         btype=_SIGNS, ptx=(3, 0), sm=30)  # fmt: skip
