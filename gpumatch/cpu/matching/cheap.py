"""Cheap matching: each unmatched row, in order, takes its first unmatched column.

The matching is maximal, so it has at least half the edges of a maximum one. O(edges). The columns'
own lists are not needed.

Reference: Duff, Kaya, Uçar, *Design, implementation, and analysis of maximum transversal
algorithms*, ACM TOMS 38(2), 2011, section 2.1 (there from the columns).
"""

from __future__ import annotations

from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching.sides import blocks
from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.numeric.arrays import count_matched

__all__ = ["run"]


@kernel
def _take_first_free(first, last, indptr, indices, row_to_col, col_to_row):
    taken = 0
    for row in range(first, last):
        if row_to_col[row] >= 0:
            continue
        for e in range(indptr[row], indptr[row + 1]):
            col = indices[e]
            if col_to_row[col] < 0:
                row_to_col[row] = col
                col_to_row[col] = row
                taken += 1
                break
    return taken


def run(task: MatchingTask) -> bool:
    """Extend the matching to a maximal one; True unless ``control`` stopped it.

    One thread, the same result for every ``seed``.
    """
    graph, row_to_col, col_to_row, control = task.graph, *task.mates, task.control
    matched = count_matched(row_to_col)
    for first, last in blocks(graph.indptr):
        if control.tick(matched):
            return False
        matched += _take_first_free(
            first, last, graph.indptr, graph.indices,  # IN
            row_to_col, col_to_row,  # OUT
        )  # fmt: skip
    return True
