"""Every finding id that the source can emit, found by reading it.

An id is what stands for the parameter ``id`` of a call: of ``Finding``, of ``TeenyError``, or of any function or class
of ours that has a parameter or a field of that name. Where a variable stands there, its values are what is assigned to
it, and what calls pass for it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: What makes a finding, wherever it is called.
MAKERS = ("Finding", "TeenyError")

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Source:
    """A file's tree: its calls by the name called, its functions and classes by name, and whom each node is in."""

    tree: ast.Module
    calls: dict[str, list[ast.Call]] = field(default_factory=dict)
    functions: dict[str, _Function] = field(default_factory=dict)
    owners: dict[int, _Function] = field(default_factory=dict)
    parameters: dict[str, list[str]] = field(default_factory=dict)
    defaults: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                self.calls.setdefault(_called(node), []).append(node)
            elif isinstance(node, _Function):
                self.functions[node.name] = node
                self.parameters[node.name] = _parameters(node)
                self.owners.update({id(inner): node for inner in ast.walk(node)})
                for argument, default in zip(reversed(node.args.args), reversed(node.args.defaults), strict=False):
                    if argument.arg == "id" and isinstance(default, ast.Constant) and isinstance(default.value, str):
                        self.defaults.add(default.value)
            elif isinstance(node, ast.ClassDef):
                fields = [item.target.id for item in node.body
                          if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]  # fmt: skip
                self.parameters.setdefault(node.name, fields)


def emitted(root: Path) -> set[str]:
    """The ids of all findings that the modules under ``root`` can make."""
    sources = [Source(ast.parse(path.read_text("utf-8"))) for path in sorted(root.rglob("*.py"))]
    methods = {name: names for source in sources for name, names in source.parameters.items() if "id" in names}
    methods |= {maker: ["id", "message"] for maker in MAKERS}
    return {
        value
        for source in sources
        for name, names in methods.items()
        for call in source.calls.get(name, [])
        for node in _given(call, "id", names)
        for value in _values(source, node, ())
    } | {value for source in sources for value in source.defaults}


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _parameters(function: _Function) -> list[str]:
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _given(call: ast.Call, parameter: str, names: Sequence[str]) -> Iterator[ast.expr]:
    """What ``call`` passes for ``parameter`` of a callable with these parameters."""
    yield from (keyword.value for keyword in call.keywords if keyword.arg == parameter)
    place = names.index(parameter) if parameter in names else len(call.args)
    if place < len(call.args):
        yield call.args[place]


def _values(source: Source, node: ast.expr, seen: tuple[str, ...]) -> set[str]:
    """The strings that an expression can be."""
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else set()
    if isinstance(node, ast.IfExp):
        return _values(source, node.body, seen) | _values(source, node.orelse, seen)
    if isinstance(node, ast.JoinedStr):
        parts = [_values(source, part.value if isinstance(part, ast.FormattedValue) else part, seen)
                 for part in node.values]  # fmt: skip
        return {"".join(texts) for texts in itertools.product(*parts)}
    if isinstance(node, ast.Name) and node.id not in seen:
        return _of_name(source, node, (*seen, node.id))
    return set()


def _of_name(source: Source, name: ast.Name, seen: tuple[str, ...]) -> set[str]:
    """Values of a local variable or a parameter of the function around ``name``."""
    owner = source.owners.get(id(name))
    if owner is None:
        return set()
    found: set[str] = set()
    if name.id in (names := source.parameters[owner.name]):
        for call in source.calls.get(owner.name, []):
            for given in _given(call, name.id, names):
                found |= _values(source, given, seen)
    for node in ast.walk(owner):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found |= _assigned(source, target, node.value, name.id, seen)
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
            for item in node.iter.elts:
                found |= _assigned(source, node.target, item, name.id, seen)
    return found


def _assigned(source: Source, target: ast.expr, value: ast.expr, name: str, seen: tuple[str, ...]) -> set[str]:
    """What ``name`` becomes by the assignment of ``value`` to ``target``."""
    if isinstance(target, ast.Name):
        return _values(source, value, seen) if target.id == name else set()
    if not isinstance(target, ast.Tuple):
        return set()
    places = [k for k, item in enumerate(target.elts) if isinstance(item, ast.Name) and item.id == name]
    rows = _rows(source, value, ()) if places else []
    return {text for row in rows for place in places for text in _values(source, row.elts[place], seen)}


def _rows(source: Source, node: ast.expr | None, seen: tuple[str, ...]) -> list[ast.Tuple]:
    """The tuples that an expression can be: itself, or what the function that it calls returns."""
    if isinstance(node, ast.Tuple):
        return [node]
    if isinstance(node, ast.Call) and (name := _called(node)) in source.functions and name not in seen:
        returned = [inner.value for inner in ast.walk(source.functions[name]) if isinstance(inner, ast.Return)]
        return [row for value in returned for row in _rows(source, value, (*seen, name))]
    return []
