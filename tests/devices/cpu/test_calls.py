"""Calls that are made for real: recursion, indirect calls, frames; and the stack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from teenycli.devices.cpu.callgraph import CallGraph
from teenycli.errors import Finding, TeenyError
from teenycli.exits import Exit
from teenycli.ptx import outline
from teenycli.ptx.model import Source
from tests.devices.cpu.kit import HEAD, Array, Rig

pytestmark = pytest.mark.unit

NVCC = Path(__file__).parent.parent.parent / "corpus" / "nvcc"


def run(text: str, data: Array, *more: Array | int, block: int = 64, grid: int = 1) -> Array:
    rig = Rig(text)
    rig.run([data, *more], block=(block,), grid=(grid,))
    rig.device.close()
    return data


def fault(text: str, *args: Array | int) -> Finding:
    rig = Rig(text)
    with pytest.raises(TeenyError) as caught:
        rig.run(args, block=(4,))
    assert caught.value.exit is Exit.FAILED
    rig.device.close()
    return caught.value.finding


def ackermann(m: int, n: int) -> int:
    return n + 1 if m == 0 else ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


@pytest.mark.parametrize(("m", "n"), [(0, 0), (1, 5), (2, 3), (3, 3)])
def test_recursion_as_nvcc_makes_it(m: int, n: int) -> None:
    out = np.zeros(1, np.int64)
    rig = Rig((NVCC / "recursion.ptx").read_text())
    rig.run([m, n, out], block=(1,))
    assert out[0] == ackermann(m, n) + (n % 2 == 0) + (m + 3) + 1
    rig.device.close()


def test_tables_of_functions_and_virtual_functions() -> None:
    rig = Rig((NVCC / "indirect_calls.ptx").read_text())
    x = np.arange(64, dtype=np.float32)
    which = (np.arange(64) * 7 % 3).astype(np.int32)
    rig.run([x, which], block=(64,), entry="through_table")
    v = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(x, np.choose(which, [v + v, v * v, -v]) + v * v)
    out = np.zeros(4, np.float32)
    for kind, area in ((1, 4.0), (0, np.float32(3.14159) * 4)):
        rig.run([out, kind], block=(4,), entry="through_vtable")
        np.testing.assert_allclose(out, area, rtol=1e-6)
    rig.device.close()


def test_a_pointer_that_was_never_a_function() -> None:
    finding = fault((NVCC / "indirect_calls.ptx").read_text(), np.ones(4, np.float32), np.full(4, 3, np.int32))
    assert finding.id == "bad-call"
    assert "goes to 0x0" in finding.message
    assert finding.where is not None
    assert finding.where.line == 300


def test_memory_of_variable_size_on_the_stack() -> None:
    rig = Rig((NVCC / "stack.ptx").read_text())
    for n in (3, 7, 40):
        out = np.zeros(32, np.float32)
        rig.run([n, out], block=(32,))
        local = {(i * n) & 31: i for i in range(32)}
        wanted = [n // 2 * t + n % 6 * n + local[t & 31] for t in range(32)] if n % 2 else None
        if wanted is not None:
            np.testing.assert_array_equal(out, wanted)
    rig.device.close()


TREE = """
.func (.param .b32 total) visit(.param .b32 n, .param .b64 above) {
.reg .b32 %r<12>; .reg .b64 %d<6>; .reg .pred %p<4>; .local .align 8 .b8 mine[16];
ld.param.b32 %r1, [n]; ld.param.b64 %d1, [above]; mov.u64 %d2, mine; cvta.local.u64 %d3, %d2;
st.local.u32 [mine+8], %r1; ld.u32 %r2, [%d1+8]; add.u32 %r3, %r2, %r1; st.local.u32 [%d2+4], %r3;
setp.gt.u32 %p2, %r1, 4; setp.eq.u32 %p1, %r1, 0; mov.u32 %r9, 1; @%p1 bra done;
sub.u32 %r4, %r1, 1; shr.u32 %r5, %r1, 1;
{ .param .b32 a; .param .b64 b; .param .b32 r; st.param.b32 [a], %r4; st.param.b64 [b], %d3;
call.uni (r), visit, (a, b); ld.param.b32 %r6, [r]; }
{ .param .b32 a; .param .b64 b; .param .b32 r; st.param.b32 [a], %r5; st.param.b64 [b], %d3;
@%p2 call (r), visit, (a, b); mov.u32 %r7, 0; @%p2 ld.param.b32 %r7, [r]; }
ld.local.u32 %r8, [mine+4]; mad.lo.u32 %r9, %r6, 3, %r7; xor.b32 %r9, %r9, %r8; ld.local.u32 %r10, [mine+8];
add.u32 %r9, %r9, %r10;
done: st.param.b32 [total], %r9; ret; }
.visible .entry tree(.param .u64 data) {
.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p; .local .align 8 .b8 top[16];
mov.u32 %r1, %tid.x; ld.param.u64 %d1, [data]; mad.wide.u32 %d1, %r1, 4, %d1; ld.global.u32 %r2, [%d1];
mov.u64 %d2, top; cvta.local.u64 %d2, %d2; st.local.u32 [top+8], 77; setp.eq.u32 %p, %r2, 5; @%p bra skip;
{ .param .b32 a; .param .b64 b; .param .b32 r; st.param.b32 [a], %r2; st.param.b64 [b], %d2;
call.uni (r), visit, (a, b); ld.param.b32 %r3, [r]; }
add.u32 %r3, %r3, %r1;
skip: @%p mov.u32 %r3, 4; BARRIER st.global.u32 [%d1], %r3; ret; }
"""


def visit(n: int, above: int) -> int:
    if n == 0:
        return 1
    low, other = visit(n - 1, n), visit(n // 2, n) if n > 4 else 0
    return ((low * 3 + other ^ above + n) + n) & 0xFFFFFFFF


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_every_lane_recurses_as_deep_as_it_must_with_frames_of_its_own(barrier: str) -> None:
    """A callee writes its own variables and reads its caller's through a pointer; registers live across calls."""
    n = np.arange(64, dtype=np.uint32) * 5 % 13
    got = run(TREE.replace("BARRIER", barrier), n.copy())
    np.testing.assert_array_equal(got, [4 if v == 5 else visit(int(v), 77) + t & 0xFFFFFFFF for t, v in enumerate(n)])


def test_values_in_registers_predicates_and_structs_survive_a_recursion() -> None:
    text = """
    .func (.param .align 16 .b8 out[24], .param .b32 more) grow(.param .align 16 .b8 in[24], .param .b32 n) {
    .reg .b64 %d<9>; .reg .b32 %r<5>; .reg .b16 %h; .reg .f64 %f; .reg .pred %p, %odd;
    ld.param.v2.b64 {%d1, %d2}, [in]; ld.param.b64 %d3, [in+16]; ld.param.b32 %r1, [n];
    and.b32 %r2, %r1, 1; setp.eq.u32 %odd, %r2, 1; cvt.u16.u32 %h, %r1; cvt.rn.f64.u32 %f, %r1;
    setp.eq.u32 %p, %r1, 0; @%p bra done; sub.u32 %r2, %r1, 1; add.u64 %d4, %d1, 1;
    { .param .align 16 .b8 a[24]; .param .b32 b; .param .align 16 .b8 r[24]; .param .b32 s;
    st.param.v2.b64 [a], {%d4, %d2}; st.param.b64 [a+16], %d3; st.param.b32 [b], %r2;
    call.uni (r, s), grow, (a, b);
    ld.param.v2.b64 {%d1, %d2}, [r]; ld.param.b64 %d3, [r+16]; ld.param.b32 %r3, [s]; }
    @%odd add.u64 %d2, %d2, 100; cvt.u64.u16 %d5, %h; add.u64 %d3, %d3, %d5; cvt.rzi.u64.f64 %d6, %f;
    add.u64 %d3, %d3, %d6;
    done: st.param.v2.b64 [out], {%d1, %d2}; st.param.b64 [out+16], %d3; add.u32 %r3, %r1, 1000;
    st.param.b32 [more], %r3; ret; }
    .visible .entry kernel(.param .u64 data) {
    .reg .b64 %d<9>; .reg .b32 %r<4>; mov.u32 %r1, %tid.x; ld.param.u64 %d1, [data]; mad.wide.u32 %d1, %r1, 32, %d1;
    and.b32 %r2, %r1, 7; cvt.u64.u32 %d2, %r1;
    { .param .align 16 .b8 a[24]; .param .b32 b; .param .align 16 .b8 r[24]; .param .b32 s;
    st.param.v2.b64 [a], {%d2, %d2}; st.param.b64 [a+16], %d2; st.param.b32 [b], %r2;
    call.uni (r, s), grow, (a, b);
    ld.param.v2.b64 {%d3, %d4}, [r]; ld.param.b64 %d5, [r+16]; ld.param.b32 %r3, [s]; }
    cvt.u64.u32 %d6, %r3; st.global.v2.u64 [%d1], {%d3, %d4}; st.global.v2.u64 [%d1+16], {%d5, %d6}; ret; }
    """
    got = run(text, np.zeros((64, 4), np.uint64))
    t = np.arange(64)
    k = t & 7
    np.testing.assert_array_equal(got[:, 0], t + k)
    np.testing.assert_array_equal(got[:, 1], t + 100 * ((k + 1) // 2))
    np.testing.assert_array_equal(got[:, 2], t + k * (k + 1))
    np.testing.assert_array_equal(got[:, 3], k + 1000)


REGISTERS = """
.func (.reg .b32 %out) fib(.reg .b32 %n) {
.reg .b32 %a, %b, %m; .reg .pred %p; setp.lt.u32 %p, %n, 2; mov.u32 %out, %n; @%p ret;
sub.u32 %m, %n, 1; call (%a), fib, (%m); sub.u32 %m, %n, 2; call (%b), fib, (%m); add.u32 %out, %a, %b; ret; }
.visible .entry fibonacci(.param .u64 data) {
.reg .b64 %d; .reg .b32 %i, %v; mov.u32 %i, %tid.x; ld.param.u64 %d, [data]; mad.wide.u32 %d, %i, 4, %d;
ld.global.u32 %v, [%d]; call (%v), fib, (%v); st.global.u32 [%d], %v; ret; }
"""


def test_parameters_and_results_in_registers() -> None:
    fib = [0, 1]
    for _ in range(15):
        fib.append(fib[-1] + fib[-2])
    got = run(REGISTERS, (np.arange(48) % 16).astype(np.uint32), block=48)
    np.testing.assert_array_equal(got, [fib[k % 16] for k in range(48)])


def test_recursion_without_end_is_named_with_its_depth() -> None:
    finding = fault(REGISTERS.replace("@%p ret;", ""), np.ones(4, np.uint32))
    assert finding.id == "recursion"
    assert finding.where is not None
    assert "fib" in (finding.where.text or "")
    depth = int(finding.message.split(" calls deep")[0].split()[-1])
    assert depth > 500


LISTED = """
.func (.reg .b32 %out) one(.reg .b32 %n) { add.u32 %out, %n, 100; ret; }
.func (.reg .b32 %out) two(.reg .b32 %n) { .reg .b32 %t; bar.sync 0; mul.lo.u32 %out, %n, 3; ret; }
.global .u64 chosen[2] = {two, one};
.visible .entry listed(.param .u64 data) {
.reg .b64 %d<4>; .reg .b32 %i, %v; .reg .pred %p;
known: .calltargets one, two;
mov.u32 %i, %tid.x; ld.param.u64 %d1, [data]; mad.wide.u32 %d1, %i, 4, %d1; ld.global.u32 %v, [%d1];
FUNCTION
call (%v), %d2, (%v), known;
st.global.u32 [%d1], %v; ret; }
"""


@pytest.mark.parametrize(("choice", "factor", "plus"), [
    ("mov.u64 %d2, one;", 1, 100), ("mov.u64 %d2, two;", 3, 0), ("ld.global.u64 %d2, [chosen];", 3, 0),
    ("ld.global.u64 %d2, [chosen+8];", 1, 100),
])  # fmt: skip
def test_lists_of_targets(choice: str, factor: int, plus: int) -> None:
    """Among them one with a barrier, which all the block's lanes reach through the call."""
    got = run(LISTED.replace("FUNCTION", choice), np.arange(64, dtype=np.uint32))
    np.testing.assert_array_equal(got, np.arange(64) * factor + plus)


@pytest.mark.parametrize("choice", ["mov.u64 %d2, 0;", "mov.u64 %d2, %d1;", "mov.u64 %d2, one; add.u64 %d2, %d2, 4;"])
def test_wild_indirect_calls(choice: str) -> None:
    assert fault(LISTED.replace("FUNCTION", choice), np.zeros(4, np.uint32)).id == "bad-call"


def test_functions_whose_copies_would_explode_are_called_for_real() -> None:
    levels = "".join(
        f".func (.reg .b32 %o) f{k}(.reg .b32 %n) {{ .reg .b32 %a, %b; call (%a), f{k - 1}, (%n); add.u32 %b, %a, {k};"
        f" call (%b), f{k - 1}, (%b); xor.b32 %o, %a, %b; ret; }}\n"
        for k in range(1, 15)
    )
    text = (
        ".func (.reg .b32 %o) f0(.reg .b32 %n) { mad.lo.u32 %o, %n, 5, 3; ret; }\n" + levels
        + ".visible .entry many(.param .u64 data) { .reg .b64 %d; .reg .b32 %i, %v; mov.u32 %i, %tid.x;"
        " ld.param.u64 %d, [data]; mad.wide.u32 %d, %i, 4, %d; ld.global.u32 %v, [%d]; call (%v), f14, (%v);"
        " st.global.u32 [%d], %v; ret; }"
    )  # fmt: skip
    module = outline(Source("many", HEAD + text))
    graph = CallGraph(module)
    graph.add(module.entries[0])
    assert graph.real

    def f(k: int, n: int) -> int:
        if not k:
            return n * 5 + 3 & 0xFFFFFFFF
        a = f(k - 1, n)
        return a ^ f(k - 1, a + k & 0xFFFFFFFF)

    got = run(text, np.arange(4, dtype=np.uint32), block=4)
    np.testing.assert_array_equal(got, [f(14, n) for n in range(4)])


ALLOCA = """
.func (.param .b32 out) scratch(.param .b32 n) {
.reg .b32 %n, %k, %v, %o; .reg .b64 %d<4>; .reg .pred %p; ld.param.b32 %n, [n]; mul.wide.u32 %d1, %n, 4;
alloca.u64 %d2, %d1, 16; mov.u32 %k, 0; mov.u32 %o, 0;
fill: setp.ge.u32 %p, %k, %n; @%p bra filled; mad.wide.u32 %d3, %k, 4, %d2; st.local.u32 [%d3], %k;
add.u32 %k, %k, 1; bra fill;
filled: setp.eq.u32 %p, %k, 0; @%p bra fin; sub.u32 %k, %k, 1; mad.wide.u32 %d3, %k, 4, %d2; ld.local.u32 %v, [%d3];
add.u32 %o, %o, %v; bra filled;
fin: st.param.b32 [out], %o; ret; }
.visible .entry loops(.param .u64 data) {
.reg .b64 %d<4>; .reg .b32 %i, %v, %k, %s; .reg .pred %p;
mov.u32 %i, %tid.x; ld.param.u64 %d1, [data]; mad.wide.u32 %d1, %i, 4, %d1; ld.global.u32 %v, [%d1]; mov.u32 %k, 0;
mov.u32 %s, 0;
again: BEFORE
{ .param .b32 a; .param .b32 r; st.param.b32 [a], %v; call.uni (r), scratch, (a); ld.param.b32 %i, [r]; }
AFTER
add.u32 %s, %s, %i; add.u32 %k, %k, 1; setp.lt.u32 %p, %k, 500; @%p bra again;
st.global.u32 [%d1], %s; ret; }
"""


@pytest.mark.parametrize(("before", "after"), [
    ("", ""), ("stacksave.u64 %d2; alloca.u64 %d3, 160;", "stackrestore.u64 %d2;"),
])  # fmt: skip
def test_what_a_function_allocates_is_given_back_when_it_returns(before: str, after: str) -> None:
    n = np.arange(64, dtype=np.uint32)
    got = run(ALLOCA.replace("BEFORE", before).replace("AFTER", after), n.copy())
    np.testing.assert_array_equal(got, 500 * (n * (n - 1) // 2))


def test_too_much_on_the_stack() -> None:
    finding = fault(ALLOCA.replace("BEFORE", "alloca.u64 %d3, 160;").replace("AFTER", ""), np.ones(4, np.uint32))
    assert finding.id == "stack-overflow"
