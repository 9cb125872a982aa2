"""The language of expressions: Python's syntax, an explicit list of what may stand in it, work that is bounded.

A walk over ``ast``, not simpleeval: what that library saves are a dozen one-line visitors, while every other part
(attributes by type, keyword arguments, exact division, one budget of steps over nested loops, so that no text can
hang, our errors) would have to be put in its place. The manifest's integers are a :class:`Language`; expressions over
arrays override what arrays change.

May import ``errors`` only.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

import msgspec

from teenycli.errors import TeenyError, did_you_mean

#: Longest text of an expression, in characters, and deepest nesting: that of a sum of some 200 terms.
TEXT_LIMIT = 10_000
DEPTH_LIMIT = 220
#: Most bits of an integer: what is larger is larger than any double.
BIT_LIMIT = 1024
TOO_MANY_BITS = f"an integer of more than {BIT_LIMIT} bits"

#: Words that are values, and so no names.
CONSTANTS = frozenset({"True", "False", "None"})

_SHOWN = 120
_TOO_DEEP = "it is nested too deeply"


# --- text ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. ``names`` are the names it reads, functions that it calls not among them."""

    text: str
    tree: ast.expr = field(compare=False, repr=False)
    names: frozenset[str] = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=4096)
def parse(text: str) -> Expression:
    """The expression that ``text`` spells; it may run over several lines.

    Raises TeenyError ``expression-syntax``.
    """
    line = re.sub(r"\s*\n\s*", " ", text.strip())
    if not line:
        raise TeenyError("expression-syntax", "the expression is empty")
    if len(line) > TEXT_LIMIT:
        raise TeenyError("expression-syntax", f"the expression is longer than {TEXT_LIMIT:,} characters")
    if "#" in line:  # on one line, a comment would swallow what follows it
        raise _unreadable(line, "'#' cannot stand in it")
    if line.isidentifier() and line not in CONSTANTS:
        # So that a buffer may be called "in" or "lambda"; within a larger expression Python's words are Python's.
        return Expression(line, ast.Name(line, ast.Load()), frozenset({line}))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(line, mode="eval").body
    except SyntaxError as error:
        raise _unreadable(line, error.msg) from None
    except ValueError as error:
        raise _unreadable(line, str(error)) from None
    except (MemoryError, RecursionError):
        raise _unreadable(line, _TOO_DEEP) from None
    if _is_deep(tree):
        raise _unreadable(line, _TOO_DEEP)
    return Expression(line, tree, _names_read(tree))


def constant(value: float) -> Expression:
    """The expression that is just ``value``."""
    return Expression(str(value), ast.Constant(value), frozenset())


def shortened(text: str) -> str:
    """``text`` for a message, its end left out when it is long."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _unreadable(text: str, reason: str) -> TeenyError:
    return TeenyError("expression-syntax", f"cannot read the expression '{shortened(text)}': {reason}")


def _is_deep(tree: ast.expr) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(DEPTH_LIMIT):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


def _names_read(tree: ast.expr) -> frozenset[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return frozenset(node.id for node in names) - bound


# --- the language -------------------------------------------------------------------------------------------------

SEQUENCES = (tuple, list, range)


class Language(msgspec.Struct, frozen=True):
    """What an expression may do, beside the syntax that :class:`Evaluator` visits.

    ``functions`` by bare name, ``keywords`` of their arguments. ``operators`` by node type; one that is not there is
    refused. ``steps`` is the most that one evaluation may take, and ``items`` the most of one sequence.
    ``attributes`` that may be read, by the type of the value; a type that is not there has none. ``constants`` are
    the types that can be written, ``containers`` those that can be indexed and looped over.
    """

    functions: Mapping[str, Callable[..., Any]]
    operators: Mapping[type[ast.AST], Callable[..., Any]]
    steps: int
    items: int
    attributes: Mapping[type, frozenset[str]] = msgspec.field(default_factory=dict)
    keywords: frozenset[str] = frozenset()
    constants: tuple[type, ...] = (int, float)
    containers: tuple[type, ...] = SEQUENCES


COMPARISONS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def items_of(values: object) -> Sequence[Any]:
    """``values``, if it is a sequence; TypeError if not."""
    if not isinstance(values, SEQUENCES):
        raise TypeError("this takes a sequence")
    return values


def multiply(a: Any, b: Any) -> Any:
    """``a * b``, but a sequence is not repeated."""
    if isinstance(a, (*SEQUENCES, str)) or isinstance(b, (*SEQUENCES, str)):
        raise TypeError("a sequence cannot be multiplied")
    return a * b


def product(values: object) -> Any:
    """All of ``values`` multiplied. An integer on the way stays within bounds: thousands of factors take minutes."""
    total: Any = 1
    for value in items_of(values):
        total = multiply(total, value)
        if isinstance(total, int) and total.bit_length() > BIT_LIMIT:
            raise OverflowError(TOO_MANY_BITS)
    return total


def power(a: Any, b: Any) -> Any:
    """``a ** b``, refused before it is worked out when it has too many bits."""
    if isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and abs(a).bit_length() * b > 2 * BIT_LIMIT:
        raise OverflowError(TOO_MANY_BITS)
    return a**b


# --- evaluation ---------------------------------------------------------------------------------------------------

_REFUSALS = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


class Evaluator:
    """Evaluates expressions of a :class:`Language` over ``names``.

    ``names`` is only looked up with ``[]``, so it may compute a value when asked, with this evaluator too; what it
    raises other than KeyError passes through. ``explain`` makes the hint for a name that it lacks, from the name and
    from the usual hint.
    """

    def __init__(
        self,
        language: Language,
        names: Mapping[str, Any],
        explain: Callable[[str, str | None], str | None] = lambda _, near: near,
    ) -> None:
        self.language = language
        self.names = names
        self.explain = explain
        self._text = ""
        self._locals: dict[str, Any] = {}
        self._steps = 0

    def evaluate(self, expression: Expression) -> Any:
        """The value of ``expression``.

        Raises TeenyError ``unknown-name``, ``unknown-attribute``, ``expression-syntax`` (what the language lacks),
        ``expression-failed`` (a division by zero and the like, or too much work).
        """
        fresh = copy(self)
        fresh._text, fresh._locals = expression.text, {}
        try:
            return fresh._visit(expression.tree)
        except RecursionError:
            fresh._fail(expression.tree, "expression-syntax", _TOO_DEEP)

    def _fail(self, node: ast.expr, id: str, message: str, hint: str | None = None) -> NoReturn:
        """Stop, quoting the text, or of a long one the part that ``node`` stands for."""
        text = self._text if len(self._text) <= _SHOWN else self._source(node)
        raise TeenyError(id, f"{message}, in '{text}'", hint=hint) from None

    def _source(self, node: ast.expr) -> str:
        return shortened(ast.get_source_segment(self._text, node) or self._text)

    # --- work

    def _visit(self, node: ast.expr) -> Any:
        self._charge(node, 1)
        visitor = _VISITORS.get(type(node))
        if visitor is None:
            self._fail(node, "expression-syntax", f"{_describe(node)} cannot stand in an expression")
        return getattr(self, visitor)(node)

    def _charge(self, node: ast.expr, steps: int) -> None:
        self._steps += steps
        if self._steps > self.language.steps:
            self._fail(node, "expression-failed", f"it takes more than {self.language.steps:,} steps")

    def _charge_items(self, node: ast.expr, value: Any) -> None:
        """Charge for a walk over ``value`` and the sequences in it: sharing makes them small to hold, not to walk."""
        if isinstance(value, SEQUENCES):
            self._charge(node, len(value))
            for item in () if isinstance(value, range) else value:
                self._charge_items(node, item)

    def _apply(self, node: ast.expr, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """What ``function`` returns, if that is within bounds; what it raises is the failure of ``node``."""
        try:
            value = function(*args, **options)
        except RecursionError:
            raise
        except _REFUSALS as error:
            self._fail(node, "expression-failed", str(error) or type(error).__name__)
        return self._checked(node, value)

    def _checked(self, node: ast.expr, value: Any) -> Any:
        """``value``, if an integer is of few enough bits and a sequence of few enough items, each of them like that."""
        if isinstance(value, int) and value.bit_length() > BIT_LIMIT:
            self._fail(node, "expression-failed", TOO_MANY_BITS)
        if isinstance(value, complex):
            self._fail(node, "expression-failed", "no real number comes out")
        if isinstance(value, SEQUENCES) and len(value) > self.language.items:
            self._fail(node, "expression-failed", f"a sequence of more than {self.language.items:,} items")
        if isinstance(value, tuple | list):
            self._charge(node, len(value))
            for item in value:
                self._checked(node, item)
        return value

    # --- values

    def _constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, self.language.constants):
            what = repr(node.value) if len(repr(node.value)) <= _SHOWN else f"a {type(node.value).__name__}"
            self._fail(node, "expression-syntax", f"{what} cannot stand in an expression")
        return self._checked(node, node.value) if isinstance(node.value, int) else node.value

    def _name(self, node: ast.Name) -> Any:
        if node.id in self._locals:
            return self._locals[node.id]
        try:
            return self.names[node.id]
        except KeyError:
            pass
        functions = self.language.functions
        if node.id in functions:
            self._fail(node, "expression-syntax", f"{node.id} is a function: call it, {node.id}(…)")
        near = did_you_mean(node.id, [*self.names, *self._locals]) or did_you_mean(node.id, functions)
        return self._fail(node, "unknown-name", f"unknown name '{node.id}'", self.explain(node.id, near))

    def _sequence(self, node: ast.Tuple | ast.List) -> Any:
        return self._collect(node, map(self._visit, node.elts))

    def _collect(self, node: ast.expr, items: Iterable[Any]) -> Any:
        """The sequence that ``node`` writes: a tuple, whatever the brackets, and not of sequences.

        Those that are nested and share parts would take exponential time to compare.
        """
        values = tuple(items)
        if any(isinstance(value, SEQUENCES) for value in values):
            self._fail(node, "expression-failed", "a sequence cannot hold a sequence")
        return self._checked(node, values)

    def _attribute(self, node: ast.Attribute) -> Any:
        return self._read(node, self._visit(node.value))

    def _read(self, node: ast.Attribute, value: Any) -> Any:
        known = {name for kind, names in self.language.attributes.items() if isinstance(value, kind) for name in names}
        if node.attr not in known:
            what = self._source(node.value)
            self._fail(node, "unknown-attribute", f"{what} has no .{node.attr}", did_you_mean(node.attr, known))
        return self._apply(node, getattr, value, node.attr)

    def _container(self, node: ast.expr, use: str) -> Any:
        value = self._visit(node)
        if not isinstance(value, self.language.containers):
            self._fail(node, "expression-failed", f"{self._source(node)} cannot be {use}")
        return value

    def _subscript(self, node: ast.Subscript) -> Any:
        value, index = self._container(node.value, "indexed"), self._visit(node.slice)
        self._charge_items(node, index)
        return self._apply(node, _item, value, index)

    def _slice(self, node: ast.Slice) -> slice:
        lower, upper, step = (part and self._visit(part) for part in (node.lower, node.upper, node.step))
        return slice(lower, upper, step)

    # --- operators and choices

    def _operator(self, node: ast.expr, kind: ast.AST) -> Callable[..., Any]:
        function = self.language.operators.get(type(kind))
        if function is None:
            self._fail(node, "expression-syntax", f"the operator {_describe(kind)} cannot stand in an expression")
        return function

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self._visit(node.operand)
        if isinstance(node.op, ast.Not):
            return not self._truth(node.operand, value)
        return self._apply(node, self._operator(node, node.op), value)

    def _binary(self, node: ast.BinOp) -> Any:
        function = self._operator(node, node.op)
        return self._apply(node, function, self._visit(node.left), self._visit(node.right))

    def _compare(self, node: ast.Compare) -> Any:
        left = self._visit(node.left)
        for kind, item in zip(node.ops, node.comparators, strict=True):
            right = self._visit(item)
            if not self._apply(node, self._operator(node, kind), left, right):
                return False
            left = right
        return True

    def _truth(self, node: ast.expr, value: Any) -> bool:
        """Whether ``value``, which ``node`` came to, counts as true."""
        return bool(self._apply(node, bool, value))

    def _boolean(self, node: ast.BoolOp) -> Any:
        value: Any = None
        for item in node.values:
            value = self._visit(item)
            if self._truth(item, value) is isinstance(node.op, ast.Or):
                break
        return value

    def _conditional(self, node: ast.IfExp) -> Any:
        return self._visit(node.body if self._truth(node.test, self._visit(node.test)) else node.orelse)

    # --- loops

    def _comprehension(self, node: ast.GeneratorExp | ast.ListComp) -> Any:
        outer = dict(self._locals)
        values = self._collect(node, self._loop(node.generators, node.elt))
        self._locals = outer
        return values

    def _loop(self, generators: list[ast.comprehension], element: ast.expr) -> Iterator[Any]:
        if not generators:
            yield self._visit(element)
            return
        first, *rest = generators
        if not isinstance(first.target, ast.Name) or first.is_async:
            self._fail(first.target, "expression-syntax", "a loop takes one name")
        values = self._container(first.iter, "looped over")
        self._apply(first.iter, len, values)  # an array without dimensions has none
        for item in values:
            self._locals[first.target.id] = item
            if all(self._truth(test, self._visit(test)) for test in first.ifs):
                yield from self._loop(rest, element)

    # --- calls

    def _call(self, node: ast.Call) -> Any:
        function = self._callee(node)
        args = [self._visit(arg) for arg in node.args]
        options = self._options(node)
        for value in (*args, *options.values()):
            self._charge_items(node, value)
        return self._apply(node, function, *args, **options)

    def _callee(self, node: ast.Call) -> Callable[..., Any]:
        if not isinstance(node.func, ast.Name):
            self._fail(node, "expression-syntax", "only functions by name can be called")
        return self._function(node, node.func.id)

    def _function(self, node: ast.expr, name: str) -> Callable[..., Any]:
        functions = self.language.functions
        if name in functions:
            return functions[name]
        hint = did_you_mean(name, functions)
        if hint is None and len(functions) <= 12:
            hint = f"there are {', '.join(functions)}"
        return self._fail(node, "unknown-name", f"unknown function '{name}'", hint)

    def _options(self, node: ast.Call) -> dict[str, Any]:
        known = self.language.keywords
        for keyword in node.keywords:
            if not known:
                self._fail(keyword.value, "expression-syntax", "functions take plain arguments, none by keyword")
            if keyword.arg not in known:
                shown = "**" if keyword.arg is None else f"{keyword.arg}="
                near = did_you_mean(keyword.arg or "", known)
                self._fail(keyword.value, "unknown-name", f"{shown} is no argument that may be given here", near)
        return {str(keyword.arg): self._visit(keyword.value) for keyword in node.keywords}


def _item(values: Any, index: Any) -> Any:
    """``values[index]``; where a sequence has none, the error says how many it has."""
    try:
        return values[index]
    except (IndexError, TypeError):
        if not isinstance(values, SEQUENCES):
            raise
        count = f"{len(values)} item{'' if len(values) == 1 else 's'}"
        raise IndexError(f"it has {count}, and no [{shortened(str(index))}]") from None


#: The visitor's name, so that a subclass may override it.
_VISITORS: Mapping[type[ast.AST], str] = {
    ast.Constant: "_constant", ast.Name: "_name", ast.UnaryOp: "_unary", ast.BinOp: "_binary", ast.BoolOp: "_boolean",
    ast.Compare: "_compare", ast.IfExp: "_conditional", ast.Tuple: "_sequence", ast.List: "_sequence",
    ast.Subscript: "_subscript", ast.Slice: "_slice", ast.GeneratorExp: "_comprehension",
    ast.ListComp: "_comprehension", ast.Attribute: "_attribute", ast.Call: "_call",
}  # fmt: skip

_WORDS: Mapping[type[ast.AST], str] = {
    ast.Lambda: "a lambda", ast.NamedExpr: "an assignment", ast.JoinedStr: "an f-string", ast.Dict: "a dict",
    ast.Set: "a set", ast.Starred: "a starred argument", ast.Await: "await", ast.MatMult: "@", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Invert: "~", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip


def _describe(node: ast.AST) -> str:
    return _WORDS.get(type(node), type(node).__name__)
