from __future__ import annotations

from pathlib import Path

import pytest

from teenycli.ptx.signature import Declared, plain_name, signature_of
from tests.ptx.text import module_of

pytestmark = pytest.mark.unit


def signature(name: str, count: int, file: str = "k.ptx") -> tuple[Declared, ...] | None:
    params = ", ".join(f".param .u64 p{k}" for k in range(count))
    module = module_of(f".entry {name}({params}) {{ ret; }}", file)
    return signature_of(module, module.entries[0], count)


def test_cpp_names_tell_types() -> None:
    assert signature("_Z4axpyPKfPfif", 4) == (
        Declared(kind="ptr", element="f32", const=True), Declared(kind="ptr", element="f32"), Declared(kind="i32"),
        Declared(kind="f32"),
    )  # fmt: skip
    assert signature("_Z1fP6float4PPf6Params", 3) == (
        Declared(kind="ptr", element="f32"), Declared(kind="ptr", element="ptr"), Declared(),
    )  # fmt: skip


def test_a_name_of_another_count_of_parameters_tells_nothing() -> None:
    assert signature("_Z4axpyPKfPfif", 3) is None
    assert signature("axpy", 3) is None


def test_numba_arrays_are_seven_parameters_of_one_dimension() -> None:
    found = signature("_ZN1m5scaleE5ArrayIfLi1E1C7mutable7alignedEf", 8)
    assert found is not None
    assert [each.value for each in found] == [
        "null", "null", "p0.size", "p0.itemsize", None, "p0.shape[0]", "p0.itemsize", None,
    ]  # fmt: skip
    assert (found[4], found[7]) == (Declared("p0", "ptr", "f32", rank=1), Declared("p1", "f32"))


TTIR = (
    'tt.func public @k(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc("x"(#l)), '
    "%d: !tt.tensordesc<tensor<8x8xf16>>, "
)


def test_a_host_descriptor_is_as_many_parameters_as_are_left(tmp_path: Path) -> None:
    (tmp_path / "k.ttir").write_text(TTIR + "%n: i32) attributes {noinline = false} {\n")
    found = signature("k", 5, str(tmp_path / "k.ptx"))
    assert found == (Declared("x", "ptr", "f16"), Declared("d"), Declared(), Declared(), Declared("n", "i32"))


@pytest.mark.parametrize("text", ["", "tt.func public @k(", "tt.func public @k(%x: ", "tt.func public @k(%x: !tt.ptr<"])
def test_a_broken_ir_tells_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "k.ttir").write_text(text)
    assert signature("k", 2, str(tmp_path / "k.ptx")) is None


def test_plain_names() -> None:
    assert plain_name("_ZN6shapes5scaleIfLi4ELb1EEEvNS_4TileIT_XT0_EEEPS2_S2_") == "scale"
    assert plain_name("softmax") == "softmax"
