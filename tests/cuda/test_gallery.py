"""The ops of ops.toml on a GPU, those that the CPU device has no code for among them."""

from __future__ import annotations

import pytest

from tests.commands.teeny import Teeny
from tests.commands.test_gallery import TABLES, matches

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("name", TABLES)
def test_every_case_matches_its_reference(teeny: Teeny, gpu_name: str, name: str) -> None:
    matches(teeny, name, "--device", gpu_name)
