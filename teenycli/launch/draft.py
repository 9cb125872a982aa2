"""A first description of an entry's launch, out of what PTX, metadata and debugging information tell: ``teeny init``.

What they tell is written, with the reason; what they do not is left open (``manifest.gaps``) and never guessed.

May import ``manifest``, ``ptx`` and, in this room, ``parameters``.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from teenycli.launch.parameters import Parameter, parameters_of
from teenycli.manifest.gaps import OPEN
from teenycli.manifest.write import Noted, OpDraft, string
from teenycli.ptx.metadata import Metadata, hidden_count, is_triton, metadata_of
from teenycli.ptx.model import Function, Module
from teenycli.ptx.search import reached, shared_dynamic
from teenycli.ptx.signature import plain_name

_OPEN = string(OPEN)
_AXES = "xyz"
#: The special registers that tell of the grid's axes, and of the block's.
_GRID, _BLOCK = ("ctaid", "nctaid"), ("tid", "ntid")
_Keys = list[tuple[str, Noted | tuple[Noted, ...]]]


def draft_op(module: Module, entry: Function, name: str, ptx: str) -> OpDraft:
    """The op ``name`` that launches ``entry``; ``ptx`` is what the key ``ptx`` says.

    Raises what parsing the body and reading the metadata raise.
    """
    metadata = metadata_of(module, entry)
    hidden = hidden_count(module, entry, metadata)
    params = parameters_of(module, entry, len(entry.params) - hidden)
    keys: _Keys = [("ptx", Noted(string(ptx)))]
    if len(module.entries) > 1:
        keys.append(("entry", Noted(string(entry.name), f"one of {len(module.entries)}")))
    keys.append(("consts", Noted(_OPEN, "compiled in, where shapes or grid need it: { BLOCK = 256 }; else delete")))
    scalars = [p for p in params if p.role == "scalar"]
    if scalars:
        values = ", ".join(f"{p.name} = {_OPEN}" for p in scalars)
        keys.append(("scalars", Noted(f"{{ {values} }}", "run-time values that are no extents")))
    keys += _buffers(params)
    keys.append(("args", tuple(_argument(p) for p in params)) if params else ("args", Noted("[]", "no parameters")))
    keys += _tensor_maps(params)
    keys += _launch(module, entry, metadata)
    if any(p.writes for p in params):
        keys.append(("reference", Noted(_OPEN, 'numpy over the names above, or "module:function"; else delete')))
    dims = tuple((p.name, Noted(_dim(p), p.why)) for p in params if p.role == "dim")
    return OpDraft(name, _about(module, entry, metadata, hidden), tuple(keys), dims)


def _about(module: Module, entry: Function, metadata: Metadata, hidden: int) -> tuple[str, ...]:
    file = PurePath(module.source.name).name
    lines = [f"{plain_name(entry.name)} of {file}, for {module.target}. {OPEN}: what nothing there says."]
    said = ", ".join(f"{key} {value}" for key, value in metadata.known.items() if value != 0)
    if said:
        lines.append(f"From {PurePath(metadata.source or '').name}, read at each launch: {said}.")
    if hidden:
        lines.append(f"Triton's {hidden} hidden parameter{'s' * (hidden > 1)} at the end: teeny passes them itself.")
    return tuple(lines)


def _buffers(params: tuple[Parameter, ...]) -> _Keys:
    inputs = [p for p in params if p.role == "buffer" and (p.reads or not p.writes)]
    outputs = [p for p in params if p.role == "buffer" and p.writes]
    keys: _Keys = []
    if inputs:
        keys.append(("inputs", tuple(Noted(_buffer(p), _direction(p)) for p in inputs)))
    if outputs:
        tables = tuple(
            Noted(f"{{ name = {string(p.name)}, inout = {string(p.name)} }}" if p in inputs else _buffer(p),
                  "the same buffer, after the launch" if p in inputs else _direction(p))
            for p in outputs
        )  # fmt: skip
        keys.append(("output", tables[0]) if len(tables) == 1 else ("outputs", tables))
    return keys


def _buffer(param: Parameter) -> str:
    shape = ", ".join([_OPEN] * (param.rank or 1))
    fields = [f"name = {string(param.name)}", f"shape = [{shape}]"]
    if param.dtype != "f32":
        fields.append(f"dtype = {string(param.dtype or OPEN)}")
    if param.atomic:
        fields.append('init = "zeros"')
    return f"{{ {', '.join(fields)} }}"


def _direction(param: Parameter) -> str:
    return ", ".join(filter(None, (param.access, param.elements)))


def _argument(param: Parameter) -> Noted:
    place = f"{param.index}: .{param.declared}"
    return Noted(string(param.argument), f"{place}, {param.why}" if param.why else place)


def _tensor_maps(params: tuple[Parameter, ...]) -> _Keys:
    maps = [p for p in params if p.role == "tensormap"]
    values = ", ".join(f"{p.name} = {{ of = {_OPEN}, box = {_OPEN} }}" for p in maps)
    return [("tensormaps", Noted(f"{{ {values} }}", "each of a buffer, which is to be added"))] if maps else []


def _dim(param: Parameter) -> str:
    return _OPEN if param.multiple == 1 else f"{{ value = {_OPEN}, multiple_of = {param.multiple} }}"


def _launch(module: Module, entry: Function, metadata: Metadata) -> _Keys:
    directives = entry.directives
    body = "\n".join(
        module.source.text[f.body.start : f.body.end] for f in reached(module, entry) if f.body is not None
    )
    most = directives.maxntid
    if directives.reqntid is not None:
        block: Noted | tuple[Noted, ...] = Noted('"ptx"', f".reqntid {_dims(directives.reqntid)}")
    elif metadata.num_warps is not None:
        block = Noted('"ptx"', f"{metadata.num_warps} warps by the metadata")
    elif most is not None and is_triton(module, entry):
        block = Noted('"ptx"', f".maxntid {_dims(most)}, which Triton launches")
    else:
        bound = f"; at most {_dims(most)} (.maxntid)" if most is not None else ""
        block = Noted(_axes(body, _BLOCK), f"threads of a CTA; {_read(body, _BLOCK)}{bound}")
    keys: _Keys = [("block", block)]
    cluster = directives.reqnctapercluster or (metadata.num_ctas or 1, 1, 1)
    whole = "" if cluster == (1, 1, 1) else f"; whole clusters of {_dims(cluster)}"
    keys.append(("grid", Noted(_axes(body, _GRID, cluster), f"CTAs; {_read(body, _GRID)}{whole}")))
    if metadata.shared is None and shared_dynamic(module, entry):
        keys.append(("shared", Noted(_OPEN, "bytes: the body uses dynamic shared memory")))
    return keys


def _named(body: str, registers: tuple[str, ...]) -> list[str]:
    """The axes of special registers that the text reads: ``%ctaid.x``."""
    pattern = rf"%({'|'.join(registers)})\.([xyz])\b"
    return sorted({f"%{name}.{axis}" for name, axis in re.findall(pattern, body)})


def _axes(body: str, registers: tuple[str, ...], least: tuple[int, int, int] = (1, 1, 1)) -> str:
    """An extent for each axis up to the last that the text reads, or that is to be over 1."""
    last = max((_AXES.index(name[-1]) for name in _named(body, registers)), default=0)
    last = max([last, *(axis for axis in range(3) if least[axis] > 1)])
    return f"[{', '.join([_OPEN] * (last + 1))}]"


def _read(body: str, registers: tuple[str, ...]) -> str:
    named = _named(body, registers)
    return f"the body reads {' '.join(named)}" if named else f"the body reads no %{registers[0]}"


def _dims(triple: tuple[int, int, int]) -> str:
    return " x ".join(map(str, triple))
