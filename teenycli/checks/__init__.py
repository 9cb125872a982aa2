"""Rules over a plan, the entry it launches, and the limits of where it would run. No device is needed.

:func:`check` is all that the rooms above need. A rule is a generator of findings over a :class:`Subject`; ``RULES``
lists them in the order in which their findings are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from teenycli.checks.arguments import argument_count, argument_kind, argument_width, parameter_bytes
from teenycli.checks.coverage import not_looked_at
from teenycli.checks.data import initial_data
from teenycli.checks.direction import buffer_direction
from teenycli.checks.geometry import block_directives, block_limits, cluster_shape, grid_limits, shared_memory
from teenycli.checks.subject import Subject
from teenycli.errors import Finding, Severity

Rule = Callable[[Subject], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    argument_count, argument_width, argument_kind, buffer_direction, parameter_bytes, block_directives, block_limits,
    grid_limits, cluster_shape, shared_memory, initial_data, not_looked_at,
)  # fmt: skip

#: Ids of the findings without which no launch can be laid out: ``--no-check`` does not skip these.
LAYOUT_IDS = frozenset({"argument-count", "argument-width"})


def check(subject: Subject) -> list[Finding]:
    """Every finding of every rule, worst first, else in the rules' order."""
    found = [finding for rule in RULES for finding in rule(subject)]
    order = list(Severity)
    return sorted(found, key=lambda finding: order.index(finding.severity))


__all__ = ["LAYOUT_IDS", "RULES", "Subject", "check"]
