"""Video instructions against the ISA's own words in integers of Python, which are as wide as they need be."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pytest

from tests.devices.cpu.kit import Array, evaluate

pytestmark = pytest.mark.unit

Binary = Callable[[int, int], int]
#: What an instruction makes of a, b and c; more bits than 32 are cut off.
Word = Callable[[int, int, int], int]
TYPES = ("u32", "s32")
PARTS = ("", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1")
WORD = (1 << 32) - 1
OPS: dict[str, Binary] = {
    "vadd": operator.add,
    "vsub": operator.sub,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
    "vavrg": lambda a, b: a + b + (a + b >= 0) >> 1,
}
CMPS: dict[str, Binary] = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
                           "gt": operator.gt, "ge": operator.ge}  # fmt: skip


def field(value: int, start: int, bits: int, type: str) -> int:
    """``bits`` bits of a word from ``start`` on, with a sign when the type has one."""
    number = value >> start & (1 << bits) - 1
    return number - (1 << bits) if type[0] == "s" and number >> bits - 1 else number


def place(part: str) -> tuple[int, int]:
    if not part:
        return 0, 32
    bits = 8 if part[1] == "b" else 16
    return int(part[2]) * bits, bits


def held(value: int, type: str, bits: int) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "s" else (0, (1 << bits) - 1)
    return max(low, min(high, value))


def merged(c: int, value: int, start: int, bits: int) -> int:
    mask = ((1 << bits) - 1) << start
    return c & ~mask | value << start & mask


def words(count: int, size: int = 60) -> list[Array]:
    """Edges and random words, shuffled against each other."""
    edges = [0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 0x7F80FF01, 0x80008000, 2**31 - 1, 2**31, WORD]
    rng = random.Random(count)
    columns = []
    for _ in range(count):
        column = edges + [rng.getrandbits(32) for _ in range(size - len(edges))]
        rng.shuffle(column)
        columns.append(np.array(column, np.uint32))
    return columns


def check(lines: list[str], wanted: list[Word], given: list[Array]) -> None:
    """Run instructions that write %r0, %r1… from %a, %b and %c, and compare."""
    for first in range(0, len(lines), 24):
        some, functions = lines[first : first + 24], wanted[first : first + 24]
        text = "\n".join(line.replace("%r", f"%r{k}") for k, line in enumerate(some))
        got = evaluate(text, dict(zip("abc", given, strict=True)), {f"r{k}": "uint32" for k in range(len(some))})
        rows = list(zip(*(column.tolist() for column in given), strict=True))
        for k, function in enumerate(functions):
            np.testing.assert_array_equal(got[f"r{k}"], [function(*row) & WORD for row in rows], some[k])


def signs(count: int = 3) -> Iterable[tuple[str, ...]]:
    return itertools.product(TYPES, repeat=count)


def scalar(op: Binary, types: tuple[str, ...], sat: bool, parts: tuple[str, str], extra: str) -> Word:
    """The ISA's scheme of a scalar instruction; ``extra`` is its second operation, or the part of d that it writes."""
    dtype, atype, btype = types
    start, bits = place(extra if extra[:1] == "." else "")

    def run(a: int, b: int, c: int) -> int:
        value = op(field(a, *place(parts[0]), atype), field(b, *place(parts[1]), btype))
        value = held(value, dtype, bits) if sat else value
        if extra[:1] == ".":
            return merged(c, value, start, bits)
        pair = field(value, 0, 32, dtype), field(c, 0, 32, dtype)
        return {"": pair[0], "add": sum(pair), "min": min(pair), "max": max(pair)}[extra]

    return run


def spelled(head: str, parts: tuple[str, str], extra: str) -> str:
    second, part = ("", extra) if extra[:1] == "." else (f".{extra}" if extra else "", "")
    return f"{head}{second} %r{part}, %a{parts[0]}, %b{parts[1]}{', %c' if extra else ''};"


@pytest.mark.parametrize("name", ["vadd", "vsub", "vabsdiff", "vmin", "vmax"])
def test_scalar_arithmetic(name: str) -> None:
    lines: list[str] = []
    wanted: list[Word] = []
    rng = random.Random(name)
    for types, sat in itertools.product(signs(), (False, True)):
        for extra in ("", "add", "min", "max", rng.choice(PARTS[1:])):
            parts = rng.choice(PARTS), rng.choice(PARTS)
            lines.append(spelled(f"{name}.{'.'.join(types)}{'.sat' * sat}", parts, extra))
            wanted.append(scalar(OPS[name], types, sat, parts, extra))
    check(lines, wanted, words(3))


def test_scalar_shifts() -> None:
    lines: list[str] = []
    wanted: list[Word] = []
    amounts: dict[str, Callable[[int], int]] = {"clamp": lambda b: min(b, 32), "wrap": lambda b: b & 31}
    for (dtype, atype), mode, sat, extra in itertools.product(signs(2), amounts, (False, True), ("", "max", ".h1")):

        def left(a: int, b: int, by: Callable[[int], int] = amounts[mode]) -> int:
            return a << by(b)

        def right(a: int, b: int, by: Callable[[int], int] = amounts[mode]) -> int:
            return a >> by(b)

        for name, op in (("vshl", left), ("vshr", right)):
            lines.append(spelled(f"{name}.{dtype}.{atype}.u32{'.sat' * sat}.{mode}", ("", ".b0"), extra))
            wanted.append(scalar(op, (dtype, atype, "u32"), sat, ("", ".b0"), extra))
    a, b, c = words(3)
    small = [b, b % 34, b % 32, b % 9, b * 0 + 32]
    check(lines, wanted, [np.concatenate([a] * 5), np.concatenate(small), np.concatenate([c] * 5)])


@pytest.mark.parametrize("cmp", CMPS)
def test_scalar_set(cmp: str) -> None:
    lines: list[str] = []
    wanted: list[Word] = []
    parts = (".b1", ".h0")
    for types, extra in itertools.product(signs(2), ("", "add", "min", ".h1")):
        lines.append(spelled(f"vset.{'.'.join(types)}.{cmp}", parts, extra))
        wanted.append(scalar(CMPS[cmp], ("u32", *types), False, parts, extra))
    check(lines, wanted, words(3))


def mad(a: int, b: int, c: int, *, t: tuple[str, ...], minus: tuple[bool, ...], po: bool, down: int,
        sat: bool) -> int:  # fmt: skip
    """``vmad`` as the ISA spells it: complement and one more instead of a minus."""
    product_minus = minus[0] != minus[1]
    signed = "s32" in t[1:] or product_minus or minus[2]
    total, addend, one = field(a, 0, 32, t[1]) * field(b, 0, 32, t[2]), field(c, 0, 32, "s32" if signed else "u32"), 0
    if po:
        one = 1
    elif product_minus:
        total, one = ~total, 1
    elif minus[2]:
        addend, one = ~addend, 1
    result = total + addend + one >> down
    return held(result, "s32" if signed else "u32", 32) if sat else result


def test_scalar_multiply_add() -> None:
    lines: list[str] = []
    wanted: list[Word] = []
    extras = [(True, (False,) * 3)] + [(False, m) for m in ((False,) * 3, (True, False, False), (False, False, True),
                                                             (False, True, False), (True, True, False))]  # fmt: skip
    for t, (po, minus), down, sat in itertools.product(signs(), extras, (0, 7, 15), (False, True)):
        mark = ["-" if m else "" for m in minus]
        head = f"vmad.{'.'.join(t)}{'.po' * po}{'.sat' * sat}{f'.shr{down}' if down else ''}"
        lines.append(f"{head} %r, {mark[0]}%a, {mark[1]}%b, {mark[2]}%c;")
        wanted.append(partial(mad, t=t, minus=minus, po=po, down=down, sat=sat))
    check(lines, wanted, words(3, 40))


def packed(a: int, b: int, c: int, *, name: str, count: int, t: tuple[str, ...], kind: str,
           picks: tuple[str, str, str]) -> int:  # fmt: skip
    """A SIMD video instruction; ``picks`` are the suffixes of d, a and b, all digits of them given."""
    bits, both = 32 // count, b << 32 | a
    mask, of_a, of_b = ([int(digit) for digit in reversed(pick)] for pick in picks)
    result = c
    for k in range(count):
        p, q = field(both, of_a[k] * bits, bits, t[1]), field(both, of_b[k] * bits, bits, t[2])
        value = int(CMPS[name](p, q)) if name in CMPS else OPS[name](p, q)
        value = held(value, t[0], bits) if kind == ".sat" else value
        if k in mask:
            result = result + value if kind == ".add" else merged(result, value, k * bits, bits)
    return result


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", [*OPS, *CMPS])
def test_packed(name: str, count: int) -> None:
    lines: list[str] = []
    wanted: list[Word] = []
    rng = random.Random(name)
    letter = "h" if count == 2 else "b"
    usual = ("10", "10", "32") if count == 2 else ("3210", "3210", "7654")
    masks = ("0", "1", "10") if count == 2 else ("0", "1", "10", "2", "20", "210", "3", "31", "320", "321", "3210")
    for t, kind in itertools.product(signs(), ("", ".sat", ".add")):
        if name in CMPS and (kind == ".sat" or t[0] != "u32"):
            continue
        head = f"vset{count}.{t[1]}.{t[2]}.{name}" if name in CMPS else f"{name}{count}.{'.'.join(t)}"
        picked = ["".join(str(rng.randrange(2 * count)) for _ in range(count)) for _ in range(2)]
        some = (rng.choice(masks), picked[0], picked[1])
        for picks, line in (
            (usual, f"{head}{kind} %r, %a, %b, %c;"),
            (some, f"{head}{kind} %r.{letter}{some[0]}, %a.{letter}{some[1]}, %b.{letter}{some[2]}, %c;"),
        ):
            lines.append(line)
            wanted.append(partial(packed, name=name, count=count, t=t, kind=kind, picks=picks))
    check(lines, wanted, words(3, 40))
