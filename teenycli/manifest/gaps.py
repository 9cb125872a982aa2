"""What an op leaves open: values that are ``"TODO"``, as ``teeny init`` writes them, and arguments ``KIND TODO``.

An op with gaps is not decoded, so the marker may stand where another type belongs. May import ``errors`` and, in this
room, ``spec``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from teenycli.errors import Finding
from teenycli.manifest.spec import Origin, join, quote

#: The marker.
OPEN = "TODO"

_WORD = re.compile(rf"\b{OPEN}\b")
_STRING_OR_COMMENT = re.compile(r"""("(?:\\.|[^"\\])*"|'[^']*')|#.*""")
_ARGUMENT = re.compile(rf"(?:\w+\s+|\{{.*\b){OPEN}\b.*", re.DOTALL)
#: What to write, by the key without its indices; the first that fits.
_WANTED: tuple[tuple[str, str, str], ...] = (
    (r"ptx", "the PTX file", "a path from the manifest's folder"),
    (r"consts(\..*)?", "what is compiled into the PTX and shapes or grid need",
     "a table such as { BLOCK = 256 }; take the line out when they need none"),
    (r"(.*\.)?shape", "an extent", 'a number or an expression over dims, such as "N": one for each dimension'),
    (r"(.*\.)?dtype", "the element type", "bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, e4m3, e5m2 or ptr"),
    (r"grid", "how many CTAs", 'a number or an expression, such as "cdiv(N, BLOCK)"'),
    (r"block", "how many threads a CTA has", "a number or an expression; what the kernel was written for"),
    (r"shared", "bytes of dynamic shared memory", "a number or an expression"),
    (r"reference", "what the outputs should be",
     'an expression over numpy such as "x + y", or "module:function"; take the line out to compare with nothing'),
    (r"dims\..*", "the dim's value", "a positive integer; --dim and cases lay others over it"),
    (r"scalars\..*", "the value", "a number; --set lays another over it"),
    (r"tensormaps\..*\.of", "the buffer that the tensor map describes", "a buffer's name"),
    (r"tensormaps\..*", "the box that one copy moves", "its extents in elements, outermost first"),
    (r"args", "the argument's value", "an expression; after bytes two hexadecimal digits a byte, or @FILE"),
)  # fmt: skip


def gaps_of(table: object, origin: Origin, text: str) -> tuple[Finding, ...]:
    """A finding ``gap`` for each value of the op ``table`` that is left open, in the order of the text."""
    found: list[Finding] = []
    marked = _marked_lines(text)
    used: dict[int, int] = {}
    for path, owner, count in _open_paths(table, "", ""):
        place = origin.place(path)
        if place.line:
            # A value may run over lines: its markers come in the order of the text.
            lines = [line for line in marked if line >= place.line]
            nth = used.get(place.line, 0)
            used[place.line] = nth + count
            if nth < len(lines):
                place = replace(place, line=lines[nth])
        bare = re.sub(r"\[\d+\]", "", path.removeprefix("backward."))
        what, how = next((w, h) for pattern, w, h in _WANTED_OR_ANY if re.fullmatch(pattern, bare))
        subject = f"{bare.rpartition('.')[2]} of '{owner}'" if owner else bare
        found.append(Finding("gap", f"{subject} is left open: {what}", where=place, hint=f"write {how}"))
    return tuple(sorted(found, key=lambda finding: finding.where.line if finding.where else 0))


_WANTED_OR_ANY = (*_WANTED, (r".*", "a value", "what the key takes; teeny's manifest page lists them"))


def _open_paths(value: object, path: str, owner: str) -> Iterator[tuple[str, str, int]]:
    """The keys that are left open, the name of the buffer that each is of, and how many markers it holds (a struct may
    hold several)."""
    if isinstance(value, dict):
        name = value.get("name") if path else None
        owner = name if isinstance(name, str) else owner
        for key, each in value.items():
            if path or key != "ignore":
                yield from _open_paths(each, join(path, quote(key)), owner)
    elif isinstance(value, list):
        for k, each in enumerate(value):
            yield from _open_paths(each, f"{path}[{k}]", owner)
    elif isinstance(value, str) and (
        value == OPEN or (re.match(r"(backward\.)?args\[", path) and _ARGUMENT.fullmatch(value))
    ):
        yield path, owner, len(_WORD.findall(value))


def _marked_lines(text: str) -> list[int]:
    """The lines that hold the marker outside comments, each as often as it does."""
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if OPEN in line:
            code = _STRING_OR_COMMENT.sub(lambda found: found[1] or "", line)
            lines += [number] * len(_WORD.findall(code))
    return lines
