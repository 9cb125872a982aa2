"""What kernels print, which the driver writes to the process's standard output by itself, past Python.

May import ``ptx.model``.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from teenycli.ptx.model import Source

_STDOUT, _STDERR = 1, 2
#: As PTX calls them (CUDA C++ Programming Guide, "Formatted Output", "Assertion").
_PRINTERS = ("vprintf", "__assertfail")


def may_print(source: Source) -> bool:
    """Whether a text, or machine code, calls what the driver has for ``printf`` and ``assert``."""
    if source.image is not None:
        return any(name.encode() in source.image for name in _PRINTERS)
    return any(name in source.text for name in _PRINTERS)


@contextmanager
def printing(*, to_stderr: bool) -> Iterator[None]:
    """What is printed meanwhile is out when this ends, after all that was printed before.

    With ``to_stderr`` it goes to standard error, since standard output is a document's alone; left as it is where
    there is no such file to go to or come from.
    """
    sys.stdout.flush()
    try:
        kept = os.dup(_STDOUT) if to_stderr else None
    except OSError:
        kept = None
    _flush()
    try:
        if kept is not None:
            os.dup2(_STDERR, _STDOUT)
        yield
    finally:
        _flush()
        if kept is not None:
            os.dup2(kept, _STDOUT)
            os.close(kept)


def _flush() -> None:
    """Write out what C's own streams hold; on Windows no library is known to be the one that the driver uses."""
    if sys.platform != "win32":
        _libc().fflush(None)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
