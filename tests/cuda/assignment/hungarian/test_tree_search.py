"""The kernel's own rules where they differ from the paper's, tested where there is no GPU.

`TreeSearch` is tree.cu in random orders, and asserts after every search what must hold.
Here its totals are compared with SciPy's, and each rule is broken once, which must show. Problems
are small and of many kinds, most with ties: the rules are about which of two leaves is whose, and
which of them is nearer.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import gpumatch.cuda
from tests.cuda.assignment.hungarian.tree_search import FAR, TreeSearch


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
@pytest.mark.parametrize(("count", "most"), [(2_000, 7), (250, 40)])
def test_problems_of_every_kind(count, most, is_patient):
    check_all(TreeSearch, count, most, is_patient=is_patient)


@pytest.mark.parametrize("shape", [(160, 160), (160, 200)])
@pytest.mark.parametrize("limit", [FAR, 2_000])
def test_a_search_finds_paths_for_many_trees(shape, limit):
    """Those that end at a second leaf, or anywhere, are far fewer than those at the nearest."""
    costs = np.random.default_rng(0).integers(0, 100_000, shape).astype(float)
    options = {"seed": 0, "spread": 100_000, "batch": 16}
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


# -- the kernel ------------------------------------------------------------------------------------

CUDA = Path(gpumatch.cuda.__file__).parent / "assignment" / "hungarian"
RULES = [
    ("check", "min(own) if", "check", "own.bound = min(own.bound, leaf);"),
    ("check", "max(own))", "check", "own.last = max(own.last, leaf);"),
    ("check", "self.spread // len(roots)", "begin", "min(at.end, at.spread / max(at.roots, 1));"),
    ("look_at", "if here < self.dist[col]:", "look_at", "from.row >= 0 && here < c.dist"),
    (
        "look_at",
        "made.bound = min(made.bound, dist)",
        "look_at",
        "if (c.mate == -1 && s.ending == kAtNearestLeaf) own.bound = min(own.bound, c.dist);",
    ),
    ("look_at", "if dist >= before:", "look_at", "if (c.dist >= c.joined_at) return;"),
    (
        "look_at",
        "if dist > self.at.reach or mate != -1: made.least = min(made.least, dist)",
        "look_at",
        "if (c.dist > reach || c.mate != -1) own.least = min(own.least, c.dist);",
    ),
    ("look_at", "if dist > self.at.reach: return", "look_at", "if (c.dist > reach) return;"),
    ("look_at", "made.found += before == FAR", "look_at", "own.found += before == kFar;"),
    ("look_at", "made.last = max(made.last, dist)", "look_at", "own.last = max(own.last, c.dist);"),
    ("look_at", "made.again += before != FAR", "look_at", "own.again += before != kFar;"),
    (
        "look_at",
        "made.bound = min(made.bound, dist + (self.limit - self.row_dual[mate]))",
        "look_at",
        "own.bound = min(own.bound, c.dist + (p.limit - c.mate_dual));",
    ),
    (
        "join_tree",
        "is_same = before != FAR and root == self.col_root[col]",
        "join_tree",
        "is_same = before != kFar && root == s.col_root[col];",
    ),
    (
        "join_tree",
        "self.first_leaf[root] = min(first, leaf)",
        "join_tree",
        "first = atomicMin(&s.first_leaf[root], leaf);",
    ),
    (
        "is_itself",
        "return is_same and first == before",
        "join_tree",
        "is_itself = is_same && first == before + beyond;",
    ),
    (
        "join_tree",
        "made.bound = min(made.bound, max(first, leaf))",
        "join_tree",
        "if (first != kFar && !is_itself) own.bound = min(own.bound, max(first, leaf));",
    ),
    ("grow", "made = Level()", "put_together", "atomicAdd(&made.found, own.found);"),
    ("grow", "made = Level()", "put_together", "atomicAdd(&made.again, own.again);"),
    ("grow", "made = Level()", "put_together", "atomicMin(&made.least, own.least);"),
    ("grow", "made = Level()", "put_together", "atomicMin(&made.bound, own.bound);"),
    ("grow", "made = Level()", "put_together", "atomicMax(&made.last, own.last);"),
    ("find_end", "at.end = min(at.end, made.bound)", "go_on", "at.end = min(at.end, made.bound);"),
    (
        "find_end",
        "at.last = max(at.last, made.last)",
        "go_on",
        "at.last = max(at.last, made.last);",
    ),
    (
        "find_end",
        "if at.leaves >= (len(at.roots) - 1) // self.roots_a_leaf + 1:",
        "go_on",
        "if (at.leaves >= (at.roots - 1) / kRootsALeaf + 1) at.end = min(at.end, at.last);",
    ),
    (
        "find_end",
        "at.end = min(at.end, at.last if at.leaves else at.limit)",
        "go_on",
        "if (made.least == kFar) at.end = min(at.end, at.leaves != 0 ? at.last : at.limit);",
    ),
    ("grow_trees", "if made.least > self.at.end:", "go_on", "if (made.least > at.end) return"),
    ("reach_out", "at.grown += size - made.again", "go_on", "at.grown += made.size - made.again;"),
    (
        "reach_out",
        "if made.again > max(self.batch, size // 2): self.spread //= 2",
        "go_on",
        "if (made.again > max(kBatch, made.size / 2)) at.spread /= 2;",
    ),
    (
        "reach_out",
        "made.least + self.spread // at.grown",
        "go_on",
        "made.least + at.spread / at.grown",
    ),
    (
        "is_open",
        "return self.ending is not Ending.AT_SECOND_LEAF or self.first_leaf[root] >= self.at.end",
        "is_open",
        "return s.ending != kAtSecondLeaf || s.first_leaf[root] >= end;",
    ),
    (
        "update_duals",
        "return end - dist if dist < end else 0",
        "rise",
        "return dist < end ? static_cast<long long>(end - dist) : 0;",
    ),
    (
        "update_duals",
        "if dist <= end and self.row_dual[row] >= self.limit:",
        "is_leaf_row",
        "if (dist > end || dual < p.limit) return false;",
    ),
    (
        "update_duals",
        "is_near = dist < end or (dist == end and self.is_open(self.col_root[col]))",
        "is_leaf_column",
        "return dist < end || is_open(s, s.col_root[col], end);",
    ),
    ("put_back", "self.row_dual[row] = self.limit", "update_duals", "dual = p.limit;"),
    (
        "update_duals",
        "self.col_dual[col] -= rise(dist) - shift",
        "update_duals",
        "p.col_dual[col] -= rise(end, s.dist[col]) - shift;",
    ),
]
"""Method and text of the model, function and text of tree.cu that it stands for."""


def in_one_line(text):
    return " ".join(re.sub(r"//.*", "", text).split())


def function_of_kernel(name):
    source = (CUDA / "tree.cu").read_text()
    found = re.search(rf"__device__[^;{{}}]*?\b{name}\(.*?\n\}}\n", source, re.DOTALL)
    assert found is not None, f"tree.cu has no function {name}"
    return in_one_line(found[0])


@pytest.mark.parametrize(
    ("method", "rule", "function", "text"), RULES, ids=[f"{r[2]}-{i}" for i, r in enumerate(RULES)]
)
def test_the_kernel_has_each_rule_of_the_model(method, rule, function, text):
    """A rule that is changed on one side has to be changed, and tried, on the other too."""
    model = " ".join(inspect.getsource(getattr(TreeSearch, method)).split())
    assert rule in model
    assert text in function_of_kernel(function)
