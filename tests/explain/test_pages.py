from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import teenycli
from teenycli.explain import GROUPS, groups, matching, page
from tests.commands.teeny import ROOT, Teeny
from tests.explain.emitted import emitted
from tests.explain.examples import is_run, prepare

#: Ids whose example is a sketch: it takes a GPU (and what may happen on one), another machine, or a program of its own.
SKETCHES = {
    "address-space", "hardware", "hardware-stack", "illegal-instruction", "invalid-pc", "launch-failed",
    "launch-timeout", "tensor-memory-leak", "context-lost", "cuda-driver", "invalid-ptx", "launch-refused",
    "no-cuda-package", "no-jit", "parameter-base", "parameter-layout",
    "out-of-memory", "processor-too-old", "missing-extra", "file-too-large", "unreadable",
    "argument-size", "buffer-size", "negative-seed", "assertion", "checkpoint-key", "gradcheck-dtype", "gradcheck-step",
    "gradcheck-too-large", "gradient-mismatch", "tensormap-architecture", "variable-size", "machine-code",
}  # fmt: skip


@pytest.mark.unit
class TestPages:
    def test_every_finding_has_a_page_and_every_page_a_finding(self) -> None:
        assert set(groups()) == emitted(Path(teenycli.__file__).parent)

    def test_an_id_is_in_one_group(self) -> None:
        folder = Path(teenycli.__file__).parent / "explain" / "pages"
        assert sorted(path.stem for path in folder.rglob("*.md")) == sorted(groups())
        assert {path.name for path in folder.iterdir()} == set(GROUPS)

    @pytest.mark.parametrize("id", groups())
    def test_a_page_is_short_and_has_its_parts(self, id: str) -> None:
        one = page(id)
        assert all((one.what, one.why, one.example, one.cure))
        assert len(one.title) <= 80
        assert not one.title.endswith(".")
        assert all(text.endswith((".", "`", ")")) for text in (one.what, one.why, one.cure)), id
        prose = f"{one.what}\n{one.why}\n{one.cure}"
        assert 3 <= len(prose.splitlines()) <= 20

    def test_a_name_stands_for_whole_words(self) -> None:
        ids = ["block-limit", "block-zero", "blocked", "timeout"]
        assert matching("block", ids) == ["block-limit", "block-zero"]
        assert matching("timeout", ids) == ["timeout"]
        assert matching("block-", ids) == matching("bl", ids) == []


def ids_in(document: Any) -> set[str]:
    """Every id of a finding in a JSON document."""
    if isinstance(document, list):
        return set().union(*map(ids_in, document))
    if not isinstance(document, dict):
        return set()
    own = {document["id"]} if "severity" in document else set()
    return own.union(*map(ids_in, document.values()))


@pytest.mark.device
@pytest.mark.parametrize("id", [id for id in groups() if id not in SKETCHES])
def test_the_example_has_the_finding(teeny: Teeny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, id: str) -> None:
    monkeypatch.chdir(tmp_path)
    *before, last = prepare(page(id), tmp_path)
    for command in before:
        if command.startswith("python "):
            subprocess.run([sys.executable, *shlex.split(command)[1:]], check=True)
        else:
            subprocess.run(command, shell=True, check=True)
    program, *args = shlex.split(last)
    assert program == "teeny"
    done = teeny(*args)
    assert f"[{id}]" in done.out + done.err, done.out + done.err


@pytest.mark.unit
def test_only_sketches_are_not_run() -> None:
    assert {id for id in groups() if not is_run(page(id))} == SKETCHES


@pytest.mark.unit
class TestCommand:
    def test_without_an_id_all_are_listed_by_group(self, teeny: Teeny) -> None:
        done = teeny("explain")
        assert done.code == 0
        for id in groups():
            assert f"  {id} " in done.out
            assert page(id).title in done.out
        places = [done.out.index(title) for title in GROUPS.values()]
        assert places == sorted(places)

    def test_a_page_in_full(self, teeny: Teeny) -> None:
        done = teeny("explain", "block-mismatch")
        assert done.code == 0
        assert done.out.startswith("block-mismatch: another block than the kernel was compiled for\n")
        assert "\nExample\n      [op.softmax_triton]" in done.out
        assert "```" not in done.out
        assert "block-limit" not in done.out

    def test_first_words_stand_for_several(self, teeny: Teeny) -> None:
        assert teeny("explain", "argument").out.count("\nCure\n") == len(matching("argument", groups()))

    def test_json_has_the_parts(self, teeny: Teeny) -> None:
        (one,) = teeny("explain", "--json", "block-mismatch").json
        assert set(one) == {"id", "group", "title", "what", "why", "example", "examples", "cure"}
        assert one["examples"] == [
            "[op.softmax_triton]                         # compiled with 4 warps: .reqntid 128\nblock = [1024]"
        ]
        assert [row["id"] for row in teeny("explain", "--json").json] == list(groups())

    def test_an_unknown_id_names_what_is_near(self, teeny: Teeny) -> None:
        done = teeny("explain", "block-mismach")
        assert done.code == 2
        assert "did you mean 'block-mismatch'?" in done.err

    def test_it_folds_to_the_terminal(self) -> None:
        from teenycli.report.console import Console
        from teenycli.report.explain_page import explain_page

        console = Console.of_buffers(tty=True, width=60)
        console.show(*explain_page(page("block-mismatch")))
        prose = [row for row in console.out.stream.getvalue().splitlines() if not row.startswith("      ")]  # type: ignore[attr-defined]
        assert max(map(len, prose)) <= 60
        assert len(prose) > 12


@pytest.mark.docs
def test_the_documentation_has_the_titles() -> None:
    text = (ROOT / "docs" / "checks.md").read_text("utf-8")
    for id, group in groups().items():
        if group == "check":
            assert f"| `{id}` | {page(id).title}" in text, json.dumps(page(id).title)
