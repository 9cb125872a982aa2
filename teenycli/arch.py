"""What depends on the GPU architecture: which PTX it runs, constant-bank base, launch limits, shared memory. Imports
only ``errors``.

Numbers are from the CUDA C++ Programming Guide's table of technical specifications per compute capability and, for
the constant bank, from measurement (``docs/layout.md``).
"""

from __future__ import annotations

import re

from msgspec import Struct

from teenycli.errors import TeenyError

_TARGET = re.compile(r"(?:sm|compute|(code))_([0-9]{2,3})([af]?)")


#: CTAs of a cluster, at most, on any GPU, where more than the portable limit are asked for (CUDA C++ Programming Guide,
#: "Thread Block Clusters").
LARGEST_CLUSTER = 16


class Target(Struct, frozen=True):
    """A ``.target`` such as ``sm_90a``: compute capability times ten, and the suffix.

    Suffix ``a`` means "this architecture only", ``f`` "this family only" (PTX ISA, ".target"). ``is_code``: machine
    code of that architecture, not PTX for it.
    """

    sm: int
    suffix: str = ""
    is_code: bool = False

    @property
    def capability(self) -> tuple[int, int]:
        return divmod(self.sm, 10)

    def __str__(self) -> str:
        return f"sm_{self.sm}{self.suffix}{' (machine code)' if self.is_code else ''}"


def parse_target(text: str) -> Target:
    """``sm_90a``, ``compute_90a`` or ``90`` as a :class:`Target`; ``code_90`` is machine code for sm_90.

    Raises TeenyError ``unknown-target`` for anything else.
    """
    match = _TARGET.fullmatch(text) or _TARGET.fullmatch(f"sm_{text}")
    if match is None:
        raise TeenyError("unknown-target", f"'{text}' is no GPU target", hint="write it as sm_90, sm_90a or 90")
    return Target(int(match[2]), match[3], match[1] is not None)


#: CUDA 13 gave Thor, whose capability was 10.1, the number 11.0; texts made before still say sm_101.
_RENAMED = {101: 110}


def takes_target(target: Target, sm: int) -> bool:
    """Whether a GPU of architecture ``sm`` (90 for sm_90) runs PTX of this ``.target``.

    PTX runs on its own architecture and every later one; with suffix ``a`` on its own alone, with ``f`` on later
    members of its family, which share the major number (PTX ISA, ".target"), and so does machine code (CUDA C++
    Programming Guide, "Binary Compatibility").
    """
    wanted, have = _RENAMED.get(target.sm, target.sm), _RENAMED.get(sm, sm)
    if target.suffix == "a":
        return have == wanted
    if target.suffix == "f" or target.is_code:
        return have >= wanted and have // 10 == wanted // 10
    return have >= wanted


def target_rule(target: Target) -> str:
    """What :func:`takes_target` demands, as the end of "this PTX runs on …"."""
    if target.suffix == "a":
        return f"sm_{target.sm} only"
    if target.suffix == "f" or target.is_code:
        return f"the sm_{target.sm // 10}x family, from sm_{target.sm} on"
    return f"sm_{target.sm} and later"


#: The PTX version that brought a target, by sm and suffix: PTX ISA, "Release Notes", and ptxas 13.0, which refuses
#: an older one.
_SINCE = {
    (50, ""): (4, 0), (52, ""): (4, 1), (53, ""): (4, 2), (60, ""): (5, 0), (61, ""): (5, 0), (62, ""): (5, 0),
    (70, ""): (6, 0), (72, ""): (6, 1), (75, ""): (6, 3), (80, ""): (7, 0), (86, ""): (7, 1), (87, ""): (7, 4),
    (89, ""): (7, 8), (90, ""): (7, 8), (90, "a"): (8, 0), (100, ""): (8, 6), (100, "a"): (8, 6), (100, "f"): (8, 8),
    (101, ""): (8, 6), (101, "a"): (8, 6), (101, "f"): (8, 8), (103, ""): (8, 8), (103, "a"): (8, 8),
    (103, "f"): (8, 8), (110, ""): (9, 0), (110, "a"): (9, 0), (110, "f"): (9, 0), (120, ""): (8, 7),
    (120, "a"): (8, 7), (120, "f"): (8, 8), (121, ""): (8, 8), (121, "a"): (8, 8), (121, "f"): (8, 8),
}  # fmt: skip


def target_since(target: Target) -> tuple[int, int] | None:
    """The PTX version that brought ``target``; None for one not known here."""
    return None if target.is_code else _SINCE.get((target.sm, target.suffix))


#: First and last sm of a range, and the address in constant bank 0 at which kernel parameters begin.
_PARAM_BASE = ((75, 89, 0x160), (90, 90, 0x210), (100, 121, 0x380))


def param_base(sm: int) -> int | None:
    """Address in the constant bank of an entry's first parameter, or None for an architecture not measured."""
    return next((base for low, high, base in _PARAM_BASE if low <= sm <= high), None)


class Limits(Struct, frozen=True):
    """Limits of a launch, and of an SM, which takes as many blocks as fit it.

    Sizes in bytes; ``shared_optin`` is static plus dynamic shared memory after opting in. ``registers`` are those of
    an SM, and of a block; ``shared_reserved`` is what the system takes of each block.
    """

    threads_per_block: int = 1024
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    cluster: int = 8
    shared_default: int = 48 * 1024
    shared_optin: int = 48 * 1024
    registers: int = 64 * 1024
    sm_threads: int = 2048
    sm_blocks: int = 32
    sm_shared: int = 64 * 1024
    shared_reserved: int = 0


#: Opt-in limit of shared memory a block in KiB, and an SM's threads, blocks and shared memory in KiB, by sm. An sm not
#: listed takes those of the nearest one below it.
_PER_SM = {
    50: (48, 2048, 32, 64), 52: (48, 2048, 32, 96), 53: (48, 2048, 32, 64), 60: (48, 2048, 32, 64),
    61: (48, 2048, 32, 96), 62: (48, 2048, 32, 64), 70: (96, 2048, 32, 96), 75: (64, 1024, 16, 64),
    80: (163, 2048, 32, 164), 86: (99, 1536, 16, 100), 87: (163, 1536, 16, 164), 88: (99, 1536, 16, 100),
    89: (99, 1536, 24, 100), 90: (227, 2048, 32, 228), 100: (227, 2048, 32, 228), 110: (227, 1536, 24, 228),
    120: (99, 1536, 24, 100),
}  # fmt: skip


def limits_of(sm: int) -> Limits:
    """Limits of the architecture ``sm`` (80 for sm_80)."""
    optin, threads, blocks, shared = _PER_SM[max((k for k in _PER_SM if k <= sm), default=50)]
    return Limits(
        cluster=8 if sm >= 90 else 1, shared_optin=optin * 1024, sm_threads=threads, sm_blocks=blocks,
        sm_shared=shared * 1024, shared_reserved=1024 if sm >= 80 else 0,
    )  # fmt: skip


def param_bytes_limit(version: tuple[int, int]) -> int:
    """Most bytes an entry's parameters may take, by PTX version (PTX ISA, "Kernel Function Parameters")."""
    return 32764 if version >= (8, 1) else 4352
