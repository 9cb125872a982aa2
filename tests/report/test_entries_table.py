from __future__ import annotations

import io

import pytest

from teenycli.errors import Finding
from teenycli.ptx.usage import Access, Load, Usage
from teenycli.report.console import Console
from teenycli.report.entries_table import entries_page, usage_words
from teenycli.report.rows import FileRow
from tests.report.samples import file_row

pytestmark = pytest.mark.unit


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


def test_a_file_that_could_not_be_read_is_not_drawn() -> None:
    assert drawn(FileRow("bad.ptx", error=Finding("syntax", "no"))) == ""


@pytest.mark.parametrize(
    ("usage", "declared", "words"),
    [
        (Usage(), False, ["never read"]),
        (Usage(loads=(Load(0, 8, "u64"),), pointer=True), False, ["an address"]),
        (
            Usage(
                loads=(Load(0, 8, "u64"),),
                pointer=True,
                accesses=(
                    Access("load", "global", "f32"),
                    Access("load", "global", "u8"),
                    Access("atomic", "global", "u32"),
                ),
            ),
            False,
            ["loads f32 u8", "updates atomically u32"],
        ),
        (
            Usage(loads=(Load(0, 4, "u32"), Load(0, 4, "s32")), address=True),
            False,
            ["read as u32 s32", "part of addresses"],
        ),
        (Usage(escaped=True), False, ["handed to a function"]),
        (Usage(loads=(Load(0, 8, "b64"),), accesses=(Access("store", "global", "b32"),)), True, ["stores b32"]),
    ],
)
def test_usage_in_words(usage: Usage, declared: bool, words: list[str]) -> None:
    assert usage_words(usage, declared) == words
