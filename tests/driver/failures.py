"""Commands run once for each call to the driver that they make, that call failing: ``python -m tests.driver.failures``.

A process that has imported everything and opened nothing forks for each run, so that every run is the first of its
process. Reads scenarios (:class:`Scenario`) from standard input, a JSON array of arrays; writes what came of each run
(:class:`Outcome`) to standard output, a line each.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from typing import IO, NoReturn

from teenycli.cli import run
from tests.driver import engine, standin

#: What a run on cuda imports beside what one on the CPU device does. None of it opens a GPU.
_MODULES = ("cuda.core", "cuda.core._utils.cuda_utils", "cuda.bindings.driver", "teenycli.devices.cuda.device")


@dataclass(frozen=True)
class Scenario:
    """A command line; ``base`` are failures that it is about (``cuMemAlloc:1=2``), ``code`` is what its calls then fail
    with, as ``Standin.fail`` takes it."""

    args: tuple[str, ...]
    code: str
    base: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a run did: ``orders`` failed, of ``calls`` made; ``left`` is what it did not let go of."""

    scenario: Scenario
    orders: str
    exit: int
    out: str
    err: str
    calls: tuple[str, ...]
    left: dict[str, int]


def outcomes(driver: standin.Standin, scenarios: list[Scenario]) -> Iterator[Outcome]:
    """Each scenario as it is; with each call failing, of functions that no scenario before it has called; and with
    each function failing that is called only because another has failed."""
    known: set[str] = set()
    for scenario in scenarios:
        sound = forked(driver, scenario, scenario.base)
        yield sound
        fresh = set(sound.calls) - known
        known |= fresh
        for name, nth in numbered(sound.calls):
            if name in fresh:
                order = f"{scenario.base},{name}:{nth}={scenario.code}".removeprefix(",")
                failed = forked(driver, scenario, order)
                yield failed
                for later in sorted(set(failed.calls) - known):
                    known.add(later)
                    yield forked(driver, scenario, f"{order},{later}:1={scenario.code}")


def numbered(calls: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Each call, and the how manieth of its function it is."""
    seen: Counter[str] = Counter()
    for name in calls:
        seen[name] += 1
        yield name, seen[name]


def forked(driver: standin.Standin, scenario: Scenario, orders: str) -> Outcome:
    """Run the command in a child of this process."""
    with ExitStack() as held:
        out, err, told = (held.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            _run_and_tell(driver, scenario.args, orders, told)
        _, status = os.waitpid(child, 0)
        said, complaint = _text(out), _text(err)
        if status:
            raise RuntimeError(f"{scenario.args} with {orders!r} ended its process ({status}):\n{complaint}")
        code, calls, left = json.loads(_text(told))
    return Outcome(scenario, orders, code, said, complaint, tuple(calls), left)


def _run_and_tell(driver: standin.Standin, args: tuple[str, ...], orders: str, told: IO[str]) -> NoReturn:
    """In the child: leaves without what ends a process in order, which is the parent's to do."""
    status = 1
    try:
        driver.fail(orders)
        code = run([*args, "--device", "cuda"])
        left = {word: count for word, count in driver.counts().items() if count}
        json.dump([int(code), driver.calls(), left], told)
        for stream in (told, sys.stdout, sys.stderr):
            stream.flush()
        status = 0
    finally:
        os._exit(status)


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def main() -> None:
    scenarios = [Scenario(tuple(args), *rest) for args, *rest in json.load(sys.stdin)]
    driver = standin.load()
    running = engine.start(driver)
    for name in _MODULES:
        importlib.import_module(name)
    for args in {scenario.args: None for scenario in scenarios}:
        with redirect_stdout(StringIO()):  # all else is imported by this, and compiled
            run([*args, "--device", "cpu"])
    for outcome in outcomes(running.standin, scenarios):
        print(json.dumps(asdict(outcome)), flush=True)


if __name__ == "__main__":
    main()
