"""Variables of a module that a user may set before a launch.

May import ``errors`` and ``ptx.model``.
"""

from __future__ import annotations

from collections.abc import Collection

from teenycli.errors import Finding, Place, did_you_mean
from teenycli.ptx.model import Module, Space, Variable


def settable(module: Module) -> dict[str, Variable]:
    """The module's own variables in global and constant memory that have a size, by name."""
    spaces = (Space.GLOBAL, Space.CONST)
    return {v.name: v for v in module.variables if v.space in spaces and v.linking != "extern" and v.size}


def unknown_global(name: str, known: Collection[str], where: Place) -> Finding:
    """``name`` is none of the ``known`` variables."""
    hint = did_you_mean(name, known) or (f"there are {', '.join(known)}" if known else "it has none that can be set")
    return Finding("unknown-global", f"the PTX has no variable '{name}'", where=where, hint=hint)
