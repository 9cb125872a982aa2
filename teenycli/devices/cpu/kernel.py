"""From an entry to a kernel that can be launched: program, flow, lowering, object code, and what is kept beside it.

May import the rest of the package below it.
"""

from __future__ import annotations

from msgspec import Struct

from teenycli.devices.cpu import ops
from teenycli.devices.cpu.build import compile_text, machine
from teenycli.devices.cpu.builder import build_program
from teenycli.devices.cpu.control import Control
from teenycli.devices.cpu.driver import driver
from teenycli.devices.cpu.flow import Flow, analyse
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.warp import WARP_WIDE
from teenycli.devices.cpu.program import HEAP, Inst, Program, Site, spelled
from teenycli.devices.cpu.registry import supports
from teenycli.devices.cpu.unsupported import unsupported
from teenycli.devices.cpu.value import Unit
from teenycli.ptx.model import Function, Module


class Image(Struct, frozen=True):
    """A compiled kernel as it is cached: object code and the numbers that a launch needs."""

    code: bytes
    width: int
    suspends: bool
    heap: bool
    spins: bool
    frame_size: int
    local_size: int
    shared_static: int
    dynamic_offset: int
    param_bytes: int
    variables: dict[str, int]
    functions: dict[str, int]
    sites: tuple[Site, ...]


def prepare(module: Module, entry: Function, sm: int) -> Program:
    """The program of an entry, each of its instructions known to be supported."""
    ops.load()
    return build_program(module, entry, sm)


class Lowered(Struct, frozen=True):
    """A program as LLVM text: its functions, ``lines`` of them the kernel's own, and what an ``Image`` says of it."""

    unit: Unit
    text: str
    lines: int
    suspends: bool
    heap: bool
    spins: bool
    frame_size: int


def lower(program: Program) -> Lowered:
    """Translate a program. Raises TeenyError ``unsupported-instruction``."""
    flow = analyse(program)
    check_supported(program, flow)
    here = machine()
    unit = Unit(32 if _needs_warps(flow) else here.group, here.group, masked=here.masked)
    x = Lowering(program, flow, unit)
    warp = Control(x).function()
    heap = not HEAP.isdisjoint(program.services)
    if heap:  # the table of addresses changes while the kernel runs
        warp = warp.replace(", !invariant.load !2", "")
    frame_size = x.frame_size if x.suspends or x.in_frame else 0
    run = driver(unit, suspends=x.suspends, clusters=_waits_for_cluster(flow), frame_size=frame_size)
    spins = any(block.spins for block in flow.blocks)
    return Lowered(unit, f"{warp}\n{run}", warp.count("\n"), x.suspends, heap, spins, frame_size)


def build(program: Program) -> Image:
    """Compile a program."""
    lowered = lower(program)
    return Image(
        compile_text(lowered.unit, lowered.text, lowered.lines),
        lowered.unit.width,
        lowered.suspends,
        lowered.heap,
        lowered.spins,
        lowered.frame_size,
        program.local_size,
        program.shared_static,
        program.dynamic_offset,
        program.param_bytes,
        {variable.name: number for number, variable in program.variables.items()},
        program.functions,
        tuple(program.sites),
    )


def check_supported(program: Program, flow: Flow) -> None:
    """Raise TeenyError ``unsupported-instruction`` at the first instruction without a lowering."""
    for block in flow.blocks:
        for step in (*block.steps, block.last):
            if isinstance(step, Inst) and not supports(step.op):
                raise unsupported(program.module, f"'{spelled(step.op)}'", step.op)


def _waits_for_cluster(flow: Flow) -> bool:
    return any(block.kind == "suspend" and block.last and "cluster" in block.last.op.mods for block in flow.blocks)


def _needs_warps(flow: Flow) -> bool:
    """Whether an instruction needs all 32 lanes of a warp in one vector."""
    for block in flow.blocks:
        for step in (*block.steps, block.last):
            if not isinstance(step, Inst):
                continue
            mods = step.op.mods
            if step.op.opcode in WARP_WIDE or "warp" in mods:
                return True
            if mods.get("sem") == "volatile" and mods.get("space", "").startswith("shared"):
                return True
    return False
