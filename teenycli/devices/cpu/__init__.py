"""The CPU device: a JIT from PTX to native vector code, checked on every memory access.

``CpuDevice`` implements ``devices.base.Device``; ``supports`` and ``supports_form`` say which instructions it has.
Importing this package imports neither numpy nor llvmlite; making a device does.
"""

from __future__ import annotations

from teenycli.devices.cpu.device import CpuDevice
from teenycli.devices.cpu.registry import supports, supports_form

__all__ = ["CpuDevice", "supports", "supports_form"]
