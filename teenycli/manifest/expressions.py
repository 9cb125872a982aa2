"""Expressions of the manifest: exact integers, but for what becomes a float. Shapes, grids, counts and arguments are
written in it.

The syntax and its evaluation are those of ``teenycli.expressions``. May import ``errors`` and that.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from teenycli.errors import TeenyError
from teenycli.expressions import (
    COMPARISONS,
    SEQUENCES,
    Language,
    items_of,
    multiply,
    power,
    product,
    shortened,
)

#: Most steps of one evaluation, and most items of a sequence.
STEP_LIMIT = 200_000
ITEM_LIMIT = 10_000


def _is_int(value: object) -> bool:
    return isinstance(value, int)


def _divide(a: Any, b: Any) -> Any:
    """Exact division; ordinary division when an operand is a float."""
    if not (_is_int(a) and _is_int(b)):
        return a / b
    quotient, rest = divmod(a, b)
    if rest:
        raise ValueError(f"{a} / {b} is not exact: write // to round down, cdiv(a, b) to round up")
    return quotient


def _power(a: Any, b: Any) -> Any:
    if _is_int(a) and _is_int(b) and b < 0:
        raise ValueError(f"{a} ** {b} is no integer")
    return power(a, b)


_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter ``function`` under its name without underscores, which Python's own messages then give too."""
    name = function.__qualname__ = function.__name__.strip("_")
    _FUNCTIONS[name] = function
    return function


@_function
def cdiv(a: int, b: int) -> int:
    """``a / b`` rounded up, for b > 0."""
    if not (_is_int(a) and _is_int(b)):
        raise TypeError("cdiv takes two integers")
    if b <= 0:
        raise ValueError(f"cdiv by {b}, which is not positive")
    return -(-a // b)


@_function
def align(a: int, b: int) -> int:
    """The first multiple of ``b`` that is not below ``a``, for b > 0."""
    return int(cdiv(a, b) * b)


@_function
def _prod(values: object, /) -> Any:
    return product(values)


@_function
def _sum(values: object, /) -> Any:
    return sum(items_of(values))


@_function
def _min(first: Any, /, *rest: Any) -> Any:
    return min((first, *rest) if rest else items_of(first))


@_function
def _max(first: Any, /, *rest: Any) -> Any:
    return max((first, *rest) if rest else items_of(first))


@_function
def _len(values: object, /) -> int:
    return len(items_of(values))


@_function
def _range(*bounds: int) -> range:
    out = range(*bounds)
    if out[ITEM_LIMIT : ITEM_LIMIT + 1]:  # the length of a long one may be more than len() can say
        raise OverflowError(f"a range of more than {ITEM_LIMIT:,} items")
    return out


@_function
def _sqrt(value: float, /) -> float:
    return math.sqrt(value)


#: Integers stay exact.
INTEGERS = Language(
    functions=_FUNCTIONS,
    operators={
        ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: multiply, ast.Div: _divide,
        ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power,
        ast.UAdd: operator.pos, ast.USub: operator.neg, **COMPARISONS,
    },
    steps=STEP_LIMIT,
    items=ITEM_LIMIT,
)  # fmt: skip

#: What becomes a floating-point number: integers divide as such, too.
REALS = replace(INTEGERS, operators={**INTEGERS.operators, ast.Div: operator.truediv, ast.Pow: power})


def exact_integer(value: object, text: str) -> int:
    """``value`` if it is an integer and no bool; ``text`` is the expression it came from.

    Raises TeenyError ``not-an-integer``.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    hint = "write // or cdiv in place of a division by a float" if isinstance(value, float) else None
    raise TeenyError("not-an-integer", f"'{shortened(text)}' gives {_described(value)}, not an integer", hint=hint)


def _described(value: object) -> str:
    if isinstance(value, bool | float):
        return str(value)
    return "several values" if isinstance(value, SEQUENCES) else f"a {type(value).__name__}"
