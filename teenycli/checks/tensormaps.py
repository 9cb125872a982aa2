"""Rules on tensor maps: what the driver refuses with a bare "invalid argument", and what would leave the buffer.

CUDA Driver API, "Tensor Map Object Management", ``cuTensorMapEncodeTiled``; PTX ISA, "Tensors". May import
``checks.subject`` and what it may.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from teenycli.checks.subject import Subject
from teenycli.errors import Finding
from teenycli.launch.plan import TensorMap
from teenycli.ptx.layout import Slot

_SPANS = {"32B": 32, "64B": 64, "128B": 128}
_RANK, _BOX, _STEP, _EXTENT = 5, 256, 8, 2**32


def tensor_maps(subject: Subject) -> Iterator[Finding]:
    """Every tensor map is one that a tensor copy can use, passed by value where it is wanted aligned."""
    for argument, slot in zip(subject.args, subject.visible, strict=False):
        for item in argument.fields:
            if isinstance(item.value, TensorMap):
                yield from _shape(subject, item.value)
                yield from _memory(subject, item.value)
                yield from _parameter(subject, item.value, slot)


def _finding(subject: Subject, of: TensorMap, id: str, field: str, message: str, hint: str | None = None) -> Finding:
    key = f"tensormaps.{of.name}" + (f".{field}" if field else "")
    return Finding(id, f"tensor map '{of.name}': {message}", where=subject.key(key), hint=hint)


def _shape(subject: Subject, of: TensorMap) -> Iterator[Finding]:
    least = 3 if of.interleave != "none" else 1
    if not least <= len(of.shape) <= _RANK:
        yield _finding(subject, of, "tensormap-rank", "of", f"{len(of.shape)} dimensions; {least} to {_RANK} can be")
        return
    for k, extent in enumerate(of.shape):
        if extent > _EXTENT:
            message = f"dimension {k} is {extent:,} elements; a map takes up to 2**32"
            yield _finding(subject, of, "tensormap-rank", "of", message, "describe a part: of = 'x + n'")
    for k, extent in enumerate(of.box):
        if not 1 <= extent <= _BOX:
            yield _finding(subject, of, "tensormap-box", "box", f"box[{k}] is {extent:,} elements; 1 to {_BOX} can be")
    for k, step in enumerate(of.element_strides):
        if not 1 <= step <= _STEP:
            message = f"element_strides[{k}] is {step}; 1 to {_STEP} can be"
            yield _finding(subject, of, "tensormap-element-stride", "element_strides", message)
    steps = zip(of.box, of.element_strides, strict=True)
    moved = prod(-(-extent // step) for extent, step in steps if step > 0) * of.dtype.size
    if moved > subject.limits.shared_optin:
        message = (
            f"a box is {moved:,} bytes; sm_{subject.sm} has {subject.limits.shared_optin:,} of shared memory a block"
        )
        yield _finding(subject, of, "tensormap-box", "box", message)
    inner = of.box[-1] * of.dtype.size
    if of.interleave == "none" and inner % 16:
        message = f"a row of the box is {of.box[-1]} x {of.dtype.size} = {inner:,} bytes, which is no multiple of 16"
        yield _finding(subject, of, "tensormap-box", "box", message)
    span = _SPANS.get(of.swizzle)
    if of.interleave == "none" and span is not None and inner > span:
        message = f"a row of the box is {inner:,} bytes; a swizzle of {of.swizzle} spans {span}"
        hint = f"at most {span // of.dtype.size} elements of {of.dtype} in the last dimension of the box"
        yield _finding(subject, of, "tensormap-swizzle", "swizzle", message, hint)
    if of.interleave == "32B" and of.swizzle != "32B":
        message = f"an interleave of 32B wants a swizzle of 32B, not {of.swizzle}"
        yield _finding(subject, of, "tensormap-swizzle", "swizzle", message)
    if of.fill == "nan" and not of.dtype.is_float:
        yield _finding(subject, of, "tensormap-fill", "fill", f"elements of {of.dtype} cannot be NaN")


def _memory(subject: Subject, of: TensorMap) -> Iterator[Finding]:
    multiple = 32 if of.interleave == "32B" else 16
    for k, stride in enumerate(of.strides):
        if stride % multiple or not 0 < stride < 2**40:
            message = f"the stride of dimension {k} is {stride:,} bytes, which is no multiple of {multiple}"
            each = multiple // of.dtype.size
            hint = f"a row stride of a multiple of {each} elements: align(…, {each})"
            yield _finding(subject, of, "tensormap-stride", "strides", message, hint)
    if of.address.offset % multiple:
        message = f"it begins {of.address.offset:,} bytes into '{of.buffer}', which is no multiple of {multiple}"
        yield _finding(subject, of, "tensormap-address", "of", message)
    buffer = subject.plan.buffer(of.buffer)
    last = sum((extent - 1) * stride for extent, stride in zip(of.shape, (*of.strides, of.dtype.size), strict=False))
    end = of.address.offset + last + of.dtype.size
    if of.address.offset < 0 or end > buffer.nbytes:
        message = f"it reaches from byte {of.address.offset:,} to {end:,} of '{of.buffer}', which has {buffer.nbytes:,}"
        yield _finding(subject, of, "tensormap-bounds", "", message)


def _parameter(subject: Subject, of: TensorMap, slot: Slot) -> Iterator[Finding]:
    if slot.size == TensorMap.SIZE and slot.align % TensorMap.ALIGN:
        message = f"parameter {slot.index} is aligned to {slot.align} bytes, and a tensor map to {TensorMap.ALIGN}"
        yield _finding(subject, of, "tensormap-align", "", message, "declare it a __grid_constant__ const CUtensorMap")
