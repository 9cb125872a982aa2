"""The reader against PTX as compilers write it, and as nobody writes it any more: every committed file parses whole."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from teenycli.ptx import outline, parse_all, read_source
from teenycli.ptx.metadata import Metadata, hidden_count, metadata_of

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parent.parent.parent
CORPUS = ROOT / "tests" / "corpus"
FILES = sorted(path.relative_to(ROOT).as_posix() for top in (ROOT / "ptx", CORPUS) for path in top.rglob("*.ptx"))
NO_ENTRY = {"tests/corpus/handmade/arrays.ptx", "tests/corpus/numba/distance.ptx"}  # variables, a device function
RELEASES = {"3.2": 0, "3.4": 1, "3.6": 2, "3.9": 2}  # hidden parameters by release of Triton
IN_EVERY_RELEASE = ("row_sums", "scale_and_shift", "tile_product")


def release_of(path: Path) -> str:
    """The release of Triton in a file's name, which the newest is left out of."""
    return path.stem.partition(".triton-")[2] or "3.9"


@pytest.mark.parametrize("path", FILES)
def test_parses_whole(path: str) -> None:
    module = outline(read_source(ROOT / path))
    parse_all(module)
    assert bool(module.entries) == (path not in NO_ENTRY)
    # The outline has to find them all, in whatever lines they stand; comments name them only in handmade files.
    if "/handmade/" not in path:
        assert len(module.entries) == (ROOT / path).read_text().count(".entry ")


@pytest.mark.parametrize(
    ("folder", "least"), [("nvcc", 30), ("triton", 40), ("handmade", 20), ("clang", 3), ("numba", 5)]
)
def test_there_are_as_many_as_we_say(folder: str, least: int) -> None:
    """Distinct kernels of Triton, distinct sources of the others: not one of them for several targets or releases."""
    assert len({path.name.split(".")[0] for path in (CORPUS / folder).glob("*.ptx")}) >= least


@pytest.mark.parametrize("source", sorted((CORPUS / "nvcc").glob("*.cu")), ids=lambda path: path.stem)
def test_every_source_is_compiled(source: Path) -> None:
    targets = next((line.split()[2:] for line in source.read_text().splitlines() if line.startswith("// targets:")), [])
    expected = {f"{source.stem}.ptx", *(f"{source.stem}.{target}.ptx" for target in targets[1:])}
    assert {path.name for path in source.parent.glob(f"{source.stem}.*ptx")} == expected


def test_every_triton_kernel_is_compiled() -> None:
    sampled = set()
    for source in (CORPUS / "triton").glob("*.py"):
        functions = [node for node in ast.parse(source.read_text()).body if isinstance(node, ast.FunctionDef)]
        helpers = {"sample", "compose", "square"}
        sampled |= {node.name for node in functions} - helpers
    entries = {
        entry.name
        for path in (CORPUS / "triton").glob("*.ptx")
        for entry in outline(read_source(path)).entries
    }  # fmt: skip
    assert entries == sampled


@pytest.mark.parametrize("path", sorted((CORPUS / "triton").glob("*.ptx")), ids=lambda path: path.stem)
def test_hidden_parameters_of_triton(path: Path) -> None:
    module = outline(read_source(path))
    (entry,) = module.entries
    metadata = metadata_of(module, entry)
    assert metadata.source == str(path.with_suffix(".json"))
    assert metadata.num_warps is not None
    threads = entry.directives.reqntid
    assert threads is not None
    assert threads[0] == 32 * metadata.num_warps
    assert hidden_count(module, entry, metadata) == RELEASES[release_of(path)]


@pytest.mark.parametrize("path", sorted((CORPUS / "triton").glob("*.ptx")), ids=lambda path: path.stem)
def test_hidden_parameters_without_metadata(path: Path) -> None:
    """The text alone tells them, save the global scratch that a kernel with tensor descriptors reads."""
    module = outline(read_source(path))
    (entry,) = module.entries
    scratch = metadata_of(module, entry).global_scratch_size
    expected = RELEASES[release_of(path)] - bool(scratch)
    assert hidden_count(module, entry, Metadata()) == expected


@pytest.mark.parametrize("kernel", IN_EVERY_RELEASE)
@pytest.mark.parametrize("release", RELEASES)
def test_every_release_of_triton_is_there(kernel: str, release: str) -> None:
    suffix = "" if release == "3.9" else f".triton-{release}"
    assert (CORPUS / "triton" / f"{kernel}{suffix}.ptx").is_file()


def test_the_corpus_stays_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 4_000_000
