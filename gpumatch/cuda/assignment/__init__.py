"""Linear assignment on the GPU: host code and kernels side by side."""
