"""Plans, entries and results that the tests of this room draw."""

from __future__ import annotations

import numpy as np

from teenycli.dtypes import DTYPES
from teenycli.launch.plan import Address, Argument, Buffer, Field, Launch, Plan
from teenycli.ptx import code_of, outline
from teenycli.ptx.layout import layout
from teenycli.ptx.metadata import Metadata
from teenycli.ptx.model import Source
from teenycli.ptx.usage import usage_of
from teenycli.report.rows import Body, Compared, EntryRow, FileRow, RunReport, RunRow
from teenycli.tensors.compare import compare, summarize

F32 = DTYPES["f32"]

PTX = """\
.version 8.7
.target sm_90a
.address_size 64
.visible .entry _Z3addPfi(
    .param .u64 .ptr .global .align 4 x,
    .param .u32 n,
    .param .align 64 .b8 map[128],
    .param .u64 .ptr .global .align 1 scratch
) .reqntid 128, 1, 1 .minnctapersm 2 .maxnreg 64 .reqnctapercluster 2, 1, 1
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd0, [x];
    ld.param.u32 %r0, [n];
    cvta.to.global.u64 %rd1, %rd0;
    st.global.b32 [%rd1], %r0;
    ret;
}
.visible .entry empty() { ret; }
"""


def file_row(bodies: bool = False) -> FileRow:
    module = outline(Source("add.ptx", PTX))
    first, second = module.entries
    usages = usage_of(code_of(module, first)) if bodies else None
    body = Body({1: 5}, {"b64": 3, "b32": 2}) if bodies else None
    metadata = Metadata(num_warps=4, shared=2048, source="comments")
    entries = (
        EntryRow(first, layout(first, 90), 1, metadata, 512, True, "add(float*, int)", usages, body),
        EntryRow(second, layout(second, 90), 0, Metadata(), 0, False),
    )
    return FileRow("add.ptx", module, 90, entries)


def pointer(index: int, name: str, buffer: str | None, offset: int = 0, hidden: bool = False) -> Argument:
    return Argument(index, name, "ptr", 8, (Field("ptr", Address(buffer, offset)),), 8 * index, hidden)


def plan(launches: int = 1) -> Plan:
    buffers = (
        Buffer("x", F32, (2, 4), "input"),
        Buffer("state", F32, (16,), "input", output="state_out"),
        Buffer("y", F32, (2, 4), "output"),
        Buffer("unused", F32, (1000,), "param"),
        Buffer("scratch", DTYPES["u8"], (4096,), "scratch"),
    )

    def launch(index: int) -> Launch:
        config = (Field("ptr", Address("x")), Field("i32", 1024, 8), Field("f32", 0.5, 12))
        args = (
            pointer(0, "x", "x"),
            pointer(1, "again", "x", 16),
            pointer(2, "state", "state"),
            pointer(3, "y", "y", 4 * index),
            pointer(4, "nothing", None),
            Argument(5, "config", "struct", 16, config, 40),
            Argument(6, "n", "i32", 4, (Field("i32", 8),), 56),
            Argument(7, "flag", "bool", 1, (Field("bool", 1),), 60),
            Argument(8, "bad", "f64", 8, (Field("f64", float("nan")),), 64),
            Argument(9, "raw", "bytes", 4, (Field("bytes", b"\x00\xff\x10\x01"),), None),
            pointer(10, "global_scratch", "scratch", hidden=True),
        )
        return Launch("add", index, "add_kernel", (1000 + index, 1, 1), (96, 2, 1), args, (2, 1, 1), 2048)

    made = tuple(launch(index) for index in range(launches))
    return Plan("add", {"B": 2, "N": 4}, "add.ptx", "add_kernel", buffers, made, {"BLOCK": 4}, {"eps": 1e-5})


def report(launches: int = 1) -> RunReport:
    result = np.arange(8, dtype=np.float32).reshape(2, 4)
    wrong = result.copy()
    wrong[0, 1] = 9
    wrong[1, 3] = np.nan
    good = compare(result, result.astype(np.float64), F32, 1e-5, 1e-6)
    bad = compare(wrong, result.astype(np.float64), F32, 1e-5, 1e-6)
    run = RunRow(
        plan(launches),
        tuple(0.25 * (i + 1) for i in range(launches)),
        512,
        (summarize("y", wrong, F32), summarize("state_out", result, F32)),
        (Compared("y", bad), Compared("state_out", good)),
    )
    return RunReport("cpu", "AVX-512, 2 threads", 12.5, False, (run,))
