"""The native-width parts of warp-wide vectors: memory is accessed, and lanes looked at, a part at a time.

May import ``lower``.
"""

from __future__ import annotations

from teenycli.devices.cpu.lower import Lowering


def take_part(x: Lowering, text: str, type: str, part: int) -> str:
    """The lanes of one native-width part of a warp-wide vector."""
    w, g = x.w, x.unit.group
    if w.width == g:
        return text
    lanes = ", ".join(f"i32 {part * g + k}" for k in range(g))
    return w.assign(f"shufflevector <{w.width} x {type}> {text}, <{w.width} x {type}> poison, <{g} x i32> <{lanes}>")


def part_bits(x: Lowering, bits: str, part: int) -> str:
    w, g = x.w, x.unit.group
    if w.width == g:
        return bits
    shifted = w.assign(f"lshr i{w.width} {bits}, {part * g}") if part else bits
    return w.assign(f"trunc i{w.width} {shifted} to i{g}")


def join_parts(x: Lowering, parts: list[str], type: str) -> str:
    """Parts side by side again."""
    w, width = x.w, x.unit.group
    while len(parts) > 1:
        lanes = ", ".join(f"i32 {k}" for k in range(2 * width))
        parts = [
            w.assign(f"shufflevector <{width} x {type}> {a}, <{width} x {type}> {b}, <{2 * width} x i32> <{lanes}>")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        width *= 2
    return parts[0]
