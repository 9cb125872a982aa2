"""Outputs of a pipeline on the device: each stays there until its last reader is done.

May import ``launch.pipeline``, ``launch.plan``, ``devices.base``, ``devices.execute`` and
``devices.releases``.
"""

from __future__ import annotations

from collections.abc import Sequence

from teenycli.devices.base import Device, DeviceBuffer
from teenycli.devices.execute import Lease
from teenycli.devices.releases import Releases
from teenycli.launch.pipeline import Pipeline, Wire, output_of
from teenycli.launch.plan import Plan


class Residents:
    """The outputs that steps to come will read, by step and name. Steps run in order."""

    def __init__(self, pipeline: Pipeline, plans: Sequence[Plan], device: Device) -> None:
        self.pipeline = pipeline
        self.plans = plans
        self.device = device
        self._held: dict[tuple[int, str], DeviceBuffer] = {}

    def lease(self, step: int) -> Lease:
        """What the plan of ``step`` finds on the device, and what it is to leave there.

        An input that the step writes in place, and others read too, is not handed over: it gets a copy of its own.
        """
        plan = self.plans[step]
        wires = [wire for wire in self.pipeline.into(step) if self._is_handed_over(wire, plan)]
        taken = {wire.buffer: self._held[wire.source, wire.output] for wire in wires}
        wanted = {wire.output for wire in self.pipeline.wires if wire.source == step}
        return Lease(taken, frozenset(output_of(plan, name).name for name in wanted))

    def after(self, step: int, lease: Lease) -> None:
        """Take over what the step left, and free what no later step reads."""
        for wire in self.pipeline.wires:
            if wire.source == step:
                buffer = lease.kept[output_of(self.plans[step], wire.output).name]
                self._held[step, wire.output] = buffer
        waiting = {(wire.source, wire.output) for wire in self.pipeline.wires if wire.step > step}
        # An output in place is the buffer of another one.
        alive = {id(buffer) for value, buffer in self._held.items() if value in waiting}
        self._free([buffer for buffer in self._held.values() if id(buffer) not in alive])
        self._held = {value: buffer for value, buffer in self._held.items() if value in waiting}

    def close(self) -> None:
        """Free all that is left."""
        self._free(list(self._held.values()))
        self._held = {}

    def _is_handed_over(self, wire: Wire, plan: Plan) -> bool:
        if plan.buffer(wire.buffer).output is None:
            return True
        value = wire.source, wire.output
        others = [each for each in self.pipeline.wires if each != wire and (each.source, each.output) == value]
        return all(each.step < wire.step for each in others)

    def _free(self, buffers: Sequence[DeviceBuffer]) -> None:
        with Releases() as held:
            for buffer in {id(buffer): buffer for buffer in buffers}.values():
                held.later(self.device.free, buffer)
