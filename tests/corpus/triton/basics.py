"""Small kernels that every release compiles: they show how each writes the same thing, and its hidden parameters."""

import triton
import triton.language as tl

RELEASES = ["3.2", "3.4", "3.6", "3.9"]

SAMPLES = [
    {
        "kernel": "scale_and_shift",
        "signature": {"x": "*fp32", "out": "*fp32", "n": "i32", "alpha": "fp32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 256},
        "versions": RELEASES,
    },
    {
        "kernel": "row_sums",
        "signature": {"x": "*fp16", "out": "*fp32", "stride": "i64", "columns": "i32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 512},
        "options": {"num_warps": 8},
        "versions": RELEASES,
    },
    {
        "kernel": "tile_product",
        "signature": {"a": "*fp16", "b": "*fp16", "c": "*fp32", "SIZE": "constexpr"},
        "constexprs": {"SIZE": 32},
        "versions": RELEASES,
    },
    {
        "kernel": "transpose",
        "signature": {"x": "*i16", "out": "*i16", "rows": "i32", "columns": "i32", "TILE": "constexpr"},
        "constexprs": {"TILE": 32},
        "unaligned": ["x", "out"],
    },
    {
        "kernel": "masked_grid",
        "signature": {"x": "*fp32", "out": "*fp32", "I": "i32", "J": "i32", "K": "i32", "TILE": "constexpr"},
        "constexprs": {"TILE": 64},
        "options": {"num_warps": 1},
    },
    {
        "kernel": "select_bits",
        "signature": {"x": "*i8", "flags": "*i1", "out": "*u8", "shift": "u8", "on": "i1", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 512},
    },
    {
        "kernel": "long_division",
        "signature": {"x": "*i64", "y": "*u32", "out": "*i64", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 128},
    },
    {
        "kernel": "double_polynomial",
        "signature": {"x": "*fp64", "out": "*fp64", "a": "fp64", "b": "fp64", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 256},
    },
    {
        "kernel": "no_arguments",
        "signature": {},
        "options": {"num_warps": 2},
    },
]


@triton.jit
def scale_and_shift(x, out, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n, other=0.0) * alpha + 0.5, mask=at < n)


@triton.jit
def row_sums(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + at, mask=at < columns, other=0.0).to(tl.float32)
    tl.store(out + row, tl.sum(total, axis=0))


@triton.jit
def tile_product(a, b, c, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def transpose(x, out, rows, columns, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    tile = tl.load(x + i[:, None] * columns + j[None, :], mask=inside)
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(tile), mask=tl.trans(inside))


@triton.jit
def masked_grid(x, out, I, J, K, TILE: tl.constexpr):
    plane = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    k = tl.program_id(0) * TILE + tl.arange(0, TILE)
    at = plane.to(tl.int64) * K + k
    inside = (k < K) & (plane < I * J)
    tl.store(out + at, tl.load(x + at, mask=inside, eviction_policy="evict_first"), mask=inside)


@triton.jit
def select_bits(x, flags, out, shift, on, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    moved = (value >> shift.to(tl.int8)) ^ (value << 1)
    tl.store(out + at, tl.where(tl.load(flags + at) & on, moved, ~value).to(tl.uint8))


@triton.jit
def long_division(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    b = tl.load(y + at).to(tl.int64) + 1
    tl.store(out + at, a // b + a % b + tl.umulhi(a.to(tl.uint64), b.to(tl.uint64)).to(tl.int64))


@triton.jit
def double_polynomial(x, out, a, b, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, tl.sqrt(tl.fma(v, v, a)) / (tl.abs(v) + b))


@triton.jit
def no_arguments():
    tl.debug_barrier()
