"""The ops.toml of the project against its PTX."""

from __future__ import annotations

import importlib
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from teenycli.errors import TeenyError
from teenycli.launch.build import plan_case
from teenycli.launch.cases import cases_of
from teenycli.launch.plan import Plan
from teenycli.manifest import load_manifest
from teenycli.manifest.load import ptx_file
from teenycli.ptx import outline, read_source

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
OPS = list(load_manifest(ROOT / "ops.toml").ops)
HIDDEN = {"3.2": 0, "3.4": 1, "3.9": 2}  # parameters that a release of Triton appends


def plans(name: str) -> Iterator[Plan]:
    spec = load_manifest(ROOT / "ops.toml").op(name)
    module = outline(read_source(ptx_file(spec)))
    for case in cases_of(spec):
        yield plan_case(spec, case, module)


def hidden_parameters(name: str) -> int:
    """How many the compiler of an op appended, by the release that its metadata names."""
    metadata = ptx_file(load_manifest(ROOT / "ops.toml").op(name)).with_suffix(".json")
    if not metadata.exists():
        return 0
    return HIDDEN[json.loads(metadata.read_text()).get("triton_version", "3.2")[:3]]  # 3.2 names no release yet


def test_the_manifest_has_no_errors_and_uses_every_sample() -> None:
    assert not load_manifest(ROOT / "ops.toml").errors
    text = (ROOT / "ops.toml").read_text("utf-8")
    for path in (ROOT / "ptx").rglob("*.ptx"):
        assert f'"{path.relative_to(ROOT).as_posix()}"' in text


def test_a_release_of_triton_with_each_number_of_hidden_parameters_is_among_them() -> None:
    assert {hidden_parameters(name) for name in OPS if name.endswith("triton")} == {0, 1, 2}


@pytest.mark.parametrize("name", OPS)
def test_every_case_has_a_plan_that_fits_its_entry(name: str) -> None:
    made = list(plans(name))
    assert len(made) >= 3
    for launch in (launch for plan in made for launch in plan.launches):
        assert None not in [argument.offset for argument in launch.args]
        assert sum(argument.hidden for argument in launch.args) == hidden_parameters(name)
        assert launch.ctas > 0


def test_mutilated_manifests_give_errors_of_ours(tmp_path: Path) -> None:
    text = (ROOT / "ops.toml").read_text("utf-8")
    pieces = re.findall(r"\w+|[^\w\s]|\s+", text)
    module = outline(read_source(ROOT / "ptx/triton/softmax.ptx"))
    dice = random.Random(7)
    built = failed = 0
    for _ in range(150):
        broken = list(pieces)
        for _ in range(dice.randint(1, 12)):
            at = dice.randrange(len(broken))
            broken[at : at + dice.randint(0, 2)] = dice.choices(pieces, k=dice.randint(0, 2))
        (tmp_path / "ops.toml").write_text("".join(broken), "utf-8")
        try:
            manifest = load_manifest(tmp_path / "ops.toml")
        except TeenyError:
            failed += 1
            continue
        for spec in manifest.ops.values():
            for case in cases_of(spec):
                try:
                    plan_case(spec, case, module)
                    built += 1
                except TeenyError:
                    failed += 1
    assert min(built, failed) > 50


def test_block_and_shared_memory_come_from_triton_itself() -> None:
    launch = next(plans("softmax_triton")).launches[0]
    assert (launch.block, launch.shared) == ((128, 1, 1), 16)
    assert next(plans("softmax_cuda")).launches[0].block == (256, 1, 1)


def test_detect_decode_is_what_its_reference_says() -> None:
    np = importlib.import_module("numpy")
    refs = importlib.import_module("ptx.refs")
    boxes = np.array([[[1.0], [2.0], [3.0], [4.0]]])
    out = refs.detect_decode(boxes, np.array([10.0]), np.array([20.0]), np.array([8.0]))
    assert out.tolist() == [[[88.0], [168.0], [32.0], [48.0]]]
