"""Arguments of an op to arguments of a launch: values, C layout of structs, addresses, bytes.

May import ``dtypes``, ``errors``, ``manifest`` and, in this room, ``namespace``, ``plan``, ``tensormaps`` and
``values``.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError
from teenycli.launch.namespace import BUFFER_LIMIT, BufferView, Namespace, Pointer
from teenycli.launch.plan import Address, Argument, Field, TensorMap
from teenycli.launch.tensormaps import tensor_map
from teenycli.launch.values import check_scalar, describe
from teenycli.manifest.spec import ArgSpec

#: Most bytes that the parameters of an entry may take, in any version of PTX.
PARAM_LIMIT = 32764


class _Laid(Struct, frozen=True):
    """Fields with offsets from 0, and the size and alignment in bytes of the whole."""

    fields: tuple[Field, ...]
    size: int
    align: int


def argument(names: Namespace, spec: ArgSpec, index: int) -> Argument:
    """Argument ``index`` of the op, without its place in the parameter buffer.

    Raises TeenyError, placed at the argument: what its expression raises, ``bad-argument``, ``value-out-of-range``,
    ``unreadable``.
    """
    key = f"args[{index}]"
    origin = names.kernel.origin
    try:
        laid = _lay(names, spec, key)
    except TeenyError as error:
        raise error.at(origin.place(key)) from None
    return Argument(index, spec.label, spec.kind, laid.size, laid.fields, source=origin.name(key))


def _lay(names: Namespace, spec: ArgSpec, key: str) -> _Laid:
    if spec.kind == "struct":
        return _struct([_lay(names, member, key) for member in spec.members])
    if spec.kind == "bytes":
        data = _bytes(spec.text, names.kernel.folder)
        return _Laid((Field("bytes", data),), len(data), 1)
    if spec.kind == "tensormap":
        return _Laid((Field("tensormap", tensor_map(names, spec.text)),), TensorMap.SIZE, TensorMap.ALIGN)
    assert spec.value is not None, spec.kind
    value = names.value(spec.value, key, real=spec.kind in DTYPES and DTYPES[spec.kind].is_float)
    if spec.kind == "ptr":
        return _Laid((Field("ptr", _address(value, spec.text)),), 8, 8)
    size = DTYPES[spec.kind].size
    return _Laid((Field(spec.kind, check_scalar(spec.kind, value, spec.text)),), size, size)


def _struct(members: list[_Laid]) -> _Laid:
    """Members one after another as C lays them out: each at its alignment, the whole padded to the largest."""
    fields: list[Field] = []
    end, align = 0, 1
    for member in members:
        start = -(-end // member.align) * member.align
        fields += [replace(field, offset=start + field.offset) for field in member.fields]
        end, align = start + member.size, max(align, member.align)
    return _Laid(tuple(fields), -(-end // align) * align, align)


def _address(value: object, text: str) -> Address:
    pointer = Pointer(value) if isinstance(value, BufferView) else value
    if not isinstance(pointer, Pointer):
        raise TeenyError(
            "bad-argument", f"ptr takes a buffer, and '{text}' is {describe(value)}",
            hint="a buffer's name, NAME + n for n elements on, or null",
        )  # fmt: skip
    if pointer.buffer is None:
        return Address()
    offset = pointer.elements * pointer.buffer.itemsize
    if abs(offset) >= BUFFER_LIMIT:
        raise TeenyError("value-out-of-range", f"'{text}' is {offset} bytes away from {pointer.buffer}")
    return Address(pointer.buffer.name, offset)


def _bytes(text: str, folder: Path) -> bytes:
    if text.startswith("@"):
        data = _read(folder / text[1:])
    else:
        try:
            data = bytes.fromhex(text)
        except ValueError:
            hint = "two digits a byte, such as 00ff10, or @FILE"
            raise TeenyError("bad-argument", f"'{text[:80]}' is no row of hexadecimal digits", hint=hint) from None
    if not data:
        raise TeenyError("bad-argument", f"'bytes {text}' holds no bytes")
    if len(data) > PARAM_LIMIT:
        raise TeenyError(
            "bad-argument", f"'bytes {text[:80]}' is longer than an entry's {PARAM_LIMIT:,} parameter bytes"
        )
    return data


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(PARAM_LIMIT + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TeenyError("unreadable", f"cannot read {path}: {reason}") from None
