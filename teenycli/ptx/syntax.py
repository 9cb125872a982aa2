"""A body's statements as they stand, before names mean anything (PTX ISA, "Statements", "Instruction Operands").

:func:`statements` is a recursive-descent parser over the text between a function's braces. What names stand for, and
whether an instruction is legal, is ``ptx.resolve``'s business.

May import ``ptx.lexer``, ``ptx.constants``, ``ptx.declarations`` and ``ptx.model``.
"""

from __future__ import annotations

from typing import NamedTuple

from teenycli.ptx import constants
from teenycli.ptx.declarations import (
    LINKING,
    SPACES,
    parameters,
    pragma,
    register_names,
    type_head,
    variables,
)
from teenycli.ptx.lexer import Cursor
from teenycli.ptx.model import Float, Int, Space, Triple, Variable
from teenycli.ptx.outline import file_directive

MAX_DEPTH = 100


class Name(NamedTuple):
    """A mention of a symbol: ``%r1``, ``%tid.x``, ``!p``, ``-a``, ``sym+4``, ``sym[4]``."""

    text: str
    start: int
    part: str | None = None
    sign: str = ""
    offset: int | None = None
    subscript: bool = False


class RawVec(NamedTuple):
    """``{a, _, b}``."""

    items: tuple[RawOperand, ...]
    start: int


class RawPair(NamedTuple):
    """``d|p``."""

    first: RawOperand
    second: RawOperand
    start: int


class RawMem(NamedTuple):
    """``[base+offset]`` or ``[base, coordinates]``."""

    base: Name | int
    offset: int
    coords: tuple[RawOperand, ...]
    part: str | None
    start: int


#: None is the sink ``_``.
RawOperand = Name | RawVec | RawPair | RawMem | Int | Float | None


class RawCall(NamedTuple):
    """The operands of a call."""

    target: Name
    returns: tuple[RawOperand, ...]
    args: tuple[RawOperand, ...]
    table: Name | None


class RawOp(NamedTuple):
    """An instruction."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[RawOperand, ...]
    guard: Name | None
    call: RawCall | None
    start: int


class LabelStmt(NamedTuple):
    """``name:``."""

    name: str
    start: int


class RegisterStmt(NamedTuple):
    """``.reg .v2 .f32 %f<9>, x;``: names with their count (None for a single one) and offset."""

    type: str
    vector: int
    names: list[tuple[str, int | None, int]]


class VariableStmt(NamedTuple):
    """Variables in any other space."""

    variables: list[Variable]
    start: int


class TableStmt(NamedTuple):
    """``name: .branchtargets …;`` and its kin; ``names`` are its labels or functions."""

    name: str
    kind: str
    names: tuple[Name, ...]
    params: tuple[Variable, ...]
    returns: tuple[Variable, ...]
    start: int


class LocStmt(NamedTuple):
    """``.loc file line column``: the source of what follows, and where it was inlined."""

    loc: Triple
    inlined_at: Triple | None
    start: int


class FileStmt(NamedTuple):
    """``.file index "name"`` inside a body."""

    number: int
    name: str


class ScopeStmt(NamedTuple):
    """``{ … }``."""

    body: list[Statement]


Statement = RawOp | LabelStmt | RegisterStmt | VariableStmt | TableStmt | LocStmt | FileStmt | ScopeStmt

_TABLES = (".branchtargets", ".calltargets", ".callprototype")
_BODY_DIRECTIVES = (*SPACES, *LINKING, ".loc", ".file", ".pragma", ".section", *_TABLES)


def statements(cursor: Cursor, depth: int = 0) -> list[Statement]:
    """The statements from the ``{`` under the cursor to its ``}``. Raises "syntax"."""
    opening = cursor.expect("{").start
    if depth > MAX_DEPTH:
        cursor.fail_at(opening, f"scopes are nested over {MAX_DEPTH} levels deep")
    found: list[Statement] = []
    while not cursor.take("}"):
        token = cursor.token
        if token.kind == "ID":
            found.append(_labelled_or_instruction(cursor))
        elif token.text == "@":
            found.append(_guarded(cursor))
        elif token.kind == "DOT":
            _directive(cursor, found)
        elif token.text == "{":
            found.append(ScopeStmt(statements(cursor, depth + 1)))
        elif token.text == "@@":
            _skip_line(cursor)
        else:
            cursor.fail("a statement or '}'")
    return found


def _skip_line(cursor: Cursor) -> None:
    end = cursor.text.find("\n", cursor.token.start)
    cursor.jump(len(cursor.text) if end < 0 else end)


def _labelled_or_instruction(cursor: Cursor) -> Statement:
    token = cursor.advance()
    if not cursor.take(":"):
        return _instruction(cursor, token.text, token.start, None)
    if cursor.at(*_TABLES):
        return _table(cursor, token.text, token.start)
    return LabelStmt(token.text, token.start)


def _guarded(cursor: Cursor) -> RawOp:
    cursor.expect("@")
    sign = "!" if cursor.take("!") else ""
    predicate = cursor.expect_kind("ID", "the predicate of the guard")
    guard = Name(predicate.text, predicate.start, sign=sign)
    opcode = cursor.expect_kind("ID", "an instruction after the guard")
    return _instruction(cursor, opcode.text, opcode.start, guard)


def _instruction(cursor: Cursor, opcode: str, start: int, guard: Name | None) -> RawOp:
    modifiers = cursor.modifiers()
    if opcode == "call":
        call = _call(cursor)
        cursor.expect(";", "the call")
        return RawOp(opcode, modifiers, (), guard, call, start)
    operands: list[RawOperand] = []
    if cursor.token.text != ";":
        operands.append(operand(cursor))
        while cursor.token.text == ",":
            cursor.advance()
            operands.append(operand(cursor))
        if cursor.token.text != ";":
            cursor.fail(f"',' or ';' after an operand of {opcode}")
    cursor.advance()
    return RawOp(opcode, modifiers, tuple(operands), guard, None, start)


#: What follows most operands.
_AFTER = frozenset({",", ";", "]", "}"})


# --- operands ----------------------------------------------------------------------------------------------------


def operand(cursor: Cursor, depth: int = 0) -> RawOperand:
    """One operand. Raises "syntax"."""
    token = cursor.token
    if depth > MAX_DEPTH:
        cursor.fail_at(token.start, f"operands are nested over {MAX_DEPTH} levels deep")
    if token.kind == "ID" and token.text != "WARP_SZ":
        name = _name(cursor)
        return name if cursor.token.text in _AFTER else _pair(cursor, name)
    if token.text == "{":
        return _pair(cursor, _vector(cursor, depth))
    if token.text == "[":
        return _memory(cursor, depth)
    if token.kind == "SINK":
        cursor.advance()
        return _pair(cursor, None)
    if token.kind == "PUNCT" and token.text in ("!", "-"):
        cursor.advance()
        if cursor.token.kind == "ID" and cursor.token.text != "WARP_SZ":
            return _name(cursor)._replace(sign=token.text)
        cursor.jump(token.start)
    if token.kind not in ("INT", "FLOAT", "ID") and token.text not in ("-", "+", "~", "!", "("):
        cursor.fail("an operand")
    return constants.expression(cursor)


def _name(cursor: Cursor) -> Name:
    token = cursor.advance()
    if cursor.token.text in _AFTER:
        return Name(token.text, token.start)
    part = None
    if cursor.token.kind == "DOT":
        part = cursor.advance().text[1:]
    if cursor.token.text == "+":
        return Name(token.text, token.start, part, offset=_offset(cursor))
    if cursor.take("["):
        offset = constants.integer(cursor, "a subscript")
        cursor.expect("]", "the subscript")
        return Name(token.text, token.start, part, offset=offset, subscript=True)
    return Name(token.text, token.start, part)


def _offset(cursor: Cursor) -> int:
    """``+4``, ``+-4``, ``+4+8``; a bare ``-4`` is no PTX."""
    total = 0
    while cursor.take("+"):
        total += constants.integer(cursor, "an offset")
    return total


def _pair(cursor: Cursor, first: Name | RawVec | None) -> RawOperand:
    if cursor.token.text != "|":
        return first
    start = cursor.advance().start
    if cursor.token.kind == "SINK":
        cursor.advance()
        return RawPair(first, None, start)
    if cursor.token.kind != "ID":
        cursor.fail("a register after '|'")
    return RawPair(first, _name(cursor), start)


def _vector(cursor: Cursor, depth: int) -> RawVec:
    start = cursor.expect("{").start
    items = [operand(cursor, depth + 1)]
    while cursor.take(","):
        items.append(operand(cursor, depth + 1))
    cursor.expect("}", "the vector")
    return RawVec(tuple(items), start)


def _memory(cursor: Cursor, depth: int) -> RawMem:
    start = cursor.expect("[").start
    base: Name | int
    offset = 0
    if cursor.token.kind == "ID" and cursor.token.text != "WARP_SZ":
        name = _name(cursor)
        base, offset = name._replace(offset=None), name.offset or 0
    else:
        base = constants.integer(cursor, "an address")
    coords: list[RawOperand] = []
    while cursor.take(","):
        coords.append(operand(cursor, depth + 1))
    cursor.expect("]", "the address")
    part = cursor.advance().text[1:] if cursor.token.kind == "DOT" else None
    return RawMem(base, offset, tuple(coords), part, start)


def _call(cursor: Cursor) -> RawCall:
    returns: tuple[RawOperand, ...] = ()
    if cursor.at("("):
        returns = _arguments(cursor)
        cursor.expect(",", "the return list")
    target = cursor.expect_kind("ID", "the function to call")
    args: tuple[RawOperand, ...] = ()
    table = None
    if cursor.take(","):
        if cursor.at("("):
            args = _arguments(cursor)
            if cursor.take(","):
                table = cursor.expect_kind("ID", "the prototype of the call")
        else:
            table = cursor.expect_kind("ID", "the arguments or the prototype of the call")
    return RawCall(Name(target.text, target.start), returns, args, table and Name(table.text, table.start))


def _arguments(cursor: Cursor) -> tuple[RawOperand, ...]:
    cursor.expect("(")
    found: list[RawOperand] = []
    while not cursor.take(")"):
        if found:
            cursor.expect(",", "an argument")
        found.append(operand(cursor))
    return tuple(found)


# --- directives --------------------------------------------------------------------------------------------------


def _directive(cursor: Cursor, found: list[Statement]) -> None:
    token = cursor.token
    if token.text == ".reg":
        cursor.advance()
        head = type_head(cursor)
        found.append(RegisterStmt(head.type, head.vector, register_names(cursor)))
    elif token.text in SPACES or token.text in LINKING:
        linking = cursor.advance().text[1:] if token.text in LINKING else None
        if cursor.token.text not in SPACES:
            cursor.fail(f"a state space after '.{linking}'")
        space = SPACES[cursor.advance().text]
        found.append(VariableStmt(_sized(cursor, space, linking, token.start), token.start))
    elif token.text == ".loc":
        found.append(_loc(cursor))
    elif token.text == ".file":
        cursor.advance()
        found.append(FileStmt(*file_directive(cursor)))
    elif token.text == ".pragma":
        cursor.advance()
        pragma(cursor)
    elif token.text in _TABLES:
        cursor.fail_at(token.start, f"'{token.text}' needs a label before it")
    else:
        cursor.fail_unknown("directive", token, _BODY_DIRECTIVES)


def _sized(cursor: Cursor, space: Space, linking: str | None, start: int) -> list[Variable]:
    found = variables(cursor, space, linking)
    for variable in found:
        # A call may pass what is left of a variadic list through an unsized .param.
        if None in variable.dims and linking != "extern" and space is not Space.PARAM:
            cursor.fail_at(start, f"'{variable.name}' has no size", f"give it a size, or make it .extern .{space}")
    return found


def _loc(cursor: Cursor) -> LocStmt:
    start = cursor.expect(".loc").start
    loc, inlined_at = _location(cursor), None
    while cursor.take(","):
        word = cursor.expect_kind("ID", "'function_name' or 'inlined_at'")
        if word.text == "function_name":
            if cursor.token.kind not in ("ID", "DOT"):
                cursor.fail("the label of the function's name")
            cursor.advance()
            _offset(cursor)
        elif word.text == "inlined_at":
            inlined_at = _location(cursor)
        else:
            cursor.fail_unknown("part of .loc", word, ("function_name", "inlined_at"))
    return LocStmt(loc, inlined_at, start)


def _location(cursor: Cursor) -> Triple:
    file, line, column = (constants.integer(cursor, "a number of .loc") for _ in range(3))
    return file, line, column


def _table(cursor: Cursor, name: str, start: int) -> TableStmt:
    kind = cursor.advance().text
    if kind != ".callprototype":
        names = [cursor.expect_kind("ID", "a name")]
        while cursor.take(","):
            names.append(cursor.expect_kind("ID", "a name"))
        cursor.expect(";", kind)
        return TableStmt(name, kind, tuple(Name(t.text, t.start) for t in names), (), (), start)
    returns = parameters(cursor, name) if cursor.at("(") else ()
    if cursor.token.kind not in ("SINK", "ID"):
        cursor.fail("'_' in the prototype")
    cursor.advance()
    params = parameters(cursor, name) if cursor.at("(") else ()
    while cursor.token.kind == "DOT":
        word = cursor.advance()
        if word.text in (".abi_preserve", ".abi_preserve_control"):
            constants.integer(cursor, word.text)
        elif word.text != ".noreturn":
            cursor.fail_unknown("directive", word, (".noreturn", ".abi_preserve", ".abi_preserve_control"))
    cursor.expect(";", "the prototype")
    return TableStmt(name, kind, (), params, returns, start)
