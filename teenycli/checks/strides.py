"""Rules on how the body walks through a buffer: by strides that the buffer has, with indices that reach its end.

May import ``checks.subject`` and what it may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import prod

from teenycli.checks.subject import Subject
from teenycli.errors import Finding, Severity
from teenycli.launch.plan import Address, Argument, Buffer, Field
from teenycli.ptx.strides import Reached

#: What a signed index of 32 bits reaches; what reaches less has no index in it.
_INDEX = 2**31
#: Literals up to this are the user's own numbers: how far a window moves, say.
_SMALL = 64


def stride_values(subject: Subject) -> Iterator[Finding]:
    """What the body multiplies an index into a buffer with is one of the distances that the buffer has.

    A buffer of one dimension has none to compare with; and a number of the user's own, that is no extent of a buffer
    (the stride of a convolution), is left alone, as is the length of the parts that blocks share a row in.
    """
    extents = frozenset(_extents(subject))
    counts = _counts(subject)
    for argument, buffer, how in _walked(subject):
        if len([extent for extent in buffer.shape if extent > 1]) < 2 and not buffer.is_padded:
            continue
        for other, item in _scalars(subject, how):
            named = subject.named(other, item)
            if (named is not None and named not in extents) or subject.is_literal(other, item, _SMALL):
                continue
            if not _is_stride(buffer, item.value) and not _is_part(buffer, item.value, counts):
                yield _no_stride(subject, argument, buffer, other, item)


def stands_still(subject: Subject, buffer: Buffer) -> bool:
    """Whether a stride that an index into ``buffer`` is multiplied with is 0, so that some dimension is not walked."""
    return any(
        item.value == 0
        for _, other, how in _walked(subject)
        if other.name == buffer.name
        for _, item in _scalars(subject, how)
    )


def _walked(subject: Subject) -> Iterator[tuple[Argument, Buffer, Reached]]:
    """Each pointer into a buffer, of a struct too, with what is known of the accesses through it."""
    for argument, slot, item, _ in subject.passed:
        how = subject.compiled.reached.get((slot.index, item.offset))
        if how is not None and isinstance(item.value, Address) and item.value.buffer is not None:
            yield argument, subject.plan.buffer(item.value.buffer), how


def _scalars(subject: Subject, how: Reached) -> Iterator[tuple[Argument, Field]]:
    """The integers that an index is multiplied with."""
    for argument, slot, item, _ in subject.passed:
        if isinstance(item.value, int) and (slot.index, item.offset) in how.strides:
            yield argument, item


def _is_stride(buffer: Buffer, value: object) -> bool:
    """Whether ``value`` is a distance in the buffer, in elements or bytes: of some of its dimensions that follow one
    another, of its rows where they lie apart, of some rows at once, or of equal parts of a row."""
    assert isinstance(value, int)
    strides, spans, size = [stride for stride in _strides(buffer) if stride > 1], _spans(buffer), buffer.dtype.size
    if len(buffer.shape) > 1 and buffer.shape[-1] == buffer.shape[-2]:
        spans |= {strides[-1] + 1, strides[-1] - 1} if strides else set()  # along the diagonals of a square
    row = buffer.shape[-1] if buffer.shape else 1
    return any(
        count <= 1 or count in spans or (count < row and row % count == 0) or any(count % s == 0 for s in strides)
        for count in (abs(value), *([abs(value) // size] if value % size == 0 else []))
    )


def _is_part(buffer: Buffer, value: object, counts: Collection[int]) -> bool:
    """Whether so many of a row's elements are one of ``counts`` parts of it, the last perhaps shorter."""
    assert isinstance(value, int)
    return any((count - 1) * value < buffer.shape[-1] <= count * value for count in counts)


def _counts(subject: Subject) -> set[int]:
    """In how many parts a row may be cut: dimensions of the grid, and integers of the user's own."""
    plan = subject.plan
    named = (value for names in (plan.case, plan.scalars, plan.consts) for value in names.values())
    return {count for count in (*subject.launch.grid, *named) if isinstance(count, int) and count > 1}


def _strides(buffer: Buffer) -> list[int]:
    """Elements from one index of each dimension to the next, slowest first."""
    _, elems, stride = buffer.rows
    tight = [prod(buffer.shape[k + 1 :]) for k in range(len(buffer.shape))]
    return [each // elems * stride if each % elems == 0 else each for each in tight] if buffer.is_padded else tight


def _spans(buffer: Buffer) -> set[int]:
    """How many elements dimensions that follow one another have together."""
    shape = buffer.shape
    return {prod(shape[i:j]) for i in range(len(shape)) for j in range(i + 1, len(shape) + 1)} - (
        {buffer.shape[-1]} if buffer.is_padded and buffer.row_elems == buffer.shape[-1] else set()
    )


def _extents(subject: Subject) -> Iterator[str]:
    """The names that stand alone as an extent of a buffer."""
    for _, _, buffer in subject.spec.buffers():
        yield from (extent.text.strip() for extent in buffer.shape or ())


def _no_stride(subject: Subject, argument: Argument, buffer: Buffer, other: Argument, item: Field) -> Finding:
    assert isinstance(item.value, int)
    strides = ", ".join(f"{stride:,}" for stride in _strides(buffer))
    return Finding(
        "stride-mismatch",
        f"the kernel multiplies indices into '{buffer.name}' with argument {other.index} '{other.name}', which is "
        f"{item.value:,}; the strides of '{buffer.name}' are {strides}",
        Severity.WARNING,
        where=subject.key(other.source),
        hint=f"pass a stride of '{buffer.name}'",
        note=f"argument {argument.index} '{argument.name}' is where it begins",
    )


def index_reach(subject: Subject) -> Iterator[Finding]:
    """A 32-bit index reaches the end of the buffer, of an output at least.

    Where a buffer is passed from further on in some launch, each launch may well see to a part of it.
    """
    fields = (item.value for launch in subject.plan.launches for argument in launch.args for item in argument.fields)
    begun = {value.buffer for value in fields if isinstance(value, Address) and value.offset}
    for argument, buffer, how in _walked(subject):
        if buffer.name in begun or not _INDEX <= how.reach < buffer.nbytes - buffer.dtype.size:
            continue
        if any(_is_wide(subject, unit) for unit in how.parts | how.strides):
            continue
        yield Finding(
            "index-overflow",
            f"'{buffer.name}' has {buffer.size:,} elements, {buffer.nbytes:,} bytes; by indices of 32 bits the kernel "
            f"reaches {int(how.reach):,} bytes from argument {argument.index} on",
            Severity.ERROR if buffer.is_output else Severity.WARNING,
            where=subject.key(argument.source),
            hint="compile the kernel with 64-bit indices, or launch it over parts of the buffer",
        )


def _is_wide(subject: Subject, unit: tuple[int, int]) -> bool:
    """Whether a parameter is a number of 64 bits, which reaches anywhere."""
    index, offset = unit
    for argument, slot in zip(subject.args, subject.visible, strict=True):
        if slot.index == index:
            kinds = [item.kind for item in argument.fields if item.offset == offset]
            return not kinds or kinds[0] in ("i64", "u64", "bytes")
    return True
