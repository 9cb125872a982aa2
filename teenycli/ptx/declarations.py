"""Declarations: variables, parameters, initialisers, and the headers of functions.

The same grammar serves module scope, parameter lists and bodies (PTX ISA, "State Spaces, Types, and Variables",
"Kernel and Function Directives").

May import ``ptx.lexer``, ``ptx.constants`` and ``ptx.model``.
"""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from teenycli.errors import Place, TeenyError
from teenycli.ptx import constants
from teenycli.ptx.lexer import Cursor
from teenycli.ptx.model import (
    TYPE_SIZES,
    Directives,
    Float,
    Function,
    Init,
    Int,
    Pointer,
    Position,
    Space,
    SymbolInit,
    Triple,
    Variable,
)

#: Spaces that a variable may be declared in, by directive.
SPACES = {f".{space}": space for space in Space if space is not Space.GENERIC}
LINKING = (".extern", ".visible", ".weak", ".common")
_VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}
_TYPES = {f".{name}": name for name in (*TYPE_SIZES, "pred")}
_MAX_DIM = 2**40
_OPAQUE = ("texref", "samplerref", "surfref")
_TYPE_WORDS = "|".join(sorted(TYPE_SIZES, key=len, reverse=True))
#: A parameter with a type and a name and no more, and the comma after it.
_PLAIN = re.compile(rf"\.param[ \t]+\.({_TYPE_WORDS})[ \t]+([A-Za-z_$%][\w$]+)[ \t]*,[ \t\r\n]*", re.ASCII)
#: What a ``.ptr`` may point to: a space, or an object of opaque type.
_POINTED = {
    **{name: SPACES[name] for name in (".const", ".global", ".local", ".shared")},
    **{f".{name}": Space.TEX for name in _OPAQUE},
}

#: Directives that stand between ``)`` and ``{``, and what they take.
_TRIPLES = {".reqntid": "reqntid", ".maxntid": "maxntid", ".reqnctapercluster": "reqnctapercluster"}
_NUMBERS = {
    ".minnctapersm": "minnctapersm", ".maxnctapersm": "minnctapersm", ".maxnreg": "maxnreg",
    ".maxclusterrank": "maxclusterrank",
}  # fmt: skip
_FLAGS = {".explicitcluster": "explicitcluster", ".blocksareclusters": "blocksareclusters", ".noreturn": "noreturn"}
#: What begins the next statement of the module: ptxas lets a declaration go without its ``;``.
_STARTS = frozenset(
    {".entry", ".func", ".alias", ".file", ".section", ".global", ".const", ".shared", ".tex", *LINKING}
)
#: Hints for code generation that change nothing we model; the number each of them takes.
_ABI = {".abi_preserve": 1, ".abi_preserve_control": 1}


class TypeHead(NamedTuple):
    """What comes before the names of a declaration."""

    type: str
    vector: int
    align: int | None
    managed: bool


def type_head(cursor: Cursor) -> TypeHead:
    """``.align 8 .v2 .f32``, with attributes, in any order; the type comes last."""
    vector, align, managed = 1, None, False
    while True:
        token = cursor.token
        if token.text in _TYPES:
            cursor.advance()
            return TypeHead(_TYPES[token.text], vector, align, managed)
        if token.text in _VECTORS and vector == 1:
            cursor.advance()
            vector = _VECTORS[token.text]
        elif cursor.take(".align"):
            align = _alignment(cursor)
        elif cursor.take(".attribute"):
            managed |= attributes(cursor)
        elif token.kind == "DOT":
            cursor.fail_unknown("type", token, _TYPES)
        else:
            cursor.fail("a type such as .u32")


def _alignment(cursor: Cursor) -> int:
    start = cursor.token.start
    align = constants.integer(cursor, "an alignment")
    if align <= 0 or align & align - 1 or align > 2**30:
        cursor.fail_at(start, f"an alignment must be a power of two, not {align}")
    return align


def attributes(cursor: Cursor) -> bool:
    """``(.managed, .unified(1, 2))``; returns whether ``.managed`` is there."""
    managed = False
    cursor.expect("(", "'.attribute'")
    while True:
        token = cursor.token
        if cursor.take(".managed"):
            managed = True
        elif cursor.take(".unified"):
            cursor.expect("(")
            constants.integer(cursor, "a .unified key")
            while cursor.take(","):
                constants.integer(cursor, "a .unified key")
            cursor.expect(")")
        else:
            cursor.fail_unknown("attribute", token, (".managed", ".unified"))
        if not cursor.take(","):
            cursor.expect(")", "the attributes")
            return managed


def variables(cursor: Cursor, space: Space, linking: str | None) -> list[Variable]:
    """The variables of one declaration, from after the space to after its ``;``."""
    head = type_head(cursor)
    found = [_declarator(cursor, space, head, linking)]
    while cursor.take(","):
        found.append(_declarator(cursor, space, head, linking))
    cursor.expect(";", f"the declaration of '{found[-1].name}'")
    return found


def _declarator(cursor: Cursor, space: Space, head: TypeHead, linking: str | None) -> Variable:
    token = cursor.expect_kind("ID", "the name of a variable")
    variable = _variable(cursor, token.text, space, head, cursor.position(token.start))
    init: Init | None = None
    if cursor.at("="):
        if space not in (Space.GLOBAL, Space.CONST):
            cursor.fail_at(cursor.token.start, f"a variable in .{space} takes no initial value")
        cursor.advance()
        init = initializer(cursor, head.type)
        room = _room(variable)
        if room is not None and (given := _count(init)) > room:
            cursor.fail_at(token.start, f"'{token.text}' holds {room} values, its initialiser has {given}")
        if variable.dims and variable.dims[0] is None and isinstance(init, tuple):
            variable = replace(variable, dims=(_outer_length(init, variable), *variable.dims[1:]))
    return replace(variable, init=init, linking=linking)


def _variable(
    cursor: Cursor, name: str, space: Space, head: TypeHead, at: Position, pointer: Pointer | None = None
) -> Variable:
    start = cursor.token.start
    dims: list[int | None] = []
    size = TYPE_SIZES.get(head.type, 1) * head.vector
    while cursor.take("["):
        dim = None if cursor.at("]") else constants.integer(cursor, "an array size")
        cursor.expect("]", "the array size")
        size *= 1 if dim is None else dim
        if dim is not None and (dim < 0 or size > _MAX_DIM):
            cursor.fail_at(start, f"the size of '{name}' is out of range: {dim}")
        dims.append(dim)
    natural = TYPE_SIZES.get(head.type, 1) * head.vector
    return Variable(
        name, space, head.type, head.vector, tuple(dims), head.align or natural,
        managed=head.managed, pointer=pointer, at=at,
    )  # fmt: skip


def _room(variable: Variable) -> int | None:
    if None in variable.dims:
        return None
    room = variable.vector
    for dim in variable.dims:
        room *= dim or 0
    return room


def _count(init: Init) -> int:
    return sum(_count(item) for item in init) if isinstance(init, tuple) else 1


def _outer_length(init: tuple[Init, ...], variable: Variable) -> int:
    if any(isinstance(item, tuple) for item in init):
        return len(init)
    inner = variable.vector
    for dim in variable.dims[1:]:
        inner *= dim or 1
    return -(-len(init) // max(inner, 1))


def initializer(cursor: Cursor, type: str, depth: int = 0) -> Init:
    """An initialiser: a value, or values in (nested) braces. Floats become bit patterns of ``type``."""
    if type in _OPAQUE:
        return _fields(cursor)
    if not cursor.take("{"):
        return _initial_value(cursor, type)
    if depth > 60:
        cursor.fail_at(cursor.end_of_last - 1, "the initialiser is nested over 60 levels deep")
    items: list[Init] = []
    while not cursor.take("}"):
        if items:
            cursor.expect(",", "a value of the initialiser")
        items.append(initializer(cursor, type, depth + 1))
    return tuple(items)


def _fields(cursor: Cursor) -> Init:
    """``{ filter_mode = linear, … }`` of a sampler; what they say is for the driver alone."""
    cursor.expect("{")
    while True:
        cursor.expect_kind("ID", "the name of a field")
        cursor.expect("=", "the field")
        if cursor.token.kind == "ID":
            cursor.advance()
        else:
            constants.integer(cursor, "the value of the field")
        if not cursor.take(","):
            cursor.expect("}", "the fields")
            return ()


def _initial_value(cursor: Cursor, type: str) -> Init:
    token = cursor.token
    if token.kind == "ID" and token.text != "WARP_SZ":
        return _address(cursor)
    value = constants.expression(cursor)
    if cursor.at("(") and isinstance(value, Int):
        cursor.advance()
        masked = structs.replace(_address(cursor), mask=value.value)
        cursor.expect(")", "the address")
        return masked
    if isinstance(value, Int) and type not in ("f16", "bf16", "f32", "f64"):
        return value.value
    return _float_bits(value, type)


def _address(cursor: Cursor) -> SymbolInit:
    name = cursor.expect_kind("ID", "the name of a symbol").text
    generic = name == "generic" and cursor.take("(")
    if generic:
        name = cursor.expect_kind("ID", "the name of a symbol").text
        cursor.expect(")", "the symbol")
    offset = 0
    if cursor.at("+", "-"):
        sign = -1 if cursor.advance().text == "-" else 1
        offset = sign * constants.integer(cursor, "an offset")
    return SymbolInit(name, offset, generic)


def _float_bits(value: Int | Float, type: str) -> int:
    if isinstance(value, Float) and value.width == 32 and type in ("f32", "b32"):
        return value.bits
    number = constants.float_value(value)
    if type in ("f64", "b64"):
        return int(struct.unpack("<Q", struct.pack("<d", number))[0])
    try:
        return int(struct.unpack("<I", struct.pack("<f", number))[0])
    except OverflowError:
        return 0x7F800000 if number > 0 else 0xFF800000


# --- functions ---------------------------------------------------------------------------------------------------


def parameters(cursor: Cursor, owner: str) -> tuple[Variable, ...]:
    """A parameter list in parentheses, possibly empty. ``owner`` is whose, for messages."""
    cursor.expect("(")
    if cursor.take(")"):
        return ()
    found = _plain_parameters(cursor)
    found.append(_parameter(cursor))
    while not cursor.take(")"):
        if not cursor.take(","):
            cursor.fail(f"',' after a parameter of '{owner}'")
        found += _plain_parameters(cursor)
        found.append(_parameter(cursor))
    names: set[str] = set()
    for parameter in found:
        if parameter.name in names:
            where = Place(cursor.source.name, parameter.at.line, parameter.at.column)
            raise TeenyError("declared-twice", f"'{owner}' has two parameters '{parameter.name}'", where=where)
        if parameter.name != "_":
            names.add(parameter.name)
    return tuple(found)


def _plain_parameters(cursor: Cursor) -> list[Variable]:
    """The parameters under the cursor that are ``.param .u64 name,`` and no more, which is what nearly all are, each
    read by one expression: parameter lists are most of what the outline of a large file has to read."""
    found: list[Variable] = []
    end = cursor.token.start
    while match := _PLAIN.match(cursor.text, end):
        type, end = match[1], match.end()
        at = cursor.position(match.start(2))
        found.append(Variable(match[2], Space.PARAM, type, align=TYPE_SIZES[type], at=at))
    if found:
        cursor.jump(end)
    return found


def _parameter(cursor: Cursor) -> Variable:
    token = cursor.token
    space = SPACES.get(token.text)
    if space not in (Space.PARAM, Space.REG):
        cursor.fail("a parameter, which begins with .param or .reg")
    cursor.advance()
    head = type_head(cursor)
    pointer = None
    if cursor.token.kind == "DOT":
        pointer = _pointer(cursor)
    name = cursor.token
    if name.kind == "SINK":
        cursor.advance()
    else:
        name = cursor.expect_kind("ID", "the name of a parameter")
    return _variable(cursor, name.text, space, head, cursor.position(name.start), pointer)


def _pointer(cursor: Cursor) -> Pointer:
    cursor.expect(".ptr", "the parameter's type")
    space, align = None, 4  # PTX ISA, ".ptr": without .align the pointer is assumed aligned to 4 bytes
    while cursor.token.kind == "DOT":
        if cursor.token.text in _POINTED:
            space = _POINTED[cursor.advance().text]
        elif cursor.take(".align"):
            align = _alignment(cursor)
        else:
            cursor.fail_unknown("pointer attribute", cursor.token, (*_POINTED, ".align"))
    return Pointer(space, align)


def directives(cursor: Cursor) -> Directives:
    """The directives between a parameter list and ``{`` or ``;``."""
    found: dict[str, Triple | int | bool] = {}
    pragmas: list[str] = []
    while cursor.token.kind == "DOT" and cursor.token.text not in _STARTS:
        token = cursor.advance()
        if token.text in _TRIPLES:
            found[_TRIPLES[token.text]] = _triple(cursor, token.text)
        elif token.text in _NUMBERS:
            found[_NUMBERS[token.text]] = constants.integer(cursor, token.text)
        elif token.text in _FLAGS:
            found[_FLAGS[token.text]] = True
        elif token.text in _ABI:
            constants.integer(cursor, token.text)
        elif token.text == ".pragma":
            pragmas += pragma(cursor)
        else:
            cursor.fail_unknown("directive", token, (*_TRIPLES, *_NUMBERS, *_FLAGS, *_ABI, ".pragma"))
    return Directives(pragmas=tuple(pragmas), **found)  # type: ignore[arg-type]  # values fit by table


def _triple(cursor: Cursor, name: str) -> Triple:
    numbers = []
    while True:
        start = cursor.token.start
        number = constants.integer(cursor, name)
        if not 0 < number < 2**32:
            cursor.fail_at(start, f"{name} takes positive numbers, not {number}")
        numbers.append(number)
        if not cursor.take(","):
            break
    if len(numbers) > 3:
        cursor.fail_at(cursor.token.start, f"{name} takes at most 3 numbers, not {len(numbers)}")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def pragma(cursor: Cursor) -> list[str]:
    """The strings of a ``.pragma``, from after the word to after its ``;``."""
    strings = [cursor.expect_kind("STRING", "the text of the pragma").text.strip('"')]
    while cursor.take(","):
        strings.append(cursor.expect_kind("STRING", "the text of the pragma").text.strip('"'))
    cursor.expect(";", "the pragma")
    return strings


def function_header(cursor: Cursor, is_entry: bool, linking: str | None) -> Function:
    """A function from after ``.entry`` or ``.func`` to before its ``{`` or ``;``."""
    returns: tuple[Variable, ...] = ()
    noreturn = False
    while cursor.token.kind == "DOT":
        if cursor.take(".attribute"):
            attributes(cursor)
        elif not is_entry and cursor.take(".noreturn"):
            noreturn = True
        else:
            cursor.fail("the name of the function")
    if cursor.at("("):
        if is_entry:
            cursor.fail("the name of the entry")
        returns = parameters(cursor, "the return list")
    name = cursor.expect_kind("ID", "the name of the entry" if is_entry else "the name of the function")
    at = cursor.position(name.start)
    listed = cursor.token.start
    params = parameters(cursor, name.text) if cursor.at("(") else ()
    if is_entry and any(param.space is Space.REG for param in params):
        cursor.fail_at(listed, f"the parameters of the entry '{name.text}' must lie in .param")
    found = directives(cursor)
    if noreturn:
        found = structs.replace(found, noreturn=True)
    return Function(name.text, is_entry, params, returns, found, linking, at=at)


def register_names(cursor: Cursor) -> list[tuple[str, int | None, int]]:
    """The names of a ``.reg`` declaration up to its ``;``: (name or prefix, count of ``<n>`` or None, offset)."""
    found: list[tuple[str, int | None, int]] = []
    if cursor.take(";"):  # ptxas takes a declaration of nothing
        return found
    while True:
        token = cursor.expect_kind("ID", "the name of a register")
        count = None
        if cursor.take("<"):
            if cursor.token.kind != "INT":
                cursor.fail("the number of registers")
            number = constants.literal(cursor)
            assert isinstance(number, Int)
            count = number.value
            if count > 2**31:
                cursor.fail_at(token.start, f"{count} registers cannot be declared")
            cursor.expect(">", "the number of registers")
        found.append((token.text, count, token.start))
        if not cursor.take(","):
            cursor.expect(";", f"the declaration of '{token.text}'")
            return found
