"""A Rust file's impls of ``RuntimeOp``: those that stand there, and those that its macros write.

May import ``errors`` and, in this room, everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from teenycli.rust.model import PACKING, Impl, Packing, RustFile, Unknown
from teenycli.rust.tree import Text, field_of, first_error, named, open_text
from teenycli.rust.visits import Names, Walk

if TYPE_CHECKING:
    from tree_sitter import Node

TRAIT = "RuntimeOp"
#: Calls of a macro that are read.
_CALLS = 1_000
#: What items may stand in.
_NESTS = {"source_file", "mod_item", "declaration_list", "const_item", "block", "expression_statement", "ERROR"}


def read_rust(path: str) -> RustFile:
    """What the Rust file ``path`` says of launches.

    Raises TeenyError: what ``read_bytes`` raises, ``missing-extra``, and ``rust-syntax`` for what is no UTF-8 text or
    takes too long.
    """
    text = open_text(path)
    root = text.tree()
    items = Items.of(text, root)
    impls = [impl for node in items.impls if (impl := _impl(text, node, items, {})) is not None]
    for macro in items.macros:
        impls += _written_by(text, macro, items)
    broken = first_error(root)
    judged = {packing.error for impl in impls for packing in impl.packings}
    errors = [] if broken is None else [spot for spot in [text.spot(broken)] if spot not in judged]
    others = [f"{trait} for {_name(text, kind)}" for trait, kind in items.traits(text) if trait != TRAIT]
    lines = tuple(text.source.split(b"\n"))
    return RustFile(path, tuple(impls), tuple(others), tuple(errors), lines)


class Items(Struct):
    """The items of a file that matter, wherever they stand in modules: ``functions`` by name, ``macros`` whose rules
    have an impl, and what calls of macros pass, by the macro's name."""

    impls: list[Node] = field(default_factory=list)
    functions: dict[str, Node] = field(default_factory=dict)
    macros: list[Node] = field(default_factory=list)
    calls: dict[str, list[Node]] = field(default_factory=dict)
    _methods: dict[str, dict[str, Node]] | None = None

    @classmethod
    def of(cls, text: Text, root: Node) -> Items:
        found = cls()
        stack = [root]
        while stack:
            node = stack.pop()
            if node.type == "impl_item":
                found.impls.append(node)
            elif node.type == "function_item":
                found.functions.setdefault(text.text(field_of(node, "name") or node), node)
            elif node.type == "macro_definition":
                if TRAIT.encode() in text.bytes(node):
                    found.macros.append(node)
            elif node.type == "macro_invocation":
                name, passed = field_of(node, "macro"), node.named_children[-1]
                if name is not None and passed.type == "token_tree":
                    found.calls.setdefault(text.text(name), []).append(passed)
            elif node.type in _NESTS:
                stack += reversed(node.named_children)
        return found

    def traits(self, text: Text) -> Iterator[tuple[str, Node]]:
        """Each impl of a trait: the trait's name, and the type."""
        for node in self.impls:
            trait, kind = field_of(node, "trait"), field_of(node, "type")
            if trait is not None and kind is not None:
                yield _name(text, trait), kind

    def methods(self, text: Text, name: str) -> dict[str, Node]:
        """The methods of the type's inherent impls."""
        if self._methods is None:
            self._methods = {}
            for node in self.impls:
                kind = field_of(node, "type")
                if field_of(node, "trait") is None and kind is not None:
                    self._methods.setdefault(_name(text, kind), {}).update(_functions(text, node))
        return self._methods.get(name, {})


def _impl(text: Text, node: Node, items: Items, meant: Mapping[str, str]) -> Impl | None:
    """The impl, when it is of ``RuntimeOp``; ``meant`` is what a macro's names stand for."""
    trait, kind = field_of(node, "trait"), field_of(node, "type")
    if trait is None or kind is None or _name(text, trait) != TRAIT:
        return None
    written = _name(text, kind)
    name = meant.get(written, written)
    own = _functions(text, node)
    names = Names({**items.methods(text, name), **own}, items.functions)
    packings = [_packing(text, method, own[method], names) for method in PACKING if method in own]
    backward = own.get("has_backward")
    if backward is not None and "pack_backward_args" not in own and re.search(rb"\btrue\b", text.bytes(backward)):
        # The trait's own visits nothing.
        packings.append(Packing("pack_backward_args", (), text.spot(backward)))
    return Impl(name, tuple(packings), text.spot(kind))


def _packing(text: Text, method: str, function: Node, names: Names) -> Packing:
    at = text.spot(field_of(function, "name") or function)
    broken = first_error(function)
    if broken is not None:
        spot = text.spot(broken)
        return Packing(method, (Unknown("code that cannot be parsed", spot),), at, spot)
    return Packing(method, Walk(text, names).steps(function), at)


def _functions(text: Text, impl: Node) -> dict[str, Node]:
    body = field_of(impl, "body")
    items = [] if body is None else [item for item in named(body) if item.type == "function_item"]
    return {text.text(name): item for item in items if (name := field_of(item, "name")) is not None}


def _name(text: Text, kind: Node) -> str:
    """The last name of a path or type, without type arguments: ``Softmax`` of ``ops::Softmax<D>``."""
    fields = {"generic_type": "type", "reference_type": "type"}
    while True:
        part = "name" if kind.type.startswith("scoped_") else fields.get(kind.type)
        inner = None if part is None else field_of(kind, part)
        if inner is None:
            # A macro's metavariable is read as a name, see ``Text.within``.
            return text.text(kind).replace("$", "_")
        kind = inner


# --- macros ------------------------------------------------------------------------------------------------------


def _written_by(text: Text, macro: Node, items: Items) -> Iterator[Impl]:
    """The impls that calls of a macro write, one for each call; of a macro that is not called here, as they stand."""
    name = field_of(macro, "name")
    calls = items.calls.get(text.text(name), [])[:_CALLS] if name is not None else []
    for rule in macro.named_children:
        left, right = field_of(rule, "left"), field_of(rule, "right")
        if rule.type != "macro_rule" or left is None or right is None or TRAIT.encode() not in text.bytes(right):
            continue
        root = text.within(right)
        inner = Items.of(text, root)
        parameters = re.findall(r"\$(\w+)\s*:", text.text(left))
        meanings = [_meant(parameters, text.text(call)) for call in calls]
        for meant in [each for each in meanings if each is not None] or [{}]:
            for node in inner.impls:
                impl = _impl(text, node, items, meant)
                if impl is not None:
                    yield impl


def _meant(parameters: list[str], passed: str) -> dict[str, str] | None:
    """What the names of a macro's rule stand for in one call; None when the call has another number of them."""
    given = [part.strip() for part in passed[1:-1].split(",") if part.strip()]
    if len(given) != len(parameters):
        return None
    names = [re.sub(r"<.*", "", part).rpartition("::")[2] for part in given]
    return {f"_{parameter}": name for parameter, name in zip(parameters, names, strict=True)}
