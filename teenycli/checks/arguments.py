"""Rules on arguments against parameters: how many, how wide, of what kind.

PTX ISA, "Parameter State Space": a launch copies each argument's bytes into the parameter's place, and nothing checks
them. May import ``checks.subject``, ``checks.words`` and what these may.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from teenycli.arch import param_bytes_limit
from teenycli.checks.subject import Passed, Subject
from teenycli.checks.words import count
from teenycli.dtypes import DTYPES
from teenycli.errors import Finding, Place, Severity
from teenycli.launch.plan import Argument, Field
from teenycli.ptx.layout import Slot, layout_size
from teenycli.ptx.usage import Part, Usage, Use


def argument_count(subject: Passed) -> Iterator[Finding]:
    """As many arguments as parameters, the compiler's own aside."""
    given, wanted = len(subject.args), len(subject.visible)
    if given == wanted:
        return
    hidden = f" (and {subject.hidden} hidden, which the compiler appended)" if subject.hidden else ""
    yield Finding(
        "argument-count",
        f"{count(given, 'argument')} for an entry of {count(wanted, 'parameter')}{hidden}",
        where=subject.key("args"),
        hint=_first_misfit(subject),
        note=f"{subject.entry.name} takes {signature(subject.visible)}",
    )


def _first_misfit(subject: Passed) -> str:
    """Which parameter seems to lack an argument, or which argument seems to be one too many."""
    args, slots = subject.args, subject.visible
    if subject.hidden and len(args) == len(slots) + subject.hidden:
        last = ", ".join(f"{argument.index} '{argument.name}'" for argument in args[len(slots) :])
        return f"leave out the last: teeny passes the hidden parameters itself, for which there is argument {last}"
    if len(args) + 1 == len(slots):
        fits = [slots[k] for k in range(len(slots)) if _fit(subject, args, slots[:k] + slots[k + 1 :])]
        if fits:
            return f"the others fit if nothing is passed for {' or '.join(map(_param, fits))}"
    if len(args) == len(slots) + 1:
        extra = [args[k] for k in range(len(args)) if _fit(subject, args[:k] + args[k + 1 :], slots)]
        if extra:
            return "the others fit without " + " or ".join(f"argument {a.index} '{a.name}'" for a in extra)
    for slot, argument in zip(slots, args, strict=False):
        if not _fit(subject, (argument,), (slot,)):
            return f"from argument {argument.index} on they do not fit: '{argument.name}' meets {_param(slot)}"
    return f"nothing is passed for {_param(slots[len(args)])}" if len(args) < len(slots) else "leave the last ones out"


def _fit(subject: Passed, args: tuple[Argument, ...], slots: tuple[Slot, ...]) -> bool:
    return all(fits_slot(arg, slot, subject.usages[slot.index]) for arg, slot in zip(args, slots, strict=True))


def fits_slot(argument: Argument, slot: Slot, usage: Usage) -> bool:
    """Whether an argument has its parameter's size, and no kind that the body makes nothing of."""
    return argument.size == slot.size and not _kind_problem(argument, slot, usage)


def signature(slots: Iterable[Slot]) -> str:
    """Parameters as a list of types."""
    return ", ".join(map(_type, slots)) or "no parameters"


def argument_width(subject: Passed) -> Iterator[Finding]:
    """Each argument has its parameter's size in bytes."""
    if len(subject.args) != len(subject.visible):
        return
    for slot, argument in zip(subject.visible, subject.args, strict=True):
        if argument.size != slot.size:
            yield Finding(
                "argument-width",
                f"argument {argument.index} '{argument.name}' is {argument.kind}, {count(argument.size, 'byte')}; "
                f"{_param(slot)} takes {count(slot.size, 'byte')}",
                where=subject.key(argument.source),
                hint=_padding(argument, slot) or subject.cure(_kinds_that_fit(slot, subject.usages[slot.index]), slot),
                note=subject.declared(slot),
            )


def _padding(argument: Argument, slot: Slot) -> str | None:
    """What to end a struct with, where all that it lacks may be the padding that its alignment brings."""
    lacks = slot.size - argument.size
    if argument.kind != "struct" or not 0 < lacks < slot.align:
        return None
    zeros = f"u{8 * lacks} 0" if lacks in (1, 2, 4, 8) else f"bytes {'00' * lacks}"
    last = f"its last {count(lacks, 'byte')}"
    return f"the parameter's alignment is {slot.align}: if {last} are padding, end the struct with '{zeros}'"


def argument_kind(subject: Passed) -> Iterator[Finding]:
    """A pointer where an address is wanted, a float where one is computed with, an integer elsewhere."""
    if len(subject.args) != len(subject.visible):
        return
    for slot, argument in zip(subject.visible, subject.args, strict=True):
        if argument.size != slot.size:
            continue
        problem = _kind_problem(argument, slot, subject.usages[slot.index])
        if problem:
            yield Finding(
                "argument-kind",
                f"argument {argument.index} '{argument.name}' is {argument.kind}; {_param(slot)} {problem}",
                Severity.WARNING if problem.startswith(_DOUBTFUL) else Severity.ERROR,
                where=subject.key(argument.source),
                hint=subject.cure(_kinds_that_fit(slot, subject.usages[slot.index]), slot),
                note=subject.declared(slot),
            )


def parameter_bytes(subject: Subject) -> Iterator[Finding]:
    """The parameters fit what the PTX version allows (PTX ISA, "Kernel Function Parameter Attributes")."""
    size, limit = layout_size(subject.slots), param_bytes_limit(subject.module.version)
    if size > limit:
        major, minor = subject.module.version
        yield Finding(
            "parameter-bytes",
            f"the parameters take {size:,} bytes; PTX {major}.{minor} allows {limit:,}",
            where=Place(subject.module.source.name, subject.entry.at.line),
            hint="pass large structs through a buffer",
        )


# --- kinds -------------------------------------------------------------------------------------------------------


def _kind_problem(argument: Argument, slot: Slot, usage: Usage) -> str | None:
    """What the parameter is instead, when the argument is of another kind."""
    for item in argument.fields:
        if slot.param.dims:
            part = usage.part(item.offset)
            problem = None if part is None else _member_problem(item, part)
        else:
            problem = _field_problem(item, slot, usage)
        if problem:
            return problem if len(argument.fields) == 1 else f"{problem} at byte {item.offset}"
    return _gap_problem(argument, usage) if slot.param.dims else None


def _gap_problem(argument: Argument, usage: Usage) -> str | None:
    """What is computed with although no member lies there: its bytes are the padding between two of them.

    Padding that is moved byte by byte, as compilers copy a struct that is indexed, is no member.
    """
    single = {part.offset for part in usage.parts if part.size == 1}
    ends = [item.offset for item in argument.fields[1:]] + [argument.size]
    for item, end in zip(argument.fields, ends, strict=True):
        begin = item.offset + (DTYPES[item.kind].size if item.kind in DTYPES else end - item.offset)
        if end - begin > 1 and single.issuperset(range(begin, end)):
            continue
        for part in usage.parts:
            if begin <= part.offset and part.offset + part.size <= end and _is_used(part):
                return f"has a member of {count(part.size, 'byte')} at byte {part.offset}, where nothing is passed"
    return None


def _is_used(part: Part) -> bool:
    """Whether a value is more than copied."""
    return part.as_float or part.as_integer or part.bound or part.factor or part.divisor or part.address


def _member_problem(item: Field, part: Part) -> str | None:
    """What the member of a struct is instead. Nothing where it is loaded together with others, or partly; a pair of
    halves in a word is no number of its own."""
    size = DTYPES[item.kind].size if item.kind in DTYPES else 0
    if part.pointer and item.kind in DTYPES and item.kind != "ptr":
        return "is a pointer"
    if item.kind != "ptr" and any(load.size > size and load.type[0] == "f" for load in part.loads):
        return f"holds a floating-point number of {8 * max(load.size for load in part.loads)} bits"
    if item.kind == "ptr" and part.size < size and (part.bound or part.as_integer or part.as_float):
        return f"holds a number of {8 * part.size} bits"
    if part.escaped or any(load.size != size for load in part.loads):
        return None
    types = {load.type for load in part.loads} | part.types
    floats = any(kind in DTYPES and DTYPES[kind].is_float and DTYPES[kind].size == size for kind in types)
    if item.kind == "ptr":
        return "holds a floating-point number" if floats else None if part.address else _no_address(part)
    if floats == DTYPES[item.kind].is_float or floats == part.as_integer:
        return None
    return "holds a floating-point number" if floats else "holds an integer"


def _field_problem(item: Field, slot: Slot, usage: Usage) -> str | None:
    if item.kind in ("bytes", "tensormap"):
        return None
    if item.kind == "ptr":
        floats, integers = _number_kinds(item.offset, 8, slot, usage)
        if floats and not integers:
            return "holds a floating-point number"
        if slot.param.pointer is not None or usage.escaped:
            return None
        number = usage.as_integer or usage.as_float or usage.bound or usage.factor or usage.divisor or usage.stored
        if usage.address:
            is_one = usage.pointer or usage.base
            return None if is_one else "has a part in addresses, and is none itself" if _counts(usage) else _ROUNDED
        return _no_address(usage) if number else None  # code for debuggers loads what nothing uses
    if is_pointer(slot, usage):
        return "is a pointer"
    floats, integers = _number_kinds(item.offset, DTYPES[item.kind].size, slot, usage)
    if DTYPES[item.kind].is_float:
        return None if floats else "holds an integer"
    return None if integers else "holds a floating-point number"


#: Of what may be an address after all, rounded, or never followed: the end of a row, one that may be null.
_ROUNDED = "seems to be no address itself, but a part of one"
_UNFOLLOWED = "seems to be no address: it is compared, or added to, and nothing is loaded or stored there"
_DOUBTFUL = (_ROUNDED, _UNFOLLOWED)


def _no_address(use: Use) -> str:
    return "is used in no address" if _counts(use) else _UNFOLLOWED


def _counts(use: Use) -> bool:
    """Whether a value is multiplied, divided or used as a float, as no address is."""
    return use.factor or use.divisor or use.as_float


def is_pointer(slot: Slot, usage: Usage) -> bool:
    """Whether the parameter is an address: declared ``.ptr``, or used as one as it is."""
    return slot.param.pointer is not None or usage.pointer


def _number_kinds(offset: int, size: int, slot: Slot, usage: Usage) -> tuple[bool, bool]:
    """Whether a float, and whether an integer, of ``size`` bytes fits the parameter at ``offset``.

    What the code loads there refines what the list declares: a ``.u32`` loaded as ``.f32`` is a float. A load of
    another size, as of one that copies two members at once, says nothing.
    """
    part = usage.part(offset)
    if part is not None and part.size == size:
        loads = [load.type for load in part.loads]
        declared_float = slot.param.type[0] == "f"  # what is only moved may be loaded as anything
        floats = declared_float or any(kind[0] == "f" for kind in loads) or part.as_float
        integers = part.as_integer or (not declared_float and any(kind[0] in "us" for kind in loads))
        if floats or integers:
            return floats, integers
    declared = slot.param.type[0]
    return declared in "fb", declared in "usb"


# --- words -------------------------------------------------------------------------------------------------------


def _kinds_that_fit(slot: Slot, usage: Usage) -> list[str]:
    if slot.param.dims or slot.param.vector > 1:
        return ["struct"]
    if is_pointer(slot, usage):
        return ["ptr"]
    floats, integers = _number_kinds(0, slot.size, slot, usage)
    return [
        name
        for name, dtype in DTYPES.items()
        if dtype.size == slot.size and name not in ("e4m3", "e5m2", "ptr") and (floats if dtype.is_float else integers)
    ]


def _param(slot: Slot) -> str:
    return f"parameter {slot.index} ({_type(slot)})"


def _type(slot: Slot) -> str:
    return f".{slot.param.declared_type}" + (" .ptr" if slot.param.pointer else "")
