"""Matrix products for three generations of tensor cores; tensor descriptors; attention."""

import triton
import triton.language as tl

GEMM = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
TILES = {"BM": 64, "BN": 64, "BK": 32}


def sample(kernel, types, constexprs, **rest):
    signature = {**types, **dict.fromkeys(constexprs, "constexpr")}
    return {"kernel": kernel, "signature": signature, "constexprs": constexprs, **rest}


SAMPLES = [
    sample("gemm", GEMM, TILES, options={"num_stages": 2}),
    sample("gemm", GEMM, {**TILES, "BN": 32}, name="gemm_sm_75", sm=75, options={"num_stages": 1}),
    sample("gemm", GEMM, TILES, name="gemm_sm_90", sm=90, options={"num_stages": 2}),
    sample("gemm", GEMM, {**TILES, "BM": 128}, name="gemm_sm_100", sm=100, options={"num_stages": 2}),
    sample("dot_tf32", {"a": "*fp32", "b": "*fp32", "c": "*fp32"}, {"SIZE": 32}),
    sample("dot_int8", {"a": "*i8", "b": "*i8", "c": "*i32"}, {"SIZE": 32}),
    sample("dot_double", {"a": "*fp64", "b": "*fp64", "c": "*fp64"}, {"SIZE": 16}),
    sample("dot_fp8", {"a": "*fp8e4nv", "b": "*fp8e4nv", "c": "*fp32"}, {"SIZE": 64}, sm=90),
    sample("dot_scaled", {"a": "*u8", "sa": "*u8", "b": "*u8", "sb": "*u8", "c": "*fp32"}, {"SIZE": 128}, sm=100,
           options={"ptx_version": 88}),
    sample("attention", {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp16", "n": "i32"}, {"D": 32, "BLOCK": 32}),
    sample("copy_by_descriptor", {"x": "*fp32", "out": "*fp32", "rows": "i32", "columns": "i32"}, {"TILE": 32}, sm=90),
    sample(
        "copy_by_host_descriptor",
        {"x": "tensordesc<fp16[32, 64]>", "out": "tensordesc<fp16[32, 64]>", "n": "i32"},
        {"ROWS": 32, "COLUMNS": 64},
        sm=90,
    ),
    sample(
        "persistent_gemm",
        GEMM,
        {"BM": 128, "BN": 64, "BK": 64},
        sm=100,
        options={"num_stages": 2},
    ),
]


@triton.jit
def gemm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :], mask=(start + k)[None, :] < K, other=0.0)
        right = tl.load(b + (start + k)[:, None] * N + n[None, :], mask=(start + k)[:, None] < K, other=0.0)
        total = tl.dot(left, right, total)
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], total.to(tl.float16), mask=inside)


@triton.jit
def square(size: tl.constexpr):
    return tl.arange(0, size)[:, None] * size + tl.arange(0, size)[None, :]


@triton.jit
def dot_tf32(a, b, c, SIZE: tl.constexpr):
    at = square(SIZE)
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision="tf32"))


@triton.jit
def dot_int8(a, b, c, SIZE: tl.constexpr):
    at = square(SIZE)
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), out_dtype=tl.int32))


@triton.jit
def dot_double(a, b, c, SIZE: tl.constexpr):
    at = square(SIZE)
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), out_dtype=tl.float64))


@triton.jit
def dot_fp8(a, b, c, SIZE: tl.constexpr):
    at = square(SIZE)
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def dot_scaled(a, sa, b, sb, c, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    half = tl.arange(0, SIZE // 2)
    scale = i[:, None] * (SIZE // 32) + tl.arange(0, SIZE // 32)[None, :]
    left = tl.load(a + i[:, None] * (SIZE // 2) + half[None, :])
    right = tl.load(b + half[:, None] * SIZE + i[None, :])
    total = tl.dot_scaled(left, tl.load(sa + scale), "e2m1", right, tl.load(sb + scale), "e2m1")
    tl.store(c + square(SIZE), total)


@triton.jit
def attention(q, k, v, out, n, D: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = row[:, None] * D + tl.arange(0, D)[None, :]
    query = tl.load(q + at, mask=(row < n)[:, None], other=0.0)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK, D), tl.float32)
    for start in range(0, n, BLOCK):
        key = start + tl.arange(0, BLOCK)
        there = key[:, None] * D + tl.arange(0, D)[None, :]
        scores = tl.dot(query, tl.trans(tl.load(k + there, mask=(key < n)[:, None], other=0.0)))
        scores = tl.where((key < n)[None, :], scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp(scores - higher[:, None])
        shrink = tl.exp(top - higher)
        weight = weight * shrink + tl.sum(p, axis=1)
        values = tl.load(v + there, mask=(key < n)[:, None], other=0.0)
        total = tl.dot(p.to(tl.float16), values, total * shrink[:, None])
        top = higher
    tl.store(out + at, (total / weight[:, None]).to(tl.float16), mask=(row < n)[:, None])


@triton.jit
def copy_by_descriptor(x, out, rows, columns, TILE: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [TILE, TILE])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [TILE, TILE])
    at = [tl.program_id(0) * TILE, tl.program_id(1) * TILE]
    target.store(at, source.load(at) * 2)


@triton.jit
def copy_by_host_descriptor(x, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    for i in range(n):
        out.store([i * ROWS, 0], x.load([i * ROWS, 0]) + 1)


@triton.jit
def persistent_gemm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    target = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0), warp_specialize=True):
        m, n = tile // columns * BM, tile % columns * BN
        total = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            total = tl.dot(left.load([m, start]), right.load([n, start]).T, total)
        target.store([m, n], total.to(tl.float16))
