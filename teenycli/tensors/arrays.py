"""What a buffer holds before a launch: the initialisers of a manifest and of ``--arg`` and ``--input``.

May import ``dtypes``, ``errors`` and, in this room, ``convert``, ``files`` and ``evaluator``.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from teenycli.dtypes import DType, Kind
from teenycli.errors import TeenyError
from teenycli.tensors.convert import (
    Array,
    Number,
    below_one,
    check_size,
    chunks,
    convert,
    describe_range,
    format_shape,
    largest,
    numpy_dtype,
    raw_bytes,
    round_to,
)
from teenycli.tensors.evaluator import Value, evaluate
from teenycli.tensors.files import FileRef, load, parse_file


class Generator(StrEnum):
    """Initialisers that are one word."""

    ZEROS = "zeros"
    ONES = "ones"
    ARANGE = "arange"
    RANDOM = "random"
    POISON = "poison"


class Expression(Struct, frozen=True):
    """An initialiser that is computed, in the language of references."""

    text: str


Init = Generator | Number | FileRef | Expression

_NO_NAMES: Mapping[str, Value] = MappingProxyType({})


def parse_init(init: str | Number) -> Init:
    """What an initialiser of the manifest or the command line says, a file with or without its ``@``.

    Raises TeenyError ``unknown-file-type`` for ``@`` before something that ends like no file of ours.
    """
    if not isinstance(init, str):
        return init
    text = init.strip()
    if text in set(Generator):
        return Generator(text)
    file = parse_file(text)
    if file is not None:
        return file
    number = _parse_number(text)
    return Expression(text) if number is None else number


def _parse_number(text: str) -> Number | None:
    """A number in any of Python's notations, ``0x7f``, ``1_000``, ``-inf`` and ``nan`` among them."""
    with suppress(ValueError):
        return int(text, 0)
    with suppress(ValueError):
        return float(text)
    return None


def fill(
    init: Init | str,
    dtype: DType,
    shape: tuple[int, ...],
    name: str,
    seed: int,
    folder: Path,
    names: Mapping[str, Value] = _NO_NAMES,
) -> Array:
    """A fresh C-ordered array of ``dtype`` and ``shape`` as ``init`` says.

    ``name`` is the buffer's: with ``seed`` it decides what ``random`` gives. ``folder`` is where relative paths start;
    ``names`` is what an expression may name. Raises TeenyError: ``value-out-of-range`` for what ``dtype`` cannot
    hold, ``array-shape``, ``byte-count`` and the others of ``files.load``, those of ``evaluator.evaluate``,
    ``array-too-large``, and ``pointer-init`` for a buffer of pointers that would hold no real addresses.
    """
    if isinstance(init, str):
        init = parse_init(init)
    check_size(math.prod(shape) * dtype.size, f"buffer '{name}', {dtype}{format_shape(shape)},")
    if isinstance(init, Generator):
        out = np.empty(shape, numpy_dtype(dtype))
        _generate(init, out, dtype, name, seed)
        return out
    if isinstance(init, FileRef):
        return convert(load(init, folder, dtype, shape), dtype, str(init))
    if isinstance(init, Expression):
        return _expression(init.text, dtype, shape, names)
    return np.full(shape, constant(init, dtype), numpy_dtype(dtype))


def constant(value: Number, dtype: DType) -> Array:
    """``value`` as a single element of ``dtype``, a float rounded to nearest.

    Raises TeenyError ``value-out-of-range`` when an integer type would change it, or when a float type would make
    it 0 or inf.
    """
    out = _float_constant(value, dtype) if dtype.is_float else _integer_constant(value, dtype)
    if out is None:
        # Python refuses to write out an integer of thousands of digits.
        shown = f"of {value.bit_length()} bits" if isinstance(value, int) and value.bit_length() > 128 else value
        vanishes = dtype.is_float and abs(value) < 1
        reason = f"{dtype} would round to 0" if vanishes else describe_range(dtype)
        raise TeenyError("value-out-of-range", f"the value is {shown}, which {reason}")
    return out


def _float_constant(value: Number, dtype: DType) -> Array | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    out = round_to(np.array(number), dtype)
    after = float(out)
    if not math.isfinite(number):
        return out if after == number or math.isnan(number) else None
    return out if math.isfinite(after) and (after != 0 or number == 0) else None


def _integer_constant(value: Number, dtype: DType) -> Array | None:
    if isinstance(value, float) and not value.is_integer():  # inf and NaN are not either
        return None
    low, high = dtype.int_range()
    return np.array(int(value), numpy_dtype(dtype)) if low <= value <= high else None


def _expression(text: str, dtype: DType, shape: tuple[int, ...], names: Mapping[str, Value]) -> Array:
    value, what = evaluate(text, names), f"init '{text}'"
    if isinstance(value, tuple):
        raise TeenyError("element-type", f"{what}: it gives {len(value)} values, not an array or a number")
    if isinstance(value, int | float):
        return np.full(shape, constant(value, dtype), numpy_dtype(dtype))
    if value.shape not in (shape, ()):
        message = f"{what}: its shape is {format_shape(value.shape)}, not {format_shape(shape)}"
        raise TeenyError("array-shape", message)
    out = convert(value, dtype, what)
    return out if out.shape == shape else np.full(shape, out, out.dtype)


# --- generators --------------------------------------------------------------------------------------------------


def _generate(init: Generator, out: Array, dtype: DType, name: str, seed: int) -> None:
    if init in (Generator.ZEROS, Generator.POISON):
        raw_bytes(out)[:] = 0 if init is Generator.ZEROS else 0xFF
        return
    if dtype.kind is Kind.PTR:
        raise TeenyError(
            "pointer-init",
            f"buffer '{name}' holds pointers, and '{init}' gives no addresses",
            hint='say init = "zeros" for null pointers, or give a file',
        )
    if init is Generator.ONES:
        out[...] = 1
    elif init is Generator.ARANGE:
        _arange(out, dtype, name)
    else:
        _random(out, dtype, name, seed)


def _arange(out: Array, dtype: DType, name: str) -> None:
    """0, 1, 2, … in C order."""
    limit = largest(dtype) if dtype.is_float else dtype.int_range()[1]
    if out.size - 1 > limit:
        last = f"arange over the {out.size:,} elements of '{name}' ends at {out.size - 1}"
        raise TeenyError("value-out-of-range", f"{last}, which {describe_range(dtype)}")
    flat = out.reshape(-1)
    for part in chunks(flat.size):
        numbers = np.arange(part.start, part.stop)
        flat[part] = round_to(numbers, dtype) if dtype.is_float else numbers


def _random(out: Array, dtype: DType, name: str, seed: int) -> None:
    """Floats uniform in [-1, 1), drawn as doubles; integers in [0, 100), drawn as int64; bool 0 or 1."""
    if seed < 0:
        raise TeenyError("negative-seed", f"the seed is {seed}; it must be 0 or more")
    rng = np.random.default_rng([seed, zlib.crc32(name.encode(errors="surrogatepass"))])
    flat, top = out.reshape(-1), round_to(np.array(below_one(dtype)), dtype) if dtype.is_float else 0
    # Drawing piece by piece gives the same numbers as drawing all at once.
    for part in chunks(flat.size):
        count = part.stop - part.start
        if dtype.is_float:
            # Rounding must not carry a number near 1 to 1, outside the range.
            flat[part] = np.minimum(round_to(rng.uniform(-1, 1, count), dtype), top)
        else:
            flat[part] = rng.integers(0, 2 if dtype.kind is Kind.BOOL else 100, count)
