"""HKDW: Hopcroft and Karp's algorithm with Duff and Wiberg's extra searches.

Each phase first augments along a maximal set of disjoint shortest paths (``level_search``) from the
free vertices of one side, then along paths of any length by depth-first searches from those of the
other that are still free (``lookahead_search``). Either set is O(edges); on meshes and matrices
there are far fewer phases, on social networks there may be more. One thread; the result depends on
the graph and the matching given only.

The papers take the columns first, then the rows; this takes the smaller side first.

Reference: Duff, Wiberg, *Remarks on implementation of O(n^1/2 τ) assignment algorithms*, ACM TOMS
14(3), 1988; Duff, Kaya, Uçar, ACM TOMS 38(2), 2011, section 2.3.
"""

from __future__ import annotations

from gpumatch.arrays import count_matched
from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching.level_search import LevelSearch
from gpumatch.cpu.matching.lookahead_search import LookaheadSearch
from gpumatch.cpu.matching.sides import larger_side, smaller_side
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["run"]


def run(task: MatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless ``control`` stopped it."""
    graph, row_to_col, col_to_row, control = task.graph, *task.mates, task.control
    matched = count_matched(row_to_col)
    with Workers(1, graph.nnz) as workers:
        shortest = LevelSearch(smaller_side(graph, row_to_col, col_to_row), workers)
        further = LookaheadSearch(larger_side(graph, row_to_col, col_to_row), workers)
        found = -1
        while found:
            if control.tick(matched):
                return False
            found = shortest.phase(control, matched)
            if found > 0:
                more = further.phase(control, matched + found)
                found = -1 if more < 0 else found + more
            if found < 0:
                return False
            matched += found
            control.phase(levels=shortest.levels, found=found, matched=matched)
    return True
