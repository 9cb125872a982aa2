"""Rules on what buffers hold at first: a file or an expression has the shape and values that its buffer needs.

May import ``checks.subject``, ``launch.variables``, ``tensors``, and what they may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from teenycli.checks.subject import Subject
from teenycli.errors import Finding, TeenyError
from teenycli.launch.variables import settable, unknown_global
from teenycli.manifest.spec import DEFAULT_INITS

#: What ``tensors`` says of data that are there and do not fit. Anything else is an error of the op as a whole.
_MISFITS = frozenset({"byte-count", "array-shape", "value-out-of-range", "element-type"})
#: Bytes of a buffer up to which an expression is computed to see what it gives.
_MOST = 1 << 26
_GENERATORS = frozenset(DEFAULT_INITS.values()) | {"ones", "arange"}


def initial_data(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """Each ``init`` that names a file, or is an expression, gives product(shape) elements that the dtype can hold.

    Raises TeenyError when the file cannot be read at all, or the expression not be computed.
    """
    subject = subjects[0]
    plan = subject.plan
    said = [b for b in plan.buffers if isinstance(b.init, str) and b.init not in _GENERATORS]
    if not said:
        return
    from teenycli.tensors.arrays import Expression, fill, parse_init
    from teenycli.tensors.files import FileRef

    names = {**plan.consts, **plan.scalars, **plan.case}
    for buffer in said:
        assert isinstance(buffer.init, str)
        init = parse_init(buffer.init)
        if not isinstance(init, FileRef) and not (isinstance(init, Expression) and buffer.nbytes <= _MOST):
            continue
        try:
            fill(init, buffer.dtype, buffer.shape, buffer.name, 0, subject.spec.folder, names)
        except TeenyError as error:
            if error.finding.id == "unknown-name" and isinstance(init, Expression):
                continue  # it may be of another buffer, which a run fills first
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


def globals_known(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """Each variable that ``globals`` sets is one of the PTX."""
    kernel, known = subjects[0].kernel, settable(subjects[0].module)
    for name in kernel.globals:
        if name not in known:
            yield unknown_global(name, known, kernel.origin.place(f"globals.{name}"))
