"""Work on vectors that is long: a function of the module, made once, that each instruction of the kind calls.

May import ``lower`` and ``value``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.value import Value, Writer

#: Writes what is to be done with vectors, and gives the results.
Body = Callable[[Writer, list[Value]], list[Value]]


def outlined(x: Lowering, name: str, given: Sequence[Value], results: Sequence[str], body: Body) -> list[Value]:
    """What ``body`` makes of ``given``, vectors of the LLVM types ``results``, by the function ``@teeny.NAME``.

    ``body`` writes it, straight on, when the first call comes.
    """
    w, name = x.w, f"teeny.{name}"
    vectors = [w.vector(value.type) for value in given]
    whole = f"{{ {', '.join(w.vector(type) for type in results)} }}"
    if name not in x.unit.helpers:
        x.unit.helpers[name] = _text(x, name, given, whole, results, body)
    args = ", ".join(f"{kind} {w.lanes(value)}" for kind, value in zip(vectors, given, strict=True))
    answer = w.assign(f"call {whole} @{name}({args})")
    return [
        Value(type, w.assign(f"extractvalue {whole} {answer}, {k}"), False, type == "float")
        for k, type in enumerate(results)
    ]


def _text(x: Lowering, name: str, given: Sequence[Value], whole: str, results: Sequence[str], body: Body) -> str:
    w = Writer(x.unit)
    made = body(w, [Value(value.type, f"%a{k}", False, value.raw) for k, value in enumerate(given)])
    answer = "poison"
    for k, (type, value) in enumerate(zip(results, made, strict=True)):
        assert value.type == type, (name, value)
        answer = w.assign(f"insertvalue {whole} {answer}, {w.vector(type)} {w.lanes(value)}, {k}")
    params = ", ".join(f"{w.vector(value.type)} %a{k}" for k, value in enumerate(given))
    head = f"define internal {whole} @{name}({params}) nounwind #0 {{"
    return "\n".join([head, *w.lines, f"  ret {whole} {answer}", "}\n"])
