"""Asynchronous tensor cores: wgmma of a warpgroup, tcgen05 with tensor memory (PTX ISA 9.7.15 and 9.7.16)."""

from __future__ import annotations

from teenycli.ptx.isa import TABLE

row, form = TABLE.row, TABLE.form

# --- wgmma -------------------------------------------------------------------------------------------------------

row("wgmma", tier=3, doc="Asynchronous Warpgroup Level Matrix Instructions: wgmma")
form("wgmma:fence.sync.aligned", ptx=(8, 0), sm=90, suffix="a")
form("wgmma:commit_group.sync.aligned", ptx=(8, 0), sm=90, suffix="a")
form("wgmma:wait_group.sync.aligned #n:u32", ptx=(8, 0), sm=90, suffix="a")

_EVERY_N = tuple(range(8, 257, 8))
#: The N of integer and single-bit shapes: 24, then multiples of 16.
_INTEGER_N = (8, 16, 24, *range(32, 257, 16))
_SCALES = ", #scale_a:s32=-1/1, #scale_b:s32=-1/1"
_TRANSPOSE_A, _TRANSPOSE_B = ", #trans_a:s32=0/1", ", #trans_b:s32=0/1"

#: (type of D, of its registers, their number, types of A and B, K, N, scales, whether A and B may be transposed).
_PRODUCTS: tuple[tuple[str, str, str, str, int, tuple[int, ...], str, bool], ...] = (
    ("f16", "f16x2", "n/4", "f16", 16, _EVERY_N, _SCALES, True),
    ("f32", "f32", "n/2", "f16", 16, _EVERY_N, _SCALES, True),
    ("f32", "f32", "n/2", "bf16", 16, _EVERY_N, _SCALES, True),
    ("f32", "f32", "n/2", "tf32", 8, _EVERY_N, _SCALES, False),
    ("f16", "f16x2", "n/4", "e4m3 e5m2", 32, _EVERY_N, _SCALES, False),
    ("f32", "f32", "n/2", "e4m3 e5m2", 32, _EVERY_N, _SCALES, False),
    ("s32", "s32", "n/2", "s8 u8", 32, _INTEGER_N, "", False),
    ("s32", "s32", "n/2", "b1", 256, _INTEGER_N, "", False),
)


def _product(dtype: str, register: str, count: str, types: str, k: int, ns: tuple[int, ...], scales: str,
             transposes: bool, sparse: bool) -> None:  # fmt: skip
    """A form with A in shared memory and one with A in registers; a sparse A doubles K."""
    slots = {
        "shape": " ".join(f"m64n{n}k{k * (2 if sparse else 1)}" for n in ns),
        "dtype": dtype, "atype": types, "btype": types,
    } | ({"op": "and"} if types == "b1" else {})  # fmt: skip
    extra = {"s8 u8": "{.satfinite}", "b1": ".op.popc"}.get(types, "")
    head = f"wgmma:mma_async{'.sp' if sparse else ''}.sync.aligned.shape{extra}.dtype.atype.btype"
    middle = f"b:u64{', e:b32, #selector:u32' if sparse else ''}, !c{scales}"
    for a, transpose in (("a:u64", _TRANSPOSE_A + _TRANSPOSE_B), ("{a*4}:b32", _TRANSPOSE_B)):
        form(f"{head} +{{d*{count}}}:{register}, {a}, {middle}{transpose if transposes else ''}", slots,
             ptx=(8, 2) if sparse else (8, 0), sm=90, suffix="a")  # fmt: skip


for product in _PRODUCTS:
    _product(*product, sparse=False)
    if product[3] != "b1":
        _product(*product, sparse=True)

# --- tcgen05: tensor memory --------------------------------------------------------------------------------------


def _tcgen05(text: str, slots: dict[str, str] | None = None, *, ptx: tuple[int, int] = (8, 6), suffix: str = "f",
             **classes: str) -> None:  # fmt: skip
    form(f"tcgen05{text}", (slots or {}) | classes, ptx=ptx, sm=100, suffix=suffix)


row("tcgen05", tier=3, doc="TensorCore 5th Generation Family Instructions: tcgen05")
_tcgen05(":alloc.group.sync.aligned{.space}.type [a], n:u32", space="shared::cta", type="b32")
_tcgen05(":dealloc.group.sync.aligned.type a:u32, n:u32", type="b32")
_tcgen05(":relinquish_alloc_permit.group.sync.aligned")
_tcgen05(":mode.sync.aligned", mode="wait::ld wait::st")
_tcgen05(":mode", mode="fence::before_thread_sync fence::after_thread_sync")
_tcgen05(":shift.group.down [a]:b32", suffix="a")
_tcgen05(":commit.group.completion{.space}{.multicast}.type [a], mask:u16?multicast",
         completion="mbarrier::arrive::one", space="shared::cluster", type="b64")  # fmt: skip

_NUMS = "x1 x2 x4 x8 x16 x32 x64 x128"
for shape, nums, count, offset in (
    ("16x64b 32x32b", _NUMS, "num", ""),
    ("16x128b", _NUMS.removesuffix(" x128"), "num*2", ""),
    ("16x256b", _NUMS.removesuffix(" x64 x128"), "num*4", ""),
    ("16x32bx2", _NUMS, "num", ", #offset:b64"),
):
    _tcgen05(f":ld.sync.aligned.shape.num{{.pack}}.type {{d*{count}}}:b32, [a]:b32{offset}", shape=shape, num=nums,
             pack="pack::16b", type="b32")  # fmt: skip
    _tcgen05(f":st.sync.aligned.shape.num{{.unpack}}.type [a]:b32{offset}, ${{b*{count}}}:b32", shape=shape, num=nums,
             unpack="unpack::16b", type="b32")  # fmt: skip

for offset, shape in (("", "32x32b"), (", #offset:b64", "16x32bx2")):
    for extra, types in (("{.abs}{.nan}", "f32"), ("", "u32 s32")):
        form(f"tcgen05:ld:red.sync.aligned.shape.num.op{extra}.type {{d*num}}, d2, [a]:b32{offset}", shape=shape,
             num=_NUMS.removeprefix("x1 "), op="min max", type=types, ptx=(8, 8), sm=103, suffix="a",
             tier=3)  # fmt: skip

_DECOMPRESSED = {"dtype": "b8x16", "atype": "b6x16_p32 b4x16_p64"}
_tcgen05(":cp.group.shape{.dtype.atype} [a]:bits, b:u64", _DECOMPRESSED, shape="128x256b 4x256b 128x128b")
for shape, multicast in (("64x128b", "warpx2::02_13 warpx2::01_23"), ("32x128b", "warpx4")):
    _tcgen05(":cp.group.shape.multicast{.dtype.atype} [a]:bits, b:u64", _DECOMPRESSED, shape=shape,
             multicast=multicast)  # fmt: skip

# --- tcgen05: products -------------------------------------------------------------------------------------------

_REUSE = "fill use lastuse discard"
_COLLECTOR_A = " ".join(f"collector::a::{use}" for use in _REUSE.split())
_COLLECTOR_B = " ".join(f"collector::b{n}::{use}" for n in range(4) for use in _REUSE.split())
#: Kinds without block scaling: those of a family, that of some of its architectures.
_KINDS = (("kind::f16 kind::tf32 kind::f8f6f4", "f"), ("kind::i8", "a"))
#: Block scaling: (kind, names of the scale vector's size for one architecture, for its family, whether the latter may
#: be left out).
_SCALED = (
    ("kind::mxf8f6f4", "scale_vec::1X", "block32", True),
    ("kind::mxf4", "scale_vec::2X", "block32", True),
    ("kind::mxf4nvf4", "scale_vec::2X scale_vec::4X", "block16 block32", False),
)


def _products(sp: str, metadata: str, a: str, in_memory: bool) -> None:
    """tcgen05.mma with A from ``a``: a descriptor, or tensor memory, where ``.ashift`` may be."""
    head = f"[d]:bits, {a}, b:u64, {metadata}i:u32"
    shifts = ("{.collector}", ".ashift{.collector}") if in_memory else ("{.collector}",)
    for shift in shifts:
        collector = "collector::a::lastuse collector::a::discard" if "ashift" in shift else _COLLECTOR_A
        for group, lanes in (("cta_group::1 cta_group::2", ""), ("cta_group::1", "{m*4}:b32, "),
                             ("cta_group::2", "{m*8}:b32, ")):  # fmt: skip
            for kinds, suffix in _KINDS:
                _tcgen05(f":mma{sp}.group.kind{shift} {head}, {lanes}!e", group=group, kind=kinds,
                         collector=collector, suffix=suffix)  # fmt: skip
            _tcgen05(f":mma{sp}.group.kind{shift} {head}, {lanes}!e, #scale_d:u32", group=group,
                     kind="kind::f16 kind::tf32", collector=collector)  # fmt: skip
    tail = f"{{.collector}} {head}, [f]:bits, [g]:bits, !e"
    for kind, sizes, blocks, optional in _SCALED:
        family = "a" if sp and kind != "kind::mxf8f6f4" else "f"
        _tcgen05(f":mma{sp}.group.kind.block_scale.scale{tail}", kind=kind, scale=sizes, collector=_COLLECTOR_A,
                 ptx=(8, 6) if optional else (8, 7), suffix="a")  # fmt: skip
        _tcgen05(f":mma{sp}.group.kind.block_scale{'{.scale}' if optional else '.scale'}{tail}", kind=kind,
                 scale=blocks, collector=_COLLECTOR_A, ptx=(8, 8), suffix=family)  # fmt: skip


for sp, metadata in (("", ""), (".sp", "[m]:bits, ")):
    for a, in_memory in (("a:u64", False), ("[a]:bits", True)):
        _products(sp, metadata, a, in_memory)
        for kinds, suffix in _KINDS:
            _tcgen05(f":mma:ws{sp}.group.kind{{.collector}} [d]:bits, {a}, b:u64, {metadata}i:u32, !e{{, mask:u64}}",
                     group="cta_group::1", kind=kinds, collector=_COLLECTOR_B, suffix=suffix)  # fmt: skip
