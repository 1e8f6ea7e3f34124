"""Searches for shortest augmenting paths, and bids: arrays and kernels that know no engine.

Engines of assignment stand on them, for dense and for sparse costs, large ones and small ones. The
heap serves transport, general graphs, ranking and sessions as well.

- `state`: the places, outcomes and marks that kernels share, so that they can stop and go on.
- `heap`: a heap of vertices by distance.
- `dense`, `sparse`: kernels of the searches in a matrix and in CSR, and of what comes before them.
- `bidding`: kernels of bids in CSR, by which an auction finds the prices from which searches start.
- `paths`: what such paths start from and end with, whatever the costs are.
"""
