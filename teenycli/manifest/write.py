"""An op as TOML text, with a comment behind each line that says where it comes from: what ``teeny init`` prints.

May import ``errors`` and, in this room, ``gaps``, ``spec`` and ``toml``.
"""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from teenycli.errors import Place, TeenyError
from teenycli.manifest.spec import quote
from teenycli.manifest.toml import read_toml

#: The column in which comments begin, where the line leaves room.
_COLUMN = 44


class Noted(Struct, frozen=True):
    """A value as TOML spells it, and why it is that, in a few words."""

    text: str
    why: str = ""


class OpDraft(Struct, frozen=True):
    """An op to write: keys in order, each a value or a list of values, a line each; ``dims`` come last."""

    name: str
    about: tuple[str, ...]
    keys: tuple[tuple[str, Noted | tuple[Noted, ...]], ...]
    dims: tuple[tuple[str, Noted], ...] = ()


def string(text: str) -> str:
    """``text`` as a TOML string. JSON's spelling is TOML's, but for DEL."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def op_text(draft: OpDraft) -> str:
    """The tables of an op, ending with a newline."""
    lines = [f"# {_comment(line)}" for line in draft.about]
    lines.append(f"[op.{quote_key(draft.name)}]")
    for key, value in draft.keys:
        if isinstance(value, Noted):
            lines.append(_line(f"{key} = {value.text}", value.why))
        else:
            lines.append(f"{key} = [")
            lines += [_line(f"    {item.text},", item.why) for item in value]
            lines.append("]")
    if draft.dims:
        lines.append(f"[op.{quote_key(draft.name)}.dims]")
        lines += [_line(f"{name} = {value.text}", value.why) for name, value in draft.dims]
    return "\n".join(lines) + "\n"


def quote_key(name: str) -> str:
    """One part of a key, quoted and escaped where TOML wants it."""
    return name if quote(name) == name else string(name)


def _line(text: str, why: str) -> str:
    return f"{text:<{_COLUMN - 2}}  # {_comment(why)}" if why else text


def _comment(text: str) -> str:
    """``text`` without what a comment may not hold."""
    return "".join(char if char.isprintable() else "?" for char in text)


def append_ops(path: Path, drafts: Sequence[OpDraft]) -> None:
    """Write ``drafts`` behind what stands in the manifest ``path``, or into a new file; all of it or nothing.

    Raises TeenyError ``op-exists`` for an op that is there already, ``unwritable-path``, and what reading raises.
    """
    before: str = ""
    there: object = None
    if path.exists():
        before, tables = read_toml(path)
        there = tables.get("op")
    for draft in drafts:
        if isinstance(there, dict) and draft.name in there:
            raise TeenyError(
                "op-exists", f"{path} has an op '{draft.name}' already, which is left as it is",
                where=Place(str(path), key=f"op.{quote_key(draft.name)}"),
                hint="choose another name with --name, or take the old one out",
            )  # fmt: skip
    if before and not before.endswith("\n"):
        before += "\n"
    text = "\n".join([*([before] if before else []), *map(op_text, drafts)])
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"no table [op.NAME] can stand behind what {path} holds: {error}"
        raise TeenyError("unwritable-path", message, where=Place(str(path))) from None
    _replace(path, text)


def _replace(path: Path, text: str) -> None:
    """Write beside the file, then rename, so that what is there is whole."""
    path = path.resolve() if path.is_symlink() else path
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
            Path(beside).chmod(mode)
            Path(beside).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(beside).unlink()
            raise
    except OSError as error:
        reason = error.strerror or error
        raise TeenyError("unwritable-path", f"cannot write {path}: {reason}", where=Place(str(path))) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
