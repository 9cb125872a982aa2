"""Regenerates the sample PTX in ptx/cuda and ptx/triton from the sources beside it.

    python ptx/regenerate.py [cuda] [triton]

Needs nvcc and ptxas of CUDA 13.0 on PATH and, for the Triton samples, a Python that can import Triton: it makes those
samples that name its release in `versions`, or without one those of 3.9. The PTX is committed and the tests read it as
it stands: nobody needs either compiler to work on the project.
"""

import sys
from collections.abc import Callable

from compilers import (
    PTX_VERSION,
    ROOT,
    check_with_ptxas,
    nvcc_ptx,
    require_triton,
    run_parts,
    triton_samples,
    write_if_changed,
)

TARGET = "sm_80"
NEWER = {"scale_tma": "sm_90"}  # sources that need more


def regenerate_cuda() -> None:
    """Compiles ptx/cuda/*.cu."""
    for source in sorted((ROOT / "ptx" / "cuda").glob("*.cu")):
        target = NEWER.get(source.stem, TARGET)
        text = nvcc_ptx(source, target, ["-O3", "-lineinfo"], version=PTX_VERSION)
        check_with_ptxas(text, target)
        write_if_changed(source.with_suffix(".ptx"), text)


def regenerate_triton() -> None:
    """Compiles those samples of ptx/triton/*.py that are meant for this Python's Triton."""
    require_triton()
    for source in sorted((ROOT / "ptx" / "triton").glob("*.py")):
        for sample in triton_samples(source):
            check_with_ptxas(sample.ptx, TARGET)
            write_if_changed(source.with_name(f"{sample.name}.ptx"), sample.ptx)
            write_if_changed(source.with_name(f"{sample.name}.json"), sample.metadata)


PARTS: dict[str, Callable[[], None]] = {"cuda": regenerate_cuda, "triton": regenerate_triton}


if __name__ == "__main__":
    sys.exit(run_parts(PARTS, sys.argv[1:], "ptx"))
