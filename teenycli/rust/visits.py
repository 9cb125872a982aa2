"""What a method hands its visitor: from the syntax tree of its body to steps.

Calls into methods of the same impl and functions of the same file are followed, closures too. What is not understood
becomes :class:`~teenycli.rust.model.Unknown`, never a guess.

May import ``dtypes`` and, in this room, ``model`` and ``tree``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from teenycli.dtypes import DTYPES
from teenycli.rust.model import Call, Choice, End, Never, Repeat, Spot, Step, Steps, Unknown, Visit
from teenycli.rust.tree import Text, field_of, named

if TYPE_CHECKING:
    from tree_sitter import Node

#: Nesting of syntax that is followed, calls included, and nodes that are looked at in one method: ten times what the
#: longest needs.
_DEPTH, _NODES = 120, 5_000
#: What a call counts for in depth: six in each other are followed.
_CALL = 20
#: Visits of a loop over literal bounds that are written out.
_TURNS = 64
_KINDS = {name for name in DTYPES if name not in ("e4m3", "e5m2")}
_PANICS = {"panic", "todo", "unimplemented", "unreachable"}
#: What the trait's own methods do when an impl says nothing.
_DEFAULTS = {
    "pack_args_for_launch": "pack_args",
    "pack_backward_args_for_launch": "pack_backward_args",
}
_JUMPS = re.compile(rb"\b(?:return|break|continue|panic|todo|unimplemented|unreachable)\b|\?")


class Names(Struct, frozen=True):
    """Functions that a body may call by name: the ``methods`` of its impl, and the file's free ``functions``."""

    methods: Mapping[str, Node]
    functions: Mapping[str, Node]


class Scope(Struct, frozen=True):
    """Within a function: what it calls the visitor, and the closures and functions that it has bound by name."""

    visitors: frozenset[str] = frozenset()
    local: Mapping[str, Node] = field(default_factory=dict)
    depth: int = 0

    def deeper(self) -> Scope:
        return replace(self, depth=self.depth + 1)


class _GivenUpError(Exception):
    """The method has what is not followed: the argument says what."""


class Walk(Struct):
    """One method's body, followed."""

    text: Text
    names: Names
    nodes: int = 0

    def steps(self, function: Node) -> Steps:
        """The steps of a method that packs arguments."""
        try:
            return self._method(function)
        except _GivenUpError as error:
            return (self._unknown(field_of(function, "name") or function, str(error)),)

    def _method(self, function: Node, depth: int = 0) -> Steps:
        """The steps of a method whose last parameter is the visitor."""
        parameters = _parameters(function)
        last = field_of(parameters[-1], "pattern") if parameters and parameters[-1].type == "parameter" else None
        body = field_of(function, "body")
        if body is None:
            return ()
        names = frozenset({self.text.text(last).removeprefix("mut ")}) if last is not None else frozenset()
        return self.node(body, Scope(names - {"_"}, depth=depth))

    # --- syntax ----------------------------------------------------------------------------------------------------

    def node(self, node: Node, scope: Scope) -> Steps:
        """The steps of an expression or a statement, in the order in which it is evaluated."""
        if not self._matters(node, scope):
            return ()
        self.nodes += 1
        if self.nodes > _NODES:
            raise _GivenUpError("a method that is too long")
        if scope.depth > _DEPTH:
            return (self._unknown(node, "code that is nested too deeply"),)
        handler = _HANDLERS.get(node.type)
        return self._children(node, scope) if handler is None else handler(self, node, scope.deeper())

    def _matters(self, node: Node, scope: Scope) -> bool:
        """Whether the text of ``node`` names the visitor, or what may end the method."""
        text = self.text.bytes(node)
        return any(name.encode() in text for name in (*scope.visitors, *scope.local)) or bool(_JUMPS.search(text))

    def _children(self, node: Node, scope: Scope) -> Steps:
        return self._all(named(node), scope.deeper())

    def _all(self, nodes: Iterable[Node], scope: Scope) -> Steps:
        return tuple(step for node in nodes for step in self.node(node, scope))

    def _block(self, node: Node, scope: Scope) -> Steps:
        steps: list[Step] = []
        condition: Node | None = None
        for child in named(node):
            if child.type == "attribute_item":
                condition = child if b"cfg" in self.text.bytes(child) else condition
                continue
            inner = self.node(child, scope)
            scope = self._bound(child, scope)
            if condition is not None and inner:
                inner = (Choice((inner, ()), self.text.text(condition), self.text.spot(condition)),)
            condition = None
            steps += inner
        return tuple(steps)

    def _bound(self, node: Node, scope: Scope) -> Scope:
        """The scope after a statement: with a new name of the visitor, or of a closure."""
        # A macro that is defined here may name the visitor without being given it.
        if node.type in ("function_item", "macro_definition") and (own := field_of(node, "name")) is not None:
            return replace(scope, local={**scope.local, self.text.text(own): node})
        if node.type != "let_declaration":
            return scope
        pattern, value = field_of(node, "pattern"), field_of(node, "value")
        if pattern is None or value is None or pattern.type != "identifier":
            return scope
        name = self.text.text(pattern)
        if self._is_visitor(value, scope):
            return replace(scope, visitors=scope.visitors | {name})
        if value.type == "closure_expression" and self._matters(value, replace(scope, local={})):
            return replace(scope, local={**scope.local, name: value})
        return self._without({name}, scope)

    def _without(self, names: set[str], scope: Scope) -> Scope:
        """The scope where ``names`` mean something else."""
        local = {name: node for name, node in scope.local.items() if name not in names}
        return replace(scope, visitors=scope.visitors - names, local=local)

    def _let(self, node: Node, scope: Scope) -> Steps:
        value, other = field_of(node, "value"), field_of(node, "alternative")
        pattern = field_of(node, "pattern")
        if value is None:
            return ()
        # A closure, and the visitor by another name, do nothing here: see ``_bound``.
        parts = list(named(value)) if value.type == "tuple_expression" else [value]
        if pattern is not None and self.text.text(pattern) == "_":  # as the trait's own defaults do
            parts = [part for part in parts if not self._is_visitor(part, scope)]
        skipped = value.type == "closure_expression" or self._is_visitor(value, scope)
        steps = () if skipped else self._all(parts, scope)
        return steps if other is None else (*steps, *self._choice((self.node(other, scope), ()), node))

    def _nothing(self, _node: Node, _scope: Scope) -> Steps:
        return ()

    def _identifier(self, node: Node, scope: Scope) -> Steps:
        name = self.text.text(node)
        if name in scope.visitors:
            return (self._unknown(node, "the visitor is handed on"),)
        return (self._unknown(node, f"{name} is handed on"),) if name in scope.local else ()

    def _if(self, node: Node, scope: Scope) -> Steps:
        condition, then, other = (field_of(node, name) for name in ("condition", "consequence", "alternative"))
        first = () if condition is None else self.node(condition, scope)
        ways = tuple(() if way is None else self.node(way, scope) for way in (then, other))
        return (*first, *self._choice(ways, condition or node))

    def _match(self, node: Node, scope: Scope) -> Steps:
        value, body = field_of(node, "value"), field_of(node, "body")
        first = () if value is None else self.node(value, scope)
        arms = [] if body is None else [arm for arm in named(body) if arm.type == "match_arm"]
        values = [field_of(arm, "value") for arm in arms]
        ways = tuple(() if arm is None else self.node(arm, scope) for arm in values)
        return (*first, *self._choice(ways, value or node))

    def _lazy(self, node: Node, scope: Scope) -> Steps:
        """A binary operation, of which ``&&`` and ``||`` may leave out the second part."""
        left, right, operator = (field_of(node, name) for name in ("left", "right", "operator"))
        first = () if left is None else self.node(left, scope)
        second = () if right is None else self.node(right, scope)
        if operator is not None and operator.type in ("&&", "||"):
            return (*first, *self._choice((second, ()), left or node))
        return (*first, *second)

    def _loop(self, node: Node, scope: Scope) -> Steps:
        value, condition, body = (field_of(node, name) for name in ("value", "condition", "body"))
        first = () if value is None else self.node(value, scope)
        steps = () if body is None else self.node(body, scope)
        if condition is not None:
            steps = (*self.node(condition, scope), *steps)
        if not steps:
            return first
        spot = self.text.spot(node)
        what = self._head(node, body)
        if body is not None and _leaves(body):
            # Where a turn may stop halfway, what is visited is any of the visits, in any order.
            steps = (Choice(tuple((step,) for step in steps), what, spot),)
        turns = None if value is None else self._turns(value)
        plain = all(isinstance(step, Visit) for step in steps)
        if turns is not None and plain and turns * len(steps) <= _TURNS:
            return (*first, *(steps * turns))
        return (*first, Repeat(steps, what, spot))

    def _turns(self, value: Node) -> int | None:
        """How often a loop over a literal range or array goes round."""
        if value.type == "array_expression" and not any(child.type == ";" for child in value.children):
            return len([child for child in named(value) if child.type != "attribute_item"])
        match = re.fullmatch(r"(\d{1,4})\.\.(=?)(\d{1,4})", self.text.text(value))
        return None if match is None else max(int(match[3]) - int(match[1]) + bool(match[2]), 0)

    def _closure(self, node: Node, scope: Scope) -> Steps:
        """A closure where it stands, handed to what may call it any number of times: ``for_each``."""
        body = field_of(node, "body")
        own = {self._name(parameter) for parameter in _parameters(node)}
        steps = () if body is None else self._inner(body, self._without(own, scope))
        if not steps:
            return ()
        call = node.parent.parent if node.parent is not None and node.parent.type == "arguments" else None
        callee = None if call is None else field_of(call, "function")
        return (Repeat(steps, self.text.text(callee or node)[:80], self.text.spot(node)),)

    def _inner(self, body: Node, scope: Scope) -> Steps:
        """The steps of a function's or closure's body, as its caller sees them."""
        steps = self.node(body, scope)
        return steps if all(isinstance(step, Visit) for step in steps) else (Call(steps),)

    def _return(self, node: Node, scope: Scope) -> Steps:
        return (*self._children(node, scope), End())

    def _try(self, node: Node, scope: Scope) -> Steps:
        return (*self._children(node, scope), *self._choice(((End(),), ()), node))

    def _break(self, node: Node, scope: Scope) -> Steps:
        """Out of a loop it is the loop's to know, see ``_leaves``; out of a block it is not followed."""
        if any(child.type == "label" for child in node.children):
            raise _GivenUpError("a break to a label")
        return self._children(node, scope)

    def _macro(self, node: Node, scope: Scope) -> Steps:
        name = field_of(node, "macro")
        if name is not None and self.text.text(name).rpartition("::")[2] in _PANICS:
            return (Never(),)
        words = set(re.findall(r"\w+", self.text.text(node)))
        if words & (scope.visitors | scope.local.keys()):
            return (self._unknown(node, f"the macro {self.text.text(name or node)}!"),)
        return ()

    # --- calls -----------------------------------------------------------------------------------------------------

    def _call(self, node: Node, scope: Scope) -> Steps:
        callee, arguments = field_of(node, "function"), field_of(node, "arguments")
        if callee is None or arguments is None:
            return self._children(node, scope)
        given = list(named(arguments))
        if callee.type == "field_expression":
            receiver, name = field_of(callee, "value"), field_of(callee, "field")
            if receiver is not None and name is not None and self._is_visitor(receiver, scope):
                return self._visit(node, self.text.text(name), given, scope)
        places = [k for k, each in enumerate(given) if self._is_visitor(each, scope)]
        others = self._all((each for k, each in enumerate(given) if k not in places), scope)
        name_text = self.text.text(callee)
        if callee.type == "identifier" and name_text in scope.local:
            return (*others, *self._followed(node, scope.local[name_text], given, places, False, scope))
        if places:
            return (*others, *self._handed_on(node, callee, given, places, scope))
        return (*self.node(callee, scope), *others)

    def _visit(self, node: Node, method: str, given: Sequence[Node], scope: Scope) -> Steps:
        if not method.startswith("visit_") or len(given) != 1:
            return (self._unknown(node, f"the visitor's method {method}"),)
        kind = method.removeprefix("visit_")
        visit = Visit(method, kind if kind in _KINDS else None, self.text.text(given[0]), self.text.spot(node))
        return (*self._all(given, scope), visit)

    def _handed_on(self, node: Node, callee: Node, given: Sequence[Node], places: list[int], scope: Scope) -> Steps:
        """The steps of a call that is given the visitor."""
        method = callee.type == "field_expression"
        receiver, name = field_of(callee, "value"), field_of(callee, "field" if method else "name")
        called = self.text.text(name if name is not None else callee)
        if method and receiver is not None and called in ("visit", "visit_args"):  # of KernelArg and of KernelArgs
            each = list(named(receiver)) if receiver.type == "tuple_expression" else [receiver]
            if called == "visit" or receiver.type == "tuple_expression":
                return tuple(Visit(called, None, self.text.text(one), self.text.spot(one)) for one in each)
        if callee.type == "scoped_identifier" and called.startswith("visit_") and places == [0]:
            return self._visit(node, called, given[1:], scope)  # ArgVisitor::visit_i32(visitor, n)
        own = method and receiver is not None and self.text.text(receiver) == "self"
        function = None
        if own or callee.type == "scoped_identifier":
            function = self.names.methods.get(called)
            default = self.names.methods.get(_DEFAULTS.get(called, ""))
            if function is None and default is not None and scope.depth <= _DEPTH:
                return (Call(self._method(default, scope.depth + _CALL)),)
        if function is None and not method:
            function = self.names.functions.get(called)
        if function is None:
            return (self._unknown(node, f"the call of {called}"),)
        return self._followed(node, function, given, places, own, scope)

    def _followed(
        self, node: Node, function: Node, given: Sequence[Node], places: list[int], own: bool, scope: Scope
    ) -> Steps:
        """The steps of a function or closure of this file, called with the visitor at ``places`` of ``given``."""
        body = field_of(function, "body")
        if body is None or scope.depth > _DEPTH:
            return (self._unknown(node, "a call that goes too deep"),)
        parameters = _parameters(function)
        if own:
            parameters = [each for each in parameters if each.type != "self_parameter"]
        names = [self._name(parameter) for parameter in parameters]
        visitors = frozenset(names[k] for k in places if k < len(names))
        texts = {name: self.text.text(each) for name, each in zip(names, given, strict=False)}
        depth = scope.depth + _CALL  # so that what calls itself comes to an end
        if function.type == "closure_expression":
            steps = self._inner(body, Scope(scope.visitors | visitors, scope.local, depth))
        else:
            steps = self._inner(body, Scope(visitors, {}, depth))
        return tuple(_as_called(step, texts, self.text.spot(node)) for step in steps)

    def _name(self, parameter: Node) -> str:
        pattern = field_of(parameter, "pattern") or parameter
        return self.text.text(pattern).removeprefix("mut ")

    def _is_visitor(self, node: Node, scope: Scope) -> bool:
        """Whether an expression is the visitor itself: ``visitor``, ``&mut *visitor``, ``(visitor)``."""
        while node.type in ("reference_expression", "unary_expression", "parenthesized_expression"):
            inner = [child for child in named(node) if child.type != "mutable_specifier"]
            if len(inner) != 1:
                return False
            node = inner[0]
        if node.type == "type_cast_expression" and (value := field_of(node, "value")) is not None:
            return self._is_visitor(value, scope)
        return node.type == "identifier" and self.text.text(node) in scope.visitors

    # --- words -----------------------------------------------------------------------------------------------------

    def _choice(self, ways: tuple[Steps, ...], what: Node) -> Steps:
        """One of ``ways``; what all of them do alike is certain."""
        if all(way == ways[0] for way in ways[1:]):
            return ways[0] if ways else ()
        return (Choice(ways, self.text.text(what)[:80], self.text.spot(what)),)

    def _unknown(self, node: Node, what: str) -> Unknown:
        return Unknown(what, self.text.spot(node))

    def _head(self, loop: Node, body: Node | None) -> str:
        """A loop without its body: ``for x in inputs``."""
        end = loop.end_byte if body is None else body.start_byte
        return " ".join(self.text.source[loop.start_byte : end].decode("utf-8", "replace").split())[:80]


def _parameters(function: Node) -> list[Node]:
    parameters = field_of(function, "parameters")
    return [] if parameters is None else [each for each in named(parameters) if each.type != "attribute_item"]


def _leaves(body: Node) -> bool:
    """Whether a loop's turn may end early: by a ``break`` or ``continue``, of this loop or of one in it."""
    stack = [body]
    while stack:
        node = stack.pop()
        if node.type in ("break_expression", "continue_expression"):
            return True
        stack += node.named_children
    return False


def _as_called(step: Step, texts: Mapping[str, str], at: Spot) -> Step:
    """A step of a function as its caller writes it: the argument for the parameter that is visited, at the call."""
    if isinstance(step, Visit):
        return replace(step, text=texts[step.text], at=at) if step.text in texts else step
    if isinstance(step, Choice):
        ways = tuple(tuple(_as_called(each, texts, at) for each in way) for way in step.ways)
        return replace(step, ways=ways)
    if isinstance(step, Repeat | Call):
        return replace(step, steps=tuple(_as_called(each, texts, at) for each in step.steps))
    return step


_HANDLERS = {
    "block": Walk._block, "let_declaration": Walk._let, "function_item": Walk._nothing,
    "macro_definition": Walk._nothing, "break_expression": Walk._break, "identifier": Walk._identifier,
    "if_expression": Walk._if, "match_expression": Walk._match, "binary_expression": Walk._lazy,
    "for_expression": Walk._loop, "while_expression": Walk._loop, "loop_expression": Walk._loop,
    "closure_expression": Walk._closure, "return_expression": Walk._return, "try_expression": Walk._try,
    "macro_invocation": Walk._macro, "call_expression": Walk._call,
}  # fmt: skip
