from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from teenycli.arch import limits_of
from teenycli.devices.base import Device, DeviceBuffer
from teenycli.devices.cuda import device as under_test
from teenycli.devices.cuda.device import CudaDevice, CudaKernel, launch_config
from teenycli.devices.cuda.driver import PackageError
from teenycli.dtypes import DTYPES
from teenycli.errors import Finding, TeenyError
from teenycli.exits import Exit
from teenycli.launch.plan import Address, Argument, Field, Launch, TensorMap
from teenycli.ptx import outline, read_source
from teenycli.ptx.layout import layout
from teenycli.ptx.model import Module
from tests.devices.cuda.fake import CUDAError, FakeCuda
from tests.ptx.text import module_of

pytestmark = pytest.mark.unit

CODE = Path(__file__).parents[2] / "ptx" / "code"

TABLE = [(0, 8), (8, 4), (12, 4)]
ARGS = (
    Argument(0, "x", "ptr", 8, (Field("ptr", Address("x", 16)),)),
    Argument(1, "n", "i32", 4, (Field("i32", -2),)),
    Argument(2, "flag", "f32", 4, (Field("f32", 0.5),)),
)
LAUNCH = Launch("op", 0, "k", (4, 1, 1), (128, 1, 1), ARGS)


def module(directives: str = "", params: str = ".param .u64 x, .param .u32 n, .param .f32 a") -> Module:
    return module_of(f".visible .entry k({params}) {directives} {{ .loc 1 1 1\n ret; }}\n")


@pytest.fixture
def cuda() -> FakeCuda:
    made = FakeCuda()
    made.driver.table = list(TABLE)
    return made


@pytest.fixture
def device(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    monkeypatch.setattr(under_test, "kernel_module_version", lambda: "580.159")
    return CudaDevice(0, cuda.packages)


def ready(device: CudaDevice, directives: str = "") -> tuple[CudaKernel, dict[str, DeviceBuffer]]:
    return device.load(module(directives), "k"), {"x": device.upload("x", np.zeros(64, np.uint8))}


@contextmanager
def raised(id: str, exit: Exit = Exit.FAILED) -> Iterator[pytest.ExceptionInfo[TeenyError]]:
    """Expects a TeenyError of this id and exit code."""
    with pytest.raises(TeenyError) as caught:
        yield caught
    assert (caught.value.finding.id, caught.value.exit) == (id, exit)


# --- variables ---------------------------------------------------------------------------------------------------


def test_a_variable_is_written_whole_or_not_at_all(device: CudaDevice, cuda: FakeCuda) -> None:
    kernel, buffers = ready(device)
    cuda.driver.variables["table"] = buffers["x"].address
    with raised("variable-size") as caught:
        device.set_variable(kernel, "table", np.arange(60, dtype=np.uint8))
    assert "60 bytes by the PTX, and 64 by the driver" in str(caught.value)
    assert not device.download(buffers["x"]).any()
    device.set_variable(kernel, "table", np.arange(64, dtype=np.uint8))
    assert device.download(buffers["x"]).tolist() == list(range(64))


def test_a_variable_that_the_driver_has_left_out_is_passed_over(device: CudaDevice, cuda: FakeCuda) -> None:
    kernel, _ = ready(device)
    before = cuda.driver.calls.count("cuMemcpyHtoD")
    device.set_variable(kernel, "gone", np.zeros(4, np.uint8))
    assert cuda.driver.calls.count("cuMemcpyHtoD") == before


# --- opening and closing -----------------------------------------------------------------------------------------


def test_it_is_a_device(device: CudaDevice) -> None:
    as_device: Device = device
    assert as_device.name == "cuda:0"
    assert as_device.description == "Fake 100, sm_90, driver 580.159 (CUDA 13.0)"
    assert as_device.layout_sm(module()) == 90
    assert as_device.limits == limits_of(90)


def test_without_a_kernel_module_s_version_the_description_does_without(
    device: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "kernel_module_version", lambda: None)
    assert device.description == "Fake 100, sm_90, driver (CUDA 13.0)"


def test_clusters_start_with_sm_90() -> None:
    assert CudaDevice(0, FakeCuda(sm=89).packages).limits.cluster == 1


def test_everything_is_let_go_of(cuda: FakeCuda, device: CudaDevice) -> None:
    with device:
        kernel, buffers = ready(device)
        device.launch(kernel, LAUNCH, buffers, 0)
    assert cuda.driver.leaks() == {}
    device.close()
    with raised("context-lost"):
        device.upload("y", np.zeros(1, np.uint8))


@pytest.mark.parametrize(
    ("call", "results"),
    [
        ("cuDeviceGet", [2]),
        ("cuDevicePrimaryCtxRetain", [2]),
        ("cuStreamCreate", [2]),
        ("cuDriverGetVersion", [2]),
        ("cuEventCreate", [2]),
        ("cuEventCreate", [0, 2]),
    ],
)
def test_a_device_that_cannot_be_opened_leaves_nothing_behind(cuda: FakeCuda, call: str, results: list[int]) -> None:
    cuda.driver.failures[call] = results
    with raised("no-device", Exit.NO_DEVICE):
        CudaDevice(0, cuda.packages)
    assert cuda.driver.leaks() == {}


def test_a_device_that_is_taken_is_told_with_the_driver_s_words(cuda: FakeCuda) -> None:
    cuda.core.refusal = CUDAError("CUDA_ERROR_DEVICE_UNAVAILABLE: in exclusive mode")
    with raised("no-device", Exit.NO_DEVICE) as caught:
        CudaDevice(0, cuda.packages)
    assert caught.value.finding.message == "cuda:0 cannot be opened: another process has the GPU to itself"
    note = "cuda.core.Device.set_current says CUDA_ERROR_DEVICE_UNAVAILABLE (46): in exclusive mode"
    assert caught.value.finding.note == note


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise PackageError("cuda.core: No module named 'cuda'")

    monkeypatch.setattr(under_test, "packages", missing)
    with raised("no-cuda-package", Exit.NO_DEVICE) as caught:
        CudaDevice(0)
    assert caught.value.finding.hint == "pip install 'cuda-core>=1' cuda-python"


@pytest.mark.parametrize(
    "call", ["cuMemFree", "cuModuleUnload", "cuEventDestroy", "cuStreamDestroy", "cuDevicePrimaryCtxRelease"]
)
def test_a_failure_while_closing_stops_nothing(cuda: FakeCuda, device: CudaDevice, call: str) -> None:
    ready(device)
    cuda.driver.failures[call] = 400
    with raised("cuda-driver"):
        device.close()
    assert cuda.driver.leaks() == {}
    device.close()


def test_of_failures_while_closing_the_first_is_told(cuda: FakeCuda, device: CudaDevice) -> None:
    ready(device)
    cuda.driver.failures |= {"cuModuleUnload": 400, "cuEventDestroy": 1, "cuStreamDestroy": 1}
    with raised("cuda-driver") as caught:
        device.close()
    assert (caught.value.finding.note or "").startswith("cuModuleUnload says CUDA_ERROR_INVALID_HANDLE")
    assert cuda.driver.leaks() == {}


def test_a_failure_while_opening_is_told_whatever_fails_after_it(cuda: FakeCuda) -> None:
    cuda.driver.failures |= {"cuEventCreate": 2, "cuStreamDestroy": 400, "cuDevicePrimaryCtxRelease": 400}
    with raised("no-device", Exit.NO_DEVICE) as caught:
        CudaDevice(0, cuda.packages)
    assert (caught.value.finding.note or "").startswith("cuEventCreate says CUDA_ERROR_OUT_OF_MEMORY (2)")
    assert cuda.driver.leaks() == {}


# --- loading -----------------------------------------------------------------------------------------------------


def test_the_driver_gets_text_without_debug_information(cuda: FakeCuda, device: CudaDevice) -> None:
    text = module()
    kernel = device.load(text, "k")
    (image,) = cuda.driver.images
    assert b".loc" not in image
    assert image.count(b"\n") == text.source.text.count("\n")
    assert (kernel.compile_ms > 0, kernel.cached, kernel.findings) == (True, False, ())
    assert (kernel.facts.max_threads, kernel.facts.registers, kernel.facts.static_shared) == (1024, 32, 0)


def test_the_driver_gets_machine_code_as_it_is(cuda: FakeCuda, device: CudaDevice) -> None:
    code = outline(read_source(CODE / "sm_90.cubin", code=True))
    cuda.driver.entries, cuda.driver.table = {"none"}, []
    device.load(code, "none")
    assert cuda.driver.images == [(CODE / "sm_90.cubin").read_bytes()[:-1]]


def test_machine_code_of_another_family_is_refused_before_the_driver_sees_it(
    cuda: FakeCuda, device: CudaDevice
) -> None:
    code = outline(read_source(CODE / "sm_80.cubin", code=True))
    with raised("target-architecture", Exit.UNSUPPORTED) as caught:
        device.load(code, "none")
    assert "is for sm_80 (machine code), which runs on the sm_8x family" in caught.value.finding.message
    assert cuda.driver.images == []


def test_machine_code_that_the_driver_does_not_take(cuda: FakeCuda, device: CudaDevice) -> None:
    cuda.driver.failures["cuModuleLoadDataEx"] = 200
    with raised("invalid-ptx", Exit.UNSUPPORTED) as caught:
        device.load(outline(read_source(CODE / "sm_90.cubin", code=True)), "none")
    assert "of CUDA 13.0, takes this machine code for no code that it can run" in caught.value.finding.message


def test_a_module_is_compiled_once_for_all_its_entries(cuda: FakeCuda, device: CudaDevice) -> None:
    both = module_of(".entry k() { ret; }\n.entry other() { ret; }\n")
    cuda.driver.table, cuda.driver.entries = [], {"k", "other"}
    device.load(both, "k")
    device.load(both, "other")
    assert cuda.driver.calls.count("cuModuleLoadDataEx") == 1


def test_an_unknown_entry(device: CudaDevice) -> None:
    with raised("unknown-entry", Exit.UNUSABLE):
        device.load(module(), "kk")


def test_a_target_the_gpu_does_not_take_never_reaches_the_driver(cuda: FakeCuda, device: CudaDevice) -> None:
    with raised("target-architecture", Exit.UNSUPPORTED):
        device.load(dataclasses.replace(module(), target="sm_100a"), "k")
    assert cuda.driver.images == []


@pytest.mark.parametrize(
    ("code", "id"), [(222, "ptx-version"), (218, "invalid-ptx"), (209, "target-architecture"), (221, "no-jit")]
)
def test_a_module_that_does_not_load(cuda: FakeCuda, device: CudaDevice, code: int, id: str) -> None:
    cuda.driver.failures["cuModuleLoadDataEx"] = code
    cuda.driver.log = ("", "line 6; error   : what is this")
    with raised(id, Exit.UNSUPPORTED) as caught:
        device.load(module(), "k")
    assert "what is this" in (caught.value.finding.note or "")
    device.close()
    assert cuda.driver.leaks() == {}


@pytest.mark.parametrize("call", ["cuModuleGetFunction", "cuFuncGetAttribute", "cuFuncGetParamInfo"])
def test_a_kernel_that_cannot_be_fetched(cuda: FakeCuda, device: CudaDevice, call: str) -> None:
    cuda.driver.failures[call] = 400
    with raised("cuda-driver", Exit.UNSUPPORTED):
        device.load(module(), "k")
    device.close()
    assert cuda.driver.leaks() == {}


def test_the_driver_s_parameter_table_is_held_against_ours(cuda: FakeCuda, device: CudaDevice) -> None:
    cuda.driver.table[2] = (16, 4)
    with raised("parameter-layout"):
        device.load(module(), "k")


def test_a_driver_without_a_parameter_table_is_believed(cuda: FakeCuda, device: CudaDevice) -> None:
    cuda.driver.failures["cuFuncGetParamInfo"] = RuntimeError("function cuFuncGetParamInfo is not found")
    assert device.load(module(), "k").findings == ()


def test_an_architecture_whose_bank_is_unknown_gives_a_warning() -> None:
    cuda = FakeCuda(sm=150)
    cuda.driver.table = list(TABLE)
    (finding,) = CudaDevice(0, cuda.packages).load(module(), "k").findings
    assert finding.id == "parameter-base"


# --- memory ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("align", [0, 1, 256, 512, 4096, 1 << 16])
@pytest.mark.parametrize("nbytes", [1, 7, 5000])
def test_what_goes_up_comes_down(device: CudaDevice, align: int, nbytes: int) -> None:
    data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    buffer = device.upload("x", data, align)
    assert buffer.address % max(align, 1) == 0
    assert (buffer.name, buffer.nbytes) == ("x", nbytes)
    np.testing.assert_array_equal(device.download(buffer), data)


def test_strided_data_goes_up_in_order(device: CudaDevice) -> None:
    data = np.arange(20, dtype=np.uint8)[::2]
    np.testing.assert_array_equal(device.download(device.upload("x", data)), data)


def test_a_buffer_without_elements_has_an_address(cuda: FakeCuda, device: CudaDevice) -> None:
    buffer = device.upload("x", np.zeros(0, np.uint8))
    assert buffer.address
    assert device.download(buffer).size == 0
    assert "cuMemcpyHtoD" not in cuda.driver.calls


def test_a_copy_has_arrived_before_a_launch_may_start(cuda: FakeCuda, device: CudaDevice) -> None:
    device.upload("x", np.zeros(8, np.uint8))
    assert cuda.driver.calls[-2:] == ["cuMemcpyHtoD", "cuCtxSynchronize"]


def test_a_buffer_can_be_freed_early_and_only_once(cuda: FakeCuda, device: CudaDevice) -> None:
    buffer = device.upload("x", np.zeros(8, np.uint8))
    device.free(buffer)
    assert cuda.driver.leaks()["memory"] == 0
    device.free(buffer)
    device.close()
    assert cuda.driver.calls.count("cuMemFree") == 1


def test_out_of_memory(cuda: FakeCuda, device: CudaDevice) -> None:
    cuda.driver.failures["cuMemAlloc"] = 2
    with raised("out-of-memory", Exit.UNSUPPORTED) as caught:
        device.upload("x", np.zeros(5000, np.uint8))
    assert caught.value.finding.message == "buffer 'x' needs 5,000 bytes; 1,000 of the device's 2,000 are free"
    cuda.driver.failures["cuMemGetInfo"] = 2
    with raised("out-of-memory", Exit.UNSUPPORTED) as caught:
        device.upload("x", np.zeros(5000, np.uint8))
    assert caught.value.finding.message == "buffer 'x' needs 5,000 bytes"


@pytest.mark.parametrize("call", ["cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemAlloc"])
def test_a_failed_copy_leaves_nothing_behind(cuda: FakeCuda, device: CudaDevice, call: str) -> None:
    cuda.driver.failures[call] = 1
    with raised("cuda-driver"):
        device.download(device.upload("x", np.zeros(8, np.uint8)))
    device.close()
    assert cuda.driver.leaks() == {}


# --- launching ---------------------------------------------------------------------------------------------------


def test_a_launch(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    began = len(cuda.driver.calls)
    assert device.launch(kernel, LAUNCH, buffers, 5).ms == 1.5
    address = (buffers["x"].address + 16).to_bytes(8, "little")
    assert cuda.driver.arguments == [[address, b"\xfe\xff\xff\xff", b"\0\0\0\x3f"]]
    assert cuda.driver.calls[began:] == [
        "cuEventRecord", "cuLaunchKernelEx", "cuEventRecord", "cuEventQuery", "cuCtxSynchronize", "cuEventElapsedTime",
    ]  # fmt: skip


def test_every_call_makes_the_device_s_context_current(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    before = cuda.core.made_current
    device.launch(kernel, LAUNCH, buffers, 5)
    device.download(buffers["x"])
    assert cuda.core.made_current == before + 2


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
        device.launch(kernel, replace(LAUNCH, args=args), buffers, 5)
    assert "cuLaunchKernelEx" not in cuda.driver.calls


def test_a_struct_arrives_whole(cuda: FakeCuda, device: CudaDevice) -> None:
    cuda.driver.table = [(0, 20)]
    kernel = device.load(module(params=".param .align 4 .b8 s[20]"), "k")
    fields = (Field("ptr", Address()), Field("i32", 7, 8), Field("f32", 1.0, 12), Field("u8", 255, 16))
    args = (Argument(0, "s", "struct", 20, fields),)
    device.launch(kernel, replace(LAUNCH, args=args), {}, 0)
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
        device.launch(kernel, replace(LAUNCH, shared=shared), buffers, 0)
    assert cuda.driver.set_attributes == expected
    assert cuda.driver.configs[-1].sharedMemBytes == shared


def test_more_shared_memory_than_there_is(cuda: FakeCuda, device: CudaDevice) -> None:
    cuda.driver.function_attributes[1] = 4096
    kernel, buffers = ready(device)
    with raised("launch-refused") as caught:
        device.launch(kernel, replace(LAUNCH, shared=228353), buffers, 0)
    assert "the device allows 232,448 less 4,096 static" in caught.value.finding.message
    assert "cuLaunchKernelEx" not in cuda.driver.calls


def test_a_cluster_over_the_portable_size_is_asked_for(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    device.launch(kernel, replace(LAUNCH, grid=(32, 1, 1), cluster=(16, 1, 1)), buffers, 0)
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
        device.launch(kernel, replace(LAUNCH, grid=(1 << 40, 1, 1)), buffers, 0)
    assert "cuLaunchKernelEx" not in cuda.driver.calls


def test_a_refused_launch_is_explained_and_the_device_stays_of_use(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device, ".reqntid 256")
    cuda.driver.failures["cuLaunchKernelEx"] = [1, 0]
    with raised("launch-refused") as caught:
        device.launch(kernel, LAUNCH, buffers, 0)
    assert "block 128x1x1, but the kernel demands 256x1x1" in caught.value.finding.message
    device.launch(kernel, replace(LAUNCH, block=(256, 1, 1)), buffers, 0)
    device.close()
    assert cuda.driver.leaks() == {}


def test_a_cooperative_launch_too_large_says_what_fits(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures["cuLaunchKernelEx"] = 720
    launch = replace(LAUNCH, grid=(1000, 1, 1), cooperative=True)
    with raised("launch-refused") as caught:
        device.launch(kernel, launch, buffers, 0)
    assert "1000 CTAs, but the device holds 264" in caught.value.finding.message
    cuda.driver.failures["cuOccupancyMaxActiveBlocksPerMultiprocessor"] = 1
    with raised("launch-refused") as caught:
        device.launch(kernel, launch, buffers, 0)
    assert "the driver refused" in caught.value.finding.message


@pytest.mark.parametrize("call", ["cuEventRecord", "cuEventQuery", "cuCtxSynchronize", "cuEventElapsedTime"])
def test_a_failure_around_a_launch_is_no_refusal_of_it(cuda: FakeCuda, device: CudaDevice, call: str) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures[call] = 400
    with raised("cuda-driver"):
        device.launch(kernel, LAUNCH, buffers, 0)


def test_a_driver_without_extended_launches_is_too_old(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures["cuLaunchKernelEx"] = RuntimeError("function cuLaunchKernelEx is not found")
    with raised("cuda-driver", Exit.UNSUPPORTED):
        device.launch(kernel, LAUNCH, buffers, 0)


# --- faults, time-outs, interrupts -------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["cuEventQuery", "cuLaunchKernelEx", "cuEventRecord", "cuCtxSynchronize"])
@pytest.mark.parametrize(("code", "id"), [(700, "out-of-bounds"), (716, "misaligned"), (719, "launch-failed")])
def test_a_fault_is_pinned_and_the_context_is_lost(
    cuda: FakeCuda, device: CudaDevice, call: str, code: int, id: str
) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures[call] = code
    with raised(id) as caught:
        device.launch(kernel, replace(LAUNCH, index=2), buffers, 0)
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
    cuda.driver.failures["cuMemcpyDtoH"] = 700
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
    device.launch(kernel, LAUNCH, buffers, 0)
    assert cuda.driver.calls.count("cuEventQuery") == 21


def test_a_launch_that_does_not_end_in_time(cuda: FakeCuda, device: CudaDevice) -> None:
    kernel, buffers = ready(device)
    cuda.driver.failures["cuEventQuery"] = 600
    with raised("timeout"):
        device.launch(kernel, LAUNCH, buffers, 0.05)
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
        device.launch(kernel, LAUNCH, buffers, 0)
    calls = len(cuda.driver.calls)
    device.close()
    assert len(cuda.driver.calls) == calls


def test_kernels_and_buffers_of_another_device_are_refused(device: CudaDevice) -> None:
    class Other:
        name, address, nbytes, compile_ms, cached = "x", 0, 0, 0.0, False
        findings: tuple[Finding, ...] = ()

    with pytest.raises(TypeError, match="Other is no kernel of cuda:0"):
        device.launch(Other(), LAUNCH, {}, 0)
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
    device.launch(kernel, MAPPED, buffers, 0)
    ((raw,),) = cuda.driver.arguments
    assert raw[:8] == (buffers["x"].address + 16).to_bytes(8, "little")
    return raw


def test_a_tensor_map_is_encoded_by_the_driver_fastest_dimension_first(cuda: FakeCuda, device: CudaDevice) -> None:
    raw = map_launched(cuda, device)
    assert [int.from_bytes(raw[8 * k : 8 * k + 8], "little") for k in range(1, 16)] == list(range(1, 16))
    ((dtype, *rows),) = cuda.driver.maps
    assert (dtype.name, rows[:4]) == ("CU_TENSOR_MAP_DATA_TYPE_FLOAT16", [[8, 4], [32], [8, 2], [2, 1]])
    assert [word.name for word in rows[4:]] == [
        "CU_TENSOR_MAP_INTERLEAVE_NONE", "CU_TENSOR_MAP_SWIZZLE_128B", "CU_TENSOR_MAP_L2_PROMOTION_NONE",
        "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA",
    ]  # fmt: skip


def test_a_tensor_map_that_the_driver_refuses(cuda: FakeCuda, device: CudaDevice) -> None:
    cuda.driver.failures["cuTensorMapEncodeTiled"] = 1
    with raised("cuda-driver") as caught:
        map_launched(cuda, device)
    assert "encoding the tensor map 'd'" in str(caught.value)


def test_gpus_before_sm_90_have_no_tensor_maps() -> None:
    made = FakeCuda(sm=80)
    with raised("tensormap-architecture", Exit.UNSUPPORTED):
        map_launched(made, CudaDevice(0, made.packages), 80)
