"""The stand-in ``libcuda.so.1``: built from ``native/`` with cc, loaded, and spoken to beside the driver's interface.

It must be there before anything opens the driver. In a process that runs already, :func:`load` does it: a library of
this soname that is loaded first is the one that ``cuda.bindings`` and the probe then find. For a process to come,
``LD_LIBRARY_PATH`` with the folder of :func:`build` does it too, but its engine must be registered inside of it all the
same: ``python -m tests.driver run … --device cuda`` is such a process.

Set before the first call, by environment: ``STANDIN_GPUS`` (``90,80``: the GPUs' architectures, out of 80, 90, 100 and
120), ``STANDIN_CUDA`` (13000), ``STANDIN_MEMORY`` (bytes of each GPU), ``STANDIN_PATIENCE`` (seconds after which a
kernel counts as one that never ends), ``STANDIN_FAIL`` (as :meth:`Standin.fail` takes it), ``STANDIN_LOG`` (the JIT's
log of a load). ``CUDA_VISIBLE_DEVICES`` hides and orders GPUs by number.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SONAME = "libcuda.so.1"
SOURCES = Path(__file__).parent / "native"
FLAGS = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden",
         f"-Wl,-soname,{SONAME}", "-Wl,-z,defs")  # fmt: skip
#: What it counts: allocations of device memory, pinned host memory, holds on primary contexts, and handles.
COUNTED = ("allocations", "pinned", "contexts", "streams", "events", "modules", "libraries", "pools")


class UnavailableError(Exception):
    """Why there is no stand-in here."""


def build() -> Path:
    """The library, compiled unless that has been done. Raises UnavailableError where it cannot be."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        raise UnavailableError("there is no cc" if sys.platform == "linux" else f"it is for Linux, not {sys.platform}")
    sources = sorted(SOURCES.glob("*.c"))
    digest = hashlib.sha256(repr(FLAGS).encode())
    for source in (*sources, *sorted(SOURCES.glob("*.h"))):
        digest.update(source.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"teeny-standin-{os.getuid()}-{digest.hexdigest()[:16]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise UnavailableError(f"{folder} belongs to another user")
    library = folder / SONAME
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as draft:
            made = Path(draft) / SONAME
            subprocess.run([compiler, *FLAGS, "-o", made, *sources, "-lpthread"], check=True)
            made.rename(library)
    return library


def another_driver() -> str | None:
    """The file of another libcuda that this process has loaded, which the stand-in would come too late for."""
    for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
        path = line.split()[-1]
        if Path(path).name.startswith("libcuda.so") and not Path(path).parent.name.startswith("teeny-standin-"):
            return path
    return None


class Standin:
    """The loaded library, as a test speaks to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.library = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
        self.library.standin_log_size.restype = ctypes.c_size_t
        self.library.standin_log_entry.argtypes = (ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)

    def fail(self, orders: str = "") -> None:
        """Order failures: ``NAME:N=CODE``, with commas between, fails the Nth call (``*``: each) of a function from
        now on with that CUresult; with ``!`` after CODE every later call that needs a context too."""
        count = orders.count("=")
        assert self.library.standin_fail(orders.encode()) == count, orders

    def heal(self) -> None:
        """Forget ordered failures, a sticky error, and a kernel that did not end."""
        self.fail()
        self.library.standin_heal()

    def is_sound(self) -> bool:
        """Whether no sticky error stands, and no kernel runs without end."""
        return bool(self.library.standin_is_sound())

    def away(self, is_away: bool) -> None:
        """Whether the driver says that there is no GPU."""
        self.library.standin_away(int(is_away))

    def counts(self) -> Counter[str]:
        """What is alive, by the words of COUNTED."""
        return Counter({word: self.library.standin_count(word.encode()) for word in COUNTED})

    def calls(self) -> list[str]:
        """The names of the functions called since the log was cleared, in order, without ``_v2``."""
        name = ctypes.create_string_buffer(64)
        found = []
        for index in range(self.library.standin_log_size()):
            self.library.standin_log_entry(index, name, len(name))
            found.append(name.value.decode())
        return found

    def clear(self) -> None:
        """Clear the log."""
        self.library.standin_log_clear()


def load() -> Standin:
    """The stand-in, loaded into this process. Raises UnavailableError."""
    path = build()
    other = another_driver()
    if other is not None:
        raise UnavailableError(f"{other} is loaded already")
    return Standin(path)
