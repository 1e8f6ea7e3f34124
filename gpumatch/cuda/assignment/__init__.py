"""Linear assignment on the GPU: host code (.py) beside its kernels (.cu, .cuh).

Each file of this folder is an algorithm that a caller can name. A room below serves them, and
mirrors that of `gpumatch.cpu.assignment`. The engine takes dense costs to `dense.core`, sparse ones
to `sparse.engine`; what these have no room for goes to the trees of `hungarian` or to `auction`.
Batches are solved by `batched.batch`.
"""
