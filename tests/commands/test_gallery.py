"""Every op of the repository's ops.toml, forward and backward, at all its cases, against its reference."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from tests.commands.teeny import DEVICE, ROOT, Done, Teeny

# For the CPU device alone is what names what only it knows: a fault's place, buffers by name, its cache.
pytestmark = [pytest.mark.device, pytest.mark.devices("cpu", "cuda")]

OPS = ROOT / "ops.toml"
TABLES: dict[str, dict[str, Any]] = tomllib.loads(OPS.read_text("utf-8"))["op"]
WITH_GRADIENTS = [name for name in TABLES if "backward" in TABLES[name]]


def all_cases(teeny: Teeny, name: str, *options: str) -> Done:
    """Runs an op at its own dims and at all its cases."""
    return teeny("run", name, "-m", OPS, "--case", "all", "--json", *options)


def judged(done: Done, name: str) -> dict[str, Any]:
    """Asserts that each output of ``all_cases`` is as its reference says, and gives the document."""
    assert done.code == 0, done.err
    document: dict[str, Any] = done.json
    compared = document["compare"]
    cases = {str(one["case"]) for one in compared}
    assert len(cases) == len(TABLES[name]["cases"]) + 1 == len({str(one["case"]) for one in document["launches"]})
    assert all(one["ok"] and one["mismatches"] == 0 and one["unwritten"] == 0 for one in compared)
    assert {one["name"] for one in compared if not one["zeros_pass"]} == {one["name"] for one in compared}
    return document


def matches(teeny: Teeny, name: str, *options: str) -> dict[str, Any]:
    return judged(all_cases(teeny, name, *options), name)


@pytest.mark.parametrize("name", TABLES)
def test_every_case_matches_its_reference(teeny: Teeny, name: str) -> None:
    assert TABLES[name]["reference"]
    matches(teeny, name, *DEVICE)


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_every_gradient_matches_its_reference(teeny: Teeny, name: str) -> None:
    assert TABLES[name]["backward"]["reference"]
    document = matches(teeny, name, "--backward", *DEVICE)
    names = {one["name"] for one in document["compare"]}
    assert sum("grad" in each for each in names) == len(TABLES[name]["inputs"]) + len(TABLES[name].get("params", ()))


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_every_gradient_agrees_with_central_differences(teeny: Teeny, name: str) -> None:
    done = teeny("run", name, "-m", OPS, "--gradcheck", *DEVICE)
    assert done.code == 0, done.out + done.err


def test_a_launch_an_input_forward_and_backward(teeny: Teeny) -> None:
    document = matches(teeny, "channel_cat_cuda", *DEVICE)
    assert [launch["index"] for launch in document["launches"]] == [0, 1, 2] * 3
    document = matches(teeny, "channel_cat_cuda", "--backward", *DEVICE)
    assert len(document["launches"]) == 18
