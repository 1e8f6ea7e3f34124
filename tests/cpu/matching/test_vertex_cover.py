"""The cover of a maximum matching does not depend on where its search returns to Python."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch import BipartiteGraph, maximum_matching
from gpumatch.cpu.matching import vertex_cover
from graphs import make


@pytest.mark.parametrize("budget", [1, 50])
def test_the_budget_does_not_change_the_cover(budget):
    """Many rows stay free, and what paths reach from them is far more than one budget's edges."""
    graph = BipartiteGraph(make("uniform", 2000, 2, seed=3))
    m = maximum_matching(graph)
    whole = vertex_cover.cover(graph, m.row_to_col, m.col_to_row)
    in_pieces = vertex_cover.cover(graph, m.row_to_col, m.col_to_row, budget)
    assert sum(map(np.count_nonzero, whole)) == m.size < 1800
    for side, again in zip(whole, in_pieces):
        assert np.array_equal(side, again)


def test_a_path_behind_the_first_budget_is_found():
    """The chain's rows but the first are matched to the next column, so its end is free."""
    n = 50
    indptr = np.arange(0, 2 * n + 1, 2, dtype=np.int32)
    indices = np.repeat(np.arange(n, dtype=np.int32), 2)
    indices[1::2] += 1
    graph = BipartiteGraph((indptr, indices, (n, n + 1)))
    row_to_col = np.arange(n, dtype=np.int32)
    col_to_row = np.append(row_to_col, np.int32(-1))
    row_to_col[0] = col_to_row[0] = -1
    with pytest.raises(ValueError, match="reaches column 0"):
        vertex_cover.cover(graph, row_to_col, col_to_row, budget=1)


def test_the_search_returns_after_as_many_edges_as_its_budget_has(monkeypatch):
    """All rows of a complete graph are reached, and each is charged all of its edges."""
    calls, budget, nrows, ncols = [], 100, 60, 40
    reach = vertex_cover._reach
    monkeypatch.setattr(vertex_cover, "_reach", lambda *state: calls.append(1) or reach(*state))
    graph = BipartiteGraph(np.ones((nrows, ncols)))
    m = maximum_matching(graph)
    in_rows, in_cols = vertex_cover.cover(graph, m.row_to_col, m.col_to_row, budget)
    assert (in_rows.sum(), in_cols.sum()) == (0, ncols)
    assert nrows * ncols / (budget + ncols) <= len(calls) <= nrows * ncols / budget + 1
