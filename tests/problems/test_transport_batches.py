"""Batches of transport problems: the same answers as one by one, whatever becomes of some."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.certificates import CertificateError
from tests.transport_problems import problem


@pytest.mark.parametrize("threads", [1, 3])
def test_a_list_is_solved_as_one_by_one(threads):
    wish = {"maximize": False, "cardinality": "full", "cost_limit": None}
    problems = [problem(seed) for seed in range(40)]
    costs = [p.source if not isinstance(p.source, tuple) else csr(p) for p in problems]
    supply, demand = ([p.masses[side] for p in problems] for side in (0, 1))
    supply = [mass if isinstance(mass, tuple) else np.asarray(mass) for mass in supply]
    costs = [abs(c) for c in costs]
    t = gm.transport(costs, supply, demand, on_error="mark", threads=threads, **wish)
    assert len(t) == 40
    for k, one in enumerate(t):
        if k in t.errors:
            with pytest.raises(gm.InfeasibleError) as caught:
                gm.transport(costs[k], supply[k], demand[k], threads=1, **wish)
            assert str(t.errors[k]) == f"problem {k}: {caught.value}"
            assert t.errors[k].problem == k
            assert pickle.loads(pickle.dumps(t.errors[k])).problem == k
            assert (one.size, t.proven[k], t.gap[k], one.shape) == (
                *(0, False, math.inf),
                costs[k].shape,
            )
            continue
        alone = gm.transport(costs[k], supply[k], demand[k], threads=1, **wish)
        assert one.objective == alone.objective == t.objective[k]
        assert one.proven
        assert t.row_dual[k, : one.shape[0]].tolist() == one.row_dual.tolist()
        assert t.col_flow[k, : one.shape[1]].tolist() == one.col_flow.tolist()
    assert t.errors
    solved = [k for k in range(40) if k not in t.errors]
    again = gm.transport(
        [costs[k] for k in solved], [supply[k] for k in solved], [demand[k] for k in solved]
    )
    certificate = gm.verify(
        [costs[k] for k in solved],
        again,
        supply=[supply[k] for k in solved],
        demand=[demand[k] for k in solved],
    )
    assert certificate.gap <= 1e-9
    with pytest.raises(gm.InfeasibleError, match=f"problem {min(t.errors)}: "):
        gm.transport(costs, supply, demand, threads=threads, **wish)


def csr(p):
    indptr, indices, data, shape = p.source
    return csr_array((data, indices, indptr), shape=shape)


def test_an_array_takes_masses_of_all_problems_or_of_each():
    random = np.random.default_rng(0)
    C = random.integers(0, 50, (6, 4, 5))
    own, shared = random.integers(1, 6, (6, 4)), np.array([9, 9, 9, 9, 9])
    t = gm.transport(C, own, shared)
    assert t.objective.tolist() == [gm.transport(c, s, shared).objective for c, s in zip(C, own)]
    assert (t.objective.dtype, t.total.tolist()) == (np.int64, own.sum(1).tolist())
    assert (t.row_flow == own).all()
    assert (t.shape, t.sizes.tolist()) == ((4, 5), [[4, 5]] * 6)
    gm.verify(C, t, supply=own, demand=shared)
    each = np.arange(1, 7)[:, None]
    t = gm.transport(C, (0, each), (each // 3, 9), sizes=(3, 5), cardinality="any", maximize=True)
    assert (t.row_flow.shape, t[0].shape) == ((6, 4), (3, 5))
    gm.verify(C, t, supply=(0, each), demand=(each // 3, 9), sizes=(3, 5))
    with pytest.raises(CertificateError, match="problem 0: "):
        gm.verify(C, t, supply=(0, each + 1), demand=(each // 3, 9), sizes=(3, 5))
    assert repr(t) == "BatchTransport(6 problems, 6 proven optimal)"
    assert pickle.loads(pickle.dumps(t)).objective.tolist() == t.objective.tolist()
    with pytest.raises(AttributeError, match=r"t\[k\].flow"):
        _ = t.flow
    with pytest.raises(IndexError):
        _ = t[6]
    none = gm.transport(np.zeros((0, 2, 3)), 1, 1)
    assert (len(none), none.objective.shape, none.row_dual.shape) == (0, (0,), (0, 2))


def test_wrong_arguments_of_a_batch():
    C = np.ones((2, 3, 4), np.int64)
    for given, kind, text in (
        (
            {"supply": np.ones((3, 3))},
            ValueError,
            r"supply of a batch must have the shape \(2, 3\)",
        ),
        ({"supply": [[1, 1, 1]]}, ValueError, "supply must have 2 parts"),
        ({"supply": [[1, 1, 1], [1, 1, -1]]}, ValueError, r"problem 1: supply\[2\] is -1"),
        ({"initial": (0, 0)}, ValueError, "a batch takes no initial"),
        ({"on_error": "skip"}, ValueError, "on_error must be"),
        ({"backend": "gpu"}, ValueError, "backend must be"),
    ):
        with pytest.raises(kind, match=text):
            gm.transport(C, **{"supply": 1, "demand": 2, **given})
    marked = gm.transport(C, [[1, 1, 1], [1, 1, -1]], 2, on_error="mark")
    assert (marked.proven.tolist(), marked.errors.keys()) == ([True, False], {1})


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_can_be_stopped(threads):
    C = np.random.default_rng(0).integers(0, 1000, (20, 40, 40))
    t = gm.transport(C, 5, 5, threads=threads, time_limit=0)
    assert not t.proven.any()
    gm.verify(C, t, optimal=False, supply=5, demand=5)

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.transport(C, 5, 5, threads=threads, callback=interrupt)
    assert len(caught.value.result) == 20


def test_tensors_of_a_batch_have_gradients():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(5)
    given = random.random((3, 3, 4)), random.random((3, 3)), random.random((3, 4)) + 1
    costs, supply, demand = (torch.tensor(part, requires_grad=True) for part in given)
    t = gm.transport(costs, supply, demand)
    assert isinstance(t.row_dual, torch.Tensor)
    t.objective.sum().backward()
    want = gm.transport(*given)
    np.testing.assert_allclose(t.objective.detach(), want.objective)
    np.testing.assert_allclose(costs.grad[1], want[1].to_matrix().toarray())
    np.testing.assert_allclose(supply.grad, want.row_dual)
    np.testing.assert_allclose(t[2].flow, want[2].flow)
    gm.verify(costs, t, supply=supply, demand=demand)


def test_capacities_of_a_batch_are_one_for_each_pair_of_it():
    C = np.ones((2, 3, 4), np.int64)
    for shape in ((1, 3, 4), (3, 3, 4), (2, 4, 4)):
        with pytest.raises(ValueError, match=r"pair_capacity of a batch must have the shape \(2, "):
            gm.transport(C, 1, 1, pair_capacity=np.ones(shape), on_error="mark")


def test_a_problem_without_a_flow_names_the_capacities():
    C = np.ones((2, 3, 4))
    C[1, 0] = np.inf
    for capacity in (2, 0.5, np.full((2, 3, 4), 2)):
        t = gm.transport(C, 1, 1, pair_capacity=capacity, on_error="mark")
        assert (t.proven.tolist(), t.errors.keys()) == ([True, False], {1})
        gm.verify(C, t, optimal=False, supply=1, demand=1, pair_capacity=capacity)


@pytest.mark.parametrize("on_error", ["raise", "mark"])
@pytest.mark.parametrize("solve", [gm.assign, lambda C, **how: gm.transport(C, 1, 1, **how)])
def test_an_error_of_the_callback_is_no_problems(solve, on_error):
    C = [csr_array(np.eye(3))] * 2
    calls = iter(range(100))

    def fails(progress):
        if next(calls) == 2:  # those before are between problems
            raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        solve(C, threads=1, callback=fails, on_error=on_error, cardinality="any")


@pytest.mark.parametrize("solve", [gm.assign, lambda C, **how: gm.transport(C, 1, 1, **how)])
def test_a_wrong_algorithm_is_an_error_of_the_call(solve):
    with pytest.raises(ValueError, match="algorithm must be") as caught:
        solve(np.zeros((2, 3, 3)), algorithm="engin", on_error="mark")
    assert "problem" not in str(caught.value)
