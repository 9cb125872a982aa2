"""How close a gradient is to differences of the function that it is the gradient of.

May import ``dtypes``, ``errors`` and, in this room, ``convert``.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct

from teenycli.dtypes import DType
from teenycli.errors import TeenyError
from teenycli.tensors.convert import Array, Doubles, index_of, numpy_dtype, round_to, widen

#: Relative and absolute tolerance by the coarsest type that a difference goes through. A central difference of step h
#: is off by h^2 (of the order of eps^(2/3)), and the rounding of outputs by eps / h, which sums and approximate
#: functions enlarge; short types leave little to tell.
_TOLERANCES = {
    "f64": (1e-6, 1e-8), "f32": (1e-2, 1e-3), "f16": (5e-2, 3e-2), "bf16": (1e-1, 1e-1), "e4m3": (0.5, 0.5),
    "e5m2": (0.5, 0.5),
}  # fmt: skip
_finfo: Any = ml_dtypes.finfo


class Probe(Struct, frozen=True):
    """How far differences step and how close a gradient must come: |analytic - numeric| <= atol + rtol |numeric|.

    ``step`` is for values up to 1, and grows with larger ones.
    """

    step: float
    rtol: float
    atol: float


class GradientCheck(Struct, frozen=True):
    """A gradient beside central differences: how many elements are further away than allowed, and the worst element,
    with the analytic value (the backward kernel's) and the numeric one (the difference's)."""

    name: str
    count: int
    mismatches: int
    worst: tuple[int, ...]
    analytic: float
    numeric: float
    probe: Probe

    @property
    def ok(self) -> bool:
        return self.mismatches == 0


def probe_of(
    dtypes: tuple[DType, ...], step: float | None = None, rtol: float | None = None, atol: float | None = None
) -> Probe:
    """The probe for differences through ``dtypes``, of floats: fit for the coarsest of them, but for what is given."""
    coarsest = max(dtypes, key=lambda dtype: float(_finfo(numpy_dtype(dtype)).eps))
    usual = _TOLERANCES[coarsest.name]
    best = float(_finfo(numpy_dtype(coarsest)).eps) ** (1 / 3)
    return Probe(best if step is None else step, usual[0] if rtol is None else rtol, usual[1] if atol is None else atol)


def stepped(values: Array, at: int, dtype: DType, step: float, name: str) -> tuple[Array, Array, float]:
    """``values`` with element ``at`` (in C order) a step lower, and a step higher, and the distance of the two.

    Raises TeenyError ``gradcheck-step`` where the type has no such values.
    """
    value = float(widen(values).reshape(-1)[at])
    reach = step * max(1.0, abs(value))
    low, high = values.copy(), values.copy()
    low.reshape(-1)[at] = round_to(np.array(value - reach), dtype)
    high.reshape(-1)[at] = round_to(np.array(value + reach), dtype)
    distance = float(widen(high).reshape(-1)[at] - widen(low).reshape(-1)[at])
    if not (math.isfinite(distance) and distance > 0):
        message = f"a step of {reach:g} from {value:g}, in '{name}', leads nowhere in {dtype}"
        raise TeenyError("gradcheck-step", message, hint="say another step in the op's gradcheck table")
    return low, high, distance


def slope(low: Array, high: Array, distance: float, grad_output: Array) -> float:
    """The change of sum(output * grad_output) with the input, from the outputs at its two ends."""
    with np.errstate(all="ignore"):
        return float(((widen(high) - widen(low)) * widen(grad_output)).sum() / distance)


def compare_gradient(name: str, analytic: Array, numeric: Doubles, probe: Probe) -> GradientCheck:
    """``analytic``, of a float type, beside ``numeric``, of the same shape and at least one element."""
    got, want = widen(analytic).reshape(-1), numeric.reshape(-1)
    with np.errstate(all="ignore"):
        # How much of what is allowed the difference takes; NaN takes all.
        excess = np.nan_to_num(np.abs(got - want) / (probe.atol + probe.rtol * np.abs(want)), nan=np.inf, posinf=np.inf)
    at = int(np.argmax(excess))
    return GradientCheck(
        name,
        got.size,
        int(np.count_nonzero(excess > 1)),
        index_of(at, analytic.shape),
        float(got[at]),
        float(want[at]),
        probe,
    )
