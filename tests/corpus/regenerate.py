"""Regenerates the parser's corpus in tests/corpus from the sources beside the PTX.

    python tests/corpus/regenerate.py [nvcc] [triton] [clang] [numba] [handmade]

Each part needs its own compiler and is left alone, with a message and exit status 1, when that is missing: nvcc and
ptxas of CUDA 13.0; a Python with Triton 3.9 (and once more each with 3.2, 3.4 and 3.6, for the samples that list these
releases); clang 19; a Python with numba-cuda. The files in handmade/ are written by hand and only checked with ptxas.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

CORPUS = Path(__file__).resolve().parent
sys.path.insert(0, str(CORPUS.parent.parent / "ptx"))

from compilers import (  # noqa: E402
    PTXAS_VERSION,
    RegenerationError,
    check_with_ptxas,
    clang_ptx,
    compilations,
    lower_version,
    numba_samples,
    nvcc_ptx,
    run_parts,
    target_of,
    triton_samples,
    write_if_changed,
)

HANDMADE_REFUSED = {"nul_tail.ptx"}  # legal for the driver's JIT and refused by ptxas


def _assembled_for(text: str) -> str:
    """The target, or the oldest that ptxas of CUDA 13.0 assembles for: older PTX is legal on newer hardware."""
    target = target_of(text)
    return target if int(re.sub(r"\D", "", target)) >= 75 else "sm_75"


def regenerate_nvcc() -> None:
    """Compiles nvcc/*.cu."""
    for source, target, flags, out in compilations(CORPUS / "nvcc"):
        text = nvcc_ptx(source, target, flags)
        check_with_ptxas(text, target, relocatable="-rdc=true" in flags)
        write_if_changed(out, text)


def regenerate_clang() -> None:
    """Compiles clang/*.cu."""
    for source, target, flags, out in compilations(CORPUS / "clang"):
        text = clang_ptx(source, target, flags)
        check_with_ptxas(text, _assembled_for(text))
        write_if_changed(out, text)


def regenerate_triton() -> None:
    """Compiles the samples of triton/*.py that are meant for the running release of Triton."""
    for source in sorted((CORPUS / "triton").glob("*.py")):
        for sample in triton_samples(source):
            text = lower_version(sample.ptx, PTXAS_VERSION)
            check_with_ptxas(text, target_of(text))
            write_if_changed(source.with_name(f"{sample.name}.ptx"), text)
            write_if_changed(source.with_name(f"{sample.name}.json"), sample.metadata)


def regenerate_numba() -> None:
    """Compiles the functions that numba/numba_kernels.py lists."""
    for name, text in numba_samples(CORPUS / "numba" / "numba_kernels.py"):
        check_with_ptxas(text, "sm_80", relocatable=True)
        write_if_changed(CORPUS / "numba" / f"{name}.ptx", text)


def check_handmade() -> None:
    """Assembles every file of handmade/ that ptxas is known to take, and reports all that it refuses."""
    refused = []
    for path in sorted((CORPUS / "handmade").glob("*.ptx")):
        if path.name in HANDMADE_REFUSED:
            continue
        text = path.read_bytes().decode()
        try:
            # Only a relocatable text may hold `.unified` functions, and none before PTX 3.1 may be one.
            check_with_ptxas(text, _assembled_for(text), relocatable=".unified" in text)
        except RegenerationError as error:
            refused.append(f"{path.name}: {error}")
    if refused:
        raise RegenerationError("\n".join(refused))


PARTS: dict[str, Callable[[], None]] = {
    "nvcc": regenerate_nvcc,
    "triton": regenerate_triton,
    "clang": regenerate_clang,
    "numba": regenerate_numba,
    "handmade": check_handmade,
}


if __name__ == "__main__":
    sys.exit(run_parts(PARTS, sys.argv[1:], "tests/corpus"))
