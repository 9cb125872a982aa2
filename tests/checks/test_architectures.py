from __future__ import annotations

import pytest

from teenycli.arch import parse_target, takes_target, target_rule, target_since
from teenycli.errors import TeenyError
from teenycli.releases import driver_takes, newest_ptx, parse_driver, release_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("target", "takes", "refuses"),
    [
        ("sm_80", (80, 86, 90, 100, 121), (75, 70)),
        ("sm_75", (75, 120), (72,)),
        ("sm_90", (90, 100), (89,)),
        ("sm_90a", (90,), (89, 100, 103, 120)),
        ("sm_100a", (100,), (90, 103, 110, 120)),
        ("sm_100f", (100, 103, 107), (90, 110, 120)),
        ("sm_103f", (103, 107), (100, 110, 120)),
        ("sm_120f", (120, 121), (103, 110)),
        # Thor was 10.1 for CUDA 12 and is 11.0 for CUDA 13.
        ("sm_101a", (101, 110), (100, 103, 120)),
        ("sm_110f", (110, 101), (100, 103, 120)),
        ("compute_90a", (90,), (100,)),
    ],
)
def test_targets(target: str, takes: tuple[int, ...], refuses: tuple[int, ...]) -> None:
    assert [sm for sm in takes if not takes_target(parse_target(target), sm)] == []
    assert [sm for sm in refuses if takes_target(parse_target(target), sm)] == []


def test_rules_are_told_in_words() -> None:
    assert target_rule(parse_target("sm_80")) == "sm_80 and later"
    assert target_rule(parse_target("sm_90a")) == "sm_90 only"
    assert target_rule(parse_target("sm_100f")) == "the sm_10x family, from sm_100 on"


@pytest.mark.parametrize(
    ("cuda", "ptx"),
    [((11, 8), (7, 8)), ((12, 4), (8, 4)), ((12, 5), (8, 5)), ((12, 6), (8, 5)), ((12, 7), (8, 6)), ((13, 0), (9, 0)),
     ((13, 4), (9, 4)), ((13, 5), None), ((14, 0), None), ((2, 3), None)],
)  # fmt: skip
def test_newest_ptx_of_a_driver(cuda: tuple[int, int], ptx: tuple[int, int] | None) -> None:
    assert newest_ptx(cuda) == ptx


@pytest.mark.parametrize(
    ("ptx", "cuda", "takes"),
    [
        ((8, 4), (12, 4), True),
        ((8, 5), (12, 4), False),
        ((8, 5), (12, 6), True),
        ((6, 0), (13, 0), True),
        ((9, 4), (13, 0), False),
        ((9, 9), (13, 0), False),
        # Of a driver newer than the table nothing is claimed.
        ((9, 9), (14, 0), True),
    ],
)
def test_driver_takes(ptx: tuple[int, int], cuda: tuple[int, int], takes: bool) -> None:
    assert driver_takes(ptx, cuda) is takes


def test_releases_ascend_and_are_found() -> None:
    release = release_of((9, 0))
    assert release is not None
    assert (release.cuda, release.branch) == ((13, 0), 580)
    assert release_of((9, 9)) is None


@pytest.mark.parametrize(
    ("target", "since"),
    [("sm_90", (7, 8)), ("sm_90a", (8, 0)), ("sm_100f", (8, 8)), ("sm_110", (9, 0)), ("sm_999", None)],
)
def test_targets_came_with_a_version(target: str, since: tuple[int, int] | None) -> None:
    assert target_since(parse_target(target)) == since


@pytest.mark.parametrize(
    ("text", "ptx"),
    [("570", (8, 7)), ("570.86.15", (8, 7)), ("r560", (8, 5)), ("12.8", (8, 7)), ("CUDA 13.0", (9, 0)), ("999", None),
     ("100", None), ("cuda-12.4", (8, 4))],
)  # fmt: skip
def test_drivers_by_branch_or_cuda_version(text: str, ptx: tuple[int, int] | None) -> None:
    assert parse_driver(text).newest_ptx == ptx


@pytest.mark.parametrize("text", ["", "new", "12", "12.8.1.1", "-570"])
def test_what_is_no_driver(text: str) -> None:
    with pytest.raises(TeenyError) as caught:
        parse_driver(text)
    assert caught.value.finding.id == "unknown-driver"
