"""A CUDA device on stand-ins for the packages."""

from __future__ import annotations

import pytest

from teenycli.devices.cuda import device as under_test
from teenycli.devices.cuda.device import CudaDevice
from tests.devices.cuda.fake import FakeCuda
from tests.devices.cuda.kit import TABLE


@pytest.fixture
def cuda() -> FakeCuda:
    made = FakeCuda()
    made.driver.table = list(TABLE)
    return made


@pytest.fixture
def device(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    monkeypatch.setattr(under_test, "kernel_module_version", lambda: "580.159")
    return CudaDevice(0, cuda.packages)
