"""What can be known of a body by searching its text: names it mentions, shared memory it declares.

This is how ``entries`` answers without parsing bodies. May import ``ptx.lexer``, ``ptx.declarations``, ``ptx.model``.
"""

from __future__ import annotations

import re
from functools import lru_cache

from teenycli.ptx.declarations import variables
from teenycli.ptx.lexer import Cursor
from teenycli.ptx.model import Function, Module, Space, Variable

#: ``.shared`` as a declaration has it, with a blank after it. (Looking behind in the expression itself would cost
#: its search for the literal, and with it a factor of thirty.)
_DECLARATION = re.compile(r"\.shared[\s/]")


def mentions(module: Module, function: Function, name: str) -> bool:
    """Whether the body's text has ``name`` as a whole word outside comments."""
    body = function.body
    if body is None:
        return False
    text = module.source.text
    at = text.find(name, body.start, body.end)
    while at >= 0:
        end = at + len(name)
        if not _is_word(text[at - 1]) and not _is_word(text[end]) and not _in_comment(text, body.start, at):
            return True
        at = text.find(name, end, body.end)
    return False


def _is_word(char: str) -> bool:
    return char.isalnum() or char in "_$%"


def _in_comment(text: str, start: int, at: int) -> bool:
    line = text.rfind("\n", 0, at) + 1
    if text.find("//", line, at) >= 0:
        return True
    if not _has_block_comment(text):
        return False
    opened = text.rfind("/*", start, at)
    return opened >= 0 and text.find("*/", opened, at) < 0


@lru_cache(maxsize=8)
def _has_block_comment(text: str) -> bool:
    return "/*" in text


def reached(module: Module, function: Function) -> list[Function]:
    """``function`` and the functions with a body whose names its text, or theirs, mentions."""
    found = [function]
    others = [f for f in module.callees if f is not function]
    for caller in found:  # grows while it is read
        for callee in [f for f in others if mentions(module, caller, f.name)]:
            found.append(callee)
            others.remove(callee)
    return found


def shared_variables(module: Module, function: Function) -> list[Variable]:
    """The shared variables that ``function`` uses: its own, those of module scope it mentions, and those of the
    functions it reaches."""
    held: dict[str, Variable] = {}
    reach = reached(module, function)
    for member in reach:
        for variable in _declared(module, member):
            held.setdefault(f"{member.name}/{variable.name}", variable)
    for variable in module.variables:
        if variable.space is Space.SHARED and any(mentions(module, member, variable.name) for member in reach):
            held[variable.name] = variable
    return list(held.values())


def _declared(module: Module, function: Function) -> list[Variable]:
    body = function.body
    assert body is not None
    text = module.source.text
    found: list[Variable] = []
    for match in _DECLARATION.finditer(text, body.start, body.end):
        start, end = match.start(), match.end() - 1
        if not _is_word(text[start - 1]) and not _in_comment(text, body.start, start):
            is_extern = text[max(start - 40, 0) : start].rstrip().endswith(".extern")
            cursor = Cursor(module.source, end, body.line + text.count("\n", body.start, end))
            found += variables(cursor, Space.SHARED, "extern" if is_extern else None)
    return found


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
