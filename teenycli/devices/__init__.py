"""Devices that execute a plan: CUDA through cuda.core, and the CPU through our own compiler."""
