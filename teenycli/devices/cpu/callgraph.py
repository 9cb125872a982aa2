"""Which functions a kernel reaches by name, and which of them must be called for real: those that reach themselves,
and those whose copies would make the kernel explode. The rest is inlined.

May import ``ptx``.
"""

from __future__ import annotations

from collections import Counter

from teenycli.ptx import code_of
from teenycli.ptx.model import Function, Module

#: Instructions after inlining above which functions of :data:`LARGE` are called for real where they can be.
EXPLOSION, LARGE = 30_000, 400
#: Calls within calls up to which all is inlined.
DEPTH = 32


class CallGraph:
    """The functions reached so far. ``real`` has the names of those that are to be called for real."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.bodies = {f.name: f for f in module.functions if f.body is not None}
        self.callees: dict[str, list[str]] = {}
        self.lengths: dict[str, int] = {}
        self.real: set[str] = set()

    def definition(self, function: Function) -> Function:
        """The function with a body that a declaration or an alias stands for; itself where there is none."""
        return self.bodies.get(self.module.aliases.get(function.name, function.name), function)

    def add(self, function: Function) -> None:
        """Explore what ``function`` reaches."""
        pending = [function]
        while pending:
            now = pending.pop()
            if now.name in self.callees:
                continue
            code = code_of(self.module, now)
            targets = [op.call.target for op in code.ops if op.call is not None]
            called = [self.definition(t) for t in targets if isinstance(t, Function)]
            self.callees[now.name] = [f.name for f in called if f.body is not None]
            self.lengths[now.name] = len(code.ops)
            pending += [f for f in called if f.body is not None]
        self._judge()

    def _judge(self) -> None:
        order = self._peeled(self.callees)
        callers: dict[str, list[str]] = {name: [] for name in self.callees}
        for name, callees in self.callees.items():
            for callee in callees:
                callers[callee].append(name)
        cyclic = set(self.callees) - set(order) - set(self._peeled(callers))
        self.real |= cyclic
        # What lies behind a cycle is in neither list of the peeled; its callees come before it all the same.
        known = set(order)
        rest = [name for name in reversed(self._peeled(callers)) if name not in known]
        sizes, depths = self._measure([*order, *rest])
        if max(sizes.values(), default=0) > EXPLOSION:
            uses = Counter(callee for callees in self.callees.values() for callee in callees)
            self.real |= {name for name, size in sizes.items() if size > LARGE and uses[name] > 1}
        self.real |= {name for name, depth in depths.items() if depth and depth % DEPTH == 0}

    def _measure(self, order: list[str]) -> tuple[dict[str, int], dict[str, int]]:
        """Instructions of each function with all it calls inlined, and how deep its calls nest."""
        sizes: dict[str, int] = {}
        depths: dict[str, int] = {}
        for name in order:
            sizes[name] = self.lengths[name] + sum(sizes.get(callee, 0) for callee in self.callees[name])
            depths[name] = max((depths.get(callee, 0) + 1 for callee in self.callees[name]), default=0)
        return sizes, depths

    @staticmethod
    def _peeled(edges: dict[str, list[str]]) -> list[str]:
        """Names from which no cycle is reached, those without edges first."""
        into: dict[str, list[str]] = {name: [] for name in edges}
        left = {name: len(targets) for name, targets in edges.items()}
        for name, targets in edges.items():
            for target in targets:
                into[target].append(name)
        order = [name for name, count in left.items() if not count]
        for name in order:
            for source in into[name]:
                left[source] -= 1
                if not left[source]:
                    order.append(source)
        return order
