"""Rules on ``.target`` and ``.version``: against each other, and against the GPU and the driver that a launch is for.

PTX ISA, ".version" and ".target"; the driver's compiler is what refuses. May import ``checks.subject`` and what it may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from teenycli.arch import parse_target, takes_target, target_rule, target_since
from teenycli.checks.subject import Subject
from teenycli.errors import Finding, Place
from teenycli.releases import dotted, too_new


def target_version(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """``.version`` is one that knows ``.target``."""
    module = subjects[0].module
    target, since = parse_target(module.target), target_since(parse_target(module.target))
    if since is not None and module.version < since:
        yield Finding(
            "target-version",
            f"the PTX is of version {dotted(module.version)}, which knows no {target}: it came with {dotted(since)}",
            where=Place(module.source.name),
            hint=f"compile it for PTX {dotted(since)} or newer; text written by hand says so in .version",
        )


def target_fits(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """The GPU that the launch is for runs PTX of this ``.target``."""
    module, gpu = subjects[0].module, subjects[0].host.gpu
    target = parse_target(module.target)
    if gpu is None or takes_target(target, gpu.sm):
        return
    yield Finding(
        "target-architecture",
        f"this PTX is for {target}, which runs on {target_rule(target)}; sm_{gpu.sm} is not that",
        where=Place(module.source.name),
        hint=f"compile it for sm_{gpu.sm}",
    )


def driver_fits(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """The driver that the launch is for takes PTX of this ``.version``."""
    module, driver = subjects[0].module, subjects[0].host.driver
    newest = None if driver is None else driver.newest_ptx
    if newest is None or module.source.image is not None or module.version <= newest:
        return
    message, hint = too_new(module.version, f"this is {driver}", newest)
    yield Finding("ptx-version", message, where=Place(module.source.name), hint=hint)
