"""Expressions over arrays: the language of ``teenycli.expressions``, with numpy underneath.

The names, attributes, methods and keyword arguments are those of ``functions``. Work is bounded in steps, integers in
bits and arrays in bytes.

May import ``errors``, the top-level ``expressions`` and, in this room, ``convert`` and ``functions``.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.expressions import (
    BIT_LIMIT,
    COMPARISONS,
    SEQUENCES,
    TOO_MANY_BITS,
    Evaluator,
    Expression,
    Language,
    parse,
    power,
    product,
    shortened,
)
from teenycli.tensors.convert import Array, check_size, teeny_dtype
from teenycli.tensors.functions import (
    ATTRIBUTES,
    CASTS,
    CONSTANTS,
    FUNCTIONS,
    KEYWORDS,
    METHODS,
    STEPS,
    Items,
    astype,
)

#: What an op puts into the namespace: buffers, dims, consts and scalars, and groups of them (``inputs``).
Value = Array | int | float | Sequence["Value"]

#: What an expression may come to.
Result = Array | int | float | tuple[Array | int | float, ...]

_ARRAYS = (np.ndarray, np.generic)
_NUMBERS = (*_ARRAYS, int, float)
#: What a type is where it isn't called: ``dtype=float32``.
_TYPES = {name: cast.dtype for name, cast in CASTS.items()}


def evaluate(text: str, names: Mapping[str, Value], where: Place | None = None) -> Result:
    """The value of the expression ``text``: an array, a number, or a tuple of them.

    A name of ``names`` goes before numpy's of the same spelling. Arrays are handed to the expression as they are,
    and never written to. Raises TeenyError: ``expression-syntax``, ``unknown-name``, ``unknown-attribute``,
    ``expression-failed`` when numpy or arithmetic refuses, ``array-too-large``; their place is ``where``.
    """
    known: ChainMap[str, Any] = ChainMap(names, CONSTANTS, _TYPES)  # type: ignore[arg-type]  # it is only read
    try:
        expression = parse(text)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = _ArrayEvaluator(_LANGUAGE, known).evaluate(expression)
        if isinstance(value, tuple | list):
            return tuple(_outcome(item, expression) for item in value)
        return _outcome(value, expression)
    except TeenyError as error:
        raise (error.at(where) if where else error) from None


def _outcome(value: Any, expression: Expression) -> Array | int | float:
    if not isinstance(value, _NUMBERS):
        message = f"'{shortened(expression.text)}' gives {_describe(value)}, not an array or a number"
        raise TeenyError("expression-failed", message)
    return np.asarray(value) if isinstance(value, np.generic) else value


# --- the language -------------------------------------------------------------------------------------------------


def _on_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*operands: Any) -> Any:
        for operand in operands:
            if not isinstance(operand, _NUMBERS):
                raise TypeError(f"this is {_describe(operand)}, not an array or a number")
        return function(*operands)

    return call


def _add(a: Any, b: Any) -> Any:
    joined = type(a) is type(b) and isinstance(a, tuple | list)
    return a + b if joined else _on_numbers(operator.add)(a, b)


def _shift_left(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > BIT_LIMIT:
        raise OverflowError(TOO_MANY_BITS)
    return a << b


def _prod(values: Any, *args: Any, **options: Any) -> Any:
    """``prod`` of ``functions``, but plain numbers multiply within bounds."""
    plain = isinstance(values, SEQUENCES) and all(isinstance(value, int | float | np.generic) for value in values)
    if (plain or isinstance(values, Items)) and not args and not options:
        return product(values)
    return FUNCTIONS["prod"](values, *args, **options)


_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Pow: power, ast.MatMult: operator.matmul, ast.LShift: _shift_left,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert, **COMPARISONS,
}  # fmt: skip

_LANGUAGE = Language(
    functions={**FUNCTIONS, **CASTS, "prod": _prod},
    operators={ast.Add: _add} | {kind: _on_numbers(function) for kind, function in _OPERATORS.items()},
    steps=STEPS,
    items=STEPS,
    attributes=dict.fromkeys(_ARRAYS, ATTRIBUTES),
    keywords=KEYWORDS,
    constants=(int, float, str, NoneType, EllipsisType),
    containers=(*_ARRAYS, *SEQUENCES),
)


# --- evaluation ---------------------------------------------------------------------------------------------------


class _ArrayEvaluator(Evaluator):
    """An evaluator whose sequences nest, and keep their kind: numpy takes lists for arrays and tuples for shapes."""

    def _checked(self, node: ast.expr, value: Any) -> Any:
        if not isinstance(value, _ARRAYS):
            if not isinstance(value, SEQUENCES) and not isinstance(value, int | float | complex | NoneType):
                self._fail(node, "expression-failed", f"this gives {_describe(value)}")
            return super()._checked(node, value)
        if teeny_dtype(value.dtype) is None:
            self._fail(node, "expression-failed", f"this gives elements of numpy type '{value.dtype}'")
        # A broadcast view or untouched zeros cost nothing until something walks over them.
        try:
            check_size(value.nbytes, "an array within the expression")
        except TeenyError as error:
            self._fail(node, error.finding.id, error.finding.message)
        return value

    def _name(self, node: ast.Name) -> Any:
        value = super()._name(node)
        return value if node.id in self._locals else _shielded(value)

    def _collect(self, node: ast.expr, items: Iterable[Any]) -> Any:
        kinds: dict[type[ast.expr], type] = {ast.List: list, ast.ListComp: list, ast.GeneratorExp: Items}
        return kinds.get(type(node), tuple)(items)

    def _compare(self, node: ast.Compare) -> Any:
        """Element by element, so a chain is worked out to its end, and its parts joined with ``&``."""
        left, result = self._visit(node.left), True
        for kind, item in zip(node.ops, node.comparators, strict=True):
            right = self._visit(item)
            outcome = self._apply(node, self._operator(node, kind), left, right)
            result = outcome if result is True else self._apply(node, operator.and_, result, outcome)
            left = right
        return result

    def _truth(self, node: ast.expr, value: Any) -> bool:
        if not isinstance(value, _NUMBERS):
            self._fail(node, "expression-failed", f"this is {_describe(value)}, not an array or a number")
        if isinstance(value, np.ndarray) and value.size != 1:
            hint = "for arrays write & | ~ in place of and, or, not, and where(condition, a, b) in place of if"
            message = f"the truth value of an array of {value.size:,} elements is ambiguous"
            self._fail(node, "expression-failed", message, hint)
        return bool(value)

    # --- attributes and calls

    def _attribute(self, node: ast.Attribute) -> Any:
        if self._is_numpy(node.value):
            return self._name(ast.copy_location(ast.Name(node.attr), node))
        return super()._attribute(node)

    def _read(self, node: ast.Attribute, value: Any) -> Any:
        if isinstance(value, _ARRAYS) and node.attr in METHODS:
            self._fail(node, "expression-syntax", f".{node.attr} is a method: call it, .{node.attr}(…)")
        return super()._read(node, value)

    def _is_numpy(self, node: ast.expr) -> bool:
        name = node.id if isinstance(node, ast.Name) else ""
        return name in ("np", "numpy") and name not in self._locals and name not in self.names

    def _callee(self, node: ast.Call) -> Callable[..., Any]:
        name = node.func
        if isinstance(name, ast.Attribute) and not self._is_numpy(name.value):
            return self._method(name)
        if isinstance(name, ast.Name) and name.id in self.names and not isinstance(self.names[name.id], np.dtype):
            what = _describe(self.names[name.id])
            self._fail(node, "expression-failed", f"'{name.id}' is {what} here, no function")
        function = self._function(node, name.attr) if isinstance(name, ast.Attribute) else super()._callee(node)
        if isinstance(function, np.ufunc) and len(node.args) != function.nin:
            # One more would be the array that numpy writes to.
            wanted = f"{function.nin} argument{'s' if function.nin > 1 else ''}"
            self._fail(node, "expression-failed", f"{function.__name__} takes {wanted}, not {len(node.args)}")
        return function

    def _method(self, node: ast.Attribute) -> Callable[..., Any]:
        array = self._visit(node.value)
        known = METHODS if isinstance(array, _ARRAYS) else frozenset()
        if node.attr not in known:
            message = f"{self._source(node.value)} has no method .{node.attr} here"
            self._fail(node, "unknown-attribute", message, did_you_mean(node.attr, known))
        method: Callable[..., Any] = partial(astype, array) if node.attr == "astype" else getattr(array, node.attr)
        return method


def _shielded(value: Any) -> Any:
    """A view that cannot be written to: some of numpy's functions take the array to write as a late argument."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    return [_shielded(item) for item in value] if isinstance(value, tuple | list) else value


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return "an array" if value.ndim else "an array without dimensions"
    if isinstance(value, np.dtype):
        return f"the type {value.name}"
    words = {NoneType: "None", str: "a text", int: "a number", float: "a number", tuple: "a tuple", list: "a list"}
    return words.get(type(value), f"a {type(value).__name__}")
