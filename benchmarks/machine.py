"""What this machine can do at most: bytes copied and fused multiply-adds done in a second, on so many threads.

Both are measured, with loops over native vectors that LLVM compiles: one that loads and stores (quicker here than the
C library's copy), and one of independent FMAs in registers.
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
def loops() -> tuple[Any, Any, Any]:
    """``copy_loop(from, to, vectors)``, ``fma_loop(rounds)`` of CHAINS vector FMAs each, and what keeps them alive."""
    import llvmlite.binding as llvm

    vector, name = f"<{machine().group} x float>", f"llvm.fma.v{machine().group}f32"
    text = f'target triple = "{llvm.get_default_triple()}"\n{copy_text(vector)}\n{fma_text(vector, name)}'
    code = target_machine(2).emit_object(llvm.parse_assembly(text, llvm.create_context()))
    jit = llvm.create_lljit_compiler(target_machine(2))
    builder = llvm.JITLibraryBuilder().add_object_img(code)
    tracker = builder.export_symbol("copy_loop").export_symbol("fma_loop").link(jit, "loops")
    copy = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(tracker["copy_loop"])
    fma = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(tracker["fma_loop"])
    return copy, fma, (jit, tracker)


def copy_text(vector: str) -> str:
    return f"""
define void @copy_loop(ptr %from, ptr %to, i64 %vectors) "prefer-vector-width"="512" {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %source = getelementptr {vector}, ptr %from, i64 %i
  %target = getelementptr {vector}, ptr %to, i64 %i
  %value = load {vector}, ptr %source, align 4
  store {vector} %value, ptr %target, align 4
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %vectors
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""


def fma_text(vector: str, name: str) -> str:
    half = f"{vector} splat (float 0.5)"
    starts = "\n".join(f"%a{k} = phi {vector} [ zeroinitializer, %entry ], [ %b{k}, %loop ]" for k in range(CHAINS))
    steps = "\n".join(f"%b{k} = call {vector} @{name}({vector} %a{k}, {half}, {half})" for k in range(CHAINS))
    sums = "\n".join(f"%s{k} = fadd {vector} %{f's{k - 1}' if k > 1 else 'b0'}, %b{k}" for k in range(1, CHAINS))
    return f"""
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
  {sums}
  %result = extractelement {vector} %s{CHAINS - 1}, i32 0
  ret float %result
}}"""


def copying(threads: int) -> tuple[Callable[[], object], int]:
    """A function that copies memory on so many threads, and the bytes that it reads and writes."""
    copy, _, _ = loops()
    vectors = COPIED // (4 * machine().group * threads)
    size = 4 * machine().group * vectors
    parts = [(np.ones(size, np.uint8), np.zeros(size, np.uint8)) for _ in range(threads)]
    pool = ThreadPoolExecutor(threads)

    def one(part: tuple[Any, Any]) -> None:
        copy(part[0].ctypes.data, part[1].ctypes.data, vectors)

    return lambda: list(pool.map(one, parts)), 2 * size * threads


def multiplying(threads: int) -> tuple[Callable[[], object], int]:
    """A function that does FMAs on so many threads, and how many f32 ones."""
    _, fma, _ = loops()
    pool = ThreadPoolExecutor(threads)
    total = threads * ROUNDS * CHAINS * machine().group
    return lambda: list(pool.map(fma, [ROUNDS] * threads)), total
