"""Textures and surfaces (PTX ISA 9.7.10 and 9.7.11)."""

from __future__ import annotations

from teenycli.ptx.isa import TABLE

row, form = TABLE.row, TABLE.form

_TEXTURE = "Texture Instructions: "
_SURFACE = "Surface Instructions: "

#: (geometries, coordinates, offsets, whether depth can be compared, gradient, PTX version, sm). The coordinates of
#: an array begin with an index, those of multi-sample textures with a sample number; a fourth one may be padding.
_GEOMETRIES = (
    ("1d", "c:ctype", "e:s32", True, "", (1, 0), 0),
    ("1d", "{c*1}:ctype", "{e*1}:s32", True, "{g*1}:f32", (1, 0), 0),
    ("2d", "{c*2}:ctype", "{e*2}:s32", True, "{g*2}:f32", (1, 0), 0),
    ("3d", "{c*4}:ctype", "{e*4}:s32", False, "{g*4}:f32", (1, 0), 0),
    ("a1d", "{c*2}:b32", "{e*1}:s32", True, "{g*1}:f32", (2, 3), 20),
    ("a2d", "{c*4}:b32", "{e*2}:s32", True, "{g*2}:f32", (2, 3), 20),
    ("cube", "{c*4}:ctype", "", True, "{g*4}:f32", (3, 0), 20),
    ("acube", "{c*4}:b32", "", True, "{g*4}:f32", (3, 0), 20),
    ("2dms a2dms", "{c*4}:ctype", "{e*2}:s32", False, "", (3, 2), 30),
)
#: (vector size, types, PTX version, sm) of what a fetch gives.
_TEXELS = (("v4", "u32 s32 f32", (1, 0), 0), ("v4", "f16", (4, 2), 53), ("v2", "f16x2", (4, 2), 53))


def _extras(offset: str, depth: bool) -> list[str]:
    """What may follow a fetch: an offset, a depth to compare with, both."""
    extras = [f"{{, {offset}}}" if offset else ""]
    if depth:
        extras += [", f:f32", f", {offset}, f:f32"] if offset else [", f:f32"]
    return extras


row("tex", tier=3, doc=f"{_TEXTURE}tex")
for geom, coords, offset, depth, gradient, ptx, sm in _GEOMETRIES:
    ctypes = {"cube": "f32", "acube": "f32", "2dms a2dms": "s32"}.get(geom, "s32 f32")
    levels = [("", ""), (":base", "")]
    if "ms" not in geom:
        levels.append((":level", ", lod:ctype"))
    if gradient:
        levels.append((":grad", f", {gradient}, {gradient.replace('g', 'h')}"))
    for vec, types, since, least in _TEXELS:
        for level, operands in levels:
            sampler = "{,&s:b64}" if coords.startswith("{") else ""
            for extra in _extras(offset, depth):
                compares = extra.startswith(", ")
                newest = max(ptx, since, (3, 1) if level else (1, 0), (4, 3) if compares else (1, 0))
                if level == ":grad" and "cube" in geom:
                    newest = (4, 3)
                form(f"tex{level}.geom.vec.dtype.ctype d.vec{{|p}}:dtype, [a{sampler},{coords}]:b64{operands}{extra}",
                     geom=geom, vec=vec, dtype=types, ctype="f32" if compares else ctypes, ptx=newest,
                     sm=max(sm, least, 30 if compares else 0))  # fmt: skip

row("tld4", tier=3, doc=f"{_TEXTURE}tld4")
for geom, coords, offset, depth, *_ in _GEOMETRIES:
    if geom in ("2d", "a2d", "cube", "acube"):
        for extra in _extras(offset, depth):
            old = geom == "2d" and not extra.startswith(", ")
            address = f"[a{{,&s:b64}},{coords}]:b64"
            form(f"tld4.comp.geom.vec.dtype.ctype d.vec{{|p}}:dtype, {address}{extra}", comp="r g b a", geom=geom,
                 vec="v4", dtype="u32 s32 f32", ctype="f32", ptx=(2, 2) if old else (4, 3),
                 sm=20 if old else 30)  # fmt: skip

row("txq", tier=3, doc=f"{_TEXTURE}txq")
form("txq.query.type d, [a]:b64", type="b32", ptx=(1, 5),
     query="width height depth channel_data_type channel_order normalized_coords array_size num_mipmap_levels "
     "num_samples force_unnormalized_coords filter_mode addr_mode_0 addr_mode_1 addr_mode_2")  # fmt: skip
form("txq:level.query.type d, [a]:b64, lod:u32", query="width height depth", type="b32", ptx=(4, 3), sm=30)

row("istypep", tier=3, doc=f"{_TEXTURE}istypep")
form("istypep.kind p, a:u64", kind="texref samplerref surfref", ptx=(4, 0), sm=30)

# --- surfaces ----------------------------------------------------------------------------------------------------

_COORDS = (("1d", "b:s32"), ("1d", "{b*1}:s32"), ("2d", "{b*2}:s32"), ("3d", "{b*4}:s32"))
_ARRAYS = (("a1d", "{b*2}:s32"), ("a2d", "{b*4}:s32"))
_CLAMP = "trap clamp zero"
#: (vectors, types): up to 16 bytes.
_BYTES = (("v2 v4", "b8 b16 b32"), ("v2", "b64"))

for geom, coords in (*_COORDS, *_ARRAYS):
    since, least = ((3, 0), 20) if geom in ("a1d", "a2d") else ((1, 5), 20)
    for vecs, types in _BYTES:
        row("suld", tier=3, doc=f"{_SURFACE}suld")
        form(f"suld:b.geom{{.cop}}{{.vec}}.type.clamp d.vec~, [a,{coords}]:b64", geom=geom, cop="ca cg cs cv", vec=vecs,
             type=types, clamp=_CLAMP, ptx=since, sm=least)  # fmt: skip
        row("sust", tier=3, doc=f"{_SURFACE}sust")
        form(f"sust:b.geom{{.cop}}{{.vec}}.type.clamp [a,{coords}]:b64, c.vec~", geom=geom, cop="wb cg cs wt", vec=vecs,
             type=types, clamp=_CLAMP, ptx=since, sm=least)  # fmt: skip
    since, least = ((4, 1), 30) if geom in ("a1d", "a2d") else ((2, 0), 20)
    form(f"sust:p.geom{{.vec}}.type.clamp [a,{coords}]:b64, c.vec", geom=geom, type="b32", clamp=_CLAMP, ptx=since,
         sm=least)  # fmt: skip

row("sured", tier=3, doc=f"{_SURFACE}sured")
for geom, coords in _COORDS:
    for letter, op, types in (
        ("b", "add min max", "u32 s32"),
        ("b", "add", "u64"),
        ("b", "min max", "u64 s64"),
        ("b", "and or", "b32"),
        ("p", "add min max and or", "b32"),
        ("p", "min max", "b64"),
    ):
        wide = op == "min max"
        form(f"sured:{letter}.op.geom.type.clamp [a,{coords}]:b64, c", op=op, geom=geom, type=types, clamp=_CLAMP,
             ptx=(8, 1) if wide else (2, 0), sm=50 if wide else 20)  # fmt: skip

row("suq", tier=3, doc=f"{_SURFACE}suq")
form("suq.query.type d, [a]:b64", type="b32", ptx=(1, 5),
     query="width height depth channel_data_type channel_order array_size memory_layout")  # fmt: skip
