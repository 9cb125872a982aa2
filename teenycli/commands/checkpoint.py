"""Params out of a checkpoint: ``{node}.{name}`` of a .safetensors file.

May import click and the rooms below; numpy is here through ``tensors``, so commands import this module when they run.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from teenycli.errors import Place, TeenyError
from teenycli.launch.plan import Buffer, Plan
from teenycli.tensors.files import FileRef, keys

#: Most keys that a message lists.
_SHOWN = 8


class Checkpoint(Struct, frozen=True):
    """A .safetensors file and a node in it; ``known`` are all keys of the file."""

    path: Path
    node: str
    known: tuple[str, ...]

    def fill(self, plan: Plan) -> Plan:
        """The plan with each param's ``init`` the array ``{node}.{name}`` of the file.

        A param with an ``init`` of its own keeps it where the file has no such key: what a compiler or a model works
        out (anchors, tables) is in no checkpoint. Raises TeenyError ``checkpoint-key`` for any other.
        """
        return replace(plan, buffers=tuple(self._filled(buffer) for buffer in plan.buffers))

    def _filled(self, buffer: Buffer) -> Buffer:
        if buffer.role != "param":
            return buffer
        key = f"{self.node}.{buffer.name}"
        if key in self.known:
            return replace(buffer, init=f"@{self.path}:{key}")
        if buffer.init is not None:
            return buffer
        raise TeenyError(
            "checkpoint-key",
            f"{self.path} has no array '{key}' for the param '{buffer.name}'",
            where=Place(key=f"--node {self.node}"),
            hint=self._hint(key),
            note="a param with an init of its own would keep it",
        )

    def _hint(self, key: str) -> str:
        below = [known for known in self.known if known.startswith(f"{self.node}.")]
        near = difflib.get_close_matches(key, self.known, n=_SHOWN) if len(self.known) < 10_000 else []
        shown = list(dict.fromkeys([*near, *below]))[:_SHOWN]
        if shown:
            return f"near it are {', '.join(shown)}"
        if not self.known:
            return "the file holds no arrays"
        more = f" and {len(self.known) - _SHOWN:,} more" if len(self.known) > _SHOWN else ""
        return f"it holds {', '.join(self.known[:_SHOWN])}{more}"


def open_checkpoint(file: str | None, node: str | None, ops: Sequence[str | None]) -> Checkpoint | None:
    """The checkpoint that ``--checkpoint`` and ``--node`` name for the one op of ``ops``; None without them.

    Raises click.UsageError for one of the two without the other, or for several ops; TeenyError ``bad-option`` for
    another type of file, and what reading it raises.
    """
    if file is None and node is None:
        return None
    if file is None or node is None:
        raise click.UsageError("--checkpoint FILE and --node NAME go together: a param's key is {node}.{name}")
    if len(ops) != 1:
        raise click.UsageError("--checkpoint is about one node, so name one op")
    # What fills buffers takes paths from the manifest's folder; the user's is from the working folder.
    path = Path(file).absolute()
    if path.suffix.lower() != ".safetensors":
        raise TeenyError("bad-option", f"'{file}' is no .safetensors file", where=Place(key="--checkpoint"))
    return Checkpoint(path, node, tuple(keys(FileRef(str(path)), Path())))
