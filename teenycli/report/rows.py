"""What the tables and documents are made from: plain data that commands gather.

May import ``errors`` and, for types, ``launch.plan``, ``ptx`` and ``tensors``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from teenycli.errors import Finding

if TYPE_CHECKING:
    from teenycli.launch.plan import Launch, Plan
    from teenycli.ptx.layout import Slot
    from teenycli.ptx.metadata import Metadata
    from teenycli.ptx.model import Function, Module
    from teenycli.ptx.usage import Usage
    from teenycli.tensors.compare import Comparison, Summary
    from teenycli.tensors.gradients import GradientCheck


# --- entries -----------------------------------------------------------------------------------------------------


class Body(Struct, frozen=True):
    """What reading a body told: instructions by tier, and registers by type."""

    tiers: Mapping[int, int]
    registers: Mapping[str, int]


class EntryRow(Struct, frozen=True):
    """An entry: its parameters laid out, the last ``hidden`` of them appended by the compiler.

    ``usages`` has one for each parameter, and ``body`` is there, when bodies were read.
    """

    entry: Function
    slots: tuple[Slot, ...]
    hidden: int
    metadata: Metadata
    shared_static: int
    shared_dynamic: bool
    demangled: str | None = None
    usages: tuple[Usage, ...] | None = None
    body: Body | None = None

    def is_hidden(self, index: int) -> bool:
        return index >= len(self.slots) - self.hidden


class FileRow(Struct, frozen=True):
    """A file of PTX: its outline (None when it could not be read, which ``error`` explains) and its entries.

    ``sm`` is the architecture that offsets are of.
    """

    file: str
    module: Module | None = None
    sm: int | None = None
    entries: tuple[EntryRow, ...] = ()
    error: Finding | None = None


# --- check -------------------------------------------------------------------------------------------------------


class CheckRow(Struct, frozen=True):
    """What the rules found in one case of an op; ``error`` is what kept them from looking.

    ``ignored`` are the findings that the op ignores, each with the reason.
    """

    op: str
    case: Mapping[str, int | float]
    findings: tuple[Finding, ...] = ()
    error: Finding | None = None
    ignored: tuple[tuple[Finding, str], ...] = ()


# --- run ---------------------------------------------------------------------------------------------------------


class LaunchRow(Struct, frozen=True):
    """A launch of a plan: what it took in milliseconds, None when it was not run."""

    plan: Plan
    launch: Launch
    ms: float | None = None

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes that the launch must read and must write: each buffer that an argument points to counts once.

        Inputs and params are read, outputs are written, an output in place is both. Scratch memory is left out, since
        nothing tells how much of it a kernel uses.
        """
        read = written = 0
        addresses = (item.value for argument in self.launch.args for item in argument.fields)
        # Not isinstance: a plan's classes are imported for their types alone.
        names = dict.fromkeys(getattr(address, "buffer", None) for address in addresses)
        for name in filter(None, names):
            buffer = self.plan.buffer(name)
            read += buffer.nbytes if buffer.role in ("input", "param") else 0
            written += buffer.nbytes if buffer.is_output else 0
        return read, written


class Compared(Struct, frozen=True):
    """An output beside its reference."""

    name: str
    comparison: Comparison


class RunRow(Struct, frozen=True):
    """One case of an op as it was run: a time in milliseconds for each launch of its plan (none when not run).

    In a row of ops, ``wired`` says which output (``OP.NAME``) each wired buffer is, and ``brief`` leaves outputs that
    are as they should be out of the table. ``variables`` are those of the PTX that were set, and what to.
    """

    plan: Plan
    ms: tuple[float, ...] = ()
    shared_static: int = 0
    outputs: tuple[Summary, ...] = ()
    compared: tuple[Compared, ...] = ()
    gradients: tuple[GradientCheck, ...] = ()
    wired: Mapping[str, str] = field(default_factory=dict)
    brief: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def launches(self) -> tuple[LaunchRow, ...]:
        times = self.ms or (None,) * len(self.plan.launches)
        return tuple(LaunchRow(self.plan, launch, ms) for launch, ms in zip(self.plan.launches, times, strict=True))


class RunReport(Struct, frozen=True):
    """All that a run did. ``description`` is the device's hardware in words; ``error`` is what ended the run early, in
    its last case, or before a device was chosen (None). ``findings`` are what was found before the launches, what the
    device had to say, and what the outputs showed to be wrong. In a ``chain`` the runs are ops in a row."""

    device: str | None = None
    description: str = ""
    compile_ms: float = 0.0
    cached: bool = False
    runs: tuple[RunRow, ...] = ()
    error: Finding | None = None
    findings: tuple[Finding, ...] = ()
    chain: bool = False
