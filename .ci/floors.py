"""Prints pip constraints that hold each dependency of the project at the oldest version it allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def main() -> None:
    """Read pyproject.toml of the folder above this one."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    for requirement in [*project["dependencies"], *(line for extra in extras for line in extra)]:
        match = re.match(r"([\w.-]+)\s*>=\s*([\w.]+)", requirement)
        assert match is not None, requirement
        # "~=" takes the floor's own patch releases, since not every floor was ever uploaded as X.Y.0.
        print(f"{match[1]}~={match[2]}.0" if match[2].count(".") == 1 else f"{match[1]}=={match[2]}")


if __name__ == "__main__":
    main()
