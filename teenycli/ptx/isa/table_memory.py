"""Data movement and conversion: mov, cvt, loads, stores, addresses and cache control (PTX ISA 9.7.9)."""

from __future__ import annotations

from teenycli.ptx.isa import POLICY, SHARED, TABLE

row, form = TABLE.row, TABLE.form

INTS = "u8 u16 u32 u64 s8 s16 s32 s64"
#: What memory holds, by size.
SUBWORDS = "b8 b16 u8 u16 s8 s16"
WORDS = "b32 u32 s32 f32"
LARGE = "b64 u64 s64 f64"
UP_TO_64 = f"{SUBWORDS} {WORDS} {LARGE}"

#: What one load or store moves: (modifier, vectors, types, whether only in global memory, PTX version, sm).
#: Eight sub-words are not in the ISA; ptxas takes them. Thirty-two bytes came with sm_100.
_WIDTHS = (
    ("{.vec}", "v2 v4 v8", SUBWORDS, False, (1, 0), 0),
    ("{.vec}", "v2 v4", WORDS, False, (1, 0), 0),
    ("{.vec}", "v2", LARGE, False, (1, 0), 0),
    ("", "", "b128", False, (8, 3), 70),
    (".vec", "v8", WORDS, True, (8, 8), 100),
    (".vec", "v4", LARGE, True, (8, 8), 100),
)


def _transfers(head: str, operands: str, *, space: str, ptx: tuple[int, int] = (1, 0), sm: int = 0, tier: int = 1,
               **classes: str) -> None:  # fmt: skip
    """A form for each width. In ``head``, ``{.evict2}`` stands only where 32 bytes move, ``!`` for .vec and type."""
    for vec_slot, vecs, types, is_global, since, least in _WIDTHS:
        if is_global and "global" not in space.split():
            continue
        text = (head if is_global else head.replace("{.evict2}", "")).replace("!", f"{vec_slot}.type")
        text += " " + (operands.replace("b.vec~", "b.vec~^") if is_global else operands)
        slots = classes | ({"vec": vecs} if vec_slot else {})
        form(text, slots, space="global" if is_global else space, type=types, ptx=max(ptx, since),
             sm=max(sm, least), tier=tier)  # fmt: skip


# --- mov ---------------------------------------------------------------------------------------------------------

_MOVABLE = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"

row("mov", tier=1, doc="Data Movement and Conversion Instructions: mov")
form("mov.type d, %a", type=_MOVABLE)
form("mov.type d, %!a", type="pred")
form("mov.type d, a", type="b128", ptx=(8, 3), sm=70)
form("mov.type d, {a}:any", type="b16 b32 b64")
form("mov.type {d}:any, $a", type="b16 b32 b64")
form("mov.type d, {a*2}:b64", type="b128", ptx=(8, 3), sm=70)
form("mov.type {d*2}:b64, $a", type="b128", ptx=(8, 3), sm=70)
form("mov.vec.type d.vec, %a.vec", type="b16 b32 u16 u32 s16 s32 f32")
form("mov.vec.type d.vec, %a.vec", vec="v2", type="b64 u64 s64 f64")

# --- ld, st, ldu -------------------------------------------------------------------------------------------------

_LD_COP = "ca cg cs lu cv"

row("ld", tier=1, doc="Data Movement and Conversion Instructions: ld")
_transfers("ld{.sem}{.space}{.cop}{.evict2}{.cachehint}{.prefetch}!", f"d.vec~, [a].unified, {POLICY}",
           sem="weak", space="global", cop=_LD_COP)  # fmt: skip
_transfers("ld{.sem}{.space}.evict{.evict2}{.cachehint}{.prefetch}!", f"d.vec~, [a].unified, {POLICY}",
           sem="weak", space="global", ptx=(7, 4), sm=70)  # fmt: skip
_transfers("ld{.sem}.space{.cop}!", "d.vec~, [a]", sem="weak",
           space=f"const local param param::entry param::func {SHARED}", cop=_LD_COP)  # fmt: skip
_transfers("ld.sem{.space}{.prefetch}!", "d.vec~, [a]", sem="volatile", space="global")
_transfers("ld.sem.space!", "d.vec~, [a]", sem="volatile", space=SHARED)
_transfers("ld.sem.space!", "d.vec~, [a]", sem="volatile", space="local", ptx=(9, 1))
_transfers("ld.sem.scope{.space}{.evict}{.evict2}{.cachehint}{.prefetch}!", f"d.vec~, [a], {POLICY}",
           sem="relaxed acquire", space="global", ptx=(6, 0), sm=70, tier=2)  # fmt: skip
_transfers("ld.sem.scope.space!", "d.vec~, [a]", sem="relaxed acquire", space=SHARED, ptx=(6, 0), sm=70, tier=2)
for sem, ptx in (("relaxed", (8, 2)), ("acquire", (9, 3))):
    form("ld.mmio.sem.scope{.space}.type d~, [a]", sem=sem, scope="sys", space="global", type=UP_TO_64,
         ptx=ptx, sm=70, tier=2)  # fmt: skip
_transfers("ld.space{.cop}.nc{.evict2}{.cachehint}{.prefetch}!", f"d.vec~, [a], {POLICY}", space="global",
           cop="ca cg cs", ptx=(3, 1), sm=32)  # fmt: skip
_transfers("ld.space.nc.evict{.evict2}{.cachehint}{.prefetch}!", f"d.vec~, [a], {POLICY}", space="global",
           ptx=(7, 4), sm=70)  # fmt: skip

row("ldu", tier=1, doc="Data Movement and Conversion Instructions: ldu")
form("ldu{.space}{.vec}.type d.vec~, [a]", space="global", type=f"{SUBWORDS} {WORDS}", ptx=(2, 0), sm=20)
form("ldu{.space}{.vec}.type d.vec~, [a]", space="global", vec="v2", type=LARGE, ptx=(2, 0), sm=20)
form("ldu{.space}.type d, [a]", space="global", type="b128", ptx=(8, 3), sm=70)

row("st", tier=1, doc="Data Movement and Conversion Instructions: st")
_ST_COP = "wb cg cs wt"
_transfers("st{.sem}{.space}{.cop}{.evict2}{.cachehint}!", f"[a], b.vec~, {POLICY}", sem="weak", space="global",
           cop=_ST_COP)  # fmt: skip
_transfers("st{.sem}{.space}.evict{.evict2}{.cachehint}!", f"[a], b.vec~, {POLICY}", sem="weak", space="global",
           ptx=(7, 4), sm=70)  # fmt: skip
_transfers("st{.sem}.space{.cop}!", "[a], b.vec~", sem="weak", space=f"local param param::func {SHARED}", cop=_ST_COP)
_transfers("st.sem{.space}!", "[a], b.vec~", sem="volatile", space=f"global {SHARED}")
_transfers("st.sem.space!", "[a], b.vec~", sem="volatile", space="local", ptx=(9, 1))
_transfers("st.sem.scope{.space}{.evict}{.evict2}{.cachehint}!", f"[a], b.vec~, {POLICY}",
           sem="relaxed release", space="global", ptx=(6, 0), sm=70, tier=2)  # fmt: skip
_transfers("st.sem.scope.space!", "[a], b.vec~", sem="relaxed release", space=SHARED, ptx=(6, 0), sm=70, tier=2)
for sem, ptx in (("relaxed", (8, 2)), ("release", (9, 3))):
    form("st.mmio.sem.scope{.space}.type [a], b~", sem=sem, scope="sys", space="global", type=UP_TO_64,
         ptx=ptx, sm=70, tier=2)  # fmt: skip

# --- caches ------------------------------------------------------------------------------------------------------

row("prefetch", tier=1, doc="Data Movement and Conversion Instructions: prefetch, prefetchu")
form("prefetch{.space}.level [a]", space="global local", level="L1 L2", ptx=(2, 0), sm=20)
form("prefetch{.space}.evict2 [a]", space="global", evict2="L2::evict_last L2::evict_normal", ptx=(7, 4), sm=80)
form("prefetch{.space}.tensormap [a]", space="const param", ptx=(8, 0), sm=90, tier=3)

row("prefetchu", tier=1, doc="Data Movement and Conversion Instructions: prefetch, prefetchu")
form("prefetchu.level [a]", level="L1", ptx=(2, 0), sm=20)

row("applypriority", tier=1, doc="Data Movement and Conversion Instructions: applypriority")
form("applypriority{.space}.evict2 [a], #size:b64", space="global", evict2="L2::evict_normal", ptx=(7, 4), sm=80)

row("discard", tier=1, doc="Data Movement and Conversion Instructions: discard")
form("discard{.space}.level [a], #size:b64", space="global", level="L2", ptx=(7, 4), sm=80)

row("createpolicy", tier=1, doc="Data Movement and Conversion Instructions: createpolicy")
form("createpolicy:range{.space}.evict{.evict2}.type d:u64, [a], size:u32, total:u32", space="global",
     evict="L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged",
     evict2="L2::evict_first L2::evict_unchanged", type="b64", ptx=(7, 4), sm=80)  # fmt: skip
form("createpolicy:fractional.evict{.evict2}.type d:u64{, a:f32}",
     evict="L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged",
     evict2="L2::evict_first L2::evict_unchanged", type="b64", ptx=(7, 4), sm=80)  # fmt: skip
form("createpolicy:cvt.level.type d:u64, a:u64", level="L2", type="b64", ptx=(7, 4), sm=80)

# --- addresses ---------------------------------------------------------------------------------------------------

#: Windows of the generic address space: (spaces, PTX version, sm).
_WINDOWS = (
    ("global local shared", (2, 0), 20),
    ("const", (3, 1), 20),
    ("param", (7, 7), 70),
    ("shared::cta", (7, 8), 20),
    ("shared::cluster", (7, 8), 90),
    ("param::entry", (8, 3), 70),
)

row("isspacep", tier=1, doc="Data Movement and Conversion Instructions: isspacep")
for space, ptx, sm in _WINDOWS:
    for width in ("u32", "u64"):
        form(f"isspacep.space p, a:{width}", space=space, ptx=ptx, sm=sm)

row("cvta", tier=1, doc="Data Movement and Conversion Instructions: cvta")
for space, ptx, sm in _WINDOWS:
    form("cvta.space.type d, &a", space=space, type="u32 u64", ptx=ptx, sm=sm)
    form("cvta:to.space.type d, a", space=space, type="u32 u64", ptx=ptx, sm=sm)

row("mapa", tier=2, doc="Data Movement and Conversion Instructions: mapa")
form("mapa{.space}.type d, &a, b:u32", space="shared::cluster", type="u32 u64", ptx=(7, 8), sm=90)

row("getctarank", tier=2, doc="Data Movement and Conversion Instructions: getctarank")
form("getctarank{.space}.type d:u32, &a", space="shared::cluster", type="u32 u64", ptx=(7, 8), sm=90)

# --- cvt ---------------------------------------------------------------------------------------------------------

row("cvt", tier=1, doc="Data Movement and Conversion Instructions: cvt")


def _cvt(modifiers: str, dtype: str, atype: str, operands: str = "d~:dtype, %a~:atype", *,
         ptx: tuple[int, int] = (1, 0), sm: int = 0, suffix: str = "", **classes: str) -> None:  # fmt: skip
    form(f"cvt{modifiers}.dtype.atype {operands}", classes, dtype=dtype, atype=atype, ptx=ptx, sm=sm, suffix=suffix)


def _range(type: str) -> tuple[int, int]:
    bits = int(type[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


_NEAREST = "rni rzi rmi rpi"
_cvt("", INTS, INTS)
for to in INTS.split():
    # Only where a value can lie outside.
    low, high = _range(to)
    _cvt(".sat", to, " ".join(of for of in INTS.split() if _range(of)[0] < low or _range(of)[1] > high))
_cvt(".rnd{.ftz}{.sat}", "f32", INTS)
_cvt(".rnd{.sat}", "f16 f64", INTS)
_cvt(".rnd{.ftz}{.sat}", INTS, "f32", rnd=_NEAREST)
_cvt(".rnd{.sat}", INTS, "f16 f64", rnd=_NEAREST)
_cvt("{.rnd}{.ftz}{.sat}", "f32", "f32", rnd=_NEAREST)
_cvt("{.rnd}{.sat}", "f64", "f64", rnd=_NEAREST, sm=13)
_cvt("{.rnd}{.sat}", "f16", "f16", rnd=_NEAREST)
_cvt(".rnd{.ftz}{.sat}", "f16", "f32")
_cvt(".rnd{.ftz}{.sat}", "f32", "f64", sm=13)
_cvt(".rnd{.sat}", "f16", "f64", sm=13)
_cvt("{.ftz}{.sat}", "f32", "f16")
_cvt("{.ftz}{.sat}", "f64", "f32", sm=13)
_cvt("{.sat}", "f64", "f16", sm=13)
# The alternate format bf16, for registers of its own width alone, and f16 with the modifiers that came with it.
_EXACT = "d:dtype, %a:atype"
_cvt(".rnd{.relu}", "f16", "f32", rnd="rn rz", ptx=(7, 0), sm=80)
_cvt(".rnd{.relu}", "bf16", "f32", _EXACT, rnd="rn rz", ptx=(7, 0), sm=80)
_cvt(".rnd{.relu}.satfinite", "f16", "f32", rnd="rn rz", ptx=(8, 1), sm=80)
_cvt(".rnd{.relu}.satfinite", "bf16", "f32", _EXACT, rnd="rn rz", ptx=(8, 1), sm=80)
_cvt(".rnd{.ftz}", "bf16", "f32", _EXACT, ptx=(7, 8), sm=90)
_cvt(".rnd", "bf16", "u16 u32 u64 s16 s32 s64 f64", _EXACT, ptx=(7, 8), sm=90)
_cvt(".rnd", "u16 u32 u64 s16 s32 s64", "bf16", _EXACT, rnd=_NEAREST, ptx=(7, 8), sm=90)
_cvt("{.rnd}", "bf16", "bf16", _EXACT, rnd=_NEAREST, ptx=(7, 8), sm=90)
_cvt("{.rnd}", "f16 f64", "bf16", _EXACT, ptx=(7, 8), sm=90)
_cvt("{.rnd}", "bf16", "f16", _EXACT, ptx=(7, 8), sm=90)
_cvt("{.rnd}{.ftz}", "f32", "bf16", _EXACT, ptx=(7, 1), sm=80)
# Pairs in one register: a is the upper half.
_PAIR = "d~:dtype, a:atype, b:atype"
_RANDOM = "d~:dtype, a:atype, b:atype, $c:bits"
_cvt(".rnd{.relu}", "f16x2 bf16x2", "f32", _PAIR, rnd="rn rz", ptx=(7, 0), sm=80)
_cvt(".rnd{.relu}.satfinite", "f16x2 bf16x2", "f32", _PAIR, rnd="rn rz", ptx=(8, 1), sm=80)
_cvt(".rnd{.relu}{.satfinite}", "f16x2 bf16x2", "f32", _RANDOM, rnd="rs", ptx=(8, 7), sm=100, suffix="a")
_cvt(".rnd", "tf32", "f32", "d:dtype, a:atype", rnd="rna", ptx=(7, 0), sm=80)
_cvt(".rnd.satfinite", "tf32", "f32", "d:dtype, a:atype", rnd="rna", ptx=(8, 1), sm=80)
_cvt(".rnd{.relu}", "tf32", "f32", "d:dtype, a:atype", rnd="rn rz", ptx=(7, 8), sm=90)
_cvt(".rnd{.relu}.satfinite", "tf32", "f32", "d:dtype, a:atype", rnd="rn rz", ptx=(8, 6), sm=100)
# sm_90 had these in PTX 7.8 already.
_cvt(".rnd.satfinite{.relu}", "e4m3x2 e5m2x2", "f32", _PAIR, rnd="rn", ptx=(8, 1), sm=89)
_cvt(".rnd.satfinite{.relu}", "e4m3x2 e5m2x2", "f16x2", "d:dtype, a:atype", rnd="rn", ptx=(8, 1), sm=89)
_cvt(".rnd{.relu}", "f16x2", "e4m3x2 e5m2x2", "d:dtype, a:atype", rnd="rn", ptx=(8, 1), sm=89)
_cvt(".rnd.satfinite{.relu}", "e2m1x2 e2m3x2 e3m2x2", "f32", _PAIR, rnd="rn", ptx=(8, 6), sm=100, suffix="f")
_cvt(".rnd{.relu}", "f16x2", "e2m1x2 e2m3x2 e3m2x2", "d:dtype, a:atype", rnd="rn", ptx=(8, 6), sm=100, suffix="f")
_cvt(".rnd.satfinite{.relu}", "e4m3x4 e5m2x4 e2m3x4 e3m2x4 e2m1x4", "f32", "d:dtype, {a*4}:atype, $c:bits", rnd="rs",
     ptx=(8, 7), sm=100, suffix="a")  # fmt: skip
_cvt(".rnd{.satfinite}", "ue8m0x2", "f32", _PAIR, rnd="rz rp", ptx=(8, 6), sm=100, suffix="f")
_cvt(".rnd{.satfinite}", "ue8m0x2", "bf16x2", "d:dtype, a:atype", rnd="rz rp", ptx=(8, 6), sm=100, suffix="f")
_cvt(".rnd", "bf16x2", "ue8m0x2", "d:dtype, a:atype", rnd="rn", ptx=(8, 6), sm=100, suffix="f")
_cvt(".rnd.satfinite{.relu}", "e4m3x2 e5m2x2", "bf16x2", "d:dtype, a:atype", rnd="rn", ptx=(9, 1), sm=100, suffix="f")
_cvt(".rnd.satfinite{.relu}", "e2m1x2 e2m3x2 e3m2x2", "f16x2 bf16x2", "d:dtype, a:atype", rnd="rn", ptx=(9, 1),
     sm=100, suffix="f")  # fmt: skip
# Scales as further operands, a power of two for each number.
_SCALED = {"scaled": "scaled::n2::ue8m0", "rnd": "rn"}
_SCALE = "scale:b16?scaled"
_cvt(".rnd{.satfinite}{.relu}{.scaled}", "bf16x2", "e4m3x2 e5m2x2 e2m1x2 e2m3x2 e3m2x2", f"d:dtype, a:atype, {_SCALE}",
     ptx=(9, 2), sm=100, suffix="f", **_SCALED)  # fmt: skip
_cvt(".rnd.satfinite{.relu}{.scaled}", "s2f6x2", "f32", f"{_PAIR.replace('~', '')}, {_SCALE}", ptx=(9, 1), sm=100,
     suffix="a", **_SCALED)  # fmt: skip
_cvt(".rnd.satfinite{.relu}{.scaled}", "s2f6x2", "bf16x2", f"d:dtype, a:atype, {_SCALE}", ptx=(9, 1), sm=100,
     suffix="a", **_SCALED)  # fmt: skip
_cvt(".rnd{.satfinite}{.relu}{.scaled}", "bf16x2", "s2f6x2", f"d:dtype, a:atype, {_SCALE}", ptx=(9, 1), sm=100,
     suffix="a", **_SCALED)  # fmt: skip
# Integers, saturated and packed.
_cvt(".pack.sat", "u16 s16", "s32", "d:u32, a:atype, b:atype", ptx=(6, 5), sm=72)
for types, sm in (("u8 s8", 72), ("u2 s2 u4 s4", 75)):
    form("cvt:pack.sat.dtype.atype.ctype d:u32, a:atype, b:atype, c:ctype", dtype=types, atype="s32", ctype="b32",
         ptx=(6, 5), sm=sm)  # fmt: skip
