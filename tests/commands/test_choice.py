"""Which findings check shows and fails on, and the forms it shows them in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands.ops import square
from tests.commands.teeny import Done, Teeny, manifest, samples

pytestmark = pytest.mark.unit

ADD = samples()["vector_add_cuda"]
#: Two errors, of a count and of a grid.
WRONG = {**ADD, "args": ["ptr x", "ptr y", "ptr out", "f32 N"], "grid": [1, 70000]}
#: A warning and no error: nothing is there to be ignored.
RISKY = {**samples()["vector_add_triton"], "ignore": {"block-mismatch": "not any more"}}


def _half_differentiated() -> dict[str, Any]:
    """An op whose backward leaves a gradient out, of which a note is made."""
    op = square()
    args = ["ptr null" if arg == "ptr grad_params[1]" else arg for arg in op["backward"]["args"]]
    ignore = {"access-null": "the kernel does not test for null"}
    return {**op, "backward": {**op["backward"], "args": args}, "ignore": ignore}


def ids(done: Done) -> list[str]:
    """The ids of the findings, those of cases that share them once."""
    return list(dict.fromkeys(finding["id"] for row in done.json["ops"] for finding in row["findings"]))


class TestSelection:
    @pytest.mark.parametrize(
        ("options", "shown", "code"),
        [
            ([], ["argument-kind", "grid-limit"], 1),
            (["--select", "grid-limit"], ["grid-limit"], 1),
            (["--select", "grid"], ["grid-limit"], 1),
            (["--select", "grid,argument"], ["argument-kind", "grid-limit"], 1),
            (["--select", "grid", "--select", "argument-kind"], ["argument-kind", "grid-limit"], 1),
            (["--select", "cluster"], [], 0),
            (["--ignore", "argument"], ["grid-limit"], 1),
            (["--ignore", "argument-kind, grid-limit"], [], 0),
            (["--ignore", "argument-kind", "--ignore", "grid-limit"], [], 0),
            (["--select", "argument", "--ignore", "argument-kind"], [], 0),
        ],
    )
    def test_options(self, teeny: Teeny, tmp_path: Path, options: list[str], shown: list[str], code: int) -> None:
        done = teeny("check", "--json", "-m", manifest(tmp_path, it=WRONG), *options)
        assert (ids(done), done.code) == (shown, code)

    @pytest.mark.parametrize("option", ["--select", "--ignore"])
    @pytest.mark.parametrize("name", ["argument-knd", "argu", "argument-kind-of"])
    def test_what_stands_for_nothing_is_an_error(self, teeny: Teeny, tmp_path: Path, option: str, name: str) -> None:
        done = teeny("check", "-m", manifest(tmp_path, it=WRONG), option, name)
        assert done.code == 2
        assert f"[unknown-id]: no finding has the id '{name}'" in done.err

    def test_what_keeps_an_op_from_being_checked_is_shown_all_the_same(self, teeny: Teeny, tmp_path: Path) -> None:
        path = manifest(tmp_path, it={**ADD, "entry": "nobody"})
        done = teeny("check", "-m", path, "--select", "grid", "--ignore", "unknown-entry")
        assert done.code == 2
        assert "error[unknown-entry]" in done.out


class TestStrict:
    def test_warnings_fail(self, teeny: Teeny, tmp_path: Path) -> None:
        path = manifest(tmp_path, it=RISKY)
        assert teeny("check", "-m", path).code == 0
        assert teeny("check", "--strict", "-m", path).code == 1
        assert teeny("check", "--strict", "-m", path, "--ignore", "unused-ignore").code == 0

    def test_notes_do_not(self, teeny: Teeny, tmp_path: Path) -> None:
        done = teeny("check", "--strict", "-m", manifest(tmp_path, it=_half_differentiated()))
        assert done.code == 0
        assert "note[gradient-not-asked-for]" in done.out


class TestIgnoring:
    def test_the_reason_is_shown_when_more_is_asked_for(self, teeny: Teeny, tmp_path: Path) -> None:
        path = manifest(tmp_path, it={**ADD, "grid": [1, 70000], "ignore": {"grid-limit": "a GPU of our own"}})
        assert teeny("check", "--ignore", "output-overlap,axis-unread", "-m", path).out.endswith(": ok\n")
        done = teeny("check", "-v", "-m", path)
        assert done.code == 0
        assert "ignored grid-limit: grid.y is 70,000; sm_80 takes at most 65,535 because: a GPU of our own" in done.out

    def test_json_has_it_with_the_reason(self, teeny: Teeny, tmp_path: Path) -> None:
        path = manifest(tmp_path, it={**WRONG, "ignore": {"grid-limit": "a GPU of our own"}})
        done = teeny("check", "--json", "-m", path)
        assert ids(done) == ["argument-kind"]
        for row in done.json["ops"]:
            assert {(one["id"], one["reason"]) for one in row["ignored"]} == {("grid-limit", "a GPU of our own")}

    def test_what_matched_nothing_is_a_warning_at_its_key(self, teeny: Teeny, tmp_path: Path) -> None:
        done = teeny("check", "-m", manifest(tmp_path, it=RISKY))
        assert done.out.count("warning[unused-ignore]: 'block-mismatch' is ignored") == 1
        assert "op.it.ignore.block-mismatch" in done.out

    def test_an_unknown_id_is_a_warning_with_what_is_near(self, teeny: Teeny, tmp_path: Path) -> None:
        done = teeny("check", "-m", manifest(tmp_path, it={**ADD, "ignore": {"block-mismach": "?"}}))
        assert done.code == 0
        assert "warning[unknown-id]: 'block-mismach' is ignored" in done.out
        assert "did you mean 'block-mismatch'?" in done.out

    def test_one_case_that_has_it_is_enough(self, teeny: Teeny, tmp_path: Path) -> None:
        op = {**ADD, "grid": ["cdiv(N, BLOCK) if N > 1 else 0"], "ignore": {"grid-zero": "nothing to do then"}}
        done = teeny("check", "--json", "-m", manifest(tmp_path, it=op))
        assert ids(done) == []
        assert sum(bool(row["ignored"]) for row in done.json["ops"]) == 1

    @pytest.mark.parametrize("options", [["--dim", "N=5"], ["--dim", "N=0"]])
    def test_with_other_dims_nothing_counts_as_unused(self, teeny: Teeny, tmp_path: Path, options: list[str]) -> None:
        done = teeny("check", "--json", "-m", manifest(tmp_path, it={**ADD, "ignore": {"grid-zero": "?"}}), *options)
        assert "unused-ignore" not in ids(done)

    @pytest.mark.parametrize("wrong", [{"args": ["ptr x"]}, {"entry": "nobody"}])
    def test_what_was_not_looked_at_in_full_has_no_unused_entry(
        self, teeny: Teeny, tmp_path: Path, wrong: dict[str, Any]
    ) -> None:
        op = {**ADD, **wrong, "ignore": {"input-written": "by design"}}
        assert "unused-ignore" not in ids(teeny("check", "--json", "-m", manifest(tmp_path, it=op)))

    def test_what_only_a_run_can_find_is_not_unused(self, teeny: Teeny, tmp_path: Path) -> None:
        path = manifest(tmp_path, it={**ADD, "ignore": {"out-of-bounds": "reads past the end, by design"}})
        assert ids(teeny("check", "--json", "-m", path)) == []

    def test_the_warning_itself_can_be_ignored(self, teeny: Teeny, tmp_path: Path) -> None:
        op = {**ADD, "ignore": {"grid-zero": "to come", "unused-ignore": "for the next release"}}
        assert ids(teeny("check", "--json", "-m", manifest(tmp_path, it=op))) == []


class TestGithub:
    def commands(self, teeny: Teeny, *args: Any) -> tuple[int, list[str]]:
        done = teeny("check", "--format", "github", *args)
        return done.code, done.out.splitlines()

    def test_a_finding_is_a_command_on_one_line(
        self, teeny: Teeny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
        code, (kind, grid) = self.commands(teeny, "-m", manifest(tmp_path, it=WRONG))
        assert code == 1
        row = (tmp_path / "ops.toml").read_text("utf-8").splitlines().index("grid = [1, 70000]") + 1
        assert grid == (
            f"::error file=ops.toml,line={row},title=it%3A grid-limit::grid.y is 70,000; sm_80 takes at most 65,535"
            "%0Ahint: put the larger count in x"
        )
        assert kind.startswith("::error file=ops.toml,line=")
        assert "%0Ahint: " in kind

    def test_severities(self, teeny: Teeny, tmp_path: Path) -> None:
        path = manifest(tmp_path, it=RISKY, other=_half_differentiated())
        code, (warning, notice) = self.commands(teeny, "-m", path)
        assert code == 0
        assert warning.startswith("::warning file=")
        assert notice.startswith("::notice file=")

    def test_an_op_that_cannot_be_checked(self, teeny: Teeny, tmp_path: Path) -> None:
        code, (one,) = self.commands(teeny, "-m", manifest(tmp_path, it={**ADD, "entry": "nobody"}))
        assert code == 2
        assert one.startswith("::error ")
        assert "title=it%3A unknown-entry::" in one

    def test_a_manifest_that_cannot_be_read(self, teeny: Teeny, tmp_path: Path) -> None:
        code, (one,) = self.commands(teeny, "-m", tmp_path / "none.toml")
        assert code == 2
        assert one.startswith("::error ")
        assert "title=file-not-found::" in one

    def test_nothing_to_say(self, teeny: Teeny, tmp_path: Path) -> None:
        assert self.commands(teeny, "-m", manifest(tmp_path, it=ADD)) == (0, [])

    def test_it_excludes_json(self, teeny: Teeny, tmp_path: Path) -> None:
        done = teeny("check", "--json", "--format", "github", "-m", manifest(tmp_path, it=ADD))
        assert done.code == 2
        assert "exclude each other" in done.err
