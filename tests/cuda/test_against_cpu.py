"""Random instructions and programs leave the same bytes on a GPU and on the CPU device."""

from __future__ import annotations

import random

import pytest

from teenycli.devices.cuda.device import CudaDevice
from tests.cuda.differential import Refused, draws, is_known, shrunk, tried
from tests.oracle import programs

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("seed", range(6))
def test_every_form(device: CudaDevice, seed: int) -> None:
    lines, refused = draws(device.gpu, 1, seed), []
    for at in range(0, len(lines), 16):
        module = [programs.complete(f"P{k}", [line]) for k, line in enumerate(lines[at : at + 16])]
        for found in tried(device, module, seed + at):
            if isinstance(found, Refused):
                refused.append(found)
            else:
                assert is_known(found), found
    assert len(refused) <= len(lines) // 50, refused[0]  # else nothing much was compared


@pytest.mark.parametrize("seed", range(100))
def test_a_program(device: CudaDevice, seed: int) -> None:
    rng = random.Random(seed)
    least = shrunk(device, [rng.getrandbits(40) for _ in range(rng.randrange(1, 24))], seed)
    if isinstance(least, Refused):
        pytest.skip(f"the driver does not take it: {least.why}")
    assert least is None or is_known(least), least
