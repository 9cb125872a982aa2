"""Integer and floating-point arithmetic, comparison, logic and control flow (PTX ISA 9.7.1 to 9.7.8 and 9.7.12)."""

from __future__ import annotations

from teenycli.ptx.isa import SLOTS, TABLE

row, form = TABLE.row, TABLE.form

INTS = "u16 u32 u64 s16 s32 s64"
WORDS = "u32 s32 u64 s64"
HALVES = "f16 f16x2"
BHALVES = "bf16 bf16x2"
CMP_INT = SLOTS["cmp"]
CMP_UINT = f"{CMP_INT} lo ls hi hs"
CMP_FLOAT = f"{CMP_INT} equ neu ltu leu gtu geu num nan"

# --- integer arithmetic ------------------------------------------------------------------------------------------

for opcode in ("add", "sub"):
    row(opcode, tier=1, doc=f"Integer Arithmetic Instructions: {opcode}")
    form(f"{opcode}.type d, a, b", type="u16 u32 u64 s16 s64")
    form(f"{opcode}{{.sat}}.type d, a, b", type="s32")
    form(f"{opcode}.cc.type d, a, b", type=WORDS, ptx=(1, 2))

row("add", tier=1, doc="Integer Arithmetic Instructions: add")
form("add.type d, a, b", type="u16x2 s16x2", ptx=(8, 0), sm=90)
form("add.sat.type d, a, b", type="u32 u16x2 s16x2", ptx=(9, 2), sm=120, suffix="f")

for opcode in ("add", "sub"):
    row(opcode, tier=1, doc=f"Integer Arithmetic Instructions: {opcode}")
    form(f"{opcode}{{.sat}}.type d, a, b", type="u8x4 s8x4", ptx=(9, 2), sm=120, suffix="f")

for opcode in ("addc", "subc"):
    row(opcode, tier=1, doc=f"Extended-Precision Integer Arithmetic Instructions: {opcode}")
    form(f"{opcode}{{.cc}}.type d, a, b", type=WORDS, ptx=(1, 2))

row("mul", tier=1, doc="Integer Arithmetic Instructions: mul")
form("mul:mode.type d, a, b", mode="hi lo", type=INTS)
form("mul:mode.type d:wide, a, b", mode="wide", type="u16 u32 s16 s32")

row("mad", tier=1, doc="Integer Arithmetic Instructions: mad")
form("mad:mode.type d, a, b, c", mode="hi lo", type=INTS)
form("mad:mode.type d:wide, a, b, c:wide", mode="wide", type="u16 u32 s16 s32")
form("mad:mode.sat.type d, a, b, c", mode="hi", type="s32")
form("mad:mode.cc.type d, a, b, c", mode="hi lo", type=WORDS, ptx=(3, 0))

row("madc", tier=1, doc="Extended-Precision Integer Arithmetic Instructions: madc")
form("madc:mode{.cc}.type d, a, b, c", mode="hi lo", type=WORDS, ptx=(3, 0))

row("mul24", tier=1, doc="Integer Arithmetic Instructions: mul24")
form("mul24:mode.type d, a, b", mode="hi lo", type="u32 s32")

row("mad24", tier=1, doc="Integer Arithmetic Instructions: mad24")
form("mad24:mode.type d, a, b, c", mode="hi lo", type="u32 s32")
form("mad24:mode.sat.type d, a, b, c", mode="hi", type="s32")

row("clmad", tier=1, doc="Integer Arithmetic Instructions: clmad")
form("clmad:mode.type d, a, b, c", mode="lo hi", type="u64", ptx=(9, 3), sm=80)

row("sad", tier=1, doc="Integer Arithmetic Instructions: sad")
form("sad.type d, a, b, c", type=INTS)

row("div", tier=1, doc="Integer Arithmetic Instructions: div")
form("div.type d, a, b", type=INTS)

row("rem", tier=1, doc="Integer Arithmetic Instructions: rem")
form("rem.type d, a, b", type=INTS)

for opcode in ("abs", "neg"):
    row(opcode, tier=1, doc=f"Integer Arithmetic Instructions: {opcode}")
    form(f"{opcode}.type d, a", type="s16 s32 s64")

row("neg", tier=1, doc="Integer Arithmetic Instructions: neg")
form("neg.type d, a", type="s8x4", ptx=(9, 2), sm=120, suffix="f")

for opcode in ("min", "max"):
    row(opcode, tier=1, doc=f"Integer Arithmetic Instructions: {opcode}")
    form(f"{opcode}.type d, a, b", type=INTS)
    form(f"{opcode}.type d, a, b", type="u16x2 s16x2", ptx=(8, 0), sm=90)
    form(f"{opcode}.relu.type d, a, b", type="s16x2 s32", ptx=(8, 0), sm=90)
    form(f"{opcode}.type d, a, b", type="u8x4", ptx=(9, 2), sm=120, suffix="f")
    form(f"{opcode}{{.relu}}.type d, a, b", type="s8x4", ptx=(9, 2), sm=120, suffix="f")

for opcode in ("popc", "clz"):
    row(opcode, tier=1, doc=f"Integer Arithmetic Instructions: {opcode}")
    form(f"{opcode}.type d:u32, a", type="b32 b64", ptx=(2, 0), sm=20)

row("bfind", tier=1, doc="Integer Arithmetic Instructions: bfind")
form("bfind{.shiftamt}.type d:u32, a", type=WORDS, ptx=(2, 0), sm=20)

row("fns", tier=1, doc="Integer Arithmetic Instructions: fns")
form("fns.type d, a, b, c", type="b32", ptx=(6, 0), sm=30)

row("brev", tier=1, doc="Integer Arithmetic Instructions: brev")
form("brev.type d, a", type="b32 b64", ptx=(2, 0), sm=20)

row("bfe", tier=1, doc="Integer Arithmetic Instructions: bfe")
form("bfe.type d, a, b:u32, c:u32", type=WORDS, ptx=(2, 0), sm=20)

row("bfi", tier=1, doc="Integer Arithmetic Instructions: bfi")
form("bfi.type d, a, b, c:u32, e:u32", type="b32 b64", ptx=(2, 0), sm=20)

row("szext", tier=1, doc="Integer Arithmetic Instructions: szext")
form("szext.mode.type d, a, b:u32", mode="clamp wrap", type="u32 s32", ptx=(7, 6), sm=70)

row("bmsk", tier=1, doc="Integer Arithmetic Instructions: bmsk")
form("bmsk.mode.type d:u32, a:u32, b:u32", mode="clamp wrap", type="b32", ptx=(7, 6), sm=70)

row("dp4a", tier=1, doc="Integer Arithmetic Instructions: dp4a")
form("dp4a.atype.btype d:u32, a:u32, b:u32, c:u32", atype="u32 s32", btype="u32 s32", ptx=(5, 0), sm=61)

row("dp2a", tier=1, doc="Integer Arithmetic Instructions: dp2a")
form("dp2a:mode.atype.btype d:u32, a:u32, b:u32, c:u32", mode="lo hi", atype="u32 s32", btype="u32 s32",
     ptx=(5, 0), sm=61)  # fmt: skip

# --- floating-point arithmetic -----------------------------------------------------------------------------------

for opcode in ("add", "sub", "mul"):
    row(opcode, tier=1, doc=f"Floating Point Instructions: {opcode}")
    form(f"{opcode}{{.rnd}}{{.ftz}}{{.sat}}.type d, a, b", type="f32")
    form(f"{opcode}{{.rnd}}.type d, a, b", type="f64", sm=13)
    form(f"{opcode}{{.rnd}}{{.ftz}}.type d, a, b", type="f32x2", ptx=(8, 6), sm=100, tier=2)
    form(f"{opcode}{{.rnd}}{{.ftz}}{{.sat}}.type d, a, b", rnd="rn", type=HALVES, ptx=(4, 2), sm=53)
    form(f"{opcode}{{.rnd}}.type d, a, b", rnd="rn", type=BHALVES, ptx=(7, 8), sm=90)

for opcode in ("add", "sub"):
    row(opcode, tier=1, doc=f"Mixed Precision Floating Point Instructions: {opcode}")
    form(f"{opcode}{{.rnd}}{{.sat}}.type.atype d, a:atype, c", type="f32", atype="f16 bf16", ptx=(8, 6),
         sm=100)  # fmt: skip

row("mad", tier=1, doc="Floating Point Instructions: mad")
form("mad.rnd{.ftz}{.sat}.type d, a, b, c", type="f32", sm=20)
form("mad.rnd.type d, a, b, c", type="f64", sm=13)

row("fma", tier=1, doc="Floating Point Instructions: fma")
form("fma.rnd{.ftz}{.sat}.type d, a, b, c", type="f32", ptx=(2, 0), sm=20)
form("fma.rnd.type d, a, b, c", type="f64", ptx=(1, 4), sm=13)
form("fma.rnd{.ftz}.type d, a, b, c", type="f32x2", ptx=(8, 6), sm=100, tier=2)
form("fma.rnd{.ftz}{.sat}.type d, a, b, c", rnd="rn", type=HALVES, ptx=(4, 2), sm=53)
form("fma.rnd{.ftz}.relu.type d, a, b, c", rnd="rn", type=HALVES, ptx=(7, 0), sm=80)
form("fma.rnd{.relu}.type d, a, b, c", rnd="rn", type=BHALVES, ptx=(7, 0), sm=80)
form("fma.rnd.oob{.relu}.type d, a, b, c", rnd="rn", type=f"{HALVES} {BHALVES}", ptx=(8, 1), sm=90)
form("fma.rnd.oob.sat.type d, a, b, c", rnd="rn", type=HALVES, ptx=(8, 1), sm=90)
form("fma.rnd{.sat}.type.atype d, a:atype, b:atype, c", type="f32", atype="f16 bf16", ptx=(8, 6), sm=100)

row("div", tier=1, doc="Floating Point Instructions: div")
form("div.approx{.ftz}.type d, a, b", type="f32")
form("div:full{.ftz}.type d, a, b", type="f32")
form("div.rnd{.ftz}.type d, a, b", type="f32", ptx=(2, 0), sm=20)
form("div.rnd.type d, a, b", type="f64", ptx=(1, 4), sm=13)

for opcode in ("abs", "neg"):
    row(opcode, tier=1, doc=f"Floating Point Instructions: {opcode}")
    form(f"{opcode}{{.ftz}}.type d, a", type="f32")
    form(f"{opcode}.type d, a", type="f64", sm=13)
    form(f"{opcode}{{.ftz}}.type d, a", type=HALVES, ptx=(6, 5) if opcode == "abs" else (6, 0), sm=53)
    form(f"{opcode}.type d, a", type=BHALVES, ptx=(7, 0), sm=80)

for opcode in ("min", "max"):
    row(opcode, tier=1, doc=f"Floating Point Instructions: {opcode}")
    form(f"{opcode}{{.ftz}}{{.nan}}.type d, a, b", type="f32")
    form(f"{opcode}{{.ftz}}{{.nan}}.xorsign.abs.type d, a, b", type="f32", ptx=(7, 2), sm=86)
    form(f"{opcode}{{.ftz}}{{.nan}}{{.abs}}.type d, a, b, c", type="f32", ptx=(8, 8), sm=100)
    form(f"{opcode}.type d, a, b", type="f64", sm=13)
    form(f"{opcode}{{.ftz}}{{.nan}}.type d, a, b", type=HALVES, ptx=(7, 0), sm=80)
    form(f"{opcode}{{.ftz}}{{.nan}}.xorsign.abs.type d, a, b", type=HALVES, ptx=(7, 2), sm=86)
    form(f"{opcode}{{.nan}}.type d, a, b", type=BHALVES, ptx=(7, 0), sm=80)
    form(f"{opcode}{{.nan}}.xorsign.abs.type d, a, b", type=BHALVES, ptx=(7, 2), sm=86)

row("testp", tier=1, doc="Floating Point Instructions: testp")
form("testp.op.type p, a", op="finite infinite number notanumber normal subnormal", type="f32 f64", ptx=(2, 0), sm=20)

row("copysign", tier=1, doc="Floating Point Instructions: copysign")
form("copysign.type d, a, b", type="f32 f64", ptx=(2, 0), sm=20)

for opcode in ("rcp", "sqrt"):
    row(opcode, tier=1, doc=f"Floating Point Instructions: {opcode}")
    form(f"{opcode}.approx{{.ftz}}.type d, a", type="f32")
    form(f"{opcode}.rnd{{.ftz}}.type d, a", type="f32", ptx=(2, 0), sm=20)
    form(f"{opcode}.rnd.type d, a", type="f64", ptx=(1, 4), sm=13)

row("rcp", tier=1, doc="Floating Point Instructions: rcp.approx.ftz.f64")
form("rcp.approx.ftz.type d, a", type="f64", ptx=(2, 1), sm=20)

row("rsqrt", tier=1, doc="Floating Point Instructions: rsqrt")
form("rsqrt.approx{.ftz}.type d, a", type="f32")
form("rsqrt.approx{.ftz}.type d, a", type="f64", sm=13)

for opcode in ("sin", "cos", "lg2", "ex2"):
    row(opcode, tier=1, doc=f"Floating Point Instructions: {opcode}")
    form(f"{opcode}.approx{{.ftz}}.type d, a", type="f32")

row("ex2", tier=1, doc="Half Precision Floating Point Instructions: ex2")
form("ex2.approx.type d, a", type=HALVES, ptx=(7, 0), sm=75)
form("ex2.approx.ftz.type d, a", type=BHALVES, ptx=(7, 8), sm=90)

row("tanh", tier=1, doc="Floating Point Instructions: tanh")
form("tanh.approx.type d, a", type="f32", ptx=(7, 0), sm=75)
form("tanh.approx.type d, a", type=HALVES, ptx=(7, 0), sm=75)
form("tanh.approx.type d, a", type=BHALVES, ptx=(7, 8), sm=90)

# What PTX before 1.4 let out, .approx for single precision and .rn for double, and what sm_1x rounded its own way.
for opcode, types in (("div", "f32 f64"), ("rcp", "f32"), ("sqrt", "f32 f64"), ("rsqrt", "f32 f64"), ("sin", "f32"),
                      ("cos", "f32"), ("lg2", "f32"), ("ex2", "f32")):  # fmt: skip
    row(opcode, tier=1, doc=f"Floating Point Instructions: {opcode}")
    form(f"{opcode}.type d, a{', b' if opcode == 'div' else ''}", type=types, until=(1, 3))
row("mad", tier=1, doc="Floating Point Instructions: mad")
form("mad{.sat}.type d, a, b, c", type="f32", until=(1, 4), gone_sm=20)
form("mad.type d, a, b, c", type="f64", sm=13, until=(1, 3))

# --- comparison and selection ------------------------------------------------------------------------------------

#: Comparisons by source type: (comparisons, types, whether .ftz may be there, PTX version, sm).
_COMPARED = (
    ("eq ne", "b16 b32 b64", "", (1, 0), 0),
    (CMP_UINT, "u16 u32 u64", "", (1, 0), 0),
    (CMP_INT, "s16 s32 s64", "", (1, 0), 0),
    (CMP_FLOAT, "f32", "{.ftz}", (1, 0), 0),
    (CMP_FLOAT, "f64", "", (1, 0), 13),
    (CMP_FLOAT, "f16", "{.ftz}", (4, 2), 53),
    (CMP_FLOAT, "bf16", "", (7, 8), 90),
)

row("set", tier=1, doc="Comparison and Selection Instructions: set")


def _set(cmp: str, dtypes: str, types: str, ftz: str, ptx: tuple[int, int], sm: int) -> None:
    """Two forms: the bare comparison, and one combined with a predicate."""
    tail = f"{ftz}.dtype.atype d:dtype, a:atype, b:atype"
    form(f"set.cmp{tail}", cmp=cmp, dtype=dtypes, atype=types, ptx=ptx, sm=sm)
    form(f"set.cmp.bool{tail}, !c", cmp=cmp, dtype=dtypes, atype=types, ptx=ptx, sm=sm)


for cmp, types, ftz, ptx, sm in _COMPARED:
    half = types in ("f16", "bf16")
    _set(cmp, "u16 s16 u32 s32" if half else "u32 s32 f32", types, ftz, max(ptx, (6, 5)) if half else ptx, sm)
    if types != "bf16":
        _set(cmp, "f16", types, ftz, (4, 2), 53)
    _set(cmp, "bf16", types, "", (7, 8), 90)
_set(CMP_FLOAT, "f16x2 u32 s32", "f16x2", "{.ftz}", (4, 2), 53)
_set(CMP_FLOAT, "bf16x2 u32 s32", "bf16x2", "", (7, 8), 90)

row("setp", tier=1, doc="Comparison and Selection Instructions: setp")
for cmp, types, ftz, ptx, sm in (
    *_COMPARED,
    (CMP_FLOAT, "f16x2", "{.ftz}", (4, 2), 53),
    (CMP_FLOAT, "bf16x2", "", (7, 8), 90),
):
    dest = "p^" if types in ("f16", "bf16") else "p^{|q}^"
    form(f"setp.cmp{ftz}.type {dest}, a, b", cmp=cmp, type=types, ptx=ptx, sm=sm)
    form(f"setp.cmp.bool{ftz}.type {dest}, a, b, !c", cmp=cmp, type=types, ptx=ptx, sm=sm)

row("selp", tier=1, doc="Comparison and Selection Instructions: selp")
form("selp.type d, a, b, !c", type=f"b16 b32 b64 {INTS} f32 f64")

row("slct", tier=1, doc="Comparison and Selection Instructions: slct")
form("slct.dtype.ctype d:dtype, a:dtype, b:dtype, c:ctype", dtype=f"b16 b32 b64 {INTS} f32 f64", ctype="s32")
form("slct{.ftz}.dtype.ctype d:dtype, a:dtype, b:dtype, c:ctype", dtype=f"b16 b32 b64 {INTS} f32 f64", ctype="f32")

# --- logic and shift ---------------------------------------------------------------------------------------------

for opcode in ("and", "or", "xor"):
    row(opcode, tier=1, doc=f"Logic and Shift Instructions: {opcode}")
    form(f"{opcode}.type d, a, b", type="b16 b32 b64")
    form(f"{opcode}.type d, !a, !b", type="pred")

row("not", tier=1, doc="Logic and Shift Instructions: not")
form("not.type d, a", type="b16 b32 b64")
form("not.type d, !a", type="pred")

row("cnot", tier=1, doc="Logic and Shift Instructions: cnot")
form("cnot.type d, a", type="b16 b32 b64")

row("lop3", tier=1, doc="Logic and Shift Instructions: lop3")
form("lop3.type d, a, b, c, #lut:b32", type="b32", ptx=(4, 3), sm=50)
form("lop3.bool.type d^|p, a, b, c, #lut:b32, !e", bool="or and", type="b32", ptx=(8, 2), sm=70)

row("shf", tier=1, doc="Logic and Shift Instructions: shf")
form("shf:op.mode.type d, a, b, c:u32", op="l r", mode="clamp wrap", type="b32", ptx=(3, 1), sm=32)

row("shl", tier=1, doc="Logic and Shift Instructions: shl")
form("shl.type d, a, b:u32", type="b16 b32 b64")

row("shr", tier=1, doc="Logic and Shift Instructions: shr")
form("shr.type d, a, b:u32", type=f"b16 b32 b64 {INTS}")

row("prmt", tier=1, doc="Data Movement and Conversion Instructions: prmt")
form("prmt.type{.mode} d, a, b, c", type="b32", mode="f4e b4e rc8 ecl ecr rc16", ptx=(2, 0), sm=20)

# --- control flow, stack and miscellaneous -----------------------------------------------------------------------

row("bra", tier=1, doc="Control Flow Instructions: bra")
form("bra{.uni} @t")

row("brx", tier=1, doc="Control Flow Instructions: brx.idx")
form("brx:idx{.uni} a:u32, @@t", ptx=(6, 0), sm=30)

row("call", tier=1, doc="Control Flow Instructions: call")
form("call{.uni}")

row("ret", tier=1, doc="Control Flow Instructions: ret")
form("ret{.uni}")

row("exit", tier=1, doc="Control Flow Instructions: exit")
form("exit")

row("trap", tier=1, doc="Miscellaneous Instructions: trap")
form("trap")

row("brkpt", tier=1, doc="Miscellaneous Instructions: brkpt")
form("brkpt", sm=11)

row("pmevent", tier=1, doc="Miscellaneous Instructions: pmevent")
form("pmevent #a:u32", ptx=(1, 4))
form("pmevent.mask #a:u32", ptx=(3, 0), sm=20)

row("nanosleep", tier=2, doc="Miscellaneous Instructions: nanosleep")
form("nanosleep.type a", type="u32", ptx=(6, 3), sm=70)

row("alloca", tier=1, doc="Stack Manipulation Instructions: alloca")
form("alloca.type d, a{, #align:u32}", type="u32 u64", ptx=(7, 3), sm=52)

row("stacksave", tier=1, doc="Stack Manipulation Instructions: stacksave")
form("stacksave.type d", type="u32 u64", ptx=(7, 3), sm=52)

row("stackrestore", tier=1, doc="Stack Manipulation Instructions: stackrestore")
form("stackrestore.type $a", type="u32 u64", ptx=(7, 3), sm=52)
