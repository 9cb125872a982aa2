"""Asynchronous copies, mbarriers, multimem, tensor maps and cluster launch control (PTX ISA 9.7.9.25 and 9.7.13)."""

from __future__ import annotations

from teenycli.ptx.isa import OWN_SHARED, POLICY, SHARED, TABLE

row, form = TABLE.row, TABLE.form

_DATA = "Data Movement and Conversion Instructions: "
_SYNC = "Parallel Synchronization and Communication Instructions: "

# --- mbarrier ----------------------------------------------------------------------------------------------------

_OWN = {"space": OWN_SHARED, "type": "b64"}
_FAR = {"space": "shared::cluster", "type": "b64"}
_ARRIVING = {"sem": "release relaxed", "scope": "cta cluster"}
_WAITING = {"sem": "acquire relaxed", "scope": "cta cluster"}

row("mbarrier", tier=2, doc=f"{_SYNC}mbarrier")
form("mbarrier:init{.space}.type [a], count:u32", _OWN, ptx=(7, 0), sm=80)
form("mbarrier:inval{.space}.type [a]", _OWN, ptx=(7, 0), sm=80)
for op in ("expect_tx", "complete_tx"):
    form(f"mbarrier:{op}{{.sem.scope}}{{.space}}.type [a], count:u32", sem="relaxed", scope="cta cluster",
         space=SHARED, type="b64", ptx=(8, 0), sm=90)  # fmt: skip
for op in ("arrive", "arrive_drop"):
    counted = "d^:u64, [a], count:u32"
    form(f"mbarrier:{op}{{.space}}.type d^:u64, [a]", _OWN, ptx=(7, 0), sm=80)
    form(f"mbarrier:{op}{{.space}}.type {counted}", _OWN, ptx=(7, 8), sm=90)
    form(f"mbarrier:{op}:noComplete{{.space}}.type {counted}", _OWN, ptx=(7, 0), sm=80)
    form(f"mbarrier:{op}:noComplete.sem.scope{{.space}}.type {counted}", _OWN, sem="release", scope="cta",
         ptx=(8, 0), sm=80)  # fmt: skip
    form(f"mbarrier:{op}.sem.scope{{.space}}.type d^:u64, [a]", _OWN | _ARRIVING, ptx=(8, 0), sm=80)
    form(f"mbarrier:{op}.sem.scope{{.space}}.type {counted}", _OWN | _ARRIVING, ptx=(8, 0), sm=90)
    form(f"mbarrier:{op}{{.sem.scope}}.space.type _, [a]{{, count:u32}}", _FAR | _ARRIVING, ptx=(8, 0), sm=90)
    form(f"mbarrier:{op}:expect_tx{{.sem.scope}}{{.space}}.type {counted}", _OWN | _ARRIVING, ptx=(8, 0), sm=90)
    form(f"mbarrier:{op}:expect_tx{{.sem.scope}}.space.type _, [a], count:u32", _FAR | _ARRIVING, ptx=(8, 0), sm=90)
for parity, phase, ptx in (("", "state:u64", (7, 0)), (":parity", "parity:u32", (7, 1))):
    timed = f"p, [a], {phase}{{, time:u32}}"
    form(f"mbarrier:test_wait{parity}{{.space}}.type p, [a], {phase}", _OWN, ptx=ptx, sm=80)
    form(f"mbarrier:test_wait{parity}.sem.scope{{.space}}.type p, [a], {phase}", _OWN | _WAITING, ptx=(8, 0), sm=80)
    form(f"mbarrier:try_wait{parity}{{.space}}.type {timed}", _OWN, ptx=(7, 8), sm=90)
    form(f"mbarrier:try_wait{parity}.sem.scope{{.space}}.type {timed}", _OWN | _WAITING, ptx=(8, 0), sm=90)
form("mbarrier:pending_count.type d:u32, state:u64", type="b64", ptx=(7, 0), sm=80)

# --- cp.async ----------------------------------------------------------------------------------------------------

row("cp", tier=2, doc=f"{_DATA}cp.async")
for middle, ptx in (("", (7, 0)), (", count:u32", (7, 0)), (", !ignore:pred", (7, 5))):
    form(f"cp:async.cop.dst.src{{.cachehint}}{{.prefetch}} [d], [a], #bytes:u32{middle}, {POLICY}", cop="ca cg",
         dst=OWN_SHARED, src="global", ptx=ptx, sm=80)  # fmt: skip
form("cp:async:commit_group", ptx=(7, 0), sm=80)
form("cp:async:wait_group #n:u32", ptx=(7, 0), sm=80)
form("cp:async:wait_all", ptx=(7, 0), sm=80)
form("cp:async:mbarrier:arrive{.noinc}{.space}.type [a]", _OWN, ptx=(7, 0), sm=80)

# --- cp.async.bulk: a run of bytes -------------------------------------------------------------------------------

_LOAD = {"dst": "shared::cluster", "src": "global"}
_LOAD_OWN = {"dst": "shared::cta", "src": "global"}
_SEND = {"dst": "shared::cluster", "src": "shared::cta"}
_STORE = {"dst": "global", "src": "shared::cta"}

form(f"cp:async:bulk.dst.src.completion{{.multicast}}{{.cachehint}} [d], [a], size:u32, [mbar], mask:u16?multicast, "
     f"{POLICY}", _LOAD, ptx=(8, 0), sm=90, tier=3)  # fmt: skip
form(f"cp:async:bulk.dst.src.completion{{.cachehint}} [d], [a], size:u32, [mbar], {POLICY}", _LOAD_OWN, ptx=(8, 6),
     sm=90, tier=3)  # fmt: skip
form("cp:async:bulk.dst.src.completion [d], [a], size:u32, [mbar]", _SEND, ptx=(8, 0), sm=90, tier=3)
form(f"cp:async:bulk.dst.src.bulk_group{{.cachehint}} [d], [a], size:u32, {POLICY}", _STORE, ptx=(8, 0), sm=90, tier=3)
form(f"cp:async:bulk.dst.src.bulk_group{{.cachehint}}.cp_mask [d], [a], size:u32, {POLICY}, byte_mask:u16", _STORE,
     ptx=(8, 6), sm=100, tier=3)  # fmt: skip
form(f"cp:async:bulk:prefetch.level.src{{.cachehint}} [a], size:u32, {POLICY}", prefetch="prefetch", level="L2",
     src="global", ptx=(8, 0), sm=90, tier=3)  # fmt: skip
form("cp:async:bulk:commit_group", ptx=(8, 0), sm=90, tier=3)
form("cp:async:bulk:wait_group{.read} #n:u32", ptx=(8, 0), sm=90, tier=3)

for op, types in (("and or xor", "b32"), ("add inc dec min max", "u32"), ("add min max", "s32"), ("add", "u64")):
    form("cp:reduce:async:bulk.dst.src.completion.op.type [d], [a], size:u32, [mbar]", _SEND, op=op, type=types,
         ptx=(8, 0), sm=90, tier=3)  # fmt: skip
for op, extra, types in (
    ("and or xor", "", "b32 b64"),
    ("add inc dec min max", "", "u32"),
    ("add min max", "", "s32 u64"),
    ("min max", "", "s64 f16 bf16"),
    ("add", "", "f32 f64"),
    ("add", ".noftz", "f16 bf16"),
):
    form(f"cp:reduce:async:bulk.dst.src.bulk_group{{.cachehint}}.op{extra}.type [d], [a], size:u32, {POLICY}", _STORE,
         op=op, type=types, ptx=(8, 0), sm=90, tier=3)  # fmt: skip

# --- cp.async.bulk.tensor: tiles of a tensor map -----------------------------------------------------------------


def _tiles(dim: int, mode: str, modes: str, coords: int, offsets: int, ptx: tuple[int, int] = (8, 0), sm: int = 90,
           suffix: str = "") -> None:  # fmt: skip
    """Loads and prefetches of rank ``dim`` at ``coords`` coordinates; im2col ``offsets`` follow the mbarrier."""
    tile = f"[a,{{c*{coords}}}:s32]"
    info = f", {{i*{offsets}}}:u16" if offsets else ""
    slots = {"dim": f"{dim}d", "mode": modes}
    form(f"cp:async:bulk:tensor.dim.dst.src{mode}.completion{{.multicast}}{{.group}}{{.cachehint}} [d], {tile}, "
         f"[mbar]{info}, mask:u16?multicast, {POLICY}", _LOAD | slots, ptx=ptx, sm=sm, suffix=suffix,
         tier=3)  # fmt: skip
    form(f"cp:async:bulk:tensor.dim.dst.src{mode}.completion{{.group}}{{.cachehint}} [d], {tile}, [mbar]{info}, "
         f"{POLICY}", _LOAD_OWN | slots, ptx=max(ptx, (8, 6)), sm=sm, tier=3)  # fmt: skip
    form(f"cp:async:bulk:prefetch:tensor.dim.level.src{mode}{{.cachehint}} {tile}{info}, {POLICY}", slots,
         prefetch="prefetch", level="L2", src="global", ptx=ptx, sm=sm, suffix=suffix, tier=3)  # fmt: skip


def _stores(dim: int, mode: str, modes: str) -> None:
    """Stores and reductions of rank ``dim``."""
    tile = f"[d,{{c*{dim}}}:s32]"
    slots = _STORE | {"dim": f"{dim}d", "mode": modes}
    form(f"cp:async:bulk:tensor.dim.dst.src{mode}.bulk_group{{.cachehint}} {tile}, [a], {POLICY}", slots,
         ptx=(8, 0), sm=90, tier=3)  # fmt: skip
    form(f"cp:reduce:async:bulk:tensor.dim.dst.src.op{mode}.bulk_group{{.cachehint}} {tile}, [a], {POLICY}", slots,
         op="add min max inc dec and or xor", ptx=(8, 0), sm=90, tier=3)  # fmt: skip


for dim in range(1, 6):
    _tiles(dim, "{.mode}", "tile", dim, 0)
    _stores(dim, "{.mode}", "tile")
for dim in range(3, 6):
    _tiles(dim, ".mode", "im2col", dim, dim - 2)
    _tiles(dim, ".mode", "im2col::w im2col::w::128", dim, 2, (8, 6), 100, "f")
    _stores(dim, ".mode", "im2col_no_offs")
_tiles(2, ".mode", "tile::gather4", 5, 0, (8, 6), 100, "f")
form(f"cp:async:bulk:tensor.dim.dst.src.mode.bulk_group{{.cachehint}} [d,{{c*5}}:s32], [a], {POLICY}", _STORE,
     dim="2d", mode="tile::scatter4", ptx=(8, 6), sm=100, suffix="f", tier=3)  # fmt: skip

# --- st.async, st.bulk, red.async --------------------------------------------------------------------------------

row("st", tier=1, doc=f"{_DATA}st.async, st.bulk")
form("st:async{.sem}{.space}.completion{.vec}.type [a], b.vec, [mbar]", sem="weak", space="shared::cluster",
     type="b32 u32 s32 f32", ptx=(8, 1), sm=90, tier=2)  # fmt: skip
form("st:async{.sem}{.space}.completion{.vec}.type [a], b.vec, [mbar]", sem="weak", space="shared::cluster",
     vec="v2", type="b64 u64 s64 f64", ptx=(8, 1), sm=90, tier=2)  # fmt: skip
form("st:async{.sem}{.space}.completion.type [a], b, [mbar]", sem="weak", space="shared::cluster", type="b128",
     ptx=(9, 2), sm=90, tier=2)  # fmt: skip
form("st:async{.mmio}.sem.scope{.space}.type [a], b", sem="release", scope="gpu sys", space="global",
     type="b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64", ptx=(8, 7), sm=100, tier=2)  # fmt: skip
form("st:bulk{.sem}{.space} [a], size:u64, #b:u32", sem="weak", space="shared::cta", ptx=(8, 6), sm=100, tier=2)

row("red", tier=2, doc=f"{_SYNC}red.async")
for op, types in (("inc dec", "u32"), ("add min max", "u32 s32"), ("and or xor", "b32"), ("add", "u64")):
    form("red:async.sem.scope{.space}.completion.op.type [a], b, [mbar]", sem="relaxed", scope="cluster",
         space="shared::cluster", op=op, type=types, ptx=(8, 1), sm=90)  # fmt: skip
form("red:async{.mmio}.sem.scope{.space}.op.type [a], b", sem="release", scope="gpu sys", space="global", op="add",
     type="u32 s32 u64 s64", ptx=(8, 7), sm=100)  # fmt: skip

# --- multimem ----------------------------------------------------------------------------------------------------

row("multimem", tier=2, doc=f"{_DATA}multimem.ld_reduce, multimem.st, multimem.red")

#: Integers: (operations, types).
_INTEGERS = (("min max add", "u32 s32 u64"), ("min max", "s64"), ("and or xor", "b32 b64"))
#: Floats: (operations, vector modifier, vectors, types, intermediate precision, PTX version, sm, suffix).
_FLOATS: tuple[tuple[str, str, str, str, str, tuple[int, int], int, str], ...] = (
    ("add", "{.vec}", "v2 v4", "f32", "", (8, 1), 90, ""),
    ("add", "", "", "f64", "", (8, 1), 90, ""),
    ("add", ".vec", "v2 v4 v8", "f16 bf16", "acc::f32", (8, 1), 90, ""),
    ("min max", ".vec", "v2 v4 v8", "f16 bf16", "", (8, 1), 90, ""),
    ("add", "{.vec}", "v2 v4", "f16x2 bf16x2", "acc::f32", (8, 1), 90, ""),
    ("min max", "{.vec}", "v2 v4", "f16x2 bf16x2", "", (8, 1), 90, ""),
    ("add", ".vec", "v4 v8", "e4m3 e5m2", "acc::f16", (8, 6), 100, "f"),
    ("min max", ".vec", "v4 v8", "e4m3 e5m2", "", (8, 6), 100, "f"),
    ("add", ".vec", "v2 v4 v8", "e4m3x2 e5m2x2", "acc::f16", (8, 6), 100, "f"),
    ("min max", ".vec", "v2 v4 v8", "e4m3x2 e5m2x2", "", (8, 6), 100, "f"),
    ("add", "{.vec}", "v2 v4", "e4m3x4 e5m2x4", "acc::f16", (8, 6), 100, "f"),
    ("min max", "{.vec}", "v2 v4", "e4m3x4 e5m2x4", "", (8, 6), 100, "f"),
)
_LOADS = (("{.sem.scope}", "relaxed acquire"), (".sem", "weak"))
_STORES = (("{.sem.scope}", "relaxed release"), (".sem", "weak"))

for op, types in _INTEGERS:
    for order, sem in _LOADS:
        form(f"multimem:ld_reduce{order}{{.space}}.op.type d, [a]", sem=sem, space="global", op=op, type=types,
             ptx=(8, 1), sm=90)  # fmt: skip
    form("multimem:red{.sem.scope}{.space}.op.type [a], b", sem="relaxed release", space="global", op=op, type=types,
         ptx=(8, 1), sm=90)  # fmt: skip
for order, sem in _STORES:
    form(f"multimem:st{order}{{.space}}.type [a], b", sem=sem, space="global", type="b32 b64 u32 u64 s32 s64",
         ptx=(8, 1), sm=90)  # fmt: skip
for op, vec_slot, vecs, types, accumulator, ptx, sm, suffix in _FLOATS:
    slots = {"space": "global", "type": types} | ({"vec": vecs} if vecs else {})
    acc, precision = ("{.acc}", {"acc": accumulator}) if accumulator else ("", {})
    for order, sem in _LOADS:
        form(f"multimem:ld_reduce{order}{{.space}}.op{acc}{vec_slot}.type d.vec, [a]", slots | precision, sem=sem,
             op=op, ptx=ptx, sm=sm, suffix=suffix)  # fmt: skip
    if op == "add":
        for order, sem in _STORES:
            form(f"multimem:st{order}{{.space}}{vec_slot}.type [a], b.vec", slots, sem=sem, ptx=ptx, sm=sm,
                 suffix=suffix)  # fmt: skip
    if sm == 90:
        red_slot = vec_slot if op == "add" else ".vec"
        form(f"multimem:red{{.sem.scope}}{{.space}}.op{red_slot}.type [a], b.vec", slots, sem="relaxed release", op=op,
             ptx=ptx, sm=sm)  # fmt: skip

form("multimem:st:async.sem.scope{.space}.type [a], b", sem="release", scope="gpu sys", space="global",
     type="b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64", ptx=(9, 3), sm=100)  # fmt: skip
form("multimem:red:async.sem.scope{.space}.op.type [a], b", sem="release", scope="gpu sys", space="global", op="add",
     type="u32 s32 u64 s64", ptx=(9, 3), sm=100)  # fmt: skip

# --- tensor maps, cluster launch control -------------------------------------------------------------------------

row("tensormap", tier=3, doc=f"{_DATA}tensormap.replace, tensormap.cp_fenceproxy")
_SPACES = "global shared::cta"
for field, types, operands in (
    ("global_address", "b64", "[a], b"),
    ("rank", "b32", "[a], b"),
    ("box_dim global_dim element_stride", "b32", "[a], #ord:u32, b"),
    ("global_stride", "b64", "[a], #ord:u32, b"),
    ("elemtype interleave_layout swizzle_mode swizzle_atomicity fill_mode", "b32", "[a], #b"),
):
    form(f"tensormap:replace.mode.field{{.space}}.b1024.type {operands}", mode="tile", field=field, space=_SPACES,
         type=types, ptx=(8, 3), sm=90, suffix="a")  # fmt: skip
form("tensormap:cp_fenceproxy.dst.src.kind.sem.scope.sync.aligned [d], [a], #size:u32", _STORE,
     kind="tensormap::generic", sem="release", ptx=(8, 3), sm=90)  # fmt: skip

row("clusterlaunchcontrol", tier=2, doc=f"{_SYNC}clusterlaunchcontrol")
form("clusterlaunchcontrol:try_cancel:async{.space}.completion{.multicast}.type [a], [mbar]", space="shared::cta",
     multicast="multicast::cluster::all", type="b128", ptx=(8, 6), sm=100)  # fmt: skip
form("clusterlaunchcontrol:query_cancel.is_canceled.dtype.type p, a", dtype="pred", type="b128", ptx=(8, 6), sm=100)
form("clusterlaunchcontrol:query_cancel.get_first_ctaid.vec.dtype.type d.vec:dtype, a", vec="v4", dtype="b32",
     type="b128", ptx=(8, 6), sm=100)  # fmt: skip
form("clusterlaunchcontrol:query_cancel.mode.dtype.type d:dtype, a",
     mode="get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z", dtype="b32", type="b128",
     ptx=(8, 6), sm=100)  # fmt: skip
