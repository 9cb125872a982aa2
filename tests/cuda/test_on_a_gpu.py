"""What only a real GPU can show. ``pytest -m cuda``."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from teenycli.arch import limits_of
from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cuda.device import CudaDevice
from teenycli.devices.cuda.driver import DriverError
from teenycli.devices.cuda.errors import OUT_OF_MEMORY
from teenycli.devices.execute import execute
from teenycli.devices.select import unfit
from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.launch.plan import Address, Argument, Buffer, Field, Launch, Plan, TensorMap
from teenycli.ptx import outline, read_source
from tests.cuda.kernels import (
    CLUSTERS,
    LAST_OF_SHARED,
    MEETS,
    P_N,
    POOL,
    SPIN,
    STORE,
    P,
    copies_its_parameters,
    kernel,
    launch,
    pointer,
    scalar,
    tensor_copy,
)

pytestmark = pytest.mark.cuda

ROOT = Path(__file__).parents[2]
SAMPLES = sorted([*ROOT.glob("ptx/**/*.ptx"), *ROOT.glob("tests/corpus/**/*.ptx")])


@contextmanager
def raised(id: str, exit: Exit = Exit.FAILED) -> Iterator[pytest.ExceptionInfo[TeenyError]]:
    with pytest.raises(TeenyError) as caught:
        yield caught
    assert (caught.value.finding.id, caught.value.exit) == (id, exit)


def one_word(device: CudaDevice) -> dict[str, DeviceBuffer]:
    return {"x": device.upload("x", np.zeros(4, np.uint8))}


def word(device: CudaDevice, buffers: dict[str, DeviceBuffer]) -> int:
    return int(device.download(buffers["x"]).view(np.uint32)[0])


# --- it computes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sample", "block", "elements", "hidden"), [("cuda/vector_add", 256, 256, 0), ("triton/vector_add", 128, 1024, 2)]
)
def test_vector_add_end_to_end(device: CudaDevice, sample: str, block: int, elements: int, hidden: int) -> None:
    n = 1_000_003
    rng = np.random.default_rng(0)
    arrays = {name: rng.random(n, np.float32) for name in ("x", "y")} | {"out": np.full(n, np.nan, np.float32)}
    buffers = tuple(Buffer(name, DTYPES["f32"], (n,), "output" if name == "out" else "input") for name in arrays)
    pointers = [Field("ptr", Address(name)) for name in arrays]
    fields = [*pointers, Field("i32", n), *[Field("ptr", Address())] * hidden]
    args = tuple(Argument(i, f"a{i}", f.kind, 4 if f.kind == "i32" else 8, (f,)) for i, f in enumerate(fields))
    once = Launch("vector_add", 0, "vector_add", (-(-n // elements), 1, 1), (block, 1, 1), args)
    plan = Plan("vector_add", {"n": n}, sample, "vector_add", buffers, (once,))
    module = outline(read_source(ROOT / "ptx" / f"{sample}.ptx"))
    why = unfit(device.gpu, module, "vector_add")
    if why is not None:
        pytest.skip(why)
    done = execute(plan, module, device, arrays, timeout=60)
    np.testing.assert_array_equal(done.arrays["out"], arrays["x"] + arrays["y"])
    assert 0 < done.launch_ms[0] < 1000
    assert done.compile_ms > 0


def test_a_launch_is_timed_by_the_gpu(device: CudaDevice) -> None:
    ms = device.prepare(device.load(kernel(SPIN), "k"), launch([]), {})(10).ms
    assert 19 < ms < 60


@pytest.mark.parametrize("nbytes", [1, 255, 1 << 20, (1 << 26) + 3])
def test_copies_of_any_size_return_whole(device: CudaDevice, nbytes: int) -> None:
    data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    buffer = device.upload("x", data, 4096)
    assert buffer.address % 4096 == 0
    assert np.array_equal(device.download(buffer), data)


def test_more_memory_than_there_is(device: CudaDevice) -> None:
    with pytest.raises(DriverError) as caught:
        device._driver.allocate(1 << 46)
    assert caught.value.code == OUT_OF_MEMORY


@pytest.mark.parametrize("declared", [".visible .global", ".global", ".visible .const",
                                      ".visible .global .attribute(.managed)"])  # fmt: skip
def test_a_variable_of_the_ptx_can_be_set(device: CudaDevice, declared: str) -> None:
    space = "const" if ".const" in declared else "global"
    body = f"ld.param.u64 %rd1, [p];\nld.{space}.u32 %r1, [table+4];\nst.global.u32 [%rd1], %r1;"
    loaded = device.load(kernel(body, P, head=f"{declared} .align 4 .b8 table[8];"), "k")
    buffers = one_word(device)
    for value in (5, 6):
        device.set_variable(loaded, "table", np.array([1, 0, 0, 0, value, 0, 0, 0], np.uint8))
        device.prepare(loaded, launch([pointer("x")]), buffers)(10)
        assert word(device, buffers) == value


def test_machine_code_runs_and_its_parameters_lie_where_it_is_read_to_say(device: CudaDevice) -> None:
    path = ROOT / "tests" / "ptx" / "code" / f"sm_{device.gpu.sm // 10 * 10}.cubin"
    if device.gpu.cuda < (13, 0):
        pytest.skip("the files are of CUDA 13, whose machine code an older driver does not take")
    if not path.exists():
        pytest.skip(f"there is no {path.name}")
    module = outline(read_source(path, code=True))
    for entry in module.entries:
        assert device.load(module, entry.name).facts.static_shared >= (256 if entry.name == "mixed" else 0)
    x = np.arange(300, dtype=np.float32)
    buffers: dict[str, DeviceBuffer] = {name: device.upload(name, x.view(np.uint8)) for name in "xy"}
    args = [pointer("x"), pointer("y"), scalar("f32", 4, 2.5), scalar("u32", 4, 299)]
    once = replace(launch(args, (3, 1, 1), (128, 1, 1)), entry="scale")
    device.prepare(device.load(module, "scale"), once, buffers)(10)
    np.testing.assert_array_equal(device.download(buffers["y"]).view(np.float32), np.append(x[:-1] * 2.5, x[-1]))


# --- parameters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_driver_lays_out_parameters_as_we_do(device: CudaDevice, path: Path) -> None:
    module = outline(read_source(path))
    why = unfit(device.gpu, module, path.stem)
    if why is not None:
        pytest.skip(why)
    for entry in module.entries:
        try:
            device.load(module, entry.name)
        except TeenyError as error:
            # Some texts are for a linker; what must not be is another layout.
            if error.exit is not Exit.UNSUPPORTED:
                raise


@pytest.mark.parametrize("seed", range(40))
def test_parameters_of_any_size_and_alignment_arrive_byte_for_byte(device: CudaDevice, seed: int) -> None:
    rng = random.Random(seed)
    sizes = [(rng.randint(1, 96), 2 ** rng.randint(0, 7)) for _ in range(rng.randint(1, 6))]
    values = [rng.randbytes(size) for size, _ in sizes]
    args = [scalar("bytes", size, value) for (size, _), value in zip(sizes, values, strict=True)]
    total = sum(size for size, _ in sizes)
    buffers: dict[str, DeviceBuffer] = {"out": device.upload("out", np.zeros(total, np.uint8))}
    loaded = device.load(copies_its_parameters(sizes), "k")
    device.prepare(loaded, launch([*args, pointer("out")]), buffers)(10)
    assert device.download(buffers["out"]).tobytes() == b"".join(values)


# --- limits ------------------------------------------------------------------------------------------------------


def test_limits_are_those_of_the_table(device: CudaDevice) -> None:
    assert device.limits == limits_of(device.layout_sm(kernel("")))


def test_shared_memory_up_to_the_limit_and_no_further(device: CudaDevice) -> None:
    loaded = device.load(kernel(LAST_OF_SHARED, P_N, head=POOL), "k")
    buffers, most = one_word(device), device.limits.shared_optin
    for shared in (1, 48 * 1024, most):
        device.prepare(loaded, launch([pointer("x"), scalar("i32", 4, shared)], shared=shared), buffers)(10)
        assert word(device, buffers) == 5
    with raised("launch-refused") as caught:
        device.prepare(loaded, launch([pointer("x"), scalar("i32", 4, 1)], shared=most + 1), buffers)(10)
    assert f"the device allows {most:,}" in caught.value.finding.message


@pytest.mark.parametrize(
    ("directives", "change", "expected"),
    [
        (".reqntid 128", {"block": (64, 1, 1)}, "block 64x1x1, but the kernel demands 128x1x1"),
        (".maxntid 128", {"block": (256, 1, 1)}, "256 threads, but the kernel allows 128"),
        ("", {"block": (2048, 1, 1)}, "2048 threads, but the device allows 1024"),
        ("", {"block": (1, 1, 65)}, "block 1x1x65, but the device allows"),
        ("", {"grid": (1, 65536, 1)}, "grid 1x65536x1, but the device allows"),
        ("", {"grid": (0, 1, 1)}, "grid 0x1x1 has a dimension below 1"),
        (
            "",
            {"grid": (1 << 20, 1, 1), "block": (1024, 1, 1), "cooperative": True},
            "a cooperative grid of 1048576 CTAs",
        ),
    ],
)
def test_what_the_driver_refuses_is_explained_and_the_device_goes_on(
    device: CudaDevice, directives: str, change: dict[str, tuple[int, int, int]], expected: str
) -> None:
    buffers = one_word(device)
    loaded = device.load(kernel(STORE, P, directives), "k")
    with raised("launch-refused") as caught:
        device.prepare(loaded, launch([pointer("x")], **change), buffers)(10)
    assert expected in caught.value.finding.message
    plain = device.load(kernel(STORE, P), "k")
    device.prepare(plain, launch([pointer("x")], (4, 1, 1), (32, 1, 1)), buffers)(10)
    assert word(device, buffers) == 7


@pytest.mark.parametrize("cluster", [1, 2, 8, 16])
@pytest.mark.parametrize(
    ("directives", "version"),
    [
        ("", "7.8"),
        (".reqnctapercluster {}", "7.8"),
        (".reqntid 32 .reqnctapercluster {} .blocksareclusters", "9.0"),
    ],
)
def test_a_grid_counts_ctas_with_clusters_too(device: CudaDevice, cluster: int, directives: str, version: str) -> None:
    module = kernel(CLUSTERS, P, directives.format(cluster), target="sm_90", version=version)
    why = unfit(device.gpu, module, "k")
    if why is not None:
        pytest.skip(why)
    if cluster > device.limits.cluster and device.gpu.sm >= 110:
        pytest.skip(f"{device.gpu} has no clusters beyond the portable size")
    buffers = one_word(device)
    once = launch([pointer("x")], (16, 1, 1), (32, 1, 1), cluster=(cluster, 1, 1), pdl=True)
    try:
        device.prepare(device.load(module, "k"), once, buffers)(10)
    except TeenyError as error:
        if cluster <= device.limits.cluster or "(912)" not in (error.finding.note or ""):
            raise
        pytest.skip(f"{device.gpu} has no room for a cluster of {cluster}")
    assert word(device, buffers) == 16 * 32 * cluster


def test_a_cooperative_grid_is_on_the_gpu_all_at_once(device: CudaDevice) -> None:
    buffers = one_word(device)
    ctas = device._driver.property("multiprocessor_count")
    once = launch([pointer("x")], (ctas, 1, 1), cooperative=True)
    device.prepare(device.load(kernel(MEETS, P), "k"), once, buffers)(10)
    assert word(device, buffers) == ctas


def test_a_kernel_with_a_large_frame(device: CudaDevice) -> None:
    """The driver makes room for it at its first launch."""
    body = """
    .local .align 4 .b8 room[60000];
    ld.param.u64 %rd1, [p];
    ld.global.u32 %r1, [%rd1];
    mov.u64 %rd2, room;
    cvt.u64.u32 %rd3, %r1;
    add.u64 %rd2, %rd2, %rd3;
    st.local.u32 [%rd2+59996], 9;
    ld.local.u32 %r2, [%rd2+59996];
    st.global.u32 [%rd1], %r2;
    """
    buffers = one_word(device)
    device.prepare(device.load(kernel(body, P), "k"), launch([pointer("x")]), buffers)(10)
    assert word(device, buffers) == 9


def test_a_grid_that_no_cluster_divides(device: CudaDevice) -> None:
    module = kernel(CLUSTERS, P, target="sm_90")
    why = unfit(device.gpu, module, "k")
    if why is not None:
        pytest.skip(why)
    loaded = device.load(module, "k")
    with raised("launch-refused") as caught:
        device.prepare(loaded, launch([pointer("x")], (3, 1, 1), cluster=(2, 1, 1)), one_word(device))(10)
    assert "no multiple of cluster" in caught.value.finding.message


# --- refusals to load --------------------------------------------------------------------------------------------


def test_a_ptx_version_newer_than_the_driver(device: CudaDevice) -> None:
    with raised("ptx-version", Exit.UNSUPPORTED) as caught:
        device.load(kernel("", version="99.9"), "k")
    assert "PTX 99.9 needs a newer driver" in caught.value.finding.message


def test_invalid_ptx_comes_with_the_log_and_its_line(device: CudaDevice) -> None:
    module = kernel("frobnicate.u32 %r1, %r2;")
    with raised("invalid-ptx", Exit.UNSUPPORTED) as caught:
        device.load(module, "k")
    lines = module.source.text.splitlines()
    where = caught.value.finding.where
    assert where is not None
    assert lines[where.line - 1].startswith("frobnicate")
    assert "the driver's log:" in (caught.value.finding.note or "")


# --- faults ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("out-of-bounds", {"out-of-bounds"}),
        ("misaligned", {"misaligned"}),
        ("trap", {"launch-failed", "illegal-instruction"}),
        ("print", {"launch-failed", "illegal-instruction"}),
        ("assert", {"assertion"}),
        ("forever", {"timeout"}),
    ],
)
@pytest.mark.usefixtures("apart")
def test_a_fault_is_pinned_to_its_launch_and_the_process_ends(name: str, ids: set[str]) -> None:
    command = [sys.executable, "-m", "tests.cuda.victim", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *printed, last = done.stdout.splitlines()
    assert printed == (["hello"] if name == "print" else [])
    assert ("hello" in done.stderr) == (name == "assert")
    said = json.loads(last)
    assert said["id"] in ids
    assert said["message"].startswith("launch 0 of 'k' (grid 1x1x1, block 1x1x1)")
    assert (said["exit"], said["after"]) == (int(Exit.FAILED), "context-lost")


@pytest.mark.parametrize(
    ("shape", "box", "at"), [((40,), (12,), (7,)), ((6, 10), (4, 8), (1, 4)), ((3, 5, 8), (2, 3, 4), (1, 1, 2))]
)
def test_a_tensor_map_moves_the_box_it_describes(
    device: CudaDevice, shape: tuple[int, ...], box: tuple[int, ...], at: tuple[int, ...]
) -> None:
    if device.gpu.sm < 90:
        pytest.skip("tensor copies need sm_90")
    module = kernel(tensor_copy(box, at), ".param .align 64 .b8 d[128], .param .u64 p", target="sm_90", version="8.0")
    f32 = DTYPES["f32"]
    stride = -(-shape[-1] // 4) * 4
    strides = tuple(4 * stride * math.prod(shape[k + 1 : -1]) for k in range(len(shape) - 1))
    of = TensorMap("d", Address("x"), f32, shape, strides, box, (1,) * len(shape))
    once = launch([("tensormap", 128, of), pointer("y")])
    source = Buffer("x", f32, shape, "input", row_elems=shape[-1], row_stride=stride)
    buffers = (source, Buffer("y", f32, box, "output"))
    x = np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape)
    done = execute(Plan("op", {}, "k.ptx", "k", buffers, (once,)), module, device, {"x": x, "y": np.ones(box, "f")})
    # What lies beyond the tensor is zeros, the padding of a row too.
    held = np.pad(x, [(0, each) for each in box])
    want = held[tuple(slice(start, start + each) for start, each in zip(at, box, strict=True))]
    np.testing.assert_array_equal(done.arrays["y"], want)
