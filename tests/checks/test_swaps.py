from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from tests.checks.ops import Op, findings, found
from tests.commands.teeny import Teeny, samples

pytestmark = pytest.mark.unit

SAMPLES = samples()


def swapped(op: Op, one: int, other: int) -> Op:
    args = list(op["args"])
    args[one], args[other] = args[other], args[one]
    return {**op, "args": args}


def order(args: list[str]) -> str:
    return f"({', '.join(args)}) fits"


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("vector_add_cuda", 0, 2), ("vector_add_triton", 1, 3), ("softmax_cuda", 0, 1), ("axpy_bf16_cuda", 3, 4),
        ("rms_norm_f16_triton", 2, 3), ("conv_bn_silu_cuda", 6, 7), ("linear_cuda", 0, 3),
    ],
)  # fmt: skip
def test_the_order_that_fits_is_said(teeny: Teeny, tmp_path: Path, name: str, one: int, other: int) -> None:
    op = SAMPLES[name]
    said = [each["hint"] or "" for each in findings(teeny, tmp_path, swapped(op, one, other))]
    assert said
    for hint in said:
        assert f"arguments {one} and {other} look swapped" in hint
        assert order(op["args"]) in hint


def test_strides_of_two_buffers(teeny: Teeny, tmp_path: Path) -> None:
    op = {**SAMPLES["softmax_triton"], "output": {**SAMPLES["softmax_triton"]["output"], "row_stride": "COLS + 3"}}
    hints = [each["hint"] for each in findings(teeny, tmp_path, swapped(op, 3, 4))]
    assert any("arguments 3 and 4 look swapped" in hint for hint in hints if hint)


def test_where_no_exchange_helps_none_is_said(teeny: Teeny, tmp_path: Path) -> None:
    op = {**SAMPLES["vector_add_cuda"], "args": ["ptr x", "ptr y", "ptr y", "f32 N"]}
    said = [each["hint"] for each in findings(teeny, tmp_path, op)]
    assert said
    assert not any("swapped" in (hint or "") for hint in said)


def test_a_swap_in_every_launch(teeny: Teeny, tmp_path: Path) -> None:
    op = SAMPLES["channel_cat_cuda"]
    said = {each["hint"] for each in findings(teeny, tmp_path, swapped(op, 0, 1))}
    assert len(said) == 1
    assert "arguments 0 and 1 look swapped" in (said.pop() or "")


def test_every_swap_of_arguments_of_two_kinds_is_found(teeny: Teeny, tmp_path: Path) -> None:
    missed = {
        (name, op["args"][one], op["args"][other])
        for name, op in SAMPLES.items()
        if len(op["args"]) <= 5
        for one, other in combinations(range(len(op["args"])), 2)
        if op["args"][one].split()[0] != op["args"][other].split()[0]
        and not found(teeny, tmp_path, swapped(op, one, other))
    }
    assert missed == set()
