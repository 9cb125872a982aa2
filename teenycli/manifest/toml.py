"""TOML text to tables, with a hint where TOML itself is the trap, and the line of every key.

May import ``errors`` and, in this room, ``spec`` (for paths of keys).
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from teenycli.errors import Place, TeenyError
from teenycli.manifest.spec import join, quote

#: Largest manifest, in bytes.
SIZE_LIMIT = 1 << 20

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
#: tomllib's work grows with the square of a dotted key's parts.
_LONG_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){32}""")
_PART = re.compile(r"""\s*(?:"([^"\n]*)"|'([^'\n]*)'|([\w-]+))\s*""")
_KEY_TUPLE = re.compile(r"\(('[^()]*)\)")


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text and the tables of the TOML file ``path``.

    Raises TeenyError ``file-not-found``, ``not-a-file``, ``unreadable``, ``toml-syntax`` with line and column.
    """
    where = Place(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        raise TeenyError("file-not-found", "there is no such file", where=where) from None
    except IsADirectoryError:
        raise TeenyError("not-a-file", "this is a directory, not a file", where=where) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TeenyError("unreadable", f"cannot read the file: {reason}", where=where) from None
    if len(data) > SIZE_LIMIT:
        raise TeenyError("unreadable", f"the file is larger than {SIZE_LIMIT >> 20} MiB", where=where)
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        where = Place(str(path), line)
        raise TeenyError("toml-syntax", "this is not UTF-8 text, as TOML must be", where=where) from None
    return text, _parse(text, str(path))


def _parse(text: str, file: str) -> dict[str, Any]:
    long_key = _LONG_KEY.search(text)
    if long_key is not None:
        where = Place(file, text.count("\n", 0, long_key.start()) + 1)
        raise TeenyError("toml-syntax", "a key of more than 32 parts", where=where)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        at = _AT.search(said)
        message = _KEY_TUPLE.sub(_spell_key, said[: at.start()] if at else said)
        lines = text.split("\n")
        line, column = (int(at[1]), int(at[2])) if at and at[1] else (len(lines), 0)
        source = lines[line - 1] if line <= len(lines) else ""
        where = Place(file, line, column, text=source)
        hint = _hint(message, source, column)
        raise TeenyError("toml-syntax", message[:1].lower() + message[1:], where=where, hint=hint) from None
    except RecursionError:
        raise TeenyError("toml-syntax", "the values are nested too deeply", where=Place(file)) from None
    except ValueError:  # from int(), beyond 4,300 digits
        raise _too_large(Place(file)) from None
    _check_integers(tables, "", file)
    return tables


def _check_integers(value: object, path: str, file: str) -> None:
    """TOML's integers have 64 bits; Python's have no end, and cannot even be printed when they are long."""
    if isinstance(value, dict):
        for key, each in value.items():
            _check_integers(each, join(path, quote(key)), file)
    elif isinstance(value, list):
        for k, each in enumerate(value):
            _check_integers(each, f"{path}[{k}]", file)
    elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise _too_large(Place(file, key=path))


def _too_large(where: Place) -> TeenyError:
    return TeenyError("toml-syntax", "an integer of more than 64 bits", where=where)


def _spell_key(key: re.Match[str]) -> str:
    """``('op', 'x')`` as ``op.x``."""
    return ".".join(part.strip(" '") for part in key[1].split(",") if part.strip())


def _hint(message: str, line: str, column: int) -> str | None:
    before, rest = line[: max(column - 1, 0)], line[max(column - 1, 0) :]
    if before.count("{") > before.count("}") and not rest.strip().strip("#"):
        return "an inline table { … } stays on one line, with no comma after its last key"
    if "inline table" in message.lower():
        return "an inline table { … } stays on one line"
    if message.startswith("Invalid value") and re.match(r"[A-Za-z_(]", rest):
        return 'texts and expressions stand in quotes: "cdiv(N, 128)"'
    if message.startswith("Unclosed array"):
        return "a comma between the values, and ']' after the last"
    return None


def key_lines(text: str) -> dict[str, int]:
    """Line numbers, from 1, of tables and of the keys that begin a line, by key path (``op.softmax.grid``).

    A table of an array (``[[op.x.inputs]]``) is ``op.x.inputs[0]`` and so on. What is inside a value has no entry.
    """
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    closing: str | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if closing is not None:
            if closing in line:
                closing = None
            continue
        stripped = line.strip()
        if stripped.startswith("["):
            array = stripped.startswith("[[")
            path = _path(stripped[1 + array :], "]")
            if path is None:
                continue
            table = path
            if array:
                table = join(path, f"[{counts.get(path, 0)}]")
                counts[path] = counts.get(path, 0) + 1
            lines.setdefault(table, number)
        else:
            path = _path(stripped, "=")
            if path is not None:
                lines.setdefault(join(table, path), number)
        closing = next((q for q in ('"""', "'''") if line.count(q) % 2), None)
    return lines


def _path(text: str, end: str) -> str | None:
    """The key path at the start of ``text``, when ``end`` follows it."""
    at, parts = 0, []
    while match := _PART.match(text, at):
        parts.append(quote(next(part for part in match.groups() if part is not None)))
        at = match.end()
        if text[at : at + 1] != ".":
            break
        at += 1
    return join(*parts) if parts and text.startswith(end, at) else None
