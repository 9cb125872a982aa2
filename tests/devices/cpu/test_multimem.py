"""multimem on a team of one device: loads, stores and reductions of every kind of element."""

from __future__ import annotations

import numpy as np
import pytest

from tests.devices.cpu.kit import Array, Rig

pytestmark = pytest.mark.unit


def run(lines: str, memory: Array, out: Array) -> None:
    """A warp; %m and %o are a thread's 16 bytes of both buffers."""
    rig = Rig(f"""
.visible .entry kernel(.param .u64 memory, .param .u64 out)
{{
.reg .b64 %m, %o, %i; .reg .b32 %t, %r<4>; .reg .b16 %h<8>; .reg .b8 %c<4>; .reg .f32 %f<4>;
ld.param.u64 %m, [memory]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 16;
add.u64 %m, %m, %i; add.u64 %o, %o, %i;
{lines}
ret;
}}""")
    rig.run([memory, out])


@pytest.mark.parametrize(("load", "store", "registers"), [
    ("acquire.sys.global.add.acc::f32.v4.f16x2", "release.sys.global.v4.f16x2", "%r0, %r1, %r2, %r3"),
    ("weak.global.add.v4.f32", "weak.global.v4.f32", "%f0, %f1, %f2, %f3"),
    ("global.min.v8.bf16", "global.v8.bf16", "%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7"),
    ("global.max.v4.e5m2x4", "global.v4.e4m3x4", "%r0, %r1, %r2, %r3"),
])  # fmt: skip
def test_what_is_loaded_is_what_is_there(load: str, store: str, registers: str) -> None:
    memory = np.random.default_rng(1).integers(0, 2**16, (32, 8)).astype(np.uint16)
    memory[memory & 0x7F80 == 0x7F80] = 1  # a NaN may become another
    out = np.zeros_like(memory)
    lines = f"multimem.ld_reduce.{load} {{{registers}}}, [%m]; multimem.st.{store} [%o], {{{registers}}};"
    run(lines, memory.copy(), out)
    np.testing.assert_array_equal(out, memory)


def test_bytes() -> None:
    memory = np.random.default_rng(1).integers(0, 256, (32, 16)).astype(np.uint8)
    out = np.zeros_like(memory)
    lines = "{%c0, %c1, %c2, %c3}"
    run(
        f"multimem.ld_reduce.global.add.v4.e4m3 {lines}, [%m]; multimem.st.global.v4.e4m3 [%o], {lines};",
        memory.copy(),
        out,
    )
    np.testing.assert_array_equal(out[:, :4], memory[:, :4])
    assert not out[:, 4:].any()


def test_reductions_are_atomic_updates() -> None:
    memory = np.zeros((32, 4), np.uint32)
    out = np.arange(128, dtype=np.float32).reshape(32, 4)
    wanted = out + np.array([1, 2, 3, 4], np.float32)
    run("mov.u64 %i, %m; ld.param.u64 %m, [memory]; multimem.red.relaxed.sys.global.add.u32 [%m], 3;"
        "multimem.red.global.xor.b32 [%m+4], %t; multimem.red.release.sys.global.max.s64 [%m+8], 7;"
        "mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40400000; mov.f32 %f3, 0f40800000;"
        "multimem.red.global.add.v4.f32 [%o], {%f0, %f1, %f2, %f3};", memory, out)  # fmt: skip
    np.testing.assert_array_equal(memory[0], [96, 0, 7, 0])
    np.testing.assert_array_equal(out, wanted)
