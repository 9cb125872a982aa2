"""What steps can come to: the ways through them, and which numbers of arguments they can give.

May import, in this room, ``model``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct, field

from teenycli.rust.model import Call, Choice, End, Never, Repeat, Spot, Steps, Unknown, Visit

#: Ways, and visits of one, that are written out.
_WAYS, _VISITS = 64, 1_024


def ways(steps: Steps) -> list[tuple[Visit, ...]] | None:
    """Each list of visits that the steps can come to; None where a loop, or what is unknown, leaves it open, or there
    are too many."""
    found = _ways(steps)
    return None if found is None else [visits for visits, _ in found]


def _ways(steps: Steps) -> list[tuple[tuple[Visit, ...], bool]] | None:
    """The ways, and whether each has ended the method."""
    open_: list[tuple[Visit, ...]] = [()]
    ended: list[tuple[Visit, ...]] = []
    for step in steps:
        if isinstance(step, Visit):
            open_ = [(*way, step) for way in open_]
        elif isinstance(step, End):
            open_, ended = [], ended + open_
        elif isinstance(step, Never):
            open_ = []
        elif isinstance(step, Choice | Call):
            parts = [_ways(inner) for inner in (step.ways if isinstance(step, Choice) else (step.steps,))]
            if None in parts:
                return None
            each = [(visits, end and isinstance(step, Choice)) for part in parts for visits, end in part or ()]
            if len(open_) * len(each) + len(ended) > _WAYS:
                return None
            ended += [(*way, *visits) for way in open_ for visits, end in each if end]
            open_ = [(*way, *visits) for way in open_ for visits, end in each if not end]
        else:
            return None
        if any(len(way) > _VISITS for way in open_):
            return None
    return [(way, False) for way in open_] + [(way, True) for way in ended]


class Reach(Struct):
    """Which arguments can have been passed after steps, where ``fits`` says whether a visit can be argument k.

    Arguments are counted up to ``limit``. Sound for loops and for what is unknown: a count that is not in the
    result cannot come about.
    """

    fits: Callable[[Visit, int], bool]
    limit: int
    _known: dict[tuple[int, int], tuple[frozenset[int], frozenset[int]]] = field(default_factory=dict)

    def counts(self, steps: Steps) -> frozenset[int]:
        """How many arguments all of the steps can have passed."""
        through, ended = self._all(steps, 0)
        return through | ended

    def _all(self, steps: Steps, start: int) -> tuple[frozenset[int], frozenset[int]]:
        """After the steps, when ``start`` arguments were passed before: where they go on, and where they ended."""
        key = id(steps), start
        if key not in self._known:
            at, ended = frozenset((start,)), frozenset[int]()
            for step in steps:
                parts = [self._one(step, k) for k in at]
                at = frozenset().union(*(through for through, _ in parts))
                ended = ended.union(*(end for _, end in parts))
            self._known[key] = at, ended
        return self._known[key]

    def _one(
        self, step: Visit | Choice | Repeat | Call | Unknown | End | Never, start: int
    ) -> tuple[frozenset[int], frozenset[int]]:
        nowhere = frozenset[int]()
        if isinstance(step, Visit):
            return (frozenset((start + 1,)) if start < self.limit and self.fits(step, start) else nowhere), nowhere
        if isinstance(step, Choice):
            parts = [self._all(way, start) for way in step.ways]
            return nowhere.union(*(through for through, _ in parts)), nowhere.union(*(end for _, end in parts))
        if isinstance(step, Call):
            through, ended = self._all(step.steps, start)
            return through | ended, nowhere
        if isinstance(step, Unknown):
            return frozenset(range(start, self.limit + 1)), nowhere
        if isinstance(step, Repeat):
            return self._turns(step, start)
        return nowhere, frozenset((start,)) if isinstance(step, End) else nowhere

    def _turns(self, step: Repeat, start: int) -> tuple[frozenset[int], frozenset[int]]:
        seen, new, ended = {start}, {start}, set[int]()
        while new:
            parts = [self._all(step.steps, k) for k in new]
            new = {k for through, _ in parts for k in through} - seen
            ended.update(*(end for _, end in parts))
            seen |= new
        return frozenset(seen), frozenset(ended)


def certain(steps: Steps) -> tuple[Visit, ...]:
    """The visits that come first whatever else happens."""
    found: list[Visit] = []
    for step in steps:
        if not isinstance(step, Visit):
            break
        found.append(step)
    return tuple(found)


def certain_last(steps: Steps) -> tuple[Visit, ...]:
    """The visits that come last whatever else happens: none where the method may return before them."""
    found = certain(tuple(reversed(steps)))
    return () if any(map(_may_end, steps)) else tuple(reversed(found))


def _may_end(step: object) -> bool:
    if isinstance(step, Choice):
        return any(_may_end(inner) for way in step.ways for inner in way)
    if isinstance(step, Repeat):
        return any(map(_may_end, step.steps))
    return isinstance(step, End)


def doubts(steps: Steps) -> Iterator[tuple[str, Spot]]:
    """What leaves the visits open: in words, and where."""
    for step in steps:
        if isinstance(step, Choice | Repeat | Unknown):
            yield step.what, step.at
        elif isinstance(step, Call):
            yield from doubts(step.steps)
