"""The GPU's matching engine: the host's side of matching_engine.cu, which says how it works.

Device memory beside the graph and both mate arrays: 8 bytes a row, 16 a column, 12 a free column.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import cupyx
import numpy as np

from gpumatch.cuda import module

_KERNEL = "matching_engine<{Offset}>"
_BLOCK = 512
_STEPS_A_LAUNCH = 256  # the host looks in between: progress, time limit, Ctrl-C
_TRACE_LENGTH = 4096  # as kTraceLength in matching_engine.cu
_DONE = 4  # as kDone
_STAGE, _PHASE, _MATCHED, _LENGTH = 0, 2, 4, 10  # positions in State


def run(
    graph: Any,
    row_to_col: cp.ndarray,
    col_to_row: cp.ndarray,
    control: Any,
    *,
    seed: int,
    threads: int,
) -> bool:
    """Extend the matching to a maximum one; False when `control` stops it."""
    matched = int((row_to_col >= 0).sum())
    free = graph.ncols - matched
    module.require_memory(8 * graph.nrows + 16 * graph.ncols + 12 * free, "the matching engine")
    state = cp.zeros(_LENGTH, cp.int32)
    state[_MATCHED] = matched
    trace = cp.empty((_TRACE_LENGTH, 2), cp.int32)
    rows = cp.stack([row_to_col, cp.full_like(row_to_col, -1)], axis=1)
    roots, ends = cp.empty((2, free), cp.int32), cp.empty(free, cp.int32)
    queues, barrier = cp.empty((2, graph.ncols, 2), cp.int32), cp.zeros(1, cp.uint32)
    engine = module.struct(
        *(graph.col_indptr, graph.col_indices, graph.nrows, graph.ncols),
        *(rows, col_to_row, *roots, ends, *queues, state, trace, barrier),
    )
    try:
        proven = _search(graph, engine, state, control)
    finally:
        row_to_col[:] = rows[:, 0]
    for levels, found in trace[: min(int(state[_PHASE]), _TRACE_LENGTH)].get().tolist():
        matched += found
        control.phase(levels=levels, found=found, matched=matched)
    return proven


def _search(graph: Any, engine: np.ndarray, state: cp.ndarray, control: Any) -> bool:
    """Launch until the engine is done; False when `control` stops it before."""
    kernels = module.kernels_for(module.MATCHING_ENGINE, graph.col_indptr.dtype)
    blocks = kernels.resident_blocks(_KERNEL, _BLOCK)
    seen = cupyx.empty_pinned(_LENGTH, np.int32)
    while True:
        kernels[_KERNEL]((blocks,), (_BLOCK,), (engine, np.int32(_STEPS_A_LAUNCH)))
        state.get(out=seen)
        if seen[_STAGE] == _DONE:
            return True
        if control.tick(int(seen[_MATCHED])):
            return False
