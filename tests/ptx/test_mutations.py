"""The reader's verdict on mutants of valid files is ptxas's, but for differences that are listed with their reasons."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.ptx.mutations import KINDS, mutants
from tests.ptx.verdicts import EACH, RECORD, ROOT, bases, fingerprint, ours, verdicts

RECORDED: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
BASES = {name: text for name, text in bases() if name in RECORDED}

#: Where the two differ: the reasons are those of docs/ptx.md.
KNOWN: dict[str, str] = {
    "tests/corpus/nvcc/debug_info.ptx#0.6_drop_line": "what a section of debugging information means",
    "tests/corpus/nvcc/debug_info.ptx#0.7_double_line": "what a section of debugging information means",
    "tests/corpus/nvcc/fragments_of_c.ptx#0.7_double_line": "prototypes of one function that differ",
    "ptx/triton/gelu_backward.ptx#0.3_misspell": "`%r07` for a register of `%r<9>`",
}


@pytest.mark.unit
@pytest.mark.parametrize("name", BASES)
def test_the_verdict_is_that_of_ptxas(name: str) -> None:
    text = BASES[name]
    assert fingerprint(text) == RECORDED[name]["text"], "the file has changed: python -m tests.ptx.verdicts"
    for mutant, changed in mutants(name, text, EACH):
        problem = ours(mutant, changed)
        agree = (problem is None) == RECORDED[name]["mutants"][mutant]
        assert agree == (mutant not in KNOWN), f"{mutant}: {problem or 'taken'}"


@pytest.mark.unit
def test_there_are_enough_of_every_kind() -> None:
    recorded = [mutant for file in RECORDED.values() for mutant in file["mutants"]]
    assert len(recorded) >= 200
    for kind in KINDS:
        assert sum(mutant.endswith(kind.__name__) for mutant in recorded) >= 20
    assert set(KNOWN) <= set(recorded)
    page = (ROOT / "docs" / "ptx.md").read_text("utf-8")
    assert len(KNOWN) <= 0.03 * len(recorded)
    assert all(f"| {reason} |" in page for reason in KNOWN.values())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")
@pytest.mark.parametrize("name", BASES)
def test_the_record_is_what_ptxas_says(name: str) -> None:
    assert verdicts(name, BASES[name]) == RECORDED[name]["mutants"]
