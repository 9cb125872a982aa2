"""The ops of unseen.toml, on the CPU device, against their references."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.commands.teeny import Teeny

FOLDER = Path(__file__).parent
MANIFEST = FOLDER / "unseen.toml"
OPS: dict[str, dict[str, Any]] = tomllib.loads(MANIFEST.read_text("utf-8"))["op"]


@pytest.mark.device
@pytest.mark.parametrize("name", OPS)
def test_every_case_matches_its_reference(teeny: Teeny, name: str) -> None:
    # What check says of these ops is held against them elsewhere.
    done = teeny("run", name, "-m", MANIFEST, "--case", "all", "--device", "cpu", "--no-check", "--json")
    assert done.code == 0, done.err
    compared = done.json["compare"]
    outputs = OPS[name].get("outputs", [OPS[name].get("output")])
    assert Counter(one["name"] for one in compared) == {each["name"]: len(OPS[name]["cases"]) + 1 for each in outputs}
    assert all(one["ok"] and one["unwritten"] == 0 for one in compared)
    # A row of one element has its largest at 0; in another case zeros must not do.
    assert {one["name"] for one in compared if not one["zeros_pass"]} == {each["name"] for each in outputs}


@pytest.mark.unit
def test_each_compiler_has_its_share_and_each_op_its_cases() -> None:
    made_by = Counter(op["ptx"].partition("/")[0] for op in OPS.values())
    assert made_by.keys() == {"cuda", "numba", "clang"}
    assert made_by["cuda"] >= 14
    assert min(made_by["numba"], made_by["clang"]) >= 8
    assert all(len(op["cases"]) >= 2 and "reference" in op for op in OPS.values())


@pytest.mark.unit
def test_every_file_is_used() -> None:
    texts = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.ptx")}
    assert texts == {op["ptx"] for op in OPS.values()}
    sources = {path.with_suffix(".ptx") for folder in ("cuda", "clang") for path in (FOLDER / folder).glob("*.c*")}
    assert {path.relative_to(FOLDER).as_posix() for path in sources} == {t for t in texts if t[:5] != "numba"}
