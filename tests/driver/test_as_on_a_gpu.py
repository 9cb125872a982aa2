"""Tests for a real GPU, on the stand-in driver: they stay true where there is no GPU, and it stays like one."""

from __future__ import annotations

import pytest

from tests.cuda.test_on_a_gpu import (  # noqa: F401
    test_a_cooperative_grid_is_on_the_gpu_all_at_once,
    test_a_grid_counts_ctas_with_clusters_too,
    test_a_grid_that_no_cluster_divides,
    test_a_kernel_with_a_large_frame,
    test_a_launch_is_timed_by_the_gpu,
    test_a_ptx_version_newer_than_the_driver,
    test_a_tensor_map_moves_the_box_it_describes,
    test_a_variable_of_the_ptx_can_be_set,
    test_copies_of_any_size_return_whole,
    test_invalid_ptx_comes_with_the_log_and_its_line,
    test_limits_are_those_of_the_table,
    test_more_memory_than_there_is,
    test_shared_memory_up_to_the_limit_and_no_further,
    test_vector_add_end_to_end,
    test_what_the_driver_refuses_is_explained_and_the_device_goes_on,
)

pytestmark = pytest.mark.device
