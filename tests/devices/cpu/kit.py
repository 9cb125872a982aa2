"""What the tests of the CPU device run kernels with: PTX text in, numpy arrays in and out."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cpu import CpuDevice
from teenycli.launch.plan import Address, Argument, Field, Launch
from teenycli.ptx import outline
from teenycli.ptx.layout import layout
from teenycli.ptx.model import Source

Array = npt.NDArray[Any]
HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"
#: Register type, load/store type and prefix of a numpy dtype's name.
_TYPES = {
    "int8": ("s16", "s8"), "uint8": ("u16", "u8"), "int16": ("s16", "s16"), "uint16": ("b16", "b16"),
    "int32": ("s32", "s32"), "uint32": ("b32", "b32"), "int64": ("s64", "s64"), "uint64": ("b64", "b64"),
    "float32": ("f32", "f32"), "float64": ("f64", "f64"),
}  # fmt: skip


class Rig:
    """A device with one module loaded."""

    def __init__(self, text: str, *, threads: int = 2, device: CpuDevice | None = None, name: str = "test.ptx") -> None:
        self.module = outline(Source(name, text if ".version" in text else HEAD + text))
        self.device = device or CpuDevice(threads=threads, cache=False)

    def run(
        self,
        args: Sequence[Array | int | float | tuple[str, int | float] | Address | None],
        *,
        grid: tuple[int, ...] = (1,),
        block: tuple[int, ...] = (32,),
        shared: int = 0,
        timeout: float = 20,
        entry: str | None = None,
        cluster: tuple[int, int, int] = (1, 1, 1),
        cooperative: bool = False,
    ) -> None:
        """Launch; arrays are uploaded, and changed in place to what the kernel left in them."""
        function = next(f for f in self.module.entries if entry in (None, f.name))
        kernel = self.device.load(self.module, function.name)
        buffers: dict[str, DeviceBuffer] = {}
        arguments = []
        for slot, value in zip(layout(function, 100), args, strict=True):
            kind, given = ("u64", value) if not isinstance(value, tuple) else value
            if isinstance(value, np.ndarray):
                name = f"arg{slot.index}"
                buffers[name] = self.device.upload(name, value.reshape(-1).view(np.uint8))
                kind, given = "ptr", Address(name)
            elif value is None or isinstance(value, Address):
                kind, given = "ptr", value or Address()
            elif isinstance(value, int):
                kind = f"u{8 * slot.size}" if value >= 0 else f"i{8 * slot.size}"
            elif isinstance(value, float):
                kind = f"f{8 * slot.size}"
            assert isinstance(given, int | float | Address)
            arguments.append(
                Argument(slot.index, f"arg{slot.index}", kind, slot.size, (Field(kind, given),), slot.offset)
            )
        grid_x, grid_y, grid_z = (*grid, 1, 1)[:3]
        block_x, block_y, block_z = (*block, 1, 1)[:3]
        launch = Launch(
            "test",
            0,
            function.name,
            (grid_x, grid_y, grid_z),
            (block_x, block_y, block_z),
            tuple(arguments),
            cluster,
            shared,
            cooperative,
        )
        try:
            self.device.prepare(kernel, launch, buffers)(timeout)
            for index, value in enumerate(args):
                if isinstance(value, np.ndarray):
                    value.reshape(-1).view(np.uint8)[:] = self.device.download(buffers[f"arg{index}"])
        finally:
            for buffer in buffers.values():
                self.device.free(buffer)


@contextmanager
def interrupted(after: float) -> Iterator[None]:
    """Ctrl-C after so many seconds, also in a process that was started in the background, where it is ignored."""
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)


def evaluate(lines: str, inputs: Mapping[str, Array], outputs: Mapping[str, str]) -> dict[str, Array]:
    """Run instructions on every element of the inputs, a thread each.

    ``inputs`` are arrays by register name, ``outputs`` numpy dtype names by register name. Predicates that ``lines``
    uses are %p0 to %p7; other registers it declares itself.
    """
    count = len(next(iter(inputs.values())))
    loads, stores, declared, params = [], [], [], []
    for k, (name, array) in enumerate(inputs.items()):
        register, type = _TYPES[array.dtype.name]
        declared.append(f".reg .{register} %{name};")
        params.append(f".param .u64 in{k}")
        loads.append(_access(f"in{k}", array.dtype.itemsize) + f"ld.global.{type} %{name}, [%kit_at];")
    results = {}
    for k, (name, dtype) in enumerate(outputs.items()):
        register, type = _TYPES[dtype]
        if name not in inputs:
            declared.append(f".reg .{register} %{name};")
        params.append(f".param .u64 out{k}")
        stores.append(_access(f"out{k}", np.dtype(dtype).itemsize) + f"st.global.{type} [%kit_at], %{name};")
        results[name] = np.zeros(count, dtype)
    text = "\n".join(
        [
            f".visible .entry kernel({', '.join([*params, '.param .u32 n'])})",
            "{",
            ".reg .pred %p<8>, %kit_out; .reg .b32 %kit_i, %kit_limit; .reg .b64 %kit_at, %kit_step;",
            *declared,
            "mov.u32 %kit_i, %ctaid.x; mov.u32 %kit_limit, %ntid.x; mul.lo.u32 %kit_i, %kit_i, %kit_limit;",
            "mov.u32 %kit_limit, %tid.x; add.u32 %kit_i, %kit_i, %kit_limit; ld.param.u32 %kit_limit, [n];",
            "setp.ge.u32 %kit_out, %kit_i, %kit_limit; @%kit_out bra done;",
            *loads,
            lines,
            *stores,
            "done: ret;",
            "}",
        ]
    )
    copies = [array.copy() for array in inputs.values()]
    rig = Rig(text)
    rig.run([*copies, *results.values(), count], grid=(-(-count // 64),), block=(64,))
    rig.device.close()
    return results


def _access(param: str, size: int) -> str:
    step = f"mul.wide.u32 %kit_step, %kit_i, {size}; add.u64 %kit_at, %kit_at, %kit_step; "
    return f"ld.param.u64 %kit_at, [{param}]; {step}"


#: Integers at which wrapping, signs and shifts go wrong.
EDGES = [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 32767, 32768, 65535, 65536,
         0xF0F0F0F0, 0x12345678, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1, 2**32, 2**33 + 5,
         0x123456789ABCDEF0, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]  # fmt: skip


def pairs(dtype: str, *, count: int = 2) -> list[Array]:
    """Every combination of edge values as ``count`` arrays, random ones added."""
    bits = 8 * np.dtype(dtype).itemsize
    values = np.array(sorted({e & (1 << bits) - 1 for e in EDGES}), np.uint64).astype(f"uint{bits}")
    rng = np.random.default_rng(bits)
    values = np.concatenate([values, rng.integers(0, 2**bits, 9, dtype=np.uint64).astype(values.dtype)])
    if count > 2:
        values = np.concatenate([values[::3], values[-2:]])
    grids = np.meshgrid(*[values] * count)
    return [g.reshape(-1).astype(values.dtype).view(dtype) for g in grids]


def floats(dtype: str, count: int = 2) -> list[Array]:
    """Combinations of tricky floating-point values of f32 or f64."""
    info = np.finfo(dtype)
    one: list[Any] = [0.0, 1.0, 1.5, 2.0, 3.0, 0.1, 1 / 3, 1e-3, 123456.78, info.max, info.tiny,
           info.smallest_subnormal, info.tiny / 3, float(info.tiny) * 1.5, info.eps, 1 + info.eps, 2.5, 3.5,
           0.5, 0.4999999, 16777217.0, 2147483647.0, 4294967296.0, 1e19, np.inf]  # fmt: skip
    values = np.array([s * v for v in one for s in (1, -1)] + [np.nan], dtype)
    if count > 2:
        values = np.concatenate([values[::4], values[-3:]])
    return [g.reshape(-1).astype(dtype) for g in np.meshgrid(*[values] * count)]
