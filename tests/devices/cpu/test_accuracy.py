"""Errors of the approximate functions over the whole range, against float64 and the bounds that the PTX ISA gives.

Every 4097th float32 by default; ``TEENY_ACCURACY_STEP=1`` takes all of them (some 40 minutes). With ``-s``
the figures of ``docs/cpu-accuracy.md`` are printed. Halves are few: all of them, always.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from tests.devices.cpu.kit import Array, Rig, evaluate

STEP = int(os.environ.get("TEENY_ACCURACY_STEP", "4097"))
_CHUNK = 1 << 22
_ALL = math.inf


@dataclass(frozen=True, slots=True)
class Case:
    """A function, and the bound of its error for arguments with a magnitude from ``low`` to ``high``."""

    line: str
    reference: Callable[[Array], Array]
    bound: float
    relative: bool = True
    low: float = 0.0
    high: float = _ALL


CASES = {
    "ex2": Case("ex2.approx.f32", np.exp2, 2**-22),
    "ex2.ftz": Case("ex2.approx.ftz.f32", np.exp2, 2**-22),
    "lg2 in (1/2, 2)": Case("lg2.approx.f32", np.log2, 2**-22, False, 0.5, 2.0),
    "lg2 below 1/2": Case("lg2.approx.f32", np.log2, 2**-22, True, 0.0, 0.5),
    "lg2 above 2": Case("lg2.approx.f32", np.log2, 2**-22, True, 2.0, _ALL),
    "sin in [-2pi, 2pi]": Case("sin.approx.f32", np.sin, 2**-20.5, False, 0.0, 2 * math.pi),
    "sin in [-100pi, 100pi]": Case("sin.approx.f32", np.sin, 2**-14.7, False, 0.0, 100 * math.pi),
    "cos in [-2pi, 2pi]": Case("cos.approx.f32", np.cos, 2**-20.5, False, 0.0, 2 * math.pi),
    "cos in [-100pi, 100pi]": Case("cos.approx.f32", np.cos, 2**-14.7, False, 0.0, 100 * math.pi),
    "rcp": Case("rcp.approx.f32", np.reciprocal, 2**-23),
    "rsqrt": Case("rsqrt.approx.f32", lambda a: 1 / np.sqrt(a), 2**-22.9),
    "sqrt": Case("sqrt.approx.f32", np.sqrt, 2**-23),
    "tanh": Case("tanh.approx.f32", np.tanh, 2**-11),
}


def results(line: str, low: float, high: float) -> Iterator[tuple[Array, Array]]:
    """Arguments of both signs with a magnitude from ``low`` to ``high``, and what the instruction gives for them."""
    rig = Rig(f"""
.visible .entry kernel(.param .u64 out, .param .u32 start, .param .u32 step, .param .u32 count)
{{
.reg .b64 %o, %i; .reg .b32 %s, %t, %k, %l, %n; .reg .f32 %a, %r; .reg .pred %p;
ld.param.u64 %o, [out]; ld.param.u32 %s, [start]; ld.param.u32 %t, [step]; ld.param.u32 %n, [count];
mov.u32 %k, %ctaid.x; mov.u32 %l, %tid.x; mad.lo.u32 %k, %k, 256, %l; setp.ge.u32 %p, %k, %n; @%p ret;
mul.wide.u32 %i, %k, 4; add.u64 %o, %o, %i; mad.lo.u32 %s, %k, %t, %s;
mov.b32 %a, %s; {line} %r, %a; st.global.f32 [%o], %r; ret;
}}""")
    first, last = (int(np.float32(v).view(np.uint32)) for v in (low, high))
    for sign in (0, 1 << 31):
        for start in range(first, last + 1, STEP * _CHUNK):
            count = min(_CHUNK, (last - start) // STEP + 1)
            out = np.zeros(count, np.float32)
            rig.run([out, start | sign, STEP, count], grid=(-(-count // 256),), block=(256,), timeout=600)
            bits = np.arange(count, dtype=np.uint32) * np.uint32(STEP) + np.uint32(start | sign)
            yield bits.view(np.float32), out
    rig.device.close()


def worst(case: Case) -> tuple[float, float]:
    """The largest error, and the argument that has it. Results that are not normal numbers are compared apart."""
    error, at = 0.0, 0.0
    for a, got in results(case.line, case.low, case.high):
        with np.errstate(all="ignore"):
            wanted = case.reference(a.astype(np.float64))
            size = np.abs(wanted)
            normal = (size >= 2.0**-126) & (size < 2.0**128) if case.relative else np.isfinite(wanted)
            off = np.abs(got[normal] - wanted[normal])
            off = off / size[normal] if case.relative else off
            rest = ~normal
            small = rest & (size < 2.0**-126)
            least = 2.0**-126 if "ftz" in case.line else 2.0**-149
            assert (np.abs(got[small] - wanted[small]) <= least).all()
            odd = rest & ~small
            np.testing.assert_array_equal(got[odd], wanted[odd].astype(np.float32))
        if len(off) and off.max() > error:
            error, at = float(off.max()), float(a[normal][off.argmax()])
    return error, at


@pytest.mark.unit
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_single_precision_functions_keep_their_bounds(name: str) -> None:
    case = CASES[name]
    error, at = worst(case)
    print(f"\n| {name} | {'relative' if case.relative else 'absolute'} | 2^{math.log2(case.bound):.2f} "
          f"| 2^{math.log2(error):.2f} | {at!r} |")  # fmt: skip
    assert error <= case.bound, at


#: Of halves: instruction, numpy type, function, bound, relative.
HALVES = [
    ("ex2.approx.f16", np.float16, np.exp2, 2**-9.9, True),
    ("ex2.approx.ftz.bf16", ml_dtypes.bfloat16, np.exp2, 2**-7, True),
    ("tanh.approx.f16", np.float16, np.tanh, 2**-10.987, False),
    ("tanh.approx.bf16", ml_dtypes.bfloat16, np.tanh, 2**-8, True),
]


@pytest.mark.unit
@pytest.mark.parametrize(("line", "dtype", "function", "bound", "relative"), HALVES)
def test_every_half(line: str, dtype: type, function: Callable[[Array], Array], bound: float, relative: bool) -> None:
    """All 65,536 arguments, and the same in pairs."""
    bits = np.arange(2**16, dtype=np.uint16)
    got = evaluate(f"{line} %r, %a;", {"a": bits}, {"r": "uint16"})["r"]
    pair = evaluate(f"{line}x2 %r, %a;", {"a": bits.view(np.uint32)}, {"r": "uint32"})["r"]
    np.testing.assert_array_equal(pair.view(np.uint16), got)
    with np.errstate(all="ignore"):
        a, result = (v.view(dtype).astype(np.float64) for v in (bits, got))
        wanted = function(a)
        info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        size, tiny = np.abs(wanted), float(info.tiny)
        usual = np.isfinite(wanted) & (size <= float(info.max)) & ((size >= tiny) | (not relative))
        off = np.abs(result[usual] - wanted[usual])
        error = (off / size[usual]).max() if relative else off.max()
    kind = "relative" if relative else "absolute"
    print(f"\n| {line} | {kind} | 2^{math.log2(bound):.2f} | 2^{math.log2(error):.2f} |")
    assert error <= bound
    assert (got[np.isnan(a)] == 0x7FFF).all()
    below = np.isfinite(a) & (size < tiny)
    limit = tiny if "ftz" in line else float(info.smallest_subnormal)
    assert (np.abs(result[below] - wanted[below]) <= limit).all()
