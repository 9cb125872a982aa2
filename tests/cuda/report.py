"""``cuda-report.json``: what ``pytest -m cuda`` saw on a GPU.

A JSON object: ``date`` (of the end, UTC), ``gpu`` (``product``, ``sm``, ``memory`` in bytes, ``cuda``: the driver's
CUDA version, ``driver``: its own, null where the system does not say), ``python``, ``packages`` (versions, null: not
installed), ``duration_s`` (of the tests), ``passed``, ``failed`` and ``skipped`` (counts), ``failures`` (names),
``skips`` (how many for which reason), and ``differences``: for each output of each op and case the largest ones,
``against`` its reference or the CPU device.
"""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import pytest

from teenycli.devices.cuda.gpu import Gpu
from teenycli.devices.cuda.probe import kernel_module_version
from teenycli.releases import dotted
from tests.commands.teeny import Done

#: Names the file to write; without it, that is FILE in the current folder.
VARIABLE, FILE = "TEENY_CUDA_REPORT", "cuda-report.json"
_PACKAGES = ("teenycli", "cuda-core", "cuda-bindings", "numpy", "ml-dtypes", "llvmlite", "pytest")
_PROPERTY = "differences"
_FIGURES = ("op", "case", "name", "ok", "max_abs", "max_rel", "max_ulp")

#: pytest's fixture of that name: what it is given travels with the test's report.
RecordProperty = Callable[[str, object], None]


def record_differences(record_property: RecordProperty, done: Done, against: str) -> None:
    """Let the report of a test have the comparisons of a ``teeny run --json``, as far as it came."""
    compared = done.json["compare"] if done.out else ()
    record_property(_PROPERTY, [{"against": against, **{key: one[key] for key in _FIGURES}} for one in compared])


class Record:
    """What the reports of a session's tests come to."""

    def __init__(self) -> None:
        #: The GPU that the tests ran on; None as long as none was found.
        self.gpu: Gpu | None = None
        self.duration = 0.0
        self._outcomes: dict[str, str] = {}
        self._reasons: Counter[str] = Counter()
        self._differences: list[Mapping[str, object]] = []

    def add(self, report: pytest.TestReport) -> None:
        """Take in the report of a test's setup, call or teardown; a test that fails in any of them has failed."""
        self.duration += report.duration
        if report.failed:
            self._outcomes[report.nodeid] = "failed"
        elif report.skipped:
            self._outcomes.setdefault(report.nodeid, "skipped")
            self._reasons[_reason(report)] += 1
        elif report.when == "call":
            self._outcomes.setdefault(report.nodeid, "passed")
        if report.when == "call":
            for name, found in report.user_properties:
                if name == _PROPERTY:
                    assert isinstance(found, list)
                    self._differences += found

    @property
    def has_run(self) -> bool:
        """Whether a GPU was there and a test ran on it to its end, good or bad."""
        return self.gpu is not None and not {"passed", "failed"}.isdisjoint(self._outcomes.values())

    def document(self, gpu: Gpu) -> dict[str, object]:
        counts = Counter(self._outcomes.values())
        return {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "gpu": {
                "product": gpu.product,
                "sm": gpu.sm,
                "memory": gpu.memory,
                "cuda": dotted(gpu.cuda),
                "driver": kernel_module_version(),
            },
            "python": platform.python_version(),
            "packages": {name: _version(name) for name in _PACKAGES},
            "duration_s": round(self.duration, 1),
            **{outcome: counts[outcome] for outcome in ("passed", "failed", "skipped")},
            "failures": [name for name, outcome in self._outcomes.items() if outcome == "failed"],
            "skips": [{"reason": reason, "tests": count} for reason, count in self._reasons.most_common()],
            "differences": self._differences,
        }

    def write(self, worker: str | None = None) -> Path | None:
        """Write the file, if anything has run; a worker of pytest-xdist writes one with its name. Raises OSError."""
        if self.gpu is None or not self.has_run:
            return None
        path = Path(os.environ.get(VARIABLE) or FILE)
        if worker is not None:
            path = path.with_stem(f"{path.stem}-{worker}")
        path.write_text(json.dumps(self.document(self.gpu), indent=1) + "\n", "utf-8")
        return path.absolute()


def _reason(report: pytest.TestReport) -> str:
    """Why a test was skipped: pytest gives file, line and ``Skipped: REASON``."""
    told = report.longrepr
    return (told[2] if isinstance(told, tuple) else str(told)).removeprefix("Skipped: ")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
