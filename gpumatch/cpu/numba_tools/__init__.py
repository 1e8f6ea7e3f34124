"""What Numba lacks: atomics, worker threads, vectorized minima, views and quick calls."""
