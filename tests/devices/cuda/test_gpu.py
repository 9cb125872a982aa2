from __future__ import annotations

import pytest

from teenycli.devices.cuda.gpu import Gpu

pytestmark = pytest.mark.unit


def test_a_gpu_says_name_product_and_architecture() -> None:
    assert str(Gpu("cuda:1", "NVIDIA H200", 90, (13, 0))) == "cuda:1 (NVIDIA H200, sm_90)"
