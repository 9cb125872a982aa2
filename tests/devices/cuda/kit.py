"""A kernel, a launch of it, and what is raised, for tests of the CUDA device on stand-ins for the packages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cuda.device import CudaDevice, CudaKernel
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.launch.plan import Address, Argument, Field, Launch
from teenycli.ptx.model import Module
from tests.ptx.text import module_of

TABLE = [(0, 8), (8, 4), (12, 4)]
ARGS = (
    Argument(0, "x", "ptr", 8, (Field("ptr", Address("x", 16)),)),
    Argument(1, "n", "i32", 4, (Field("i32", -2),)),
    Argument(2, "flag", "f32", 4, (Field("f32", 0.5),)),
)
#: Makes a module one that may print.
PRINTF = ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);"
LAUNCH = Launch("op", 0, "k", (4, 1, 1), (128, 1, 1), ARGS)


def module(
    directives: str = "", params: str = ".param .u64 x, .param .u32 n, .param .f32 a", declared: str = ""
) -> Module:
    return module_of(f"{declared}\n.visible .entry k({params}) {directives} {{ .loc 1 1 1\n ret; }}\n")


def ready(device: CudaDevice, directives: str = "", declared: str = "") -> tuple[CudaKernel, dict[str, DeviceBuffer]]:
    return device.load(module(directives, declared=declared), "k"), {"x": device.upload("x", np.zeros(64, np.uint8))}


@contextmanager
def raised(id: str, exit: Exit = Exit.FAILED) -> Iterator[pytest.ExceptionInfo[TeenyError]]:
    """Expects a TeenyError of this id and exit code."""
    with pytest.raises(TeenyError) as caught:
        yield caught
    assert (caught.value.finding.id, caught.value.exit) == (id, exit)
