"""Regenerates the PTX in benchmarks/kernels from the sources beside it.

    python benchmarks/kernels/regenerate.py [cuda] [triton]

Needs what ptx/regenerate.py needs: nvcc and ptxas of CUDA 13.0, and a Python that can import Triton 3.9.
"""

import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "ptx"))

from compilers import check_with_ptxas, nvcc_ptx, run_parts, triton_samples, write_if_changed  # noqa: E402

TARGET = "sm_80"


def regenerate_cuda() -> None:
    """Compiles *.cu."""
    for source in sorted(HERE.glob("*.cu")):
        text = nvcc_ptx(source, TARGET, ["-O3"])
        check_with_ptxas(text, TARGET)
        write_if_changed(source.with_suffix(".ptx"), text)


def regenerate_triton() -> None:
    """Compiles samples.py."""
    for sample in triton_samples(HERE / "samples.py"):
        check_with_ptxas(sample.ptx, TARGET)
        write_if_changed(HERE / f"{sample.name}.ptx", sample.ptx)
        write_if_changed(HERE / f"{sample.name}.json", sample.metadata)


PARTS: dict[str, Callable[[], None]] = {"cuda": regenerate_cuda, "triton": regenerate_triton}


if __name__ == "__main__":
    sys.exit(run_parts(PARTS, sys.argv[1:], "benchmarks/kernels"))
