"""PTX text without what it says to a debugger: a driver's JIT may refuse DWARF, and needs none to run a kernel.

Section bodies go together with ``.loc``, ``.file`` and the ``debug`` option of ``.target``: a ``.loc`` may name a label
that lies in a section, and ``debug`` without sections is an error (PTX ISA, "Debugging Directives"). Every newline
stays, so that line numbers in the driver's log are those of the file.

May import ``ptx.lexer``.
"""

from __future__ import annotations

import re

from teenycli.ptx.lexer import SKIP

#: Words without which a text has nothing to strip.
_SIGNS = (".loc", ".file", ".section", "debug", "@@DWARF")

_NUMBER = rf"{SKIP}\d++"
_NAME = r"[\w$%.]++"
_STRING = r'"[^"\n]*"?'
#: A comment, closed or open to the end of the text, or a preprocessor's line.
_COMMENT = r"//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|(?<![^\n])#[^\n]*"
_PLACE = rf"{_NUMBER}{_NUMBER}{_NUMBER}"
_FUNCTION_NAME = rf"function_name{SKIP}{_NAME}(?:{SKIP}\+{_NUMBER})?"

#: What is passed over whole, so that nothing inside it counts, and what is struck out. A directive's name ends where
#: no letter, dot or colon follows (``.local`` is no ``.loc``).
_PASSAGE = re.compile(
    rf"(?P<keep>{_COMMENT}|{_STRING})"
    rf"|(?P<target>\.target(?![\w$.:]){SKIP}{_NAME}(?:{SKIP},{SKIP}{_NAME})*+)"
    rf"|\.loc(?![\w$.:]){_PLACE}(?:{SKIP},{SKIP}(?:{_FUNCTION_NAME}|inlined_at{_PLACE}))*+"
    rf"|\.file(?![\w$.:]){_NUMBER}{SKIP}{_STRING}(?:{SKIP},{SKIP}\w++)*+"
    rf'|\.section(?![\w$.:]){SKIP}{_NAME}{SKIP}\{{(?:[^{{}}"/#]++|{_COMMENT}|{_STRING}|[/#])*+\}}'
    r"|@@DWARF[^\n]*",
    re.ASCII,
)
_DEBUG_OPTION = re.compile(rf"{SKIP},{SKIP}debug(?![\w$.])", re.ASCII)


def strip_debug(text: str) -> str:
    """``text`` without debug sections, ``.loc``, ``.file`` and ``debug``; as many lines as before.

    What stands in comments and strings is left alone, and so is a directive that is not well formed: to complain of
    it is the assembler's affair.
    """
    if not any(sign in text for sign in _SIGNS):
        return text
    return _PASSAGE.sub(_without_debug, text)


def _without_debug(match: re.Match[str]) -> str:
    if match["keep"] is not None:
        return match[0]
    if match["target"] is not None:
        return _DEBUG_OPTION.sub(_blank, match[0])
    return _blank(match)


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n") or " "
