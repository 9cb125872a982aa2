"""Which PTX a driver takes: releases of PTX, of CUDA and of drivers. Imports only ``errors``."""

from __future__ import annotations

import re
from bisect import bisect_right

from msgspec import Struct

from teenycli.errors import TeenyError

Version = tuple[int, int]


class Release(Struct, frozen=True):
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


#: The first CUDA whose driver has the launches (cuLaunchKernelEx) that the CUDA device makes.
OLDEST_CUDA: Version = (11, 8)


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


class Driver(Struct, frozen=True):
    """A driver as somebody names it: by the CUDA version that it supports, or by its branch (570 of 570.86.15)."""

    cuda: Version | None = None
    branch: int | None = None

    @property
    def newest_ptx(self) -> Version | None:
        """The newest PTX version that it takes; None where that is not known."""
        if self.cuda is not None:
            return newest_ptx(self.cuda)
        known = [release for release in _RELEASES if release.branch]
        assert self.branch is not None
        if self.branch > known[-1].branch:
            return None
        return max((release.ptx for release in known if release.branch <= self.branch), default=None)

    def __str__(self) -> str:
        return f"a driver of CUDA {dotted(self.cuda)}" if self.cuda else f"a driver of the branch r{self.branch}"


_DRIVER = re.compile(r"(?:cuda[ -]?)?([0-9]{1,2})\.([0-9])|r?([0-9]{3})(?:\.[0-9]+)*", re.IGNORECASE)


def parse_driver(text: str) -> Driver:
    """``570``, ``570.86.15``, ``12.8`` or ``CUDA 12.8`` as a driver. Raises TeenyError ``unknown-driver``."""
    match = _DRIVER.fullmatch(text.strip())
    if match is None:
        hint = "its branch, as nvidia-smi shows it (570), or the CUDA version that it supports (12.8)"
        raise TeenyError("unknown-driver", f"'{text}' is no version of a driver", hint=hint)
    return Driver(branch=int(match[3])) if match[3] else Driver((int(match[1]), int(match[2])))


def too_new(ptx: Version, driver: str, newest: Version) -> tuple[str, str]:
    """Message and hint, where ``driver`` takes PTX up to ``newest`` and no newer."""
    release, needs = release_of(ptx), "a newer driver"
    if release is not None:
        needs = f"a driver of CUDA {dotted(release.cuda)}{f' (r{release.branch})' if release.branch else ''} or later"
    triton = newest[0] * 10 + newest[1]
    hint = f"update the driver, or compile for PTX {dotted(newest)} (Triton: ptx_version={triton}), or use --device cpu"
    return f"PTX {dotted(ptx)} needs {needs}; {driver}, which takes PTX up to {dotted(newest)}", hint
