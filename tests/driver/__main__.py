"""``teeny`` in a process with the stand-in driver: ``python -m tests.driver run OP --device cuda``."""

from __future__ import annotations

import sys

from teenycli.cli import main
from tests.driver import engine, standin

if __name__ == "__main__":
    running = engine.start(standin.load())
    sys.exit(main())
