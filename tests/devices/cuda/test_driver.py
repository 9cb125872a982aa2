from __future__ import annotations

import ctypes
import importlib
import inspect
import sys
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teenycli.devices.cuda.driver import NEEDS_NEWER_DRIVER, Config, Driver, DriverError, PackageError, packages
from teenycli.devices.cuda.host import Arguments
from tests.devices.cuda import fake
from tests.devices.cuda.fake import CUDAError, FakeCuda

pytestmark = pytest.mark.unit


@pytest.fixture
def cuda() -> FakeCuda:
    return FakeCuda()


def opened(cuda: FakeCuda) -> Driver:
    return Driver(0, cuda.packages)


def real(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed", exc_type=ImportError)


# --- the fakes are as the packages are ---------------------------------------------------------------------------


def test_every_function_and_constant_exists_in_cuda_bindings() -> None:
    bindings = real("cuda.bindings.driver")
    functions = [name for name, _ in inspect.getmembers(fake.FakeBindings, inspect.isfunction) if name.startswith("cu")]
    assert "cuLaunchKernelEx" in functions
    missing = [name for name in functions if not callable(getattr(bindings, name, None))]
    assert missing == []
    for name in (
        "CUresult",
        "CUjit_option",
        "CUfunction_attribute",
        "CUlaunchAttributeID",
        "CUstream_flags",
        "CUevent_flags",
    ):
        for member in getattr(fake, name):
            if int(member.value) != NEEDS_NEWER_DRIVER:  # the word for it came with CUDA 13; its number is older
                assert int(getattr(getattr(bindings, name), member.name)) == member.value


def test_every_launch_attribute_of_cuda_bindings_can_be_set() -> None:
    bindings = real("cuda.bindings.driver")
    attribute = bindings.CUlaunchAttribute()
    dim = attribute.value.clusterDim
    dim.x, dim.y, dim.z = 2, 3, 4
    assert (attribute.value.clusterDim.x, attribute.value.clusterDim.z) == (2, 4)
    attribute.value.cooperative = 1
    attribute.value.programmaticStreamSerializationAllowed = 1
    config = bindings.CUlaunchConfig()
    config.attrs = [attribute, attribute]
    config.numAttrs = 2
    config.sharedMemBytes = 2**31 - 1
    config.gridDimX = 2**32 - 1
    assert len(config.attrs) == 2


def test_every_property_exists_in_cuda_core() -> None:
    core = real("cuda.core")
    properties = importlib.import_module("cuda.core._device").DeviceProperties
    assert [name for name in fake.PROPERTIES if not hasattr(properties, name)] == []
    assert all(hasattr(core.Device, name) for name in ("name", "compute_capability", "properties"))


def test_packages_that_are_there_are_found() -> None:
    real("cuda.core")
    real("cuda.bindings.driver")
    found = packages()
    assert found.error.__name__ == "CUDAError"


@pytest.mark.parametrize("missing", ["cuda.core", "cuda.bindings.driver"])
def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    there = ModuleType("there")
    there.Device = object  # type: ignore[attr-defined]

    def load(name: str) -> ModuleType:
        if name == missing:
            raise ImportError(f"No module named '{name}'")
        return there

    monkeypatch.setattr("importlib.import_module", load)
    with pytest.raises(PackageError, match=f"{missing}: No module named"):
        packages()


def test_a_cuda_core_before_1_0_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    old = ModuleType("cuda.core")
    old.__version__ = "0.3.2"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.core", old)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", ModuleType("cuda.bindings.driver"))
    with pytest.raises(PackageError, match=r"cuda\.core 0\.3\.2 is older than 1\.0"):
        packages()


# --- launches ----------------------------------------------------------------------------------------------------


def launch(cuda: FakeCuda, config: Config, arguments: list[bytes]) -> Any:
    cuda.driver.table = [(0, len(value)) for value in arguments]
    driver = opened(cuda)
    function = driver.function(driver.load(b"\0"), "k")
    driver.prepared(function, config, arguments, driver.event(), driver.event())()
    return cuda.driver.configs[-1]


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=300), max_size=12))
def test_arguments_arrive_byte_for_byte(arguments: list[bytes]) -> None:
    cuda = FakeCuda()
    launch(cuda, Config((1, 1, 1), (1, 1, 1)), arguments)
    assert cuda.driver.arguments == [arguments]


def test_arguments_are_aligned_for_any_parameter() -> None:
    held = Arguments([b"x", b"y" * 129, b"z"])
    array = (ctypes.c_void_p * 3).from_address(held.pointers)
    assert all((pointer or 0) % 128 == 0 for pointer in array)


def test_the_plainest_launch_has_no_attributes(cuda: FakeCuda) -> None:
    config = launch(cuda, Config((4, 3, 2), (32, 2, 1), 100), [b"abcd"])
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (4, 3, 2)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (32, 2, 1)
    assert (config.sharedMemBytes, config.numAttrs, config.hStream.kind) == (100, 0, "stream")


def test_attributes(cuda: FakeCuda) -> None:
    config = launch(cuda, Config((4, 1, 1), (32, 1, 1), 0, (2, 1, 1), cooperative=True, pdl=True), [])
    cluster, cooperative, pdl = config.attrs
    dim = cluster.value.clusterDim
    assert (cluster.id.name, dim.x, dim.y, dim.z) == ("CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION", 2, 1, 1)
    assert (cooperative.id.name, cooperative.value.cooperative) == ("CU_LAUNCH_ATTRIBUTE_COOPERATIVE", 1)
    assert pdl.id.name == "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"
    assert pdl.value.programmaticStreamSerializationAllowed == 1


# --- failures ----------------------------------------------------------------------------------------------------


def test_a_refusal_bears_number_name_words_and_call(cuda: FakeCuda) -> None:
    driver = opened(cuda)
    cuda.driver.failures["cuMemAlloc"] = 2
    with pytest.raises(DriverError) as caught:
        driver.allocate(8)
    error = caught.value
    assert (error.code, error.name, error.call) == (2, "CUDA_ERROR_OUT_OF_MEMORY", "cuMemAlloc")
    assert error.words == "words of CUDA_ERROR_OUT_OF_MEMORY"


def test_both_logs_come_with_a_failed_load_errors_first(cuda: FakeCuda) -> None:
    driver = opened(cuda)
    cuda.driver.failures["cuModuleLoadDataEx"] = 218
    cuda.driver.log = ("an info \n", "an error\n")
    with pytest.raises(DriverError) as caught:
        driver.load(b"\0")
    assert caught.value.log == "an error\nan info"


def test_a_function_that_driver_or_bindings_lack(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = opened(cuda)
    cuda.driver.failures["cuMemGetInfo"] = RuntimeError("function cuMemGetInfo is not found")
    with pytest.raises(DriverError) as caught:
        driver.memory()
    assert (caught.value.code, caught.value.words) == (36, "function cuMemGetInfo is not found")
    monkeypatch.delattr(fake.FakeBindings, "cuMemGetInfo")
    with pytest.raises(DriverError) as caught:
        opened(FakeCuda()).memory()
    assert (caught.value.code, caught.value.words) == (36, "this cuda.bindings has no cuMemGetInfo")


def test_a_result_newer_than_the_bindings(cuda: FakeCuda) -> None:
    driver = opened(cuda)
    cuda.driver.failures["cuEventQuery"] = ValueError("950 is not a valid CUresult")
    with pytest.raises(DriverError) as caught:
        driver.done(driver.event())
    assert (caught.value.code, caught.value.words) == (999, "950 is not a valid CUresult")


@pytest.mark.parametrize(
    ("refusal", "code", "words"),
    [
        (CUDAError("CUDA_ERROR_DEVICE_UNAVAILABLE: it is taken"), 46, "it is taken"),
        (CUDAError("UNEXPECTED ERROR CODE: 1234"), 999, "UNEXPECTED ERROR CODE: 1234"),
        (CUDAError("UNEXPECTED ERROR CODE: 400"), 400, "UNEXPECTED ERROR CODE: 400"),
        (
            CUDAError("no version: <CUresult.CUDA_ERROR_NO_DEVICE: 100>"),
            100,
            "no version: <CUresult.CUDA_ERROR_NO_DEVICE: 100>",
        ),
        (ValueError("device_id must be within [0, 0), got 0"), 999, "device_id must be within [0, 0), got 0"),
        (RuntimeError("no such library"), 999, "no such library"),
    ],
)
def test_what_cuda_core_raises_gets_its_number_back(cuda: FakeCuda, refusal: Exception, code: int, words: str) -> None:
    driver = opened(cuda)
    cuda.core.refusal = refusal
    with pytest.raises(DriverError) as caught:
        assert driver.name
    assert (caught.value.code, caught.value.words) == (code, words)
    assert caught.value.call == "cuda.core.Device.name"


def test_what_is_not_cuda_s_passes_through(cuda: FakeCuda) -> None:
    driver = opened(cuda)
    cuda.core.refusal = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        assert driver.name


# --- the rest ----------------------------------------------------------------------------------------------------


def test_numbers(cuda: FakeCuda) -> None:
    driver = opened(cuda)
    cuda.driver.cuda = 12080
    assert (driver.name, driver.sm, driver.cuda_version()) == ("Fake 100", 90, (12, 8))
    assert driver.memory() == (1000, 2000)
    assert driver.property("max_block_dim_z") == 64
    function = driver.function(driver.load(b"\0"), "k")
    assert driver.attribute(function, "NUM_REGS") == 32
    assert driver.resident_ctas(function, 128, 0) == 2 * 132


def test_the_parameter_table_ends_where_the_driver_knows_no_more(cuda: FakeCuda) -> None:
    driver = opened(cuda)
    function = driver.function(driver.load(b"\0"), "k")
    cuda.driver.table = [(0, 8), (8, 4), (12, 4)]
    assert driver.parameters(function, 9) == ((0, 8), (8, 4), (12, 4))
    assert driver.parameters(function, 2) == ((0, 8), (8, 4))
    cuda.driver.table = []
    assert driver.parameters(function, 1) == ()


def test_a_driver_before_12_4_has_no_parameter_table(cuda: FakeCuda) -> None:
    driver = opened(cuda)
    function = driver.function(driver.load(b"\0"), "k")
    cuda.driver.failures["cuFuncGetParamInfo"] = RuntimeError("function cuFuncGetParamInfo is not found")
    assert driver.parameters(function, 3) is None
    cuda.driver.failures["cuFuncGetParamInfo"] = 400
    with pytest.raises(DriverError):
        driver.parameters(function, 3)


def test_done(cuda: FakeCuda) -> None:
    driver = opened(cuda)
    event = driver.event()
    cuda.driver.failures["cuEventQuery"] = [600, 0]
    assert [driver.done(event), driver.done(event)] == [False, True]
