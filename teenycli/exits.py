"""Exit codes of the ``teeny`` command. Imports nothing of ours."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the process tells its caller; with several files or ops the highest wins."""

    OK = 0
    #: A finding of severity error, a mismatch with the reference, a fault in the kernel, a time-out.
    FAILED = 1
    #: Something that cannot be read or used: usage, manifest, PTX, paths.
    UNUSABLE = 2
    #: The device asked for is not there.
    NO_DEVICE = 3
    #: The device is there and cannot run this kernel.
    UNSUPPORTED = 4
    INTERRUPTED = 130


_hurries: list[bool] = []


def leave_at_once() -> None:
    """Have the process end without an orderly end, which would wait for what may never come: a kernel on a GPU that
    does not end, a driver that does not answer."""
    _hurries.append(True)


def leaves_at_once() -> bool:
    return bool(_hurries)
