"""The documentation says what the tool does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import click
import pytest

from teenycli.cli import COMMANDS, Commands, cli
from tests.commands.teeny import ROOT, Teeny

pytestmark = pytest.mark.docs

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text("utf-8")


def command(name: str) -> click.Command:
    assert isinstance(cli, Commands)
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme_and_explains_itself(name: str) -> None:
    assert f"teeny {name}" in README
    assert command(name).help
    for param in command(name).params:
        if isinstance(param, click.Option):
            assert param.help, param.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_exist(page: Path) -> None:
    known = {opt for name in COMMANDS for param in command(name).params for opt in param.opts}
    for line in page.read_text("utf-8").splitlines():
        if "teeny " in line:
            for option in re.findall(r"(?<![\w-])(--[a-z-]+|-[a-z])\b", line.split("teeny ", 1)[1]):
                assert option in known | {"--help", "--version", "-h"}, f"{page.name}: {option}"


def test_the_page_of_instructions_is_what_the_tool_writes(teeny: Teeny) -> None:
    assert (ROOT / "docs" / "isa.md").read_text("utf-8") == teeny("isa", "--markdown").out, "make docs"


def test_the_readme_names_both_commands_on_its_first_screen() -> None:
    first = "\n".join(README.splitlines()[:20])
    assert "make demo" in first
    assert "make test" in first


@pytest.mark.parametrize("page", ["README.md", "docs/manifest.md"])
def test_manifests_in_the_documentation_check(page: str, teeny: Teeny, tmp_path: Path) -> None:
    for number, text in enumerate(re.findall(r"```toml\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)):
        assert tomllib.loads(text)
        path = tmp_path / f"{number}.toml"
        path.write_text(text.replace('ptx = "ptx/', f'ptx = "{ROOT}/ptx/'))
        done = teeny("check", "-m", path)
        assert done.code == 0, done.out + done.err


def shown_after(sentence: str) -> list[str]:
    """The indented block of the README that follows a sentence, without blank lines."""
    found = re.search(re.escape(sentence) + r"\n\n((?:    .*\n|\n)+)", README)
    assert found is not None
    return [line[4:] for line in found[1].splitlines() if line.strip()]


def test_the_table_in_the_readme_is_what_run_prints(teeny: Teeny) -> None:
    shown = shown_after("`make demo` prints:")
    out = teeny("run", "softmax_triton", "-m", ROOT / "ops.toml", "--device", "cpu").out
    printed = [line.replace(f"{ROOT}/", "") for line in out.splitlines() if line.strip()]
    changes = ("  device", "  time", "  bandwidth")  # from machine to machine, and from run to run
    kept = [[line for line in lines if not line.startswith(changes)] for lines in (shown, printed)]
    digits = re.compile(r"\d[\d.e-]*|[0-9a-f]{64}")  # the last bits are a matter of the machine's vector width
    assert [digits.sub("#", line) for line in kept[0]] == [digits.sub("#", line) for line in kept[1]]
    assert any("compare  ok" in line for line in shown)


def test_the_findings_in_the_readme_are_what_check_prints(teeny: Teeny, tmp_path: Path) -> None:
    text = (ROOT / "ops.toml").read_text("utf-8").replace('ptx = "ptx/', f'ptx = "{ROOT}/ptx/')
    before, op = text.split("[op.softmax_triton]")
    op = op.replace('"ptr x", "ptr out"', '"ptr out", "ptr x"', 1).replace('block = "ptx"', "block = [256]", 1)
    (tmp_path / "ops.toml").write_text(f"{before}[op.softmax_triton]{op}")
    command, *lines = shown_after("With `out` and `x` swapped in the op above, and a `block`\nof 256:")
    assert command == "$ teeny check softmax_triton"
    assert teeny("check", "softmax_triton").out.splitlines() == lines


def test_every_method_of_the_trait_has_a_key_a_sample_and_a_test() -> None:
    ops = tomllib.loads((ROOT / "ops.toml").read_text("utf-8"))["op"]
    page = (ROOT / "docs" / "runtime-op.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) \| `(\w+)` \| `(\w+)` \| `(\S+)::(\w+)` \|$", page, re.MULTILINE)
    assert len(rows) == page.count("\n| ") - 2
    for method, key, sample, file, test in rows:
        op = ops[sample]
        within = op["backward"] if "backward" in method and key != "backward" else op
        assert key in within or f"'{key}'" in repr(within), (method, sample)
        assert f"def {test}(" in (text := (ROOT / file).read_text("utf-8")) or f"class {test}" in text, test
    assert len(rows) == 23
