"""The manifest as a whole: finding it, reading it, and the PTX file that an op names.

Ops are decoded one by one: a broken one does not stand in the way of the others.

May import ``errors`` and, in this room, everything.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path

from msgspec import Struct, field

from teenycli.errors import Finding, Place, TeenyError, did_you_mean
from teenycli.exits import Exit
from teenycli.manifest.decode import decode_op, decode_pipeline
from teenycli.manifest.gaps import gaps_of
from teenycli.manifest.spec import KernelSpec, OpSpec, Origin, PipelineSpec, join, quote
from teenycli.manifest.toml import key_lines, read_toml

MANIFEST = "ops.toml"


class Manifest(Struct, frozen=True):
    """A manifest read. ``errors`` holds what is wrong with each op that could not be decoded, by its name.
    ``gaps`` holds what an op leaves open, which is an error of the op too. ``pipelines`` has the ``[pipeline.NAME]``
    tables by their names, or what is wrong with one."""

    path: Path
    folder: Path
    ops: Mapping[str, OpSpec]
    errors: Mapping[str, TeenyError]
    pipelines: Mapping[str, PipelineSpec | TeenyError] = field(default_factory=dict)
    gaps: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)

    def op(self, name: str) -> OpSpec:
        """The op called ``name``. Raises what is wrong with it, or TeenyError ``unknown-op``."""
        if name in self.ops:
            return self.ops[name]
        if name in self.errors:
            raise self.errors[name]
        names = [*self.ops, *self.errors]
        hint = did_you_mean(name, names)
        if name in self.pipelines:
            hint = f"'{name}' is a pipeline: name it alone"
        if hint is None:
            hint = f"there are {', '.join(names)}" if names else "the manifest has no ops: write an [op.NAME] table"
        raise TeenyError("unknown-op", f"there is no op '{name}'", where=Place(str(self.path)), hint=hint)

    def pipeline(self, name: str) -> PipelineSpec:
        """The pipeline called ``name``, which must be there. Raises what is wrong with it."""
        found = self.pipelines[name]
        if isinstance(found, TeenyError):
            raise found
        return found


def find_manifest(start: Path) -> Path:
    """The nearest ``ops.toml``, in the folder ``start`` or in one above it; a relative path when that is shorter.

    Raises TeenyError ``no-manifest``.
    """
    here = start.resolve()
    for levels, folder in enumerate((here, *here.parents)):
        if _is_file(folder / MANIFEST):
            near = start.joinpath(*[".."] * levels, MANIFEST)
            return near if levels < 3 and _is_file(near) else folder / MANIFEST
    raise TeenyError(
        "no-manifest", f"there is no {MANIFEST} in {here} or above it",
        hint="go to the project's folder, name one with --manifest FILE, or give the kernel with --ptx FILE",
    )  # fmt: skip


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that may not be looked into
        return False


def load_manifest(path: Path) -> Manifest:
    """The manifest in the file ``path``.

    Raises TeenyError when the file as a whole cannot be used: what ``toml.read_toml`` raises, and ``unknown-key``
    for a table other than ``op`` and ``pipeline``. What is wrong with one op is in ``Manifest.errors``.
    """
    text, root = read_toml(path)
    whole = Origin(str(path), lines=key_lines(text))
    for key, value in root.items():
        if key not in ("op", "pipeline"):
            raise _unknown_table(key, value, whole)
        if not isinstance(value, dict):
            message = f"'{key}' is not a table of tables: write [{key}.NAME]"
            raise TeenyError("wrong-type", message, where=whole.place(key))
    ops: dict[str, OpSpec] = {}
    errors: dict[str, TeenyError] = {}
    gaps: dict[str, tuple[Finding, ...]] = {}
    for name, table in root.get("op", {}).items():
        origin = Origin(str(path), join("op", quote(name)), whole.lines)
        found = gaps_of(table, origin, text)
        if found:
            gaps[name], errors[name] = found, _left_open(name, found)
            continue
        try:
            ops[name] = decode_op(name, table, path.parent, origin)
        except TeenyError as error:
            errors[name] = error
    pipelines = {name: _pipeline(name, table, whole, ops.keys() | errors.keys())
                 for name, table in root.get("pipeline", {}).items()}  # fmt: skip
    return Manifest(path, path.parent, ops, errors, pipelines, gaps)


def _pipeline(name: str, table: object, whole: Origin, ops: Container[str]) -> PipelineSpec | TeenyError:
    origin = Origin(whole.file, join("pipeline", quote(name)), whole.lines)
    if name in ops:
        message = f"'{name}' is the name of an op too, and the command line could mean either"
        return TeenyError("name-twice", message, where=origin.place())
    try:
        return decode_pipeline(name, table, origin)
    except TeenyError as error:
        return error


def _left_open(name: str, gaps: tuple[Finding, ...]) -> TeenyError:
    first, count = gaps[0], len(gaps)
    message = first.message if count == 1 else f"{count} values of the op are left open; {first.message}"
    hint = first.hint if count == 1 else f"'teeny check {name}' lists them"
    return TeenyError("gap", message, where=first.where, hint=hint, exit=Exit.FAILED)


def _unknown_table(key: str, value: object, whole: Origin) -> TeenyError:
    hint = did_you_mean(key, ("op", "pipeline"))
    if isinstance(value, dict) and ("ptx" in value or "args" in value):
        hint = f"an op's table is [op.{quote(key)}]"
    message = f"unknown key '{key}': a manifest has [op.NAME] and [pipeline.NAME] tables"
    return TeenyError("unknown-key", message, where=whole.place(quote(key)), hint=hint)


def ptx_file(spec: KernelSpec) -> Path:
    """The PTX file of an op: ``ptx``, or the only .ptx file in it when that is a folder (a Triton cache folder).

    Raises TeenyError ``not-a-file`` when a folder holds none or several. A missing file is left to the reader.
    """
    return ptx_in(spec.ptx_path, spec.origin.place("ptx"))


def ptx_in(path: Path, where: Place) -> Path:
    """``path``, or the only .ptx file in it when that is a folder. Raises TeenyError ``not-a-file``, placed at
    ``where``."""
    try:
        if not path.is_dir():
            return path
        files = sorted(path.glob("*.ptx"))
    except OSError:
        return path
    if len(files) == 1:
        return files[0]
    found = f"{len(files)} .ptx files: {', '.join(file.name for file in files[:8])}" if files else "no .ptx file"
    raise TeenyError("not-a-file", f"the folder {path} holds {found}", where=where, hint="name the file")
