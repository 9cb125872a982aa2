"""Memory of the device's pool, and large copies through pinned memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from teenycli.devices.cuda import staging
from teenycli.devices.cuda.device import CudaDevice
from teenycli.errors import TeenyError
from tests.devices.cuda.fake import FakeCuda

pytestmark = pytest.mark.unit


def pools(supported: int) -> FakeCuda:
    cuda = FakeCuda()
    cuda.core.properties["memory_pools_supported"] = supported
    return cuda


def test_memory_comes_from_the_pool_and_goes_back_there() -> None:
    cuda = pools(1)
    device = CudaDevice(0, cuda.packages)
    first, second = (device.upload(name, np.arange(10, dtype=np.uint8)) for name in "xy")
    assert cuda.driver.pooled == {first.address, second.address}
    device.free(first)
    assert cuda.driver.pooled == {second.address}
    assert device.download(second).tolist() == list(range(10))
    device.close()
    assert not cuda.driver.pooled
    assert "cuMemAlloc" not in cuda.driver.calls
    assert "cuMemFree" not in cuda.driver.calls
    assert not cuda.driver.leaks()


@pytest.mark.parametrize("code", [801, 36])
def test_without_pools_memory_is_allocated_plainly_and_pools_are_not_asked_for_again(code: int) -> None:
    cuda = pools(1)
    cuda.driver.failures["cuMemAllocAsync"] = code
    with CudaDevice(0, cuda.packages) as device:
        for name in "xy":
            device.upload(name, np.zeros(4, np.uint8))
    assert [name for name in cuda.driver.calls if name.startswith(("cuMemAlloc", "cuMemFree"))] == [
        "cuMemAllocAsync", "cuMemAlloc", "cuMemAlloc", "cuMemFree", "cuMemFree",
    ]  # fmt: skip


def test_a_pool_that_is_full_is_out_of_memory() -> None:
    cuda = pools(1)
    cuda.driver.failures["cuMemAllocAsync"] = 2
    with CudaDevice(0, cuda.packages) as device, pytest.raises(TeenyError) as caught:
        device.upload("x", np.zeros(4, np.uint8))
    assert caught.value.finding.id == "out-of-memory"
    assert "cuMemAlloc" not in cuda.driver.calls


# --- large copies ------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 16 bytes, from 32 bytes on."""
    monkeypatch.setattr(staging, "CHUNK", 16)
    monkeypatch.setattr(staging, "LARGE", 32)


def data(nbytes: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(nbytes).integers(0, 256, nbytes).astype(np.uint8)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("nbytes", [32, 33, 47, 48, 64, 100, 1000])
def test_large_copies_arrive_whole(nbytes: int) -> None:
    """The fake copies no sooner than at a wait, so that a block which is used again before it shows in the bytes."""
    cuda, told = FakeCuda(), []
    with CudaDevice(0, cuda.packages, lambda *what: told.append(what)) as device:
        buffer = device.upload("x", data(nbytes))
        assert cuda.driver.memory[buffer.allocation].raw == data(nbytes).tobytes()
        device.upload("y", data(nbytes + 1))
        assert len(cuda.driver.pinned) == 2
        assert (device.download(buffer) == data(nbytes)).all()
    assert "cuStreamSynchronize" not in cuda.driver.calls
    assert not cuda.driver.pinned
    assert not cuda.driver.leaks()
    steps = [*range(0, nbytes, 16), nbytes]
    assert told[: len(steps)] == [("copying 'x' to cuda:0", done, nbytes) for done in steps]
    assert told[-len(steps) :] == [("copying 'x' from cuda:0", done, nbytes) for done in steps]


@pytest.mark.usefixtures("small")
def test_a_copy_that_is_not_large_is_made_at_once() -> None:
    cuda = FakeCuda()
    with CudaDevice(0, cuda.packages) as device:
        assert (device.download(device.upload("x", data(31))) == data(31)).all()
    assert "cuMemHostAlloc" not in cuda.driver.calls


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("codes", [2, [0, 304], 800, 801])
def test_without_memory_to_pin_copies_are_plain(codes: int | list[int]) -> None:
    cuda = FakeCuda()
    cuda.driver.failures["cuMemHostAlloc"] = codes
    with CudaDevice(0, cuda.packages) as device:
        for name in "xy":
            assert (device.download(device.upload(name, data(100))) == data(100)).all()
    assert cuda.driver.calls.count("cuMemHostAlloc") <= 2
    assert not cuda.driver.pinned
    assert not cuda.driver.leaks()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("call", "codes"),
    [("cuMemHostAlloc", 401), ("cuEventCreate", [0, 0, 401]), ("cuMemcpyHtoDAsync", [0, 0, 401]),
     ("cuEventSynchronize", 401), ("cuMemcpyDtoHAsync", [0, 401])],
)  # fmt: skip
def test_a_large_copy_that_fails_leaves_nothing(call: str, codes: int | list[int]) -> None:
    cuda = FakeCuda()
    cuda.driver.failures[call] = codes
    with CudaDevice(0, cuda.packages) as device, pytest.raises(TeenyError) as caught:
        device.download(device.upload("x", data(100)))
    assert caught.value.finding.id == "cuda-driver"
    assert f"{call} says" in (caught.value.finding.note or "")
    assert not cuda.driver.pinned
    assert not cuda.driver.leaks()
