"""`gumpatch.interop.jax`: compiled programs, batches by ``vmap``, gradients, devices."""

import os

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment as scipys

import gpumatch as gm

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other tests share the GPU
jax = pytest.importorskip("jax")
jax.config.update("jax_num_cpu_devices", 2)

import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, PartitionSpec  # noqa: E402

from gpumatch.interop import jax as door  # noqa: E402

DEVICES = [
    pytest.param("cpu", id="cpu"),
    pytest.param("cuda", id="cuda", marks=pytest.mark.gpu),
]


@pytest.fixture(params=DEVICES)
def device(request):
    with jax.default_device(jax.devices(request.param)[0]):
        yield request.param


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def in_doubles():
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()


@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (7, 4), (20, 20), (60, 80)])
def test_pairs_are_those_of_an_optimum(shape, device):
    cost = normal(*shape)
    rows, cols = jax.jit(door.linear_sum_assignment)(cost)
    assert rows.shape == cols.shape == (min(shape),)
    assert np.all(np.diff(rows) > 0)
    assert len(set(cols.tolist())) == min(shape)
    assert cost[rows, cols].sum() == pytest.approx(cost[scipys(cost)].sum(), abs=1e-4)
    i, j = door.hungarian_algorithm(cost)
    assert (i == rows).all()
    assert (j == cols).all()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 2, 2)])
def test_nothing_to_match(shape, device):
    a = jax.jit(door.assign)(jnp.zeros(shape))
    assert a.row_to_col.shape == shape[:-1]
    assert a.col_to_row.shape == (*shape[:-2], shape[-1])
    assert (a.row_to_col == -1).all()
    assert (a.objective == 0).all()


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_each_result_equals_that_of_the_front_door(dtype, maximize, device):
    cost = (100 * normal(5, 9, 12)).astype(dtype)
    a = jax.jit(door.assign, static_argnames="maximize")(cost, maximize=maximize)
    best = gm.assign(cost.astype(np.float64), maximize=maximize)
    assert a.objective.dtype == dtype
    assert np.allclose(a.objective, best.objective, rtol=1e-5)
    duals = np.asarray(a.row_dual).sum(1) + np.asarray(a.col_dual).sum(1)
    assert np.allclose(duals, best.objective, rtol=1e-4)
    assert np.array_equal(np.take_along_axis(a.col_to_row, a.row_to_col, 1), [range(9)] * 5)


def test_double_costs_have_double_results(device):
    with in_doubles():
        cost = normal(9, 9).astype(np.float64)
        a = door.assign(cost)
        assert a.objective.dtype == a.row_dual.dtype == np.float64
        assert float(a.objective) == pytest.approx(gm.assign(cost).objective, rel=1e-14)
        large = np.array([[2**60, 0], [0, 2**60 + 1]])
        assert int(door.assign(large, maximize=True).objective) == 2**61 + 1


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_short_floats(dtype, device):
    cost = jnp.asarray(normal(8, 8), dtype)
    a = door.assign(cost)
    assert a.objective.dtype == jnp.float32
    exact = np.asarray(cost, np.float32)
    assert float(a.objective) == pytest.approx(exact[scipys(exact)].sum(), rel=1e-6)


def test_truth_values_are_costs_of_0_and_1(device):
    cost = np.array([[True, False], [True, True]])
    assert int(door.assign(cost).objective) == 1


def test_vmap_solves_one_batch(device, monkeypatch):
    seen, solve, solve_even = [], door.solve, door.solve_even

    def spy(C, **options):
        seen.append(C.shape)
        return solve(C, **options)

    def spy_on_device(address, shape, *how):
        seen.append(tuple(shape))
        return solve_even(address, shape, *how)

    monkeypatch.setattr(door, "solve", spy)
    monkeypatch.setattr(door, "solve_even", spy_on_device)
    cost = normal(3, 4, 6, 7)
    found = jax.vmap(jax.vmap(lambda one: door.assign(one).row_to_col))(cost)
    flat = door.batch_linear_assignment(cost.reshape(12, 6, 7))
    assert np.array_equal(found.reshape(12, 6), flat)
    assert [shape for shape in seen if shape != (1, 1)] == [(12, 6, 7)] * 2


def test_gradient_equals_finite_differences(device):
    with in_doubles():
        cost = jnp.asarray(normal(2, 5, 7), jnp.float64)
        weight = jnp.array([2.0, -3.0])
        total = lambda cost: weight @ door.assign(cost).objective  # noqa: E731
        gradient = jax.jit(jax.grad(total))(cost)
        a = door.assign(cost)
        for k in range(2):
            expected = np.zeros((5, 7))
            expected[range(5), a.row_to_col[k]] = weight[k]
            assert np.array_equal(gradient[k], expected)
        step = 1e-6 * jnp.asarray(normal(2, 5, 7, seed=1), jnp.float64)
        change = total(cost + step) - total(cost - step)
        assert float(change) == pytest.approx(2 * float((gradient * step).sum()), rel=1e-6)


def test_gradient_stays_finite_where_pairs_are_forbidden(device):
    cost = jnp.array([[1.0, jnp.inf], [jnp.inf, 2.0]])
    gradient = jax.grad(lambda cost: door.assign(cost).objective)(cost)
    assert gradient.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_problems_without_an_assignment_are_marked(bad, device):
    cost = normal(3, 2, 3)
    cost[1, 0] = bad
    a = jax.jit(door.assign)(cost)
    assert (a.row_to_col[1] == -1).all()
    assert (a.col_to_row[1] == -1).all()
    assert np.isnan(a.objective).tolist() == [False, True, False]
    assert (a.row_to_col[::2] >= 0).all()
    rows, cols = door.linear_sum_assignment(cost[1].T)
    assert rows.tolist() == cols.tolist() == [-1, -1]


def test_limit(device):
    cost = np.array([[1.0, 9.0], [9.0, 5.0]])
    a = jax.jit(lambda cost: door.assign(cost, cardinality="any", cost_limit=3.0))(cost)
    assert a.row_to_col.tolist() == [0, -1]
    assert float(a.objective) == 1
    alone = door.assign(np.full((1, 2, 2), 7.0), cardinality="any", cost_limit=3.0)
    assert alone.objective.tolist() == [0]  # no pair is no mark


def test_several_devices_share_a_batch():
    devices = jax.devices("cpu")[:2]
    assert len(devices) == 2
    cost = normal(6, 5, 5)
    batch = PartitionSpec("batch")
    solve = jax.shard_map(
        door.batch_linear_assignment, mesh=Mesh(devices, "batch"), in_specs=batch, out_specs=batch
    )
    found = jax.jit(solve)(cost)
    assert len(found.sharding.device_set) == 2
    assert np.array_equal(found, door.batch_linear_assignment(cost))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: door.assign(np.zeros(3)), ValueError, "cost must have at least 2 dimensions"),
        (lambda: door.assign(np.zeros((2, 2), complex)), TypeError, "cost must be real"),
        (lambda: door.batch_linear_assignment(np.eye(2)), ValueError, "3 dimensions"),
        (lambda: door.linear_sum_assignment(np.zeros((1, 2, 2))), ValueError, "2 dimensions"),
        (lambda: door.assign(np.eye(2), cardinality="most"), ValueError, "cardinality"),
        (lambda: door.assign(np.eye(2), maximize=2), TypeError, "maximize"),
        (
            lambda: jax.jit(lambda limit: door.assign(np.eye(2), cost_limit=limit))(1.0),
            TypeError,
            "cost_limit must be a Python number",
        ),
    ],
)
def test_wrong_calls(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_optaxs_function_gives_the_same_total(device):
    optax = pytest.importorskip("optax")
    for shape in ((4, 4), (3, 8), (8, 3)):
        cost = jnp.asarray(normal(*shape, seed=2))
        functions = optax.assignment.hungarian_algorithm, door.hungarian_algorithm
        theirs, ours = (float(cost[solve(cost)].sum()) for solve in functions)
        assert ours == pytest.approx(theirs, rel=1e-5)
