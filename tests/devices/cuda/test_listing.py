from __future__ import annotations

import pytest
from msgspec.structs import replace

from teenycli.devices.cuda.gpu import Gpu
from teenycli.devices.cuda.listing import listing
from teenycli.devices.cuda.probe import Survey

pytestmark = pytest.mark.unit

H200 = Gpu("cuda:0", "NVIDIA H200", 90, (13, 0), 141 << 30)
A100 = Gpu("cuda:1", "NVIDIA A100", 80, (13, 0), 80 << 30)


def lines(*gpus: Gpu, taken: str = "cuda:0", env: dict[str, str] | None = None) -> list[str]:
    return listing(Survey(gpus), taken, "as asked", lambda gpu: "too old" if gpu.sm < 90 else None, "580.95", env or {})


def test_each_gpu_has_a_line_with_why_it_was_taken_or_not() -> None:
    assert lines(H200, A100, replace(H200, name="cuda:2", memory=0)) == [
        "driver 580.95 of CUDA 13.0, which takes PTX up to 9.0",
        "  cuda:0  NVIDIA H200  sm_90  141.0 GiB  taken, as asked",
        "  cuda:1  NVIDIA A100  sm_80  80.0 GiB   too old",
        "  cuda:2  NVIDIA H200  sm_90             not taken",
    ]


def test_no_gpus_no_lines() -> None:
    assert lines() == []


def test_a_driver_newer_than_the_table_says_no_version_of_ptx() -> None:
    assert lines(replace(H200, cuda=(99, 0)))[0] == "driver 580.95 of CUDA 99.0"


def test_an_instance_of_a_gpu_is_told_as_one() -> None:
    part = replace(A100, name="cuda:0", product="NVIDIA A100-SXM4-40GB MIG 1g.5gb")
    assert lines(part, taken="cpu")[2].startswith("a MIG instance is a part of a GPU")
    assert len(lines(H200)) == 2


def test_what_was_done_to_the_environment_is_told() -> None:
    found = Survey((H200,), note="CUDA_LAUNCH_BLOCKING is left out")
    assert listing(found, "cpu", "", lambda _: None, None, {})[-1] == "CUDA_LAUNCH_BLOCKING is left out"


def test_visible_devices_are_told() -> None:
    assert lines(H200, env={"CUDA_VISIBLE_DEVICES": ""})[-1].startswith("CUDA_VISIBLE_DEVICES is ''")
