"""Which device a run uses: ``auto``, ``cpu``, ``cuda`` or ``cuda:N`` to an open device, and why that one.

May import ``arch``, ``errors``, ``exits``, ``ptx.model``, ``devices.base``; of ``cuda`` what needs no package, and the
devices themselves inside the functions that open them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from teenycli.arch import parse_target, takes_target, target_rule
from teenycli.devices.base import Device
from teenycli.devices.cuda.gpu import Gpu
from teenycli.devices.cuda.listing import listing
from teenycli.devices.cuda.probe import ASKED, Survey, kernel_module_version, survey
from teenycli.errors import TeenyError, did_you_mean
from teenycli.exits import Exit
from teenycli.ptx.model import Module
from teenycli.releases import OLDEST_CUDA, dotted, newest_ptx

_CUDA = re.compile(r"cuda(?::([0-9]{1,4}))?")


Output = Callable[[str], object]
Progress = Callable[[str, int, int], object]


class Chosen(NamedTuple):
    """The device, open; a sentence for the user that says what it is and why it; and lines on all GPUs there are."""

    device: Device
    reason: str
    gpus: tuple[str, ...] = ()


def look(spec: str) -> Survey | None:
    """The GPUs that there are to choose from for ``spec``; None where it asks for none.

    Raises TeenyError ``unknown-device`` (exit UNUSABLE).
    """
    if _CUDA.fullmatch(spec):
        return survey(ASKED)
    if spec == "auto":
        return survey()
    if spec == "cpu":
        return None
    hint = "did you mean 'cuda'?" if spec == "gpu" else did_you_mean(spec, ("auto", "cpu", "cuda", "cuda:0"))
    raise TeenyError(
        "unknown-device",
        f"'{spec}' is no device; a device is auto, cpu, cuda or cuda:N",
        hint=hint,
        exit=Exit.UNUSABLE,
    )


def foreseen(spec: str, found: Survey | None, module: Module) -> Gpu | None:
    """The GPU that ``choose`` will most likely open, of those ``found``; None where none of them runs ``module``."""
    match = _CUDA.fullmatch(spec)
    gpus = () if found is None else found.gpus
    if match is not None and match[1] is not None:
        gpus = gpus[int(match[1]) : int(match[1]) + 1]
    return next((gpu for gpu in gpus if unfit(gpu, module, "") is None), None)


def choose(
    spec: str,
    found: Survey | None,
    module: Module,
    entry: str,
    output: Output | None = None,
    progress: Progress | None = None,
) -> Chosen:
    """The device that ``spec`` asks for, of those that ``look`` has found.

    ``auto`` takes the first GPU that runs this PTX, else the CPU device. ``cuda`` takes the first that runs it, else
    the first, whose ``load`` then says what is wrong. ``output`` takes what kernels print on the CPU device (standard
    output when None); a GPU's driver prints by itself, to standard error where an ``output`` is given. ``progress`` is
    told how far large copies are.

    Raises TeenyError ``no-device``, ``no-cuda-package`` (exit NO_DEVICE), ``cuda-driver`` (exit UNSUPPORTED).
    """
    match = _CUDA.fullmatch(spec)
    if found is None:
        device = open_cpu(output)
        return Chosen(device, f"running on cpu ({device.description}), as asked")
    if match is not None:
        return _cuda(found, match[1], module, entry, output, progress)
    return _auto(found, module, entry, output, progress)


def open_cpu(output: Output | None = None) -> Device:
    from teenycli.devices.cpu import CpuDevice

    return CpuDevice(output=output)


def open_gpu(index: int, output: Output | None = None, progress: Progress | None = None) -> Device:
    from teenycli.devices.cuda.device import CudaDevice

    return CudaDevice(index, progress=progress, prints_to_stderr=output is not None)


def unfit(gpu: Gpu, module: Module, entry: str) -> str | None:
    """Why ``gpu`` cannot run ``entry``: its architecture, or a driver too old for the PTX version. None when it can."""
    if gpu.cuda < OLDEST_CUDA:
        return _too_old(gpu)
    target = parse_target(module.target)
    if not takes_target(target, gpu.sm):
        return f"'{entry}' is for {target}, which runs on {target_rule(target)}, and {gpu} is not that"
    newest = None if module.source.image is not None else newest_ptx(gpu.cuda)
    if newest is not None and module.version > newest:
        return (
            f"'{entry}' is PTX {dotted(module.version)}, and {gpu} has a driver of CUDA {dotted(gpu.cuda)}, "
            f"which takes PTX up to {dotted(newest)}"
        )
    return None


def _cuda(
    found: Survey, number: str | None, module: Module, entry: str, output: Output | None, progress: Progress | None
) -> Chosen:
    if not found.gpus:
        raise found.error()
    index, why = int(number or 0), "as asked"
    if number is None and len(found.gpus) > 1:
        fit = [index for index, gpu in enumerate(found.gpus) if unfit(gpu, module, entry) is None]
        index, why = (fit[0], "the first that runs it") if fit else (0, "the first there")
    if index >= len(found.gpus):
        raise _no_such_gpu(index, found)
    if found.gpus[index].cuda < OLDEST_CUDA:
        hint = "update the driver, or run it with --device cpu"
        raise TeenyError("cuda-driver", _too_old(found.gpus[index]), hint=hint, exit=Exit.UNSUPPORTED)
    device = open_gpu(index, output, progress)
    reason = f"running on {device.name} ({device.description}), {why}"
    return Chosen(device, reason, _listing(found, device.name, why, module, entry))


def _too_old(gpu: Gpu) -> str:
    return (
        f"{gpu} has a driver of CUDA {dotted(gpu.cuda)}, and a launch takes one of CUDA {dotted(OLDEST_CUDA)} or later"
    )


def _no_such_gpu(index: int, found: Survey) -> TeenyError:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    hint = None if visible is None else f"CUDA_VISIBLE_DEVICES is '{visible}': it chooses the GPUs and numbers them"
    there = ", ".join(map(str, found.gpus))
    return TeenyError("no-device", f"there is no cuda:{index}; those there: {there}", hint=hint, exit=Exit.NO_DEVICE)


def _listing(found: Survey, taken: str, why: str, module: Module, entry: str) -> tuple[str, ...]:
    return tuple(listing(found, taken, why, lambda gpu: unfit(gpu, module, entry), kernel_module_version(), os.environ))


def _auto(found: Survey, module: Module, entry: str, output: Output | None, progress: Progress | None) -> Chosen:
    passed: list[str] = []
    for index, gpu in enumerate(found.gpus):
        why = unfit(gpu, module, entry)
        if why is None:
            try:
                device = open_gpu(index, output, progress)
            except TeenyError as error:
                why = f"{error}" + (f" ({error.finding.hint})" if error.finding.hint else "")
            else:
                reason = f"running on {device.name} ({device.description})" + "".join(f"; {p}" for p in passed)
                lines = _listing(found, device.name, "the first that runs it", module, entry)
                return Chosen(device, reason, lines)
        passed.append(why)
    device = open_cpu(output)
    why = "; ".join(passed) or found.problem or "no GPU"
    lines = _listing(found, device.name, "", module, entry)
    return Chosen(device, f"running on cpu ({device.description}): {why}", lines)
