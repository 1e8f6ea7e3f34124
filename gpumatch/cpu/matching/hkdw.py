"""HKDW: Hopcroft and Karp's algorithm with Duff and Wiberg's extra searches.

Each phase first augments along a maximal set of disjoint shortest paths (``level_search``) from the
unmatched vertices of one side. Then it augments along paths of any length by depth-first searches
(``lookahead_search``) from the vertices of the other side that are still unmatched. Either set is
O(edges). On meshes and matrices there are far fewer phases, on social networks there may be more.
It uses one thread, and the result depends only on the graph and the matching given.

The papers take the columns first, then the rows. This takes the smaller side first.

Reference: Duff, Wiberg, *Remarks on implementation of O(n^1/2 τ) assignment algorithms*, ACM TOMS
14(3), 1988; Duff, Kaya, Uçar, ACM TOMS 38(2), 2011, section 2.3.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Control, Graph, MatchingTask
from gpumatch.cpu.matching.level_search import LevelSearch
from gpumatch.cpu.matching.lookahead_search import LookaheadSearch
from gpumatch.cpu.matching.phases import run_phases
from gpumatch.cpu.matching.sides import larger_side, smaller_side
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["run"]


class _ShortestThenOthers:
    """Phases of two parts: shortest paths from one side, then any paths from the other."""

    def __init__(
        self, graph: Graph, row_to_col: np.ndarray, col_to_row: np.ndarray, workers: Workers
    ) -> None:
        self._shortest = LevelSearch(smaller_side(graph, row_to_col, col_to_row), workers)
        self._others = LookaheadSearch(larger_side(graph, row_to_col, col_to_row), workers)

    @property
    def levels(self) -> int:
        return self._shortest.levels

    def phase(self, control: Control, matched: int) -> int:
        """Augment along both kinds of paths: how many, -1 if ``control`` stopped it."""
        found = self._shortest.phase(control, matched)
        if found <= 0:
            return found
        more = self._others.phase(control, matched + found)
        return -1 if more < 0 else found + more


def run(task: MatchingTask) -> bool:
    """Extend the matching to a maximum one; True unless ``control`` stopped it."""
    with Workers(1, task.graph.nnz) as workers:
        return run_phases(_ShortestThenOthers(task.graph, *task.mates, workers), task)
