from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from teenycli.devices.cuda.device import CudaDevice
from teenycli.devices.cuda.probe import PATIENT, survey
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
def gpu_name(pytestconfig: pytest.Config) -> str:
    """The first GPU; skips with the reason where there is none."""
    found = survey(PATIENT)
    if not found.gpus:
        pytest.skip(f"no GPU: {found.problem}")
    record_of(pytestconfig).gpu = found.gpus[0]
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
