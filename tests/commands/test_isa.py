from __future__ import annotations

import pytest

from teenycli.ptx.isa import forms_of, rows
from tests.commands.teeny import Teeny

pytestmark = pytest.mark.unit


def test_every_opcode_has_a_line(teeny: Teeny) -> None:
    done = teeny("isa")
    listed = {line.split()[0] for line in done.out.splitlines()[1:-1]}
    assert (done.code, listed) == (0, set(rows()))


def test_forms_of_an_opcode(teeny: Teeny) -> None:
    document = teeny("isa", "--json", "fma").json
    assert [form["form"] for form in document] == [form.text for form in forms_of("fma")]
    first = document[0]
    assert {"opcode", "form", "modifiers", "tier", "ptx", "sm", "section", "cpu"} <= first.keys()
    assert first["cpu"] is True


def test_missing_is_what_the_cpu_device_lacks(teeny: Teeny) -> None:
    missing = teeny("isa", "--missing", "--json").json
    assert missing
    assert not any(form["cpu"] for form in missing)
    assert {form["tier"] for form in teeny("isa", "--missing", "--tier", "3", "--json").json} == {3}
    assert "wgmma" in {form["opcode"] for form in missing}


def test_a_misspelt_opcode(teeny: Teeny) -> None:
    done = teeny("isa", "shlf")
    assert (done.code, "did you mean" in done.err) == (2, True)


def test_it_needs_no_compiler(teeny: Teeny) -> None:
    import sys

    before = {"llvmlite"} & set(sys.modules)
    teeny("isa", "--missing")
    assert {"llvmlite"} & set(sys.modules) == before
