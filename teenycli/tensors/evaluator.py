"""Expressions over arrays: Python's syntax, an explicit list of what may stand in it, numpy underneath.

A tree walk over the listed node types; the names, attributes, methods and keyword arguments are those of
``functions``. Work is bounded in steps, integers in bits and arrays in bytes.

May import ``errors`` and, in this room, ``convert`` and ``functions``.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.tensors.convert import Array, check_size, teeny_dtype
from teenycli.tensors.functions import (
    ATTRIBUTES,
    CASTS,
    CONSTANTS,
    FUNCTIONS,
    KEYWORDS,
    METHODS,
    STEPS,
    Cast,
    Items,
    astype,
)

#: What an op puts into the namespace: buffers, dims, consts and scalars, and groups of them (``inputs``).
Value = Array | int | float | Sequence["Value"]

#: What an expression may come to.
Result = Array | int | float | tuple[Array | int | float, ...]

_TEXT_LIMIT = 10_000
#: Characters of the text that a message quotes.
_SHOWN = 120
_BITS_LIMIT = 4096
_MATHS_ERRORS = (ArithmeticError, AttributeError, IndexError, MemoryError, RuntimeError, TypeError, ValueError)


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() * max(b, 0) > _BITS_LIMIT:
        raise OverflowError(f"an integer of more than {_BITS_LIMIT} bits")
    return a**b


def _shift_left(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > _BITS_LIMIT:
        raise OverflowError(f"an integer of more than {_BITS_LIMIT} bits")
    return a << b


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power, ast.MatMult: operator.matmul,
    ast.LShift: _shift_left, ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}  # fmt: skip
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert, ast.Not: operator.not_,
}  # fmt: skip
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def evaluate(text: str, names: Mapping[str, Value], where: Place | None = None) -> Result:
    """The value of the expression ``text``: an array, a number, or a tuple of them.

    A name of ``names`` goes before numpy's of the same spelling. Arrays are handed to the expression as they are,
    and never written to. Raises TeenyError: ``expression-syntax``, ``unknown-name``, ``unknown-attribute``,
    ``expression-failed`` when numpy or arithmetic refuses, ``array-too-large``; their place is ``where``.
    """
    return _Evaluator(text, names, where).run()


class _Evaluator:
    """One evaluation of one text."""

    def __init__(self, text: str, names: Mapping[str, Value], where: Place | None) -> None:
        self.text = " ".join(text.split("\n")).strip()
        self.names = names
        self.where = where
        self.locals: list[dict[str, Any]] = []
        self.steps = 0

    def run(self) -> Result:
        tree = self.parse()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                value = self.visit(tree)
        except RecursionError:
            self.fail(None, "expression-syntax", "it is nested too deeply")
        if isinstance(value, tuple | list):
            return tuple(self.outcome(tree, item) for item in value)
        return self.outcome(tree, value)

    def outcome(self, tree: ast.expr, value: Any) -> Array | int | float:
        if not isinstance(value, np.ndarray | np.generic | int | float):
            self.fail(tree, "expression-failed", f"it gives {_describe(value)}, not an array or a number")
        return np.asarray(value) if isinstance(value, np.generic) else value

    def parse(self) -> ast.expr:
        if not self.text or len(self.text) > _TEXT_LIMIT:
            reason = f"it is longer than {_TEXT_LIMIT:,} characters" if self.text else "it is empty"
            self.fail(None, "expression-syntax", f"cannot read the expression: {reason}")
        if "#" in self.text:
            # On one line, a comment would swallow what follows it.
            self.fail(None, "expression-syntax", "'#' cannot stand in an expression")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            self.fail(None, "expression-syntax", f"cannot read the expression: {error.msg}")
        except (ValueError, MemoryError, RecursionError) as error:
            self.fail(None, "expression-syntax", f"cannot read the expression: {error}")

    def fail(self, node: ast.expr | None, id: str, message: str, hint: str | None = None) -> NoReturn:
        """Stop, quoting the text, or of a long one the part that ``node`` stands for."""
        text = self.text
        if node is not None and len(text) > _SHOWN:
            text = ast.get_source_segment(text, node) or text
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        message = f"{message}, in '{shown}'" if shown else message
        raise TeenyError(id, message, where=self.where, hint=hint) from None

    # --- nodes

    def visit(self, node: ast.expr) -> Any:
        self.steps += 1
        if self.steps > STEPS:
            self.fail(node, "expression-failed", f"it takes more than {STEPS:,} steps")
        visitor = _VISITORS.get(type(node))
        if visitor is None:
            self.fail(node, "expression-syntax", f"{_node_name(node)} cannot stand in an expression")
        return visitor(self, node)

    def apply(self, node: ast.expr, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call ``function``, and see that numbers come back, of a size that can be held."""
        try:
            return self.checked(node, function(*args, **options))
        except _MATHS_ERRORS as error:
            self.fail(node, "expression-failed", str(error) or type(error).__name__, _hint_for(error))

    def checked(self, node: ast.expr, value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            if teeny_dtype(value.dtype) is None:
                self.fail(node, "expression-failed", f"this gives elements of numpy type '{value.dtype}'")
            # A broadcast view or untouched zeros cost nothing until something walks over them.
            try:
                check_size(value.nbytes, "an array within the expression")
            except TeenyError as error:
                self.fail(node, error.finding.id, error.finding.message)
        elif isinstance(value, tuple | list):
            for item in value:
                self.checked(node, item)
        elif isinstance(value, int):
            if value.bit_length() > _BITS_LIMIT:
                raise OverflowError(f"an integer of more than {_BITS_LIMIT} bits")
        elif not isinstance(value, float | range | type(None)):
            self.fail(node, "expression-failed", f"this gives {_describe(value)}")
        return value

    def constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, int | float | str | type(None) | type(...)):
            self.fail(node, "expression-syntax", f"a {type(node.value).__name__} cannot stand in an expression")
        if isinstance(node.value, int) and node.value.bit_length() > _BITS_LIMIT:
            self.fail(node, "expression-failed", f"an integer of more than {_BITS_LIMIT} bits")
        return node.value

    def name(self, node: ast.Name) -> Any:
        for scope in reversed(self.locals):
            if node.id in scope:
                return scope[node.id]
        if node.id in self.names:
            return _shielded(self.names[node.id])
        for table in (CONSTANTS, CASTS):
            if node.id in table:
                return table[node.id]
        if node.id in FUNCTIONS:
            return self.fail(node, "expression-syntax", f"{node.id} is a function: call it, {node.id}(…)")
        return self.fail(node, "unknown-name", f"unknown name '{node.id}'", self.suggest(node.id))

    def suggest(self, word: str) -> str | None:
        return did_you_mean(word, self.names) or did_you_mean(word, [*FUNCTIONS, *CONSTANTS, *CASTS])

    def unary(self, node: ast.UnaryOp) -> Any:
        return self.apply(node, _UNARY[type(node.op)], self.number(node.operand))

    def binary(self, node: ast.BinOp) -> Any:
        left, right = self.visit(node.left), self.visit(node.right)
        if not (isinstance(node.op, ast.Add) and type(left) is type(right) and isinstance(left, tuple | list)):
            for side, value in ((node.left, left), (node.right, right)):
                self.require_number(side, value)
        return self.apply(node, _BINARY[type(node.op)], left, right)

    def number(self, node: ast.expr) -> Any:
        return self.require_number(node, self.visit(node))

    def require_number(self, node: ast.expr, value: Any) -> Any:
        if not isinstance(value, np.ndarray | np.generic | int | float):
            self.fail(node, "expression-failed", f"this is {_describe(value)}, not an array or a number")
        return value

    def compare(self, node: ast.Compare) -> Any:
        left, result = self.number(node.left), None
        for kind, right_node in zip(node.ops, node.comparators, strict=True):
            if type(kind) not in _COMPARE:
                self.fail(node, "expression-syntax", "only == != < <= > >= compare here")
            right = self.number(right_node)
            outcome = self.apply(node, _COMPARE[type(kind)], left, right)
            result = outcome if result is None else self.apply(node, operator.and_, result, outcome)
            left = right
        return result

    def boolean(self, node: ast.BoolOp) -> Any:
        value: Any = None
        for item in node.values:
            value = self.number(item)
            if self.apply(item, bool, value) is isinstance(node.op, ast.Or):
                break
        return value

    def conditional(self, node: ast.IfExp) -> Any:
        chosen = node.body if self.apply(node.test, bool, self.number(node.test)) else node.orelse
        return self.visit(chosen)

    def sequence(self, node: ast.Tuple | ast.List) -> Any:
        items = [self.visit(item) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)

    def subscript(self, node: ast.Subscript) -> Any:
        value, index = self.visit(node.value), self.visit(node.slice)
        if not isinstance(value, np.ndarray | np.generic | tuple | list | range):
            self.fail(node.value, "expression-failed", f"this is {_describe(value)}, which cannot be indexed")
        return self.apply(node, operator.getitem, value, index)

    def slice(self, node: ast.Slice) -> slice:
        lower, upper, step = (part and self.visit(part) for part in (node.lower, node.upper, node.step))
        return slice(lower, upper, step)

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Any:
        return (Items if isinstance(node, ast.GeneratorExp) else list)(self.walk(node.generators, node.elt))

    def walk(self, generators: list[ast.comprehension], element: ast.expr) -> Iterator[Any]:
        if not generators:
            yield self.visit(element)
            return
        first, *rest = generators
        if not isinstance(first.target, ast.Name):
            self.fail(first.target, "expression-syntax", "a loop takes one name")
        for item in self.iterated(first.iter):
            self.locals.append({first.target.id: item})
            try:
                if all(self.apply(test, bool, self.number(test)) for test in first.ifs):
                    yield from self.walk(rest, element)
            finally:
                self.locals.pop()

    def iterated(self, node: ast.expr) -> list[Any]:
        values = self.visit(node)
        if not isinstance(values, np.ndarray | tuple | list | range):
            self.fail(node, "expression-failed", f"this is {_describe(values)}, which cannot be looped over")
        items: list[Any] = self.apply(node, list, values)
        return items

    # --- attributes and calls

    def attribute(self, node: ast.Attribute) -> Any:
        if self.is_numpy(node.value):
            return self.name(ast.copy_location(ast.Name(node.attr), node))
        value = self.array_of(node)
        if node.attr in METHODS:
            self.fail(node, "expression-syntax", f".{node.attr} is a method: call it, .{node.attr}(…)")
        if node.attr not in ATTRIBUTES:
            self.unknown_attribute(node)
        return self.apply(node, getattr, value, node.attr)

    def array_of(self, node: ast.Attribute) -> Any:
        value = self.visit(node.value)
        if not isinstance(value, np.ndarray | np.generic):
            self.fail(node, "unknown-attribute", f"{_describe(value)} has no .{node.attr}")
        return value

    def unknown_attribute(self, node: ast.Attribute) -> NoReturn:
        near = did_you_mean(node.attr, [*ATTRIBUTES, *METHODS])
        self.fail(node, "unknown-attribute", f"an array has no .{node.attr} here", near)

    def is_numpy(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in ("np", "numpy") and node.id not in self.names

    def call(self, node: ast.Call) -> Any:
        function = self.callee(node.func)
        args = [_unwrapped(self.visit(arg)) for arg in node.args]
        options: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg not in KEYWORDS:
                shown = "**" if keyword.arg is None else f"{keyword.arg}="
                near = did_you_mean(keyword.arg or "", KEYWORDS)
                self.fail(keyword.value, "unknown-name", f"{shown} is no argument that may be given here", near)
            options[keyword.arg] = _unwrapped(self.visit(keyword.value))
        if isinstance(function, np.ufunc) and len(args) != function.nin:
            # One more would be the array that numpy writes to.
            wanted = f"{function.nin} argument{'s' if function.nin > 1 else ''}"
            self.fail(node, "expression-failed", f"{function.__name__} takes {wanted}, not {len(args)}")
        return self.apply(node, function, *args, **options)

    def callee(self, node: ast.expr) -> Callable[..., Any]:
        if isinstance(node, ast.Attribute) and not self.is_numpy(node.value):
            array = self.array_of(node)
            if node.attr not in METHODS:
                self.unknown_attribute(node)
            if node.attr == "astype":
                return partial(astype, array)
            method: Callable[..., Any] = getattr(array, node.attr)
            return method
        word = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
        if word is None:
            self.fail(node, "expression-syntax", "only functions by name and methods of arrays can be called")
        if isinstance(node, ast.Name) and word in self.names:
            self.fail(node, "expression-failed", f"'{word}' is {_describe(self.names[word])} of the op, no function")
        function = FUNCTIONS.get(word) or CASTS.get(word)
        if function is None:
            self.fail(node, "unknown-name", f"unknown function '{word}'", self.suggest(word))
        return function


_VISITORS: Mapping[type[ast.expr], Callable[[_Evaluator, Any], Any]] = {
    ast.Constant: _Evaluator.constant, ast.Name: _Evaluator.name, ast.UnaryOp: _Evaluator.unary,
    ast.BinOp: _Evaluator.binary, ast.Compare: _Evaluator.compare, ast.BoolOp: _Evaluator.boolean,
    ast.IfExp: _Evaluator.conditional, ast.Tuple: _Evaluator.sequence, ast.List: _Evaluator.sequence,
    ast.Subscript: _Evaluator.subscript, ast.Slice: _Evaluator.slice, ast.ListComp: _Evaluator.comprehension,
    ast.GeneratorExp: _Evaluator.comprehension, ast.Attribute: _Evaluator.attribute, ast.Call: _Evaluator.call,
}  # fmt: skip


def _shielded(value: Any) -> Any:
    """A view that cannot be written to: some of numpy's functions take the array to write as a late argument."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    return [_shielded(item) for item in value] if isinstance(value, tuple | list) else value


def _unwrapped(value: Any) -> Any:
    return value.dtype if isinstance(value, Cast) else value


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return "an array"
    if isinstance(value, Cast):
        return f"the type {value.name}"
    words = {type(None): "None", str: "a text", int: "a number", float: "a number", tuple: "a tuple", list: "a list"}
    return words.get(type(value), f"a {type(value).__name__}")


def _node_name(node: ast.expr) -> str:
    words = {ast.Lambda: "a lambda", ast.NamedExpr: "an assignment", ast.JoinedStr: "an f-string", ast.Dict: "a dict",
             ast.Set: "a set", ast.Starred: "a starred argument", ast.Await: "await"}  # fmt: skip
    return words.get(type(node), f"this ({type(node).__name__})")


def _hint_for(error: Exception) -> str | None:
    if "truth value of an array" in str(error):
        return "for arrays write & | ~ in place of and, or, not, and where(condition, a, b) in place of if"
    return None
