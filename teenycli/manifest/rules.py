"""What the keys of one op must have in common: what types cannot say.

May import ``dtypes``, ``errors`` and, in this room, ``expressions`` and ``spec``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from teenycli.errors import TeenyError, did_you_mean
from teenycli.expressions import CONSTANTS
from teenycli.manifest.spec import (
    GRADCHECK_KEYS,
    RESERVED,
    BufferSpec,
    KernelSpec,
    OpSpec,
    OutputSpec,
    TensorMapSpec,
    grad_name,
    join,
    quote,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What :func:`is_name` asks for.
NAME_RULE = "expressions use it: letters, digits and _, no digit first"


def is_name(text: str) -> bool:
    """Whether expressions can use ``text`` as a name."""
    return _NAME.fullmatch(text) is not None and text not in CONSTANTS


class Rules:
    """The rules over one op; ``names`` is its one namespace, filled on the way: keys by name.

    ``reserved`` names are refused: labels on a command line may be any word.
    """

    def __init__(self, spec: OpSpec, reserved: frozenset[str] = RESERVED) -> None:
        self.spec = spec
        self.reserved = reserved
        self.names: dict[str, str] = {}

    def check(self) -> None:
        """Raises TeenyError, placed at its key: ``bad-value``, ``bad-name``, ``name-twice``, ``missing-key``."""
        self._check_values()
        self._check_names()
        self._check_outputs()
        self._check_dims()
        self._check_cases()
        self._check_tensormaps()

    def _error(self, id: str, key: str, message: str, hint: str | None = None) -> TeenyError:
        return TeenyError(id, message, where=self.spec.origin.place(key), hint=hint)

    def _kernels(self) -> Iterator[tuple[str, KernelSpec]]:
        """The op and its backward, each with the path of its keys."""
        yield "", self.spec
        if self.spec.backward is not None:
            yield "backward", self.spec.backward

    def _check_values(self) -> None:
        for path, spec in self._kernels():
            for key in ("grid", "block", "cluster"):
                extents = getattr(spec, key)
                if extents is not None and not 1 <= len(extents) <= 3:
                    raise self._error("bad-value", join(path, key), f"{len(extents)} extents: a {key} has 1 to 3")
            if spec.hidden is not None and not 0 <= spec.hidden <= 2:
                raise self._error("bad-value", join(path, "hidden"), f"hidden is 0, 1 or 2, not {spec.hidden}")
            for key in ("rtol", "atol"):
                bound = getattr(spec, key)
                if bound is not None and not 0 <= bound < float("inf"):
                    raise self._error("bad-value", join(path, key), f"a tolerance is a number from 0 up, not {bound}")

    def _check_names(self) -> None:
        spec = self.spec
        for table in ("dims", "consts", "scalars"):
            for name in getattr(spec, table):
                self._claim(name, f"{table}.{quote(name)}")
        for _, key, buffer in spec.buffers():
            # An output may bear the name of the buffer that it is.
            if not (isinstance(buffer, OutputSpec) and buffer.inout == buffer.name):
                self._claim(buffer.name, f"{key}.name")
        if spec.backward is not None:
            for name in spec.backward.consts.keys() - spec.consts.keys():
                self._claim(name, f"backward.consts.{quote(name)}")
            for buffer in (*spec.inputs, *spec.params):
                self._claim(grad_name(buffer.name), "backward")

    def _claim(self, name: str, key: str) -> None:
        if not is_name(name):
            raise self._error("bad-name", key, f"'{name[:80]}' cannot be a name", NAME_RULE)
        if name in self.reserved:
            raise self._error("bad-name", key, f"'{name}' means something in expressions by itself", "choose another")
        if name in self.names:
            other = self.spec.origin.name(self.names[name])
            raise self._error("name-twice", key, f"the name '{name}' is taken by {other}", "choose another")
        self.names[name] = key

    def _check_outputs(self) -> None:
        spec = self.spec
        if spec.output is not None and spec.outputs:
            raise self._error("bad-value", "outputs", "both 'output' and 'outputs' are given", "write one of them")
        if spec.backward is not None and len(spec.results) != 1:
            message = f"backward starts from the gradient of one output, and the op has {len(spec.results)}"
            raise self._error("bad-value", "backward", message)
        targets = {buffer.name: buffer for buffer in (*spec.inputs, *spec.params)}
        written: dict[str, str] = {}
        for _, key, out in spec.buffers():
            if not isinstance(out, OutputSpec):
                continue
            if out.inout is None:
                if out.shape is None:
                    hint = "or 'inout', when the output is an input's buffer"
                    raise self._error("missing-key", key, "'shape' is missing", hint)
                continue
            if out.inout not in targets:
                hint = did_you_mean(out.inout, targets) or "the buffers of inputs and params can be written in place"
                raise self._error("bad-value", f"{key}.inout", f"'{out.inout}' is no input and no param", hint)
            if out.inout in written:
                message = f"'{out.inout}' is {spec.origin.name(written[out.inout])} already"
                raise self._error("bad-value", f"{key}.inout", message)
            written[out.inout] = key
            self._check_in_place(key, out, targets[out.inout])

    def _check_in_place(self, key: str, out: OutputSpec, target: BufferSpec) -> None:
        dtype = target.dtype or self.spec.dtype
        if out.dtype not in (None, dtype):
            raise self._error("bad-value", f"{key}.dtype", f"{out.dtype}, but the buffer '{target.name}' is {dtype}")
        for row in ("row_elems", "row_stride"):
            if getattr(out, row) is not None:
                message = f"'{target.name}' is no buffer of the output's own, and lies as inputs and params do: tight"
                raise self._error("bad-value", f"{key}.{row}", message)
        if out.init is not None and target.init is not None:
            raise self._error("bad-value", f"{key}.init", f"the buffer '{target.name}' has an init already")

    def _check_dims(self) -> None:
        for name, dim in self.spec.dims.items():
            if dim.multiple_of < 1:
                raise self._error("bad-value", f"dims.{name}.multiple_of", f"{dim.multiple_of} is not positive")
            if dim.max is not None and dim.max < dim.min:
                raise self._error("bad-value", f"dims.{name}.max", f"max {dim.max} is below min {dim.min}")

    def _check_cases(self) -> None:
        for k, case in enumerate(self.spec.cases):
            self._check_sets_dims(f"cases[{k}]", "a case", case)
        gradcheck = self.spec.gradcheck
        for name, value in gradcheck.items():
            key = f"gradcheck.{quote(name)}"
            if name not in GRADCHECK_KEYS:
                if not isinstance(value, int):
                    raise self._error("bad-value", key, f"a dim is an integer, not {value}")
            elif not (0 < value < float("inf") or (value == 0 and name != "step")):
                raise self._error("bad-value", key, f"{name} is a positive number, not {value}")
        if gradcheck and self.spec.backward is None:
            raise self._error("bad-value", "gradcheck", "the op has no backward, so no gradients to check")
        self._check_sets_dims("gradcheck", "gradcheck", self.spec.gradcheck_dims)

    def _check_sets_dims(self, key: str, what: str, case: Mapping[str, int]) -> None:
        spec = self.spec
        read = frozenset[str]().union(*(expression.names for _, expression in spec.expressions())) - RESERVED
        for name in (name for name in case if name not in spec.dims):
            place = join(key, quote(name))
            if name in self.names:
                other = spec.origin.name(self.names[name])
                raise self._error("bad-value", place, f"{what} sets dims, and '{name}' is {other}")
            if name not in read:
                hint = did_you_mean(name, spec.dims)
                raise self._error("bad-value", place, f"{what} sets dims, and the op has no dim '{name}'", hint)

    def _check_tensormaps(self) -> None:
        for path, spec in self._kernels():
            maps = spec.tensormaps
            for name, each in maps.items():
                for field, words in TensorMapSpec.words.items():
                    said = getattr(each, field)
                    if said not in words:
                        hint = did_you_mean(said, words) or f"there are {', '.join(words)}"
                        key = join(path, "tensormaps", quote(name), field)
                        raise self._error("bad-value", key, f"no {field} '{said}'", hint)
            for k, arg in enumerate(spec.args):
                if arg.kind == "tensormap" and arg.text not in maps:
                    hint = did_you_mean(arg.text, maps) or "say tensormaps = { NAME = { of = …, box = […] } }"
                    key = join(path, f"args[{k}]")
                    raise self._error("bad-argument", key, f"there is no tensor map '{arg.text}'", hint)
