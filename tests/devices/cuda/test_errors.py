from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from teenycli.arch import Limits
from teenycli.devices.cuda import errors
from teenycli.devices.cuda.driver import DriverError
from teenycli.devices.cuda.errors import FAULTS, Facts
from teenycli.devices.cuda.gpu import Gpu
from teenycli.devices.cuda.stories import CAUSES
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.launch.plan import Launch
from teenycli.ptx.model import Function, Module
from tests.devices.cuda.fake import CUresult
from tests.ptx.text import module_of

pytestmark = pytest.mark.unit

GPU = Gpu("cuda:0", "NVIDIA H200", 90, (12, 4))
LIMITS = Limits(shared_optin=232448)
LAUNCH = Launch("op", 0, "k", (4, 1, 1), (128, 1, 1), ())


def failure(code: int, call: str = "cuLaunchKernelEx", log: str = "") -> DriverError:
    return DriverError(code, CUresult(code).name, "its own words", call, log)


def entry_of(directives: str = "") -> tuple[Module, Function]:
    module = module_of(f"\n.visible .entry k() {directives} {{ ret; }}\n.visible .entry softmax() {{ ret; }}\n")
    return module, module.entries[0]


def refused(launch: Launch, directives: str = "", facts: Facts | None = None) -> str:
    module, entry = entry_of(directives)
    error = errors.launch_refused(launch, module, entry, facts or Facts(LIMITS), failure(1))
    assert (error.finding.id, error.exit) == ("launch-refused", Exit.FAILED)
    assert str(error.finding.where) == "k.ptx:5:17"
    assert error.finding.note == "cuLaunchKernelEx says CUDA_ERROR_INVALID_VALUE (1): its own words"
    return error.finding.message


# --- loading -----------------------------------------------------------------------------------------------------


def load_error(code: int, log: str = "", module: Module | None = None, gpu: Gpu = GPU) -> TeenyError:
    return errors.load_error(failure(code, "cuModuleLoadDataEx", log), module or entry_of()[0], "k", gpu)


def test_a_driver_too_old_for_the_ptx_version_is_told_with_both_versions() -> None:
    error = load_error(222)
    assert (error.finding.id, error.exit) == ("ptx-version", Exit.UNSUPPORTED)
    assert error.finding.message == (
        "PTX 8.7 needs a driver of CUDA 12.8 (r570) or later; the driver of cuda:0 is of CUDA 12.4, "
        "which takes PTX up to 8.4"
    )
    assert "compile for PTX 8.4 (Triton: ptx_version=84)" in (error.finding.hint or "")


def test_a_ptx_version_that_nobody_knows_needs_a_newer_driver() -> None:
    error = load_error(222, module=dataclasses.replace(entry_of()[0], version=(99, 9)))
    assert error.finding.message.startswith("PTX 99.9 needs a newer driver; the driver of cuda:0 is of CUDA 12.4")


def test_a_refusal_that_the_table_does_not_explain_is_told_as_it_is() -> None:
    error = load_error(222, gpu=replace(GPU, cuda=(14, 0)))
    assert error.finding.message == "the driver of cuda:0 is of CUDA 14.0 and refuses PTX 8.7"


def test_invalid_ptx_from_a_driver_too_old_is_the_version_s_fault() -> None:
    assert load_error(218).finding.id == "ptx-version"


def test_the_log_is_attached_and_gives_the_place() -> None:
    log = "ptxas application ptx input, line 6; error   : Unknown symbol 'foo'\nmore"
    error = load_error(218, log, gpu=replace(GPU, cuda=(13, 0)))
    assert (error.finding.id, error.exit) == ("invalid-ptx", Exit.UNSUPPORTED)
    assert str(error.finding.where) == "k.ptx:6"
    assert error.finding.note == (
        f"cuModuleLoadDataEx says CUDA_ERROR_INVALID_PTX (218): its own words\nthe driver's log:\n{log}"
    )


@pytest.mark.parametrize(
    ("log", "said", "cure"),
    [
        ("ptxas error   : Entry function 'k' uses too much shared data (0x13880 bytes, 0xc000 max)",
         "'k' has 80,000 bytes of static shared memory, and 49,152 is the most", "--shared"),
        ("ptxas p.ptx, line 5; error   : Entry function 'k' uses too much parameter space (0x9c40 bytes, 0x7ffc max).",
         "'k' has 40,000 bytes of parameters, and 32,764 is the most", "by address"),
        ("ptxas fatal   : Unresolved extern function 'foo'", "the function 'foo', which it does not define", "link"),
        ("ptxas p.ptx, line 5; error   : Feature 'cp.async.wait_all' requires .target sm_80 or higher",
         "it uses cp.async.wait_all, which needs .target sm_80 or higher", "compile it for sm_80"),
        ("ptxas q.ptx, line 5; error   : Feature 'it' requires PTX ISA .version 8.1 or later",
         "it uses it, which needs .version 8.1 or later", ".version"),
    ],
)  # fmt: skip
def test_what_the_log_complains_of_is_put_into_words(log: str, said: str, cure: str) -> None:
    error = load_error(218, log, gpu=replace(GPU, cuda=(13, 0)))
    assert error.finding.message.startswith("the driver cannot compile this PTX for cuda:0 (NVIDIA H200, sm_90): ")
    assert said in error.finding.message
    assert cure in (error.finding.hint or "")
    assert log in (error.finding.note or "")


@pytest.mark.parametrize(
    ("code", "id"),
    [(2, "out-of-memory"), (200, "invalid-ptx"), (209, "target-architecture"), (221, "no-jit"), (223, "no-jit"),
     (500, "unknown-entry"), (400, "cuda-driver")],
)  # fmt: skip
def test_every_other_failure_to_load_has_its_story(code: int, id: str) -> None:
    error = load_error(code)
    assert (error.finding.id, error.exit) == (id, Exit.UNSUPPORTED)
    assert CUresult(code).name in (error.finding.note or "")


def test_no_binary_for_another_architecture_names_both() -> None:
    error = load_error(209, gpu=replace(GPU, sm=80))
    assert error.finding.message == (
        "this PTX is for sm_90, which runs on sm_90 and later; cuda:0 (NVIDIA H200, sm_80) is not that"
    )
    assert (error.finding.hint or "").startswith("compile it for sm_80")


def test_an_unknown_entry_lists_those_there() -> None:
    error = errors.unknown_entry(entry_of()[0], "softmx")
    assert error.finding.message == "there is no entry 'softmx'; those there: k, softmax"
    assert error.finding.hint == "did you mean 'softmax'?"
    assert error.exit is Exit.UNUSABLE


# --- launching ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "directives", "expected"),
    [
        ({"block": (256, 1, 1)}, ".reqntid 128", "block 256x1x1, but the kernel demands 128x1x1 (.reqntid)"),
        ({"block": (64, 2, 1)}, ".reqntid 128", "block 64x2x1, but the kernel demands 128x1x1 (.reqntid)"),
        ({"block": (16, 16, 1)}, ".maxntid 128, 1, 1",
         "block 16x16x1 is 256 threads, but the kernel allows 128 (.maxntid)"),
        ({"block": (1024, 2, 1)}, "", "block 1024x2x1 is 2048 threads, but the device allows 1024"),
        ({"block": (1, 1, 128)}, "", "block 1x1x128, but the device allows 1024x1024x64"),
        ({"block": (0, 1, 1)}, "", "block 0x1x1 has a dimension below 1"),
        ({"grid": (1, 65536, 1)}, "", "grid 1x65536x1, but the device allows 2147483647x65535x65535"),
        ({"grid": (0, 1, 1)}, "", "grid 0x1x1 has a dimension below 1"),
        ({"grid": (3, 1, 1), "cluster": (2, 1, 1)}, "", "grid 3x1x1 (in CTAs) is no multiple of cluster 2x1x1"),
        ({"cluster": (2, 1, 1)}, ".reqnctapercluster 4",
         "cluster 2x1x1, but the kernel demands 4x1x1 (.reqnctapercluster)"),
        ({"cluster": (4, 1, 1)}, ".maxclusterrank 2",
         "cluster 4x1x1 is 4 CTAs, but the kernel allows 2 (.maxclusterrank)"),
        ({"cluster": (0, 1, 1)}, "", "cluster 0x1x1 has a dimension below 1"),
        ({"shared": 232449}, "", "it needs 232,449 bytes of dynamic shared memory, the device allows 232,448"),
        ({"shared": -1}, "", "-1 bytes of dynamic shared memory"),
    ],
)  # fmt: skip
def test_what_is_known_to_be_wrong_is_named(change: dict[str, Any], directives: str, expected: str) -> None:
    assert refused(replace(LAUNCH, **change), directives) == f"launch 0 of 'k' cannot be: {expected}"


@pytest.mark.parametrize(("code", "named"), [(912, True), (1, False)])
def test_a_cluster_over_the_portable_size_is_the_reason_only_where_the_driver_says_so(code: int, named: bool) -> None:
    once = replace(LAUNCH, grid=(32, 1, 1), cluster=(16, 1, 1))
    error = errors.launch_refused(once, *entry_of(""), Facts(LIMITS), failure(code))
    told = "cluster 16x1x1 is 16 CTAs, but the device promises no more than 8"
    assert (told in error.finding.message) == named


def test_several_reasons_are_all_named() -> None:
    message = refused(replace(LAUNCH, block=(2048, 1, 1), grid=(1, 1, 70000)), ".reqntid 128")
    assert message.count(";") == 3


def test_static_shared_memory_counts() -> None:
    facts = Facts(LIMITS, static_shared=4096)
    assert refused(replace(LAUNCH, shared=230000), facts=facts).endswith(
        "it needs 230,000 bytes of dynamic shared memory, the device allows 232,448 less 4,096 static"
    )


def test_registers_limit_the_block() -> None:
    facts = Facts(LIMITS, max_threads=256, registers=255)
    assert refused(replace(LAUNCH, block=(512, 1, 1)), facts=facts).endswith(
        "block 512x1x1 is 512 threads, but the kernel with 255 registers a thread has room for 256"
    )
    # The driver's number follows the directive where there is one, and says nothing more.
    assert refused(replace(LAUNCH, block=(512, 1, 1)), ".maxntid 256", facts).endswith("allows 256 (.maxntid)")


def test_a_cooperative_grid_must_be_resident() -> None:
    launch = replace(LAUNCH, grid=(300, 1, 1), cooperative=True)
    facts = Facts(LIMITS, resident=264)
    assert refused(launch, facts=facts).endswith(
        "a cooperative grid of 300 CTAs, but the device holds 264 of them at once"
    )
    assert not errors.mismatches(replace(launch, grid=(264, 1, 1)), entry_of()[1], facts)


def test_a_refusal_without_a_known_reason_shows_the_whole_launch() -> None:
    assert refused(LAUNCH) == (
        "the driver refused launch 0 of 'k' with grid 4x1x1, block 128x1x1, cluster 1x1x1, "
        "0 bytes of dynamic shared memory: no limit that is known here is exceeded"
    )


@pytest.mark.parametrize(
    ("code", "said"), [(701, "more of another resource"), (720, "all at once"), (912, "cannot place a cluster")]
)
def test_a_refusal_that_the_plan_does_not_explain_is_told_by_its_number(code: int, said: str) -> None:
    module, entry = entry_of()
    error = errors.launch_refused(LAUNCH, module, entry, Facts(LIMITS), failure(code))
    assert said in error.finding.message
    assert error.finding.hint
    assert f"({code})" in (error.finding.note or "")


@pytest.mark.parametrize(
    ("change", "directives", "fits"),
    [
        ({}, "", True),
        # Numbers that are wrong but fit are for the driver to judge.
        ({"grid": (0, 1, 1)}, "", True),
        ({"grid": (2**32 - 1, 1, 1)}, "", True),
        ({"grid": (2**32, 1, 1)}, "", False),
        ({"block": (-1, 1, 1)}, "", False),
        ({"shared": 2**31}, "", False),
        ({"shared": -1}, "", False),
        ({"grid": (3, 1, 1), "cluster": (2, 1, 1)}, "", True),
        ({"grid": (3, 1, 1), "cluster": (2, 1, 1)}, ".blocksareclusters .reqntid 1 .reqnctapercluster 2", False),
        ({"cluster": (0, 1, 1)}, ".blocksareclusters .reqntid 1 .reqnctapercluster 2", False),
    ],
)
def test_what_the_driver_s_interface_has_room_for(change: dict[str, Any], directives: str, fits: bool) -> None:
    launch, entry = replace(LAUNCH, **change), entry_of(directives)[1]
    assert errors.representable(launch, entry) is fits
    # What does not fit is always explained, since the driver is not asked.
    assert fits or errors.mismatches(launch, entry, Facts(LIMITS))


# --- while it runs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(set(FAULTS) & set(CUresult)))
def test_a_fault_is_pinned_to_its_launch(code: int) -> None:
    module, entry = entry_of()
    error = errors.fault(failure(code, "cuEventQuery"), replace(LAUNCH, index=3), module, entry)
    assert error.exit is Exit.FAILED
    assert error.finding.message.startswith("launch 3 of 'k' (grid 4x1x1, block 128x1x1) ")
    assert str(error.finding.where) == "k.ptx:5:17"
    assert f"{CUresult(code).name} ({code})" in (error.finding.note or "")


@pytest.mark.parametrize(
    ("code", "id", "cpu_helps"),
    [(700, "out-of-bounds", True), (716, "misaligned", True), (717, "address-space", True),
     (719, "launch-failed", True), (715, "illegal-instruction", True), (714, "hardware-stack", True),
     (710, "assertion", False), (702, "launch-timeout", False), (214, "hardware", False)],
)  # fmt: skip
def test_faults_have_ids_and_say_whether_the_cpu_device_would_find_the_place(
    code: int, id: str, cpu_helps: bool
) -> None:
    fault = FAULTS[code]
    assert fault.id == id
    assert ("--device cpu" in (fault.hint or "")) is cpu_helps


def test_a_time_out_says_that_the_kernel_goes_on() -> None:
    error = errors.timed_out(LAUNCH, 0.5)
    assert (error.finding.id, error.exit) == ("timeout", Exit.FAILED)
    assert error.finding.message == "launch 0 of 'k' (grid 4x1x1, block 128x1x1) has not ended within 0.5 s"
    assert "cannot be stopped" in (error.finding.note or "")


def test_out_of_memory_names_the_sizes() -> None:
    error = errors.out_of_memory(failure(2, "cuMemAlloc"), "buffer 'x'", 1 << 40, (1000, 2000))
    assert error.finding.message == ("buffer 'x' needs 1,099,511,627,776 bytes; 1,000 of the device's 2,000 are free")
    assert error.exit is Exit.UNSUPPORTED
    assert errors.out_of_memory(failure(2), "buffer 'x'", 5, None).finding.message == "buffer 'x' needs 5 bytes"


def test_a_function_that_the_driver_lacks_asks_for_a_newer_driver() -> None:
    error = errors.failed(failure(36), "running it")
    assert (error.finding.message, error.exit) == ("the CUDA driver is too old for running it", Exit.UNSUPPORTED)
    old = errors.failed(failure(36), "running it", (11, 4))
    assert old.finding.message.endswith(
        "running it: cuLaunchKernelEx takes a driver of CUDA 11.8 or later, and this one is of CUDA 11.4"
    )
    assert errors.failed(failure(400), "closing cuda:0").exit is Exit.FAILED


def test_a_call_that_fails_by_itself_has_cause_and_cure() -> None:
    error = errors.failed(failure(304, "cuMemHostAlloc"), "copying 'x'")
    assert error.finding.message == "the CUDA driver failed while copying 'x': the operating system refused it"
    assert "ulimit" in (error.finding.hint or "")
    assert errors.failed(failure(401), "it").finding.message == "the CUDA driver failed while it"


def test_after_a_fault_the_context_is_said_to_be_gone() -> None:
    module, entry = entry_of()
    for error in (
        errors.fault(failure(700, "cuEventQuery"), LAUNCH, module, entry),
        errors.failed(failure(700, "cuMemcpyDtoH"), "copying 'x'"),
    ):
        assert error.exit is Exit.FAILED
        assert "--device cpu" in (error.finding.hint or "")
        assert (error.finding.note or "").endswith("the GPU's context is gone with it: nothing more can run in this "
                                                   "process, which ends")  # fmt: skip


@pytest.mark.parametrize("code", sorted(CAUSES))
def test_a_device_that_cannot_be_opened_has_cause_and_cure(code: int) -> None:
    error = errors.cannot_open(DriverError(code, "NAME", "its own words", "cuDevicePrimaryCtxRetain"), "cuda:1")
    assert (error.finding.id, error.exit) == ("no-device", Exit.NO_DEVICE)
    assert error.finding.message == f"cuda:1 cannot be opened: {CAUSES[code].words}"
    assert error.finding.hint == CAUSES[code].hint is not None
    assert error.finding.note == f"cuDevicePrimaryCtxRetain says NAME ({code}): its own words"
