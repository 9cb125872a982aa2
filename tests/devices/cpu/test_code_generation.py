"""Kernels whose text is right and of which LLVM's code generation made something else, or nothing at all."""

from __future__ import annotations

import numpy as np
import pytest

from tests.devices.cpu.kit import evaluate

pytestmark = pytest.mark.device

COUNT = 200
#: Makes a vector hold a warp, where others hold what the machine's registers do.
WARP_WIDE = "activemask.b32 %w;"


#: Ways to %g: where %p0 is set bits of %a and %b, elsewhere %a.
WAYS = {
    "branch": "@!%p0 bra SKIP; and.{t} %x, %g, {keep}; and.{t} %y, %b, {take}; or.{t} %g, %x, %y; SKIP:",
    "guard": "and.{t} %x, %g, {keep}; and.{t} %y, %b, {take}; @%p0 or.{t} %g, %x, %y;",
    "selp": "and.{t} %x, %a, {keep}; and.{t} %y, %b, {take}; or.{t} %x, %x, %y; selp.{t} %g, %x, %a, %p0;",
    "sum": "and.{t} %x, %g, {keep}; and.{t} %y, %b, {take}; @%p0 add.{u} %g, %x, %y;",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("width", ["native", "warp"])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("constant", [0x8000000080000000, 5])
def test_bits_of_two_registers_are_put_together_where_lanes_part(
    bits: int, constant: int, order: str, width: str, way: str
) -> None:
    full = (1 << bits) - 1
    keep, take = constant & full, ~constant & full
    rng = np.random.default_rng(bits)
    a, b = (rng.integers(0, full, COUNT, np.uint64, endpoint=True).astype(f"uint{bits}") for _ in range(2))
    parted = np.arange(COUNT, dtype=np.uint32) * 7 % 5
    lines = (
        f".reg .b{bits} %x, %y; .reg .b32 %w; {WARP_WIDE if width == 'warp' else ''}"
        f"mov.b{bits} %g, %a; setp.gt.u32 %p0, %k, 1; "
        + WAYS[way].format(t=f"b{bits}", u=f"u{bits}", keep=keep, take=take)
        + f"add.u{bits} %h, %g, %g;"
    )
    inputs = {"a": a, "b": b}
    found = evaluate(lines, {"k": parted} | {name: inputs[name] for name in order}, dict.fromkeys("gh", f"uint{bits}"))
    mixed = np.where(parted > 1, a & a.dtype.type(keep) | b & a.dtype.type(take), a)
    np.testing.assert_array_equal(found["g"], mixed)
    np.testing.assert_array_equal(found["h"], mixed + mixed)


@pytest.mark.parametrize("rnd", ["rz", "rm", "rp"])
def test_rounding_to_half_of_a_whole_warp(rnd: str) -> None:
    """Of vectors longer than the machine's LLVM aborts the process."""
    exact = np.linspace(-3, 3, COUNT, dtype=np.float32)
    lines = f".reg .b32 %w; {WARP_WIDE} cvt.{rnd}.f16.f32 %h, %a; cvt.{rnd}.f32.f64 %f, %d; div.{rnd}.f32 %q, %a, 0f40400000;"
    found = evaluate(
        lines, {"a": exact, "d": exact.astype(np.float64) / 3}, {"h": "uint16", "f": "float32", "q": "float32"}
    )
    for name, wide in (("h", exact.astype(np.float64)), ("f", exact / 3.0), ("q", exact.astype(np.float64) / 3)):
        near = found[name].view(np.float16) if name == "h" else found[name]
        got, next_up, next_down = (
            v.astype(np.float64) for v in (near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf))
        )
        low, high = {"rm": (got, next_up), "rp": (next_down, got), "rz": (got, got)}[rnd]
        if rnd == "rz":
            assert (np.abs(got) <= np.abs(wide)).all()
            low, high = np.where(wide < 0, next_down, got), np.where(wide < 0, got, next_up)
        assert ((low <= wide) & (wide <= high)).all(), name
