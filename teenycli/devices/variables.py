"""What a module's ``.global`` and ``.const`` variables hold where a user says so: ``--global NAME=INIT`` and the
manifest's ``globals``.

May import ``dtypes``, ``errors``, ``launch.variables``, ``manifest.spec``, ``ptx.model`` and ``tensors``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from teenycli.dtypes import DTYPES, DType
from teenycli.errors import Place, TeenyError
from teenycli.launch.variables import settable, unknown_global
from teenycli.manifest.spec import Init, KernelSpec
from teenycli.ptx.model import Module, Variable
from teenycli.tensors.arrays import fill
from teenycli.tensors.convert import raw_bytes

Bytes = npt.NDArray[np.uint8]

#: The element type of a variable by its PTX type, where the two are not called alike; ``.b8`` and others of mere width
#: hold unsigned integers until the user says another type.
_TYPES = {"f16x2": "f16", "bf16x2": "bf16", "b128": "u64", "tf32": "f32"}


def check_globals(modules: Collection[Module], names: Collection[str]) -> None:
    """Raises TeenyError ``unknown-global`` for a name of ``--global`` that is a variable of none of the modules."""
    known = dict.fromkeys(name for module in modules for name in settable(module))
    for name in names:
        if name not in known:
            raise _unknown(name, known, Place(key=f"--global {name}"))


def initial_globals(
    spec: KernelSpec, module: Module, seed: int, given: Mapping[str, str] | None = None
) -> dict[str, Bytes]:
    """The bytes of each variable of ``module`` that the manifest (``spec``) or ``given`` sets, by name; ``given`` wins.

    Of ``given`` those that the module lacks are another's. Raises TeenyError ``unknown-global``, ``global-type``, and
    what ``fill`` raises.
    """
    known, given = settable(module), given or {}
    found = {}
    for name, init in spec.globals.items():
        where = spec.origin.place(f"globals.{name}")
        if name not in known:
            raise _unknown(name, known, where)
        if name not in given:
            found[name] = _contents(known[name], init, seed, spec.folder, where)
    for name, text in given.items():
        if name in known:
            found[name] = _contents(known[name], text, seed, Path(), Place(key=f"--global {name}"))
    return found


def set_to(spec: KernelSpec, module: Module, given: Mapping[str, str]) -> dict[str, str]:
    """What each variable of ``module`` is set to that the manifest (``spec``) or ``given`` sets, as it was written."""
    known = settable(module)
    said = {**{name: str(init) for name, init in spec.globals.items()}, **given}
    return {name: init for name, init in said.items() if name in known}


def _unknown(name: str, known: Collection[str], where: Place) -> TeenyError:
    found = unknown_global(name, known, where)
    return TeenyError(found.id, found.message, where=where, hint=found.hint)


def _contents(variable: Variable, init: Init, seed: int, folder: Path, where: Place) -> Bytes:
    """The bytes that ``init``, with or without ``DTYPE:`` before it, makes of the variable, all of them."""
    text = init if isinstance(init, str) else repr(float(init) if isinstance(init, float) else int(init))
    head, colon, rest = text.partition(":")
    try:
        dtype = _dtype(variable, head.strip() if colon and head.strip() in DTYPES else None)
        array = fill(rest if colon and head.strip() in DTYPES else text, dtype, (variable.size // dtype.size,),
                     variable.name, seed, folder)  # fmt: skip
    except TeenyError as error:
        raise error.at(where) from None
    return np.ascontiguousarray(raw_bytes(array)).reshape(-1)


def _dtype(variable: Variable, said: str | None) -> DType:
    """The element type that a variable is filled with: the one that was ``said``, or its own."""
    declared = variable.type
    own = _TYPES.get(declared) or {"b": "u", "s": "i"}.get(declared[0], declared[0]) + declared[1:]
    dtype = DTYPES.get(said or own)
    if dtype is None:
        raise TeenyError("global-type", f"'{variable.name}' is a .{declared}, which holds no numbers")
    if variable.size % dtype.size:
        message = f"'{variable.name}' has {variable.size:,} bytes, no whole number of {dtype}, {dtype.size} bytes each"
        raise TeenyError("global-type", message)
    return dtype
