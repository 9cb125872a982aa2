"""Products of a warp group: matrices in shared memory as descriptors say, against numpy; and kernels as Triton writes
them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from teenycli.errors import Finding, TeenyError
from tests.devices.cpu.kit import Array, Rig

pytestmark = pytest.mark.unit

NUMPY: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8,
                         "u8": np.uint8, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}  # fmt: skip
#: Bytes of a row of the pattern, by the descriptor's mode: 0 exchanges nothing.
PITCH = {0: 16, 1: 128, 2: 64, 3: 32}
B_AT, ROOM = 16384, 32768


def layout(rows: int, depth: int, size: int, mode: int, *, transposed: bool) -> tuple[Array, int, int]:
    """Where each element is, from the beginning (PTX ISA, "Strides", "Swizzling"); leading and stride byte offsets."""
    row, k = np.meshgrid(np.arange(rows), np.arange(depth), indexing="ij")
    pitch = PITCH[mode]
    if transposed and mode == 0:
        leading, stride = 128 * (rows // 8), 128
        at = row // 8 * stride + row % 8 * size + k % 8 * 16 + k // 8 * leading
    elif transposed:
        leading, stride, per = 16 * pitch, 8 * pitch, pitch // size
        at = row % per * size + row // per * leading + k % 8 * pitch + k // 8 * stride
    elif mode == 0:
        leading, stride = 128, 256
        at = row % 8 * 16 + row // 8 * stride + k * size // 16 * leading + k * size % 16
    else:
        leading, stride = 16, 8 * pitch
        at = row % 8 * pitch + row // 8 * stride + k * size
    return at ^ (at >> 7 & pitch // 16 - 1) << 4, leading, stride


def descriptor(at: int, leading: int, stride: int, mode: int) -> int:
    return at >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62


def multiplied(
    a: Array, b: Array, c: Array, type: str, dtype: str, mode: int, *, trans: tuple[int, int] | None = None,
    scales: tuple[int, int] | None = (1, 1), keeps: int = 1, in_registers: bool = False, extra: str = "",
) -> Array:  # fmt: skip
    """D of 64 rows, by a warp group; A and B by element, C as its registers hold it."""
    columns, depth, size = b.shape[1], a.shape[1], a.itemsize
    memory = np.zeros(ROOM, np.uint8)
    descriptors = []
    for start, matrix, turned in ((0, a, trans and trans[0]), (B_AT, b.T, trans and trans[1])):
        lines, along = matrix.shape
        places, leading, stride = layout(lines, along, size, mode, transposed=bool(turned))
        raw = np.ascontiguousarray(matrix).view(np.uint8).reshape(*matrix.shape, size)
        for byte in range(size):
            memory[start + places + byte] = raw[..., byte]
        descriptors.append(descriptor(start, leading, stride, mode))
    count = columns // (4 if dtype == "f16" else 2)
    names = [f"%r{k}" for k in range(count)]
    left, loads = "%left", ""
    words = np.zeros((128, 4), np.uint32)
    if in_registers:
        lane, warp = np.arange(128) % 32, np.arange(128) // 32
        per = 4 // size
        for r in range(4):
            row = warp * 16 + lane // 4 + 8 * (r % 2)
            for e in range(per):
                value = a[row, lane % 4 * per + e + 4 * per * (r // 2)]
                words[:, r] |= value.view(f"u{size}").astype(np.uint32) << (8 * size * e)
        left = "{%a0, %a1, %a2, %a3}"
        loads = (
            "ld.param.u64 %at, [words]; mad.wide.u32 %at, %t, 16, %at; ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%at];"
        )
    tail = "" if scales is None else f", {scales[0]}, {scales[1]}"
    if trans is not None:
        tail += f", {trans[1]}" if in_registers else f", {trans[0]}, {trans[1]}"
    text = f"""
        .version 8.0
        .target sm_90a
        .address_size 64
        .visible .entry k(.param .u64 memory, .param .u64 c, .param .u64 words) {{
        .shared .align 1024 .b8 room[{ROOM}];
        .reg .b32 %r<130>, %a<4>, %t, %at32, %s; .reg .b64 %at, %m, %left, %right; .reg .pred %p, %keep;
        mov.u32 %t, %tid.x; ld.param.u64 %m, [memory]; mov.u32 %s, %t;
        F: mad.wide.u32 %at, %s, 4, %m; ld.global.b32 %a0, [%at]; mov.u32 %at32, room; mad.lo.u32 %at32, %s, 4, %at32;
        st.shared.b32 [%at32], %a0; add.u32 %s, %s, 128; setp.lt.u32 %p, %s, {ROOM // 4}; @%p bra F;
        bar.sync 0; {loads}
        ld.param.u64 %at, [c]; mad.wide.u32 %at, %t, {4 * count}, %at; setp.ne.u32 %keep, {keeps}, 0;
        {" ".join(f"ld.global.b32 {name}, [%at+{4 * k}];" for k, name in enumerate(names))}
        mov.b64 %left, {descriptors[0]}; mov.b64 %right, {descriptors[1]};
        bar.sync 1; // what is added to is held across it, though nothing else reads it before it is written
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n{columns}k{depth}{extra}.{dtype}.{type}.{type} {{{", ".join(names)}}},
            {left}, %right, %keep{tail};
        wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
        {" ".join(f"st.global.b32 [%at+{4 * k}], {name};" for k, name in enumerate(names))}
        ret; }}
        """
    held = np.zeros((128, count), np.uint32)
    row = np.arange(128) // 32 * 16 + np.arange(32)[None].repeat(4, 0).reshape(-1) // 4
    pair = np.arange(128) % 4 * 2
    values = c.astype({"f32": np.float32, "s32": np.int32, "f16": np.float16}[dtype])
    registers = held.view(values.dtype)
    of_d = [(row + 8 * (k // 2 % 2), pair + k % 2 + k // 4 * 8) for k in range(columns // 2)]
    for k, place in enumerate(of_d):
        registers[:, k] = values[place]
    rig = Rig(text)
    rig.run([memory, held, words], block=(128,))
    rig.device.close()
    result = np.zeros((64, columns))
    for k, place in enumerate(of_d):
        result[place] = held.view(values.dtype)[:, k]
    return result


def whole(type: str, shape: tuple[int, int], seed: int) -> Array:
    low, high = (0, 200) if type == "u8" else (-100, 100) if type == "s8" else (-4, 5)
    return np.random.default_rng(seed).integers(low, high, shape).astype(NUMPY[type])


def exact(a: Array, b: Array) -> Array:
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize("mode", PITCH)
@pytest.mark.parametrize("trans", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_matrices_lie_as_descriptors_say(mode: int, trans: tuple[int, int]) -> None:
    a, b = whole("f16", (64, 16), 1), whole("f16", (16, 64), 2)
    c = np.random.default_rng(3).integers(-9, 9, (64, 64))
    result = multiplied(a, b, c, "f16", "f32", mode, trans=trans)
    np.testing.assert_array_equal(result, exact(a, b) + c)


@pytest.mark.parametrize("mode", PITCH)
@pytest.mark.parametrize(
    ("type", "dtype", "depth"),
    [("bf16", "f32", 16), ("f16", "f16", 16), ("tf32", "f32", 8), ("e4m3", "f32", 32), ("e5m2", "f16", 32),
     ("s8", "s32", 32), ("u8", "s32", 32)],
)  # fmt: skip
@pytest.mark.parametrize("in_registers", [False, True])
def test_every_type(type: str, dtype: str, depth: int, mode: int, in_registers: bool) -> None:
    a, b = whole(type, (64, depth), 1), whole(type, (depth, 24), 2)
    c = np.random.default_rng(3).integers(-9, 9, (64, 24))
    trans = (0, 0) if type in ("f16", "bf16") else None
    scales = None if dtype == "s32" else (1, 1)
    result = multiplied(a, b, c, type, dtype, mode, trans=trans, scales=scales, in_registers=in_registers)
    np.testing.assert_array_equal(result, exact(a, b) + c)


@pytest.mark.parametrize(("scales", "keeps"), [((-1, 1), 1), ((1, -1), 0), ((-1, -1), 1), ((1, 1), 0)])
def test_scales_and_sums_that_are_not_kept(scales: tuple[int, int], keeps: int) -> None:
    a, b = whole("f16", (64, 16), 1), whole("f16", (16, 8), 2)
    c = np.random.default_rng(3).integers(-9, 9, (64, 8))
    result = multiplied(a, b, c, "f16", "f32", 1, trans=(0, 0), scales=scales, keeps=keeps)
    np.testing.assert_array_equal(result, scales[0] * scales[1] * exact(a, b) + keeps * c)


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_that_stay_within_what_they_can_hold(sign: int) -> None:
    a, b = np.full((64, 32), 100, np.int8), np.full((32, 24), sign * 100, np.int8)
    c = np.full((64, 24), sign * (2**31 - 1000))
    clamped = multiplied(a, b, c, "s8", "s32", 0, scales=None, extra=".satfinite")
    np.testing.assert_array_equal(clamped, 2**31 - 1 if sign > 0 else -(2**31))
    wrapped = multiplied(a, b, c, "s8", "s32", 0, scales=None)
    np.testing.assert_array_equal(wrapped, (c + sign * 320000 + 2**31) % 2**32 - 2**31)


#: What all elements of A and B are, as they lie in a word; of tf32 and e4m3.
SINGLE_1, BYTES_1 = 0x3F800000, 0x38383838


@pytest.mark.parametrize("columns", [8, 64, 256])
def test_products_of_several_depths_in_one_kernel(columns: int) -> None:
    count = columns // 2
    of_d = f"{{{', '.join(f'%r{k}' for k in range(count))}}}"
    fill = """
        bar.sync 0; mov.u32 %s, %t; F{0}: mad.lo.u32 %at32, %s, 4, %room; st.shared.b32 [%at32], {1};
        add.u32 %s, %s, 128; setp.lt.u32 %q, %s, 8192; @%q bra F{0}; bar.sync 0;
        """
    text = f"""
        .version 8.0
        .target sm_90a
        .address_size 64
        .visible .entry k(.param .u64 out) {{
        .shared .align 1024 .b8 room[32768];
        .reg .b32 %r<130>, %t, %s, %at32, %room; .reg .b64 %at, %d; .reg .pred %p, %q;
        mov.u32 %t, %tid.x; mov.u32 %room, room; setp.ne.u32 %p, 0, 1; mov.b64 %d, {descriptor(0, 16, 1024, 1)};
        {fill.format(0, SINGLE_1)}
        wgmma.mma_async.sync.aligned.m64n{columns}k8.f32.tf32.tf32 {of_d}, %d, %d, !%p, 1, 1;
        {fill.format(1, BYTES_1)}
        wgmma.mma_async.sync.aligned.m64n{columns}k32.f32.e4m3.e4m3 {of_d}, %d, %d, %p, 1, 1;
        ld.param.u64 %at, [out]; mad.wide.u32 %at, %t, {count * 4}, %at;
        {" ".join(f"st.global.b32 [%at+{4 * k}], %r{k};" for k in range(count))}
        ret; }}
        """
    out = np.zeros((128, count), np.float32)
    Rig(text).run([out], block=(128,))
    np.testing.assert_array_equal(out, 8 + 32)


def test_a_guard_that_fails_reads_no_matrix() -> None:
    text = f"""
        .version 8.0
        .target sm_90a
        .address_size 64
        .visible .entry k(.param .u64 out) {{ .reg .b32 %r<4>, %t; .reg .b64 %a, %at; .reg .pred %p, %q;
        setp.ne.u32 %p, 0, 1; setp.ne.u32 %q, 0, 0; mov.b64 %a, {descriptor(1024, 16, 1024, 1) | 3 << 49};
        mov.b32 %r0, 7; mov.b32 %r1, 7; mov.b32 %r2, 7; mov.b32 %r3, 7;
        @%q wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%r0, %r1, %r2, %r3}}, %a, %a, %p, 1, 1, 0, 0;
        mov.u32 %t, %tid.x; ld.param.u64 %at, [out]; mad.wide.u32 %at, %t, 16, %at;
        st.global.v4.b32 [%at], {{%r0, %r1, %r2, %r3}}; ret; }}
        """
    out = np.zeros((128, 4), np.uint32)
    Rig(text).run([out], block=(128,))
    np.testing.assert_array_equal(out, 7)


def failing(a: int, b: int, room: int) -> Finding:
    """What stops a product of matrices that these descriptors say lie in so many bytes of shared memory."""
    text = f"""
        .version 8.0
        .target sm_90a
        .address_size 64
        .visible .entry k() {{ .shared .align 1024 .b8 room[{room}]; .reg .b32 %r<4>; .reg .b64 %a, %b; .reg .pred %p;
        setp.ne.u32 %p, 0, 1; st.shared.b32 [room], 0; mov.b64 %a, {a}; mov.b64 %b, {b};
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%r0, %r1, %r2, %r3}}, %a, %b, %p, 1, 1, 0, 0; ret; }}
        """
    with pytest.raises(TeenyError) as caught:
        Rig(text).run([], block=(128,))
    return caught.value.finding


@pytest.mark.parametrize(("stride", "start"), [(1024, 0), (0, 1024)])
def test_a_matrix_beyond_shared_memory_is_stopped(stride: int, start: int) -> None:
    found = failing(descriptor(0, 16, stride, 1), descriptor(start, 16, 1024, 1), room=1024)
    assert found.id == "out-of-bounds"


def test_a_descriptor_with_a_base_offset_is_refused() -> None:
    found = failing(descriptor(0, 16, 1024, 1) | 3 << 49, descriptor(0, 16, 1024, 1), room=8192)
    assert found.id == "unsupported-instruction"
    assert "base offset 3" in found.message


# --- as Triton writes them -------------------------------------------------------------------------------------------

CORPUS = Path(__file__).parents[2] / "corpus" / "triton"


def triton(name: str, args: list[Any], grid: tuple[int, ...] = (1,)) -> None:
    """Run a kernel of the corpus; its hidden parameters are null."""
    text = (CORPUS / f"{name}.ptx").read_text("utf-8")
    (block,) = re.findall(r"\.(?:reqntid|maxntid) (\d+)", text)
    (params,) = re.findall(r"\.entry \w+\((.*?)\)", text, re.DOTALL)
    rig = Rig(text, name=name)
    rig.run([*args, *[0] * (params.count(".param") - len(args))], grid=grid, block=(int(block),), shared=65536)
    rig.device.close()


@pytest.mark.parametrize(("name", "columns"), [("gemm", 64), ("gemm_sm_75", 32), ("gemm_sm_90", 64)])
def test_matrix_products_of_triton(name: str, columns: int) -> None:
    rng = np.random.default_rng(0)
    m, n, k = 128, 128, 70
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    given = [a.view(np.uint16), b.view(np.uint16), c.view(np.uint16), ("i32", m), ("i32", n), ("i32", k)]
    triton(name, given, (m // 64, n // columns))
    np.testing.assert_allclose(c.astype(np.float64), exact(a, b), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    ("name", "type", "size", "atol"),
    [("dot_tf32", np.float32, 32, 3e-2), ("dot_int8", np.int8, 32, 0), ("dot_double", np.float64, 16, 1e-13),
     ("dot_fp8", ml_dtypes.float8_e4m3fn, 64, 1e-4)],
)  # fmt: skip
def test_dots_of_triton(name: str, type: Any, size: int, atol: float) -> None:
    rng = np.random.default_rng(0)
    a, b = ((9 * rng.standard_normal((size, size))).astype(type) for _ in range(2))
    if type is not np.int8:
        a, b = ((each.astype(np.float64) / 9).astype(type) for each in (a, b))
    c = np.zeros((size, size), {np.int8: np.int32, np.float64: np.float64}.get(type, np.float32))
    raw = [each.view(np.uint8) if each.itemsize == 1 and type is not np.int8 else each for each in (a, b)]
    triton(name, [*raw, c])
    np.testing.assert_allclose(c.astype(np.float64), exact(a, b), rtol=0, atol=atol)


def test_attention_of_triton() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((64, 32)).astype(np.float16) for _ in range(3))
    out = np.zeros((64, 32), np.float16)
    triton("attention", [*(each.view(np.uint16) for each in (q, k, v, out)), ("i32", 64)], (2,))
    scores = exact(q, k.T)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    want = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(out.astype(np.float64), want, rtol=0, atol=2e-3)
