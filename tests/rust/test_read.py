from __future__ import annotations

import sys
import time
from pathlib import Path
from random import Random

import pytest

from teenycli.errors import Place, TeenyError
from teenycli.rust import Visit, read_rust
from teenycli.rust.model import Call, Choice, Never, Repeat, Spot, Step, Unknown
from teenycli.rust.ways import Reach, ways
from tests.rust.source import impl, method, packing, read

pytestmark = pytest.mark.unit


def shape(steps: tuple[Step, ...]) -> list[object]:
    """Steps in short: visits as ``KIND EXPRESSION``, the rest by their classes."""
    found: list[object] = []
    for step in steps:
        if isinstance(step, Visit):
            found.append(f"{step.kind} {step.text}")
        elif isinstance(step, Choice):
            found.append(("choice", *map(shape, step.ways)))
        elif isinstance(step, Repeat | Call):
            found.append((type(step).__name__.lower(), *shape(step.steps)))
        else:
            found.append(type(step).__name__.lower())
    return found


class TestVisits:
    def test_expressions_kinds_and_places(self, tmp_path: Path) -> None:
        body = """        let n = output_shape[0];
        visitor.visit_ptr(inputs[0].0); // x
        visitor
            .visit_f32(
                self.eps *
                2.0);
  /* ä */ visitor.visit_i64(n as i64);"""
        first, second, third = packing(tmp_path, body).steps
        assert first == Visit("visit_ptr", "ptr", "inputs[0].0", Spot(4, 9))
        assert isinstance(second, Visit)
        assert (second.kind, second.text, second.at) == ("f32", "self.eps * 2.0", Spot(5, 9))
        assert third == Visit("visit_i64", "i64", "n as i64", Spot(9, 11))

    def test_a_method_that_is_not_known_has_no_kind(self, tmp_path: Path) -> None:
        (visit,) = packing(tmp_path, "visitor.visit_i128(1);").steps
        assert isinstance(visit, Visit)
        assert (visit.method, visit.kind) == ("visit_i128", None)

    @pytest.mark.parametrize("name", ["v", "mut v", "_out"])
    def test_the_visitor_is_the_last_parameter_whatever_its_name(self, tmp_path: Path, name: str) -> None:
        called = name.removeprefix("mut ")
        text = f"impl RuntimeOp for Op {{ fn pack_args(&self, a: A, {name}: &mut V) {{ {called}.visit_i32(1); }} }}"
        assert shape(read(tmp_path, text).impls[0].packings[0].steps) == ["i32 1"]

    def test_other_things_are_visited_by_others(self, tmp_path: Path) -> None:
        assert packing(tmp_path, "other.visit_ptr(output); self.visitor.visit_ptr(output);").steps == ()

    @pytest.mark.parametrize("start", ["let v = visitor;", "let v = &mut *visitor;", "let v = (&mut *visitor);",
                                       "let v = visitor as &mut dyn ArgVisitor;"])  # fmt: skip
    def test_another_name_for_the_visitor(self, tmp_path: Path, start: str) -> None:
        assert shape(packing(tmp_path, f"{start} v.visit_i32(1); v.visit_ptr(output);").steps) == [
            "i32 1",
            "ptr output",
        ]

    def test_what_is_thrown_away_visits_nothing(self, tmp_path: Path) -> None:
        assert packing(tmp_path, "let _ = (inputs, params, visitor); let _ = visitor;").steps == ()

    def test_a_name_that_means_another_thing_now(self, tmp_path: Path) -> None:
        body = "let visitor = &mut Count::new(); visitor.visit_i32(1);"
        assert packing(tmp_path, body).steps == ()
        body = "let visitor = &mut Shifted { inner: visitor }; visitor.visit_i32(1);"
        assert shape(packing(tmp_path, body).steps) == ["unknown"]
        body = "others(|visitor| visitor.visit_i32(1)); visitor.visit_i32(2);"
        assert shape(packing(tmp_path, body).steps) == ["i32 2"]

    def test_by_the_traits_name(self, tmp_path: Path) -> None:
        body = "ArgVisitor::visit_i32(visitor, n); teeny_core::ArgVisitor::visit_ptr(&mut *visitor, output);"
        assert shape(packing(tmp_path, body).steps) == ["i32 n", "ptr output"]

    def test_arguments_that_visit_themselves(self, tmp_path: Path) -> None:
        body = "output.visit(visitor); (output, 3i32, self.eps).visit_args(visitor);"
        assert shape(packing(tmp_path, body).steps) == ["None output", "None output", "None 3i32", "None self.eps"]


class TestWays:
    def test_if_else_and_match(self, tmp_path: Path) -> None:
        body = (
            "if self.bias { visitor.visit_ptr(params[1]); } else if a { visitor.visit_i32(0); visitor.visit_i32(1); }"
        )
        assert shape(packing(tmp_path, body).steps) == [
            ("choice", ["ptr params[1]"], [("choice", ["i32 0", "i32 1"], [])])
        ]
        body = "match k { 0 => visitor.visit_i32(1), 1 => {} _ => unreachable!() }"
        assert shape(packing(tmp_path, body).steps) == [("choice", ["i32 1"], [], ["never"])]

    def test_an_early_return(self, tmp_path: Path) -> None:
        body = "visitor.visit_i32(1); if a { return; } visitor.visit_i32(2);\n"
        body += "let Some(x) = y else { return }; visitor.visit_i32(x);"
        found = ways(packing(tmp_path, body).steps)
        assert found is not None
        assert sorted(tuple(visit.text for visit in way) for way in found) == [("1",), ("1", "2"), ("1", "2", "x")]

    def test_what_a_feature_compiles_in(self, tmp_path: Path) -> None:
        body = '#[cfg(feature = "training")]\n visitor.visit_i32(1);\n #[allow(unused)]\n visitor.visit_i32(2);'
        assert shape(packing(tmp_path, body).steps) == [("choice", ["i32 1"], []), "i32 2"]

    @pytest.mark.parametrize(
        "loop",
        ["for &p in params.iter().take(self.n) { visitor.visit_ptr(p); }", "while a() { visitor.visit_ptr(p); }",
         "for p in params { visitor.visit_ptr(*p) }", "params.iter().for_each(|p| visitor.visit_ptr(*p));",
         "for i in 0..self.n { visitor.visit_ptr(params[i]); }", "for i in 0..9999 { visitor.visit_ptr(p); }",
         "while let Some(p) = next() { visitor.visit_ptr(p); }"],
    )  # fmt: skip
    def test_a_loop(self, tmp_path: Path, loop: str) -> None:
        before, turns, after = packing(tmp_path, f"visitor.visit_i32(0); {loop} visitor.visit_i32(1);").steps
        assert isinstance(before, Visit)
        assert isinstance(after, Visit)
        assert isinstance(turns, Repeat)
        assert [isinstance(step, Visit) and step.kind for step in turns.steps] == ["ptr"]

    @pytest.mark.parametrize(
        ("loop", "turns"),
        [("for k in 0..3 { visitor.visit_i32(k); }", 3), ("for k in 2..=3 { visitor.visit_i32(k); }", 2),
         ("for k in [a, b, c] { visitor.visit_i32(k); }", 3), ("for k in 3..1 { visitor.visit_i32(k); }", 0),
         ("for _ in 0..2 { for k in 0..2 { visitor.visit_i32(k); } }", 4)],
    )  # fmt: skip
    def test_a_loop_over_literals_is_written_out(self, tmp_path: Path, loop: str, turns: int) -> None:
        assert shape(packing(tmp_path, loop).steps) == ["i32 k"] * turns

    def test_a_loop_left_halfway_visits_in_any_number(self, tmp_path: Path) -> None:
        body = "for k in 0..2 { visitor.visit_i32(k); if a { break; } visitor.visit_ptr(p); }"
        assert shape(packing(tmp_path, body).steps) == [("repeat", ("choice", ["i32 k"], ["ptr p"]))]

    def test_a_break_out_of_a_block_leaves_all_open(self, tmp_path: Path) -> None:
        body = "visitor.visit_i32(0); 'a: { if x { break 'a; } visitor.visit_i32(1); }"
        assert shape(packing(tmp_path, body).steps) == ["unknown"]

    @pytest.mark.parametrize("body", ["unimplemented!()", 'todo!("later");', 'core::panic!("{}", visitor)'])
    def test_a_stub(self, tmp_path: Path, body: str) -> None:
        assert packing(tmp_path, body).steps == (Never(),)
        assert ways(packing(tmp_path, body).steps) == []

    @pytest.mark.parametrize(
        "body",
        ["emit!(visitor, 1);", "helpers::pack(visitor);", "self.inner.pack(inputs, visitor);", "visitor.skip(3);",
         "let p = Packer { visitor };", "store(&mut *visitor)", "args.visit_args(visitor);",
         "let put = |p| visitor.visit_ptr(p); inputs.iter().for_each(put);",
         "macro_rules! put { ($e:expr) => { visitor.visit_ptr($e) } } put!(output);"],
    )  # fmt: skip
    def test_what_leads_elsewhere_is_unknown(self, tmp_path: Path, body: str) -> None:
        steps = packing(tmp_path, f"visitor.visit_i32(0); {body}").steps
        assert isinstance(steps[0], Visit)
        assert [type(step) for step in steps[1:]] == [Unknown]

    def test_a_question_mark_may_return(self, tmp_path: Path) -> None:
        found = ways(packing(tmp_path, "visitor.visit_i32(a?); visitor.visit_i32(2);").steps)
        assert found is not None
        assert sorted(map(len, found)) == [0, 2]


class TestCalls:
    def test_of_the_same_impl(self, tmp_path: Path) -> None:
        text = impl(
            "Cat",
            method("pack_args", "self.pack_args_for_launch(0, inputs, params, output, output_shape, 1, visitor);"),
            method("pack_args_for_launch", "visitor.visit_ptr(inputs[launch_idx].0); visitor.visit_i32(0);"),
        )
        first, second = read(tmp_path, text).impls[0].packings
        assert shape(first.steps) == shape(second.steps) == ["ptr inputs[launch_idx].0", "i32 0"]

    def test_of_the_trait_itself(self, tmp_path: Path) -> None:
        backward = "self.pack_backward_args_for_launch(0, visitor);"
        text = impl("Op", method("pack_backward_args", backward), method("pack_args", "visitor.visit_i32(1);"),
                    method("pack_args_for_launch", "Self::other(visitor)"))  # fmt: skip
        steps = {packing.method: packing.steps for packing in read(tmp_path, text).impls[0].packings}
        assert [type(step) for step in steps["pack_args_for_launch"]] == [Unknown]
        assert ways(steps["pack_backward_args"]) is None  # it calls itself for ever

    def test_of_a_helper_names_what_the_caller_passes(self, tmp_path: Path) -> None:
        after = """fn shape(v: &mut dyn ArgVisitor, n: i32, m: i32) { if n > 0 { return; } v.visit_i32(m); }
            impl<D> Op<D> { fn dims(&self, v: &mut dyn ArgVisitor) { v.visit_i32(self.k); } }"""
        body = "self.dims(visitor);\nSelf::dims(self, visitor);\nshape(visitor, 1, rows as i32);\nvisitor.visit_i32(7);"
        found = ways(packing(tmp_path, body, after=after).steps)
        assert found is not None
        assert sorted(tuple((visit.text, visit.at.line) for visit in way) for way in found) == [
            (("self.k", 10), ("self.k", 10), ("7", 6)),
            (("self.k", 10), ("self.k", 10), ("rows as i32", 5), ("7", 6)),
        ]

    def test_of_a_closure(self, tmp_path: Path) -> None:
        body = "let mut put = |p: RawPtr| visitor.visit_ptr(p);\nput(output);\nput(params[0]);"
        steps = packing(tmp_path, body).steps
        assert [(step.text, step.at.line) for step in steps if isinstance(step, Visit)] == [
            ("output", 4),
            ("params[0]", 5),
        ]

    def test_of_a_function_within(self, tmp_path: Path) -> None:
        body = "fn two(v: &mut dyn ArgVisitor) { v.visit_i32(1); v.visit_i32(2); }\ntwo(visitor);"
        assert shape(packing(tmp_path, body).steps) == ["i32 1", "i32 2"]

    def test_of_itself_comes_to_an_end(self, tmp_path: Path) -> None:
        after = "fn a(v: &mut V) { v.visit_i32(1); if x { b(v); b(v); } }\nfn b(v: &mut V) { a(v); a(v); }"
        assert ways(packing(tmp_path, "a(visitor);", after=after).steps) is None


class TestImpls:
    def test_names_and_methods(self, tmp_path: Path) -> None:
        text = """
            impl RuntimeOp for Plain { fn pack_args(&self, v: &mut V) {} fn grid(&self) -> [u32; 3] { [1, 1, 1] } }
            mod inner { pub mod more {
                impl<'a, D: Num, const B: i32> crate::model::RuntimeOp for ops::Nested<'a, D, B> where D: Send {
                    fn pack_args(&self, v: &mut V) {}
                    #[cfg(feature = "training")]
                    #[allow(clippy::too_many_arguments)]
                    fn pack_backward_args(&self, v: &mut V) { v.visit_i32(1); }
                }
            } }
            impl Clone for Plain {}
            impl Plain { fn pack_args(&self) {} }
        """
        file = read(tmp_path, text)
        assert [(impl.name, [packing.method for packing in impl.packings]) for impl in file.impls] == [
            ("Plain", ["pack_args"]), ("Nested", ["pack_args", "pack_backward_args"]),
        ]  # fmt: skip
        assert file.others == ("Clone for Plain",)
        assert file.errors == ()

    def test_a_backward_that_is_not_written_visits_nothing(self, tmp_path: Path) -> None:
        text = "impl RuntimeOp for Op {{ fn pack_args(&self, v: &mut V) {{}} fn has_backward(&self) -> bool {{ {} }} }}"
        (side,) = read(tmp_path, text.format("true")).impls[0].side(True)
        assert (side.method, side.steps) == ("pack_backward_args", ())
        assert read(tmp_path, text.format("false")).impls[0].side(True) == ()

    def test_those_that_a_macro_writes(self, tmp_path: Path) -> None:
        text = """
            macro_rules! unary {
                ($Op:ident, $n:expr) => {
                    impl<D: Float> teeny_core::model::RuntimeOp for $Op<D> {
                        fn pack_args(&self, x: &[RawPtr], visitor: &mut dyn ArgVisitor) {
                            visitor.visit_ptr(x[0]); visitor.visit_i32($n);
                        }
                    }
                };
            }
            unary!(Relu, 1);
            unary!(ops::Gelu<f32>, 2);
            macro_rules! unused { ($T:ty) => { impl RuntimeOp for $T { fn pack_args(&self, v: &mut V) {} } }; }
        """
        file = read(tmp_path, text)
        assert [impl.name for impl in file.impls] == ["Relu", "Gelu", "_T"]
        for one in file.impls[:2]:
            assert shape(one.packings[0].steps) == ["ptr x[0]", "i32 $n"]
            assert one.packings[0].at.line == 5

    def test_text_that_is_no_rust(self, tmp_path: Path) -> None:
        text = "fn broken( { }\n" + impl("Op", method("pack_args", "visitor.visit_ptr(output;"))
        file = read(tmp_path, text)
        assert file.impls[0].packings[0].error == Spot(4, 25)
        assert [spot.line for spot in file.errors] == [1]
        assert file.place(Spot(4, 25)).text == "visitor.visit_ptr(output;"


class TestWhatIsRefused:
    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        with pytest.raises(TeenyError) as error:
            read(tmp_path, b"impl A {}\n// \xff\n")
        assert error.value.finding.id == "rust-syntax"
        assert error.value.finding.where == Place(str(tmp_path / "op.rs"), 2)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        (tmp_path / "softmax.rs").write_text("")
        with pytest.raises(TeenyError) as error:
            read_rust(str(tmp_path / "sofmax.rs"))
        assert error.value.finding.id == "file-not-found"
        assert error.value.finding.hint == "did you mean 'softmax.rs'?"

    def test_a_file_that_is_too_large(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("teenycli.rust.tree.LARGEST", 100)
        with pytest.raises(TeenyError) as error:
            read(tmp_path, "/" * 101)
        assert error.value.finding.id == "file-too-large"

    def test_text_that_takes_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("teenycli.rust.tree.PATIENCE", 0.2)
        with pytest.raises(TeenyError) as error:
            read(tmp_path, '"' * 2_000_000)
        assert error.value.finding.message == "parsing takes longer than 0.2 seconds"

    def test_without_the_packages_the_cure_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "tree_sitter", None)
        with pytest.raises(TeenyError) as error:
            read(tmp_path, "impl A {}")
        assert error.value.finding.id == "missing-extra"
        assert error.value.finding.hint == "pip install 'teenycli[rust]'"


#: What goes deep, and wide, in the body of a method.
_HOSTILE = {
    "parentheses": ("(" * 50_000, "visitor.visit_i32(1)", ")" * 50_000),
    "blocks": ("{" * 50_000, "visitor.visit_i32(1)", "}" * 50_000),
    "chain": ("visitor", ".a()" * 50_000, ";"),
    "sum": ("visitor.visit_i32(1", "+ 1" * 50_000, ");"),
    "ifs": ("if a {" * 20_000, "visitor.visit_i32(1)", "}" * 20_000),
    "else": ("if a {}", "else if b { visitor.visit_i32(1) }" * 20_000, ""),
    "loops": ("for i in 0..64 {" * 500, "visitor.visit_i32(1);", "}" * 500),
    "choices": ("", "if a { visitor.visit_i32(1); }" * 20_000, ""),
    "visits": ("", "visitor.visit_i32(1);" * 50_000, ""),
    "closures": ("let f = |a| " * 500, "visitor.visit_i32(1);", ""),
    "macros": ("m!(" * 20_000, "visitor", ")" * 20_000),
    "open": ("fn f(" * 50_000, "", ""),
    "unclosed": ("visitor.visit_i32((" * 50_000, "", ""),
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_hostile_text_is_read_in_a_moment(tmp_path: Path, name: str) -> None:
    start = time.monotonic()
    file = read(tmp_path, impl("Op", method("pack_args", "".join(_HOSTILE[name]))))
    for one in file.impls:
        for each in one.packings:
            ways(each.steps)
            assert Reach(lambda _visit, _k: True, 80).counts(each.steps) or each.steps
    assert time.monotonic() - start < 15


def test_helpers_that_call_each_other_twice_do_not_explode(tmp_path: Path) -> None:
    calls = (f"fn f{k}(v: &mut V) {{ for i in 0..64 {{ f{k + 1}(v); f{k + 1}(v); }} }}\n" for k in range(40))
    steps = packing(tmp_path, "f0(visitor);", after="".join(calls) + "fn f40(v: &mut V) { v.visit_i32(1); }").steps
    assert 80 in Reach(lambda _visit, _k: True, 80).counts(steps)


def test_damaged_text_is_read_or_refused(tmp_path: Path) -> None:
    body = "for &p in params { visitor.visit_ptr(p); }\nif a { return; }\nlet f = |x: i32| visitor.visit_i32(x); f(1);"
    macro = "macro_rules! m { ($T:ident) => { impl RuntimeOp for $T { fn pack_args(&self, v: &mut V) {} } } }\nm!(A);\n"
    text = macro + impl("Op", method("pack_args", body), method("pack_backward_args", "help(visitor)"))
    random = Random(5)
    broken = 0
    for _ in range(300):
        damaged = list(text)
        for _ in range(random.randint(1, 4)):
            at = random.randrange(len(damaged))
            damaged[at : at + random.randint(0, 3)] = random.choice(
                ["{", "}", "(", ")", "<", ";", '"', "|", "$", "é", ""]
            )
        file = read(tmp_path, "".join(damaged))
        broken += bool(file.errors) or any(each.error for one in file.impls for each in one.packings)
        for one in file.impls:
            for each in one.packings:
                assert file.place(each.at).line <= len(file.lines)
                Reach(lambda _visit, _k: True, 8).counts(each.steps)
    assert broken > 200
