from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from teenycli.errors import Finding, TeenyError
from teenycli.launch.build import init_of, with_inits
from teenycli.launch.cases import Overrides
from teenycli.launch.plan import Address, Argument, Field, encode_argument, encode_scalar
from teenycli.manifest.spec import OpSpec
from teenycli.ptx.model import Module
from tests.launch.kernels import LLVM, TRITON_POINTER, entry, module, op, param, plan

pytestmark = pytest.mark.unit

X = [{"name": "x", "shape": ["N", 4]}]


def error(spec: OpSpec, kernel: Module | None = None) -> Finding:
    with pytest.raises(TeenyError) as caught:
        plan(spec, kernel)
    return caught.value.finding


def arguments(*args: str, **keys: Any) -> tuple[Argument, ...]:
    keys = {"dims": {"N": 16}, "inputs": X, **keys}
    return plan(op(args=list(args), **keys)).launches[0].args


def encoded(argument: Argument) -> bytes:
    return encode_argument(argument, lambda name: {"x": 0x1000}[name])


@pytest.mark.parametrize(
    ("arg", "raw"),
    [
        ("i32 N", struct.pack("<i", 16)), ("i8 -N", struct.pack("<b", -16)), ("u16 N * 4000", struct.pack("<H", 64000)),
        ("i64 -2 ** 63", struct.pack("<q", -(2**63))), ("u64 2 ** 64 - 1", b"\xff" * 8), ("bool N > 3", b"\1"),
        ("u8 N > 3", b"\1"), ("bool 0", b"\0"), ("f32 0.1", struct.pack("<f", 0.1)),
        ("f64 1 / 0.1", struct.pack("<d", 10)),
        ("f16 N", struct.pack("<e", 16)), ("bf16 1.0", b"\x80\x3f"), ("f32 N", struct.pack("<f", 16)),
        ("ptr x", struct.pack("<Q", 0x1000)), ("ptr x + N", struct.pack("<Q", 0x1040)), ("ptr null", bytes(8)),
        ("ptr inputs[0] - 1", struct.pack("<Q", 0xFFC)), ("bytes 00ff10", b"\x00\xff\x10"),
        ("{ptr x, i32 N, f32 0.5}", struct.pack("<Qif", 0x1000, 16, 0.5)),
        ("{u8 1, i32 2, u8 3}", b"\1\0\0\0\2\0\0\0\3\0\0\0"),
        ("{u8 1, {u8 2, f64 1.0}, u16 3}", struct.pack("<B7xB7xdB7x", 1, 2, 1.0, 3)),
    ],
)  # fmt: skip
def test_arguments_as_bytes(arg: str, raw: bytes) -> None:
    (made,) = arguments(arg)
    assert (made.size, encoded(made)) == (len(raw), raw)
    assert made.source == "op.k.args[0]"


def test_arguments_are_called_what_the_user_wrote() -> None:
    made = arguments("ptr x", "i32 N * 2", "{ptr x, i32 1}")
    assert [(a.name, a.kind) for a in made] == [("x", "ptr"), ("N * 2", "i32"), ("{ptr x, i32 1}", "struct")]


def test_bytes_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.bin").write_bytes(b"abcde")
    (made,) = arguments("bytes @s.bin")
    assert encoded(made) == b"abcde"
    Path("large.bin").write_bytes(bytes(40_000))
    Path("empty.bin").write_bytes(b"")
    for name, id in (("large.bin", "bad-argument"), ("empty.bin", "bad-argument"), ("no.bin", "unreadable")):
        finding = error(op(args=[f"bytes @{name}"]))
        assert (finding.id, str(finding.where)) == (id, "ops.toml: op.k.args[0]")


@pytest.mark.parametrize(
    ("arg", "id", "words"),
    [
        ("ptr N", "bad-argument", "'N' is 16"), ("ptr 0", "bad-argument", "null"),
        ("ptr x.shape", "bad-argument", "takes a buffer"), ("i32 x", "bad-argument", "the buffer x"),
        ("f32 x.shape", "bad-argument", "several values"), ("i32 null", "bad-argument", "null"),
        ("i32 2.0", "bad-argument", "an integer"), ("i32 2 ** 31", "value-out-of-range", "2147483647"),
        ("u8 -1", "value-out-of-range", "0 to 255"), ("bool 2", "value-out-of-range", "bool"),
        ("f16 65520", "value-out-of-range", "too large for f16"), ("bf16 3.4e38", "value-out-of-range", "bf16"),
        ("f32 1e39", "value-out-of-range", "f32"),
        ("f64 2 ** 1023 + (2 ** 1023 - 1)", "value-out-of-range", "f64"),
        ("ptr x + 2 ** 40", "value-out-of-range", "bytes away"), ("bytes 0g", "bad-argument", "hexadecimal"),
        ("{ptr x, i32 NN}", "unknown-name", "'NN'"),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_made(arg: str, id: str, words: str) -> None:
    finding = error(op(args=["i32 1", arg], dims={"N": 16}, inputs=X))
    assert (finding.id, str(finding.where)) == (id, "ops.toml: op.k.args[1]")
    assert words in f"{finding.message} {finding.hint}"


def test_infinities_may_be_passed() -> None:
    (made,) = arguments("f16 inf", scalars={"inf": float("inf")})
    assert encoded(made) == struct.pack("<e", float("inf"))


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (1.0, 0x3F80), (-0.0, 0x8000), (float("inf"), 0x7F80), (1e39, 0x7F80), (-1e39, 0xFF80), (3.3895e38, 0x7F7F),
        (1 + 2**-8, 0x3F80), (1 + 3 * 2**-8, 0x3F82), (1 + 2**-8 + 2**-40, 0x3F81), (1 + 3 * 2**-8 - 2**-40, 0x3F81),
        (-(1 + 2**-8 + 2**-40), 0xBF81), (2.0**-133, 0x0001), (2.0**-134, 0x0000), (2.0**-134 * 1.001, 0x0001),
    ],
)  # fmt: skip
def test_bf16_is_rounded_once(value: float, bits: int) -> None:
    assert encode_scalar("bf16", value) == bits.to_bytes(2, "little")


def test_bf16_keeps_a_nan() -> None:
    assert int.from_bytes(encode_scalar("bf16", float("nan")), "little") & 0x7FFF > 0x7F80


# --- parameters ---------------------------------------------------------------------------------------------------


def test_offsets_are_those_of_the_architecture() -> None:
    kernel = module(entry("k", param("b8", align=64, dims=(128,)), param("u32")))
    spec = op(args=["bytes " + "00" * 128, "i32 1"])
    assert [a.offset for a in plan(spec, kernel).launches[0].args] == [48, 176]
    assert [a.offset for a in plan(spec, kernel, sm=80).launches[0].args] == [32, 160]


def test_arguments_beyond_the_parameters_have_no_offset() -> None:
    kernel = module(entry("k", param("u32"), param("u64")))
    assert [a.offset for a in plan(op(args=["i32 1"] * 3), kernel).launches[0].args] == [0, 8, None]
    assert [a.offset for a in plan(op(args=["i32 1"]), kernel).launches[0].args] == [0]


META = """
// meta:num_warps=4
// meta:global_scratch_size=%d
// meta:global_scratch_align=512
// meta:profile_scratch_size=%d
"""
TRITON_ENTRY = entry("k", TRITON_POINTER, param("u32"), TRITON_POINTER, TRITON_POINTER)


def test_hidden_parameters_are_null_when_they_need_nothing() -> None:
    made = plan(op(args=["ptr null", "i32 1"]), module(TRITON_ENTRY, text=META % (0, 0)))
    args = made.launches[0].args
    assert [(a.index, a.hidden, a.offset) for a in args] == [(0, False, 0), (1, False, 8), (2, True, 16), (3, True, 24)]
    assert [a.fields[0].value for a in args[2:]] == [Address(), Address()]
    assert made.buffers == ()


def test_scratch_is_per_cta_zeroed_and_aligned() -> None:
    made = plan(op(args=["ptr null", "i32 1"], grid=[3, 2]), module(TRITON_ENTRY, text=META % (100, 0)))
    (scratch,) = made.buffers
    assert (scratch.role, scratch.nbytes, scratch.align, init_of(scratch)) == ("scratch", 600, 512, "zeros")
    assert made.launches[0].args[2].fields == (Field("ptr", Address(scratch.name)),)
    assert made.launches[0].args[3].fields == (Field("ptr", Address()),)
    made = plan(op(args=["ptr null", "i32 1"]), module(TRITON_ENTRY, text=META % (100, 16)))
    assert [b.nbytes for b in made.buffers] == [100, 16]
    assert [a.fields[0].value for a in made.launches[0].args[2:]] == [Address(b.name) for b in made.buffers]


def test_scratch_of_an_empty_grid_and_of_too_large_a_one() -> None:
    kernel = module(TRITON_ENTRY, text=META % (100, 0))
    assert plan(op(args=["ptr null", "i32 1"], grid=[0]), kernel).buffers == ()
    assert error(op(args=["ptr null", "i32 1"], grid=[2**40]), kernel).id == "buffer-too-large"


def test_hidden_parameters_are_the_last_whatever_is_given() -> None:
    args = plan(op(args=["ptr null"]), module(TRITON_ENTRY, text=META % (0, 0))).launches[0].args
    assert [(a.index, a.offset) for a in args] == [(0, 0), (2, 16), (3, 24)]
    args = plan(op(args=["ptr null"] * 3), module(TRITON_ENTRY, text=META % (0, 0))).launches[0].args
    assert [a.offset for a in args] == [0, 8, None, 16, 24]


def test_how_many_are_hidden_may_be_said() -> None:
    kernel = module(entry("k", TRITON_POINTER, TRITON_POINTER, reqntid=(32, 1, 1)), text=LLVM)
    assert [a.hidden for a in plan(op(hidden=1, args=["ptr null"]), kernel).launches[0].args] == [False, True]
    assert [a.hidden for a in plan(op(hidden=0, args=["ptr null"] * 2), kernel).launches[0].args] == [False, False]
    finding = error(op(hidden=2), module(entry("k", TRITON_POINTER)))
    assert (finding.id, str(finding.where)) == ("bad-value", "ops.toml: op.k.hidden")


# --- buffers ------------------------------------------------------------------------------------------------------


def test_buffers_have_roles_shapes_and_inits() -> None:
    made = plan(
        op(
            dims={"N": 16},
            dtype="f16",
            inputs=[*X, {"name": "s", "shape": [], "dtype": "i64", "init": 3}],
            params=[{"name": "w", "shape": ["x.size"]}],
            output={"name": "out", "shape": [2, 2], "init": "zeros"},
        )
    )
    assert [(b.name, b.role, b.dtype.name, b.shape, b.nbytes, init_of(b)) for b in made.buffers] == [
        ("x", "input", "f16", (16, 4), 128, "random"), ("s", "input", "i64", (), 8, 3),
        ("w", "param", "f16", (64,), 128, "zeros"), ("out", "output", "f16", (2, 2), 8, "zeros"),
    ]  # fmt: skip
    assert [b.source for b in made.buffers] == ["op.k.inputs[0]", "op.k.inputs[1]", "op.k.params[0]", "op.k.output"]
    assert [b.is_output for b in made.buffers] == [False, False, False, True]
    assert init_of(plan(op(output={"name": "y", "shape": [1]})).buffer("y")) == "poison"


def test_an_in_place_output_is_its_inputs_buffer() -> None:
    made = plan(
        op(
            dims={"N": 16},
            inputs=X,
            outputs=[{"name": "y", "inout": "x", "shape": [16, 4], "init": "ones"}, {"name": "z", "shape": ["y.size"]}],
            args=["ptr y + 1"],
        )
    )
    assert [(b.name, b.output, b.is_output, b.init) for b in made.buffers] == [
        ("x", "y", True, "ones"), ("z", None, True, None)
    ]  # fmt: skip
    assert made.launches[0].args[0].fields[0].value == Address("x", 4)
    finding = error(op(dims={"N": 16}, inputs=X, output={"name": "y", "inout": "x", "shape": [64]}))
    assert (finding.id, str(finding.where)) == ("bad-shape", "ops.toml: op.k.output.shape")


def test_buffers_stay_below_what_an_address_can_say() -> None:
    made = plan(op(inputs=[{"name": "x", "shape": [2**40 - 1], "dtype": "u8"}]))
    assert made.buffers[0].nbytes == 2**40 - 1
    finding = error(op(inputs=[{"name": "x", "shape": [2**20, 2**18]}]))
    assert (finding.id, str(finding.where)) == ("buffer-too-large", "ops.toml: op.k.inputs[0].shape")


def test_inits_from_the_command_line() -> None:
    made = plan(op(dims={"N": 16}, inputs=X, params=[{"name": "w", "shape": [1]}], output={"name": "y", "inout": "w"}))
    changed = with_inits(made, {"x": "@x.npy", "y": 2})
    assert [b.init for b in changed.buffers] == ["@x.npy", 2]
    with pytest.raises(TeenyError) as caught:
        with_inits(made, {"z": 1})
    assert caught.value.finding.id == "unknown-buffer"
    assert "x, w, y" in (caught.value.finding.hint or "")


# --- the whole ----------------------------------------------------------------------------------------------------


def test_the_plan_keeps_its_values_for_the_record() -> None:
    spec = op(dims={"N": 16}, consts={"B": 4}, scalars={"eps": 1e-5, "n": 2}, args=["f32 eps"])
    made = plan(spec, overrides=Overrides({"N": 8}, {"eps": 0.5, "other": 1}))
    assert (made.op, made.ptx, made.entry) == ("k", "k.ptx", "k")
    assert (made.case, made.consts, made.scalars) == ({"N": 8}, {"B": 4}, {"eps": 0.5, "n": 2})
    assert made.launches[0].args[0].fields[0].value == 0.5


def test_a_dim_without_a_value_names_where_it_is_used() -> None:
    finding = error(op(dims={"N": {}}, grid=[1, "cdiv(N, 32)"]))
    assert (finding.id, str(finding.where)) == ("missing-dim", "ops.toml: op.k.grid[1]")
    assert "--dim N=INT" in (finding.hint or "")


# --- several launches ---------------------------------------------------------------------------------------------

CAT = {
    "dims": {"B": 2, "W": 4},
    "inputs": [{"name": name, "shape": ["B", c, "W"]} for name, c in (("a", 3), ("b", 1), ("c", 5))],
    "output": {"name": "y", "shape": ["B", "sum(x.shape[1] for x in inputs)", "W"]},
    "args": ["ptr inputs[i]", "ptr y", "i32 sum(inputs[k].shape[1] for k in range(i)) * W"],
    "grid": ["B * inputs[i].shape[1]"],
    "shared": "4 * i",
    "launches": "len(inputs)",
}


def test_each_launch_has_its_own_arguments_grid_and_shared_memory() -> None:
    made = plan(op(**CAT), module(entry("k", param("u64"), param("u64"), param("u32"))))
    assert made.buffer("y").shape == (2, 9, 4)
    assert [launch.index for launch in made.launches] == [0, 1, 2]
    assert [launch.grid[0] for launch in made.launches] == [6, 2, 10]
    assert [launch.shared for launch in made.launches] == [0, 4, 8]
    values = [[argument.fields[0].value for argument in launch.args] for launch in made.launches]
    assert values == [[Address(x), Address("y"), 4 * before] for x, before in (("a", 0), ("b", 3), ("c", 4))]


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_a_count_of_launches_that_is_none(count: int) -> None:
    finding = error(op(launches=count))
    assert (finding.id, str(finding.where)) == ("bad-value", "ops.toml: op.k.launches")


@pytest.mark.parametrize("key", ["block", "cluster", "launches", "output"])
def test_the_launch_index_is_none_of_what_all_launches_share(key: str) -> None:
    value = {"output": {"name": "y", "shape": ["i + 1"]}}.get(key, ["i + 1"] if key != "launches" else "i + 1")
    finding = error(op(**{key: value}))
    assert (finding.id, finding.hint) == ("unknown-name", "the launch index is known in args, grid and shared")


def test_each_launch_has_scratch_of_its_own() -> None:
    spec = op(args=["ptr null", "i32 1"], grid=["i + 1"], launches=3)
    made = plan(spec, module(TRITON_ENTRY, text=META % (100, 0)))
    assert [(b.name, b.nbytes) for b in made.buffers] == [(f"global scratch {k}", 100 * (k + 1)) for k in range(3)]
    assert [launch.args[2].fields[0].value for launch in made.launches] == [Address(b.name) for b in made.buffers]


# --- rows that lie apart ------------------------------------------------------------------------------------------


def padded(**keys: Any) -> OpSpec:
    return op(dims={"N": 5}, output={"name": "y", "shape": [2, 3, "N"], **keys}, args=["i32 y.row_stride"])


@pytest.mark.parametrize(
    ("keys", "rows", "stride"),
    [
        ({}, (6, 5, 5), 5), ({"row_stride": "align(N, 4)"}, (6, 5, 8), 8), ({"row_elems": "3 * N"}, (2, 15, 15), 15),
        ({"row_elems": 15, "row_stride": 16}, (2, 15, 16), 16), ({"row_stride": 4}, (6, 5, 4), 4),
    ],
)  # fmt: skip
def test_rows_of_an_output(keys: dict[str, Any], rows: tuple[int, int, int], stride: int) -> None:
    made = plan(padded(**keys))
    (y,) = made.buffers
    assert (y.shape, y.size, y.rows, y.nbytes) == ((2, 3, 5), 30, rows, 4 * rows[0] * rows[2])
    assert y.is_padded == (rows[1] != rows[2])
    assert made.launches[0].args[0].fields[0].value == stride


@pytest.mark.parametrize("keys", [{"row_elems": 4}, {"row_elems": 0}, {"row_stride": 0}, {"row_stride": "-N"}])
def test_rows_that_are_none(keys: dict[str, Any]) -> None:
    finding = error(padded(**keys))
    assert (finding.id, str(finding.where)) == ("bad-value", f"ops.toml: op.k.output.{next(iter(keys))}")


def test_an_output_in_place_has_no_rows_of_its_own() -> None:
    with pytest.raises(TeenyError) as caught:
        op(inputs=[{"name": "x", "shape": [4]}], output={"name": "y", "inout": "x", "row_stride": 8})
    assert str(caught.value.finding.where) == "ops.toml: op.k.output.row_stride"


def test_the_first_dimension_of_an_output_may_be_computed_too() -> None:
    spec = op(
        dims={"B": 2, "H": 3, "W": 5},
        inputs=[{"name": "x", "shape": ["B", "H", "W"]}],
        output={"name": "y", "shape": ["B * x.shape[1]", "cdiv(W, 2)"], "row_stride": "align(y.shape[1], 8)"},
    )
    (_, y) = plan(spec).buffers
    assert (y.shape, y.rows) == ((6, 3), (6, 3, 8))
