"""The GPUs that the driver shows, as lines for somebody who asks for more: what each is, and which was taken and why.

Pure. May import ``releases``, and of its own house ``gpu`` and ``probe`` (its survey).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from teenycli.devices.cuda.gpu import Gpu
from teenycli.devices.cuda.probe import Survey
from teenycli.releases import dotted, newest_ptx

#: The first CUDA whose driver tells how it lays out a kernel's parameters.
_TELLS_PARAMETERS = (12, 4)


def listing(
    found: Survey, taken: str, why: str, unfit: Callable[[Gpu], str | None], driver: str | None, env: Mapping[str, str]
) -> list[str]:
    """Lines about the GPUs of ``found``; none where there are none.

    ``taken`` is the name of the one that was taken and ``why``; ``unfit`` says why a GPU cannot run the kernel, None
    when it can. ``driver`` is the driver's own version where the system tells it, ``env`` the environment.
    """
    if not found.gpus:
        return []
    notes = [*_notes(found.gpus, env), *([found.note] if found.note else [])]
    return [*_driver(found.gpus[0], driver), *_rows(found.gpus, taken, why, unfit), *notes]


def _driver(gpu: Gpu, version: str | None) -> Iterator[str]:
    newest = newest_ptx(gpu.cuda)
    takes = "" if newest is None else f", which takes PTX up to {dotted(newest)}"
    yield f"driver{f' {version}' if version else ''} of CUDA {dotted(gpu.cuda)}{takes}"
    if gpu.cuda < _TELLS_PARAMETERS:
        since = dotted(_TELLS_PARAMETERS)
        yield f"it is older than CUDA {since} and does not tell where a kernel's parameters lie: that goes unchecked"


def _rows(gpus: tuple[Gpu, ...], taken: str, why: str, unfit: Callable[[Gpu], str | None]) -> Iterator[str]:
    cells = [(gpu.name, gpu.product, f"sm_{gpu.sm}", _size(gpu.memory)) for gpu in gpus]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    for gpu, row in zip(gpus, cells, strict=True):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        said = f"taken, {why}" if gpu.name == taken else unfit(gpu) or "not taken"
        yield f"  {text}  {said}"


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**30:.1f} GiB" if nbytes else ""


def _notes(gpus: tuple[Gpu, ...], env: Mapping[str, str]) -> Iterator[str]:
    visible = env.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        yield f"CUDA_VISIBLE_DEVICES is '{visible}': it chooses the GPUs and numbers them"
    if any(" MIG " in f"{gpu.product} " for gpu in gpus):
        yield "a MIG instance is a part of a GPU, and a process sees one; CUDA_VISIBLE_DEVICES=MIG-… chooses another"
