from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cuda.device import CudaDevice, launch_config
from teenycli.devices.cuda.driver import Driver
from teenycli.dtypes import DTYPES
from teenycli.errors import Finding
from teenycli.exits import Exit
from teenycli.launch.plan import Address, Argument, Field, Launch, TensorMap
from teenycli.ptx.layout import layout
from tests.devices.cuda import fake
from tests.devices.cuda.fake import FakeCuda
from tests.devices.cuda.kit import ARGS, LAUNCH, PRINTF, module, raised, ready

pytestmark = pytest.mark.unit


# --- launching ---------------------------------------------------------------------------------------------------


def test_a_launch(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    device.prepare(kernel, LAUNCH, buffers)
    began = len(cuda.driver.calls)
    assert device.prepare(kernel, LAUNCH, buffers)(5).ms == 1.5
    address = (buffers["x"].address + 16).to_bytes(8, "little")
    assert cuda.driver.arguments == [[address, b"\xfe\xff\xff\xff", b"\0\0\0\x3f"]]
    assert cuda.driver.calls[began:] == [
        "cuCtxSetCurrent", "cuCtxSetCurrent", "cuEventRecord", "cuLaunchKernelEx", "cuEventRecord", "cuEventQuery",
        "cuEventElapsedTime",
    ]  # fmt: skip


def test_a_prepared_launch_is_run_as_often_as_wanted(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    run = device.prepare(kernel, LAUNCH, buffers)
    began = len(cuda.driver.calls)
    assert [run(5).ms, run(5).ms] == [1.5, 1.5]
    assert cuda.driver.arguments[0] == cuda.driver.arguments[1]
    assert cuda.driver.calls[began:].count("cuLaunchKernelEx") == 2


def test_an_empty_kernel_is_launched_before_the_first(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures["cuLaunchKernel"] = 401  # which is the launch's own to meet
    for _ in range(2):
        device.prepare(kernel, LAUNCH, buffers)(5)
    launches = [call for call in cuda.driver.calls if call.startswith("cuLaunchKernel")]
    assert launches == ["cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchKernelEx"]
    device.close()
    assert cuda.driver.leaks() == {}


def test_a_fault_met_by_the_empty_kernel_loses_the_context(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures["cuLaunchKernel"] = 719
    with raised("cuda-driver"):
        device.prepare(kernel, LAUNCH, buffers)
    with raised("context-lost"):
        device.prepare(kernel, LAUNCH, buffers)


def test_what_prints_is_waited_for_until_it_is_out(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device, declared=PRINTF)
    device.prepare(kernel, LAUNCH, buffers)(5)
    assert cuda.driver.calls[-3:] == ["cuEventQuery", "cuStreamSynchronize", "cuEventElapsedTime"]


def test_every_call_makes_the_device_s_context_current(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    run = device.prepare(kernel, LAUNCH, buffers)
    for call in (lambda: run(5), lambda: device.download(buffers["x"])):
        before = len(cuda.driver.calls)
        call()
        assert cuda.driver.calls[before] == "cuCtxSetCurrent"


@pytest.mark.parametrize(
    ("args", "id"),
    [
        (ARGS[:2], "argument-count"),
        ((*ARGS, ARGS[1]), "argument-count"),
        ((ARGS[0], replace(ARGS[1], size=8), ARGS[2]), "argument-size"),
        ((replace(ARGS[0], kind="i32", size=4, fields=(Field("i32", 1),)), *ARGS[1:]), "argument-size"),
    ],
)
def test_arguments_that_do_not_fit_never_reach_the_driver(
    cuda: FakeCuda, device: CudaDevice, args: tuple[Argument, ...], id: str
) -> None:
    kernel, buffers = ready(device)
    with raised(id):
        device.prepare(kernel, replace(LAUNCH, args=args), buffers)(5)
    assert "cuLaunchKernelEx" not in cuda.driver.calls


def test_a_struct_arrives_whole(cuda: FakeCuda, device: CudaDevice) -> None:
    cuda.driver.table = [(0, 20)]
    kernel = device.load(module(params=".param .align 4 .b8 s[20]"), "k")
    fields = (Field("ptr", Address()), Field("i32", 7, 8), Field("f32", 1.0, 12), Field("u8", 255, 16))
    args = (Argument(0, "s", "struct", 20, fields),)
    device.prepare(kernel, replace(LAUNCH, args=args), {})(0)
    assert cuda.driver.arguments == [[bytes(8) + b"\7\0\0\0" + b"\0\0\x80\x3f" + b"\xff\0\0\0"]]


@pytest.mark.parametrize(
    ("static", "shared", "expected"),
    [
        (0, 0, []),
        (0, 49152, []),
        (0, 49153, [(8, 49153)]),
        (4096, 45056, []),
        (4096, 45057, [(8, 45057)]),
        (4096, 228352, [(8, 228352)]),
    ],
)
def test_shared_memory_over_48_kib_is_asked_for(
    cuda: FakeCuda, device: CudaDevice, static: int, shared: int, expected: list[tuple[int, int]]
) -> None:
    cuda.driver.function_attributes[1] = static
    kernel, buffers = ready(device)
    for _ in range(2):
        device.prepare(kernel, replace(LAUNCH, shared=shared), buffers)(0)
    assert cuda.driver.set_attributes == expected
    assert cuda.driver.configs[-1].sharedMemBytes == shared


def test_more_shared_memory_than_there_is(cuda: FakeCuda, device: CudaDevice) -> None:
    cuda.driver.function_attributes[1] = 4096
    kernel, buffers = ready(device)
    with raised("launch-refused") as caught:
        device.prepare(kernel, replace(LAUNCH, shared=228353), buffers)(0)
    assert "the device allows 232,448 less 4,096 static" in caught.value.finding.message
    assert "cuLaunchKernelEx" not in cuda.driver.calls


def test_a_cluster_over_the_portable_size_is_asked_for(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    device.prepare(kernel, replace(LAUNCH, grid=(32, 1, 1), cluster=(16, 1, 1)), buffers)(0)
    assert cuda.driver.set_attributes == [(14, 1)]


@pytest.mark.parametrize(
    ("change", "directives", "sm", "expected"),
    [
        ({}, "", 90, ((8, 4, 2), None)),
        ({"cluster": (2, 2, 1)}, "", 90, ((8, 4, 2), (2, 2, 1))),
        ({}, ".explicitcluster", 90, ((8, 4, 2), (1, 1, 1))),
        ({"cluster": (2, 2, 1)}, ".reqntid 128 .reqnctapercluster 2,2 .blocksareclusters", 90, ((4, 2, 2), (2, 2, 1))),
    ],
)
def test_a_grid_counts_ctas_unless_the_driver_counts_clusters(
    change: dict[str, Any], directives: str, sm: int, expected: tuple[Any, Any]
) -> None:
    entry = module(directives).entries[0]
    config = launch_config(replace(LAUNCH, grid=(8, 4, 2), **change), entry, sm)
    assert (config.grid, config.cluster) == expected


def test_programmatic_dependent_launch_needs_sm_90() -> None:
    entry = module().entries[0]
    assert launch_config(replace(LAUNCH, pdl=True), entry, 90).pdl
    assert not launch_config(replace(LAUNCH, pdl=True), entry, 89).pdl


def test_numbers_that_no_driver_could_take(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    with raised("launch-refused"):
        device.prepare(kernel, replace(LAUNCH, grid=(1 << 40, 1, 1)), buffers)(0)
    assert "cuLaunchKernelEx" not in cuda.driver.calls


def test_a_refused_launch_is_explained_and_the_device_stays_of_use(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device, ".reqntid 256")
    cuda.driver.failures["cuLaunchKernelEx"] = [1, 0]
    with raised("launch-refused") as caught:
        device.prepare(kernel, LAUNCH, buffers)(0)
    assert "block 128x1x1, but the kernel demands 256x1x1" in caught.value.finding.message
    device.prepare(kernel, replace(LAUNCH, block=(256, 1, 1)), buffers)(0)
    device.close()
    assert cuda.driver.leaks() == {}


def test_a_cooperative_launch_too_large_says_what_fits(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures["cuLaunchKernelEx"] = 720
    launch = replace(LAUNCH, grid=(1000, 1, 1), cooperative=True)
    with raised("launch-refused") as caught:
        device.prepare(kernel, launch, buffers)(0)
    assert "1000 CTAs, but the device holds 264" in caught.value.finding.message
    cuda.driver.failures["cuOccupancyMaxActiveBlocksPerMultiprocessor"] = 1
    with raised("launch-refused") as caught:
        device.prepare(kernel, launch, buffers)(0)
    assert "the driver refused" in caught.value.finding.message


@pytest.mark.parametrize("call", ["cuEventRecord", "cuEventQuery", "cuStreamSynchronize", "cuEventElapsedTime"])
def test_a_failure_around_a_launch_is_no_refusal_of_it(cuda: FakeCuda, device: CudaDevice, call: str) -> None:
    kernel, buffers = ready(device, declared=PRINTF)
    cuda.driver.failures[call] = 400
    with raised("cuda-driver"):
        device.prepare(kernel, LAUNCH, buffers)(0)


def test_a_driver_without_extended_launches_is_too_old(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures["cuLaunchKernelEx"] = RuntimeError("function cuLaunchKernelEx is not found")
    with raised("cuda-driver", Exit.UNSUPPORTED):
        device.prepare(kernel, LAUNCH, buffers)(0)


# --- faults, time-outs, interrupts -------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["cuEventQuery", "cuLaunchKernelEx", "cuEventRecord", "cuStreamSynchronize"])
@pytest.mark.parametrize(("code", "id"), [(700, "out-of-bounds"), (716, "misaligned"), (719, "launch-failed")])
def test_a_fault_is_pinned_and_the_context_is_lost(
    cuda: FakeCuda, device: CudaDevice, call: str, code: int, id: str
) -> None:
    kernel, buffers = ready(device, declared=PRINTF)
    run = device.prepare(kernel, replace(LAUNCH, index=2), buffers)
    cuda.driver.failures[call] = code
    with raised(id) as caught:
        run(0)
    assert caught.value.finding.message.startswith("launch 2 of 'k'")
    with raised("context-lost") as caught:
        device.download(buffers["x"])
    assert caught.value.finding.message == "cuda:0 is of no more use: launch 2 of 'k' met a fault"
    # Every call would fail, so none is made.
    calls = len(cuda.driver.calls)
    device.free(buffers["x"])
    device.close()
    assert len(cuda.driver.calls) == calls


def test_a_fault_met_while_copying_loses_the_context_too(cuda: FakeCuda, device: CudaDevice) -> None:
    buffer = device.upload("x", np.zeros(8, np.uint8))
    cuda.driver.failures["cuMemcpyDtoHAsync"] = 700
    with raised("cuda-driver"):
        device.download(buffer)
    with raised("context-lost"):
        device.download(buffer)


@pytest.mark.parametrize("call", ["cuModuleLoadDataEx", "cuFuncGetParamInfo", "cuMemAlloc"])
def test_a_fault_that_another_call_meets_loses_the_context_too(cuda: FakeCuda, device: CudaDevice, call: str) -> None:
    cuda.driver.failures[call] = 719
    with raised("cuda-driver"):
        ready(device)
    with raised("context-lost"):
        device.load(module(), "k")
    calls = len(cuda.driver.calls)
    device.close()
    assert len(cuda.driver.calls) == calls


def test_a_launch_is_waited_for(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures["cuEventQuery"] = [600] * 20
    device.prepare(kernel, LAUNCH, buffers)(0)
    assert cuda.driver.calls.count("cuEventQuery") == 21


def test_a_launch_that_does_not_end_in_time(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures["cuEventQuery"] = 600
    with raised("timeout"):
        device.prepare(kernel, LAUNCH, buffers)(0.05)
    calls = len(cuda.driver.calls)
    device.close()
    # Freeing would wait for the kernel, and so would the end of the last hold on the context.
    assert len(cuda.driver.calls) == calls
    assert cuda.driver.leaks()["context"] == 1


def test_an_interrupt_while_a_kernel_runs_waits_for_nothing(
    cuda: FakeCuda, device: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures["cuEventQuery"] = 600

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        device.prepare(kernel, LAUNCH, buffers)(0)
    calls = len(cuda.driver.calls)
    device.close()
    assert len(cuda.driver.calls) == calls


def test_kernels_and_buffers_of_another_device_are_refused(device: CudaDevice) -> None:
    class Other:
        name, address, nbytes, compile_ms, cached = "x", 0, 0, 0.0, False
        findings: tuple[Finding, ...] = ()

    with pytest.raises(TypeError, match="Other is no kernel of cuda:0"):
        device.prepare(Other(), LAUNCH, {})(0)
    with pytest.raises(TypeError, match="Other is no buffer of cuda:0"):
        device.free(Other())


TENSOR = TensorMap("d", Address("x", 16), DTYPES["f16"], (4, 8), (32,), (2, 8), (1, 2), "128B", fill="nan")
MAPPED = Launch(
    "op", 0, "k", (1, 1, 1), (32, 1, 1), (Argument(0, "d", "tensormap", 128, (Field("tensormap", TENSOR),)),)
)


def map_launched(cuda: FakeCuda, device: CudaDevice, sm: int = 90) -> bytes:
    made = dataclasses.replace(module(params=".param .align 64 .b8 d[128]"), target=f"sm_{sm}")
    cuda.driver.table = [(layout(made.entries[0], sm)[0].offset, 128)]
    kernel = device.load(made, "k")
    buffers: dict[str, DeviceBuffer] = {"x": device.upload("x", np.zeros(256, np.uint8))}
    device.prepare(kernel, MAPPED, buffers)(0)
    ((raw,),) = cuda.driver.arguments
    assert raw[:8] == (buffers["x"].address + 16).to_bytes(8, "little")
    return raw


def test_a_tensor_map_is_encoded_by_the_driver_fastest_dimension_first(cuda: FakeCuda, device: CudaDevice) -> None:
    raw = map_launched(cuda, device)
    assert [int.from_bytes(raw[8 * k : 8 * k + 8], "little") for k in range(1, 16)] == list(range(1, 16))
    ((dtype, *rows),) = cuda.driver.maps
    assert dtype == fake.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16
    assert rows[:4] == [[8, 4], [32], [8, 2], [2, 1]]
    assert rows[4:] == [
        fake.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        fake.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        fake.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        fake.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
    ]


def test_a_tensor_map_of_one_dimension_has_strides_that_nobody_reads(cuda: FakeCuda) -> None:
    row = TensorMap("d", Address("x"), DTYPES["f32"], (8,), (), (4,), (1,))
    Driver(0, cuda.packages).encode_tensor_map(row, 4096)
    assert cuda.driver.maps[0][1:5] == ([8], [], [4], [1])


def test_a_driver_without_tensor_maps_is_too_old(cuda: FakeCuda, device: CudaDevice) -> None:
    cuda.driver.cuda = 11080
    with raised("cuda-driver", Exit.UNSUPPORTED):
        map_launched(cuda, device)


def test_a_tensor_map_that_the_driver_refuses(cuda: FakeCuda, device: CudaDevice) -> None:
    cuda.driver.failures["cuTensorMapEncodeTiled"] = 1
    with raised("cuda-driver") as caught:
        map_launched(cuda, device)
    assert "encoding the tensor map 'd'" in str(caught.value)


def test_gpus_before_sm_90_have_no_tensor_maps() -> None:
    made = FakeCuda(sm=80)
    with raised("tensormap-architecture", Exit.UNSUPPORTED):
        map_launched(made, CudaDevice(0, made.packages), 80)


@pytest.mark.parametrize(("code", "words"), [(810, "another one met a fault"), (709, "has destroyed the context")])
@pytest.mark.parametrize("call", ["cuLaunchKernelEx", "cuEventQuery", "cuModuleLoadDataEx"])
def test_what_others_end_the_context_with_is_no_fault_of_the_launch_and_nothing_follows(
    cuda: FakeCuda, device: CudaDevice, call: str, code: int, words: str
) -> None:
    kernel, buffers = ready(device)
    run = device.prepare(kernel, LAUNCH, buffers)
    cuda.driver.failures[call] = code
    with raised("cuda-driver") as caught:
        if call == "cuModuleLoadDataEx":
            device.load(module(".maxntid 64"), "k")
        run(0)
    assert words in caught.value.finding.message
    calls = len(cuda.driver.calls)
    with raised("context-lost"):
        run(0)
    device.close()
    assert len(cuda.driver.calls) == calls
