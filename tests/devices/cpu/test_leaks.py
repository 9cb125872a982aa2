"""Launches, loads and faults leave nothing behind in the process: neither memory nor threads, files or objects."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from teenycli.devices.cpu import CpuDevice
from teenycli.devices.cpu.memory import QUARANTINE, AddressSpace
from teenycli.errors import TeenyError
from teenycli.ptx import outline
from teenycli.ptx.model import Source
from tests.devices.cpu.kit import HEAD, Rig
from tests.devices.cpu.planted import ENTRY
from tests.devices.cpu.planted import HEAD as DECLARATIONS

pytestmark = pytest.mark.unit

#: Kernels, what each is launched with beside two buffers of 512 bytes, and the fault that it ends in.
KERNELS: dict[str, tuple[str, dict[str, object], str | None]] = {
    "barrier": ("st.shared.u32 [room], %t; bar.sync 0; ld.shared.u32 %r3, [room]; st.global.u32 [%to], %r3;", {}, None),
    "printing": ("mov.u64 %d1, fixed; cvta.const.u64 %d1, %d1; call (%r3), vprintf, (%d1, 0);", {}, None),
    "heap": ("call (%d1), malloc, (24); st.u32 [%d1], %t; call free, (%d1);", {}, None),
    "recursion": ("call (%r3), sum, (%t);", {}, None),
    "cluster": (
        "barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r3, room; mapa.shared::cluster.u32 %r3, %r3, 1;"
        "st.shared::cluster.u32 [%r3], %t; barrier.cluster.arrive; barrier.cluster.wait;",
        {"cluster": (2, 1, 1)},
        None,
    ),
    "out of bounds": ("st.global.u32 [%to+4096], %t;", {}, "out-of-bounds"),
    "assertion": ("mov.u64 %d1, fixed; cvta.const.u64 %d1, %d1; call __assertfail, (%d1, %d1, 7, %d1, 1);", {}, "assertion"),
    "deadlock": ("setp.lt.u32 %p1, %t, 32; @%p1 bra done; bar.sync 1, 64; done:", {}, "deadlock"),
    "time-out": ("again: add.u32 %r3, %r3, 1; bra again;", {"timeout": 0.02}, "timeout"),
}  # fmt: skip

LIBC = ctypes.CDLL(None)

SUM = """.func (.reg .b32 %s) sum(.reg .b32 %k) { .reg .b32 %w; .reg .pred %z; mov.u32 %s, 0; setp.eq.u32 %z, %k, 0;
@%z ret; sub.u32 %w, %k, 1; call (%s), sum, (%w); add.u32 %s, %s, %k; ret; }"""


def resident() -> int:
    """Bytes of memory that the process has in use."""
    gc.collect()
    if hasattr(LIBC, "malloc_trim"):  # what lies free between other blocks is no leak
        LIBC.malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held() -> tuple[int, int]:
    """Threads and open files."""
    return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))


def rigs(device: CpuDevice) -> dict[str, Rig]:
    text = {name: f"{DECLARATIONS}{SUM}{ENTRY}{body}\nret; }}" for name, (body, _, _) in KERNELS.items()}
    return {name: Rig(text, device=device) for name, text in text.items()}


def launch(rig: Rig, name: str, size: int) -> None:
    """Load a kernel, launch it on buffers of ``size`` bytes each; they are freed."""
    _, how, fault = KERNELS[name]
    buffers = [np.zeros(size, np.uint8), np.zeros(size, np.uint8)]
    context = contextlib.nullcontext() if fault is None else pytest.raises(TeenyError)
    with context as caught:
        rig.run([*buffers, 128], grid=(4,), block=(64,), **how)  # type: ignore[arg-type]
    assert caught is None or caught.value.finding.id == fault


def growth(once: Callable[[int], object], warm: int, times: int) -> int:
    """Bytes by which the process has grown over ``times`` rounds, after ``warm``."""
    for k in range(warm):
        once(k)
    before = resident()
    for k in range(warm, warm + times):
        once(k)
    return resident() - before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_two_hundred_launches_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each loads its kernel (from the cache) and has two buffers of 64 KiB: 26 MB if they were kept. LLVM's linker keeps
    about 10 KB of each kernel's names, 2 MB of all."""
    monkeypatch.setenv("TEENY_CACHE_DIR", str(tmp_path))
    with CpuDevice(threads=2, output=lambda _: None) as device:
        kernels = rigs(device)
        names = list(kernels)

        def once(k: int) -> None:
            name = names[k % len(names)]
            launch(kernels[name], name, 512 if name == "out of bounds" else 1 << 16)

        for _ in range(1 + QUARANTINE // 256):  # it allocates 256 blocks
            launch(kernels["heap"], "heap", 1024)
        growth(once, len(names), 2 * len(names))
        objects, before = len(gc.get_objects()), held()
        grown = growth(once, 0, 200)
        assert held() == before
        assert grown < 16 << 20
        assert len(gc.get_objects()) - objects < 500
    assert threading.active_count() == before[0] - 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_code_of_kernels_that_are_gone_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads from the cache of a kernel with 250 KB of code: 25 MB if they were kept."""
    monkeypatch.setenv("TEENY_CACHE_DIR", str(tmp_path))
    lines = "\n".join(
        f"sin.approx.f32 %f1, %f1; div.rn.f32 %f2, %f1, %f2; st.global.f32 [%d+{4 * k}], %f2;" for k in range(1000)
    )
    text = f"{HEAD}.visible .entry k(.param .u64 p) {{ .reg .b64 %d; .reg .f32 %f<3>; ld.param.u64 %d, [p];\n{lines} ret; }}"
    with CpuDevice(threads=1) as device:
        module = outline(Source("large.ptx", text))
        device.load(module, "k")
        code = (next(tmp_path.iterdir())).stat().st_size
        assert code > 150_000
        grown = growth(lambda _: device.load(module, "k"), 20, 100)
        assert grown < 10 * code


def test_ids_of_freed_buffers_are_used_again_after_a_while() -> None:
    space = AddressSpace()
    first = space.allocate("first", np.zeros(8, np.uint8), 256)
    space.free(first)
    numbers = set()
    for k in range(QUARANTINE + 10):
        buffer = space.allocate(f"{k}", np.zeros(8, np.uint8), 256)
        numbers.add(buffer.number)
        space.free(buffer)
        space.free(first)  # no matter how often
    assert len(numbers) == QUARANTINE + 1
    assert first.number in numbers
    kept = space.allocate("kept", np.full(8, 7, np.uint8), 256)
    space.free(first)
    assert kept.data is not None
