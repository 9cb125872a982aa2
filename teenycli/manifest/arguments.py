"""Kernel arguments as the manifest writes them: ``ptr x``, ``i32 N * 2``, ``{ptr x, i32 N}``, ``bytes @file.bin``.

May import ``dtypes``, ``errors`` and, in this room, ``expressions`` and ``spec``.
"""

from __future__ import annotations

from collections.abc import Iterator

from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError, did_you_mean
from teenycli.expressions import DEPTH_LIMIT, TEXT_LIMIT, parse
from teenycli.manifest.spec import ArgSpec

#: Kinds of one number. The 8-bit floats are element types only.
SCALAR_KINDS = tuple(name for name in DTYPES if name not in ("e4m3", "e5m2", "ptr"))
KINDS = ("ptr", *SCALAR_KINDS, "bytes", "tensormap")

_OPEN, _CLOSE = "([{", ")]}"


def parse_argument(text: str, label: str | None = None) -> ArgSpec:
    """The argument that ``text`` spells; ``label`` is the user's name for it, else the text after its kind.

    Raises TeenyError: ``bad-argument``, ``unknown-kind``, ``expression-syntax``.
    """
    return _argument(text, label, 0)


def _argument(text: str, label: str | None, depth: int) -> ArgSpec:
    text = text.strip()
    if not text:
        raise TeenyError("bad-argument", "the argument is empty", hint="write KIND EXPR, such as 'ptr x' or 'i32 N'")
    if text.startswith("{"):
        return _struct(text, label, depth)
    kind, rest = (*text.split(maxsplit=1), "")[:2]
    if kind not in KINDS:
        raise _unknown_kind(kind, text)
    if not rest:
        raise TeenyError("bad-argument", f"'{text}' has a kind and no value", hint=f"write '{kind} EXPR'")
    value = None if kind in ("bytes", "tensormap") else parse(rest)
    return ArgSpec(kind=kind, text=rest, value=value, label=label or rest)


def _unknown_kind(kind: str, text: str) -> TeenyError:
    c_names = {"int": "i32", "uint": "u32", "long": "i64", "float": "f32", "double": "f64", "half": "f16", "char": "i8",
               "s8": "i8", "s16": "i16", "s32": "i32", "s64": "i64"}  # fmt: skip
    hint = f"did you mean '{c_names[kind]}'?" if kind in c_names else did_you_mean(kind, KINDS)
    if hint is None:
        hint = f"write KIND EXPR; the kinds are {', '.join(KINDS)}, or members in braces"
    return TeenyError("unknown-kind", f"'{kind}' in '{text[:80]}' is no kind of argument", hint=hint)


def _struct(text: str, label: str | None, depth: int) -> ArgSpec:
    if depth > DEPTH_LIMIT // 4 or len(text) > TEXT_LIMIT:
        raise TeenyError("bad-argument", "the struct is too long, or nested too deeply")
    if not text.endswith("}"):
        raise TeenyError("bad-argument", f"'{text}' is a struct without a closing brace", hint="{ptr x, i32 N}")
    members = tuple(_argument(part, None, depth + 1) for part in split_top(text[1:-1]))
    for kind in (member.kind for member in members if member.kind in ("bytes", "tensormap")):
        raise TeenyError("bad-argument", f"'{kind}' cannot be a member of a struct: pass it on its own")
    return ArgSpec(kind="struct", text=text, members=members, label=label or text)


def split_top(text: str) -> Iterator[str]:
    """The parts of ``text`` between commas that stand in no bracket.

    Raises TeenyError ``bad-argument`` when the brackets do not pair.
    """
    depth = start = 0
    for at, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth < 0:
            break
        if character == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if depth != 0:
        raise TeenyError("bad-argument", f"the brackets of '{text}' do not pair")
    yield text[start:]
