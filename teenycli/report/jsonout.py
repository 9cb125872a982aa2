"""The documents of ``--json``. Keys, once out, stay; new ones may come.

May import what ``rows`` imports; neither rich nor numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from teenycli.errors import Finding
    from teenycli.launch.plan import Argument, Value
    from teenycli.ptx.usage import Usage, Use
    from teenycli.report.rows import CheckRow, EntryRow, FileRow, LaunchRow, RunReport, RunRow
    from teenycli.tensors.compare import Comparison, Summary
    from teenycli.tensors.gradients import GradientCheck

Json = dict[str, Any]

_ROLES = ("bound", "guard", "loop", "divisor", "factor", "stride", "stored", "base", "handle")


def finite(value: float | None) -> float | str | None:
    """A number for JSON: one that is not finite as "nan", "inf" or "-inf", since JSON has no other way."""
    return value if value is None or isinstance(value, int) or math.isfinite(value) else str(float(value))


def problem_document(finding: Finding) -> dict[str, str | None]:
    """A finding for JSON: ``id``, ``severity``, ``message``, ``where``, ``hint``, ``note``."""
    return {
        "id": finding.id,
        "severity": str(finding.severity),
        "message": finding.message,
        "where": str(finding.where) if finding.where is not None else None,
        "hint": finding.hint,
        "note": finding.note,
    }


def entries_document(files: Iterable[FileRow]) -> list[Json]:
    """The document of ``teeny entries --json``: one object a file."""
    return [_file(row) for row in files]


def _file(row: FileRow) -> Json:
    module = row.module
    return {
        "file": row.file,
        "version": f"{module.version[0]}.{module.version[1]}" if module and module.source.image is None else None,
        "target": module.target if module else None,
        "address_size": module.address_size if module else None,
        "sm": row.sm,
        "error": problem_document(row.error) if row.error else None,
        "entries": [_entry(entry) for entry in row.entries],
    }


def _entry(row: EntryRow) -> Json:
    said = row.entry.directives
    document: Json = {
        "name": row.entry.name,
        "demangled": row.demangled,
        "line": row.entry.at.line,
        "params": [_param(row, index) for index in range(len(row.slots))],
        "reqntid": said.reqntid,
        "maxntid": said.maxntid,
        "minnctapersm": said.minnctapersm,
        "maxnreg": said.maxnreg,
        "cluster": {
            "explicit": said.explicitcluster,
            "required": said.reqnctapercluster,
            "max_rank": said.maxclusterrank,
            "blocks_are_clusters": said.blocksareclusters,
        },
        "shared_static": row.shared_static,
        "shared_dynamic": row.shared_dynamic,
        "metadata": row.metadata.known,
    }
    if row.body is not None:
        document["instructions"] = {str(tier): count for tier, count in sorted(row.body.tiers.items())}
        document["registers"] = dict(row.body.registers)
    return document


def _param(row: EntryRow, index: int) -> Json:
    slot = row.slots[index]
    pointer = slot.param.pointer
    return {
        "index": slot.index,
        "name": slot.param.name,
        "type": slot.param.declared_type,
        "size": slot.size,
        "align": slot.align,
        "offset": slot.offset,
        "pointer": {"space": pointer.space and str(pointer.space), "align": pointer.align} if pointer else None,
        "hidden": row.is_hidden(index),
        "usage": _usage(row.usages[index]) if row.usages is not None else None,
    }


def _usage(usage: Usage) -> Json:
    parts = [{"offset": part.offset, "size": part.size, **_use(part)} for part in usage.parts]
    return {
        "unused": usage.unused,
        **_use(usage),
        "tensormap": usage.tensormap,
        "beyond": usage.beyond,
        "narrow": usage.narrow,
        "parts": parts,
    }


def _use(use: Use) -> Json:
    return {
        "pointer": use.pointer,
        "address": use.address,
        "as_float": use.as_float,
        "as_integer": use.as_integer,
        "escaped": use.escaped,
        "loads": [{"offset": load.offset, "size": load.size, "type": load.type} for load in use.loads],
        "accesses": [
            {"kind": a.kind, "space": a.space, "type": a.type, "count": a.count, "bytes": a.bytes, "opcode": a.opcode}
            for a in use.accesses
        ],
        "types": sorted(use.types),
        "elements": sorted(use.elements),
        **{name: getattr(use, name) for name in _ROLES},
    }


def check_document(rows: Iterable[CheckRow], error: Finding | None = None) -> Json:
    """The document of ``teeny check --json``: one object a case of an op; ``error`` is what kept it from any."""
    return {
        "error": problem_document(error) if error else None,
        "ops": [
            {
                "op": row.op,
                "case": _case(row.case),
                "error": problem_document(row.error) if row.error else None,
                "findings": [problem_document(finding) for finding in row.findings],
                "ignored": [{**problem_document(finding), "reason": reason} for finding, reason in row.ignored],
            }
            for row in rows
        ],
    }


def _case(case: Mapping[str, int | float]) -> Json:
    return {name: finite(value) for name, value in case.items()}


def run_document(report: RunReport) -> Json:
    """The document of ``teeny run --json``: the launches, outputs, comparisons and checked gradients of every
    case, each in one list."""
    return {
        "device": report.device,
        "description": report.description,
        "error": problem_document(report.error) if report.error else None,
        "findings": [problem_document(finding) for finding in report.findings],
        "compile": {"ms": finite(report.compile_ms), "cached": report.cached},
        "ops": [_run(run) for run in report.runs],
        "launches": [_launch(launch, run.shared_static) for run in report.runs for launch in run.launches],
        "outputs": [
            {"op": run.plan.op, "case": _case(run.plan.case), **_summary(output)}
            for run in report.runs
            for output in run.outputs
        ],
        "compare": [
            {"op": run.plan.op, "case": _case(run.plan.case), "name": one.name, **_comparison(one.comparison)}
            for run in report.runs
            for one in run.compared
        ],
        "gradcheck": [
            {"op": run.plan.op, "case": _case(run.plan.case), **_gradient(one)}
            for run in report.runs
            for one in run.gradients
        ],
    }


def _run(run: RunRow) -> Json:
    """An op at one case, in the order they ran: ``ok`` is null without a comparison, ``wired`` names outputs of ops
    before by the buffers that take them, ``variables`` of the PTX are those that were set."""
    verdicts = [one.comparison.ok for one in run.compared]
    return {
        "op": run.plan.op,
        "case": _case(run.plan.case),
        "launches": len(run.plan.launches),
        "ms": finite(sum(run.ms)) if run.ms else None,
        "ok": all(verdicts) if verdicts else None,
        "wired": dict(run.wired),
        "variables": dict(run.variables),
    }


def _launch(row: LaunchRow, shared_static: int) -> Json:
    launch = row.launch
    read, written = row.traffic
    return {
        "op": row.plan.op,
        "case": _case(row.plan.case),
        "entry": launch.entry,
        "index": launch.index,
        "grid": launch.grid,
        "block": launch.block,
        "cluster": launch.cluster,
        "shared": launch.shared,
        "shared_static": shared_static,
        "cooperative": launch.cooperative,
        "args": [_argument(argument) for argument in launch.args],
        "bytes_read": read,
        "bytes_written": written,
        "ms": finite(row.ms),
    }


def _argument(argument: Argument) -> Json:
    return {
        "index": argument.index,
        "name": argument.name,
        "kind": argument.kind,
        "size": argument.size,
        "offset": argument.offset,
        "value": _value(argument),
        "hidden": argument.hidden,
    }


def _value(argument: Argument) -> Any:
    """A number; ``{"buffer", "offset"}`` or null for a pointer, and more for a tensor map; hex for bytes; a list of
    fields for a struct."""
    if argument.kind == "struct":
        return [{"kind": f.kind, "offset": f.offset, "value": _scalar(f.value)} for f in argument.fields]
    return _scalar(argument.fields[0].value) if argument.fields else None


def _scalar(value: Value) -> Any:
    from teenycli.launch.plan import Address, TensorMap

    if isinstance(value, TensorMap):
        return {
            "buffer": value.buffer,
            "offset": value.address.offset,
            "dtype": str(value.dtype),
            "shape": value.shape,
            "strides": value.strides,
            "box": value.box,
            "element_strides": value.element_strides,
            "swizzle": value.swizzle,
            "interleave": value.interleave,
            "fill": value.fill,
        }
    if isinstance(value, Address):
        return None if value.buffer is None else {"buffer": value.buffer, "offset": value.offset}
    return value.hex() if isinstance(value, bytes) else finite(value)


def _summary(output: Summary) -> Json:
    return {
        "name": output.name,
        "dtype": output.dtype,
        "shape": output.shape,
        "min": finite(output.min),
        "max": finite(output.max),
        "mean": finite(output.mean),
        "nan": output.nan,
        "inf": output.inf,
        "unwritten": output.unwritten,
        "sha256": output.sha256,
    }


def _gradient(one: GradientCheck) -> Json:
    return {
        "name": one.name,
        "ok": one.ok,
        "count": one.count,
        "mismatches": one.mismatches,
        "worst": one.worst,
        "analytic": finite(one.analytic),
        "numeric": finite(one.numeric),
        "step": one.probe.step,
        "rtol": finite(one.probe.rtol),
        "atol": finite(one.probe.atol),
    }


def _comparison(one: Comparison) -> Json:
    first, worst = one.first, one.worst
    return {
        "ok": one.ok,
        "count": one.count,
        "mismatches": one.mismatches,
        "max_abs": finite(one.max_abs),
        "max_rel": finite(one.max_rel),
        "max_ulp": one.max_ulp,
        "first": first and first.index,
        "first_result": finite(first.result) if first else None,
        "first_reference": finite(first.reference) if first else None,
        "worst": worst and worst.index,
        "unwritten": one.unwritten,
        "zeros_pass": one.zeros_pass,
        "rtol": finite(one.rtol),
        "atol": finite(one.atol),
    }
