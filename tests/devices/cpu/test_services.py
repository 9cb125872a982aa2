"""What device code asks of the host: printing, the heap, assertions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from teenycli.devices.cpu import CpuDevice
from teenycli.devices.cpu.formats import Arguments, formatted
from teenycli.errors import Finding, TeenyError
from teenycli.exits import Exit
from tests.devices.cpu.kit import Rig

pytestmark = pytest.mark.unit

NVCC = Path(__file__).parent.parent.parent / "corpus" / "nvcc"
HEAP = """
.extern .func (.param .b64 got) malloc(.param .b64 size);
.extern .func free(.param .b64 at);
.visible .entry heap(.param .u64 out) {
.reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p; ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;
mad.wide.u32 %d1, %r1, 8, %d1;
"""


def malloc(register: str, size: int | str) -> str:
    return (
        f"{{ .param .b64 size; .param .b64 got; st.param.b64 [size], {size}; call.uni (got), malloc, (size);"
        f" ld.param.b64 {register}, [got]; }}\n"
    )


def free(register: str) -> str:
    return f"{{ .param .b64 at; st.param.b64 [at], {register}; call.uni free, (at); }}\n"


def fault(body: str) -> Finding:
    rig = Rig(HEAP + body + "ret; }")
    with pytest.raises(TeenyError) as caught:
        rig.run([np.zeros(32, np.uint64)], block=(4,))
    assert caught.value.exit is Exit.FAILED
    rig.device.close()
    return caught.value.finding


def printed(format: str, *values: float | str) -> str:
    """``format`` with its arguments laid out as device code does: 4 bytes, or 8 for a float, a string, a wide int."""
    room = bytearray()
    strings: list[bytes] = []
    for value in values:
        if isinstance(value, str):
            strings.append(value.encode())
            raw = len(strings).to_bytes(8, "little")
        elif isinstance(value, float):
            raw = np.float64(value).tobytes()
        else:
            raw = (
                (value & (1 << 64) - 1).to_bytes(8, "little") if abs(value) >> 31 > 1 else np.int64(value).tobytes()[:4]
            )
        room += bytes(-len(room) % len(raw)) + raw
    arguments = Arguments(lambda at, size: bytes(room[at : at + size]).ljust(size, b"\0"))
    return formatted(format.encode(), arguments, lambda address: strings[address - 1])[0]


@pytest.mark.parametrize(("format", "values", "wanted"), [
    ("plain %% text\n", (), "plain % text\n"), ("%d|%5d|%-5d|%05d|%+d|% d", (-7, 42, 42, -42, 3, 3), "-7|   42|42   |-0042|+3| 3"),
    ("%u %x %X %#x %o %#o", (-1, 255, 255, 255, 8, 8), "4294967295 ff FF 0xff 10 010"), ("%.3d [%5.2x] [%.0d]", (7, 10, 0), "007 [   0a] []"),
    ("%hhd %hu", (511, 65537), "-1 1"), ("%lld %lu", (-(1 << 40), (1 << 64) - 1), "-1099511627776 18446744073709551615"),
    ("%f %.2f %8.3f %-8.1f|", (1.5, 2.345, 3.14159, 2.0), "1.500000 2.35    3.142 2.0     |".replace("2.35", f"{2.345:.2f}")),
    ("%e %E %g %G %g", (12345.678, 0.5, 1e-7, 1e10, 100.0), "1.234568e+04 5.000000E-01 1e-07 1E+10 100"),
    ("%f %F %5f|%05f", (float("inf"), float("-inf"), float("nan"), float("inf")), "inf -INF   nan|  inf"),
    ("%a %.1a %A", (1.5, 1.999, -0.15625), "0x1.8p+0 0x2.0p+0 -0X1.4P-3"),
    ("%s|%6s|%-6s|%.2s|%c%c", ("ab", "cd", "ef", "ghij", 72, 105), "ab|    cd|ef    |gh|Hi"),
    ("%*d|%-*d|%.*f", (5, 1, 4, 2, 1, 0.25), "    1|2   |0.2"), ("%p %k 100%", (1 << 41,), "0x20000000000 %k 100%"),
])  # fmt: skip
def test_formats_as_c_does(format: str, values: tuple[int | float | str, ...], wanted: str) -> None:
    assert printed(format, *values) == wanted


def test_kernels_print_in_order_within_a_thread() -> None:
    said: list[str] = []
    device = CpuDevice(threads=2, cache=False, output=said.append)
    rig = Rig((NVCC / "print_and_assert.ptx").read_text(), device=device)
    x = np.where(np.arange(256) % 16 == 3, -np.arange(256) / 4, 1).astype(np.float32)
    rig.run([x, 256], grid=(4,), block=(64,))
    assert sorted(said) == sorted(f"x[{i}] = {x[i]:f} (negative)\n\t100%\n" for i in range(3, 256, 16))
    loop = Rig(
        """
        .extern .func (.param .b32 n) vprintf(.param .b64 format, .param .b64 args);
        .global .align 1 .b8 text[8] = {37, 100, 32, 37, 100, 10, 0};
        .visible .entry loop(.param .u64 out) {
        .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p; .local .align 8 .b8 args[8];
        mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u64 %d1, text; cvta.global.u64 %d1, %d1; mov.u64 %d2, args;
        cvta.local.u64 %d2, %d2;
        again: st.local.v2.u32 [args], {%r1, %r2};
        { .param .b64 f; .param .b64 a; .param .b32 n; st.param.b64 [f], %d1; st.param.b64 [a], %d2;
        call.uni (n), vprintf, (f, a); ld.param.b32 %r3, [n]; }
        add.u32 %r2, %r2, 1; setp.le.u32 %p, %r2, %r1; @%p bra again;
        ld.param.u64 %d3, [out]; mad.wide.u32 %d3, %r1, 4, %d3; st.global.u32 [%d3], %r3; ret; }
        """,
        device=device,
    )
    said.clear()
    out = np.zeros(8, np.uint32)
    loop.run([out], block=(8,))
    for thread in range(8):
        mine = [text for text in said if text.startswith(f"{thread} ")]
        assert mine == [f"{thread} {k}\n" for k in range(thread + 1)]
    np.testing.assert_array_equal(out, 2)
    device.close()


def test_a_sink_that_fails_ends_the_launch() -> None:
    def closed(_: str) -> None:
        raise BrokenPipeError

    device = CpuDevice(threads=2, cache=False, output=closed)
    rig = Rig((NVCC / "print_and_assert.ptx").read_text(), device=device)
    with pytest.raises(BrokenPipeError):
        rig.run([np.full(64, -1, np.float32), 64], block=(64,))
    device.close()


def test_an_assertion_is_named_with_its_file_line_and_function() -> None:
    rig = Rig((NVCC / "print_and_assert.ptx").read_text())
    with pytest.raises(TeenyError) as caught:
        rig.run([np.zeros(4, np.float32), 0], block=(4,))
    finding = caught.value.finding
    assert (finding.id, caught.value.exit) == ("assertion", Exit.FAILED)
    assert "print_and_assert.cu:9: void report(const float *, int): assertion 'n > 0" in finding.message
    assert finding.note is not None
    assert "block (0, 0, 0), thread (0, 0, 0)" in finding.note
    rig.device.close()


def test_lists_on_the_heap() -> None:
    rig = Rig((NVCC / "heap.ptx").read_text())
    out = np.zeros(1, np.int32)
    rig.run([100, out], block=(1,))
    assert out[0] == 4950 + 1
    rig.run([7, out], block=(1,), grid=(3,))
    assert out[0] == 21 + 1
    rig.device.close()


def test_the_heap_gives_null_when_it_is_exhausted_and_blocks_come_back() -> None:
    body = (
        malloc("%d2", 3 << 20) + malloc("%d3", 3 << 20) + malloc("%d4", 3 << 20) + malloc("%d5", 0)
        + "setp.ne.u64 %p, %d4, 0; selp.u64 %d6, 1, 0, %p; setp.ne.u64 %p, %d3, 0; @%p add.u64 %d6, %d6, 2;\n"
        + "setp.ne.u64 %p, %d5, 0; @%p add.u64 %d6, %d6, 4;\n"
        + free("%d2") + malloc("%d4", 3 << 20) + "setp.ne.u64 %p, %d4, 0; @%p add.u64 %d6, %d6, 8;\n"
        + free("%d4") + free("%d3") + free("%d5") + "st.global.u64 [%d1], %d6;"
    )  # fmt: skip
    rig = Rig(HEAP + body + "ret; }")
    for _ in range(3):
        out = np.zeros(1, np.uint64)
        rig.run([out], block=(1,))
        assert out[0] == 2 + 8
    rig.device.close()


@pytest.mark.parametrize(("body", "id"), [
    (malloc("%d2", 16) + "st.u64 [%d2+16], %d1;", "out-of-bounds"),
    (malloc("%d2", 16) + "st.u64 [%d2], %d1;" + free("%d2") + "ld.u64 %d3, [%d2];", "use-after-free"),
    (malloc("%d2", 16) + free("%d2") + free("%d2"), "double-free"),
    (free("%d1"), "bad-free"), (malloc("%d2", 16) + "add.u64 %d2, %d2, 8;" + free("%d2"), "bad-free"),
    (malloc("%d2", 1 << 40) + "st.u64 [%d2], %d1;", "null-pointer"),
])  # fmt: skip
def test_blocks_of_the_heap_are_checked(body: str, id: str) -> None:
    assert fault(body).id == id
