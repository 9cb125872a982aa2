from __future__ import annotations

import io

import numpy as np
import pytest
from msgspec.structs import replace

from teenycli.dtypes import DTYPES
from teenycli.launch.plan import Plan
from teenycli.report.console import Console
from teenycli.report.launch_table import launch_page, run_page
from teenycli.report.layout import Page
from teenycli.report.rows import Compared, LaunchRow, RunReport, RunRow
from teenycli.tensors.compare import compare
from tests.report.samples import plan, report

pytestmark = pytest.mark.unit


def drawn(page: Page, width: int | None = None) -> str:
    console = Console.of_buffers(tty=width is not None, width=width)
    console.show(*page)
    assert isinstance(console.out.stream, io.StringIO)
    return console.out.stream.getvalue()


def test_the_launch_table() -> None:
    assert drawn(launch_page(RunRow(plan(), shared_static=512))) == (
        "add  B=2, N=4, eps=1e-05\n"
        "  kernel   add_kernel  in add.ptx\n"
        "  grid     1,000 x 1 x 1 = 1,000 CTAs\n"
        "  block    96 x 2 x 1 = 192 threads, 6 warps in a CTA; 192,000 threads in all\n"
        "  cluster  2 x 1 x 1 = 2 CTAs\n"
        "  shared   512 bytes static + 2 KiB dynamic memory for each CTA\n"
        "\n"
        "   #  argument        kind    size  offset  value\n"
        "   0  x               ptr        8       0  f32[2, 4], 32 bytes, read\n"
        "   1  again           ptr        8       8  -> x + 16 bytes  f32[2, 4], 32 bytes, read\n"
        "   2  state           ptr        8      16  f32[16], 64 bytes, read and written\n"
        "   3  y               ptr        8      24  f32[2, 4], 32 bytes, written\n"
        "   4  nothing         ptr        8      32  null\n"
        "   5  config          struct    16      40  {+0 ptr -> x, +8 i32 1024, +12 f32 0.5}\n"
        "   6  n               i32        4      56  8\n"
        "   7  flag            bool       1      60  true\n"
        "   8  bad             f64        8      64  nan\n"
        "   9  raw             bytes      4          00ff1001\n"
        "  10  global_scratch  ptr        8      80  "
        "-> scratch  u8[4096], 4 KiB, scratch (hidden, added by the compiler)\n"
    )


def test_what_came_of_it() -> None:
    out = drawn(run_page(report()))
    tail = out[out.index("  device") :].splitlines()
    assert tail[:4] == [
        "  device     cpu (AVX-512, 2 threads)",
        "  time       250 us, after compiling for 12.5 ms",
        "  bandwidth  0.768 MB/s, 96 bytes read and 96 bytes written, each buffer counted once a launch",
        "",
    ]
    assert tail[4:10] == [
        "  output   y  f32[2, 4]",
        "  values   0 to 9, mean 4.14286; 1 NaN",
        "  compare  MISMATCH: 2 of 8 elements further than rtol 1e-05, atol 1e-06 from the reference",
        "  first    at [0, 1]: 9, should be 1",
        "  worst    at [1, 3]: nan, should be 7",
        "  largest  difference nan, relative nan, 26,214,400 ULP",
    ]
    assert "  compare  ok: all 8 elements within rtol 1e-05, atol 1e-06 of the reference\n" in out


def test_of_several_launches_what_differs() -> None:
    out = drawn(run_page(report(3)))
    assert "  launches  3, one after another; this is the first\n" in out
    table = out[out.index("  launch ") :].splitlines()[:4]
    assert [row.split() for row in table] == [
        ["launch", "grid", "y", "time"],
        ["0", "1,000", "x", "1", "x", "1", "->", "y", "250", "us"],
        ["1", "1,001", "x", "1", "x", "1", "->", "y", "+", "4", "bytes", "500", "us"],
        ["2", "1,002", "x", "1", "x", "1", "->", "y", "+", "8", "bytes", "750", "us"],
    ]
    assert "  time       1.50 ms for 3 launches, after compiling for 12.5 ms\n" in out


def test_launches_that_are_all_the_same() -> None:
    made = plan()
    same = replace(made, launches=made.launches * 4)
    assert "  all 4 launches are the same\n" in drawn(launch_page(RunRow(same)))


def test_a_plan_without_launches_says_so() -> None:
    nothing = Plan("add", {}, "add.ptx", "add_kernel", (), ())
    assert drawn(run_page(RunReport("cpu", runs=(RunRow(nothing),)))) == "add\n  no launches\n"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_width_cuts_anything(width: int) -> None:
    out = drawn(run_page(report(3)), width)
    assert all(len(row) <= width for row in out.splitlines())
    squeezed = "".join(out.split())
    for said in ("add_kernel", "1,000x1x1=1,000CTAs", "->x+16bytes", "{+0ptr->x,+8i321024,+12f320.5}", "00ff1001",
                 "(hidden,addedbythecompiler)", "MISMATCH", report().runs[0].outputs[0].sha256):  # fmt: skip
        assert said in squeezed


class TestTraffic:
    def test_each_buffer_once_and_in_place_twice(self) -> None:
        made = plan()
        # x (named three times) and state are read, state and y written; scratch and what no argument names are not.
        assert LaunchRow(made, made.launches[0]).traffic == (32 + 64, 64 + 32)


class TestComparisons:
    def lines(self, result: object, reference: object, name: str, atol: float = 0.0) -> str:
        dtype = DTYPES[name]
        comparison = compare(np.asarray(result), np.asarray(reference), dtype, 0, atol)
        made = replace(plan(), launches=())
        return drawn(run_page(RunReport("cpu", runs=(RunRow(made, compared=(Compared("y", comparison),)),))))

    def test_integers_are_equal_or_not_and_have_no_ulp(self) -> None:
        out = self.lines(np.array([1, 2**60], np.int64), np.array([1, 2**60 + 1]), "i64")
        assert "MISMATCH: 1 of 2 elements not equal to the reference\n" in out
        assert f"at [1]: {2**60}, should be {2**60 + 1}\n" in out
        assert "  worst" not in out  # it is the first
        assert "ULP" not in out

    def test_unwritten_elements_are_told(self) -> None:
        out = self.lines(np.array([-1, 5], np.int32), np.array([4, 5]), "i32")
        assert "unwritten  1 element with the bytes 0xFF from before the launch: no thread wrote there\n" in out

    def test_a_reference_near_zero_is_a_caution(self) -> None:
        out = self.lines(np.zeros(2, np.float32), np.array([1e-9, 0]), "f32", 1e-5)
        assert "compare  ok: all 2 elements within rtol 0, atol 1e-05 of the reference\n" in out
        assert "caution  an output of zeros would pass too" in out


def test_names_cannot_steer_the_terminal() -> None:
    made = plan()
    hostile = replace(made, op="\x1b[2J", ptx="\x1b[2J")
    assert "\x1b" not in drawn(launch_page(RunRow(hostile)))
