from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from teenycli.errors import Finding, TeenyError
from teenycli.launch.adhoc import AdhocOptions, adhoc_spec
from teenycli.launch.build import init_of
from teenycli.launch.plan import Address, Argument, Plan, encode_argument
from tests.launch.kernels import entry, module, param, plan

pytestmark = pytest.mark.unit


def made(*args: str, **options: Any) -> Plan:
    kernel = module(entry("kernel", *[param("u64")] * len(args)))
    return plan(adhoc_spec(AdhocOptions("dir/k.ptx", args, **{"grid": "1", "block": "32", **options})), kernel)


def arguments(*args: str) -> tuple[Argument, ...]:
    return made(*args).launches[0].args


def error(*args: str, **options: Any) -> Finding:
    with pytest.raises(TeenyError) as caught:
        made(*args, **options)
    return caught.value.finding


def test_a_kernel_without_a_manifest() -> None:
    done = made(
        "x=f32[1024]", "w=f16[64, 32]:random", "n=i32:1024", "p=null", "y=alias:x", "alpha=f32:0.5", "flag=bool:1",
        "s={ptr w, i32 7, f32 0.5}", "b=bytes:00ff10", grid="2,3", block="64,2,1", shared="0x40", cluster="2",
        cooperative=True, hidden=0,
    )  # fmt: skip
    (launch,) = done.launches
    assert (done.op, launch.entry, launch.grid, launch.block) == ("k", "kernel", (2, 3, 1), (64, 2, 1))
    assert (launch.shared, launch.cluster, launch.cooperative, launch.pdl) == (64, (2, 1, 1), True, False)
    assert [(a.name, a.kind, a.size) for a in launch.args] == [
        ("x", "ptr", 8), ("w", "ptr", 8), ("n", "i32", 4), ("p", "ptr", 8), ("y", "ptr", 8), ("alpha", "f32", 4),
        ("flag", "bool", 1), ("s", "struct", 16), ("b", "bytes", 3),
    ]  # fmt: skip
    assert [a.source for a in launch.args][:3] == ["-a x", "-a w", "-a n"]
    assert launch.args[4].fields[0].value == Address("x")
    assert [(b.name, b.dtype.name, b.shape, init_of(b)) for b in done.buffers] == [
        ("x", "f32", (1024,), "zeros"), ("w", "f16", (64, 32), "random")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "init"),
    [
        ("f32[4]:@a b.npz:k:1", "@a b.npz:k:1"),
        ("bf16[4]:arange", "arange"),
        ("e4m3[4]:1.5", "1.5"),
        ("ptr[4]", "zeros"),
    ],
)
def test_inits_are_kept_as_text(spec: str, init: str) -> None:
    assert made(f"x={spec}").buffers[0].init == init


def test_extents_and_the_grid_may_use_other_labels() -> None:
    done = made("n=i32:1000", "x=f32[n, 2]", "s=f32[]", grid="cdiv(n, 256), x.shape[1]")
    assert [b.shape for b in done.buffers] == [(1000, 2), ()]
    assert done.launches[0].grid == (4, 2, 1)


def test_labels_may_be_words_of_python_or_of_the_manifest() -> None:
    done = made("in=f32[4]", "lambda=f32:2", "output=f32[4]", "i=i32:5", "again=alias:in", "s={ptr in, i32 i}")
    assert [a.fields[0].value for a in done.launches[0].args] == [
        Address("in"), 2, Address("output"), 5, Address("in"), Address("in")
    ]  # fmt: skip


def test_bytes_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.bin").write_bytes(b"abc")
    (argument,) = arguments("s=bytes:@s.bin")
    assert encode_argument(argument, lambda _: 0) == b"abc"


@pytest.mark.parametrize(
    ("arg", "id", "words"),
    [
        ("x", "bad-option", "NAME=SPEC"), ("=f32[4]", "bad-option", "NAME=SPEC"), ("x=", "bad-option", "NAME=SPEC"),
        ("x y=null", "bad-name", "x y"), ("0=null", "bad-name", "'0'"), ("None=null", "bad-name", "None"),
        ("n=1024", "unknown-kind", "n=i32:1024"), ("n=int:4", "unknown-kind", "SPEC is"),
        ("n=f23:4", "unknown-kind", "did you mean 'f32'?"), ("n=f32", "unknown-kind", "n=f32:VALUE"),
        ("p=nul", "unknown-kind", "did you mean 'null'?"), ("y=alais:x", "unknown-kind", "did you mean 'alias'?"),
        ("n=e4m3:1", "unknown-kind", "no argument"), ("x=f33[4]", "unknown-dtype", "did you mean 'f32'?"),
        ("n=i32:", "bad-argument", "no number"), ("n=i32:ten", "bad-argument", "n=i32:NUMBER"),
        ("n=i32:1.5", "bad-argument", "an integer"), ("n=i8:300", "value-out-of-range", "-128 to 127"),
        ("x=f32[0]", "bad-shape", "positive"), ("x=f32[4,]", "expression-syntax", "empty"),
        ("x=f32[m]", "unknown-name", "'m'"), ("x=f32[4]:", "bad-argument", "empty"),
        ("x=f32[4", "unknown-kind", "no argument"), ("y=alias:", "bad-argument", "no value"),
        ("y=alias:nosuch", "unknown-name", "nosuch"), ("s={ptr nosuch}", "unknown-name", "nosuch"),
        ("s={i32 1", "bad-argument", "closing brace"), ("s=bytes:0", "bad-argument", "hexadecimal"),
        ("s=bytes:@none.bin", "unreadable", "none.bin"), ("x=f32[2 ** 39]", "buffer-too-large", "must be below"),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_used(arg: str, id: str, words: str) -> None:
    finding = error("good=f32[8]", arg)
    assert finding.id == id
    assert words in f"{finding.message} {finding.hint}"
    assert str(finding.where).startswith("-a")


def test_a_label_twice() -> None:
    for args in (("p=null", "p=null"), ("x=f32[4]", "x=i32:1"), ("n=i32:1", "n=f32[4]")):
        finding = error(*args)
        assert (finding.id, str(finding.where)) == ("name-twice", f"-a {args[0][0]}")


@pytest.mark.parametrize(
    ("options", "id", "where"),
    [
        ({"grid": None}, "missing-option", "--grid"), ({"grid": ""}, "expression-syntax", "--grid"),
        ({"grid": "1,2,3,4"}, "bad-value", "--grid"), ({"grid": "1,"}, "expression-syntax", "--grid"),
        ({"grid": "1.5"}, "not-an-integer", "--grid"), ({"grid": "(1"}, "bad-argument", "--grid"),
        ({"block": "x"}, "unknown-name", "--block"), ({"block": None}, "block-unknown", "--block"),
        ({"block": "ptx"}, "block-unknown", "--block"), ({"shared": "-1"}, "bad-value", "--shared"),
        ({"shared": "much"}, "unknown-name", "--shared"), ({"hidden": 7}, "bad-value", "--hidden"),
        ({"hidden": 2}, "bad-value", "--hidden"), ({"entry": "nosuch"}, "unknown-entry", "--entry"),
        ({"cluster": "1,2,3,4"}, "bad-value", "--cluster"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_used(options: dict[str, Any], id: str, where: str) -> None:
    finding = error(**options)
    assert (finding.id, str(finding.where)) == (id, where)


def test_standard_input_has_a_name() -> None:
    assert adhoc_spec(AdhocOptions("-", grid="1")).name == "stdin"
