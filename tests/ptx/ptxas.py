"""ptxas as the judge of single instructions."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.ptx.spelling import REGISTER_TYPES


@dataclass(frozen=True)
class Target:
    """What a file of instructions is assembled for; ``option`` is one of ``.target``, such as texmode_independent."""

    version: tuple[int, int]
    name: str
    option: str = ""

    @property
    def sm(self) -> int:
        return int(re.sub(r"\D", "", self.name))

    @property
    def arch(self) -> str:
        """The architecture ptxas makes code for: it knows none below sm_75."""
        return self.name if self.sm >= 75 else "sm_75"

    @property
    def missing(self) -> set[str]:
        """Types of registers that cannot be declared."""
        types = set()
        if self.sm < 53 or self.version < (4, 2):
            types |= {"f16", "f16x2"}
        if self.sm < 70 or self.version < (8, 3):
            types.add("b128")
        return types


def refused(lines: Sequence[str], target: Target, folder: Path) -> dict[int, str]:
    """What ptxas says against each line, by index; nothing for a legal one. A thousand lines take 50 ms."""
    out: dict[int, str] = {}
    todo = [list(range(start, min(start + 2000, len(lines)))) for start in range(0, len(lines), 2000)]
    while todo:
        todo += _ask(lines, todo.pop(), target, folder, out)
    return out


def _ask(lines: Sequence[str], chunk: list[int], target: Target, folder: Path, out: dict[int, str]) -> list[list[int]]:
    """Ask about ``chunk``; returns what has to be asked again, since ptxas stopped at a fatal error or crashed."""
    head = _head(target)
    path = folder / "forms.ptx"
    # The unknown instruction at the end keeps ptxas from going on to generate code.
    path.write_text("\n".join([head, *(lines[i] for i in chunk), "unknown_instruction;", "ret;", "}", ""]))
    run = subprocess.run(
        ["ptxas", f"-arch={target.arch}", str(path), "-o", "/dev/null"], capture_output=True, text=True, check=False
    )
    if run.returncode < 0:
        if len(chunk) == 1:
            out[chunk[0]] = "ptxas crashed"
            return []
        middle = len(chunk) // 2
        return [chunk[:middle], chunk[middle:]]
    first = head.count("\n") + 2
    seen_end = False
    for m in re.finditer(r"line (\d+); (error|fatal)\s*: (.*)", run.stderr):
        index = int(m[1]) - first
        if index < len(chunk):
            assert index >= 0, m[0]
            out.setdefault(chunk[index], m[3])
            if m[2] == "fatal":
                return [chunk[index + 1 :]]
        seen_end = seen_end or "unknown_instruction" in m[3]
    assert seen_end, run.stderr[:2000]
    return []


def _head(target: Target) -> str:
    lines = [f".version {target.version[0]}.{target.version[1]}", f".target {target.name}{target.option}"]
    if target.version >= (2, 3):
        lines.append(".address_size 64")
    lines.append(".entry k () {")
    lines += [f".reg .{type} %{type}_<300>;" for type in REGISTER_TYPES if type not in target.missing]
    if target.version >= (6, 0) and target.sm >= 30:
        lines.append("T0: .branchtargets L0;")
    return "\n".join([*lines, "L0:"])
