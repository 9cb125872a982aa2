"""Compiled kernels on disk. ``TEENY_CACHE_DIR`` says where, else the user's cache folder.

A file is complete or not there (written beside and renamed), and carries the hash of what it holds: one that is cut
short or scribbled over counts as missing. The folder is the user's alone.

May import ``kernel`` and ``build``. A folder that cannot be used means no cache, and no error.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from msgspec.structs import asdict, astuple

from teenycli.devices.cpu.kernel import Image
from teenycli.devices.cpu.program import Site
from teenycli.ptx.model import Function, Module

_MAGIC = b"teeny-kernel-1\n"
_NAME = re.compile(r"[A-Za-z_$%][\w$]*")
_DIGEST = 32


def folder() -> Path:
    """Where compiled kernels lie."""
    given = os.environ.get("TEENY_CACHE_DIR")
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "teeny" / "cpu"


@lru_cache(maxsize=1)
def _toolchain() -> bytes:
    """What the machine code depends on besides the PTX: LLVM, the processor, and the sources that lower and read."""
    import llvmlite

    from teenycli.devices.cpu.build import machine

    digest = hashlib.sha256(f"{llvmlite.__version__} {machine()}".encode())
    package = Path(__file__).resolve().parent
    for room in (package, package.parents[1] / "ptx"):
        for path in sorted(room.rglob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


def key_of(module: Module, entry: Function, sm: int) -> str:
    """The name of the file for ``entry`` as it stands in ``module``, laid out for ``sm``."""
    digest = hashlib.sha256(_toolchain())
    digest.update(f"{module.version} {module.target} {sm} {sorted(module.files.items())}".encode())
    text = module.source.text
    functions = {f.name: f for f in module.functions if f.body is not None}
    others = {f.name: f for f in module.functions if f.body is None}
    variables = {v.name: v for v in module.variables}
    pending, seen = [entry.name], {entry.name}
    while pending:
        name = pending.pop()
        name = module.aliases.get(name, name)
        function = functions.get(name)
        if function is None or function.body is None:
            digest.update(repr(others.get(name) or variables.get(name)).encode())
            words = _NAME.findall(repr(variables[name].init)) if name in variables else []
        else:
            body = text[function.body.start : function.body.end]
            digest.update(f"{replace(function, body=None)!r} {function.body.line}\n{body}".encode())
            words = _NAME.findall(body)
        for word in words:
            if word not in seen and (
                word in functions or word in others or word in variables or word in module.aliases
            ):
                seen.add(word)
                pending.append(word)
    return digest.hexdigest()


def read(key: str) -> Image | None:
    """The image kept under ``key``; None when there is none, or what is there is not whole."""
    try:
        raw = (folder() / f"{key}.kernel").read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST
    body = raw[head:]
    if not raw.startswith(_MAGIC) or hashlib.sha256(body).digest() != raw[len(_MAGIC) : head]:
        return None
    size = int.from_bytes(body[:8], "little")
    values = json.loads(body[8 : 8 + size])
    sites = tuple(
        Site(line, column, tuple(source) if source else None, function, text, tuple(map(tuple, inlined_at)))
        for line, column, source, function, text, inlined_at in values.pop("sites")
    )
    return Image(code=body[8 + size :], sites=sites, **values)


def write(key: str, image: Image) -> None:
    """Keep ``image`` under ``key``."""
    values = asdict(image) | {"sites": [astuple(site) for site in image.sites]}
    del values["code"]
    head = json.dumps(values).encode()
    body = len(head).to_bytes(8, "little") + head + image.code
    with suppress(OSError):
        where = folder()
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=where, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(body).digest() + body)
            Path(name).replace(where / f"{key}.kernel")
        except OSError:
            Path(name).unlink()
            raise
