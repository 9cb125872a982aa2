"""One table of ``ops.toml`` to an :class:`OpSpec`: types, keys, and what the values must have in common.

A walk over the fields of the msgspec structs in ``spec``: it knows the path of what it reads and the keys that are
expected there, which msgspec's own decoding does not tell. msgspec converts the values at the leaves.

May import ``dtypes``, ``errors`` and, in this room, all but ``load``.
"""

from __future__ import annotations

import functools
import operator
import re
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from teenycli.dtypes import DTYPES, DType
from teenycli.errors import TeenyError, did_you_mean
from teenycli.expressions import Expression, constant, parse
from teenycli.manifest.arguments import parse_argument
from teenycli.manifest.rules import Rules
from teenycli.manifest.spec import ArgSpec, BackwardSpec, OpSpec, Origin, PipelineSpec, join, quote

_OP_KEYS = tuple(f.name for f in structs.fields(OpSpec) if f.name not in OpSpec.internal)


def decode_op(name: str, table: object, folder: Path, origin: Origin) -> OpSpec:
    """The op that ``table`` describes.

    Raises TeenyError, placed at its key: ``unknown-key``, ``missing-key``, ``wrong-type``, ``misplaced-key``,
    ``bad-value``, ``bad-name``, ``name-twice``, ``unknown-kind``, ``bad-argument``, ``expression-syntax``.
    """
    decoder = _Decoder(origin)
    decoder.check_misplaced(table)
    spec: OpSpec = decoder.struct(OpSpec, table, "", {"name": name, "folder": folder, "origin": origin})
    if spec.backward is not None and isinstance(table, dict):
        spec = structs.replace(spec, backward=_completed(spec, spec.backward, "consts" in table["backward"]))
    Rules(spec).check()
    return spec


def decode_pipeline(name: str, table: object, origin: Origin) -> PipelineSpec:
    """The pipeline that ``table`` describes. Whether its ops are there is for those who run it to see.

    Raises TeenyError, placed at its key: ``unknown-key``, ``missing-key``, ``wrong-type``, ``bad-value``.
    """
    spec: PipelineSpec = _Decoder(origin).struct(PipelineSpec, table, "", {"name": name, "origin": origin})
    if not spec.ops:
        raise TeenyError("bad-value", "a pipeline of no ops", where=origin.place("ops"))
    return spec


def _completed(spec: OpSpec, backward: BackwardSpec, own_consts: bool) -> BackwardSpec:
    """The backward of an op with what it takes from the forward."""
    return structs.replace(
        backward,
        name=f"{spec.name}.backward",
        folder=spec.folder,
        origin=Origin(spec.origin.file, join(spec.origin.prefix, "backward"), spec.origin.lines),
        ptx=backward.ptx or spec.ptx,
        consts=backward.consts if own_consts else spec.consts,
    )


class _Decoder:
    """Decodes by type; ``origin`` places the errors."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin

    def error(self, id: str, path: str, message: str, hint: str | None = None) -> TeenyError:
        return TeenyError(id, message, where=self.origin.place(path), hint=hint)

    def value(self, type_: Any, value: object, path: str) -> Any:
        base = _without_none(type_)
        reader = _READERS.get(base)
        if reader is not None:
            try:
                return reader(value)
            except TeenyError as error:
                raise error.at(self.origin.place(path)) from None
        if isinstance(base, type) and issubclass(base, msgspec.Struct):
            return self.struct(base, value, path, {})
        container: Any = typing.get_origin(base)
        if container is tuple:
            return self.sequence(typing.get_args(base)[0], value, path)
        if container is Mapping:
            item = typing.get_args(base)[1]
            table = self.table(value, path)
            return {key: self.value(item, each, join(path, quote(key))) for key, each in table.items()}
        return self.leaf(base, value, path)

    def leaf(self, type_: Any, value: object, path: str) -> Any:
        if type_ is object:
            return value
        try:
            return msgspec.convert(value, type_, strict=True)
        except msgspec.ValidationError:
            raise self.error("wrong-type", path, f"expected {_words(type_)}, got {_words_for(value)}") from None

    def table(self, value: object, path: str) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        raise self.error("wrong-type", path, f"expected a table, got {_words_for(value)}")

    def sequence(self, type_: Any, value: object, path: str) -> tuple[Any, ...]:
        if type_ is Expression and isinstance(value, int | str):
            return (self.value(type_, value, path),)
        if not isinstance(value, list):
            raise self.error("wrong-type", path, f"expected a list, got {_words_for(value)}")
        return tuple(self.value(type_, each, f"{path}[{k}]") for k, each in enumerate(value))

    def struct(self, type_: Any, value: object, path: str, given: Mapping[str, object]) -> Any:
        """``value`` as the struct ``type_``; ``given`` are fields that are no keys."""
        shorthand: str | None = getattr(type_, "shorthand", None)
        if shorthand is not None and not isinstance(value, dict):
            value = {shorthand: self.leaf(int, value, path)}
        table = self.table(value, path)
        hidden: frozenset[str] = getattr(type_, "internal", frozenset())
        fields = {name: info for name, info in _fields(type_).items() if name not in hidden}
        if "block" in fields and table.get("block") == "ptx":
            table = {key: each for key, each in table.items() if key != "block"}
        for key in table:
            if key not in fields:
                raise self.unknown_key(key, path, fields)
        # What is wrong deeper down comes first: a key that is missing may have landed there.
        values = {key: self.value(fields[key].type, each, join(path, key)) for key, each in table.items()}
        for key, info in fields.items():
            if info.required and key not in table:
                known = f"there are {', '.join(table)}" if table else "the table is empty"
                raise self.error("missing-key", path, f"'{key}' is missing: {known}", did_you_mean(key, table))
        return type_(**values, **given)

    def unknown_key(self, key: str, path: str, known: Mapping[str, object]) -> TeenyError:
        hint = did_you_mean(key, known)
        if path and key in _OP_KEYS:
            header = self.origin.name(path.partition("[")[0])
            hint = f"'{key}' is a key of the op: write it above [{header}], since it lands in the table before it"
        elif hint is None:
            hint = f"the keys here are {', '.join(known)}"
        return self.error("unknown-key", join(path, quote(key)), f"unknown key '{key:.80}'", hint)

    def check_misplaced(self, op: object) -> None:
        """Keys of the op below ``[op.X.dims]`` or another table of free names, where TOML puts them in that table."""
        if not isinstance(op, dict):
            return
        used = _WORD.findall(repr({key: value for key, value in op.items() if key not in _FREE_TABLES}))
        for path in _FREE_TABLES:
            table = op.get(path)
            if not isinstance(table, dict):
                continue
            for key in table:
                if key in _OP_KEYS and key not in op and (key not in used or not _plain(table[key])):
                    raise self.error(
                        "misplaced-key", f"{path}.{key}", f"'{key}' is a key of the op, and stands in its {path}",
                        f"write it above [{self.origin.name(path)}]: TOML puts what follows a header into its table",
                    )  # fmt: skip


#: Tables whose keys are the user's own names.
_FREE_TABLES = ("dims", "consts", "scalars", "globals", "ignore")
_WORD = re.compile(r"\w+")


@functools.cache
def _fields(type_: Any) -> dict[str, structs.FieldInfo]:
    """The fields of a struct by name."""
    return {info.name: info for info in structs.fields(type_)}


def _plain(value: object) -> bool:
    """Whether a dim, const or scalar could be this."""
    return isinstance(value, int | float | dict)


def _without_none(type_: Any) -> Any:
    """``X`` for ``X | None``."""
    if typing.get_origin(type_) in (types.UnionType, typing.Union):
        rest = tuple(arg for arg in typing.get_args(type_) if arg is not type(None))
        return functools.reduce(operator.or_, rest)
    return type_


_TYPE_WORDS: Mapping[type, str] = {
    str: "a string", int: "an integer", float: "a number", bool: "true or false", dict: "a table", list: "a list",
    type(None): "nothing",
}  # fmt: skip


def _words(type_: Any) -> str:
    parts = typing.get_args(type_) or (type_,)
    return " or ".join(_TYPE_WORDS.get(part, getattr(part, "__name__", str(part))) for part in parts)


def _words_for(value: object) -> str:
    word = _TYPE_WORDS.get(type(value), f"a {type(value).__name__}")
    return f"{word} ({value!r:.60})" if isinstance(value, str | int | float) else word


def _wrong_type(wanted: str, value: object) -> TeenyError:
    return TeenyError("wrong-type", f"expected {wanted}, got {_words_for(value)}")


def _read_expression(value: object) -> Expression:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise _wrong_type("an integer or an expression", value)
    return constant(value) if isinstance(value, int) else parse(value)


def read_dtype(value: object) -> DType:
    """The element type named ``value``. Raises TeenyError ``unknown-dtype``, ``wrong-type``."""
    if not isinstance(value, str):
        raise _wrong_type("an element type", value)
    dtype = DTYPES.get(value)
    if dtype is None:
        near = did_you_mean(value, DTYPES) or f"there are {', '.join(DTYPES)}"
        raise TeenyError("unknown-dtype", f"'{value}' is no element type", hint=near)
    return dtype


def _read_argument(value: object) -> ArgSpec:
    if not isinstance(value, str):
        raise _wrong_type("a string 'KIND EXPR'", value)
    return parse_argument(value)


_READERS: Mapping[Any, Callable[[object], Any]] = {
    Expression: _read_expression, ArgSpec: _read_argument, DType: read_dtype,
}  # fmt: skip
