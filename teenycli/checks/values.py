"""Rules on the numbers that are passed: that the body takes all of them, and that an extent is one of something.

May import ``checks.subject``, ``checks.words`` and what these may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import prod

from teenycli.checks.subject import Subject
from teenycli.checks.words import twice
from teenycli.dtypes import DTYPES
from teenycli.errors import Finding, Severity
from teenycli.launch.plan import Argument, Buffer, Field
from teenycli.manifest.spec import OpSpec, quote
from teenycli.ptx.layout import Slot
from teenycli.ptx.usage import Part

#: Numbers up to this are taken for counts of anything.
_SMALL = 64
#: By what extents are commonly divided and to what they are rounded, the op's own numbers apart.
_POWERS = tuple(2**k for k in range(1, 11))
#: Most extents that others are multiplied and divided by.
_FACTORS = 256


def values_fit(subject: Subject) -> Iterator[Finding]:
    """An integer is no larger than what the body reads of it, and of the sign that it takes it for."""
    for argument, slot, item, part in _integers(subject):
        assert isinstance(item.value, int)
        size = DTYPES[item.kind].size
        read = max((load.size for load in part.loads if load.offset == item.offset), default=size)
        if read < size and not -(2 ** (8 * read - 1)) <= item.value < 2 ** (8 * read):
            message = f"the kernel reads only {8 * read} bits of parameter {slot.index}"
            yield _misfit(subject, argument, item, message, Severity.ERROR)
        signs = {kind[0] for kind in part.types if kind[:1] in ("s", "u")}
        if signs == {"u"} and item.value < 0:
            message = f"to the kernel parameter {slot.index} has no sign: it is {item.value % 2 ** (8 * size):,}"
            yield _misfit(subject, argument, item, message, Severity.WARNING)
        elif signs == {"s"} and item.value >= 2 ** (8 * size - 1):
            message = f"to the kernel parameter {slot.index} has a sign: it is {item.value - 2 ** (8 * size):,}"
            yield _misfit(subject, argument, item, message, Severity.WARNING)


def _misfit(subject: Subject, argument: Argument, item: Field, message: str, severity: Severity) -> Finding:
    assert isinstance(item.value, int)
    return Finding(
        "value-out-of-range",
        f"argument {argument.index} '{argument.name}' is {item.value:,}, and {message}",
        severity,
        where=subject.key(argument.source),
    )


def _integers(subject: Subject) -> Iterator[tuple[Argument, Slot, Field, Part]]:
    """The integers that the body loads, with what it makes of them."""
    for argument, slot, item, _ in subject.passed:
        part = subject.usages[slot.index].part(item.offset)
        if isinstance(item.value, int) and item.kind in DTYPES and part is not None:
            yield argument, slot, item, part


# --- scalars ---------------------------------------------------------------------------------------------------------


def scalars_passed(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """Each scalar of the op has a part in what its launches are given; what is compiled in is a const."""
    subject = subjects[0]
    if subject.plan.backward or not subject.spec.scalars:
        return
    read = _names_read(subject.spec)
    for name in subject.spec.scalars:
        if name not in read:
            yield Finding(
                "scalar-unused",
                f"no argument passes the scalar '{name}': whatever it is, the launch stays the same",
                Severity.WARNING,
                where=subject.spec.origin.place(f"scalars.{quote(name)}"),
                hint=_passed_twice(subject) or "what the kernel was compiled with belongs to consts",
            )


def _names_read(spec: OpSpec) -> set[str]:
    """What the expressions of an op and its backward name, and the words of what buffers and globals begin with."""
    kernels = [spec] if spec.backward is None else [spec, spec.backward]
    inits = [buffer.init for _, _, buffer in spec.buffers()] + [init for k in kernels for init in k.globals.values()]
    words = {word for init in inits if isinstance(init, str) for word in re.findall(r"\w+", init)}
    return words.union(*(expression.names for _, expression in spec.expressions()))


def _passed_twice(subject: Subject) -> str | None:
    """Which arguments pass the same scalar, one of them perhaps instead of another."""
    named = ((subject.named(argument, item), argument) for argument, _, item, _ in subject.passed)
    found = twice((name, argument) for name, argument in named if name in subject.spec.scalars)
    if found is None:
        return None
    one, other, name = found
    return f"arguments {one.index} and {other.index} both pass '{name}'"


# --- extents ---------------------------------------------------------------------------------------------------------


def extents_known(subject: Subject) -> Iterator[Finding]:
    """What bounds a loop or an access, or divides, is an extent of something: of a buffer, of the launch.

    A dim, a scalar or a const that is passed as it is says what its user wants; what is computed from them may be
    computed wrongly.
    """
    for argument, slot, item, part in _integers(subject):
        assert isinstance(item.value, int)
        if DTYPES[item.kind].is_float or not (part.guard or part.loop or part.divisor) or item.value <= _SMALL:
            continue
        if subject.named(argument, item) is not None or item.value > 2 * max(_numbers(subject)):
            continue  # what is far beyond all data bounds nothing: so no limit is passed
        if item.value not in _known(subject):
            what = "divides by" if part.divisor else "counts up to" if part.loop else "compares with"
            yield Finding(
                "extent-mismatch",
                f"argument {argument.index} '{argument.name}', which the kernel {what}, is {item.value:,}: no extent, "
                "size or stride of a buffer, nor anything of the grid or block",
                Severity.WARNING,
                where=subject.key(argument.source),
                hint=_nearest(subject, item.value),
                note=subject.declared(slot),
            )


def _known(subject: Subject) -> frozenset[int]:
    """The numbers of the launch, and what is commonly made of them."""
    buffers = subject.plan.buffers
    dims = frozenset(extent for buffer in buffers for extent in buffer.shape if extent > 1)
    return _derived(frozenset(_numbers(subject)), dims) | {buffer.nbytes for buffer in buffers}


@lru_cache(maxsize=16)
def _derived(own: frozenset[int], dims: frozenset[int]) -> frozenset[int]:
    """Numbers, sums of two extents, multiples by extents and small numbers, quotients, and what they round up to."""
    factors = sorted({*dims, *(each for each in own if each <= 1024)} - {0, 1, 2})[:_FACTORS]
    made = {one + other for one, other in combinations(sorted(dims)[:_FACTORS], 2)} | own
    made |= {number * factor for number in own for factor in factors}
    for number in own:
        for factor in {*_POWERS, *factors}:
            made |= {number // factor, -(-number // factor), -(-number // factor) * factor}
    return frozenset(made)


def data_extents(buffers: Sequence[Buffer]) -> frozenset[int]:
    """Extents and sizes of buffers, of dimensions that follow one another, and equal parts of these."""
    own = {number for buffer in buffers for number in _of_buffer(buffer) if number > 1}
    return frozenset({number // factor for number in own for factor in (1, *_POWERS) if number % factor == 0})


def _numbers(subject: Subject) -> set[int]:
    launch, plan = subject.launch, subject.plan
    numbers = {number for buffer in plan.buffers for number in _of_buffer(buffer)}
    for triple in (launch.grid, launch.block, launch.cluster):
        numbers |= {*triple, prod(triple)}
    numbers |= {launch.ctas * launch.threads, launch.shared}
    for named in (plan.case, plan.scalars, plan.consts):
        numbers |= {value for value in named.values() if isinstance(value, int)}
    return numbers


def _of_buffer(buffer: Buffer) -> Iterator[int]:
    shape = buffer.shape
    yield from (prod(shape[i:j]) for i in range(len(shape)) for j in range(i, len(shape) + 1))
    yield from buffer.rows


def _nearest(subject: Subject, value: int) -> str:
    near = sorted(_numbers(subject), key=lambda number: (abs(number - value), number))[:3]
    return f"the nearest are {', '.join(f'{number:,}' for number in near)}"
