"""Expressions of the manifest: Python's syntax, an explicit list of what may stand in it, exact integers underneath.

A walk over ``ast``, not simpleeval: what that library saves are a dozen one-line visitors, while every other part
(attributes by type, no keyword arguments, exact division, one budget of steps over nested loops, so that no text can
hang, our errors) would have to be put in its place. Everything is bounded: length of the text, depth, steps, bits of
an integer, items of a sequence.

May import ``errors``.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from teenycli.errors import TeenyError, did_you_mean

#: Longest text of an expression, in characters.
TEXT_LIMIT = 4_000
#: Deepest nesting, most nodes visited by one evaluation, most bits of an integer, most items of a sequence.
DEPTH_LIMIT = 100
STEP_LIMIT = 200_000
BIT_LIMIT = 1024
ITEM_LIMIT = 10_000

#: Words that are values, and so no names.
CONSTANTS = frozenset({"True", "False", "None"})


# --- text ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. ``names`` are the names it reads, functions that it calls not among them."""

    text: str
    tree: ast.expr = field(compare=False, repr=False)
    names: frozenset[str] = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Expression:
    """The expression that ``text`` spells; it may run over several lines.

    Raises TeenyError ``expression-syntax``.
    """
    line = re.sub(r"\s*\n\s*", " ", text.strip())
    if not line:
        raise TeenyError("expression-syntax", "the expression is empty")
    if len(line) > TEXT_LIMIT:
        raise TeenyError("expression-syntax", f"the expression is longer than {TEXT_LIMIT:,} characters")
    if "#" in line:
        raise _syntax(line, "'#' cannot stand in it")
    if line.isidentifier() and line not in CONSTANTS:
        # So that a buffer may be called "in" or "lambda"; within a larger expression Python's words are Python's.
        return Expression(line, ast.Name(line, ast.Load()), frozenset({line}))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(line, mode="eval").body
    except SyntaxError as error:
        raise _syntax(line, error.msg) from None
    except (ValueError, MemoryError, RecursionError):
        raise _syntax(line, "it is nested too deeply") from None
    return Expression(line, tree, _names_read(tree))


def constant(value: float) -> Expression:
    """The expression that is just ``value``."""
    return Expression(str(value), ast.Constant(value), frozenset())


def _syntax(text: str, reason: str) -> TeenyError:
    return TeenyError("expression-syntax", f"cannot read the expression '{_shown(text)}': {reason}")


def _shown(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:117]}..."


def _names_read(tree: ast.expr) -> frozenset[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return frozenset(node.id for node in names) - bound


# --- the language -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Language:
    """What an expression may do, beside the syntax that :class:`Evaluator` visits.

    ``functions`` by bare name, called with positional arguments. ``attributes`` that may be read, by the exact type
    of the value; a type that is not there has none. ``operators`` by node type; one that is not there is refused.
    Sequences are tuples, lists and ranges.
    """

    functions: Mapping[str, Callable[..., Any]]
    operators: Mapping[type[ast.AST], Callable[..., Any]]
    attributes: Mapping[type, frozenset[str]] = field(default_factory=dict)


def _too_big() -> NoReturn:
    raise OverflowError(f"an integer of more than {BIT_LIMIT} bits")


def _is_int(value: object) -> bool:
    return isinstance(value, int)


def _is_sequence(value: object) -> bool:
    return isinstance(value, tuple | list | range)


def _bounded(value: Any) -> Any:
    """``value``, if an integer is of few enough bits and a sequence of few enough items."""
    if isinstance(value, int) and value.bit_length() > BIT_LIMIT:
        _too_big()
    if isinstance(value, complex):
        raise ValueError("no real number comes out")
    if _is_sequence(value) and len(value) > ITEM_LIMIT:
        raise OverflowError(f"a sequence of more than {ITEM_LIMIT:,} items")
    return value


def _multiply(a: Any, b: Any) -> Any:
    if _is_sequence(a) or _is_sequence(b):
        raise TypeError("a sequence cannot be multiplied")
    return a * b


def _divide(a: Any, b: Any) -> Any:
    """Exact division; ordinary division when an operand is a float."""
    if not (_is_int(a) and _is_int(b)):
        return a / b
    quotient, rest = divmod(a, b)
    if rest:
        raise ValueError(f"{a} / {b} is not exact: write // to round down, cdiv(a, b) to round up")
    return quotient


def _power(a: Any, b: Any) -> Any:
    if _is_int(a) and _is_int(b):
        if b < 0:
            raise ValueError(f"{a} ** {b} is no integer")
        if abs(a) > 1 and abs(a).bit_length() * b > 2 * BIT_LIMIT:
            _too_big()
    return a**b


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
    total: Any = 1
    for value in _items(values):
        total = _bounded(_multiply(total, value))
    return total


@_function
def _sum(values: object, /) -> Any:
    total: Any = 0
    for value in _items(values):
        total = _bounded(total + value)
    return total


@_function
def _min(first: Any, /, *rest: Any) -> Any:
    return min((first, *rest) if rest else _items(first))


@_function
def _max(first: Any, /, *rest: Any) -> Any:
    return max((first, *rest) if rest else _items(first))


@_function
def _len(values: object, /) -> int:
    return len(_items(values))


@_function
def _range(*bounds: int) -> range:
    out = range(*bounds)
    if out[ITEM_LIMIT : ITEM_LIMIT + 1]:  # the length of a long one may be more than len() can say
        raise OverflowError(f"a range of more than {ITEM_LIMIT:,} items")
    return out


def _items(values: object) -> Sequence[Any]:
    if not isinstance(values, tuple | list | range):
        raise TypeError("this takes a sequence")
    return values


#: Shapes, grids, counts and arguments. Integers stay exact.
INTEGERS = Language(
    functions=_FUNCTIONS,
    operators={
        ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: _multiply, ast.Div: _divide,
        ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power,
        ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_,
        ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
        ast.Gt: operator.gt, ast.GtE: operator.ge,
    },
)  # fmt: skip


# --- evaluation ---------------------------------------------------------------------------------------------------

_REFUSED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class Evaluator:
    """Evaluates expressions of a :class:`Language` over ``names``.

    ``names`` is only looked up with ``[]``, so it may compute a value when asked; what it raises other than KeyError
    passes through. ``explain`` makes the hint for a name that it lacks, from the name and from the usual hint.
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
        self._depth = 0

    def evaluate(self, expression: Expression) -> Any:
        """The value of ``expression``.

        Raises TeenyError ``unknown-name``, ``unknown-attribute``, ``expression-syntax`` (what the language lacks),
        ``expression-failed`` (a division by zero and the like, or too much work).
        """
        fresh = Evaluator(self.language, self.names, self.explain)
        fresh._text = expression.text
        try:
            return fresh._visit(expression.tree)
        except _REFUSED as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            fresh._fail("expression-failed", reason or type(error).__name__)

    def _fail(self, id: str, message: str, hint: str | None = None) -> NoReturn:
        raise TeenyError(id, f"{message}, in '{_shown(self._text)}'", hint=hint) from None

    def _charge(self, steps: int) -> None:
        self._steps += steps
        if self._steps > STEP_LIMIT:
            raise OverflowError(f"it takes more than {STEP_LIMIT:,} steps")

    def _visit(self, node: ast.expr) -> Any:
        self._charge(1)
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise RecursionError
        visitor = _VISITORS.get(type(node))
        if visitor is None:
            self._fail("expression-syntax", f"{_describe(node)} cannot stand in an expression")
        value = visitor(self, node)
        self._depth -= 1
        return value

    def _operator(self, node: ast.AST) -> Callable[..., Any]:
        function = self.language.operators.get(type(node))
        if function is None:
            self._fail("expression-syntax", f"the operator {_describe(node)} cannot stand in an expression")
        return function

    def _constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, int | float):
            self._fail("expression-syntax", f"{node.value!r} cannot stand in an expression")
        return _bounded(node.value)

    def _name(self, node: ast.Name) -> Any:
        if node.id in self._locals:
            return self._locals[node.id]
        try:
            return self.names[node.id]
        except KeyError:
            pass
        if node.id in self.language.functions:
            self._fail("expression-syntax", f"{node.id} is a function: call it, {node.id}(…)")
        hint = self.explain(node.id, did_you_mean(node.id, [*self.names, *self._locals]))
        return self._fail("unknown-name", f"unknown name '{node.id}'", hint)

    def _unary(self, node: ast.UnaryOp) -> Any:
        return _bounded(self._operator(node.op)(self._visit(node.operand)))

    def _binary(self, node: ast.BinOp) -> Any:
        return _bounded(self._operator(node.op)(self._visit(node.left), self._visit(node.right)))

    def _boolean(self, node: ast.BoolOp) -> Any:
        value: Any = None
        for item in node.values:
            value = self._visit(item)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _compare(self, node: ast.Compare) -> bool:
        left = self._visit(node.left)
        for kind, item in zip(node.ops, node.comparators, strict=True):
            right = self._visit(item)
            if not self._operator(kind)(left, right):
                return False
            left = right
        return True

    def _conditional(self, node: ast.IfExp) -> Any:
        return self._visit(node.body if self._visit(node.test) else node.orelse)

    def _sequence(self, node: ast.Tuple | ast.List) -> tuple[Any, ...]:
        return tuple(self._item(item) for item in node.elts)

    def _item(self, node: ast.expr) -> Any:
        """An item of a sequence: no sequence itself, since nested ones that share parts compare in exponential time."""
        value = self._visit(node)
        if _is_sequence(value):
            raise TypeError("a sequence cannot hold a sequence")
        return value

    def _subscript(self, node: ast.Subscript) -> Any:
        value, index = self._visit(node.value), self._visit(node.slice)
        if not _is_sequence(value):
            self._fail("expression-failed", f"{ast.unparse(node.value)} cannot be indexed")
        if not isinstance(index, slice) and (not _is_int(index) or not -len(value) <= index < len(value)):
            count = f"{len(value)} item{'' if len(value) == 1 else 's'}"
            self._fail("expression-failed", f"{ast.unparse(node.value)} has {count}, and no [{_shown(str(index))}]")
        return value[index]

    def _slice(self, node: ast.Slice) -> slice:
        lower, upper, step = (part and self._visit(part) for part in (node.lower, node.upper, node.step))
        return slice(lower, upper, step)

    def _comprehension(self, node: ast.GeneratorExp | ast.ListComp) -> tuple[Any, ...]:
        outer = dict(self._locals)
        values = tuple(self._loop(node.generators, node.elt))
        self._locals = outer
        return _bounded(values)  # type: ignore[no-any-return]

    def _loop(self, generators: list[ast.comprehension], element: ast.expr) -> Iterator[Any]:
        if not generators:
            yield self._item(element)
            return
        first, *rest = generators
        if not isinstance(first.target, ast.Name) or first.is_async:
            self._fail("expression-syntax", "a loop takes one name")
        for item in _items(self._visit(first.iter)):
            self._locals[first.target.id] = item
            if all(self._visit(test) for test in first.ifs):
                yield from self._loop(rest, element)

    def _attribute(self, node: ast.Attribute) -> Any:
        value = self._visit(node.value)
        known = self.language.attributes.get(type(value), frozenset())
        if node.attr not in known:
            what = ast.unparse(node.value)
            self._fail("unknown-attribute", f"{what} has no .{node.attr}", did_you_mean(node.attr, known))
        return getattr(value, node.attr)

    def _call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name is None or node.keywords:
            self._fail("expression-syntax", "only functions by name, with plain arguments, can be called")
        function = self.language.functions.get(name)
        if function is None:
            hint = did_you_mean(name, self.language.functions) or f"there are {', '.join(self.language.functions)}"
            self._fail("unknown-name", f"unknown function '{name}'", hint)
        args = [self._visit(arg) for arg in node.args]
        self._charge(sum(len(arg) for arg in args if _is_sequence(arg)))
        return _bounded(function(*args))


_VISITORS: Mapping[type[ast.expr], Callable[[Evaluator, Any], Any]] = {
    ast.Constant: Evaluator._constant, ast.Name: Evaluator._name, ast.UnaryOp: Evaluator._unary,
    ast.BinOp: Evaluator._binary, ast.BoolOp: Evaluator._boolean, ast.Compare: Evaluator._compare,
    ast.IfExp: Evaluator._conditional, ast.Tuple: Evaluator._sequence, ast.List: Evaluator._sequence,
    ast.Subscript: Evaluator._subscript, ast.Slice: Evaluator._slice, ast.GeneratorExp: Evaluator._comprehension,
    ast.ListComp: Evaluator._comprehension, ast.Attribute: Evaluator._attribute, ast.Call: Evaluator._call,
}  # fmt: skip

_WORDS: Mapping[type[ast.AST], str] = {
    ast.Lambda: "a lambda", ast.NamedExpr: "an assignment", ast.JoinedStr: "an f-string", ast.Dict: "a dict",
    ast.Set: "a set", ast.Starred: "a starred argument", ast.Await: "await", ast.MatMult: "@", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Invert: "~", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip


def _describe(node: ast.AST) -> str:
    return _WORDS.get(type(node), type(node).__name__)


def exact_integer(value: object, text: str) -> int:
    """``value`` if it is an integer and no bool; ``text`` is the expression it came from.

    Raises TeenyError ``not-an-integer``.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    hint = "write // or cdiv in place of a division by a float" if isinstance(value, float) else None
    raise TeenyError("not-an-integer", f"'{_shown(text)}' gives {_described(value)}, not an integer", hint=hint)


def _described(value: object) -> str:
    if isinstance(value, bool | float):
        return str(value)
    return "several values" if _is_sequence(value) else f"a {type(value).__name__}"
