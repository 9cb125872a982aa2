"""What can be known of a body by searching its text: names it mentions, shared memory it declares.

This is how ``entries`` answers without parsing bodies. Text in comments and strings does not count. What a name means
is not looked at: a register that is called like a shared variable of the module counts as a mention of it.

May import ``ptx.lexer``, ``ptx.declarations``, ``ptx.model``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from functools import lru_cache

from teenycli.ptx.declarations import variables
from teenycli.ptx.lexer import Cursor
from teenycli.ptx.model import Function, Module, Source, Space, Variable, symbols_in

#: Comments, strings, and words; the first two hide what is in them.
_PIECES = r'"[^"\n]*"|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|([A-Za-z_$%][\w$]*)'
_HIDING = r'"[^"\n]*"|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)'
#: Up to so many names are searched for one by one, which is many times faster than to read every word.
_FEW = 8


def mentions(module: Module, function: Function, name: str) -> bool:
    """Whether the body's text has ``name`` as a whole word outside comments and strings."""
    body = function.body
    if body is None:
        return False
    text = module.source.text
    at = text.find(name, body.start, body.end)
    while at >= 0:
        end = at + len(name)
        if not _is_word(text[at - 1]) and not _is_word(text[end]) and not _hidden(module.source, function, at):
            return True
        at = text.find(name, end, body.end)
    return False


def mentioned(module: Module, function: Function, names: Collection[str]) -> set[str]:
    """Those of ``names`` that the body mentions."""
    if len(names) <= _FEW:
        return {name for name in names if mentions(module, function, name)}
    return set(names) & _words(module.source, function)


def _is_word(char: str) -> bool:
    return char.isalnum() or char in "_$%"


@lru_cache(maxsize=1024)
def _words(source: Source, function: Function) -> frozenset[str]:
    body = function.body
    assert body is not None
    return frozenset(re.compile(_PIECES, re.ASCII).findall(source.text[body.start : body.end]))


def _hidden(source: Source, function: Function, at: int) -> bool:
    """Whether the offset ``at`` in the body lies in a comment or a string."""
    text = source.text
    if not _has_block_comment(text):
        # Only what is on the line can hide it, and mostly nothing is.
        line = text.rfind("\n", 0, at) + 1
        if text.find("//", line, at) < 0 and text.find('"', line, at) < 0:
            return False
        return any(m.start() < at < m.end() for m in re.compile(_HIDING).finditer(text, line, _line_end(text, at)))
    starts, ends = _hiding(source, function)
    nearest = bisect_right(starts, at) - 1
    return nearest >= 0 and at < ends[nearest]


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


@lru_cache(maxsize=8)
def _has_block_comment(text: str) -> bool:
    return "/*" in text


@lru_cache(maxsize=64)
def _hiding(source: Source, function: Function) -> tuple[list[int], list[int]]:
    """Where the body's comments and strings begin and end."""
    body = function.body
    assert body is not None
    spans = [match.span() for match in re.compile(_HIDING).finditer(source.text, body.start, body.end)]
    return [start for start, _ in spans], [end for _, end in spans]


# --- what a function reaches -------------------------------------------------------------------------------------


def reached(module: Module, function: Function) -> list[Function]:
    """``function`` and the functions with a body that it may call: those that its text, or theirs, mentions by name or
    alias, and those whose addresses lie in a variable that they mention."""
    names: dict[str, set[str]] = {callee.name: {callee.name} for callee in module.callees}
    if not names:
        return [function]
    for alias, target in module.aliases.items():
        if target in names:
            names[alias] = {target}
    names |= _tables(module, names)
    by_name = {callee.name: callee for callee in module.callees}
    found = {function.name: function}
    queue = [function]
    for caller in queue:  # grows while it is read
        for name in mentioned(module, caller, names):
            for target in names[name] - found.keys():
                found[target] = by_name[target]
                queue.append(by_name[target])
    return queue


def _tables(module: Module, names: dict[str, set[str]]) -> dict[str, set[str]]:
    """For each variable that holds addresses of functions, which ones; through other variables too."""
    held = {v.name: set(symbols_in(v.init)) for v in module.variables if v.init is not None}
    held = {name: symbols for name, symbols in held.items() if symbols}
    tables: dict[str, set[str]] = {}
    for name in held:
        seen, queue = {name}, [name]
        for one in queue:
            queue += [other for other in held.get(one, ()) if other in held and other not in seen]
            seen |= held.get(one, set())
        functions = {target for symbol in seen if symbol in names for target in names[symbol]}
        if functions:
            tables[name] = functions
    return tables


# --- shared memory -----------------------------------------------------------------------------------------------


def shared_variables(module: Module, function: Function) -> list[Variable]:
    """The shared variables that ``function`` uses: its own, those of module scope it mentions, and those of the
    functions it reaches. Two of one name in two scopes are two."""
    reach = reached(module, function)
    held = [variable for member in reach for variable in _declared(module, member)]
    shared = {v.name: v for v in module.variables if v.space is Space.SHARED}
    if shared:
        used = set().union(*(mentioned(module, member, shared) for member in reach))
        held += [variable for name, variable in shared.items() if name in used]
    return held


def _declared(module: Module, function: Function) -> Iterator[Variable]:
    """The shared variables that a body declares: where ``.shared`` begins a statement, not within an opcode."""
    body = function.body
    assert body is not None
    text = module.source.text
    at = text.find(".shared", body.start, body.end)
    while at >= 0:
        end = at + len(".shared")
        before = text[at - 1]
        whole = not (_is_word(before) or before in ".:" or _is_word(text[end]) or text[end] == ":")
        if whole and not _hidden(module.source, function, at) and not _after_opcode(module.source, function, at):
            linking = "extern" if text[max(at - 40, 0) : at].rstrip().endswith(".extern") else None
            line = body.line + text.count("\n", body.start, end)
            yield from variables(Cursor(module.source, end, line), Space.SHARED, linking)
        at = text.find(".shared", end, body.end)


def _after_opcode(source: Source, function: Function, at: int) -> bool:
    """Whether ``.shared`` at ``at`` belongs to an opcode that is spaced out, ``ld .shared .u32 %r1, …``: then a word
    that is no directive comes before it."""
    before = source.text[max(at - 200, 0) : at].rstrip()
    if not _is_word(before[-1]) or before.endswith((".extern", ".weak", ".visible", ".common")):
        return False
    return not _hidden(source, function, max(at - 200, 0) + len(before) - 1)


def shared_memory(module: Module, function: Function) -> tuple[int, bool]:
    """Bytes of static shared memory a CTA of ``function`` takes, each variable at its alignment; and whether it uses
    dynamic shared memory, which is an extern array without a size."""
    total, dynamic = 0, False
    for variable in shared_variables(module, function):
        if variable.size:
            total = (total + variable.align - 1) // variable.align * variable.align + variable.size
        dynamic |= variable.linking == "extern" and variable.size == 0
    return total, dynamic


def shared_static(module: Module, function: Function) -> int:
    """The first of :func:`shared_memory`."""
    return shared_memory(module, function)[0]


def shared_dynamic(module: Module, function: Function) -> bool:
    """The second of :func:`shared_memory`."""
    return shared_memory(module, function)[1]
