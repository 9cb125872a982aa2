"""Every kernel that is measured computes what numpy does, at a small size."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.cases import KERNELS, Case, Kernel
from benchmarks.sides import Loaded
from benchmarks.start_up import SUBJECTS, Subject
from teenycli.devices.cpu import CpuDevice

pytestmark = pytest.mark.device


def run(case: Case) -> None:
    with CpuDevice(threads=2, cache=False) as device:
        loaded = Loaded(case, device)
        loaded.run()
        loaded.checked()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.make.__name__)
def test_measured_kernels_compute_what_numpy_does(kernel: Kernel) -> None:
    run(kernel.make(*kernel.small))


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_kernels_whose_compilation_is_measured_compute_what_numpy_does(subject: Subject) -> None:
    run(subject.case)


def test_a_wrong_result_is_refused() -> None:
    case = KERNELS[0].make(100)
    with pytest.raises(AssertionError, match="99 of 100 results are wrong"):
        case.check(np.concatenate([case.numpy()[:1], np.zeros(99, np.float32)]), "nobody")
