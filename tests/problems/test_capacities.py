"""Transport with capacities of pairs: against HiGHS, and in each form in which they are given."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

import gpumatch as gm
from gpumatch.certificates import CertificateError, check_violator
from tests.transport_problems import problem

COSTS = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])


def check(seed):
    p, random = problem(seed), np.random.default_rng(seed)
    capacity = random.integers(0, 5, p.matrix.shape).astype(float)
    capacity[random.random(capacity.shape) < 0.2] = np.inf
    given = capacity * p.scale
    if isinstance(p.source, tuple) and seed % 2:
        given = given[p.allowed]
    want = p._replace(capacity=capacity).least()
    supply, demand = p.masses
    if want is None:
        with pytest.raises(gm.InfeasibleError) as caught:
            gm.transport(p.source, supply, demand, pair_capacity=given, **p.wish)
        check_violator(p.source, supply, demand, caught.value, pair_capacity=given, **p.wish)
        return None
    t = gm.transport(p.source, supply, demand, pair_capacity=given, threads=1, **p.wish)
    flow = np.zeros(p.matrix.shape)
    flow[t.row_ind, t.col_ind] = t.flow / p.scale
    assert (flow <= capacity).all()
    cost = (flow * p.matrix).sum()
    assert t.objective / p.scale == pytest.approx(cost, abs=1e-9)
    limit = p.wish["cost_limit"] or 0
    assert p.sign * (cost - (limit * flow.sum() if p.is_free else 0)) == pytest.approx(
        want[0], abs=1e-7
    )
    if not p.is_free:
        assert flow.sum() == pytest.approx(want[1])
    assert t.proven
    gm.verify(p.source, t, supply=supply, demand=demand, pair_capacity=given)
    return t


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_random_problems(first):
    assert any(check(seed) is not None for seed in range(first, first + 20))


@pytest.mark.long
def test_many_random_problems():
    for seed in range(80, 3000):
        check(seed)


def test_without_a_bound_that_counts_it_is_plain_transport():
    for seed in range(40):
        p = problem(seed)
        try:
            want = gm.transport(p.source, *p.masses, **p.wish)
        except gm.InfeasibleError:
            with pytest.raises(gm.InfeasibleError):
                gm.transport(p.source, *p.masses, pair_capacity=np.inf, **p.wish)
            continue
        t = gm.transport(p.source, *p.masses, pair_capacity=np.inf, **p.wish)
        limit = p.wish["cost_limit"] or 0 if p.is_free else 0
        one, other = (found.objective - limit * found.total for found in (t, want))
        assert one == pytest.approx(other, abs=1e-9)


def test_each_form_of_capacities():
    full = gm.transport(COSTS, 3, 3, pair_capacity=2)
    assert full.flow.max() == 2
    assert full.pair_capacity == 2
    matrix = np.array([[0, 3, 3], [3, 1, 0], [2, 2, 2]])
    t = gm.transport(COSTS, 3, 3, pair_capacity=matrix)
    assert (t.to_matrix().toarray() <= matrix).all()
    ends = np.indices((3, 3)).reshape(2, -1)[:, ::-1]
    for sparse, order in (
        (csr_array(COSTS + 1), np.flatnonzero((COSTS + 1).ravel())),
        (coo_array(((COSTS + 1)[tuple(ends)], tuple(ends)), shape=(3, 3)), np.arange(9)[::-1]),
        (csc_array(COSTS + 1), np.arange(9).reshape(3, 3).T.ravel()),
    ):
        for capacity in (matrix, matrix.ravel()[order]):
            again = gm.transport(sparse, 3, 3, pair_capacity=capacity)
            assert again.objective == t.objective + 9
            gm.verify(sparse, again, pair_capacity=capacity)
    repeated = coo_array((np.ones(3), ([0, 0, 0], [0, 0, 1])), shape=(1, 2))
    for costs, capacity, kind, text in (
        (COSTS, [1, 2, 3], ValueError, "must be a number, or an array of shape"),
        (COSTS, -1, ValueError, "holds -1"),
        (COSTS, np.nan, ValueError, "holds nan"),
        (COSTS, True, TypeError, "must be a number"),
        (COSTS, "2", TypeError, "must be a number"),
        (csr_array(COSTS), [1, 2], ValueError, "each of 8 entries; got 2"),
        (repeated, [1, 1, 1], ValueError, "without repeated entries"),
        (csr_array(COSTS).tobsr(), np.ones(8), TypeError, "CSR, CSC or COO"),
    ):
        with pytest.raises(kind, match=text):
            gm.transport(costs, 1, 1, pair_capacity=capacity)
    with pytest.raises(ValueError, match="too large"):
        gm.transport(np.array([[2**59]]), 1, 1, pair_capacity=1)


def test_fractions_make_masses_floats():
    t = gm.transport(COSTS, 3, 3, pair_capacity=1.5)
    assert t.flow.dtype == np.float64
    assert t.flow.max() == 1.5
    assert t.total == 9
    assert t.proven
    gm.verify(COSTS, t, supply=3, demand=3, pair_capacity=1.5)


def test_a_cut_proves_the_largest_flow():
    t = gm.transport(COSTS, [5, 1, 1], 4, pair_capacity=1, cardinality="maximum")
    assert (t.total, t.row_flow.tolist()) == (5, [3, 1, 1])
    rows, cols = t.vertex_cover()
    assert (rows.tolist(), cols.tolist()) == ([1, 2], [])
    gm.verify(COSTS, t, pair_capacity=1)
    with pytest.raises(gm.InfeasibleError) as caught:
        gm.transport(COSTS, [5, 1, 1], 4, pair_capacity=1)
    assert (caught.value.rows.tolist(), caught.value.needed, caught.value.available) == ([0], 5, 3)
    check_violator(COSTS, [5, 1, 1], 4, caught.value, pair_capacity=1)
    with pytest.raises(CertificateError, match="are available"):
        check_violator(COSTS, [5, 1, 1], 4, caught.value, pair_capacity=2)


def test_stops_interrupts_and_initial_duals():
    costs = np.random.default_rng(0).integers(0, 100, (60, 50))
    how = {"supply": 5, "demand": 9, "pair_capacity": 1}
    first = gm.transport(costs, **how)
    again = gm.transport(costs, **how, initial=first)
    assert again.objective == first.objective
    assert again.proven
    stopped = gm.transport(costs, **how, callback=lambda progress: True, cardinality="maximum")
    assert not stopped.proven
    gm.verify(costs, stopped, optimal=False)

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.transport(costs, **how, callback=interrupt)
    gm.verify(costs, caught.value.result, optimal=False, pair_capacity=1)


def test_batches_points_and_tensors():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(1)
    costs, own = random.random((3, 4, 5)), random.integers(1, 4, (3, 4, 5))
    for capacity in (2, own, list(own)):
        batch = gm.transport(costs, 3, 4, pair_capacity=capacity)
        for k, t in enumerate(batch):
            alone = capacity if isinstance(capacity, int) else own[k]
            assert t.objective == gm.transport(costs[k], 3, 4, pair_capacity=alone).objective
        gm.verify(costs, batch, supply=3, demand=4, pair_capacity=capacity)
    points = gm.PointCosts(random.random((6, 2)), random.random((4, 2)))
    t = gm.transport(points, 2, 3, pair_capacity=1)
    assert t.proven
    gm.verify(points, t, supply=2, demand=3, pair_capacity=1)
    tensor = torch.tensor(costs[0], requires_grad=True)
    t = gm.transport(tensor, 3, 4, pair_capacity=torch.tensor(own[0]))
    t.objective.backward()
    np.testing.assert_array_equal(tensor.grad, t.to_matrix().toarray())


def test_pairs_pay_for_rounding_where_masses_are_large_or_none():
    how = {"supply": ([3, 0], [10**6, 0]), "demand": 10**6, "pair_capacity": 2}
    costs = np.array([[1.0, 2.0, 4.0], [9.0, 9.0, 9.0]])
    t = gm.transport(costs, **how, cardinality="any")
    assert (t.objective, t.proven) == (4, True)
    t.row_dual[:], t.col_dual[:] = (2, 9), 0
    for row, dual in ((0, np.nextafter(2.0, 3.0)), (1, np.nextafter(9.0, 10.0))):
        t.row_dual[row] = dual
        gm.verify(costs, t, **how)
    t.row_dual[0] = 2 + 1e-9
    with pytest.raises(CertificateError, match="costs less than its duals"):
        gm.verify(costs, t, **how)


def test_a_column_with_room_has_no_price_by_rounding():
    for seed in (57, 79, 165):
        random = np.random.default_rng(seed)
        costs = random.normal(size=(3, 3)) * 30
        supply, demand = (random.integers(0, 10**5, 3) for _ in range(2))
        limit = random.choice(costs.ravel())
        duals = np.zeros(3), random.normal(size=3) * 30
        t = gm.transport(
            costs, supply, demand, pair_capacity=2, cost_limit=limit, cardinality="any",
            initial=duals,
        )  # fmt: skip
        assert t.proven
        gm.verify(costs, t, supply=supply, demand=demand, pair_capacity=2)


def test_duals_far_above_what_is_paid_are_hardly_rounded():
    # Row 0 must ship, though row 1 would be far cheaper: its dual is near the cost of row 1.
    for paid in (0.0, -0.0118325871448):
        costs = np.array([[paid], [-1.4084542509], [0.53203969]])
        how = {"supply": ([12, 0, 0], [15, 3, 3]), "demand": 12, "pair_capacity": 20}
        t = gm.transport(costs, **how, cardinality="maximum")
        assert (t.row_ind.tolist(), t.proven) == ([0], True)
        assert t.gap <= 12 * 2.0**-52
        gm.verify(costs, t, **how)
