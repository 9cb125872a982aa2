from __future__ import annotations

from collections.abc import Iterator

import pytest

from teenycli.devices.cuda.device import CudaDevice
from teenycli.devices.cuda.probe import PATIENT, survey
from teenycli.errors import TeenyError


@pytest.fixture(scope="session")
def gpu_name() -> str:
    """The first GPU; skips with the reason where there is none."""
    found = survey(PATIENT)
    if not found.gpus:
        pytest.skip(f"no GPU: {found.problem}")
    return found.gpus[0].name


@pytest.fixture
def device(gpu_name: str) -> Iterator[CudaDevice]:
    try:
        opened = CudaDevice(int(gpu_name.removeprefix("cuda:")))
    except TeenyError as error:
        if error.finding.id != "no-cuda-package":
            raise
        pytest.skip(str(error))
    with opened:
        yield opened
