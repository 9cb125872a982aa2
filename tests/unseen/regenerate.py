"""Regenerates the PTX of tests/unseen from the sources beside it.

    python tests/unseen/regenerate.py [nvcc] [clang] [numba]

Each part needs its own compiler and is left alone, with a message and exit status 1, when that is missing: nvcc and
ptxas of CUDA 13.0; clang 19; a Python with numba-cuda. ptxas assembles every text before it is written.
"""

import sys
from collections.abc import Callable
from pathlib import Path

UNSEEN = Path(__file__).resolve().parent
sys.path.insert(0, str(UNSEEN.parent.parent / "ptx"))

from compilers import (  # noqa: E402
    check_with_ptxas,
    clang_ptx,
    compilations,
    numba_samples,
    nvcc_ptx,
    run_parts,
    write_if_changed,
)


def _compile(folder: str, compiler: Callable[[Path, str, list[str]], str]) -> None:
    for source, target, flags, out in compilations(UNSEEN / folder):
        text = compiler(source, target, flags)
        check_with_ptxas(text, target)
        write_if_changed(out, text)


def regenerate_nvcc() -> None:
    """Compiles cuda/*.cu."""
    _compile("cuda", nvcc_ptx)


def regenerate_clang() -> None:
    """Compiles clang/*."""
    _compile("clang", clang_ptx)


def regenerate_numba() -> None:
    """Compiles the functions that numba/numba_kernels.py lists."""
    for name, text in numba_samples(UNSEEN / "numba" / "numba_kernels.py"):
        check_with_ptxas(text, "sm_80")
        write_if_changed(UNSEEN / "numba" / f"{name}.ptx", text)


PARTS: dict[str, Callable[[], None]] = {
    "nvcc": regenerate_nvcc,
    "clang": regenerate_clang,
    "numba": regenerate_numba,
}


if __name__ == "__main__":
    sys.exit(run_parts(PARTS, sys.argv[1:], "tests/unseen"))
