"""The ops of ops.toml on a GPU."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from teenycli.devices.cuda.gpu import Gpu
from teenycli.devices.select import unfit
from teenycli.ptx import outline, read_source
from tests.commands.teeny import ROOT, Teeny
from tests.commands.test_gallery import OPS, TABLES, all_cases, judged
from tests.cuda.report import RecordProperty, record_differences

pytestmark = pytest.mark.cuda


#: The ops of the pipeline of that name.
HEAD = tomllib.loads(OPS.read_text("utf-8"))["pipeline"]["head"]["ops"]


def skip_unfit(gpu: Gpu, *names: str) -> None:
    """Skips a test of ops whose PTX this GPU or its driver does not take."""
    tables = [table for name in names for table in (TABLES[name], TABLES[name].get("backward", {})) if "ptx" in table]
    for path in sorted({ROOT / table["ptx"] for table in tables}):
        why = unfit(gpu, outline(read_source(path)), path.stem)
        if why is not None:
            pytest.skip(why)


@pytest.mark.parametrize("name", TABLES)
def test_every_case_matches_its_reference(teeny: Teeny, gpu: Gpu, name: str, record_property: RecordProperty) -> None:
    skip_unfit(gpu, name)
    done = all_cases(teeny, name, "--device", gpu.name)
    record_differences(record_property, done, "reference")
    judged(done, name)


@pytest.mark.parametrize("name", [name for name in TABLES if "backward" in TABLES[name]])
def test_every_gradient_matches_its_reference(
    teeny: Teeny, gpu: Gpu, name: str, record_property: RecordProperty
) -> None:
    skip_unfit(gpu, name)
    done = all_cases(teeny, name, "--backward", "--device", gpu.name)
    record_differences(record_property, done, "reference")
    judged(done, name)


@pytest.mark.parametrize("name", TABLES)
def test_every_case_is_within_its_tolerance_of_the_cpu_device(
    teeny: Teeny, gpu: Gpu, name: str, record_property: RecordProperty
) -> None:
    skip_unfit(gpu, name)
    output = TABLES[name]["output"]["name"]
    for case in range(-1, len(TABLES[name]["cases"])):
        op: list[str | Path] = ["run", name, "-m", OPS]
        op += ["--case", str(case)] if case >= 0 else []
        done = teeny(*op, "--device", "cpu", "--quiet", "--save", f"{output}=cpu.npy")
        assert done.code == 0, done.err
        done = teeny(*op, "--device", gpu.name, "--json", "--expect", f"{output}=@cpu.npy")
        record_differences(record_property, done, "cpu")
        assert done.code == 0, done.err


def test_ops_in_a_row_match_their_references(teeny: Teeny, gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_unfit(gpu, *HEAD)
    monkeypatch.chdir(ROOT)
    done = teeny("run", "head", "--json", "--device", gpu.name)
    assert done.code == 0, done.err
    assert [one["ok"] for one in done.json["ops"]] == [True] * 5
