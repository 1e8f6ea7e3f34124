"""POT's `emd` and `emd2`: plans, costs, logs, warnings and gradients, without POT."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from scipy.sparse import coo_array

import gpumatch as gm
from gpumatch.interop.pot import emd, emd2

RANDOM = np.random.default_rng(0)
A, B = RANDOM.random(6), RANDOM.random(8)
A, B = A / A.sum(), B / B.sum()
M = RANDOM.random((6, 8))
DEFAULTS = {
    "numItermax": 100000, "log": False, "center_dual": True, "numThreads": 1,
    "check_marginals": True, "potentials_init": None,
}  # fmt: skip


def test_signatures_are_pots():
    for function, more in ((emd, {}), (emd2, {"processes": 1, "return_matrix": False})):
        parameters = inspect.signature(function).parameters
        assert list(parameters)[:3] == ["a", "b", "M"]
        given = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
        assert given == DEFAULTS | more


def test_plans_and_duals():
    plan, log = emd(A, B, M, log=True)
    np.testing.assert_allclose(plan.sum(1), A)
    np.testing.assert_allclose(plan.sum(0), B)
    t = gm.transport(M, A, B)
    assert log["cost"] == pytest.approx(t.objective, rel=1e-12)
    assert log["cost"] == pytest.approx((plan * M).sum(), rel=1e-12)
    assert (log["warning"], log["result_code"]) == (None, 1)
    u, v = log["u"], log["v"]
    assert (u[:, None] + v - M).max() < 1e-12
    assert A @ u == pytest.approx(B @ v)
    assert A @ u + B @ v == pytest.approx(log["cost"])
    moved = emd(A, B, M, log=True, center_dual=False)[1]
    assert A @ moved["u"] + B @ moved["v"] == pytest.approx(log["cost"])
    again = emd(A, B, M, potentials_init=(u, v), numThreads="max")
    assert (again * M).sum() == pytest.approx(log["cost"])


def test_costs_of_one_and_of_several():
    cost = emd2(A, B, M)
    assert isinstance(cost, float)
    assert cost == pytest.approx((emd(A, B, M) * M).sum())
    both = np.stack([B, B[::-1]], axis=1)
    found = emd2(A, both, M, log=True, return_matrix=True)
    assert found[0][0] == pytest.approx(cost)
    assert found[1][0] == pytest.approx(emd2(A, B[::-1], M))
    np.testing.assert_allclose(found[1][1]["G"].sum(0), B[::-1])
    assert emd2(A, both, M) == [one for one, _ in found]
    with pytest.warns(UserWarning, match="processes"):
        emd2(A, both, M, processes=2)


def test_empty_masses_are_uniform():
    plan = emd([], [], M.tolist())
    np.testing.assert_allclose(plan.sum(1), np.full(6, 1 / 6))
    assert emd2([], [], 1 - np.eye(3)) == 0


def test_types_come_back():
    plan = emd(A.astype(np.float32), B.astype(np.float32), M)
    assert plan.dtype == np.float32
    with pytest.warns(UserWarning, match="consists of integer"):
        plan = emd(np.array([2, 1]), np.array([1, 2]), M[:2, :2])
    assert plan.dtype == np.int64
    assert plan.sum(1).tolist() == [2, 1]
    sparse = emd(A, B, coo_array(M))
    assert (sparse.format, sparse.shape) == ("coo", (6, 8))
    assert (sparse.toarray() * M).sum() == pytest.approx(emd2(A, B, M))


def test_wrong_masses_are_refused_as_by_pot():
    for a, b in ((A[1:], B), (A, B[1:]), (A * 2, B)):
        with pytest.raises(AssertionError):
            emd(a, b, M)
    cost = emd2(A * 2, B, M, check_marginals=False)
    assert cost == pytest.approx(2 * emd2(A, B, M))


def test_warnings():
    with pytest.warns(UserWarning, match="numItermax reached"):
        _, log = emd(A, B, M, numItermax=1, log=True)
    assert log["result_code"] == 3
    assert "numItermax" in log["warning"]
    closed = np.where(np.arange(8) == 0, np.inf, M)
    with pytest.warns(UserWarning, match="infeasible"):
        plan, log = emd(A, B, closed, log=True)
    assert (log["result_code"], plan.sum()) == (0, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        emd(A, B, M)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_sparse_tensors(layout):
    """As in POT, the plan is a sparse tensor, and stored costs have gradients."""
    torch = pytest.importorskip("torch")
    kept = np.ones(M.shape, bool)
    kept[0, 1:3] = kept[3, 0] = False
    rows, cols = kept.nonzero()
    forms = {
        "coo": lambda dense: torch.sparse_coo_tensor(np.array([rows, cols]), M[kept], M.shape),
        "csr": lambda dense: dense.to_sparse_csr(),
    }
    costs = forms[layout](torch.tensor(np.where(kept, M, 0))).requires_grad_()
    want, said = emd(A, B, coo_array((M[kept], (rows, cols)), shape=M.shape), log=True)
    assert isinstance(want, coo_array)
    a, b = torch.tensor(A, requires_grad=True), torch.tensor(B)
    plan = emd(a, b, costs)
    assert plan.layout == torch.sparse_coo
    np.testing.assert_allclose(plan.to_dense(), want.toarray())
    value = emd2(a, b, costs)
    assert value.item() == pytest.approx(said["cost"])
    (3 * value).backward()
    np.testing.assert_allclose(a.grad, 3 * (said["u"] - said["u"].mean()), atol=1e-12)
    np.testing.assert_allclose(costs.grad.to_dense(), 3 * want.toarray(), atol=1e-12)
    assert emd(A, B, costs.detach()).is_sparse


def test_gradients_are_duals_and_the_plan():
    torch = pytest.importorskip("torch")
    a, b, costs = (torch.tensor(part, requires_grad=True) for part in (A, B, M))
    value = emd2(a, b, costs)
    (10 * value).backward()
    plan, log = emd(A, B, M, log=True)
    assert value.item() == pytest.approx(log["cost"])
    np.testing.assert_allclose(costs.grad.numpy(), 10 * plan)
    np.testing.assert_allclose(a.grad.numpy(), 10 * (log["u"] - log["u"].mean()), atol=1e-12)
    np.testing.assert_allclose(b.grad.numpy(), 10 * (log["v"] - log["v"].mean()), atol=1e-12)
    assert emd(a.detach().float(), b.detach().float(), costs.detach()).dtype == torch.float32


@pytest.mark.parametrize("given", ["a", "M"])
def test_jax_arrays_come_back(given):
    """Like the masses, or like the costs if there are no masses; as POT's are."""
    jax = pytest.importorskip("jax")
    M = np.array([[0.0, 2.0], [1.0, 4.0], [3.0, 0.5]], np.float32)
    arrays = {"a": np.full(3, 1 / 3, np.float32), "b": np.full(2, 0.5, np.float32), "M": M}
    if given == "M":
        arrays |= {"a": [], "b": []}
    tensors = {name: jax.numpy.asarray(array) for name, array in arrays.items()}
    plan, log = emd(**tensors, log=True)
    expected, told = emd(**arrays, log=True)
    for found, other in (
        (plan, expected),
        (log["u"], told["u"]),
        (emd2(**tensors), emd2(**arrays)),
    ):
        assert isinstance(found, jax.Array)
        assert found.dtype == np.float32
        assert np.allclose(found, other)
