"""A thousand random parameter lists: what the kernel finds in its parameters is what the plan says, byte for byte."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cuda.device import CudaDevice
from teenycli.dtypes import DTYPES
from teenycli.launch.plan import Address, Argument, Field, Launch, TensorMap, Value
from teenycli.ptx import Source, outline
from tests.driver.engine import Recorder

pytestmark = pytest.mark.device

#: The driver's limit of all parameters together before PTX 8.1, in bytes.
MOST = 4352
#: Where parameters begin in the constant bank of an sm_90, measured (docs/layout.md).
BANK = 0x210
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
#: PTX type and packing of each scalar that needs no rounding; random bits make any value of them.
INTEGERS = {"i8": ("s8", "b"), "u8": ("u8", "B"), "i16": ("s16", "h"), "u16": ("u16", "H"), "i32": ("s32", "i"),
            "u32": ("u32", "I"), "i64": ("s64", "q"), "u64": ("u64", "Q")}  # fmt: skip
FLOATS = {"f16": ("b16", "e"), "f32": ("f32", "f"), "f64": ("f64", "d")}

Addresses = dict[str, int]


@dataclass(frozen=True)
class Param:
    """A parameter: its declaration but for the name, its alignment, its argument's kind and fields, and the bytes."""

    declared: str
    size: int
    align: int
    kind: str
    fields: tuple[Field, ...]
    expected: Callable[[Addresses], bytes]


def scalar(rng: random.Random) -> tuple[str, str, Value, Callable[[Addresses], bytes]]:
    """PTX type, kind, value and bytes of any scalar, pointers and a bool among them."""
    kind = rng.choice([*INTEGERS, *FLOATS, "bf16", "bool", "ptr"])
    if kind == "ptr":
        offset = rng.randrange(64)
        return "u64", kind, Address("x", offset), lambda at: struct.pack("<Q", at["x"] + offset)
    if kind == "bool":
        value = rng.randrange(2)
        return "u8", kind, value, lambda _: bytes([value])
    if kind == "bf16":
        high = struct.pack("<H", rng.randrange(0x7F80) | rng.randrange(2) << 15)
        (exact,) = struct.unpack("<f", b"\0\0" + high)
        return "b16", kind, exact, lambda _: high
    type, letter = {**INTEGERS, **FLOATS}[kind]
    if kind in FLOATS:
        number = struct.unpack(f"<{letter}", struct.pack(f"<{letter}", rng.uniform(-1000, 1000)))[0]
    else:
        number = struct.unpack(f"<{letter}", rng.randbytes(DTYPES[kind].size))[0]
    return type, kind, number, lambda _: struct.pack(f"<{letter}", number)


def plain(rng: random.Random) -> Param:
    type, kind, value, expected = scalar(rng)
    size = DTYPES[kind].size
    return Param(f".param .{type} {{}}", size, size, kind, (Field(kind, value),), expected)


def structure(rng: random.Random) -> Param:
    """A struct of any size with members anywhere in it, the bytes between them zero."""
    size, align = rng.randint(1, 200), 2 ** rng.randint(0, 7)
    fields, pieces, end = [], [], 0
    while (start := end + rng.randrange(12)) + 8 <= size:
        _, kind, value, expected = scalar(rng)
        fields.append(Field(kind, value, start))
        pieces.append((start, expected))
        end = start + DTYPES[kind].size

    def whole(at: Addresses) -> bytes:
        raw = bytearray(size)
        for start, expected in pieces:
            piece = expected(at)
            raw[start : start + len(piece)] = piece
        return bytes(raw)

    return Param(f".param .align {align} .b8 {{}}[{size}]", size, align, "struct", tuple(fields), whole)


def opaque(rng: random.Random) -> Param:
    size, align = rng.randint(1, 300), 2 ** rng.randint(0, 7)
    raw = rng.randbytes(size)
    return Param(f".param .align {align} .b8 {{}}[{size}]", size, align, "bytes", (Field("bytes", raw),), lambda _: raw)


def tensor_map(rng: random.Random) -> Param:
    """In the stand-in's form: the address, then the element type, then the rank; the rest has a test of its own."""
    rows, columns = rng.randint(1, 99), 4 * rng.randint(1, 99)
    of = TensorMap("map", Address("x", 16), DTYPES["f32"], (rows, columns), (4 * columns,), (1, 4), (1, 1))

    def expected(at: Addresses) -> bytes:
        head = struct.pack("<Q8B5Q4Q5H5B25x", at["x"] + 16, 7, 2, 0, 0, 0, 0, 0, 0, columns, rows, 0, 0, 0,
                           4 * columns, 0, 0, 0, 4, 1, 0, 0, 0, 1, 1, 0, 0, 0)  # fmt: skip
        assert len(head) == TensorMap.SIZE
        return head

    return Param(".param .align 64 .b8 {}[128]", 128, 64, "tensormap", (Field("tensormap", of),), expected)


def random_list(rng: random.Random) -> list[tuple[int, Param]]:
    """Parameters, each with its offset, as many as there is room for or fewer."""
    params: list[tuple[int, Param]] = []
    end = BANK
    for _ in range(rng.randrange(24)):
        made = rng.choices([plain, structure, opaque, tensor_map], [6, 2, 1, 1])[0](rng)
        start = -(-end // made.align) * made.align
        if start + made.size > BANK + MOST:
            break
        params.append((start - BANK, made))
        end = start + made.size
    return params


def launch_of(name: str, params: list[tuple[int, Param]]) -> Launch:
    arguments = tuple(
        Argument(at, f"a{at}", param.kind, param.size, param.fields, offset)
        for at, (offset, param) in enumerate(params)
    )
    return Launch("op", 0, name, (1, 1, 1), (1, 1, 1), arguments)


@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_parameter_lists(device: CudaDevice, recorder: Recorder, seed: int) -> None:
    rng = random.Random(seed)
    lists = {f"k{at}": random_list(rng) for at in range(100)}
    declared = {
        name: ", ".join(param.declared.format(f"p{at}") for at, (_, param) in enumerate(params))
        for name, params in lists.items()
    }
    entries = [f".visible .entry {name}({params}) {{ ret; }}" for name, params in declared.items()]
    module = outline(Source("k.ptx", HEAD + "\n".join(entries)))
    buffers: dict[str, DeviceBuffer] = {"x": device.upload("x", np.zeros(64, np.uint8))}
    at = {"x": buffers["x"].address}
    for name, params in lists.items():
        device.prepare(device.load(module, name), launch_of(name, params), buffers)(10)
        arrived, _, raw = recorder.launches.pop()
        expected = bytearray(len(raw))
        for offset, param in params:
            expected[offset : offset + param.size] = param.expected(at)
        assert (arrived, raw) == (name, bytes(expected)), declared[name]
