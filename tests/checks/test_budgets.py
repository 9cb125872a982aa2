"""What no kernel and no launch may do to check: take minutes, or memory without end."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from teenycli.ptx import code_of, outline, read_source
from teenycli.ptx.flow import Flow
from teenycli.ptx.strides import reached
from tests.checks.ops import Op, kernel
from tests.commands.teeny import Teeny, manifest

pytestmark = pytest.mark.unit

STORE = (
    "mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mov.u32 %r3,%ntid.x; mad.lo.s32 %r4,%r2,%r3,%r1; "
    "mul.wide.s32 %d2,%r4,4; ld.param.u64 %d1,[x]; add.s64 %d3,%d1,%d2; st.global.f32 [%d3],%f1;"
)
OP: Op = {"output": {"name": "x", "shape": ["N"]}, "args": ["ptr x"], "grid": [1], "block": [1], "dims": {"N": 1}}


@contextmanager
def seconds(most: float) -> Iterator[None]:
    begin = time.process_time()
    yield
    assert time.process_time() - begin < most


def ids(teeny: Teeny, folder: Path, body: str, **keys: Any) -> set[str]:
    op = {**OP, "ptx": kernel(folder, ".param .u64 x", body), **keys}
    rows = teeny("check", "--json", "-m", manifest(folder, it=op)).json["ops"]
    assert not any(row["error"] for row in rows)
    return {finding["id"] for row in rows for finding in row["findings"]}


def test_a_grid_of_as_many_blocks_as_there_can_be(teeny: Teeny, tmp_path: Path) -> None:
    grid = [2**31 - 1, 65535, 65535]
    unread = {"axis-unread"}
    assert ids(teeny, tmp_path, STORE, grid=grid, block=[1024]) - unread == {"access-outside"}
    assert ids(teeny, tmp_path, STORE, grid=grid, block=[1], dims={"N": 2**31 - 1}) - unread == set()


@pytest.mark.parametrize("keys", [{}, {"grid": [1000], "block": [1024]}], ids=["a thread", "a million threads"])
def test_a_loop_of_more_turns_than_can_be_walked(teeny: Teeny, tmp_path: Path, keys: dict[str, Any]) -> None:
    loop = "mov.u64 %d4,0; L: add.s64 %d4,%d4,1; setp.lt.s64 %p1,%d4,4611686018427387904; @%p1 bra L; "
    with seconds(20):
        assert ids(teeny, tmp_path, loop + STORE, **keys) == set()


def test_work_is_shared_by_cases(teeny: Teeny, tmp_path: Path) -> None:
    loop = "mov.u64 %d4,0; L: add.s64 %d4,%d4,1; setp.lt.s64 %p1,%d4,4611686018427387904; @%p1 bra L; "
    with seconds(60):
        cases = [{"N": n + 1} for n in range(500)]
        assert ids(teeny, tmp_path, loop + STORE, block=["N"], cases=cases) == set()


def test_ways_that_hang_on_data_cost_what_lies_between(teeny: Teeny, tmp_path: Path) -> None:
    skips = " ".join(f"setp.eq.s32 %p1,%r5,{k}; @%p1 bra L{k}; st.global.f32 [%d1],%f1; L{k}:" for k in range(1500))
    with seconds(20):
        assert ids(teeny, tmp_path, f"{STORE} L: ld.global.u32 %r5,[%d1]; {skips} bra L;") == set()


def test_memory_of_outputs_is_bounded(teeny: Teeny, tmp_path: Path) -> None:
    names = [f"x{k}" for k in range(40)]
    body = STORE.split("ld.param")[0] + " ".join(
        f"ld.param.u64 %d1,[{name}]; add.s64 %d3,%d1,%d2; st.global.f32 [%d3],%f1;" for name in names
    )
    op = {
        **OP, "ptx": kernel(tmp_path, ",".join(f".param .u64 {name}" for name in names), body),
        "args": [f"ptr {name}" for name in names], "grid": ["cdiv(N, 1024)"], "block": [1024], "dims": {"N": 2**23},
    }  # fmt: skip
    del op["output"]
    op["outputs"] = [{"name": name, "shape": ["N"]} for name in names]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with seconds(30):
        assert teeny("check", "-m", manifest(tmp_path, it=op)).code == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700 << 10  # KiB


def test_many_pointers_in_one_register(tmp_path: Path) -> None:
    count = 400
    loads = " ".join(f"ld.param.u64 %d1,[x{k}]; st.global.f32 [%d1],%f1;" for k in range(count))
    params = ",".join(f".param .u64 x{k}" for k in range(count))
    module = outline(read_source(tmp_path / kernel(tmp_path, params, loads)))
    with seconds(10):
        found = reached(Flow(code_of(module, module.entries[0])))
    assert found.keys() == {(k, 0) for k in range(count)}
    assert all(how.parts == found.keys() and how.reach == 0 for how in found.values())
