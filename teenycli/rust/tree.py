"""Rust text to syntax trees, by tree-sitter (the extra ``rust``).

May import ``errors``, ``reading`` and, in this room, ``model``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from teenycli.errors import Place, TeenyError
from teenycli.reading import read_bytes
from teenycli.rust.model import Spot

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Range

#: The largest Rust text that is read, in bytes: a hundred times the largest seen.
LARGEST = 1 << 24
#: Seconds that parsing may take: text that is no Rust can make it slow.
PATIENCE = 20.0
_CHUNK = 1 << 12
#: Bytes from which a line is too long to count its characters again and again.
_LINE = 10_000


class Text(Struct):
    """A file's bytes, and what parses them."""

    name: str
    source: bytes
    parser: Parser
    ranges: type[Range]
    deadline: float = field(default_factory=lambda: time.monotonic() + PATIENCE)
    _dollarless: bytes = b""

    def tree(self) -> Node:
        """The root of the whole file. Raises TeenyError ``rust-syntax`` when that takes too long."""
        return self._parse(self.source)

    def within(self, node: Node) -> Node:
        """The root of what stands between the braces of ``node``, the right side of a macro's rule, with ``$x`` read
        as the name ``_x``. Places are those in the file."""
        self._dollarless = self._dollarless or self.source.replace(b"$", b"_")
        start, end = node.children[0], node.children[-1]
        self.parser.included_ranges = [
            self.ranges(start.end_point, end.start_point, start.end_byte, end.start_byte)
        ]  # fmt: skip
        try:
            return self._parse(self._dollarless)
        finally:
            self.parser.reset()
            self.parser.included_ranges = []

    def _parse(self, source: bytes) -> Node:
        late = False

        def read(offset: int, _point: Any) -> bytes:
            # An end of the text is the one thing that stops every release of tree-sitter; its progress callback
            # crashes those before 0.26.1.
            nonlocal late
            late = late or time.monotonic() > self.deadline
            return b"" if late else source[offset : offset + _CHUNK]

        tree = self.parser.parse(read)
        if late:
            where = Place(self.name)
            raise TeenyError("rust-syntax", f"parsing takes longer than {PATIENCE:g} seconds", where=where)
        return tree.root_node

    def text(self, node: Node) -> str:
        """What ``node`` spans, on one line."""
        return " ".join(self.bytes(node).decode("utf-8", "replace").split())

    def bytes(self, node: Node) -> bytes:
        return self.source[node.start_byte : node.end_byte]

    def spot(self, node: Node) -> Spot:
        """Where ``node`` begins; columns count characters, on lines that people read."""
        row, column = node.start_point
        if column < _LINE:
            column = len(self.source[node.start_byte - column : node.start_byte].decode("utf-8", "replace"))
        return Spot(row + 1, column + 1)


def open_text(path: str) -> Text:
    """The Rust file ``path``, which must be UTF-8.

    Raises TeenyError: what ``read_bytes`` raises, ``missing-extra``, ``rust-syntax``.
    """
    source = read_bytes(path, LARGEST, ".rs")
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as error:
        where = Place(path, source.count(b"\n", 0, error.start) + 1)
        raise TeenyError("rust-syntax", "this is not UTF-8 text, as Rust must be", where=where) from None
    try:
        import tree_sitter_rust
        from tree_sitter import Language, Parser, Range
    except ImportError:
        raise TeenyError(
            "missing-extra",
            f"{path}: reading Rust needs the packages 'tree-sitter' and 'tree-sitter-rust', which are not installed",
            hint="pip install 'teenycli[rust]'",
        ) from None
    return Text(path, source, Parser(Language(tree_sitter_rust.language())), Range)


def first_error(node: Node) -> Node | None:
    """The first place below ``node`` that is no Rust, or where something is missing."""
    while node.has_error and not (node.is_error or node.is_missing):
        node = next(child for child in node.children if child.has_error or child.is_missing)
    return node if node.is_error or node.is_missing else None


def field_of(node: Node, name: str) -> Node | None:
    return node.child_by_field_name(name)


def named(node: Node) -> Iterator[Node]:
    """The children of ``node`` that are no punctuation and no comments."""
    return (child for child in node.named_children if child.type not in ("line_comment", "block_comment"))
