"""What a kernel does with its parameters, in words.

May import ``ptx.usage``, for types.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from teenycli.ptx.usage import Access, Part, Usage, Use

_ACCESSES = {"load": "loads", "store": "stores", "atomic": "updates atomically", "other": "is passed to"}


def usage_words(usage: Usage, declared: bool = False, size: int = 0) -> list[str]:
    """What the code does with a parameter: ``["loads f32", "stores v4.b32"]``, ``["read as u32", "bounds a loop"]``.

    ``declared`` says that the parameter, of ``size`` bytes, is a pointer by its declaration. Of one in several parts
    only what the parts do not say.
    """
    if usage.unused:
        return ["never read"]
    said = ["beyond its end"] if usage.beyond else []
    if usage.narrow:
        said.append(f"only {max(load.size for load in usage.loads)} bytes of it")
    if usage.tensormap:
        said += ["a tensor map", *_accesses(usage)]
    elif parts_of(usage, size):
        said.append(f"read in {len(usage.parts)} parts" if len(usage.parts) > 1 else "read in part")
    else:
        return [*said, *_use(usage, declared)]
    return [*said, "handed on"] if usage.escaped else said


def part_words(part: Part) -> list[str]:
    """The same of a part."""
    return _use(part, declared=False)


def parts_of(usage: Usage, size: int = 0) -> tuple[Part, ...]:
    """The parts that are told one by one; none of a parameter, of ``size`` bytes, that is one value."""
    first, *others = usage.parts or (None,)
    whole = first is None or usage.narrow or (first.offset == 0 and first.size >= size)
    return () if whole and not others else usage.parts


def _use(use: Use, declared: bool) -> list[str]:
    said: list[str] = []
    if use.pointer or use.handle or declared:
        said += _accesses(use)
    elif use.loads:
        kinds = dict.fromkeys(load.type for load in use.loads)
        said.append(f"read as {' '.join(kinds)}")
        told = sorted(kind for kind in use.types if kind not in kinds and any(name[0] == "b" for name in kinds))
        said += [f"used as {' '.join(told)}"] if told else []
        said += _scalar(use)
    if use.escaped:
        said.append("handed on")
    return said or ["an address"]


def _accesses(use: Use) -> Iterator[str]:
    """``loads v4.b32``, ``stores b128 (cp.async.bulk)``, ``holds f32``."""
    kinds: dict[str, list[str]] = {}
    for access in use.accesses:
        if access.kind != "hint":
            kinds.setdefault(access.kind, []).append(_access(access))
    for kind, moved in kinds.items():
        yield f"{_ACCESSES[kind]} {' '.join(dict.fromkeys(moved))}"
    if not use.handle and any(access.kind == "hint" for access in use.accesses):
        yield "prefetches"
    named = {access.type for access in use.accesses}
    if use.elements and not use.elements <= named and not all(name[0] in "bu" for name in use.elements):
        yield f"holds {' '.join(sorted(use.elements))}"
    if use.handle:
        yield "a handle"


def _access(access: Access) -> str:
    moved = f"v{access.count}.{access.type}" if access.count > 1 else access.type
    return " ".join(filter(None, (moved, access.opcode and f"({access.opcode})")))


def _scalar(use: Use) -> Iterator[str]:
    if use.loop:
        yield "bounds a loop"
    if use.guard:
        yield "guards accesses"
    if use.bound and not (use.loop or use.guard):
        yield "compared"
    if use.divisor:
        yield "a divisor"
    if use.stride:
        yield "a stride"
    elif use.factor and not use.as_float:
        yield "a factor"
    if use.address and not use.stride:
        yield "part of addresses"
    if use.base:  # one of several that may be the pointer
        yield from _accesses(use)
