"""Instructions made from the forms of the instruction table."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Mapping

from teenycli.ptx.isa import Form, OperandSpec, Role, register_type

#: The types of the registers that instructions are spelled with, ``%u32_1`` being of type u32.
REGISTER_TYPES = (
    *("pred", "b128", "f16", "f16x2", "f32", "f64"),
    *(f"{kind}{bits}" for kind in "bsu" for bits in (8, 16, 32, 64)),
)

#: Constants by operand, where 0 is not legal.
_CONSTANTS = {"size": 128, "bytes": 16, "align": 8, "lut": 0x3F, "n": 64, "scale_a": 1, "scale_b": -1}

#: Some selectors of each set of PARTS; "" leaves it out.
_SELECTORS = {
    "unified": ("", "unified"), "half": ("b1", "h1"), "mask2": ("", "h10", "h0"), "mask4": ("", "b3210", "b20"),
    "pick2": ("", "h13"), "pick4": ("", "b7054"),
}  # fmt: skip


def choices(form: Form, limit: int) -> Iterator[dict[str, str]]:
    """Fillings of the slots: the first, those that differ from it in one slot, then up to ``limit`` at random."""
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
    rng = random.Random(form.text)
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
        text = "_" if spec.name == "_" else self.value(spec, type)
        if spec.sink and self.variant == 1:
            text = "_" if spec.role is Role.DST else re.sub(r"[^ ]+}$", "_}", text)
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
        count = self.form.count_of(spec, self.mods)
        if count is None and spec.vector == "braces":
            # Only mov packs and unpacks at will.
            count, type = 2, f"b{int(self.mods['type'][1:]) // 2}"
        return self.register(type or "b64") if count is None else self.vector(count, type)

    def vector(self, count: int, type: str | None) -> str:
        return "{" + ", ".join(self.register(type or "b32") for _ in range(count)) + "}"

    def address(self, spec: OperandSpec, type: str | None) -> str:
        base = self.register(type or "b64")
        coords = [self.operand(c) for c in spec.coords if self.variant or not c.optional]
        return "[" + ", ".join([base, *coords]) + "]" + self.selector(spec)
