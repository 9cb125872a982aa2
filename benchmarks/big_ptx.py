"""Writes a large legal PTX file, the same one everywhere, without a compiler.

    python benchmarks/big_ptx.py OUT.ptx [--entries N]

678 entries of some 1,400 lines make 28 MB and nearly a million lines, which is what nvcc writes for a file of templates
over types, tiles and operations. Every entry is the body of a kernel from the corpus, again and again, each time in a
block of its own, under new names: parameters, labels, and variables declared in the body get suffixes of their own.

Imports the standard library alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "tests" / "corpus" / "nvcc"
SOURCES = (
    "loops.ptx",
    "float_functions.ptx",
    "warp_operations.sm_80.ptx",
    "half_arithmetic.sm_80.ptx",
    "tensor_cores.sm_80.ptx",
    "simd_video.ptx",
    "switch_table.ptx",
    "memory_hints.ptx",
    "scalar_types.ptx",
    "timing.ptx",
)
ENTRIES = 678
LINES = 1500  # of an entry, at the most, without its parameters: copies are whole, so most have less
HEAD = "//\n// Bodies of tests/corpus/nvcc under new names\n//\n\n.version 9.0\n.target sm_80\n.address_size 64\n\n"

_ENTRY = re.compile(r"^\.visible \.entry (\w+)\(\n?(.*?)\n?\)\n\{\n(.*?)^\tret;\n\n\}\n", re.MULTILINE | re.DOTALL)
_DECLARED = re.compile(r"^\t\.(?:local|shared) .*?([\w$]+)(?:\[\d+\])?;", re.MULTILINE)
_LABEL = re.compile(r"^[ \t]*(\$\w+):", re.MULTILINE)
_PARAM = re.compile(r"(\w+)(?:\[\d+\])?,?$", re.MULTILINE)
_TABLE = re.compile(r"^\.global .*? (\w+)\[\d+\] = .*\n", re.MULTILINE)


@dataclass(frozen=True)
class Body:
    """A kernel cut wherever a name that needs a suffix ends: after a piece of ``params`` and of ``text`` follows the
    suffix of the entry where ``of_entry`` says so (its parameters), else that of the copy (labels, variables)."""

    name: str
    params: tuple[str, ...]
    text: tuple[str, ...]
    of_entry: tuple[bool, ...]

    @property
    def lines(self) -> int:
        return sum(piece.count("\n") for piece in self.text) + 2  # and its braces

    def copy(self, entry: str, copy: str) -> str:
        """The body, its parameters with the suffix ``entry`` and all else with ``copy``."""
        suffixes = [entry if of_entry else copy for of_entry in self.of_entry]
        return "".join(piece + suffix for piece, suffix in zip(self.text, [*suffixes, ""], strict=True))


def bodies() -> Iterator[Body]:
    """The kernels of SOURCES that take parameters, in the order of their files, without the ``ret`` at their end."""
    for source in SOURCES:
        for name, params, text in _ENTRY.findall((CORPUS / source).read_text()):
            if not params:
                continue
            own = {*_PARAM.findall(params)}
            names = own | {*_DECLARED.findall(text), *_LABEL.findall(text)}
            cut = re.compile("|".join(rf"(?<=(?<![\w$]){re.escape(one)})(?![\w$])" for one in sorted(names)))
            pieces = cut.split(text)
            of_entry = tuple(re.search(r"[\w$]+$", piece)[0] in own for piece in pieces[:-1])  # type: ignore[index]
            yield Body(name, tuple(cut.split(params)), tuple(pieces), of_entry)


def tables() -> str:
    """The constant tables of SOURCES that bodies read, each once."""
    found = {}
    for source in SOURCES:
        for match in _TABLE.finditer((CORPUS / source).read_text()):
            found[match[1]] = match[0]
    return "".join(found.values())


def entry(number: int, body: Body) -> str:
    """One entry: its body as often as LINES allow."""
    suffix = f"_{number}"
    blocks = [f"{{\n{body.copy(suffix, f'{suffix}_{at}')}}}\n" for at in range(max(LINES // body.lines, 1))]
    head = f".visible .entry {body.name}{suffix}(\n{suffix.join(body.params)}\n)\n"
    return f"\t// .globl\t{body.name}{suffix}\n{head}{{\n{''.join(blocks)}\tret;\n\n}}\n\n"


def write_big_ptx(path: str | Path, entries: int = ENTRIES) -> None:
    """Writes the file; raises OSError when it cannot."""
    kernels = list(bodies())
    with Path(path).open("w", newline="\n") as out:
        out.write(HEAD + tables() + "\n")
        out.writelines(entry(number, kernels[number % len(kernels)]) for number in range(entries))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Writes a large legal PTX file.")
    parser.add_argument("path", metavar="OUT.ptx", type=Path)
    parser.add_argument("--entries", type=int, default=ENTRIES, metavar="N")
    given = parser.parse_args()
    write_big_ptx(given.path, given.entries)


if __name__ == "__main__":
    main()
