from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from teenycli.arch import limits_of
from teenycli.devices.base import Device
from teenycli.devices.cuda import device as under_test
from teenycli.devices.cuda.device import CudaDevice
from teenycli.devices.cuda.driver import PackageError
from teenycli.exits import Exit
from teenycli.ptx import outline, read_source
from tests.devices.cuda.fake import CUDAError, FakeCuda
from tests.devices.cuda.kit import LAUNCH, TABLE, module, raised, ready
from tests.ptx.text import module_of

pytestmark = pytest.mark.unit

CODE = Path(__file__).parents[2] / "ptx" / "code"

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
    before = cuda.driver.calls.count("cuMemcpyHtoDAsync")
    device.set_variable(kernel, "gone", np.zeros(4, np.uint8))
    assert cuda.driver.calls.count("cuMemcpyHtoDAsync") == before


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
        device.prepare(kernel, LAUNCH, buffers)(0)
    assert cuda.driver.leaks() == {}
    device.close()
    with raised("context-lost"):
        device.upload("y", np.zeros(1, np.uint8))


@pytest.mark.parametrize(
    ("call", "results"),
    [
        ("cuDeviceGet", [2]),
        ("cuDevicePrimaryCtxRetain", [2]),
        ("cuCtxSetCurrent", [2]),
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
    note = "cuda.core.Device says CUDA_ERROR_DEVICE_UNAVAILABLE (46): in exclusive mode"
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
    assert "cuMemcpyHtoDAsync" not in cuda.driver.calls


def test_a_copy_has_arrived_before_a_launch_may_start(cuda: FakeCuda, device: CudaDevice) -> None:
    device.upload("x", np.zeros(8, np.uint8))
    assert cuda.driver.calls[-2:] == ["cuMemcpyHtoDAsync", "cuStreamSynchronize"]


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


@pytest.mark.parametrize("call", ["cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemAlloc"])
def test_a_failed_copy_leaves_nothing_behind(cuda: FakeCuda, device: CudaDevice, call: str) -> None:
    cuda.driver.failures[call] = 1
    with raised("cuda-driver"):
        device.download(device.upload("x", np.zeros(8, np.uint8)))
    device.close()
    assert cuda.driver.leaks() == {}
