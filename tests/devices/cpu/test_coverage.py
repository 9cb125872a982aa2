"""The CPU device has all of tiers 1 and 2."""

from __future__ import annotations

import pytest

from teenycli.devices.cpu.registry import missing

pytestmark = pytest.mark.unit


def test_nothing_is_missing_of_tiers_1_and_2() -> None:
    assert [form.text for form in missing(tiers=(1, 2))] == []
