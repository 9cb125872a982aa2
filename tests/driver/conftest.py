from __future__ import annotations

from collections.abc import Iterator

import pytest

from teenycli.devices.cuda.device import CudaDevice
from tests.driver.engine import Engine, Recorder


@pytest.fixture
def device(gpus: Engine) -> Iterator[CudaDevice]:
    """The stand-in's first GPU, an sm_90."""
    assert gpus.standin.is_sound()
    with CudaDevice(0) as opened:
        yield opened


@pytest.fixture
def recorder(gpus: Engine) -> Iterator[Recorder]:
    """Takes the engine's place: what reaches a kernel is written down, and nothing runs."""
    recorder = Recorder(gpus.standin)
    recorder.start()
    yield recorder
    gpus.start()
