"""Rows of the benchmarks' table: ratios, limits, and the same as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.timing import Figure, Row, Section, table, write_json

pytestmark = pytest.mark.unit

SLOW, FAST = Figure.of([5, 3, 4]), Figure.of([1, 2, 2])


def test_a_figure_is_a_median_and_a_minimum() -> None:
    assert Figure.of([5, 3, 4]) == Figure(4, 3)


@pytest.mark.parametrize(("base", "limit", "ok"), [
    (FAST, None, True), (FAST, 2, True), (FAST, 1.9, False), (None, 4, True), (None, 3.9, False),
])  # fmt: skip
def test_a_limit_holds_for_the_ratio_of_medians_or_for_the_median(
    base: Figure | None, limit: float | None, ok: bool
) -> None:
    row = Row("x", SLOW, base, limit)
    assert row.ok is ok
    assert Section("y", [row]).ok is ok
    assert ("OVER" in str(row)) is not ok


def test_the_table_and_the_document_say_the_same(tmp_path: Path) -> None:
    sections = [Section("kernels", [Row("add", SLOW, FAST, 1.5, details={"share": 0.5})], {"no PoCL": "none here"})]
    text = table(sections)
    assert "no PoCL: none here" in text
    assert "share 0.5, at most 1.5: OVER" in text
    write_json(sections, tmp_path / "out.json")
    (section,) = json.loads((tmp_path / "out.json").read_text())
    assert section["facts"] == {"no PoCL": "none here"}
    (row,) = section["rows"]
    assert row["ours"] == {"median": 4, "minimum": 3}
    assert (row["ratio"], row["ok"], row["details"]) == (2, False, {"share": 0.5})
