"""``printf`` as device code calls it: a C format and a buffer of arguments into text (C11 7.21.6.1; ``vprintf``).

Imports nothing of ours.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable

_CONVERSION = re.compile(rb"%([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L)?([diouxXeEfFgGaAcsp%])")
_LONG = frozenset({b"l", b"ll", b"j", b"z", b"t"})
_SHORT = {b"h": 16, b"hh": 8}
_BASES = {"o": "o", "x": "x", "X": "X"}


class Arguments:
    """The arguments in memory: each at its natural alignment, as ``va_arg`` promotes them."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        """``read(offset, size)`` gives bytes of the buffer."""
        self._read = read
        self._at = 0

    def take(self, code: str) -> int | float:
        """The next argument, of a ``struct`` code."""
        size = struct.calcsize(code)
        self._at = -(-self._at // size) * size
        raw = self._read(self._at, size)
        self._at += size
        value: int | float = struct.unpack("<" + code, raw)[0]
        return value


def formatted(format: bytes, arguments: Arguments, string: Callable[[int], bytes]) -> tuple[str, int]:
    """The text and the number of arguments used. ``string(address)`` reads a string that ``%s`` points to.

    What is no conversion of C stays as it stands.
    """
    pieces: list[bytes] = []
    used = at = 0
    for match in _CONVERSION.finditer(format):
        pieces.append(format[at : match.start()])
        at = match.end()
        kind = match[5].decode()
        if kind == "%":
            pieces.append(b"%")
            continue
        flags = match[1].decode()
        stars = [g == b"*" for g in (match[2], match[3])]
        width = int(arguments.take("i")) if stars[0] else int(match[2] or 0)
        if width < 0:
            flags, width = flags + "-", -width
        precision = int(arguments.take("i")) if stars[1] else None if match[3] is None else int(match[3] or 0)
        if precision is not None and precision < 0:
            precision = None
        pieces.append(_converted(kind, flags, width, precision, match[4] or b"", arguments, string))
        used += 1 + sum(stars)
    pieces.append(format[at:])
    return b"".join(pieces).decode(errors="replace"), used


def _converted(
    kind: str,
    flags: str,
    width: int,
    precision: int | None,
    length: bytes,
    arguments: Arguments,
    string: Callable[[int], bytes],
) -> bytes:
    if kind == "c":
        return _padded(b"", bytes([int(arguments.take("I")) & 0xFF]), width, flags.replace("0", ""))
    if kind == "s":
        address = int(arguments.take("Q"))
        text = string(address) if address else b"(null)"
        return _padded(b"", text[:precision], width, flags.replace("0", ""))
    if kind == "p":
        address = int(arguments.take("Q"))
        return _padded(b"", f"{address:#x}".encode() if address else b"(nil)", width, flags.replace("0", ""))
    if kind in "diouxX":
        return _integer(kind, flags, width, precision, length, arguments)
    return _float(kind, flags, width, precision, float(arguments.take("d")))


def _integer(kind: str, flags: str, width: int, precision: int | None, length: bytes, arguments: Arguments) -> bytes:
    signed = kind in "di"
    value = int(arguments.take(("q" if signed else "Q") if length in _LONG else "i" if signed else "I"))
    if bits := _SHORT.get(length):
        value &= (1 << bits) - 1
        if signed and value >> bits - 1:
            value -= 1 << bits
    digits = "" if value == 0 and precision == 0 else format(abs(value), _BASES.get(kind, "d"))
    digits = digits.rjust(precision or 0, "0")
    sign = "-" if value < 0 else "+" if signed and "+" in flags else " " if signed and " " in flags else ""
    if "#" in flags and kind in "xX" and value:
        sign = "0" + kind
    if "#" in flags and kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    return _padded(sign.encode(), digits.encode(), width, flags if precision is None else flags.replace("0", ""))


def _float(kind: str, flags: str, width: int, precision: int | None, value: float) -> bytes:
    negative = math.copysign(1, value) < 0
    sign = "-" if negative else "+" if "+" in flags else " " if " " in flags else ""
    size = abs(value)
    if not math.isfinite(size):
        text = "nan" if math.isnan(size) else "inf"
        return _padded(
            sign.encode(), (text.upper() if kind.isupper() else text).encode(), width, flags.replace("0", "")
        )
    if kind in "aA":
        text = _hexadecimal(size, precision)
        sign, text = sign + "0x", text
        if kind == "A":
            sign, text = sign.upper(), text.upper()
    else:
        alternate = "#" if "#" in flags else ""
        text = f"%{alternate}.{6 if precision is None else precision}{kind}" % size
    return _padded(sign.encode(), text.encode(), width, flags)


def _hexadecimal(value: float, precision: int | None) -> str:
    """A finite double of no sign as hexadecimal digits, point and exponent, without ``0x``."""
    if value == 0:
        lead, fraction, exponent = 0, 0, 0
    else:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        lead, fraction, exponent = int(bits >> 52 > 0), bits & (1 << 52) - 1, max(bits >> 52, 1) - 1023
    if precision is None:
        digits = f"{fraction:013x}".rstrip("0")
    else:
        whole = lead << 52 | fraction
        drop = 4 * max(13 - precision, 0)
        rest, whole = whole & (1 << drop) - 1, whole >> drop
        whole += rest > 1 << drop >> 1 or (drop > 0 and rest == 1 << drop - 1 and whole & 1)
        kept = min(precision, 13)
        lead, digits = whole >> 4 * kept, f"{whole & (1 << 4 * kept) - 1:0{kept}x}" if kept else ""
        digits = digits.ljust(precision, "0")
    return f"{lead}{'.' if digits else ''}{digits}p{exponent:+d}"


def _padded(sign: bytes, text: bytes, width: int, flags: str) -> bytes:
    if "-" in flags:
        return (sign + text).ljust(width)
    if "0" in flags:
        return sign + text.rjust(width - len(sign), b"0")
    return (sign + text).rjust(width)
