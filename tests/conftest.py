from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.commands.teeny import Teeny

if TYPE_CHECKING:
    from tests.driver.engine import Engine

# A machine that others use as well takes its time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Commands run on each device that the nearest mark ``devices`` names."""
    named = metafunc.definition.get_closest_marker("devices")
    if named is not None and "teeny" in metafunc.fixturenames:
        metafunc.parametrize("teeny", named.args, indirect=True)


@pytest.fixture
def teeny(
    request: pytest.FixtureRequest,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Teeny:
    device = getattr(request, "param", "cpu")
    if device == "cuda":
        request.getfixturevalue("gpus")
    monkeypatch.chdir(tmp_path)
    return Teeny(capfd, device)


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The stand-in driver with its engine, in this process to stay, with one GPU of each kind; see ``tests.driver``."""
    from tests.driver import engine, standin

    os.environ["STANDIN_GPUS"] = "90,80,100,120"
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    try:
        loaded = standin.load()
    except standin.UnavailableError as error:
        pytest.skip(f"no stand-in for the CUDA driver: {error}")
    loaded.away(True)
    return engine.start(loaded)


@pytest.fixture
def gpus(engine: Engine) -> Iterator[Engine]:
    """The stand-in's GPUs are there for one test, which must leave nothing on them."""
    pytest.importorskip("cuda.bindings.driver", reason="cuda.bindings is not installed", exc_type=ImportError)
    pytest.importorskip("cuda.core", reason="cuda.core is not installed", exc_type=ImportError)
    standin = engine.standin
    standin.away(False)
    standin.clear()
    before = standin.counts()
    yield engine
    sound = standin.is_sound()
    standin.heal()
    standin.away(True)
    # cuda.core keeps its hold on a device's context, and a device that is lost keeps all.
    left = standin.counts() - before
    del left["contexts"]
    assert not (sound and left), left
