"""``teeny check --probe``: what running an op at small dims shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands.ops import Op, square
from tests.commands.teeny import MADE_UP, ROOT, Done, Teeny, manifest, samples

pytestmark = pytest.mark.device

SAMPLES = samples()
#: Those with a backward, and it.
TRAINED = {name: op for name, op in samples(backward=True).items() if "backward" in op}

_HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
#: Registers, and ``%i`` the thread's number in the grid; threads from ``n`` on leave.
_BODY = """.reg .b64 %d<8>; .reg .b32 %r<12>, %i, %n; .reg .f32 %f<8>; .reg .pred %p<3>;
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %i, %r1, %r2, %r3;
ld.param.u32 %n, [n]; setp.ge.u32 %p0, %i, %n; @%p0 bra DONE;
"""

#: What the rules find of the same mistakes, without running anything.
STATIC = f"{MADE_UP},stride-mismatch,extent-mismatch,unused-parameter"


def kernel(folder: Path, params: str, body: str, head: str = "") -> str:
    """A kernel ``k`` in the folder, with ``n`` as its last parameter but for a struct ``s``."""
    (folder / "k.ptx").write_text(f"{_HEAD}{head}.visible .entry k({params}) {{\n{_BODY}{body}\nDONE: ret;\n}}\n")
    return "k.ptx"


def pointers(*names: str) -> str:
    return ", ".join([*(f".param .u64 {name}" for name in names), ".param .u32 n"])


def load(name: str, register: str) -> str:
    return f"ld.param.u64 %d1, [{name}]; mad.wide.u32 %d1, %i, 4, %d1; ld.global.f32 {register}, [%d1];\n"


def store(register: str, space: str = "out") -> str:
    return f"ld.param.u64 %d2, [{space}]; mad.wide.u32 %d2, %i, 4, %d2; st.global.b32 [%d2], {register};\n"


def elementwise(folder: Path, **keys: Any) -> Op:
    """out = x - y over N elements, or as another ``ptx`` has it."""
    if "ptx" not in keys:
        body = load("x", "%f1") + load("y", "%f2") + "sub.f32 %f1, %f1, %f2;\n" + store("%f1")
        keys["ptx"] = kernel(folder, pointers("x", "y", "out"), body)
    return {
        "block": [32], "grid": ["cdiv(N, 32)"],
        "inputs": [{"name": "x", "shape": ["N"]}, {"name": "y", "shape": ["N"]}],
        "output": {"name": "out", "shape": ["N"]}, "args": ["ptr x", "ptr y", "ptr out", "i32 N"],
        "dims": {"N": 100}, "reference": "x - y", **keys,
    }  # fmt: skip


def probe(teeny: Teeny, folder: Path, op: Op, *extra: str) -> Done:
    return teeny("check", "--probe", "--ignore", STATIC, "--json", "-m", manifest(folder, it=op), *extra)


def findings(done: Done) -> list[dict[str, Any]]:
    return [finding for row in done.json["ops"] for finding in row["findings"]]


def found(done: Done) -> tuple[int, set[str]]:
    """Exit code, and ids."""
    return done.code, {finding["id"] for finding in findings(done)}


def exchanged(args: list[str], a: str, b: str) -> list[str]:
    return [{a: b, b: a}.get(arg, arg) for arg in args]


def test_nothing_is_wrong_with_the_samples(teeny: Teeny) -> None:
    done = teeny("check", "--probe", "--json", "-m", ROOT / "ops.toml")
    assert done.code == 0, done.out
    assert not [row["op"] for row in done.json["ops"] if row["findings"] or row["error"]]
    rows = {row["op"] for row in done.json["ops"] if row["case"] not in _written(row["op"])}
    assert rows >= SAMPLES.keys(), "each is probed at other dims than its own"
    assert {f"{name}.backward" for name in TRAINED} <= rows


def _written(op: str) -> list[dict[str, int]]:
    """The cases that the manifest has of an op."""
    table = SAMPLES.get(op.removesuffix(".backward"), {"dims": {}, "cases": []})
    own = {name: dim["value"] if isinstance(dim, dict) else dim for name, dim in table["dims"].items()}
    return [own, *(own | case for case in table["cases"])]


class TestOrders:
    def test_pointers_that_the_kernel_uses_alike(self, teeny: Teeny, tmp_path: Path) -> None:
        assert found(probe(teeny, tmp_path, elementwise(tmp_path))) == (0, set())
        op = elementwise(tmp_path, args=["ptr y", "ptr x", "ptr out", "i32 N"])
        assert teeny("check", "-m", manifest(tmp_path, it=op)).code == 0
        (finding,) = findings(done := probe(teeny, tmp_path, op))
        assert (done.code, finding["id"]) == (1, "probe-mismatch")
        assert finding["message"].startswith("at N=3: 'out' differs from its reference in 3 of 3 elements; at [")
        assert finding["hint"] == "arguments 0 'y' and 1 'x' look swapped: with them exchanged the result matches"
        assert finding["where"].endswith("op.it.args")

    def test_three_in_a_circle(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "".join(load(name, f"%f{k}") for k, name in enumerate("abc", 1))
        body += "fma.rn.f32 %f3, %f2, 0f40400000, %f3; fma.rn.f32 %f3, %f1, 0f41200000, %f3;\n" + store("%f3")
        op = elementwise(
            tmp_path, ptx=kernel(tmp_path, pointers(*"abc", "out"), body), reference="10 * x + 3 * y + z",
            inputs=[{"name": name, "shape": ["N"]} for name in "xyz"],
            args=["ptr y", "ptr z", "ptr x", "ptr out", "i32 N"],
        )  # fmt: skip
        (finding,) = findings(probe(teeny, tmp_path, op))
        assert finding["hint"] == (
            "arguments 0 'y', 1 'z' and 2 'x' look mixed up: with 'x', 'y', 'z' in their places the result matches"
        )

    def test_members_of_a_struct(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.u64 %d3, [s]; mad.wide.u32 %d3, %i, 4, %d3;\n"
        body += "ld.param.u64 %d4, [s+8]; mad.wide.u32 %d4, %i, 4, %d4;\n"
        body += "ld.global.f32 %f1, [%d3]; ld.global.f32 %f2, [%d4]; sub.f32 %f1, %f1, %f2;\n" + store("%f1")
        ptx = kernel(tmp_path, ".param .align 8 .b8 s[16], .param .u64 out, .param .u32 n", body)
        op = elementwise(tmp_path, ptx=ptx, args=["{ptr x, ptr y}", "ptr out", "i32 N"])
        assert found(probe(teeny, tmp_path, op)) == (0, set())
        op["args"] = ["{ptr y, ptr x}", "ptr out", "i32 N"]
        (finding,) = findings(probe(teeny, tmp_path, op))
        assert "arguments 0.0 'y' and 0.1 'x' look swapped" in finding["hint"]

    @pytest.mark.parametrize(
        ("name", "a", "b"),
        [("conv_bn_silu_cuda", "i32 H", "i32 W"), ("conv_bn_silu_cuda", "ptr gamma", "ptr beta"),
         ("linear_cuda", "i32 M", "i32 K"), ("channel_cat_cuda", "i32 inputs[i].shape[1]", "i32 out.shape[1]"),
         ("rms_norm_f16_triton", "ptr x", "ptr weight")],
    )  # fmt: skip
    def test_of_samples(self, teeny: Teeny, tmp_path: Path, name: str, a: str, b: str) -> None:
        op = {**SAMPLES[name], "args": exchanged(SAMPLES[name]["args"], a, b)}
        (tmp_path / "ptx").mkdir()
        (tmp_path / "ptx" / "refs.py").write_bytes((ROOT / "ptx" / "refs.py").read_bytes())
        done = probe(teeny, tmp_path, op)
        hints = [finding["hint"] for finding in findings(done) if finding["hint"]]
        assert done.code == 1
        assert any("look swapped" in hint and f"'{a[4:]}'" in hint and f"'{b[4:]}'" in hint for hint in hints), hints

    def test_of_a_backward(self, teeny: Teeny, tmp_path: Path) -> None:
        op = {**TRAINED["linear_cuda"], "backward": {**TRAINED["linear_cuda"]["backward"]}}
        args = op["backward"]["args"]
        op["backward"]["args"] = [args[1], args[0], *args[2:]]
        done = probe(teeny, tmp_path, op)
        rows = {row["op"]: row["findings"] for row in done.json["ops"] if row["findings"]}
        assert rows.keys() == {"it.backward"}
        assert "look swapped" in rows["it.backward"][0]["hint"]

    def test_without_a_reference_only_one_may_fit(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.u64 %d1, [s]; ld.global.f32 %f2, [%d1];\n" + load("x", "%f1")
        body += "mul.f32 %f1, %f1, %f2;\n" + store("%f1")
        op = elementwise(
            tmp_path, ptx=kernel(tmp_path, pointers("x", "s", "out"), body),
            args=["ptr s", "ptr x", "ptr out", "i32 N"],
            inputs=[{"name": "x", "shape": ["N"]}, {"name": "s", "shape": [1]}],
        )  # fmt: skip
        op.pop("reference")
        (finding,) = findings(probe(teeny, tmp_path, op))
        assert finding["id"] == "out-of-bounds"
        assert finding["hint"] == "arguments 0 's' and 1 'x' look swapped: with them exchanged nothing is wrong"

    def test_a_wrong_reference_is_not_laid_on_the_arguments(self, teeny: Teeny, tmp_path: Path) -> None:
        (finding,) = findings(probe(teeny, tmp_path, elementwise(tmp_path, reference="x - y + 0.01")))
        assert finding["id"] == "probe-mismatch"
        assert finding["hint"].startswith("no exchange of two or three arguments")


class TestLaunches:
    """Changes that rules over the text cannot see are found by what the kernel then does."""

    @pytest.mark.parametrize(
        ("name", "change", "ids"),
        [
            ("softmax_cuda", {"args": ["ptr x", "ptr out", "i32 COLS", "i32 x.row_stride + 1", "i32 COLS"]},
             {"out-of-bounds"}),
            ("vector_add_cuda", {"grid": ["N // BLOCK"], "cases": []}, {"probe-not-written"}),
            ("vector_add_cuda", {"block": [128]}, {"probe-not-written"}),
            ("vector_add_cuda", {"consts": {"BLOCK": 512}, "block": [256]}, {"probe-not-written"}),
            ("gelu_triton", {"consts": {"BLOCK": 1024}}, {"probe-not-written"}),
            ("vector_add_triton", {"grid": [1]}, {"probe-not-written"}),
            ("vector_add_cuda", {"args": ["ptr x", "ptr y", "ptr out", "i32 N - 1"]}, {"probe-not-written"}),
            ("linear_cuda", {"grid": ["cdiv(M, TILE)", "cdiv(N, TILE)"]}, {"probe-not-written"}),
            ("cumsum_cuda", {"shared": "COLS * x.itemsize"}, {"out-of-bounds"}),
            ("axpy_bf16_cuda", {"args": ["ptr x", "ptr y", "ptr out", "f32 alpha * 1.1", "i32 N"]}, {"probe-mismatch"}),
            ("rms_norm_f16_triton", {"args": ["ptr x", "ptr weight", "ptr out", "f32 2 * eps", "i32 COLS"]},
             {"probe-mismatch"}),
        ],
    )  # fmt: skip
    def test_of_samples(self, teeny: Teeny, tmp_path: Path, name: str, change: Op, ids: set[str]) -> None:
        done = probe(teeny, tmp_path, {**SAMPLES[name], **change})
        code, seen = found(done)
        assert code == 1
        assert seen - {"probe-mismatch"} == ids - {"probe-mismatch"}
        assert seen >= ids
        dims = SAMPLES[name]["dims"]
        assert all(f"{dim}=" in finding["message"] for finding in findings(done) for dim in dims)

    def test_elements_that_nothing_writes_are_counted(self, teeny: Teeny, tmp_path: Path) -> None:
        op = elementwise(tmp_path, args=["ptr x", "ptr y", "ptr out", "i32 N - 1"])
        (finding,) = findings(probe(teeny, tmp_path, op))
        assert finding["message"] == "at N=3: 1 of 3 elements of 'out' are written by no thread, the first at [2]"
        assert finding["where"].endswith("op.it.grid")

    def test_an_input_that_changes(self, teeny: Teeny, tmp_path: Path) -> None:
        body = load("x", "%f1") + store("%f1") + "ld.param.u64 %d3, [y]; mad.wide.u32 %d3, %i, 4, %d3;\n"
        # The address goes through memory, where no reading of the text follows it.
        body += ".local .b64 spill; mov.u64 %d4, spill; st.local.u64 [%d4], %d3; ld.local.u64 %d5, [%d4];\n"
        body += "st.global.f32 [%d5], %f1;\n"
        op = elementwise(tmp_path, ptx=kernel(tmp_path, pointers("x", "y", "out"), body), reference="x")
        (finding,) = [f for f in findings(probe(teeny, tmp_path, op)) if f["id"].startswith("probe")]
        assert finding["id"] == "probe-input-changed"
        assert finding["message"] == "at N=3: 3 of 3 elements of the input 'y' are changed, the first at [0]"

    def test_a_kernel_that_never_ends(self, teeny: Teeny, tmp_path: Path) -> None:
        op = elementwise(tmp_path, ptx=kernel(tmp_path, pointers("x", "y", "out"), store("%r1") + "LOOP: bra LOOP;"))
        done = probe(teeny, tmp_path, op, "--timeout", "0.2")
        assert found(done) == (1, {"timeout"})

    def test_each_run_begins_with_fresh_variables(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "mov.u64 %d3, calls; atom.global.add.u32 %r4, [%d3], 1;\n" + store("%r4")
        op = {
            "ptx": kernel(tmp_path, pointers("out"), body, ".global .u32 calls = 255;\n"), "block": [1], "grid": [1],
            "output": {"name": "out", "shape": [1], "dtype": "u32"}, "args": ["ptr out", "i32 1"],
            "reference": "full(1, 255)",
        }  # fmt: skip
        assert found(probe(teeny, tmp_path, op)) == (0, set())

    def test_a_launch_that_cannot_be_laid_out_is_not_run(self, teeny: Teeny, tmp_path: Path) -> None:
        op = elementwise(tmp_path, args=["ptr x", "ptr y", "ptr out"])
        assert found(probe(teeny, tmp_path, op)) == (1, {"argument-count"})


class TestDims:
    def test_they_keep_to_what_the_manifest_says(self, teeny: Teeny, tmp_path: Path) -> None:
        dims = {"M": {"value": 40, "multiple_of": 8, "max": 64}, "N": {"value": 12, "min": 11, "max": 13}}
        op = square(dims=dims)
        op.pop("backward")
        done = probe(teeny, tmp_path, op)
        cases = [row["case"] for row in done.json["ops"]]
        assert done.code == 0
        assert len(cases) > 2
        assert all(case["M"] % 8 == 0 and case["M"] <= 64 and 11 <= case["N"] <= 13 for case in cases)

    def test_those_given_stay(self, teeny: Teeny, tmp_path: Path) -> None:
        done = probe(teeny, tmp_path, square(), "--dim", "N=6")
        assert {row["case"]["N"] for row in done.json["ops"]} == {6}
        assert len({row["case"]["M"] for row in done.json["ops"]}) > 2

    def test_what_the_op_takes_and_does_not_say(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "shl.b32 %i, %i, 2; add.u32 %r4, %i, 4; setp.gt.u32 %p1, %r4, %n; @%p1 bra DONE;\n"
        body += "ld.param.u64 %d1, [x]; mad.wide.u32 %d1, %i, 4, %d1; ld.param.u64 %d2, [out];"
        body += "mad.wide.u32 %d2, %i, 4, %d2; ld.global.v4.b32 {%r4,%r5,%r6,%r7}, [%d1];"
        body += "st.global.v4.b32 [%d2], {%r4,%r5,%r6,%r7};\n"
        op = elementwise(tmp_path, ptx=kernel(tmp_path, pointers("x", "out"), body), reference="x", dims={"N": 64})
        op |= {"inputs": op["inputs"][:1], "args": ["ptr x", "ptr out", "i32 N"]}
        (finding,) = findings(probe(teeny, tmp_path, op))
        assert finding["id"] == "probe-not-written"
        assert "at N=3: 3 of 3" in finding["message"]
        assert finding["note"].startswith("at the op's own N=64 nothing is wrong: if the kernel takes some sizes only")
        op["dims"] = {"N": {"value": 64, "multiple_of": 4}}
        assert found(probe(teeny, tmp_path, op)) == (0, set())

    def test_an_op_too_large_to_be_run(self, teeny: Teeny, tmp_path: Path) -> None:
        op = elementwise(tmp_path, dims={"N": {"value": 1 << 24, "min": 1 << 24}})
        (finding,) = findings(done := probe(teeny, tmp_path, op))
        assert (done.code, finding["id"], finding["severity"]) == (0, "not-probed", "note")
        assert "--dim" in finding["message"]


class TestData:
    def test_indices_may_be_in_range_only(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.u64 %d1, [y]; mad.wide.u32 %d1, %i, 4, %d1; ld.global.u32 %r4, [%d1];\n"
        body += "ld.param.u64 %d3, [x]; mad.wide.u32 %d3, %r4, 4, %d3; ld.global.f32 %f1, [%d3];\n" + store("%f1")
        op = elementwise(
            tmp_path, ptx=kernel(tmp_path, pointers("x", "y", "out"), body), reference="x[y]", dims={"N": 10, "V": 100},
            inputs=[{"name": "x", "shape": ["V"]}, {"name": "y", "shape": ["N"], "dtype": "i32"}],
        )  # fmt: skip
        assert found(probe(teeny, tmp_path, op)) == (0, set())
        op["args"] = ["ptr x", "ptr y + 1", "ptr out", "i32 N"]
        assert found(probe(teeny, tmp_path, op)) == (1, {"out-of-bounds"})

    def test_params_that_are_zero_by_default_hide_no_swap(self, teeny: Teeny, tmp_path: Path) -> None:
        op = elementwise(tmp_path, args=["ptr y", "ptr x", "ptr out", "i32 N"])
        op["params"] = op.pop("inputs")
        (finding,) = findings(probe(teeny, tmp_path, op))
        assert "look swapped" in finding["hint"]

    def test_what_the_manifest_says_stays(self, teeny: Teeny, tmp_path: Path) -> None:
        inputs = [{"name": "x", "shape": ["N"], "init": "arange(N) + 5"}, {"name": "y", "shape": ["N"], "init": 2}]
        op = elementwise(tmp_path, inputs=inputs, reference="arange(N) + 3.0")
        assert found(probe(teeny, tmp_path, op)) == (0, set())

    def test_an_output_that_is_added_to(self, teeny: Teeny, tmp_path: Path) -> None:
        output = {"name": "out", "shape": ["2 * N"], "init": "zeros"}
        op = elementwise(tmp_path, output=output, reference="concatenate((x - y, zeros(N)))")
        assert found(probe(teeny, tmp_path, op)) == (0, set())

    def test_an_integer_of_all_ones_is_written(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "mov.u32 %r4, -1;\n" + store("%r4")
        op = elementwise(tmp_path, ptx=kernel(tmp_path, pointers("x", "y", "out"), body), reference="full(N, -1)")
        op["output"] = {"name": "out", "shape": ["N"], "dtype": "i32"}
        assert found(probe(teeny, tmp_path, op)) == (0, set())

    def test_a_reference_that_fails_at_the_ops_own_dims(self, teeny: Teeny, tmp_path: Path) -> None:
        code, ids = found(probe(teeny, tmp_path, elementwise(tmp_path, reference="x[: N - 1]")))
        assert (code, ids) == (1, {"array-shape"})
        op = elementwise(tmp_path, reference="(x - y).reshape(N // 10, 10).ravel()")
        assert found(probe(teeny, tmp_path, op)) == (0, set())


class TestOptions:
    def test_ignored_findings(self, teeny: Teeny, tmp_path: Path) -> None:
        ignore = {"probe-mismatch": "the reference is of the other sign"}
        op = elementwise(tmp_path, ignore=ignore, reference="y - x")
        assert found(probe(teeny, tmp_path, op)) == (0, set())
        assert teeny("check", "--strict", "-m", manifest(tmp_path, it=op)).code == 0, "nothing was run"
        done = probe(teeny, tmp_path, elementwise(tmp_path, ignore=ignore))
        assert found(done) == (0, {"unused-ignore"})

    def test_selection_and_annotations(self, teeny: Teeny, tmp_path: Path) -> None:
        path = manifest(tmp_path, it=elementwise(tmp_path, reference="y - x"))
        done = teeny("check", "--probe", "--select", "probe", "--format", "github", "-m", path)
        assert done.out.startswith("::error file=")
        assert "title=it%3A probe-mismatch::at N=3: 'out' differs" in done.out
        assert teeny("check", "--probe", "--ignore", "probe-mismatch", "-m", path).code == 0

    def test_options_that_go_with_it(self, teeny: Teeny, tmp_path: Path) -> None:
        path = manifest(tmp_path, it=elementwise(tmp_path))
        for option in (("--seed", "1"), ("--timeout", "1")):
            done = teeny("check", *option, "-m", path)
            assert (done.code, "go with --probe" in done.err) == (2, True)
        assert teeny("check", "--probe", "--seed", "7", "-m", path).code == 0

    def test_without_its_compiler(self, teeny: Teeny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "llvmlite", None)
        done = teeny("check", "--probe", "--json", "-m", manifest(tmp_path, it=elementwise(tmp_path)))
        assert (done.code, done.json["error"]["id"]) == (3, "no-jit")
