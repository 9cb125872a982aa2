"""The instruction table by itself, and every form of it through the resolver."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from teenycli.errors import TeenyError
from teenycli.ptx import Source, code_of, isa, outline, parse_all, read_source
from teenycli.ptx.code import Op
from teenycli.ptx.isa import PARTS, SLOTS, Form, Role, constant_fits, forms_of, register_fits, register_type, rows
from teenycli.ptx.model import type_width
from tests.ptx.spelling import REGISTER_TYPES, choices, spell

pytestmark = pytest.mark.unit

REPOSITORY = Path(__file__).parent.parent.parent
OPCODES = tuple(rows())


def every_form() -> list[Form]:
    return [form for opcode in OPCODES for form in forms_of(opcode)]


def resolve(lines: list[str], version: str = "9.0", target: str = "sm_100a") -> tuple[Op, ...]:
    """The instructions ``lines``, resolved in one body with the registers that ``spell`` uses."""
    registers = "\n".join(f".reg .{type} %{type}_<300>;" for type in REGISTER_TYPES)
    head = f".version {version}\n.target {target}\n.address_size 64\n.entry k() {{\n{registers}\n"
    module = outline(Source("forms", f"{head}T0: .branchtargets L0;\nL0:\n" + "\n".join(lines) + "\nret;\n}\n"))
    return code_of(module, module.entries[0]).ops[:-1]


class TestTable:
    @pytest.mark.parametrize("opcode", OPCODES)
    def test_a_row_is_complete(self, opcode: str) -> None:
        row = rows()[opcode]
        assert row.opcode == opcode
        assert re.fullmatch(r"[\w, -]+Instructions?: .+", row.doc)
        assert row.tier in (1, 2, 3)
        assert row.forms
        for form in forms_of(opcode):
            assert form.opcode == opcode
            assert form.tier in (1, 2, 3)
            assert (1, 0) <= form.ptx <= (9, 3)
            assert form.suffix in ("", "a", "f")

    def test_no_form_stands_twice(self) -> None:
        seen = Counter((form.text, form.modifiers) for form in every_form())
        assert [text for (text, _), count in seen.items() if count > 1] == []

    def test_types_are_slots_or_fundamental(self) -> None:
        for form in every_form():
            for spec in form.operands:
                if spec.role in (Role.LABEL, Role.TABLE):
                    continue
                for inner in (spec, *spec.coords):
                    known = form.has_slot(inner.type) or inner.type in ("any", "wide")
                    assert known or register_type(inner.type) in REGISTER_TYPES, form.text

    def test_conditions_and_parts_exist(self) -> None:
        for form in every_form():
            for spec in form.operands:
                assert spec.when is None or form.has_slot(spec.when), form.text
                assert spec.part is None or spec.part in PARTS, form.text

    def test_every_instruction_type_lies_in_some_register(self) -> None:
        for form in every_form():
            for mods in choices(form, 0):
                for spec in form.operands:
                    type = form.type_of(spec, mods)
                    assert type is None or register_type(type) in REGISTER_TYPES, (form.text, type)

    def test_every_slot_is_documented(self) -> None:
        documented = set(" ".join(re.findall(r"``([\w ]+)``", isa.__doc__ or "")).split())
        slots = {slot.name for form in every_form() for slot in form.modifiers if slot.choices != (slot.name,)}
        assert slots <= documented
        assert set(SLOTS) <= slots

    def test_predicates_may_be_negated(self) -> None:
        """ptxas takes ``!p`` wherever a predicate is read."""
        for form in every_form():
            for spec in form.operands:
                if spec.type == "pred" and spec.role is Role.SRC:
                    assert spec.negatable, form.text

    def test_the_rows_that_lowerings_begin_with(self) -> None:
        assert {"add", "ld", "st", "setp", "bra", "cvt", "mov", "mad", "atom", "shfl", "mma", "tcgen05"} <= set(OPCODES)
        assert len(OPCODES) > 130


class TestForm:
    def form(self, opcode: str, *modifiers: str) -> tuple[Form, dict[str, str]]:
        for form in forms_of(opcode):
            mods = form.match(modifiers)
            if mods is not None:
                return form, mods
        raise AssertionError((opcode, modifiers))

    def test_modifiers_in_any_order(self) -> None:
        _, mods = self.form("atom", "global", "gpu", "acq_rel", "max", "s32")
        assert mods == {"space": "global", "scope": "gpu", "sem": "acq_rel", "op": "max", "type": "s32"}
        assert self.form("atom", "max", "acq_rel", "s32", "global", "gpu")[1] == mods

    def test_types_keep_their_order(self) -> None:
        assert self.form("cvt", "rn", "f32", "f64")[1] == {"rnd": "rn", "dtype": "f32", "atype": "f64"}
        assert self.form("cvt", "f64", "f32")[1] == {"dtype": "f64", "atype": "f32"}

    def test_what_belongs_to_the_opcode_keeps_its_place(self) -> None:
        assert self.form("mul", "lo", "s32")[1] == {"mode": "lo", "type": "s32"}
        assert all(form.match(("s32", "lo")) is None for form in forms_of("mul"))
        assert self.form("bar", "cta", "red", "popc", "u32")[1]["op"] == "popc"
        assert all(form.match(("popc", "red", "u32")) is None for form in forms_of("bar"))
        assert self.form("mul", "lo", "s32")[0].text == "mul.mode.type d, a, b"

    def test_types_and_spaces_are_told_apart_by_order(self) -> None:
        assert self.form("add", "f32", "f16")[1] == {"type": "f32", "atype": "f16"}
        assert all(form.match(("f16", "f32")) is None for form in forms_of("add"))
        store = ("async", "bulk", "global", "shared::cta", "bulk_group")
        assert self.form("cp", *store)[1]["src"] == "shared::cta"
        swapped = ("async", "bulk", "shared::cta", "global", "bulk_group")
        assert all(form.match(swapped) is None for form in forms_of("cp"))

    def test_a_flag_twice_counts_once(self) -> None:
        assert self.form("add", "sat", "sat", "f32")[1] == {"sat": "sat", "type": "f32"}
        assert all(form.match(("s32", "s32")) is None for form in forms_of("add"))
        assert all(form.match(("rn", "rz", "f32")) is None for form in forms_of("add"))

    def test_types_of_operands(self) -> None:
        form, mods = self.form("mad", "wide", "s16")
        assert [form.type_of(spec, mods) for spec in form.operands] == ["s32", "s16", "s16", "s32"]
        form, mods = self.form("setp", "lt", "f32")
        assert [form.type_of(spec, mods) for spec in form.operands] == ["pred", "f32", "f32"]
        form, mods = self.form("set", "lt", "u32", "f64")
        assert [form.type_of(spec, mods) for spec in form.operands] == ["u32", "f64", "f64"]

    def test_operands_that_a_modifier_brings(self) -> None:
        form, mods = self.form("cp", "async", "bulk", "shared::cluster", "global", "mbarrier::complete_tx::bytes")
        assert form.specs(mods, 4) == form.operands[:4]
        assert form.specs(mods, 5) is None
        with_policy = mods | {"cachehint": "L2::cache_hint"}
        assert form.specs(with_policy, 5) == (*form.operands[:4], form.operands[5])
        assert form.specs(with_policy | {"multicast": "multicast::cluster"}, 6) == form.operands
        assert form.operands[5].name == "policy"

    def test_optional_operands(self) -> None:
        form, mods = self.form("bar", "sync")
        assert [form.specs(mods, count) for count in range(4)] == [None, form.operands[:1], form.operands, None]
        assert form.required_operands == 1

    def test_lengths_of_vectors(self) -> None:
        form, mods = self.form("ld", "global", "v4", "f32")
        assert form.count_of(form.operands[0], mods) == 4
        form, mods = self.form("ld", "global", "f32")
        assert form.count_of(form.operands[0], mods) is None
        form, mods = self.form("wgmma", "mma_async", "sync", "aligned", "m64n96k16", "f16", "f16", "f16")
        assert form.count_of(form.operands[0], mods) == 24
        form, mods = self.form("tcgen05", "ld", "sync", "aligned", "16x256b", "x8", "b32")
        assert form.count_of(form.operands[0], mods) == 32
        form, mods = self.form("mma", "sync", "aligned", "m16n8k16", "row", "col", "f32", "f16", "f16", "f32")
        assert [form.count_of(spec, mods) for spec in form.operands] == [4, 4, 2, 4]

    def test_both_or_neither(self) -> None:
        mbarrier = forms_of("mbarrier")
        for modifiers, legal in (
            (("arrive", "expect_tx", "b64"), True),
            (("arrive", "expect_tx", "release", "cta", "b64"), True),
            (("arrive", "expect_tx", "release", "b64"), False),
            (("arrive", "expect_tx", "cluster", "b64"), False),
        ):
            assert any(form.match(modifiers) is not None for form in mbarrier) is legal, modifiers

    def test_what_was_given_up(self) -> None:
        form, _ = self.form("shfl", "idx", "b32")
        assert not form.given_up((6, 3), 70)
        assert not form.given_up((9, 0), 60)
        assert form.given_up((6, 4), 70)
        form, _ = self.form("div", "f32")
        assert form.given_up((1, 4), 10)
        assert not self.form("add", "f32")[0].given_up((9, 0), 120)

    def test_registers_that_fit_a_type(self) -> None:
        fitting = {
            type: {held for held in REGISTER_TYPES if register_fits(type, held)}
            for type in ("b32", "u32", "f32", "f16x2", "bf16", "pred")
        }
        assert fitting == {
            "b32": {"b32", "u32", "s32", "f32", "f16x2"},
            "u32": {"b32", "u32", "s32"},
            "f32": {"f32", "b32"},
            "f16x2": {"f16x2", "b32"},
            "bf16": {"b16"},
            "pred": {"pred"},
        }
        wider = {held for held in REGISTER_TYPES if register_fits("f32", held, relaxed=True)}
        assert wider == {"f32", "b32", "b64", "b128"}

    def test_constants_that_fit_a_type(self) -> None:
        assert [constant_fits(type, is_float=True) for type in ("f32", "b32", "u32", "f16", "bf16")] == [
            True, True, False, False, False,
        ]  # fmt: skip
        assert [constant_fits(type, is_float=False) for type in ("f32", "b32", "u32", "f16", "bf16")] == [
            False, True, True, False, False,
        ]  # fmt: skip

    def test_registers_that_hold_a_type(self) -> None:
        assert [register_type(type) for type in ("f32", "bf16", "tf32", "e4m3x2", "e2m1x2", "f32x2")] == [
            "f32", "b16", "b32", "b16", "b8", "b64",
        ]  # fmt: skip
        assert all(type_width(register_type(type)) for type in ("ue8m0x2", "u16x2", "e2m1x4", "bf16x2"))


class TestThroughTheResolver:
    @pytest.mark.parametrize("opcode", [opcode for opcode in OPCODES if opcode != "call"])
    def test_every_form_is_read_as_it_is_spelled(self, opcode: str) -> None:
        groups: dict[tuple[int, int] | None, list[tuple[str, dict[str, str]]]] = {}
        for form in forms_of(opcode):
            for number, mods in enumerate(choices(form, 8)):
                for variant in (0, 1, 2) if number == 0 else (0,):
                    for optional in (False, True):
                        line = spell(form, mods, variant=variant, optional=optional)
                        groups.setdefault(form.until, []).append((line, mods))
        for until, spelled in groups.items():
            version, target = ("9.0", "sm_100a") if until is None else (f"{until[0]}.{until[1]}", "sm_70")
            for (line, mods), op in zip(spelled, resolve([s for s, _ in spelled], version, target), strict=True):
                assert op.opcode == opcode
                assert set(op.mods.values()) == set(mods.values()), line

    @pytest.mark.parametrize(
        "line",
        [
            "frobnicate.s32 %s32_1, %s32_2;",
            "add %s32_1, %s32_2, %s32_3;",
            "add.s33 %s32_1, %s32_2, %s32_3;",
            "add.s32.u32 %s32_1, %s32_2, %s32_3;",
            "add.b32 %b32_1, %b32_2, %b32_3;",
            "add.rn.s32 %s32_1, %s32_2, %s32_3;",
            "add.sat.u64 %u64_1, %u64_2, %u64_3;",
            "add.f32.ftz.rn.rz %f32_1, %f32_2, %f32_3;",
            "add.s32 %s32_1, %s32_2;",
            "add.s32 %s32_1, %s32_2, %s32_3, %s32_4;",
            "add.s32 _, %s32_2, %s32_3;",
            "add.s32 %f32_1, %s32_2, %s32_3;",
            "add.s32 %s32_1, %s32_2, 0f3f800000;",
            "add.f32 %f32_1, %f32_2, 1;",
            "add.f32 %u32_1, %f32_2, %f32_3;",
            "add.u32 %u32_1, %u32_2, %tid.x;",
            "mul.s32 %s32_1, %s32_2, %s32_3;",
            "mul.wide.s64 %s64_1, %s64_2, %s64_3;",
            "div.full.f64 %f64_1, %f64_2, %f64_3;",
            "sqrt.approx.f64 %f64_1, %f64_2;",
            "setp.s32 %pred_1, %s32_2, %s32_3;",
            "setp.lo.s32 %pred_1, %s32_2, %s32_3;",
            "setp.ltu.u32 %pred_1, %u32_2, %u32_3;",
            "setp.lt.b32 %pred_1, %b32_2, %b32_3;",
            "setp.lt.and.s32 %pred_1, %s32_2, %s32_3;",
            "mov.b8 %b8_1, %b8_2;",
            "mov.u32 %u32_1, %f32_2;",
            "cvt.f32.s32 %f32_1, %s32_2;",
            "cvt.rn.f64.f32 %f64_1, %f32_2;",
            "ld.global %b32_1, [%b64_2];",
            "ld.global.shared.u32 %u32_1, [%b64_2];",
            "ld.global.v3.u32 {%u32_1, %u32_2, %u32_3}, [%b64_4];",
            "ld.global.v4.u32 {%u32_1, %u32_2}, [%b64_4];",
            "ld.global.v2.u32 %u32_1, [%b64_4];",
            "ld.relaxed.global.u32 %u32_1, [%b64_4];",
            "ld.const.L2::cache_hint.u32 %u32_1, [%b64_4], %b64_5;",
            "ld.global.L2::cache_hint.u32 %u32_1, [%b64_4];",
            "ld.global.u32 %u32_1, [%b64_4], %b64_5;",
            "ld.global.u32 _, [%b64_4];",
            "st.const.u32 [%b64_1], %u32_2;",
            "st.global.u32 %u32_2, [%b64_1];",
            "st.global.f32 [%b64_1], %u32_2;",
            "atom.global.add.b32 %b32_1, [%b64_2], %b32_3;",
            "atom.global.cas.b32 %b32_1, [%b64_2], %b32_3;",
            "red.global.exch.b32 [%b64_2], %b32_3;",
            "bar.sync;",
            "bar.sync 0, 32, 64;",
            "membar.gpu;",
            "fence;",
            "shfl.sync.b32 %b32_1, %b32_2, 1, 0, -1;",
            "vote.sync.all.b32 %b32_1, %pred_1, -1;",
            "lop3.b32 %b32_1, %b32_2, %b32_3, %b32_4, %b32_5;",
            "cp.async.ca.shared.shared [%b64_1], [%b64_2], 4;",
            "mbarrier.arrive.shared::cluster.b64 %b64_1, [%b64_2];",
            "ldmatrix.sync.aligned.m8n8.x4.b16 {%b32_1, %b32_2}, [%b64_3];",
            "mma.sync.aligned.m16n8k9.row.col.f32.f16.f16.f32 {%f32_1}, {%b32_1}, {%b32_2}, {%f32_2};",
            "bra.uni %b32_1;",
            "ret.s32;",
        ],
    )
    def test_what_is_no_instruction(self, line: str) -> None:
        with pytest.raises(TeenyError):
            resolve([line])


def committed() -> list[Path]:
    return sorted([*REPOSITORY.glob("ptx/**/*.ptx"), *REPOSITORY.glob("tests/corpus/**/*.ptx")])


def test_committed_ptx_is_there() -> None:
    assert committed()


@pytest.mark.parametrize("path", committed(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_instruction_of_committed_ptx_has_a_form(path: Path) -> None:
    module = outline(read_source(path))
    parse_all(module)
