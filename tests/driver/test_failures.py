"""Every call to the driver that a run makes, failing once: what is said, the exit code, and what is left behind.

The calls are those that the driver's log has of a run in which none fails, so that none can be forgotten.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from teenycli.devices.cuda.staging import LARGE
from tests.commands.teeny import ROOT
from tests.cuda.kernels import POOL
from tests.driver.failures import Outcome, Scenario

pytestmark = [pytest.mark.device, pytest.mark.usefixtures("engine")]

#: CUDA_ERROR_ILLEGAL_STATE, of which nothing special is known; and a fault, after which nothing works.
PLAIN, STICKY = "401", "719!"
NAMES = {PLAIN: "CUDA_ERROR_ILLEGAL_STATE", STICKY: "CUDA_ERROR_LAUNCH_FAILED"}
LOADING = ("cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncLoad", "cuFuncGetAttribute", "cuFuncGetParamInfo")
#: What an empty kernel takes before the first launch.
WARMING = ("cuModuleLoadDataEx", "cuModuleGetFunction", "cuLaunchKernel", "cuStreamSynchronize")
#: What stays when one of these fails, and no more.
RELEASES = {"cuMemFree": "allocations", "cuMemFreeAsync": "allocations", "cuMemFreeHost": "pinned",
            "cuModuleUnload": "modules", "cuEventDestroy": "events",
            "cuStreamDestroy": "streams", "cuDevicePrimaryCtxRelease": "contexts"}  # fmt: skip
#: Words for failures, without which the number has to do; and facts that only make an error's message better.
HELP = ("cuGetErrorString", "cuGetErrorName", "cuMemGetInfo", "cuOccupancyMaxActiveBlocksPerMultiprocessor")
WORDS = HELP[:2]

OPS = ("-m", str(ROOT / "ops.toml"))
VECTOR_ADD = ("run", "vector_add_cuda", "--dim", "N=100", *OPS)
#: 100,000 bytes of dynamic shared memory, in a cluster, and a variable; and it might print.
OPTED_IN = f"""
.version 7.8
.target sm_90
.address_size 64
{POOL}
.visible .global .u32 seed;
.extern .func (.param .b32 r) vprintf (.param .b64 format, .param .b64 values);
.visible .entry k(.param .u64 p) {{
.reg .b32 %r<3>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, pool;
st.shared.u32 [%r1+99996], 7;
ld.shared.u32 %r2, [%r1+99996];
st.global.u32 [%rd1], %r2;
ret;
}}
"""


def runs(*scenarios: Scenario) -> list[Outcome]:
    given = json.dumps([(scenario.args, scenario.code, scenario.base) for scenario in scenarios])
    command = [sys.executable, "-m", "tests.driver.failures"]
    done = subprocess.run(command, input=given, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [outcome_of(json.loads(line)) for line in done.stdout.splitlines()]


def outcome_of(told: dict[str, Any]) -> Outcome:
    scenario = Scenario(tuple(told["scenario"]["args"]), told["scenario"]["code"], told["scenario"]["base"])
    return Outcome(**{**told, "scenario": scenario, "calls": tuple(told["calls"])})


class Failure:
    """An outcome, seen from the call of it that failed last."""

    def __init__(self, outcome: Outcome, sound: Outcome) -> None:
        self.outcome = outcome
        order = outcome.orders.split(",")[-1]
        self.name, _, rest = order.partition(":")
        nth = int(rest.partition("=")[0])
        places = [at for at, name in enumerate(outcome.calls) if name == self.name]
        self.at = places[nth - 1]
        creates = [at for at, name in enumerate(sound.calls) if name == "cuEventCreate"]
        #: The empty kernel's, whose failures the launch itself will meet.
        loads = [at for at, name in enumerate(outcome.calls) if name == "cuModuleLoadDataEx"]
        records = [at for at, name in enumerate(outcome.calls) if name == "cuEventRecord" and at > loads[-1]]
        is_between = len(loads) > 1 and loads[-1] <= self.at < min(records, default=self.at + 1)
        self.is_warming = is_between and self.name in WARMING
        # A module's variables are looked at when it is loaded.
        gets = [at for at, name in enumerate(outcome.calls) if name == "cuModuleGetFunction"]
        is_looking = bool(loads) and loads[0] < self.at < min(gets, default=self.at + 1)
        self.is_loading = self.name in LOADING or is_looking
        self.is_opening = self.at <= creates[1]
        self.is_closing = self.name in ("cuModuleUnload", *RELEASES) and self.name not in (
            "cuMemFree",
            "cuMemFreeAsync",
        )
        self.is_sticky = order.endswith("!")

    @property
    def exits(self) -> int:
        if self.name in HELP and not self.is_sticky:
            # One of them is asked for words when the driver's table of parameters ends, which is no failure.
            first = self.outcome.orders.split(",")[0]
            return 0 if first.startswith(WORDS) else Failure.of_first(self.outcome)
        if self.is_opening:
            return 3
        if self.is_warming and not self.is_sticky:
            return 0
        return 4 if self.is_loading and not self.is_sticky else 1

    @staticmethod
    def of_first(outcome: Outcome) -> int:
        """Where a second failure adds nothing, the exit code is the first one's."""
        first = outcome.orders.partition(":")[0]
        return {"cuInit": 3, "cuMemAllocAsync": 4}.get(first, 1)

    def problems(self) -> list[str]:
        done, found = self.outcome, []
        if done.exit != self.exits:
            found.append(f"exit {done.exit}, not {self.exits}")
        if "Traceback" in done.err + done.out:
            found.append("a traceback")
        if done.err.count("error[") != (done.exit != 0):
            found.append(f"{done.err.count('error[')} errors told")
        if done.exit and not self.is_named():
            found.append("neither call nor CUresult told")
        return found + self.leftovers()

    def is_named(self) -> bool:
        """The message has the call, or that of cuda.core which made it, and what the driver said."""
        said, code = self.outcome.err, self.outcome.scenario.code
        if self.name in HELP:
            return "CUDA_ERROR" in said or "CUresult" in said
        number = f"CUresult {code.rstrip('!')}"
        return (self.name in said or "cuda.core." in said) and (NAMES[code] in said or number in said)

    def leftovers(self) -> list[str]:
        done = self.outcome
        if self.is_sticky:
            after = set(done.calls[self.at + 1 :]) - set(WORDS)
            # Words are asked for by what then takes no notice of having got none: the next call meets the fault.
            idle = self.is_opening or self.is_closing or self.name in WORDS or not after
            return [] if idle else [f"calls after a fault: {after}"]
        allowed = {RELEASES[self.name]: 1} if self.name in RELEASES else {}
        return [f"left {what}: {n}" for what, n in done.left.items() if n > allowed.get(what, 0)]


def check(outcomes: list[Outcome]) -> None:
    sound, problems = outcomes[0], []
    for outcome in outcomes:
        if outcome.orders == outcome.scenario.base:
            sound = outcome
        elif found := Failure(outcome, sound).problems():
            problems.append(f"{outcome.orders}: {'; '.join(found)}\n{outcome.err}")
    assert not problems, f"{len(problems)} of {len(outcomes)}:\n" + "\n".join(problems)


def test_every_call_of_every_kind_of_run_may_fail(tmp_path: Path) -> None:
    opted_in = tmp_path / "opted_in.ptx"
    opted_in.write_text(OPTED_IN)
    kernel = ("run", "--ptx", str(opted_in), "--block", "32", "--shared", "100000")
    adhoc = (*kernel, "-a", "p=u32[1]")
    outcomes = runs(
        Scenario(VECTOR_ADD, PLAIN),
        Scenario(VECTOR_ADD, PLAIN, "cuMemAllocAsync:1=2"),
        Scenario(VECTOR_ADD, PLAIN, "cuMemAllocAsync:1=801"),
        Scenario((*kernel, "--grid", "1", "-a", f"p=u32[{LARGE // 4 + 1}]"), PLAIN),
        Scenario((*adhoc, "--grid", "2", "--cluster", "2", "--global", "seed=1"), PLAIN),
        Scenario((*adhoc, "--grid", "1", "--cooperative"), PLAIN, "cuLaunchKernelEx:1=720"),
        Scenario(("run", "scale_tma_cuda", *OPS), PLAIN),
    )
    assert (outcomes[0].exit, outcomes[0].left) == (0, {})
    failing = [outcome.orders.split(",")[-1].partition(":")[0] for outcome in outcomes]
    assert set(HELP) < set(failing)
    assert {"cuMemAlloc", "cuMemHostAlloc", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"} < set(failing)
    assert {"cuFuncSetAttribute", "cuModuleGetGlobal", "cuTensorMapEncodeTiled"} < set(failing)
    assert len(outcomes) > len(outcomes[0].calls) > 60
    check(outcomes)


def test_every_call_of_a_run_may_meet_a_fault() -> None:
    outcomes = runs(Scenario(VECTOR_ADD, STICKY))
    assert (outcomes[0].exit, outcomes[0].left) == (0, {})
    check(outcomes)
