"""What became of the mutants, as text: by op, by kind, and one by one where nobody reports them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from tests.mutants.judges import Result

COLUMNS = (
    "mutants",
    "equivalent",
    "unrun",
    "changed",
    "static",
    "probe",
    "survived",
    "alike",
    "static %",
    "% but alike",
)


#: The buffer that a verdict is about.
_NAMED = re.compile(r"'[^']*' (is )?")


def static_rate(results: Sequence[Result], but_alike: bool = False) -> float:
    """Share of the mutants known to compute something else which the static rules report; 1 where there are none.

    ``but_alike`` leaves out those that exchange arguments which the code uses alike.
    """
    changed = [r for r in results if r.counts and not (but_alike and r.alike)]
    return sum(r.outcome == "static" for r in changed) / len(changed) if changed else 1.0


def page(results: Sequence[Result]) -> Iterator[str]:
    """All of it, line by line."""
    yield from _table("op", results, lambda r: r.mutant.op)
    yield ""
    yield from _table("kind", results, lambda r: r.mutant.kind)
    yield ""
    equivalent = Counter(r.verdict.why for r in results if not r.verdict.changes)
    yield "equivalent: " + (", ".join(f"{count} {why}" for why, count in equivalent.most_common()) or "none")
    unrun = [r for r in results if not r.verdict.ran]
    reported = Counter(r.outcome for r in unrun)
    yield (
        f"unrun, since the CPU device lacks an instruction: {len(unrun)}, of which {reported['static']} static, "
        f"{reported['probe']} probe"
    )
    yield ""
    yield from _misses(results)


def _table(what: str, results: Sequence[Result], key: Callable[[Result], str]) -> Iterator[str]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    rows = [(what, *COLUMNS), *(_row(name, group) for name, group in groups.items()), _row("all", results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        line = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))]
        yield "  ".join(line)


def _row(name: str, results: Sequence[Result]) -> tuple[str, ...]:
    changed = [r for r in results if r.counts]
    outcomes = Counter(r.outcome for r in changed)
    equivalent = sum(not r.verdict.changes for r in results)
    unrun = sum(not r.verdict.ran for r in results)
    counts = [
        len(results), equivalent, unrun, len(changed), outcomes["static"], outcomes["probe"], outcomes["survived"],
        sum(r.alike for r in changed),
    ]  # fmt: skip
    rates = [f"{100 * static_rate(results, but_alike):.1f}" for but_alike in (False, True)]
    return name, *map(str, counts), *rates


def _misses(results: Sequence[Result]) -> Iterator[str]:
    """What static rules miss, by form, and each with who else reports it."""
    missed = [r for r in results if r.missed]
    yield f"{len(missed)} that static rules miss"
    forms: dict[str, list[Result]] = {}
    for result in missed:
        forms.setdefault(result.mutant.edit.form, []).append(result)
    for form, group in sorted(forms.items(), key=lambda item: -len(item[1])):
        symptoms = Counter(_NAMED.sub("", r.verdict.why) for r in group)
        symptoms["of arguments that the code uses alike"] = sum(r.alike for r in group)
        yield ""
        yield f"{form}: {len(group)}; " + ", ".join(f"{n} {what}" for what, n in symptoms.most_common() if n)
        for result in group:
            tail = f"probe: {result.probe}" if result.probe else result.outcome.upper()
            yield f"  {result.mutant}  [{result.verdict.why}; {tail}{'; alike' if result.alike else ''}]"


def against(results: Sequence[Result], listed: Mapping[str, Mapping[str, str]]) -> tuple[list[str], list[str]]:
    """Survivors that are not listed, and those listed that did not survive; ``listed`` has reasons by op and change."""
    survivors = {str(r.mutant) for r in results if r.outcome == "survived"}
    known = {f"{op}: {what}" for op, reasons in listed.items() for what in reasons}
    looked_at = {str(r.mutant) for r in results}
    ops = {r.mutant.op for r in results}
    gone = {name for name in known - survivors if name in looked_at or name.split(":")[0] not in ops}
    return sorted(survivors - known), sorted(gone)
