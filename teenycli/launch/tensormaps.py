"""Tensor maps of a launch: which part of which buffer, in boxes of which size, a tensor copy moves.

May import ``errors``, ``manifest`` and, in this room, ``namespace`` and ``plan``.
"""

from __future__ import annotations

from itertools import accumulate
from operator import mul

from teenycli.errors import TeenyError
from teenycli.launch.namespace import BufferView, Namespace, Pointer
from teenycli.launch.plan import Address, TensorMap
from teenycli.launch.values import describe
from teenycli.manifest.spec import TensorMapSpec, join, quote


def tensor_map(names: Namespace, name: str) -> TensorMap:
    """The map ``tensormaps.{name}`` of the op.

    Raises TeenyError, placed at its key: what its expressions raise, ``bad-argument`` where ``of`` is no buffer,
    ``bad-value`` for lists that are not as long as the buffer has dimensions, and for rows that are of no whole
    dimensions.
    """
    spec = names.kernel.tensormaps[name]
    key = join("tensormaps", quote(name))
    buffer, elements = _target(names, spec, key)
    rank = len(buffer.shape)
    box = _numbers(names, spec, "box", key, rank)
    steps = _numbers(names, spec, "element_strides", key, rank) if spec.element_strides is not None else (1,) * rank
    if spec.strides is not None:
        strides = _numbers(names, spec, "strides", key, rank - 1)
    else:
        strides = _strides(names, buffer, key)
    return TensorMap(
        name,
        Address(buffer.name, elements * buffer.itemsize),
        buffer.dtype,
        buffer.shape,
        tuple(stride * buffer.itemsize for stride in strides),
        box,
        steps,
        spec.swizzle,
        spec.interleave,
        spec.fill,
    )


def _target(names: Namespace, spec: TensorMapSpec, key: str) -> tuple[BufferView, int]:
    value = names.value(spec.of, f"{key}.of")
    pointer = Pointer(value) if isinstance(value, BufferView) else value
    if not isinstance(pointer, Pointer) or pointer.buffer is None:
        what = describe(value) if pointer is not None else "null"
        message = f"a tensor map is of a buffer, and '{spec.of}' is {what}"
        raise TeenyError("bad-argument", message, where=names.kernel.origin.place(f"{key}.of"))
    return pointer.buffer, pointer.elements


def _numbers(names: Namespace, spec: TensorMapSpec, field: str, key: str, count: int) -> tuple[int, ...]:
    numbers = names.integers(getattr(spec, field), f"{key}.{field}")
    if len(numbers) != count:
        message = f"{field} has {len(numbers)} numbers, and '{spec.of}' needs {count}: slowest dimension first"
        hint = "strides are of all dimensions but the last, in elements" if field == "strides" else None
        raise TeenyError("bad-value", message, where=names.kernel.origin.place(f"{key}.{field}"), hint=hint)
    return numbers


def _strides(names: Namespace, buffer: BufferView, key: str) -> tuple[int, ...]:
    """Elements from one index to the next of all dimensions but the last, where rows lie as the buffer says."""
    elems, stride = buffer.rows
    inner = list(accumulate(reversed(buffer.shape[1:]), mul))[::-1]  # those of a dense buffer
    if elems == stride:
        return tuple(inner)
    if elems not in (*inner, buffer.size):
        message = f"the rows of '{buffer.name}' have {elems:,} elements, which no dimension strides over"
        where = names.kernel.origin.place(key)
        raise TeenyError("bad-value", message, where=where, hint="say the strides of the tensor map")
    return tuple(each if each < elems else each // elems * stride for each in inner)
