"""Gradients of the objective to points and to costs that are torch tensors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.interop.tensors import is_tensor

torch = pytest.importorskip("torch")

METRICS = ["sqeuclidean", "euclidean", "cityblock", "chebyshev", "cosine"]
WISHES = {
    "full": {},
    "maximize": {"maximize": True},
    "limit": {"cost_limit": 1.2},
    "bottleneck": {"objective": "bottleneck"},
    "least best": {"objective": "bottleneck", "maximize": True},
}


def drawn(*shapes, scale=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    return [
        (torch.randn(shape, generator=generator, dtype=torch.float64) * scale)
        .to(dtype)
        .requires_grad_()
        for shape in shapes
    ]


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("metric", METRICS)
def test_gradients_are_those_of_differences(metric, wish):
    def objective(X, Y, r, s):
        costs = gm.PointCosts(X, Y, metric, row_offset=r, col_offset=s)
        a = gm.assign(costs, backend="cpu", **WISHES[wish])
        return torch.as_tensor(a.objective)

    assert torch.autograd.gradcheck(objective, drawn((5, 3), (6, 3), 5, 6), atol=1e-4)


@pytest.mark.parametrize("metric", METRICS)
def test_the_objective_keeps_its_value(metric):
    X, Y = drawn((9, 2), (9, 2), dtype=torch.float32)
    costs = gm.PointCosts(X, Y, metric)
    a = gm.assign(costs, backend="cpu")
    expected = gm.assign(gm.PointCosts(X.detach().numpy(), Y.detach().numpy(), metric))
    assert a.objective.dtype == torch.float64
    assert a.objective.item() == expected.objective
    a.objective.backward()
    assert X.grad.dtype == torch.float32
    assert X.grad.abs().sum() > 0
    assert gm.verify(costs, a).objective == expected.objective


@pytest.mark.parametrize("metric", METRICS)
def test_sub_gradients_where_distances_are_not_smooth(metric):
    (X,) = drawn((4, 3))
    costs = gm.PointCosts(X, X.detach().clone(), metric)
    gm.assign(costs, backend="cpu").objective.backward()
    assert (X.grad.abs() < 1e-15).all()


def test_coordinates_that_differ_equally_share_a_sub_gradient():
    X = torch.tensor([[1.0, -1.0, 0.5]], requires_grad=True)
    gm.assign(gm.PointCosts(X, torch.zeros(1, 3), "chebyshev"), backend="cpu").objective.backward()
    assert X.grad.tolist() == [[0.5, -0.5, 0.0]]


@pytest.mark.parametrize("scale", [1e150, 1e-150])
@pytest.mark.parametrize("metric", METRICS[1:])
def test_gradients_of_large_and_small_points(metric, scale):
    sides = drawn((5, 3), (5, 3)), drawn((5, 3), (5, 3), scale=scale)
    for X, Y in sides:
        gm.assign(gm.PointCosts(X, Y, metric), backend="cpu").objective.backward()
    factor = 1 / scale if metric == "cosine" else 1.0
    torch.testing.assert_close(sides[0][0].grad * factor, sides[1][0].grad, atol=0, rtol=1e-9)


def test_one_side_is_enough():
    (Y,) = drawn((4, 2))
    X = np.random.default_rng(2).normal(size=(3, 2))
    a = gm.assign(gm.PointCosts(X, Y), backend="cpu")
    a.objective.backward()
    expected = torch.zeros(4, 2, dtype=torch.float64)
    expected[a.col_ind] = 2 * (Y.detach()[a.col_ind] - torch.from_numpy(X))
    torch.testing.assert_close(Y.grad, expected)


def test_no_gradient_unless_asked_for():
    X, Y = (side.detach() for side in drawn((3, 2), (3, 2)))
    assert isinstance(gm.assign(gm.PointCosts(X, Y), backend="cpu").objective, float)
    with torch.no_grad():
        costs = gm.PointCosts(X.requires_grad_(), Y)
        assert isinstance(gm.assign(costs, backend="cpu").objective, float)


def test_points_may_move_after_the_call():
    X, Y = drawn((6, 2), (6, 2))
    costs = gm.PointCosts(X, Y)
    a = gm.assign(costs, backend="cpu")
    expected = 2 * (X.detach() - Y.detach()[a.row_to_col])
    (gradient,) = torch.autograd.grad(a.objective, X)
    torch.testing.assert_close(gradient, expected)
    assert pickle.loads(pickle.dumps(a)).objective == a.objective.item()


def test_second_derivatives():
    X, Y = drawn((4, 2), (4, 2))
    a = gm.assign(gm.PointCosts(X, Y), backend="cpu")
    (gradient,) = torch.autograd.grad(a.objective, X, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), X)
    torch.testing.assert_close(second, torch.full_like(X, 2.0))


def test_a_batch_has_a_gradient_for_each_problem():
    first, second, still = *drawn((4, 2), (5, 2)), torch.ones(3, 2)
    problems = [gm.PointCosts(X, X.detach() + 1) for X in (first, second, still)]
    batch = gm.assign(problems, backend="cpu")
    batch.objective.sum().backward(retain_graph=True)
    alone = [gm.assign(problem, backend="cpu").objective for problem in problems]
    assert batch.objective.tolist() == pytest.approx(
        [one.item() if is_tensor(one) else one for one in alone]
    )
    torch.testing.assert_close(first.grad, torch.autograd.grad(alone[0], first)[0])
    before = second.grad.clone()
    batch[1].objective.backward()
    torch.testing.assert_close(second.grad, 2 * before)
    assert not torch.as_tensor(batch[2].objective).requires_grad


# -- costs -----------------------------------------------------------------------------------------

OF_COSTS = {
    **WISHES,
    "any": {"cardinality": "any", "maximize": True},
    "maximum": {"cardinality": "maximum"},
    "lexicographic": {"objective": "lexicographic"},
}


@pytest.mark.parametrize("shape", [(5, 5), (4, 6), (6, 4)], ids=str)
@pytest.mark.parametrize("wish", OF_COSTS)
def test_gradients_to_a_matrix_are_those_of_differences(wish, shape):
    how = {**OF_COSTS[wish], **({"cost_limit": 0.2} if wish == "limit" else {})}

    def objective(C):
        return torch.as_tensor(gm.assign(C, **how).objective)

    assert torch.autograd.gradcheck(objective, drawn(shape), atol=1e-4)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("wish", ["full", "maximize", "bottleneck"])
def test_gradients_to_stored_costs_are_those_of_differences(wish, layout):
    cols = torch.tensor([0, 1, 0, 1, 2, 1, 2])
    rows = torch.tensor([0, 0, 1, 1, 1, 2, 2])
    order = torch.argsort(cols, stable=True)

    def objective(values):
        if layout == "csr":
            C = torch.sparse_csr_tensor(torch.tensor([0, 2, 5, 7]), cols, values, (3, 3))
        elif layout == "csc":
            offsets = torch.tensor([0, 2, 5, 7])
            C = torch.sparse_csc_tensor(offsets, rows[order], values[order], (3, 3))
        else:
            C = torch.sparse_coo_tensor(torch.stack([rows, cols]), values, (3, 3))
        return gm.assign(C, **OF_COSTS[wish]).objective

    (values,) = drawn(7)
    assert objective(values).item() == pytest.approx(objective(values.detach()))
    assert torch.autograd.gradcheck(objective, values, atol=1e-4)


@pytest.mark.parametrize(
    "shape", [(4, 5, 5), (3, 3, 5), (3, 5, 3), (0, 2, 2), (2, 0, 3), (2, 3, 0)]
)
@pytest.mark.parametrize("wish", ["full", "maximize", "any", "limit"])
def test_gradients_to_an_array_of_problems_are_those_of_differences(wish, shape):
    def objective(C):
        return gm.assign(C, **OF_COSTS[wish]).objective

    (C,) = drawn(shape)
    assert torch.autograd.gradcheck(objective, C, atol=1e-4)
    batch, alone = gm.assign(C, **OF_COSTS[wish]), gm.assign(C.detach(), **OF_COSTS[wish])
    assert batch.objective.tolist() == alone.objective.tolist()
    if shape[0]:
        batch[1].objective.backward()
        assert C.grad[1].count_nonzero() == alone[1].size
        assert C.grad.count_nonzero() == alone[1].size


def test_a_list_of_matrices_has_a_gradient_for_each_that_asks():
    first, still = drawn((3, 4), dtype=torch.float32)[0], torch.ones(2, 2)
    batch = gm.assign([first, still, first.T])
    assert not torch.as_tensor(batch[1].objective).requires_grad
    batch.objective.sum().backward()
    assert first.grad.dtype == torch.float32
    assert first.grad.sum() == 6
    assert gm.verify([first, still, first.T], batch)


def test_a_problem_that_is_marked_has_no_gradient():
    (C,) = drawn((2, 3, 3))
    with torch.no_grad():
        C[0, 0, 0] = torch.nan
    gm.assign(C, on_error="mark").objective.nansum().backward()
    assert C.grad[0].count_nonzero() == 0
    assert C.grad[1].count_nonzero() == 3


def test_costs_that_ask_for_nothing_have_no_gradient():
    (C,) = drawn((3, 3))
    assert isinstance(gm.assign(C.detach()).objective, float)
    with torch.no_grad():
        assert isinstance(gm.assign(C).objective, float)
    assert gm.maximum_matching(C).size == 3  # which has no objective
    a = gm.assign(C)
    assert gm.verify(C, a).objective == a.objective.item()
    assert pickle.loads(pickle.dumps(a)).row_to_col.tolist() == a.row_to_col.tolist()
