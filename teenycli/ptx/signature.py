"""What the source declared an entry's parameters as: by a demangled C++ name (nvcc, clang), by a Numba name, by
Triton's own IR in a cache folder, ``NAME.ttir`` beside ``NAME.ptx``.

May import ``ptx.demangle`` and ``ptx.model``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from teenycli.ptx.demangle import demangle
from teenycli.ptx.model import Function, Module


class Declared(Struct, frozen=True):
    """One parameter as its source declares it; what the source does not say is None.

    ``kind`` is ``ptr`` or a scalar's; ``element`` the dtype behind a pointer, ``const`` whether it is only read there.
    ``multiple`` is a divisor that the compiler was promised. ``rank`` is the number of dimensions of an array, and
    ``value`` the expression to pass where the convention fixes it (``p0.shape[1]``).
    """

    name: str | None = None
    kind: str | None = None
    element: str | None = None
    const: bool = False
    multiple: int = 1
    rank: int | None = None
    value: str | None = None


Signature = tuple[Declared, ...]

_CPP = {
    "bool": "bool", "char": "i8", "signed char": "i8", "unsigned char": "u8", "short": "i16", "unsigned short": "u16",
    "int": "i32", "unsigned int": "u32", "long": "i64", "unsigned long": "u64", "long long": "i64",
    "unsigned long long": "u64", "float": "f32", "double": "f64", "__half": "f16", "_Float16": "f16",
    "__nv_bfloat16": "bf16", "__bf16": "bf16", "__nv_fp8_e4m3": "e4m3", "__nv_fp8_e5m2": "e5m2",
}  # fmt: skip
_TRITON = {
    "i1": "bool", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "f16": "f16", "bf16": "bf16", "f32": "f32",
    "f64": "f64", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2",
}  # fmt: skip
#: Element types of buffers, which no argument is.
_ELEMENTS_ONLY = frozenset({"e4m3", "e5m2"})
_NUMBA_ARRAY = re.compile(r"Array<([\w ]+), (\d+), [ACF], \w+, \w+>")
#: The most of an IR file that is read; its head has the signature.
_HEAD = 1 << 20


def signature_of(module: Module, entry: Function, visible: int) -> Signature | None:
    """What is declared of the first ``visible`` parameters of ``entry``, one each; None where nothing says it."""
    found = _triton(module, entry, visible)
    if found is None:
        readable = demangle([entry.name]).get(entry.name)
        types = None if readable is None else _parameter_types(readable)
        found = None if types is None else tuple(_numba(types) if _is_numba(types) else map(_cpp, types))
    return found if found is not None and len(found) == visible else None


def plain_name(entry: str) -> str:
    """The entry's name in the source, without namespaces, template arguments and parameters."""
    readable = demangle([entry]).get(entry, entry)
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)|\[[^\[\]]*\]", "", readable)) != readable:
        readable = shorter
    words = re.sub(r"::h[0-9a-f]{16}$", "", readable.strip()).split()
    return words[-1].rpartition("::")[2] if words else entry


# --- C++ and Numba -------------------------------------------------------------------------------------------------


def _parameter_types(readable: str) -> list[str] | None:
    """The types between the last parentheses of ``void scale<float>(float*, int)``."""
    if not readable.endswith(")"):
        return None
    depth = 0
    for at in range(len(readable) - 1, -1, -1):
        depth += (readable[at] == ")") - (readable[at] == "(")
        if depth == 0:
            return list(_split(readable[at + 1 : -1]))
    return None


def _split(text: str) -> Iterator[str]:
    depth = start = 0
    for at, char in enumerate(text):
        depth += (char in "<([{") - (char in ">)]}")
        if char == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def _cpp(text: str) -> Declared:
    text = re.sub(r"\b(restrict|__restrict__|volatile)\b", "", text).strip()
    if not text.endswith("*"):
        return Declared(kind=_CPP.get(text))
    pointee = text[:-1].strip()
    const = pointee.endswith("const")
    pointee = pointee.removesuffix("const").strip()
    vector = re.fullmatch(r"(float|double|int|uint)[234]", pointee)  # float4 and its kin
    element = (
        "ptr" if pointee.endswith("*") else _CPP.get(vector[1].replace("uint", "unsigned int") if vector else pointee)
    )
    return Declared(kind="ptr", element=element, const=const)


def _is_numba(types: list[str]) -> bool:
    return any(_NUMBA_ARRAY.fullmatch(text) for text in types)


def _numba(types: list[str]) -> Iterator[Declared]:
    """Numba passes an array as two pointers of its own, item count, item size, data, shape and strides in bytes."""
    for number, text in enumerate(types):
        array, name = _NUMBA_ARRAY.fullmatch(text), f"p{number}"
        if array is None:
            yield Declared(name, _CPP.get(text))
            continue
        rank = int(array[2])
        yield from (Declared(kind="ptr", value="null"), Declared(kind="ptr", value="null"))
        yield from (Declared(kind="i64", value=f"{name}.size"), Declared(kind="i64", value=f"{name}.itemsize"))
        yield Declared(name, "ptr", _CPP.get(array[1]), rank=rank)
        yield from (Declared(kind="i64", value=f"{name}.shape[{k}]") for k in range(rank))
        for k in range(rank):
            inner = "".join(f" * {name}.shape[{j}]" for j in range(k + 1, rank))
            yield Declared(kind="i64", value=f"{name}.itemsize{inner}")


# --- Triton --------------------------------------------------------------------------------------------------------


def _triton(module: Module, entry: Function, visible: int) -> Signature | None:
    text = _ir_beside(module.source.name)
    head = re.search(rf"tt\.func public @{re.escape(entry.name)}\(", text)
    if head is None:
        return None
    declared: list[Declared] = []
    pieces = re.split(r"(?:^|, )%(\w+): ", text[head.end() : text.find("\n", head.end())])[1:]
    for name, rest in zip(pieces[::2], pieces[1::2], strict=True):
        declared.append(_triton_parameter(None if re.fullmatch(r"arg\d+", name) else name, rest))
    descriptors = [k for k, (_, rest) in enumerate(zip(pieces[::2], pieces[1::2], strict=True)) if "tensordesc" in rest]
    if descriptors:
        declared = _expanded(declared, descriptors, visible)
    return tuple(declared)


def _triton_parameter(name: str | None, rest: str) -> Declared:
    promised = re.search(r"tt\.divisibility = (\d+)", rest.partition(" loc(")[0])
    pointer = re.match(r"!tt\.ptr<(.*?)(?:, \d+)?>(?=[ ,)]|$)", rest)
    if pointer is not None:
        element = "ptr" if pointer[1].startswith("!tt.ptr") else _TRITON.get(pointer[1])
        return Declared(name, "ptr", element)
    word = re.match(r"\w+", rest)
    kind = _TRITON.get(word[0]) if word is not None else None
    multiple = int(promised[1]) if promised is not None and kind is not None and kind[0] == "i" else 1
    return Declared(name, None if kind in _ELEMENTS_ONLY else kind, multiple=max(multiple, 1))


def _expanded(declared: list[Declared], descriptors: list[int], visible: int) -> list[Declared]:
    """A tensor descriptor of the host's is several parameters, as many each as the count of all leaves for it."""
    each, rest = divmod(visible - len(declared) + len(descriptors), len(descriptors))
    if rest or each < 1:
        return declared
    for at in reversed(descriptors):
        declared[at : at + 1] = [Declared(declared[at].name)] + [Declared()] * (each - 1)
    return declared


def _ir_beside(name: str) -> str:
    stem = name.removesuffix(".ptx")
    if stem != name:
        for ending in (".ttir", ".source"):
            with suppress(OSError), Path(stem + ending).open("rb") as file:
                return file.read(_HEAD).decode("utf-8", "replace")
    return ""
