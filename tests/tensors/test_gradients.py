from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError
from teenycli.tensors.gradients import Probe, compare_gradient, probe_of, slope, stepped

pytestmark = pytest.mark.unit
F32 = DTYPES["f32"]


def test_a_probe_fits_the_coarsest_type() -> None:
    assert probe_of((F32, DTYPES["f64"])) == probe_of((F32,))
    assert probe_of((F32, DTYPES["bf16"])) == probe_of((DTYPES["bf16"],))
    steps = [probe_of((DTYPES[name],)).step for name in ("f64", "f32", "f16", "bf16")]
    assert steps == pytest.approx([6.06e-6, 4.92e-3, 0.0992, 0.198], rel=1e-2)
    assert probe_of((F32,), 0.5, 0.25, 0) == Probe(0.5, 0.25, 0)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("value", [0.0, 0.3, -0.7, 100.0])
def test_a_step_goes_both_ways_and_knows_how_far(dtype: str, value: float) -> None:
    numpy = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[dtype]
    values = np.full((2, 2), value, numpy)
    low, high, distance = stepped(values, 3, DTYPES[dtype], probe_of((DTYPES[dtype],)).step, "x")
    assert float(low[1, 1]) < float(values[1, 1]) < float(high[1, 1])
    assert float(high[1, 1]) - float(low[1, 1]) == distance
    assert (low.reshape(-1)[:3] == values.reshape(-1)[:3]).all()
    assert (values == numpy(value)).all()


@pytest.mark.parametrize(("value", "step"), [(1.0, 1e-30), (np.inf, 0.1), (np.nan, 0.1), (3e38, 1.0)])
def test_a_step_that_leads_nowhere(value: float, step: float) -> None:
    with pytest.raises(TeenyError) as caught:
        stepped(np.array([value], np.float32), 0, F32, step, "x")
    assert caught.value.finding.id == "gradcheck-step"


def test_a_slope_weighs_each_output() -> None:
    low, high = np.array([1.0, 2.0], np.float32), np.array([2.0, 2.5], np.float32)
    assert slope(low, high, 0.5, np.array([1.0, -2.0], np.float32)) == (1.0 - 1.0) / 0.5
    assert slope(low, high, 0.5, np.array([1.0, 2.0], np.float32)) == 4.0


def test_the_worst_is_the_furthest_over_what_is_allowed() -> None:
    analytic = np.array([[100.5, 1.0], [0.3, 2.0]], np.float32)
    numeric = np.array([[100.0, 1.0], [0.2, 2.0]])
    found = compare_gradient("g", analytic, numeric, Probe(0.1, 0.01, 0.01))
    assert (found.ok, found.mismatches, found.count, found.worst, found.numeric) == (False, 1, 4, (1, 0), 0.2)
    assert compare_gradient("g", analytic, numeric, Probe(0.1, 0.01, 0.1)).ok
    broken = compare_gradient("g", np.array([1.0, np.nan], np.float32), np.array([1.0, 1.0]), Probe(0.1, 1, 1))
    assert (broken.ok, broken.worst) == (False, (1,))
