"""Memory of a module's ``.global`` and ``.const`` variables, with their initialisers (PTX ISA, "Initializers").

May import ``faults``, ``layout``, ``memory``, ``ptx.model``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from teenycli.devices.cpu.faults import Region
from teenycli.devices.cpu.layout import ID_SHIFT
from teenycli.devices.cpu.memory import Bytes, aligned_bytes
from teenycli.devices.cpu.unsupported import unsupported
from teenycli.ptx.model import TYPE_SIZES, Init, Module, Source, Space, SymbolInit, Variable


class Held:
    """The variables of the modules that were loaded on a device: memory that all kernels of a module share, and what
    it holds at first.

    A variable whose initialiser has addresses is each kernel's own: kernels number variables for themselves.
    """

    def __init__(self) -> None:
        #: By module, and the variable's name, and the entry where it is an entry's own.
        self._memory: dict[Source, dict[tuple[str, str], tuple[Bytes, Bytes]]] = {}

    def take(
        self, module: Module, entry: str, numbers: Mapping[str, int], functions: Mapping[str, int]
    ) -> dict[int, tuple[Region, Bytes]]:
        """The variables of a kernel, as :func:`allocate` gives them."""
        known = self._memory.setdefault(module.source, {})
        own = {variable.name for variable in module.variables if has_symbols(variable.init)}
        made = allocate(module, numbers, functions)
        for name, number in numbers.items():
            region, data = made[number]
            key = name, entry if name in own else ""
            if name in own or key not in known:
                known[key] = data, data.copy()
            made[number] = region, known[key][0]
        return made

    def reset(self, module: Module) -> None:
        for data, first in self._memory.get(module.source, {}).values():
            data[:] = first


def has_symbols(init: Init | None) -> bool:
    """Whether an initialiser has addresses in it."""
    return any(map(has_symbols, init)) if isinstance(init, tuple) else isinstance(init, SymbolInit)


def allocate(
    module: Module, numbers: Mapping[str, int], functions: Mapping[str, int]
) -> dict[int, tuple[Region, Bytes]]:
    """Each variable's memory by its id, initialised; ``numbers`` are the ids by name, ``functions`` addresses."""
    symbols = {name: number << ID_SHIFT for name, number in numbers.items()}
    for function in module.functions:
        name = module.aliases.get(function.name, function.name)
        if name in functions:
            symbols[function.name] = functions[name]
    known = {v.name: v for v in module.variables if v.linking != "extern" or v.name not in numbers}
    known |= {v.name: v for v in module.variables if v.linking != "extern"}
    held = {}
    for name, number in numbers.items():
        variable = known[name]
        data = aligned_bytes(max(variable.size, 1))
        for offset, raw in _pieces(module, variable, symbols):
            data[offset : offset + len(raw)] = np.frombuffer(raw, np.uint8)
        region = Region(f"variable '{name}'", variable.size, writable=variable.space is not Space.CONST)
        held[number] = (region, data)
    return held


def _pieces(module: Module, variable: Variable, symbols: Mapping[str, int]) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each element of the initialiser; the rest of the variable is zero."""
    size = TYPE_SIZES[variable.type]
    strides = _strides(variable, size)

    def walk(init: Init, depth: int, offset: int) -> Iterator[tuple[int, bytes]]:
        if isinstance(init, tuple):
            step = strides[depth] if depth < len(strides) else size
            for k, item in enumerate(init):
                yield from walk(item, depth + 1, offset + k * step)
        else:
            yield offset, _encode(module, init, size, symbols)

    if variable.init is not None:
        yield from walk(variable.init, 0, 0)


def _strides(variable: Variable, size: int) -> list[int]:
    """Bytes from one element to the next, by depth of nesting."""
    strides = [size * variable.vector]
    for dim in reversed(variable.dims[1:]):
        strides.append(strides[-1] * (dim or 1))
    strides.reverse()
    return strides if variable.dims else []


def _encode(module: Module, init: int | SymbolInit, size: int, symbols: Mapping[str, int]) -> bytes:
    value = init if isinstance(init, int) else _address(module, init, symbols)
    return (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def _address(module: Module, init: SymbolInit, symbols: Mapping[str, int]) -> int:
    start = symbols.get(init.name)
    if start is None:
        raise unsupported(module, f"the address of '{init.name}' in an initialiser", None)
    address = start + init.offset
    if init.mask is not None:
        shift = (init.mask & -init.mask).bit_length() - 1
        return (address & init.mask) >> shift
    return address
