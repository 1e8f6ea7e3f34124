"""Maximum cardinality matching of any graph: the driver.

1. Karp–Sipser matches most vertices, if many have few neighbours (`karp_sipser`). Then trees with
   blossoms match the rest, unless they read too much (`blossoms`).
2. The double cover gives a fractional matching, and with it all but one vertex of each odd cycle,
   and the vertices that no augmenting path needs (`double_cover`).
3. Trees from all vertices that the odd cycles have left grow until they meet (`trees`).
4. Trees with blossoms match what is unmatched then (`blossoms`).

If one vertex is left that can have no path, its tree is not grown before its vertices' parts are
asked for (`decompose`): it may read all of the graph.

The parts of the Gallai–Edmonds decomposition are D and A of the double cover, and of the rest the
outer and the inner vertices of the trees with blossoms.

After Karp–Sipser the trees read a third of the entries of a road graph and a twentieth of kron 18.
They take less time than the double cover, and what it leaves: 0.25 s, not 0.43, on road 904. Where
many of them find long paths, as on a grid that has lost 20 % of its edges, the search gives up, and
the double cover follows.

Without Karp–Sipser the cheap matching of the double cover is the start. Processor time in ms on a
busy machine, start and double cover together, and the odd cycles that they leave:

    graph (n = 2**18)     Karp–Sipser  odd cycles   cheap  odd cycles
    delaunay                       44         416       6         272
    rgg                            95        2286       8         494
    uniform, d = 3                137           2      65           6
    kron (2**16)                   32           0      42           0
    road (600,000)                 71         737     245         835
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import GeneralMatchingTask
from gpumatch.cpu.general import blossoms, double_cover, karp_sipser, trees
from gpumatch.numeric.arrays import count_matched

__all__ = ["decompose", "run", "search_rest"]

SHARE = 0.2
"""The share of the entries that trees may read in vain after Karp–Sipser; see `blossoms.search`.

With 0.1 and 0.4 all graphs that were tried take about the same time, and give up or not alike.
"""
FEW, PART = 2, 16
"""Karp–Sipser comes first if one in PART vertices has from 1 to FEW neighbours.

Such vertices are 16 % of kron and 88 % of road, and at most 0.1 % of the others in the table.
"""


def run(task: GeneralMatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless ``control`` stopped it."""
    mate, control = task.mate, task.control
    if _has_low_degrees(task.indptr):
        with control.part("start"):
            before = _size(mate)
            if not karp_sipser.run(task):
                return False
            control.phase(found=_size(mate) - before, matched=_size(mate), step="karp-sipser")
        if _search_blossoms(task, share=SHARE):
            return True
        if control.stopped:
            return False
    with control.part("double cover"):
        fractional = double_cover.solve(task)
        if fractional is None:
            return False
        mate[:] = fractional.mate
        control.phase(
            found=0, matched=_size(mate), step="odd cycles", odd_cycles=fractional.odd_cycles
        )
    task.part[fractional.is_outer] = task.OUTER
    task.part[fractional.is_inner] = task.INNER
    return search_rest(task)


def search_rest(task: GeneralMatchingTask) -> bool:
    """Match what the double cover has left, and write the parts of its vertices.

    Vertices that have a part other than `PERFECT` keep their mates, and it.
    """
    graph, mate, control = (task.indptr, task.indices), task.mate, task.control
    is_outside = task.part != task.PERFECT
    with control.part("trees"):
        if not trees.search(*graph, mate, is_outside, control):
            return False
    return _search_blossoms(task)


def decompose(task: GeneralMatchingTask) -> bool:
    """Write the parts that a maximum matching's last unmatched vertex tells; False if stopped."""
    return _search_blossoms(task, spared=0)


def _search_blossoms(task: GeneralMatchingTask, share: float = np.inf, spared: int = 1) -> bool:
    """Match the rest tree by tree, and write its parts; False if stopped, or too much was read."""
    with task.control.part("blossoms"):
        label = np.where(task.part == task.PERFECT, np.int32(0), blossoms.OUTSIDE)
        arrays = task.indptr, task.indices, task.mate, label
        if not blossoms.search(*arrays, task.control, share=share, spared=spared):
            return False
    task.part[label > 0] = task.OUTER
    task.part[(label < 0) & (label != blossoms.OUTSIDE)] = task.INNER
    return True


def _has_low_degrees(indptr: np.ndarray) -> bool:
    degrees = np.diff(indptr)
    return PART * int(np.count_nonzero((degrees > 0) & (degrees <= FEW))) > degrees.size


def _size(mate: np.ndarray) -> int:
    return count_matched(mate) // 2
