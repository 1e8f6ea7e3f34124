"""What Numba lacks: atomics, worker threads, vectorized minima and quick calls."""
