"""The GPU's matching engine: the host's side of matching_engine.cu, which says how it works.

The search needs the edges of one side only, and grows trees from the free vertices of that side.
It takes the side with fewer free vertices that have an edge; on a tie the columns, as the cheap
start does, for trees from the side that chose then are satisfied sooner. Where the graph holds one
direction only, that one is used, so that CSR need not be transposed, unless the other side is much
smaller.

Device memory beside the graph and both mate arrays: 8 bytes a far vertex, 32 a near one (64 with
int64 offsets) and 4 a free near one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy as cp
import cupyx
import numpy as np

from gpumatch.contracts import MatchingTask
from gpumatch.cuda import kernels as module

_KERNEL = "matching_engine<{Offset}>"
_BLOCK = 512  # as kBlock in matching_engine.cu
_STEPS_A_LAUNCH = 256  # the host looks in between: progress, time limit, Ctrl-C
_TRACE_LENGTH = 4096  # as kTraceLength
_DONE = 4  # as kDone
_PARTS = ("collect", "wide levels", "narrow levels", "augment", "release")
_STATE = np.dtype(
    [
        *((name, np.int32) for name in ("stage", "step", "phase", "levels", "matched")),
        ("ntrees", np.int32),
        *((name, np.int32, 3) for name in ("sizes", "bases", "found", "freed")),
        ("spent", np.int64, len(_PARTS)),
        ("barrier", np.uint32),  # beside the kernel's State
    ],
    align=True,
)
_BARRIER = dict(_STATE.fields or {})["barrier"][1]
_TRACE = _STATE.itemsize  # where the trace begins, {levels, found} of each phase
_TRACE_SEEN = 64  # phases that the host sees with the state
_MUCH_SMALLER = 4  # a side so many times smaller is worth a transposition


class _Side(NamedTuple):
    """The near side of a search: its edges, its mates and the mates of the far side."""

    indptr: cp.ndarray
    indices: cp.ndarray
    mate: cp.ndarray
    far_mate: cp.ndarray


def run(task: MatchingTask) -> bool:
    """Extend the matching to a maximum one; False when `control` stops it.

    Which of several maximum matchings is found depends on the order in which the device runs its
    threads; `seed` and `threads` have no part in it.
    """
    graph, row_to_col, col_to_row, control = task.graph, *task.mates, task.control
    kernels = module.kernels_for(module.MATCHING_ENGINE, _any_offsets(graph).dtype)
    matched, free_rows, free_cols = _survey(kernels, graph, row_to_col, col_to_row)
    if free_rows < free_cols:
        near = _Side(graph.indptr, graph.indices, row_to_col, col_to_row)
    else:
        near = _Side(graph.col_indptr, graph.col_indices, col_to_row, row_to_col)
    nnear, nfar, free = near.mate.size, near.far_mate.size, min(free_rows, free_cols)
    a_member = 4 * near.indptr.itemsize
    module.require_memory(8 * nfar + 2 * a_member * nnear + 4 * free, "the matching engine")
    far, log = cp.empty((nfar, 2), cp.int32), cp.empty((2, nnear, a_member), cp.uint8)
    path_end = cp.empty(free, cp.int32)
    board = cp.empty(_TRACE + 8 * _TRACE_LENGTH, cp.uint8)
    engine = module.struct(
        *(near.indptr, near.indices, nnear, nfar, near.mate, near.far_mate),
        *(far, path_end, log, board),
        *(module.pointer(board, _TRACE), module.pointer(board, _BARRIER)),
    )
    blocks = -(-max(nnear, nfar, 1) // _BLOCK)  # fewer blocks wait less at a barrier
    search = _Search(kernels, engine, board, blocks, matched)
    proven = False
    try:
        search.go_on()
        proven = search.finish(control)
    finally:
        if search.is_begun and not proven:
            near.far_mate[:] = far[:, 0]
    for levels, found in search.phases():
        matched += found
        control.phase(levels=levels, found=found, matched=matched)
    for part, spent in zip(_PARTS, search.seen["spent"].tolist()):
        control.seconds[part] = control.seconds.get(part, 0.0) + spent * 1e-9
    return proven


def _survey(
    kernels: module.Kernels, graph: Any, row_to_col: cp.ndarray, col_to_row: cp.ndarray
) -> list[int]:
    """Matched rows, and the free rows and free columns that have an edge.

    A side whose edges would have to be made first counts as beyond all, unless it is much smaller.
    """
    nrows, ncols = graph.shape
    rows = graph.indptr if graph.has_rows or _MUCH_SMALLER * nrows < ncols else None
    cols = graph.col_indptr if graph.has_cols or _MUCH_SMALLER * ncols < nrows else None
    counts = cp.zeros(3, cp.int32)
    kernels["survey<{Offset}>"](
        (module.blocks_for(max(graph.shape)),),
        (module.BLOCK,),
        (
            *(_or_null(rows), np.int32(nrows), row_to_col),
            *(_or_null(cols), np.int32(ncols), col_to_row),
            counts,
        ),
    )
    matched, free_rows, free_cols = counts.get().tolist()
    beyond = max(graph.shape) + 1
    return [matched, beyond if rows is None else free_rows, beyond if cols is None else free_cols]


def _any_offsets(graph: Any) -> cp.ndarray:
    return graph.indptr if graph.has_rows else graph.col_indptr


def _or_null(array: cp.ndarray | None) -> cp.ndarray | np.uintp:
    return np.uintp(0) if array is None else array


class _Search:
    """The launches of one run, and `seen`, the state as the host has seen it last."""

    def __init__(
        self,
        kernels: module.Kernels,
        engine: np.ndarray,
        board: cp.ndarray,
        blocks: int,
        matched: int,
    ) -> None:
        self.kernel = kernels[_KERNEL]
        self.blocks = min(blocks, kernels.resident_blocks(_KERNEL, _BLOCK))
        self.engine, self._board = engine, board
        self.is_begun = False
        self._shown = board[: _TRACE + 8 * _TRACE_SEEN]
        self._seen = cupyx.zeros_pinned(self._shown.size, np.uint8)
        self.seen = self._seen[:_TRACE].view(_STATE)[0]
        self.seen["matched"] = matched
        self._shown.set(self._seen)

    def phases(self) -> list[list[int]]:
        """Levels and paths of each phase, as far as they are recorded."""
        count = min(int(self.seen["phase"]), _TRACE_LENGTH)
        kept = self._seen if count <= _TRACE_SEEN else self._board.get()
        return kept[_TRACE : _TRACE + 8 * count].view(np.int32).reshape(-1, 2).tolist()

    def go_on(self) -> None:
        """Make a bounded number of steps."""
        self.kernel((self.blocks,), (_BLOCK,), (self.engine, np.int32(_STEPS_A_LAUNCH)))
        self.is_begun = True
        self._shown.get(out=self._seen)

    def finish(self, control: Any) -> bool:
        """Go on until the engine is done; False when `control` stops it before."""
        while self.seen["stage"] != _DONE:
            if control.tick(int(self.seen["matched"])):
                return False
            self.go_on()
        return True
