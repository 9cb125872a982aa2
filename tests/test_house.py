"""The house's arrows point down, and what is heavy is imported only where it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parent.parent / "teenycli"
#: Rooms from the ground up; each may import itself and those before it.
ROOMS = (
    "ground", "explain", "ptx", "rust", "tensors", "manifest", "launch", "footprint", "devices", "checks", "report",
    "commands",
)  # fmt: skip
GROUND = {"dtypes", "arch", "releases", "errors", "exits", "expressions", "reading", "__init__"}
TOP = {"cli", "__main__"}
HEAVY = (
    "numpy", "llvmlite", "cuda", "ml_dtypes", "rich", "click", "safetensors", "tree_sitter", "tree_sitter_rust",
)  # fmt: skip
#: Where a heavy package may be imported at all.
ALLOWED = {
    "numpy": {"tensors", "footprint", "devices", "report", "commands"}, "ml_dtypes": {"tensors", "devices"},
    "llvmlite": {"devices"}, "cuda": {"devices"}, "rich": {"report", "commands"}, "click": {"commands", "cli"},
    "safetensors": {"tensors"}, "tree_sitter": {"rust"}, "tree_sitter_rust": {"rust"},
}  # fmt: skip


def modules() -> list[tuple[str, Path]]:
    return [(str(path.relative_to(ROOT)), path) for path in sorted(ROOT.rglob("*.py"))]


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module path below teenycli: ("ptx", "lexer") or ("errors",)."""
    head = parts[0] if parts else "__init__"
    if head in GROUND:
        return "ground"
    return "top" if head in TOP else head


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module that a file imports, and whether for types alone."""
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in typing_only
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", id(node) in typing_only


@pytest.mark.parametrize(("name", "path"), modules())
def test_arrows_point_down(name: str, path: Path) -> None:
    here = room_of(Path(name).with_suffix("").parts)
    if here == "top":
        return
    for target, typing_only in imports(path):
        if typing_only or not target.startswith("teenycli."):
            continue
        there = room_of(tuple(target.split(".")[1:]))
        if there == "top" or there not in ROOMS:
            assert target == "teenycli.__version__", f"{name} imports {target}"
            continue
        assert ROOMS.index(there) <= ROOMS.index(here), f"{name} ({here}) imports {target} ({there})"


@pytest.mark.parametrize(("name", "path"), modules())
def test_heavy_packages_stay_in_their_rooms(name: str, path: Path) -> None:
    here = room_of(Path(name).with_suffix("").parts)
    where = Path(name).with_suffix("").parts[0]
    for target, typing_only in imports(path):
        package = target.split(".")[0]
        if package in HEAVY and not typing_only:
            assert {here, where} & ALLOWED[package], f"{name} imports {target}"


def loaded_by(code: str) -> set[str]:
    """Packages that ``code`` loads beyond what every process here does (cuda-bindings 12 sees to one)."""
    return _loaded(code) - _loaded("")


def _loaded(code: str) -> set[str]:
    return {name.split(".")[0] for name in _modules(code)}


def _modules(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('\\n'.join(sys.modules), file=sys.stderr)"],
        capture_output=True, text=True, check=True, cwd=ROOT.parent,
    )  # fmt: skip
    return {*done.stderr.splitlines()}


@pytest.mark.parametrize(
    "args",
    [["--help"], ["--version"], ["entries", "--help"], ["entries", "ptx/triton/softmax.ptx"],
     ["entries", "--json", "ptx/cuda/softmax.ptx"], ["run", "--help"], ["check", "--help"]],
)  # fmt: skip
def test_light_commands_load_nothing_heavy(args: list[str]) -> None:
    loaded = loaded_by(f"from teenycli.cli import run\nassert run({args!r}) == 0")
    assert not loaded & {"numpy", "llvmlite", "cuda", "ml_dtypes"}
    if "--version" in args:
        assert "msgspec" not in loaded
    if "--json" in args or "--help" in args:
        assert "rich" not in loaded


def test_check_runs_nothing_unless_it_is_asked_to() -> None:
    loaded = loaded_by("from teenycli.cli import run\nassert run(['check', 'vector_add_cuda', 'gelu_triton']) == 0")
    assert not loaded & {"llvmlite", "cuda"}


def test_ptx_knows_nothing_of_the_rooms_above() -> None:
    loaded = loaded_by("import teenycli.ptx, teenycli.ptx.usage, teenycli.ptx.isa; teenycli.ptx.isa.rows()")
    assert not loaded & {*HEAVY}


def test_rust_is_read_without_ptx() -> None:
    loaded = _modules("import teenycli.rust")
    assert not {name for name in loaded if name.startswith(("teenycli.ptx", "teenycli.manifest", "teenycli.launch"))}
    assert not {name.split(".")[0] for name in loaded} & {*HEAVY}
