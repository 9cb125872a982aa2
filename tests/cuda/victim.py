"""A process of its own for a kernel that ends in a fault, since that ends the GPU's context: its last line is what was
said.

Run as ``python -m tests.cuda.victim NAME``.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cuda.device import CudaDevice
from teenycli.errors import TeenyError
from tests.cuda.kernels import ASSERTS, FOREVER, PRINTS, PRINTS_TEXT, STORE, P, kernel, launch, pointer

_VICTIMS = {
    "out-of-bounds": (STORE, pointer(None, 16)),
    "misaligned": (STORE, pointer("x", 2)),
    "trap": ("trap;", pointer("x")),
    "print": (f"{PRINTS}\ntrap;", pointer("x")),
    "assert": (ASSERTS, pointer("x")),
    "forever": (FOREVER, pointer("x")),
}


def main(name: str) -> None:
    body, argument = _VICTIMS[name]
    said: dict[str, str | int | None] = {}
    with CudaDevice(0) as device:
        buffers: dict[str, DeviceBuffer] = {"x": device.upload("x", np.zeros(64, np.uint8))}
        loaded = device.load(kernel(body, P, head=PRINTS_TEXT), "k")
        try:
            device.prepare(loaded, launch([argument]), buffers)(1.0)
        except TeenyError as error:
            finding = error.finding
            said = {"id": finding.id, "message": finding.message, "note": finding.note, "exit": int(error.exit)}
        try:
            device.download(buffers["x"])
        except TeenyError as error:
            said["after"] = error.finding.id
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1])
