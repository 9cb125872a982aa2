"""Which entry an impl of ``RuntimeOp`` is launched with: by their names, or as the user says.

May import ``errors`` and ``rust``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from teenycli.checks.visits import Target
from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.rust.model import Impl

#: Words of names that say what a thing is, and nothing of which op: of ``SoftmaxRuntimeOp``, ``softmax_entry_point``.
_ROLES = {"runtime", "op", "rt", "kernel", "forward", "fwd", "backward", "bwd", "entry", "point", "impl"}
#: Words that tell builds of one op apart.
_BUILDS = {"cuda", "triton", "f16", "bf16", "f32", "f64", "fp16", "fp32", "i32", "i64"}
_BACKWARD = {"backward", "bwd"}
_LISTED = 12


class Candidate(Struct, frozen=True):
    """An entry that an impl may be launched with. ``name`` is how messages and ``--entry`` call it, ``names`` what it
    is called by source, file or manifest."""

    name: str
    names: tuple[str, ...]
    backward: bool
    target: Target


class Side(Struct, frozen=True):
    """An impl's forward or backward; ``name`` is ``Softmax``, or ``Softmax.backward``."""

    impl: Impl
    backward: bool

    @property
    def name(self) -> str:
        return f"{self.impl.name}.backward" if self.backward else self.impl.name


def is_backward(name: str) -> bool:
    """Whether an entry's name says that it is a backward."""
    return not _BACKWARD.isdisjoint(_words(name))


def sides(impls: Iterable[Impl]) -> list[Side]:
    """Every side of the impls that packs arguments."""
    return [Side(impl, backward) for impl in impls for backward in (False, True) if impl.side(backward)]


def chosen(options: Iterable[str], found: Sequence[Side]) -> tuple[dict[str, str], set[str]]:
    """The values of ``--entry``: entries by the side that they are for (``Softmax=softmax_kernel``), and bare names.

    Raises TeenyError ``rust-entry`` for a side that is not there.
    """
    pinned: dict[str, str] = {}
    bare: set[str] = set()
    names = [side.name for side in found]
    for option in options:
        side, equals, entry = option.partition("=")
        if not equals:
            bare.add(option)
            continue
        if side not in names:
            hint = did_you_mean(side, names) or f"there are {_list(names)}"
            message = f"no impl of RuntimeOp is called '{side}'"
            raise TeenyError("rust-entry", message, where=Place(key=f"--entry {option}"), hint=hint)
        pinned[side] = entry
    return pinned, bare


def pairs(
    found: Sequence[Side], candidates: Sequence[Candidate], options: Iterable[str], where: Place, *, alone: bool
) -> list[tuple[Side, Candidate | None]]:
    """Each side with its entry, None where nothing is called like it. Where ``alone`` is set, the only side of a
    direction and the only candidate for it belong together whatever their names.

    Raises TeenyError ``unknown-entry`` and ``rust-entry``: for an option that names nothing, for a side that several
    entries are called like, and when no side has an entry.
    """
    pinned, bare = chosen(options, found)
    for name in (*pinned.values(), *bare):
        _named(name, candidates)
    left = [each for each in candidates if not bare or each.name in bare]
    counts = Counter(side.backward for side in found)
    single = {backward for backward, count in counts.items() if alone and count == 1}
    paired = list(_paired(found, candidates, left, pinned, single, where))
    if not any(candidate for _, candidate in paired):
        raise _unpaired("no entry is called like an impl", found, left, where)
    return paired


def _paired(
    found: Sequence[Side],
    candidates: Sequence[Candidate],
    left: Sequence[Candidate],
    pinned: Mapping[str, str],
    single: Container[bool],
    where: Place,
) -> Iterator[tuple[Side, Candidate | None]]:
    for side in found:
        if side.name in pinned:
            yield side, _named(pinned[side.name], candidates)
            continue
        same = [each for each in left if each.backward is side.backward]
        alike = _alike(side, same) or (same if side.backward in single and len(same) == 1 else [])
        if len({(each.target.compiled.module.source.name, each.target.compiled.entry.name) for each in alike}) > 1:
            raise _unpaired(f"{len(alike)} entries are called like {side.name}", [side], alike, where)
        yield side, alike[0] if alike else None


def _alike(side: Side, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that are called like the side: by the same words, else by the same words less what tells builds
    apart."""
    for left_out in (_ROLES, _ROLES | _BUILDS):
        key = _key(side.impl.name, left_out)
        alike = [each for each in candidates if key and key in {_key(name, left_out) for name in each.names}]
        if alike:
            return alike
    return []


def _named(name: str, candidates: Sequence[Candidate]) -> Candidate:
    names = [each.name for each in candidates]
    if name in names:
        return candidates[names.index(name)]
    hint = did_you_mean(name, names) or f"there are {_list(names)}"
    raise TeenyError("unknown-entry", f"there is no entry '{name}'", where=Place(key=f"--entry {name}"), hint=hint)


def _unpaired(message: str, found: Sequence[Side], candidates: Sequence[Candidate], where: Place) -> TeenyError:
    entries = [each.name for each in candidates]
    example = f"--entry {found[0].name}={entries[0] if entries else 'NAME'}" if found else "--entry NAME"
    note = f"impls: {_list([side.name for side in found])}; entries: {_list(entries)}"
    return TeenyError("rust-entry", message, where=where, hint=f"say which belong together: {example}", note=note)


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return (", ".join(names[:_LISTED]) or "none") + more


def _words(name: str) -> list[str]:
    """The words of a CamelCase or snake_case name, in small letters."""
    return [word.lower() for word in re.findall(r"[A-Z][a-z0-9]*|[a-z0-9]+", name)]


def _key(name: str, left_out: set[str]) -> str:
    return "".join(word for word in _words(name) if word not in left_out)
