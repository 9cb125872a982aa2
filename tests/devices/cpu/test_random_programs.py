"""Random control flow: any graph of blocks, irreducible ones too, against one thread at a time in Python.

Each program is a table of blocks over eight registers. A fuel register makes every thread end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from tests.devices.cpu.kit import Rig

pytestmark = pytest.mark.unit

MASK = 0xFFFFFFFF
THREADS = 75


@dataclass(frozen=True)
class Step:
    """``op`` on registers ``d, a, b`` under an optional guard: register, expected low bit."""

    op: str
    d: int
    a: int
    b: int
    guard: tuple[int, int] | None


@dataclass(frozen=True)
class Node:
    """Steps, then: to ``taken`` when the bit of ``test`` is set, else to ``other``; -1 ends the thread."""

    steps: tuple[Step, ...]
    test: int
    bit: int
    taken: int
    other: int
    barrier: bool


def make(seed: int) -> list[Node]:
    rng = random.Random(seed)
    count = rng.choice([2, 3, 5, 8, 13, 30])
    uniform_only = rng.random() < 0.2
    nodes = []
    for k in range(count):
        steps = tuple(
            Step(
                rng.choice(["add", "sub", "xor", "mul", "min", "mov", "load", "shr"]),
                rng.randrange(6),
                rng.randrange(8 if not uniform_only else 6),
                rng.randrange(8),
                (rng.randrange(8), rng.randrange(2)) if rng.random() < 0.25 else None,
            )
            for _ in range(rng.randrange(5))
        )
        forward = rng.random() < 0.6
        targets = range(k + 1, count) if forward and k + 1 < count else range(-1, count)
        nodes.append(
            Node(
                steps,
                test=rng.randrange(8),
                bit=rng.randrange(4),
                taken=rng.choice(targets),
                other=rng.choice(targets),
                barrier=rng.random() < 0.05,
            )
        )
    return nodes


def ptx(nodes: list[Node], name: str) -> str:
    """The program as an entry. Registers 6 and 7 are the thread's and the CTA's index; fuel is %fuel."""
    lines = [
        f".visible .entry {name}(.param .u64 out, .param .u64 table) {{",
        ".reg .b32 %r<8>, %fuel, %t, %n; .reg .b64 %d<6>; .reg .pred %p, %g;",
        "ld.param.u64 %d1, [table]; mov.u32 %r6, %tid.x; mov.u32 %r7, %ctaid.x; mov.u32 %fuel, 60;",
        *(f"mov.u32 %r{k}, {k * 77};" for k in range(6)),
        "add.u32 %r0, %r0, %r6;",
    ]
    for k, node in enumerate(nodes):
        lines.append(f"b{k}: sub.u32 %fuel, %fuel, 1; setp.eq.u32 %p, %fuel, 0; @%p bra end;")
        if node.barrier:
            lines.append("barrier.sync 0;")
        for step in node.steps:
            guard = ""
            if step.guard is not None:
                lines.append(f"and.b32 %t, %r{step.guard[0]}, 1; setp.eq.u32 %g, %t, {step.guard[1]};")
                guard = "@%g "
            d, a, b = f"%r{step.d}", f"%r{step.a}", f"%r{step.b}"
            if step.op == "load":
                lines.append(f"and.b32 %t, {a}, 63; mul.wide.u32 %d2, %t, 4; add.u64 %d3, %d1, %d2;")
                lines.append(f"{guard}ld.global.u32 {d}, [%d3];")
            elif step.op == "mov":
                lines.append(f"{guard}mov.u32 {d}, {a};")
            elif step.op == "shr":
                lines.append(f"{guard}shr.u32 {d}, {a}, 3;")
            else:
                op = {"mul": "mul.lo.u32", "xor": "xor.b32"}.get(step.op, f"{step.op}.u32")
                lines.append(f"{guard}{op} {d}, {a}, {b};")
        lines.append(f"shr.u32 %t, %r{node.test}, {node.bit}; and.b32 %t, %t, 1; setp.ne.u32 %p, %t, 0;")
        lines.append(f"@%p bra {label(node.taken)}; bra {label(node.other)};")
    lines += [
        "end: mov.u32 %n, %ntid.x; mad.lo.u32 %t, %r7, %n, %r6; ld.param.u64 %d4, [out]; mul.wide.u32 %d5, %t, 32;",
        "add.u64 %d4, %d4, %d5; st.global.v4.u32 [%d4], {%r0, %r1, %r2, %r3};",
        "st.global.v4.u32 [%d4+16], {%r4, %r5, %fuel, %r7}; ret; }",
    ]
    return "\n".join(lines)


def label(target: int) -> str:
    return "end" if target < 0 else f"b{target}"


def run(nodes: list[Node], thread: int, cta: int, table: list[int]) -> list[int]:
    """One thread, by itself."""
    r = [k * 77 for k in range(6)] + [thread, cta]
    r[0] += thread
    fuel, at = 60, 0
    while at >= 0:
        fuel -= 1
        if fuel == 0:
            break
        node = nodes[at]
        for step in node.steps:
            if step.guard is not None and r[step.guard[0]] & 1 != step.guard[1]:
                continue
            a, b = r[step.a], r[step.b]
            r[step.d] = {"add": a + b, "sub": a - b, "xor": a ^ b, "mul": a * b, "min": min(a, b), "mov": a,
                         "load": table[a & 63], "shr": a >> 3}[step.op] & MASK  # fmt: skip
        at = node.taken if r[node.test] >> node.bit & 1 else node.other
    return [*r[:6], fuel, cta]


def check(seeds: range) -> None:
    programs = {f"p{seed}": make(seed) for seed in seeds}
    rig = Rig("\n".join(ptx(nodes, name) for name, nodes in programs.items()))
    table = np.random.default_rng(0).integers(0, 2**32, 64, dtype=np.uint64).astype(np.uint32)
    for name, nodes in programs.items():
        out = np.zeros((3 * THREADS, 8), np.uint32)
        rig.run([out, table], grid=(3,), block=(THREADS,), entry=name)
        wanted = [run(nodes, t, c, table.tolist()) for c in range(3) for t in range(THREADS)]
        np.testing.assert_array_equal(out, wanted, name)
    rig.device.close()


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_graphs(first: int) -> None:
    check(range(first, first + 20))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_many_random_graphs(first: int) -> None:
    check(range(first, first + 50))
