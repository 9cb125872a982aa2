from __future__ import annotations

import io

import pytest

from teenycli.report.console import Surface
from teenycli.report.progress import ProgressLine

pytestmark = pytest.mark.unit

GIB = 2**30


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


def shown(tty: bool, width: int | None, *events: tuple[float, int]) -> str:
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(Surface(stream, tty=tty, colour=False, width=width), clock)
    for at, done in events:
        clock.now = 10.0 + at
        line("copying 'x'", done, 4 * GIB)
    return stream.getvalue()


def test_it_comes_after_a_while_changes_now_and_then_and_goes() -> None:
    text = shown(True, 80, (0, 0), (0.4, GIB), (0.6, 2 * GIB), (0.61, 2 * GIB + 1), (0.8, 3 * GIB), (0.9, 4 * GIB))
    half, most = "copying 'x': 50 % of 4.00 GiB", "copying 'x': 75 % of 4.00 GiB"
    assert text == f"\r{half}\r{most}\r{' ' * len(most)}\r"


def test_what_is_done_soon_is_not_shown() -> None:
    assert shown(True, 80, (0, 0), (0.3, GIB), (0.4, 4 * GIB)) == ""


def test_it_is_for_terminals() -> None:
    assert shown(False, None, (0, 0), (0.6, GIB), (0.9, 4 * GIB)) == ""


def test_it_keeps_to_one_line() -> None:
    assert shown(True, 11, (0, 0), (0.6, GIB)) == "\rcopying 'x"


def test_the_next_copy_has_its_own_time() -> None:
    assert shown(True, 80, (0, 0), (0.4, 4 * GIB), (0.5, 0), (0.9, GIB)) == ""
