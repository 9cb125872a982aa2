from __future__ import annotations

import pytest

from teenycli.ptx.effects import effects_of
from teenycli.ptx.usage import Access, Usage, usage_of
from tests.ptx.text import code

pytestmark = pytest.mark.unit


def through(body: str, params: str = ".param .u64 p") -> Usage:
    """The usage of a pointer in %rd1."""
    return usage_of(code(f"ld.param.u64 %rd1,[p]; {body}", params))[0]


@pytest.mark.parametrize(
    ("body", "access", "moved"),
    [
        ("ld.global.v4.b32 {%r1,%r2,%r3,%r4},[%rd1];", Access("load", "global", "b32", 4), 16),
        ("ld.global.nc.L1::no_allocate.v2.f64 {%fd1,%fd2},[%rd1];", Access("load", "global", "f64", 2), 16),
        ("ldu.global.u32 %r1,[%rd1];", Access("load", "global", "u32"), 4),
        ("ld.f32 %f1,[%rd1];", Access("load", "generic", "f32"), 4),
        ("st.global.v2.b16 [%rd1],{%h1,%h2};", Access("store", "global", "b16", 2), 4),
        ("atom.global.cas.b64 %rd2,[%rd1],%rd3,%rd4;", Access("atomic", "global", "b64"), 8),
        ("red.global.v2.f32.add [%rd1],{%f1,%f2};", Access("atomic", "global", "f32", 2), 8),
        ("cp.async.cg.shared.global [%r1],[%rd1],16;", Access("load", "global", "b128", 1, "cp.async"), 16),
        ("cp.async.ca.shared.global [%r1],[%rd1],4,%r2;", Access("load", "global", "b32", 1, "cp.async"), 4),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1],[%rd1],%r2,[%r3];",
            Access("load", "global", "b128", 1, "cp.async.bulk"),
            16,
        ),
        (
            "cp.async.bulk.global.shared::cta.bulk_group [%rd1],[%r1],%r2;",
            Access("store", "global", "b128", 1, "cp.async.bulk"),
            16,
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1],[%r1],%r2;",
            Access("atomic", "global", "f32", 1, "cp.reduce.async.bulk"),
            4,
        ),
        (
            "cp.async.bulk.prefetch.L2.global [%rd1],%r1;",
            Access("hint", "global", "b128", 1, "cp.async.bulk.prefetch"),
            16,
        ),
        ("prefetch.global.L2 [%rd1];", Access("hint", "global", "b8", 1, "prefetch"), 1),
        ("prefetchu.L1 [%rd1];", Access("hint", "generic", "b8", 1, "prefetchu"), 1),
        ("applypriority.global.L2::evict_normal [%rd1],128;", Access("hint", "global", "b8", 1, "applypriority"), 1),
        ("discard.global.L2 [%rd1],128;", Access("store", "global", "b8", 128, "discard"), 128),
        (
            "ldmatrix.sync.aligned.m8n8.x2.b16 {%r1,%r2},[%rd1];",
            Access("load", "generic", "b128", 1, "ldmatrix"),
            16,
        ),
        (
            "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%rd1],{%r1};",
            Access("store", "shared", "b128", 1, "stmatrix"),
            16,
        ),
        (
            "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8},[%rd1],%r1;",
            Access("load", "global", "f32", 1, "wmma.load"),
            4,
        ),
        (
            "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1],{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8};",
            Access("store", "global", "f32", 1, "wmma.store"),
            4,
        ),
        ("multimem.ld_reduce.global.add.u32 %r1,[%rd1];", Access("load", "global", "u32", 1, "multimem.ld_reduce"), 4),
        ("multimem.red.global.add.u32 [%rd1],%r1;", Access("atomic", "global", "u32", 1, "multimem.red"), 4),
        ("multimem.st.global.u32 [%rd1],%r1;", Access("store", "global", "u32", 1, "multimem.st"), 4),
        ("mbarrier.init.b64 [%rd1],1;", Access("other", "generic", "mbarrier"), 0),
    ],
)
def test_accesses_through_a_pointer(body: str, access: Access, moved: int) -> None:
    use = through(body)
    assert use.accesses == (access,)
    assert use.accesses[0].bytes == moved
    assert use.pointer
    assert (use.reads, use.writes) == (access.kind in ("load", "atomic"), access.kind in ("store", "atomic"))
    assert use.opaque == (access.kind == "other")
    assert bool(use.elements) == (access.kind != "other" and not access.opcode)


def test_each_operand_in_brackets_has_its_effect() -> None:
    copy = code("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1],[%rd1],16,[%r3];").ops[0]
    assert [(effect.place, effect.kind, effect.space) for effect in effects_of(copy)] == [
        (0, "store", "shared::cluster"),
        (1, "load", "global"),
        (3, "other", "shared"),
    ]


# --- tensor maps ---------------------------------------------------------------------------------------------------


MAP = ".param .align 64 .b8 m[128]"
LOAD_TILE = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1],[{},{{%r2,%r3}}],[%r4];"
STORE_TILE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [{},{{%r2,%r3}}],[%r1];"
REDUCE_TILE = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [{},{{%r2,%r3}}],[%r1];"


@pytest.mark.parametrize(
    ("copy", "kind", "opcode"),
    [
        (LOAD_TILE, "load", "cp.async.bulk.tensor"),
        (STORE_TILE, "store", "cp.async.bulk.tensor"),
        (REDUCE_TILE, "atomic", "cp.reduce.async.bulk.tensor"),
        ("cp.async.bulk.prefetch.tensor.2d.L2.global [{},{{%r2,%r3}}];", "hint", "cp.async.bulk.tensor"),
    ],
)
@pytest.mark.parametrize("address", ["mov.b64 %rd1,m;", "mov.b64 %rd2,m; cvta.param.u64 %rd1,%rd2;"])
def test_a_tensor_map_says_what_is_done_to_the_tensor(copy: str, kind: str, opcode: str, address: str) -> None:
    (m,) = usage_of(code(f"{address} prefetch.tensormap [%rd1]; {copy.format('%rd1')}", MAP))
    assert m.tensormap
    assert m.accesses == (Access(kind, "global", "", 1, opcode),)
    assert not m.escaped
    assert not m.unused


def test_coordinates_are_part_of_an_address() -> None:
    _, n = usage_of(code("mov.b64 %rd1,m; ld.param.u32 %r2,[n];" + LOAD_TILE.format("%rd1"), f"{MAP}, .param .u32 n"))
    assert n.address
    assert not n.pointer


def test_of_a_tensor_map_in_memory_the_map_is_read() -> None:
    use = through(STORE_TILE.format("%rd1"))
    assert use.accesses == (Access("load", "global", "b1024", 1, "cp.async.bulk.tensor"),)


def test_a_tensor_map_that_is_changed_has_escaped() -> None:
    (m,) = usage_of(code("mov.b64 %rd1,m; tensormap.replace.tile.rank.global.b1024.b32 [%rd1],3;", MAP))
    assert m.escaped


def test_what_goes_into_a_tensor_map_is_a_pointer_that_is_not_followed() -> None:
    use = usage_of(
        code(
            "ld.param.u64 %rd1,[p]; tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1],%rd1;",
            ".param .u64 p",
        )
    )[0]
    assert use.pointer
    assert use.escaped


def test_a_tensor_map_that_is_copied_has_escaped() -> None:
    (m,) = usage_of(code("ld.param.u64 %rd2,[m+8]; st.shared.u64 [%r1],%rd2;", MAP))
    assert m.escaped
    assert not m.tensormap


# --- textures and surfaces -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "access"),
    [
        ("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4},[%rd1,{%f1,%f2}];", Access("load", "tex", "f32", 4, "tex")),
        ("suld.b.1d.v2.b32.trap {%r1,%r2},[%rd1,{%r3}];", Access("load", "surf", "b32", 2, "suld")),
        ("sust.b.1d.b32.trap [%rd1,{%r3}],%r1;", Access("store", "surf", "b32", 1, "sust")),
        ("sured.b.add.1d.u32.trap [%rd1,{%r3}],%r1;", Access("atomic", "surf", "u32", 1, "sured")),
        ("txq.width.b32 %r1,[%rd1];", Access("hint", "tex", "b32", 1, "txq")),
    ],
)
def test_the_handle_of_an_image_is_no_address(body: str, access: Access) -> None:
    use = through(body)
    assert use.handle
    assert use.accesses == (access,)
    assert not use.pointer
    assert not use.address


def test_parameters_that_are_textures_and_samplers() -> None:
    text = "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4},[image,how,{%f1,%f2}];"
    image, how, other = usage_of(code(text, ".param .texref image, .param .samplerref how, .param .texref other"))
    assert image.handle
    assert image.accesses == (Access("load", "tex", "f32", 4, "tex"),)
    assert how.handle
    assert not image.escaped
    assert (how.unused, other.unused) == (False, True)
