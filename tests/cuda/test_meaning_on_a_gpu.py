"""The oracle's reading of the ISA against a real GPU, form by form: both leave the same bytes. ``pytest -m cuda``."""

from __future__ import annotations

import random

import pytest

from teenycli.devices.base import Device
from teenycli.devices.cpu import CpuDevice
from teenycli.devices.cuda.device import CudaDevice
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.ptx.isa import Form
from tests.devices.cpu import test_differential as differential
from tests.oracle import programs
from tests.oracle.meaning import MEANINGS

#: Instructions drawn of each form, and the newest PTX they are of.
DRAWN, VERSION = 6, (8, 8)


def is_for(form: Form, sm: int) -> bool:
    return form.ptx <= VERSION and (form.sm == sm if form.suffix == "a" else form.sm <= sm)


def drawn(opcode: str, sm: int) -> list[str]:
    """Instructions of every form of an opcode that this architecture has."""
    rng = random.Random(opcode)
    forms = [form for form in programs.choices(opcode) if is_for(form, sm)]
    lines = [programs.instruction(rng, form, lambda *_: True) for form in forms for _ in range(DRAWN)]
    return [line for line in lines if line is not None]


def disagreements(device: Device, sm: int, lines: list[str]) -> list[str]:
    """Where the oracle and a device differ, an instruction a CTA. Those that the device refuses are left out."""
    texts = [programs.complete(f"P{k}", [line]) for k, line in enumerate(lines)]
    head = f".version {VERSION[0]}.{VERSION[1]}\n.target sm_{sm}{'a' if sm >= 90 else ''}\n.address_size 64\n"
    try:
        wanted, got = differential.outcomes(texts, True, 7, head, device)
    except TeenyError as error:
        if error.exit is Exit.FAILED:
            raise
        if len(lines) == 1:
            return []
        middle = len(lines) // 2
        return [found for part in (lines[:middle], lines[middle:]) for found in disagreements(device, sm, part)]
    threads = differential.threads_of(True)
    size = threads * differential.OUT
    found = []
    for k, line in enumerate(lines):
        want, have = wanted[k * size : (k + 1) * size], got[k * size : (k + 1) * size]
        if differential.disagree(want, have):
            found.append(f"{line} {differential.first_difference(want, have, threads)}")
    return found


@pytest.mark.cuda
@pytest.mark.parametrize("opcode", sorted(set(programs.OPCODES)))
def test_forms_mean_on_a_gpu_what_the_oracle_reads(device: CudaDevice, opcode: str) -> None:
    sm = device.gpu.sm
    lines = drawn(opcode, sm)
    found = [text for k in range(0, len(lines), 40) for text in disagreements(device, sm, lines[k : k + 40])]
    assert not found, "\n".join(found)


@pytest.mark.device
def test_the_comparison_names_what_differs_and_leaves_out_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    device = CpuDevice(threads=1, cache=False)
    wrong = "brev.b32 %r0, %r1;"
    monkeypatch.setitem(MEANINGS, "brev", lambda _: lambda a: a)
    try:
        found = disagreements(device, 90, [*drawn("prmt", 90), wrong, "add.u32 %r1, %r2, %nothing;"])
    finally:
        device.close()
    assert [text.partition(";")[0] for text in found] == [wrong.rstrip(";")]
