from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.commands.teeny import DEVICE, ROOT, Teeny, manifest, samples

# For the CPU device alone is what only it knows, a fault's place, buffers by name, its cache; and what it shows by
# running, while the check says so before a launch on a GPU.
pytestmark = [pytest.mark.device, pytest.mark.devices("cpu", "cuda")]

SAMPLES = samples()
OPS = ROOT / "ops.toml"
VECTOR_ADD = SAMPLES["vector_add_cuda"]["ptx"]


class TestSamples:
    @pytest.mark.devices("cpu")
    def test_the_second_run_takes_its_code_from_the_cache(
        self, teeny: Teeny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TEENY_CACHE_DIR", str(tmp_path / "cache"))
        runs = [teeny("run", "softmax_triton", "-m", OPS, "--json", *DEVICE).json for _ in range(2)]
        assert [run["compile"]["cached"] for run in runs] == [False, True]
        assert runs[0]["outputs"] == runs[1]["outputs"]

    def test_json_has_every_key_of_the_design(self, teeny: Teeny) -> None:
        document = teeny("run", "vector_add_triton", "-m", OPS, "--json", *DEVICE).json
        assert {"device", "compile", "launches", "outputs", "compare"} <= document.keys()
        assert document["device"].partition(":")[0] == teeny.device
        (launch,) = document["launches"]
        assert {"op", "case", "entry", "index", "grid", "block", "cluster", "shared", "args", "ms"} <= launch.keys()
        assert (launch["grid"], launch["block"], launch["case"]) == ([4, 1, 1], [128, 1, 1], {"N": 4096})
        assert [(a["name"], a["kind"], a["size"], a["offset"]) for a in launch["args"]][:4] == [
            ("x", "ptr", 8, 0), ("y", "ptr", 8, 8), ("out", "ptr", 8, 16), ("N", "i32", 4, 24),
        ]  # fmt: skip
        assert launch["args"][3]["value"] == 4096
        (output,) = document["outputs"]
        assert {"op", "case", "name", "dtype", "shape", "min", "max", "mean", "nan", "inf", "sha256"} <= output.keys()
        (compared,) = document["compare"]
        assert {"op", "case", "name", "ok", "max_abs", "max_rel", "max_ulp", "mismatches", "first"} <= compared.keys()

    def test_the_launch_table_names_everything(self, teeny: Teeny) -> None:
        done = teeny("run", "softmax_triton", "-m", OPS, *DEVICE)
        for word in ("softmax", "64 x 1 x 1", "128 x 1 x 1", "16 bytes dynamic", "x.row_stride", "f32[64, 512]",
                     "128 KiB", "hidden", "ok"):  # fmt: skip
            assert word in done.out
        assert done.err == ""

    def test_auto_says_what_it_took(self, teeny: Teeny) -> None:
        assert "running on" in teeny("run", "vector_add_cuda", "-m", OPS).err


class TestMismatch:
    def test_swapped_inputs_of_a_wrong_reference_fail(self, teeny: Teeny, tmp_path: Path) -> None:
        op = {**SAMPLES["vector_add_cuda"], "reference": "x - y"}
        done = teeny("run", "it", "-m", manifest(tmp_path, it=op), "--json", *DEVICE)
        assert done.code == 1
        (one,) = done.json["compare"]
        assert not one["ok"]
        assert one["mismatches"] > 4000
        assert one["first"] == [0]

    @pytest.mark.devices("cpu")
    def test_what_no_thread_wrote_is_counted(self, teeny: Teeny, tmp_path: Path) -> None:
        op = {**SAMPLES["vector_add_cuda"], "grid": ["cdiv(N, BLOCK) - 1"]}
        done = teeny("run", "it", "-m", manifest(tmp_path, it=op), "--json", "--no-check", *DEVICE)
        assert (done.code, done.json["compare"][0]["unwritten"]) == (1, 256)

    def test_expect(self, teeny: Teeny, tmp_path: Path) -> None:
        assert teeny("run", "vector_add_cuda", "-m", OPS, "--save", "out=a.npy", *DEVICE).code == 0
        np.save(tmp_path / "b.npy", np.load(tmp_path / "a.npy") + np.float32(0.5))
        run = ("run", "vector_add_cuda", "-m", OPS, *DEVICE)
        assert teeny(*run, "--expect", "out=@a.npy").code == 0
        assert teeny(*run, "--expect", "out=@b.npy").code == 1
        assert teeny(*run, "--expect", "out=@b.npy", "--atol", "0.6").code == 0
        assert teeny(*run, "--seed", "1", "--expect", "out=@a.npy").code == 1


class TestChecksFirst:
    OP: ClassVar[dict[str, Any]] = {**SAMPLES["vector_add_cuda"], "block": [512]}

    def test_an_error_stops_the_launch(self, teeny: Teeny, tmp_path: Path) -> None:
        done = teeny("run", "it", "-m", manifest(tmp_path, it=self.OP), *DEVICE)
        assert (done.code, done.out) == (1, "")
        assert "block-too-large" in done.err
        document = teeny("run", "it", "-m", tmp_path / "ops.toml", "--json", *DEVICE).json
        assert (document["error"]["id"], document["launches"]) == ("block-too-large", [])

    @pytest.mark.devices("cpu")
    def test_unless_no_check(self, teeny: Teeny, tmp_path: Path) -> None:
        done = teeny("run", "it", "-m", manifest(tmp_path, it=self.OP), "--no-check", *DEVICE)
        assert done.code == 0

    @pytest.mark.parametrize("key", ["block", "shared", "grid"])
    def test_nor_is_one_that_no_device_takes(self, teeny: Teeny, tmp_path: Path, key: str) -> None:
        value = 10**14 if key == "shared" else [99999999999]
        path = manifest(tmp_path, it={**SAMPLES["vector_add_cuda"], key: value})
        done = teeny("run", "it", "-m", path, "--no-check", *DEVICE)
        assert (done.code, "launch-limits" in done.err) == (1, True)

    @pytest.mark.parametrize("args", [["ptr x", "ptr y", "ptr out"], ["ptr x", "ptr y", "ptr out", "i64 N"]])
    def test_but_a_launch_that_cannot_be_laid_out_stays_stopped(
        self, teeny: Teeny, tmp_path: Path, args: list[str]
    ) -> None:
        path = manifest(tmp_path, it={**SAMPLES["vector_add_cuda"], "args": args})
        assert teeny("run", "it", "-m", path, "--no-check", *DEVICE).code == 1


class TestScalars:
    PTX = (
        ".version 8.7\n.target sm_80\n.address_size 64\n.entry k(.param .u64 x, .param .u64 y, .param .f32 a) {\n"
        ".reg .b32 %r<2>; .reg .b64 %rd<6>; .reg .f32 %f<4>; mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4;\n"
        "ld.param.u64 %rd2, [x]; add.s64 %rd2, %rd2, %rd1; ld.global.f32 %f1, [%rd2]; ld.param.f32 %f2, [a];\n"
        "mul.f32 %f1, %f1, %f2; ld.param.u64 %rd3, [y]; add.s64 %rd3, %rd3, %rd1; st.global.f32 [%rd3], %f1; ret; }\n"
    )

    def test_the_reference_sees_a_scalar_as_it_is_passed(self, teeny: Teeny, tmp_path: Path) -> None:
        (tmp_path / "k.ptx").write_text(self.PTX)
        op = {
            "ptx": "k.ptx", "args": ["ptr x", "ptr y", "f32 a"], "grid": [1], "block": [64], "scalars": {"a": 0.1},
            "inputs": [{"name": "x", "shape": [64]}], "output": {"name": "y", "shape": [64]}, "reference": "x * a",
            "rtol": 6e-8, "atol": 0.0,
        }  # fmt: skip
        done = teeny("run", "k", "-m", manifest(tmp_path, k=op), "--json", *DEVICE)
        assert done.code == 0, done.out
        assert done.json["launches"][0]["args"][2]["value"] == float(np.float32(0.1))


class TestAdhoc:
    ARGS = ("--ptx", VECTOR_ADD, "--grid", "4", "--block", "256", *DEVICE)
    BUFFERS = ("-a", "x=f32[1000]:arange", "-a", "y=f32[1000]:2", "-a", "out=f32[1000]")

    def test_buffers_that_changed_are_shown(self, teeny: Teeny) -> None:
        document = teeny("run", *self.ARGS, *self.BUFFERS, "-a", "n=i32:1000", "--json").json
        (out,) = document["outputs"]
        assert (out["name"], out["min"], out["max"]) == ("out", 2.0, 1001.0)
        (launch,) = document["launches"]
        assert (launch["bytes_read"], launch["bytes_written"]) == (8000, 4000)

    def test_save_and_expect(self, teeny: Teeny, tmp_path: Path) -> None:
        np.save(tmp_path / "want.npy", np.arange(1000, dtype=np.float32) + 2)
        run = ("run", *self.ARGS, *self.BUFFERS, "-a", "n=i32:1000")
        done = teeny(*run, "--expect", "out=@want.npy", "--save", "out=o.npz", "--save", "x=x.bin")
        assert done.code == 0, done.err
        assert np.array_equal(np.load(tmp_path / "o.npz")["out"], np.load(tmp_path / "want.npy"))
        assert np.array_equal(np.fromfile(tmp_path / "x.bin", np.float32), np.arange(1000))

    def test_a_struct_may_point_to_a_buffer_that_is_no_argument(self, teeny: Teeny, tmp_path: Path) -> None:
        (tmp_path / "k.ptx").write_text(
            ".version 8.7\n.target sm_80\n.address_size 64\n.entry k(.param .align 8 .b8 s[16]) {\n"
            ".reg .b64 %rd1; .reg .b32 %r1;\n"
            "ld.param.u64 %rd1, [s]; ld.param.u32 %r1, [s+8]; st.global.u32 [%rd1], %r1; ret; }\n"
        )
        run = ("run", "--ptx", "k.ptx", "--grid", "1", "--block", "1", "-a", "s={ptr b, i32 7}", *DEVICE, "--json")
        (out,) = teeny(*run, "--input", "b=i32[2]").json["outputs"]
        assert (out["name"], out["max"]) == ("b", 7)

    def test_nothing_changed(self, teeny: Teeny) -> None:
        done = teeny("run", *self.ARGS, *self.BUFFERS, "-a", "n=i32:0")
        assert (done.code, "no buffer changed" in done.out) == (0, True)

    def test_an_argument_too_few(self, teeny: Teeny) -> None:
        done = teeny("run", *self.ARGS, *self.BUFFERS)
        assert (done.code, "argument-count" in done.err) == (1, True)

    @pytest.mark.parametrize(
        ("extra", "word"),
        [
            (("-a", "n=i32:x"), "no number"), (("-a", "n=1000"), "say its type"), (("-a", "n=q32:1"), "no argument"),
            (("-a", "z=f32[abc]"), "abc"), (("-a", "n=i32:3000000000"), "does not fit"), (("op",), "not both"),
            (("--dim", "N=3"), "without --ptx"), (("--case", "all"), "without --ptx"), (("-a", "=3"), "NAME=SPEC"),
            (("--grid", "4,4,4,4"), "grid"), (("--shared", "lots"), "lots"), (("--hidden", "3"), "3"),
        ],
    )  # fmt: skip
    def test_bad_options(self, teeny: Teeny, extra: tuple[str, ...], word: str) -> None:
        done = teeny("run", *self.ARGS, *self.BUFFERS, *extra)
        assert done.code == 2
        assert word in done.err

    @pytest.mark.devices("cpu")
    def test_out_of_bounds_names_buffer_thread_and_line(self, teeny: Teeny) -> None:
        args = ("-a", "x=f32[1000]", "-a", "y=f32[999]", "-a", "out=f32[1000]", "-a", "n=i32:1000")
        done = teeny("run", *self.ARGS, *args)
        assert done.code == 1
        assert "out-of-bounds" in done.err
        assert "'y'" in done.err
        assert "vector_add.ptx" in done.err


def test_a_file_for_an_input_lies_in_the_working_folder(teeny: Teeny, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    path = manifest(tmp_path / "there", vector_add_cuda=samples()["vector_add_cuda"])
    np.save(tmp_path / "ones.npy", np.ones(4, np.float32))
    run = ("run", "vector_add_cuda", "-m", path, "--dim", "N=4", *DEVICE, "--json")
    (out,) = teeny(*run, "--input", "x=@ones.npy", "--input", "y=ones.npy").json["outputs"]
    assert (out["min"], out["max"]) == (2, 2)


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "options", "code", "word"),
        [
            ({"ptx": "missing.ptx"}, (), 2, "file-not-found"), ({"ptx": "."}, (), 2, ".ptx"),
            ({"gird": [1]}, (), 2, "did you mean 'grid'"), ({"dims": {}}, (), 2, "'N'"),
            ({}, ("--dim", "N=0"), 2, "positive"), ({}, ("--dim", "N=-4"), 2, "positive"),
            ({}, ("--dim", "N=many"), 2, "no integer"), ({}, ("--dim", "K=1"), 2, "'K'"),
            ({}, ("--input", "x=@none.npy"), 2, "none.npy"), ({}, ("--input", "q=1"), 2, "'q'"),
            ({}, ("--save", "out=no/such/dir/a.npy"), 2, "unwritable"), ({}, ("--save", "out=a.xyz"), 2, "a.xyz"),
            ({}, ("--save", "q=a.npy"), 2, "'q'"), ({}, ("--case", "9"), 2, "no case 9"),
            ({}, ("--case", "x"), 2, "'x'"), ({}, ("--device", "tpu"), 2, "tpu"),
            ({"grid": [2**31]}, (), 1, "grid-limit"), ({"reference": "x + z"}, (), 2, "'z'"),
            ({"reference": "refs:f"}, (), 2, "refs"), ({"reference": "x[:5]"}, (), 2, "shape"),
            ({"args": ["ptr x", "ptr y", "ptr oot", "i32 N"]}, (), 2, "did you mean 'out'"),
            ({"output": {"name": "out", "shape": ["N", "M"]}}, (), 2, "'M'"),
            ({}, ("--timeout", "-1"), 2, "timeout"), ({}, ("--seed", "-1"), 2, "seed"),
        ],
    )  # fmt: skip
    def test_is_named(
        self, teeny: Teeny, tmp_path: Path, change: dict[str, Any], options: tuple[str, ...], code: int, word: str
    ) -> None:
        op = {**SAMPLES["vector_add_cuda"], **change}
        device = () if "--device" in options else DEVICE
        done = teeny("run", "it", "-m", manifest(tmp_path, it=op), *options, *device)
        assert done.code == code, done.err
        assert word in done.err
        assert not list(tmp_path.glob("*.npy"))

    @pytest.mark.parametrize("array", [np.zeros(5, np.float32), np.zeros((4096, 1), np.float32), np.zeros(4096, "U3")])
    def test_an_input_file_that_does_not_fit(self, teeny: Teeny, tmp_path: Path, array: np.ndarray[Any, Any]) -> None:
        np.save(tmp_path / "x.npy", array)
        done = teeny("run", "vector_add_cuda", "-m", OPS, "--input", "x=x.npy", *DEVICE)
        assert done.code in (1, 2)
        assert "x.npy" in done.err

    def test_a_gpu_that_is_not_there(self, teeny: Teeny, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        done = teeny("run", "vector_add_cuda", "-m", OPS, "--device", "cuda:7")
        assert done.code == 3
        assert "no-device" in done.err or "no-cuda" in done.err

    @pytest.mark.devices("cpu")
    def test_an_instruction_that_the_device_lacks(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "tcgen05.fence::before_thread_sync;\nret;\n"
        text = f".version 8.7\n.target sm_100a\n.address_size 64\n.entry k()\n{{\n{body}}}\n"
        (tmp_path / "k.ptx").write_text(text)
        done = teeny("run", "--ptx", "k.ptx", "--grid", "1", "--block", "128", *DEVICE)
        assert done.code == 4
        assert "k.ptx:6" in done.err
        assert "tcgen05.fence::before_thread_sync" in done.err

    @pytest.mark.devices("cpu")
    def test_an_endless_loop_ends_in_time(self, teeny: Teeny, tmp_path: Path) -> None:
        text = ".version 8.7\n.target sm_80\n.address_size 64\n.entry k()\n{\nL:\nbra L;\n}\n"
        (tmp_path / "k.ptx").write_text(text)
        done = teeny("run", "--ptx", "k.ptx", "--grid", "1", "--block", "32", "--timeout", "0.2", *DEVICE)
        assert (done.code, "timeout" in done.err) == (1, True)


@pytest.mark.devices("cpu")
def test_a_fault_in_one_case_still_shows_the_launch_and_what_ran_before(teeny: Teeny, tmp_path: Path) -> None:
    op = {**SAMPLES["vector_add_cuda"], "output": {"name": "out", "shape": ["min(N, 1000)"]}, "cases": [{"N": 2000}]}
    op = {key: value for key, value in op.items() if key != "reference"} | {"dims": {"N": 1000}}
    done = teeny("run", "it", "-m", manifest(tmp_path, it=op), "--case", "all", *DEVICE)
    assert done.code == 1
    assert "N=1000" in done.out
    assert "N=2000" in done.out
    assert "out-of-bounds" in done.err
    document = teeny("run", "it", "-m", tmp_path / "ops.toml", "--case", "all", "--json", *DEVICE).json
    assert document["error"]["id"] == "out-of-bounds"
    assert [launch["ms"] is None for launch in document["launches"]] == [False, True]


class TestHostileOptions:
    """What once was a traceback, a hang, or taken in silence."""

    @pytest.mark.parametrize(
        "options",
        [
            ("--case", "9" * 5000), ("--timeout", "inf"), ("--timeout", "nan"), ("--timeout", "1e300"),
            ("--rtol", "nan"), ("--rtol", "inf"), ("--save", "out=a.npy", "--save", "out=b.npy"),
            ("--expect", "out=@none.npy"), ("--expect", "q=@none.npy"), ("--input", "x=/dev/zero"),
            ("--dim", "N=" + "9" * 5000),
        ],
        ids=lambda options: " ".join(options)[:40],
    )  # fmt: skip
    def test_is_refused_before_anything_runs(self, teeny: Teeny, options: tuple[str, ...]) -> None:
        done = teeny("run", "vector_add_cuda", "-m", OPS, *options, *DEVICE)
        assert done.code == 2
        assert done.out == ""
        assert len(done.err) < 2000

    def test_the_error_is_in_the_document_too(self, teeny: Teeny) -> None:
        done = teeny("run", "vector_add_cuda", "-m", OPS, "--dim", "M=1", "--json", *DEVICE)
        assert (done.code, done.json["error"]["id"], done.json["device"]) == (2, "unknown-dim", None)
        done = teeny("check", "--json", "-m", "missing.toml")
        assert (done.code, done.json["ops"]) == (2, [])
        assert done.json["error"]["id"]

    def test_a_fifo_is_no_file(self, teeny: Teeny, tmp_path: Path) -> None:
        import os

        if not hasattr(os, "mkfifo"):
            pytest.skip("no FIFOs here")
        os.mkfifo(tmp_path / "k.ptx")
        done = teeny("entries", "k.ptx")
        assert (done.code, "not-a-file" in done.err) == (2, True)


def test_errors_have_the_colour_that_was_asked_for(teeny: Teeny) -> None:
    assert "\x1b" in teeny("run", "nope", "-m", OPS, "--color", "always").err
    assert "\x1b" not in teeny("run", "nope", "-m", OPS, "--color=never").err


def test_several_cases_end_with_a_tally(teeny: Teeny) -> None:
    done = teeny("run", "vector_add_cuda", "-m", OPS, "--case", "all", *DEVICE)
    assert done.out.splitlines()[-1] == "4 cases of 4 run; 4 comparisons, 0 wrong"


def test_buffers_larger_than_the_machine_are_refused(teeny: Teeny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teenycli.tensors.convert.os.sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 8)
    done = teeny("run", "vector_add_cuda", "-m", OPS, *DEVICE)
    assert (done.code, "array-too-large" in done.err) == (2, True)


def test_no_arguments_at_all_is_a_request_for_help(teeny: Teeny) -> None:
    done = teeny()
    assert (done.code, done.err) == (0, "")
    assert "entries" in done.out


@pytest.mark.devices("cpu")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_is_closed_from_the_start_leads_nowhere(closed: str) -> None:
    if sys.platform == "win32":
        pytest.skip("this takes a POSIX shell")
    command = f"{shlex.quote(sys.executable)} -m teenycli run vector_add_cuda --device auto {closed}"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_printf_goes_to_stdout_and_with_json_to_stderr(teeny: Teeny, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(
        ".version 8.7\n.target sm_80\n.address_size 64\n"
        ".global .align 1 .b8 text[7] = {104, 101, 108, 108, 111, 10, 0};\n"
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
        ".entry k() { .reg .b64 %rd<3>; mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, 0;\n"
        "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %rd1; st.param.b64 [b], %rd2;\n"
        "call.uni (r), vprintf, (a, b); } ret; }\n"
    )
    run = ("run", "--ptx", "k.ptx", "--grid", "1", "--block", "2", *DEVICE)
    assert teeny(*run).out.count("hello\n") == 2
    done = teeny(*run, "--json")
    assert done.err.count("hello\n") == 2
    assert done.json["error"] is None


@pytest.mark.devices("cuda")
def test_a_launch_is_judged_for_the_gpu_that_it_runs_on(teeny: Teeny, tmp_path: Path) -> None:
    """Text for sm_80, whose blocks have 166,912 bytes of shared memory, on an sm_90, whose have 232,448."""
    (tmp_path / "k.ptx").write_text(
        ".version 7.8\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 pool[];\n"
        ".entry k(.param .u64 p) { .reg .b64 %rd<2>; .reg .b32 %r<2>; ld.param.u64 %rd1, [p];\n"
        "st.shared.u32 [pool+199996], 5; ld.shared.u32 %r1, [pool+199996]; st.global.u32 [%rd1], %r1; ret; }\n"
    )
    run = ("run", "--ptx", "k.ptx", "--grid", "1", "--block", "1", "-a", "p=u32[1]")
    done = teeny(*run, "--shared", "200000", *DEVICE)
    assert done.code == 0, done.err
    done = teeny(*run, "--shared", "240000", *DEVICE)
    assert (done.code, "sm_90 has 232,448 a block" in done.err) == (1, True)
