"""Random PTX programs: a list of seeds makes a program, a statement a seed.

A statement depends on its seed alone, so a program from which seeds are taken away is the same program without some
statements: that is how a failing one shrinks. Blocks are opened and closed by statements of their own; what stays open
is closed at the end. Instructions come from the forms of the instruction table.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from teenycli.ptx.isa import Form, OperandSpec, Role, constant_fits, forms_of, register_type
from teenycli.ptx.model import type_width

#: Whether whoever runs the programs has a form with these modifiers.
Supports = Callable[[Form, dict[str, str]], bool]

#: Bytes of a thread's row of inputs, and of outputs: registers, then room that loads and stores work on.
ROW, ROOM = 112, 64
#: Bytes that a register of a type takes in a row.
SIZES = {"b8": 1, "b16": 2, "b32": 4, "f32": 4, "b64": 8, "f64": 8, "pred": 1}
#: Registers by letter: type, how many, where the first lies in a row.
FILE = {"h": ("b16", 4, 0), "r": ("b32", 6, 8), "f": ("f32", 3, 32), "d": ("b64", 4, 48), "g": ("f64", 2, 80),
        "p": ("pred", 4, 96), "c": ("b8", 2, 100)}  # fmt: skip
#: Letters of the registers that hold a value of so many bits.
_BY_WIDTH = {1: "p", 8: "h", 16: "h", 32: "rrf", 64: "ddg"}

#: Opcodes drawn, those with many forms more often.
OPCODES = [
    *("add", "sub", "mul", "mad", "mul24", "mad24", "sad", "div", "rem", "abs", "neg", "min", "max", "popc", "clz"),
    *("bfind", "fns", "brev", "bfe", "bfi", "szext", "bmsk", "dp4a", "dp2a", "fma", "testp", "copysign", "rcp", "sqrt"),
    *("set", "setp", "selp", "slct", "and", "or", "xor", "not", "cnot", "lop3", "shf", "shl", "shr", "prmt", "mov"),
    *("add", "mul", "fma", "fma", "set", "setp", "setp", "cvt", "cvt", "cvt", "cvt", "cvt", "min", "max"),
    *("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset", "vmad", "vadd2", "vavrg4", "vabsdiff4"),
    *("vsub4", "vmin2", "vset4", "vset2", "vavrg2", "vmax4", "clmad"),
]
_EDGES = [
    *(0, 1, 2, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000),
    *(0xFFFFFFFF, 1 << 63, (1 << 64) - 1),
]
_FLOATS = [
    *("0f00000000", "0f80000000", "0f3F800000", "0fBF800000", "0f7F800000", "0f7FC00001", "0f00000001"),
    *("0f3F000000", "0f00800000", "0f7F7FFFFF", "0f4F000000"),
]
_DOUBLES = [
    *("0d0000000000000000", "0d3FF0000000000000", "0dBFE0000000000000", "0d7FF0000000000000"),
    *("0d0000000000000001", "0d41E0000000000000", "0d3810000000000000"),
]
_DEPTH = 3


@dataclass(slots=True)
class Writer:
    """A program being written."""

    name: str
    warps: bool
    lines: list[str] = field(default_factory=list)
    #: Open blocks: ("if" or "else" or "loop", number, mask register or None).
    open: list[tuple[str, int, str | None]] = field(default_factory=list)
    labels: int = 0
    #: Whether some threads may have left.
    left: bool = False

    def emit(self, *lines: str) -> None:
        self.lines += [f"{'  ' * len(self.open)}{line}" for line in lines]

    @property
    def mask(self) -> str | None:
        """The member mask of the threads that are here, None where it isn't known."""
        if self.left or not self.warps:
            return None
        return self.open[-1][2] if self.open else "-1"

    @property
    def together(self) -> bool:
        return not self.open and not self.left

    def close(self) -> None:
        kind, number, _ = self.open.pop()
        if kind == "loop":
            k = f"%k{len(self.open)}"
            self.emit(f"sub.u32 {k}, {k}, 1;", f"setp.gt.s32 %pk, {k}, 0;", f"@%pk bra {self.name}_L{number};")
        elif kind == "if":
            self.emit(f"{self.name}_E{number}:")
        self.emit(f"{self.name}_X{number}:")


def program(name: str, seeds: Sequence[int], *, warps: bool, supports: Supports) -> str:
    """A program's text, in braces. ``warps`` lets it have warp operations, for CTAs of whole warps."""
    w = Writer(name, warps)
    for seed in seeds:
        rng = random.Random(seed)
        rng.choices(_STATEMENTS, _WEIGHTS)[0](w, rng, supports)
    while w.open:
        w.close()
    return complete(name, w.lines)


def complete(name: str, lines: Sequence[str]) -> str:
    """Statements between loads of the registers they name and stores of the same."""
    used = {(m[1], int(m[2])) for m in re.finditer(r"%([hrfdgpc])(\d)\b", "\n".join(lines))}
    loads = [line for letter, k in sorted(used) for line in _load(letter, k)]
    stores = [line for letter, k in sorted(used) for line in _store(letter, k)]
    return "\n".join([*loads, *lines, f"{name}_END:", *stores, "ret;"])


def _load(letter: str, k: int) -> list[str]:
    type, _, start = FILE[letter]
    at = start + SIZES[type] * k
    if letter == "p":
        return [f"ld.global.u8 %t, [%in+{at}];", f"and.b32 %t, %t, 1; setp.ne.u32 %p{k}, %t, 0;"]
    return [f"ld.global.{type} %{letter}{k}, [%in+{at}];"]


def _store(letter: str, k: int) -> list[str]:
    type, _, start = FILE[letter]
    at = start + SIZES[type] * k
    if letter == "p":
        return [f"selp.u32 %t, 1, 0, %p{k};", f"st.global.u8 [%out+{at}], %t;"]
    return [f"st.global.{type} [%out+{at}], %{letter}{k};"]


def module(programs: Sequence[str], *, head: str, clean: bool = False) -> str:
    """A kernel that runs a program a CTA. Its parameters: inputs, a row a thread; outputs, a row a thread and CTA.

    ``clean`` zeroes shared and local memory first, as the CPU device and the oracle do and a GPU does not.
    """
    declared = [f".reg .{type} %{letter}<{count}>;" for letter, (type, count, _) in FILE.items()]
    jumps = [f"setp.eq.u32 %pk, %cta, {k}; @%pk bra START{k};" for k in range(1, len(programs))]
    bodies = [(f"START{k}:\n" if k else "") + text for k, text in enumerate(programs)]
    return "\n".join(
        [
            head,
            ".visible .entry kernel(.param .u64 inputs, .param .u64 outputs) {",
            *declared,
            ".reg .pred %pk; .reg .b32 %t, %cta, %i, %n, %k<4>, %m<4>; .reg .b64 %in, %out, %a, %b, %table, %own;",
            f".shared .align 16 .b8 room[{64 * ROOM}]; .local .align 16 .b8 mine[{ROOM}]; .shared .b64 sum;",
            "mov.u32 %i, %tid.x; mov.u32 %cta, %ctaid.x; mov.u32 %n, %ntid.x; ld.param.u64 %table, [inputs];",
            f"mul.wide.u32 %in, %i, {ROW}; add.u64 %in, %in, %table; mad.lo.u32 %t, %cta, %n, %i;",
            f"ld.param.u64 %out, [outputs]; mad.wide.u32 %out, %t, {ROW + ROOM}, %out;",
            f"mov.u64 %own, room; mad.wide.u32 %own, %i, {ROOM}, %own;",
            *(_CLEAN if clean else []),
            *jumps,
            *bodies,
            "}",
        ]
    )


_CLEAN = [
    "mov.u64 %a, mine;",
    *(f"st.shared.b64 [%own+{at}], 0; st.local.b64 [%a+{at}], 0;" for at in range(0, ROOM, 8)),
    "st.shared.b64 [sum], 0; bar.sync 0;",
]


# --- instructions ----------------------------------------------------------------------------------------------------


def register(rng: random.Random, bits: int, *, letters: str | None = None) -> str:
    letter = rng.choice(letters or _BY_WIDTH[bits])
    return f"%{letter}{rng.randrange(FILE[letter][1])}"


def _fitting(rng: random.Random, type: str, *, relaxed: bool = False) -> str:
    """A register for an operand of ``type``; a ``relaxed`` one may be wider."""
    held = register_type(type)
    bits = type_width(held) or 64
    if held == "pred":
        return register(rng, 1)
    if relaxed and held == type and bits < 64 and rng.random() < 0.3:
        return register(rng, 64, letters=rng.choice("rd") if bits < 32 else "d")
    if held != type or type in ("f16", "f16x2"):
        return register(rng, bits, letters={8: "c", 16: "h", 32: "r", 64: "d"}[bits])
    if type[0] == "b":
        return register(rng, bits)
    letters = {"f32": "rff", "f64": "dgg"}.get(type) or {8: "h", 16: "h", 32: "r", 64: "d"}[bits]
    return register(rng, bits, letters=letters)


def constant(rng: random.Random, type: str) -> str | None:
    """A constant operand of ``type``, None where there can't be one."""
    if type == "pred":
        return None
    if constant_fits(type, is_float=True) and type[0] == "f":
        return rng.choice(_FLOATS if type == "f32" else _DOUBLES)
    if not constant_fits(type, is_float=False):
        return None
    bits = type_width(type) or 32
    value = rng.choice([*_EDGES, rng.getrandbits(32)]) & (1 << bits) - 1
    return str(value)


def operand(rng: random.Random, form: Form, spec: OperandSpec, mods: dict[str, str]) -> str:
    type = form.type_of(spec, mods) or "b32"
    if spec.part is not None and spec.part != "unified":
        return f"{register(rng, 32, letters='r')}{_selector(rng, spec)}"
    if spec.role is Role.CONST:
        return str(rng.getrandbits(8))
    if spec.role is Role.DST:
        if spec.pair is None or (not spec.pair and rng.random() < 0.5):
            return _fitting(rng, type, relaxed=spec.relaxed)
        first, second = _fitting(rng, type), register(rng, 1)
        while first == second:
            second = register(rng, 1)
        return f"{first}|{second}"
    if spec.vector == "braces":
        return "{" + ", ".join(_fitting(rng, type) for _ in range(form.count_of(spec, mods) or 2)) + "}"
    if not spec.register and rng.random() < 0.12:
        value = constant(rng, type)
        if value is not None:
            return value
    return ("!" if spec.negatable and type == "pred" and rng.random() < 0.3 else "") + _fitting(
        rng, type, relaxed=spec.relaxed
    )


def _selector(rng: random.Random, spec: OperandSpec) -> str:
    """Part of a register in a video instruction; what a scalar one merges into must be named."""
    if spec.role is not Role.DST and rng.random() < 0.4:
        return ""
    if spec.part == "half":
        return "." + rng.choice(["b0", "b1", "b2", "b3", "h0", "h1"])
    if spec.part in ("mask2", "mask4"):
        count = int(spec.part[-1])
        kept = "".join(str(k) for k in reversed(range(count)) if rng.random() < 0.6)
        return f".{'h' if count == 2 else 'b'}{kept}" if kept else ""
    if spec.part == "pick2":
        return f".h{rng.randrange(4)}{rng.randrange(4)}"
    return ".b" + "".join(str(rng.randrange(8)) for _ in range(4))


_LEFT_OUT = {"approx", "full", "cc", "half"}


@cache
def choices(opcode: str) -> tuple[Form, ...]:
    """The forms of an opcode that random programs are made of."""
    return tuple(
        form
        for form in forms_of(opcode)
        if form.until is None
        and not any(slot.required and slot.name in _LEFT_OUT for slot in form.modifiers)
        and not any(spec.vector for spec in form.operands if form.opcode != "cvt")
        and "b128" not in form.text
    )


#: Formats that the oracle doesn't have.
_STRANGE = re.compile(r"b128")


def modifiers(rng: random.Random, form: Form) -> dict[str, str] | None:
    """Modifiers of a form at random, None where the oracle has no such instruction."""
    mods = {}
    for slot in form.modifiers:
        if slot.required or (slot.name not in _LEFT_OUT and rng.random() < 0.4):
            mods[slot.name] = rng.choice(slot.choices)
    to_ue8m0 = mods.get("dtype") == "ue8m0x2"
    return None if to_ue8m0 or any(_STRANGE.match(value) for value in mods.values()) else mods


def _instruction(w: Writer, rng: random.Random, supports: Supports) -> None:
    for _ in range(20):
        form = rng.choice(choices(rng.choice(OPCODES)))
        text = instruction(rng, form, supports)
        if text is not None:
            guard = f"@{rng.choice(['', '!'])}{register(rng, 1)} " if rng.random() < 0.2 else ""
            w.emit(guard + text)
            return


def instruction(rng: random.Random, form: Form, supports: Supports) -> str | None:
    """An instruction of a form; None where the oracle or the device has none such."""
    mods = modifiers(rng, form)
    if mods is None or not supports(form, mods):
        return None
    name = ".".join([form.opcode, *(mods[slot.name] for slot in form.modifiers if slot.name in mods)])
    operands = [operand(rng, form, s, mods) for s in form.operands if s.when is None or s.when in mods]
    return f"{name} {', '.join(operands)};"


def _carry_chain(w: Writer, rng: random.Random, _supports: Supports) -> None:
    """Two to four links; the first sets the carry flag, the last need not."""
    type = rng.choice(["u32", "s32", "u64", "s64"])
    count = rng.randrange(2, 5)
    for k in range(count):
        opcode = rng.choice(["add", "sub", "mad"])
        mode = f".{rng.choice(['hi', 'lo'])}" if opcode == "mad" else ""
        carry = "" if k == count - 1 and rng.random() < 0.5 else ".cc"
        sources = [_fitting(rng, type) for _ in range(3 if opcode == "mad" else 2)]
        w.emit(f"{opcode}{'c' if k else ''}{mode}{carry}.{type} {', '.join([_fitting(rng, type), *sources])};")


# --- memory ----------------------------------------------------------------------------------------------------------


def _base(w: Writer, rng: random.Random, space: str, size: int, room: int) -> tuple[str, str]:
    """The space that an instruction names, and an address of the thread's own room, aligned to ``size``."""
    start = {"global": f"add.u64 %a, %out, {ROW};", "shared": "mov.b64 %a, %own;", "local": "mov.u64 %a, mine;",
             "table": "mov.b64 %a, %table;"}[space]  # fmt: skip
    w.emit(start)
    named = {"table": "global"}.get(space, space)
    if rng.random() < 0.4:
        # A power of two at most as large as the room, less the bits below the size.
        w.emit(f"and.b32 %t, {register(rng, 32, letters='r')}, {(room - 1) & ~(size - 1)};", "cvt.u64.u32 %b, %t;",
               "add.u64 %a, %a, %b;")  # fmt: skip
        offset = 0
    else:
        offset = rng.randrange(room // size) * size
    if rng.random() < 0.2:
        if named != "global":
            w.emit(f"cvta.{named}.u64 %a, %a;")
        return "", f"[%a+{offset}]"
    return f".{named}", f"[%a+{offset}]"


_SCALARS = ["b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]


def _holding(rng: random.Random, type: str, count: int) -> list[str]:
    """Different registers as wide as ``type`` or wider."""
    bits = int(type[1:])
    if type[0] == "f":
        letters = {32: "rf", 64: "dg"}[bits]
    else:
        letters = "".join(letter for wide, letter in ((16, "h"), (32, "r"), (64, "d")) if wide >= bits)
    # A vector's elements are of one width.
    widths = rng.choice([letters] if count == 1 else [letters] if letters in ("rf", "dg") else list(letters))
    every = [f"%{letter}{k}" for letter in widths for k in range(FILE[letter][1])]
    return rng.sample(every, count)


def _access(w: Writer, rng: random.Random, _supports: Supports) -> None:
    type = rng.choice(_SCALARS)
    bits = int(type[1:])
    count = rng.choice([1, 1, 1, 2, 2, *([4] if bits <= 32 else [])])
    size = bits // 8 * count
    space = rng.choice(["global", "shared", "local", "table"])
    is_load = space == "table" or rng.random() < 0.5
    room = ROOM if space != "table" else 2048
    named, where = _base(w, rng, space, size, room)
    registers = _holding(rng, type, count)
    value = registers[0] if count == 1 else "{" + ", ".join(registers) + "}"
    vector = f".v{count}" if count > 1 else ""
    guard = f"@{rng.choice(['', '!'])}{register(rng, 1)} " if rng.random() < 0.2 else ""
    extra = ".nc" if space == "table" and named and rng.random() < 0.3 else ""
    extra = extra or (rng.choice(["", "", ".volatile"]) if named != ".local" else "")
    head = f"{extra}{named}" if extra == ".volatile" else f"{named}{extra}"
    w.emit(f"{guard}ld{head}{vector}.{type} {value}, {where};" if is_load
           else f"{guard}st{head}{vector}.{type} {where}, {value};")  # fmt: skip


def _atomic(w: Writer, rng: random.Random, _supports: Supports) -> None:
    """On the thread's own room: nobody else is there."""
    op, types = rng.choice([
        ("add", "u32 s32 u64"), ("min", "u32 s32 u64 s64"), ("max", "u32 s32 u64 s64"), ("and", "b32 b64"),
        ("or", "b32 b64"), ("xor", "b32 b64"), ("exch", "b32 b64"), ("inc", "u32"), ("dec", "u32"), ("cas", "b32 b64"),
    ])  # fmt: skip
    type = rng.choice(types.split())
    bits = int(type[1:])
    named, where = _base(w, rng, rng.choice(["global", "shared"]), bits // 8, ROOM)
    letters = {32: "r", 64: "d"}[bits]
    sources = [register(rng, bits, letters=letters) for _ in range(2 if op == "cas" else 1)]
    if rng.random() < 0.3 and op not in ("exch", "cas"):
        w.emit(f"red{named}.{op}.{type} {', '.join([where, *sources])};")
    else:
        w.emit(f"atom{named}.{op}.{type} {', '.join([register(rng, bits, letters=letters), where, *sources])};")


def _repack(w: Writer, rng: random.Random, _supports: Supports) -> None:
    bits, parts = rng.choice([(32, 2), (64, 2), (64, 4), (32, 4)])
    part = bits // parts
    if part == 8:
        return
    whole = register(rng, bits)
    pool = [f"%{x}{k}" for x in {16: "h", 32: "rf"}[part] for k in range(FILE[x][1])]
    items = "{" + ", ".join(rng.sample(pool, parts)) + "}"
    w.emit(f"mov.b{bits} {items}, {whole};" if rng.random() < 0.5 else f"mov.b{bits} {whole}, {items};")


# --- threads together ------------------------------------------------------------------------------------------------


def _exchange(w: Writer, rng: random.Random, _supports: Supports) -> None:
    """A barrier, a look into another thread's room in shared memory, a barrier."""
    if not w.together:
        return
    w.emit(
        "bar.sync 0;",
        f"add.u32 %t, %i, {rng.randrange(1, 40)};",
        "rem.u32 %t, %t, %n;",
        "mov.u64 %a, room;",
        f"mad.wide.u32 %a, %t, {ROOM}, %a;",
        f"ld.shared.u32 {register(rng, 32, letters='r')}, [%a+{4 * rng.randrange(ROOM // 4)}];",
        "bar.sync 0;",
    )


def _bar_red(w: Writer, rng: random.Random, _supports: Supports) -> None:
    if not w.together:
        return
    op = rng.choice(["popc", "and", "or"])
    target = f".u32 {register(rng, 32, letters='r')}" if op == "popc" else f".pred {register(rng, 1)}"
    w.emit(f"{rng.choice(['bar', 'barrier'])}.red.{op}{target}, 0, {rng.choice(['', '!'])}{register(rng, 1)};")


def _warp(w: Writer, rng: random.Random, _supports: Supports) -> None:
    mask = w.mask
    if mask is None:
        return

    def r() -> str:
        return register(rng, 32, letters="r")

    p = register(rng, 1)
    kind = rng.choice(["shfl", "shfl", "vote", "match", "redux", "active", "lane"])
    if w.together and rng.random() < 0.3:
        # Two tiles in step, each with a mask of its own.
        mask = "%m3"
        w.emit("and.b32 %m3, %i, 16;", "shl.b32 %m3, 0xffff, %m3;")
    if kind == "shfl":
        mode = rng.choice(["up", "down", "bfly", "idx"])
        clamp = rng.choice(["0", "31", "0x1c1f", "0x181f", "0x1800", r()])
        by = rng.choice([str(rng.randrange(40)), r()])
        pair = f"|{p}" if rng.random() < 0.5 else ""
        w.emit(f"shfl.sync.{mode}.b32 {r()}{pair}, {r()}, {by}, {clamp}, {mask};")
    elif kind == "vote":
        op = rng.choice(["all", "any", "uni", "ballot"])
        target = f"b32 {r()}" if op == "ballot" else f"pred {p}"
        w.emit(f"vote.sync.{op}.{target}, {rng.choice(['', '!'])}{register(rng, 1)}, {mask};")
    elif kind == "match":
        type = rng.choice(["b32", "b64"])
        value = register(rng, int(type[1:]))
        w.emit(rng.choice([
            f"match.any.sync.{type} {r()}, {value}, {mask};", f"match.all.sync.{type} {r()}|{p}, {value}, {mask};",
            f"match.all.sync.{type} {r()}, {value}, {mask};",
        ]))  # fmt: skip
    elif kind == "redux":
        op, type = rng.choice([("add", "u32"), ("min", "u32"), ("max", "u32"), ("add", "s32"), ("min", "s32"),
                               ("max", "s32"), ("and", "b32"), ("or", "b32"), ("xor", "b32")])  # fmt: skip
        w.emit(f"redux.sync.{op}.{type} {r()}, {r()}, {mask};")
    elif kind == "active" and w.together:
        w.emit(f"activemask.b32 {r()};")
    else:
        w.emit(f"mov.u32 {r()}, {rng.choice(['%laneid', '%lanemask_lt', '%warpid', '%tid.x'])};")


# --- control flow ----------------------------------------------------------------------------------------------------


def _if(w: Writer, rng: random.Random, _supports: Supports) -> None:
    if len(w.open) >= _DEPTH:
        return
    p, outer = register(rng, 1), w.mask
    w.labels += 1
    inner = None
    if outer is not None:
        inner = f"%m{len(w.open)}"
        w.emit(f"vote.sync.ballot.b32 {inner}, {p}, {outer};")
    w.emit(f"@!{p} bra {w.name}_E{w.labels};")
    w.open.append(("if", w.labels, inner))


def _else(w: Writer, _rng: random.Random, _supports: Supports) -> None:
    if not w.open or w.open[-1][0] != "if":
        return
    _, number, inner = w.open.pop()
    w.emit(f"  bra {w.name}_X{number};", f"{w.name}_E{number}:")
    outer = w.mask
    if inner is not None and outer is not None:
        w.emit(f"xor.b32 {inner}, {inner}, {outer};")
    w.open.append(("else", number, inner if outer is not None else None))


def _loop(w: Writer, rng: random.Random, _supports: Supports) -> None:
    """One to four rounds, as many as a register of the thread's says or the same for all."""
    if len(w.open) >= _DEPTH:
        return
    k = f"%k{len(w.open)}"
    w.labels += 1
    if rng.random() < 0.5:
        w.emit(f"and.b32 {k}, {register(rng, 32, letters='r')}, 3;", f"add.u32 {k}, {k}, 1;")
    else:
        w.emit(f"mov.u32 {k}, {rng.randrange(1, 4)};")
    w.emit(f"{w.name}_L{w.labels}:")
    w.open.append(("loop", w.labels, None))


def _switch(w: Writer, rng: random.Random, supports: Supports) -> None:
    """An indexed branch to two to four cases of an instruction each."""
    w.labels += 1
    n, count = w.labels, rng.choice([2, 4])
    cases = ", ".join(f"{w.name}_C{n}_{rng.randrange(count)}" for _ in range(count))
    w.emit(f"{w.name}_T{n}: .branchtargets {cases};")
    w.emit(f"and.b32 %t, {register(rng, 32, letters='r')}, {count - 1};", f"brx.idx %t, {w.name}_T{n};")
    for k in range(count):
        w.emit(f"{w.name}_C{n}_{k}:")
        _instruction(w, rng, supports)
        if rng.random() < 0.8:
            w.emit(f"bra {w.name}_X{n};")
    w.emit(f"{w.name}_X{n}:")


def _tally(w: Writer, rng: random.Random, _supports: Supports) -> None:
    """All threads reduce into one place in shared memory, where the order doesn't matter."""
    if not w.together:
        return
    op, types = rng.choice([("add", "u32 s32 u64"), ("min", "u32 s32 u64 s64"), ("max", "u32 s32 u64 s64"),
                            ("and", "b32 b64"), ("or", "b32 b64"), ("xor", "b32 b64")])  # fmt: skip
    type = rng.choice(types.split())
    bits = int(type[1:])
    letter = {32: "r", 64: "d"}[bits]
    value = register(rng, bits, letters=letter)
    guard = f"@{rng.choice(['', '!'])}{register(rng, 1)} " if rng.random() < 0.3 else ""
    w.emit(
        "setp.eq.u32 %pk, %i, 7;",
        f"@%pk st.shared.b64 [sum], {rng.getrandbits(40)};",
        "bar.sync 0;",
        f"{guard}red.shared.{op}.{type} [sum], {value};",
        "bar.sync 0;",
        f"ld.shared.{type} {register(rng, bits, letters=letter)}, [sum];",
        "bar.sync 0;",
    )


def _end(w: Writer, _rng: random.Random, _supports: Supports) -> None:
    if w.open:
        w.close()


def _leave(w: Writer, rng: random.Random, _supports: Supports) -> None:
    """Out of the innermost block, to the stores at the end, or for good."""
    p = f"@{rng.choice(['', '!'])}{register(rng, 1)}"
    chance = rng.random()
    if w.open and chance < 0.6:
        kind, number, _ = w.open[-1]
        w.open[-1] = (kind, number, None)
        w.emit(f"{p} bra {w.name}_X{number};")
        return
    if rng.random() < 0.8 and len(w.lines) < 30:
        return
    w.left = True
    w.emit(f"{p} exit;" if chance < 0.7 else f"{p} bra {w.name}_END;")


#: What a statement may be, and how often.
_KINDS = {
    _instruction: 60, _carry_chain: 3, _access: 12, _atomic: 2, _repack: 3, _exchange: 2, _bar_red: 1, _warp: 7,
    _switch: 2, _tally: 2, _if: 8, _else: 4, _loop: 4, _end: 6, _leave: 2,
}  # fmt: skip
_STATEMENTS, _WEIGHTS = list(_KINDS), list(_KINDS.values())
