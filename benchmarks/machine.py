"""What this machine can do at most: bytes copied and fused multiply-adds done in a second, on so many threads.

Both are measured, with numpy's copy and with a loop of independent vector FMAs that LLVM compiles.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from teenycli.devices.cpu.build import machine, target_machine

COPIED = 64 << 20  # bytes, far more than caches hold
ROUNDS = 1_000_000  # of the loop, a thread
CHAINS = 16  # independent accumulators: latency times what starts in a cycle, and some more


@lru_cache(maxsize=1)
def fma_loop() -> tuple[Callable[[int], float], Any]:
    """A function that does CHAINS vector FMAs in each of so many rounds, and what keeps its code alive."""
    import llvmlite.binding as llvm

    vector = f"<{machine().group} x float>"
    name = f"llvm.fma.v{machine().group}f32"
    splat = f"{vector} splat (float 0.5)"
    starts = "\n".join(f"%a{k} = phi {vector} [ zeroinitializer, %entry ], [ %b{k}, %loop ]" for k in range(CHAINS))
    steps = "\n".join(f"%b{k} = call {vector} @{name}({vector} %a{k}, {splat}, {splat})" for k in range(CHAINS))
    sums = [f"%s0 = fadd {vector} %b0, zeroinitializer"]
    sums += [f"%s{k} = fadd {vector} %s{k - 1}, %b{k}" for k in range(1, CHAINS)]
    text = f"""
        target triple = "{llvm.get_default_triple()}"
        declare {vector} @{name}({vector}, {vector}, {vector})
        define float @fma_loop(i64 %rounds) "prefer-vector-width"="512" {{
        entry:
          br label %loop
        loop:
          %i = phi i64 [ 0, %entry ], [ %next, %loop ]
          {starts}
          {steps}
          %next = add i64 %i, 1
          %more = icmp ult i64 %next, %rounds
          br i1 %more, label %loop, label %done
        done:
          {chr(10).join(sums)}
          %result = extractelement {vector} %s{CHAINS - 1}, i32 0
          ret float %result
        }}"""
    code = target_machine(2).emit_object(llvm.parse_assembly(text, llvm.create_context()))
    jit = llvm.create_lljit_compiler(target_machine(2))
    tracker = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("fma_loop").link(jit, "fma_loop")
    return ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(tracker["fma_loop"]), (jit, tracker)


def copying(threads: int) -> tuple[Callable[[], object], int]:
    """A function that copies memory on so many threads, and the bytes that it reads and writes."""
    parts = [(np.ones(COPIED // threads, np.uint8), np.zeros(COPIED // threads, np.uint8)) for _ in range(threads)]
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(lambda part: np.copyto(part[1], part[0]), parts)), 2 * COPIED


def multiplying(threads: int) -> tuple[Callable[[], object], int]:
    """A function that does FMAs on so many threads, and how many f32 ones."""
    loop, _ = fma_loop()
    pool = ThreadPoolExecutor(threads)
    total = threads * ROUNDS * CHAINS * machine().group
    return lambda: list(pool.map(loop, [ROUNDS] * threads)), total
