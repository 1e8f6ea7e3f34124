"""The paths that raise a threshold, from no pairs at all: a search for every row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.cpu.assignment import bottleneck
from gpumatch.cpu.assignment.bottleneck import raise_threshold


def problem(seed):
    """Costs with a full assignment, some of them equal."""
    rng = np.random.default_rng(seed)
    nrows = int(rng.integers(1, 40))
    ncols = nrows + int(rng.integers(0, 2) * rng.integers(0, 9))
    stored = rng.random((nrows, ncols)) < rng.choice([1, 3, 8]) / ncols
    stored[np.arange(nrows), rng.permutation(ncols)[:nrows]] = True
    costs = rng.integers(-rng.choice([2, 500]), rng.choice([3, 1000]), stored.sum())
    return csr_array((costs.astype(rng.choice([np.int64, np.float64])), stored.nonzero()))


@pytest.mark.parametrize("budget", [bottleneck._BUDGET, 1])
def test_the_threshold_is_the_least_for_which_all_rows_have_columns(monkeypatch, budget):
    monkeypatch.setattr(bottleneck, "_BUDGET", budget)
    for seed in range(150):
        costs = problem(seed)
        nrows, ncols = costs.shape
        row_to_col, col_to_row = np.full(nrows, -1, np.int32), np.full(ncols, -1, np.int32)
        threshold = raise_threshold(
            (costs.indptr, costs.indices, costs.data),
            (row_to_col, col_to_row),
            costs.data.min(),
            lambda: False,
        )
        best = gm.assign(costs, objective="bottleneck", backend="cpu").objective
        assert (threshold, type(threshold)) == (best, type(best))
        assert np.array_equal(col_to_row[row_to_col], np.arange(nrows))
        assert costs[np.arange(nrows), row_to_col].max() == threshold


@pytest.mark.parametrize(("budget", "rows_each"), [(1, 1), (9, 3), (10, 4), (300, 99)])
def test_a_search_is_charged_what_it_reads(monkeypatch, budget, rows_each):
    """Each row takes the first of its two columns, and is charged both and one more."""
    search, calls, nrows = bottleneck._search, [], 99
    monkeypatch.setattr(bottleneck, "_BUDGET", budget)
    monkeypatch.setattr(bottleneck, "_search", lambda *given: calls.append(1) or search(*given))
    cols = np.arange(nrows)
    indices = np.column_stack([cols, cols + 1]).ravel().astype(np.int32)
    entries = np.arange(0, 2 * nrows + 1, 2), indices, np.ones(2 * nrows)
    mates = np.full(nrows, -1, np.int32), np.full(nrows + 1, -1, np.int32)
    assert raise_threshold(entries, mates, 1.0, lambda: False) == 1
    assert mates[0].tolist() == cols.tolist()
    assert len(calls) == -(-nrows // rows_each)


def test_no_integer_is_too_large_to_be_reached():
    """Row 1 can only have column 0, and then row 0 pays 2**59 or more for another."""
    costs = csr_array(np.array([[1, 2**59 + 1, 2**59], [1, 0, 0], [0, 5, 0]]))
    mates = np.full(3, -1, np.int32), np.full(3, -1, np.int32)
    entries = costs.indptr, costs.indices, costs.data
    assert raise_threshold(entries, mates, 1, lambda: False) == 2**59
    assert mates[0].tolist() == [2, 0, 1]
