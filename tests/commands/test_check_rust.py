"""``teeny check --rust``: what an impl visits, made from the samples' own arguments, and every single change of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from teenycli.dtypes import DTYPES
from tests.commands.teeny import ROOT, Teeny, manifest, samples
from tests.rust.source import impl, method

pytestmark = pytest.mark.unit

SAMPLES = samples(backward=True)
CUDA = ROOT / "ptx" / "cuda"
SOFTMAX = CUDA / "softmax.ptx"
#: What softmax.ptx takes: two pointers, rows, columns and the stride.
VISITS = ["visit_ptr(inputs[0].0)", "visit_ptr(output)", "visit_i32(rows)", "visit_i32(cols)", "visit_i32(stride)"]


def body(visits: list[str]) -> str:
    return "\n".join(f"        visitor.{visit};" for visit in visits)


def camel(name: str) -> str:
    return "".join(word.capitalize() for word in re.split(r"[_-]", name))


def visits_of(args: list[str]) -> list[str] | None:
    """The arguments of a manifest as visits; None where the visitor has no method for one."""
    found = []
    for arg in args:
        kind, _, value = arg.partition(" ")
        if not re.fullmatch(r"ptr|[iuf]\d+|bool|bf16", kind):
            return None
        found.append(f"visit_{kind}({json.dumps(value)})")
    return found


#: (op, method, visits) of every sample, forward and backward.
SIDES: list[tuple[str, str, list[str]]] = [
    (name, packing, visits)
    for name, op in SAMPLES.items()
    for packing, table in (("pack_args", op), ("pack_backward_args", op.get("backward")))
    if table is not None and (visits := visits_of(table["args"])) is not None
]


@pytest.fixture
def rust(teeny: Teeny, tmp_path: Path) -> Any:
    """Runs ``check --rust`` on a text; gives the exit code and, by the row's name, the findings."""

    def check(text: str, *args: str | Path) -> tuple[int, dict[str, list[dict[str, Any]]]]:
        (tmp_path / "op.rs").write_text(text, "utf-8")
        done = teeny("check", "--json", "--rust", tmp_path / "op.rs", *args)
        rows = done.json["ops"]
        assert not any(row["error"] for row in rows)
        return done.code, {row["op"]: row["findings"] for row in rows}

    return check


def test_most_samples_can_be_visited() -> None:
    assert len(SIDES) >= 20
    assert {"softmax_cuda", "linear_cuda", "channel_cat_cuda", "conv_bn_silu_triton"} <= {name for name, _, _ in SIDES}


@pytest.mark.parametrize(
    ("name", "packing", "visits"), SIDES, ids=lambda value: value if isinstance(value, str) else ""
)
class TestEverySample:
    """What the manifest passes is right when Rust passes it, and every change of count, width or kind is named."""

    def check(self, rust: Any, name: str, packing: str, visits: list[str]) -> tuple[int, set[str]]:
        table = SAMPLES[name] if packing == "pack_args" else SAMPLES[name]["backward"]
        side = camel(name) + (".backward" if "backward" in packing else "")
        ptx = table.get("ptx", SAMPLES[name]["ptx"])
        entry = ["--entry", f"{side}={table['entry']}"] if "entry" in table else []
        code, rows = rust(impl(camel(name), method(packing, body(visits))), "--ptx", ptx, *entry)
        assert list(rows) == [side]
        return code, {finding["id"] for finding in rows[side]}

    def test_as_it_is(self, rust: Any, name: str, packing: str, visits: list[str]) -> None:
        assert self.check(rust, name, packing, visits) == (0, set())

    def test_one_too_few_or_too_many(self, rust: Any, name: str, packing: str, visits: list[str]) -> None:
        for k in range(len(visits)):
            assert self.check(rust, name, packing, visits[:k] + visits[k + 1 :]) == (1, {"argument-count"})
            assert self.check(rust, name, packing, [*visits[:k], visits[k], *visits[k:]]) == (1, {"argument-count"})

    def test_of_another_kind(self, rust: Any, name: str, packing: str, visits: list[str]) -> None:
        for k, visit in enumerate(visits):
            kind, value = re.fullmatch(r"visit_(\w+)(.*)", visit).groups()  # type: ignore[union-attr]
            size = DTYPES[kind].size
            for other in {"ptr", "i32", "u32", "f32"} - {kind}:
                alike = DTYPES[other].is_integer and DTYPES[kind].is_integer
                if DTYPES[other].size != size or not alike:
                    found = self.check(rust, name, packing, [*visits[:k], f"visit_{other}{value}", *visits[k + 1 :]])
                    id = "argument-kind" if DTYPES[other].size == size else "argument-width"
                    assert found == (1, {id}), (visit, other)


class TestRules:
    def findings(self, rust: Any, text: str) -> list[dict[str, Any]]:
        _, rows = rust(impl("SoftmaxOp", method("pack_args", text)), "--ptx", SOFTMAX)
        return rows["SoftmaxOp"]  # type: ignore[no-any-return]

    def test_a_finding_names_both_sides_and_the_cure(self, rust: Any, tmp_path: Path) -> None:
        (found,) = self.findings(rust, body([VISITS[0], "visit_f32( self\n .eps)", *VISITS[2:]]))
        assert found["message"] == "argument 1 'self .eps' is f32, 4 bytes; parameter 1 (.u64) takes 8 bytes"
        assert found["where"] == f"{tmp_path / 'op.rs'}:4:9"
        assert found["hint"] == "pass it with visit_ptr"
        (found,) = self.findings(rust, body([*VISITS[:3], "visit_f32(cols)", VISITS[4]]))
        assert found["id"] == "argument-kind"
        assert found["hint"] == "pass it with visit_i32 or visit_u32"

    def test_a_loop_whose_turns_fit(self, rust: Any) -> None:
        text = "for p in [a, b] { visitor.visit_ptr(p); }" + body(VISITS[2:])
        assert self.findings(rust, text) == []
        (note,) = self.findings(rust, "for p in params { visitor.visit_ptr(p); }" + body(VISITS[2:]))
        assert (note["id"], note["severity"]) == ("rust-undecided", "note")
        assert "the 5 parameters of softmax fit, if 'for p in params' (line 3) comes to them" in note["message"]

    @pytest.mark.parametrize(
        ("text", "id", "message"),
        [
            ("for p in q { visitor.visit_ptr(p); }" + body([*VISITS[2:], *VISITS[2:]]), "argument-count",
             "at least 6 arguments for an entry of 5 parameters"),
            (body(VISITS[2:]) + "for p in q { visitor.visit_ptr(p); }", "argument-width", "argument 0 'rows' is i32"),
            ("for p in q { visitor.visit_ptr(p); }" + body([*VISITS[2:4], "visit_ptr(p)"]), "argument-width",
             "argument 4 'p' is ptr, 8 bytes"),
            (body(VISITS[:1]) + "for p in q { visitor.visit_i32(p); }" + body(VISITS[4:]), "argument-kind",
             "whatever happens at 'for p in q' (line 3), the kinds of what pack_args visits do not fit softmax"),
            ("for p in q { visitor.visit_ptr(p); visitor.visit_ptr(p); visitor.visit_ptr(p); }", "argument-count",
             "at least 0 arguments"),
            ("if a { " + body(VISITS[:4]) + "} else {" + body(VISITS[:3]) + "}", "argument-count",
             "no way through pack_args fits, and this one comes closest"),
        ],
    )  # fmt: skip
    def test_what_no_turns_and_no_way_can_mend(self, rust: Any, text: str, id: str, message: str) -> None:
        found = self.findings(rust, text)
        assert {finding["id"] for finding in found} == {id}
        assert message in found[0]["message"]

    def test_a_condition_of_which_one_way_fits(self, rust: Any) -> None:
        text = body(VISITS[:4]) + "\nif self.strided { visitor.visit_i32(stride); }"
        (note,) = self.findings(rust, text)
        assert note["severity"] == "note"
        assert note["message"].startswith("1 of the 2 ways through pack_args fit softmax")
        assert "'self.strided' (line 7)" in note["message"]
        both = body(VISITS[:4]) + "\nif a { visitor.visit_i32(stride); } else { visitor.visit_u32(0); }"
        assert self.findings(rust, both) == []

    def test_what_is_not_understood_is_a_note(self, rust: Any) -> None:
        (note,) = self.findings(rust, body(VISITS[:2]) + "emit!(visitor);")
        assert (note["severity"], "the macro emit!" in note["message"]) == ("note", True)
        (note,) = self.findings(rust, body([*VISITS[:4], "visit_i128(0)"]))
        assert "visit_i128 of '0'" in note["message"]
        (note,) = self.findings(rust, "unimplemented!()")
        assert "panics" in note["message"]

    def test_a_backward_that_is_promised_and_not_written(self, rust: Any) -> None:
        promise = "    fn has_backward(&self) -> bool { true }\n"
        text = impl("Softmax", method("pack_args", body(VISITS)), promise)
        code, rows = rust(text, "--ptx", SOFTMAX, "--ptx", CUDA / "softmax_backward.ptx")
        assert code == 1
        assert rows["Softmax"] == []
        assert "0 arguments for an entry of" in rows["Softmax.backward"][0]["message"]

    def test_one_method_that_hands_over_to_another_has_its_findings_once(self, rust: Any) -> None:
        over = "self.pack_args_for_launch(0, inputs, params, output, output_shape, output_row_stride, visitor);"
        wrong = method("pack_args_for_launch", body([VISITS[0], "visit_i32(1)", *VISITS[2:]]))
        _, rows = rust(impl("Softmax", method("pack_args", over), wrong), "--ptx", SOFTMAX)
        assert [finding["id"] for finding in rows["Softmax"]] == ["argument-width"]

    def test_hidden_parameters_are_not_counted(self, rust: Any) -> None:
        text = impl("Gelu", method("pack_args", body(["visit_ptr(x)", "visit_ptr(y)", "visit_i32(n)"])))
        assert SAMPLES["gelu_triton"]["args"] == ["ptr x", "ptr out", "i32 N"]
        code, rows = rust(text, "--ptx", SAMPLES["gelu_triton"]["ptx"])
        assert (code, rows["Gelu"]) == (0, [])
        text = impl("Gelu", method("pack_args", body(["visit_ptr(x)", "visit_ptr(y)"])))
        _, rows = rust(text, "--ptx", SAMPLES["gelu_triton"]["ptx"])
        message = "2 arguments for an entry of 3 parameters (and 2 hidden, which the compiler appended)"
        assert rows["Gelu"][0]["message"] == message


class TestPairs:
    TWO = impl("SoftmaxForward", method("pack_args", body(VISITS))) + impl(
        "VectorAddRtOp", method("pack_args", body(["visit_ptr(a)", "visit_ptr(b)", "visit_ptr(c)", "visit_i32(n)"]))
    )

    def test_by_name(self, rust: Any) -> None:
        code, rows = rust(self.TWO, "--ptx", CUDA / "vector_add.ptx", "--ptx", SOFTMAX)
        assert (code, rows) == (0, {"SoftmaxForward": [], "VectorAddRtOp": []})

    def test_an_impl_without_an_entry_is_a_note(self, rust: Any) -> None:
        code, rows = rust(self.TWO, "--ptx", SOFTMAX)
        assert (code, rows["SoftmaxForward"]) == (0, [])
        assert [finding["id"] for finding in rows["VectorAddRtOp"]] == ["rust-undecided"]

    def test_one_of_each_belong_together_whatever_their_names(self, rust: Any) -> None:
        code, rows = rust(impl("Normalise", method("pack_args", body(VISITS))), "--ptx", SOFTMAX)
        assert (code, rows) == (0, {"Normalise": []})

    def test_an_op_of_a_manifest_belongs_to_it_only_when_it_is_named(
        self, rust: Any, teeny: Teeny, tmp_path: Path
    ) -> None:
        file = manifest(tmp_path, softmax=SAMPLES["softmax_cuda"])
        text = impl("Normalise", method("pack_args", body(VISITS)))
        assert rust(text, "-m", file, "softmax") == (0, {"Normalise": []})
        done = teeny("check", "--json", "--rust", tmp_path / "op.rs", "-m", file)
        assert (done.code, done.json["error"]["id"]) == (2, "rust-entry")

    def test_a_bare_symbol_goes_by_its_file(self, rust: Any, tmp_path: Path) -> None:
        for name in ("softmax", "vector_add"):
            text = (CUDA / f"{name}.ptx").read_text("utf-8").replace(f".entry {name}(", ".entry entry_point(")
            (tmp_path / f"{name}.ptx").write_text(text, "utf-8")
        code, rows = rust(self.TWO, "--ptx", tmp_path / "softmax.ptx", "--ptx", tmp_path / "vector_add.ptx")
        assert (code, rows) == (0, {"SoftmaxForward": [], "VectorAddRtOp": []})
        code, rows = rust(self.TWO, "--ptx", tmp_path / "softmax.ptx", "--ptx", tmp_path / "vector_add.ptx",
                          "--entry", "SoftmaxForward=vector_add.ptx:entry_point")  # fmt: skip
        assert code == 1

    def test_by_the_manifest(self, rust: Any, tmp_path: Path) -> None:
        file = manifest(tmp_path, **{name: SAMPLES[name] for name in ("softmax_cuda", "vector_add_triton")})
        code, rows = rust(self.TWO, "-m", file)
        assert (code, rows) == (0, {"SoftmaxForward": [], "VectorAddRtOp": []})
        code, rows = rust(self.TWO, "-m", ROOT / "ops.toml", "conv_bn_silu_cuda", "vector_add_cuda")
        assert code == 0
        assert [finding["id"] for finding in rows["SoftmaxForward"]] == ["rust-undecided"]
        assert rows["VectorAddRtOp"] == []

    def test_several_that_fit_are_an_error_that_lists_both_sides(self, teeny: Teeny, tmp_path: Path) -> None:
        (tmp_path / "op.rs").write_text(self.TWO, "utf-8")
        done = teeny("check", "--rust", tmp_path / "op.rs", "-m", ROOT / "ops.toml")
        assert done.code == 2
        assert "error[rust-entry]: 2 entries are called like SoftmaxForward" in done.err
        assert "--entry SoftmaxForward=softmax_cuda" in done.err
        assert "impls: SoftmaxForward; entries: softmax_cuda, softmax_triton" in done.err

    def test_none_that_fits(self, teeny: Teeny, tmp_path: Path) -> None:
        (tmp_path / "op.rs").write_text(self.TWO, "utf-8")
        done = teeny("check", "--json", "--rust", tmp_path / "op.rs", "--ptx", CUDA / "linear.ptx")
        assert (done.code, done.json["error"]["id"]) == (2, "rust-entry")

    @pytest.mark.parametrize(
        ("option", "id", "hint"),
        [("SoftmaxForwad=softmax", "rust-entry", "did you mean 'SoftmaxForward'?"),
         ("SoftmaxForward=sofmax", "unknown-entry", "did you mean 'softmax'?"),
         ("gelu", "unknown-entry", "there are softmax"), ("=", "rust-entry", "there are SoftmaxForward, VectorAddRtOp"),
         ("", "unknown-entry", "there are softmax")],
    )  # fmt: skip
    def test_an_option_that_names_nothing(self, teeny: Teeny, tmp_path: Path, option: str, id: str, hint: str) -> None:
        (tmp_path / "op.rs").write_text(self.TWO, "utf-8")
        done = teeny("check", "--rust", tmp_path / "op.rs", "--ptx", SOFTMAX, "--entry", option)
        assert done.code == 2
        assert f"error[{id}]" in done.err
        assert hint in done.err

    def test_only_the_entries_that_are_named(self, rust: Any) -> None:
        text = impl("Linear", method("pack_args", body(VISITS)), method("pack_backward_args", body(VISITS)))
        code, rows = rust(text, "--ptx", CUDA / "linear.ptx", "--entry", "linear_backward")
        assert code == 1
        assert [finding["id"] for finding in rows["Linear"]] == ["rust-undecided"]
        assert rows["Linear.backward"][0]["severity"] == "error"


class TestCommand:
    def run(self, teeny: Teeny, folder: Path, text: str, *args: str | Path) -> Any:
        (folder / "op.rs").write_text(text, "utf-8")
        return teeny("check", "--rust", folder / "op.rs", "--ptx", SOFTMAX, *args)

    def test_annotations_at_the_line(self, teeny: Teeny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
        text = impl("Softmax", method("pack_args", body([VISITS[0], "visit_i32(n)", *VISITS[2:]])))
        done = self.run(teeny, tmp_path, text, "--format", "github")
        assert done.code == 1
        assert done.out.startswith("::error file=op.rs,line=4,col=9,title=Softmax%3A argument-width::argument 1 'n' is")

    @pytest.mark.docs
    def test_the_documentation_shows_what_is_printed(
        self, teeny: Teeny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "src").mkdir()
        (tmp_path / "softmax.ptx").write_text(SOFTMAX.read_text("utf-8"), "utf-8")
        text = impl("SoftmaxForward", method("pack_args", body([VISITS[0], "visit_i32(rows as i32)", *VISITS[2:]])))
        (tmp_path / "src" / "softmax.rs").write_text(text, "utf-8")
        page = (ROOT / "docs" / "checks.md").read_text("utf-8")
        shown = re.search(r"^\$ teeny (check --rust .+)\n((?:.+\n)+?)```", page, re.MULTILINE)
        assert shown is not None
        assert teeny(*shown[1].split()).out == shown[2]

    def test_findings_are_chosen_as_ever(self, teeny: Teeny, tmp_path: Path) -> None:
        text = impl("Softmax", method("pack_args", body(VISITS[1:])))
        assert self.run(teeny, tmp_path, text, "--ignore", "argument-count").code == 0
        assert "Softmax: ok" in self.run(teeny, tmp_path, text, "--select", "argument-kind").out

    def test_no_impl_says_what_there_is(self, teeny: Teeny, tmp_path: Path) -> None:
        done = self.run(teeny, tmp_path, "impl Clone for Pad<u8> {}")
        assert done.code == 2
        assert "error[no-runtime-op]: there is no impl of RuntimeOp" in done.err
        assert "its impls are Clone for Pad" in done.err

    def test_broken_text(self, teeny: Teeny, tmp_path: Path) -> None:
        done = self.run(teeny, tmp_path, impl("Softmax", method("pack_args", "visitor.visit_ptr(output;")))
        assert done.code == 1
        assert "op.rs:3:25: error[rust-syntax]: pack_args cannot be parsed" in done.out
        done = self.run(teeny, tmp_path, impl("Softmax", method("pack_args", body(VISITS))) + "fn f( { }")
        assert done.code == 0
        assert "warning[rust-syntax]" in done.out
        done = self.run(teeny, tmp_path, "fn f( { }")
        assert (done.code, "error[rust-syntax]" in done.err) == (2, True)

    @pytest.mark.parametrize(
        "args",
        [["--ptx", "x.ptx"], ["--entry", "x"], ["--rust", "x.rs", "--dim", "N=1"], ["--rust", "x.rs", "--node", "a"],
         ["--rust", "x.rs", "--probe"],
         ["--rust", "x.rs", "--ptx", "x.ptx", "softmax"]],
    )  # fmt: skip
    def test_options_that_do_not_go_together(self, teeny: Teeny, args: list[str]) -> None:
        done = teeny("check", *args)
        assert done.code == 2
        assert "Usage" in done.err or "usage" in done.err

    def test_ptx_that_is_broken(self, teeny: Teeny, tmp_path: Path) -> None:
        text = SOFTMAX.read_text("utf-8").replace("ld.param.u64", "ld.parm.u64", 1)
        (tmp_path / "broken.ptx").write_text(text, "utf-8")
        (tmp_path / "op.rs").write_text(impl("Softmax", method("pack_args", body(VISITS))), "utf-8")
        done = teeny("check", "--json", "--rust", tmp_path / "op.rs", "--ptx", tmp_path / "broken.ptx")
        assert done.code == 2
        assert done.json["ops"][0]["error"]["where"].startswith(f"{tmp_path / 'broken.ptx'}:")
