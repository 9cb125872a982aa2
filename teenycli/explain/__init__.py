"""What each finding means: a page for every id, as Markdown files in ``pages/GROUP/ID.md``.

A page is a title and what goes wrong, and under headings why (what a runtime, a driver or a kernel would do in
silence), an example that fails, and the cure.

Imports nothing of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

#: Groups in the order in which they are listed, with what their findings come from.
GROUPS = {
    "check": "What check finds in a launch",
    "read": "What reading PTX, manifests and expressions says",
    "run": "What stops a run, or comes of it",
    "fault": "Faults of a running kernel",
}

_SHAPE = re.compile(
    r"# (?P<title>[^\n]+)\n\n(?P<what>.+?)\n\n## Why\n\n(?P<why>.+?)\n\n## Example\n\n(?P<example>.+?)"
    r"\n\n## Cure\n\n(?P<cure>.+?)\n",
    re.DOTALL,
)


class Page(Struct, frozen=True):
    """What there is to say of a finding. All but ``id``, ``group`` and ``title`` is Markdown of paragraphs and fenced
    code."""

    id: str
    group: str
    title: str
    what: str
    why: str
    example: str
    cure: str


@cache
def _pages() -> Traversable:
    """The folder of pages. importlib.resources takes milliseconds that most commands need not spend."""
    from importlib.resources import files

    return files(__name__) / "pages"


@cache
def groups() -> dict[str, str]:
    """The group of every id: in the groups' order, then the alphabet's."""
    return {
        name.removesuffix(".md"): group
        for group in GROUPS
        for name in sorted(file.name for file in (_pages() / group).iterdir())
    }


def page(id: str) -> Page:
    """The page of a finding. Raises KeyError for an id that has none."""
    group = groups()[id]
    found = _SHAPE.fullmatch(_pages().joinpath(group, f"{id}.md").read_text("utf-8"))
    assert found is not None, f"the page of {id} has another shape"
    return Page(id, group, **found.groupdict())


def matching(name: str, ids: Iterable[str]) -> list[str]:
    """Those of ``ids`` that ``name`` stands for: itself, or all that begin with these words of it (``argument``)."""
    return [id for id in ids if id == name or id.startswith(f"{name}-")]


__all__ = ["GROUPS", "Page", "groups", "matching", "page"]
