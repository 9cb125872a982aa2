"""The CPU device on four kernels, against numpy and on one thread against all, in one run.

    python benchmarks/cpu_device.py [--json]

Vector add of 16M floats against ``np.add(a, b, out=c)`` may take at most 3 times as long; the others have no limit: no
numpy function does the same work. Times are of a launch, compilation apart; results are checked first. Kernels are
``kernels/kernels.cu`` as nvcc makes them, in ``kernels/kernels.ptx``.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.timing import ROOT, Ratio, alternate, report
from teenycli.devices.cpu import CpuDevice
from teenycli.devices.cpu.device import available_threads
from teenycli.launch.plan import Address, Argument, Field, Launch
from teenycli.ptx import outline, read_source
from teenycli.ptx.layout import layout
from teenycli.ptx.model import Triple

Floats = npt.NDArray[np.float32]


class Case:
    """A kernel with its arguments on devices of one thread and of all."""

    def __init__(self, entry: str, grid: Triple, block: Triple, args: Sequence[npt.NDArray[Any] | int]) -> None:
        module = outline(read_source(ROOT / "benchmarks" / "kernels" / "kernels.ptx"))
        function = next(f for f in module.entries if f.name == entry)
        self.args = args
        self.runs: list[Callable[[], object]] = []
        for threads in (1, available_threads()):
            device = CpuDevice(threads=threads, cache=False)
            kernel = device.load(module, entry)
            self.compile_ms = kernel.compile_ms
            buffers, arguments = {}, []
            for slot, value in zip(layout(function, 80), args, strict=True):
                name = f"arg{slot.index}"
                kind, given = ("i32", value) if isinstance(value, int) else ("ptr", Address(name))
                if not isinstance(value, int):
                    buffers[name] = device.upload(name, value.reshape(-1).view(np.uint8))
                assert isinstance(given, int | Address)
                arguments.append(Argument(slot.index, name, kind, slot.size, (Field(kind, given),), slot.offset))
            launch = Launch(entry, 0, entry, grid, block, tuple(arguments))
            self.runs.append(lambda d=device, k=kernel, n=launch, b=buffers: d.launch(k, n, b, 0))  # type: ignore[misc]
            self.results = {name: (device, buffer) for name, buffer in buffers.items()}

    def result(self, index: int) -> npt.NDArray[Any]:
        """Argument ``index`` after a run on all threads."""
        self.runs[1]()
        device, buffer = self.results[f"arg{index}"]
        value = self.args[index]
        assert not isinstance(value, int)
        return device.download(buffer).view(value.dtype).reshape(value.shape)

    def rows(
        self, name: str, base: Callable[[], object], what: str, limit: float | None = None, rounds: int = 11
    ) -> list[Ratio]:
        """All threads against ``base``, which is named ``what``, and against one thread."""
        mine, other = (statistics.median(times) for times in alternate(self.runs[1], base, rounds))
        every, one = (statistics.median(times) for times in alternate(self.runs[1], self.runs[0], rounds))
        return [
            Ratio(f"{name}, against {what}", mine, other, mine / other, limit),
            Ratio("  all threads against one", every, one, every / one, None),
        ]


def vector_add() -> tuple[Case, list[Ratio]]:
    rng = np.random.default_rng(0)
    n = 1 << 24
    a, b, c = rng.random(n, np.float32), rng.random(n, np.float32), np.zeros(n, np.float32)
    case = Case("vector_add", (n // 256, 1, 1), (256, 1, 1), (a, b, c, n))
    np.testing.assert_array_equal(case.result(2), a + b)
    return case, case.rows("vector add, 16M", lambda: np.add(a, b, out=c), "np.add", 3)


def softmax() -> tuple[Case, list[Ratio]]:
    x = np.random.default_rng(1).standard_normal((4096, 1024)).astype(np.float32)

    def reference() -> Floats:
        weights: Floats = np.exp(x - x.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        return weights

    case = Case("softmax", (4096, 1, 1), (128, 1, 1), (x, np.zeros_like(x), 1024))
    np.testing.assert_allclose(case.result(1), reference(), rtol=1e-5)
    return case, case.rows("softmax, 4096 x 1024", reference, "numpy")


def matmul() -> tuple[Case, list[Ratio]]:
    n = 512
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    case = Case("matmul", (n // 16, n // 16, 1), (16, 16, 1), (a, b, np.zeros_like(a), n))
    np.testing.assert_allclose(case.result(2), a @ b, rtol=1e-3, atol=1e-3)
    return case, case.rows("tiled matmul, 512 cubed", lambda: a @ b, "BLAS")


def mandelbrot() -> tuple[Case, list[Ratio]]:
    side, rounds = 1024, 200

    def reference() -> npt.NDArray[np.int32]:
        y, x = np.mgrid[:side, :side].astype(np.float32)
        cr, ci = np.float32(-2) + np.float32(3) * x / side, np.float32(-1.5) + np.float32(3) * y / side
        zr, zi, count = np.zeros_like(cr), np.zeros_like(cr), np.zeros(cr.shape, np.int32)
        for _ in range(rounds):
            inside = zr * zr + zi * zi < 4
            count += inside
            zr, zi = (np.where(inside, v, w) for v, w in ((zr * zr - zi * zi + cr, zr), (2 * zr * zi + ci, zi)))
        return count

    case = Case(
        "mandelbrot", (side // 32, side // 8, 1), (32, 8, 1), (np.zeros((side, side), np.int32), side, side, rounds)
    )
    assert np.mean(case.result(0) == reference()) > 0.99  # fused multiply-adds move a few points
    return case, case.rows("mandelbrot, 1024 squared, 200 rounds", reference, "numpy", rounds=3)


def main() -> int:
    """Measure and report."""
    rows: list[Ratio] = []
    facts: dict[str, object] = {"device": CpuDevice(cache=False).description}
    for measure in (vector_add, softmax, matmul, mandelbrot):
        case, measured = measure()
        rows += measured
        facts[f"compile {measure.__name__}"] = f"{case.compile_ms:.0f} ms"
    return report("the CPU device", rows, facts)


if __name__ == "__main__":
    sys.exit(main())
