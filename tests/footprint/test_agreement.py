"""What is said of memory from the PTX alone, against what kernels do when they run: ``ptx.usage`` of each parameter,
and the ``footprint`` of each buffer, for all ops of the repository's manifest and of that of unseen kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from teenycli.arch import parse_target
from teenycli.devices.contents import initial_arrays
from teenycli.devices.cpu import CpuDevice
from teenycli.devices.execute import execute
from teenycli.footprint import Trace
from teenycli.launch.cases import Dims, cases_of
from teenycli.launch.plan import Address, Argument, Buffer, Launch, Plan, TensorMap
from teenycli.manifest.spec import OpSpec
from teenycli.ptx import code_of
from teenycli.ptx.layout import layout
from teenycli.ptx.model import Function, Module
from teenycli.ptx.usage import Usage, Use, usage_of
from tests.commands.teeny import ROOT
from tests.footprint.kit import traced
from tests.footprint.witness import Array, Arrays, Log, Witnessed, ran, refuses, witnessed
from tests.mutants.subjects import Subjects

pytestmark = pytest.mark.device

MANIFESTS = {"ops": ROOT / "ops.toml", "unseen": ROOT / "tests" / "unseen" / "unseen.toml"}
#: Elements of all buffers of a case, up to which it is among the quick ones.
QUICK = 40_000
#: Operations on lanes: no footprint here takes as many.
WORK = 10**11
#: What no case brings about: how by op, parameter and offset. This one's factor of what was there is 0.
NEVER = {("bgemm_shared_weight", 2, 0, "reads")}


@cache
def subjects(manifest: str) -> Subjects:
    return Subjects(MANIFESTS[manifest], Path())


def _targets() -> Iterator[tuple[str, str, bool]]:
    for manifest in MANIFESTS:
        for name, spec in subjects(manifest).ops.items():
            yield from ((manifest, name, backward) for backward in (False, True)[: 1 + (spec.backward is not None)])


TARGETS = list(_targets())


@dataclass(frozen=True)
class Run:
    """One case: what is said of it, and what happened."""

    plan: Plan
    trace: Trace
    log: Log
    #: Buffers that are read, and written, by what keeps no log.
    read: frozenset[str]
    written: frozenset[str]

    def reads(self, name: str) -> bool:
        return bool(self.log.read[name].any()) or name in self.read

    def writes(self, name: str) -> bool:
        return bool(self.log.written[name].any()) or name in self.written


def before(of: Subjects, spec: OpSpec, case: Dims, plan: Plan) -> dict[str, Array]:
    """What the buffers of a plan hold at first; for a backward what the forward leaves."""
    given: Arrays = {}
    if plan.backward:
        forward = of.modules.plan(spec, case, False)
        arrays = initial_arrays(spec, forward, 0)
        with CpuDevice(threads=1) as device:
            left = execute(forward, of.modules.of(spec), device, arrays, everything=True).arrays
        given = {name: left.get(name, array) for name, array in arrays.items() if _has(plan, name)}
    return initial_arrays(spec, plan, 0, given)


def _has(plan: Plan, name: str) -> bool:
    return any(buffer.name == name for buffer in plan.buffers)


def run(of: Subjects, spec: OpSpec, case: Dims, backward: bool) -> Run:
    """One case on the CPU device, and its footprint."""
    plan, module = of.modules.plan(spec, case, backward), of.modules.of(spec.kernel(backward))
    entry = next(entry for entry in module.entries if entry.name == plan.entry)
    trace = traced(plan, module, entry, layout(entry, parse_target(module.target).sm), WORK)
    arrays = before(of, spec, case, plan)
    kernel = witnessed(module, entry, len(plan.buffers))
    log = ran(plan, kernel, arrays)
    read, written = (
        frozenset(b.name for b in plan.buffers if kernel.unseen and refuses(plan, module, arrays, b.name, column))
        for column in (1, 2)
    )
    for buffer in plan.buffers:
        if buffer.role == "output" and buffer.init is None and not log.read[buffer.name].any() and not kernel.unseen:
            changed = poisoned(plan, kernel, arrays, buffer)
            assert (changed == log.written[buffer.name]).all(), buffer.name
    return Run(plan, trace, log, read, written)


def poisoned(plan: Plan, kernel: Witnessed, arrays: Arrays, buffer: Buffer) -> Array:
    """The elements of an output that differ from what was there before, in one of two runs over different bytes."""
    changed = np.zeros(buffer.nbytes // buffer.dtype.size, np.bool_)
    for byte in (0xA5, 0x5A):
        array = np.ascontiguousarray(arrays[buffer.name]).copy()
        array.reshape(-1).view(np.uint8)[:] = byte
        after = ran(plan, kernel, {**arrays, buffer.name: array}).after[buffer.name]
        changed |= (after.reshape(-1, buffer.dtype.size) != _pattern(buffer, byte)).any(axis=1)
    return changed


def _pattern(buffer: Buffer, byte: int) -> Array:
    """What is in memory at first, zeros between rows."""
    count, elems, stride = buffer.rows
    memory = np.zeros((count, stride, buffer.dtype.size), np.uint8)
    memory[:, :elems] = byte
    return memory.reshape(-1, buffer.dtype.size)


# --- footprints ------------------------------------------------------------------------------------------------------


def check_footprint(one: Run) -> None:
    """Never an element too many, never one too few; what misses is a fault, and there was none."""
    assert one.trace.complete
    assert not one.trace.misses
    for name, touched in one.trace.buffers.items():
        assert touched.read is not None
        assert touched.written is not None
        unread, unwritten = one.log.read[name] & ~touched.read, one.log.written[name] & ~touched.written
        assert touched.read_anywhere or not (unread.any() or name in one.read), f"{name} is read elsewhere too"
        assert touched.written_anywhere or not (unwritten.any() or name in one.written), f"{name} is written elsewhere"
        # No guard of these kernels hangs on data alone, but where they blur: what is covered is touched.
        assert not (touched.read & ~one.log.read[name]).any(), f"{name} is not read there"
        assert not (touched.written & ~one.log.written[name]).any(), f"{name} is not written there"


# --- usage -----------------------------------------------------------------------------------------------------------


def usages(module: Module, entry: Function) -> tuple[Usage, ...]:
    return usage_of(code_of(module, entry))


def pointers(launch: Launch, used: tuple[Usage, ...]) -> Iterator[tuple[str, tuple[int, int], Use]]:
    """The buffers that arguments point to, each with its place (parameter, offset) and what the kernel does there."""
    for argument in launch.args:
        if argument.offset is not None:
            for item in argument.fields:
                if isinstance(item.value, Address | TensorMap) and item.value.buffer is not None:
                    yield item.value.buffer, (argument.index, item.offset), _use(argument, item.offset, used)


def _use(argument: Argument, offset: int, used: tuple[Usage, ...]) -> Use:
    whole = used[argument.index]
    if len(argument.fields) == 1:
        return whole
    return whole.part(offset) or Use(escaped=whole.escaped)


def check_usage(runs: list[Run], used: tuple[Usage, ...]) -> None:
    """What is read or written through a parameter is said to be, and what is said for certain happens in some case."""
    said: dict[tuple[int, int], Use] = {}
    did: dict[tuple[int, int], set[str]] = defaultdict(set)
    for one in runs:
        through: dict[str, list[Use]] = defaultdict(list)
        for launch in one.plan.launches:
            for name, place, use in pointers(launch, used):
                through[name].append(use)
                said[place] = use
                did[place] |= {how for how, does in (("reads", one.reads), ("writes", one.writes)) if does(name)}
        for buffer in one.plan.buffers:
            uses = through[buffer.name]
            assert not one.reads(buffer.name) or any(use.reads or use.opaque for use in uses), f"{buffer.name} is read"
            assert not one.writes(buffer.name) or any(use.writes or use.opaque for use in uses), (
                f"{buffer.name} written"
            )
    for place, use in said.items():
        for how, certain in (("reads", use.reads), ("writes", use.writes)):
            never = (runs[0].plan.op, *place, how) in NEVER
            assert (how in did[place]) is (certain and not never) or use.opaque, f"{place} {how}: {certain}"


# --- the tests -------------------------------------------------------------------------------------------------------


def _cases(of: Subjects, spec: OpSpec, backward: bool, quick: bool) -> Iterator[Dims]:
    for case in cases_of(spec):
        size = sum(buffer.size for buffer in of.modules.plan(spec, case, backward).buffers)
        if (size <= QUICK) is quick:
            yield case


def _check(manifest: str, name: str, backward: bool, cases: list[Dims]) -> None:
    of = subjects(manifest)
    spec = of.ops[name]
    runs = [run(of, spec, case, backward) for case in cases]
    for one in runs:
        check_footprint(one)
    if runs:
        module = of.modules.of(spec.kernel(backward))
        check_usage(runs, usages(module, next(e for e in module.entries if e.name == runs[0].plan.entry)))


@pytest.mark.parametrize(("manifest", "name", "backward"), TARGETS)
def test_an_op_does_what_is_said_of_it(manifest: str, name: str, backward: bool) -> None:
    of = subjects(manifest)
    cases = list(_cases(of, of.ops[name], backward, quick=True))
    assert cases
    _check(manifest, name, backward, cases)


@pytest.mark.slow
@pytest.mark.parametrize(("manifest", "name", "backward"), TARGETS)
def test_an_op_does_what_is_said_of_it_at_large_dims(manifest: str, name: str, backward: bool) -> None:
    of = subjects(manifest)
    _check(manifest, name, backward, list(_cases(of, of.ops[name], backward, quick=False)))
