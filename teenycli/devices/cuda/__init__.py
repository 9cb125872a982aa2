"""NVIDIA GPUs through ``cuda.core`` and ``cuda.bindings``; none of them is imported before a device is opened."""
