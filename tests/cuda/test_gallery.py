"""The ops of ops.toml on a GPU, those that the CPU device has no code for among them."""

from __future__ import annotations

import pytest

from tests.commands.teeny import ROOT, Teeny
from tests.commands.test_gallery import TABLES, matches

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("name", TABLES)
def test_every_case_matches_its_reference(teeny: Teeny, gpu_name: str, name: str) -> None:
    matches(teeny, name, "--device", gpu_name)


@pytest.mark.parametrize("name", [name for name in TABLES if "backward" in TABLES[name]])
def test_every_gradient_matches_its_reference(teeny: Teeny, gpu_name: str, name: str) -> None:
    matches(teeny, name, "--backward", "--device", gpu_name)


def test_ops_in_a_row_match_their_references(teeny: Teeny, gpu_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = teeny("run", "head", "--json", "--device", gpu_name)
    assert done.code == 0, done.err
    assert [one["ok"] for one in done.json["ops"]] == [True] * 5
