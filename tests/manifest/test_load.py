from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from teenycli.dtypes import DTYPES
from teenycli.errors import Finding, TeenyError
from teenycli.manifest import Manifest, OpSpec, find_manifest, load_manifest
from teenycli.manifest.load import ptx_file

pytestmark = pytest.mark.unit

HEAD = '[op.k]\nptx = "k.ptx"\n'
ONE = 'name = "x", shape = [1]'
OP = HEAD + 'args = ["ptr x"]\ngrid = [1]\n'


def load(folder: Path, text: str) -> Manifest:
    (folder / "ops.toml").write_text(text, "utf-8")
    return load_manifest(folder / "ops.toml")


def op(folder: Path, text: str) -> OpSpec:
    return load(folder, text).op("k")


def error(folder: Path, text: str) -> Finding:
    """What is wrong with the op k; its place is in the manifest."""
    with pytest.raises(TeenyError) as caught:
        op(folder, text)
    finding = caught.value.finding
    assert finding.where is not None
    assert finding.where.file == str(folder / "ops.toml")
    return finding


EVERYTHING = """
[op.k]
ptx = "a/k.ptx"
entry = "kernel"
dtype = "f16"
consts = { BLOCK = 128, CAUSAL = true, SCALE = 0.5 }
scalars = { eps = 1e-5, n = 3 }
inputs = [{ name = "x", shape = ["N", 4], dtype = "bf16", init = "random" }, { name = "in", shape = [], init = 2.5 }]
params = [{ name = "w", shape = ["x.shape[0]"] }]
outputs = [{ name = "y", shape = "N" }, { name = "z", inout = "w" }]
args = ["ptr x", "ptr in", "ptr null", "{ptr w, i32 N}", "bytes @s.bin", "f32 eps"]
block = [32, "BLOCK // 32"]
grid = "cdiv(N, BLOCK)"
cluster = [2]
shared = "4 * N"
hidden = 2
cooperative = true
pdl = false
reference = "x + 1"
rtol = 1
atol = 1e-3
cases = [{ N = 1 }, { N = 31 }]
launches = 1
[op.k.ignore]
"argument-kind" = "it is a handle"
[op.k.dims]
N = 64
M = { value = 32, multiple_of = 16, min = 16, max = 512 }
K = {}
"""


def test_every_key_arrives(tmp_path: Path) -> None:
    spec = op(tmp_path, EVERYTHING)
    assert (spec.name, spec.ptx, spec.entry, spec.ptx_path) == ("k", "a/k.ptx", "kernel", tmp_path / "a/k.ptx")
    assert spec.dtype is DTYPES["f16"]
    assert spec.consts == {"BLOCK": 128, "CAUSAL": True, "SCALE": 0.5}
    assert spec.scalars == {"eps": 1e-5, "n": 3}
    x, empty = spec.inputs
    assert ([e.text for e in x.shape], x.dtype, x.init) == (["N", "4"], DTYPES["bf16"], "random")
    assert (empty.name, empty.shape, empty.dtype, empty.init) == ("in", (), None, 2.5)
    assert [(out.name, out.inout) for out in spec.results] == [("y", None), ("z", "w")]
    assert [arg.kind for arg in spec.args] == ["ptr", "ptr", "ptr", "struct", "bytes", "f32"]
    assert spec.block is not None
    assert [e.text for e in spec.block] == ["32", "BLOCK // 32"]
    assert [e.text for e in spec.grid] == ["cdiv(N, BLOCK)"]
    assert (spec.hidden, spec.cooperative, spec.pdl, spec.rtol, spec.atol) == (2, True, False, 1.0, 1e-3)
    assert spec.cases == ({"N": 1}, {"N": 31})
    assert spec.ignore == {"argument-kind": "it is a handle"}
    assert spec.dims["N"].value == 64
    assert (spec.dims["M"].value, spec.dims["M"].multiple_of, spec.dims["M"].min, spec.dims["M"].max) == (
        32,
        16,
        16,
        512,
    )
    assert spec.dims["K"].value is None


def test_tolerances_are_the_ops_or_the_dtypes(tmp_path: Path) -> None:
    assert op(tmp_path, EVERYTHING).tolerance(DTYPES["i32"]) == (1.0, 1e-3)
    spec = op(tmp_path, OP)
    assert spec.tolerance(DTYPES["f32"]) == (1.3e-6, 1e-5)
    assert spec.tolerance(DTYPES["i32"]) == (0, 0)


def test_block_ptx_is_the_default(tmp_path: Path) -> None:
    assert op(tmp_path, OP).block is None
    assert op(tmp_path, OP + 'block = "ptx"').block is None


@pytest.mark.parametrize(
    ("text", "id", "where", "words"),
    [
        ("gird = [1]", "unknown-key", "op.k.gird", "did you mean 'grid'?"),
        ("zzz = 1", "unknown-key", "op.k.zzz", "the keys here are ptx, entry"),
        ('entry = 3', "wrong-type", "op.k.entry", "expected a string, got an integer (3)"),
        ("hidden = true", "wrong-type", "op.k.hidden", "expected an integer, got true or false (True)"),
        ("hidden = 3", "bad-value", "op.k.hidden", "0, 1 or 2"),
        ("rtol = -1", "bad-value", "op.k.rtol", "from 0 up"),
        ("atol = inf", "bad-value", "op.k.atol", "from 0 up"),
        ('dtype = "float32"', "unknown-dtype", "op.k.dtype", "did you mean"),
        ("dtype = 32", "wrong-type", "op.k.dtype", "element type"),
        ("block = [1, 2, 3, 4]", "bad-value", "op.k.block", "1 to 3"),
        ("block = [1.5]", "wrong-type", "op.k.block[0]", "an integer or an expression, got a number (1.5)"),
        ('cluster = ["2 +"]', "expression-syntax", "op.k.cluster[0]", "2 +"),
        ("shared = {}", "wrong-type", "op.k.shared", "got a table"),
        ('inputs = { name = "x" }', "wrong-type", "op.k.inputs", "expected a list"),
        ('inputs = ["x"]', "wrong-type", "op.k.inputs[0]", "expected a table"),
        ('inputs = [{ name = "x" }]', "missing-key", "op.k.inputs[0]", "'shape'"),
        ('inputs = [{ nam = "x", shape = [1] }]', "unknown-key", "op.k.inputs[0].nam", "did you mean 'name'?"),
        ('inputs = [{ name = "x", shape = [true] }]', "wrong-type", "op.k.inputs[0].shape[0]", "expression"),
        ('inputs = [{ name = "x", shape = [1], init = [1] }]', "wrong-type", "op.k.inputs[0].init", "a string or"),
        ('inputs = [{ name = "x y", shape = [1] }]', "bad-name", "op.k.inputs[0].name", "x y"),
        ('inputs = [{ name = "None", shape = [1] }]', "bad-name", "op.k.inputs[0].name", "None"),
        ('params = [{ name = "output", shape = [1] }]', "bad-name", "op.k.params[0].name", "by itself"),
        ('output = { name = "x" }', "missing-key", "op.k.output", "'shape'"),
        ('output = { name = "x", inout = "y" }', "bad-value", "op.k.output.inout", "no input and no param"),
        (f'output = {{ {ONE} }}\noutputs = [{{ {ONE} }}]', "bad-value", "op.k.outputs", "both"),
        ("consts = { N = [1] }", "wrong-type", "op.k.consts.N", "a list"),
        ('scalars = { "a b" = 1 }', "bad-name", 'op.k.scalars."a b"', "a b"),
        ("consts = { i = 1 }", "bad-name", "op.k.consts.i", "by itself"),
        ("consts = { N = 1 }\nscalars = { N = 1 }", "name-twice", "op.k.scalars.N", "op.k.consts.N"),
        ("cases = [{ N = 1 }]", "bad-value", "op.k.cases[0].N", "no dim 'N'"),
        ("consts = { N = 1 }\ncases = [{ N = 1 }]", "bad-value", "op.k.cases[0].N", "op.k.consts.N"),
        ("cases = [{ N = 1.5 }]", "wrong-type", "op.k.cases[0].N", "an integer, got a number"),
        ("[op.k.dims]\nN = '8'", "wrong-type", "op.k.dims.N", "an integer, got a string"),
        ("[op.k.dims]\nN = { valeu = 8 }", "unknown-key", "op.k.dims.N.valeu", "did you mean 'value'?"),
        ("[op.k.dims]\nN = { multiple_of = 0 }", "bad-value", "op.k.dims.N.multiple_of", "not positive"),
        ("[op.k.dims]\nN = { min = 9, max = 8 }", "bad-value", "op.k.dims.N.max", "below min 9"),
        ("[op.k.ignore]\nx = 1", "wrong-type", "op.k.ignore.x", "a string"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what(tmp_path: Path, text: str, id: str, where: str, words: str) -> None:
    finding = error(tmp_path, OP + text)
    assert finding.id == id
    assert finding.where is not None
    assert finding.where.key == where
    assert finding.where.line > 0
    assert words in f"{finding.message} {finding.hint}"


def test_errors_read_as_a_path_with_the_line_of_the_key(tmp_path: Path) -> None:
    (tmp_path / "ops.toml").write_text('[op.softmax]\nptx = "k"\nargs = []\ngrid = ["1 +"]\n')
    with pytest.raises(TeenyError) as caught:
        load_manifest(tmp_path / "ops.toml").op("softmax")
    assert str(caught.value).startswith(f"{tmp_path / 'ops.toml'}:4: op.softmax.grid[0]: cannot read")


@pytest.mark.parametrize("key", ["ptx", "args", "grid"])
def test_keys_that_must_be_there(tmp_path: Path, key: str) -> None:
    lines = {"ptx": 'ptx = "k.ptx"', "args": "args = []", "grid": "grid = [1]"}
    finding = error(tmp_path, "[op.k]\n" + "\n".join(line for name, line in lines.items() if name != key))
    assert finding.id == "missing-key"
    assert f"'{key}'" in finding.message


@pytest.mark.parametrize("table", ["dims", "consts", "scalars", "globals", "ignore"])
@pytest.mark.parametrize("line", ["grid = [1]", 'reference = "x"', "shared = 64", 'block = "ptx"'])
def test_a_key_below_a_subtable_is_found(tmp_path: Path, table: str, line: str) -> None:
    text = HEAD + f'args = ["ptr x"]\n[op.k.{table}]\nN = 1\n{line}\n'
    finding = error(tmp_path, text)
    assert finding.id == "misplaced-key"
    assert f"write it above [op.k.{table}]" in (finding.hint or "")
    assert finding.where is not None
    assert finding.where.line == 6


def test_a_dim_may_be_called_as_a_key_of_the_op(tmp_path: Path) -> None:
    spec = op(tmp_path, HEAD + 'args = ["i32 hidden"]\ngrid = ["hidden"]\n[op.k.dims]\nhidden = 4096\n')
    assert spec.dims["hidden"].value == 4096
    assert spec.hidden is None


def test_a_key_below_an_array_of_tables_is_found(tmp_path: Path) -> None:
    finding = error(tmp_path, HEAD + 'args = []\n[[op.k.inputs]]\nname = "x"\nshape = [1]\ngrid = [1]\n')
    assert (finding.id, str(finding.where and finding.where.key)) == ("unknown-key", "op.k.inputs[0].grid")
    assert "write it above [op.k.inputs]" in (finding.hint or "")


IN_PLACE = OP + 'inputs = [{ name = "x", shape = [4], dtype = "f16"%s }]\noutput = { %s }'


def test_an_output_may_be_its_inputs_buffer_under_the_same_name(tmp_path: Path) -> None:
    assert op(tmp_path, IN_PLACE % ("", 'name = "x", inout = "x"')).results[0].name == "x"
    assert error(tmp_path, IN_PLACE % ("", 'name = "x", shape = [4]')).id == "name-twice"


@pytest.mark.parametrize(
    ("more", "output", "words"),
    [
        ("", 'name = "y", inout = "x", dtype = "f32"', "f32, but the buffer 'x' is f16"),
        (", init = 1", 'name = "y", inout = "x", init = 2', "has an init already"),
        ("", 'name = "y", inout = "xx"', "did you mean 'x'?"),
    ],
)
def test_in_place_outputs_agree_with_their_buffer(tmp_path: Path, more: str, output: str, words: str) -> None:
    finding = error(tmp_path, IN_PLACE % (more, output))
    assert finding.id == "bad-value"
    assert words in f"{finding.message} {finding.hint}"


def test_two_outputs_cannot_be_one_buffer(tmp_path: Path) -> None:
    text = OP + 'inputs = [{ name = "x", shape = [4] }]\n'
    text += 'outputs = [{ name = "y", inout = "x" }, { name = "z", inout = "x" }]'
    assert "'x' is op.k.outputs[0] already" in error(tmp_path, text).message


def test_a_case_may_set_a_dim_that_only_cases_have(tmp_path: Path) -> None:
    assert op(tmp_path, HEAD + 'args = ["i32 N"]\ngrid = ["N"]\ncases = [{ N = 2 }]').cases == ({"N": 2},)


def test_one_broken_op_does_not_hide_the_others(tmp_path: Path) -> None:
    manifest = load(tmp_path, OP + "[op.bad]\nptx = 1\n" + OP.replace("op.k", "op.good"))
    assert list(manifest.ops) == ["k", "good"]
    assert list(manifest.errors) == ["bad"]
    with pytest.raises(TeenyError, match="expected a string"):
        manifest.op("bad")


def test_an_op_that_is_not_there(tmp_path: Path) -> None:
    manifest = load(tmp_path, OP.replace("op.k", "op.softmax"))
    with pytest.raises(TeenyError) as caught:
        manifest.op("sofmax")
    assert caught.value.finding.hint == "did you mean 'softmax'?"
    with pytest.raises(TeenyError) as caught:
        manifest.op("zzz")
    assert caught.value.finding.hint == "there are softmax"
    with pytest.raises(TeenyError) as caught:
        load(tmp_path, "").op("zzz")
    assert "no ops" in (caught.value.finding.hint or "")


@pytest.mark.parametrize(
    ("text", "id", "words"),
    [
        ("[ops.k]\nptx = 1", "unknown-key", "did you mean 'op'?"),
        ('[softmax]\nptx = "a"', "unknown-key", "an op's table is [op.softmax]"),
        ("version = 1", "unknown-key", "[op.NAME]"),
        ("op = 1", "wrong-type", "[op.NAME]"),
        ("[[op]]\nptx = 1", "wrong-type", "[op.NAME]"),
    ],
)
def test_tables_that_are_no_ops(tmp_path: Path, text: str, id: str, words: str) -> None:
    with pytest.raises(TeenyError) as caught:
        load(tmp_path, text)
    assert caught.value.finding.id == id
    assert words in f"{caught.value.finding.message} {caught.value.finding.hint}"


def test_an_op_that_is_no_table(tmp_path: Path) -> None:
    assert error(tmp_path, "[op]\nk = 3").id == "wrong-type"


def test_a_pipeline_is_read_and_is_no_op(tmp_path: Path) -> None:
    manifest = load(tmp_path, OP + '[pipeline.mlp]\nops = ["k", "k"]\nwire = { "k#2.x" = "k.y" }\ndims = { N = 4 }\n')
    assert list(manifest.ops) == ["k"]
    spec = manifest.pipeline("mlp")
    assert (spec.name, spec.ops, spec.wire, spec.dims) == ("mlp", ("k", "k"), {"k#2.x": "k.y"}, {"N": 4})
    assert str(spec.origin.place("wire")) == f"{tmp_path / 'ops.toml'}:7: pipeline.mlp.wire"
    with pytest.raises(TeenyError) as caught:
        manifest.op("mlp")
    assert (caught.value.finding.id, caught.value.finding.hint) == ("unknown-op", "'mlp' is a pipeline: name it alone")


@pytest.mark.parametrize(
    ("table", "id", "key"),
    [
        ('[pipeline.mlp]\nsteps = ["k"]', "unknown-key", "pipeline.mlp.steps"),
        ("[pipeline.mlp]", "missing-key", "pipeline.mlp"),
        ("[pipeline.mlp]\nops = []", "bad-value", "pipeline.mlp.ops"),
        ('[pipeline.mlp]\nops = "k"', "wrong-type", "pipeline.mlp.ops"),
        ('[pipeline.mlp]\nops = ["k"]\ndims = { N = "4" }', "wrong-type", "pipeline.mlp.dims.N"),
        ('[pipeline.k]\nops = ["k"]', "name-twice", "pipeline.k"),
        ("[pipeline]\nmlp = 3", "wrong-type", "pipeline.mlp"),
    ],
)
def test_what_is_wrong_with_a_pipeline_is_its_own(tmp_path: Path, table: str, id: str, key: str) -> None:
    manifest = load(tmp_path, f"{OP}{table}\n")
    assert list(manifest.ops) == ["k"]
    with pytest.raises(TeenyError) as caught:
        manifest.pipeline(*manifest.pipelines)
    assert caught.value.finding.id == id
    assert caught.value.finding.where is not None
    assert caught.value.finding.where.key == key


def test_finding_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "a" / "b" / "c" / "d"
    deep.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a")
    (tmp_path / "ops.toml").write_text("")
    assert find_manifest(Path()) == Path("../ops.toml")
    assert find_manifest(deep).resolve() == (tmp_path / "ops.toml").resolve()
    (tmp_path / "a" / "ops.toml").write_text("")
    assert find_manifest(Path()) == Path("ops.toml")
    (tmp_path / "a" / "b" / "ops.toml").mkdir()
    assert find_manifest(tmp_path / "a" / "b").resolve() == (tmp_path / "a" / "ops.toml").resolve()


def test_no_manifest_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(_: Any) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "is_file", nowhere)
    with pytest.raises(TeenyError) as caught:
        find_manifest(tmp_path)
    assert caught.value.finding.id == "no-manifest"
    assert "--manifest" in (caught.value.finding.hint or "")


def test_ptx_may_be_a_triton_cache_folder(tmp_path: Path) -> None:
    spec = op(tmp_path, OP.replace("k.ptx", "cache"))
    assert ptx_file(spec) == tmp_path / "cache"  # not there: the reader says so
    (tmp_path / "cache").mkdir()
    with pytest.raises(TeenyError, match=r"no \.ptx file"):
        ptx_file(spec)
    (tmp_path / "cache" / "k.ptx").write_text("")
    assert ptx_file(spec) == tmp_path / "cache" / "k.ptx"
    (tmp_path / "cache" / "l.ptx").write_text("")
    with pytest.raises(TeenyError, match=r"k\.ptx, l\.ptx") as caught:
        ptx_file(spec)
    assert caught.value.finding.where is not None
    assert caught.value.finding.where.key == "op.k.ptx"
