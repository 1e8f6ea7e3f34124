"""The k cheapest assignments of many frames on a device, a warp a frame: ranking.cu.

All searches of a frame are in one launch. So frames must be so small that this takes little time;
`fits` says if they are.
"""

from __future__ import annotations

from typing import NamedTuple

import cupy as cp
import numpy as np

from gpumatch.cuda import memory
from gpumatch.cuda.kernels import Source, kernels_for

__all__ = ["FrameRanking", "fits", "rank_frames"]

_RANK = "rank_frames<{Number}>"
SOURCE = Source(
    "assignment/batched/ranking.cu",
    (_RANK,),
    {"Number": {"int64": "long long", "float64": "double"}},
    structs=("Frames<{Number}>",),
)
_LANES = SOURCE.constant("kLanes")
_MOST_STEPS = 2**26
"""Rows times columns times k up to which a frame is ranked: about a second."""


class FrameRanking(NamedTuple):
    """Arrays on the device.

    Attributes
    ----------
    totals : array of shape (B, k)
    options : int32 array of shape (B, k, rows)
        The column of each row; -1 for none.
    counts, paths : int32 arrays of length B
        How many assignments each frame has, and how many were looked at.
    """

    totals: cp.ndarray
    options: cp.ndarray
    counts: cp.ndarray
    paths: cp.ndarray


def fits(rows: int, cols: int, k: int) -> bool:
    """True if frames of this size are ranked in little time."""
    return rows * (cols + 1) * k <= _MOST_STEPS


def rank_frames(costs: cp.ndarray, k: int, far: float) -> FrameRanking:
    """Rank the assignments of frames.

    Parameters
    ----------
    costs : int64 or float64 array of shape (B, rows, cols + 1)
        In the last column, what a row costs if it is unmatched.
    k : int
    far : number
        What is forbidden: inf, or 2**62 for integers.

    Raises
    ------
    MemoryError
        If the device has too little memory.
    """
    count, rows, width = costs.shape
    cols, slots, words = width - 1, k + 1, -(-width // 32)
    number_room = slots * (3 * rows + cols + 2) + 3 * width + 2 * rows
    link_room = slots * (2 * rows + 4) + 4 * width + 2 * rows + 1 + rows * words
    room = count * (8 * number_room + 4 * link_room + k * (8 + 4 * rows))
    memory.require_memory(room, "the k cheapest assignments")
    number = costs.dtype
    found = FrameRanking(
        cp.zeros((count, k), number),
        cp.full((count, k, rows), -1, np.int32),
        cp.zeros(count, np.int32),
        cp.zeros(count, np.int32),
    )
    if not count:
        return found
    kernels = kernels_for(SOURCE, Number=number)
    held = {  # until the launch is in its stream
        "costs": cp.ascontiguousarray(costs),
        "numbers": cp.empty(count * number_room, number),
        "links": cp.empty(count * link_room, np.int32),
        **found._asdict(),
    }
    frames = kernels.struct("Frames")(
        far=far, rows=rows, cols=cols, k=k, words=words,
        number_room=number_room, link_room=link_room, **held,
    )  # fmt: skip
    kernels[_RANK]((count,), (_LANES,), (frames,))
    return found
