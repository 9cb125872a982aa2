from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from typing import TextIO

import pytest

from teenycli.errors import TeenyError
from teenycli.report.console import Console, Surface, wants_colour
from teenycli.report.layout import Fields
from teenycli.report.text import Span, line

pytestmark = pytest.mark.unit


def text_of(surface: Surface) -> str:
    assert isinstance(surface.stream, io.StringIO)
    return surface.stream.getvalue()


@pytest.mark.parametrize(
    ("choice", "tty", "environ", "wanted"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("always", False, {"NO_COLOR": "1", "TERM": "dumb"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_when_to_colour(choice: str, tty: bool, environ: dict[str, str], wanted: bool) -> None:
    assert wants_colour(choice, tty, environ) is wanted


def test_data_and_all_else_go_to_their_streams() -> None:
    console = Console.of_buffers()
    console.show("data")
    console.tell("telling")
    assert text_of(console.out) == "data\n"
    assert text_of(console.err) == "telling\n"


def test_a_pipe_gets_plain_text_uncut() -> None:
    console = Console.of_buffers()
    long = "word " * 100
    console.show(line(Span("red", "bad"), " [bold]no markup[/bold] :smile: "), Fields([("a", Span(long, "dim"))]))
    assert text_of(console.out) == f"red [bold]no markup[/bold] :smile: \n  a  {long}\n"


@pytest.mark.parametrize("environ", [{}, {"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_a_terminal_gets_colours_and_the_same_text(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
    # What the environment says was weighed when the surface was made.
    monkeypatch.delenv("TERM", raising=False)
    for key, value in environ.items():
        monkeypatch.setenv(key, value)
    console = Console.of_buffers(tty=True, colour=True, width=20)
    console.show(line(Span("bad", "bad"), " [bold]markup[/bold]"), "a long line that has to be folded")
    assert text_of(console.out) == (
        "\x1b[1;31mbad\x1b[0m\n  [bold]markup[/bold\n  ]\na long line that has\n  to be folded\n"
    )


@pytest.mark.parametrize("colour", [True, False])
def test_nothing_to_show_is_no_line(colour: bool) -> None:
    console = Console.of_buffers(tty=True, colour=colour, width=20)
    console.show()
    assert text_of(console.out) == ""


def test_json_is_one_document_without_ascii_escapes() -> None:
    console = Console.of_buffers(tty=True, colour=True, width=10)
    console.document({"name": "größe", "list": [1, "nan"]})
    assert json.loads(text_of(console.out)) == {"name": "größe", "list": [1, "nan"]}
    assert "größe" in text_of(console.out)
    with pytest.raises(ValueError, match="not JSON compliant"):
        console.document(float("nan"))


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", r"f(\u4e2d) ... \udc80"), ("cp1252", r"f(\u4e2d) … \udc80")])
def test_an_encoding_without_a_character_gets_an_escape(encoding: str, shown: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    surface = Surface(stream, tty=True, colour=False, width=80)
    surface.show(["f(中) … \udc80"])
    # cp1252 has the dots; but once one character is missing, all signs are spelt in ASCII.
    expected = shown.replace("…", "...")
    assert raw.getvalue().decode(encoding) == expected + "\n"


def test_a_lone_surrogate_in_json_stays_json() -> None:
    raw = io.BytesIO()
    surface = Surface(io.TextIOWrapper(raw, encoding="utf-8"), tty=False, colour=False, width=None)
    Console(surface, surface).document({"file": "a\udc80.ptx"})
    assert json.loads(raw.getvalue()) == {"file": "a\udc80.ptx"}


class Broken(io.StringIO):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def flush(self) -> None:
        raise OSError(self.number, os.strerror(self.number))


def test_a_reader_that_went_away_ends_the_output_in_silence() -> None:
    surface = Surface(Broken(errno.EPIPE), tty=False, colour=False, width=None)
    surface.show(["one"])
    surface.show(["two"])
    assert surface.gone
    assert text_of(surface) == "one\n"


def test_a_full_disk_is_an_error() -> None:
    surface = Surface(Broken(errno.ENOSPC), tty=False, colour=False, width=None)
    with pytest.raises(TeenyError, match="cannot write the output: No space left") as caught:
        surface.show(["one"])
    assert caught.value.finding.id == "unwritable-path"


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_a_closed_pipe_leaves_no_noise() -> None:
    code = (
        "from teenycli.report.console import Console\n"
        "c = Console.of_process()\n"
        "for i in range(100_000): c.show(str(i))\n"
        "c.tell('done')\n"
    )
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -c "$CODE" | head -n 1'],
        env={**os.environ, "CODE": code},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "0\n"
    assert done.stderr == "done\n"


class TestProcess:
    def test_width_is_unlimited_in_a_pipe(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        assert Console.of_process(environ={"COLUMNS": "40"}).out.width is None

    @pytest.mark.parametrize(("columns", "width"), [("40", 40), ("", 80), ("0", 80), ("-5", 80), ("x", 80)])
    def test_width_of_a_terminal(self, monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        monkeypatch.setattr(sys, "stdout", Terminal())
        console = Console.of_process(environ={"COLUMNS": columns})
        assert console.out.width == width
        assert console.out.colour

    def test_a_stream_that_was_closed_swallows_everything(self, monkeypatch: pytest.MonkeyPatch) -> None:
        nothing: TextIO | None = None
        monkeypatch.setattr(sys, "stdout", nothing)
        Console.of_process(environ={}).show("into the void")


def test_plain_output_loads_neither_rich_nor_numpy() -> None:
    code = (
        "import sys\n"
        "from teenycli.report import console, problems, jsonout, rows, entries_table, check_table, launch_table\n"
        "console.Console.of_process().show('text')\n"
        "print(sorted({'rich', 'numpy', 'click'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "text\n[]\n"
