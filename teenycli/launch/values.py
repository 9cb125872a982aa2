"""Numbers on their way into a kernel: written by a user, encoded as bytes.

May import ``dtypes``, ``errors`` and, in this room, ``plan``.
"""

from __future__ import annotations

import math
import re

from teenycli.dtypes import DTYPES, Kind
from teenycli.errors import TeenyError
from teenycli.launch.plan import decode_float, encode_scalar

Number = int | float | bool

_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]{1,16}|0[bB][01]{1,64}|[0-9]{1,20})")
_FLOAT = re.compile(r"[+-]?(?:inf|nan|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?)", re.IGNORECASE)


def parse_integer(text: str) -> int | None:
    """``text`` as an integer, in decimal, ``0x`` or ``0b``; None when it is none of up to 64 bits."""
    text = text.strip().replace("_", "")
    if not _INTEGER.fullmatch(text):
        return None
    prefixed = text.lstrip("+-")[:2].lower() in ("0x", "0b")
    return int(text, 0 if prefixed else 10)


def parse_number(text: str) -> Number | None:
    """``text`` as an integer, a float (inf and nan too), true or false; None when it is no number."""
    word = text.strip().lower()
    if word in ("true", "false"):
        return word == "true"
    whole = parse_integer(text)
    if whole is not None:
        return whole
    return float(word) if len(word) <= 400 and _FLOAT.fullmatch(word) else None


def check_scalar(kind: str, value: object, text: str) -> Number:
    """``value`` as the scalar dtype ``kind`` holds it; ``text`` is the expression it came from.

    A float is rounded. Raises TeenyError ``value-out-of-range`` when an integer does not fit or a finite float
    would become infinite, ``bad-argument`` when ``value`` is no number, or no integer where one is wanted.
    """
    if not isinstance(value, int | float):
        raise TeenyError("bad-argument", f"{kind} takes a number, and '{text}' is {describe(value)}")
    if DTYPES[kind].kind is not Kind.FLOAT:
        if isinstance(value, float):
            raise TeenyError(
                "bad-argument", f"{kind} takes an integer, and '{text}' is {value}", hint="use //, or a float kind"
            )
        encode_scalar(kind, value)
        return value
    try:
        rounded = decode_float(kind, encode_scalar(kind, value))
        lost = math.isinf(rounded) and math.isfinite(value)
    except OverflowError:
        rounded, lost = math.inf, True
    if lost:
        raise TeenyError("value-out-of-range", f"'{text}' is {value}, too large for {kind}")
    return value if isinstance(value, int) and value == rounded else rounded


def describe(value: object) -> str:
    """What an expression came to, in a few words."""
    return "several values" if isinstance(value, tuple | list | range) else str(value)
