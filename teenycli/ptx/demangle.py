"""Mangled C++ and Rust names in words, by binutils' c++filt where it is installed, else by the C++ runtime.

c++filt knows Itanium C++ and both of Rust's manglings; the runtime's ``__cxa_demangle`` the first only. Where
neither is there, names stay as they are.

Imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_PREFIXES = ("_Z", "_R", "__Z", "__R")
_SECONDS = 10


def demangle(names: Iterable[str]) -> Mapping[str, str]:
    """Readable forms of the ``names`` that have one; others are not in the result."""
    mangled = [name for name in names if name.startswith(_PREFIXES)]
    if not mangled:
        return {}
    import shutil

    tool = shutil.which("c++filt")
    found = _by_tool(tool, mangled) if tool else _by_runtime(mangled)
    return {name: text for name, text in found.items() if text != name}


def _by_tool(tool: str, names: list[str]) -> dict[str, str]:
    import subprocess

    try:
        done = subprocess.run(  # one process for all names
            [tool, "-i"], input="\n".join(names) + "\n", capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return {}
    lines = done.stdout.splitlines()
    return dict(zip(names, lines, strict=True)) if done.returncode == 0 and len(lines) == len(names) else {}


def _by_runtime(names: list[str]) -> dict[str, str]:
    import ctypes
    import ctypes.util

    found: dict[str, str] = {}
    library = ctypes.util.find_library("stdc++") or ctypes.util.find_library("c++abi")
    if library is None:
        return found
    try:
        runtime = ctypes.CDLL(library)
        call = runtime.__cxa_demangle
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError, TypeError):
        return found
    call.restype = ctypes.c_void_p
    free.argtypes = [ctypes.c_void_p]
    for name in names:
        status = ctypes.c_int()
        text = call(name.encode(), None, None, ctypes.byref(status))
        if text:
            if status.value == 0:
                found[name] = (ctypes.cast(text, ctypes.c_char_p).value or b"").decode("utf-8", "replace")
            free(text)
    return found
