"""Every form of the instruction table that the device has is run; the result is the oracle's where the oracle has one.

The gate runs each form as it is plainest and one filling of its modifiers more; ``slow`` runs every choice of every slot.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from teenycli.devices.cpu import registry
from teenycli.ptx import code_of
from teenycli.ptx.isa import Form, forms_of, rows
from tests.devices.cpu import forms
from tests.devices.cpu.kit import HEAD, Rig
from tests.devices.cpu.test_differential import OUT, first_difference, inputs_of
from tests.oracle import programs
from tests.oracle.machine import Grid, run
from tests.oracle.memory import Memory
from tests.ptx.spelling import choices

pytestmark = pytest.mark.device

#: Programs to a module, and threads of a program.
TOGETHER, THREADS = 24, 64
#: Instructions that end a kernel, which ``planted.py`` has, and those that take more memory than a program has, which
#: ``test_matrices.py``, ``test_warp_groups.py`` and ``test_tiles.py`` have.
ELSEWHERE = ("trap", "brkpt", "wmma", "wgmma")
Case = tuple[Form, forms.Mods]


def is_elsewhere(form: Form) -> bool:
    """Whether another file has tests of it; of copies, those by tensor maps."""
    return form.opcode in ELSEWHERE or ".tensor" in form.text


def supported() -> Iterator[Form]:
    for opcode in rows():
        for form in forms_of(opcode):
            if registry.supports_form(form) and not is_elsewhere(form) and form.until is None:
                yield form


def cases(form: Form, *, all_choices: bool) -> list[Case]:
    """Fillings of a form's slots; by default the plainest and another."""
    found = forms.fillings(form, choices(form, 8 if all_choices else 0))
    if not all_choices and len(found) > 2:
        found = [found[0], random.Random(form.text).choice(found[1:])]
    return [(form, mods) for mods in found]


def module(chosen: list[Case]) -> str:
    texts = [
        programs.complete(f"P{k}", forms.program(form, mods, f"P{k}")) for k, (form, mods) in enumerate(chosen)
    ]  # fmt: skip
    declared = f"{forms.REGISTERS}.reg .pred %pk;"
    more = ", ".join(f".param .u64 {name}" for name in forms.PARAMETERS)
    text = programs.module(texts, head=HEAD + forms.DECLARED).replace(".reg .pred %pk;", declared, 1)
    return text.replace("outputs) {", f"outputs, {more}) {{", 1)


def check(chosen: list[Case], seed: int) -> None:
    """Run a module of programs on the device; those that the oracle has must leave the same bytes."""
    text = module(chosen)
    table = inputs_of(seed)
    out = np.frombuffer(random.Random(seed).randbytes(len(chosen) * THREADS * OUT), np.uint8).copy()
    before = out.tolist()
    rig = Rig(text)
    try:
        rig.run([table.copy(), out, *forms.PARAMETERS.values()], grid=(len(chosen),), block=(THREADS,))
    except Exception as error:
        raise AssertionError(f"{error}\n{text}") from error
    rig.device.close()
    if not forms.has_oracle(*chosen[0]):
        return
    (function,) = rig.module.entries
    memory = Memory()
    inputs, outputs, fixed = memory.add(table.tolist()), memory.add(before), memory.add(forms.FIXED)
    given = [value.to_bytes(8, "little") for value in (inputs, outputs, *forms.PARAMETERS.values())]
    given_up = run(code_of(rig.module, function), memory, Grid(len(chosen), THREADS, given), {"fixed": fixed})
    wanted = memory.regions[outputs >> 32]
    for cta in given_up:
        wanted[cta * THREADS * OUT : (cta + 1) * THREADS * OUT] = [None] * (THREADS * OUT)
    if any(w is not None and w != g for w, g in zip(wanted, out.tolist(), strict=True)):
        pytest.fail(f"{first_difference(wanted, out.tolist(), THREADS)}\n{text}", pytrace=False)


def batches(chosen: list[Case]) -> Iterator[list[Case]]:
    """Modules of cases, those with an oracle apart from those without."""
    for known in (True, False):
        mine = [case for case in chosen if forms.has_oracle(*case) == known]
        for start in range(0, len(mine), TOGETHER):
            yield mine[start : start + TOGETHER]


#: Opcodes in so many parts for tests to run side by side.
PARTS = 12


@pytest.mark.parametrize("part", range(PARTS))
def test_every_form_runs(part: int) -> None:
    for batch in batches([case for form in [*supported()][part::PARTS] for case in cases(form, all_choices=False)]):
        check(batch, part)


@pytest.mark.slow
@pytest.mark.parametrize("opcode", sorted({form.opcode for form in supported()}))
def test_every_choice_of_modifiers_runs(opcode: str) -> None:
    chosen = [case for form in supported() if form.opcode == opcode for case in cases(form, all_choices=True)]
    for k, batch in enumerate(batches(chosen)):
        check(batch, k)


def test_nothing_of_tiers_1_and_2_is_left_out() -> None:
    """A form of tiers 1 and 2 that is not run here ends a kernel, was given up, or is known to be missing."""
    run_here = {(form.opcode, form.text) for form in supported()}
    missing = {(form.opcode, form.text) for form in registry.missing(tiers=(1, 2))}
    for opcode, row in rows().items():
        for form in forms_of(opcode):
            if form.tier < 3 and row and form.until is None and not is_elsewhere(form):
                assert ((form.opcode, form.text) in run_here) != ((form.opcode, form.text) in missing)
