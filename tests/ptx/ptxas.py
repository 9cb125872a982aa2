"""Instructions made from the forms of the instruction table, and ptxas as their judge."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from teenycli.ptx.isa import Form, OperandSpec, Role, register_type

_REGISTERS = ("pred", "b128") + tuple(f"{kind}{bits}" for kind in "bsu" for bits in (8, 16, 32, 64))
_REGISTERS += ("f16", "f16x2", "f32", "f64")

#: Values of constants by (opcode, operand), or by operand alone, where 0 is not legal.
_CONSTANTS = {
    "size": 128, "align": 8, "lut": 0x3F, "n": 64, "fraction": "0.5",
}  # fmt: skip

#: A selector of each set of PARTS; "" leaves it out.
_SELECTORS = {
    "unified": ("", "unified"), "half": ("b1", "h1"), "mask2": ("", "h10", "h0"), "mask4": ("", "b3210", "b20"),
    "pick2": ("", "h13"), "pick4": ("", "b7054"),
}  # fmt: skip


@dataclass(frozen=True)
class Target:
    """What a file of instructions is assembled for."""

    version: tuple[int, int]
    name: str
    suffix: str = ""

    @property
    def sm(self) -> int:
        return int(re.sub(r"\D", "", self.name))

    @property
    def arch(self) -> str:
        """The architecture ptxas makes code for: it knows none below sm_75."""
        return self.name if self.sm >= 75 else "sm_75"


TARGETS = (
    Target((9, 0), "sm_100a"),
    Target((9, 0), "sm_90a"),
    Target((9, 0), "sm_120a"),
    Target((9, 0), "sm_103a"),
    Target((6, 3), "sm_30"),
)


def choices(form: Form, limit: int, seed: int = 0) -> Iterator[dict[str, str]]:
    """Fillings of the slots: those that differ from the first in one slot, then ``limit`` others at random."""
    first = {slot.name: slot.choices[0] for slot in form.modifiers if slot.required}
    yield first
    for slot in form.modifiers:
        for choice in slot.choices:
            if first.get(slot.name) != choice:
                yield first | {slot.name: choice}
    options = [(() if s.required else (None,)) + s.choices for s in form.modifiers]
    total = 1
    for option in options:
        total *= len(option)
    rng = random.Random(seed)
    every: Iterator[tuple[str | None, ...]] = (
        itertools.product(*options)
        if total <= limit
        else (tuple(rng.choice(option) for option in options) for _ in range(limit))
    )
    for picked in every:
        yield {s.name: c for s, c in zip(form.modifiers, picked, strict=True) if c is not None}


def spell(form: Form, mods: Mapping[str, str], *, optional: bool = False, variant: int = 0) -> str:
    """One instruction of ``form``. ``optional`` adds what may be left out; ``variant`` picks selectors and sinks."""
    writer = _Writer(form, mods, variant)
    operands = [
        writer.operand(spec)
        for spec in form.operands
        if (optional or not spec.optional) and (spec.when is None or spec.when in mods)
    ]
    name = ".".join([form.opcode, *(mods[slot.name] for slot in form.modifiers if slot.name in mods)])
    return f"{name} {', '.join(operands)};"


class _Writer:
    def __init__(self, form: Form, mods: Mapping[str, str], variant: int) -> None:
        self.form, self.mods, self.variant = form, mods, variant
        self.used = 0

    def register(self, type: str) -> str:
        self.used += 1
        return f"%{register_type(type)}_{self.used}"

    def operand(self, spec: OperandSpec) -> str:
        type = self.form.type_of(spec, self.mods)
        if spec.role is Role.ADDRESS:
            return self.address(spec, type)
        if spec.role is Role.CONST:
            return str(_CONSTANTS.get(spec.name, 0))
        if spec.role is Role.LABEL:
            return "L0"
        if spec.role is Role.TABLE:
            return "T0"
        text = self.value(spec, type)
        if spec.sink and self.variant == 1:
            text = "_"
        if spec.negatable and self.variant == 1:
            text = ("!" if type == "pred" else "-") + text
        if spec.pair is not None and (spec.pair or self.variant):
            text += "|_" if spec.second_sink and self.variant == 2 else f"|{self.register('pred')}"
        return text + self.selector(spec)

    def selector(self, spec: OperandSpec) -> str:
        if spec.part is None:
            return ""
        options = _SELECTORS[spec.part]
        part = options[self.variant % len(options)]
        return f".{part}" if part else ""

    def value(self, spec: OperandSpec, type: str | None) -> str:
        if spec.vector == "vec" and "vec" in self.mods:
            return self.vector(int(self.mods["vec"][1:]), type)
        if spec.vector == "braces":
            if type is None:
                half = f"b{int(self.mods['type'][1:]) // 2}"
                return self.vector(2, half)
            return self.vector(spec.count or 1, type)
        return self.register(type or "b64")

    def vector(self, count: int, type: str | None) -> str:
        return "{" + ", ".join(self.register(type or "b32") for _ in range(count)) + "}"

    def address(self, spec: OperandSpec, type: str | None) -> str:
        base = self.register(type or "b64")
        coords = [self.operand(c) for c in spec.coords if self.variant or not c.optional]
        return "[" + ", ".join([base, *coords]) + "]" + self.selector(spec)


def refused(lines: Sequence[str], target: Target, folder: Path) -> dict[int, str]:
    """What ptxas says against each line, by index; nothing for a legal one. A thousand lines take half a second."""
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
    missing = set()
    if target.sm < 53 or target.version < (4, 2):
        missing |= {"f16", "f16x2"}
    if target.sm < 70 or target.version < (8, 3):
        missing.add("b128")
    types = [t for t in _REGISTERS if t not in missing]
    return "\n".join(
        [
            f".version {target.version[0]}.{target.version[1]}",
            f".target {target.name}",
            ".address_size 64",
            ".visible .entry k() {",
            *(f".reg .{type} %{type}_<300>;" for type in types),
            "T0: .branchtargets L0;" if target.version >= (6, 0) and target.sm >= 30 else "",
            "L0:",
        ]
    )
