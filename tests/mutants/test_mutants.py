from __future__ import annotations

import tomllib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from teenycli.commands import cases
from teenycli.errors import Finding, Severity
from teenycli.manifest.spec import OpSpec
from tests.mutants.judges import Result, judge_all, product_probe, statically
from tests.mutants.kinds import KINDS, Mutant
from tests.mutants.oracle import Oracle
from tests.mutants.subjects import Subjects
from tests.mutants.tables import against, page, static_rate

ROOT = Path(__file__).parent.parent.parent
SURVIVORS = tomllib.loads(Path(__file__).with_name("survivors.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Demand:
    """Of the mutants of a manifest: the least share of those that compute something else which static rules report
    (``static``), the same without those that exchange arguments which the code uses alike (``but_alike``), and of how
    many mutants the gate looks at one (``thinned``)."""

    static: float
    but_alike: float
    thinned: int


DEMANDS = {
    "ops.toml": Demand(static=0.95, but_alike=0.97, thinned=6),
    # Kernels that no rule was written for.
    "tests/unseen/unseen.toml": Demand(static=0.95, but_alike=0.95, thinned=30),
}


@pytest.fixture(scope="module", params=DEMANDS)
def subjects(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subjects:
    return Subjects(ROOT / request.param, tmp_path_factory.mktemp("mutants"))


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> Subjects:
    return Subjects(ROOT / "ops.toml", tmp_path_factory.mktemp("mutants"))


def name_of(subjects: Subjects) -> str:
    return str(subjects.manifest.relative_to(ROOT))


def assert_rates(subjects: Subjects, results: Sequence[Result], slack: float = 0.0) -> None:
    demand = DEMANDS[name_of(subjects)]
    assert static_rate(results) >= demand.static - slack, "\n".join(page(results))
    assert static_rate(results, but_alike=True) >= demand.but_alike - slack, "\n".join(page(results))


def mutant(subjects: Subjects, op: str, what: str) -> Mutant:
    return next(m for m in subjects.mutants(subjects.ops[op.split(".")[0]]) if str(m) == f"{op}: {what}")


@pytest.mark.unit
def test_nothing_is_found_in_the_ops_as_they_are(subjects: Subjects) -> None:
    assert {name: list(statically(spec, subjects.modules)) for name, spec in subjects.ops.items()} == {
        name: [] for name in subjects.ops
    }


@pytest.mark.unit
def test_mutants_differ_from_their_ops_and_have_names_of_their_own(subjects: Subjects) -> None:
    made = [each for spec in subjects.ops.values() for each in subjects.mutants(spec)]
    assert {each.kind for each in made} <= KINDS.keys()
    assert [str(each) for each in made if each.spec == each.original] == []
    assert len({str(each) for each in made}) == len(made) > 100 * len(subjects.ops)


@pytest.mark.unit
def test_every_kind_of_mutation_is_made(ops: Subjects) -> None:
    made = {each.kind: each for spec in ops.ops.values() for each in ops.mutants(spec)}
    assert made.keys() == KINDS.keys()


def some(subjects: Subjects) -> Iterator[Mutant]:
    """The gate's share: the same on every machine."""
    thinned = DEMANDS[name_of(subjects)].thinned
    for spec in subjects.ops.values():
        yield from (each for each in subjects.mutants(spec) if zlib.crc32(str(each).encode()) % thinned == 0)


@pytest.mark.device
def test_static_rules_report_most_of_some_mutants(subjects: Subjects) -> None:
    results = judge_all(some(subjects), subjects.modules)
    assert len(results) > 300
    assert_rates(subjects, results, slack=0.02)


@pytest.mark.slow
@pytest.mark.device
def test_every_mutant_that_computes_something_else_is_reported(subjects: Subjects) -> None:
    made = [each for spec in subjects.ops.values() for each in subjects.mutants(spec)]
    with product_probe(subjects.modules) as probe:
        results = judge_all(made, subjects.modules, probe)
    assert_rates(subjects, results)
    if probe is not None:
        assert against(results, SURVIVORS[name_of(subjects)]) == ([], [])


# --- the harness itself ----------------------------------------------------------------------------------------------


@pytest.mark.device
@pytest.mark.parametrize(
    ("op", "what", "why"),
    [
        ("vector_add_cuda", "swap arg 0 'ptr x' and arg 1 'ptr y'", "the same results"),
        ("vector_add_cuda", "swap arg 0 'ptr x' and arg 2 'ptr out'", "'x' is written"),
        ("vector_add_cuda", "retype arg 3 'i32 N' to 'u32 N'", "the same launches"),
        ("vector_add_cuda", "drop arg 3 'i32 N'", "cannot be laid out"),
        ("vector_add_cuda", "block x 'BLOCK' -> '2 * BLOCK'", "a GPU refuses the launch"),
        ("vector_add_cuda", "cluster 1 -> 2", "a GPU refuses the launch"),
        ("vector_add_cuda", "dtype of out f32 -> i32", "'out' is of another type or shape"),
        ("vector_add_cuda", "init of x: a .bin file of more bytes", "fault: byte-count"),
        ("vector_add_cuda.backward", "pass 'ptr grad_output' for arg 1 'ptr grad_inputs[0]' too", "other outputs"),
        ("softmax_cuda", "swap arg 3 'i32 x.row_stride' and arg 4 'i32 out.row_stride'", "the same launches"),
        ("softmax_cuda", "arg 3 'i32 x.row_stride' -> 'i32 x.row_stride + 1'", "fault: out-of-bounds"),
        ("rms_norm_f16_triton", "retype arg 3 'f32 eps' to 'i32 eps'", "no plan: bad-argument"),
        ("scale_tma_cuda", "swap arg 0 'tensormap from' and arg 1 'tensormap to'", "'x' is written"),
    ],
)
def test_the_oracle_tells_why(ops: Subjects, op: str, what: str, why: str) -> None:
    with Oracle(ops.modules) as oracle:
        verdict = oracle.verdict(mutant(ops, op, what))
    assert verdict.why == why
    assert verdict.changes == (why not in ("the same results", "the same launches"))
    assert verdict.ran


@pytest.fixture
def survivor(ops: Subjects, monkeypatch: pytest.MonkeyPatch) -> Result:
    """A missing argument, with rules that say nothing."""
    for rules in ("check", "check_memory"):
        monkeypatch.setattr(cases, rules, lambda *_: [], raising=False)
    (found,) = judge_all([mutant(ops, "vector_add_cuda", "drop arg 3 'i32 N'")], ops.modules)
    return found


@pytest.mark.device
def test_a_survivor_is_told(survivor: Result) -> None:
    assert survivor.outcome == "survived"
    assert static_rate([survivor]) == 0
    assert "  vector_add_cuda: drop arg 3 'i32 N'  [cannot be laid out; SURVIVED]" in list(page([survivor]))
    what = "drop arg 3 'i32 N'"
    assert against([survivor], {}) == ([f"vector_add_cuda: {what}"], [])
    assert against([survivor], {"vector_add_cuda": {what: "because"}}) == ([], [])


@pytest.mark.device
def test_a_survivor_that_is_none_any_more_is_told(survivor: Result) -> None:
    listed = {"vector_add_cuda": {"drop arg 3 'i32 N'": "because"}}
    caught = replace(survivor, probe="out-of-bounds")
    assert (caught.outcome, caught.missed) == ("probe", True)
    assert against([caught], listed) == ([], ["vector_add_cuda: drop arg 3 'i32 N'"])
    assert against([], listed) == ([], ["vector_add_cuda: drop arg 3 'i32 N'"])


@pytest.mark.device
@pytest.mark.parametrize(("severity", "outcome"), [(Severity.WARNING, "probe"), (Severity.NOTE, "survived")])
def test_the_probe_reports_what_rules_do_not(ops: Subjects, severity: Severity, outcome: str) -> None:
    asked: list[tuple[OpSpec, bool]] = []

    def probe(spec: OpSpec, backward: bool) -> list[Finding]:
        asked.append((spec, backward))
        return [Finding("mismatch", "wrong", severity)]

    made = [
        mutant(ops, "detect_decode_cuda", "swap arg 1 'ptr anchor_x' and arg 2 'ptr anchor_y'"),
        mutant(ops, "vector_add_cuda", "drop arg 0 'ptr x'"),
        mutant(ops, "vector_add_cuda", "swap arg 0 'ptr x' and arg 1 'ptr y'"),
    ]
    results = judge_all(made, ops.modules, probe)
    assert [each.outcome for each in results] == [outcome, "static", "equivalent"]
    assert [each.alike for each in results] == [True, False, True]
    assert asked == [(made[0].spec, False)]
