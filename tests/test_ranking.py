"""`gpumatch.k_best`: against brute force, and by its certificate."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

import gpumatch as gm


def all_assignments(costs, limits, cardinality_is_full):
    """All assignments as (total, row_to_col), in `k_best`'s order."""
    nrows, ncols = costs.shape
    found = []

    def extend(row, used, total, mates):
        if row == nrows:
            found.append((total, tuple(mates)))
            return
        for col in range(ncols):
            cost = costs[row, col].item()
            if (
                math.isfinite(cost)
                and not used >> col & 1
                and (limits is None or cost <= limits[row])
            ):
                extend(row + 1, used | 1 << col, total + cost, [*mates, col])
        if not cardinality_is_full:
            extend(row + 1, used, total + limits[row], [*mates, -1])

    extend(0, 0, 0, [])
    return found


def expected(costs, limit, maximize):
    """The same for whatever `k_best` takes as `cost_limit`."""
    sign = -1 if maximize else 1
    costs = costs * sign
    if limit is None:
        turned = costs.shape[0] > costs.shape[1]
        found = all_assignments(costs.T if turned else costs, None, True)
    else:
        turned = np.ndim(limit) == 0 and costs.shape[0] > costs.shape[1]
        limits = np.broadcast_to(limit, costs.shape[turned]) * sign
        found = all_assignments(costs.T if turned else costs, limits.tolist(), False)
    if turned:
        found = [(total, inverse(mates, costs.shape[0])) for total, mates in found]
    return [(sign * total, mates) for total, mates in sorted(found)]


def inverse(mates, size):
    turned = [-1] * size
    for col, row in enumerate(mates):
        if row >= 0:
            turned[row] = col
    return tuple(turned)


def random_problem(rng):
    """Costs, limit, maximize: few or many values, forbidden pairs, and all kinds of gates."""
    shape, high = rng.integers(0, 6, 2), int(rng.choice([1, 4, 1000]))
    costs = rng.integers(-high, high + 1, shape)
    maximize = bool(rng.random() < 0.4)
    if rng.random() < 0.5:
        costs = costs + (rng.random(shape) if rng.random() < 0.5 else 0.0)
        forbidden = rng.random(shape) < rng.choice([0, 0.3, 0.6])
        costs[forbidden] = -np.inf if maximize else np.inf
    limit, kind = None, rng.random()
    if kind < 0.3:
        limit = int(rng.integers(-high, high + 1))
    elif kind < 0.5:
        limit = rng.integers(-high, high + 1, shape[0]) + rng.choice([0, 0.5])
    elif kind < 0.6:
        limit = float(rng.integers(-high, high + 1)) + 0.5
    return costs, limit, maximize


def check_one(costs, limit, maximize, k, *, verified):
    ranked = gm.k_best(costs, k, maximize=maximize, cost_limit=limit, proof=verified)
    wanted = expected(costs, limit, maximize)
    assert len(ranked) == min(k, len(wanted))
    assert ranked.proven
    assert ranked.is_complete == (len(wanted) < k)
    totals = {mates: total for total, mates in wanted}
    mates = [tuple(row) for row in ranked.row_to_col.tolist()]
    assert len(set(mates)) == len(mates)
    claimed = ranked.objective.tolist()
    np.testing.assert_allclose(
        claimed, [total for total, _ in wanted[: len(ranked)]], rtol=1e-12, atol=1e-11
    )
    np.testing.assert_allclose(claimed, [totals[own] for own in mates], rtol=1e-12, atol=1e-11)
    if costs.dtype.kind == "i" and (limit is None or np.asarray(limit).dtype.kind == "i"):
        assert claimed == [total for total, _ in wanted[: len(ranked)]]
        whole = [pair for pair in wanted[: len(claimed)] if pair[0] != claimed[-1]]
        assert list(zip(claimed, mates))[: len(whole)] == whole  # ties come in lexicographic order
    if verified:
        certificate = gm.verify(costs, ranked)
        assert certificate.size == len(ranked)
        assert math.isinf(certificate.bound) == ranked.is_complete


@pytest.mark.parametrize("seed", range(3))
def test_equal_to_brute_force(seed):
    rng = np.random.default_rng(seed)
    for number in range(500):
        k = int(rng.choice([1, 2, 5, 30, 1000]))
        check_one(*random_problem(rng), k, verified=number % 4 == 0)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_equal_to_brute_force_20_000_times(seed):
    rng = np.random.default_rng(1000 + seed)
    for number in range(5000):
        k = int(rng.choice([1, 2, 5, 30, 1000]))
        check_one(*random_problem(rng), k, verified=number % 10 == 0)


@pytest.mark.parametrize("shape", [(12, 12), (8, 15), (15, 8)])
@pytest.mark.parametrize("limit", [None, 0.3])
def test_larger_problems_are_proven(shape, limit):
    costs = np.random.default_rng(3).random(shape)
    ranked = gm.k_best(costs, 60, cost_limit=limit, proof=True)
    assert len(ranked) == 60
    gm.verify(costs, ranked)
    a = gm.assign(costs, cost_limit=limit)
    missing = (min(shape) - a.size) * (limit or 0)
    assert ranked.objective[0] == pytest.approx(a.objective + missing, rel=1e-14)
    for pairs, total in zip(ranked, ranked.objective):
        paid = costs[pairs.row_ind, pairs.col_ind].sum()
        assert paid + (min(shape) - pairs.size) * (limit or 0) == pytest.approx(total, rel=1e-12)


def test_more_assignments_begin_with_fewer():
    costs = np.random.default_rng(5).random((20, 20))
    many, few = gm.k_best(costs, 200), gm.k_best(costs, 7)
    assert (many.row_to_col[:7] == few.row_to_col).all()
    assert (np.diff(many.objective) >= 0).all()


def test_sparse_costs_and_graphs():
    rng = np.random.default_rng(7)
    dense = np.where(rng.random((9, 11)) < 0.5, rng.integers(1, 30, (9, 11)), 0)
    held = gm.k_best(np.where(dense > 0, dense.astype(float), np.inf), 40, proof=True)
    ranked = gm.k_best(sparse.csr_array(dense), 40, proof=True)
    assert ranked.objective.tolist() == held.objective.tolist()
    gm.verify(sparse.csr_array(dense), ranked)


def test_a_stored_zero_is_a_cost_and_ties_are_complete():
    costs = np.zeros((4, 4), int)
    ranked = gm.k_best(costs, 100, proof=True)
    assert ranked.row_to_col.tolist() == [list(p) for p in itertools.permutations(range(4))]
    assert ranked.is_complete
    assert set(ranked.objective.tolist()) == {0}
    gm.verify(costs, ranked)


def test_padding_makes_no_second_assignment():
    costs = np.array([[1, 2, 3, 4, 5]])
    ranked = gm.k_best(costs, 9)
    assert ranked.row_to_col.tolist() == [[0], [1], [2], [3], [4]]
    gated = gm.k_best(costs, 9, cost_limit=3)
    assert gated.row_to_col.tolist() == [[0], [1], [-1], [2]]
    assert gated.objective.tolist() == [1, 2, 3, 3]


def test_a_limit_for_each_row_is_paid_by_rows():
    costs = np.array([[1.0], [2.0]])
    ranked = gm.k_best(costs, 9, cost_limit=[5.0, 7.0])
    assert ranked.row_to_col.tolist() == [[-1, 0], [0, -1], [-1, -1]]
    assert ranked.objective.tolist() == [7.0, 8.0, 12.0]


def test_empty_problems():
    assert gm.k_best(np.zeros((0, 3)), 5).row_to_col.shape == (1, 0)
    assert gm.k_best(np.zeros((3, 0)), 5, proof=True).row_to_col.tolist() == [[-1, -1, -1]]
    nothing = gm.k_best(np.full((2, 2), np.inf), 5, proof=True)
    assert len(nothing) == 0
    assert nothing.is_complete
    gm.verify(np.full((2, 2), np.inf), nothing)


def test_a_batch_has_the_results_of_its_problems():
    rng = np.random.default_rng(11)
    costs = rng.random((5, 4, 6))
    batch = gm.k_best(costs, 8, proof=True, threads=2)
    for number, own in enumerate(batch):
        alone = gm.k_best(costs[number], 8)
        assert (own.row_to_col == alone.row_to_col).all()
        assert (batch.row_to_col[number] == alone.row_to_col).all()
    assert batch.counts.tolist() == [8] * 5
    assert batch.proven.all()
    assert gm.verify(costs, batch).size == 40
    uneven = gm.k_best([np.eye(2, dtype=int), np.ones((1, 3), int)], 4)
    assert uneven.counts.tolist() == [2, 3]
    assert uneven.objective[0].tolist() == [0, 2, 2**63 - 1, 2**63 - 1]
    assert uneven.row_to_col[1].tolist() == [[0, -1], [1, -1], [2, -1], [-1, -1]]
    assert uneven.row_to_col.shape == (2, 4, 2)


def test_a_stopped_run_returns_the_first_ones():
    costs = np.random.default_rng(13).random((60, 60))
    calls = iter(range(10**6))
    none = gm.k_best(costs, 50, time_limit=0)
    assert len(none) == 0
    assert not none.proven
    assert not none.is_complete
    some = gm.k_best(costs, 10**5, callback=lambda progress: next(calls) >= 6, proof=True)
    assert 1 < len(some) < 10**5
    assert not some.proven
    gm.verify(costs, some)
    assert (some.row_to_col[:20] == gm.k_best(costs, 20).row_to_col).all()


def test_large_integers_are_exact():
    costs = np.array([[2**55, 2**55 + 1], [2**55 + 3, 2**55 + 5]])
    ranked = gm.k_best(costs, 5)
    assert ranked.objective.tolist() == [2**56 + 4, 2**56 + 5]
    with pytest.raises(ValueError, match="too large"):
        gm.k_best(costs * 64, 2)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"k": 0}, ValueError, "k must be at least 1"),
        ({"k": 2.0}, TypeError, "k must be an integer"),
        ({"k": True}, TypeError, "k must be an integer"),
        ({"k": 2, "cost_limit": "x"}, TypeError, "cost_limit"),
        ({"k": 2, "cost_limit": np.nan}, ValueError, "cost_limit"),
        ({"k": 2, "cost_limit": [1.0]}, ValueError, "cost_limit"),
        ({"k": 2, "maximize": 1}, TypeError, "maximize"),
        ({"k": 2, "proof": 1}, TypeError, "proof"),
        ({"k": 2, "threads": 0}, ValueError, "threads"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        gm.k_best(np.eye(2), **arguments)


@pytest.mark.parametrize("limit", [None, 1])
def test_all_assignments_are_fewer_than_asked_for(limit):
    ranked = gm.k_best(np.eye(3), 10**15, cost_limit=limit, proof=True)
    assert len(ranked) == (6 if limit is None else 34)
    assert ranked.is_complete
    gm.verify(np.eye(3), ranked)


def test_results_say_what_they_are():
    ranked = gm.k_best(np.eye(3), 2)
    assert repr(ranked) == "RankedAssignments(2 assignments, objectives 0.0 to 0.0, proven)"
    assert ranked[-1].size == 3
    assert len(ranked[:1]) == 1
    with pytest.raises(IndexError):
        ranked[2]
    assert "2 problems" in repr(gm.k_best(np.zeros((2, 1, 1)), 1))
