"""Where a probe looks, which orders of arguments it tries, and one device for many ops."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from teenycli.arch import limits_of
from teenycli.devices.probe import Prober, probe
from teenycli.devices.probe.dims import CHOSEN_ELEMENTS, Case, Planner, cases
from teenycli.devices.probe.orders import Order, orders
from teenycli.expressions import parse
from teenycli.launch.build import plan_case
from teenycli.launch.cases import Overrides
from teenycli.manifest.arguments import parse_argument
from teenycli.manifest.load import load_manifest, ptx_file
from teenycli.manifest.spec import OpSpec
from teenycli.ptx import Module, Source, outline, read_source
from tests.commands.teeny import ROOT

MANIFEST = load_manifest(ROOT / "ops.toml")


def module_of(spec: OpSpec) -> Module:
    return outline(read_source(ptx_file(spec)))


def planner(name: str, **dims: int) -> Planner:
    spec = MANIFEST.op(name)
    modules = [module_of(spec)]
    if spec.backward is not None:
        modules.append(outline(read_source(ptx_file(spec.backward))))
    return Planner(spec, modules, Overrides(dims), limits_of(100))


def chosen(name: str, **dims: int) -> list[Case]:
    return [case for case in cases(planner(name, **dims)) if not case.own]


@pytest.mark.unit
class TestDims:
    @pytest.mark.parametrize("name", list(MANIFEST.ops))
    def test_all_differ_and_each_axis_has_several_ctas(self, name: str) -> None:
        tiny, *longer = chosen(name)
        assert len(set(tiny.dims.values())) == len(tiny.dims)
        limits = MANIFEST.op(name).dims
        assert all(size <= 64 * limits[dim].multiple_of for dim, size in tiny.dims.items())
        assert all(len(set(case.dims.values())) == len(case.dims) for case in longer)
        axes = len(MANIFEST.op(name).grid)
        for axis in range(axes):
            assert any(launch.grid[axis] > 1 for case in (tiny, *longer) for launch in case.plans[0].launches)
        assert all(buffer_elements(case) <= CHOSEN_ELEMENTS for case in (tiny, *longer))

    @pytest.mark.parametrize("name", list(MANIFEST.ops))
    def test_each_two_sizes_that_can_differ_do_somewhere(self, name: str) -> None:
        def pairs(case: Case) -> set[tuple[str, str]]:
            args = [arg for arg in case.plans[0].launches[0].args if arg.kind == "i32"]
            both = combinations(args, 2)
            return {(a.name, b.name) for a, b in both if a.fields[0].value == b.fields[0].value}

        always = set.intersection(*map(pairs, chosen(name)))
        strides = {"COLS", "x.row_stride", "out.row_stride", "K", "w.row_stride", "1", "H", "out.shape[2]"}
        assert all({a, b} <= strides for a, b in always)

    def test_each_dim_is_longer_once_than_a_block(self) -> None:
        for name, dim in (("softmax_cuda", "COLS"), ("softmax_cuda", "ROWS"), ("linear_cuda", "K")):
            assert any(case.dims[dim] > 512 for case in chosen(name)), (name, dim)

    def test_those_given_stay_and_the_ops_own_come_last(self) -> None:
        found = list(cases(planner("softmax_cuda", COLS=40)))
        assert {case.dims["COLS"] for case in found} == {40}
        assert [case.own for case in found] == sorted(case.own for case in found)
        assert found[-1].dims == {"ROWS": 64, "COLS": 40}

    def test_an_op_that_takes_no_tiny_dims(self) -> None:
        one = planner("vector_add_cuda")
        one.spec = msgspec.structs.replace(one.spec, grid=(parse("N // BLOCK"),), backward=None)
        one.modules = one.modules[:1]
        assert [case.dims["N"] for case in cases(one) if not case.own] == [4099]


def buffer_elements(case: Case) -> int:
    return max(sum(buffer.size for buffer in plan.buffers) for plan in case.plans)


@pytest.mark.unit
class TestOrders:
    def test_values_that_are_equal_are_not_exchanged(self) -> None:
        spec = MANIFEST.op("softmax_cuda")
        plan = plan_case(spec, {"ROWS": 3, "COLS": 5}, module_of(spec))
        assert [str(order) for order in orders(plan, spec.args)] == [
            "arguments 0 'x' and 1 'out' look swapped: with them exchanged"
        ]

    def test_every_pair_of_a_kind_then_every_cycle_of_three(self) -> None:
        spec = MANIFEST.op("conv_bn_silu_cuda")
        # Another number for each of the sizes, which here need not fit each other.
        plan = plan_case(spec, chosen("conv_bn_silu_cuda")[0].dims, module_of(spec))
        numbered = [replace(arg, fields=(replace(arg.fields[0], value=arg.index),)) if arg.kind == "i32" else arg
                    for arg in plan.launches[0].args]  # fmt: skip
        plan = replace(plan, launches=(replace(plan.launches[0], args=tuple(numbered)),))
        found = list(orders(plan, spec.args))
        pairs = [order for order in found if len(order.slots) == 2]
        kinds = [arg.kind for arg in spec.args]
        assert len(pairs) == sum(kinds[a] == kinds[b] for a, b in combinations(range(len(kinds)), 2))
        assert found[: len(pairs)] == pairs
        assert len(found) == len(pairs) + 2 * sum(
            kinds[a] == kinds[b] == kinds[c] for a, b, c in combinations(range(len(kinds)), 3)
        )

    def test_an_order_is_of_every_launch(self) -> None:
        spec = MANIFEST.op("channel_cat_cuda")
        plan = plan_case(spec, {}, module_of(spec))
        (order,) = [o for o in orders(plan, spec.args) if [slot.argument for slot in o.slots] == [0, 1]]
        assert isinstance(order, Order)
        for before, after in zip(plan.launches, order.applied(plan).launches, strict=True):
            assert [a.fields[0].value for a in after.args[:2]] == [a.fields[0].value for a in before.args[1::-1]]
            assert after.args[2:] == before.args[2:]
            assert [a.offset for a in after.args] == [a.offset for a in before.args]


def counted(load: Callable[..., Any], loads: list[Any]) -> Callable[..., Any]:
    """``load``, its calls being noted."""

    def loaded(*args: Any) -> Any:
        loads.append(args)
        return load(*args)

    return loaded


@pytest.mark.device
class TestProber:
    def test_one_device_serves_many_ops(self) -> None:
        with Prober() as prober:
            for name in ("axpy_bf16_cuda", "rms_norm_f16_triton", "axpy_bf16_cuda"):
                spec = MANIFEST.op(name)
                found = prober.probe(spec, module_of(spec))
                assert len(found) > 3
                assert not any(probed.findings for probed in found)

    def test_other_arguments_take_the_kernel_that_is_loaded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        spec, loads = MANIFEST.op("axpy_bf16_cuda"), list[Any]()
        with Prober() as prober:
            monkeypatch.setattr(prober.device, "load", counted(prober.device.load, loads))
            prober.probe(spec, module_of(spec))
            args = (spec.args[1], spec.args[0], *spec.args[2:])
            found = prober.probe(msgspec.structs.replace(spec, args=args), module_of(spec))
        assert len(loads) == 1
        (finding,) = found[-1].findings
        assert finding.id == "probe-mismatch"
        assert "look swapped" in (finding.hint or "")

    def test_no_order_is_tried_where_none_is_asked_for(self) -> None:
        spec = MANIFEST.op("axpy_bf16_cuda")
        args = (spec.args[1], spec.args[0], *spec.args[2:])
        with Prober(order_runs=0) as prober:
            (finding,) = prober.probe(msgspec.structs.replace(spec, args=args), module_of(spec))[-1].findings
        assert (finding.id, finding.hint) == ("probe-mismatch", None)

    def test_findings_of_an_op_with_a_device_of_its_own(self) -> None:
        spec = MANIFEST.op("vector_add_cuda")
        args = (*spec.args[:3], parse_argument("i32 N - 1"))
        found = probe(msgspec.structs.replace(spec, args=args), module_of(spec))
        assert [finding.id for finding in found] == ["probe-not-written"]

    def test_a_kernel_that_the_device_cannot_run_is_built_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        spec, loads = MANIFEST.op("vector_add_cuda"), list[Any]()
        text = read_source(ptx_file(spec)).text.replace("ret;", "tcgen05.fence::before_thread_sync;\nret;")
        lacking = outline(Source("lacking.ptx", text))
        with Prober() as prober:
            monkeypatch.setattr(prober.device, "load", counted(prober.device.load, loads))
            for _ in range(2):
                (probed,) = prober.probe(spec, lacking)
                assert [finding.id for finding in probed.findings] == ["not-probed"]
        assert len(loads) == 1

    def test_random_numbers_are_of_the_seed(self) -> None:
        spec = MANIFEST.op("axpy_bf16_cuda")
        wrong = msgspec.structs.replace(spec, reference="alpha * x + y + 1", name=spec.name)
        messages = []
        for seed in (0, 0, 1):
            with Prober(seed, order_runs=0) as prober:
                messages.append(prober.probe(wrong, module_of(spec))[-1].findings[0].message)
        assert messages[0] == messages[1] != messages[2]
