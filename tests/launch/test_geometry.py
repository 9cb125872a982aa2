from __future__ import annotations

from typing import Any

import pytest

from teenycli.errors import Finding, TeenyError
from teenycli.launch.geometry import choose_entry
from teenycli.launch.plan import Launch
from teenycli.manifest.spec import OpSpec
from teenycli.ptx.model import Function, Module, Space, Variable
from tests.launch.kernels import LLVM, entry, module, op, plan
from tests.ptx.text import module_of

pytestmark = pytest.mark.unit

AUTO = op(block="ptx", dims={"N": 100})


def launch(spec: OpSpec, kernel: Module) -> Launch:
    return plan(spec, kernel).launches[0]


def error(spec: OpSpec, kernel: Module) -> Finding:
    with pytest.raises(TeenyError) as caught:
        plan(spec, kernel)
    return caught.value.finding


def test_the_entry_is_the_one_named() -> None:
    kernel = module(entry("a"), entry("b"), entry("k_entry_point"))
    assert choose_entry(op(entry="b"), kernel).name == "b"
    assert choose_entry(op(), kernel).name == "k_entry_point"
    assert choose_entry(op(), module(entry("whatever"))).name == "whatever"
    assert choose_entry(op(), module(entry("k_entry_point"), entry("k"))).name == "k"


@pytest.mark.parametrize(
    ("keys", "names", "id", "words"),
    [
        ({}, ["a", "b"], "ambiguous-entry", "op.k.entry: a, b"),
        ({"entry": "softmx"}, ["softmax", "other"], "unknown-entry", "did you mean 'softmax'?"),
        ({"entry": "zzz"}, ["softmax", "other"], "unknown-entry", "it has softmax, other"),
        ({}, [], "no-entry", "defines no entry"),
        ({}, [f"e{k}" for k in range(999)], "ambiguous-entry", "e19 and 979 more"),
    ],
)
def test_entries_that_cannot_be_chosen(keys: dict[str, Any], names: list[str], id: str, words: str) -> None:
    finding = error(op(**keys), module(*map(entry, names)))
    assert finding.id == id
    assert words in f"{finding.message} {finding.hint}"


def test_a_declared_entry_is_none() -> None:
    finding = error(op(), module(Function("k", True, ())))
    assert "needs a body" in (finding.hint or "")


def test_block_of_the_op_wins() -> None:
    kernel = module(entry("k", reqntid=(64, 1, 1)))
    assert launch(op(block=[8, "N // 50", 3], dims={"N": 100}), kernel).block == (8, 2, 3)


def test_block_from_reqntid_then_num_warps_then_maxntid_of_triton() -> None:
    warps = "// meta:num_warps=8\n"
    assert launch(AUTO, module(entry("k", reqntid=(64, 2, 1)), text=warps)).block == (64, 2, 1)
    assert launch(AUTO, module(entry("k", maxntid=(999, 1, 1)), text=warps)).block == (256, 1, 1)
    smem = Variable("global_smem", Space.SHARED, "b8", dims=(None,), linking="extern")
    triton = module(entry("k", maxntid=(128, 1, 1)), text=LLVM, variables=(smem,))
    assert launch(AUTO, triton).block == (128, 1, 1)


def test_maxntid_elsewhere_is_no_block() -> None:
    finding = error(AUTO, module(entry("k", maxntid=(16, 16, 1))))
    assert finding.id == "block-unknown"
    assert str(finding.where) == "ops.toml: op.k.block"
    assert "at most 256 threads" in (finding.note or "")
    assert error(AUTO, module(entry("k"))).note is None


def test_extents_may_be_nonsense_which_is_for_checks_to_say() -> None:
    made = launch(op(grid=["N - 100", "-1"], block=[0, 5000], dims={"N": 100}), module(entry("k")))
    assert (made.grid, made.block) == ((0, -1, 1), (0, 5000, 1))


def test_clusters() -> None:
    kernel = module(entry("k", reqnctapercluster=(2, 2, 1)), text="// meta:num_ctas=4\n")
    assert launch(op(), kernel).cluster == (2, 2, 1)
    assert launch(op(cluster=[8]), kernel).cluster == (8, 1, 1)
    assert launch(op(), module(entry("k"), text="// meta:num_ctas=4\n")).cluster == (4, 1, 1)
    assert launch(op(), module(entry("k"))).cluster == (1, 1, 1)


DYNAMIC = """
.extern .shared .align 16 .b8 global_smem[];
.visible .entry k() { .reg .b32 %r<2>; mov.b32 %r1, global_smem; ret; }
"""


def test_dynamic_shared_memory() -> None:
    kernel = module_of(DYNAMIC)
    assert launch(op(shared="4 * N", dims={"N": 100}), kernel).shared == 400
    assert launch(op(), module_of(f"{DYNAMIC}// meta:shared=64\n")).shared == 64
    assert launch(op(shared=8), module_of(f"{DYNAMIC}// meta:shared=64\n")).shared == 8
    assert launch(op(), module(entry("k"))).shared == 0


def test_dynamic_shared_memory_of_unknown_size() -> None:
    finding = error(op(), module_of(DYNAMIC))
    assert finding.id == "shared-unknown"
    for way in ("op.k.shared", ".json", "// meta:shared="):
        assert way in (finding.hint or "")
    assert error(op(shared=-4), module_of(DYNAMIC)).id == "bad-value"


def test_flags_come_from_the_op_or_the_metadata() -> None:
    made = launch(op(cooperative=True), module(entry("k")))
    assert (made.cooperative, made.pdl) == (True, False)
