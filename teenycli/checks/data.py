"""Rules on what buffers hold at first: a file has the bytes, shape and values that its buffer needs.

May import ``checks.subject``, ``tensors``, and what they may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from teenycli.checks.subject import Subject
from teenycli.errors import Finding, TeenyError

#: What ``tensors`` says of a file that is there and does not fit. Anything else is an error of the op as a whole.
_MISFITS = frozenset({"byte-count", "array-shape", "value-out-of-range"})


def initial_data(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """Each ``init`` that names a file holds product(shape) elements that the dtype can hold.

    Raises TeenyError when the file cannot be read at all.
    """
    subject = subjects[0]
    files = [b for b in subject.plan.buffers if isinstance(b.init, str) and _may_be_file(b.init)]
    if not files:
        return  # and numpy stays out
    from teenycli.tensors.arrays import fill, parse_init
    from teenycli.tensors.files import FileRef

    for buffer in files:
        assert isinstance(buffer.init, str)
        init = parse_init(buffer.init)
        if not isinstance(init, FileRef):
            continue
        try:
            fill(init, buffer.dtype, buffer.shape, buffer.name, 0, subject.spec.folder)
        except TeenyError as error:
            if error.finding.id not in _MISFITS:
                raise
            shape = ", ".join(map(str, buffer.shape))
            yield Finding(
                error.finding.id,
                f"'{buffer.name}': {error.finding.message}",
                where=subject.key(buffer.source),
                hint=error.finding.hint,
                note=f"the buffer is {buffer.dtype}[{shape}], {buffer.size * buffer.dtype.size:,} bytes",
            )


def row_strides(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """No row of a buffer begins before the one before it ends."""
    subject = subjects[0]
    for buffer in subject.plan.buffers:
        elems, stride = buffer.row_elems, buffer.row_stride
        if elems is not None and stride is not None and stride < elems:
            yield Finding(
                "row-stride",
                f"the rows of '{buffer.name}' have {elems:,} elements, and begin {stride:,} apart: each would "
                "overwrite the end of the one before it",
                where=subject.key(
                    buffer.source if buffer.source.endswith("_row_stride") else f"{buffer.source}.row_stride"
                ),
                hint=f"a row stride is at least {elems:,}: align({elems:,}, n) rounds it up to a multiple of n",
            )


def _may_be_file(init: str) -> bool:
    return "." in init or init.startswith("@")
