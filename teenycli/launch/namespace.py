"""The names of an op at one case, and the evaluation of its expressions.

Shapes are evaluated when something asks for them, so buffers may be described in any order.

May import ``dtypes``, ``errors``, ``manifest``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from teenycli.dtypes import DType
from teenycli.errors import TeenyError
from teenycli.expressions import Evaluator, Expression
from teenycli.manifest.expressions import INTEGERS, REALS, exact_integer
from teenycli.manifest.spec import BackwardSpec, BufferSpec, KernelSpec, Number, OpSpec, OutputSpec, grad_name

#: A device address is a buffer's number times this plus an offset, so no buffer may be larger.
BUFFER_LIMIT = 1 << 40
#: Most dimensions of a buffer: numpy's.
RANK_LIMIT = 64
#: Most buffers whose shapes may wait for one another.
_CHAIN_LIMIT = 16

#: Elements of a row and elements from one row to the next, by buffer.
Rows = Mapping[str, tuple[int, int]]

_FORWARD_ONLY = ("grad_output", "grad_inputs", "grad_params")


class BufferView:
    """A buffer in an expression: ``x.shape[k]``, ``x.size``, ``x.row_stride``, ``x.itemsize``, ``x + n``."""

    def __init__(
        self,
        name: str,
        dtype: DType,
        shape: Callable[[], tuple[int, ...]],
        rows: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self._shape = shape
        self._rows = rows

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return self._shape()

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def last(self) -> int:
        """The last dimension, 1 where there is none."""
        return self.shape[-1] if self.shape else 1

    @cached_property
    def rows(self) -> tuple[int, int]:
        """Elements of a row, and elements from one row to the next."""
        return (self.last, self.last) if self._rows is None else self._rows()

    @property
    def row_stride(self) -> int:
        """Elements from one row to the next: the last dimension, unless the output says otherwise."""
        return self.rows[1]

    @property
    def itemsize(self) -> int:
        return self.dtype.size

    def __add__(self, elements: object) -> Pointer:
        return Pointer(self, 0) + elements

    __radd__ = __add__

    def __sub__(self, elements: object) -> Pointer:
        return Pointer(self, 0) - elements

    def __str__(self) -> str:
        return f"the buffer {self.name}"


class Pointer(Struct, frozen=True):
    """An address: ``elements`` on from the start of a buffer, or null."""

    buffer: BufferView | None
    elements: int = 0

    def __add__(self, elements: object) -> Pointer:
        if self.buffer is None or not isinstance(elements, int):
            raise TypeError(f"to {self} an integer can be added" if self.buffer else "to null nothing can be added")
        return replace(self, elements=self.elements + elements)

    __radd__ = __add__

    def __sub__(self, elements: object) -> Pointer:
        return self + (-elements if isinstance(elements, int) else elements)

    def __str__(self) -> str:
        return f"an address in {self.buffer}" if self.buffer else "null"


NULL = Pointer(None)

_ATTRIBUTES: dict[type, frozenset[str]] = {BufferView: frozenset({"shape", "size", "row_stride", "itemsize"})}
_LANGUAGE, _OF_REALS = replace(INTEGERS, attributes=_ATTRIBUTES), replace(REALS, attributes=_ATTRIBUTES)


class _Names(Mapping[str, Any]):
    """Names to values. A dim that was declared without a value says so when it is read."""

    def __init__(self, values: Mapping[str, Any], unset: frozenset[str]) -> None:
        self._values = values
        self._unset = unset

    def __getitem__(self, name: str) -> Any:
        if name in self._unset:
            raise TeenyError(
                "missing-dim", f"the dim '{name}' has no value, and is used here",
                hint=f"give it one in the op's dims, in a case, or with --dim {name}=INT",
            )  # fmt: skip
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._values, *self._unset])

    def __len__(self) -> int:
        return len(self._values) + len(self._unset)


def _gradient(name: str, of: BufferView, rows: Callable[[], tuple[int, int]] | None = None) -> BufferView:
    """The view of a gradient, which has its buffer's shape and dtype."""
    return BufferView(name, of.dtype, lambda: of.shape, rows)


class Namespace:
    """What an op's expressions can see, ``dims`` and ``scalars`` being those of the case.

    ``rows`` has the rows (elements, and from one to the next) of inputs and params that another op lays out.
    """

    def __init__(
        self, spec: OpSpec, dims: Mapping[str, int], scalars: Mapping[str, Number], rows: Rows = MappingProxyType({})
    ) -> None:
        self.spec = spec
        self.rows = rows
        #: What the expressions are of: errors are placed at its keys.
        self.kernel: KernelSpec = spec
        self.views: dict[str, BufferView] = {}
        groups: dict[str, list[BufferView]] = {"input": [], "param": [], "output": []}
        self._waiting: list[str] = []
        for role, key, buffer in spec.buffers():
            groups[role].append(self._view(key, buffer))
        values: dict[str, Any] = {"null": NULL}
        values |= {f"{role}s": tuple(views) for role, views in groups.items()}
        if len(groups["output"]) == 1:
            values["output"] = groups["output"][0]
        # The user's names come last: labels on the command line may be any word.
        values |= {**spec.consts, **scalars, **dims, **self.views}
        self._unset = frozenset(spec.dims) - dims.keys()
        self._set(values)

    def _set(self, values: Mapping[str, Any]) -> None:
        self._values = values
        known = _Names(values, self._unset)
        self._evaluator, self._of_reals = (Evaluator(each, known, self._explain) for each in (_LANGUAGE, _OF_REALS))

    def at(self, index: int) -> Namespace:
        """The same names, and ``i`` as the launch index ``index``: what arguments, grid and shared memory see.

        Shapes are the same in every launch, and do not see it.
        """
        names = copy(self)
        names._set({"i": index, **self._values})
        return names

    def of_backward(self, kernel: BackwardSpec) -> Namespace:
        """The names of the op's backward: those of the forward, with its own consts, and the gradients.

        Shapes are the forward's, and see its consts.
        """
        spec, names = self.spec, copy(self)
        names.kernel, names.views = kernel, dict(self.views)
        values = {name: value for name, value in self._values.items() if name not in spec.consts} | dict(kernel.consts)
        for role, buffers in (("inputs", spec.inputs), ("params", spec.params)):
            grads = tuple(_gradient(grad_name(each.name), self.views[each.name]) for each in buffers)
            values[f"grad_{role}"] = grads
            names.views |= {grad.name: grad for grad in grads}
        output = self.views[spec.results[0].name]
        names.views["grad_output"] = _gradient("grad_output", output, names._grad_output_rows)
        names._set({**values, **names.views})
        return names

    def _grad_output_rows(self) -> tuple[int, int]:
        output, said = self.views[self.spec.results[0].name], self.kernel
        assert isinstance(said, BackwardSpec)
        if said.grad_output_row_stride is None:
            return output.last, output.last
        stride = self.integer(said.grad_output_row_stride, "grad_output_row_stride")
        if stride < 1:
            message = f"a row stride of {stride:,} elements: it must be positive"
            raise TeenyError("bad-value", message, where=said.origin.place("grad_output_row_stride"))
        return output.rows[0], stride

    def _explain(self, name: str, near: str | None) -> str:
        if name in _FORWARD_ONLY:
            return "only the arguments of backward have it"
        if name == "i":
            return "the launch index is known in args, grid and shared"
        if name == "output":
            return f"the op has {len(self.spec.results)} outputs: write outputs[k], or their names"
        return near or f"a dim gets its value in the op's dims, in a case, or with --dim {name}=INT"

    def _view(self, key: str, buffer: BufferSpec | OutputSpec) -> BufferView:
        if isinstance(buffer, OutputSpec) and buffer.inout is not None:
            self.views[buffer.name] = self.views[buffer.inout]
        else:
            shape, dtype = buffer.shape or (), buffer.dtype or self.spec.dtype
            rows = (lambda: self._rows(buffer, key)) if isinstance(buffer, OutputSpec) else None
            if buffer.name in self.rows:
                rows = partial(self.rows.__getitem__, buffer.name)
            view = BufferView(buffer.name, dtype, lambda: self._shape(buffer.name, shape, f"{key}.shape"), rows)
            self.views[buffer.name] = view
        return self.views[buffer.name]

    def _rows(self, output: OutputSpec, key: str) -> tuple[int, int]:
        """Raises TeenyError ``bad-value`` for rows that do not make up the output, or a stride that is not positive."""
        view = self.views[output.name]
        elems, stride = view.last, None
        if output.row_elems is not None:
            elems = self.integer(output.row_elems, f"{key}.row_elems")
            if elems < 1 or view.size % elems:
                message = f"rows of {elems:,} elements do not make up the {view.size:,} elements of '{view.name}'"
                raise TeenyError("bad-value", message, where=self.spec.origin.place(f"{key}.row_elems"))
        if output.row_stride is not None:
            stride = self.integer(output.row_stride, f"{key}.row_stride")
            if stride < 1:
                message = f"a row stride of {stride:,} elements: it must be positive"
                raise TeenyError("bad-value", message, where=self.spec.origin.place(f"{key}.row_stride"))
        return elems, elems if stride is None else stride

    def _shape(self, name: str, shape: Sequence[Expression], key: str) -> tuple[int, ...]:
        if name in self._waiting or len(self._waiting) >= _CHAIN_LIMIT:
            chain = " -> ".join([*self._waiting[-4:], name])
            raise TeenyError("bad-shape", f"shapes wait for one another: {chain}", where=self.spec.origin.place(key))
        self._waiting.append(name)
        try:
            return self.extents(shape, key)
        finally:
            self._waiting.pop()

    def extents(self, shape: Sequence[Expression], key: str) -> tuple[int, ...]:
        """A shape's numbers, each of them positive. Raises TeenyError ``bad-shape``."""
        place = self.spec.origin.place
        if len(shape) > RANK_LIMIT:
            raise TeenyError("bad-shape", f"{len(shape)} dimensions; at most {RANK_LIMIT} can be", where=place(key))
        numbers = self.integers(shape, key)
        for k, number in enumerate(numbers):
            if number < 1:
                message = f"the extent '{shape[k]}' is {number}, and must be positive"
                raise TeenyError("bad-shape", message, where=place(f"{key}[{k}]"))
        return numbers

    def value(self, expression: Expression, key: str, *, real: bool = False) -> Any:
        """What ``expression`` comes to, with integers that divide exactly, or as ``real`` numbers; errors are placed at
        ``key`` of the op."""
        try:
            return (self._of_reals if real else self._evaluator).evaluate(expression)
        except TeenyError as error:
            raise error.at(self.kernel.origin.place(key)) from None

    def integer(self, expression: Expression, key: str) -> int:
        """What ``expression`` comes to, an exact integer of 64 bits or fewer."""
        try:
            number = exact_integer(self._evaluator.evaluate(expression), expression.text)
            if number.bit_length() > 63:
                raise TeenyError("value-out-of-range", f"'{expression}' is {number}, which takes more than 64 bits")
        except TeenyError as error:
            raise error.at(self.kernel.origin.place(key)) from None
        return number

    def integers(self, expressions: Sequence[Expression], key: str) -> tuple[int, ...]:
        return tuple(self.integer(each, f"{key}[{k}]") for k, each in enumerate(expressions))
