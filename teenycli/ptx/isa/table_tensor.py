"""Tensor cores of warps: ldmatrix, stmatrix, movmatrix, wmma, mma (PTX ISA 9.7.14)."""

from __future__ import annotations

from itertools import product

from teenycli.ptx.isa import OWN_SHARED, TABLE

row, form = TABLE.row, TABLE.form

_MATRIX = "Warp Level Matrix Instructions: "

# --- moving matrices ---------------------------------------------------------------------------------------------

_PADDED = {"dtype": "b8x16", "atype": "b6x16_p32 b4x16_p64"}

row("ldmatrix", tier=3, doc=f"{_MATRIX}ldmatrix")
form("ldmatrix.sync.aligned.shape.num{.trans}{.space}.type {d*num}:b32, [a]", shape="m8n8", num="x1 x2 x4",
     space=OWN_SHARED, type="b16", ptx=(6, 5), sm=75)  # fmt: skip
form("ldmatrix.sync.aligned.shape.num.trans{.space}.type {d*num*2}:b32, [a]", shape="m16n16", num="x1 x2",
     space=OWN_SHARED, type="b8", ptx=(8, 6), sm=100, suffix="f")  # fmt: skip
form("ldmatrix.sync.aligned.shape.num{.space}.dtype.atype {d*num}:b32, [a]", _PADDED, shape="m8n16", num="x1 x2 x4",
     space=OWN_SHARED, ptx=(8, 6), sm=100, suffix="f")  # fmt: skip
form("ldmatrix.sync.aligned.shape.num.trans{.space}.dtype.atype {d*num*2}:b32, [a]", _PADDED, shape="m16n16",
     num="x1 x2", space=OWN_SHARED, ptx=(8, 6), sm=100, suffix="f")  # fmt: skip

row("stmatrix", tier=3, doc=f"{_MATRIX}stmatrix")
form("stmatrix.sync.aligned.shape.num{.trans}{.space}.type [a], ${b*num}:b32", shape="m8n8", num="x1 x2 x4",
     space=OWN_SHARED, type="b16", ptx=(7, 8), sm=90)  # fmt: skip
form("stmatrix.sync.aligned.shape.num.trans{.space}.type [a], ${b*num}:b32", shape="m16n8", num="x1 x2 x4",
     space=OWN_SHARED, type="b8", ptx=(8, 6), sm=100, suffix="f")  # fmt: skip

row("movmatrix", tier=3, doc=f"{_MATRIX}movmatrix")
form("movmatrix.sync.aligned.shape.trans.type d:b32, $a:b32", shape="m8n8", type="b16", ptx=(7, 8), sm=75)

# --- wmma --------------------------------------------------------------------------------------------------------

#: The type of the registers that hold a fragment of elements of a type.
_FRAGMENT = {"f16": "f16x2", "bf16": "bf16x2", "tf32": "tf32", "f32": "f32", "f64": "f64", "s32": "s32"}


def _registers(letter: str, count: int, type: str) -> str:
    """An operand: ``{a*4}:f16x2`` for four registers of f16 elements; integers narrower than 32 bits are b32."""
    return f"{{{letter}*{count}}}:{_FRAGMENT.get(type, 'b32')}"


#: (shapes, type of A and B, types of C and D, registers of A, of B, whether A is row-major and B column-major, PTX
#: version, sm). C and D take 8 registers in the large shapes (4 as f16), 2 in the small.
_WMMA = (
    ("m16n16k16", "f16", "f16 f32", 8, 8, False, (6, 0), 70),
    ("m8n32k16 m32n8k16", "f16", "f16 f32", 8, 8, False, (6, 1), 70),
    ("m16n16k16", "bf16", "f32", 4, 4, False, (7, 0), 80),
    ("m8n32k16", "bf16", "f32", 2, 8, False, (7, 0), 80),
    ("m32n8k16", "bf16", "f32", 8, 2, False, (7, 0), 80),
    ("m16n16k8", "tf32", "f32", 4, 4, False, (7, 0), 80),
    ("m8n8k4", "f64", "f64", 1, 1, False, (7, 0), 80),
    *((shape, type, "s32", a, b, False, (6, 3), 72) for type in ("s8", "u8")
      for shape, a, b in (("m16n16k16", 2, 2), ("m8n32k16", 1, 4), ("m32n8k16", 4, 1))),
    ("m8n8k32", "s4", "s32", 1, 1, True, (6, 3), 75),
    ("m8n8k32", "u4", "s32", 1, 1, True, (6, 3), 75),
    ("m8n8k128", "b1", "s32", 1, 1, True, (6, 3), 75),
)  # fmt: skip
#: (shapes, types, PTX version, sm) of C and D.
_WMMA_RESULTS = (
    ("m16n16k16", "f16 f32", (6, 0), 70),
    ("m8n32k16 m32n8k16", "f16 f32", (6, 1), 70),
    ("m16n16k16 m8n32k16 m32n8k16", "s32", (6, 3), 72),
    ("m8n8k32 m8n8k128", "s32", (6, 3), 75),
    ("m16n16k8", "f32", (7, 0), 80),
    ("m8n8k4", "f64", (7, 0), 80),
)


def _accumulators(shape: str, type: str) -> int:
    return 2 if shape.startswith("m8n8") else 4 if type == "f16" else 8


def _wmma(text: str, slots: dict[str, str], ptx: tuple[int, int], sm: int, until: tuple[int, int] | None = None,
          **classes: str) -> None:  # fmt: skip
    """A form; a second one without ``.aligned``, which PTX before 6.3 did not know."""
    slots = slots | classes
    form(text, slots, ptx=max(ptx, (6, 3)), sm=sm, until=until)
    if ptx < (6, 3):
        slots = {slot: choices.removesuffix(" shared::cta") for slot, choices in slots.items()}
        form(text.replace(".aligned", "", 1), slots, ptx=ptx, sm=sm, until=(6, 2))


row("wmma", tier=3, doc=f"{_MATRIX}wmma")
for shape, types, ptx, sm in _WMMA_RESULTS:
    for type in types.split():
        fragment = _accumulators(shape, type)
        slots = {"shape": shape, "space": f"global {OWN_SHARED}", "layout": "row col", "type": type}
        _wmma(f"wmma:load:c.sync.aligned.layout.shape{{.space}}.type {_registers('d', fragment, type)}, "
              "[a]{, stride:u32}", slots, ptx, sm)  # fmt: skip
        _wmma("wmma:store:d.sync.aligned.layout.shape{.space}.type [a], "
              f"{_registers('b', fragment, type)}{{, stride:u32}}", slots, ptx, sm)  # fmt: skip
for shape, kind, results, a_count, b_count, fixed, ptx, sm in _WMMA:
    for letter, count, layout in (("a", a_count, "row"), ("b", b_count, "col")):
        _wmma(f"wmma:load:{letter}.sync.aligned.layout.shape{{.space}}.type {_registers('d', count, kind)}, "
              "[a]{, stride:u32}", {"shape": shape, "space": f"global {OWN_SHARED}"}, ptx, sm,
              layout=layout if fixed else "row col", type=kind)  # fmt: skip
    inputs = f"{_registers('a', a_count, kind)}, {_registers('b', b_count, kind)}"
    layouts = {"alayout": "row" if fixed else "row col", "blayout": "col" if fixed else "row col"}
    for dtype, ctype in product(results.split(), repeat=2):
        d, c = (_registers(r, _accumulators(shape, t), t) for r, t in (("d", dtype), ("c", ctype)))
        operands = f"{d}, {inputs}, {c}"
        slots = {"shape": shape, "dtype": dtype, "ctype": ctype} | layouts
        if kind == "f16":
            head = "wmma:mma.sync.aligned.alayout.blayout.shape.dtype.ctype"
            _wmma(f"{head} {operands}", slots, ptx, sm)
            _wmma(f"{head}.satfinite {operands}", slots, ptx, sm, until=(6, 4))
            continue
        bits = ".op.popc" if kind == "b1" else ""
        extra = {"f64": "{.rnd}", "s32": "" if bits else "{.satfinite}"}.get(ctype, "")
        _wmma(f"wmma:mma{bits}.sync.aligned.alayout.blayout.shape{extra}.dtype.atype.btype.ctype {operands}",
              slots | ({"op": "xor and"} if bits else {}), ptx, sm, atype=kind, btype=kind)  # fmt: skip

# --- mma ---------------------------------------------------------------------------------------------------------

F8 = "e4m3 e5m2"
F8F6F4 = "e4m3 e5m2 e3m2 e2m3 e2m1"

#: (shape, types of A and B, (type of D, of C) pairs, registers of A, B and of a 32-bit C, further modifiers, PTX, sm).
_MMA: tuple[tuple[str, str, str, int, int, int, str, tuple[int, int], int], ...] = (
    ("m8n8k4", "f16", "f16.f16 f32.f16 f32.f32", 2, 2, 8, "", (6, 4), 70),
    ("m16n8k8", "f16", "f16.f16 f32.f32", 2, 1, 4, "", (6, 5), 75),
    ("m16n8k16", "f16", "f16.f16 f32.f32", 4, 2, 4, "", (7, 0), 80),
    ("m16n8k4", "tf32", "f32.f32", 2, 1, 4, "", (7, 0), 80),
    ("m16n8k8", "tf32", "f32.f32", 4, 2, 4, "", (7, 0), 80),
    ("m16n8k8", "bf16", "f32.f32", 2, 1, 4, "", (7, 0), 80),
    ("m16n8k16", "bf16", "f32.f32", 4, 2, 4, "", (7, 0), 80),
    ("m16n8k16", F8, "f16.f16 f32.f32", 2, 1, 4, "", (8, 7), 89),
    ("m16n8k32", F8, "f32.f32", 4, 2, 4, "", (8, 4), 89),
    ("m16n8k32", F8, "f16.f16", 4, 2, 4, "", (8, 7), 89),
    ("m8n8k4", "f64", "f64.f64", 1, 1, 2, "{.rnd}", (7, 0), 80),
    ("m16n8k4", "f64", "f64.f64", 2, 1, 4, "{.rnd}", (7, 8), 90),
    ("m16n8k8", "f64", "f64.f64", 4, 2, 4, "{.rnd}", (7, 8), 90),
    ("m16n8k16", "f64", "f64.f64", 8, 4, 4, "{.rnd}", (7, 8), 90),
    ("m8n8k16", "s8 u8", "s32.s32", 1, 1, 2, "{.satfinite}", (6, 5), 75),
    ("m16n8k16", "s8 u8", "s32.s32", 2, 1, 4, "{.satfinite}", (7, 0), 80),
    ("m16n8k32", "s8 u8", "s32.s32", 4, 2, 4, "{.satfinite}", (7, 0), 80),
    ("m8n8k32", "s4 u4", "s32.s32", 1, 1, 2, "{.satfinite}", (6, 5), 75),
    ("m16n8k32", "s4 u4", "s32.s32", 2, 1, 4, "{.satfinite}", (7, 0), 80),
    ("m16n8k64", "s4 u4", "s32.s32", 4, 2, 4, "{.satfinite}", (7, 0), 80),
    ("m8n8k128", "b1", "s32.s32", 1, 1, 2, ".op.popc", (7, 0), 75),
    ("m16n8k128", "b1", "s32.s32", 2, 1, 4, ".op.popc", (7, 0), 80),
    ("m16n8k256", "b1", "s32.s32", 4, 2, 4, ".op.popc", (7, 0), 80),
)
#: The same with a sparse A.
_MMA_SPARSE: tuple[tuple[str, str, str, int, int, int, str, tuple[int, int], int], ...] = (
    ("m16n8k16", "f16", "f16.f16 f32.f32", 2, 2, 4, "", (7, 1), 80),
    ("m16n8k32", "f16", "f16.f16 f32.f32", 4, 4, 4, "", (7, 1), 80),
    ("m16n8k16", "bf16", "f32.f32", 2, 2, 4, "", (7, 1), 80),
    ("m16n8k32", "bf16", "f32.f32", 4, 4, 4, "", (7, 1), 80),
    ("m16n8k8", "tf32", "f32.f32", 2, 2, 4, "", (7, 1), 80),
    ("m16n8k16", "tf32", "f32.f32", 4, 4, 4, "", (7, 1), 80),
    ("m16n8k64", F8, "f32.f32", 4, 4, 4, "", (8, 4), 89),
    ("m16n8k32", "s8 u8", "s32.s32", 2, 2, 4, "{.satfinite}", (7, 1), 80),
    ("m16n8k64", "s8 u8", "s32.s32", 4, 4, 4, "{.satfinite}", (7, 1), 80),
    ("m16n8k64", "s4 u4", "s32.s32", 2, 2, 4, "{.satfinite}", (7, 1), 80),
    ("m16n8k128", "s4 u4", "s32.s32", 4, 4, 4, "{.satfinite}", (7, 1), 80),
)
#: Block scaling: (kind, K, types, type of the scales, scale vector, whether it may be left out). A sparse A doubles K.
_SCALED = (
    ("kind::mxf4", 64, "e2m1", "ue8m0", "scale_vec::2X", True),
    ("kind::mxf4nvf4", 64, "e2m1", "ue8m0", "scale_vec::2X", False),
    ("kind::mxf4nvf4", 64, "e2m1", "ue4m3", "scale_vec::4X", False),
    ("kind::mxf8f6f4", 32, F8F6F4, "ue8m0", "scale_vec::1X", True),
)


def _mma(shape: str, types: str, results: str, counts: tuple[int, int, int], extra: str, ptx: tuple[int, int], sm: int,
         *, sp: str = "", scaling: str = "", suffix: str = "", **classes: str) -> None:  # fmt: skip
    """The forms of one shape; ``sp`` says how A is sparse, ``scaling`` are the operands of block scaling."""
    kind = types.split()[0]
    layouts = "row col" if shape == "m8n8k4" and types == "f16" else ""
    for pair in results.split():
        dtype, ctype = pair.split(".")
        d, c = (_registers(r, counts[2] // 2 if t == "f16" else counts[2], t) for r, t in (("d", dtype), ("c", ctype)))
        operands = f"{d}, {_registers('a', counts[0], kind)}, {_registers('b', counts[1], kind)}, {c}"
        if sp:
            operands += ", e:b32, #selector:u32"
        slots = classes | ({"op": "xor and"} if ".op" in extra else {}) | ({"sp": sp} if sp else {})
        form(f"mma{'.sp' if sp else ''}.sync.aligned.shape.alayout.blayout{extra}.dtype.atype.btype.ctype"
             f"{'.stype' if scaling else ''} {operands}{scaling}", slots, shape=shape, alayout=layouts or "row",
             blayout=layouts or "col", dtype=dtype, atype=types, btype=types, ctype=ctype, ptx=ptx, sm=sm,
             suffix=suffix)  # fmt: skip


row("mma", tier=3, doc=f"{_MATRIX}mma, mma.sp")
for table, sp in ((_MMA, ""), (_MMA_SPARSE, "sp sp::ordered_metadata")):
    for shape, types, results, a_count, b_count, c_count, extra, ptx, sm in table:
        _mma(shape, types, results, (a_count, b_count, c_count), extra, ptx, sm, sp=sp)
_mma("m16n8k64", F8, "f16.f16", (4, 4, 4), "", (8, 7), 120, sp="sp::ordered_metadata", suffix="f")
for sp in ("", "sp::ordered_metadata"):
    counts = (4, 4 if sp else 2, 4)
    _mma("m16n8k64" if sp else "m16n8k32", F8F6F4, "f16.f16 f32.f32", counts, ".kind", (8, 7), 120, sp=sp, suffix="f",
         kind="kind::f8f6f4")  # fmt: skip
    for kind, depth, types, scale_type, vector, optional in _SCALED:
        size = ".block_scale{.scale}" if optional else ".block_scale.scale"
        suffix = "a" if sp and kind != "kind::mxf8f6f4" else "f"
        _mma(f"m16n8k{depth * (2 if sp else 1)}", types, "f32.f32", counts, f".kind{size}", (8, 7), 120, sp=sp,
             suffix=suffix, scaling=", f:b32, {g*2}:u16, h:b32, {i*2}:u16", kind=kind, stype=scale_type,
             scale=vector)  # fmt: skip
