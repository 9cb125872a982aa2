"""A GPU as messages and choices know it, and which PTX it and its driver take. Pure.

May import ``arch``.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from teenycli.arch import Target

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device: ``name`` is ``cuda:0``, ``product`` what it is sold as, ``cuda`` the driver's CUDA version."""

    name: str
    product: str
    sm: int
    cuda: Version

    def __str__(self) -> str:
        return f"{self.name} ({self.product}, sm_{self.sm})"


#: CUDA 13 gave Thor, whose capability was 10.1, the number 11.0; texts made before still say sm_101.
_RENAMED = {101: 110}


def takes_target(target: Target, sm: int) -> bool:
    """Whether a GPU of architecture ``sm`` (90 for sm_90) runs PTX of this ``.target``.

    PTX runs on its own architecture and every later one; with suffix ``a`` on its own alone, with ``f`` on later
    members of its family, which share the major number (PTX ISA, ".target").
    """
    wanted, have = _RENAMED.get(target.sm, target.sm), _RENAMED.get(sm, sm)
    if target.suffix == "a":
        return have == wanted
    if target.suffix == "f":
        return have >= wanted and have // 10 == wanted // 10
    return have >= wanted


def target_rule(target: Target) -> str:
    """What :func:`takes_target` demands, as the end of "this PTX runs on …"."""
    if target.suffix == "a":
        return f"sm_{target.sm} only"
    if target.suffix == "f":
        return f"the sm_{target.sm // 10}x family, from sm_{target.sm} on"
    return f"sm_{target.sm} and later"


@dataclass(frozen=True, slots=True)
class Release:
    """A version of PTX, the CUDA release that brought it, and the driver branch that came with it."""

    ptx: Version
    cuda: Version
    branch: int


#: PTX ISA, "Release Notes", table "PTX Release History"; only the first CUDA release of each PTX version.
_RELEASES = tuple(
    Release((ptx // 10, ptx % 10), (cuda // 10, cuda % 10), branch)
    for ptx, cuda, branch in (
        (20, 30, 195), (21, 31, 256), (22, 32, 260), (23, 40, 270), (30, 41, 285), (31, 50, 302), (32, 55, 319),
        (40, 60, 331), (41, 65, 340), (42, 70, 346), (43, 75, 352), (50, 80, 361), (60, 90, 384), (61, 91, 387),
        (62, 92, 396), (63, 100, 400), (64, 101, 418), (65, 102, 440), (70, 110, 445), (71, 111, 455),
        (72, 112, 460), (73, 113, 465), (74, 114, 470), (75, 115, 495), (76, 116, 510), (77, 117, 515),
        (78, 118, 520), (80, 120, 525), (81, 121, 530), (82, 122, 535), (83, 123, 545), (84, 124, 550),
        (85, 125, 555), (86, 127, 565), (87, 128, 570), (88, 129, 575), (90, 130, 580), (91, 131, 590),
        (92, 132, 595), (93, 133, 610), (94, 134, 0),
    )
)  # fmt: skip


def release_of(ptx: Version) -> Release | None:
    """The release that brought this PTX version; None when the table does not know it."""
    return next((release for release in _RELEASES if release.ptx == ptx), None)


def newest_ptx(cuda: Version) -> Version | None:
    """The newest PTX version that a driver of this CUDA version takes; None where that is not known.

    Of a driver newer than the table nothing is known but that it takes at least what the table ends with.
    """
    if cuda > _RELEASES[-1].cuda:
        return None
    count = bisect_right([release.cuda for release in _RELEASES], cuda)
    return _RELEASES[count - 1].ptx if count else None


def driver_takes(ptx: Version, cuda: Version) -> bool:
    """False when it is certain that a driver of this CUDA version refuses this PTX version."""
    newest = newest_ptx(cuda)
    return newest is None or ptx <= newest


def dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
