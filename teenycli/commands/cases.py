"""From names of ops to plans with what checks say of them: what ``check`` and ``run`` share.

May import the rooms below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from teenycli.checks import check, directed
from teenycli.errors import Finding, Severity
from teenycli.launch.backward import plan_backward
from teenycli.launch.build import plan_case
from teenycli.launch.cases import Overrides
from teenycli.launch.plan import Plan
from teenycli.manifest.load import Manifest, find_manifest, load_manifest, ptx_file
from teenycli.manifest.spec import KernelSpec, OpSpec
from teenycli.ptx import Module, outline, read_source
from teenycli.ptx.search import shared_memory

if TYPE_CHECKING:
    from teenycli.commands.checkpoint import Checkpoint


@dataclass(frozen=True)
class Judged:
    """A plan and the findings about it, those that the op ignores taken out (``ignored``)."""

    spec: OpSpec
    plan: Plan
    module: Module
    findings: tuple[Finding, ...]
    ignored: tuple[Finding, ...] = ()

    @property
    def kernel(self) -> KernelSpec:
        """What the manifest says of the launches: the op, or its backward."""
        return self.spec.kernel(self.plan.backward)

    def shown(self, adhoc: bool) -> Plan:
        """The plan as tables show it: on the command line (``adhoc``) buffers have the roles that the body tells."""
        if not adhoc or len(self.plan.launches) != 1:
            return self.plan
        return directed(self.plan, self.module, self.spec)

    @property
    def shared_static(self) -> int:
        """Static shared memory of the entry, in bytes of a CTA."""
        entry = next(entry for entry in self.module.entries if entry.name == self.plan.entry)
        return shared_memory(self.module, entry)[0]

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)


def open_manifest(path: str | None) -> Manifest:
    """The manifest named, or the nearest one. Raises what reading it raises."""
    return load_manifest(find_manifest(Path()) if path is None else Path(path))


def module_of(spec: KernelSpec) -> Module:
    """The PTX of an op or its backward. Raises what reading it raises."""
    return outline(read_source("-" if spec.ptx == "-" else ptx_file(spec)))


def judge(
    spec: OpSpec, case: dict[str, int], overrides: Overrides, module: Module, checkpoint: Checkpoint | None = None
) -> Judged:
    """Plan one case, with params out of ``checkpoint``, and check it. Raises what planning raises."""
    plan = plan_case(spec, case, module, overrides)
    return judge_plan(spec, checkpoint.fill(plan) if checkpoint else plan, module)


def judge_backward(spec: OpSpec, case: dict[str, int], overrides: Overrides, module: Module) -> Judged:
    """Plan the backward of one case, and check it. Raises what planning raises."""
    return judge_plan(spec, plan_backward(spec, case, module, overrides), module)


def judge_plan(spec: OpSpec, plan: Plan, module: Module) -> Judged:
    """Check a plan. Raises what the rules raise of files that cannot be read."""
    found = check(plan, module, spec)
    ignored = tuple(finding for finding in found if finding.id in spec.ignore)
    return Judged(spec, plan, module, tuple(f for f in found if f.id not in spec.ignore), ignored)


def selected(manifest: Manifest, names: Sequence[str]) -> list[str]:
    """The ops named, in that order, each once; every op when none is named."""
    return list(dict.fromkeys(names)) if names else [*manifest.ops, *manifest.errors]
