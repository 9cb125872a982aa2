"""Lowerings of instructions, a module per family. Each registers itself with ``registry`` when it is imported.

May import ``registry``, ``lower``, ``value``, ``mathlib``, ``native``, ``program`` and ``ptx.model``.
"""

from __future__ import annotations


def load() -> None:
    """Import every family."""
    from teenycli.devices.cpu.ops import (  # noqa: F401
        addresses,
        async_copies,
        atomics,
        bits,
        calls,
        compare,
        convert,
        fill,
        floats,
        formats,
        integers,
        launch_control,
        matrices,
        memory,
        moves,
        products,
        stochastic,
        sync,
        tiles,
        video,
        warp,
        wgmma,
        wmma,
    )
