"""Values of generated code and the writer of LLVM text. Imports nothing of ours.

A :class:`Value` is one LLVM scalar that all lanes share (``uniform``) or a vector with an element for each lane. The
operations of :class:`Writer` take either, and stay scalar as long as every operand is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

#: Bits of the LLVM types in use.
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "i128": 128,
        "half": 16, "bfloat": 16, "float": 32, "double": 64}  # fmt: skip
_SUFFIX = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
_LOGIC = frozenset({"and", "or", "xor"})
_FLOAT_OF = {16: "half", 32: "float", 64: "double"}


class Value(Struct, frozen=True):
    """``text`` is an SSA name or a constant. ``raw`` marks a float32 whose NaNs are not yet canonical."""

    type: str
    text: str
    uniform: bool
    raw: bool = False

    @property
    def bits(self) -> int:
        return BITS[self.type]

    @property
    def is_float(self) -> bool:
        return self.type in _SUFFIX


def integer(type: str, value: int) -> Value:
    """An integer constant, wrapped to the width of ``type``."""
    bits = BITS[type]
    value &= (1 << bits) - 1
    if type == "i1":
        return Value("i1", "true" if value else "false", True)
    if value >> bits - 1:
        value -= 1 << bits
    return Value(type, str(value), True)


def lane_constants(type: str, values: Iterable[int]) -> Value:
    """An integer constant for each lane of a vector."""
    return Value(type, f"<{', '.join(f'{type} {integer(type, value).text}' for value in values)}>", False)


def floating(type: str, value: float) -> Value:
    """A float or double constant. LLVM writes both as the 16 hex digits of a double."""
    if type == "float":
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return Value(type, f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}", True)


def double_bits(single: int) -> int:
    """The bits of a double that equals the float32 of these bits; not for NaN payloads."""
    return int(struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", single))[0]))[0])


def single_bits(double: int) -> int:
    """The bits of the float32 nearest to the double of these bits."""
    value = struct.unpack("<d", struct.pack("<Q", double))[0]
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def constant_of_bits(type: str, bits: int) -> Value:
    """A constant with these bits."""
    if type == "double":
        return Value(type, f"0x{bits:016X}", True)
    if type == "float":
        is_nan = bits & 0x7FFFFFFF > 0x7F800000
        return Value(type, f"bitcast (i32 {bits} to float)" if is_nan else f"0x{double_bits(bits):016X}", True)
    if type == "half":
        return Value(type, f"0xH{bits:04X}", True)
    return integer(type, bits)


def is_constant(value: Value) -> bool:
    return value.uniform and not value.text.startswith("%")


class Unit:
    """One LLVM module in the making: declarations and helper functions, each once."""

    def __init__(self, width: int, group: int, *, masked: bool) -> None:
        """``width`` is lanes in a warp's vectors, ``group`` the lanes of one native vector of 32-bit elements.

        ``masked`` says whether the machine has stores under a mask for elements of every size.
        """
        self.width = width
        self.group = group
        self.masked = masked
        self.declared: dict[str, str] = {}
        self.helpers: dict[str, str] = {}

    def declare(self, name: str, returns: str, types: Iterable[str]) -> None:
        if name not in self.declared:
            self.declared[name] = f"declare {returns} @{name}({', '.join(types)})"

    def text(self) -> str:
        return "\n".join([*self.declared.values(), *self.helpers.values()])


class Writer:
    """Writes the instructions of one function; ``lines`` is the text so far, ``head`` what comes at its entry."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.width = unit.width
        self.lines: list[str] = []
        self.head: list[str] = []
        self._next = 0
        self._splats: dict[tuple[str, str], str] = {}
        self._logical: set[str] = set()
        self.current = ""
        #: How vectors were made, by name: operation, the operand with lanes, the uniform one. Uniform sums, too.
        self.made: dict[str, tuple[str, Value, Value | None]] = {}

    # --- text ------------------------------------------------------------------------------------------------

    def name(self) -> str:
        self._next += 1
        return f"%v{self._next}"

    def fresh_label(self, stem: str) -> str:
        self._next += 1
        return f"{stem}.{self._next}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def label(self, name: str) -> None:
        """Begin a basic block. Splats of the one before may not dominate this one, and are forgotten."""
        self.lines.append(f"{name}:")
        self.current = name
        self._splats = {}

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, condition: str, then: str, other: str, likely: bool | None = None) -> None:
        weights = "" if likely is None else f", !prof !{0 if likely else 1}"
        self.line(f"br i1 {condition}, label %{then}, label %{other}{weights}")

    def go_on(self, condition: str) -> None:
        """Go on where ``condition`` (an i1) holds, as it nearly always does, and else to the block ``dead``."""
        fine = self.fresh_label("fine")
        self.branch(condition, fine, "dead", likely=True)
        self.label(fine)

    def loop(
        self,
        carried: Sequence[tuple[str, str]],
        goes_on: Callable[[list[str]], str],
        body: Callable[[list[str]], list[str]],
    ) -> list[str]:
        """Emit a loop; what it carries, as it is at the end.

        ``carried`` are types and first values. ``goes_on`` gets their names in a round and gives an i1, ``body`` gives
        the next values; it may leave the function.
        """
        head, one, out = self.fresh_label("loop"), self.fresh_label("round"), self.fresh_label("looped")
        before, names = self.current, [self.name() for _ in carried]
        self.jump(head)
        self.label(head)
        start = len(self.lines)
        self.branch(goes_on(names), one, out)
        self.label(one)
        following = body(names)
        self.lines[start:start] = [
            f"  {name} = phi {type} [ {first}, %{before} ], [ {then}, %{self.current} ]"
            for name, (type, first), then in zip(names, carried, following, strict=True)
        ]
        self.jump(head)
        self.label(out)
        return names

    def assign(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    # --- types -----------------------------------------------------------------------------------------------

    def vector(self, type: str) -> str:
        return f"<{self.width} x {type}>"

    def type_of(self, type: str, uniform: bool) -> str:
        return type if uniform else f"<{self.width} x {type}>"

    def suffix(self, type: str, uniform: bool) -> str:
        scalar = _SUFFIX.get(type, type)
        return scalar if uniform else f"v{self.width}{scalar}"

    def lanes(self, value: Value) -> str:
        """The vector form of a value, as text."""
        if not value.uniform:
            return value.text
        if not value.text.startswith("%"):
            return f"splat ({value.type} {value.text})"
        return self.splat(value.type, value.text, self.width)

    def splat(self, type: str, text: str, width: int) -> str:
        key = (f"{width}{type}", text)
        known = self._splats.get(key)
        if known is None:
            one = self.assign(f"insertelement <{width} x {type}> poison, {type} {text}, i32 0")
            known = self.assign(
                f"shufflevector <{width} x {type}> {one}, <{width} x {type}> poison, <{width} x i32> zeroinitializer"
            )
            self._splats[key] = known
        return known

    def varying(self, value: Value) -> Value:
        return Value(value.type, self.lanes(value), False, value.raw) if value.uniform else value

    def first(self, value: Value) -> Value:
        """Lane 0 as a uniform value."""
        if value.uniform:
            return value
        text = self.assign(f"extractelement {self.vector(value.type)} {value.text}, i32 0")
        return Value(value.type, text, True, value.raw)

    # --- operations ------------------------------------------------------------------------------------------

    def _texts(self, *values: Value) -> tuple[bool, list[str]]:
        uniform = all(v.uniform for v in values)
        return uniform, [v.text if uniform else self.lanes(v) for v in values]

    def binary(self, op: str, a: Value, b: Value) -> Value:
        """``op`` is an LLVM instruction such as ``add`` or ``fmul``."""
        assert a.type == b.type, (op, a, b)
        uniform, (x, y) = self._texts(a, b)
        text = self.assign(f"{op} {self.type_of(a.type, uniform)} {x}, {y}")
        if op in _LOGIC or (op == "add" and {x, y} & self._logical):
            self._logical.add(text)
        if a.uniform != b.uniform and (b.uniform or op in ("add", "mul")):
            self.made[text] = (op, b, a) if a.uniform else (op, a, b)
        elif uniform and op == "add":
            self.made[text] = (op, a, b)
        return Value(a.type, text, uniform, a.type == "float")

    def unary(self, op: str, a: Value) -> Value:
        text = self.assign(f"{op} {self.type_of(a.type, a.uniform)} {a.text}")
        return Value(a.type, text, a.uniform, a.type == "float")

    def compare(self, op: str, a: Value, b: Value) -> Value:
        """``op`` is ``icmp ult``, ``fcmp oeq``…; the value is an i1."""
        assert a.type == b.type, (op, a, b)
        uniform, (x, y) = self._texts(a, b)
        return Value("i1", self.assign(f"{op} {self.type_of(a.type, uniform)} {x}, {y}"), uniform)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        assert a.type == b.type, (condition, a, b)
        assert condition.type == "i1", condition
        if condition.text in ("true", "false") and condition.uniform:
            return a if condition.text == "true" else b
        if condition.uniform and a.uniform and b.uniform:
            text = self.assign(f"select i1 {condition.text}, {a.type} {a.text}, {b.type} {b.text}")
            return Value(a.type, text, True, a.raw or b.raw)
        kind = self.vector(a.type)
        if not condition.uniform:
            a, b = self._apart(a), self._apart(b)
        test = f"i1 {condition.text}" if condition.uniform else f"{self.vector('i1')} {condition.text}"
        text = self.assign(f"select {test}, {kind} {self.lanes(a)}, {kind} {self.lanes(b)}")
        return Value(a.type, text, False, a.raw or b.raw)

    def is_logical(self, value: Value) -> bool:
        """Whether a value comes from ``and``, ``or`` or ``xor``."""
        return value.text in self._logical

    def mark_logical(self, value: Value) -> None:
        self._logical.add(value.text)

    def _apart(self, value: Value) -> Value:
        """A vector that no selection is merged into.

        LLVM 22 gets ``select(mask, a & C | b & ~C, a)`` wrong with AVX-512: of a ``vpternlog`` under a mask, whose
        constant is a broadcast from memory, it swaps two operands and not the truth table's bits. A fence, which is
        no instruction, keeps the two apart.
        """
        bits = BITS[value.type]
        if not self.unit.masked or value.uniform or bits not in (32, 64) or value.text not in self._logical:
            return value
        kind = _FLOAT_OF[bits]
        given = value if value.type == kind else self.cast("bitcast", value, kind)
        fenced = replace(self.intrinsic("arithmetic.fence", given), raw=value.raw)
        return fenced if value.type == kind else self.cast("bitcast", fenced, value.type)

    def cast(self, op: str, a: Value, to: str) -> Value:
        """``op`` is ``zext``, ``fptosi``…"""
        text = self.assign(f"{op} {self.type_of(a.type, a.uniform)} {a.text} to {self.type_of(to, a.uniform)}")
        if op in ("bitcast", "trunc") and a.text in self._logical:
            self._logical.add(text)
        if not a.uniform:
            self.made[text] = (op, a, None)
        return Value(to, text, a.uniform, to == "float" and op != "bitcast")

    def bitcast(self, a: Value, to: str) -> Value:
        """The same bits as another type of that width; a raw float becomes canonical on its way to an integer."""
        if a.type == to:
            return a
        if a.raw and BITS[to] == 32:
            a = self.canonical(a)
            if a.type == to:
                return a
        return self.cast("bitcast", a, to)

    def canonical(self, a: Value) -> Value:
        """A float32 with every NaN as 0x7fffffff (PTX ISA, "Floating Point Instructions", single-precision NaN)."""
        if not a.raw:
            return a
        ordered = self.compare("fcmp ord", a, a)
        bits = self.cast("bitcast", a, "i32")
        return self.select(ordered, bits, integer("i32", 0x7FFFFFFF))

    def resize(self, a: Value, to: str, signed: bool = False) -> Value:
        """An integer truncated or extended to the integer type ``to``."""
        if BITS[a.type] == BITS[to]:
            return a
        if is_constant(a) and a.type != "i1":
            number = int(a.text)
            return integer(to, number if signed else number & (1 << BITS[a.type]) - 1)
        return self.cast("trunc" if BITS[a.type] > BITS[to] else "sext" if signed else "zext", a, to)

    def intrinsic(self, stem: str, *args: Value, extra: str = "", returns: str | None = None) -> Value:
        """Call ``@llvm.{stem}`` overloaded on the first argument's type; ``extra`` are constant last arguments."""
        uniform, texts = self._texts(*args)
        kind = args[0].type
        to = returns or kind
        name = f"llvm.{stem}.{self.suffix(kind, uniform)}"
        types = [self.type_of(a.type, uniform) for a in args]
        kinds = [*types, *(part.split()[0] for part in extra.split(", ") if part)]
        self.unit.declare(name, self.type_of(to, uniform), kinds)
        given = [f"{t} {x}" for t, x in zip(types, texts, strict=True)] + ([extra] if extra else [])
        text = self.assign(f"call {self.type_of(to, uniform)} @{name}({', '.join(given)})")
        return Value(to, text, uniform, to == "float")

    def convert(self, stem: str, a: Value, to: str) -> Value:
        """Call a converting intrinsic overloaded on result and argument, such as ``fptosi.sat``."""
        name = f"llvm.{stem}.{self.suffix(to, a.uniform)}.{self.suffix(a.type, a.uniform)}"
        self.unit.declare(name, self.type_of(to, a.uniform), [self.type_of(a.type, a.uniform)])
        text = self.assign(f"call {self.type_of(to, a.uniform)} @{name}({self.type_of(a.type, a.uniform)} {a.text})")
        return Value(to, text, a.uniform, to == "float")

    def helper(self, name: str, returns: str, *args: Value) -> Value:
        """Call a helper function of the unit on vectors; uniform arguments give a uniform result."""
        uniform = all(a.uniform for a in args)
        given = ", ".join(f"{self.vector(a.type)} {self.lanes(a)}" for a in args)
        text = self.assign(f"call {self.vector(returns)} @{name}({given})")
        value = Value(returns, text, False, returns == "float")
        return self.first(value) if uniform else value

    # --- shorthand -------------------------------------------------------------------------------------------

    def add(self, a: Value, b: Value) -> Value:
        return self.binary("add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.binary("sub", a, b)

    def both(self, a: Value, b: Value) -> Value:
        return self.binary("and", a, b)

    def either(self, a: Value, b: Value) -> Value:
        return self.binary("or", a, b)

    def differ(self, a: Value, b: Value) -> Value:
        return self.binary("xor", a, b)

    def negate(self, a: Value) -> Value:
        """Not, of any integer or predicate."""
        if a.uniform and a.text in ("true", "false"):
            return integer("i1", a.text == "false")
        return self.binary("xor", a, integer(a.type, -1))

    # --- lanes and masks ---------------------------------------------------------------------------------------

    def bits(self, mask: str) -> str:
        """A vector of i1 as an integer with a bit for each lane."""
        return self.assign(f"bitcast {self.vector('i1')} {mask} to i{self.width}")

    def reduce(self, op: str, text: str, type: str) -> str:
        name = f"llvm.vector.reduce.{op}.{self.suffix(type, False)}"
        self.unit.declare(name, type, [self.vector(type)])
        return self.assign(f"call {type} @{name}({self.vector(type)} {text})")

    def iota(self, type: str = "i32", step: int = 1) -> str:
        return "<" + ", ".join(f"{type} {k * step}" for k in range(self.width)) + ">"
