from __future__ import annotations

import ctypes
import os
from collections.abc import Generator, Iterator

import pytest

from teenycli.devices.cuda.device import CudaDevice
from teenycli.devices.cuda.gpu import Gpu
from teenycli.devices.cuda.probe import ASKED, survey
from teenycli.errors import TeenyError
from tests.cuda.report import Record

_RECORD = pytest.StashKey[Record]()


def record_of(config: pytest.Config) -> Record:
    return config.stash.setdefault(_RECORD, Record())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """For the tests of this folder alone: what became of those for a GPU."""
    report = yield
    if item.get_closest_marker("cuda") is not None:
        record_of(item.config).add(report)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write cuda-report.json, if tests have run on a GPU."""
    config = session.config
    written = record_of(config).write(getattr(config, "workerinput", {}).get("workerid"))
    if written is not None:
        print(f"\nwritten: {written}")


@pytest.fixture(scope="session")
def gpu(pytestconfig: pytest.Config) -> Gpu:
    """The first GPU; skips with the reason where there is none."""
    found = survey(ASKED)
    if hasattr(ctypes.CDLL(None), "standin_engine") and "STANDIN_FOR_A_GPU" not in os.environ:
        pytest.fail("the stand-in driver is loaded, which other tests are for: run `pytest -m cuda` by itself")
    if not found.gpus:
        pytest.skip(f"no GPU: {found.problem}")
    record_of(pytestconfig).gpu = found.gpus[0]
    return found.gpus[0]


@pytest.fixture(scope="session")
def gpu_name(gpu: Gpu) -> str:
    return gpu.name


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


@pytest.fixture
def apart(gpu_name: str, device: CudaDevice) -> str:
    """The GPU, for a process beside this one, which holds a context on it; skips where there can be none."""
    if device._driver.property("compute_mode"):
        pytest.skip("the GPU's compute mode allows one process alone (nvidia-smi -q -d COMPUTE)")
    if device._driver.property("mps_enabled"):
        pytest.skip("under MPS a fault of one process ends others")
    return gpu_name
