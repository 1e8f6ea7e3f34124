"""P-HK: Hopcroft and Karp's algorithm by several threads.

Phases of shortest augmenting paths, a maximal set of disjoint ones each (``level_search``), until
there is none. O(sqrt(vertices) · edges).

The paper searches from the columns; this searches from the smaller side. With several threads the
matching found may vary, its size does not.

Reference: Azad, Halappanavar, Rajamanickam, Boman, Khan, Pothen, *Multithreaded algorithms for
maximum matching in bipartite graphs*, IPDPS 2012, section III.
"""

from __future__ import annotations

from gpumatch.arrays import count_matched
from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching.level_search import LevelSearch
from gpumatch.cpu.matching.sides import smaller_side
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["run"]


def run(task: MatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless ``control`` stopped it."""
    graph, row_to_col, col_to_row, control = task.graph, *task.mates, task.control
    matched = count_matched(row_to_col)
    with Workers(task.threads, graph.nnz) as workers:
        search = LevelSearch(smaller_side(graph, row_to_col, col_to_row), workers)
        found = -1
        while found:
            if control.tick(matched):
                return False
            found = search.phase(control, matched)
            if found < 0:
                return False
            matched += found
            control.phase(levels=search.levels, found=found, matched=matched)
    return True
