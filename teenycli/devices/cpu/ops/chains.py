"""How an address was made: a value of 32 or 64 bits in each lane, extended, scaled, and uniform values added.

Whether lanes lie in a row is asked of that value alone: once for all addresses that come from one index, and with
half as many bits. Vectors of whole addresses are made only where an access goes out of line.

May import ``lower``, ``parts`` and ``value``.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.parts import part_bits, take_part
from teenycli.devices.cpu.value import Value, integer, is_constant


class Chain(Struct, frozen=True):
    """``extend(root) * scale``, and the sum of the uniform values in ``plus``, each times its factor.

    ``extend`` is ``sext`` or ``zext`` for a root of 32 bits, else empty. ``step`` is the guess of how far apart the
    root's lanes lie.
    """

    root: Value
    extend: str
    scale: int
    plus: tuple[tuple[Value, int], ...]
    step: int

    def lanes(self, x: Lowering) -> str:
        """The whole addresses of all lanes, made anew."""
        return x.w.lanes(self._rest(x, self.root))

    def without(self, term: Value) -> Chain:
        """The chain less one of the terms that count once."""
        return replace(self, plus=tuple(pair for pair in self.plus if pair != (term, 1)))

    def first(self, x: Lowering, root: str) -> str:
        """The address of a part's first lane, an i64, given the root's value there."""
        return self._rest(x, Value(self.root.type, root, True)).text

    def test(self, x: Lowering, part: int) -> tuple[str, str]:
        """Whether the active lanes of a part lie as guessed (an i1), and the root's value in its first lane."""
        w, g = x.w, x.unit.group
        key = (self.root.text, self.extend, self.step, part)
        if key not in x.rows:
            kind = self.root.type
            mine = take_part(x, w.lanes(self.root), kind, part)
            first = w.assign(f"extractelement <{g} x {kind}> {mine}, i32 0")
            x.rows[key] = self._in_row(x, mine, first, part), first
        return x.rows[key]

    def _in_row(self, x: Lowering, mine: str, first: str, part: int) -> str:
        w, g, kind = x.w, x.unit.group, self.root.type
        wanted = part_bits(x, x.bits_of(x.active), part)
        expected = w.splat(kind, first, g)
        if self.step:
            iota = ", ".join(f"{kind} {k * self.step}" for k in range(g))
            expected = w.assign(f"add <{g} x {kind}> {expected}, <{iota}>")
        same = w.assign(f"icmp eq <{g} x {kind}> {mine}, {expected}")
        equal = w.assign(f"bitcast <{g} x i1> {same} to i{g}")
        hit = w.assign(f"and i{g} {equal}, {wanted}")
        regular = w.assign(f"icmp eq i{g} {hit}, {wanted}")
        if not self.extend or not self.step:
            return regular
        # Past the end of 32 bits the row would go on elsewhere.
        name = f"llvm.{self.extend[0].replace('z', 'u')}add.with.overflow.i32"
        x.unit.declare(name, "{ i32, i1 }", ["i32", "i32"])
        pair = w.assign(f"call {{ i32, i1 }} @{name}(i32 {first}, i32 {(g - 1) * self.step})")
        over = w.assign(f"extractvalue {{ i32, i1 }} {pair}, 1")
        within = w.assign(f"xor i1 {over}, true")
        return w.assign(f"and i1 {regular}, {within}")

    def _rest(self, x: Lowering, value: Value) -> Value:
        """What was done to the root, done to ``value``."""
        w = x.w
        if self.extend:
            value = w.cast(self.extend, value, "i64")
        if self.scale != 1:
            value = w.binary("mul", value, integer("i64", self.scale))
        for term, factor in self.plus:
            value = w.add(value, w.binary("mul", term, integer("i64", factor)) if factor != 1 else term)
        return value


def chain_of(x: Lowering, base: Value, stride: int) -> Chain:
    """The chain that ends in ``base``, an i64, whose lanes are guessed to lie ``stride`` apart."""
    root, scale, plus = base, 1, []
    while (made := x.w.made.get(root.text)) is not None:
        op, value, other = made
        if op == "add" and other is not None:
            plus += [(term, scale) for term in _terms(x, other)]
        elif op in ("mul", "shl") and other is not None and is_constant(other):
            factor = int(other.text) if op == "mul" else 1 << int(other.text)
            if factor <= 0 or stride % (scale * factor):
                break
            scale *= factor
        elif op in ("sext", "zext") and value.type == "i32" and _fits(x, op, stride // scale):
            return Chain(value, op, scale, tuple(plus), stride // scale)
        else:
            break
        root = value
    return Chain(root, "", scale, tuple(plus), stride // scale)


def _terms(x: Lowering, value: Value, depth: int = 4) -> list[Value]:
    """The terms of a uniform sum: a parameter is looked for among them."""
    made = x.w.made.get(value.text) if depth else None
    if made is None or made[0] != "add" or made[2] is None:
        return [value]
    return [*_terms(x, made[1], depth - 1), *_terms(x, made[2], depth - 1)]


def _fits(x: Lowering, extend: str, step: int) -> bool:
    """Whether a row of 32-bit values so far apart can be told from one that wraps."""
    return (0 if extend == "zext" else -(1 << 31)) <= step * (x.unit.group - 1) < 1 << 31
