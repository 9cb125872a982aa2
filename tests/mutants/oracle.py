"""Does a mutant compute something else? It runs on the CPU device as the original does, and outputs are compared.

Outputs are held against each other bit by bit, at every case of the op; a fault counts as a change, and so does a
launch that cannot be laid out, or that a GPU refuses. Buffers hold what the manifest says, but params that would be
zeros are random. One thread runs all, so that the same launch gives the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from teenycli.arch import parse_target
from teenycli.devices.base import Kernel
from teenycli.devices.cpu import CpuDevice
from teenycli.devices.execute import execute
from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.launch.build import init_of
from teenycli.launch.cases import Dims, cases_of
from teenycli.launch.plan import Argument, Buffer, Plan, TensorMap, encode_scalar
from teenycli.manifest.spec import OpSpec
from teenycli.ptx.layout import layout
from teenycli.ptx.model import Module
from teenycli.tensors.arrays import fill
from teenycli.tensors.convert import raw_bytes
from tests.mutants.kinds import Mutant
from tests.mutants.subjects import Modules

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

#: Seconds that a launch may take: those of the originals take some milliseconds.
TIMEOUT = 5.0


@dataclass(frozen=True)
class Verdict:
    """Whether a mutant ``changes`` what is computed, and how that showed. ``ran`` says that it was executed, or did not
    have to be; where the device lacks an instruction only the launches were compared."""

    changes: bool
    why: str
    ran: bool = True


SAME_LAUNCHES = Verdict(False, "the same launches")


class Oracle:
    """Verdicts on mutants; the device and its kernels are kept from one to the next."""

    def __init__(self, modules: Modules, timeout: float = TIMEOUT) -> None:
        self.modules = modules
        self.timeout = timeout
        self.device = CpuDevice(threads=1)
        self._cases: dict[str, list[Dims]] = {}
        self._kernels: dict[tuple[int, str], Kernel | TeenyError] = {}
        self._originals: dict[tuple[str, tuple[tuple[str, int], ...], bool], tuple[Plan, Arrays, Arrays]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.device.close()

    def verdict(self, mutant: Mutant) -> Verdict:
        """Whether ``mutant`` computes what its original does, in every case."""
        verdict = SAME_LAUNCHES
        for case in self._cases_of(mutant.original):
            found = self._at(mutant, case)
            if found != SAME_LAUNCHES:
                verdict = found
            if found.changes:
                break
        return verdict

    def _cases_of(self, spec: OpSpec) -> list[Dims]:
        """The cases of an op, that of the smallest buffers first."""
        if spec.name not in self._cases:
            sizes = [sum(b.nbytes for b in self.modules.plan(spec, case, False).buffers) for case in cases_of(spec)]
            ordered = sorted(zip(sizes, cases_of(spec), strict=True), key=lambda pair: pair[0])
            self._cases[spec.name] = [case for _, case in ordered]
        return self._cases[spec.name]

    def _at(self, mutant: Mutant, case: Dims) -> Verdict:
        """The verdict at one case. What a forward shares with its backward may change that alone."""
        forward = self._original(mutant.original, case, False)[2]
        if mutant.backward:
            return self._compare(mutant, case, True, forward)[0]
        first, left = self._compare(mutant, case, False, {})
        if first.changes or mutant.spec.backward is None:
            return first
        second = self._compare(mutant, case, True, left or forward)[0]
        return second if second.changes or first == SAME_LAUNCHES else first

    def _compare(self, mutant: Mutant, case: Dims, backward: bool, given: Arrays) -> tuple[Verdict, Arrays]:
        """The verdict on a forward, or on a backward over what a forward left (``given``), and what this one leaves."""
        spec = mutant.spec
        try:
            plan = self.modules.plan(spec, case, backward)
        except TeenyError as error:
            return Verdict(True, f"no plan: {error.finding.id}"), {}
        expected, before, after = self._original(mutant.original, case, backward)
        if what_runs(plan) == what_runs(expected):
            return SAME_LAUNCHES, {}
        module = self.modules.of(spec.kernel(backward))
        if not fits(plan, module):
            return Verdict(True, "cannot be laid out"), {}
        if refused(plan, module):
            return Verdict(True, "a GPU refuses the launch"), {}
        try:
            mine, left = self._run(spec, plan, backward, given, (expected, before))
        except TeenyError as error:
            if error.exit is Exit.UNSUPPORTED:
                return Verdict(True, "other launches", ran=False), {}
            return Verdict(True, f"fault: {error.finding.id}"), {}
        return _difference(expected, plan, mine, left, after), left

    def _original(self, spec: OpSpec, case: Dims, backward: bool) -> tuple[Plan, Arrays, Arrays]:
        """Its plan, and its buffers before and after."""
        key = (spec.name, tuple(case.items()), backward)
        if key not in self._originals:
            given = self._original(spec, case, False)[2] if backward else {}
            plan = self.modules.plan(spec, case, backward)
            try:
                before, after = self._run(spec, plan, backward, given)
            except TeenyError as error:
                if error.exit is not Exit.UNSUPPORTED:
                    raise
                before, after = {}, {}
            self._originals[key] = plan, before, after
        return self._originals[key]

    def _run(
        self, spec: OpSpec, plan: Plan, backward: bool, given: Arrays, like: tuple[Plan, Arrays] | None = None
    ) -> tuple[Arrays, Arrays]:
        """All buffers before and after the launches. Raises what filling and the device raise."""
        module = self.modules.of(spec.kernel(backward))
        before = _initial(spec, plan, given, like)
        kernels = {launch.entry: self._kernel(module, launch.entry) for launch in plan.launches}
        done = execute(plan, module, self.device, before, timeout=self.timeout, everything=True, kernels=kernels)
        return before, done.arrays

    def _kernel(self, module: Module, entry: str) -> Kernel:
        key = (id(module), entry)
        if key not in self._kernels:
            try:
                self._kernels[key] = self.device.load(module, entry)
            except TeenyError as error:
                self._kernels[key] = error
        found = self._kernels[key]
        if isinstance(found, TeenyError):
            raise found
        return found


def _initial(spec: OpSpec, plan: Plan, given: Arrays, like: tuple[Plan, Arrays] | None) -> Arrays:
    """What each buffer of a plan holds at first: what is ``given``; what a buffer just like it of the other plan held;
    else what the manifest says, random for params that it leaves at zeros."""
    same = {} if like is None else {b.name: like[1][b.name] for b in like[0].buffers if b in plan.buffers and like[1]}
    arrays: dict[str, Array] = {}
    for buffer in plan.buffers:
        if buffer.name in given and plan.backward:
            arrays[buffer.name] = given[buffer.name]
            continue
        if buffer.name in same:
            arrays[buffer.name] = same[buffer.name]
            continue
        init = "random" if buffer.role == "param" and buffer.init is None else init_of(buffer)
        names = {**plan.case, **plan.consts, **plan.scalars, **{k: v for k, v in arrays.items() if " " not in k}}
        value = int(init) if isinstance(init, bool) else init
        arrays[buffer.name] = fill(value, buffer.dtype, buffer.shape, buffer.name, 0, spec.folder, names)
    return arrays


def _difference(original: Plan, plan: Plan, before: Arrays, left: Arrays, expected: Arrays) -> Verdict:
    """Outputs bit by bit, in the types that they have for the user; what is no output is as it was."""
    outputs = {buffer.name for buffer in original.buffers if buffer.is_output}
    if outputs != {buffer.name for buffer in plan.buffers if buffer.is_output}:
        return Verdict(True, "other outputs")
    for name, mine in left.items():
        other = expected[name] if name in outputs else before[name]
        if other.dtype != mine.dtype or other.shape != mine.shape:
            return Verdict(True, f"'{name}' is of another type or shape")
        wrong = _elements(mine) != _elements(other)
        if not wrong.any():
            continue
        if name not in outputs:
            return Verdict(True, f"'{name}' is written")
        untouched = (_elements(mine) == _elements(before[name]))[wrong].any()
        return Verdict(True, f"'{name}' is not written everywhere" if untouched else f"'{name}' has other values")
    return Verdict(False, "the same results")


def _elements(array: Array) -> npt.NDArray[np.void]:
    """The bytes of each element as one value."""
    return raw_bytes(array).view(f"V{array.itemsize}")


def fits(plan: Plan, module: Module) -> bool:
    """Whether there is an argument for each parameter, of its size, and room for every row of a buffer."""
    entry = next(entry for entry in module.entries if entry.name == plan.entry)
    slots = [slot.size for slot in layout(entry, 0)]
    args = all([argument.size for argument in launch.args] == slots for launch in plan.launches)
    return args and all(elems <= stride for _, elems, stride in (buffer.rows for buffer in plan.buffers))


def refused(plan: Plan, module: Module) -> bool:
    """Whether a GPU would not launch it, though the CPU device does: PTX ISA, "Performance-Tuning Directives" and
    "Cluster Dimension Directives"; clusters are of sm_90 and newer, and divide the grid."""
    entry = next(entry for entry in module.entries if entry.name == plan.entry)
    said = entry.directives
    return any(
        (said.reqntid is not None and launch.block != said.reqntid)
        or (said.maxntid is not None and launch.threads > prod(said.maxntid))
        or (said.reqnctapercluster is not None and launch.cluster != said.reqnctapercluster)
        or (prod(launch.cluster) > 1 and parse_target(module.target).sm < 90)
        or any(ctas % size for ctas, size in zip(launch.grid, launch.cluster, strict=True) if size > 0)
        for launch in plan.launches
    )


def what_runs(plan: Plan) -> tuple[object, ...]:
    """All of a plan that a device is given, by value: the same for two plans that do the same."""
    launches = tuple(
        (launch.entry, launch.grid, launch.block, launch.cluster, launch.shared, launch.cooperative, launch.pdl,
         tuple(map(_bytes_of, launch.args)))
        for launch in plan.launches
    )  # fmt: skip
    return plan.entry, launches, tuple(map(_memory_of, plan.buffers))


def _bytes_of(argument: Argument) -> tuple[object, ...]:
    def value(item: object, kind: str) -> object:
        if isinstance(item, TensorMap):
            return replace(item, name="")
        return encode_scalar(kind, item) if kind in DTYPES and isinstance(item, int | float) else item

    return argument.size, tuple((item.offset, value(item.value, item.kind)) for item in argument.fields)


def _memory_of(buffer: Buffer) -> tuple[object, ...]:
    return buffer.name, buffer.dtype.name, buffer.shape, buffer.role, buffer.init, buffer.output, buffer.rows
