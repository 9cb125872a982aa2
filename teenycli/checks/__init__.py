"""Rules over a plan, the entry it launches, and the limits of where it would run. No device is needed.

:func:`check` is all that the rooms above need. A rule is a generator of findings: over a :class:`Subject`, one launch
or over all launches of a plan. ``RULES`` lists them in the order in which their findings are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from teenycli.checks.arguments import argument_count, argument_kind, argument_width, parameter_bytes
from teenycli.checks.buffers import unused_buffers, unused_parameters
from teenycli.checks.data import globals_known, initial_data, row_strides
from teenycli.checks.direction import buffer_direction, outputs_read, with_directions
from teenycli.checks.elements import element_types
from teenycli.checks.geometry import (
    backward_grid,
    block_directives,
    block_limits,
    cluster_shape,
    compiled_consts,
    compiled_shared,
    grid_limits,
    shared_memory,
)
from teenycli.checks.gradients import gradients_asked_for
from teenycli.checks.memory import indices, largest_inputs, memory, traced
from teenycli.checks.occupancy import (
    cooperative_grid,
    cooperative_missing,
    register_file,
    resident_blocks,
    unread_axes,
    whole_warps,
)
from teenycli.checks.strides import index_reach, stride_values
from teenycli.checks.subject import Host, Subject, subjects_of
from teenycli.checks.swaps import with_swaps
from teenycli.checks.targets import driver_fits, target_fits, target_version
from teenycli.checks.tensormaps import tensor_maps
from teenycli.checks.values import extents_known, scalars_passed, values_fit
from teenycli.errors import Finding, Severity
from teenycli.launch.plan import Plan
from teenycli.manifest.spec import OpSpec
from teenycli.ptx.model import Module

if TYPE_CHECKING:
    from teenycli.footprint.lanes import Array

Rule = Callable[[Subject], Iterator[Finding]]
PlanRule = Callable[[Sequence[Subject]], Iterator[Finding]]

_ARGUMENTS: tuple[Rule, ...] = (argument_count, argument_width, argument_kind)
_BUFFERS: tuple[PlanRule, ...] = (buffer_direction,)
#: What arguments mean to the kernel: asked where each of them fits its parameter.
_MEANING: tuple[PlanRule, ...] = (unused_buffers, outputs_read)
_VALUES: tuple[Rule, ...] = (
    unread_axes, element_types, stride_values, extents_known, values_fit, index_reach, unused_parameters,
)  # fmt: skip
_GEOMETRY: tuple[Rule, ...] = (
    parameter_bytes, block_directives, block_limits, grid_limits, backward_grid, compiled_consts, cluster_shape,
    shared_memory, compiled_shared, register_file, resident_blocks, cooperative_grid, cooperative_missing, whole_warps,
    tensor_maps,
)  # fmt: skip
_TARGETS: tuple[PlanRule, ...] = (target_version, target_fits, driver_fits)
_DATA: tuple[PlanRule, ...] = (row_strides, initial_data, globals_known, gradients_asked_for, scalars_passed)
RULES = (*_TARGETS, *_ARGUMENTS, *_BUFFERS, *_MEANING, *_VALUES, *_GEOMETRY, *_DATA)

#: Operations on threads that looking at what a plan touches may take: a second or so. Cases share those of a dozen.
MEMORY_WORK, MEMORY_WORK_OF_CASES = 60_000_000, 720_000_000
#: Ids of the findings without which no launch can be laid out: ``--no-check`` does not skip these.
LAYOUT_IDS = frozenset({"argument-count", "argument-width", "row-stride"})


def check(plan: Plan, module: Module, spec: OpSpec, host: Host | None = None) -> list[Finding]:
    """Every finding of every rule, worst first, else in the rules' order.

    ``host`` is the GPU and driver that the launches are for, where that is said. What is found in some launches of
    several says in which; what is found in all of them is said once.
    """
    subjects = subjects_of(plan, module, spec, host)
    found = [
        *_of_plan(_TARGETS, subjects),
        *with_swaps(subjects, _of_arguments(subjects), _of_arguments, _touched),
        *_of_launches(_GEOMETRY, subjects),
        *_of_plan(_DATA, subjects),
    ]
    return _worst_first(found)


def check_memory(
    plan: Plan, module: Module, spec: OpSpec, largest: Collection[str] = (), work: int = MEMORY_WORK
) -> list[Finding]:
    """What the launches touch that they should not, or not at all: of a plan without errors, since it takes the
    arguments as they are. Needs numpy and some milliseconds.

    ``largest`` are the inputs that should be read (see ``largest_inputs``), ``work`` bounds what it takes, in
    operations on threads. Raises what parsing the body raises.
    """
    if module.source.image is not None:
        return []
    subjects = subjects_of(plan, module, spec)
    contents = indices(subjects[0])
    trace = traced(subjects, work, contents)
    found = list(memory(subjects, trace, largest))

    def ask(exchanged: Sequence[Subject]) -> list[Finding] | None:
        errors = [f for f in _of_arguments(exchanged) if f.severity is Severity.ERROR]
        if errors:
            return errors
        return _astray(exchanged, 4 * trace.spent, contents, largest)

    # All exchanges together take no longer than the launches themselves may.
    return _worst_first(with_swaps(subjects, found, ask, tries=work // 4 // max(trace.spent, 1)))


def _touched(exchanged: Sequence[Subject]) -> list[Finding] | None:
    """What launches touch that they should not, looked at for a while; None where that cannot be told."""
    if exchanged[0].module.source.image is not None:
        return None
    outputs = [buffer.name for buffer in exchanged[0].plan.buffers if buffer.is_output]
    return _astray(exchanged, MEMORY_WORK // 4, indices(exchanged[0]), outputs)


def _astray(
    subjects: Sequence[Subject], work: int, contents: Mapping[str, Array], largest: Collection[str]
) -> list[Finding] | None:  # fmt: skip
    """What ``memory`` finds; None where nothing misses as far as ``work`` reaches, and that is not the end."""
    trace = traced(subjects, work, contents)
    return list(memory(subjects, trace, largest)) if trace.complete or trace.misses else None


def _worst_first(found: list[Finding]) -> list[Finding]:
    order = list(Severity)
    return sorted(found, key=lambda finding: order.index(finding.severity))


def _of_arguments(subjects: Sequence[Subject]) -> list[Finding]:
    """What is wrong between arguments and parameters."""
    misfits = list(_of_launches(_ARGUMENTS, subjects))
    if subjects[0].module.source.image is not None:
        return misfits  # of machine code no body can be read
    found = [*misfits, *_of_plan(_BUFFERS, subjects)]
    if not misfits:
        found += [*_of_plan(_MEANING, subjects), *_of_launches(_VALUES, subjects)]
    return found


def _of_plan(rules: Sequence[PlanRule], subjects: Sequence[Subject]) -> Iterator[Finding]:
    return (finding for rule in rules for finding in rule(subjects))


def _of_launches(rules: Sequence[Rule], subjects: Sequence[Subject]) -> Iterator[Finding]:
    for rule in rules:
        launches: dict[Finding, dict[int, None]] = {}
        for subject in subjects:
            for finding in rule(subject):
                launches.setdefault(finding, {})[subject.launch.index] = None
        yield from (_in_launches(finding, [*which], len(subjects)) for finding, which in launches.items())


def _in_launches(finding: Finding, which: list[int], count: int) -> Finding:
    if len(which) == count:
        return finding
    several, shown = "es" if len(which) > 1 else "", ", ".join(map(str, which[:5]))
    more = f" and {len(which) - 5} more" if len(which) > 5 else ""
    return finding.but(message=f"launch{several} {shown}{more} of {count}: {finding.message}")


def directed(plan: Plan, module: Module, spec: OpSpec) -> Plan:
    """The plan with each buffer's role from what the body does with it: for launches whose buffers say none."""
    return plan if module.source.image is not None else with_directions(subjects_of(plan, module, spec)[0])


__all__ = [
    "LAYOUT_IDS",
    "MEMORY_WORK",
    "MEMORY_WORK_OF_CASES",
    "RULES",
    "Host",
    "check",
    "check_memory",
    "directed",
    "largest_inputs",
]
