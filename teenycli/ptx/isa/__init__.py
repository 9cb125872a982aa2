"""The instruction table: what an opcode, its modifiers and its operands may be. The one truth about PTX here.

A row per opcode, in ``table_*.py`` by chapter of the PTX ISA. Each row has one or more *forms* in the ISA's own
notation::

    row("add", tier=1, doc="Floating Point Instructions: add")
    form("add{.rnd}{.ftz}{.sat}.type d, a, b", type="f32")

Modifiers
---------
A modifier in braces is optional; a keyword argument lists what a named modifier, a *slot*, may be; a slot that no
keyword names takes its choices from ``SLOTS``, and one that is not there either stands for itself. ``{.sem.scope}``
is two forms: one with both modifiers, one with neither. Modifiers are accepted in any order, since compilers vary it
and ptxas takes any, but for those that begin with a colon (``mul:mode.type``): they are part of the opcode's name and
keep their place after it. Types keep their order among themselves. A lowering asks for modifiers by slot, so the names
are the same in every row:

=======================  ==========================================================================================
``type``                 the instruction type; where there are several, in order: ``dtype atype btype ctype stype``
``rnd``                  rounding (``rn rz …``, ``rni …``); ``ftz sat satfinite relu nan xorsign abs approx full`` flags
``scaled``               ``scaled::n2::ue8m0``, with the operand ``scale``
``mode``                 which half (``hi lo wide``), the way round (``up down bfly idx``, ``clamp wrap``), the variant
``cmp bool``             comparison; what combines it with a predicate
``op``                   what atom, red, redux, vote, bar.red, match, shf, testp and the video instructions do
``space vec``            state space; vector size (``v2 v4 v8``)
``dst src``              state spaces of a copy
``sem scope``            memory order (``weak volatile relaxed acquire …``); ``cta cluster gpu sys``
``kind restrict``        what a fence orders (``alias async``, ``sync_restrict::…``)
``cop level``            cache operator (``ca cg cs …``); cache (``L1 L2``)
``evict evict2``         ``L1::evict_…`` (createpolicy: the primary priority); ``L2::evict_…``
``prefetch cachehint``   ``L2::64B …``; ``L2::cache_hint``, with the operand ``policy``
``completion multicast`` ``mbarrier::complete_tx::bytes``; ``multicast::cluster``, with the operand ``mask``
``shape num``            matrix shape; how many of them
``alayout blayout``      row or column of A and B; ``layout`` where there is one matrix
``kind sp scale acc``    of a product: ``kind::f16 …``; how A is sparse; ``scale_vec::1X …``, ``shr7``; ``acc::f32``
``group collector``      ``cta_group::1 …``; ``collector::a::fill …``; ``pack unpack`` of tcgen05.ld and .st
``geom comp clamp``      texture geometry; colour; what a surface does out of bounds
``dim field query``      tensor rank; field of a tensor map; attribute of a texture or surface
=======================  ==========================================================================================

Operands
--------
Separated by comma and blank:

==========  =======================================================================================================
``d``       a destination register (d, p or q, with or without a digit); every other name is a source: register or
            constant. Its type is the modifier ``type``, or pred for p and q
``a:u32``   a type of its own, or that of another modifier (``a:atype``); ``:wide`` is twice the width of ``type``;
            ``:any`` is unchecked
``+d``      a destination that is read first: what is added to
``d~``      the register may be wider than the type (ld, st, cvt)
``d^``      the sink ``_`` may stand there; in a pair before the bar for the first, at the end for the second. Some
            elements of a vector may be ``_`` in a result, and in a source that has this mark
``d.vec``   a vector when the modifier ``vec`` is there (``{a, b}``), else a scalar
``a.half``  a selector of ``PARTS`` may follow the register (or, ``unified``, the address)
``{d}``     a vector in braces of any length; ``{d*4}`` of four; ``{d*n/2}`` of half as many as the n of ``shape``
            (``m64n8k16``); ``{d*num*2}`` of twice as many as ``num`` says (``x4``)
``d|p``     a pair; ``d{|p}`` where the second is optional (the second is a predicate)
``!c``      a predicate that may be negated; ``-c`` a register that may be
``%a``      may also be a special register, or the address of a variable or function
``&a``      may also be the address of a variable
``#n``      a constant only; ``#n:s32=-1/1`` one of these; ``$n`` a register only
``[a]``     an address; ``[a,{c*2}:s32]`` one that takes coordinates after a comma; ``{,s}`` in it one left out at will
``@t``      a label; ``@@t`` a table of labels or functions
``_``       the sink only
``x?slot``  is there exactly when the modifier ``slot`` is
``{, x}``   an operand that may be left out, with all that follow it
==========  =======================================================================================================

Where two forms take the same modifiers, the first whose operands fit in number and shape is meant.

May import ``errors`` only (``ptx`` knows nothing of the rooms above it).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache, lru_cache
from importlib import import_module

from msgspec import Struct

#: Flags that ptxas takes twice.
_REPEATABLE = frozenset({"approx", "cc", "relu", "sat", "satfinite", "shiftamt", "sync", "uni"})
#: Slots that are told apart by their order.
_ORDERED: Mapping[str, str] = dict.fromkeys(("type", "dtype", "atype", "btype", "ctype", "stype"), "types") | {
    "dst": "spaces",
    "src": "spaces",
}


class Role(Enum):
    """What an operand is to its instruction."""

    DST = "d"
    SRC = "a"
    CONST = "#"
    ADDRESS = "[]"
    LABEL = "@"
    TABLE = "@@"


class OperandSpec(Struct, frozen=True):
    """One operand of a form. ``type`` is a fundamental type, the name of a modifier slot, ``wide`` or ``any``."""

    name: str
    role: Role
    type: str = "type"
    optional: bool = False
    #: A destination that is read as well.
    read: bool = False
    relaxed: bool = False
    negatable: bool = False
    #: What a constant may be; any where there are none.
    values: tuple[int, ...] = ()
    #: May be a special register; ``address``: may be the address of a variable (of a function too when special).
    special: bool = False
    #: May be a register only; else a constant too, where it is a source.
    register: bool = False
    address: bool = False
    #: May be ``_``, or a vector with ``_`` in it (a result always may have some); so may the second of a pair.
    sink: bool = False
    second_sink: bool = False
    #: What may or must follow a comma within the brackets.
    coords: tuple[OperandSpec, ...] = ()
    #: None: scalar; "vec": a vector when the slot ``vec`` is filled; "braces": always one.
    vector: str | None = None
    #: How many items a vector in braces has, as a rule for ``Form.count_of``; None where any number will do.
    count: str | None = None
    #: The name of a set of ``PARTS``.
    part: str | None = None
    #: None: no pair; else whether the ``|p`` must be there.
    pair: bool | None = None
    #: The operand is there exactly when this slot is filled.
    when: str | None = None


class ModifierSpec(Struct, frozen=True):
    """A slot for one modifier: the name lowerings ask for, and what may stand there."""

    name: str
    choices: tuple[str, ...]
    required: bool
    #: Keeps its place after the opcode: ``lo`` of ``mul.lo.s32``.
    fixed: bool = False


class Form(Struct, frozen=True):
    """One legal shape of an instruction.

    ``tier`` as in ``docs/isa.md``: 1 core SIMT, 2 warp, atomics and async, 3 tensor core, TMA and texture.
    ``ptx`` is the PTX version that brought it, ``sm`` the least architecture, 0 where every one has it. ``suffix``
    is ``a`` where only an architecture's own target has it (``sm_90a``), ``f`` where a family's has too (``sm_100f``).
    A form that was given up bears in ``until`` the last PTX version that has it for ``gone_sm`` and newer.
    """

    opcode: str
    text: str
    modifiers: tuple[ModifierSpec, ...]
    operands: tuple[OperandSpec, ...]
    tier: int
    ptx: tuple[int, int]
    sm: int
    suffix: str = ""
    until: tuple[int, int] | None = None
    gone_sm: int = 0
    #: No operand hangs on a modifier.
    plain: bool = True

    @property
    def required_operands(self) -> int:
        return sum(not spec.optional and spec.when is None for spec in self.operands)

    def match(self, modifiers: Sequence[str]) -> dict[str, str] | None:
        """Name each modifier by its slot; None when one has no slot or a required slot stays empty.

        Fixed ones come first; types, and the spaces ``dst src``, in the form's order; all others in any. Some flags
        may be given twice.
        """
        named: dict[str, str] = {}
        given = list(modifiers)
        for slot in self.modifiers:
            if slot.fixed and given and given[0] in slot.choices:
                named[slot.name] = given.pop(0)
        last: dict[str, int] = {}
        for modifier in given:
            for index, slot in enumerate(self.modifiers):
                group = _ORDERED.get(slot.name, slot.name)
                free = slot.name not in named and not slot.fixed and index >= last.get(group, 0)
                if free and modifier in slot.choices:
                    named[slot.name] = modifier
                    last[group] = index
                    break
            else:
                if modifier not in _REPEATABLE or modifier not in named:
                    return None
        if any(slot.required and slot.name not in named for slot in self.modifiers):
            return None
        return named

    def specs(self, mods: Mapping[str, str], count: int) -> tuple[OperandSpec, ...] | None:
        """Of ``operands`` those that the ``count`` operands of an instruction with these modifiers are, in order.

        None when there are too few or too many. An operand with ``when`` is skipped where its slot is empty.
        """
        live = self.operands
        if not self.plain:
            live = tuple(spec for spec in live if spec.when is None or spec.when in mods)
        if count == len(live):
            return live
        least = sum(not spec.optional for spec in live)
        return live[:count] if least <= count < len(live) else None

    def given_up(self, version: tuple[int, int], sm: int) -> bool:
        """Whether a module of this PTX version and architecture can no longer use the form."""
        return self.until is not None and version > self.until and sm >= self.gone_sm

    def type_of(self, spec: OperandSpec, mods: Mapping[str, str]) -> str | None:
        """The fundamental type of an operand under these modifiers; None when it is not checked."""
        if spec.type == "any":
            return None
        if spec.type == "wide":
            kind = mods["type"]
            return f"{kind[0]}{int(kind[1:]) * 2}"
        return mods.get(spec.type, None if spec.type == "type" or self.has_slot(spec.type) else spec.type)

    def count_of(self, spec: OperandSpec, mods: Mapping[str, str]) -> int | None:
        """How many items an operand in braces has under these modifiers; None for a scalar and where any will do."""
        if spec.vector == "vec":
            return int(mods["vec"][1:]) if "vec" in mods else None
        if spec.count is None:
            return None
        unit, operator, factor = _COUNT.fullmatch(spec.count).groups()  # type: ignore[union-attr]
        if unit == "n":
            count = int(mods["shape"].partition("n")[2].partition("k")[0])
        else:
            count = int(mods["num"][1:]) if unit == "num" else int(unit)
        if operator is None:
            return count
        return count * int(factor) if operator == "*" else count // int(factor)

    def has_slot(self, name: str) -> bool:
        return any(slot.name == name for slot in self.modifiers)


#: Shared memory: of the own CTA, and of any in the cluster. What a policy's operand is.
OWN_SHARED = "shared shared::cta"
SHARED = f"{OWN_SHARED} shared::cluster"
POLICY = "policy:b64?cachehint"

#: Choices of slots that mean the same in most rows.
SLOTS: Mapping[str, str] = {
    "nan": "NaN",
    "cmp": "eq ne lt le gt ge",
    "rnd": "rn rz rm rp",
    "bool": "and or xor",
    "scope": "cta cluster gpu sys",
    "vec": "v2 v4",
    "evict": "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate",
    "evict2": "L2::evict_normal L2::evict_first L2::evict_last",
    "prefetch": "L2::64B L2::128B L2::256B",
    "cachehint": "L2::cache_hint",
    "group": "cta_group::1 cta_group::2",
    "completion": "mbarrier::complete_tx::bytes",
    "multicast": "multicast::cluster",
}

#: What may follow an address, and a register in a video instruction: a byte or half (scalar), some of them (SIMD),
#: or a permutation.
PARTS: Mapping[str, re.Pattern[str]] = {
    "unified": re.compile("unified"),
    "half": re.compile(r"b[0-3]|h[01]"),
    "mask2": re.compile(r"h(0|1|10)"),
    "mask4": re.compile(r"b(3?2?1?0?)(?<!b)"),
    "pick2": re.compile(r"h[0-3]{2}"),
    "pick4": re.compile(r"b[0-7]{4}"),
}

#: The registers for values of types that no register is declared with; ``bits`` are 32 without a meaning.
_HELD_IN: Mapping[str, str] = {
    "bf16": "b16", "bf16x2": "b32", "tf32": "b32", "u16x2": "b32", "s16x2": "b32", "f32x2": "b64", "bits": "b32",
    "u8x4": "b32", "s8x4": "b32", "s2f6x2": "b16",
    "e4m3": "b8", "e5m2": "b8", "e2m1x2": "b8", "e4m3x2": "b16", "e5m2x2": "b16", "e2m3x2": "b16", "e3m2x2": "b16",
    "ue8m0x2": "b16", "e2m1x4": "b16", "e4m3x4": "b32", "e5m2x4": "b32", "e2m3x4": "b32", "e3m2x4": "b32",
}  # fmt: skip


def register_type(type: str) -> str:
    """The fundamental type of a register for a value of ``type``: ``b16`` for ``bf16``, ``f32`` for ``f32``.

    PTX ISA, "Alternate Floating-Point Data Formats" and "Packed Data Types".
    """
    return _HELD_IN.get(type, type)


@lru_cache(maxsize=1024)
def register_fits(type: str, held: str, *, relaxed: bool = False) -> bool:
    """Whether a register declared as ``held`` may stand for an operand of ``type``, by ptxas's rules.

    A type that no register is declared with takes only the bits that hold it. Of the same width, a ``b`` type takes
    any register, an integer any but floats, a float its own and ``b``. A ``relaxed`` operand may be wider, floats in a
    ``b`` register only. PTX ISA, "Operand Size Exceeding Instruction-Type Size".
    """
    if type in _HELD_IN or "pred" in (type, held):
        return held == register_type(type)
    width, wanted = _bits(held), _bits(type)
    if width != wanted and not (relaxed and width > wanted):
        return False
    if type[0] == "f":
        return held == type or held[0] == "b"
    return type[0] == "b" or held[0] in "bus"


def constant_fits(type: str, *, is_float: bool) -> bool:
    """Whether a constant may stand for an operand of ``type``: floats for f32 and f64, integers for all else, either
    for b32 and b64, none for half precision and for types that no register is declared with.
    """
    if type in _HELD_IN or type in ("f16", "f16x2"):
        return False
    return type in ("b32", "b64") or is_float == (type[0] == "f")


def _bits(type: str) -> int:
    return 32 if type == "f16x2" else int(type[1:])


class RawForm(Struct, frozen=True):
    """A form as written in a table, not yet compiled."""

    text: str
    classes: tuple[tuple[str, str], ...]
    tier: int
    ptx: tuple[int, int]
    sm: int
    suffix: str
    until: tuple[int, int] | None
    gone_sm: int


class Row(Struct):
    """An opcode of the table. ``doc`` is the title of its section in the PTX ISA."""

    opcode: str
    tier: int
    doc: str
    forms: list[RawForm]


class Table:
    """Rows by opcode, filled by the ``table_*`` modules when they are imported."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self._row: Row | None = None

    def row(self, opcode: str, *, tier: int, doc: str) -> None:
        """Begin the row of ``opcode``, or go on with it when a further section speaks of it; what follows is its."""
        self._row = self.rows.setdefault(opcode, Row(opcode, tier, doc, []))

    def form(
        self,
        text: str,
        slots: Mapping[str, str] | None = None,
        *,
        ptx: tuple[int, int] = (1, 0),
        sm: int = 0,
        suffix: str = "",
        until: tuple[int, int] | None = None,
        gone_sm: int = 0,
        tier: int | None = None,
        **classes: str,
    ) -> None:
        """Add a form to the row begun last, two where ``{.a.b}`` is in it; ``tier`` where it differs from the row's.

        ``slots`` and the other keyword arguments say together what each slot may be.
        """
        assert self._row is not None
        named = {**(slots or {}), **classes}
        tier = self._row.tier if tier is None else tier
        without = _TOGETHER.sub("", text)
        for variant in (text,) if without == text else (without, _TOGETHER.sub(r"\1", text)):
            present = {m["name"] for m in _MODIFIER.finditer(variant.partition(" ")[0])}
            kept = tuple((name, choices) for name, choices in named.items() if variant == text or name in present)
            self._row.forms.append(RawForm(variant, kept, tier, ptx, sm, suffix, until, gone_sm))


TABLE = Table()

_FORM = re.compile(r"(?P<opcode>[a-z_0-9]+)(?P<modifiers>\S*)\s*(?P<operands>.*)")
_MODIFIER = re.compile(r"(?P<optional>\{)?(?P<dot>[.:])(?P<name>\w+)\}?")
_TOGETHER = re.compile(r"\{((?:\.\w+){2,})\}")
_OPERAND = re.compile(
    r"(?P<pre>[-+!%&#$]*|@{1,2})"
    r"(?:\[(?P<address>\w+)(?P<coords>\S*)\]|\{(?P<braces>\w+)(?:\*(?P<count>[\w*/]+))?\}|(?P<scalar>\w+))"
    r"(?:\.(?P<part>\w+))?(?P<relaxed>~)?(?P<sink>\^)?(?P<pair>\|\w+|\{\|\w+\})?"
    r"(?P<second_sink>(?<=[}\w])\^)?(?::(?P<type>\w+))?(?:=(?P<values>[-\d/]+))?(?:\?(?P<when>\w+))?"
)
_COORD = re.compile(r"\{,(?P<optional>[\w:&]+)\}|,(?P<required>\{\w+\*\d\}[\w:]*|[^,{]+)")
_COUNT = re.compile(r"(\d+|n|num)(?:([*/])(\d+))?")


#: The modules ``table_*``, as the chapters of the ISA follow each other.
_CHAPTERS = ("core", "memory", "texture", "warp", "async", "tensor", "tensor_async", "video")


@cache
def rows() -> Mapping[str, Row]:
    """The whole table by opcode, in the order of the PTX ISA."""
    for chapter in _CHAPTERS:
        import_module(f"{__name__}.table_{chapter}")
    return TABLE.rows


@cache
def forms_of(opcode: str) -> tuple[Form, ...]:
    """The forms of ``opcode``, compiled; empty when the table has no such row."""
    row = rows().get(opcode)
    return tuple(_compile(raw) for raw in row.forms) if row else ()


def _compile(raw: RawForm) -> Form:
    match = _FORM.fullmatch(raw.text)
    assert match is not None, raw.text
    classes = dict(raw.classes)
    modifiers = []
    consumed = 0
    for m in _MODIFIER.finditer(match["modifiers"]):
        consumed += len(m[0])
        name = m["name"]
        choices = classes.pop(name, SLOTS.get(name, name))
        modifiers.append(ModifierSpec(name, tuple(choices.split()), m["optional"] is None, m["dot"] == ":"))
    assert consumed == len(match["modifiers"]), raw.text
    assert not classes, f"{raw.text}: {classes}"
    operands = _operands(match["operands"])
    text = f"{match['opcode']}{match['modifiers'].replace(':', '.')} {match['operands']}".rstrip()
    return Form(match["opcode"], text, tuple(modifiers), operands, raw.tier, raw.ptx, raw.sm, raw.suffix,
                raw.until, raw.gone_sm, plain=all(spec.when is None for spec in operands))  # fmt: skip


def _operands(text: str) -> tuple[OperandSpec, ...]:
    required, _, optional = text.partition("{, ")
    specs = [_operand(part) for part in _split(required)]
    specs += [_operand(part, optional=True) for part in _split(optional.replace("{, ", ", ").removesuffix("}"))]
    return tuple(specs)


def _split(text: str) -> list[str]:
    return [part for part in text.split(", ") if part.strip()]


def _operand(text: str, *, optional: bool = False) -> OperandSpec:
    m = _OPERAND.fullmatch(text.strip())
    assert m is not None, text
    name = m["address"] or m["braces"] or m["scalar"]
    role = Role.DST if re.fullmatch(r"[dpq]\d?|_", name) else Role.SRC
    if m["address"]:
        role = Role.ADDRESS
    elif m["pre"].startswith("@"):
        role = Role(m["pre"])
    elif "#" in m["pre"]:
        role = Role.CONST
    vector = "vec" if m["part"] == "vec" else "braces" if m["braces"] else None
    predicate = "!" in m["pre"] or (role is Role.DST and name[0] in "pq")
    return OperandSpec(
        name=name,
        role=role,
        type=m["type"] or ("pred" if predicate else "any" if role is Role.ADDRESS or name == "_" else "type"),
        optional=optional,
        read="+" in m["pre"],
        relaxed=bool(m["relaxed"]),
        negatable="!" in m["pre"] or "-" in m["pre"],
        values=tuple(map(int, (m["values"] or "").split("/"))) if m["values"] else (),
        special="%" in m["pre"],
        register="$" in m["pre"],
        address="%" in m["pre"] or "&" in m["pre"],
        sink=bool(m["sink"]) or name == "_",
        second_sink=bool(m["second_sink"]),
        coords=tuple(
            _operand(c["optional"] or c["required"], optional=c["optional"] is not None)
            for c in _COORD.finditer(m["coords"] or "")
        ),
        vector=vector,
        count=m["count"],
        part=None if vector == "vec" else m["part"],
        pair=None if m["pair"] is None else not m["pair"].startswith("{"),
        when=m["when"],
    )
