"""Kernels with one planted fault each, and what must be said of it.

Those written by hand have ``//!`` on the line of the fault. Those of ``tests/corpus/nvcc/planted_faults.cu`` have the
kernel's name in a comment on the line of the source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CUDA = Path(__file__).parent.parent.parent / "corpus" / "nvcc" / "planted_faults.cu"
MARK = "//!"

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Planted:
    """A kernel ``(in, out, n)``: two buffers of 512 bytes, named arg0 and arg1 (the first holds 0, 1, 2, …), and 128.

    ``text`` is the body of one written by hand, or the name of an entry of the CUDA source. ``says`` must be in the
    message, ``cta`` and ``thread`` are where it happens; None where any may be first.
    """

    name: str
    text: str
    id: str
    says: str
    thread: Triple | None = (0, 0, 0)
    cta: Triple | None = (0, 0, 0)
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (128,)
    shared: int = 0
    timeout: float = 20
    n: int = 128
    cluster: Triple = (1, 1, 1)
    function: str | None = None
    before: str = ""

    @property
    def is_cuda(self) -> bool:
        return self.text.isidentifier()

    @property
    def module(self) -> str:
        return (
            CUDA.with_suffix(".ptx").read_text() if self.is_cuda else f"{HEAD}{self.before}{ENTRY}{self.text}\nret; }}"
        )

    @property
    def ptx_line(self) -> int:
        """Where the mark is."""
        (line,) = (k for k, text in enumerate(self.module.splitlines(), 1) if MARK in text)
        return line

    @property
    def source_line(self) -> int:
        """Where the comment is."""
        name = re.compile(rf"// {self.text}$")
        (line,) = (k for k, text in enumerate(CUDA.read_text().splitlines(), 1) if name.search(text))
        return line


HEAD = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.const .align 16 .b8 fixed[32];
.global .align 16 .b8 kept[64];
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 u, .param .b64 s);
"""

ENTRY = """
.visible .entry faulty(.param .u64 in, .param .u64 out, .param .u32 n) {
.reg .b128 %q; .reg .b64 %in, %out, %at, %to, %d<9>; .reg .b32 %t, %i, %n, %r<16>; .reg .f32 %f<9>; .reg .b16 %h<3>;
.reg .f64 %g<3>; .reg .pred %p<5>;
.shared .align 16 .b8 room[256]; .shared .align 8 .b64 bar; .local .align 16 .b8 own[16];
ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %i, %r1, %r2, %t;
mad.wide.u32 %at, %i, 4, %in; mad.wide.u32 %to, %i, 4, %out;
"""


def past(verb: str, size: int, offset: int, what: str = "buffer 'arg0'", has: int = 512) -> str:
    """What is said of an access that does not lie within ``has`` bytes."""
    more = f": {offset + size - has} too many" if 0 <= offset < has else ""
    return f"{verb} {size} bytes at offset {offset} of {what}, which has {has} bytes{more}"


def only(thread: int, line: str) -> str:
    """One thread of the grid alone comes to a line."""
    return f"setp.eq.u32 %p1, %i, {thread};\n@%p1 {line} {MARK}"


OUT, SHARED, LOCAL = "buffer 'arg1'", "shared memory", "local memory"
#: Bytes of the header's array in shared memory. Its mbarrier takes 8 more in kernels that name it.
ROOM = 256

GLOBAL = [
    Planted("contiguous, past the end by one", "ld.global.u32 %r3, [%at+4]; //!", "out-of-bounds",
            past("reads", 4, 512), (127, 0, 0)),
    Planted("contiguous store, past the end by a page", "st.global.u32 [%to+4096], %i; //!", "out-of-bounds",
            past("writes", 4, 4096, OUT)),
    Planted("a byte past the end in one lane", only(77, "ld.global.u8 %r3, [%in+512];"), "out-of-bounds",
            past("reads", 1, 512), (13, 0, 0), (2, 0, 0), (4,), (32,)),
    Planted("before the start, uniform", "ld.global.s8 %r3, [%in+-1]; //!", "out-of-bounds", past("reads", 1, -1)),
    Planted("before the start, lanes falling",
            "sub.s32 %r3, 63, %t; mad.wide.s32 %d1, %r3, 4, %out;\nst.global.f32 [%d1], %f1; //!",
            "out-of-bounds", past("writes", 4, -4, OUT), (64, 0, 0)),
    Planted("far before the start", only(3, "st.global.b64 [%out+-65536], %d1;"), "out-of-bounds",
            past("writes", 8, -65536, OUT), (3, 0, 0)),
    Planted("a half at an odd address", only(40, "ld.global.u16 %h1, [%in+7];"), "misaligned",
            "reads 2 bytes at offset 7 of buffer 'arg0', which 2 does not divide", (40, 0, 0)),
    Planted("64 bits where lanes are 32 apart", "ld.global.b64 %d1, [%at]; //!", "misaligned",
            "reads 8 bytes at offset 4 of buffer 'arg0', which 8 does not divide", (1, 0, 0)),
    Planted("a pair of doubles that reaches past the end", only(5, "ld.global.v2.f64 {%g1, %g2}, [%in+504];"),
            "out-of-bounds", past("reads", 16, 504), (5, 0, 0)),
    Planted("four words past the end", "mad.wide.u32 %d1, %t, 16, %out;\nst.global.v4.b32 [%d1], {%r1, %r2, %i, %t}; //!",
            "out-of-bounds", past("writes", 16, 512, OUT), (32, 0, 0)),
    Planted("128 bits past the end", only(120, "ld.global.b128 %q, [%in+512];"), "out-of-bounds",
            past("reads", 16, 512), (120, 0, 0)),
    Planted("128 bits at half their size", only(120, "st.global.b128 [%out+8], %q;"), "misaligned",
            "writes 16 bytes at offset 8 of buffer 'arg1', which 16 does not divide", (120, 0, 0)),
    Planted("eight words that reach past the end",
            only(9, "ld.global.v8.b32 {%r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10}, [%in+496];"),
            "out-of-bounds", past("reads", 32, 496), (9, 0, 0)),
    Planted("strided, past the end in the middle of the block",
            "mad.wide.u32 %d1, %t, 8, %out;\nst.global.u32 [%d1], %t; //!", "out-of-bounds",
            past("writes", 4, 512, OUT), (64, 0, 0)),
    Planted("gathered, one index wrong",
            "ld.global.u32 %r3, [%at]; setp.eq.u32 %p1, %r3, 45; @%p1 mov.u32 %r3, 1000; mad.wide.u32 %d1, %r3, 4, %out;\n"
            "ld.global.f32 %f1, [%d1]; //!", "out-of-bounds", past("reads", 4, 4000, OUT), (45, 0, 0)),
    Planted("scattered, two lanes wrong: the first is named",
            "xor.b32 %r3, %t, 5; setp.gt.u32 %p1, %t, 30; and.b32 %r4, %t, 64; @%p1 add.u32 %r3, %r3, %r4;\n"
            "mad.wide.u32 %d1, %r3, 4, %out;\nst.global.u32 [%d1], %t; //!", "out-of-bounds",
            past("writes", 4, 4 * (64 + 64 + 5), OUT), (64, 0, 0)),
    Planted("a wild pointer", only(6, "ld.global.u32 %r3, [%d1];").replace("setp", "mov.u64 %d1, 0x123456789abcdef0; setp"),
            "out-of-bounds", "reads 4 bytes at 0x123456789abcdef0, where no buffer is", (6, 0, 0)),
    Planted("a null pointer", "mov.u64 %d1, 0;\nst.global.u32 [%d1], 1; //!", "null-pointer",
            "writes 4 bytes at address 0x0: a null pointer"),
    Planted("a member of a null pointer, odd",
            "setp.eq.u32 %p2, %t, 31; selp.b64 %d1, 0, %in, %p2;\nld.global.u32 %r3, [%d1+22]; //!".replace("22", "20"),
            "null-pointer", "reads 4 bytes at address 0x14: a null pointer", (31, 0, 0)),
    Planted("the 64-bit address cut to 32 bits", "cvt.u32.u64 %r3, %to; cvt.u64.u32 %d1, %r3;\nst.u32 [%d1], 1; //!",
            "null-pointer", "writes 4 bytes at address 0x0"),
    Planted("acquire, past the end", only(8, "ld.acquire.gpu.global.u32 %r3, [%in+512];"), "out-of-bounds",
            past("reads", 4, 512), (8, 0, 0)),
    Planted("through the read-only path", "ld.global.nc.v2.u32 {%r3, %r4}, [%in+512]; //!", "out-of-bounds",
            past("reads", 8, 512)),
    Planted("multimem past the end", only(8, "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r3, [%in+512];"),
            "out-of-bounds", past("reads", 4, 512), (8, 0, 0)),
    Planted("multimem.red past the end", only(8, "multimem.red.relaxed.gpu.global.add.u32 [%out+512], %i;"),
            "out-of-bounds", past("writes", 4, 512, OUT), (8, 0, 0)),
]  # fmt: skip

PLACES = [
    Planted("in the last thread of a big grid", only(2047 * 1024 + 1023, "ld.global.u32 %r3, [%in+512];"),
            "out-of-bounds", past("reads", 4, 512), (1023, 0, 0), (2047, 0, 0), (2048,), (1024,)),
    Planted("in one thread of three dimensions",
            "mov.u32 %r3, %tid.y; mov.u32 %r4, %tid.z; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;\n"
            "mad.lo.u32 %r7, %r4, 10, %r3; mad.lo.u32 %r7, %r7, 10, %t; mad.lo.u32 %r8, %r6, 10, %r5;\n"
            "mad.lo.u32 %r8, %r8, 10, %r1; setp.ne.u32 %p1, %r7, 135; setp.ne.or.u32 %p1, %r8, 121, %p1;\n"
            "@!%p1 st.global.u16 [%out+-2], %h1; //!",
            "out-of-bounds", past("writes", 2, -2, OUT), (5, 3, 1), (1, 2, 1), (2, 3, 2), (8, 4, 2)),
    Planted("in the else of a divergent branch, in a loop",
            "mov.u32 %r3, 0;\nround: and.b32 %r4, %t, 3; setp.eq.u32 %p1, %r4, %r3; @%p1 bra other;\n"
            "mad.wide.u32 %d1, %r3, 128, %at;\nld.global.u32 %r5, [%d1]; //!\n"
            "other: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 6; @%p2 bra round;",
            "out-of-bounds", past("reads", 4, 512), (0, 0, 0), block=(32,)),
    Planted("after a barrier, in the third warp", "st.shared.u32 [room], %t; bar.sync 0;\n"
            "ld.shared.u32 %r3, [room]; " + only(70, "st.global.u32 [%to+256], %r3;"),
            "out-of-bounds", past("writes", 4, 536, OUT), (70, 0, 0)),
    Planted("in a function, called for some lanes", "setp.gt.u32 %p1, %t, 99; @%p1 call look, (%at);",
            "out-of-bounds", past("reads", 4, 512), (124, 0, 0), function="look",
            before=".func look(.reg .b64 %p) { .reg .b32 %v;\nld.global.u32 %v, [%p+16]; //!\nret; }"),
    Planted("in a function that calls itself", "call (%r3), sum, (%in, 0);", "out-of-bounds", past("reads", 4, 512),
            function="sum", before=".func (.reg .b32 %s) sum(.reg .b64 %p, .reg .b32 %k) { .reg .b32 %v, %w; .reg .b64 %x;\n"
            ".reg .pred %z; setp.gt.u32 %z, %k, 900; @%z ret; mad.wide.u32 %x, %k, 4, %p;\n"
            "ld.global.u32 %v, [%x]; //!\nadd.u32 %w, %k, 1; call (%s), sum, (%p, %w); add.u32 %s, %s, %v; ret; }"),
    Planted("in a cluster's second block", "mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p1, %r3, 1;\n"
            "@%p1 ld.global.u32 %r3, [%in+512]; //!", "out-of-bounds", past("reads", 4, 512), (0, 0, 0), (1, 0, 0),
            (2,), (32,), cluster=(2, 1, 1)),
    Planted("a line of the source", '.file 1 "some/kernel.cu"\n.loc 1 42 7\nst.global.u32 [%to+512], %t; //!',
            "out-of-bounds", past("writes", 4, 512, OUT)),
]  # fmt: skip

ATOMIC = [
    Planted("atom past the end", "mad.wide.u32 %d1, %t, 8, %out;\natom.global.add.u32 %r3, [%d1], 1; //!",
            "out-of-bounds", past("writes", 4, 512, OUT), (64, 0, 0)),
    Planted("red before the start", only(11, "red.global.add.f32 [%out+-4], %f1;"), "out-of-bounds",
            past("writes", 4, -4, OUT), (11, 0, 0)),
    Planted("cas of 64 bits, misaligned, in shared memory", only(1, "atom.shared.cas.b64 %d1, [room+4], %d2, %d3;"),
            "misaligned", "writes 8 bytes at offset 4 of shared memory, which 8 does not divide", (1, 0, 0)),
    Planted("cas of 16 bits past the end", only(1, "atom.global.cas.b16 %h1, [%out+512], %h1, %h2;"),
            "out-of-bounds", past("writes", 2, 512, OUT), (1, 0, 0)),
    Planted("exchange of 128 bits past the end", only(64, "atom.global.exch.b128 %q, [%out+512], %q;"),
            "out-of-bounds", past("writes", 16, 512, OUT), (64, 0, 0)),
    Planted("a vector of floats added past the end", only(64, "atom.global.v2.f32.add {%f1, %f2}, [%out+512], {%f3, %f4};"),
            "out-of-bounds", past("writes", 8, 512, OUT), (64, 0, 0)),
    Planted("a vector of floats reduced, misaligned", only(64, "red.global.add.v4.f32 [%out+8], {%f1, %f2, %f3, %f4};"),
            "misaligned", "writes 16 bytes at offset 8 of buffer 'arg1', which 16 does not divide", (64, 0, 0)),
    Planted("atom on a constant", "mov.u64 %d1, fixed; cvta.const.u64 %d1, %d1;\natom.add.u32 %r3, [%d1], 1; //!",
            "read-only", "writes 4 bytes at offset 0 of variable 'fixed', which is read-only"),
]  # fmt: skip

WINDOWS = [
    Planted("shared memory overrun", "mov.u32 %r3, room; mad.lo.u32 %r3, %t, 4, %r3;\nst.shared.u32 [%r3+12], %t; //!",
            "out-of-bounds", past("writes", 4, 256, SHARED, ROOM), (61, 0, 0)),
    Planted("before shared memory", only(2, "ld.shared.u32 %r3, [room+-4];"), "out-of-bounds",
            past("reads", 4, -4, SHARED, ROOM), (2, 0, 0)),
    Planted("before shared memory, in 32 bits", "mov.u32 %r3, room; mad.lo.s32 %r3, %t, -4, %r3;\nst.shared.f32 [%r3], %f1; //!",
            "out-of-bounds", past("writes", 4, -4, SHARED, ROOM), (1, 0, 0)),
    Planted("dynamic shared memory overrun", "st.shared.u32 [room], %t; mov.u32 %r3, dynamic; mad.lo.u32 %r3, %t, 2, %r3;\n"
            "st.shared.u8 [%r3+1], %t; //!", "out-of-bounds", past("writes", 1, 256 + 101, SHARED, 256 + 100), (50, 0, 0), shared=100),
    Planted("dynamic shared memory that the launch gives none of", "st.shared.u32 [dynamic], %t; //!", "out-of-bounds",
            past("writes", 4, 0, SHARED, 0)),
    Planted("a vector of shared memory, misaligned", only(33, "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [room+8];"),
            "misaligned", "reads 16 bytes at offset 8 of shared memory, which 16 does not divide", (33, 0, 0)),
    Planted("generic address past shared memory", "mov.u64 %d1, room; cvta.shared.u64 %d1, %d1; mad.wide.u32 %d1, %t, 8, %d1;\n"
            "st.v2.b32 [%d1], {%t, %i}; //!", "out-of-bounds", past("writes", 8, 256, SHARED, ROOM), (32, 0, 0)),
    Planted("generic address before shared memory", "mov.u64 %d1, room; cvta.shared.u64 %d1, %d1;\nld.u8 %r3, [%d1+-1]; //!",
            "out-of-bounds", past("reads", 1, -1, SHARED, ROOM)),
    Planted("shared memory of a cluster's other block", "mov.u32 %r3, room; mapa.shared::cluster.u32 %r4, %r3, 1;\n"
            "ld.shared::cluster.u32 %r5, [%r4+512]; //!", "out-of-bounds",
            past("reads", 4, 512, "shared memory of the cluster's block 1", ROOM), (0, 0, 0), None, (2,), (32,), cluster=(2, 1, 1)),
    Planted("local memory overrun", "and.b32 %r3, %t, 7; mov.u64 %d1, own; mad.wide.u32 %d1, %r3, 4, %d1;\n"
            "st.local.u32 [%d1], %t; //!", "out-of-bounds", past("writes", 4, 16, LOCAL, 16), (4, 0, 0)),
    Planted("before local memory", only(3, "ld.local.b64 %d1, [own+-8];"), "out-of-bounds",
            past("reads", 8, -8, LOCAL, 16), (3, 0, 0)),
    Planted("generic address past local memory", "mov.u64 %d1, own; cvta.local.u64 %d1, %d1; "
            + only(65, "st.b64 [%d1+16], %d2;"), "out-of-bounds", past("writes", 8, 16, LOCAL, 16), (65, 0, 0)),
    Planted("past a constant", "mov.u64 %d1, fixed; mad.wide.u32 %d1, %t, 4, %d1;\nld.const.u32 %r3, [%d1]; //!",
            "out-of-bounds", past("reads", 4, 32, "variable 'fixed'", 32), (8, 0, 0)),
    Planted("a constant written", "mov.u64 %d1, fixed; cvta.const.u64 %d1, %d1; " + only(20, "st.u8 [%d1+3], %t;"),
            "read-only", "writes 1 bytes at offset 3 of variable 'fixed', which is read-only", (20, 0, 0)),
    Planted("past a module's variable", only(20, "st.global.v2.u32 [kept+64], {%t, %t};"), "out-of-bounds",
            past("writes", 8, 64, "variable 'kept'", 64), (20, 0, 0)),
    Planted("past the parameters", "mov.u64 %d1, in; mad.wide.u32 %d1, %t, 4, %d1;\nld.param.u32 %r3, [%d1]; //!",
            "out-of-bounds", past("reads", 4, 20, "the parameters", 20), (5, 0, 0)),
    Planted("a parameter written", "mov.b64 %d1, in; cvta.param.u64 %d1, %d1;\nst.u32 [%d1], 1; //!", "read-only",
            "writes 4 bytes at offset 0 of the parameters, which is read-only"),
]  # fmt: skip

COPIES = [
    Planted("cp.async from past the end", "mov.u32 %r3, room;\ncp.async.cg.shared.global [%r3], [%in+512], 16; //!",
            "out-of-bounds", past("reads", 16, 512)),
    Planted("cp.async past shared memory", "mov.u32 %r3, room; mad.lo.u32 %r3, %t, 8, %r3;\n"
            "cp.async.ca.shared.global [%r3], [%in], 8; //!", "out-of-bounds",
            past("writes", 8, 256, SHARED, ROOM), (32, 0, 0)),
    Planted("cp.async of some bytes, the last past the end", only(4, "cp.async.ca.shared.global [room], [%in+508], 8, 6;"),
            "out-of-bounds", "reads 1 bytes at offset 512 of buffer 'arg0'", (4, 0, 0)),
    Planted("cp.async to an odd place", only(4, "cp.async.ca.shared.global [room+2], [%in], 4;"), "misaligned",
            "writes 4 bytes at offset 2 of shared memory, which 4 does not divide", (4, 0, 0)),
    Planted("a bulk copy from past the end", "mbarrier.init.shared.b64 [bar], 1;\n"
            + only(0, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room], [%in+384], 256, [bar];"),
            "out-of-bounds", past("reads", 256, 384), block=(1,)),
    Planted("a bulk copy past the end", only(0, "cp.async.bulk.global.shared::cta.bulk_group [%out+496], [room], 32;"),
            "out-of-bounds", past("writes", 32, 496, OUT)),
    Planted("a bulk copy past shared memory",
            only(0, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room], [%in], 512, [bar];"),
            "out-of-bounds", past("writes", 512, 0, SHARED, ROOM + 8)),
    Planted("a bulk copy from an odd place", only(7, "cp.async.bulk.global.shared::cta.bulk_group [%out], [room+8], 32;"),
            "misaligned", "reads 32 bytes at offset 8 of shared memory, which 16 does not divide", (7, 0, 0)),
    Planted("a bulk copy of 24 bytes", only(7, "cp.async.bulk.global.shared::cta.bulk_group [%out], [room], 24;"),
            "bad-copy", "is given 24 bytes, no multiple of 16", (7, 0, 0)),
    Planted("st.bulk past shared memory", only(7, "st.bulk.weak.shared::cta [room], 512, 0;"), "out-of-bounds",
            past("writes", 512, 0, SHARED, ROOM), (7, 0, 0)),
    Planted("st.async to an mbarrier past shared memory", "mov.u32 %r3, room;\n"
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %t, [%r3+512]; //!", "out-of-bounds",
            past("writes", 8, 512, SHARED, ROOM)),
    Planted("an mbarrier past shared memory", only(7, "mbarrier.arrive.shared.b64 %d1, [room+264];"), "out-of-bounds",
            past("writes", 8, 264, SHARED, ROOM), (7, 0, 0)),
    Planted("an mbarrier of no arrivals", "mbarrier.init.shared.b64 [bar], 0; //!", "bad-mbarrier", "'mbarrier.init.shared.b64' with 0"),
    Planted("more arrivals than an mbarrier has pending", "mbarrier.init.shared.b64 [bar], 2;\n"
            "mbarrier.arrive.shared.b64 %d1, [bar], 3; //!", "bad-mbarrier", "'mbarrier.arrive.shared.b64' with 3", block=(1,)),
]  # fmt: skip

CALLS = [
    Planted("an index past a table of branches", "table: .branchtargets one, two; setp.eq.u32 %p1, %t, 37; selp.u32 %r3, 2, 1, %p1;\n"
            "brx.idx %r3, table; //!\none: mov.u32 %r4, 1;\ntwo: mov.u32 %r4, 2;", "bad-branch",
            "the index of 'brx.idx' lies past its table", (37, 0, 0)),
    Planted("a call through 0", "mov.u64 %d1, 0; kind: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
            "call (%r3), %d1, (%t), kind; //!", "bad-call", "'call %d1' goes to 0x0, where no function for it is",
            before=".func (.reg .b32 %o) plain(.reg .b32 %v) { mov.u32 %o, %v; ret; }"),
    Planted("a call of data", "kind: .callprototype (.reg .b32 _) _ (.reg .b32 _); mov.u64 %d1, plain; setp.eq.u32 %p1, %t, 99;\n"
            "@%p1 mov.u64 %d1, kept;\ncall (%r3), %d1, (%t), kind; //!", "bad-call", "where no function for it is", (99, 0, 0),
            before=".func (.reg .b32 %o) plain(.reg .b32 %v) { mov.u32 %o, %v; ret; }"),
    Planted("recursion without end", "call (%r3), down, (%t);", "recursion", "calls deep, all a thread's stack of 65536 bytes",
            function="down", before=".func (.reg .b32 %o) down(.reg .b32 %v) { .reg .b32 %w; add.u32 %w, %v, 1;\n"
            "call (%o), down, (%w); //!\nadd.u32 %o, %o, %v; ret; }"),
    Planted("alloca of more than the stack has", "mul.lo.u32 %r3, %t, 1024; cvt.u64.u32 %d2, %r3;\nalloca.u64 %d1, %d2; //!",
            "stack-overflow", "wants more than the 65536 bytes that a thread has for it", (65, 0, 0)),
    Planted("past what alloca gave", "mov.u64 %d2, 32;\nalloca.u64 %d1, %d2; " + only(1, "st.local.u32 [%d1+70000], %t;"),
            "out-of-bounds", "writes 4 bytes at offset", (1, 0, 0)),
    Planted("a stack that never was", "mov.u64 %d1, 123456789;\nstackrestore.u64 %d1; //!", "stack-overflow", "'stackrestore.u64'"),
    Planted("trap", only(88, "trap;"), "trap", "'trap' ended the kernel", (88, 0, 0)),
    Planted("brkpt", only(88, "brkpt;"), "trap", "'brkpt' ended the kernel", (88, 0, 0)),
    Planted("an assertion", "mov.u64 %d1, fixed; cvta.const.u64 %d1, %d1; " + only(6, "call __assertfail, (%d1, %d1, 77, %d1, 1);"),
            "assertion", ":77: : assertion '' failed", (6, 0, 0)),
    Planted("an assertion whose text is nowhere", "mov.u64 %d1, 0x77777777777777; " + only(6, "call __assertfail, (%d1, %d1, 77, %d1, 1);"),
            "out-of-bounds", "reads at 0x77777777777777, where no buffer is", (6, 0, 0)),
    Planted("a format without an end", "add.u64 %d1, %in, 496; mov.u32 %r3, 0x41414141;\n"
            "st.global.v4.u32 [%d1], {%r3, %r3, %r3, %r3}; " + only(6, "call (%r3), vprintf, (%d1, 0);"),
            "out-of-bounds", "reads at offset 512 of buffer 'arg0'", (6, 0, 0)),
    Planted("past a block of the heap", "call (%d1), malloc, (40); " + only(2, "st.u32 [%d1+40], %t;"), "out-of-bounds",
            past("writes", 4, 40, "a block of the heap", 40), (2, 0, 0)),
    Planted("a block of the heap that is freed", "call (%d1), malloc, (40); call free, (%d1);\nst.u32 [%d1], %t; //!",
            "use-after-free", "writes 4 bytes of a block of the heap, which has been freed"),
    Planted("freed twice", "call (%d1), malloc, (40); call free, (%d1); " + only(90, "call free, (%d1);"), "double-free",
            "which has been freed already", (90, 0, 0)),
    Planted("freed in its middle", "call (%d1), malloc, (40); add.u64 %d1, %d1, 8; " + only(90, "call free, (%d1);"), "bad-free",
            "which 'malloc' has not given", (90, 0, 0)),
    Planted("a buffer of the host freed", only(90, "call free, (%out);"), "bad-free", "which 'malloc' has not given", (90, 0, 0)),
]  # fmt: skip

TOGETHER = [
    Planted("a lane that its mask does not name", "shfl.sync.idx.b32 %r3, %t, 0, 31, 0x0fffffff; //!", "bad-member-mask",
            "runs in lane 28, which its member mask 0x0fffffff does not name", (28, 0, 0)),
    Planted("a mask of the other half, in a branch", "setp.lt.u32 %p1, %t, 80; @%p1 bra done; setp.lt.u32 %p2, %t, 96;\n"
            "@!%p2 bra done;\nbar.warp.sync 0x0000ffff; //!\ndone:", "bad-member-mask", "runs in lane 16", (80, 0, 0)),
    Planted("a barrier past the last", "bar.sync 5; add.u32 %r3, %n, -112;\nbar.sync %r3; //!", "bad-barrier", "names a barrier past 15"),
    Planted("a barrier for part of a warp", "bar.sync 1, 100; //!", "bad-barrier", "is for 100 threads, no multiple of 32"),
    Planted("a barrier for part of a warp, by a register", "setp.lt.u32 %p1, %t, 32; @%p1 bra done; sub.u32 %r3, %n, 48;\n"
            "barrier.arrive 1, %r3; //!\ndone:", "bad-barrier", "is for 80 threads, no multiple of 32", (32, 0, 0)),
    Planted("a barrier that a warp does not come to", "setp.lt.u32 %p1, %t, 96; @%p1 bra done;\nbar.sync 3, 128; //!\ndone:",
            "deadlock", "warp 3 at 'bar.sync' in line 20", None),
    Planted("a barrier for more threads than there are", "bar.sync 1, 160; //!", "deadlock", "warps 0 to 3 at 'bar.sync'", None),
    Planted("a barrier that half a warp misses", "setp.lt.u32 %p1, %t, 112; @%p1 bra done;\nbarrier.sync 3, 128; bra end; //!\n"
            "done: barrier.sync 4, 128;\nend:", "deadlock", "warp 3 at 'barrier.sync' in line 20", None),
    Planted("a flag that nobody sets", "wait: ld.acquire.gpu.global.u32 %r3, [%in];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra wait; //!",
            "timeout", "stopped by the time-out", None, None, (4,), timeout=0.4),
    Planted("an endless loop of one lane", "setp.ne.u32 %p1, %t, 50; @%p1 bra done;\nagain: add.u32 %r3, %r3, 1;\nbra again; //!\ndone:",
            "timeout", "stopped by the time-out", None, timeout=0.4),
    Planted("an mbarrier that never completes", "setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [bar], 129; bar.sync 0;\n"
            "mbarrier.arrive.shared.b64 %d1, [bar];\nwait: mbarrier.try_wait.shared.b64 %p2, [bar], %d1; //!\n@!%p2 bra wait;",
            "deadlock", "warps 0 to 3 at 'mbarrier.try_wait.shared.b64' in line 21", None),
]  # fmt: skip

COMPILED = [
    Planted("CUDA: past the end by one", "past_the_end_by_one", "out-of-bounds", past("writes", 4, 512, OUT), (0, 0, 0), (4, 0, 0), (5,), (32,)),
    Planted("CUDA: past the end by a page", "past_the_end_by_a_page", "out-of-bounds", past("writes", 4, 4096, OUT)),
    Planted("CUDA: before the start", "before_the_start", "out-of-bounds", past("reads", 4, -4)),
    Planted("CUDA: misaligned", "misaligned_pair", "misaligned", "reads 8 bytes at offset 4 of buffer 'arg0', which 8 does not divide"),
    Planted("CUDA: a wide store", "a_wide_store", "out-of-bounds", past("writes", 16, 512, OUT), (32, 0, 0)),
    Planted("CUDA: a column too many", "a_column_too_many", "out-of-bounds", past("writes", 4, 512, OUT), (8, 2, 0), (0, 2, 0), (1, 3), (16, 4), n=12),
    Planted("CUDA: a round too many", "a_round_too_many", "out-of-bounds", past("reads", 4, 512), block=(32,)),
    Planted("CUDA: gathered", "gathered", "out-of-bounds", past("writes", 4, 512, OUT), (64, 0, 0)),
    Planted("CUDA: in a function", "in_a_function", "out-of-bounds", past("writes", 4, 4 * (52 + 128), OUT), (52, 0, 0), function="_Z3putPfif"),
    Planted("CUDA: in an inlined function", "in_an_inlined_function", "out-of-bounds", past("reads", 4, 512), (127, 0, 0)),
    Planted("CUDA: shared memory overrun", "shared_overrun", "out-of-bounds", past("writes", 4, 256, SHARED, 256), (63, 0, 0), block=(64,)),
    Planted("CUDA: dynamic shared memory overrun", "dynamic_shared_overrun", "out-of-bounds", past("reads", 4, 256, SHARED, 256), (32, 0, 0), block=(64,), shared=256),
    Planted("CUDA: local memory overrun", "local_overrun", "out-of-bounds", past("reads", 4, 32, LOCAL, 32), (32, 0, 0)),
    Planted("CUDA: past a variable", "past_a_module_variable", "out-of-bounds", past("writes", 4, 128, "variable 'bins'", 128), (32, 0, 0)),
    Planted("CUDA: a constant written", "constant_written", "read-only", "writes 4 bytes at offset 0 of variable 'table', which is read-only"),
    Planted("CUDA: an atomic past the end", "atomic_past_the_end", "out-of-bounds", past("writes", 4, 512, OUT), (64, 0, 0)),
    Planted("CUDA: an asynchronous copy", "asynchronous_copy", "out-of-bounds", past("reads", 16, 2048), block=(64,)),
    Planted("CUDA: recursion without end", "recursion_without_end", "recursion", "calls deep", function="_Z6deeperiPi"),
    Planted("CUDA: a call through null", "call_through_null", "bad-call", "goes to 0x0", (2, 0, 0)),
    Planted("CUDA: an assertion", "an_assertion", "assertion", "planted_faults.cu:165: void an_assertion(const float *, float *, int): assertion 'i != 77' failed", (13, 0, 0), (2, 0, 0), (4,), (32,)),
    Planted("CUDA: a trap", "a_trap", "trap", "ended the kernel", (99, 0, 0)),
    Planted("CUDA: freed heap", "freed_heap", "use-after-free", "of a block of the heap, which has been freed", None),
    Planted("CUDA: freed twice", "freed_twice", "double-free", "freed already", (5, 0, 0)),
    Planted("CUDA: freed though not allocated", "freed_unowned", "bad-free", "which 'malloc' has not given", (9, 0, 0)),
    Planted("CUDA: printed wildly", "printed_wildly", "out-of-bounds", "reads at offset 1000 of buffer 'arg1'", (3, 0, 0), n=1000),
    Planted("CUDA: an endless loop", "an_endless_loop", "timeout", "stopped by the time-out", None, timeout=0.4),
    Planted("CUDA: a wrong mask", "a_wrong_mask", "bad-member-mask", "which its member mask 0x0000ffff does not name", (16, 0, 0)),
]  # fmt: skip

PLANTED = [*GLOBAL, *PLACES, *ATOMIC, *WINDOWS, *COPIES, *CALLS, *TOGETHER, *COMPILED]
