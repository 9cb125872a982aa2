"""Constants and constant expressions (PTX ISA, "Constants", "Constant Expressions").

Integers are 64-bit and wrap; a literal is signed unless it has the suffix U or does not fit; an operation is
unsigned when an operand is. Floats are doubles, or a single's bits where written ``0f…``.

May import ``ptx.lexer`` and ``ptx.model``.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from functools import lru_cache

from teenycli.ptx.lexer import Cursor
from teenycli.ptx.model import Float, Int

Constant = Int | Float

_MASK = 2**64 - 1

#: Binary operators by precedence, weakest first.
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_DEPTH = 60
_AFTER_LITERAL = frozenset(",;]})")


def wrap(value: int, unsigned: bool) -> Int:
    """``value`` modulo 2^64, as a signed or an unsigned constant."""
    value &= _MASK
    return Int(value if unsigned or value < 2**63 else value - 2**64, unsigned)


def float_value(constant: Constant) -> float:
    """A constant as a Python float."""
    if isinstance(constant, Int):
        return float(constant.value)
    layout = ("<I", "<f") if constant.width == 32 else ("<Q", "<d")
    value: float = struct.unpack(layout[1], struct.pack(layout[0], constant.bits))[0]
    return value


def double(value: float) -> Float:
    """A Python float as a constant."""
    return Float(struct.unpack("<Q", struct.pack("<d", value))[0], 64)


def literal(cursor: Cursor) -> Constant:
    """The number under the cursor. Raises "syntax" for an integer over 64 bits."""
    token = cursor.advance()
    text = token.text
    if token.kind == "FLOAT":
        width = {"0f": 32, "0d": 64}.get(text[:2].lower())
        return double(float(text)) if width is None else Float(int(f"0x{text[2:]}", 0), width)
    # An octal literal may spell a million digits, and is not converted then.
    if len(text) > 70:
        cursor.fail_at(token.start, f"the constant of {len(text.rstrip('U'))} digits does not fit 64 bits")
    found = _spelled(text)
    if found.value > _MASK:
        cursor.fail_at(token.start, f"the constant {text} does not fit 64 bits")
    return found


@lru_cache(maxsize=4096)
def _spelled(text: str) -> Int:
    """An integer as it is written. Most are written many times."""
    digits = text.rstrip("U")
    octal = digits.isdecimal() and len(digits) > 1 and digits[0] == "0"
    value = int(digits, 8) if octal else int(digits, 0)
    return Int(value, unsigned=text.endswith("U") or value >= 2**63)


def expression(cursor: Cursor, depth: int = 0) -> Constant:
    """The constant expression under the cursor, evaluated.

    Raises "syntax" for nesting over 60 levels, a division by zero, an operator on the wrong kind of constant.
    """
    start = cursor.token.start
    if cursor.token.kind in ("INT", "FLOAT"):  # nearly always a lone literal: spare it the ten levels
        value = literal(cursor)
        if cursor.token.kind != "PUNCT" or cursor.token.text in _AFTER_LITERAL:
            return value
        cursor.jump(start)
    condition = _binary(cursor, 0, depth)
    if not cursor.take("?"):
        return condition
    yes = expression(cursor, depth + 1)
    cursor.expect(":", "the first choice of '?'")
    no = expression(cursor, depth + 1)
    return yes if float_value(condition) else no


def integer(cursor: Cursor, what: str) -> int:
    """A constant expression that must be an integer; ``what`` it is, for the message."""
    start = cursor.token.start
    value = expression(cursor)
    if not isinstance(value, Int):
        cursor.fail_at(start, f"{what} must be an integer")
    return value.value


def _binary(cursor: Cursor, level: int, depth: int) -> Constant:
    if level == len(_LEVELS):
        return _unary(cursor, depth)
    left = _binary(cursor, level + 1, depth)
    while cursor.token.kind == "PUNCT" and cursor.token.text in _LEVELS[level]:
        token = cursor.advance()
        left = _apply(cursor, token.text, token.start, left, _binary(cursor, level + 1, depth))
    return left


def _unary(cursor: Cursor, depth: int) -> Constant:
    token = cursor.token
    if depth > _DEPTH:
        cursor.fail_at(token.start, f"the expression is nested over {_DEPTH} levels deep")
    if token.kind in ("INT", "FLOAT"):
        return literal(cursor)
    if token.text == "WARP_SZ":
        cursor.advance()
        return Int(32)
    if cursor.take("("):
        if cursor.token.kind == "DOT":
            return _cast(cursor, depth)
        value = expression(cursor, depth + 1)
        cursor.expect(")", "the expression")
        return value
    if token.kind == "PUNCT" and token.text in ("-", "+", "~", "!"):
        cursor.advance()
        return _negate(cursor, token.text, token.start, _unary(cursor, depth + 1))
    cursor.fail("a constant")


def _cast(cursor: Cursor, depth: int) -> Constant:
    kind = cursor.advance()
    if kind.text not in (".s64", ".u64"):
        cursor.fail_unknown("cast", kind, (".s64", ".u64"))
    cursor.expect(")", "the cast")
    value = _number(_unary(cursor, depth + 1))
    if value != value or value in (float("inf"), float("-inf")):
        cursor.fail_at(kind.start, f"the cast of {value} has no value")
    return wrap(int(value), kind.text == ".u64")


def _negate(cursor: Cursor, op: str, start: int, value: Constant) -> Constant:
    if op == "+":
        return value
    if isinstance(value, Int):
        plain = {"-": -value.value, "~": ~value.value, "!": int(not value.value)}[op]
        return wrap(plain, value.unsigned and op != "!")
    if op != "-":
        cursor.fail_at(start, f"'{op}' needs an integer")
    return Float(value.bits ^ (1 << value.width - 1), value.width)


def _apply(cursor: Cursor, op: str, start: int, left: Constant, right: Constant) -> Constant:
    if op in _COMPARE:
        return Int(int(_COMPARE[op](_number(left), _number(right))))
    if op in ("&&", "||"):
        both = (bool(_number(left)), bool(_number(right)))
        return Int(int(all(both) if op == "&&" else any(both)))
    if isinstance(left, Int) and isinstance(right, Int):
        return _integer_op(cursor, op, start, left, right)
    if op not in ("+", "-", "*", "/"):
        cursor.fail_at(start, f"'{op}' needs integers")
    a, b = float_value(left), float_value(right)
    if op == "/":
        return double(a / b if b else float("nan") if a == 0 or a != a else float("inf") if a > 0 else float("-inf"))
    return double(a + b if op == "+" else a - b if op == "-" else a * b)


def _number(constant: Constant) -> int | float:
    return constant.value if isinstance(constant, Int) else float_value(constant)


def _integer_op(cursor: Cursor, op: str, start: int, left: Int, right: Int) -> Int:
    a, b = left.value, right.value
    unsigned = left.unsigned or right.unsigned
    if unsigned:
        a, b = a & _MASK, b & _MASK
    if op in ("/", "%"):
        if b == 0:
            cursor.fail_at(start, "division by zero in a constant expression")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return wrap(quotient if op == "/" else a - quotient * b, unsigned)
    if op in ("<<", ">>"):
        shift = min(b & _MASK, 64)
        return wrap(left.value << shift if op == "<<" else left.value >> shift, left.unsigned)
    apply: dict[str, Callable[[int, int], int]] = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
        "^": operator.xor,
    }  # fmt: skip
    return wrap(apply[op](a, b), unsigned)
