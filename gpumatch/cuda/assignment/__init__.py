"""Linear assignment on the GPU: host code (.py) beside its kernels (.cu, .cuh).

Each file of this folder is an algorithm that a caller can name. The rooms below hold what serves
these algorithms, and mirror those of `gpumatch.cpu.assignment`. The engine solves dense costs by
`dense.core` and sparse costs by `sparse.engine`. If the device has too little memory for them, it
uses the trees of `hungarian` or the `auction`. Batches are solved by `batched.batch`.
"""
