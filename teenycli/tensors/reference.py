"""What an output should be: from an expression, from the user's own function, or from a file.

May import ``dtypes``, ``errors`` and, in this room, ``convert``, ``evaluator`` and ``files``.
"""

from __future__ import annotations

import importlib
import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from teenycli.dtypes import DType
from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.tensors import evaluator
from teenycli.tensors.convert import Array, convert, format_shape, teeny_dtype, widen
from teenycli.tensors.evaluator import Value
from teenycli.tensors.files import FileRef, keys, load, parse_file

_FUNCTION = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<function>[^\W\d]\w*)")


class Output(Protocol):
    """What a reference must give: an array of this name, element type and shape. A plan's ``Buffer`` is one."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


def evaluate_reference(
    text: str, names: Mapping[str, Value], folder: Path, outputs: Sequence[Output], where: Place | None = None
) -> tuple[Array, ...]:
    """The reference of each of ``outputs``, in their order, of exactly its shape.

    ``text`` is a file, a ``module:function`` to be found in ``folder`` (the manifest's), or an expression. ``names``
    are the op's: buffers as arrays of their own type, dims, consts and scalars as numbers, groups of buffers as
    sequences. Float arrays reach the reference as float64, integers as they are. Of several outputs it returns a tuple
    in their order, or a dict by their names. What comes back is float64 for a float output, not rounded to its type,
    and the output's own type otherwise.

    Raises TeenyError: ``array-shape``, ``value-out-of-range``, ``reference-count`` and ``reference-value`` for what it
    gives; ``reference-module``, ``reference-name`` and ``reference-failed`` for a function; those of
    ``evaluator.evaluate`` and ``files.load``. A ``where`` is put into the errors of expressions.
    """
    text = text.strip()
    file = parse_file(text)
    if file is not None:
        return tuple(_from_file(file, output, folder, len(outputs)) for output in outputs)
    function = _FUNCTION.fullmatch(text)
    if function is not None:
        with redirect_stdout(sys.stderr):  # what a reference prints must not fall among the results
            value = _call(function["module"], function["function"], names, folder)
    else:
        value = evaluator.evaluate(text, _Doubles(names), where)
    return _conform(value, outputs, f"the reference '{text}'")


class _Doubles(Mapping[str, Value]):
    """The names of an op, float arrays widened to float64 when, and only if, they are asked for."""

    def __init__(self, names: Mapping[str, Value]) -> None:
        self._names = names
        self._widened: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._widened:
            self._widened[name] = _widened(self._names[name])
        return self._widened[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _widened(value: Any, copy: bool = False) -> Any:
    if isinstance(value, np.ndarray):
        dtype = teeny_dtype(value.dtype)
        if dtype is not None and dtype.is_float and dtype.name != "f64":
            return widen(value)
        return value.copy() if copy else value
    return [_widened(item, copy) for item in value] if isinstance(value, tuple | list) else value


# --- what came back ----------------------------------------------------------------------------------------------


def _conform(value: Any, outputs: Sequence[Output], what: str) -> tuple[Array, ...]:
    if value is None:
        raise TeenyError("reference-value", f"{what} returned nothing", hint="it must return the output, or a tuple")
    if isinstance(value, dict) and value.keys() == {output.name for output in outputs}:
        value = tuple(value[output.name] for output in outputs)
    values = value if isinstance(value, tuple) else (value,)
    if len(values) != len(outputs):
        names = ", ".join(output.name for output in outputs)
        hint = f"return a tuple, not a {type(value).__name__}" if isinstance(value, list | dict) else None
        if isinstance(value, dict):
            hint = f"return a tuple, or a dict of exactly {names}"
        message = f"{what} gives {_count(len(values))}, the op has {len(outputs)}: {names}"
        raise TeenyError("reference-count", message, hint=hint)
    return tuple(_conform_one(item, output, what) for item, output in zip(values, outputs, strict=True))


def _count(number: int) -> str:
    return f"{number} value{'' if number == 1 else 's'}"


def _conform_one(value: Any, output: Output, what: str) -> Array:
    subject = f"{what}, for output '{output.name}'"
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        message = f"{subject}: a {type(value).__name__} cannot be made an array: {error}"
        raise TeenyError("reference-value", message) from None
    if teeny_dtype(array.dtype) is None:
        message = f"{subject}: a {type(value).__name__} of elements '{array.dtype}' holds no real numbers"
        raise TeenyError("reference-value", message)
    if array.shape != output.shape:
        hint = "shapes are not broadcast here: use broadcast_to, reshape or keepdims=True"
        message = f"{subject}: its shape is {format_shape(array.shape)}, not {format_shape(output.shape)}"
        raise TeenyError("array-shape", message, hint=hint)
    if output.dtype.is_float:
        return widen(array)
    return convert(array, output.dtype, subject)


# --- a file ------------------------------------------------------------------------------------------------------


def _from_file(file: FileRef, output: Output, folder: Path, count: int) -> Array:
    """The array of ``file`` for ``output``: that of its key, of the output's name, or the only one."""
    if file.key is None and file.suffix in (".npz", ".safetensors"):
        known = keys(file, folder)
        if output.name in known or count > 1:
            file = FileRef(file.path, output.name)
    elif count > 1:
        message = f"the reference {file} is one array, the op has {count} outputs"
        raise TeenyError("reference-count", message, hint="use an .npz with one array per output, under its name")
    return _conform_one(load(file, folder, output.dtype, output.shape), output, f"the reference {file}")


# --- a function --------------------------------------------------------------------------------------------------


def _call(module: str, name: str, names: Mapping[str, Value], folder: Path) -> Any:
    """What ``module:name`` returns for those of ``names`` that its signature asks for."""
    with _importable(module, folder):
        function = _function(_import(module, folder), module, name)
        options = {key: _widened(names[key], copy=True) for key in _asked(function, f"{module}:{name}", names)}
        with np.errstate(all="ignore"):
            return _guarded(lambda: function(**options), f"{module}:{name}", folder)


@contextmanager
def _importable(module: str, folder: Path) -> Iterator[None]:
    """``folder`` on the import path, and a module of the name ``module`` from anywhere else out of the way.

    What is imported from ``folder`` is forgotten again: two manifests may each have a ``refs.py``.
    """
    root, top = str(folder.resolve()), module.partition(".")[0]
    displaced = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == top}
    before = set(sys.modules)
    sys.path.insert(0, root)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with suppress(ValueError):  # the user's code may have done it
            sys.path.remove(root)
        for name in set(sys.modules) - before:
            if name.partition(".")[0] == top or _lies_in(getattr(sys.modules[name], "__file__", None), root):
                del sys.modules[name]
        sys.modules.update(displaced)


def _lies_in(file: str | None, root: str) -> bool:
    # Packages installed under the folder (a virtual environment) are not the user's references.
    return file is not None and Path(file).is_relative_to(root) and "site-packages" not in Path(file).parts


def _import(module: str, folder: Path) -> ModuleType:
    path = folder.joinpath(*module.split("."))
    if not path.with_suffix(".py").is_file() and not path.is_dir():
        near = did_you_mean(module, [file.stem for file in folder.glob("*.py")])
        raise TeenyError("reference-module", f"there is no module {module}.py in {folder}", hint=near)
    imported: ModuleType = _guarded(lambda: importlib.import_module(module), f"importing {module}", folder)
    return imported


def _function(module: ModuleType, module_name: str, name: str) -> Callable[..., Any]:
    function: Callable[..., Any] | None = getattr(module, name, None)
    if callable(function):
        return function
    known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    message = f"{module_name} has no function '{name}'" if function is None else f"{module_name}:{name} is no function"
    raise TeenyError("reference-name", message, hint=did_you_mean(name, known))


def _asked(function: Callable[..., Any], shown: str, names: Mapping[str, Value]) -> list[str]:
    """The names that ``function`` is called with; all of them when it takes ``**``."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise TeenyError("reference-name", f"the signature of {shown} cannot be read: {error}") from None
    asked: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            return list(names)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            message = f"{shown} takes '{parameter.name}' by position only; references are called by keyword"
            raise TeenyError("reference-name", message)
        if parameter.name in names:
            asked.append(parameter.name)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
            known = ", ".join(names)
            message = f"{shown} asks for '{parameter.name}', which the op does not have; it has {known}"
            raise TeenyError("reference-name", message, hint=did_you_mean(parameter.name, names))
    return asked


def _guarded(run: Callable[[], Any], what: str, folder: Path) -> Any:
    """What ``run``, which enters the user's code, returns; an exception becomes a TeenyError with its place."""
    try:
        return run()
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        kind, message = type(error).__name__, " ".join(str(error).split())
        raise TeenyError(
            "reference-failed",
            f"{what} raised {kind}: {message}" if message else f"{what} raised {kind}",
            where=_place_of(error, folder.resolve()),
        ) from None


def _place_of(error: BaseException, folder: Path) -> Place | None:
    """Where in the user's files ``error`` came from: the innermost line within ``folder``."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Place(_shown(error.filename, folder), error.lineno, error.offset or 0, text=(error.text or "").rstrip())
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if frame.lineno and _lies_in(frame.filename, str(folder))]
    if not inside:
        return None
    frame = inside[-1]
    line = frame.lineno or 0
    text = linecache.getline(frame.filename, line).rstrip()
    before = text.encode()[: frame.colno or 0].decode(errors="replace")  # Python counts columns in bytes
    return Place(_shown(frame.filename, folder), line, len(before) + 1, text=text)


def _shown(file: str, folder: Path) -> str:
    path = Path(file)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file
