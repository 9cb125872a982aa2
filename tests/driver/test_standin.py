"""The stand-in driver itself, and the command on machines that it plays: GPUs of any kind, old drivers, hidden ones."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cuda.device import CudaDevice
from teenycli.devices.cuda.host import Aligned
from teenycli.devices.cuda.probe import survey
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from tests.commands.teeny import ROOT, Teeny
from tests.cuda.kernels import ASSERTS, FOREVER, PRINTS, PRINTS_TEXT, STORE, P, kernel, launch, pointer
from tests.devices.cuda.fake import ENCODE
from tests.driver.engine import Engine

pytestmark = pytest.mark.device

#: A kernel of one thread that stores 7 where its parameter points.
SEVEN = (
    ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n"
    ".reg .b64 %rd1; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 7; ret; }}\n"
)
ONCE = ("run", "--ptx", "k.ptx", "--grid", "1", "--block", "1", "-a", "p=u32[1]")


def write(folder: Path, target: str = "sm_80", version: str = "7.8") -> None:
    (folder / "k.ptx").write_text(SEVEN.format(target=target, version=version))


# --- which GPU ---------------------------------------------------------------------------------------------------


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(
    ("target", "version", "name"),
    [
        ("sm_80", "7.8", "cuda:0"), ("sm_90a", "8.0", "cuda:0"), ("sm_100a", "8.6", "cuda:2"),
        ("sm_100f", "8.8", "cuda:2"), ("sm_120a", "8.7", "cuda:3"), ("sm_90", "8.0", "cuda:0"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_the_first_gpu_that_takes_the_target_runs_it(
    teeny: Teeny, tmp_path: Path, device: str, target: str, version: str, name: str
) -> None:
    write(tmp_path, target, version)
    done = teeny(*ONCE, "--json", "--device", device)
    assert done.code == 0, done.err
    assert done.json["device"] == name
    assert done.json["outputs"][0]["min"] == 7


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(
    ("device", "target", "version", "code", "said"),
    [
        ("cuda:1", "sm_80", "7.8", 0, "cuda:1 (Stand-in 80, sm_80"),
        ("cuda:1", "sm_90", "8.0", 4, "sm_90 and later; cuda:1 (Stand-in 80, sm_80) is not that"),
        ("cuda", "sm_103a", "8.8", 4, "which runs on sm_103 only"),
        ("cuda:2", "sm_100", "9.1", 4, "PTX 9.1 needs a driver of CUDA 13.1 (r590) or later"),
        ("cuda:4", "sm_80", "7.8", 3, "there is no cuda:4; those there: cuda:0 (Stand-in 90, sm_90), cuda:1"),
    ],
)
def test_a_gpu_by_number(
    teeny: Teeny, tmp_path: Path, device: str, target: str, version: str, code: int, said: str
) -> None:
    write(tmp_path, target, version)
    done = teeny(*ONCE, "--device", device)
    assert (done.code, said in done.out + done.err) == (code, True), done.out + done.err


def test_a_driver_that_is_away_shows_no_gpu(engine: Engine) -> None:
    engine.standin.away(True)
    assert survey(10).problem == "the NVIDIA driver is there, but no GPU"


# --- in a process of its own -------------------------------------------------------------------------------------


def process(folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``teeny`` with the stand-in, in a process of its own."""
    command = [sys.executable, "-m", "tests.driver", *args]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environ = {**os.environ, "STANDIN_GPUS": "90", "PYTHONPATH": path, **environment}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("environment", "code", "said"),
    [
        ({"STANDIN_CUDA": "12020"}, 0, "driver (CUDA 12.2)"),
        ({"STANDIN_CUDA": "11080"}, 0, "driver (CUDA 11.8)"),
        ({"STANDIN_CUDA": "11040"}, 4, "has a driver of CUDA 11.4, and a launch takes one of CUDA 11.8 or later"),
        ({"STANDIN_CUDA": "10020"}, 4, "has a driver of CUDA 10.2, and a launch takes one of CUDA 11.8 or later"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, 3, "CUDA_VISIBLE_DEVICES is '-1', which hides every GPU"),
        ({"CUDA_VISIBLE_DEVICES": "1,0", "STANDIN_GPUS": "120,80"}, 0, "cuda:0 (Stand-in 80, sm_80"),
        ({"STANDIN_FAIL": "cuInit:1=803"}, 3, "its kernel module is of another version than its library"),
        ({"STANDIN_MEMORY": "3"}, 4, "buffer 'p' needs 4 bytes; 3 of the device's 3 are free"),
        ({"STANDIN_FAIL": "cuEventQuery:1=600,cuEventQuery:2=600"}, 0, "Stand-in 90"),
        ({"STANDIN_FAIL": "cuModuleLoadDataEx:1=218", "STANDIN_LOG": "ptxas input, line 4; error : what"}, 4,
         "k.ptx:4"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)  # fmt: skip
def test_a_machine_of_any_kind(tmp_path: Path, environment: dict[str, str], code: int, said: str) -> None:
    write(tmp_path)
    done = process(tmp_path, *ONCE, "--device", "cuda", **environment)
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("environment", "code", "said"),
    [
        ({"STANDIN_FAIL": "cuLaunchKernelEx:1=36"}, 4,
         "cuLaunchKernelEx takes a driver of CUDA 11.8 or later, and this one is of CUDA 13.0"),
        ({"STANDIN_FAIL": "cuMemAllocAsync:*=801"}, 0, "Stand-in 90"),
        ({"STANDIN_FAIL": "cuDevicePrimaryCtxRetain:1=46"}, 3, "another process has the GPU to itself"),
        ({"STANDIN_FAIL": "cuDevicePrimaryCtxRetain:1=2"}, 3, "cuda:0 cannot be opened: its memory is full"),
        ({"STANDIN_FAIL": "cuEventQuery:1=700!"}, 1, "the GPU's context is gone with it"),
        ({"STANDIN_FAIL": "cuMemcpyHtoDAsync:1=719!"}, 1, "the GPU's context is gone with it"),
        ({"STANDIN_FAIL": "cuLaunchKernelEx:1=701"}, 1, "use fewer threads a block"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)  # fmt: skip
def test_what_the_driver_answers_has_cause_and_cure(
    tmp_path: Path, environment: dict[str, str], code: int, said: str
) -> None:
    write(tmp_path, "sm_80", "7.0")
    done = process(tmp_path, *ONCE, "--device", "cuda", **environment)
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("engine")
def test_all_gpus_are_listed_with_the_one_that_was_taken_and_why(tmp_path: Path) -> None:
    write(tmp_path, "sm_90a", "8.0")
    done = process(tmp_path, *ONCE, "--device", "cuda", "-v", STANDIN_GPUS="90,80,120", STANDIN_CUDA="12020",
                   CUDA_VISIBLE_DEVICES="1,0,2")  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line.removeprefix("teeny: ") for line in done.stderr.splitlines() if line.startswith("teeny: ")]
    not_that = "'k' is for sm_90a, which runs on sm_90 only, and {} is not that"
    assert lines[1:] == [
        "it is older than CUDA 12.4 and does not tell where a kernel's parameters lie: that goes unchecked",
        f"  cuda:0  Stand-in 80   sm_80   80.0 GiB   {not_that.format('cuda:0 (Stand-in 80, sm_80)')}",
        "  cuda:1  Stand-in 90   sm_90   141.0 GiB  taken, the first that runs it",
        f"  cuda:2  Stand-in 120  sm_120  32.0 GiB   {not_that.format('cuda:2 (Stand-in 120, sm_120)')}",
        "CUDA_VISIBLE_DEVICES is '1,0,2': it chooses the GPUs and numbers them",
        lines[-1],
    ]
    assert re.fullmatch(r"driver( \S+)? of CUDA 12.2, which takes PTX up to 8.2", lines[0])
    assert lines[-1].startswith("running on cuda:1 (Stand-in 90, sm_90, driver")


@pytest.mark.usefixtures("engine")
def test_a_kernel_that_does_not_end_ends_the_process(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(kernel(FOREVER, P).source.text)
    done = process(tmp_path, *ONCE, "--device", "cuda", "--timeout", "0.2", STANDIN_PATIENCE="0.2")
    assert (done.returncode, "has not ended within 0.2 s" in done.stderr) == (1, True), done.stderr


# --- faults ------------------------------------------------------------------------------------------------------


@contextmanager
def raised(id: str) -> Iterator[None]:
    with pytest.raises(TeenyError) as caught:
        yield
    assert (caught.value.finding.id, caught.value.exit) == (id, Exit.FAILED)


@pytest.mark.parametrize(
    ("body", "argument", "id"),
    [
        (STORE, pointer(None, 16), "out-of-bounds"),
        (STORE, pointer("x", 64), "out-of-bounds"),
        (STORE, pointer("x", 2), "misaligned"),
        ("trap;", pointer("x"), "launch-failed"),
        (FOREVER, pointer("x"), "timeout"),
    ],
)
def test_a_fault_is_pinned_to_its_launch_and_nothing_follows(
    device: CudaDevice, gpus: Engine, monkeypatch: pytest.MonkeyPatch, body: str, argument: Any, id: str
) -> None:
    monkeypatch.setattr(gpus, "patience", 0.2)
    buffers: dict[str, DeviceBuffer] = {"x": device.upload("x", np.zeros(64, np.uint8))}
    loaded = device.load(kernel(body, P), "k")
    with raised(id):
        device.prepare(loaded, launch([argument]), buffers)(0.1)
    gpus.standin.clear()
    with raised("context-lost"):
        device.download(buffers["x"])
    device.free(buffers["x"])
    device.close()
    assert gpus.standin.calls() == []


@pytest.mark.parametrize(("body", "id"), [(f"{PRINTS}\ntrap;", "launch-failed"), (ASSERTS, "assertion")])
def test_what_was_printed_before_a_fault_comes_out_by_the_last_call(
    device: CudaDevice, gpus: Engine, capfd: pytest.CaptureFixture[str], body: str, id: str
) -> None:
    loaded = device.load(kernel(body, head=PRINTS_TEXT), "k")
    run = device.prepare(loaded, launch([]), {})
    gpus.standin.clear()
    with raised(id):
        run(5)
    made = [call for call in gpus.standin.calls() if call != "cuGetErrorString"]
    assert made[-2:] == ["cuEventRecord", "cuStreamSynchronize"]
    device.close()
    told = capfd.readouterr()
    assert "hello" in (told.err if id == "assertion" else told.out)


# --- through the packages ----------------------------------------------------------------------------------------


@pytest.fixture
def driver(device: CudaDevice) -> ModuleType:
    """``cuda.bindings.driver``, with a context."""
    assert device.name == "cuda:0"
    found: ModuleType = pytest.importorskip("cuda.bindings.driver")
    return found


def test_memory_is_where_it_was_given_and_nowhere_else(driver: ModuleType) -> None:
    _, address = driver.cuMemAlloc(64)
    host = ctypes.create_string_buffer(bytes(range(64)), 64)
    at = ctypes.addressof(host)
    assert int(driver.cuMemcpyHtoD(address, at, 64)[0]) == 0
    assert int(driver.cuMemcpyHtoD(address, at, 65)[0]) == 1
    assert int(driver.cuMemcpyHtoD(at, at, 4)[0]) == 1
    inside = driver.CUdeviceptr(int(address) + 60)
    assert int(driver.cuMemcpyDtoH(at, inside, 4)[0]) == 0
    assert host.raw[:5] == bytes([60, 61, 62, 63, 4])
    assert int(driver.cuMemcpyDtoH(at, inside, 5)[0]) == 1
    assert int(driver.cuMemsetD32(address, 0x01020304, 2)[0]) == 0
    assert int(driver.cuMemcpyDtoH(at, address, 12)[0]) == 0
    assert host.raw[:12] == bytes([4, 3, 2, 1, 4, 3, 2, 1, 8, 9, 10, 11])
    assert int(driver.cuMemFree(inside)[0]) == 1
    assert int(driver.cuMemFree(address)[0]) == 0
    assert int(driver.cuMemFree(address)[0]) == 1


def test_handles_are_known_until_they_are_destroyed(driver: ModuleType) -> None:
    _, event = driver.cuEventCreate(0)
    _, never = driver.cuEventCreate(0)
    assert int(driver.cuEventRecord(event, 0)[0]) == 0
    assert int(driver.cuEventElapsedTime(event, never)[0]) == 400
    assert [int(driver.cuEventDestroy(each)[0]) for each in (event, never, event)] == [0, 0, 400]
    assert int(driver.cuEventQuery(event)[0]) == 400
    _, stream = driver.cuStreamCreate(0)
    assert [int(driver.cuStreamDestroy(stream)[0]) for _ in range(2)] == [0, 400]
    assert int(driver.cuStreamSynchronize(stream)[0]) == 400


def test_what_it_lacks_says_so_and_stands_in_the_log(driver: ModuleType, gpus: Engine) -> None:
    assert driver.cuGraphCreate(0)[0].name == "CUDA_ERROR_NOT_SUPPORTED"
    assert gpus.standin.calls()[-1] == "cuGraphCreate"


COUNTS = """
.version 7.8
.target sm_80
.address_size 64
.visible .global .align 4 .u32 count = 5;
.visible .entry add() { .reg .b32 %r1; atom.global.add.u32 %r1, [count], 2; ret; }
.visible .entry double() { .reg .b32 %r1; ld.global.u32 %r1, [count]; shl.b32 %r1, %r1, 1; st.global.u32 [count], %r1;
ret; }
"""


def test_a_module_s_variable_is_one_for_its_kernels_and_the_host(driver: ModuleType) -> None:
    _, module = driver.cuModuleLoadData(COUNTS.encode() + b"\0")
    status, address, size = driver.cuModuleGetGlobal(module, b"count")
    assert (int(status), size) == (0, 4)
    assert int(driver.cuModuleGetGlobal(module, b"sum")[0]) == 500
    value = ctypes.c_uint32()

    def run(name: bytes) -> int:
        _, function = driver.cuModuleGetFunction(module, name)
        assert int(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)[0]) == 0
        assert int(driver.cuMemcpyDtoH(ctypes.addressof(value), address, 4)[0]) == 0
        return value.value

    assert [run(b"add"), run(b"double"), run(b"add")] == [7, 14, 16]
    value.value = 100
    assert int(driver.cuMemcpyHtoD(address, ctypes.addressof(value), 4)[0]) == 0
    assert run(b"double") == 200
    assert int(driver.cuModuleUnload(module)[0]) == 0


def encoded(driver: ModuleType, **change: Any) -> int:
    given: dict[str, Any] = {
        "dtype": "FLOAT32", "address": 1 << 50, "dims": [64, 8], "strides": [256], "box": [32, 4], "steps": [1, 1],
        "interleave": "NONE", "swizzle": "NONE", "shift": 0, **change,
    }  # fmt: skip
    room = Aligned(256)
    lists: list[Any] = [(ctypes.c_uint64 * len(given[name]))(*given[name]) for name in ("dims", "strides")]
    lists += [(ctypes.c_uint32 * len(given[name]))(*given[name]) for name in ("box", "steps")]
    kinds = {"DataType": f"DATA_TYPE_{given['dtype']}", "Interleave": f"INTERLEAVE_{given['interleave']}",
             "Swizzle": f"SWIZZLE_{given['swizzle']}"}  # fmt: skip
    type, interleave, swizzle = (
        int(getattr(getattr(driver, f"CUtensorMap{kind}"), f"CU_TENSOR_MAP_{word}")) for kind, word in kinds.items()
    )
    encode = ENCODE(int(driver.cuGetProcAddress(b"cuTensorMapEncodeTiled", 12000, 0)[1]))
    return int(encode(room.start + given["shift"], type, len(given["dims"]), given["address"], *lists,
                      interleave, swizzle, 0, 0))  # fmt: skip


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 0), ({"swizzle": "128B"}, 0), ({"swizzle": "64B"}, 1), ({"address": (1 << 50) + 8}, 1),
        ({"strides": [260]}, 1), ({"box": [33, 4]}, 1), ({"box": [0, 4]}, 1), ({"box": [32, 257]}, 1),
        ({"steps": [1, 9]}, 1), ({"dims": [0, 8]}, 1), ({"interleave": "16B"}, 1), ({"dtype": "UINT8"}, 0),
        ({"shift": 64}, 0), ({"shift": 48}, 1),
    ],
)  # fmt: skip
def test_tensor_maps_are_held_against_the_interface_s_rules(
    driver: ModuleType, change: dict[str, Any], status: int
) -> None:
    assert encoded(driver, **change) == status


def test_cuda_core_computes_with_it(gpus: Engine) -> None:
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    text = (ROOT / "ptx" / "cuda" / "vector_add.ptx").read_bytes()
    code = core.ObjectCode.from_ptx(text)
    entry = code.get_kernel("vector_add")
    n = 100
    x = np.arange(n, dtype=np.float32)
    host = core.LegacyPinnedMemoryResource().allocate(x.nbytes)
    seen = np.ctypeslib.as_array((ctypes.c_float * n).from_address(int(host.handle)))
    seen[:] = x
    buffers = [device.allocate(x.nbytes, stream=stream) for _ in range(3)]
    for buffer in buffers[:2]:
        buffer.copy_from(host, stream=stream)
    timed = core.EventOptions(timing_enabled=True)
    start = stream.record(options=timed)
    core.launch(stream, core.LaunchConfig(grid=1, block=128), entry, *buffers, np.int32(n))
    end = stream.record(options=timed)
    buffers[2].copy_to(host, stream=stream)
    stream.sync()
    np.testing.assert_array_equal(seen, 2 * x)
    assert 0 < end - start < 10_000
    assert entry.occupancy.max_active_blocks_per_multiprocessor(128, 0) == 16
    for buffer in (*buffers, host):
        buffer.close(stream)
    stream.close()
    del start, end
    gc.collect()
    # cuda.core never unloads what it has loaded.
    assert int(pytest.importorskip("cuda.bindings.driver").cuLibraryUnload(code.handle)[0]) == 0
    assert "cuMemAllocFromPoolAsync" in gpus.standin.calls()


def test_the_code_is_on_the_device_before_a_launch_is_timed(gpus: Engine, teeny: Teeny, tmp_path: Path) -> None:
    write(tmp_path)
    run = ("run", "--ptx", tmp_path / "k.ptx", "--grid", "1", "--block", "1", "-a", "p=u32[1]", "--device", "cuda")
    gpus.standin.clear()
    assert teeny(*run).code == 0
    calls = gpus.standin.calls()
    first = calls.index("cuEventRecord")
    assert calls.index("cuFuncLoad") < first
    assert calls[first : first + 3] == ["cuEventRecord", "cuLaunchKernelEx", "cuEventRecord"]
