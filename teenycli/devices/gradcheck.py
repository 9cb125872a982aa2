"""Gradients from a device's backward kernel beside central differences of its forward kernel.

May import ``errors``, ``launch.plan``, ``manifest.spec``, ``ptx.model``, ``tensors``, ``devices.base``,
``devices.execute``, ``devices.variables``, and numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from teenycli.devices.base import Device
from teenycli.devices.execute import Array, execute, load_kernels
from teenycli.devices.variables import Bytes
from teenycli.errors import TeenyError
from teenycli.launch.plan import Buffer, Plan
from teenycli.manifest.spec import OpSpec, grad_name
from teenycli.ptx.model import Module
from teenycli.tensors.gradients import GradientCheck, compare_gradient, probe_of, slope, stepped

#: Most launches of the forward kernel: two runs for each element of each gradient.
LAUNCH_LIMIT = 20_000


class Pair(Struct, frozen=True):
    """The plans of an op's forward and of its backward, at the same dims."""

    spec: OpSpec
    forward: Plan
    backward: Plan

    @property
    def output(self) -> Buffer:
        return next(buffer for buffer in self.forward.buffers if buffer.is_output)

    @property
    def sources(self) -> tuple[tuple[Buffer, Buffer], ...]:
        """Each gradient that the backward writes, with the buffer that it is the gradient of."""
        grads = {buffer.name: buffer for buffer in self.backward.buffers if buffer.is_output}
        each = ((grads.get(grad_name(b.name)), b) for b in self.forward.buffers if b.role in ("input", "param"))
        return tuple((grad, buffer) for grad, buffer in each if grad is not None)


def check_differentiable(pair: Pair) -> None:
    """Raises TeenyError before anything runs: ``gradcheck-dtype`` for buffers without differences,
    ``gradcheck-too-large`` for more launches than ``LAUNCH_LIMIT``."""
    where = pair.spec.origin.place("gradcheck")
    for buffer in (pair.output, *(source for _, source in pair.sources)):
        if not buffer.dtype.is_float:
            message = f"'{buffer.name}' holds {buffer.dtype}, which has no small differences"
            raise TeenyError("gradcheck-dtype", message, where=where)
    elements = sum(source.size for _, source in pair.sources)
    launches = 2 * elements * len(pair.forward.launches)
    if launches > LAUNCH_LIMIT:
        raise TeenyError(
            "gradcheck-too-large",
            f"differences of {elements:,} elements take {launches:,} launches of the forward kernel; at most "
            f"{LAUNCH_LIMIT:,} are made",
            where=where,
            hint="give smaller dims in the op's gradcheck table: gradcheck = { N = 5 }",
        )


def check_gradients(
    pair: Pair,
    module: Module,
    device: Device,
    arrays: Mapping[str, Array],
    grad_output: Array,
    gradients: Mapping[str, Array],
    timeout: float,
    variables: Mapping[str, Bytes] = MappingProxyType({}),
) -> tuple[GradientCheck, ...]:
    """Each of ``gradients`` beside central differences of sum(output * ``grad_output``).

    ``module`` is the forward's; ``arrays`` are what its buffers hold at first, ``variables`` what the module's do.
    Raises what the device raises, and ``gradcheck-step``.
    """
    kernels = load_kernels(pair.forward, module, device)
    table = pair.spec.gradcheck

    def output(changed: dict[str, Array]) -> Array:
        done = execute(
            pair.forward, module, device, {**arrays, **changed}, timeout=timeout, kernels=kernels, variables=variables
        )
        return done.arrays[pair.output.name]

    found = []
    for grad, source in pair.sources:
        probe = probe_of((source.dtype, pair.output.dtype), *(table.get(name) for name in ("step", "rtol", "atol")))
        numeric = np.empty(source.size, np.float64)
        for at in range(source.size):
            low, high, distance = stepped(arrays[source.name], at, source.dtype, probe.step, source.name)
            ends = output({source.name: low}), output({source.name: high})
            numeric[at] = slope(*ends, distance, grad_output)
        found.append(compare_gradient(grad.name, gradients[grad.name], numeric.reshape(source.shape), probe))
    return tuple(found)
