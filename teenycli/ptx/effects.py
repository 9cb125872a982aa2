"""What an instruction does with the memory that its address operands name: load, store, update, merely touch.

The unit is an address operand. Sizes are those of the single access, since it is to them that an address must be
aligned. May import ``ptx.code``, ``ptx.isa`` and ``ptx.model``.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from teenycli.ptx.code import Mem, Op
from teenycli.ptx.model import Int


class Effect(Struct, frozen=True):
    """What becomes of the memory at operand ``place``.

    ``kind``: ``load``, ``store``, ``atomic``, ``hint`` (a prefetch and its like: no byte changes, none is seen), or
    ``other`` for an instruction that is none of these, with its opcode for the ``type``. ``count`` elements of ``type``
    are moved at once. ``opcode`` is empty for ld, st, atom and red, else the instruction's name (``cp.async.bulk``).
    ``handle``: the operand is no address but the handle of a texture, a surface.
    """

    place: int
    kind: str
    space: str
    type: str
    count: int = 1
    opcode: str = ""
    handle: bool = False


_TEXTURES = {"tex": "load", "tld4": "load", "txq": "hint"}
_SURFACES = {"suld": "load", "sust": "store", "sured": "atomic", "suq": "hint"}
_HINTS = frozenset({"prefetch", "prefetchu", "applypriority", "createpolicy", "fence"})
_MULTIMEM = {"ld_reduce": "load", "st": "store", "red": "atomic"}
#: Bytes that one thread names to ldmatrix and stmatrix (a row of 8 x 8 matrices), and the unit of bulk copies.
_ROW = "b128"


def effects_of(op: Op) -> Iterator[Effect]:
    """The effects of an instruction, one for each operand in brackets."""
    for place, operand in enumerate(op.operands):
        if isinstance(operand, Mem):
            yield _effect(op, place, operand)


def _effect(op: Op, place: int, mem: Mem) -> Effect:
    mods, opcode = op.mods, op.opcode
    space = mods.get("space", "generic")
    count = int(mods.get("vec", "v1")[1:])
    kind = mods.get("type", "b8")
    if opcode in ("ld", "ldu"):
        return Effect(place, "load", space, kind, count)
    if opcode in ("st", "atom", "red"):
        return _plain(op, place, space, kind, count)
    if opcode == "cp":
        return _copy(op, place, mem)
    if opcode in _TEXTURES or opcode in _SURFACES:
        return _image(op, place, count)
    if opcode in _HINTS:
        return Effect(place, "hint", space, "b1024" if "tensormap" in mods else "b8", 1, opcode)
    if opcode in ("ldmatrix", "stmatrix"):
        return Effect(place, "load" if opcode == "ldmatrix" else "store", space, _ROW, 1, opcode)
    if opcode == "wmma" and ("load" in mods or "store" in mods):
        name = "load" if "load" in mods else "store"
        return Effect(place, name, space, kind, 1, f"wmma.{name}")
    if opcode == "multimem":
        name = next((name for name in _MULTIMEM if name in mods), "")
        return Effect(place, _MULTIMEM.get(name, "other"), space, kind, count, f"multimem.{name}")
    if opcode == "discard":
        return Effect(place, "store", space, "b8", 128, opcode)  # what was there is lost
    if opcode == "tensormap":
        return _tensor_map(op, place)
    return Effect(place, "other", space, opcode)


def _name(op: Op, place: int) -> str:
    """What the form calls an operand: ``d``, ``a``, ``mbar``."""
    specs = op.specs
    return specs[place].name if place < len(specs) else ""


def _plain(op: Op, place: int, space: str, kind: str, count: int) -> Effect:
    if place > 0 and _name(op, place) == "mbar":
        return Effect(place, "other", space, "mbarrier")
    if op.opcode != "st":
        return Effect(place, "atomic", space, kind, count, "red.async" if "async" in op.mods else "")
    if "bulk" in op.mods:
        return Effect(place, "store", space, "b64", 1, "st.bulk")
    return Effect(place, "store", space, kind, count, "st.async" if "async" in op.mods else "")


def _image(op: Op, place: int, count: int) -> Effect:
    kind = _TEXTURES.get(op.opcode) or _SURFACES[op.opcode]
    space = "tex" if op.opcode in _TEXTURES else "surf"
    return Effect(place, kind, space, op.mods.get("dtype") or op.mods.get("type", "b8"), count, op.opcode, handle=True)


def _tensor_map(op: Op, place: int) -> Effect:
    """A tensor map, 128 bytes, changed in a field or copied."""
    if "cp_fenceproxy" not in op.mods:
        return Effect(place, "store", op.mods.get("space", "generic"), "b1024", 1, "tensormap.replace")
    store = place == 0
    space = op.mods["dst" if store else "src"]
    return Effect(place, "store" if store else "load", space, "b1024", 1, "tensormap.cp_fenceproxy")


def _copy(op: Op, place: int, mem: Mem) -> Effect:
    """cp.async and its like (PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy")."""
    mods, name = op.mods, _name(op, place)
    if name == "mbar" or "mbarrier" in mods:
        return Effect(place, "other", "shared", "mbarrier")
    opcode = "cp.reduce.async.bulk" if "reduce" in mods else "cp.async.bulk" if "bulk" in mods else "cp.async"
    if mem.coords:
        return Effect(place, _of_tile(op), "global", "b1024", 1, f"{opcode}.tensor")
    if "prefetch" in mods and "bulk" in mods:
        return Effect(place, "hint", mods.get("src", "global"), _ROW, 1, f"{opcode}.prefetch")
    store = name == "d"
    space = mods.get("dst" if store else "src", "generic")
    kind = "load" if not store else "atomic" if "reduce" in mods else "store"
    if "bulk" in mods:
        return Effect(place, kind, space, mods.get("type", _ROW) if kind == "atomic" else _ROW, 1, opcode)
    size = op.operands[2] if len(op.operands) > 2 else None
    return Effect(place, kind, space, f"b{8 * size.value}" if isinstance(size, Int) else "b8", 1, opcode)


def _of_tile(op: Op) -> str:
    """What a copy does to the tensor behind a tensor map."""
    if "prefetch" in op.mods:
        return "hint"
    if op.mods.get("dst") != "global":
        return "load"
    return "atomic" if "reduce" in op.mods else "store"
