"""What a run launches, argument by argument, and what came of it.

May import ``launch.plan``, ``errors`` and, in this room, ``rows``, ``layout``, ``numbers`` and ``text``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from teenycli.launch.plan import Address, Argument, Buffer, Launch, Plan, TensorMap, Value
from teenycli.report.layout import Cell, Column, Fields, Item, Table
from teenycli.report.numbers import case, count, exact, milliseconds, number, pair, rate, shape, size, triple
from teenycli.report.rows import LaunchRow, RunReport, RunRow
from teenycli.report.text import Line, Span, line, visible

if TYPE_CHECKING:
    from teenycli.tensors.compare import Comparison, Sample, Summary
    from teenycli.tensors.gradients import GradientCheck

_COLUMNS = (
    Column("#", right=True),
    Column("argument"),
    Column("kind"),
    Column("size", right=True),
    Column("offset", right=True),
    Column("value"),
)


def run_page(report: RunReport) -> Iterator[Item]:
    """Every case that was run: its launch table, time, outputs and comparisons."""
    for index, run in enumerate(report.runs):
        if index:
            yield ""
        yield from launch_page(run)
        yield from _time(run, report)
        yield from _outputs(run)
        for one in run.gradients:
            yield ""
            yield Fields(list(_gradient(one)))
    if report.chain:
        yield ""
        yield from _in_order([row for run in report.runs for row in run.launches])


def launch_page(run: RunRow) -> Iterator[Item]:
    """The launch table: geometry, then a line for each argument; and what differs from launch to launch."""
    plan = run.plan
    dims = case({**plan.case, **plan.scalars})
    yield line(Span(visible(plan.op), "title"), Span(f"  {dims}", "dim") if dims else ())
    if not plan.launches:
        yield "  no launches"
        return
    launch = plan.launches[0]
    wires: list[tuple[str, Cell]] = [
        ("wired", f"{visible(name)} = {visible(output)}") for name, output in run.wired.items()
    ]
    variables: list[tuple[str, Cell]] = [
        ("variable", f"{visible(name)} = {visible(init)}") for name, init in run.variables.items()
    ]
    yield Fields([*_geometry(plan, launch, run.shared_static), *variables, *wires])
    yield ""
    yield Table(_COLUMNS, [_argument(argument, plan) for argument in launch.args])
    if len(plan.launches) > 1:
        yield ""
        yield from _differences(run.launches)


def _geometry(plan: Plan, launch: Launch, shared_static: int) -> Iterator[tuple[str, Cell]]:
    yield "kernel", line(Span(visible(launch.entry), "name"), Span(f"  in {visible(plan.ptx)}", "dim"))
    if len(plan.launches) > 1:
        yield "launches", f"{len(plan.launches):,}, one after another; this is the first"
    yield "grid", _meaning(triple(launch.grid), f" = {count(launch.ctas, 'CTA')}")
    threads = f" = {count(launch.threads, 'thread')}, {count(-(-launch.threads // 32), 'warp')} in a CTA"
    yield "block", _meaning(triple(launch.block), f"{threads}; {launch.threads * launch.ctas:,} threads in all")
    if launch.cluster != (1, 1, 1):
        yield "cluster", _meaning(triple(launch.cluster), f" = {count(math.prod(launch.cluster), 'CTA')}")
    shared = [f"{size(n)} {what}" for n, what in ((shared_static, "static"), (launch.shared, "dynamic")) if n]
    yield "shared", _meaning(" + ".join(shared), " memory for each CTA") if shared else "none"
    if launch.cooperative:
        yield "cooperative", "all CTAs are resident at once, for grid-wide barriers"


def _in_order(launches: Sequence[LaunchRow]) -> Iterator[Item]:
    """Every launch of a row of ops."""
    columns = [Column("#", right=True), Column("op"), Column("kernel"), Column("grid"), Column("block")]
    columns.append(Column("time", right=True))
    cells: list[list[Cell]] = [
        [
            str(number),
            Span(visible(row.plan.op), "name"),
            visible(row.launch.entry),
            triple(row.launch.grid),
            triple(row.launch.block),
            "" if row.ms is None else milliseconds(row.ms),
        ]
        for number, row in enumerate(launches)
    ]
    yield line(Span("launches in order", "title"))
    yield Table(tuple(columns), cells)


def _meaning(value: str, meaning: str) -> Line:
    return line(value, Span(meaning, "dim"))


# --- arguments ---------------------------------------------------------------------------------------------------


def _argument(argument: Argument, plan: Plan) -> list[Cell]:
    offset = "" if argument.offset is None else str(argument.offset)
    value = value_line(argument)
    first = argument.fields[0].value if argument.fields else None
    if argument.kind != "struct" and isinstance(first, Address) and first.buffer is not None:
        # Mostly the argument bears its buffer's name, which then need not be said twice.
        pointed = line(value, "  ") if argument.name != first.buffer or first.offset else ()
        value = line(pointed, _buffer(plan.buffer(first.buffer)))
    if argument.hidden:
        value = line(value, Span(" (hidden, added by the compiler)", "dim"))
    name = Span(visible(argument.name), "dim" if argument.hidden else "name")
    return [str(argument.index), name, argument.kind, str(argument.size), offset, value]


def value_line(argument: Argument) -> Line:
    """The value of an argument: a number, ``-> x`` for a pointer, hex for bytes, the fields of a struct."""
    if argument.kind != "struct":
        return line(_value(argument.kind, argument.fields[0].value)) if argument.fields else ()
    fields = [f"+{item.offset} {item.kind} {_value(item.kind, item.value)}" for item in argument.fields]
    return line("{", ", ".join(fields), "}")


#: Figures that tell a value of a short float from its neighbours.
_DIGITS = {"f32": 9, "f16": 5, "bf16": 4}


def _value(kind: str, value: Value) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, TensorMap):
        return _map(value)
    if not isinstance(value, Address):
        if kind == "bool":
            return "true" if value else "false"
        return f"{value:.{_DIGITS[kind]}g}" if kind in _DIGITS else exact(value)
    past = f" + {count(value.offset, 'byte')}" if value.offset else ""
    return "null" if value.buffer is None else f"-> {visible(value.buffer)}{past}"


def _map(of: TensorMap) -> str:
    past = f" + {count(of.address.offset, 'byte')}" if of.address.offset else ""
    apart = f", {' and '.join(f'{stride:,}' for stride in of.strides)} bytes apart" if of.strides else ""
    words = f", swizzle {of.swizzle}" if of.swizzle != "none" else ""
    words += f", interleave {of.interleave}" if of.interleave != "none" else ""
    words += f", every {shape(of.element_strides)}" if set(of.element_strides) != {1} else ""
    words += ", filled with NaN" if of.fill == "nan" else ""
    return f"-> {visible(of.buffer)}{past} as {of.dtype}{shape(of.shape)}{apart}, boxes of {shape(of.box)}{words}"


def _buffer(buffer: Buffer) -> Line:
    _, elems, stride = buffer.rows
    apart = f" in rows of {elems:,}, {stride:,} apart" if buffer.is_padded else ""
    return line(
        f"{buffer.dtype}{shape(buffer.shape)}{apart}", Span(f", {size(buffer.nbytes)}, {_direction(buffer)}", "dim")
    )


def _direction(buffer: Buffer) -> str:
    if buffer.role == "scratch":
        return "scratch"
    if not buffer.is_output:
        return "read"
    return "written" if buffer.role == "output" else "read and written"


def _differences(launches: Sequence[LaunchRow]) -> Iterator[Item]:
    """What is not the same in all launches, a row for each."""
    first = launches[0]
    columns: list[Column] = [Column("launch", right=True)]
    cells: list[list[Cell]] = [[str(row.launch.index)] for row in launches]

    def add(title: str, values: Sequence[Cell], right: bool = False) -> None:
        if any(value != values[0] for value in values):
            columns.append(Column(title, right))
            for row, value in zip(cells, values, strict=True):
                row.append(value)

    add("kernel", [visible(row.launch.entry) for row in launches])
    for key in ("grid", "block", "cluster"):
        add(key, [triple(getattr(row.launch, key)) for row in launches])
    add("shared", [size(row.launch.shared) for row in launches], right=True)
    for index, argument in enumerate(first.launch.args):
        same = all(index < len(row.launch.args) for row in launches)
        add(visible(argument.name), [value_line(row.launch.args[index]) for row in launches] if same else [""])
    add("time", ["" if row.ms is None else milliseconds(row.ms) for row in launches], right=True)
    if len(columns) == 1:
        yield f"  all {len(launches):,} launches are the same"
        return
    yield Table(columns, cells, heads=1)


# --- what came of it ---------------------------------------------------------------------------------------------


def _time(run: RunRow, report: RunReport) -> Iterator[Item]:
    if not run.ms:
        return
    device = f"{report.device} ({report.description})" if report.description else report.device
    total = sum(run.ms)
    launches = f" for {count(len(run.ms), 'launch', 'launches')}" if len(run.ms) > 1 else ""
    compiled = ", compiled before" if report.cached else f", after compiling for {milliseconds(report.compile_ms)}"
    rows: list[tuple[str, Cell]] = [
        ("device", visible(device or "")),
        ("time", _meaning(milliseconds(total) + launches, compiled)),
    ]
    read, written = (sum(part) for part in zip(*(row.traffic for row in run.launches), strict=True))
    speed = rate(read + written, total)
    if speed is not None and read + written:
        moved = f", {size(read)} read and {size(written)} written, each buffer counted once a launch"
        rows.append(("bandwidth", _meaning(speed, moved)))
    yield ""
    yield Fields(rows)


def _outputs(run: RunRow) -> Iterator[Item]:
    summaries = {output.name: output for output in run.outputs}
    comparisons = {one.name: one.comparison for one in run.compared}
    for name in dict.fromkeys([*summaries, *comparisons]):
        summary, comparison = summaries.get(name), comparisons.get(name)
        is_well = (comparison is None or comparison.ok) and not (summary is not None and summary.unwritten)
        if run.brief and is_well:
            continue
        yield ""
        yield Fields(list(_output(name, summary, comparison)))


def _output(name: str, summary: Summary | None, comparison: Comparison | None) -> Iterator[tuple[str, Cell]]:
    about = f"  {summary.dtype}{shape(summary.shape)}" if summary else ""
    yield "output", line(Span(visible(name), "name"), about)
    if summary is not None:
        yield "values", _values(summary)
    # Of integers only the comparison can tell.
    unwritten = max(summary.unwritten if summary else 0, comparison.unwritten if comparison else 0)
    if unwritten:
        words = f"{count(unwritten, 'element')} with the bytes 0xFF from before the launch: no thread wrote there"
        yield "unwritten", line(Span(words, "warn"))
    if comparison is not None:
        yield from _compared(comparison)
    if summary is not None:
        yield "sha256", line(Span(summary.sha256, "dim"))


def _values(output: Summary) -> Line:
    if output.min is None or output.max is None or output.mean is None:
        values = "no finite ones" if output.nan or output.inf else "none"
    else:
        values = f"{number(output.min)} to {number(output.max)}, mean {number(output.mean)}"
    odd = [f"{many:,} {what}" for many, what in ((output.nan, "NaN"), (output.inf, "inf")) if many]
    return line(values, Span(f"; {', '.join(odd)}", "warn") if odd else ())


def _compared(comparison: Comparison) -> Iterator[tuple[str, Cell]]:
    exactly = comparison.rtol == 0 and comparison.atol == 0
    bounds = f"rtol {comparison.rtol:g}, atol {comparison.atol:g}"
    if comparison.ok:
        verdict = "equal to the reference" if exactly else f"within {bounds} of the reference"
        yield "compare", line(Span("ok", "good"), f": all {count(comparison.count, 'element')} {verdict}")
    else:
        verdict = "not equal to the reference" if exactly else f"further than {bounds} from the reference"
        share = f"{comparison.mismatches:,} of {count(comparison.count, 'element')}"
        yield "compare", line(Span("MISMATCH", "bad"), f": {share} {verdict}")
        yield "first", _sample(comparison.first)
    if comparison.worst is not None:
        if comparison.first is None or comparison.worst.index != comparison.first.index:
            yield "worst", _sample(comparison.worst)
        ulps = "" if isinstance(comparison.max_abs, int) else f", {comparison.max_ulp:,} ULP"
        yield "largest", f"difference {number(comparison.max_abs)}, relative {comparison.max_rel:.3g}{ulps}"
    if comparison.zeros_pass:
        yield "caution", line(Span("an output of zeros would pass too: the reference is near zero throughout", "warn"))


def _gradient(one: GradientCheck) -> Iterator[tuple[str, Cell]]:
    probe = one.probe
    yield (
        "gradcheck",
        line(Span(visible(one.name), "name"), Span(f"  central differences, step {probe.step:.3g}", "dim")),
    )
    bounds = f"rtol {probe.rtol:g}, atol {probe.atol:g}"
    if one.ok:
        yield "compare", line(Span("ok", "good"), f": all {count(one.count, 'element')} within {bounds} of them")
    else:
        share = f"{one.mismatches:,} of {count(one.count, 'element')}"
        yield "compare", line(Span("MISMATCH", "bad"), f": {share} further than {bounds} from them")
    analytic, numeric = pair(one.analytic, one.numeric)
    yield "worst", f"at {shape(one.worst)}: analytic {analytic}, numeric {numeric}"


def _sample(sample: Sample | None) -> Line:
    if sample is None:
        return ()
    result, reference = pair(sample.result, sample.reference)
    return line(f"at {shape(sample.index)}: {result}, should be {reference}")
