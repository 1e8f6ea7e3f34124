"""Algorithms on the CPU, compiled by Numba: one algorithm a file."""
