"""Transport of costs that are on a device: solved there, dense costs never copied to the host."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.dispatch import backends, registry
from tests.assignment_cases import CASES
from tests.test_transport import check
from tests.transport_problems import problem

cp = pytest.importorskip("cupy")

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def solved_there(monkeypatch):
    """Small problems would be solved on the host."""
    for name in ("TRANSPORT_PAIRS", "TRANSPORT_NARROW_PAIRS", "TRANSPORT_ENTRIES"):
        monkeypatch.setattr(backends, name, -1)


def on_device(source):
    if isinstance(source, tuple):
        return (*map(cp.asarray, source[:3]), source[3])
    return cp.asarray(source)


@pytest.mark.emulated
@pytest.mark.parametrize("first", range(0, 80, 20))
def test_random_problems(first):
    for seed in range(first, first + 20):
        p = problem(seed)
        t = check(p._replace(source=on_device(p.source)))
        if t is None:
            continue
        assert t.stats["backend"] == "cuda"
        arrays = t.row_ind, t.col_ind, t.flow, t.row_dual, t.col_dual, t.row_flow, t.pair_costs
        assert {type(array) for array in arrays} == {cp.ndarray}


@pytest.mark.emulated
@pytest.mark.parametrize("wish", [{}, {"cardinality": "any", "maximize": True}, {"cost_limit": 5}])
@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_dense_costs_stay_on_the_device(monkeypatch, wish, dtype):
    def to_host(costs):
        assert not costs.on_device
        return costs

    rng = np.random.default_rng(3)
    for shape in ((40, 5), (5, 12)):
        matrix = rng.integers(-9, 20, shape).astype(dtype)
        supply, demand = rng.integers(0, 9, shape[0]), rng.integers(0, 9, shape[1])
        with monkeypatch.context() as patch:
            patch.setattr(gm.DenseCosts, "to_host", to_host)
            t = gm.transport(cp.asarray(matrix), cp.asarray(supply), demand, **wish)
        host = gm.transport(matrix, supply, demand, backend="cpu", **wish)
        limit = wish.get("cost_limit", 0)
        assert t.objective - limit * t.total == host.objective - limit * host.total
        gm.verify(cp.asarray(matrix), t, supply=supply, demand=demand)


@pytest.mark.emulated
def test_costs_of_the_host_are_solved_on_the_device():
    C = np.random.default_rng(0).integers(0, 9, (30, 4))
    t = gm.transport(C, (1, 3), 20, backend="cuda")
    assert t.stats["backend"] == "cuda"
    assert isinstance(t.flow, np.ndarray)
    assert t.objective == gm.transport(C, (1, 3), 20, backend="cpu").objective
    again = gm.transport(cp.asarray(C), 3, 25, initial=gm.transport(C, 3, 25, backend="cuda"))
    assert again.objective == gm.transport(C, 3, 25, backend="cpu").objective
    back = gm.transport(cp.asarray(C), 3, 25, backend="cpu")
    assert back.stats["backend"] == "cpu"
    assert isinstance(back.flow, cp.ndarray)


@pytest.mark.emulated
@pytest.mark.parametrize("limits", [(0, 40, 0), (60, 0, 0), (0, 0, 0), (60, 40, 24)])
def test_small_problems_of_a_device_are_solved_where_that_is_sooner(monkeypatch, limits):
    """By pairs, those of narrow matrices, and entries, each up to its limit."""
    names = "TRANSPORT_PAIRS", "TRANSPORT_NARROW_PAIRS", "TRANSPORT_ENTRIES"
    for name, most in zip(names, limits):
        monkeypatch.setattr(backends, name, most)
    rng = np.random.default_rng(1)
    wide, narrow = rng.integers(1, 99, (6, 10)), rng.integers(1, 99, (20, 2))
    sparse = np.arange(0, 25, 4), np.tile([0, 1, 2, 3], 6), rng.integers(1, 99, 24), (6, 4)
    for source, count, most in (
        (wide, 60, limits[0]),
        (narrow, 40, limits[1]),
        (sparse, 24, limits[2]),
    ):
        t = gm.transport(on_device(source), 1, 20)
        assert t.stats["backend"] == ("cpu" if count <= most else "cuda")
        assert isinstance(t.flow, cp.ndarray)
        assert isinstance(t.row_dual, cp.ndarray)
        assert t.objective == gm.transport(source, 1, 20).objective
        assert gm.transport(on_device(source), 1, 20, backend="cuda").stats["backend"] == "cuda"


@pytest.mark.emulated
def test_what_is_infeasible_is_named_on_the_device():
    C = np.array([[1.0, np.inf], [2.0, np.inf], [3.0, 1.0]])
    with pytest.raises(gm.InfeasibleError) as caught:
        gm.transport(cp.asarray(C), [3, 2, 1], [4, 4])
    assert (cp.asnumpy(caught.value.rows).tolist(), caught.value.needed) == ([0, 1], 5)
    most = gm.transport(cp.asarray(C), [3, 2, 1], [4, 4], cardinality="maximum")
    assert most.total == 5
    gm.verify(cp.asarray(C), most)


@pytest.mark.emulated
def test_batches_are_solved_on_the_device():
    rng = np.random.default_rng(0)
    C = rng.integers(-9, 20, (3, 8, 5))
    supply, demand = rng.integers(0, 9, (3, 8)), rng.integers(5, 20, (3, 5))
    for given in (cp.asarray(C), [cp.asarray(part) for part in C]):
        t = gm.transport(given, supply, demand)
        gm.verify(given, t, supply=supply, demand=demand)
        assert [one.stats["backend"] for one in t] == ["cuda"] * 3
        assert all(isinstance(one.flow, cp.ndarray) for one in t)
        assert [one.objective for one in t] == [
            one.objective for one in gm.transport(C, supply, demand)
        ]


@pytest.mark.emulated
@pytest.mark.parametrize("backend", ["auto", "cuda", "cpu"])
def test_capacities_of_pairs_are_kept_on_the_host(backend):
    rng = np.random.default_rng(5)
    C, limits = rng.integers(-9, 20, (12, 5)), rng.integers(1, 4, (12, 5))
    host = gm.transport(C, 5, 20, pair_capacity=limits)
    for capacity in (limits, cp.asarray(limits)):
        t = gm.transport(cp.asarray(C), 5, 20, pair_capacity=capacity, backend=backend)
        assert (t.objective, t.stats["backend"]) == (host.objective, "cpu")
        arrays = t.row_ind, t.flow, t.row_dual, t.col_flow, t.pair_costs, t.pair_capacity
        assert {type(array) for array in arrays} == {cp.ndarray}
        gm.verify(cp.asarray(C), t, supply=5, demand=20, pair_capacity=capacity)
    again = gm.transport(cp.asarray(C), cp.full(12, 5), 20, pair_capacity=limits, initial=t)
    assert again.objective == host.objective
    most = gm.transport(cp.asarray(C), 30, 20, pair_capacity=3, cardinality="maximum")
    assert most.total == gm.transport(C, 30, 20, pair_capacity=3, cardinality="maximum").total
    with pytest.raises(gm.InfeasibleError):
        gm.transport(cp.asarray(C), 30, 200, pair_capacity=3, backend=backend)
    many = gm.transport(cp.asarray(np.stack([C, C])), 5, 20, pair_capacity=limits)
    assert many.objective.tolist() == [host.objective] * 2


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ones_are_an_assignment(case):
    """A transport of ones on the device costs what `assign` finds on the host, to the last unit."""
    matrix = case.costs
    a = gm.assign(matrix, maximize=case.maximize, backend="cpu")
    t = gm.transport(cp.asarray(matrix), 1, 1, maximize=case.maximize, backend="cuda")
    assert t.proven
    assert t.stats["backend"] == "cuda"
    if matrix.dtype.kind != "f":
        assert t.objective == a.objective
    assert t.objective == pytest.approx(a.objective, rel=1e-14)


@pytest.mark.emulated
def test_capacities_of_entries_on_a_device():
    indptr, indices = np.array([0, 2, 3, 5]), np.array([1, 0, 1, 0, 1])
    costs, limits = np.array([2.0, 1, 3, 4, 1]), np.array([1, 2, 3, 1, 2])
    source = (*map(cp.asarray, (indptr, indices, costs)), (3, 2))
    t = gm.transport(source, [2, 2, 2], [3, 5], pair_capacity=cp.asarray(limits))
    host = gm.transport((indptr, indices, costs, (3, 2)), [2, 2, 2], [3, 5], pair_capacity=limits)
    assert t.objective == host.objective
    assert isinstance(t.flow, cp.ndarray)
    gm.verify(source, t, supply=[2, 2, 2], demand=[3, 5], pair_capacity=limits)


@pytest.mark.emulated
def test_a_run_can_be_stopped():
    C = cp.asarray(np.random.default_rng(0).random((300, 4)))
    t = gm.transport(C, 1, 80, time_limit=0)
    assert not t.proven


def test_tensors_of_a_device():
    torch = pytest.importorskip("torch")
    C = torch.rand(50, 4, device="cuda", dtype=torch.float64, requires_grad=True)
    supply = torch.ones(50, device="cuda", dtype=torch.float64, requires_grad=True)
    t = gm.transport(C, supply, torch.full((4,), 20.0))
    assert t.flow.is_cuda
    assert t.proven
    t.objective.backward()
    assert float((C.grad * C).sum()) == pytest.approx(float(t.objective.detach()))
    assert bool((supply.grad == t.row_dual).all())


def test_the_table_has_both_homes():
    homes = registry.table("transport")["engine"].homes
    assert [*homes] == ["cpu", "cuda"]
    assert homes["cuda"].fallback == homes["cpu"].function
