"""The outline of a module: everything but what is inside bodies (PTX ISA, "PTX Directives").

Bodies are passed over by text search, so that a file of many megabytes costs no more than finding its braces.

May import ``ptx.lexer``, ``ptx.declarations`` and ``ptx.model``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from teenycli.ptx import constants
from teenycli.ptx.declarations import LINKING, SPACES, attributes, function_header, pragma, variables
from teenycli.ptx.lexer import Cursor
from teenycli.ptx.model import BodyText, Function, Module, Source, Space, Variable

_DIRECTIVES = (
    ".version", ".target", ".address_size", ".entry", ".func", ".alias", ".file", ".section", ".pragma",
    *LINKING, *(name for name in SPACES if name not in (".reg", ".local", ".param")), ".language",
)  # fmt: skip
_TARGET = re.compile(r"(sm|compute)_\d{2,3}[af]?")
_TARGET_OPTIONS = ("debug", "texmode_unified", "texmode_independent", "map_f64_to_f32")
#: A string, a comment, or a brace: what matters when braces are paired.
_BRACES = r'"[^"\n]*"|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|[{}]'


class _Outline:
    """The state of one pass over module scope."""

    def __init__(self, source: Source) -> None:
        self.cursor = Cursor(source)
        self.has_block_comment = "/*" in source.text
        self.version: tuple[int, int] | None = None
        self.targets: list[str] = []
        self.address_size = 32
        self.sized = False
        self.functions: list[Function] = []
        self.variables: list[Variable] = []
        self.files: dict[int, str] = {}
        self.aliases: dict[str, str] = {}
        self.sections: list[BodyText] = []
        #: Names that have a definition, and may have no other.
        self.defined: set[str] = set()

    def read(self) -> Module:
        cursor = self.cursor
        if cursor.token.kind == "END":
            cursor.fail("'.version'")
        while cursor.token.kind != "END":
            if cursor.at("@@"):
                self._skip_line()
                continue
            if self.version is None and not cursor.at(".version"):
                cursor.fail("'.version', which comes first in PTX")
            if self.version is not None and not self.targets and not cursor.at(".target"):
                cursor.fail("'.target', which follows '.version'")
            self._statement()
        if self.version is None or not self.targets:
            cursor.fail("'.target'" if self.version else "'.version'")
        return Module(
            cursor.source, self.version, self.targets[0], tuple(self.targets[1:]), self.address_size,
            tuple(self.functions), tuple(self.variables), self.files, self.aliases, tuple(self.sections),
        )  # fmt: skip

    def _statement(self) -> None:
        cursor = self.cursor
        linking = cursor.advance().text[1:] if cursor.at(*LINKING) else None
        token = cursor.token
        if token.kind != "DOT":
            cursor.fail("a directive")
        if token.text in (".entry", ".func"):
            self._function(linking)
        elif token.text in SPACES and token.text not in (".reg", ".local", ".param"):
            cursor.advance()
            self._variables(SPACES[token.text], linking)
        elif linking is not None:
            if not cursor.take(".attribute"):
                cursor.fail(f"a function or a variable after '.{linking}'")
            attributes(cursor)
            self._function(linking)
        else:
            handler = getattr(self, "_on_" + token.text[1:], None) if token.text in _DIRECTIVES else None
            if handler is None:
                cursor.fail_unknown("directive", token, _DIRECTIVES)
            cursor.advance()
            handler()

    def _variables(self, space: Space, linking: str | None) -> None:
        start = self.cursor.token.start
        found = variables(self.cursor, space, linking)
        for variable in found:
            if linking != "extern" and None in variable.dims:
                self.cursor.fail_at(
                    start, f"'{variable.name}' has no size", f"give it a size, or make it .extern .{space}"
                )
            if variable.name in self.defined and linking not in ("extern", "common", "weak"):
                self.cursor.fail_at(start, f"'{variable.name}' is declared twice", id="declared-twice")
            if linking != "extern":
                self.defined.add(variable.name)
        self.variables += found

    def _on_version(self) -> None:
        token = self.cursor.expect_kind("FLOAT", "a version such as 8.0")
        major, _, minor = token.text.partition(".")
        if not major.isdigit() or not minor.isdigit() or len(token.text) > 6:
            self.cursor.fail_at(token.start, f"expected a version such as 8.0, found '{token.text}'")
        if self.version is not None:
            self.cursor.fail_at(token.start, "'.version' stands once, at the start")
        self.version = int(major), int(minor)

    def _on_target(self) -> None:
        cursor = self.cursor
        while True:
            token = cursor.expect_kind("ID", "a target such as sm_80")
            if not _TARGET.fullmatch(token.text) and token.text not in _TARGET_OPTIONS:
                cursor.fail_unknown("target", token, (*_TARGET_OPTIONS, "sm_80", "sm_90", "sm_100", "sm_120"))
            self.targets.append(token.text)
            if not cursor.take(","):
                break
        if not _TARGET.fullmatch(self.targets[0]):
            cursor.fail_at(token.start, f"'.target' names no architecture, only '{token.text}'")

    def _on_address_size(self) -> None:
        start = self.cursor.token.start
        size = constants.integer(self.cursor, "the address size")
        if self.functions or self.variables or self.sized:
            self.cursor.fail_at(start, "'.address_size' stands once, before every function and variable")
        self.sized = True
        if size not in (32, 64):
            self.cursor.fail_at(start, f"the address size is 32 or 64, not {size}")
        self.address_size = size

    def _on_file(self) -> None:
        start = self.cursor.token.start
        index, name = file_directive(self.cursor)
        if index in self.files:
            self.cursor.fail_at(start, f"file {index} is declared twice", id="declared-twice")
        self.files[index] = name

    def _on_pragma(self) -> None:
        pragma(self.cursor)

    def _on_alias(self) -> None:
        cursor = self.cursor
        name = cursor.expect_kind("ID", "the name of the alias").text
        cursor.expect(",", "the alias")
        self.aliases[name] = cursor.expect_kind("ID", "the name of the function it stands for").text
        cursor.expect(";", "the aliased function")

    def _on_language(self) -> None:
        self._skip_line()

    def _on_section(self) -> None:
        cursor = self.cursor
        if cursor.token.kind not in ("ID", "DOT") or cursor.token.text in (*_DIRECTIVES, *SPACES, ".loc"):
            cursor.fail("the name of the section")
        cursor.advance()
        start = cursor.token.start
        if not cursor.at("{"):
            cursor.fail("'{' after the name of the section")
        line = cursor.position(start).line
        end = self._body_end(start, "the section")
        self.sections.append(BodyText(start, end, line))
        cursor.jump(end)

    def _function(self, linking: str | None) -> None:
        cursor = self.cursor
        is_entry = cursor.advance().text == ".entry"
        function = function_header(cursor, is_entry, linking)
        if cursor.at("{"):
            start = cursor.token.start
            if function.name in self.defined:
                cursor.fail_at(start, f"'{function.name}' is defined twice", id="declared-twice")
            self.defined.add(function.name)
            line = cursor.position(start).line
            end = self._body_end(start, f"the body of '{function.name}'")
            function = replace(function, body=BodyText(start, end, line))
            cursor.jump(end)
        elif cursor.token.kind == "DOT":
            pass  # ptxas lets a declaration go without its ";"
        else:
            cursor.expect(";", f"the header of '{function.name}'")
        self.functions.append(function)

    def _skip_line(self) -> None:
        end = self.cursor.text.find("\n", self.cursor.token.start)
        self.cursor.jump(len(self.cursor.text) if end < 0 else end)

    def _body_end(self, start: int, what: str) -> int:
        end = find_body_end(self.cursor.text, start, self.has_block_comment)
        if end < 0:
            self.cursor.fail_at(start, f"the end of the file comes before the '}}' of {what}")
        return end


def file_directive(cursor: Cursor) -> tuple[int, str]:
    """What follows ``.file``: index, name, and perhaps a time stamp and a size."""
    index = constants.integer(cursor, "the index of the file")
    name = cursor.expect_kind("STRING", "the name of the file").text.strip('"')
    while cursor.take(","):
        constants.integer(cursor, "a number of .file")
    return index, name


def find_body_end(text: str, start: int, has_block_comment: bool) -> int:
    """The offset after the ``}`` that closes the ``{`` at ``start``, or -1.

    ``has_block_comment`` says whether ``/*`` occurs anywhere in ``text``: without one, only line comments and
    strings on a brace's own line can hide it, and the search is for braces alone.
    """
    if has_block_comment:
        return _slow_body_end(text, start)
    depth, at = 1, start + 1
    opening = text.find("{", at)
    looked = text.rfind("\n", 0, at) + 1  # to where this line has been searched for what hides a brace
    while True:
        closing = text.find("}", at)
        if closing < 0:
            return -1
        if opening < at and opening >= 0:
            opening = text.find("{", at)
        brace = opening if 0 <= opening < closing else closing
        looked = max(looked, text.rfind("\n", looked, brace) + 1)
        if text.find('"', looked, brace) >= 0:
            return _slow_body_end(text, start)
        if text.find("//", looked, brace) >= 0:
            at = text.find("\n", brace)
            if at < 0:
                return -1
            looked = at
            continue
        at = looked = brace + 1
        depth += 1 if brace == opening else -1
        if depth == 0:
            return at


def _slow_body_end(text: str, start: int) -> int:
    depth = 0
    for match in re.compile(_BRACES).finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.end()
    return -1


@lru_cache(maxsize=8)
def outline(source: Source) -> Module:
    """The outline of a PTX text. Raises TeenyError "syntax" with file, line, column and what was expected."""
    module = _Outline(source).read()
    # Machine code runs on fewer GPUs than PTX for the same architecture.
    return module if source.image is None else replace(module, target=module.target.replace("sm_", "code_"))
