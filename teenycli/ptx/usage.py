"""What an entry, and all that it calls, does with each of its parameters, and with each part of one.

Values are followed without regard to order: through registers, memory of the thread and the block, and calls
(``ptx.flow``); ``ptx.roles`` says what instructions take them for. A value that went where it cannot be followed has
*escaped*: of it nothing negative can be said.

May import the rest of ``ptx``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from teenycli.ptx.code import Code
from teenycli.ptx.flow import Flow
from teenycli.ptx.graph import FOREIGN, Token
from teenycli.ptx.model import Variable
from teenycli.ptx.roles import Access, Load, Roles, roles_of

__all__ = ["Access", "Load", "Part", "Usage", "Use", "usage_of", "usages"]


class Use(Struct, frozen=True):
    """What the code does with a value.

    ``loads``: the loads that bring it. ``pointer``: it itself is an address (converted by cvta, in brackets, or the
    only term of a sum that can be the address the others are added to). ``base``: it, of eight bytes, is a term of an
    address, and may be that one. ``address``: it has a part in the making of one, tile coordinates included.
    ``accesses``: what is done to the memory there. ``elements``: what that memory holds, by what becomes of the
    registers: ``f32``, ``s32``, ``u32``, ``ptr``, or ``b32`` where nothing tells. ``as_float``, ``as_integer``: it is
    an operand of an instruction of such a type; ``types`` has these types, integers only where the sign counts.

    Of the value, or what constants alone make of it (``n - 1``): ``bound``: it is compared; ``guard``: such that memory
    is accessed or not; ``loop``: such that a loop goes on. ``divisor`` and ``factor``: something that is no constant is
    divided by it, multiplied with it; ``stride``: such that the product has a part in an address.

    ``stored``: it, or what it has a part in, is written to memory. ``handle``: it is the handle of a texture, surface
    or sampler. ``escaped``: see above.
    """

    loads: tuple[Load, ...] = ()
    pointer: bool = False
    address: bool = False
    as_float: bool = False
    as_integer: bool = False
    escaped: bool = False
    accesses: tuple[Access, ...] = ()
    types: frozenset[str] = frozenset()
    elements: frozenset[str] = frozenset()
    bound: bool = False
    guard: bool = False
    loop: bool = False
    divisor: bool = False
    factor: bool = False
    stride: bool = False
    stored: bool = False
    base: bool = False
    handle: bool = False

    @property
    def unused(self) -> bool:
        """Nothing reads it."""
        return not (self.loads or self.escaped or self.handle)

    @property
    def reads(self) -> bool:
        """Memory is read through it: for certain, where true."""
        return any(access.kind in ("load", "atomic") for access in self.accesses)

    @property
    def writes(self) -> bool:
        """Memory is written through it: for certain, where true."""
        return any(access.kind in ("store", "atomic") for access in self.accesses)

    @property
    def opaque(self) -> bool:
        """Memory may be read or written through it by what is not known here."""
        return self.escaped or any(access.kind == "other" for access in self.accesses)


class Part(Use, frozen=True):
    """``size`` bytes at ``offset`` of the parameter ``param``, which the code loads as one value; the widest, where it
    loads several there. ``loads`` are those of the value itself, even where a wider one brought it: a struct that is
    copied by eight bytes and then read by four is two parts of four."""

    param: int = 0
    offset: int = 0
    size: int = 0


class Usage(Use, frozen=True):
    """What the code does with a parameter, all its parts together.

    ``parts`` are in order of offset. ``tensormap``: its address goes to tensor copies; ``accesses`` then tells what
    these do to the tensor. ``beyond``: a load reaches past its end. ``narrow``: a scalar that is never loaded in its
    whole width.
    """

    parts: tuple[Part, ...] = ()
    tensormap: bool = False
    beyond: bool = False
    narrow: bool = False

    @property
    def unused(self) -> bool:
        """Nothing reads it."""
        return not (self.loads or self.escaped or self.handle or self.tensormap)

    def part(self, offset: int) -> Part | None:
        """The part that begins at ``offset``."""
        return next((part for part in self.parts if part.offset == offset), None)


def usage_of(code: Code) -> tuple[Usage, ...]:
    """The usage of each parameter of ``code``'s function, in order. Parses the functions that it calls; one that cannot
    be parsed counts as unknown."""
    return usages(Flow(code))


def usages(flow: Flow) -> tuple[Usage, ...]:
    """The usage of each parameter of the function that ``flow`` begins with, in order."""
    function = flow.code.function
    roles, whole = roles_of(flow)
    held: list[list[tuple[Token, Roles]]] = [[] for _ in function.params]
    for number, token in enumerate(flow.graph.tokens):
        sliced = number in flow.graph.sliced
        if not sliced:
            roles[number].loads |= {Load(token.offset, token.size, type) for type in flow.loads.get(token, ())}
        if token != FOREIGN and (not sliced or _is_used(roles[number])):
            held[token.param].append((token, roles[number]))
    loads: list[set[Load]] = [set() for _ in held]
    for token, types in flow.loads.items():
        loads[token.param] |= {Load(max(token.offset, 0), token.size, type) for type in types}
    return tuple(
        _usage(param, index, loads[index], held[index], whole.get(index, Roles()), index in flow.lost_params)
        for index, param in enumerate(function.params)
    )


def _is_used(roles: Roles) -> bool:
    """Whether a value of which parts were taken is used as a whole too."""
    return bool(roles.pointer or roles.as_float or roles.as_integer or roles.bound or roles.factor or roles.handle)


def _usage(param: Variable, index: int, loads: set[Load], held: list[tuple[Token, Roles]], own: Roles,
           lost: bool) -> Usage:  # fmt: skip
    """One parameter of its parts, and of what is done to its own memory."""
    indexed = any(token.offset < 0 for token, _ in held)
    offsets = sorted({token.offset for token, _ in held if token.offset >= 0})
    parts = []
    for offset in offsets:
        here = [(token.size, roles) for token, roles in held if token.offset == offset]
        size = max(size for size, _ in here)
        parts.append(Part(**_merged(roles for _, roles in here), param=index, offset=offset, size=size))
    if lost or indexed:
        parts = [Part(**{**_values(part), "escaped": True}) for part in parts]
    merged = _merged([own, *(roles for _, roles in held)])
    merged["loads"] = tuple(sorted(loads))
    merged["escaped"] |= lost or indexed
    widest = max((load.size for load in loads), default=0)
    scalar = not param.dims and param.vector == 1
    return Usage(
        **merged, parts=tuple(parts), tensormap=own.tensormap,
        beyond=any(load.offset + load.size > param.size for load in loads if param.size),
        narrow=bool(scalar and loads and not merged["escaped"] and widest < param.size),
    )  # fmt: skip


def _merged(roles: Iterable[Roles]) -> dict[str, Any]:
    """The fields of a ``Use`` that is all of these."""
    each = list(roles)
    found: dict[str, Any] = {name: any(getattr(r, name) for r in each) for name in _FLAGS}
    found["address"] |= found["pointer"]
    found["loads"] = tuple(sorted(set().union(*(r.loads for r in each))))
    found["accesses"] = tuple(sorted(set().union(*(r.accesses for r in each))))
    found["types"] = frozenset().union(*(r.types for r in each))
    found["elements"] = frozenset().union(*(r.elements for r in each))
    return found


def _values(part: Part) -> dict[str, Any]:
    return {name: getattr(part, name) for name in Part.__struct_fields__}


_FLAGS = [name for name in Use.__struct_fields__ if Use.__annotations__[name] == "bool"]
