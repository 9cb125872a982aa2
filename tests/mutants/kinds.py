"""Mutants of an op: one change each to what the manifest says, of the kinds in ``KINDS``.

A mutant is an edited :class:`OpSpec`, with words for the change. The tables below say which changes are made; the
functions say where in an op they apply.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from teenycli.dtypes import DTYPES
from teenycli.expressions import Expression, parse
from teenycli.launch.plan import Plan
from teenycli.manifest.arguments import parse_argument
from teenycli.manifest.spec import ArgSpec, BackwardSpec, BufferSpec, KernelSpec, OpSpec, OutputSpec
from teenycli.ptx.model import Module
from teenycli.tensors.convert import numpy_dtype


@dataclass(frozen=True)
class Target:
    """What is mutated: an op, or its backward, with its plan at the op's first case. ``folder`` takes data files."""

    spec: OpSpec
    backward: bool
    plan: Plan
    module: Module
    folder: Path

    @property
    def kernel(self) -> KernelSpec:
        return self.spec.kernel(self.backward)

    def put(self, **changes: Any) -> OpSpec:
        """The op with other values for keys of the kernel."""
        if not self.backward:
            return structs.replace(self.spec, **changes)
        return structs.replace(self.spec, backward=structs.replace(self.kernel, **changes))


@dataclass(frozen=True)
class Edit:
    """One change: ``form`` is what is done, the same for many ops; ``what`` is where; ``args`` the arguments that it
    is about, where it exchanges one for another."""

    form: str
    what: str
    spec: OpSpec
    args: tuple[int, ...] = ()


@dataclass(frozen=True)
class Mutant:
    """An op with one change, in its forward or its ``backward``."""

    kind: str
    edit: Edit
    original: OpSpec
    backward: bool

    @property
    def spec(self) -> OpSpec:
        return self.edit.spec

    @property
    def op(self) -> str:
        """The op, ``OP.backward`` for its backward."""
        return self.original.kernel(self.backward).name

    def __str__(self) -> str:
        return f"{self.op}: {self.edit.what}"


Kind = Callable[[Target], Iterator[Edit]]

# --- the changes ---------------------------------------------------------------------------------------------------

#: What an argument of each kind is retyped to, as text over its expression; a pointer is given as a number of its own.
RETYPED: Mapping[str, tuple[str, ...]] = {
    "ptr": ("i32 {}.size", "u64 {}.size", "f32 {}.size"),
    "i32": ("i64 {}", "u32 {}", "f32 {}", "i16 {}", "ptr {buffer}"),
    "u32": ("u64 {}", "i32 {}", "f32 {}", "u16 {}", "ptr {buffer}"),
    "i64": ("i32 {}", "u64 {}", "f64 {}", "ptr {buffer}"),
    "u64": ("u32 {}", "i64 {}", "f64 {}", "ptr {buffer}"),
    "f32": ("f64 {}", "f16 {}", "i32 {}", "ptr {buffer}"),
    "f64": ("f32 {}", "i64 {}", "ptr {buffer}"),
    "f16": ("f32 {}", "bf16 {}", "i16 {}", "ptr {buffer}"),
    "bf16": ("f32 {}", "f16 {}", "i16 {}", "ptr {buffer}"),
    "tensormap": ("ptr {buffer}",),
}
#: Arguments that are added, at each end.
ADDED = ("ptr null", "i32 0", "u64 0", "f32 0")
#: Element types that a buffer of each is given instead: narrower, wider, and as wide of another meaning.
REDTYPED: Mapping[str, tuple[str, ...]] = {
    "f32": ("f16", "f64", "i32"), "f16": ("f32", "bf16", "i16"), "bf16": ("f32", "f16", "i16"),
    "f64": ("f32", "i64"), "i32": ("i16", "i64", "f32"), "u32": ("u16", "u64", "f32"), "i64": ("i32", "f64"),
    "u64": ("u32", "f64"), "i16": ("i8", "i32", "f16"), "u16": ("u8", "u32", "f16"), "i8": ("i16",), "u8": ("u16",),
    "bool": ("i32",), "e4m3": ("f16", "i8"), "e5m2": ("f16", "i8"), "ptr": ("u32",),
}  # fmt: skip
BLOCK = {"halved": "{} // 2", "doubled": "2 * {}", "1": "1", "+ 1": "{} + 1"}
GRID = {"- 1": "{} - 1", "halved": "{} // 2", "+ 1": "{} + 1", "doubled": "2 * {}"}
DIVISOR = {"doubled": "cdiv({}, 2 * {})", "halved": "cdiv({}, {} // 2)", "rounded down": "{} // {}"}
CLUSTER = {"2": "2", "3": "3"}
SHARED = {"0": "0", "halved": "{} // 2", "- 4": "{} - 4", "doubled": "2 * {}"}
STRIDE = {"+ 1": "{} + 1", "- 1": "{} - 1"}
CONST: Mapping[str, Callable[[float], float]] = {
    "halved": lambda n: n // 2 if isinstance(n, int) else n / 2,
    "doubled": lambda n: 2 * n,
    "+ 1": lambda n: n + 1,
}

_AXES = "xyz"
_ROW_STRIDE = re.compile(r"(\w+)\.row_stride")


# --- arguments -------------------------------------------------------------------------------------------------------


def shown(arg: ArgSpec) -> str:
    """An argument as the manifest spells it."""
    return arg.text if arg.kind == "struct" else f"{arg.kind} {arg.text}"


@dataclass(frozen=True)
class _Row:
    """Arguments in a row: all of a kernel, or the members of its struct ``of``."""

    target: Target
    args: tuple[ArgSpec, ...]
    of: int | None = None

    def name(self, k: int) -> str:
        where = f"arg {k}" if self.of is None else f"member {k} of arg {self.of}"
        return f"{where} '{shown(self.args[k])}'"

    def put(self, args: tuple[ArgSpec, ...]) -> OpSpec:
        """The op with others in their place."""
        if self.of is None:
            return self.target.put(args=args)
        struct = parse_argument(f"{{{', '.join(map(shown, args))}}}")
        return self.target.put(args=_with(self.target.kernel.args, {self.of: struct}))

    def exchanged(self, changes: Mapping[int, ArgSpec]) -> OpSpec:
        return self.put(_with(self.args, changes))

    def edit(self, form: str, what: str, spec: OpSpec, args: tuple[int, ...] = ()) -> Edit:
        """An edit; of members it is not known which parameter they are."""
        return Edit(form, what, spec, args if self.of is None else ())


def _rows(target: Target) -> Iterator[_Row]:
    args = target.kernel.args
    yield _Row(target, args)
    yield from (_Row(target, arg.members, k) for k, arg in enumerate(args) if len(arg.members) > 1)


def _with(args: tuple[ArgSpec, ...], changes: Mapping[int, ArgSpec]) -> tuple[ArgSpec, ...]:
    return tuple(changes.get(k, arg) for k, arg in enumerate(args))


def drop(target: Target) -> Iterator[Edit]:
    for row in _rows(target):
        for k, arg in enumerate(row.args):
            yield row.edit(f"drop {arg.kind}", f"drop {row.name(k)}", row.put(row.args[:k] + row.args[k + 1 :]))


def add(target: Target) -> Iterator[Edit]:
    args = target.kernel.args
    for text in ADDED:
        new = parse_argument(text)
        yield Edit("add first", f"add '{text}' before all args", target.put(args=(new, *args)))
        yield Edit("add last", f"add '{text}' after all args", target.put(args=(*args, new)))


def duplicate(target: Target) -> Iterator[Edit]:
    for row in _rows(target):
        args = row.args
        for k, arg in enumerate(args):
            twice = row.put((*args[: k + 1], arg, *args[k + 1 :]))
            yield row.edit(f"twice {arg.kind}", f"pass {row.name(k)} twice", twice)
        for k, m in permutations(range(len(args)), 2):
            first = args[k] not in args[:k]
            if first and args[k].kind == args[m].kind and args[k].text != args[m].text:
                what = f"pass '{shown(args[k])}' for {row.name(m)} too"
                yield row.edit(f"repeat {args[k].kind}", what, row.exchanged({m: args[k]}), (k, m))


def retype(target: Target) -> Iterator[Edit]:
    buffer = next((b.name for b in target.plan.buffers if b.role != "scratch"), "null")
    for row in _rows(target):
        for k, arg in enumerate(row.args):
            for form in RETYPED.get(arg.kind, ()):
                if arg.kind == "ptr" and not re.fullmatch(r"\w+", arg.text):
                    form = form.replace("{}.size", "1")  # an expression may be of several buffers
                text = form.format(arg.text if arg.text != "null" else buffer, buffer=buffer)
                new = parse_argument(text)
                what = f"retype {row.name(k)} to '{text}'"
                yield row.edit(f"{arg.kind} to {new.kind}", what, row.exchanged({k: new}))


def swap(target: Target) -> Iterator[Edit]:
    for row in _rows(target):
        args = row.args
        for k, m in combinations(range(len(args)), 2):
            if args[k] != args[m]:
                kinds = " and ".join(sorted((args[k].kind, args[m].kind)))
                what = f"swap {row.name(k)} and {row.name(m)}"
                yield row.edit(f"swap {kinds}", what, row.exchanged({k: args[m], m: args[k]}), (k, m))


# --- geometry --------------------------------------------------------------------------------------------------------


def block(target: Target) -> Iterator[Edit]:
    said = target.kernel.block
    texts = list(map(str, target.plan.launches[0].block)) if said is None else [each.text for each in said]
    yield from _extents(target, "block", texts, BLOCK)


def grid(target: Target) -> Iterator[Edit]:
    texts = [each.text for each in target.kernel.grid or ()]
    yield from _extents(target, "grid", texts, GRID)
    for axis, text in enumerate(texts):
        for form, template in DIVISOR.items():
            for changed in _divided(text, template):
                what = f"grid {_AXES[axis]} '{text}' -> '{changed}'"
                yield Edit(f"grid divisor {form}", what, target.put(grid=_exprs(_at(texts, axis, changed))))


def _extents(target: Target, key: str, texts: list[str], changes: Mapping[str, str]) -> Iterator[Edit]:
    """Each extent changed, one that is not said doubled, and every two exchanged."""
    full = [*texts, "1", "1"][:3]
    for axis in range(3):
        said = axis < len(texts) and full[axis] != "1"
        for form, template in changes.items() if said else [("2", "2")]:
            changed = _over(template, full[axis])
            what = f"{key} {_AXES[axis]} '{full[axis]}' -> '{changed}'"
            yield Edit(f"{key} {form}", what, target.put(**{key: _exprs(_at(full, axis, changed))}))
    for a, b in combinations(range(3), 2):
        if full[a] != full[b]:
            exchanged = _at(_at(full, a, full[b]), b, full[a])
            what = f"{key} {_AXES[a]} '{full[a]}' and {_AXES[b]} '{full[b]}' exchanged"
            yield Edit(f"{key} exchanged", what, target.put(**{key: _exprs(exchanged)}))


def cluster(target: Target) -> Iterator[Edit]:
    now = target.plan.launches[0].cluster[0]
    for form, text in CLUSTER.items():
        if text != str(now):
            yield Edit(f"cluster {form}", f"cluster {now} -> {text}", target.put(cluster=_exprs([text])))


def shared(target: Target) -> Iterator[Edit]:
    said, bytes_ = target.kernel.shared, target.plan.launches[0].shared
    if said is None and not bytes_:
        return
    text = str(bytes_) if said is None else said.text
    for form, template in SHARED.items():
        changed = _over(template, text)
        yield Edit(f"shared {form}", f"shared '{text}' -> '{changed}'", target.put(shared=parse(changed)))
    for changed in _one_fewer(text):
        yield Edit("shared one fewer", f"shared '{text}' -> '{changed}'", target.put(shared=parse(changed)))


def entry(target: Target) -> Iterator[Edit]:
    for other in target.module.entries:
        if other.name != target.plan.entry:
            what = f"entry {target.plan.entry} -> {other.name}"
            yield Edit("another entry", what, target.put(entry=other.name))


def _over(template: str, *texts: str) -> str:
    """The expressions in a template, in parentheses where they want them."""
    return template.format(*(text if re.fullmatch(r"[\w.]+|\w+\([^()]*\)", text) else f"({text})" for text in texts))


def _at(texts: list[str], index: int, text: str) -> list[str]:
    return [*texts[:index], text, *texts[index + 1 :]]


def _exprs(texts: list[str]) -> tuple[Expression, ...]:
    return tuple(map(parse, texts))


def _divided(text: str, template: str) -> Iterator[str]:
    """``text`` with each of its calls of cdiv made another, one at a time."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "cdiv":
            yield _spliced(text, node, _over(template, *map(ast.unparse, node.args)))


def _one_fewer(text: str) -> Iterator[str]:
    """``text`` with one less for each of its names, one at a time."""
    tree = ast.parse(text, mode="eval")
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            yield _spliced(text, node, f"{ast.unparse(node)} - 1")


def _spliced(text: str, node: ast.expr, new: str) -> str:
    """``text`` with ``new`` in the place of a node of its tree."""
    assert node.end_col_offset is not None
    if node.end_col_offset - node.col_offset == len(text):
        return new
    return text[: node.col_offset] + f"({new})" + text[node.end_col_offset :]


# --- data ------------------------------------------------------------------------------------------------------------


def stride(target: Target) -> Iterator[Edit]:
    """Row strides of buffers, and integer arguments that are no bare dim or scalar: strides, or as good as."""
    for form, text, put in _strides_said(target):
        yield Edit(f"buffer stride {form}", text, put)
    args = target.kernel.args
    for k, arg in enumerate(args):
        if not _is_integer(arg) or arg.text in target.spec.dims or arg.text in target.spec.scalars:
            continue
        changes = {form: _over(template, arg.text) for form, template in STRIDE.items()}
        changes["tight"] = _ROW_STRIDE.sub(lambda match: f"{match[1]}.shape[{_rank(target, match[1]) - 1}]", arg.text)
        for form, text in changes.items():
            if text != arg.text:
                new = parse_argument(f"{arg.kind} {text}")
                what = f"arg {k} '{shown(arg)}' -> '{shown(new)}'"
                yield Edit(f"argument stride {form}", what, target.put(args=_with(args, {k: new})))


def _is_integer(arg: ArgSpec) -> bool:
    return arg.kind in DTYPES and DTYPES[arg.kind].is_integer


def _strides_said(target: Target) -> Iterator[tuple[str, str, OpSpec]]:
    kernel = target.kernel
    if isinstance(kernel, BackwardSpec):
        said, key = kernel.grad_output_row_stride, "grad_output_row_stride"
        for form, changed in _stride_changes(said):
            yield form, f"{key} '{said}' -> '{changed}'", target.put(grad_output_row_stride=changed)
        return
    for k, out in enumerate(target.spec.results):
        for form, changed in _stride_changes(out.row_stride):
            new = structs.replace(out, row_stride=changed)
            yield form, f"row_stride of {out.name} '{out.row_stride}' -> '{changed}'", _with_output(target, k, new)


def _stride_changes(said: Expression | None) -> Iterator[tuple[str, Expression | None]]:
    if said is not None:
        yield from ((form, parse(_over(template, said.text))) for form, template in STRIDE.items())
        yield "tight", None


def _with_output(target: Target, index: int, new: OutputSpec) -> OpSpec:
    spec = target.spec
    if spec.output is not None:
        return target.put(output=new)
    return target.put(outputs=(*spec.outputs[:index], new, *spec.outputs[index + 1 :]))


def _rank(target: Target, name: str) -> int:
    same = {"grad_output": target.spec.results[0].name, "output": target.spec.results[0].name}
    found = next((b for b in target.plan.buffers if b.name == same.get(name, name)), None)
    return len(found.shape) if found is not None else 1


def const(target: Target) -> Iterator[Edit]:
    """A backward that says none of its own has the forward's, and changes with them."""
    spec, kernel = target.spec, target.kernel
    inherited = spec.backward is not None and spec.backward.consts == spec.consts
    if target.backward and inherited:
        return
    for name, value in kernel.consts.items():
        changed = {change(value): form for form, change in CONST.items()}
        for other, form in changed.items():
            consts = {**kernel.consts, name: other}
            new = target.put(consts=consts)
            if inherited and new.backward is not None:
                new = structs.replace(new, backward=structs.replace(new.backward, consts=consts))
            yield Edit(f"const {form}", f"const {name} {value} -> {other}", new)


def init(target: Target) -> Iterator[Edit]:
    """What a buffer holds at first comes from a file or an array that does not have its shape."""
    if target.backward:
        return
    for key, k, buffer in _buffers(target):
        if isinstance(buffer, OutputSpec):
            continue
        planned = target.plan.buffer(buffer.name)
        more = (*planned.shape[:-1], planned.shape[-1] + 1)
        array = np.ones(more, numpy_dtype(planned.dtype))
        stem = target.folder / f"{target.spec.name}-{buffer.name}"
        np.save(f"{stem}.npy", array.view(np.uint8) if array.dtype.kind == "V" else array)
        Path(f"{stem}.bin").write_bytes(array.tobytes())
        changes = {
            "a .npy file of another shape": f"{stem}.npy", "a .bin file of more bytes": f"{stem}.bin",
            "an array of another shape": f"arange({planned.size + 1})",
        }  # fmt: skip
        for form, text in changes.items():
            new = structs.replace(buffer, init=text)
            yield Edit(f"init {form}", f"init of {buffer.name}: {form}", _with_buffer(target, key, k, new))


def dtype(target: Target) -> Iterator[Edit]:
    if target.backward:
        return
    for key, k, buffer in _buffers(target):
        now = buffer.dtype or target.spec.dtype
        for name in REDTYPED[now.name]:
            new = structs.replace(buffer, dtype=DTYPES[name])
            what = f"dtype of {buffer.name} {now} -> {name}"
            role = "output" if isinstance(buffer, OutputSpec) else "input"
            yield Edit(f"dtype of {role} {now} to {name}", what, _with_buffer(target, key, k, new))


def _buffers(target: Target) -> Iterator[tuple[str, int, BufferSpec | OutputSpec]]:
    """Key, index and description of every buffer that is one of its own."""
    for key in ("inputs", "params"):
        for k, buffer in enumerate(getattr(target.spec, key)):
            yield key, k, buffer
    for k, out in enumerate(target.spec.results):
        if out.inout is None:
            yield "outputs", k, out


def _with_buffer(target: Target, key: str, index: int, new: BufferSpec | OutputSpec) -> OpSpec:
    if isinstance(new, OutputSpec):
        return _with_output(target, index, new)
    now = getattr(target.spec, key)
    return target.put(**{key: (*now[:index], new, *now[index + 1 :])})


#: Every kind of mutation.
KINDS: Mapping[str, Kind] = {
    "drop": drop, "add": add, "duplicate": duplicate, "retype": retype, "swap": swap, "block": block, "grid": grid,
    "cluster": cluster, "shared": shared, "stride": stride, "const": const, "init": init, "dtype": dtype,
    "entry": entry,
}  # fmt: skip


def mutants(target: Target) -> Iterator[Mutant]:
    """Every mutant of one kernel, in the order of ``KINDS``."""
    for name, kind in KINDS.items():
        for edit in kind(target):
            yield Mutant(name, edit, target.spec, target.backward)
