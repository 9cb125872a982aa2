"""What the walk makes of integers, against the oracle's meanings: every form of the instruction table that has one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from teenycli.footprint.integers import meaning_of
from teenycli.footprint.lanes import UNSIGNED, Array
from teenycli.ptx.isa import Form, Role, forms_of, rows
from teenycli.ptx.model import type_width
from tests.oracle import convert, floating, integers  # noqa: F401 (they fill the table)
from tests.oracle.meaning import MEANINGS

pytestmark = pytest.mark.unit


def evaluate(opcode: str, mods: Mapping[str, str], operands: Sequence[Array]) -> Array | None:
    """What an instruction makes of its operands; None where it has no meaning."""
    meaning = meaning_of(opcode, mods)
    return None if meaning is None else meaning(operands)


#: What evaluate has a meaning for, and how many combinations of modifiers of each: a form that is lost shows here.
FORMS = {
    "abs": 3, "add": 6, "and": 4, "bfe": 4, "bfi": 2, "brev": 2, "clz": 2, "cnot": 3, "cvt": 64, "div": 6, "lop3": 1,
    "mad": 16, "max": 6, "min": 6, "mov": 12, "mul": 16, "neg": 3, "not": 4, "or": 4, "popc": 2, "prmt": 1, "rem": 6,
    "sad": 6, "setp": 54, "shf": 4, "shl": 3, "shr": 9, "sub": 6, "xor": 4,
}  # fmt: skip
Mods = Mapping[str, str]
#: The predicate that is combined with the comparison is the walk's own business (``meanings.logic``).
LEFT_OUT = {"bool"}


def combinations(form: Form) -> Iterator[dict[str, str]]:
    if any(slot.required and slot.name in LEFT_OUT for slot in form.modifiers):
        return
    slots = [slot for slot in form.modifiers if slot.name not in LEFT_OUT]
    for chosen in product(*((*slot.choices, *(() if slot.required else (None,))) for slot in slots)):
        yield {slot.name: choice for slot, choice in zip(slots, chosen, strict=True) if choice is not None}


def widths(form: Form, mods: Mods) -> list[int]:
    """Bits of each source that must be there."""
    specs = [s for s in form.operands if s.role is not Role.DST and (s.when is None or s.when in mods)]
    return [type_width(form.type_of(spec, mods) or "b32") or 32 for spec in specs]


def meant() -> Iterator[tuple[str, dict[str, str], list[int]]]:
    """Every combination of modifiers that ``evaluate`` knows, with the widths of its sources."""
    for opcode in rows():
        for form in forms_of(opcode):
            if form.until is not None or any(spec.vector for spec in form.operands):
                continue
            for mods in combinations(form):
                sources = widths(form, mods)
                zeros = [np.zeros(1, UNSIGNED[bits]) for bits in sources if bits in UNSIGNED]
                if len(zeros) == len(sources) and evaluate(opcode, mods, zeros) is not None:
                    yield opcode, mods, sources


MEANT = list(meant())


def edges(bits: int) -> list[int]:
    most = (1 << bits) - 1
    near = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 0x12345678, 0x9ABCDEF012345678]
    return sorted({value & most for value in (*near, most, most - 1, most >> 1, (most >> 1) + 1, (most >> 1) - 1)})


def operands(sources: Sequence[int], seed: str) -> list[list[int]]:
    """Edges in all combinations of two, and numbers at random."""
    rng = random.Random(seed)
    if len(sources) == 1:
        sets = [[value] for value in edges(sources[0])]
    else:
        pairs = product(edges(sources[0]), edges(sources[1]))
        sets = [[a, b, *(rng.choice(edges(bits)) for bits in sources[2:])] for a, b in pairs]
        last = product(edges(sources[-1]), edges(sources[-2]))
        sets += [[*(rng.getrandbits(bits) for bits in sources[:-2]), b, a] for a, b in last]
    sets += [[rng.getrandbits(bits) >> rng.randrange(bits) for bits in sources] for _ in range(60)]
    return sets


def arrays(sets: Sequence[Sequence[int]], sources: Sequence[int]) -> list[Array]:
    return [np.array([each[k] for each in sets], UNSIGNED[bits]) for k, bits in enumerate(sources)]


def first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def name(opcode: str, mods: Mods) -> str:
    return ".".join([opcode, *mods.values()])


@pytest.mark.parametrize("opcode", sorted(FORMS))
def test_results_are_those_of_the_isa(opcode: str) -> None:
    for mods, sources in ((mods, sources) for each, mods, sources in MEANT if each == opcode):
        sets = operands(sources, name(opcode, mods))
        if opcode == "lop3":
            _check_lop3(sets[::9])
            continue
        meaning = MEANINGS[opcode](mods)
        wanted = [first(meaning(*each)) for each in sets]
        with np.errstate(all="ignore"):
            got = evaluate(opcode, mods, arrays(sets, sources))
            alone = [evaluate(opcode, mods, arrays([each], sources)) for each in sets[::17]]
        assert got is not None
        for each, want, have in zip(sets, wanted, got.tolist(), strict=True):
            assert want == have, f"{name(opcode, mods)} {[hex(v) for v in each]}: {want:#x}, not {have:#x}"
        assert [None if one is None else one.tolist() for one in alone] == [[want] for want in wanted[::17]]


def _check_lop3(sets: Sequence[Sequence[int]]) -> None:
    """Its table is one number for all lanes."""
    meaning = MEANINGS["lop3"]({"type": "b32"})
    inputs = arrays([each[:3] for each in sets], [32] * 3)
    for table in range(256):
        got = evaluate("lop3", {"type": "b32"}, [*inputs, np.array([table], np.uint32)])
        assert got is not None
        wanted = [first(meaning(*each[:3], table)) for each in sets]
        assert np.broadcast_to(got, inputs[0].shape).tolist() == wanted


@pytest.mark.parametrize("opcode", sorted(FORMS))
def test_one_value_for_all_lanes_goes_with_one_each(opcode: str) -> None:
    for mods, sources in ((mods, sources) for each, mods, sources in MEANT if each == opcode and len(each) > 1):
        sets = operands(sources, name(opcode, mods))[-20:]
        for k in range(3 if opcode == "lop3" else len(sources)):
            mixed = [sets[0][:k] + each[k : k + 1] + sets[0][k + 1 :] for each in sets]
            each = arrays(mixed, sources)
            uniform = [array if at == k else array[:1] for at, array in enumerate(each)]
            with np.errstate(all="ignore"):
                lanes, spread = evaluate(opcode, mods, each), evaluate(opcode, mods, uniform)
            assert lanes is not None
            assert spread is not None
            assert np.broadcast_to(spread, lanes.shape).tolist() == lanes.tolist(), name(opcode, mods)


def test_every_form_is_known_that_was() -> None:
    counted: dict[str, set[str]] = {}
    for opcode, mods, _ in MEANT:
        counted.setdefault(opcode, set()).add(name(opcode, mods))
    assert {opcode: len(each) for opcode, each in counted.items()} == FORMS


@pytest.mark.parametrize(
    ("opcode", "mods"),
    [
        ("add", {"type": "f32"}), ("add", {"type": "u16x2"}), ("add", {"type": "s32", "sat": "sat"}),
        ("add", {"type": "u32", "cc": "cc"}), ("max", {"type": "s16x2", "relu": "relu"}), ("min", {"type": "f16"}),
        ("cvt", {"dtype": "u32", "atype": "f32", "rnd": "rzi"}), ("cvt", {"dtype": "f32", "atype": "u32", "rnd": "rn"}),
        ("cvt", {"dtype": "u8", "atype": "s32", "sat": "sat"}), ("mad", {"type": "s32", "mode": "hi", "sat": "sat"}),
        ("prmt", {"type": "b32", "mode": "f4e"}), ("setp", {"type": "f32", "cmp": "lt"}), ("mul24", {"type": "u32"}),
    ],
)  # fmt: skip
def test_what_is_no_plain_integer_has_no_meaning(opcode: str, mods: dict[str, str]) -> None:
    assert evaluate(opcode, mods, [np.ones(1, np.uint32)] * 3) is None
