from __future__ import annotations

import io

import pytest

from teenycli.errors import Finding
from teenycli.ptx import code_of, outline
from teenycli.ptx.layout import layout
from teenycli.ptx.metadata import Metadata
from teenycli.ptx.model import Source
from teenycli.ptx.usage import Access, Load, Part, Usage, usage_of
from teenycli.report.console import Console
from teenycli.report.entries_table import entries_page
from teenycli.report.rows import EntryRow, FileRow
from teenycli.report.uses import usage_words
from tests.report.samples import file_row

pytestmark = pytest.mark.unit

LONG = Load(0, 8, "u64")


def drawn(*rows: FileRow, width: int | None = None) -> str:
    console = Console.of_buffers(tty=width is not None, width=width)
    console.show(*entries_page(rows))
    assert isinstance(console.out.stream, io.StringIO)
    return console.out.stream.getvalue()


def test_an_entry_in_full() -> None:
    assert drawn(file_row()) == (
        "add.ptx  PTX 8.7, sm_90a, 64-bit, 2 entries, offsets as on sm_90\n"
        "\n"
        "_Z3addPfi  line 4\n"
        "  add(float*, int)\n"
        "  #  param    type     size  align  offset  about\n"
        "  0  x        u64         8      8       0  ptr to global, align 4\n"
        "  1  n        u32         4      4       8\n"
        "  2  map      b8[128]   128     64      48\n"
        "  3  scratch  u64         8      8     176  hidden, ptr to global, align 1\n"
        "  block      exactly 128 x 1 x 1 threads (.reqntid)\n"
        "  cluster    exactly 2 x 1 x 1 CTAs (.reqnctapercluster)\n"
        "  occupancy  at least 2 CTAs on a multiprocessor (.minnctapersm)\n"
        "  limit      at most 64 registers a thread (.maxnreg)\n"
        "  params     4 in 184 bytes, 1 of them hidden (added by the compiler)\n"
        "  shared     512 bytes static, 2 KiB dynamic by the metadata\n"
        "  metadata   num_warps=4, shared=2048  (from comments)\n"
        "\n"
        "empty  line 19\n"
        "  params  none\n"
    )


def test_bodies_add_what_each_parameter_is_used_for() -> None:
    out = drawn(file_row(bodies=True))
    assert "ptr to global, align 4, stores b32\n" in out
    assert "  8  read as u32\n" in out
    assert "hidden, ptr to global, align 1, never read\n" in out
    assert "  body       5 instructions: 5 of tier 1\n" in out
    assert "  registers  3 b64, 2 b32 (virtual, as declared)\n" in out


@pytest.mark.parametrize("width", [30, 60, 80])
def test_no_width_cuts_anything(width: int) -> None:
    out = drawn(file_row(bodies=True), width=width)
    assert all(len(row) <= width for row in out.splitlines())
    squeezed = "".join(out.split())
    for said in (
        "_Z3addPfi",
        "add(float*,int)",
        "b8[128]",
        "scratch",
        "hidden",
        "exactly128x1x1threads",
        "num_warps=4",
    ):
        assert said in squeezed


def test_parts_of_a_struct_have_rows_of_their_own() -> None:
    head = ".version 8.7\n.target sm_80\n.address_size 64\n"
    body = "ld.param.u64 %rd1,[s+8]; ld.param.f32 %f1,[s+16]; cvta.to.global.u64 %rd2,%rd1; st.global.f32 [%rd2],%f1;"
    text = (
        f"{head}.entry k(.param .u32 n, .param .align 8 .b8 s[24]) {{ .reg .b64 %rd<3>; .reg .f32 %f1; {body} ret; }}\n"
    )
    module = outline(Source("k.ptx", text))
    (entry,) = module.entries
    usages = usage_of(code_of(module, entry))
    row = EntryRow(entry, layout(entry, 80), 0, Metadata(), 0, False, None, usages)
    out = drawn(FileRow("k.ptx", module, 80, (row,)))
    assert (
        "  #  param  type    size  align  offset  about\n"
        "  0  n      u32        4      4       0  never read\n"
        "  1  s      b8[24]    24      8       8  read in 2 parts\n"
        "       +8   u64        8             16  stores f32\n"
        "       +16  f32        4             24  read as f32\n"
    ) in out


def test_a_file_that_could_not_be_read_is_not_drawn() -> None:
    assert drawn(FileRow("bad.ptx", error=Finding("syntax", "no"))) == ""


@pytest.mark.parametrize(
    ("usage", "declared", "words"),
    [
        (Usage(), False, ["never read"]),
        (Usage(loads=(LONG,), pointer=True), False, ["an address"]),
        (
            Usage(
                loads=(LONG,),
                pointer=True,
                accesses=(
                    Access("load", "global", "b32", 4),
                    Access("load", "global", "u8"),
                    Access("atomic", "global", "u32"),
                ),
                elements=frozenset({"f32"}),
            ),
            False,
            ["loads v4.b32 u8", "updates atomically u32", "holds f32"],
        ),
        (
            Usage(loads=(Load(0, 4, "u32"), Load(0, 4, "s32")), address=True, bound=True),
            False,
            ["read as u32 s32", "compared", "part of addresses"],
        ),
        (
            Usage(loads=(Load(0, 4, "b32"),), address=True, bound=True, guard=True, loop=True, divisor=True,
                  factor=True, stride=True, types=frozenset({"s32"})),
            False,
            ["read as b32", "used as s32", "bounds a loop", "guards accesses", "a divisor", "a stride"],
        ),
        (Usage(loads=(Load(0, 4, "u32"),), factor=True), False, ["read as u32", "a factor"]),
        (Usage(escaped=True), False, ["handed on"]),
        (Usage(loads=(LONG,), accesses=(Access("store", "global", "b32"),)), True, ["stores b32"]),
        (
            Usage(loads=(LONG,), pointer=True, accesses=(
                Access("hint", "global", "b8", 1, "prefetch"), Access("load", "global", "b128", 1, "cp.async"),
            )),
            False,
            ["loads b128 (cp.async)", "prefetches"],
        ),
        (Usage(loads=(Load(0, 4, "u32"),), narrow=True), False, ["only 4 bytes of it", "read as u32"]),
        (Usage(loads=(Load(0, 8, "u32"),), beyond=True), False, ["beyond its end", "read as u32"]),
        (
            Usage(tensormap=True, accesses=(Access("load", "global", "", 1, "cp.async.bulk.tensor"),)),
            False,
            ["a tensor map", "loads (cp.async.bulk.tensor)"],
        ),
        (
            Usage(handle=True, accesses=(Access("load", "tex", "f32", 4, "tex"), Access("hint", "tex", "b32"))),
            False,
            ["loads v4.f32 (tex)", "a handle"],
        ),
        (
            Usage(loads=(LONG,), address=True, base=True, accesses=(Access("load", "generic", "f32"),)),
            False,
            ["read as u64", "part of addresses", "loads f32"],
        ),
        (Usage(loads=(Load(4, 4, "u32"),), parts=(Part(offset=4),)), False, ["read in part"]),
        (Usage(loads=(LONG,), escaped=True, parts=(Part(), Part(offset=4))), False, ["read in 2 parts", "handed on"]),
    ],
)  # fmt: skip
def test_usage_in_words(usage: Usage, declared: bool, words: list[str]) -> None:
    assert usage_words(usage, declared) == words


def test_a_mangled_name_is_not_repeated_for_each_parameter() -> None:
    def names(entry: str) -> list[str]:
        text = (
            f".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry {entry}(.param .u32 {entry}_param_0, "
            ".param .u32 other)\n{ ret; }\n"
        )
        module = outline(Source("k.ptx", text))
        (made,) = module.entries
        row = EntryRow(made, layout(made, 80), 0, Metadata(), 0, shared_dynamic=False)
        rows = [line.split() for line in drawn(FileRow("k.ptx", module, 80, (row,))).splitlines()]
        return [row[1] for row in rows if row[:1] in (["0"], ["1"])]

    assert names("_Z3addPfi") == ["_Z3addPfi_param_0", "other"]
    assert names(f"_ZN{'k' * 60}") == ["…_param_0", "other"]
