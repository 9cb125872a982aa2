"""Reading PTX: text to :class:`~teenycli.ptx.model.Module`, and bodies to :class:`~teenycli.ptx.model.Code`.

Knows nothing of devices, click, rich or numpy. What is heavy (the instruction table, bodies) is imported
when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from teenycli.ptx.files import read_source
from teenycli.ptx.model import Function, Module, Source
from teenycli.ptx.outline import outline

if TYPE_CHECKING:
    from teenycli.ptx.code import Code

__all__ = ["Function", "Module", "Source", "code_of", "outline", "parse_all", "read_source"]


def code_of(module: Module, function: Function) -> Code:
    """The body of ``function``, parsed and resolved (cached). Raises TeenyError "syntax" and its kin, with places."""
    from teenycli.ptx.resolve import resolve

    return resolve(module, function)


def parse_all(module: Module) -> None:
    """Parse every body, section and address in an initialiser. Raises the first error found."""
    from teenycli.ptx.resolve import check_initialisers
    from teenycli.ptx.sections import check_sections

    check_initialisers(module)
    for function in module.functions:
        if function.body is not None:
            code_of(module, function)
    check_sections(module)
