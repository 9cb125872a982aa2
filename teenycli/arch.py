"""What depends on the GPU architecture: constant-bank base, launch limits, shared memory. Imports only ``errors``.

Numbers are from the CUDA C++ Programming Guide's table of technical specifications per compute capability and, for
the constant bank, from measurement (``docs/layout.md``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from teenycli.errors import TeenyError

_TARGET = re.compile(r"(?:sm|compute)_([0-9]{2,3})([af]?)")


@dataclass(frozen=True, slots=True)
class Target:
    """A ``.target`` such as ``sm_90a``: compute capability times ten, and the suffix.

    Suffix ``a`` means "this architecture only", ``f`` "this family only" (PTX ISA, ".target").
    """

    sm: int
    suffix: str = ""

    @property
    def capability(self) -> tuple[int, int]:
        return divmod(self.sm, 10)

    def __str__(self) -> str:
        return f"sm_{self.sm}{self.suffix}"


def parse_target(text: str) -> Target:
    """``sm_90a``, ``compute_90a`` or ``90`` as a :class:`Target`.

    Raises TeenyError ``unknown-target`` for anything else.
    """
    match = _TARGET.fullmatch(text) or _TARGET.fullmatch(f"sm_{text}")
    if match is None:
        raise TeenyError("unknown-target", f"'{text}' is no GPU target", hint="write it as sm_90, sm_90a or 90")
    return Target(int(match[1]), match[2])


#: First and last sm of a range, and the address in constant bank 0 at which kernel parameters begin.
_PARAM_BASE = ((75, 89, 0x160), (90, 90, 0x210), (100, 121, 0x380))


def param_base(sm: int) -> int | None:
    """Address in the constant bank of an entry's first parameter, or None for an architecture not measured."""
    return next((base for low, high, base in _PARAM_BASE if low <= sm <= high), None)


@dataclass(frozen=True, slots=True)
class Limits:
    """Launch limits. Sizes in bytes; ``shared_optin`` is static plus dynamic shared memory after opting in."""

    threads_per_block: int = 1024
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    cluster: int = 8
    shared_default: int = 48 * 1024
    shared_optin: int = 48 * 1024


#: Opt-in limit of shared memory a block, in KiB, by sm. An sm not listed takes that of the nearest one below it.
_SHARED_OPTIN_KIB = {
    50: 48, 70: 96, 72: 96, 75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 110: 227, 120: 99,
    121: 99,
}  # fmt: skip


def limits_of(sm: int) -> Limits:
    """Limits of the architecture ``sm`` (80 for sm_80)."""
    known = max((k for k in _SHARED_OPTIN_KIB if k <= sm), default=50)
    return Limits(cluster=8 if sm >= 90 else 1, shared_optin=_SHARED_OPTIN_KIB[known] * 1024)


def param_bytes_limit(version: tuple[int, int]) -> int:
    """Most bytes an entry's parameters may take, by PTX version (PTX ISA, "Kernel Function Parameters")."""
    return 32764 if version >= (8, 1) else 4352
