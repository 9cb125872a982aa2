"""The graph that values flow along: a node for each register and each place in memory, an edge for each way.

A *token* is a value that a parameter brings: so many bytes at an offset of it. ``spread`` finds which tokens each node
may hold, and how; a node's tokens are one integer, six bits each:

====  ===============================================================================================
bit   the node may hold
====  ===============================================================================================
HELD  the value itself
NEAR  the value, or what constants alone make of it: ``n - 1``, ``4 * n``, ``n / 32``
PART  something that the value has a part in
TIMES something that has a part in it as a factor of what is no constant
TEST  the outcome of a comparison with it (or of logic on such), as a predicate or as 0 and 1
BASE  the value, or a sum that it is a term of
====  ===============================================================================================

Imports nothing of ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

_Node = TypeVar("_Node", bound=Hashable)

HELD, NEAR, PART, TIMES, TEST, BASE = 1, 2, 4, 8, 16, 32
_WIDTH = 6
_ALL = (1 << _WIDTH) - 1
_SEED = HELD | NEAR | PART | BASE

#: Kinds of edges: ``COPY`` passes all, and so does ``EITHER``, of which other values come too; ``SCALE`` what constants
#: make of the value, ``SHIFT`` if they are added to it; ``MIX`` what it has a part in, ``ADD`` if that is a sum,
#: ``LOGIC`` with outcomes; ``MULTIPLY`` is ``MIX`` to a product; ``COMPARE`` to a comparison; ``PREDICATE`` of one;
#: ``SLICE`` some of the bytes.
COPY, EITHER, SCALE, SHIFT, MIX, ADD, LOGIC, MULTIPLY, COMPARE, PREDICATE, SLICE = range(11)
_MIXED = PART | TIMES
_SCALED = NEAR | _MIXED | TEST
_PASSED = (_ALL, _ALL, _SCALED, _SCALED | BASE, _MIXED, _MIXED | BASE, _MIXED | TEST, _MIXED, TEST, TEST, _MIXED)


class Token(NamedTuple):
    """``size`` bytes at ``offset`` of the parameter ``param``. An offset that only the run knows is -1, with size 0."""

    param: int
    offset: int
    size: int


#: What may be an address and comes from no parameter: loaded, or that of a variable.
FOREIGN = Token(-1, 0, 8)

#: Target, kind, and of ``COPY``, ``EITHER`` and ``SHIFT`` what is added to an address (None: no constant); of a
#: ``SLICE`` the offset into the value, the bytes taken, and the bytes of the value.
Edge = tuple[int, int, "int | tuple[int, int, int] | None"]


class Graph:
    """Nodes are integers from 0, ``edges`` has those that leave each. ``state`` is there after ``spread``."""

    def __init__(self) -> None:
        self.edges: list[list[Edge]] = []
        self.tokens: list[Token] = []
        self.state: list[int] = []
        #: Tokens of which a part was taken: they are their parts.
        self.sliced: set[int] = set()
        self._numbers: dict[Token, int] = {}
        self._seeds: list[tuple[int, int]] = []
        self._masks: list[int] = []

    def new(self) -> int:
        """Another node."""
        self.edges.append([])
        return len(self.edges) - 1

    def seed(self, node: int, token: Token) -> None:
        """``node`` holds ``token``."""
        self._seeds.append((node, self.number(token)))

    def number(self, token: Token) -> int:
        """The place of a token in ``tokens``."""
        known = self._numbers.get(token)
        if known is None:
            known = self._numbers[token] = len(self.tokens)
            self.tokens.append(token)
            self._masks = []
        return known

    def spread(self) -> None:
        """Let all tokens flow until nothing changes."""
        state = self.state = [0] * len(self.edges)
        waiting: deque[int] = deque()
        for node, number in self._seeds:
            state[node] |= (BASE if self.tokens[number] == FOREIGN else _SEED) << _WIDTH * number
            waiting.append(node)
        while waiting:
            source = waiting.popleft()
            bits = state[source]
            for target, kind, extra in self.edges[source]:
                new = (bits if kind == COPY else self._passed(bits, kind, extra)) & ~state[target]
                if new:
                    state[target] |= new
                    waiting.append(target)

    def _passed(self, bits: int, kind: int, extra: object) -> int:
        if not self._masks:
            ones = ((1 << _WIDTH * len(self.tokens)) - 1) // _ALL
            self._masks = [ones * passed for passed in (*_PASSED, NEAR)]
        masks = self._masks
        if kind == SLICE:
            assert isinstance(extra, tuple)
            return self._sliced(bits, *extra)
        passed = bits & masks[kind]
        if kind == MULTIPLY:
            passed |= (bits & masks[-1]) * (TIMES // NEAR)
        elif kind == COMPARE:
            passed |= (bits & masks[-1]) * (TEST // NEAR)
        return passed

    def _sliced(self, bits: int, offset: int, size: int, whole: int) -> int:
        """Of values of ``whole`` bytes those from ``offset`` on."""
        passed = bits & self._masks[SLICE]
        for number in numbers(bits, HELD):
            param, start, width = self.tokens[number]
            if width == whole:
                self.sliced.add(number)
                passed &= ~(_ALL << _WIDTH * number)
                passed |= _SEED << _WIDTH * self.number(Token(param, start + offset, size))
        return passed


def poured(
    start: Mapping[_Node, int], edges: Mapping[_Node, Iterable[_Node]], holdable: Callable[[_Node], int] | None = None
) -> dict[_Node, int]:
    """The sets of bits ``start``, poured along ``edges`` until nothing changes; into each node only what is
    ``holdable`` there."""
    bits = dict(start)
    waiting = list(start)
    while waiting:
        source = waiting.pop()
        for target in edges.get(source, ()):
            new = bits[source] & ~bits.get(target, 0) & (-1 if holdable is None else holdable(target))
            if new:
                bits[target] = bits.get(target, 0) | new
                waiting.append(target)
    return bits


@lru_cache(maxsize=1024)
def numbers(bits: int, wanted: int) -> tuple[int, ...]:
    """The tokens in a node's state that have one of the bits ``wanted``, by number."""
    return tuple(_numbers(bits, wanted))


def _numbers(bits: int, wanted: int) -> Iterator[int]:
    number = 0
    while bits:
        skipped = ((bits & -bits).bit_length() - 1) // _WIDTH
        bits >>= _WIDTH * skipped
        number += skipped
        if bits & wanted:
            yield number
        bits >>= _WIDTH
        number += 1
