"""PTX for a real GPU, small and by hand, and launches of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from teenycli.launch.plan import Address, Argument, Field, Launch, Value
from teenycli.ptx import Module, Source, outline
from teenycli.ptx.model import Triple

_HEAD = ".version {version}\n.target {target}\n.address_size 64\n"
_REGISTERS = ".reg .pred %p<3>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .b16 %h<3>;\n"


def kernel(
    body: str, params: str = "", directives: str = "", head: str = "", target: str = "sm_75", version: str = "7.8"
) -> Module:
    """A module with the one entry ``k``."""
    text = _HEAD.format(target=target, version=version)
    text += f"{head}\n.visible .entry k({params}) {directives}\n{{\n{_REGISTERS}{body}\nret;\n}}\n"
    return outline(Source("k.ptx", text))


def scalar(kind: str, size: int, value: Value) -> tuple[str, int, Value]:
    return kind, size, value


def pointer(buffer: str | None, offset: int = 0) -> tuple[str, int, Value]:
    return "ptr", 8, Address(buffer, offset)


def launch(
    args: Sequence[tuple[str, int, Value]], grid: Triple = (1, 1, 1), block: Triple = (1, 1, 1), **rest: Any
) -> Launch:
    ends = list(accumulate(size for _, size, _ in args))
    arguments = tuple(
        Argument(index, f"a{index}", kind, size, (Field(kind, value),), end - size)
        for index, ((kind, size, value), end) in enumerate(zip(args, ends, strict=True))
    )
    return Launch("op", 0, "k", grid, block, arguments, **rest)


#: One thread stores 7 to its argument; what the fault is depends on the address.
STORE = "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;"
FOREVER = "L: bra L;"
#: What comes before a kernel that prints a line, or fails an assertion.
PRINTS_TEXT = """
.global .align 1 .b8 text[7] = {104, 101, 108, 108, 111, 10, 0};
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
"""
PRINTS = """
mov.u64 %rd1, text;
cvta.global.u64 %rd1, %rd1;
{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %rd1; st.param.b64 [b], 0;
call.uni (r), vprintf, (a, b); }
"""
ASSERTS = """
mov.u64 %rd1, text;
cvta.global.u64 %rd1, %rd1;
{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
st.param.b64 [a], %rd1; st.param.b64 [b], %rd1; st.param.b32 [c], 7; st.param.b64 [d], %rd1; st.param.b64 [e], 1;
call.uni __assertfail, (a, b, c, d, e); }
"""
#: Every CTA adds one to the buffer and waits until all have, which ends where all are on the GPU at once.
MEETS = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, %nctaid.x;
red.relaxed.gpu.global.add.u32 [%rd1], 1;
L: ld.relaxed.gpu.global.u32 %r2, [%rd1];
setp.lt.u32 %p1, %r2, %r1;
@%p1 bra L;
"""
#: Runs for 20 ms by the GPU's own clock.
SPIN = """
mov.u64 %rd1, %globaltimer;
L: mov.u64 %rd2, %globaltimer;
sub.u64 %rd3, %rd2, %rd1;
setp.lt.u64 %p1, %rd3, 20000000;
@%p1 bra L;
"""
#: Writes 5 to the last of n bytes of dynamic shared memory, and what it reads there to the buffer.
LAST_OF_SHARED = """
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
mov.u32 %r2, pool;
add.u32 %r2, %r2, %r1;
mov.u16 %h1, 5;
st.shared.u8 [%r2+-1], %h1;
ld.shared.u8 %r3, [%r2+-1];
st.global.u32 [%rd1], %r3;
"""
#: Every CTA adds the number of CTAs in its cluster to the buffer.
CLUSTERS = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, %cluster_nctarank;
red.global.add.u32 [%rd1], %r1;
"""
POOL = ".extern .shared .align 16 .b8 pool[];"
P = ".param .u64 p"
P_N = ".param .u64 p, .param .u32 n"


def copies_its_parameters(sizes: Sequence[tuple[int, int]]) -> Module:
    """A kernel that stores every byte of its parameters, each of (size, align), to the buffer that is its last one."""
    params = [f".param .align {align} .b8 s{index}[{size}]" for index, (size, align) in enumerate(sizes)]
    lines, end = ["ld.param.u64 %rd1, [p];"], 0
    for index, (size, _) in enumerate(sizes):
        for offset in range(size):
            lines.append(f"ld.param.u8 %h1, [s{index}+{offset}];")
            lines.append(f"st.global.u8 [%rd1+{end + offset}], %h1;")
        end += size
    return kernel("\n".join(lines), ", ".join([*params, P]))


def tensor_copy(box: Sequence[int], at: Sequence[int]) -> str:
    """One thread loads a box of floats, at these coordinates, by a tensor copy, and stores it to the buffer."""
    rank, count = len(box), math.prod(box)
    coordinates = "".join(f"mov.u32 %r{k + 3}, {start};\n" for k, start in enumerate(reversed(at)))
    numbers = ", ".join(f"%r{k + 3}" for k in range(rank))
    return f"""
.shared .align 128 .b8 tile[{4 * count}];
.shared .align 8 .b64 bar;
mov.u32 %r1, tile;
mov.u32 %r2, bar;
{coordinates}mbarrier.init.shared.b64 [%r2], 1;
fence.proxy.async;
mov.b64 %rd1, d;
cvta.param.u64 %rd1, %rd1;
mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r2], {4 * count};
cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {{{numbers}}}], [%r2];
W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
@!%p1 bra W;
ld.param.u64 %rd3, [p];
mov.u32 %r5, 0;
L: ld.shared.u32 %r6, [%r1];
st.global.u32 [%rd3], %r6;
add.u32 %r1, %r1, 4;
add.u64 %rd3, %rd3, 4;
add.u32 %r5, %r5, 1;
setp.lt.u32 %p2, %r5, {count};
@%p2 bra L;
"""
