"""The front door to transport: against HiGHS, against `assign`, and wrong arguments."""

from __future__ import annotations

import pickle
import signal

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.certificates import CertificateError, check_violator
from gpumatch.dispatch import registry
from gpumatch.numeric.arrays import array_of
from tests import transport_reference
from tests.assignment_cases import CASES
from tests.transport_problems import problem

C = np.array([[4, 1, 3], [2, 0, 5]])


def check(p, **how):
    """Solve a problem and compare it with HiGHS; the result, or None if there is none."""
    least = p.least()
    supply, demand = p.masses
    if least is None:
        with pytest.raises(gm.InfeasibleError) as caught:
            gm.transport(p.source, supply, demand, threads=1, **p.wish, **how)
        check_violator(p.source, supply, demand, caught.value, **p.wish)
        return None
    t = gm.transport(p.source, supply, demand, threads=1, **p.wish, **how)
    flow = np.zeros(p.matrix.shape)
    rows, cols, units = (array_of(np, part) for part in t)
    flow[rows, cols] = units / p.scale
    cost = (flow * p.matrix).sum()
    assert t.objective / p.scale == pytest.approx(cost, abs=1e-9)
    limit = p.wish["cost_limit"] or 0
    value = p.sign * (cost - (limit * flow.sum() if p.is_free else 0))
    assert value == pytest.approx(least[0], abs=1e-7)
    if not p.is_free:
        assert flow.sum() == pytest.approx(least[1])
    assert t.proven
    if p.matrix.dtype.kind == "i" and not isinstance(p.wish["cost_limit"], float):
        assert t.gap == 0
        assert type(t.objective) is (int if t.unit == 1 and t.dtype.kind == "i" else float)
    gm.verify(p.source, t, supply=supply, demand=demand)
    return t


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_random_problems(first):
    assert any(check(problem(seed)) is not None for seed in range(first, first + 20))


@pytest.mark.long
def test_many_random_problems():
    """All to 2,500 passed."""
    for seed in range(80, 900):
        check(problem(seed))


def test_a_reference_solves_the_same_problems(monkeypatch):
    """So the door is right even if the engine is not."""
    home = registry.Home("tests.transport_reference:solve")
    (engine,) = gm.algorithms("transport")
    monkeypatch.setitem(engine.homes, "cpu", home)
    assert registry.load(home.function) is transport_reference.solve
    for seed in range(100, 120):
        check(problem(seed))


# -- the result ------------------------------------------------------------------------------------


def test_what_a_result_has():
    t = gm.transport(C, [2, 3], [1, 2, 4])
    rows, cols, flow = t
    assert t.objective == 8
    assert rows.dtype == cols.dtype == flow.dtype == np.int64
    assert t.objective == int((C[rows, cols] * flow).sum())
    assert type(t.objective) is int
    assert t.pair_costs.tolist() == C[rows, cols].tolist()
    assert (t.row_flow.tolist(), t.total, t.shape) == ([2, 3], 5, (2, 3))
    assert (t.col_flow <= [1, 2, 4]).all()
    dense = t.to_matrix().toarray()
    assert (dense[rows, cols] == flow).all()
    assert dense.sum() == 5
    assert t.to_matrix(t.pair_costs).toarray()[rows, cols].tolist() == t.pair_costs.tolist()
    with pytest.raises(ValueError, match="one for each of the"):
        t.to_matrix([1.0])
    assert t.edges().tolist() == [list(pair) for pair in zip(rows, cols)]
    assert t.to_dict() == {(i, j): f for i, j, f in zip(*map(np.ndarray.tolist, t))}
    assert "optimal" in repr(t)
    assert t.stats["algorithm"] == "engine"
    assert t.stats["backend"] == "cpu"
    assert {"seconds", "trace", "phases"} <= t.stats.keys()
    with pytest.raises(ValueError, match="vertex cover"):
        t.vertex_cover()
    again = pickle.loads(pickle.dumps(t))
    assert again.to_dict() == t.to_dict()


def test_masses_of_floats_come_back_in_their_dtype():
    random = np.random.default_rng(0)
    supply, demand = random.random(5, np.float32), random.random(7, np.float32)
    demand *= supply.sum() / demand.sum()
    t = gm.transport(random.random((5, 7)), supply, demand)
    assert t.flow.dtype == np.float32
    assert t.flow_units.dtype == np.int64
    np.testing.assert_allclose(t.flow_units * t.unit, t.flow, rtol=1e-6)
    np.testing.assert_allclose(t.row_flow, supply, rtol=1e-5)
    assert t.proven


def test_the_largest_flow_has_a_cover():
    matrix = csr_array(np.array([[1, 2, 0], [0, 3, 0], [0, 4, 5]]))
    t = gm.transport(matrix, [2, 3, 1], [1, 2, 9], cardinality="maximum")
    rows, cols = t.vertex_cover()
    assert t.total == 4
    assert [2, 3, 1] @ np.isin(range(3), rows) + [1, 2, 9] @ np.isin(range(3), cols) == 4
    with pytest.raises(gm.InfeasibleError) as caught:
        gm.transport(matrix, [2, 3, 1], [1, 2, 9])
    exc = caught.value
    assert exc.needed > exc.available
    assert pickle.loads(pickle.dumps(exc)).needed == exc.needed
    check_violator(matrix, [2, 3, 1], [1, 2, 9], exc)
    check_violator(matrix.astype(np.uint16), [2, 3, 1], [1, 2, 9], exc, maximize=True)
    exc.cols = exc.cols[:0]
    with pytest.raises(CertificateError, match="leads out"):
        check_violator(matrix, [2, 3, 1], [1, 2, 9], exc)
    exc.rows, exc.cols = np.array([0]), np.array([0, 1])
    with pytest.raises(CertificateError, match="are available"):
        check_violator(matrix, [2, 3, 1], [1, 2, 9], exc)


# -- beside assign ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
@pytest.mark.parametrize("limit", [None, 4])
def test_ones_are_an_assignment(cardinality, limit):
    random = np.random.default_rng(3)
    for costs in (
        random.integers(-9, 9, (7, 9)),
        random.normal(size=(9, 7)),
        csr_array(random.integers(1, 9, (8, 8)) * (random.random((8, 8)) < 0.3)),
    ):
        for maximize in (False, True):
            how = {"cardinality": cardinality, "cost_limit": limit, "maximize": maximize}
            try:
                a = gm.assign(costs, **how)
            except gm.InfeasibleError:
                with pytest.raises(gm.InfeasibleError):
                    gm.transport(costs, 1, 1, **how)
                continue
            t = gm.transport(costs, 1, 1, **how)
            base = limit if limit is not None and cardinality != "maximum" else 0
            assert t.objective - base * t.size == a.objective - base * a.size
            assert t.proven
            assert t.flow.tolist() == [1] * t.size
            if limit is None:
                assert t.size == a.size


def check_ones(case):
    """Whether a case is solved as by `assign`, with the same total to the last digit."""
    a = gm.assign(case.costs, maximize=case.maximize, backend="cpu")
    t = gm.transport(case.costs, 1, 1, maximize=case.maximize)
    assert t.proven
    assert t.objective == a.objective
    assert type(t.objective) is type(a.objective)
    assert (t.flow == 1).all()
    assert t.size == min(case.shape)


@pytest.mark.parametrize("size", [1, 2, 17, 100])
def test_ones_are_an_assignment_in_each_small_case(size):
    for case in CASES:
        if min(case.shape) == size:
            check_ones(case)


@pytest.mark.long
@pytest.mark.parametrize("case", [c for c in CASES if 100 < c.shape[0] <= c.shape[1]], ids=str)
def test_ones_are_an_assignment_in_each_large_case(case):
    check_ones(case)


# -- how it is called ------------------------------------------------------------------------------


def test_bounds_of_few_columns_need_no_network_and_begin_from_the_last_duals():
    rng = np.random.default_rng(0)
    costs, sizes = rng.random((2000, 4)), (400, 600)
    costs += np.array([0, 0.1, 0.3, 0.5])
    t = gm.transport(costs, 1, sizes, backend="cpu")
    assert t.stats["marginal"] == 2000  # a network has a dummy row more
    assert (t.col_dual > 0).any()
    again = gm.transport(costs, 1, sizes, backend="cpu", initial=t)
    assert again.objective == pytest.approx(t.objective, rel=1e-12)
    assert again.stats["paths"] < t.stats["paths"] / 4
    gm.verify(costs, again, demand=sizes)


def test_initial_duals_give_the_same_objective():
    random = np.random.default_rng(1)
    costs, supply, demand = random.random((6, 8)), np.full(6, 4), np.full(8, 2)
    first = gm.transport(costs, supply, demand)
    for initial in (first, (first.row_dual, first.col_dual), (np.full(6, 1e9), np.zeros(8))):
        again = gm.transport(costs, supply, demand, initial=initial)
        assert again.proven
        assert again.objective == pytest.approx(first.objective, rel=1e-12)
    whole = (costs * 100).astype(np.int64)
    want = gm.transport(whole, supply, demand).objective
    assert gm.transport(whole, supply, demand, initial=first).objective == want
    for wrong, kind, text in (
        (3, TypeError, "initial must be a Transport"),
        ((np.zeros(2), np.zeros(8)), ValueError, r"initial\[0\] must be 6 numbers"),
        ((np.zeros(6), np.full(8, np.nan)), ValueError, r"initial\[1\] must be finite"),
    ):
        with pytest.raises(kind, match=text):
            gm.transport(costs, supply, demand, initial=wrong)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    ("how", "is_turned"),
    [({}, False), ({"cost_limit": 600}, False), ({"cardinality": "any"}, True)],
    ids=["full", "limit", "any"],
)
def test_initial_duals_help_with_bounds(how, is_turned, maximize):
    """In three problems together: one of them may be easy without duals, too."""
    how = {**how, "maximize": maximize, "threads": 1}
    pivots = np.zeros(2, np.int64)
    for seed in (1, 2, 3):
        random = np.random.default_rng(seed)
        costs, supply = random.integers(0, 1000, (300, 260)), random.integers(1, 9, 300)
        mean = supply.sum() // 260
        masses = (supply // 2, supply), (mean // 2, 2 * mean)
        if is_turned:
            costs, masses = costs.T, masses[::-1]
        first = gm.transport(costs, *masses, **how)
        again = gm.transport(costs, *masses, initial=first, **how)
        assert again.objective == first.objective
        assert again.proven
        pivots += first.stats["pivots"], again.stats["pivots"]
    assert pivots[1] < 0.9 * pivots[0]  # a pivot of a good start takes less time, too


def test_initial_duals_of_either_side_of_a_cut():
    """The largest flow is that of two problems, one of which is turned."""
    random = np.random.default_rng(4)
    matrix = np.where(random.random((40, 40)) < 0.08, random.integers(1, 99, (40, 40)), 0)
    how = {"supply": random.integers(0, 9, 40), "demand": random.integers(0, 9, 40)}
    first = gm.transport(csr_array(matrix), **how, cardinality="maximum", threads=1)
    again = gm.transport(csr_array(matrix), **how, cardinality="maximum", threads=1, initial=first)
    assert again.objective == first.objective
    assert again.proven
    assert len(first.vertex_cover()[0]) < 40
    assert again.stats["scans"] < first.stats["scans"]


def test_points_need_no_matrix_of_the_caller():
    random = np.random.default_rng(2)
    X, Y = random.random((5, 2)), random.random((6, 2))
    costs = gm.PointCosts(X, Y)
    t = gm.transport(costs, 6, 5)
    matrix = ((X[:, None] - Y) ** 2).sum(-1)
    want = gm.transport(matrix, 6, 5)
    assert t.proven
    assert t.objective == pytest.approx(want.objective, rel=1e-12)
    gm.verify(costs, t, supply=6, demand=5)


@pytest.mark.parametrize("how", [{}, {"pair_capacity": 1}, {"supply": (0, 2), "demand": (1, 2)}])
def test_a_matrix_of_points_that_does_not_fit_is_refused(how):
    points = np.zeros((2**20, 7))
    with pytest.raises(MemoryError, match=r"needs 8796093022208 bytes.*transport makes it"):
        gm.transport(gm.PointCosts(points, points), **{"supply": 1, "demand": 1, **how})


def test_a_run_can_be_stopped():
    random = np.random.default_rng(0)
    costs = random.integers(0, 1000, (300, 300))
    t = gm.transport(costs, 9, 9, callback=lambda progress: True)
    assert not t.proven
    assert (t.row_flow <= 9).all()
    gm.verify(costs, t, optimal=False, supply=9, demand=9)


@pytest.mark.parametrize("ticks", [0, 2])
@pytest.mark.parametrize("shape", [(300, 300), (900, 5)])
def test_an_interrupt_carries_the_flow_so_far(ticks, shape):
    calls = []

    def interrupt(progress):
        calls.append(progress)
        if len(calls) == ticks + 1:
            raise KeyboardInterrupt

    costs = np.random.default_rng(0).integers(0, 1000, shape)
    masses = shape[1], shape[0]
    with pytest.raises(KeyboardInterrupt) as caught:
        gm.transport(costs, *masses, callback=interrupt)
    t = caught.value.result
    assert len(calls) > ticks
    assert not t.proven
    gm.verify(costs, t, optimal=False, supply=masses[0], demand=masses[1])
    assert (t.row_dual[:, None] + t.col_dual <= costs).all()


def test_ctrl_c_stops_the_run_at_its_next_tick():
    seen = []

    def signalled(progress):
        seen.append(progress)
        signal.raise_signal(signal.SIGINT)

    costs = np.random.default_rng(0).integers(0, 1000, (300, 300))
    gm.transport(costs, 9, 9)  # nothing is compiled afterwards
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            gm.transport(costs, 9, 9, callback=signalled)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    assert len(seen) == 1
    assert not caught.value.result.proven
    with pytest.raises(KeyboardInterrupt) as caught:  # in place of the error
        gm.transport(csr_array(costs[:, :1] + 1), 9, 9, cardinality="any", callback=raises)
    assert isinstance(caught.value.result, gm.Transport)


def raises(progress):
    raise KeyboardInterrupt


def test_a_stopped_run_with_few_columns_brings_what_fits():
    costs = np.random.default_rng(0).random((900, 5))
    t = gm.transport(costs, 2, 360, callback=lambda progress: True)
    assert not t.proven
    assert 0 < t.total < 1800
    gm.verify(costs, t, optimal=False, supply=2, demand=360)


def test_large_numbers():
    costs = np.array([[2**40, 3], [1, 2**40]])
    t = gm.transport(costs, 10**18, 10**18)
    assert t.objective == 4 * 10**18
    t = gm.transport(costs, 10**18, 10**18, maximize=True)
    assert t.objective == 2**41 * 10**18
    gm.verify(costs, t, supply=10**18, demand=10**18)
    with pytest.raises(ValueError, match="too large"):
        gm.transport(np.array([[2**61]]), 1, 1)
    with pytest.raises(ValueError, match="adds up to"):
        gm.transport(costs, 2**62, 1)
    with pytest.raises(ValueError, match="beyond the range of float64"):
        gm.transport(np.array([[1e300]]), [2**60], 2**60)


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ({"cardinality": "most"}, ValueError, "cardinality must be one of"),
        ({"maximize": 1}, TypeError, "maximize must be"),
        ({"cost_limit": [1, 2]}, TypeError, "one number as its cost_limit"),
        ({"cost_limit": np.nan}, ValueError, "cost_limit must be"),
        ({"algorithm": "auction"}, ValueError, "algorithm must be 'auto' or one of"),
        ({"backend": "reference"}, ValueError, "transport runs on 'cpu' and 'cuda', not on"),
        ({"backend": "gpu"}, ValueError, "backend must be"),
        ({"seed": -1}, ValueError, "seed must be"),
        ({"threads": 0}, ValueError, "threads must be"),
        ({"progress": 1}, TypeError, "progress must be"),
        ({"time_limit": -1}, ValueError, "time_limit must be"),
        ({"supply": -1}, ValueError, r"supply\[0\] is -1"),
        ({"demand": [1, 2]}, ValueError, "demand must be a number, or 3 numbers"),
    ],
)
def test_wrong_arguments_are_refused(how, kind, text):
    given = {"supply": 3, "demand": 2, **how}
    with pytest.raises(kind, match=text):
        gm.transport(C, **given)


def test_wrong_costs_are_refused():
    import networkx as nx

    for costs, kind, text in (
        ([[1.0, np.nan]], ValueError, "NaN"),
        ([[1.0, -np.inf]], ValueError, "hold -inf"),
        ([1, 2], ValueError, "2 dimensions"),
        (nx.Graph(), TypeError, "no networkx graph"),
    ):
        with pytest.raises(kind, match=text):
            gm.transport(costs, 1, 1)


def test_tensors_come_back_as_tensors():
    torch = pytest.importorskip("torch")
    costs = torch.tensor(C)
    t = gm.transport(costs, torch.tensor([2, 3]), torch.tensor([1, 2, 4]))
    assert isinstance(t.flow, torch.Tensor)
    assert isinstance(t.row_dual, torch.Tensor)
    assert t.flow.tolist() == gm.transport(C, [2, 3], [1, 2, 4]).flow.tolist()


def test_the_objective_of_tensors_has_gradients():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(5)
    given = random.random((3, 4)), random.random(3), random.random(4) + 1
    costs, supply, demand = (torch.tensor(part, requires_grad=True) for part in given)
    t = gm.transport(costs, supply, demand)
    (2 * t.objective).backward()
    want = gm.transport(*given)
    assert t.objective.item() == want.objective
    np.testing.assert_allclose(costs.grad, 2 * want.to_matrix().toarray())
    np.testing.assert_allclose(supply.grad, 2 * want.row_dual)
    np.testing.assert_allclose(demand.grad, 2 * want.col_dual)
    gm.verify(costs, t)
    limited = gm.transport(costs, supply, demand, cost_limit=0.5)
    assert torch.autograd.grad(limited.objective, (costs, supply), allow_unused=True)[1] is None
    points = torch.tensor(random.random((3, 2)), requires_grad=True)
    far = torch.tensor(random.random((4, 2)))
    t = gm.transport(gm.PointCosts(points, far), given[1], given[2])
    t.objective.backward()
    plan = t.to_matrix().toarray()
    steps = (points.detach()[:, None] - far).numpy()
    np.testing.assert_allclose(points.grad, 2 * (plan[:, :, None] * steps).sum(1))


def test_duals_of_bounds_are_as_exact_as_the_costs_in_use():
    """Those of the network behind them are not: they left a gap above the allowance here."""
    random = np.random.default_rng(10)
    costs = ((random.random((60, 1, 2)) - random.random((1, 40, 2))) ** 2).sum(-1)
    supply, demand = random.random(60), random.random(40)
    bounds = (supply * 0.3, supply), (demand * 0.3, demand)
    t = gm.transport(costs, *bounds, cardinality="any", threads=1)
    assert t.proven
    gm.verify(costs, t, supply=bounds[0], demand=bounds[1])


@pytest.mark.parametrize("options", [{}, {"pair_capacity": 2}, {"cost_limit": 1e-314}])
def test_costs_whose_products_are_below_the_least_float(options):
    """Sums of costs and masses have bits below 2**-1074, so one is rounded, and one is allowed."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        C = rng.integers(-9, 10, (4, 4)) * 10.0 ** rng.uniform(-321, -305)
        supply, demand = rng.integers(0, 7, (2, 4)) * 0.1
        flow = gm.transport(C, supply, demand, cardinality="any", backend="cpu", **options)
        assert flow.proven
        gm.verify(C, flow)


def test_duals_far_above_what_is_paid_are_hardly_rounded():
    # Row 2 must ship, though row 1 would be cheaper; the last column takes nothing, and is no bar.
    far = np.inf
    costs = np.array(
        [
            [0.81510406, 1.44051349, far, -0.91855879, far],
            [far, -1.254513333219249, far, far, far],
            [far, 0.0034809118665013925, far, far, -0.7196986550650413],
        ]
    )
    masses = {"supply": ([0, 0, 1], [0, 1, 4]), "demand": [1, 1, 4, 5, 0]}
    t = gm.transport(costs, **masses, cardinality="any")
    assert (t.row_ind.tolist(), t.proven) == ([2], True)
    assert t.gap <= 2.0**-52
    gm.verify(costs, t, **masses)
