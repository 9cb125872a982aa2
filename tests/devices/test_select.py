from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from typing import Any, cast

import pytest
from msgspec.structs import replace

from teenycli.devices import select
from teenycli.devices.base import Device
from teenycli.devices.cuda.gpu import Gpu
from teenycli.devices.cuda.probe import ASKED, Survey
from teenycli.devices.select import Output, choose, foreseen, look, unfit
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.ptx.model import Module
from tests.ptx.text import module_of

pytestmark = pytest.mark.unit

HOPPER = Gpu("cuda:0", "NVIDIA H200", 90, (13, 0))
AMPERE = Gpu("cuda:1", "NVIDIA A100", 80, (13, 0))
NOTHING = Survey(problem="there is no NVIDIA driver (not found)", hint="install one")


@dataclass
class Opened:
    name: str
    description: str


class Machine:
    """What is in it, and what was asked of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found = NOTHING
        self.patience: list[float | None] = []
        self.refusals: dict[int, TeenyError] = {}
        monkeypatch.setattr(select, "survey", self.survey)
        monkeypatch.setattr(select, "open_cpu", lambda _output=None: self.opened("cpu", "AVX-512, 2 threads"))
        monkeypatch.setattr(select, "open_gpu", self.open_gpu)

    def survey(self, patience: float | None = None) -> Survey:
        self.patience.append(patience)
        return self.found

    def opened(self, name: str, description: str) -> Device:
        return cast("Device", Opened(name, description))

    def open_gpu(self, index: int, _output: Output | None = None, _progress: object = None) -> Device:
        if index in self.refusals:
            raise self.refusals[index]
        return self.opened(f"cuda:{index}", self.found.gpus[index].product)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def module(target: str = "sm_80", version: tuple[int, int] = (8, 0)) -> Module:
    return dataclasses.replace(module_of(".visible .entry k() { ret; }"), target=target, version=version)


def took(spec: str, **given: Any) -> tuple[str, str]:
    device, reason, _ = choose(spec, look(spec), module(**given), "k")
    return device.name, reason


# --- auto --------------------------------------------------------------------------------------------------------


def test_auto_without_a_driver_runs_on_cpu_and_says_why(machine: Machine) -> None:
    name, reason = took("auto")
    assert name == "cpu"
    assert reason == "running on cpu (AVX-512, 2 threads): there is no NVIDIA driver (not found)"
    assert machine.patience == [None]


def test_auto_takes_a_gpu_that_is_there(machine: Machine) -> None:
    machine.found = Survey((HOPPER, AMPERE))
    assert took("auto") == ("cuda:0", "running on cuda:0 (NVIDIA H200)")


def test_auto_passes_over_a_gpu_that_cannot_take_the_target(machine: Machine) -> None:
    machine.found = Survey((replace(AMPERE, name="cuda:0"), replace(HOPPER, name="cuda:1")))
    name, reason = took("auto", target="sm_90a")
    assert name == "cuda:1"
    assert reason == (
        "running on cuda:1 (NVIDIA H200); 'k' is for sm_90a, which runs on sm_90 only, "
        "and cuda:0 (NVIDIA A100, sm_80) is not that"
    )


def test_auto_goes_to_cpu_when_no_gpu_takes_the_target(machine: Machine) -> None:
    machine.found = Survey((HOPPER, AMPERE))
    name, reason = took("auto", target="sm_100f")
    assert name == "cpu"
    assert "cuda:0 (NVIDIA H200, sm_90)" in reason
    assert "cuda:1 (NVIDIA A100, sm_80)" in reason


def test_auto_passes_over_a_driver_too_old_for_the_ptx(machine: Machine) -> None:
    machine.found = Survey((replace(HOPPER, cuda=(12, 4)),))
    name, reason = took("auto", version=(8, 7))
    assert name == "cpu"
    assert reason.endswith(
        "'k' is PTX 8.7, and cuda:0 (NVIDIA H200, sm_90) has a driver of CUDA 12.4, which takes PTX up to 8.4"
    )


def test_auto_goes_on_when_a_gpu_cannot_be_opened(machine: Machine) -> None:
    machine.found = Survey((HOPPER, AMPERE))
    machine.refusals[0] = TeenyError("no-device", "cuda:0 cannot be opened", hint="see nvidia-smi")
    assert took("auto") == ("cuda:1", "running on cuda:1 (NVIDIA A100); cuda:0 cannot be opened (see nvidia-smi)")
    machine.refusals[1] = TeenyError("no-device", "cuda:1 cannot be opened")
    assert took("auto")[1].endswith("cuda:0 cannot be opened (see nvidia-smi); cuda:1 cannot be opened")


# --- cpu, cuda, cuda:N -------------------------------------------------------------------------------------------


def test_cpu_asks_no_driver(machine: Machine) -> None:
    assert took("cpu") == ("cpu", "running on cpu (AVX-512, 2 threads), as asked")
    assert machine.patience == []


def test_cuda_waits_for_the_driver_and_takes_the_first_that_runs_it(machine: Machine) -> None:
    machine.found = Survey((replace(AMPERE, name="cuda:0"), replace(HOPPER, name="cuda:1")))
    assert took("cuda", target="sm_90") == ("cuda:1", "running on cuda:1 (NVIDIA H200), the first that runs it")
    assert machine.patience == [ASKED]
    machine.found = Survey((HOPPER,))
    assert took("cuda") == ("cuda:0", "running on cuda:0 (NVIDIA H200), as asked")


def test_cuda_takes_the_first_when_none_runs_it(machine: Machine) -> None:
    machine.found = Survey((HOPPER, AMPERE))
    assert took("cuda", target="sm_120a") == ("cuda:0", "running on cuda:0 (NVIDIA H200), the first there")


def test_cuda_n_is_that_one_whatever_it_runs(machine: Machine) -> None:
    machine.found = Survey((HOPPER, AMPERE))
    assert took("cuda:1", target="sm_90a") == ("cuda:1", "running on cuda:1 (NVIDIA A100), as asked")


def test_an_index_beyond_the_devices_lists_them(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    machine.found = Survey((HOPPER, AMPERE))
    with pytest.raises(TeenyError) as caught:
        took("cuda:2")
    assert (caught.value.finding.id, caught.value.exit) == ("no-device", Exit.NO_DEVICE)
    assert caught.value.finding.message == (
        "there is no cuda:2; those there: cuda:0 (NVIDIA H200, sm_90), cuda:1 (NVIDIA A100, sm_80)"
    )
    assert caught.value.finding.hint is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    with pytest.raises(TeenyError) as caught:
        took("cuda:2")
    assert caught.value.finding.hint == "CUDA_VISIBLE_DEVICES is '3,1': it chooses the GPUs and numbers them"


@pytest.mark.parametrize("spec", ["cuda", "cuda:0"])
def test_cuda_without_a_gpu_is_an_error_with_the_cause(machine: Machine, spec: str) -> None:
    machine.found = NOTHING
    with pytest.raises(TeenyError) as caught:
        took(spec)
    assert caught.value.exit is Exit.NO_DEVICE
    assert caught.value.finding.message == "no GPU to run on: there is no NVIDIA driver (not found)"
    assert caught.value.finding.hint == "install one"


def test_an_error_of_the_gpu_asked_for_is_not_hidden(machine: Machine) -> None:
    machine.found = Survey((HOPPER,))
    machine.refusals[0] = TeenyError("no-cuda-package", "cuda.core is missing", exit=Exit.NO_DEVICE)
    with pytest.raises(TeenyError, match=r"cuda\.core is missing"):
        took("cuda")


@pytest.mark.parametrize(
    "spec", ["gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:99999", "cuda:\u0663", "CPU", "", "cuda:0 "]
)
def test_what_is_no_device(machine: Machine, spec: str) -> None:
    with pytest.raises(TeenyError) as caught:
        took(spec)
    assert (caught.value.finding.id, caught.value.exit) == ("unknown-device", Exit.UNUSABLE)
    assert machine.patience == []


def test_a_misspelt_device_is_guessed() -> None:
    with pytest.raises(TeenyError) as caught:
        look("cdua")
    assert caught.value.finding.hint == "did you mean 'cuda'?"


def test_unfit_says_nothing_of_a_gpu_that_fits() -> None:
    assert unfit(HOPPER, module("sm_90a", (9, 0)), "k") is None


def test_the_cpu_device_without_its_compiler_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    with pytest.raises(TeenyError, match="llvmlite, which is not installed") as caught:
        choose("cpu", None, module(), "k")
    assert (caught.value.finding.id, caught.value.exit) == ("no-jit", Exit.NO_DEVICE)


# --- the GPU that is going to be taken ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "target", "expected"),
    [
        ("cpu", "sm_80", None), ("auto", "sm_80", 0), ("auto", "sm_100", 1), ("cuda", "sm_100", 1),
        ("cuda:0", "sm_80", 0), ("cuda:1", "sm_80", 1), ("cuda:0", "sm_100", None), ("cuda:5", "sm_80", None),
    ],
)  # fmt: skip
def test_the_gpu_is_foreseen(machine: Machine, spec: str, target: str, expected: int | None) -> None:
    machine.found = Survey((HOPPER, replace(HOPPER, name="cuda:1", sm=100)))
    gpu = foreseen(spec, look(spec), module(target))
    assert gpu == (None if expected is None else machine.found.gpus[expected])
