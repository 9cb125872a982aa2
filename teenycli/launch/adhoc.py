"""A kernel described on the command line, with no manifest: the same :class:`OpSpec`, so the same way to a plan.

``-a NAME=SPEC`` in the order of the kernel's parameters, SPEC being::

    i32:1024  f32:0.5  bool:1         a number of every scalar kind
    f32[1024]  f16[64,32]:INIT        a buffer; extents are numbers or expressions over other labels
    null                              a null pointer
    alias:x                           the buffer x again
    bytes:@struct.bin  bytes:00ff10   a struct by value, as bytes
    {ptr x, i32 1024, f32 0.5}        a struct by value, member by member

May import ``errors``, ``manifest`` and, in this room, ``values``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from teenycli.dtypes import DTYPES
from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.expressions import Expression, parse
from teenycli.launch.values import Number, parse_integer, parse_number
from teenycli.manifest.arguments import SCALAR_KINDS, parse_argument, split_top
from teenycli.manifest.decode import read_dtype
from teenycli.manifest.rules import NAME_RULE, Rules, is_name
from teenycli.manifest.spec import ArgSpec, BufferSpec, OpSpec, Origin

BUFFER = re.compile(r"(?P<dtype>\w+)\[(?P<shape>.*?)\](?::(?P<init>.*))?", re.DOTALL)
_OPTIONS = ("entry", "grid", "block", "cluster", "shared", "hidden", "cooperative")
_FORMS = "i32:1024, f32[1024], f32[64,32]:INIT, null, alias:x, bytes:@FILE or {ptr x, i32 1024}"


class AdhocOptions(Struct, frozen=True):
    """The options as they stand on the command line: ``--ptx``, ``-a``, ``--entry``, ``--grid`` and so on.

    ``grid``, ``block`` and ``cluster`` are ``X[,Y[,Z]]``. None is an option not given; ``cooperative`` is a flag.
    ``buffers`` are further ``NAME=SPEC`` that no argument is, for structs to point to.
    """

    ptx: str
    args: Sequence[str] = ()
    entry: str | None = None
    grid: str | None = None
    block: str | None = None
    cluster: str | None = None
    shared: str | None = None
    hidden: int | None = None
    cooperative: bool = False
    buffers: Sequence[str] = ()


def adhoc_spec(options: AdhocOptions) -> OpSpec:
    """The op that the options describe. Buffers are inputs, zeroed unless they say otherwise; scalars are named by
    their labels. Paths are relative to the working folder. The op is called as its PTX file, without the suffix.

    Raises TeenyError, placed at its option: ``bad-option``, ``missing-option``, ``bad-argument``, ``unknown-kind``,
    ``unknown-dtype``, ``bad-name``, ``name-twice``, ``expression-syntax``, ``bad-value``.
    """
    if options.grid is None:
        raise TeenyError("missing-option", "--grid is missing: how many CTAs are launched", where=Place(key="--grid"),
                         hint="give --grid X[,Y[,Z]]")  # fmt: skip
    places = {key: f"--{key}" for key in _OPTIONS} | {"ptx": "--ptx"}
    arguments = _Arguments(places)
    for text in options.buffers:
        arguments.declare(text)
    for text in options.args:
        arguments.add(text)
    spec = OpSpec(
        name=Path(options.ptx).stem if options.ptx != "-" else "stdin",
        origin=Origin(options=places),
        ptx=options.ptx,
        entry=options.entry,
        inputs=tuple(arguments.buffers),
        scalars=arguments.scalars,
        args=tuple(arguments.args),
        grid=_extents("--grid", options.grid),
        block=None if options.block in (None, "ptx") else _extents("--block", options.block or ""),
        cluster=None if options.cluster is None else _extents("--cluster", options.cluster),
        shared=None if options.shared is None else _expression("--shared", options.shared),
        hidden=options.hidden,
        cooperative=True if options.cooperative else None,
    )
    Rules(spec, reserved=frozenset()).check()
    return spec


def _expression(option: str, text: str) -> Expression:
    try:
        # A number first, since Python's syntax refuses 007.
        number = parse_integer(text)
        return parse(text if number is None else str(number))
    except TeenyError as error:
        raise error.at(Place(key=option)) from None


def _extents(option: str, text: str) -> tuple[Expression, ...]:
    try:
        parts = list(split_top(text))
    except TeenyError as error:
        raise error.at(Place(key=option)) from None
    return tuple(_expression(option, part) for part in parts)


class _Arguments(Struct):
    """What ``-a`` adds up to; ``places`` learns which option stands behind which key of the op."""

    places: dict[str, str]
    args: list[ArgSpec] = field(default_factory=list)
    buffers: list[BufferSpec] = field(default_factory=list)
    scalars: dict[str, Number] = field(default_factory=dict)

    def declare(self, text: str) -> None:
        """A buffer that is no argument of its own."""
        label, _, spec = text.partition("=")
        match = BUFFER.fullmatch(spec)
        assert match is not None, text
        try:
            self._buffer(label, match["dtype"], match["shape"], match["init"])
        except TeenyError as error:
            raise error.at(Place(key=f"--input {label}")) from None

    def add(self, text: str) -> None:
        label, equals, spec = text.partition("=")
        label, spec = label.strip(), spec.strip()
        where = Place(key=f"-a {label}" if equals and label else "-a")
        if not equals or not label or not spec:
            raise TeenyError("bad-option", f"'{text}' is not NAME=SPEC", where=where, hint=f"SPEC is {_FORMS}")
        if not is_name(label):
            raise TeenyError("bad-name", f"'{label[:80]}' cannot be a name", where=where, hint=NAME_RULE)
        if label in (arg.label for arg in self.args):
            raise TeenyError("name-twice", f"the name '{label}' is taken by another -a", where=where)
        self.places[f"args[{len(self.args)}]"] = f"-a {label}"
        try:
            self.args.append(self._argument(label, spec))
        except TeenyError as error:
            raise error.at(where) from None

    def _argument(self, label: str, spec: str) -> ArgSpec:
        if spec.startswith("{"):
            return parse_argument(spec, label)
        if spec == "null":
            return parse_argument("ptr null", label)
        buffer = BUFFER.fullmatch(spec)
        if buffer is not None:
            return self._buffer(label, buffer["dtype"], buffer["shape"], buffer["init"])
        kind, colon, rest = spec.partition(":")
        if colon and kind == "alias":
            return parse_argument(f"ptr {rest}", label)
        if colon and kind == "bytes":
            return parse_argument(f"bytes {rest}", label)
        if colon and kind in SCALAR_KINDS:
            return self._scalar(label, kind, rest)
        raise _unknown(label, kind, colon, spec)

    def _buffer(self, label: str, dtype: str, shape: str, init: str | None) -> ArgSpec:
        if init == "":
            raise TeenyError("bad-argument", "the initialiser is empty", hint="leave the ':' out for zeros")
        extents = _extents(f"-a {label}", shape) if shape.strip() else ()
        self.places[f"inputs[{len(self.buffers)}]"] = f"-a {label}"
        self.buffers.append(BufferSpec(name=label, shape=extents, dtype=read_dtype(dtype), init=init or "zeros"))
        return parse_argument(f"ptr {label}", label)

    def _scalar(self, label: str, kind: str, text: str) -> ArgSpec:
        value = parse_number(text)
        if value is None:
            raise TeenyError("bad-argument", f"'{text}' is no number", hint=f"write {label}={kind}:NUMBER")
        self.places[f"scalars.{label}"] = f"-a {label}"
        self.scalars[label] = value
        return parse_argument(f"{kind} {label}", label)


def _unknown(label: str, kind: str, colon: str, spec: str) -> TeenyError:
    known = (*SCALAR_KINDS, "alias", "bytes") if colon else ("null", *SCALAR_KINDS)
    if parse_number(spec) is not None:
        hint: str | None = f"say its type: {label}=i32:{spec}"
    elif kind in DTYPES and not colon:
        hint = f"a number is {label}={kind}:VALUE, a buffer {label}={kind}[SHAPE]"
    else:
        hint = did_you_mean(kind, known) or f"SPEC is {_FORMS}"
    return TeenyError("unknown-kind", f"'{spec[:80]}' is no argument", hint=hint)
