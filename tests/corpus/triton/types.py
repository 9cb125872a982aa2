"""Conversions between types, inline assembly, calls into libdevice, printing, assertions."""

import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


def sample(kernel, types, **rest):
    signature = {**types, "BLOCK": "constexpr"}
    return {"kernel": kernel, "signature": signature, "constexprs": {"BLOCK": rest.pop("block", 128)}, **rest}


SAMPLES = [
    sample("casts", {"x": "*fp32", "out": "*i8", "wide": "*fp64", "n": "*u16", "l": "*i64", "h": "*bf16"}),
    sample("casts_back", {"x": "*i8", "w": "*fp64", "l": "*u64", "h": "*fp16", "b": "*bf16", "out": "*fp32"}),
    sample("eight_bit_floats", {"x": "*fp8e4nv", "y": "*fp8e5", "out": "*fp8e4nv", "f": "*fp32"}, sm=90),
    sample("eight_bit_floats_emulated", {"x": "*fp8e5", "out": "*fp8e5"}, block=256),
    sample("brain_floats", {"x": "*bf16", "y": "*bf16", "out": "*bf16", "alpha": "bf16"}, sm=90),
    sample("bit_reversal", {"x": "*u32", "out": "*u32", "packed": "*u8"}),
    sample("special_functions", {"x": "*fp32", "out": "*fp32"}, block=32, options={"num_warps": 1}),
    sample("double_functions", {"x": "*fp64", "out": "*fp64"}, block=32, options={"num_warps": 1}),
    sample("builtin_functions", {"x": "*fp32", "out": "*fp32"}),
    sample("print_values", {"x": "*i32", "f": "*fp32"}, block=32, options={"num_warps": 1}),
    sample("assert_bounds", {"x": "*i32", "n": "i32"}, block=32, options={"num_warps": 1, "debug": True}),
    sample("packed_floats", {"x": "*fp32", "y": "*fp32", "out": "*fp32"}, sm=100, block=512),
    sample("few_registers", {"x": "*fp16", "out": "*fp16"}, options={"maxnreg": 32}),
]


@triton.jit
def casts(x, out, wide, n, l, h, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, v.to(tl.int8))
    tl.store(wide + at, v.to(tl.float64) + v.to(tl.int32, bitcast=True).to(tl.float64))
    tl.store(n + at, v.to(tl.uint16) + v.to(tl.float16, fp_downcast_rounding="rtz").to(tl.uint16, bitcast=True))
    tl.store(l + at, v.to(tl.int64))
    tl.store(h + at, v.to(tl.bfloat16, fp_downcast_rounding="rtne"))


@triton.jit
def casts_back(x, w, l, h, b, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.load(x + at).to(tl.float32) + tl.load(w + at).to(tl.float32) + tl.load(l + at).to(tl.float32)
    tl.store(out + at, total + tl.load(h + at).to(tl.float32) + tl.load(b + at).to(tl.float32))


@triton.jit
def eight_bit_floats(x, y, out, f, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.load(x + at).to(tl.float16) * tl.load(y + at).to(tl.float16)
    tl.store(f + at, tl.load(x + at).to(tl.float32) + tl.load(y + at).to(tl.float32))
    tl.store(out + at, total.to(tl.float32).to(tl.float8e4nv))


@triton.jit
def eight_bit_floats_emulated(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, (tl.load(x + at).to(tl.float32) * 0.5).to(tl.float8e5))


@triton.jit
def brain_floats(x, y, out, alpha, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, tl.maximum(a * b - alpha, tl.minimum(a, b)) / (a + alpha))


@triton.jit
def bit_reversal(x, out, packed, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    turned = tl.inline_asm_elementwise(
        "{ .reg .b32 t<2>; brev.b32 t0, $1; popc.b32 t1, $1; xor.b32 $0, t0, t1; }",
        "=r,r", [v], dtype=tl.uint32, is_pure=True, pack=1,
    )
    tl.store(out + at, turned)
    bytes_ = tl.load(packed + at)
    mixed = tl.inline_asm_elementwise(
        "lop3.b32 $0, $1, 0x0f0f0f0f, $1, 0x6a;", "=r,r", [bytes_], dtype=tl.uint8, is_pure=True, pack=4
    )
    tl.store(packed + at, mixed)


@triton.jit
def special_functions(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    total = libdevice.tanh(v) + libdevice.pow(v, 1.5) + libdevice.lgamma(v) + libdevice.atan2(v, 2.0)
    tl.store(out + at, total + libdevice.sinh(v) + libdevice.ffs(v.to(tl.int32)) + libdevice.rint(v))


@triton.jit
def double_functions(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, libdevice.exp(v) + libdevice.log1p(v) + libdevice.hypot(v, v) + libdevice.cbrt(v))


@triton.jit
def builtin_functions(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    total = tl.sin(v) + tl.cos(v) + tl.exp2(v) + tl.log2(v) + tl.erf(v) + tl.sigmoid(v) + tl.floor(v) * tl.ceil(v)
    total += tl.clamp(v, -1.0, 1.0) + tl.div_rn(v, 3.0) + tl.sqrt_rn(v) + tl.fdiv(v, 7.0)
    tl.store(out + at, total)


@triton.jit
def print_values(x, f, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.device_print("values: ", tl.load(x + at), tl.load(f + at))
    tl.device_print("program", tl.program_id(0), hex=True)


@triton.jit
def assert_bounds(x, n, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    tl.device_assert((v >= 0) & (v < n), "index out of bounds")
    tl.store(x + tl.arange(0, BLOCK), v + 1)


@triton.jit
def packed_floats(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, a * b + (a + b) * a - b)


@triton.jit
def few_registers(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.exp(tl.load(x + at).to(tl.float32)).to(tl.float16))
