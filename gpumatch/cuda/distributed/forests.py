"""The work of one rank on divided alternating forests, on its GPU: the host code of forests.cu.

The functions are those of `gpumatch.cpu.distributed.forests`, on arrays of the device. One launch
expands a frontier, however many edges it has. Which of several offers a column takes differs from
run to run, and so does which of several rows claims a column.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.cuda.kernels import BLOCK, OFFSETS, Source, blocks_for, kernels_for

__all__ = ["claim_free", "expand", "join"]

_CLAIM, _EXPAND, _JOIN = "claim_free<{Offset}>", "expand_rows<{Offset}>", "join_columns"
SOURCE = Source("distributed/forests.cu", (_CLAIM, _EXPAND, _JOIN), {"Offset": OFFSETS})


def claim_free(rows: Any, indptr: Any, indices: Any, taken: Any, wanted: Any) -> None:
    """Claim for each own row the first column that is not taken; -1 for none."""
    if rows.size:
        kernels_for(SOURCE, Offset=indptr.dtype)[_CLAIM](
            (blocks_for(rows.size),),
            (BLOCK,),
            (
                *(rows, np.int32(rows.size), indptr, indices),  # IN
                *(taken, wanted),  # OUT
            ),
        )


def expand(
    frontier: Any, begin: int, budget: int, first: int, indptr: Any, indices: Any,
    row_root: Any, done: Any, seen: Any, offers: Any, count: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Make offers to the unseen neighbours of all rows in ``frontier[begin:]``.

    The budget is ignored. Returns the end of the frontier, the number of offers, and the number of
    edges of the rows.
    """
    rows = frontier[begin:]
    if not rows.size:
        return frontier.size, count, 0
    counted = cp.full(1, count, np.int32)
    kernels_for(SOURCE, Offset=indptr.dtype)[_EXPAND](
        (blocks_for(rows.size * 32),),
        (BLOCK,),
        (
            *(rows, np.int32(rows.size), np.int32(first), indptr, indices, row_root, done),  # IN
            *(seen, offers, counted),  # OUT
        ),
    )
    edges = (indptr[rows + 1] - indptr[rows]).sum(dtype=np.int64)
    return frontier.size, int(counted[0]), int(edges)


def join(
    offers: Any, first: int, col_to_row: Any, col_root: Any, parent: Any, done: Any,
    followers: Any, ends: Any,
) -> tuple[int, int]:  # fmt: skip
    """Add own columns to trees, each by one of its offers.

    Writes the mates of matched columns with their roots to ``followers[:f]``, and the roots of
    unmatched columns with these to ``ends[:e]``. Returns f and e.
    """
    if not len(offers):
        return 0, 0
    counts = cp.zeros(2, np.int32)
    kernels_for(SOURCE, Offset=np.dtype(np.int32))[_JOIN](
        (blocks_for(len(offers)),),
        (BLOCK,),
        (
            *(offers, np.int32(len(offers)), np.int32(first), col_to_row, done),  # IN
            *(col_root, parent, followers, ends, counts),  # OUT
        ),
    )
    return int(counts[0]), int(counts[1])
