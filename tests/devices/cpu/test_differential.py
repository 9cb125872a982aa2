"""Random programs on the CPU device and on the oracle: both must leave the same bytes.

A module is one kernel of several programs, a CTA each. ``make random`` runs some 3,900 programs, always the same;
``TEENY_PROGRAMS=20000 make random`` about so many new ones. A failing module is shrunk by hypothesis and its PTX text is
in the message.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teenycli.devices.cpu import build, registry
from teenycli.ptx import code_of
from teenycli.ptx.isa import Form
from tests.devices.cpu.kit import HEAD, Rig
from tests.oracle import programs
from tests.oracle.machine import Grid, run
from tests.oracle.memory import Memory

pytestmark = pytest.mark.device

Bytes = npt.NDArray[np.uint8]
OUT = programs.ROW + programs.ROOM
#: Programs of a share, shares, and programs in a module at most. The first share is among the quick tests.
SHARE, SHARES, TOGETHER = 300, 14, 6
WANTED = int(os.environ.get("TEENY_PROGRAMS", "0"))

#: Bits at which integers and floats of each width go wrong; the rest of the inputs is random.
_HALVES = [
    *(0, 0x8000, 1, 0x8001, 0x3C00, 0xBC00, 0x3800, 0x7BFF, 0x7C00, 0xFC00, 0x7E01, 0xFFFF, 0x0400, 0x03FF),
    *(0x3F80, 0xBF80, 0x7F80, 0x0080, 5, 0x7FF7, 0xFFF7),
]
_SINGLES = [
    *(0, 1 << 31, 1, 0x80000001, 0x3F800000, 0xBF800000, 0x3F000000, 0xBF000000, 0x7F7FFFFF, 0x7F800000, 0xFF800000),
    *(0x7FC12345, 0xFFC00000, 0x7F800001, 0x00800000, 0x007FFFFF, 0x4F000000, 0xCF000000, 0x4B800001, 0x40200000),
    *(0x3EAAAAAB, 0x477FF000, 0x33800000, 7, 33, 0xFFFFFFFF, 0x7FFFFFFF, 0x3C007FF7, 0xFFF7BC00),
]
_DOUBLES = [
    *(0, 1 << 63, 1, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FE0000000000000, 0x7FEFFFFFFFFFFFFF),
    *(0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x0010000000000000, 0x000FFFFFFFFFFFFF),
    *(0x41E0000000000000, 0xC1E0000000000000, 0x43F0000000000000, 0x36A0000000000000, 0x380FFFFFFFFFFFFF),
    *(0x47EFFFFFF0000000, 0x3FF0000010000000, 40, (1 << 64) - 1, (1 << 63) - 1),
]


def inputs_of(seed: int) -> Bytes:
    """A row of registers for each of 64 threads: edges, small numbers, floats of moderate size, noise."""
    rng = random.Random(seed)
    rows = bytearray(64 * programs.ROW)
    for thread in range(64):
        for type, count, start in programs.FILE.values():
            size = programs.SIZES[type]
            for k in range(count):
                at = thread * programs.ROW + start + k * size
                rows[at : at + size] = _value(rng, size).to_bytes(size, "little")
    return np.frombuffer(bytes(rows), np.uint8).copy()


def _value(rng: random.Random, size: int) -> int:
    if size == 1:
        return rng.choice([0, 1, rng.getrandbits(8)])
    edges = {2: _HALVES, 4: _SINGLES, 8: _DOUBLES}[size]
    one, bias, mantissa = {2: (0x8000, 15, 10), 4: (1 << 31, 127, 23), 8: (1 << 63, 1023, 52)}[size]
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(edges)
    if kind < 0.5:
        return rng.randrange(70)
    if kind < 0.75:
        exponent = bias + rng.randrange(-14, 15)
        return rng.choice([0, one]) | exponent << mantissa | rng.getrandbits(mantissa)
    return rng.getrandbits(8 * size)


def supports(form: Form, mods: dict[str, str]) -> bool:
    return registry.supports_mods(form.opcode, mods)


def check(seeds_of_each: list[list[int]], warps: bool, seed: int) -> int:
    """Compare random programs."""
    texts = [programs.program(f"P{k}", seeds, warps=warps, supports=supports) for k, seeds in enumerate(seeds_of_each)]
    return compare(texts, warps, seed)


def compare(texts: list[str], warps: bool, seed: int) -> int:
    """Run a module of programs on both; gives how many of them were compared to their end."""
    text = programs.module(texts, head=HEAD)
    threads = 64 if warps else 40
    table = inputs_of(seed)
    out = np.frombuffer(random.Random(seed + 1).randbytes(len(texts) * threads * OUT), np.uint8).copy()
    rig = Rig(text)
    (function,) = rig.module.entries
    memory = Memory()
    inputs = memory.add(table.tolist())
    outputs = memory.add(out.tolist())
    given = [inputs.to_bytes(8, "little"), outputs.to_bytes(8, "little")]
    given_up = run(code_of(rig.module, function), memory, Grid(len(texts), threads, given), {})
    rig.run([table, out], grid=(len(texts),), block=(threads,))
    rig.device.close()
    wanted = memory.regions[outputs >> 32]
    for cta in given_up:
        wanted[cta * threads * OUT : (cta + 1) * threads * OUT] = [None] * (threads * OUT)
    got = out.tolist()
    if any(w is not None and w != g for w, g in zip(wanted, got, strict=True)):
        pytest.fail(f"{first_difference(wanted, got, threads)}\n{text}", pytrace=False)
    return len(texts) - len(given_up)


def first_difference(wanted: list[int | None], got: list[int], threads: int) -> str:
    at = next(k for k, (w, g) in enumerate(zip(wanted, got, strict=True)) if w is not None and w != g)
    row, offset = divmod(at, OUT)
    for letter, (type, count, base) in programs.FILE.items():
        size = programs.SIZES[type]
        if base <= offset < base + size * count:
            k = (offset - base) // size
            start, name = base + k * size, f"%{letter}{k}"
            first = row * OUT + start
            want, have = wanted[first : first + size], got[first : first + size]
            shown = "".join("??" if b is None else f"{b:02x}" for b in reversed(want))
            return (f"program {row // threads}, thread {row % threads}, {name}: the oracle has 0x{shown}, "
                    f"the device 0x{bytes(reversed(have)).hex()}")  # fmt: skip
    return f"program {row // threads}, thread {row % threads}, byte {offset - programs.ROW} of its room"


SEEDS = st.lists(st.integers(0, 2**40), min_size=1, max_size=24)
MODULES = st.lists(SEEDS, min_size=1, max_size=TOGETHER)


@pytest.mark.parametrize("share", [0, *(pytest.param(k, marks=pytest.mark.random) for k in range(1, SHARES))])
@settings(
    max_examples=max(1, (WANTED // (SHARES - 1) or SHARE) // 3), deadline=None, derandomize=not WANTED, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(modules=MODULES, warps=st.booleans(), seed=st.integers(0, 1000))
def test_random_programs_agree_with_the_oracle(share: int, modules: list[list[int]], warps: bool, seed: int) -> None:
    check([[statement ^ share << 40 for statement in program] for program in modules], warps, seed)


#: What random programs found, each as small as it shrank.
FOUND = {
    "a guarded sum keeps the bits of a NaN that was loaded": "@%p0 add.f32 %f0, %f1, %f1;",
    "the NaN of a double converts to the top bit": "cvt.rni.u16.f64 %h0, %d3; cvt.rzi.s32.f64 %r0, %g0;",
    "zero is normal": "testp.normal.f64 %p3, %g1; testp.normal.f32 %p1, %f0;",
    "ftz of a conversion spares a half result": "cvt.rp.ftz.f16.f32 %h0, %r0;",
    "abs of a maximum is of all three": "max.NaN.abs.f32 %r5, %r3, %r4, %f0; min.ftz.abs.f32 %f1, %f1, %f1, %r3;",
    "setp reads its predicate before it writes": "setp.neu.xor.bf16x2 %p1|%p0, %r5, %r2, %p1;"
    "setp.lt.and.s32 %p3|%p2, %r5, %r2, %p3;",
    "an atomic min of signed 64-bit integers in shared memory": "mov.u64 %a, %own; atom.shared.min.s64 %d3, [%a], %d0;",
    "redux has the mask of its own tile": "and.b32 %m3, %i, 16; shl.b32 %m3, 0xffff, %m3;"
    "redux.sync.add.u32 %r0, %r0, %m3; redux.sync.min.s32 %r1, %r1, %m3; redux.sync.or.b32 %r2, %r2, %m3;"
    "and.b32 %t, %r3, 1; match.all.sync.b32 %r4|%p0, %t, %m3;",
    "directed roundings to a half among 32 lanes": "cvt.rm.f16.f32 %h0, %f0; cvt.rp.sat.f16.f32 %h1, %r0;"
    "cvt.rz.f16.f64 %h2, %g0; cvt.rm.f16.s32 %h3, %r1; vote.sync.all.pred %p0, %p1, -1;",
    "redux has the mask of lanes that run": "vote.sync.ballot.b32 %m0, %p0, -1; @%p0 bra P0_A; not.b32 %m0, %m0;"
    "redux.sync.or.b32 %r1, %r5, %m0; match.all.sync.b32 %r2|%p1, %r3, %m0; P0_A:",
}


def _merges() -> Iterator[str]:
    """Bits of one register and the rest of another's, put where either was in some lanes only."""
    for size, letter, constant in ((32, "r", 1 << 31), (64, "d", 1 << 63), (32, "r", 0xFF00), (64, "d", 0xFFFFFFFF)):
        rest = (1 << size) - 1 ^ constant
        for first, second in ((constant, rest), (rest, constant)):
            cut = f"and.b{size} %{letter}2, %{letter}0, {first}; and.b{size} %{letter}3, %{letter}1, {second};"
            for k in (0, 1):
                yield f"{cut} @%p0 or.b{size} %{letter}{k}, %{letter}2, %{letter}3;"
                yield f"{cut} @%p0 or.b{size} %{letter}{k}, %{letter}3, %{letter}2;"
                whole = f"{cut} add.u{size} %{letter}2, %{letter}2, %{letter}3;"
                yield f"{whole} selp.b{size} %{letter}{k}, %{letter}{k}, %{letter}2, %p0;"
            cut = f"xor.b{size} %{letter}2, %{letter}0, %{letter}1; and.b{size} %{letter}2, %{letter}2, {first};"
            yield f"{cut} @%p0 xor.b{size} %{letter}0, %{letter}2, %{letter}0;"
    wide = "cvt.u64.u32 %d0, %r0; cvt.u64.u32 %d1, %r1;"
    cut = "and.b64 %d2, %d0, 0x80000000; and.b64 %d3, %d1, 0x7fffffff; or.b64 %d3, %d2, %d3;"
    yield f"{wide} {cut} @%p0 cvt.u32.u64 %r0, %d3;"
    yield "@%p0 lop3.b32 %r0, %r0, %r1, 0x80000000, 0xCA;"
    yield "@%p0 lop3.b32 %r1, %r0, %r1, 0x7fffffff, 0xE4;"
    yield "@%p0 bfi.b32 %r0, %r0, %r1, 4, 8;"
    yield "@%p0 bfi.b64 %d0, %d0, %d1, 4, 8;"
    yield "@%p0 copysign.f32 %f0, %f1, %f0;"
    yield "@%p0 copysign.f64 %g0, %g1, %g0;"
    yield "@%p0 copysign.f32 %r0, %r0, %f0;"
    yield "@%p0 prmt.b32 %r0, %r0, %r1, 0x3254;"


@pytest.mark.parametrize("full_lines", [build.FULL_LINES, 0])
@pytest.mark.parametrize("warps", [False, True])
def test_bits_merged_under_a_mask(warps: bool, full_lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "FULL_LINES", full_lines)
    # What is stored after all is no part of one merge.
    tail = [f"mov.b32 %r{k}, 0; mov.b64 %d{k}, 0;" for k in (2, 3)]
    if warps:
        tail.append("vote.sync.any.pred %p2, %p1, -1;")
    texts = [programs.complete(f"P{k}", [text, *tail]) for k, text in enumerate(_merges())]
    assert compare(texts, warps, 7) == len(texts)


@pytest.mark.parametrize("name", FOUND)
def test_what_random_programs_found(name: str) -> None:
    text = programs.complete("P0", FOUND[name].splitlines())
    assert compare([text], True, 1) == 1


@pytest.mark.slow
@pytest.mark.parametrize("opcode", sorted(set(programs.OPCODES)))
def test_every_form_agrees_with_the_oracle(opcode: str) -> None:
    rng = random.Random(opcode)
    drawn = [programs.instruction(rng, form, supports) for form in programs.choices(opcode) for _ in range(4)]
    texts = [programs.complete(f"P{k}", [line]) for k, line in enumerate(filter(None, drawn))]
    assert texts
    compare(texts, True, 3)


def test_copysign_in_a_branch_of_a_large_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "FULL_LINES", 0)
    lines = ["@!%p3 bra P0_A;", "copysign.f32 %r0, %r0, %f0;", "P0_A:"]
    assert compare([programs.complete("P0", lines)], False, 112) == 1
