from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from teenycli.arch import Limits
from teenycli.devices.base import Device, DeviceBuffer, Kernel, LaunchTime, Run
from teenycli.devices.execute import Lease, execute
from teenycli.dtypes import DTYPES
from teenycli.errors import Finding, TeenyError
from teenycli.launch.plan import Address, Argument, Buffer, Field, Launch, Plan
from teenycli.ptx.model import Module
from tests.ptx.text import module_of

pytestmark = pytest.mark.unit

MODULE = module_of(".visible .entry twice() { ret; }\n.visible .entry other() { ret; }")
Bytes = npt.NDArray[np.uint8]


@dataclass
class Loaded:
    entry: str
    compile_ms: float
    cached: bool
    findings: tuple[Finding, ...] = ()


@dataclass
class Memory:
    name: str
    address: int
    data: Bytes

    @property
    def nbytes(self) -> int:
        return self.data.size


@dataclass
class Doubler:
    """A device whose every kernel writes twice its first argument's floats to its second's; it counts what it holds."""

    name: str = "fake"
    description: str = "a fake"
    limits: Limits = field(default_factory=Limits)
    cached: bool = False
    events: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    fails: str | None = None

    def _note(self, event: str) -> None:
        self.events.append(event)
        if event == self.fails:
            raise TeenyError("broken", event)

    def layout_sm(self, module: Module) -> int:
        return len(module.functions)

    def load(self, module: Module, entry: str) -> Loaded:
        assert entry in [function.name for function in module.entries]
        self._note(f"load {entry}")
        return Loaded(entry, 2.0, self.cached, (Finding("note", entry),))

    def set_variable(self, kernel: Kernel, name: str, data: Bytes) -> None:
        assert isinstance(kernel, Loaded)
        self._note(f"set {name} of {kernel.entry} to {data.tolist()}")

    def upload(self, name: str, data: Bytes, align: int = 256) -> Memory:
        assert data.dtype == np.uint8
        assert data.ndim == 1
        self._note(f"upload {name} {align}")
        self.held.append(name)
        return Memory(name, 4096, data.copy())

    def download(self, buffer: DeviceBuffer) -> Bytes:
        assert isinstance(buffer, Memory)
        self._note(f"download {buffer.name}")
        return buffer.data.copy()

    def prepare(self, kernel: Kernel, launch: Launch, buffers: Mapping[str, DeviceBuffer]) -> Run:
        assert isinstance(kernel, Loaded)
        self._note(f"prepare {kernel.entry} {launch.index}")
        source, target = (buffers[str(argument.name)] for argument in launch.args)
        assert isinstance(source, Memory)
        assert isinstance(target, Memory)

        def run(timeout: float) -> LaunchTime:
            self._note(f"launch {kernel.entry} {launch.index} {timeout:g}")
            target.data.view(np.float32)[:] = source.data.view(np.float32) * 2
            return LaunchTime(10.0 + launch.index)

        return run

    def close(self) -> None:
        self._note("close")


class Freeing(Doubler):
    def reset_variables(self, module: Module) -> None:
        assert module is MODULE

    def free(self, buffer: DeviceBuffer) -> None:
        self.held.remove(buffer.name)


class Stubborn(Freeing):
    """Gives nothing back: says so of every buffer."""

    def free(self, buffer: DeviceBuffer) -> None:
        self._note(f"free {buffer.name}")
        raise TeenyError("broken", f"free {buffer.name}")


def launch(index: int, entry: str, source: str, target: str) -> Launch:
    args = tuple(Argument(i, name, "ptr", 8, (Field("ptr", Address(name)),)) for i, name in enumerate((source, target)))
    return Launch("op", index, entry, (1, 1, 1), (32, 1, 1), args)


F32 = DTYPES["f32"]
BUFFERS = (
    Buffer("x", F32, (2, 3), "input"),
    Buffer("pad", F32, (6,), "scratch", align=1024),
    Buffer("y", F32, (2, 3), "output"),
)
ARRAYS: Mapping[str, npt.NDArray[Any]] = {
    "x": np.arange(6, dtype=np.float32).reshape(2, 3),
    "pad": np.zeros(6, np.float32),
    "y": np.full((2, 3), np.nan, np.float32),
}


def plan(*launches: Launch, buffers: tuple[Buffer, ...] = BUFFERS) -> Plan:
    return Plan("op", {}, "k.ptx", "twice", buffers, launches)


ONCE = plan(launch(0, "twice", "x", "y"))


def test_outputs_come_back_in_dtype_and_shape() -> None:
    device = Freeing()
    as_device: Device = device
    done = execute(ONCE, MODULE, as_device, ARRAYS, timeout=7)
    assert list(done.arrays) == ["y"]
    np.testing.assert_array_equal(done.arrays["y"], ARRAYS["x"] * 2)
    assert (done.device, done.description, done.compile_ms, done.cached) == ("fake", "a fake", 2.0, False)
    assert done.launch_ms == (10.0,)
    assert [finding.message for finding in done.findings] == ["twice"]
    assert np.isnan(ARRAYS["y"]).all()
    assert device.events == [
        "load twice", "upload x 256", "upload pad 1024", "upload y 256", "prepare twice 0", "launch twice 0 7",
        "download y",
    ]  # fmt: skip
    assert device.held == []


def test_launches_go_in_order_and_each_entry_is_loaded_once() -> None:
    device = Freeing(cached=True)
    launches = (launch(0, "twice", "x", "pad"), launch(1, "other", "pad", "y"), launch(2, "twice", "y", "pad"))
    done = execute(plan(*launches), MODULE, device, ARRAYS)
    np.testing.assert_array_equal(done.arrays["y"], ARRAYS["x"] * 4)
    assert done.launch_ms == (10.0, 11.0, 12.0)
    assert (done.compile_ms, done.cached) == (4.0, True)
    assert [event for event in device.events if event.startswith("load")] == ["load twice", "load other"]


def test_nothing_is_launched_before_every_launch_is_ready() -> None:
    device = Freeing(fails="prepare other 1")
    with pytest.raises(TeenyError, match="launch 1 of 2: prepare other 1"):
        execute(plan(launch(0, "twice", "x", "y"), launch(1, "other", "x", "y")), MODULE, device, ARRAYS)
    assert not [event for event in device.events if event.startswith("launch")]


def test_everything_but_scratch_comes_back_when_asked_for() -> None:
    done = execute(ONCE, MODULE, Freeing(), ARRAYS, everything=True)
    assert list(done.arrays) == ["x", "y"]


def test_a_buffer_written_in_place_is_an_output() -> None:
    buffers = (Buffer("x", F32, (2, 3), "input", output="y"),)
    done = execute(plan(launch(0, "twice", "x", "x"), buffers=buffers), MODULE, Freeing(), ARRAYS)
    np.testing.assert_array_equal(done.arrays["x"], ARRAYS["x"] * 2)


class TestLease:
    def test_what_is_there_is_neither_uploaded_nor_freed(self) -> None:
        device = Freeing()
        there = device.upload("x", np.arange(6, dtype=np.float32).view(np.uint8))
        lease = Lease({"x": there}, frozenset({"y"}))
        done = execute(ONCE, MODULE, device, ARRAYS, lease=lease)
        np.testing.assert_array_equal(done.arrays["y"], ARRAYS["x"] * 2)
        assert device.events.count("upload x 256") == 1
        assert device.held == ["x", "op.y"]
        assert list(lease.kept) == ["y"]

    def test_what_was_there_is_kept_where_another_output_lies_in_it(self) -> None:
        device = Freeing()
        there = device.upload("x", np.arange(6, dtype=np.float32).view(np.uint8))
        lease = Lease({"x": there}, frozenset({"x"}))
        buffers = (Buffer("x", F32, (2, 3), "input", output="y"),)
        execute(plan(launch(0, "twice", "x", "x"), buffers=buffers), MODULE, device, ARRAYS, lease=lease)
        assert lease.kept == {"x": there}
        assert device.held == ["x"]

    def test_nothing_is_kept_of_a_plan_that_fails(self) -> None:
        device = Freeing(fails="download op.y")
        with pytest.raises(TeenyError, match="download"):
            execute(ONCE, MODULE, device, ARRAYS, lease=Lease(keep=frozenset({"y"})))
        assert device.held == []


@pytest.mark.parametrize("event", ["upload y 256", "prepare twice 0", "launch twice 0 0", "download y"])
def test_buffers_are_let_go_of_however_it_ends(event: str) -> None:
    device = Freeing(fails=event)
    with pytest.raises(TeenyError, match=event):
        execute(ONCE, MODULE, device, ARRAYS)
    assert device.held == []


def test_what_fails_first_is_told_whatever_comes_of_it() -> None:
    device = Stubborn(fails="download y")
    with pytest.raises(TeenyError, match="download y"):
        execute(ONCE, MODULE, device, ARRAYS)
    freed = ["free y", "free pad", "free x"]
    assert device.events[-3:] == freed
    device = Stubborn()
    with pytest.raises(TeenyError, match="free y"):
        execute(ONCE, MODULE, device, ARRAYS)
    assert device.events[-3:] == freed


def test_nothing_is_copied_before_every_kernel_is_loaded() -> None:
    device = Freeing(fails="load other")
    with pytest.raises(TeenyError):
        execute(plan(launch(0, "twice", "x", "y"), launch(1, "other", "x", "y")), MODULE, device, ARRAYS)
    assert device.events == ["load twice", "load other"]


@pytest.mark.parametrize(
    ("arrays", "have"),
    [({**ARRAYS, "y": np.zeros(5, np.float32)}, "20 bytes"), ({"x": ARRAYS["x"], "pad": ARRAYS["pad"]}, "nothing")],
)
def test_arrays_of_another_size_are_refused(arrays: Mapping[str, npt.NDArray[Any]], have: str) -> None:
    with pytest.raises(TeenyError) as caught:
        execute(ONCE, MODULE, Freeing(), arrays)
    assert caught.value.finding.id == "buffer-size"
    assert caught.value.finding.message == f"buffer 'y' has 24 bytes and was given {have}"


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3), np.float32),
        np.array(3.0, ml_dtypes.bfloat16),
        np.arange(4, dtype=ml_dtypes.float8_e4m3fn),
        np.array([True, False]),
        np.arange(24, dtype=np.int64).reshape(2, 3, 4)[:, ::-1, ::2],
    ],
    ids=["empty", "bf16", "e4m3", "bool", "strided"],
)
def test_any_dtype_shape_and_stride_survives_the_trip(array: npt.NDArray[Any]) -> None:
    names = {"bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float32": "f32", "bool": "bool", "int64": "i64"}
    buffers = (Buffer("b", DTYPES[names[array.dtype.name]], array.shape, "output"),)
    done = execute(plan(buffers=buffers), MODULE, Freeing(), {"b": array})
    assert done.arrays["b"].dtype == array.dtype
    np.testing.assert_array_equal(done.arrays["b"], array)
    assert (done.launch_ms, done.cached, done.compile_ms) == ((), False, 0)


def test_rows_that_lie_apart_go_up_with_zeros_between_and_come_back_tight() -> None:
    seen: list[Any] = []

    class Spilling(Freeing):
        def upload(self, name: str, data: Bytes, align: int = 256) -> Memory:
            seen.append(data.view(np.float32).reshape(2, 4).copy())
            memory = super().upload(name, data, align)
            memory.data.view(np.float32).reshape(2, 4)[:, 3] = 9  # a tile store past the end of a row
            return memory

    buffers = (Buffer("y", F32, (2, 3), "output", row_elems=3, row_stride=4),)
    array = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    done = execute(plan(buffers=buffers), MODULE, Spilling(), {"y": array})
    np.testing.assert_array_equal(seen[0], [[1, 2, 3, 0], [4, 5, 6, 0]])
    np.testing.assert_array_equal(done.arrays["y"], array)
