"""Extend a matching to a maximum one, by the search that suits its unmatched rows.

So an algorithm for assignments decides whether a full one exists, whatever it costs. Most rows
that the trial of `cpu/assignment/sparse/` does not match have short paths. Among few entries,
phases of searches match these (`lookahead_search`), and mostly all other rows, too. If a phase
matches few of its rows, many rows have no path. Searches from single rows are faster then, because
they read no entry twice in vain. Where they would read too much, forests grow. Their first call
compiles for longer than all else here.
"""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import AssignmentTask, MatchingTask
from gpumatch.cpu.matching import cheap
from gpumatch.cpu.matching import engine as matching_engine
from gpumatch.cpu.matching.engine import match_rows
from gpumatch.cpu.matching.lookahead_search import LookaheadSearch
from gpumatch.cpu.matching.sides import Side
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.arrays import count_matched

__all__ = ["complete", "complete_in_phases", "complete_matching", "complete_row_by_row"]

SERVED = 1 / 3
"""The share of its rows that a phase must serve if another follows.

With 1/2 and 1/4, deficient matrices of up to 120,000 random entries take as long, within a tenth.
Where all rows have columns, phases end with the last row: in 2 to 7 ms instead of 5 to 13 ms.
"""


def complete(task: AssignmentTask, row_to_col: np.ndarray, col_to_row: np.ndarray) -> bool:
    """Extend a matching to a maximum one of the allowed pairs, in place; False if stopped."""
    costs = task.costs
    if costs.is_complete and costs.shape[0] <= costs.shape[1]:
        free_rows, free_cols = np.flatnonzero(row_to_col < 0), np.flatnonzero(col_to_row < 0)
        row_to_col[free_rows] = free_cols[: free_rows.size]
        col_to_row[free_cols[: free_rows.size]] = free_rows
        return True
    return complete_matching(task.matching(costs.pattern(), row_to_col, col_to_row))


def complete_matching(matching: MatchingTask) -> bool:
    """Extend a matching to a maximum one; False if stopped."""
    return cheap.run(matching) and matching_engine.run(matching)


def complete_row_by_row(matching: MatchingTask, readings: int) -> bool:
    """Extend a matching row by row, while so many readings of all entries seem to be enough."""
    matched = count_matched(matching.row_to_col)
    _, is_done = match_rows(matching, matched, readings)
    return is_done or complete_matching(matching)


def complete_in_phases(matching: MatchingTask, readings: int) -> bool:
    """Extend a matching by phases of one thread, while each serves many rows, then row by row."""
    graph, control = matching.graph, matching.control
    matched = count_matched(matching.row_to_col)
    search = LookaheadSearch(Side(graph.indptr, graph.indices, *matching.mates), Workers(1, 0))
    left = graph.nrows - matched
    while left:
        found = search.phase(control, matched)
        if found < 0:
            return False
        matched += found
        control.phase(found=found, matched=matched)
        if found == 0:
            break
        if found < SERVED * left:
            return complete_row_by_row(matching, readings)
        left -= found
    return True
