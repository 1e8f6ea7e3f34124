"""Searches for shortest augmenting paths: arrays and kernels, which know no engine and no task.

Assignment stands on all of them, with dense and with sparse costs. `heap` serves transport, ranking
and sessions as well.

- `state`: the places, outcomes and marks that kernels share, so that a search can stop and go on.
- `heap`: a heap of vertices by distance.
- `dense`, `sparse`: kernels of the searches in a matrix and in CSR, and of what comes before them.
- `paths`: what such paths start from and end with, whatever the costs are.
"""
