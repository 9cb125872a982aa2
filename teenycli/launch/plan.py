"""The plan of an op's launches: the one description that check judges, a device executes and the table draws.

Frozen data. May import ``dtypes`` and, for types, ``ptx.model``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

from msgspec import Struct, field

from teenycli.dtypes import DTYPES, DType, Kind
from teenycli.errors import TeenyError
from teenycli.ptx.model import Triple


class Address(Struct, frozen=True):
    """An address to be: a buffer's, plus an offset in bytes; or null, when ``buffer`` is None."""

    buffer: str | None = None
    offset: int = 0


class TensorMap(Struct, frozen=True):
    """A tensor map, to be encoded once addresses are known: a tensor in a buffer, and the boxes that copies move.

    All lists go from the slowest dimension to the fastest, as ``shape`` does. ``strides`` are bytes from one index to
    the next, of all dimensions but the last. ``box`` is in elements. ``swizzle`` is none, 32B, 64B or 128B,
    ``interleave`` none, 16B or 32B, ``fill`` (out of bounds) zeros or nan. PTX ISA, "Tensors".
    """

    #: Bytes of an encoded map, and what its address is a multiple of.
    SIZE: ClassVar[int] = 128
    ALIGN: ClassVar[int] = 64

    name: str
    address: Address
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: str = "none"
    interleave: str = "none"
    fill: str = "zeros"

    @property
    def buffer(self) -> str:
        assert self.address.buffer is not None
        return self.address.buffer


Value = int | float | bytes | Address | TensorMap


class Field(Struct, frozen=True):
    """One value within an argument: the only one at offset 0, or a member of a struct.

    ``kind`` is a scalar dtype's name, ``ptr``, ``bytes`` or ``tensormap``.
    """

    kind: str
    value: Value
    offset: int = 0


class Argument(Struct, frozen=True):
    """One kernel argument.

    ``name`` is what the user calls it. ``kind`` is the manifest's (``ptr``, ``i32``, ``struct``, ``bytes``,
    ``tensormap``). ``size`` in bytes is the argument's own. ``offset`` in bytes is its parameter's place in the
    parameter buffer, None when the entry has no such parameter. ``hidden`` marks what the compiler appended.
    ``source`` is the manifest key or command-line option it comes from.
    """

    index: int
    name: str
    kind: str
    size: int
    fields: tuple[Field, ...]
    offset: int | None = None
    hidden: bool = False
    source: str = ""

    @property
    def address(self) -> Address | None:
        """The address that the argument is; None for any other, a struct with addresses too."""
        value = self.fields[0].value if len(self.fields) == 1 else None
        return value if isinstance(value, Address) else None

    @property
    def buffers(self) -> Iterator[str]:
        """The buffers that its addresses and tensor maps are in."""
        for item in self.fields:
            if isinstance(item.value, Address | TensorMap) and item.value.buffer is not None:
                yield item.value.buffer


class Buffer(Struct, frozen=True):
    """Device memory of the plan.

    ``role`` is input, param, output or scratch. ``shape`` in elements. ``init`` is the text of an initialiser (see
    ``tensors.fill``), None for the role's default. An in-place output is no buffer of its own: the buffer it
    writes has ``output`` set to the output's name.

    Where ``row_stride`` is not None, memory is rows of ``row_elems`` elements (of ``shape`` in C order), ``row_stride``
    elements from one to the next, zeros between them at first. ``shape`` stays that of the tight array.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    role: str
    init: str | int | float | None = None
    output: str | None = None
    align: int = 256
    source: str = ""
    row_elems: int | None = None
    row_stride: int | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        total = 1
        for dim in self.shape:
            total *= dim
        return total

    @property
    def is_padded(self) -> bool:
        """Whether something lies between the rows."""
        return self.row_stride is not None and self.row_stride != self.row_elems

    @property
    def rows(self) -> tuple[int, int, int]:
        """Count of rows, elements of a row, elements from one row to the next: one row where all is tight."""
        if self.row_elems is None or self.row_stride is None:
            return 1, self.size, self.size
        return self.size // self.row_elems, self.row_elems, self.row_stride

    @property
    def nbytes(self) -> int:
        """Bytes in memory, those between rows too."""
        count, _, stride = self.rows
        return count * stride * self.dtype.size

    @property
    def is_output(self) -> bool:
        return self.role == "output" or self.output is not None


class Launch(Struct, frozen=True):
    """One kernel launch. ``grid`` counts CTAs, with clusters too. ``shared`` is dynamic shared memory in bytes."""

    op: str
    index: int
    entry: str
    grid: Triple
    block: Triple
    args: tuple[Argument, ...]
    cluster: Triple = (1, 1, 1)
    shared: int = 0
    cooperative: bool = False
    pdl: bool = False

    @property
    def ctas(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads in a CTA."""
        return self.block[0] * self.block[1] * self.block[2]


class Plan(Struct, frozen=True):
    """Everything one op does at one case.

    ``dims`` are the case's values by name (dims, then scalars and consts for the record). ``entry`` is the symbol.
    ``backward`` says that it is of the op's backward: its buffers are the forward's, and the gradients.
    """

    op: str
    case: Mapping[str, int]
    ptx: str
    entry: str
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    consts: Mapping[str, int | float] = field(default_factory=dict)
    scalars: Mapping[str, int | float] = field(default_factory=dict)
    backward: bool = False

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)


_FORMATS = {"bool": "<?", "f16": "<e", "f32": "<f", "f64": "<d"}


def encode_scalar(kind: str, value: float) -> bytes:
    """``value`` as little-endian bytes of the scalar dtype ``kind``, rounded once, to nearest even, for a float.

    Raises TeenyError ``value-out-of-range`` when an integer does not fit, or is not an integer. A float too large
    becomes infinite.
    """
    dtype = DTYPES[kind]
    if dtype.kind is Kind.FLOAT:
        return _encode_float(kind, float(value))
    low, high = dtype.int_range()
    if (isinstance(value, float) and not value.is_integer()) or not low <= value <= high:
        raise TeenyError("value-out-of-range", f"{value} does not fit {kind}, which takes {low} to {high}")
    return int(value).to_bytes(dtype.size, "little", signed=dtype.kind is Kind.INT)


def decode_float(kind: str, raw: bytes) -> float:
    """The value of the float scalar ``kind`` in little-endian bytes."""
    if kind == "bf16":
        kind, raw = "f32", b"\0\0" + raw
    value: float = struct.unpack(_FORMATS[kind], raw)[0]
    return value


def _encode_float(kind: str, value: float) -> bytes:
    if kind == "bf16":
        return _encode_bf16(value)
    try:
        return struct.pack(_FORMATS[kind], value)
    except OverflowError:
        return struct.pack(_FORMATS[kind], float("inf") if value > 0 else float("-inf"))


def _encode_bf16(value: float) -> bytes:
    if value != value:
        return b"\xff\x7f"
    single = _encode_float("f32", value)
    nearest = float(struct.unpack("<f", single)[0])
    bits = int.from_bytes(single, "little")
    if nearest != value:
        # Rounded to odd, a single still knows on which side of a tie between two bf16 the double was.
        bits = bits - (abs(nearest) > abs(value)) | 1
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).to_bytes(2, "little")


Encoder = Callable[[TensorMap, int], bytes]


def encode_argument(argument: Argument, address_of: Callable[[str], int], encode_map: Encoder | None = None) -> bytes:
    """The bytes of one argument, ``argument.size`` of them; ``address_of`` gives a buffer's device address.

    ``encode_map`` makes the bytes of a tensor map at an address, which are the driver's own business; zeros without it.
    """
    out = bytearray(argument.size)
    for item in argument.fields:
        if isinstance(item.value, bytes):
            raw = item.value
        elif isinstance(item.value, TensorMap):
            base = address_of(item.value.buffer) + item.value.address.offset
            raw = encode_map(item.value, base) if encode_map else bytes(TensorMap.SIZE)
        elif isinstance(item.value, Address):
            base = 0 if item.value.buffer is None else address_of(item.value.buffer)
            raw = (base + item.value.offset & 2**64 - 1).to_bytes(8, "little")
        else:
            raw = encode_scalar(item.kind, item.value)
        out[item.offset : item.offset + len(raw)] = raw
    return bytes(out)
