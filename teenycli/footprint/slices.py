"""The part of a body that says where it reads and writes: addresses, guards and branches, and what they are made of.

May import the rest of ``ptx``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from teenycli.footprint.graph import Graph
from teenycli.footprint.steps import results, step_of
from teenycli.ptx.code import Code, Mem, Op, Reg, Register, Symbol, Vec
from teenycli.ptx.flow import registers_in
from teenycli.ptx.model import Space, Variable

_OWN = frozenset({Space.LOCAL, Space.PARAM})
_JUMPS = frozenset({"bra", "brx", "ret", "exit", "trap", "call"})


class Slice:
    """What of ``code`` is to be run: ``steps`` has the instructions of each block of ``graph``, jumps aside."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.graph = Graph(code)
        spills = _spills(code)
        written = [tuple(results(op)) for op in code.ops]
        self._kept = [_is_root(op) for op in code.ops]
        self._mark(written, spills)
        self.steps = [
            [
                step_of(code.ops[k], written[k])
                for k in range(block.start, block.stop)
                if self._kept[k] and code.ops[k] is not block.branch
            ]
            for block in self.graph.blocks
        ]

    def _mark(self, written: list[tuple[Register, ...]], spills: bool) -> None:
        """Keep every instruction that a kept one needs a register from."""
        makers: dict[Register, list[int]] = defaultdict(list)
        for index, registers in enumerate(written):
            for register in registers:
                makers[register].append(index)
        seen: set[Register] = set()
        waiting = [*_returned(self.code)]
        for op, kept in zip(self.code.ops, self._kept, strict=True):
            if kept:
                waiting += _needs(op, spills)
        while waiting:
            register = waiting.pop()
            if register in seen:
                continue
            seen.add(register)
            for index in makers[register]:
                op = self.code.ops[index]
                self._kept[index] = True
                waiting += _sources(op)


def _is_root(op: Op) -> bool:
    """Whether an instruction is run for its own sake."""
    return op.opcode in _JUMPS or any(isinstance(operand, Mem) for operand in op.operands)


def _needs(op: Op, spills: bool) -> Iterator[Register]:
    """The registers that say where a root reads or writes, or whether it does."""
    if op.guard is not None:
        yield op.guard.register
    if op.call is not None:
        for argument in op.call.args:
            yield from registers_in(argument)
        return
    stored = op.opcode == "st" and (op.mods.get("space") == "param" or (spills and op.mods.get("space") != "global"))
    for index, operand in enumerate(op.operands):
        if isinstance(operand, Mem):
            if isinstance(operand.base, Reg):
                yield operand.base.register
        elif op.opcode not in ("ld", "ldu", "atom", "red", "st") or (stored and index):
            yield from registers_in(operand)  # a branch's index, the size of a copy, a value that will come back


def _returned(code: Code) -> Iterator[Register]:
    """The registers that a function returns."""
    names = {formal.name for formal in code.function.returns if formal.space is Space.REG}
    return (register for register in code.registers if register.name in names)


def _sources(op: Op) -> Iterator[Register]:
    if op.guard is not None:
        yield op.guard.register
    for operand in op.operands[1:]:
        if isinstance(operand, Mem):
            if isinstance(operand.base, Reg):
                yield operand.base.register
        else:
            yield from registers_in(operand)


def _spills(code: Code) -> bool:
    """Whether values may go to memory of the thread's own and come back."""
    local = any(variable.space is Space.LOCAL for variable in code.variables)
    return local or any(_takes_address(op) for op in code.ops)


def _takes_address(op: Op) -> bool:
    """Whether an instruction takes the address of a variable in local or param memory."""
    return op.call is None and any(
        isinstance(item, Symbol) and isinstance(item.target, Variable) and item.target.space in _OWN
        for operand in op.operands
        for item in (operand.items if isinstance(operand, Vec) else (operand,))
    )
