"""Augmenting paths by alternating trees that meet: the host's side of trees.cu.

Device memory in addition to the graph: 24 bytes a vertex.
"""

from __future__ import annotations

from typing import Any

import cupy as cp

from gpumatch.contracts import GeneralMatchingTask
from gpumatch.cuda import frontier, memory
from gpumatch.cuda.frontier import DeviceFrontier
from gpumatch.cuda.kernels import BLOCK, OFFSETS, Kernels, Source, blocks_for, kernels_for
from gpumatch.cuda.structs import address

__all__ = ["search"]

_ARRAYS = "tree", "parent", "joint", "partner"
_GROW = "grow_trees<{Offset}>"
SOURCE = Source(
    "general/trees.cu",
    (*frontier.KERNELS, _GROW, "plant", "flip_paths"),
    {"Offset": OFFSETS},
    structs=(*frontier.STRUCTS, "Forest"),
    cooperative=True,
)


def search(task: GeneralMatchingTask, matched: int) -> int | None:
    """Match unmatched vertices that have no part, as long as trees meet.

    Parameters
    ----------
    task : GeneralMatchingTask
        Its arrays are on the device. Vertices whose part is not `PERFECT` stay as they are.
    matched : int
        The matched edges.

    Returns
    -------
    int or None
        How many of these vertices are unmatched at the end; None if the control stopped the run.
    """
    count = task.mate.size
    memory.require_memory(16 * count + DeviceFrontier.nbytes(count), "alternating trees")
    kernels = kernels_for(SOURCE, Offset=task.indptr.dtype)
    room = cp.empty(4 * count, cp.int32)
    places = {name: address(room, 4 * count * k) for k, name in enumerate(_ARRAYS)}
    forest = kernels.struct("Forest")(count=count, mate=task.mate, **places)
    while True:
        roots = _planted(kernels, forest, task)
        if roots < 2:
            return roots
        growth = _grown(kernels, forest, task, matched)
        if growth is None:
            return None
        paths = int(growth.found[0])
        if not paths:
            return roots
        kernels["flip_paths"](
            *((blocks_for(count),), (BLOCK,)),
            (forest,),  # IN, OUT
        )
        matched += paths
        task.control.phase(found=paths, matched=matched, levels=growth.level, step="trees")


def _planted(kernels: Kernels, forest: Any, task: GeneralMatchingTask) -> int:
    """Begin a tree at each unmatched vertex; return how many there are."""
    roots = cp.zeros(1, cp.int32)
    kernels["plant"](
        *((blocks_for(task.mate.size),), (BLOCK,)),
        (
            forest,  # OUT
            task.part,  # IN
            roots,  # IN, OUT
        ),
    )
    return int(roots[0])


def _grown(
    kernels: Kernels, forest: Any, task: GeneralMatchingTask, matched: int
) -> DeviceFrontier | None:
    """Grow all trees to their ends; None if the control stopped the run."""
    growth = DeviceFrontier(kernels, _GROW, task.mate.size)
    growth.start_from_free(task.mate, level=0)
    while not task.control.tick(matched):
        growth.search(
            forest,  # IN, OUT
            *(task.indptr, task.indices),  # IN
        )
        if growth.size == 0:
            return growth
    return None
