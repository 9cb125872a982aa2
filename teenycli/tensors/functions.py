"""What an expression over arrays may name: numpy's functions, types and constants, and what an array has.

The lists are the language. Nothing here writes a file, calls back into Python, or hands out an object with more than
numbers in it. May import ``dtypes`` and, in this room, ``convert``.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from teenycli.dtypes import DTYPES
from teenycli.tensors.convert import Array, numpy_dtype, round_to, teeny_dtype


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NUMPY = _words("""
    absolute fabs sign sqrt cbrt square reciprocal exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2
    sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh sinc hypot deg2rad rad2deg
    degrees radians floor ceil trunc rint around round fmod mod remainder floor_divide divide true_divide
    add subtract multiply negative positive power float_power maximum minimum fmax fmin heaviside clip
    copysign nextafter spacing ldexp signbit isnan isinf isfinite isclose allclose nan_to_num interp gcd lcm
    where select logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor invert
    left_shift right_shift equal not_equal less less_equal greater greater_equal array_equal
    mean average std var median quantile percentile amax amin ptp argmax argmin all any count_nonzero
    nansum nanprod nanmean nanstd nanvar nanmax nanmin nanargmax nanargmin
    cumsum cumprod nancumsum diff ediff1d histogram bincount digitize searchsorted unique convolve correlate
    sort argsort partition argpartition lexsort flatnonzero nonzero argwhere take take_along_axis compress choose
    reshape ravel transpose swapaxes moveaxis squeeze expand_dims broadcast_to broadcast_arrays
    atleast_1d atleast_2d atleast_3d concatenate stack vstack hstack dstack column_stack split array_split
    hsplit vsplit dsplit tile repeat pad roll rot90 flip fliplr flipud delete insert append
    diag diagflat diagonal tri tril triu trace tril_indices triu_indices
    dot vdot inner outer matmul tensordot einsum kron cross
    zeros ones full eye identity arange linspace logspace geomspace meshgrid indices unravel_index ravel_multi_index
    zeros_like ones_like full_like array asarray copy size shape ndim
""")

#: Longest ``range``, and most steps that an expression may take.
STEPS = 1_000_000

#: Attributes of an array that are values.
ATTRIBUTES = frozenset({"T", "shape", "size", "ndim"})

#: Methods of an array. None changes the array it is called on.
METHODS = _words("""
    all any argmax argmin argsort astype clip copy cumprod cumsum diagonal dot flatten max mean min nonzero prod
    ravel repeat reshape round searchsorted squeeze std sum swapaxes take trace transpose var
""")

#: Keyword arguments of functions and methods; ``out`` is not among them, since it writes.
KEYWORDS = _words("""
    axis axes keepdims dtype initial where ddof k offset axis1 axis2 a_min a_max min max decimals mode pad_width
    constant_values shape newshape fill_value num endpoint start stop step base indexing side right bins density
    weights minlength nan posinf neginf copy rtol atol equal_nan q method n prepend append repeats reps shift
    indices_or_sections return_index return_inverse return_counts kind stable sparse optimize order default left
    period M N stride
""")


class Cast:
    """A type by name: an argument such as ``dtype=float32``, or a conversion when called, ``float32(x)``."""

    def __init__(self, name: str, dtype: np.dtype[Any]) -> None:
        self.name = name
        self.dtype = dtype

    def __call__(self, value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            return astype(np.asarray(value), self.dtype)
        if self.dtype.kind == "b":
            return builtins.bool(value)
        return builtins.int(value) if self.dtype.kind in "iu" else astype(np.asarray(builtins.float(value)), self.dtype)


def astype(array: Array, dtype: Any) -> Array:
    """``array`` in another type: floats rounded once (numpy's own goes to bf16 and fp8 by two), integers wrapped."""
    known = teeny_dtype(np.dtype(dtype))
    if known is None:
        raise TypeError(f"'{dtype}' is no type of numbers here")
    return round_to(array, known) if known.is_float else array.astype(numpy_dtype(known))


def _casts() -> dict[str, Cast]:
    dtypes = {name: numpy_dtype(dtype) for name, dtype in DTYPES.items() if name != "ptr"}
    dtypes |= {dtype.name: dtype for dtype in dtypes.values()}
    dtypes |= {"int": np.dtype(np.int64), "float": np.dtype(np.float64), "bool_": np.dtype(np.bool_)}
    return {name: Cast(name, dtype) for name, dtype in dtypes.items()}


CASTS: Mapping[str, Cast] = _casts()

CONSTANTS: Mapping[str, float | None] = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None}


class Items(list[Any]):
    """What a generator expression gave: functions fold over its items, as Python's own do."""


def _is_scalar(value: object) -> bool:
    return isinstance(value, int | float | np.generic)


def _folding(ours: Callable[[Any], Any], numpys: Callable[..., Any]) -> Callable[..., Any]:
    """``ours`` for the items of a generator and for plain numbers, so that integers stay exact; else numpy's."""

    def call(values: Any, *args: Any, **options: Any) -> Any:
        plain = isinstance(values, list | tuple | range) and all(map(_is_scalar, values))
        folds = (plain or isinstance(values, Items)) and not args and not options
        return ours(values) if folds else numpys(values, *args, **options)

    return call


def _extreme(ours: Callable[[Any], Any], fold: Callable[..., Any], elementwise: str) -> Callable[..., Any]:
    def call(values: Any, *args: Any, **options: Any) -> Any:
        if not args:
            return fold(values, **options)
        if options or not all(map(_is_scalar, (values, *args))):
            # numpy would take the second argument for an axis, Python for another candidate.
            raise TypeError(f"write {elementwise}(a, b) to go element by element, or axis=… to go along an axis")
        return ours((values, *args))

    return call


def _range(*bounds: Any) -> range:
    out = range(*bounds)
    if len(out) > STEPS:
        raise ValueError(f"a range of more than {STEPS:,} steps")
    return out


def cdiv(a: Any, b: Any) -> Any:
    """``a / b`` rounded up."""
    return -(-a // b)


def align(a: Any, b: Any) -> Any:
    """The first multiple of ``b`` that is not below ``a``."""
    return cdiv(a, b) * b


def _all_functions() -> dict[str, Callable[..., Any]]:
    table: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name in _NUMPY}
    table |= {
        "sum": _folding(builtins.sum, np.sum),
        "prod": _folding(math.prod, np.prod),
        "max": _extreme(builtins.max, _folding(builtins.max, np.max), "maximum"),
        "min": _extreme(builtins.min, _folding(builtins.min, np.min), "minimum"),
        "abs": builtins.abs,
        "len": builtins.len,
        "range": _range,
        "cdiv": cdiv,
        "align": align,
    }
    return table


#: Every function by its bare name.
FUNCTIONS: Mapping[str, Callable[..., Any]] = _all_functions()
