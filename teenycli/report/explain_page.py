"""The pages of ``teeny explain``: one finding in full, or a line for each.

May import ``explain`` and, in this room, ``layout`` and ``text``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import asdict

from teenycli.explain import GROUPS, Page
from teenycli.report.layout import Fields, Item, Prose
from teenycli.report.text import Line, Span, line

_HEADINGS = ("why", "example", "cure")
_FENCED = re.compile(r"^```[a-z]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def explain_page(page: Page) -> Iterator[Item]:
    """A finding in full."""
    yield line(Span(page.id, "name"), ": ", Span(page.title, "title"))
    yield ""
    yield from _text(page.what)
    for heading in _HEADINGS:
        yield ""
        yield line(Span(heading.capitalize(), "label"))
        yield from _text(getattr(page, heading))


def explain_list(pages: Iterable[Page]) -> Iterator[Item]:
    """A line for each finding, group by group."""
    by_group: dict[str, list[Page]] = {group: [] for group in GROUPS}
    for page in pages:
        by_group[page.group].append(page)
    for group, members in by_group.items():
        if members:
            yield line(Span(GROUPS[group], "title"))
            yield Fields([(page.id, page.title) for page in members])
            yield ""
    yield line(Span("teeny explain ID says more of one", "dim"))


def explain_document(page: Page) -> dict[str, Any]:
    """A page for JSON: its parts; ``examples`` has the pieces of code of ``example``."""
    return {**asdict(page), "examples": [code.rstrip("\n") for code in _FENCED.findall(page.example)]}


def _text(markdown: str) -> Iterator[Item]:
    """Paragraphs folded to the width, code as it stands."""
    blocks = _FENCED.split(markdown)
    for place, block in enumerate(blocks):
        if place % 2:
            yield from (line("      ", row) for row in block.rstrip("\n").split("\n"))
            continue
        for paragraph in filter(None, (part.strip() for part in block.split("\n\n"))):
            yield Prose(_marked(" ".join(paragraph.split())))


def _marked(text: str) -> Line:
    """Text with what stands in backticks in the style of names."""
    return line(*(Span(part, "name" if part.startswith("`") else "") for part in re.split(r"(`[^`]+`)", text)))
