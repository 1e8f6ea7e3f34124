"""The fractional matching of a graph, from a maximum matching of its double cover.

The double cover has a row v and a column v for each vertex v, and for each edge uv the entries
(u, v) and (v, u). Half the size of its maximum matching is the most that a fractional matching of
the graph has: numbers from 0 to 1 on the edges that add up to 1 at most at each vertex.

Let row v be matched to column ``after[v]``, and column v to row ``before[v]``. Then the arcs from
each v to ``after[v]`` form paths and cycles. A cycle of two arcs is an edge of the matching. An
even cycle or a path gives every other of its edges. An odd cycle gives every other edge and leaves
one vertex unmatched, which may be any of its vertices. A path of a maximum matching of the cover
has an odd number of vertices, else its edges would match them all; so it leaves one, too.

Let D be the vertices whose rows alternating paths reach from unmatched rows, and A those whose
columns they reach (Dulmage and Mendelsohn). No edge joins two vertices of D, A has all neighbours
of D, and A is matched into D. So in a maximum matching of the graph the rest of the vertices can be
matched among themselves, and as many of D are unmatched as the paths leave. Odd cycles are in the
rest: an arc that begins in D or A ends in the other of the two, so a cycle there is even. Only the
vertices that odd cycles leave may lie on an augmenting path within the rest.

References
----------
Balinski, *Integer programming: methods, uses, computation*, Management Science 12, 1965; Bourjolly,
Pulleyblank, *König–Egerváry graphs, 2-bicritical graphs and fractional matchings*, Discrete Applied
Mathematics 24, 1989.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import GeneralMatchingTask, MatchingTask
from gpumatch.cpu.matching import cheap
from gpumatch.cpu.matching.vertex_cover import cover
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.numeric.arrays import count_matched
from gpumatch.numeric.halved_control import HalvedControl

__all__ = ["Fractional", "solve"]

BUDGET = 2**22  # vertices that are looked at between two returns to Python
_UNSEEN = -2


class Fractional:
    """What the double cover says of a graph.

    Attributes
    ----------
    mate : int32 array
        A matching of as many edges as the paths and cycles give.
    is_outer, is_inner : bool arrays
        The vertices of D and of A.
    odd_cycles : int
    """

    def __init__(
        self, mate: np.ndarray, is_outer: np.ndarray, is_inner: np.ndarray, odd_cycles: int
    ) -> None:
        self.mate, self.is_outer, self.is_inner = mate, is_outer, is_inner
        self.odd_cycles = odd_cycles


def solve(task: GeneralMatchingTask) -> Fractional | None:
    """The fractional matching that extends the task's; None if ``control`` stopped the run.

    Then, and after an exception, the task has the best matching so far.
    """
    double = _DoubleCover(task.indptr, task.indices)
    after, before = task.mate.copy(), task.mate.copy()
    control = HalvedControl(task.control)
    cover_task = MatchingTask(double, after, before, control, task.threads, task.seed)
    is_done = False
    try:
        is_done = cheap.run(cover_task) and task.solve_cover(cover_task)
    finally:
        if not is_done:
            _keep_best(after, before, task.mate)
    if not is_done:
        return None
    mate, odd_cycles = _rounded(after, before)
    outside, is_inner = cover(double, after, before)
    return Fractional(mate, ~outside, is_inner, odd_cycles)


class _DoubleCover:
    """The double cover as a bipartite graph: its rows' lists and its columns' are the graph's."""

    has_rows = has_cols = True
    on_device = False
    xp = np

    def __init__(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        self.indptr = self.col_indptr = indptr
        self.indices = self.col_indices = indices
        self.nrows = self.ncols = int(indptr.size) - 1

    @property
    def shape(self) -> tuple[int, int]:
        return self.nrows, self.ncols

    @property
    def nnz(self) -> int:
        return int(self.indices.size)


def _keep_best(after: np.ndarray, before: np.ndarray, mate: np.ndarray) -> None:
    """Write the matching of a cover that is not maximum into ``mate``, if it has more edges."""
    for mates, partners in (after, before), (before, after):
        ends = np.flatnonzero(mates >= 0)
        mates[ends[partners[mates[ends]] != ends]] = -1  # half of a path that was being flipped
        mates[mates < 0] = -1
    rounded, _ = _rounded(after, before)
    if count_matched(rounded) > count_matched(mate):
        mate[:] = rounded


def _rounded(after: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, int]:
    """A matching from paths and cycles, and the number of odd cycles."""
    mate = np.full(after.size, _UNSEEN, np.int32)
    odd_cycles = 0
    for walk in _round_paths, _round_cycles:
        for first in range(0, after.size, BUDGET):
            last = min(first + BUDGET, after.size)
            odd_cycles += walk(first, last, after, before, mate)
    return mate, odd_cycles


@kernel
def _round_paths(first, last, after, before, mate):
    """Match along the paths that begin in a range."""
    for start in range(first, last):
        if before[start] < 0:
            v = start
            while v >= 0:
                w = after[v]
                mate[v] = w
                if w >= 0:
                    mate[w] = v
                    v = after[w]
                else:
                    v = w
    return 0


@kernel
def _round_cycles(first, last, after, before, mate):
    """Match along the cycles whose first vertex is in a range; return how many are odd."""
    odd = 0
    for start in range(first, last):
        if mate[start] != _UNSEEN:
            continue
        v = np.int64(start)
        while mate[v] == _UNSEEN:
            w = after[v]
            if mate[w] != _UNSEEN:  # back at the start
                mate[v] = -1
                odd += 1
            else:
                mate[v] = w
                mate[w] = v
                v = np.int64(after[w])
    return odd
