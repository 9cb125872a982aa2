"""What a tensor map holds on this device, which is the device's own business (PTX ISA, "Tensor-Map").

The address at byte 0, then a byte each for the type and the rank, one left free, the swizzle, one left free, and the
fill; from 16 the extents, from 56 the strides in bytes, each of 8 bytes, from 88 the box, of 2 bytes each, from 98 the
element strides, a byte each: all of them the fastest dimension first. Types, swizzles and fills are numbered as the
driver's interface does it.

May import ``errors``, ``exits``, ``launch.plan``.
"""

from __future__ import annotations

import struct

from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.launch.plan import TensorMap

RANK = 5
TYPE, SWIZZLE, FILL, EXTENTS, STRIDES, BOX, STEPS = 8, 11, 13, 16, 56, 88, 98
#: Bytes of an element, by number of the type (CUtensorMapDataType).
SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
#: The number of a type; of those that only move, by width in bytes.
_TYPES = {"f16": 6, "bf16": 9, "f32": 7, "f64": 8}
_BY_SIZE = {1: 0, 2: 1, 4: 2, 8: 4}
_SWIZZLES = ("none", "32B", "64B", "128B")


def encoded(of: TensorMap, address: int) -> bytes:
    """A map over memory at ``address``. Raises TeenyError ``unsupported-instruction`` of one that is interleaved, or
    whose box's rows are shorter than its swizzle: no document says where in shared memory such rows lie."""
    row, swizzle = of.box[-1] * of.dtype.size, _SWIZZLES.index(of.swizzle)
    lacking = None
    if of.interleave != "none":
        lacking = f"interleave {of.interleave}"
    elif swizzle and row != 16 << swizzle:
        lacking = f"swizzle {of.swizzle} for rows of {row} bytes"
    if lacking is not None:
        message = f"the CPU device cannot run copies by '{of.name}', a tensor map with {lacking}"
        hint = "an NVIDIA GPU can: --device cuda"
        raise TeenyError("unsupported-instruction", message, hint=hint, exit=Exit.UNSUPPORTED)
    ones = (1,) * (RANK - len(of.shape))
    shape, box, steps = ((*reversed(each), *ones) for each in (of.shape, of.box, of.element_strides))
    strides = (*reversed(of.strides), *(0,) * (RANK - 1 - len(of.strides)))
    kind = _TYPES.get(of.dtype.name, _BY_SIZE[of.dtype.size])
    head = struct.pack("<Q6B2x", address, kind, len(of.shape), 0, swizzle, 0, of.fill == "nan")
    return (head + struct.pack("<5Q4Q5H5B", *shape, *strides, *box, *steps)).ljust(of.SIZE, b"\0")
