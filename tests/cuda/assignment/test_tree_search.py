"""The kernel's own rules where they differ from the paper's, tested where there is no GPU.

`TreeSearch` is hungarian_tree.cu in random orders, and asserts after every search what must hold.
Here its totals are compared with SciPy's, and each rule is broken once, which must show. Problems
are small and of many kinds, most with ties: the rules are about which of two leaves is whose, and
which of them is nearer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from tests.cuda.assignment.tree_search import FAR, TreeSearch


class Problem(NamedTuple):
    costs: np.ndarray
    limit: float
    options: dict[str, int]  # of TreeSearch


def problem(seed, most):
    """Square, wide or tall; with a limit or without; forbidden pairs, ties, negative costs."""
    rng = np.random.default_rng(seed)
    has_limit = rng.random() < 0.5
    nrows = rng.integers(most + 1)
    ncols = nrows + rng.choice([0, 0, 1, 2, most // 2])
    if rng.random() < (0.4 if has_limit else 0.05):
        ncols = rng.integers(nrows + 1)
    top = int(rng.choice([1, 4, 10, 30, 100, 10**6]))
    costs = rng.integers(0, top + 1, (nrows, ncols)).astype(float)
    if rng.random() < 0.3:  # all rows want the same columns, and paths are long
        costs = (costs[:, :1] * costs[:1]) // top
    if rng.random() < 0.3:
        costs -= top // 2
    costs[rng.random(costs.shape) < rng.choice([0, 0, 0.2, 0.5, 0.7])] = FAR
    options = {
        "seed": seed,
        "spread": int(rng.choice([0, top, 10 * top, 5 * top * nrows])),
        "batch": int(rng.choice([1, 4, 16])),
        "roots_a_leaf": int(rng.choice([1, 2, 4])),
    }
    return Problem(costs, int(rng.integers(0, top + 1)) if has_limit else FAR, options)


def least(costs, limit):
    """SciPy's optimum, None if there is none; to go without is a column of the row's own."""
    own = np.where(np.eye(len(costs), dtype=bool), limit, FAR)
    padded = np.hstack([costs, own]) if limit < FAR else costs
    try:
        pairs = linear_sum_assignment(padded)
    except ValueError:
        return None
    return padded[pairs].sum() if len(pairs[0]) == len(costs) else None


def check(kind, costs, limit, **options):
    """Solve it by the rules of `kind`: the total is SciPy's, or both say that there is none."""
    search = kind(costs, limit, **options)
    total = None
    if search.solve():
        cols = search.row_to_col
        total = sum(limit if col == -1 else costs[row, col] for row, col in enumerate(cols))
        assert total == sum(search.row_dual) + sum(search.col_dual)
    assert total == least(costs, limit)
    return search


def check_all(kind, count, most, **options):
    for seed in range(count):
        costs, limit, own = problem(seed, most)
        check(kind, costs, limit, **own, **options)


@pytest.mark.parametrize("is_patient", [False, True])
@pytest.mark.parametrize(("count", "most"), [(4_000, 7), (500, 40)])
def test_problems_of_every_kind(count, most, is_patient):
    check_all(TreeSearch, count, most, is_patient=is_patient)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shape", [(160, 160), (160, 200)])
@pytest.mark.parametrize("limit", [FAR, 2_000])
def test_a_search_finds_paths_for_many_trees(shape, limit, seed):
    """Those that end at a second leaf, or anywhere, are far fewer than those at the nearest."""
    costs = np.random.default_rng(seed).integers(0, 100_000, shape).astype(float)
    options = {"seed": seed, "spread": 100_000, "batch": 16}
    searches = check(TreeSearch, costs, limit, **options).paths
    patient = check(TreeSearch, costs, limit, **options, is_patient=True).paths
    assert sum(searches) == sum(patient) > 150
    assert 3 * len(searches) < len(patient)


# -- broken rules ----------------------------------------------------------------------------------

BEYOND_A_SECOND_LEAF = "is free and has lost|is not tight"


class SomeBoundsDropped(TreeSearch):
    def is_itself(self, is_same, first, before):
        return super().is_itself(is_same, first, before) or self.random.random() < 0.3


class EveryLeafOpen(TreeSearch):
    def is_open(self, root):
        return True


class ItselfInAnyTree(TreeSearch):
    def is_itself(self, is_same, first, before):
        return first == before


class ItselfWhateverTheFirst(TreeSearch):
    def is_itself(self, is_same, first, before):
        return is_same


class NotPutBack(TreeSearch):
    def put_back(self, row):
        pass


@pytest.mark.parametrize(
    ("kind", "shows"),
    [
        (SomeBoundsDropped, BEYOND_A_SECOND_LEAF),
        (EveryLeafOpen, BEYOND_A_SECOND_LEAF),
        (ItselfInAnyTree, BEYOND_A_SECOND_LEAF),
        (ItselfWhateverTheFirst, BEYOND_A_SECOND_LEAF),
        (NotPutBack, "is above the limit"),
    ],
)
def test_a_broken_rule_shows(kind, shows):
    with pytest.raises(AssertionError, match=shows):
        check_all(kind, 500, 40)
