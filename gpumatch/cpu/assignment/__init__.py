"""Linear assignment on the CPU: one algorithm a file, and the kernels that several use."""
