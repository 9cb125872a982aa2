"""Asynchronous tensor cores: wgmma of a warpgroup, tcgen05 with tensor memory (PTX ISA 9.7.15 and 9.7.16)."""

from __future__ import annotations

from teenycli.ptx.isa import TABLE

row, form = TABLE.row, TABLE.form

# --- wgmma -------------------------------------------------------------------------------------------------------

_WGMMA = "Asynchronous Warpgroup Level Matrix Instructions: wgmma"

row("wgmma", tier=3, doc=_WGMMA)
form("wgmma.fence.sync.aligned", ptx=(8, 0), sm=90, suffix="a")
form("wgmma.commit_group.sync.aligned", ptx=(8, 0), sm=90, suffix="a")
form("wgmma.wait_group.sync.aligned #n:u32", ptx=(8, 0), sm=90, suffix="a")

_EVERY_N = tuple(range(8, 257, 8))
#: The N of integer and single-bit shapes: 24, then multiples of 16.
_INTEGER_N = (8, 16, 24, *range(32, 257, 16))
_SCALES = ", #scale_a:s32, #scale_b:s32"

#: (type of D, of its registers, D's registers, types of A, of B, K, N, scales, whether A and B may be transposed).
#: Where the types of A and B are the same word they are the same type.
_PRODUCTS = (
    *((d, reg, count, t, t, 16, _EVERY_N, _SCALES, True)
      for t, d, reg, count in (("f16", "f16", "f16x2", "n/4"), ("f16", "f32", "f32", "n/2"),
                               ("bf16", "f32", "f32", "n/2"))),
    ("f32", "f32", "n/2", "tf32", "tf32", 8, _EVERY_N, _SCALES, False),
    ("f16", "f16x2", "n/4", "e4m3 e5m2", "e4m3 e5m2", 32, _EVERY_N, _SCALES, False),
    ("f32", "f32", "n/2", "e4m3 e5m2", "e4m3 e5m2", 32, _EVERY_N, _SCALES, False),
    ("s32", "s32", "n/2", "s8 u8", "s8 u8", 32, _INTEGER_N, "", False),
    ("s32", "s32", "n/2", "b1", "b1", 256, _INTEGER_N, "", False),
)  # fmt: skip


def _product(dtype: str, register: str, count: str, atype: str, btype: str, k: int, ns: tuple[int, ...], scales: str,
             transposes: bool, sparse: bool) -> None:  # fmt: skip
    """A form with A in shared memory and one with A in registers; a sparse A doubles K."""
    shape = " ".join(f"m64n{n}k{k * (2 if sparse else 1)}" for n in ns)
    extra = {"s8 u8": "{.satfinite}", "b1": ".op.popc"}.get(atype, "")
    slots = {"op": "and"} if atype == "b1" else {}
    for a, transpose in (("a:b64", ", #trans_a:s32, #trans_b:s32"), ("{a*4}:b32", ", #trans_b:s32")):
        form(f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.shape{extra}.dtype.atype.btype "
             f"{{d*{count}}}:{register}, {a}, b:b64{', e:b32, #selector:u32' if sparse else ''}, !c{scales}"
             f"{transpose if transposes else ''}", slots, shape=shape, dtype=dtype, atype=atype, btype=btype,
             ptx=(8, 2) if sparse else (8, 0), sm=90, suffix="a")  # fmt: skip


for product in _PRODUCTS:
    _product(*product, sparse=False)
    if product[3] != "b1":
        _product(*product, sparse=True)

# --- tcgen05: tensor memory --------------------------------------------------------------------------------------

_TCGEN05 = "TensorCore 5th Generation Family Instructions: tcgen05"


def _tcgen05(text: str, slots: dict[str, str] | None = None, *, ptx: tuple[int, int] = (8, 6), suffix: str = "f",
             **classes: str) -> None:  # fmt: skip
    form(f"tcgen05{text}", (slots or {}) | classes, ptx=ptx, sm=100, suffix=suffix)


row("tcgen05", tier=3, doc=_TCGEN05)
_tcgen05(".alloc.group.sync.aligned{.space}.type [a], n:u32", space="shared::cta", type="b32")
_tcgen05(".dealloc.group.sync.aligned.type a, n:u32", type="b32")
_tcgen05(".relinquish_alloc_permit.group.sync.aligned")
_tcgen05(".mode.sync.aligned", mode="wait::ld wait::st")
_tcgen05(".mode", mode="fence::before_thread_sync fence::after_thread_sync")
_tcgen05(".shift.group.down [a]:b32", suffix="a")
_tcgen05(".commit.group.completion{.space}{.multicast}.type [a], mask:u16?multicast",
         completion="mbarrier::arrive::one", space="shared::cluster", type="b64")  # fmt: skip

_NUMS = "x1 x2 x4 x8 x16 x32 x64 x128"
for shape, nums, count, offset in (
    ("16x64b 32x32b", _NUMS, "num", ""),
    ("16x128b", _NUMS.removesuffix(" x128"), "num*2", ""),
    ("16x256b", _NUMS.removesuffix(" x64 x128"), "num*4", ""),
    ("16x32bx2", _NUMS, "num", ", #offset:b64"),
):
    _tcgen05(f".ld.sync.aligned.shape.num{{.pack}}.type {{d*{count}}}:b32, [a]:b32{offset}", shape=shape, num=nums,
             pack="pack::16b", type="b32")  # fmt: skip
    _tcgen05(f".st.sync.aligned.shape.num{{.unpack}}.type [a]:b32{offset}, {{b*{count}}}:b32", shape=shape, num=nums,
             unpack="unpack::16b", type="b32")  # fmt: skip

_DECOMPRESSED = {"dtype": "b8x16", "atype": "b6x16_p32 b4x16_p64"}
_tcgen05(".cp.group.shape{.dtype.atype} [a]:b32, b:b64", _DECOMPRESSED, shape="128x256b 4x256b 128x128b")
for shape, multicast in (("64x128b", "warpx2::02_13 warpx2::01_23"), ("32x128b", "warpx4")):
    _tcgen05(".cp.group.shape.multicast{.dtype.atype} [a]:b32, b:b64", _DECOMPRESSED, shape=shape,
             multicast=multicast)  # fmt: skip

# --- tcgen05: products -------------------------------------------------------------------------------------------

_REUSE = "fill use lastuse discard"
_COLLECTOR_A = " ".join(f"collector::a::{use}" for use in _REUSE.split())
_COLLECTOR_B = " ".join(f"collector::b{n}::{use}" for n in range(4) for use in _REUSE.split())
#: Block scaling: (kind, names of the scale vector's size for one architecture, for its family, whether the latter may
#: be left out).
_SCALED = (
    ("kind::mxf8f6f4", "scale_vec::1X", "block32", True),
    ("kind::mxf4", "scale_vec::2X", "block32", True),
    ("kind::mxf4nvf4", "scale_vec::2X scale_vec::4X", "block16 block32", False),
)


def _products(sp: str, metadata: str, a: str, in_memory: bool) -> None:
    """tcgen05.mma with A from ``a``: a descriptor, or tensor memory, where ``.ashift`` may be."""
    head = f"[d]:b32, {a}, b:b64, {metadata}i:b32"
    shifts = ("{.collector}", ".ashift{.collector}") if in_memory else ("{.collector}",)
    for shift in shifts:
        collector = "collector::a::lastuse collector::a::discard" if "ashift" in shift else _COLLECTOR_A
        kinds = "kind::f16 kind::tf32 kind::f8f6f4 kind::i8"
        for group, lanes in (("cta_group::1 cta_group::2", ""), ("cta_group::1", "{m*4}:b32, "),
                             ("cta_group::2", "{m*8}:b32, ")):  # fmt: skip
            _tcgen05(f".mma{sp}.group.kind{shift} {head}, {lanes}!e", group=group, kind=kinds, collector=collector)
            _tcgen05(f".mma{sp}.group.kind{shift} {head}, {lanes}!e, #scale_d:u32", group=group,
                     kind="kind::f16 kind::tf32", collector=collector)  # fmt: skip
    tail = f"{{.collector}} {head}, [f]:b32, [g]:b32, !e"
    for kind, sizes, blocks, optional in _SCALED:
        family = "a" if sp and kind != "kind::mxf8f6f4" else "f"
        _tcgen05(f".mma{sp}.group.kind.block_scale.scale{tail}", kind=kind, scale=sizes, collector=_COLLECTOR_A,
                 ptx=(8, 6) if optional else (8, 7), suffix="a")  # fmt: skip
        _tcgen05(f".mma{sp}.group.kind.block_scale{'{.scale}' if optional else '.scale'}{tail}", kind=kind,
                 scale=blocks, collector=_COLLECTOR_A, ptx=(8, 8), suffix=family)  # fmt: skip


for sp, metadata in (("", ""), (".sp", "[m]:b32, ")):
    for a, in_memory in (("a:b64", False), ("[a]:b32", True)):
        _products(sp, metadata, a, in_memory)
        _tcgen05(f".mma.ws{sp}.group.kind{{.collector}} [d]:b32, {a}, b:b64, {metadata}i:b32, !e{{, mask:b64}}",
                 group="cta_group::1", kind="kind::f16 kind::tf32 kind::f8f6f4 kind::i8",
                 collector=_COLLECTOR_B)  # fmt: skip
