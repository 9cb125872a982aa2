"""What is in a fatbin: PTX and machine code for several architectures, one after the other.

May import ``errors``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from msgspec import Struct

from teenycli.errors import Place, TeenyError

MAGIC = b"\x50\xed\x55\xba"
_PTX, _CUBIN = 1, 2


class Part(Struct, frozen=True):
    """PTX or machine code for the architecture ``sm``; ``packed`` when it is compressed, and then no use here."""

    is_ptx: bool
    sm: int
    packed: bool
    data: bytes

    def __str__(self) -> str:
        return f"{'PTX' if self.is_ptx else 'machine code'} for sm_{self.sm}{', compressed' if self.packed else ''}"


def choose(data: bytes, where: Place) -> Part:
    """The part of a fatbin that stands for it: its PTX, the newest where there are several, else its machine code, if
    that is for one architecture.

    Raises TeenyError ``not-ptx`` where nothing can be chosen, with what there is.
    """
    try:
        parts = list(_parts(data))
    except struct.error:
        raise TeenyError("not-ptx", "this fatbin is cut off, or damaged", where=where) from None
    readable = [part for part in parts if not part.packed]
    texts = sorted((part for part in readable if part.is_ptx), key=lambda part: part.sm)
    codes = [part for part in readable if not part.is_ptx]
    if texts:
        return texts[-1]
    if len(codes) == 1:
        return codes[0]
    have = "; ".join(map(str, parts)) or "nothing"
    hint = "take the one for your GPU out: cuobjdump -xelf all FILE"
    if any(part.packed for part in parts):
        hint = "compile it with nvcc --compress-mode=none, or take a part out: cuobjdump -xptx all FILE, or -xelf all"
    message = f"this fatbin has no PTX that can be read, and not one machine code; there is {have}"
    raise TeenyError("not-ptx", message, where=where, hint=hint)


def _parts(data: bytes) -> Iterator[Part]:
    """Each container begins with a header of 16 bytes, and each part with one that says its own length."""
    at = 0
    while data[at : at + 4] == MAGIC:
        _, _, header, size = struct.unpack_from("<IHHQ", data, at)
        at, end = at + header, at + header + size
        while at < end:
            kind, _, length, nbytes, packed = struct.unpack_from("<HHIQI", data, at)
            sm = struct.unpack_from("<I", data, at + 28)[0]
            if kind in (_PTX, _CUBIN):
                start = at + length
                yield Part(kind == _PTX, sm, packed != 0, data[start : start + nbytes])
            if length + nbytes == 0:
                return
            at += length + nbytes
