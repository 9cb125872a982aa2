"""What a GPU's own speed leaves us to lose: vector add against a copy, and our launches against bare ones.

A vector add of 256M floats by ``teeny run``, at the time that its table has, against a copy from device to device, as
if that moved as many bytes: at least 95% of its bandwidth. A prepared launch of ``CudaDevice`` against one of the same
kernel by cuda.core, both waited for and timed by events: at most 1.1 times, a long one by its events and one of a CTA
by the clock; and what it takes to prepare one. Needs a GPU, else nothing is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from benchmarks.timing import ROOT, Figure, Row, Section, compare, stopwatch
from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cuda.device import CudaDevice
from teenycli.devices.cuda.driver import packages
from teenycli.devices.cuda.probe import ASKED, survey
from teenycli.errors import TeenyError
from teenycli.launch.plan import Address, Argument, Field, Launch
from teenycli.ptx import outline, read_source

FLOATS = 1 << 28
#: Least share of a copy's bandwidth, and the most that a launch may cost over a bare one.
SHARE, COST = 0.95, 1.1
RUNS, COPIES = 5, 20
LAUNCHES, ROUNDS = 200, 21
#: Of a launch that takes long enough for events, which tell half a microsecond, to tell a tenth of it.
LONG = 1 << 25
PTX = ROOT / "ptx" / "cuda" / "vector_add.ptx"
ENTRY, BLOCK = "vector_add", 256


def measure(floats: int = FLOATS, launches: int = LAUNCHES, long: int = LONG) -> Section:
    """Measure on the first GPU."""
    title, found = "on a GPU", survey(ASKED)
    if not found.gpus:
        return Section(title, [], {"not measured": f"no GPU: {found.problem}"})
    try:
        opened = CudaDevice(0)
    except TeenyError as error:
        return Section(title, [], {"not measured": error})
    rows: list[Row] = []
    facts: dict[str, object] = {"GPU": opened.description}
    with opened as device:
        try:
            rows += bandwidth_rows(device, floats)
            rows += launch_rows(device, launches, long)
        except (TeenyError, RuntimeError, subprocess.CalledProcessError) as error:
            facts["not measured"] = error  # memory is full, or the GPU is for one process alone
    return Section(title, rows, facts)


# --- bandwidth ---------------------------------------------------------------------------------------------------


def bandwidth_rows(device: CudaDevice, floats: int) -> Iterator[Row]:
    """Runs and copies by turns; and launches after the first, which tell what being the first costs a run."""
    runs: list[float] = []
    copies: list[float] = []
    later: list[float] = []
    nbytes = 0
    with adding(device, floats) as (prepare, (x, _, out)), copying(x, out, 4 * floats) as copy:
        for _ in range(RUNS):
            nbytes, ms = vector_add(floats)
            runs.append(ms)
            copy()  # clocks may have gone down meanwhile
            copies += [copy() for _ in range(COPIES)]
        add = prepare()
        add()
        for _ in range(COPIES):
            later.append(add())
            copies.append(copy())
    for name, took, limit in (("teeny run", runs, 1 / SHARE), ("  launches after the first", later, None)):
        yield bandwidth_row(f"{name}, {floats:,} floats, against a copy", nbytes, took, 8 * floats, copies, limit)


def bandwidth_row(
    name: str, nbytes: int, took: Sequence[float], moved: int, copies: Sequence[float], limit: float | None
) -> Row:
    """Milliseconds in which ``nbytes`` were moved, against what copies would have taken for as many, who read and
    write ``moved`` bytes in all."""
    ours, base = Figure.of(took), Figure.of(ms * nbytes / moved for ms in copies)
    speeds = {"GB/s": nbytes / ours.median / 1e6, "copy GB/s": nbytes / base.median / 1e6}
    return Row(name, ours, base, limit, details={**speeds, "share": base.median / ours.median})


def vector_add(floats: int) -> tuple[int, float]:
    """Bytes and milliseconds that the table of a ``teeny run`` has its bandwidth from, in a process of its own."""
    command = [sys.executable, "-m", "teenycli", "run", "vector_add_cuda", "-m", "ops.toml",
               "--dim", f"N={floats}", "--device", "cuda:0", "--json"]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return traffic(json.loads(done.stdout))


def traffic(document: Any) -> tuple[int, float]:
    """Bytes and milliseconds of all launches of a document of ``teeny run``."""
    launches = document["launches"]
    nbytes = sum(launch["bytes_read"] + launch["bytes_written"] for launch in launches)
    return nbytes, sum(launch["ms"] for launch in launches)


@contextmanager
def copying(source: int, target: int, nbytes: int) -> Iterator[Callable[[], float]]:
    """A function that copies so many bytes within the device, and gives milliseconds by events."""
    cu = packages().bindings
    start, end = (called(cu.cuEventCreate, cu.CUevent_flags.CU_EVENT_DEFAULT.value) for _ in range(2))

    def copy() -> float:
        called(cu.cuEventRecord, start, 0)
        called(cu.cuMemcpyDtoD, cu.CUdeviceptr(target), cu.CUdeviceptr(source), nbytes)
        called(cu.cuEventRecord, end, 0)
        called(cu.cuEventSynchronize, end)
        return float(called(cu.cuEventElapsedTime, start, end))

    try:
        copy()
        yield copy
    finally:
        for event in (start, end):
            called(cu.cuEventDestroy, event)


def called(function: Callable[..., tuple[Any, ...]], *arguments: object) -> Any:
    """The result of a function of the driver. Raises RuntimeError where it fails."""
    status, *results = function(*arguments)
    if int(status):
        raise RuntimeError(f"{function.__name__}: {status!r}")
    return results[0] if results else None


# --- launches ----------------------------------------------------------------------------------------------------


def launch_rows(device: CudaDevice, launches: int, long: int) -> Iterator[Row]:
    """What events say of long launches, ours and bare ones by turns; and launches of one CTA by the clock, so many in a
    row, ours against bare ones that are timed too, and against bare ones."""
    with adding(device, long) as (prepare, addresses):
        add = prepare()
        with bare([*addresses, np.int32(long)], long // BLOCK, is_timed=True) as base:
            by_events = [(add(), base()) for _ in range(launches)]
        ours, theirs = (Figure.of(each) for each in zip(*by_events, strict=True))
        yield Row(f"a launch over {long:,} floats by its events, against bare and timed", ours, theirs, COST)
    with adding(device, BLOCK) as (prepare, addresses):
        add = prepare()
        for name, is_timed, limit in (("bare and timed", True, COST), ("bare", False, None)):
            with bare([*addresses, np.int32(BLOCK)], 1, is_timed=is_timed) as base:
                title = f"{launches} launches of a CTA by the clock, against {name}"
                yield compare(title, times(launches, add), times(launches, base), rounds=ROUNDS, limit=limit)
        preparing = times(launches, prepare)
        yield Row(f"to prepare {launches} launches", Figure.of(stopwatch(preparing) for _ in range(ROUNDS)))


@contextmanager
def adding(device: CudaDevice, floats: int) -> Iterator[tuple[Callable[[], Callable[[], float]], list[int]]]:
    """What prepares a launch of a vector add through the device, and its buffers' addresses. The launch gives
    milliseconds each time that it is run."""
    data = np.random.default_rng(0).random(floats, np.float32).view(np.uint8)
    with ExitStack() as held:
        buffers: dict[str, DeviceBuffer] = {}
        for name in ("x", "y", "out"):
            buffers[name] = device.upload(name, data)
            held.callback(device.free, buffers[name])
        fields = [*(Field("ptr", Address(name)) for name in buffers), Field("i32", floats)]
        arguments = tuple(Argument(i, f"a{i}", f.kind, 8 if f.kind == "ptr" else 4, (f,)) for i, f in enumerate(fields))
        plan = Launch(ENTRY, 0, ENTRY, (-(-floats // BLOCK), 1, 1), (BLOCK, 1, 1), arguments)
        kernel = device.load(outline(read_source(PTX)), ENTRY)

        def prepare() -> Callable[[], float]:
            run = device.prepare(kernel, plan, buffers)
            return lambda: run(0).ms

        yield prepare, [buffer.address for buffer in buffers.values()]


@contextmanager
def bare(arguments: Sequence[object], ctas: int, *, is_timed: bool) -> Iterator[Callable[[], float]]:
    """One launch by cuda.core alone, waited for; ``is_timed``: by events around it, as ``CudaDevice`` does it, which
    give its milliseconds, else 0."""
    core = packages().core
    gpu = core.Device(0)
    gpu.set_current()
    stream = gpu.create_stream()
    code = core.ObjectCode.from_ptx(PTX.read_bytes())
    kernel = code.get_kernel(ENTRY)
    config = core.LaunchConfig(grid=ctas, block=BLOCK)
    start, end = (gpu.create_event(core.EventOptions(timing_enabled=True)) for _ in range(2))

    def timed() -> float:
        stream.record(start)
        core.launch(stream, config, kernel, *arguments)
        stream.record(end)
        end.sync()
        return float(end - start)

    def untimed() -> float:
        core.launch(stream, config, kernel, *arguments)
        stream.sync()
        return 0.0

    try:
        yield timed if is_timed else untimed
    finally:
        called(packages().bindings.cuLibraryUnload, code.handle)  # which cuda.core never does


def times(count: int, function: Callable[[], object]) -> Callable[[], None]:
    """A function that calls another so many times."""

    def run() -> None:
        for _ in range(count):
            function()

    return run
