"""Where output goes: two streams, what each can show, and how wide it is. One object that tests replace.

Data goes to ``out``, all else to ``err``. A pipe gets plain text, uncoloured and unfolded. A reader that goes away
ends the output, not the work.

May import ``errors`` and, in this room, ``layout`` and ``text``. rich puts the colours on, and is imported when
there are any.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from teenycli.errors import TeenyError

if TYPE_CHECKING:  # a JSON document needs neither
    from teenycli.report.layout import Item, Page
    from teenycli.report.text import Line

#: What a style looks like, in rich's words: sixteen colours, so that a terminal's own theme decides.
STYLES: Mapping[str, str] = {
    "title": "bold",
    "name": "cyan",
    "label": "dim",
    "dim": "dim",
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "note": "blue",
}

#: What ``--color`` takes.
COLOUR_CHOICES = ("auto", "always", "never")


def wants_colour(choice: str, tty: bool, environ: Mapping[str, str]) -> bool:
    """Whether to colour: as ``--color`` says; with "auto", as NO_COLOR and FORCE_COLOR say, or on a terminal."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return tty and environ.get("TERM") != "dumb"


def silence(stream: TextIO) -> None:
    """Let what is still to come go nowhere: the interpreter flushes once more when it ends, and would complain."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


class Surface:
    """One stream. ``width`` is None where lines may be of any length, as in a pipe."""

    def __init__(self, stream: TextIO, *, tty: bool, colour: bool, width: int | None) -> None:
        self.stream = stream
        self.tty = tty
        self.colour = colour
        self.width = width
        #: Set when the reader has gone.
        self.gone = False

    def show(self, page: Page) -> None:
        """Lay ``page`` out for this stream, and write it."""
        from teenycli.report.layout import lay_out
        from teenycli.report.text import plain

        lines = list(lay_out(page, self.width))
        if lines:
            self.write(self._coloured(lines) if self.colour else "\n".join(map(plain, lines)) + "\n")

    def write(self, text: str) -> None:
        """Write ``text`` as it is, newline included.

        Raises TeenyError ``unwritable-path`` when the stream takes no more for any reason but a reader that has gone.
        """
        if self.gone:
            return
        try:
            self.stream.write(_encodable(text, getattr(self.stream, "encoding", None) or "utf-8"))
            self.stream.flush()
        except OSError as error:
            self._lose(error)

    def _coloured(self, lines: list[Line]) -> str:
        from rich.console import Console as RichConsole
        from rich.text import Text

        text = Text("\n", end="").join(
            Text.assemble(*((s.text, STYLES.get(s.style, "")) for s in row)) for row in lines
        )
        buffer = io.StringIO()
        painter = RichConsole(file=buffer, force_terminal=True, color_system="standard", no_color=False,
                              legacy_windows=False, highlight=False, markup=False, emoji=False,
                              width=10**6, _environ={})  # fmt: skip
        painter.print(text, soft_wrap=True)
        return buffer.getvalue()

    def _lose(self, error: OSError) -> None:
        """Stop writing: in silence when the reader has gone, else with an error (a full disk)."""
        self.gone = True
        silence(self.stream)
        # Windows says EINVAL for a pipe without a reader.
        if error.errno not in (errno.EPIPE, errno.EINVAL):
            raise TeenyError("unwritable-path", f"cannot write the output: {error.strerror or error}") from None


#: Signs that messages use, for encodings without them.
_SIGNS = str.maketrans({"…": "...", "×": "x", "→": "->", "–": "-", "—": "-", "’": "'", "µ": "u", "≤": "<=", "≥": ">="})


def _encodable(text: str, encoding: str) -> str:
    """``text``, with an escape for each character that the encoding lacks (a lone surrogate, or most in cp1252)."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_SIGNS).encode(encoding, "backslashreplace").decode(encoding)
    return text


class Console:
    """Both streams of a command."""

    def __init__(self, out: Surface, err: Surface) -> None:
        self.out = out
        self.err = err

    @classmethod
    def of_process(cls, colour: str = "auto", environ: Mapping[str, str] | None = None) -> Console:
        """The process's own streams; ``colour`` is what ``--color`` says."""
        environ = os.environ if environ is None else environ
        out, err = (_surface(stream, colour, environ) for stream in (sys.stdout, sys.stderr))
        return cls(out, err)

    @classmethod
    def of_buffers(cls, *, tty: bool = False, colour: bool = False, width: int | None = None) -> Console:
        """Two StringIO streams with the properties given, for tests; read them by ``console.out.stream``."""
        out, err = (Surface(io.StringIO(), tty=tty, colour=colour, width=width) for _ in range(2))
        return cls(out, err)

    def show(self, *items: Item) -> None:
        """Data, to standard output."""
        self.out.show(items)

    def tell(self, *items: Item) -> None:
        """All else, to standard error."""
        self.err.show(items)

    def document(self, document: Any) -> None:
        """A JSON document, to standard output: indented in a terminal, else on one line (in a tenth of the time).

        Numbers in it are finite (``jsonout`` sees to that).
        """
        import json

        indent = 2 if self.out.tty else None
        self.out.write(json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False) + "\n")


def _surface(stream: TextIO | None, colour: str, environ: Mapping[str, str]) -> Surface:
    if stream is None:  # closed by whoever started the process
        return Surface(io.StringIO(), tty=False, colour=False, width=None)
    tty = stream.isatty()
    coloured = wants_colour(colour, tty, environ) and not (tty and _is_legacy_windows())
    return Surface(stream, tty=tty, colour=coloured, width=_width(stream, environ) if tty else None)


def _is_legacy_windows() -> bool:
    """Whether the terminal is a Windows console that would show escape sequences as they are."""
    if os.name != "nt":
        return False
    from rich.console import detect_legacy_windows

    return detect_legacy_windows()


def _width(stream: TextIO, environ: Mapping[str, str]) -> int:
    """The terminal's width in columns, or what COLUMNS says."""
    given = environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and len(given) < 7 and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
