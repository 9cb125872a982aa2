"""From names of ops to plans with what checks say of them: what ``check`` and ``run`` share.

May import the rooms below.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from teenycli.arch import parse_target
from teenycli.checks import MEMORY_WORK, Host, check, check_memory, directed
from teenycli.errors import Finding, Severity, TeenyError
from teenycli.launch.backward import plan_backward
from teenycli.launch.build import plan_case, with_inits
from teenycli.launch.cases import Overrides
from teenycli.launch.pipeline import Pipeline, pipeline_of, plan_pipeline
from teenycli.launch.plan import Plan
from teenycli.manifest.load import Manifest, find_manifest, load_manifest, ptx_file
from teenycli.manifest.spec import Init, KernelSpec, OpSpec, Origin, PipelineSpec
from teenycli.ptx import Module, outline, read_source
from teenycli.ptx.search import shared_memory
from teenycli.releases import parse_driver

if TYPE_CHECKING:
    from teenycli.commands.checkpoint import Checkpoint


class Judged(Struct, frozen=True):
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
    return _module_at(_path_of(spec))


def _path_of(spec: KernelSpec) -> str | Path:
    return "-" if spec.ptx == "-" else ptx_file(spec)


def _module_at(path: str | Path) -> Module:
    return outline(read_source(path, code=True))


class Modules:
    """The PTX of several ops: a file that many are of is read once, as long as not too many others come between."""

    def __init__(self) -> None:
        self._at = lru_cache(maxsize=32)(_module_at)

    def of(self, spec: KernelSpec) -> Module:
        """As :func:`module_of`."""
        return self._at(_path_of(spec))


def host_of(gpu: str | None, driver: str | None) -> Host:
    """What ``--for`` and ``--driver`` name. Raises TeenyError ``unknown-target``, ``unknown-driver``."""
    return Host(None if gpu is None else parse_target(gpu), None if driver is None else parse_driver(driver))


def judge(
    spec: OpSpec,
    case: dict[str, int],
    overrides: Overrides,
    module: Module,
    checkpoint: Checkpoint | None = None,
    host: Host | None = None,
) -> Judged:
    """Plan one case, with params out of ``checkpoint``, and check it. Raises what planning raises."""
    plan = plan_case(spec, case, module, overrides)
    return judge_plan(spec, checkpoint.fill(plan) if checkpoint else plan, module, host)


def judge_backward(
    spec: OpSpec, case: dict[str, int], overrides: Overrides, module: Module, host: Host | None = None
) -> Judged:
    """Plan the backward of one case, and check it. Raises what planning raises."""
    return judge_plan(spec, plan_backward(spec, case, module, overrides), module, host)


def judge_plan(spec: OpSpec, plan: Plan, module: Module, host: Host | None = None) -> Judged:
    """Check a plan. Raises what the rules raise of files that cannot be read."""
    return _without_ignored(Judged(spec, plan, module, tuple(check(plan, module, spec, host))))


def with_memory(judged: Judged, largest: Collection[str] = (), work: int = MEMORY_WORK) -> Judged:
    """``judged`` with what its launches touch that they should not, when nothing else is wrong with them.

    ``largest`` and ``work`` are those of ``check_memory``. Raises what parsing the body raises.
    """
    if judged.errors:
        return judged
    found = check_memory(judged.plan, judged.module, judged.spec, largest, work)
    return _without_ignored(replace(judged, findings=(*judged.findings, *found)))


def _without_ignored(judged: Judged) -> Judged:
    """``judged`` with the findings that its op ignores set apart."""
    ignore = judged.spec.ignore
    ignored = tuple(finding for finding in judged.findings if finding.id in ignore)
    kept = tuple(finding for finding in judged.findings if finding.id not in ignore)
    return replace(judged, findings=kept, ignored=judged.ignored + ignored)


def selected(manifest: Manifest, names: Sequence[str]) -> list[str]:
    """The ops named, in that order, each once; every op when none is named."""
    return list(dict.fromkeys(names)) if names else [*manifest.ops, *manifest.errors]


class Chain(Struct, frozen=True):
    """Ops in a row, and the PTX of each."""

    pipeline: Pipeline
    modules: tuple[Module, ...]


def open_chain(
    manifest: Manifest, names: Sequence[str], read: Callable[[KernelSpec], Module] = module_of
) -> Chain | None:
    """The pipeline named, or several ops in the order given, with the PTX that ``read`` gives; None for one op.

    Raises what is wrong with the pipeline or with an op of it, and what reading PTX raises.
    """
    if len(names) == 1 and names[0] not in manifest.pipelines:
        return None
    if len(names) == 1:
        spec = manifest.pipeline(names[0])
    else:
        spec = PipelineSpec(ops=tuple(names), origin=Origin(options={"ops": f"run {' '.join(names)}"}))
    ops = [_op_of(manifest, spec, k) for k in range(len(spec.ops))]
    return Chain(pipeline_of(spec, ops), tuple(map(read, ops)))


def _op_of(manifest: Manifest, spec: PipelineSpec, index: int) -> OpSpec:
    name = spec.ops[index]
    try:
        return manifest.op(name)
    except TeenyError as error:
        if error.finding.id == "unknown-op" and spec.name:
            hint = f"'{name}' is a pipeline: write its ops" if name in manifest.pipelines else error.finding.hint
            error.finding = error.finding.but(where=spec.origin.place(f"ops[{index}]"), hint=hint)
        raise


def judge_chain(
    chain: Chain,
    overrides: Overrides,
    inits: Sequence[Mapping[str, Init]] | None = None,
    sms: Sequence[int] | None = None,
    host: Host | None = None,
) -> tuple[Judged, ...]:
    """Plan each step and check it; what does not fit in the wires into it comes first among its findings.

    ``inits`` (of ``with_inits``) and ``sms`` are by step. Raises what planning raises.
    """
    planned = plan_pipeline(chain.pipeline, chain.modules, overrides, sms)
    judged = []
    for index, (step, module) in enumerate(zip(chain.pipeline.steps, chain.modules, strict=True)):
        plan = with_inits(planned.plans[index], inits[index]) if inits else planned.plans[index]
        one = judge_plan(step.spec, plan, module, host)
        judged.append(replace(one, findings=planned.findings[index] + one.findings))
    return tuple(judged)
