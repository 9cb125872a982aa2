"""The error for what this device cannot run. May import ``errors``, ``exits``, ``ptx.model``."""

from __future__ import annotations

from teenycli.errors import Place, TeenyError
from teenycli.exits import Exit
from teenycli.ptx.code import Op
from teenycli.ptx.model import Module


def place_of(module: Module, op: Op | None) -> Place:
    """Where an instruction stands, with its line of text."""
    if op is None or not op.at.line:
        return Place(module.source.name)
    lines = module.source.text.splitlines()
    text = lines[op.at.line - 1] if op.at.line <= len(lines) else None
    return Place(module.source.name, op.at.line, op.at.column, text=text)


def unsupported(module: Module, what: str, op: Op | None, hint: str | None = None) -> TeenyError:
    """TeenyError ``unsupported-instruction``, placed at ``op`` when there is one."""
    return TeenyError(
        "unsupported-instruction",
        f"the CPU device cannot run {what}",
        where=place_of(module, op),
        hint=hint or "an NVIDIA GPU can: --device cuda",
        exit=Exit.UNSUPPORTED,
    )
