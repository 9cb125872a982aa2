"""Operations over whole blocks: reductions, scans, sorting, normalisation, histograms, atomics, random numbers."""

import triton
import triton.language as tl
import triton.language.extra.cuda as cuda


def sample(kernel, types, **rest):
    constexprs = rest.pop("constexprs", {"BLOCK": 256})
    signature = {**types, **dict.fromkeys(constexprs, "constexpr")}
    return {"kernel": kernel, "signature": signature, "constexprs": constexprs, **rest}


SAMPLES = [
    sample("extremes", {"x": "*fp32", "out": "*fp32", "where": "*i32"}),
    sample("running_sums", {"x": "*fp32", "out": "*fp32"}),
    sample("linear_recurrence", {"a": "*fp32", "b": "*fp32", "out": "*fp32"}, constexprs={"BLOCK": 128}),
    sample("sort_rows", {"x": "*i32", "out": "*i32"}, constexprs={"BLOCK": 64}, options={"num_warps": 1}),
    sample("log_softmax", {"x": "*bf16", "out": "*bf16", "n": "i32", "stride": "i32"}),
    sample("layer_norm", {"x": "*fp16", "w": "*fp32", "b": "*fp32", "out": "*fp16", "n": "i32", "eps": "fp32"}),
    sample("count_values", {"x": "*i32", "out": "*i32"}, constexprs={"BLOCK": 128, "BINS": 16}),
    sample(
        "atomics",
        {"i": "*i32", "f": "*fp32", "h": "*fp16", "u": "*u32", "l": "*i64"},
        constexprs={"BLOCK": 64},
        options={"num_warps": 2},
    ),
    sample("spin_lock", {"lock": "*i32", "total": "*fp32", "x": "*fp32"}, constexprs={"BLOCK": 64}),
    sample("random_numbers", {"out": "*fp32", "seed": "i64"}, constexprs={"BLOCK": 64}, options={"num_warps": 1}),
    sample("gather_columns", {"x": "*fp32", "index": "*i32", "out": "*fp32"}, constexprs={"ROWS": 16, "COLUMNS": 16}),
    sample("interleave_and_split", {"x": "*fp32", "y": "*fp32", "out": "*fp32"}, constexprs={"BLOCK": 128}),
    sample("newton_root", {"x": "*fp32", "out": "*fp32"}, constexprs={"BLOCK": 32}, options={"num_warps": 1}),
    sample("xor_reduce_3d", {"x": "*i32", "out": "*i32"}, constexprs={"A": 4, "B": 8, "C": 16}),
    sample("pair_of_ctas", {"x": "*fp32", "out": "*fp32"}, constexprs={"BLOCK": 512}, sm=90, options={"num_ctas": 2}),
    sample("dependent_launch", {"x": "*fp32", "out": "*fp32"}, sm=90, options={"launch_pdl": True}),
    sample("shared_counter", {"cells": "*i32"}, constexprs={"STEPS": 4}, options={"launch_cooperative_grid": True}),
]


@triton.jit
def extremes(x, out, where, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    value, index = tl.max(v, axis=0, return_indices=True)
    tl.store(out, value)
    tl.store(out + 1, tl.min(v, axis=0))
    tl.store(where, index)
    tl.store(where + 1, tl.argmin(v, axis=0))


@triton.jit
def running_sums(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, tl.cumsum(v, axis=0) + tl.cumprod(v, axis=0, reverse=True))


@triton.jit
def compose(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def linear_recurrence(a, b, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    _, state = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 0, compose)
    tl.store(out + at, state)


@triton.jit
def sort_rows(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at), descending=True))


@triton.jit
def log_softmax(x, out, n, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < n
    v = tl.load(x + at, mask=inside, other=-float("inf")).to(tl.float32)
    v -= tl.max(v, axis=0)
    tl.store(out + at, (v - tl.log(tl.sum(tl.exp(v), axis=0))).to(tl.bfloat16), mask=inside)


@triton.jit
def layer_norm(x, w, b, out, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / n
    centred = tl.where(inside, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / n + eps)
    y = centred * scale * tl.load(w + at, mask=inside) + tl.load(b + at, mask=inside)
    tl.store(out + row + at, y.to(tl.float16), mask=inside)


@triton.jit
def count_values(x, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    counts = tl.histogram(tl.load(x + tl.arange(0, BLOCK)), BINS)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def atomics(i, f, h, u, l, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    old = tl.atomic_add(i + at, 1)
    old += tl.atomic_max(i + at + BLOCK, old, sem="release", scope="cta")
    old += tl.atomic_and(i, 3) | tl.atomic_or(i + 1, 4) ^ tl.atomic_xor(i + 2, 5)
    tl.atomic_add(f + at, old.to(tl.float32), sem="relaxed", scope="sys")
    tl.atomic_max(f + at, 2.0)
    tl.atomic_add(h + at, old.to(tl.float16), mask=at < 50)
    tl.atomic_min(u + at, old.to(tl.uint32), sem="acquire")
    tl.atomic_xchg(l + at, old.to(tl.int64))


@triton.jit
def spin_lock(lock, total, x, BLOCK: tl.constexpr):
    part = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), axis=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + part)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def random_numbers(out, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.rand(seed, at) + tl.randn(seed, at + 1000))


@triton.jit
def gather_columns(x, index, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), axis=0))


@triton.jit
def interleave_and_split(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    both = tl.interleave(tl.load(x + at), tl.load(y + at))
    even, odd = tl.split(tl.reshape(both * 2, (BLOCK, 2)))
    tl.store(out + at, tl.flip(even) + odd)
    tl.store(out + BLOCK + tl.arange(0, 2 * BLOCK), both)


@triton.jit
def newton_root(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    guess = v
    step = 0
    while (tl.max(tl.abs(guess * guess - v), axis=0) > 1e-5) & (step < 50):
        guess = 0.5 * (guess + v / guess)
        step += 1
    tl.store(out + at, guess)


@triton.jit
def xor_reduce_3d(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    v = tl.load(x + a[:, None, None] * (B * C) + b[None, :, None] * C + c[None, None, :])
    tl.store(out + b[:, None] * A + a[None, :], tl.trans(tl.xor_sum(v, axis=2)))


@triton.jit
def pair_of_ctas(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, v / tl.sum(v, axis=0))


@triton.jit
def dependent_launch(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cuda.gdc_wait()
    v = tl.load(x + at)
    cuda.gdc_launch_dependents()
    tl.store(out + at, v + 1)


@triton.jit
def shared_counter(cells, STEPS: tl.constexpr):
    for step in tl.static_range(STEPS):
        arrived = tl.atomic_add(cells + step, 1, sem="release", scope="gpu")
        while arrived < tl.num_programs(0):
            arrived = tl.atomic_add(cells + step, 0, sem="acquire", scope="gpu")
