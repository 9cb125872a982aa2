"""Footprints of random programs against the oracle, which runs them a thread at a time and notes what each touches.

Programs are those of ``tests.oracle.programs``, but most of their registers begin with numbers that the thread's index
makes; the others come out of memory, and what hangs on them must be left open. Buffers are too short for some. Graphs
are those of ``tests.devices.cpu.test_random_programs``: blocks that lead anywhere.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from teenycli.devices.cpu import registry
from teenycli.dtypes import DTYPES
from teenycli.footprint import Trace
from teenycli.launch.plan import Address, Argument, Buffer, Field, Launch, Plan
from teenycli.ptx import code_of, outline
from teenycli.ptx.isa import Form
from teenycli.ptx.layout import layout
from teenycli.ptx.model import Module, Source
from tests.devices.cpu import test_random_programs as graphs
from tests.devices.cpu.kit import HEAD
from tests.footprint.kit import read, traced, written
from tests.oracle import programs
from tests.oracle.machine import Grid, run
from tests.oracle.meaning import Bits
from tests.oracle.memory import Memory

pytestmark = pytest.mark.unit

OUT = programs.ROW + programs.ROOM
THREADS = 40
_SHIFT = 32


@dataclass(slots=True)
class Diary(Memory):
    """Memory that notes which bytes of each region are read and written; what lies outside is lost and noted."""

    read: dict[int, set[int]] = field(default_factory=dict)
    written: dict[int, set[int]] = field(default_factory=dict)
    missed: set[tuple[int, int, bool]] = field(default_factory=set)

    def load(self, address: int, size: int) -> Bits:
        number, at = address >> _SHIFT, address & (1 << _SHIFT) - 1
        if self._note(self.read, number, at, size, False):
            return Memory.load(self, address, size)
        return None

    def store(self, address: int, size: int, value: Bits) -> None:
        number, at = address >> _SHIFT, address & (1 << _SHIFT) - 1
        if self._note(self.written, number, at, size, True):
            Memory.store(self, address, size, value)

    def _note(self, diary: dict[int, set[int]], number: int, at: int, size: int, writes: bool) -> bool:
        if at + size > len(self.regions[number]):
            self.missed.add((number, at, writes))
            return False
        diary.setdefault(number, set()).update(range(at, at + size))
        return True


def supports(form: Form, mods: Mapping[str, str]) -> bool:
    return registry.supports_mods(form.opcode, dict(mods))


def program(name: str, seeds: list[int], rng: random.Random) -> str:
    """A program whose registers are made of the thread's index, all but some."""
    text = programs.program(name, seeds, warps=False, supports=supports)
    lines, chance = [], rng.choice([0.5, 0.8, 1])
    for line in text.splitlines():
        loaded = re.fullmatch(r"ld\.global\.(b16|b32|b64|b8) (%[hrdc]\d), \[%in\+\d+\];", line)
        tested = re.fullmatch(r"ld\.global\.u8 %t, \[%in\+\d+\];", line)
        if loaded and rng.random() < chance:
            lines.append(_made(loaded[1], loaded[2], rng))
        elif tested and rng.random() < chance:
            lines.append(f"shr.u32 %t, %i, {rng.randrange(6)};")
        else:
            lines.append(line)
    return "\n".join(lines)


def _made(type: str, register: str, rng: random.Random) -> str:
    """A number of the thread's."""
    factor = rng.choice([1, 3, 4, 0x10001, 0x89ABCDEF])
    made = f"mad.lo.u32 %t, %i, {factor}, {rng.choice([0, 1, 8, rng.getrandbits(32)])};"
    if type == "b64":
        return f"{made} mul.wide.u32 {register}, %t, {rng.choice([1, 8, 0xFEDCBA98])};"
    return made + {"b32": f"mov.b32 {register}, %t;", "b16": f"cvt.u16.u32 {register}, %t;",
                   "b8": f"cvt.u8.u32 {register}, %t;"}[type]  # fmt: skip


def plan_of(module: Module, sizes: Mapping[str, int], ctas: int) -> Plan:
    """A launch over buffers of bytes."""
    (entry,) = module.entries
    buffers = tuple(Buffer(name, DTYPES["u8"], (size,), "output") for name, size in sizes.items())
    args = tuple(
        Argument(slot.index, name, "ptr", 8, (Field("ptr", Address(name)),), slot.offset)
        for slot, name in zip(layout(entry, 100), sizes, strict=True)
    )
    return Plan(
        "op", {}, "k.ptx", entry.name, buffers, (Launch("op", 0, entry.name, (ctas, 1, 1), (THREADS, 1, 1), args),)
    )


@dataclass(frozen=True)
class Outcome:
    """How often it was known where a buffer is read or written, how often exactly, and how much was said to miss."""

    known: int = 0
    exact: int = 0
    misses: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(self.known + other.known, self.exact + other.exact, self.misses + other.misses)


@contextmanager
def doubts() -> Iterator[list[bool]]:
    """What walks say of whether the accesses that they note happen."""
    sure: list[bool] = []

    def touch(trace: Trace, *args: Any) -> None:
        sure.append(args[-1])
        noted(trace, *args)

    with pytest.MonkeyPatch.context() as patch:
        noted = Trace.touch
        patch.setattr(Trace, "touch", touch)
        yield sure


def compare(text: str, sizes: Mapping[str, int], ctas: int, seed: int) -> Outcome:
    """A kernel over buffers of so many bytes, in the order of its parameters."""
    module = outline(Source("k.ptx", text))
    (entry,) = module.entries
    memory, rng = Diary(), random.Random(seed)
    places = {name: memory.add([rng.getrandbits(8) for _ in range(size)]) >> _SHIFT for name, size in sizes.items()}
    given = [(number << _SHIFT).to_bytes(8, "little") for number in places.values()]
    given_up = run(code_of(module, entry), memory, Grid(ctas, THREADS, given), {})
    with doubts() as sure:
        trace = traced(plan_of(module, sizes, ctas), module, entry, layout(entry, 100), 10**9)
    assert trace.complete
    known = exact = 0
    for name, number in places.items():
        touched = trace.buffers[name]
        reads = touched.read_anywhere, read(trace, name), memory.read
        writes = touched.written_anywhere, written(trace, name), memory.written
        for anywhere, said, diary in (reads, writes):
            seen = diary.get(number, set())
            assert anywhere or seen <= said, f"{name}: {sorted(seen - said)} too\n{text}"
            known += not anywhere
            if not anywhere and all(sure) and not given_up:
                assert seen == said, f"{name}: never {sorted(said - seen)}\n{text}"
                exact += 1
    if not given_up:
        _check_misses(trace, memory, places, text, all(sure))
    return Outcome(known, exact, len(trace.misses))


def _check_misses(trace: Trace, memory: Diary, places: Mapping[str, int], text: str, sure: bool) -> None:
    """Each that is said happens, and where nothing is left open, no guard either, each that happens is said."""
    for miss in trace.misses.values():
        assert miss.problem == "bounds"
        assert miss.buffer is not None
        bytes_of = {(places[miss.buffer], miss.offset + k, miss.writes) for k in range(miss.size)}
        # An atomic that misses is known by its load.
        bytes_of |= {(number, at, False) for number, at, _ in bytes_of if miss.op.opcode in ("atom", "red")}
        assert bytes_of & memory.missed, f"{miss}\n{text}"
    if sure and not any(t.read_anywhere or t.written_anywhere for t in trace.buffers.values()):
        assert bool(memory.missed) <= bool(trace.misses), text


def compare_programs(seed: int) -> Outcome:
    """One module of up to three programs."""
    rng = random.Random(seed)
    lengths = [rng.choice([1, 2, 4, 8, 14]) for _ in range(rng.randrange(1, 4))]
    texts = [program(f"P{k}", [rng.getrandbits(40) for _ in range(length)], rng) for k, length in enumerate(lengths)]
    # By whole vectors: of one that is cut the oracle sees some elements.
    short = rng.choice([0, 0, 0, 16, programs.ROOM, OUT * 3])
    sizes = {"inputs": 64 * programs.ROW, "outputs": len(texts) * THREADS * OUT - short}
    return compare(programs.module(texts, head=HEAD, clean=True), sizes, len(texts), seed)


def compare_graph(seed: int) -> Outcome:
    """Blocks that lead anywhere, and end when their fuel is spent."""
    text = f"{HEAD}{graphs.ptx(graphs.make(seed), 'kernel')}"
    return compare(text, {"out": 2 * THREADS * 32, "table": 256}, 2, seed)


@pytest.mark.parametrize("first", [0, 30])
def test_random_programs(first: int) -> None:
    total = sum(map(compare_programs, range(first, first + 30)), Outcome())
    assert total.known > 80
    assert total.exact > 60
    assert total.misses > 5


def test_random_graphs() -> None:
    total = sum(map(compare_graph, range(10)), Outcome())
    assert total.known > 10
    assert total.exact > 8


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 5000, 100))
def test_many_random_programs(first: int) -> None:
    sum(map(compare_programs, range(first, first + 100)), Outcome())


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 20))
def test_many_random_graphs(first: int) -> None:
    sum(map(compare_graph, range(first, first + 20)), Outcome())
