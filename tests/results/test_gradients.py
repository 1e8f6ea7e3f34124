"""Gradients of the objective to points that are torch tensors."""

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
