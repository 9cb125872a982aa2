"""What steps can come to, against all that a small interpreter makes of them."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teenycli.rust.model import Call, Choice, End, Never, Repeat, Spot, Step, Steps, Unknown, Visit
from teenycli.rust.ways import Reach, certain, certain_last, ways

pytestmark = pytest.mark.unit
AT = Spot(1, 1)
LIMIT = 5
Run = tuple[tuple[str, ...], str]  # what was visited, and how it stopped: on, end, never


def visit(text: str) -> Visit:
    return Visit("visit_i32", "i32", text, AT)


def _tuples(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Steps]:
    return st.lists(inner, max_size=3).map(tuple)


leaves: st.SearchStrategy[Step] = st.sampled_from([visit("a"), visit("b"), End(), Never()])
trees: st.SearchStrategy[Steps] = _tuples(
    st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(_tuples(inner), min_size=1, max_size=3).map(lambda each: Choice(tuple(each), "c", AT)),
            _tuples(inner).map(lambda each: Repeat(each, "r", AT)),
            _tuples(inner).map(Call),
        ),
        max_leaves=6,
    )
)


def runs(steps: Steps) -> set[Run]:
    """Every run that visits at most LIMIT times."""
    found: set[Run] = {((), "on")}
    for step in steps:
        found = {
            (before + after, how)
            for (before, stopped), (after, how) in product(found, _of(step))
            if stopped == "on" and len(before + after) <= LIMIT
        } | {run for run in found if run[1] != "on"}
    return found


def _of(step: Step) -> set[Run]:
    if isinstance(step, Visit):
        return {((step.text,), "on")}
    if isinstance(step, End | Never):
        return {((), "end" if isinstance(step, End) else "never")}
    if isinstance(step, Choice):
        return {run for way in step.ways for run in runs(way)}
    if isinstance(step, Call):
        return {(visits, "on" if how == "end" else how) for visits, how in runs(step.steps)}
    assert isinstance(step, Repeat)
    found: set[Run] = {((), "on")}
    while True:
        more = found | {
            (before + after, how)
            for (before, stopped), (after, how) in product(found, runs(step.steps))
            if stopped == "on" and len(before + after) <= LIMIT
        }
        if more == found:
            return found
        found = more


def finished(steps: Steps) -> set[tuple[str, ...]]:
    return {visits for visits, how in runs(steps) if how != "never"}


@given(trees)
def test_the_ways_are_all_that_can_be_visited(steps: Steps) -> None:
    found = ways(steps)
    if found is not None:
        texts = {tuple(visit.text for visit in way) for way in found}
        assert {way for way in texts if len(way) <= LIMIT} == finished(steps)


@given(trees, st.text("ab", max_size=LIMIT))
def test_a_list_of_arguments_fits_when_some_run_visits_it(steps: Steps, wanted: str) -> None:
    reach = Reach(lambda visit, k: k < len(wanted) and visit.text == wanted[k], LIMIT)
    assert (len(wanted) in reach.counts(steps)) == (tuple(wanted) in finished(steps))


@given(trees)
def test_what_is_certain_comes_first_and_last_in_every_run(steps: Steps) -> None:
    first = tuple(visit.text for visit in certain(steps))
    last = tuple(visit.text for visit in certain_last(steps))
    for run in finished(steps):
        assert run[: len(first)] == first
        assert not last or run[-len(last) :] == last


def test_unknown_steps_may_pass_anything() -> None:
    steps = (visit("a"), Unknown("a call", AT), visit("b"))
    assert Reach(lambda _visit, _k: True, LIMIT).counts(steps) == {2, 3, 4, 5}
    assert ways(steps) is None


def test_too_many_ways_are_not_written_out() -> None:
    steps = tuple(Choice(((visit(str(k)),), ()), "c", AT) for k in range(40))
    assert ways(steps) is None
    assert Reach(lambda _visit, _k: True, 64).counts(steps) == set(range(41))
