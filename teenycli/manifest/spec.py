"""What an op description says: the user's half of the contract, as data.

The fields of these structs are the manifest's keys (``docs`` of each: the reference page of ops.toml), except the
few of :class:`OpSpec` that the loader fills in. A value is kept as the user wrote it: what an expression comes to is
known when a plan is built (``launch.build``), what an initialiser holds when a buffer is filled (``tensors``).

May import ``dtypes``, ``errors`` and, in this room, ``expressions``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as datafield
from pathlib import Path
from typing import ClassVar

import msgspec

from teenycli.dtypes import DTYPES, DType
from teenycli.errors import Place
from teenycli.expressions import Expression

Number = int | float | bool
#: The text of an initialiser, or a number.
Init = str | int | float | bool

#: Names that mean something in expressions by themselves.
RESERVED = frozenset(
    {"i", "inputs", "params", "output", "outputs", "grad_output", "grad_inputs", "grad_params", "null"}
)

#: Keys of ``gradcheck`` that are no dims.
GRADCHECK_KEYS = ("step", "rtol", "atol")

#: What fills a buffer that says no ``init``, by its role in the plan.
DEFAULT_INITS: Mapping[str, str] = {"input": "random", "param": "zeros", "output": "poison", "scratch": "zeros"}

_BARE = re.compile(r"[\w-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a description was written: a table of a manifest, or options of a command line.

    ``prefix`` is the table's path (``op.softmax``). ``lines`` gives the lines of keys by their whole path.
    ``options`` gives command-line options by the key that they stand for.
    """

    file: str | None = None
    prefix: str = ""
    lines: Mapping[str, int] = datafield(default_factory=dict, repr=False)
    options: Mapping[str, str] = datafield(default_factory=dict, repr=False)

    def name(self, key: str) -> str:
        """``op.softmax.grid[0]``, or the option, for a key within the op such as ``grid[0]``; ``""`` is the op."""
        for part in _shortening(key):
            if part in self.options:
                return self.options[part]
        return join(self.prefix, key)

    def place(self, key: str = "") -> Place:
        """The place of a key, with the line of the nearest key around it that has one."""
        name = self.name(key)
        line = next((self.lines[part] for part in _shortening(name) if part in self.lines), 0)
        return Place(self.file, line, key=name or None)


def join(*keys: str) -> str:
    """Key paths one within another: ``op.x`` and ``[0]`` are ``op.x[0]``."""
    path = ""
    for key in filter(None, keys):
        path += key if not path or key.startswith("[") else f".{key}"
    return path


def quote(key: str) -> str:
    """One part of a key path, in quotes where TOML wants them."""
    return key if _BARE.fullmatch(key) else f'"{key}"'


def _shortening(path: str) -> Iterator[str]:
    """``a.b[0]``, ``a.b``, ``a``."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]


class DimSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A dimension: its value, and what the kernel was compiled to take (bounds are inclusive)."""

    #: The field that a bare number stands for.
    shorthand: ClassVar[str] = "value"

    value: int | None = None
    multiple_of: int = 1
    min: int = 1
    max: int | None = None


class BufferSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A buffer. ``shape`` in elements, slowest dimension first; ``dtype`` None is the op's."""

    name: str
    shape: tuple[Expression, ...]
    dtype: DType | None = None
    init: Init | None = None


class OutputSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An output. With ``inout`` it is that input's or param's buffer, and ``shape`` and ``dtype`` are known.

    Its elements in C order make rows of ``row_elems`` (the last dimension when None), which lie ``row_stride`` elements
    apart (``row_elems`` when None).
    """

    name: str
    shape: tuple[Expression, ...] | None = None
    dtype: DType | None = None
    init: Init | None = None
    inout: str | None = None
    row_elems: Expression | None = None
    row_stride: Expression | None = None


class TensorMapSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor map of ``of``, a buffer or ``x + n``. Lists go from the slowest dimension to the fastest, as shapes do.

    ``box`` and ``strides`` are in elements; ``strides`` are of all dimensions but the last (dense rows when None).
    """

    #: What keys of one word may say.
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "swizzle": ("none", "32B", "64B", "128B"), "interleave": ("none", "16B", "32B"), "fill": ("zeros", "nan"),
    }  # fmt: skip

    of: Expression
    box: tuple[Expression, ...]
    strides: tuple[Expression, ...] | None = None
    element_strides: tuple[Expression, ...] | None = None
    swizzle: str = "none"
    interleave: str = "none"
    fill: str = "zeros"

    def expressions(self) -> Iterator[tuple[str, Expression]]:
        """Key and expression of all that a plan evaluates."""
        yield "of", self.of
        for name in ("box", "strides", "element_strides"):
            yield from _keyed(name, getattr(self, name) or ())


class ArgSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel argument, ``KIND EXPR``.

    ``kind`` is ``ptr``, a scalar dtype's name, ``struct``, ``bytes`` or ``tensormap``. ``text`` is what stands after
    it: an expression (then parsed in ``value``), the members of a struct in braces, ``@file.bin`` or hexadecimal
    digits, a tensor map's name. ``label`` is what the user calls it.
    """

    kind: str
    text: str
    value: Expression | None = None
    members: tuple[ArgSpec, ...] = ()
    label: str

    def expressions(self) -> Iterator[Expression]:
        """Every expression in it, those of members too."""
        if self.value is not None:
            yield self.value
        for member in self.members:
            yield from member.expressions()


class KernelSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What launches an entry: of an op, or of its backward. Paths are relative to ``folder``.

    ``reference`` is as written. ``name`` is what tables call it.
    """

    #: Fields that are no keys.
    internal: ClassVar[frozenset[str]] = frozenset({"name", "folder", "origin"})

    name: str = ""
    folder: Path = Path()
    origin: Origin = Origin()

    ptx: str
    entry: str | None = None
    consts: Mapping[str, Number] = msgspec.field(default_factory=dict)
    args: tuple[ArgSpec, ...]
    #: None is "ptx".
    block: tuple[Expression, ...] | None = None
    grid: tuple[Expression, ...] | None = None
    cluster: tuple[Expression, ...] | None = None
    shared: Expression | None = None
    launches: Expression | None = None
    tensormaps: Mapping[str, TensorMapSpec] = msgspec.field(default_factory=dict)
    #: What variables of the PTX hold, by name: an initialiser, with ``DTYPE:`` before it where that is not the PTX's.
    globals: Mapping[str, Init] = msgspec.field(default_factory=dict)
    hidden: int | None = None
    cooperative: bool | None = None
    pdl: bool | None = None
    reference: str | None = None
    rtol: float | None = None
    atol: float | None = None

    @property
    def ptx_path(self) -> Path:
        """The PTX file; a directory when the op names a Triton cache folder (``load.ptx_file`` looks into it)."""
        return self.folder / self.ptx

    def expressions(self) -> Iterator[tuple[str, Expression]]:
        """Key and expression of everything that building a plan evaluates."""
        for k, arg in enumerate(self.args):
            for expression in arg.expressions():
                yield f"args[{k}]", expression
        for name, each in self.tensormaps.items():
            for field, expression in each.expressions():
                yield join("tensormaps", quote(name), field), expression
        for name in ("block", "grid", "cluster"):
            yield from _keyed(name, getattr(self, name) or ())
        for name in ("shared", "launches"):
            expression = getattr(self, name)
            if expression is not None:
                yield name, expression

    def tolerance(self, dtype: DType) -> tuple[float, float]:
        """Relative and absolute tolerance for an output of ``dtype``: the op's, else the dtype's (integers exact)."""
        rtol = dtype.rtol if self.rtol is None else self.rtol
        return rtol, dtype.atol if self.atol is None else self.atol


class BackwardSpec(KernelSpec, frozen=True, kw_only=True):
    """How an op's gradients are computed. ``ptx`` and ``consts`` are the forward's where the table says none.

    ``grid`` None is told as a finding. ``grad_output_row_stride`` in elements, None where the rows are tight.
    """

    ptx: str = ""
    grad_output_row_stride: Expression | None = None

    def expressions(self) -> Iterator[tuple[str, Expression]]:
        """Key and expression of everything that building a plan evaluates."""
        yield from super().expressions()
        if self.grad_output_row_stride is not None:
            yield "grad_output_row_stride", self.grad_output_row_stride


class OpSpec(KernelSpec, frozen=True, kw_only=True):
    """An op of the manifest, or of the command line (``launch.adhoc``).

    For ``run``: a plan's buffers carry the ``init`` of their spec, and None where the default of their role holds
    (``DEFAULT_INITS``; ad hoc buffers say zeros outright). ``tolerance`` gives rtol and atol of an output.
    """

    name: str
    grid: tuple[Expression, ...]
    dtype: DType = DTYPES["f32"]
    scalars: Mapping[str, Number] = msgspec.field(default_factory=dict)
    dims: Mapping[str, DimSpec] = msgspec.field(default_factory=dict)
    cases: tuple[Mapping[str, int], ...] = ()
    inputs: tuple[BufferSpec, ...] = ()
    params: tuple[BufferSpec, ...] = ()
    output: OutputSpec | None = None
    outputs: tuple[OutputSpec, ...] = ()
    ignore: Mapping[str, str] = msgspec.field(default_factory=dict)
    backward: BackwardSpec | None = None
    gradcheck: Mapping[str, int | float] = msgspec.field(default_factory=dict)

    def kernel(self, backward: bool) -> KernelSpec:
        """What launches the op's entry, or its backward's, which must be there."""
        if not backward:
            return self
        assert self.backward is not None
        return self.backward

    @property
    def results(self) -> tuple[OutputSpec, ...]:
        """The outputs, whether written as ``output`` or ``outputs``."""
        return self.outputs if self.output is None else (self.output,)

    def buffers(self) -> Iterator[tuple[str, str, BufferSpec | OutputSpec]]:
        """Role (input, param, output), key and description of every buffer, in-place outputs too."""
        for k, spec in enumerate(self.inputs):
            yield "input", f"inputs[{k}]", spec
        for k, spec in enumerate(self.params):
            yield "param", f"params[{k}]", spec
        for k, out in enumerate(self.results):
            yield "output", "output" if self.output is not None else f"outputs[{k}]", out

    def expressions(self) -> Iterator[tuple[str, Expression]]:
        """Key and expression of everything that building a plan evaluates, that of backward too."""
        for _, key, spec in self.buffers():
            yield from _keyed(f"{key}.shape", spec.shape or ())
            for name in ("row_elems", "row_stride"):
                if getattr(spec, name, None) is not None:
                    yield f"{key}.{name}", getattr(spec, name)
        yield from super().expressions()
        if self.backward is not None:
            for name, expression in self.backward.expressions():
                yield join("backward", name), expression

    @property
    def gradcheck_dims(self) -> Mapping[str, int]:
        """The dims at which gradients are held against differences, laid over the op's."""
        return {name: int(value) for name, value in self.gradcheck.items() if name not in GRADCHECK_KEYS}

    def names(self) -> frozenset[str]:
        """Every name that the op defines, but for dims."""
        found = {buffer.name for _, _, buffer in self.buffers()} | self.consts.keys() | self.scalars.keys()
        if self.backward is not None:
            found |= self.backward.consts.keys() | {grad_name(b.name) for b in (*self.inputs, *self.params)}
        return frozenset(found)


class PipelineSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Several ops in a row. A step is an op by its name, ``NAME#2`` where it stands a second time.

    ``wire`` gives outputs by the inputs that take them, both as ``STEP.BUFFER``. ``dims`` are of every op that has a
    dim of the name, or of one step (``STEP.DIM``).
    """

    #: Fields that are no keys.
    internal: ClassVar[frozenset[str]] = frozenset({"name", "origin"})

    name: str = ""
    origin: Origin = Origin()

    ops: tuple[str, ...]
    wire: Mapping[str, str] = msgspec.field(default_factory=dict)
    dims: Mapping[str, int] = msgspec.field(default_factory=dict)


def grad_name(buffer: str) -> str:
    """What the gradient of an input or a param is called."""
    return f"grad_{buffer}"


def _keyed(key: str, values: tuple[Expression, ...]) -> Iterator[tuple[str, Expression]]:
    for k, value in enumerate(values):
        yield f"{key}[{k}]", value
