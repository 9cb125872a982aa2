"""What each parameter of an entry seems to be: a buffer with its direction and elements, an extent, another scalar, a
struct. For ``launch.draft``.

What the source declares (``ptx.signature``) goes before what the body does (``ptx.usage``), where their widths agree.
May import ``dtypes``, ``manifest`` and ``ptx``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from teenycli.dtypes import DTYPES
from teenycli.manifest.gaps import OPEN
from teenycli.manifest.rules import is_name
from teenycli.manifest.spec import RESERVED
from teenycli.ptx import code_of
from teenycli.ptx.model import Function, Module, Variable
from teenycli.ptx.signature import Declared, signature_of
from teenycli.ptx.usage import Part, Usage, Use, usage_of

#: Most members of a struct that are written out.
_MEMBERS = 32


class Parameter(Struct, frozen=True):
    """One parameter, as a description names it.

    ``role``: ``buffer``, ``dim`` (an extent, a stride), ``scalar``, ``tensormap``, or ``fixed`` where the argument
    needs no name. ``argument`` is the manifest's text. ``why`` says what the body does with the value; ``access`` and
    ``elements`` what it does with the memory behind it. ``dtype`` is None where nothing tells.
    """

    index: int
    name: str
    declared: str
    role: str
    argument: str
    why: str = ""
    dtype: str | None = None
    rank: int | None = None
    multiple: int = 1
    reads: bool = False
    writes: bool = False
    atomic: bool = False
    access: str = ""
    elements: str = ""


def parameters_of(module: Module, entry: Function, visible: int) -> tuple[Parameter, ...]:
    """The first ``visible`` parameters of ``entry``. Raises what parsing the body raises."""
    code = code_of(module, entry)
    usages = usage_of(code)
    signature = signature_of(module, entry, visible) or (Declared(),) * visible
    names = _names(entry.params[:visible], signature)
    text = module.source.text
    tensor_copies = "tensormap" in text or ".tensor." in text
    found = []
    for k, param in enumerate(entry.params[:visible]):
        found.append(_Reader(k, param, names[k], signature[k], usages[k]).read(tensor_copies))
    return tuple(found)


def _names(params: Sequence[Variable], signature: Sequence[Declared]) -> list[str]:
    """Names from the source, else the PTX's own, else ``p`` and the index; each once."""
    chosen: dict[int, str] = {}
    for names in ([each.name for each in signature], [_own_name(param) for param in params]):
        for k, name in enumerate(names):
            if k not in chosen and name and is_name(name) and name not in RESERVED | {OPEN, *chosen.values()}:
                chosen[k] = name
    for k in range(len(params)):
        if k not in chosen:
            chosen[k] = next(n for n in (f"p{k}" + "_" * more for more in count()) if n not in chosen.values())
    return [chosen[k] for k in range(len(params))]


def _own_name(param: Variable) -> str | None:
    """The parameter's own name, if it is one that a person gave it."""
    return None if re.search(r"_param_\d+$", param.name) or len(param.name) > 32 else param.name


class _Reader(Struct, frozen=True):
    """Reads one parameter."""

    index: int
    param: Variable
    name: str
    declared: Declared
    usage: Usage

    def read(self, tensor_copies: bool) -> Parameter:
        if (self.param.dims or self.param.vector > 1) and not self._is_one_value():
            return self._struct(tensor_copies)
        if self.param.type in ("texref", "samplerref", "surfref"):
            return self._as("fixed", f"bytes {OPEN}", f"{self.param.size} bytes: the handle of a texture or surface")
        if self.declared.value is not None:
            kind = self.declared.kind or "i64"
            return self._as("fixed", f"{kind} {self.declared.value}", "how Numba passes arrays")
        if self._is_pointer():
            return self._pointer()
        return self._scalar()

    def _as(self, role: str, argument: str, why: str = "") -> Parameter:
        return Parameter(self.index, self.name, self.param.declared_type, role, argument, why)

    def _is_one_value(self) -> bool:
        """Whether it is an array in name only, as nvcc writes a ``__half``: ``.b8 x[2]``, loaded whole."""
        whole = {load.size for part in self.usage.parts for load in part.loads} == {self.param.size}
        return whole and self.param.size <= 4 and not self.usage.escaped

    # --- pointers ---

    def _is_pointer(self) -> bool:
        if self.param.size != 8:
            return False
        if self.param.pointer is not None or self.usage.pointer:
            return True
        if self.declared.kind == "ptr":  # one that is only copied elsewhere is a number here
            return self.usage.unused or self.usage.address or self.usage.escaped
        if self.declared.kind is not None or not self.usage.address:
            return False
        # An address is made with it: by adding it alone, it is where the address begins.
        return self.usage.base and not (self.usage.factor or self.usage.bound or self.usage.divisor or self.usage.types)

    def _pointer(self) -> Parameter:
        if self.usage.unused:
            return self._as("fixed", "ptr null", "never read")
        kinds = {access.kind for access in self.usage.accesses}
        unknown = self.usage.opaque or not kinds
        reads = self.usage.reads or unknown
        writes = self.usage.writes or (unknown and not self.declared.const)
        dtype, elements = self._elements()
        base = self._as("buffer", f"ptr {self.name}")
        return replace(
            base, dtype=dtype, elements=elements, rank=self.declared.rank, reads=reads, writes=writes,
            atomic="atomic" in kinds and "load" not in kinds and not unknown, access=_access(kinds, unknown),
        )  # fmt: skip

    def _elements(self) -> tuple[str | None, str]:
        """The dtype of what is behind the pointer, and how that is known."""
        if self.declared.element is not None:
            return self.declared.element, f"{self.declared.element} in the source"
        found = self.usage.elements
        telling = {_dtype(element) for element in found if element[0] != "b" or element == "bf16"}
        if all(name[0] in "iu" for name in telling) and len({name[1:] for name in telling}) == 1 < len(telling):
            telling = {name for name in telling if name[0] == "i"}  # signed and unsigned work on the same integers
        if len(telling) == 1:
            dtype = telling.pop()
            return dtype, f"as {dtype}"
        seen = ", ".join(sorted(found))
        return None, f"as {seen}: the dtype is open" if seen else "the dtype is open"

    # --- scalars ---

    def _scalar(self) -> Parameter:
        size = self.param.size
        kind = self.declared.kind
        if kind is None or kind == "ptr" or DTYPES[kind].size != size:
            kind = _kind(self.param.type, size, self.usage)
        if self.usage.unused:
            return self._as("fixed", f"{kind} 0", "never read")
        use = self.usage
        what = _what(use)
        extent = use.bound or use.loop or use.divisor or use.factor or use.address
        role = "dim" if extent and not DTYPES[kind].is_float and size >= 4 else "scalar"
        return replace(self._as(role, f"{kind} {self.name}", what), multiple=self.declared.multiple)

    # --- structs ---

    def _struct(self, tensor_copies: bool) -> Parameter:
        size = self.param.size
        handed_on = tensor_copies and self.usage.escaped and not self.usage.loads
        if size == 128 and self.param.align >= 64 and (self.usage.tensormap or handed_on):
            return self._as("tensormap", f"tensormap {self.name}", "128 bytes whose address is taken: a tensor map")
        if not size:
            return self._as("fixed", f"bytes {OPEN}", "empty")
        if self.usage.unused:
            return self._as("fixed", f"bytes {'00' * size}" if size <= 16 else f"bytes {OPEN}", "never read")
        members = _members(self.param, self.usage.parts, OPEN if self.usage.escaped else "0")
        if members is None:
            return self._as("fixed", f"bytes {OPEN}", f"{size} bytes; the body reads it in no order of members")
        return self._as("fixed", f"{{{', '.join(members)}}}", f"{size} bytes; the body reads what is {OPEN}")


def _members(param: Variable, parts: Sequence[Part], rest: str) -> list[str] | None:
    """The struct's members in C layout, those that nothing loads being ``rest``; None where they do not lie so."""
    members: list[str] = []
    end = 0
    for part in parts:
        loads = part.loads
        width = loads[0].size if loads else 0
        if part.offset < end or not width or part.offset % width or any(load.size != width for load in loads):
            return None
        if param.size % width:
            return None  # C would pad the struct
        members += _filling(param, end, part.offset, rest)
        pointer = width == 8 and part.pointer
        kind = "ptr" if pointer else _kind(param.type, width, part)
        members.append(f"{kind} {OPEN}")
        end = part.offset + width
    members += _filling(param, end, param.size, rest)
    return members if parts and end <= param.size and len(members) <= _MEMBERS else None


def _filling(param: Variable, start: int, end: int, value: str) -> list[str]:
    """Members from byte ``start`` to ``end``: of the array's own element type, else unsigned, each as wide as its
    place and the whole allow."""
    if param.type in ("f32", "f64"):
        return [f"{param.type} {value}"] * ((end - start) * 8 // int(param.type[1:]))
    members = []
    while start < end:
        width = next(w for w in (8, 4, 2, 1) if start % w == param.size % w == 0 and start + w <= end)
        members.append(f"u{8 * width} {value}")
        start += width
    return members


# --- words -----------------------------------------------------------------------------------------------------------


def _access(kinds: set[str], unknown: bool) -> str:
    if unknown:
        return "handed on: perhaps read, perhaps written"
    said = (("load", "read"), ("hint", "prefetched"), ("store", "written"))
    words = [word for kind, word in said if kind in kinds]
    words += ["updated atomically"] if "atomic" in kinds else []
    return " and ".join(dict.fromkeys(words))


def _what(use: Use) -> str:
    """What the code does with a scalar, in words."""
    words = ["bounds a loop"] if use.loop else ["bounds what runs"] if use.bound else []
    words += ["a divisor"] if use.divisor else []
    if use.address:
        words.append("a stride: multiplied into addresses" if use.stride else "part of addresses")
    elif use.factor:
        words.append("a factor")
    return "; ".join(words)


def _dtype(element: str) -> str:
    """``i32`` for ``s32``; floats and ``ptr`` are called alike."""
    return f"i{element[1:]}" if element[0] == "s" else element


def _kind(declared: str, size: int, use: Use) -> str:
    """The kind of a scalar of ``size`` bytes: a float where it is loaded or computed with as one, else an integer,
    signed unless the code divides, compares or converts it without sign only."""
    types = {load.type for load in use.loads} | {declared} | use.types
    for kind in ("f64", "f32", "bf16", "f16"):
        if kind in types and DTYPES[kind].size == size:
            return kind
    used = use.types | {load.type for load in use.loads if load.type[0] == "s"}
    unsigned = any(kind[0] == "u" for kind in used) and not any(kind[0] == "s" for kind in used)
    return f"{'u' if unsigned or (size == 1 and not used) else 'i'}{8 * size}"
