"""Which dims an op is probed at: small distinct primes, so that no two sizes pass for each other.

May import ``errors``, ``launch``, ``manifest.spec``, ``ptx.model``, ``devices.execute``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from msgspec import Struct, field
from msgspec.structs import replace

from teenycli.arch import Limits
from teenycli.devices.execute import check_limits
from teenycli.errors import TeenyError
from teenycli.launch.backward import plan_backward
from teenycli.launch.build import plan_case
from teenycli.launch.cases import Dims, Overrides, case_dims, cases_of, dim_names
from teenycli.launch.plan import Launch, Plan
from teenycli.manifest.spec import DimSpec, OpSpec
from teenycli.ptx.model import Module

#: Most elements of all buffers together, at dims of our choice and at the op's own; most threads of all launches.
CHOSEN_ELEMENTS, OWN_ELEMENTS, THREADS = 1 << 15, 1 << 17, 1 << 20
#: Most elements of the op's own dims when no others are possible.
LAST_ELEMENTS = 1 << 21
#: Largest number of threads, or const, that a dim is stretched past.
_SPAN = 2048
#: Which plan, and what two arguments of it are called.
Pairs = frozenset[tuple[int, str, str]]
#: Shuffles of the dims that are tried for one where no two arguments are equal.
_SHUFFLES = 6
#: Most assignments of dims, of those that can be launched, among which the best is taken.
_TRIES = 6


class Case(Struct, frozen=True):
    """Dims that can be planned: the plans of the forward and, where there is one, of the backward.

    ``own`` says that they are the op's own, and not of our choice; ``faint`` that random inputs are to be small, as
    those are beside which an epsilon counts.
    """

    dims: Mapping[str, int]
    plans: tuple[Plan, ...]
    own: bool = False
    faint: bool = False

    @property
    def shown(self) -> str:
        """The dims in words, and what else is special."""
        parts = [f"{name}={value}" for name, value in self.dims.items()]
        return ", ".join([*parts, "inputs below 2^-8"] if self.faint else parts)


class Planner(Struct):
    """Plans an op at dims, and remembers why it could not (``refusal``)."""

    spec: OpSpec
    modules: Sequence[Module]
    overrides: Overrides
    limits: Limits
    refusal: TeenyError | None = None
    _known: dict[tuple[tuple[str, int], ...], tuple[Plan, ...] | None] = field(default_factory=dict)

    def at(self, dims: Mapping[str, int], elements: int, *, own: bool = False) -> Case | None:
        """The case of ``dims``; None where it cannot be launched, or takes more than so many ``elements``."""
        dims = dict(dims) | {name: value for name, value in self.overrides.dims.items() if name in dims}
        plans = self._plans(dims)
        if plans is None or any(_elements(plan) > elements or _threads(plan) > THREADS for plan in plans):
            return None
        return Case(dims, plans, own)

    def _plans(self, dims: Dims) -> tuple[Plan, ...] | None:
        key = tuple(dims.items())
        if key not in self._known:
            try:
                self._known[key] = self._planned(dims)
            except TeenyError as error:
                self.refusal = error
                self._known[key] = None
        return self._known[key]

    def _planned(self, dims: Dims) -> tuple[Plan, ...]:
        forward = plan_case(self.spec, dims, self.modules[0], self.overrides)
        plans: tuple[Plan, ...] = (forward,)
        if len(self.modules) > 1:
            plans += (plan_backward(self.spec, dims, self.modules[1], self.overrides),)
        for plan in plans:
            for launch in plan.launches:
                check_limits(launch, self.limits)
        return plans


def _elements(plan: Plan) -> int:
    return sum(buffer.size for buffer in plan.buffers)


def _threads(plan: Plan) -> int:
    return sum(launch.ctas * launch.threads for launch in plan.launches)


def cases(planner: Planner) -> Iterator[Case]:
    """Where to look, cheap ones first: dims of our choice, then those of the op's own that are small.

    Of our choice are: all dims tiny, where floats are passed by value with faint inputs, too; then as many of them
    longer as it takes to have three CTAs along each axis of the grid; then each of the others, one at a time, longer
    than two CTAs have threads.
    """
    every = cases_of(planner.spec, planner.overrides)
    seen: list[Mapping[str, int]] = []
    for case in _chosen(planner):
        # Of equal ones the op's own stay, whose findings nobody can doubt.
        if case.dims not in (*every, *seen):
            seen.append(case.dims)
            yield case
            if len(seen) == 1 and _takes_floats(case):
                yield replace(case, faint=True)
    for case in own_cases(planner):
        seen.append(case.dims)
        yield case
    if not seen:
        rest = (planner.at(dims, LAST_ELEMENTS, own=True) for dims in every)
        yield from [case for case in rest if case is not None][:1]


def _takes_floats(case: Case) -> bool:
    """Whether a kernel is passed a float by value."""
    args = (arg for plan in case.plans for launch in plan.launches for arg in launch.args)
    return any(isinstance(item.value, float) for arg in args for item in arg.fields)


def own_cases(planner: Planner) -> Iterator[Case]:
    """Those of the op's own that are small."""
    for dims in cases_of(planner.spec, planner.overrides):
        case = planner.at(dims, OWN_ELEMENTS, own=True)
        if case is not None:
            yield case


def _chosen(planner: Planner) -> Iterator[Case]:
    tiny = _tiny(planner)
    if tiny is None:
        yield from _near(planner)
        return
    yield tiny
    wide = _wide(planner, tiny)
    yield wide
    span = _span(tiny)
    for name in _free(planner):
        if max(tiny.dims[name], wide.dims[name]) <= 2 * span:
            longer = (_longer(planner, tiny, name, past) for past in (2 * span, span, 64, 32))
            stretched = next((case for case in longer if case is not None), None)
            if stretched is not None:
                yield stretched


def _free(planner: Planner) -> dict[str, DimSpec]:
    """The dims that are ours to choose."""
    spec = planner.spec
    names = [*spec.dims, *sorted(dim_names(spec) - spec.dims.keys())]
    return {name: spec.dims.get(name, DimSpec()) for name in names if name not in planner.overrides.dims}


def _tiny(planner: Planner) -> Case | None:
    """All dims as small as can be, of several ways the one where the fewest arguments are equal."""
    found: list[tuple[Pairs, Case]] = []
    for dims in _assignments(_free(planner)):
        case = planner.at(case_dims(planner.spec, None, planner.overrides) | dims, CHOSEN_ELEMENTS)
        if case is None:
            continue
        found.append((_equal_arguments(case), case))
        best = min(found, key=lambda each: len(each[0]))
        # What is equal however the dims are chosen cannot be helped.
        always = frozenset.intersection(*(equal for equal, _ in found))
        if not best[0] or len(found) == _TRIES or (len(found) > 1 and best[0] == always):
            return best[1]
    return min(found, key=lambda each: len(each[0]))[1] if found else None


def _near(planner: Planner) -> Iterator[Case]:
    """For an op that takes no tiny dims: its own, all of them or one at a time, each a little longer."""
    free, own = _free(planner), case_dims(planner.spec, None, planner.overrides)
    taken: set[int] = set()
    longer = {name: _prime_size(free[name], own[name] // free[name].multiple_of + 1, taken)
              for name in free if name in own}  # fmt: skip
    for dims in (longer, *({name: value} for name, value in longer.items())):
        case = planner.at(own | dims, OWN_ELEMENTS)
        if case is not None:
            yield case


def _assignments(free: Mapping[str, DimSpec]) -> Iterator[Dims]:
    shuffles = random.Random(0)  # the same in every run
    names = list(free)
    orders = [names, names[::-1], *(shuffles.sample(names, len(names)) for _ in range(_SHUFFLES))]
    for first in (3, 2, 5):
        for order in orders:
            taken: set[int] = set()
            yield {name: _prime_size(free[name], first, taken) for name in order}


def _prime_size(dim: DimSpec, first: int, taken: set[int]) -> int:
    """A prime from ``first`` on that is not ``taken`` yet, times what the dim is a multiple of; it is taken then.

    Where the dim's bounds leave none, the value that comes closest.
    """
    number = max(first, -(-dim.min // dim.multiple_of))
    top = dim.max // dim.multiple_of if dim.max is not None else None
    while not _is_prime(number) or number in taken:
        number += 1
    if top is not None and number > top:
        number = next((n for n in range(top, 1, -1) if _is_prime(n) and n not in taken), max(top, 1))
    taken.add(number)
    return number * dim.multiple_of


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def _equal_arguments(case: Case) -> Pairs:
    """Each two integer arguments of a launch that are written differently, and equal."""
    return frozenset(
        (which, a, b)
        for which, plan in enumerate(case.plans)
        for equal in _by_value(plan.launches[0]).values()
        for a, b in combinations(sorted(equal), 2)
    )


def _by_value(launch: Launch) -> dict[int, set[str]]:
    """How the integer arguments of each value are written; members of structs by their places."""
    values: dict[int, set[str]] = {}
    for argument in launch.args:
        for k, item in enumerate(argument.fields):
            if isinstance(item.value, int):
                written = argument.name if len(argument.fields) == 1 else f"{argument.index}.{k}"
                values.setdefault(item.value, set()).add(written)
    return values


def _wide(planner: Planner, tiny: Case) -> Case:
    """``tiny`` with dims made longer until each axis of a grid has three CTAs, where that can be had."""
    case = tiny
    for which in range(len(tiny.plans)):
        for axis in range(len(planner.spec.kernel(bool(which)).grid or ())):
            if _ctas(case.plans[which], axis) < 3:
                longer = [_spread(planner, case, name, which, axis) for name in _free(planner)]
                found = [other for other in longer if other is not None]
                case = min(found, key=lambda other: sum(map(_elements, other.plans)), default=case)
    return case


def _ctas(plan: Plan, axis: int) -> int:
    return max(launch.grid[axis] for launch in plan.launches)


def _spread(planner: Planner, case: Case, name: str, which: int, axis: int) -> Case | None:
    """``case`` with the dim ``name`` longer, in powers of four, until plan ``which`` has three CTAs along ``axis``."""
    past = 16
    while past <= CHOSEN_ELEMENTS:
        other = _longer(planner, case, name, past)
        if other is None or _ctas(other.plans[which], axis) >= 3:
            return other
        past *= 4
    return None


def _longer(planner: Planner, case: Case, name: str, past: int) -> Case | None:
    """``case`` with the dim ``name`` a prime that no other is (times what it is a multiple of), longer than ``past``
    where it may be."""
    free = _free(planner)
    dim, taken = free[name], {case.dims[other] // free[other].multiple_of for other in free if other != name}
    value = _prime_size(dim, past // dim.multiple_of + 1, taken)
    if value <= case.dims[name]:
        return None
    return planner.at({**case.dims, name: value}, CHOSEN_ELEMENTS)


def _span(case: Case) -> int:
    """What a CTA may cover: its threads, or a const."""
    threads = [launch.threads for plan in case.plans for launch in plan.launches]
    consts = [value for plan in case.plans for value in plan.consts.values() if isinstance(value, int)]
    return min(max([*threads, *consts]), _SPAN)
