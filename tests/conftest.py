from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.teeny import Teeny


@pytest.fixture
def teeny(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Teeny:
    monkeypatch.chdir(tmp_path)
    return Teeny(capfd)
