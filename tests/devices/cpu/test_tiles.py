"""Copies of boxes of a tensor by its map, against numpy."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from msgspec.structs import replace

from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cpu import CpuDevice
from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError
from teenycli.launch.plan import Address, TensorMap
from tests.cuda.kernels import kernel, launch, pointer
from tests.devices.cpu.kit import Array

pytestmark = pytest.mark.unit

NUMPY: dict[str, Any] = {"u8": np.uint8, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32,
                         "f32": np.float32, "f64": np.float64}  # fmt: skip
ROOM = 4096


def program(rank: int, at: tuple[int, ...], nbytes: int, *, store: bool) -> str:
    """One thread brings a box at these coordinates to shared memory, which holds 0xEE before, and all of it to the
    buffer; or the buffer to shared memory, and a box of it to the tensor."""
    where = ", ".join(str(start) for start in reversed(at))
    fill = f"""
mov.u32 %r1, tile; mov.u32 %r2, 0; ld.param.u64 %rd3, [p];
F{int(store)}: add.u32 %r3, %r1, %r2; cvt.u64.u32 %rd4, %r2; add.u64 %rd4, %rd3, %rd4;
"""
    moved = "ld.global.u32 %r4, [%rd4]; st.shared.u32 [%r3], %r4;" if store else "st.shared.u32 [%r3], 0xEEEEEEEE;"
    loop = f"add.u32 %r2, %r2, 4; setp.lt.u32 %p1, %r2, {ROOM}; @%p1 bra F{int(store)};"
    head = f"""
.shared .align 1024 .b8 tile[{ROOM}]; .shared .align 8 .b64 bar;
{fill} {moved} {loop}
mov.b64 %rd1, d; cvta.param.u64 %rd1, %rd1; mov.u32 %r5, bar;
"""
    if store:
        return f"""{head}
cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [%rd1, {{{where}}}], [%r1];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
"""
    return f"""{head}
mbarrier.init.shared.b64 [%r5], 1; mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r5], {nbytes};
cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [%rd1, {{{where}}}];
cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {{{where}}}], [%r5];
W: mbarrier.try_wait.parity.shared.b64 %p1, [%r5], 0; @!%p1 bra W;
mov.u32 %r2, 0;
L: add.u32 %r3, %r1, %r2; cvt.u64.u32 %rd4, %r2; add.u64 %rd4, %rd3, %rd4; ld.shared.u32 %r4, [%r3];
st.global.u32 [%rd4], %r4; add.u32 %r2, %r2, 4; setp.lt.u32 %p1, %r2, {ROOM}; @%p1 bra L;
"""


def copied(
    of: TensorMap, at: tuple[int, ...], tensor: Array, tile: Array, *, store: bool = False
) -> tuple[Array, Array]:
    """Tensor and tile, as bytes, as they are after the copy."""
    counts = [-(-box // step) for box, step in zip(of.box, of.element_strides, strict=True)]
    body = program(len(of.shape), at, math.prod(counts) * of.dtype.size, store=store)
    module = kernel(body, ".param .align 64 .b8 d[128], .param .u64 p", target="sm_90", version="8.0")
    with CpuDevice(threads=1, cache=False) as device:
        buffers: dict[str, DeviceBuffer] = {
            name: device.upload(name, np.ascontiguousarray(array).view(np.uint8).reshape(-1))
            for name, array in (("x", tensor), ("tile", tile))
        }
        once = launch([("tensormap", 128, of), pointer("tile")])
        places = zip(once.args, (48, 176), strict=True)  # those of sm_90's constant bank
        once = replace(once, args=tuple(replace(each, offset=offset) for each, offset in places))
        device.prepare(device.load(module, "k"), once, buffers)(10)
        return device.download(buffers["x"]), device.download(buffers["tile"])


def a_map(dtype: str, shape: tuple[int, ...], box: tuple[int, ...], **rest: Any) -> tuple[TensorMap, Array]:
    """A map over a dense tensor, rows padded to 16 bytes, and the tensor."""
    size = DTYPES[dtype].size
    wide = (*shape[:-1], -(-shape[-1] * size // 16) * 16 // size)
    data = np.random.default_rng(3).integers(1, 100, wide).astype(NUMPY[dtype])
    strides = tuple(size * math.prod(wide[k + 1 :]) for k in range(len(shape) - 1))
    steps = rest.pop("element_strides", (1,) * len(shape))
    return TensorMap("d", Address("x"), DTYPES[dtype], shape, strides, box, steps, **rest), data


def indices(of: TensorMap, at: tuple[int, ...]) -> tuple[list[Array], list[Array]]:
    """The coordinates of a box by dimension, and which are within the tensor."""
    found = [
        start + step * np.arange(-(-box // step))
        for start, box, step in zip(at, of.box, of.element_strides, strict=True)
    ]
    return found, [(each >= 0) & (each < extent) for each, extent in zip(found, of.shape, strict=True)]


def box_of(of: TensorMap, at: tuple[int, ...], data: Array, outside: float) -> Array:
    found, inside = indices(of, at)
    clipped = [np.clip(each, 0, extent - 1) for each, extent in zip(found, of.shape, strict=True)]
    picked = data[np.ix_(*clipped)]
    keep = np.zeros(picked.shape, bool)
    keep[np.ix_(*[np.flatnonzero(each) for each in inside])] = True
    return np.where(keep, picked, np.asarray(outside, dtype=data.dtype)).astype(data.dtype)


def swizzled(raw: Array, swizzle: str) -> Array:
    """Bytes of a box as they lie in shared memory: 16-byte chunks exchanged (PTX ISA, "Swizzling Modes")."""
    mask = {"none": 0, "32B": 1, "64B": 3, "128B": 7}[swizzle]
    at = np.arange(raw.size)
    out = np.full(ROOM, 0xEE, np.uint8)
    out[at ^ ((at >> 7 & mask) << 4)] = raw
    return out


CASES: list[tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("f32", (40,), (12,), (7,), {}),
    ("f32", (40,), (12,), (-5,), {}),
    ("f32", (6, 10), (4, 8), (1, 4), {}),
    ("f64", (6, 10), (4, 2), (-2, 9), {}),
    ("u8", (3, 5, 40), (2, 3, 32), (2, -1, 20), {}),
    ("i32", (2, 3, 4, 8), (1, 2, 2, 4), (1, 2, 3, 6), {}),
    ("f16", (2, 2, 3, 4, 8), (1, 1, 2, 2, 8), (1, 0, 2, 3, 1), {}),
    ("f16", (9, 100), (3, 32), (0, 60), {"element_strides": (2, 3)}),
    ("bf16", (20, 70), (16, 64), (10, 30), {"swizzle": "128B"}),
    ("f32", (20, 70), (16, 16), (-3, 60), {"swizzle": "64B"}),
    ("f32", (20, 70), (16, 8), (2, 3), {"swizzle": "32B"}),
    ("f16", (6, 16), (4, 8), (4, 12), {"fill": "nan"}),
    ("f32", (6, 16), (4, 8), (100, 100), {}),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "shape", "box", "at", "rest"), CASES)
def test_a_box_comes_to_shared_memory(
    dtype: str, shape: tuple[int, ...], box: tuple[int, ...], at: tuple[int, ...], rest: dict[str, Any]
) -> None:
    of, data = a_map(dtype, shape, box, **rest)
    before, tile = copied(of, at, data, np.zeros(ROOM, np.uint8))
    assert before.tobytes() == data.tobytes()
    want = box_of(of, at, data, np.nan if of.fill == "nan" else 0)
    raw = np.ascontiguousarray(want).view(np.uint8).reshape(-1)
    if of.fill == "nan":
        got = tile[: raw.size].view(NUMPY[dtype])
        np.testing.assert_array_equal(got, want.reshape(-1))
    else:
        np.testing.assert_array_equal(tile, swizzled(raw, of.swizzle))


@pytest.mark.parametrize(("dtype", "shape", "box", "at", "rest"), [case for case in CASES if "fill" not in case[4]])
def test_a_box_goes_to_the_tensor_as_far_as_it_is_within(
    dtype: str, shape: tuple[int, ...], box: tuple[int, ...], at: tuple[int, ...], rest: dict[str, Any]
) -> None:
    of, data = a_map(dtype, shape, box, **rest)
    counts = [-(-each // step) for each, step in zip(of.box, of.element_strides, strict=True)]
    new = np.random.default_rng(4).integers(100, 200, counts).astype(NUMPY[dtype])
    tile = swizzled(np.ascontiguousarray(new).view(np.uint8).reshape(-1), of.swizzle)
    after, _ = copied(of, at, data, tile, store=True)
    found, inside = indices(of, at)
    want = data.copy()
    want[np.ix_(*[each[ok] for each, ok in zip(found, inside, strict=True)])] = new[
        np.ix_(*[np.flatnonzero(ok) for ok in inside])
    ]
    assert after.tobytes() == want.tobytes()


@pytest.mark.parametrize("how", [{"interleave": "16B"}, {"swizzle": "32B"}])
def test_a_map_whose_tiles_lie_as_no_document_says_is_refused(how: dict[str, Any]) -> None:
    of, data = a_map("f16", (2, 4, 16), (1, 2, 8), **how)
    with pytest.raises(TeenyError) as caught:
        copied(of, (0, 0, 0), data, np.zeros(ROOM, np.uint8))
    assert caught.value.finding.id == "unsupported-instruction"


@pytest.mark.parametrize("store", [False, True])
def test_a_map_of_more_than_the_buffer_holds_is_stopped(store: bool) -> None:
    of, data = a_map("f32", (6, 16), (4, 8))
    with pytest.raises(TeenyError) as caught:
        copied(of, (3, 8), data[:4], np.zeros(ROOM, np.uint8), store=store)
    assert caught.value.finding.id == "out-of-bounds"
    assert "'x'" in caught.value.finding.message
