"""The ops of a manifest with what mutants of them need: cases, modules, plans. Each PTX file is read once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from teenycli.launch.backward import plan_backward
from teenycli.launch.build import plan_case
from teenycli.launch.cases import Dims, cases_of
from teenycli.launch.plan import Plan
from teenycli.manifest.load import load_manifest, ptx_file
from teenycli.manifest.spec import KernelSpec, OpSpec
from teenycli.ptx import Module, code_of, outline, read_source
from teenycli.ptx.usage import Usage, usage_of
from tests.mutants.kinds import Mutant, Target, mutants


@dataclass
class Modules:
    """PTX files read, by path, and what their entries do with each parameter."""

    read: dict[Path, Module] = field(default_factory=dict)
    used: dict[tuple[Path, str], tuple[Usage, ...]] = field(default_factory=dict)

    def of(self, kernel: KernelSpec) -> Module:
        path = ptx_file(kernel)
        if path not in self.read:
            self.read[path] = outline(read_source(path))
        return self.read[path]

    def usages(self, kernel: KernelSpec, entry: str) -> tuple[Usage, ...]:
        """The usage of each parameter of an entry in the kernel's PTX."""
        key = ptx_file(kernel), entry
        if key not in self.used:
            module = self.of(kernel)
            self.used[key] = usage_of(code_of(module, next(e for e in module.entries if e.name == entry)))
        return self.used[key]

    def plan(self, spec: OpSpec, case: Dims, backward: bool) -> Plan:
        """The plan of an op, or of its backward. Raises what planning raises."""
        return (plan_backward if backward else plan_case)(spec, case, self.of(spec.kernel(backward)))


@dataclass
class Subjects:
    """The ops of a manifest; ``folder`` takes the data files of their mutants."""

    manifest: Path
    folder: Path
    modules: Modules = field(default_factory=Modules)

    @cached_property
    def ops(self) -> dict[str, OpSpec]:
        """All of them. Raises what is wrong with the first that cannot be read."""
        found = load_manifest(self.manifest)
        return {name: found.op(name) for name in (*found.ops, *found.errors)}

    def targets(self, spec: OpSpec) -> Iterator[Target]:
        """The op, then its backward."""
        case = cases_of(spec)[0]
        for backward in (False, True)[: 1 if spec.backward is None else 2]:
            module = self.modules.of(spec.kernel(backward))
            yield Target(spec, backward, self.modules.plan(spec, case, backward), module, self.folder)

    def mutants(self, spec: OpSpec) -> list[Mutant]:
        """Every mutant of an op and of its backward."""
        return [mutant for target in self.targets(spec) for mutant in mutants(target)]
