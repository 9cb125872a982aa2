"""A runnable program for every form of the instruction table: operands that mean something, and what comes before.

Programs are those of ``tests.oracle.programs``: registers loaded from a row of inputs, a room of 64 bytes in each
space, registers stored at the end. Of a vector's registers (%v…) the programs keep the exclusive or.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from teenycli.devices.cpu import registry
from teenycli.ptx.isa import Form, OperandSpec, Role, register_type
from teenycli.ptx.model import type_width
from tests.oracle import programs

Mods = dict[str, str]

#: What the module of programs declares beside theirs.
REGISTERS = """.reg .b128 %q<8>; .reg .b8 %vc<8>; .reg .b16 %vh<8>; .reg .b32 %vr<8>;
.reg .b64 %vd<8>, %s, %pol, %fn; .param .align 32 .b8 handed[64];
"""
#: Bytes of a constant that the module has.
FIXED: list[int | None] = [*(k * 37 % 256 for k in range(64))]
#: What stands before the kernel.
DECLARED = (
    f".const .align 32 .b8 fixed[64] = {{{', '.join(map(str, FIXED))}}};"
    """
.func (.reg .b32 %o) plus(.reg .b32 %v) { add.u32 %o, %v, 7; ret; }
"""
)
#: Parameters of the kernel beside those of all programs, and their values.
PARAMETERS = {"first": 0x123456789ABCDEF0, "second": 0x0FEDCBA987654321}
_LETTER = {8: "c", 16: "h", 32: "r", 64: "d"}
#: Operands by name that are constants, or registers made ready by the lines before.
_FIXED = {
    "mask": "-1", "policy": "%pol", "count": "1", "time": "10", "parity": "0", "state": "%s", "total": "64",
    "size": "16", "n": "1", "ignore": "%p0", "align": "8",
}  # fmt: skip


@dataclass(slots=True)
class Writer:
    """One instruction being written."""

    form: Form
    mods: Mods
    rng: random.Random
    name: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    guard: str = ""

    @property
    def spelled(self) -> str:
        return ".".join([self.form.opcode, *(self.mods[s.name] for s in self.form.modifiers if s.name in self.mods)])

    def vector(self, spec: OperandSpec, type: str, count: int) -> str:
        bits = type_width(register_type(type)) or 64
        if bits == 128:
            return "{" + ", ".join(f"%q{k}" for k in range(count)) + "}"
        letter, keep = _LETTER[bits], _LETTER[max(bits, 16)]
        every = [f"%v{letter}{k}" for k in range(count)]
        if spec.role is Role.DST:
            wide = max(bits, 16)
            if bits > 8:
                self.after += [f"xor.b{wide} %{keep}0, %{keep}0, {one};" for one in every]
        elif bits > 8:
            self.before += [f"mov.b{bits} {one}, %{keep}{k % 4};" for k, one in enumerate(every)]
        return "{" + ", ".join(every) + "}"

    def operand(self, spec: OperandSpec) -> str:
        type = self.form.type_of(spec, self.mods) or "b64"
        count = self.form.count_of(spec, self.mods)
        if spec.role is Role.ADDRESS:
            return self.address(spec)
        if spec.name in _FIXED and spec.role is not Role.DST and not (self.form.opcode == "shfl" and spec.name == "n"):
            return _FIXED[spec.name]
        if spec.role is Role.CONST:
            return {"lut": "0x3f", "bytes": "16", "b": "0"}.get(spec.name, "1")
        if spec.name == "_":
            return "_"
        if count is None and spec.vector == "braces":
            count, type = 2, f"b{int(self.mods['type'][1:]) // 2}"
        if count is not None:
            return self.vector(spec, type, count)
        if type == "b128":
            return f"%q{self.rng.randrange(8)}"
        if type[1:] == "8" and not spec.relaxed:
            return f"%c{self.rng.randrange(2)}"
        return programs.operand(self.rng, self.form, spec, self.mods)

    def address(self, spec: OperandSpec) -> str:
        """An address of the thread's room; an mbarrier lies in the room's last eight bytes."""
        space = self.mods.get("space", "")
        if self.form.opcode == "cp":
            space = self.mods.get({"d": "dst", "a": "src"}.get(spec.name, ""), space)
        base = "%a" if spec.name == "a" else "%b"
        if spec.name == "mbar":
            if self.form.opcode not in _ASYNC or space:
                return "[%own+56]"
            self.before.append("cvta.shared.u64 %fn, %own;")
            return "[%fn+56]"
        if self.form.opcode == "mbarrier" or (self.form.opcode == "cp" and "mbarrier" in self.mods):
            self.before.append(f"mov.b64 {base}, %own;")
            if not space:
                self.before.append(f"cvta.shared.u64 {base}, {base};")
            return f"[{base}+56]"
        named = space.split("::")[0]
        is_async = "async" in self.mods and self.form.opcode in _ASYNC
        if named == "shared" or (is_async and "completion" in self.mods) or ("bulk" in self.mods and not named):
            self.before.append(f"mov.b64 {base}, %own;")
            if not named and self.form.opcode in _ASYNC:
                self.before.append(f"cvta.shared.u64 {base}, {base};")
        elif named == "param" and self.form.opcode == "st":
            return "[handed]"
        elif named in ("local", "const", "param"):
            symbol = {"local": "mine", "const": "fixed", "param": "first"}[named]
            self.before.append(f"mov.u64 {base}, {symbol};")
        elif self.form.opcode in ("discard", "applypriority", "prefetch", "prefetchu", "createpolicy", "fence"):
            self.before.append(f"mov.b64 {base}, %table;")
        else:
            self.before.append(f"add.u64 {base}, %out, {programs.ROW};")
            if self.span > 16:  # rows of outputs are aligned to 16; every second to 32
                self.before += ["and.b32 %t, %i, 1;", "setp.eq.u32 %pk, %t, 1;"]
                self.guard = "@%pk "
        return f"[{base}]"

    @property
    def span(self) -> int:
        """Bytes of an access."""
        bits = type_width(self.mods.get("type", "b32")) or 0
        return bits // 8 * int(self.mods.get("vec", "v1")[1:])

    def text(self) -> list[str]:
        specs = [s for s in self.form.operands if s.when is None or s.when in self.mods]
        operands = ", ".join(self.operand(spec) for spec in specs)
        return [*self.before, f"{self.guard}{self.spelled} {operands};", *self.after]


# --- instructions that need others beside them -----------------------------------------------------------------------


def _control(w: Writer) -> list[str]:
    uni = ".uni" if "uni" in w.mods else ""
    at = w.name
    return {
        "bra": [f"bra.uni {at}_Y;" if uni else f"@%p0 bra {at}_Y;", "add.u32 %r0, %r0, 1;", f"{at}_Y:"],
        "brx": [f"{at}_T: .branchtargets {at}_Y, {at}_Z;", f"and.b32 %t, {'%cta' if uni else '%r0'}, 1;",
                f"brx.idx{uni} %t, {at}_T;", f"{at}_Y: add.u32 %r1, %r1, 1;", f"{at}_Z:"],
        "call": [f"call{uni} (%r0), plus, (%r1);"],
        "ret": ["setp.lt.u32 %pk, %i, 5;" if not uni else "setp.eq.u32 %pk, %cta, 99;", f"@%pk ret{uni};"],
        "exit": ["setp.lt.u32 %pk, %i, 5;", "@%pk exit;"],
    }[w.form.opcode]  # fmt: skip


def _barrier(w: Writer) -> list[str]:
    if "cluster" in w.mods:
        is_arrive = "arrive" in w.mods
        return ["barrier.cluster.arrive;"] * (not is_arrive) + [f"{w.spelled};"] + ["barrier.cluster.wait;"] * is_arrive
    if "warp" in w.mods:
        return [f"{w.spelled} -1;"]
    if "arrive" in w.mods:
        return [f"{w.spelled} 3, 128;", "bar.sync 3, 128;"]
    operands = [{"a": "2", "b": "64"}.get(spec.name) or w.operand(spec) for spec in w.form.operands]
    return [f"{w.spelled} {', '.join(operands)};"]


def _stack(w: Writer) -> list[str]:
    type = w.mods["type"]
    top = {"b32": "%vr7", "u32": "%vr7"}.get(type, "%s")
    place = {"u32": "%vr6", "b32": "%vr6"}.get(type, "%b")
    lines = [f"stacksave.{type} {top};", f"mov.{type} {place}, 16;", f"alloca.{type} {place}, {place};"]
    kept = f"st.local.u32 [{place}], %r0; ld.local.u32 %r1, [{place}];"
    return [*lines, kept, f"stackrestore.{type} {top};"]


def _mbarrier(w: Writer) -> list[str]:
    init = ["mbarrier.init.shared.b64 [%own+56], 8;", "mbarrier.arrive.shared.b64 %s, [%own+56];"]
    text = w.text()
    return text if "init" in w.mods else [*init, *text]


_TEMPLATES = {
    **dict.fromkeys(("bra", "brx", "call", "ret", "exit"), _control),
    **dict.fromkeys(("bar", "barrier"), _barrier),
    **dict.fromkeys(("alloca", "stacksave", "stackrestore"), _stack),
    "mbarrier": _mbarrier,
}


def program(form: Form, mods: Mods, name: str) -> list[str]:
    """The lines of a program that runs one instruction."""
    w = Writer(form, mods, random.Random(f"{form.text} {sorted(mods.items())}"), name)
    template = _TEMPLATES.get(form.opcode)
    if template is not None:
        return template(w)
    text = w.text()
    if "cachehint" in mods:
        text.insert(0, "mov.b64 %pol, 0x14f0000000000000;")
    if "mbar" in {spec.name for spec in form.operands} or (form.opcode == "cp" and "mbarrier" in mods):
        text.insert(0, "mbarrier.init.shared.b64 [%own+56], 8;")
    if form.opcode in ("addc", "subc", "madc"):
        text.insert(0, "add.cc.u32 %r5, %r5, %r4;")
    if form.opcode == "nanosleep":
        text = [f"{w.spelled} 20;"]
    if form.opcode == "setmaxnreg":
        text = [f"{w.spelled} 64;"]
    return text


# --- what the oracle has ---------------------------------------------------------------------------------------------

#: Instructions that tell an mbarrier when they are done, with generic addresses where they name no space.
_ASYNC = ("st", "red", "clusterlaunchcontrol")
_VIDEO = re.compile(r"v(add|sub|absdiff|min|max|shl|shr|set|mad|avrg)[24]?")
_WHOLE = {"ld", "ldu", "st", "atom", "red", "shfl", "vote", "match", "redux", "activemask", "bar", "barrier", "addc",
          "subc", "madc", "mov", "bra", "brx", "exit", "ret"}  # fmt: skip


def has_oracle(form: Form, mods: Mods) -> bool:
    """Whether the oracle gives an instruction's result."""
    opcode = form.opcode
    if (
        "b128" in mods.values()
        or any(programs._STRANGE.match(v) for v in mods.values())
        or mods.get("dtype") == "ue8m0x2"
    ):
        return False
    if opcode in ("ld", "ldu", "st"):
        is_far = {"async", "bulk", "mmio"} & mods.keys() or (
            opcode == "st" and mods.get("space", "").startswith("param")
        )
        return not is_far and not (
            mods.get("space", "").startswith("param") and Writer(form, mods, random.Random(), "").span > 8
        )
    if opcode in ("atom", "red"):
        plain = re.fullmatch(r"[bsu](32|64)", mods["type"]) and "vec" not in mods
        return bool(plain) and not {"cachehint", "async"} & mods.keys()
    if opcode in ("bar", "barrier"):
        return "cluster" not in mods and "warp" not in mods and "arrive" not in mods
    if opcode in ("shfl", "vote"):
        return "sync" in mods
    if opcode == "mov":
        return "vec" not in mods
    if opcode in ("addc", "subc", "madc", "add", "sub", "mad") and "cc" in mods:
        return True
    if opcode in _WHOLE or _VIDEO.fullmatch(opcode):
        return True
    return opcode in programs.OPCODES and form in programs.choices(opcode) and not programs._LEFT_OUT & mods.keys()


def fillings(form: Form, chosen: Iterator[Mods]) -> list[Mods]:
    """Those of ``chosen`` that the device has, each once."""
    found: dict[tuple[tuple[str, str], ...], Mods] = {}
    for mods in chosen:
        if registry.supports_mods(form.opcode, mods):
            found.setdefault(tuple(sorted(mods.items())), mods)
    return list(found.values())
