"""The work of one rank on divided alternating forests, on its GPU: the host's side of the kernels.

The functions are those of `gpumatch.cpu.distributed.forests`, on arrays of the device. A frontier
is expanded by one launch, however many edges it has. Which of several offers a column takes, and
which row a column, differs from run to run.
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
    """Let each own row want the first column that is not taken; it is taken then. -1 for none."""
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
    """Offer unseen columns their place below all of ``frontier[begin:]``, whatever the budget.

    Returns where it stopped, which is at the end, the count of offers, and the edges of the rows.
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
    """Let own columns join by one offer each. Mates follow, with their roots; free ones end.

    ``followers[:f]`` are mates and roots, ``ends[:e]`` roots and free columns; f and e are given.
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
