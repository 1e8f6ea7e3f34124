"""A small problem for each family of kernels, with its proof: a first look at another Numba.

`make test-lowest` runs these with the lowest versions that pyproject.toml admits.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.dispatch.registry import STARTS


def named(problem):
    return [one.name for one in gm.algorithms(problem) if "cpu" in one.backends]


def sparse(rows, degree):
    """Random entries and a permutation, so that there is a full assignment."""
    random = np.random.default_rng(0)
    cols = random.integers(0, rows, rows * degree)
    cols[::degree] = random.permutation(rows)
    entries = random.integers(1, 1000, cols.size) / 8, (np.arange(rows).repeat(degree), cols)
    return csr_array(entries, shape=(rows, rows))


def dense(*shape):
    return np.random.default_rng(0).integers(0, 1000, shape) / 8


@functools.cache
def graph():
    """Of some 2,000 rows with 3 neighbours or fewer, of which a tenth cannot be matched."""
    random = np.random.default_rng(0)
    rows, cols = random.integers(0, 2000, 5000), random.integers(0, 2000, 5000)
    return csr_array((np.ones(5000), (rows, cols)), shape=(2000, 2000))


def is_optimal(costs, assignment):
    return gm.verify(costs, assignment) and assignment.proven


# -- matchings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("algorithm", named("matching"))
def test_matching(algorithm, threads):
    matching = gm.maximum_matching(graph(), algorithm=algorithm, init="none", threads=threads)
    assert gm.verify(graph(), matching)
    assert matching.size == gm.maximum_matching(graph()).size


@pytest.mark.parametrize("init", [name for name, homes in STARTS.items() if "cpu" in homes])
def test_start(init):
    assert gm.verify(graph(), gm.maximum_matching(graph(), init=init))


# -- assignments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", named("assignment"))
@pytest.mark.parametrize("costs", [dense(60, 60), sparse(300, 4)], ids=["dense", "sparse"])
def test_assignment(algorithm, costs):
    assignment = gm.assign(costs, algorithm=algorithm, cardinality="full")
    assert assignment.size == costs.shape[0]
    is_heuristic = algorithm == "dgs"
    assert gm.verify(costs, assignment, optimal=not is_heuristic)
    assert assignment.proven or is_heuristic


ORDER = np.arange(1.0, 501)
LARGE = {
    "dense": dense(500, 500),
    "contested": np.multiply.outer(ORDER, ORDER),
    "many rows": sparse(4000, 4),
    "many entries": csr_array(dense(1040, 1040) + 1),
}


@pytest.mark.parametrize("name", LARGE)
def test_engines(name):
    assert is_optimal(LARGE[name], gm.assign(LARGE[name], threads=2))


@pytest.mark.parametrize(
    "wish", [{}, {"cost_limit": 20}, {"cardinality": "maximum"}], ids=["full", "limit", "maximum"]
)
def test_small_and_batch(wish):
    costs = dense(30, 40)
    assignment, batch = gm.assign(costs, **wish), gm.assign(np.stack([costs, costs]), **wish)
    assert is_optimal(costs, assignment)
    assert batch.objective.tolist() == [assignment.objective] * 2


def test_pairs_at_the_limit():
    costs = np.full((70, 70), 7.0)
    assert gm.assign(costs, cost_limit=7, algorithm="engine").size == 70


def test_bottleneck():
    costs = sparse(300, 4)
    largest = gm.assign(costs, objective="bottleneck")
    assert gm.verify(costs, largest)


@pytest.mark.parametrize("shape", [(20, 30), (200, 300)])
def test_pairs_by_scipys_name(shape):
    costs = dense(*shape)
    rows, cols = gm.optimize.linear_sum_assignment(costs)
    assert costs[rows, cols].sum() == costs[linear_sum_assignment(costs)].sum()


def test_what_solvers_need():
    matrix = sparse(300, 4)
    blocks = gm.linalg.dmperm(matrix)
    assert sorted(blocks.p) == sorted(blocks.q) == list(range(300))
    scaled = gm.linalg.maximum_product_matching(matrix)
    scaled_matrix = np.abs(
        np.diag(scaled.row_scale) @ matrix.toarray() @ np.diag(scaled.col_scale)
    )[scaled.row_perm][:, scaled.col_perm]
    np.testing.assert_allclose(np.diag(scaled_matrix), 1)
    assert scaled_matrix.max() <= 1 + 1e-9
