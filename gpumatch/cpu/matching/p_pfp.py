"""P-PFP: Pothen and Fan's algorithm with lookahead and fairness, by several threads.

Each phase makes disjoint depth-first searches from all unmatched vertices (``lookahead_search``),
until one finds no path. O(vertices · edges).

The paper searches from the columns; this searches from the smaller side. With several threads the
matching that is found may vary. Its size does not.

Reference: Azad, Halappanavar, Rajamanickam, Boman, Khan, Pothen, *Multithreaded algorithms for
maximum matching in bipartite graphs*, IPDPS 2012, section III.
"""

from __future__ import annotations

from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching.lookahead_search import LookaheadSearch
from gpumatch.cpu.matching.phases import run_phases
from gpumatch.cpu.matching.sides import smaller_side
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["run"]


def run(task: MatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless ``control`` stopped it."""
    with Workers(task.threads, task.graph.nnz) as workers:
        return run_phases(LookaheadSearch(smaller_side(task.graph, *task.mates), workers), task)
