"""A pair that costs exactly the limit: no row and column that may have it are both left out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.costs import DenseCosts, SparseCosts
from gpumatch.dispatch import registry
from gpumatch.problems.at_limit import bound_in, join_at_limit
from tests.assignment_cases import Run
from tests.assignment_checks import check_limit
from tests.pairwise import pairwise_product

SHAPES = ((1, 1), (2, 2), (3, 7), (7, 3), (8, 8), (0, 3))
RUNS = [
    pytest.param(Run(a.name, backend), id=f"{a.name}-{backend}", marks=marks)
    for a in registry.algorithms("assignment")
    for backend in a.backends
    for marks in [[pytest.mark.gpu] if backend == "cuda" else []]
]


class TiledCosts(DenseCosts):
    """Costs of a kind that has no matrix to be read at once."""

    has_matrix = False


def stored(costs):
    """All costs, zeros too, in CSR."""
    rows, cols = costs.shape
    indptr, indices = np.arange(rows + 1) * cols, np.tile(np.arange(cols), rows)
    return csr_array((costs.ravel(), indices, indptr), shape=costs.shape)


def problems(seed, dtype):
    """Costs of few values, and limits that many of them are equal to."""
    rng = np.random.default_rng(seed)
    for shape in SHAPES:
        costs = rng.integers(-2, 3, shape).astype(dtype)
        for limit in (0, 1, rng.integers(-2, 3, shape[0])):
            yield costs, limit
        yield np.full(shape, 2, dtype), 2


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    "dtype", ["int64", "float64", pytest.param("float32", marks=pytest.mark.long)]
)
def test_every_algorithm_joins_what_costs_the_limit(run, dtype):
    chosen = pairwise_product(
        {
            "problem": [*problems(3, dtype)],
            "sign": (1, -1),
            "cardinality": ("full", "any", "maximum"),
            "form": (np.asarray, stored),
        }
    )
    for (costs, limit), sign, cardinality, form in chosen:
        given = form(sign * costs)
        wish = {"maximize": sign < 0, "cost_limit": sign * limit, "cardinality": cardinality}
        a = gm.assign(given, **wish, **run.arguments)
        check_limit(given, a, sign * limit)
        if a.proven:
            gm.verify(given, a)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("cardinality", ["full", "any", "maximum"])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_every_door_joins_what_costs_the_limit(dtype, cardinality, sign):
    """One small problem, batches of several forms, costs without a matrix, and tensors."""
    for costs, limit in problems(4, "int64"):
        high = sign * costs + 5
        given, own = high.astype(dtype), sign * limit + 5
        wish = {"maximize": sign < 0, "cardinality": cardinality}
        doors = [(given, own), (TiledCosts(given), own), (stored(given), own)]
        for door, bound in doors:
            a = gm.assign(door, cost_limit=bound, **wish)
            check_limit(given, a, bound)
            gm.verify(door, a)
        if np.ndim(own):
            continue
        for batch in (np.stack([given] * 3), [given, given[:1], stored(given)]):
            found = gm.assign(batch, cost_limit=own, **wish)
            gm.verify(batch, found)
            for k, one in enumerate(batch):
                check_limit(one, found[k], own)
                if cardinality != "maximum":  # the largest number of such pairs
                    assert found[0].size >= one_by_one(given, own, wish).size


def one_by_one(costs, limit, wish):
    return gm.assign(costs, cost_limit=limit, algorithm="shortest-augmenting-path", **wish)


@pytest.mark.parametrize("limit", [1, 1.5, 2.0])
def test_integers_with_any_limit(limit):
    costs = np.array([[2, 1, 3], [2, 2, 3], [3, 1, 1]])
    for algorithm in ("auto", "engine", "hungarian-tree"):
        a = gm.assign(costs, cost_limit=limit, algorithm=algorithm)
        check_limit(costs, a, limit)
        assert a.size == (3 if limit == 2 else 2)


def test_any_without_a_limit_takes_a_pair_only_if_it_pays():
    zeros = np.zeros((3, 4))
    for costs in (zeros, zeros.astype(int), [zeros, zeros], stored(zeros)):
        for algorithm in ("auto", "engine", "shortest-augmenting-path", "auction"):
            a = gm.assign(costs, cardinality="any", algorithm=algorithm)
            assert np.sum(a.size) == 0
            a = gm.assign(costs, cardinality="any", algorithm=algorithm, cost_limit=0)
            assert np.sum(a.size) == (6 if isinstance(costs, list) else 3)


def test_pairs_are_joined_along_paths_where_that_is_cheap():
    """The small kernels find as many pairs as there can be: here, one must give way to another."""
    costs = np.array([[1.0, 1.0], [1.0, 9.0]])
    for permuted in (costs, costs[::-1], costs[:, ::-1], costs.T[::-1]):
        assert gm.assign(permuted, cost_limit=1).size == 2
        assert gm.assign([permuted], cost_limit=1).size.tolist() == [2]


def test_floats_are_compared_as_they_are():
    """0.1 is less than what it is as a float32, and 0.3 more than 0.1 + 0.2 - 2**-54."""
    single = np.array([[0.1]], np.float32)
    for limit, size in ((0.1, 0), (float(np.float32(0.1)), 1), (np.float32(0.1), 1)):
        for given in (single, stored(single), [single], TiledCosts(single)):
            for algorithm in ("auto", "engine", "hungarian-classical"):
                a = gm.assign(given, cost_limit=limit, algorithm=algorithm)
                assert np.sum(a.size) == size
    costs = np.array([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]])
    assert gm.assign(costs[:, :1], cost_limit=0.3).row_to_col.tolist() == [-1, 0]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64"])
def test_the_bound_is_the_greatest_number_within_the_limit(dtype):
    dtype = np.dtype(dtype)
    numbers = [-(2**62), -129, -128, -1, 0, 0.1, 1, 1.5, 127, 128, 2**24 + 1, 2**40, 2**62]
    for limit in numbers:
        bound = bound_in(dtype, limit)
        if bound is None:
            assert dtype.kind != "f"
            assert limit < np.iinfo(dtype).min
            continue
        assert bound.dtype == dtype
        assert bound.item() <= limit
        if dtype.kind == "f":
            assert np.nextafter(bound, dtype.type(math.inf)).item() > limit
        else:
            assert bound == np.iinfo(dtype).max or int(bound) + 1 > limit


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("form", [DenseCosts, TiledCosts, lambda costs: SparseCosts(stored(costs))])
def test_joining_leaves_nothing_and_keeps_what_is_there(form, threads):
    """Of more entries than a thread reads at once; with the least and the greatest numbers."""
    rng = np.random.default_rng(5)
    for dtype, shape in (("int32", (700, 900)), ("int64", (40, 30)), ("float64", (300, 301))):
        costs = rng.integers(0, 900, shape).astype(dtype)
        costs[3, 4] = 1e300 if dtype[0] == "f" else np.iinfo(dtype).max >> 10
        row_to_col, col_to_row = np.full(shape[0], -1, np.int32), np.full(shape[1], -1, np.int32)
        kept = rng.permutation(min(shape))[: min(shape) // 2]
        row_to_col[kept] = col_to_row[kept] = kept
        before = row_to_col.copy()
        join_at_limit(form(costs).problem(False, False), 2, (row_to_col, col_to_row), threads)
        own = costs[np.ix_(row_to_col < 0, col_to_row < 0)]
        assert own.size
        assert (own > 2).all()
        assert (row_to_col[kept] == before[kept]).all()
        new = np.flatnonzero(row_to_col != before)
        assert new.size
        assert (costs[new, row_to_col[new]] <= 2).all()
        assert (col_to_row[row_to_col[new]] == new).all()


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_batches_of_a_device_join_what_costs_the_limit(dtype, sign):
    cp = pytest.importorskip("cupy")
    for costs, limit in problems(6, dtype):
        if np.ndim(limit) or not costs.size:
            continue
        wish = {"maximize": sign < 0, "cost_limit": sign * limit}
        there = cp.asarray(np.stack([sign * costs] * 2))
        for batch in (gm.assign(there, **wish), gm.assign([*there], on_error="mark", **wish)):
            for k in range(2):
                one = batch[k]
                mates = one.row_to_col.get(), one.col_to_row.get()
                check_limit(sign * costs, Host(*mates, sign < 0), sign * limit)
                assert one.size == gm.assign([sign * costs], **wish).size[0]
                gm.verify(there[k], one)


class Host(NamedTuple):
    """The mates of a result, on the host."""

    row_to_col: np.ndarray
    col_to_row: np.ndarray
    maximize: bool


@pytest.mark.gpu
@pytest.mark.emulated
@pytest.mark.parametrize("form", [DenseCosts, TiledCosts])
def test_joining_on_a_device(form):
    cp = pytest.importorskip("cupy")
    rng = np.random.default_rng(8)
    for dtype in ("int32", "float32", "float64"):
        costs = rng.integers(0, 9, (30, 40)).astype(dtype)
        mates = cp.full(30, -1, np.int32), cp.full(40, -1, np.int32)
        mates[0][:5] = cp.arange(5, dtype=np.int32)
        mates[1][:5] = cp.arange(5, dtype=np.int32)
        join_at_limit(form(cp.asarray(costs)).problem(False, False), 2, mates)
        row_to_col, col_to_row = (side.get() for side in mates)
        check_limit(costs, Host(row_to_col, col_to_row, False), 2)
        assert row_to_col[:5].tolist() == [*range(5)]
        new = np.flatnonzero(row_to_col[5:] >= 0) + 5
        assert new.size > 10
        assert (costs[new, row_to_col[new]] <= 2).all()
        assert (col_to_row[row_to_col[new]] == new).all()


@pytest.mark.parametrize("limit", [2, np.full(40, 2)], ids=["one", "rows"])
@pytest.mark.parametrize("algorithm", ["engine", "shortest-augmenting-path"])
def test_what_is_proven_when_a_run_is_stopped_leaves_out_no_pair_at_the_limit(algorithm, limit):
    """Nothing is to be gained from the first, so even a run that does nothing ends at the best."""
    costs = np.full((40, 41), 2)
    empty = gm.assign(costs, cost_limit=1)
    a = gm.assign(costs, cost_limit=limit, algorithm=algorithm, initial=empty, time_limit=0)
    assert a.proven
    assert a.size == 40
    gm.verify(costs, a)


@pytest.mark.parametrize("form", [np.asarray, stored], ids=["dense", "sparse"])
@pytest.mark.parametrize("scaling", ["epsilon", "none"])
@pytest.mark.parametrize("dtype", [np.float64, np.longdouble])
def test_an_auction_that_is_left_at_epsilon_leaves_out_no_pair_at_the_limit(dtype, scaling, form):
    """It says that it has not ended, but may be proven."""
    costs = np.full((2, 3), 1 / 3, dtype)
    wish = {"algorithm": "auction", "scaling": scaling, "finish": "epsilon"}
    for cardinality in ("full", "any"):
        for sign in (1, -1):
            given = form((sign * costs).astype(np.float64) if form is stored else sign * costs)
            a = gm.assign(
                given, cardinality=cardinality, cost_limit=sign / 3, maximize=sign < 0, **wish
            )
            assert (a.proven, a.size) == (True, 2)
            gm.verify(given, a)


THIRDS = [[-1, 1, -3, 3], [0, -2, 0, 1], [1, 1, -1, -2], [3, 1, 1, 3], [1, -1, 3, 3]]


@pytest.mark.parametrize(
    "solve", [gm.assign, lambda costs, **how: gm.assign([costs], **how)[0]], ids=["alone", "batch"]
)
def test_sums_of_thirds_leave_no_pair_at_the_limit(solve):
    """Paths of floats are rounded, so a search may leave out a pair that costs the limit."""
    rng = np.random.default_rng(6)
    drawn = [rng.integers(-3, 4, rng.integers(2, 8, 2)) for _ in range(100)]
    for costs in [np.array(THIRDS) / 3, *(numbers / 3 for numbers in drawn)]:
        limit = max(1 / 3, costs.min())
        a = solve(costs, cost_limit=limit)
        check_limit(costs, a, limit)
        gm.verify(costs, a)


@pytest.mark.gpu
@pytest.mark.emulated
def test_sums_of_thirds_leave_no_pair_at_the_limit_in_batches_of_a_device():
    """Nobody waits for the results, so no other way may take over."""
    cp = pytest.importorskip("cupy")
    rng = np.random.default_rng(6)
    drawn = [rng.integers(-3, 4, rng.integers(2, 8, 2)) for _ in range(20)]
    problems = [np.array(numbers) / 3 for numbers in (THIRDS, *drawn)]
    batch = gm.assign([*map(cp.asarray, problems)], cost_limit=1 / 3, on_error="mark")
    assert batch.proven.get().all()
    for a, costs in zip(batch, problems):
        check_limit(costs, Host(a.row_to_col.get(), a.col_to_row.get(), False), 1 / 3)
        gm.verify(cp.asarray(costs), a)
