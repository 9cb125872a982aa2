"""The instruction table against ptxas: every choice of every form is legal somewhere, and from where the table says."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from teenycli.ptx.isa import Form, constant_fits, forms_of, register_fits, register_type, rows
from tests.ptx.ptxas import Target, refused
from tests.ptx.spelling import REGISTER_TYPES, choices, spell

pytestmark = [
    pytest.mark.unit,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas"),
]

#: Between them they take every form.
TARGETS = (
    Target((9, 0), "sm_100a"),
    Target((9, 0), "sm_90a"),
    Target((9, 0), "sm_120a"),
    Target((9, 0), "sm_103a"),
    Target((9, 0), "sm_100a", ", texmode_independent"),
    Target((6, 4), "sm_70"),
    Target((6, 2), "sm_70"),
    Target((6, 3), "sm_30"),
    Target((1, 3), "sm_13"),
)

#: The PTX version that brought each architecture.
ARCHITECTURES: Mapping[int, tuple[int, int]] = {
    20: (2, 3), 30: (3, 0), 32: (4, 0), 50: (4, 0), 52: (4, 1), 53: (4, 2), 60: (5, 0), 61: (5, 0), 70: (6, 0),
    72: (6, 1), 75: (6, 3), 80: (7, 0), 86: (7, 1), 89: (7, 8), 90: (7, 8), 100: (8, 6), 103: (8, 8), 120: (8, 7),
}  # fmt: skip

#: Opcodes whose handles were no registers before PTX 3.1.
_HANDLES = {"tex", "tld4", "txq", "suld", "sust", "sured", "suq"}

Claim = tuple[str, str]


def every_form() -> list[Form]:
    """The forms that ptxas of CUDA 13.0 can know. The operands of a call are no operands of the table."""
    forms = (form for opcode in rows() for form in forms_of(opcode) if opcode != "call")
    return [form for form in forms if form.ptx <= TARGETS[0].version]


def instructions(form: Form, limit: int) -> dict[str, set[Claim]]:
    """Instructions of a form, each with the claims about the form that it proves when it is legal."""
    made: dict[str, set[Claim]] = {}
    for number, mods in enumerate(choices(form, limit)):
        for optional in (False, True):
            for variant in (0, 1, 2) if number == 0 else (0,):
                text = spell(form, mods, optional=optional, variant=variant)
                claims = {*mods.items(), ("variant", str(variant)), ("optional", str(optional))}
                made.setdefault(text, claims)
    return made


def test_every_choice_of_every_form_is_legal_somewhere(tmp_path: Path) -> None:
    forms = every_form()
    made = [
        (number, text, claims) for number, form in enumerate(forms) for text, claims in instructions(form, 100).items()
    ]
    open_claims: dict[int, set[Claim]] = defaultdict(set)
    for number, _, claims in made:
        open_claims[number] |= claims
    said: dict[int, str] = {}
    for target in TARGETS:
        asked = [item for item in made if item[2] & open_claims[item[0]]]
        answers = refused([text for _, text, _ in asked], target, tmp_path)
        for index, (number, text, claims) in enumerate(asked):
            # ptxas 13.0 crashes on `atom.add.noftz.bf16 _, [a], b`.
            if answers.get(index, "ptxas crashed") == "ptxas crashed":
                open_claims[number] -= claims
            else:
                said.setdefault(number, f"{text}: {answers[index]}")
    wrong = [
        f"{forms[n].opcode}: {forms[n].text}: {sorted(left)}: {said.get(n)}" for n, left in open_claims.items() if left
    ]
    assert not wrong, "\n".join(wrong)


def earliest(form: Form) -> Target:
    """The oldest version and architecture that the table says the form has, as far back as ptxas can be asked."""
    sm = min(known for known in ARCHITECTURES if known >= form.sm)
    floor = (3, 1) if form.opcode in _HANDLES else (2, 3)
    version = max(form.ptx, ARCHITECTURES[sm], floor)
    if form.suffix:
        # The suffix a came with PTX 8.0, f with 8.8.
        version = max(version, (8, 0) if form.suffix == "a" else (8, 8))
    return Target(version, f"sm_{sm}{form.suffix}")


def test_forms_are_legal_from_where_the_table_says(tmp_path: Path) -> None:
    by_target: dict[Target, list[Form]] = defaultdict(list)
    for form in every_form():
        if form.until is None:
            by_target[earliest(form)].append(form)
    wrong = []
    for target, forms in by_target.items():
        made = [(form, held_for(text, target)) for form in forms for text in instructions(form, 20)]
        answers = refused([text for _, text in made], target, tmp_path)
        legal = {id(form) for index, (form, _) in enumerate(made) if index not in answers}
        wrong += [f"{form.opcode}: {form.text} on {target}" for form in forms if id(form) not in legal]
    assert not wrong, "\n".join(wrong)


def held_for(text: str, target: Target) -> str:
    """The instruction with registers that the target can declare."""
    if "f16" in target.missing:
        text = text.replace("%f16x2_", "%b32_").replace("%f16_", "%b16_")
    return text


def test_what_was_given_up_is_refused(tmp_path: Path) -> None:
    forms = [form for form in every_form() if form.until is not None]
    assert forms
    newest = Target((9, 0), "sm_100a")
    made = [(form, text) for form in forms for text in instructions(form, 20)]
    answers = refused([text for _, text in made], newest, tmp_path)
    assert [text for index, (_, text) in enumerate(made) if index not in answers] == []
    assert all(form.given_up(newest.version, newest.sm) for form in forms)


#: Instructions with a blank for one register or constant: (its type, whether it may be wider, the text).
BLANKS = (
    *((type, False, f"add.{type} %{register_type(type)}_1, %{register_type(type)}_2, {{}};")
      for type in ("u16", "s16", "u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "f32x2",
                   "u16x2")),
    *((type, False, f"and.{type} %{type}_1, %{type}_2, {{}};") for type in ("b16", "b32", "b64")),
    *((type, True, f"st.global.{type} [%b64_1], {{}};")
      for type in ("b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64")),
    ("f16", True, "cvt.f32.f16 %f32_1, {};"),
    ("bf16", True, "cvt.f32.bf16 %f32_1, {};"),
    ("u16", True, "cvt.u32.u16 %u32_1, {};"),
    ("bits", False, "cvt.rs.f16x2.f32 %f16x2_1, %f32_1, %f32_2, {};"),
)  # fmt: skip


def test_what_fits_a_type(tmp_path: Path) -> None:
    made = []
    for type, relaxed, text in BLANKS:
        for held in REGISTER_TYPES:
            # ptxas lets a packed pair pass for 32 bits of any kind, a predicate for a byte.
            if held == "pred" or (held == "f16x2" and type not in ("f16x2", "f32", "f32x2", "f64")):
                continue
            made.append((text.format(f"%{held}_9"), register_fits(type, held, relaxed=relaxed)))
        if type != "bits" and not text.startswith("cvt"):
            made.append((text.format("9"), constant_fits(type, is_float=False)))
            made.append(
                (
                    text.format("0f3F800000" if "64" not in type else "0d3FF0000000000000"),
                    constant_fits(type, is_float=True),
                )
            )
    answers = refused([text for text, _ in made], Target((9, 0), "sm_100a"), tmp_path)
    wrong = [
        (text, fits, answers.get(index)) for index, (text, fits) in enumerate(made) if fits != (index not in answers)
    ]
    assert wrong == []
