from __future__ import annotations

import shutil
import subprocess

import pytest

from teenycli.ptx.demangle import demangle

pytestmark = pytest.mark.unit

CPP = "_Z6vecaddPKfS0_Pfi"
RUST_V0 = "_RNvC6kernel7softmax"
RUST_LEGACY = "_ZN6kernel7softmax17h0123456789abcdefE"
needs_tool = pytest.mark.skipif(shutil.which("c++filt") is None, reason="c++filt is not installed")


def test_plain_names_start_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: pytest.fail(f"looked for {name}"))
    assert demangle(["softmax", "triton_kernel_0d1d"]) == {}


@needs_tool
def test_cpp_and_both_of_rusts() -> None:
    found = demangle([CPP, RUST_V0, RUST_LEGACY, "plain"])
    assert found[CPP] == "vecadd(float const*, float const*, float*, int)"
    assert found[RUST_V0] == "kernel::softmax"
    assert found[RUST_LEGACY].startswith("kernel::softmax")
    assert "plain" not in found


def test_without_the_tool_the_runtime_knows_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes.util

    if ctypes.util.find_library("stdc++") is None:
        pytest.skip("no C++ runtime library")
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert demangle([CPP, "_Znonsense"]) == {CPP: "vecadd(float const*, float const*, float*, int)"}


@pytest.mark.parametrize("output", ["", "one\ntwo\nthree\n"])
def test_a_tool_that_answers_wrongly_is_not_believed(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: "c++filt")
    monkeypatch.setattr(subprocess, "run", lambda *_a, **_k: subprocess.CompletedProcess([], 0, output, ""))
    assert demangle([CPP]) == {}
