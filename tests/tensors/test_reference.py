from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from teenycli.dtypes import DTYPES, DType
from teenycli.errors import Place, TeenyError
from teenycli.exits import Exit
from teenycli.tensors.convert import Array
from teenycli.tensors.reference import evaluate_reference

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Out:
    name: str
    dtype: DType
    shape: tuple[int, ...]


def out(*shape: int, name: str = "y", dtype: str = "f32") -> Out:
    return Out(name, DTYPES[dtype], shape)


def one(text: str, names: dict[str, Any], folder: Path, output: Out) -> Array:
    (array,) = evaluate_reference(text, names, folder, [output])
    return array


def refusal(text: str, names: dict[str, Any], folder: Path, *outputs: Out) -> TeenyError:
    with pytest.raises(TeenyError) as caught:
        evaluate_reference(text, names, folder, outputs or [out(3)])
    assert caught.value.exit is Exit.UNUSABLE
    return caught.value


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(dedent(text))


class TestExpressions:
    def test_floats_arrive_in_double_after_their_own_rounding(self, tmp_path: Path) -> None:
        x = np.array([0.1], np.float32)
        assert one("x * 3", {"x": x}, tmp_path, out(1)).tolist() == [float(np.float32(0.1)) * 3]
        b = np.array([1.5], ml_dtypes.bfloat16)
        array = one("b + 2 ** -20", {"b": b}, tmp_path, out(1, dtype="bf16"))
        assert array.dtype == np.float64  # and is not rounded again on its way back
        assert array.tolist() == [1.5 + 2**-20]

    def test_integers_stay_as_they_are(self, tmp_path: Path) -> None:
        n = np.array([200, 100], np.uint8)
        assert one("n + n", {"n": n}, tmp_path, out(2, dtype="u8")).tolist() == [144, 200]

    def test_groups_of_buffers(self, tmp_path: Path) -> None:
        names = {"inputs": [np.ones(2, np.float32), np.full(2, 3, np.float32)]}
        assert one("inputs[0] + inputs[1]", names, tmp_path, out(2)).tolist() == [4, 4]

    def test_several_outputs_are_a_tuple_in_their_order(self, tmp_path: Path) -> None:
        x = np.arange(6.0).reshape(2, 3)
        outputs = [out(2, name="top"), out(2, name="at", dtype="i64")]
        top, at = evaluate_reference("(max(x, axis=1), argmax(x, axis=1))", {"x": x}, tmp_path, outputs)
        assert (top.tolist(), at.tolist()) == ([2, 5], [2, 2])
        assert at.dtype == np.int64

    def test_errors_bear_the_place_that_was_given(self, tmp_path: Path) -> None:
        with pytest.raises(TeenyError) as caught:
            evaluate_reference("x + z", {"x": 1}, tmp_path, [out(1)], Place("ops.toml", key="op.a.reference"))
        assert str(caught.value.finding.where) == "ops.toml: op.a.reference"


class TestWhatComesBack:
    def test_a_shape_that_broadcasts_is_not_enough(self, tmp_path: Path) -> None:
        for text in ("sum(x, axis=1, keepdims=True)", "sum(x)", "1.0", "x[None]"):
            error = refusal(text, {"x": np.ones((3, 4))}, tmp_path, out(3, 4))
            assert error.finding.id == "array-shape"
            assert "not [3, 4]" in error.finding.message

    def test_number_of_outputs(self, tmp_path: Path) -> None:
        error = refusal("x, x", {"x": np.ones(3)}, tmp_path, out(3))
        assert error.finding.id == "reference-count"
        assert error.finding.message == "the reference 'x, x' gives 2 values, the op has 1: y"
        assert "gives 1 value, the op has 2: a, b" in (
            refusal("x", {"x": np.ones(3)}, tmp_path, out(3, name="a"), out(3, name="b")).finding.message
        )

    def test_a_fraction_for_an_integer_output(self, tmp_path: Path) -> None:
        error = refusal("n / 2", {"n": np.arange(3)}, tmp_path, out(3, dtype="i32"))
        assert error.finding.id == "value-out-of-range"
        assert "for output 'y': element [1] is 0.5, which i32 cannot hold" in error.finding.message
        assert one("n / 2", {"n": np.array([2, 4])}, tmp_path, out(2, dtype="i32")).tolist() == [1, 2]


class TestFunctions:
    def test_it_is_called_with_what_its_signature_names(self, tmp_path: Path) -> None:
        write(tmp_path, "refs.py", "def f(x, A, *, eps=1.0, other=2):\n    return x * A + eps + other\n")
        names = {"x": np.ones(3, np.float32), "A": 10, "eps": 0.5, "unused": np.ones(9)}
        assert one("refs:f", names, tmp_path, out(3)).tolist() == [12.5] * 3

    def test_two_stars_take_everything(self, tmp_path: Path) -> None:
        write(tmp_path, "refs.py", "def f(**names):\n    return names['x'] + len(names)\n")
        assert one("refs:f", {"x": np.zeros(2), "A": 1}, tmp_path, out(2)).tolist() == [2, 2]

    def test_what_it_gets_is_double_and_its_own(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            "refs.py",
            """
            def f(x, n, d):
                assert x.dtype == d.dtype == 'f8' and n.dtype == 'i4'
                x += 1
                n += 1
                d += 1
                return x + n + d
            """,
        )
        names: dict[str, Any] = {"x": np.zeros(1, np.float16), "n": np.zeros(1, np.int32), "d": np.zeros(1)}
        assert one("refs:f", names, tmp_path, out(1)).tolist() == [3]
        assert [array.tolist() for array in names.values()] == [[0], [0], [0]]

    def test_a_package_a_dotted_name_and_its_neighbours(self, tmp_path: Path) -> None:
        write(tmp_path, "kernels/__init__.py", "")
        write(
            tmp_path,
            "kernels/refs.py",
            "from . import tools\nimport beside\ndef f(x):\n    return tools.g(x) + beside.C\n",
        )
        write(tmp_path, "kernels/tools.py", "def g(x):\n    import late\n    return x + late.C\n")
        write(tmp_path, "beside.py", "C = 5\n")
        write(tmp_path, "late.py", "C = 10\n")
        assert one("kernels.refs:f", {"x": np.zeros(1)}, tmp_path, out(1)).tolist() == [15]

    def test_two_manifests_may_each_have_a_refs(self, tmp_path: Path) -> None:
        path, modules = list(sys.path), set(sys.modules)
        for number in (1, 2):
            folder = tmp_path / str(number)
            write(folder, "refs.py", f"from shared_by_refs import C\ndef f(x):\n    return x + {number} * C\n")
            write(folder, "shared_by_refs.py", f"C = {number}\n")
            assert one("refs:f", {"x": np.zeros(1)}, folder, out(1)).tolist() == [number * number]
        assert sys.path == path
        assert set(sys.modules) == modules

    def test_a_module_named_like_one_of_the_standard_library(self, tmp_path: Path) -> None:
        import colorsys

        write(tmp_path, "colorsys.py", "def f(x):\n    return x + 1\n")
        assert one("colorsys:f", {"x": np.zeros(1)}, tmp_path, out(1)).tolist() == [1]
        assert sys.modules["colorsys"] is colorsys

    def test_an_argument_that_the_op_lacks(self, tmp_path: Path) -> None:
        write(tmp_path, "refs.py", "def f(x, strids): ...\ndef g(x, /): ...\n")
        error = refusal("refs:f", {"x": np.ones(3), "strides": np.ones(3)}, tmp_path)
        assert error.finding.id == "reference-name"
        assert error.finding.message == "refs:f asks for 'strids', which the op does not have; it has x, strides"
        assert error.finding.hint == "did you mean 'strides'?"
        assert "by position only" in refusal("refs:g", {"x": np.ones(3)}, tmp_path).finding.message

    def test_a_misspelt_module_or_function(self, tmp_path: Path) -> None:
        write(tmp_path, "refs.py", "def softmax(x): ...\nCONSTANT = 1\n")
        error = refusal("ref:softmax", {}, tmp_path)
        assert (error.finding.id, error.finding.hint) == ("reference-module", "did you mean 'refs'?")
        error = refusal("refs:sofmax", {}, tmp_path)
        assert (error.finding.id, error.finding.hint) == ("reference-name", "did you mean 'softmax'?")
        assert "is no function" in refusal("refs:CONSTANT", {}, tmp_path).finding.message

    def test_an_exception_has_its_type_message_and_line(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            "refs.py",
            """\
            import numpy as np
            def helper(x):
                return x @ np.ones(5)
            def f(x):
                y = helper(x)
                return y
            """,
        )
        error = refusal("refs:f", {"x": np.ones(3)}, tmp_path)
        assert error.finding.id == "reference-failed"
        assert error.finding.message.startswith("refs:f raised ValueError: matmul: ")
        assert error.finding.where == Place("refs.py", 3, 12, text="    return x @ np.ones(5)")

    @pytest.mark.parametrize(
        ("text", "message", "line"),
        [
            ("import nothing_of_this_name\n", "importing broken raised ModuleNotFoundError: No module named", 1),
            ("def f(x):\n    return (\n", "importing broken raised SyntaxError: '(' was never closed", 2),
            ("import sys\nsys.exit(3)\n", "importing broken raised SystemExit: 3", 2),
            ("def f():\n    f()\n", "broken:f raised RecursionError", 2),
            ("def f():\n    assert False\n", "broken:f raised AssertionError", 2),
        ],
    )
    def test_broken_code_is_no_traceback(self, tmp_path: Path, text: str, message: str, line: int) -> None:
        write(tmp_path, "broken.py", text)
        finding = refusal("broken:f", {}, tmp_path).finding
        assert finding.message.startswith(message)
        assert finding.where is not None
        assert (finding.where.file, finding.where.line) == ("broken.py", line)

    def test_an_interruption_passes(self, tmp_path: Path) -> None:
        write(tmp_path, "refs.py", "def f():\n    raise KeyboardInterrupt\n")
        with pytest.raises(KeyboardInterrupt):
            evaluate_reference("refs:f", {}, tmp_path, [out(1)])

    @pytest.mark.parametrize(
        ("returned", "id"),
        [
            ("None", "reference-value"),
            ("'text'", "reference-value"),
            ("[[1, 2], [3]]", "reference-value"),
            ("{'z': 1}", "reference-value"),
            ("np.ones(3) * 1j", "reference-value"),
            ("(np.ones(3), 1)", "reference-count"),
            ("np.ones((3, 1))", "array-shape"),
        ],
    )
    def test_what_is_no_output(self, tmp_path: Path, returned: str, id: str) -> None:
        write(tmp_path, "refs.py", f"import numpy as np\ndef f():\n    return {returned}\n")
        assert refusal("refs:f", {}, tmp_path).finding.id == id

    def test_a_list_in_place_of_a_tuple_has_a_hint(self, tmp_path: Path) -> None:
        write(tmp_path, "refs.py", "def f():\n    return [[1, 2, 3], [1, 2, 3]]\n")
        error = refusal("refs:f", {}, tmp_path, out(3, name="a"), out(3, name="b"))
        assert error.finding.hint == "return a tuple, not a list"

    def test_what_it_prints_goes_to_stderr(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(tmp_path, "refs.py", "print('imported')\ndef f():\n    print('called')\n    return [1, 2, 3]\n")
        assert one("refs:f", {}, tmp_path, out(3)).tolist() == [1, 2, 3]
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err == "imported\ncalled\n"

    def test_divisions_by_zero_are_values_not_warnings(self, tmp_path: Path) -> None:
        write(tmp_path, "refs.py", "def f(x):\n    return x / 0\n")
        assert one("refs:f", {"x": np.ones(1)}, tmp_path, out(1)).tolist() == [np.inf]


class TestFiles:
    def test_a_file_keeps_its_precision(self, tmp_path: Path) -> None:
        np.save(tmp_path / "y.npy", np.array([0.1, 0.2]))
        assert one("y.npy", {}, tmp_path, out(2)).tolist() == [0.1, 0.2]
        assert one("@y.npy", {}, tmp_path, out(2)).tolist() == [0.1, 0.2]

    def test_raw_bits_are_of_the_outputs_type(self, tmp_path: Path) -> None:
        (tmp_path / "y.bin").write_bytes(b"\x80\x3f")
        assert one("y.bin", {}, tmp_path, out(1, dtype="bf16")).tolist() == [1]

    def test_an_archive_holds_the_outputs_by_name(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "r.npz", b=np.zeros(2), a=np.ones(3))
        a, b = evaluate_reference("r.npz", {}, tmp_path, [out(3, name="a"), out(2, name="b")])
        assert (a.tolist(), b.tolist()) == ([1, 1, 1], [0, 0])
        assert one("r.npz", {}, tmp_path, out(2, name="b")).tolist() == [0, 0]
        assert one("r.npz:a", {}, tmp_path, out(3, name="y")).tolist() == [1, 1, 1]
        np.savez(tmp_path / "s.npz", whatever=np.ones(3))
        assert one("s.npz", {}, tmp_path, out(3)).tolist() == [1, 1, 1]

    def test_wrong_files_are_errors(self, tmp_path: Path) -> None:
        np.save(tmp_path / "y.npy", np.ones(3))
        assert refusal("z.npy", {}, tmp_path).finding.id == "missing-file"
        assert refusal("y.npy", {}, tmp_path, out(1, 3)).finding.id == "array-shape"
        assert refusal("y.npy", {}, tmp_path, out(3), out(3)).finding.id == "reference-count"
