"""Algorithms on NVIDIA GPUs, through CuPy: a host driver (.py) beside its kernels (.cu, .cuh)."""
