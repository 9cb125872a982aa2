"""The command run in process, and manifests made for it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from teenycli.cli import run

ROOT = Path(__file__).parent.parent.parent
#: What check finds of memory, ids for --ignore: where sizes, strides and grids are made up, no kernel stays in its
#: buffers.
MADE_UP = (
    "access,shared-outside,output-overlap,output-not-covered,input-hardly-read,idle-blocks,axis-unread,"
    "bound-not-reached"
)
#: The device that the test is run on, one after the other of those that its mark ``devices`` names.
DEVICE = ("--device", "@device")


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Teeny:
    """``teeny(*args)`` runs a command in the test's folder and gives what it did; ``@device`` in it is ``device``."""

    def __init__(self, capfd: pytest.CaptureFixture[str], device: str = "cpu") -> None:
        self.capfd = capfd
        self.device = device

    def __call__(self, *args: str | Path) -> Done:
        self.capfd.readouterr()
        code = run([self.device if arg == DEVICE[1] else str(arg) for arg in args])
        out, err = self.capfd.readouterr()
        assert "Traceback" not in err
        return Done(int(code), out, err)


def samples(*, backward: bool = False) -> dict[str, dict[str, Any]]:
    """The ops of the repository's manifest as plain data, without backwards if not asked for; PTX as absolute paths."""
    ops: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "ops.toml").read_text("utf-8"))["op"]
    for op in ops.values():
        if not backward:
            op.pop("backward", None)
            op.pop("gradcheck", None)
        for table in (op, op.get("backward", {})):
            if "ptx" in table:
                table["ptx"] = str(ROOT / table["ptx"])
    return ops


def manifest(folder: Path, **ops: dict[str, Any]) -> Path:
    """A manifest of ``ops`` in ``folder``."""
    path = folder / "ops.toml"
    path.write_text("".join(f"[op.{name}]\n{_keys(op)}\n" for name, op in ops.items()), "utf-8")
    return path


def _keys(table: dict[str, Any]) -> str:
    return "".join(f"{key} = {_value(value)}\n" for key, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)
