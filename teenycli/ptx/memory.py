"""Memory of one thread or block as the flow of values sees it: variables, and the places in them that are stored to and
loaded from.

A value stored at a known offset of a variable comes back from a load that overlaps it; one stored at an offset that
only the run knows comes back from every load of the variable. May import ``ptx.model``.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from teenycli.ptx.model import Space

#: An offset in bytes, None where only the run knows it, and a size in bytes.
Key = tuple[int | None, int]
#: So many places of a variable are told apart.
_MOST = 256


class Stored(Struct, eq=False):
    """A variable in local, shared or parameter space; ``param`` is the index where it is a parameter of the entry, else
    -1. ``stores`` and ``loads`` have a node of the graph for each place; ``content`` is a node for all that is stored.
    ``mirrors`` are the variables that it is copied to by calls."""

    space: Space
    content: int
    param: int = -1
    escaped: bool = False
    stores: dict[Key, int] = field(default_factory=dict)
    loads: dict[Key, int] = field(default_factory=dict)
    mirrors: list[Stored] = field(default_factory=list)


class Meeting(Struct, frozen=True):
    """How what is stored under one key comes back under another: ``whole``, or a ``part`` that begins ``offset`` bytes
    in, or neither: mixed with other bytes."""

    whole: bool = False
    part: bool = False
    offset: int = 0


def meeting(store: Key, load: Key) -> Meeting | None:
    """How a load meets a store of the same variable; None if it does not."""
    (there, stored), (here, loaded) = store, load
    if there is None or here is None or there == here:
        if stored == loaded:
            return Meeting(whole=True)
        return Meeting(part=here is not None and there is not None and loaded < stored)
    if here >= there + stored or there >= here + loaded:
        return None
    return Meeting(part=here > there and here + loaded <= there + stored, offset=here - there)


class Memory:
    """Variables and the edges between their places. ``new`` makes a node of the graph; ``join`` an edge between two, by
    how they meet, with the bytes loaded and the bytes stored."""

    def __init__(self, new: Callable[[], int], join: Callable[[int, int, Meeting, Key, Key], None]) -> None:
        self._new = new
        self._join = join
        self.variables: dict[tuple[int, int], Stored] = {}

    def variable(self, key: tuple[int, int], space: Space, param: int = -1) -> Stored:
        """The variable of this key, made when it is first asked for."""
        held = self.variables.get(key)
        if held is None:
            held = self.variables[key] = Stored(space, self._new(), param)
        return held

    def store(self, variable: Stored, offset: int | None, size: int) -> int:
        """The node that takes what is stored there."""
        key = _key(variable.stores, offset, size)
        node = variable.stores.get(key)
        if node is None:
            node = variable.stores[key] = self._new()
            self._join(node, variable.content, Meeting(whole=True), key, key)
            for load, target in variable.loads.items():
                self._meet(node, key, target, load)
            for mirror in variable.mirrors:
                self._copy(variable, key, mirror)
        return node

    def load(self, variable: Stored, offset: int | None, size: int) -> int:
        """The node that gives what is loaded from there."""
        key = _key(variable.loads, offset, size)
        node = variable.loads.get(key)
        if node is None:
            node = variable.loads[key] = self._new()
            for store, source in variable.stores.items():
                self._meet(source, store, node, key)
        return node

    def mirror(self, source: Stored, target: Stored) -> None:
        """All that ``source`` holds, now and later, is in ``target`` too."""
        if source is not target and target not in source.mirrors:
            source.mirrors.append(target)
            for key in tuple(source.stores):
                self._copy(source, key, target)

    def _copy(self, source: Stored, key: Key, target: Stored) -> None:
        self._join(source.stores[key], self.store(target, *key), Meeting(whole=True), key, key)

    def _meet(self, source: int, store: Key, target: int, load: Key) -> None:
        how = meeting(store, load)
        if how is not None:
            self._join(source, target, how, store, load)


def _key(known: dict[Key, int], offset: int | None, size: int) -> Key:
    return (offset if len(known) < _MOST or (offset, size) in known else None), size
