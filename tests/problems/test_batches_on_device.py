"""Batches on a device: the same answers as on the host, in arrays of the device."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.problems import device_batches
from tests.cpu.assignment.tuned import tune
from tests.problems.test_batches import WISHES, chains, paid, random_problem

pytestmark = pytest.mark.gpu
cp = pytest.importorskip("cupy")

from gpumatch.cuda.assignment.batched import batch as device_batch  # noqa: E402  it imports cupy
from gpumatch.cuda.assignment.batched import tuning as device_tuning  # noqa: E402
from gpumatch.cuda.assignment.dense import tuning as dense_tuning  # noqa: E402

AT_ONCE_GIVEN_UP = {"steps_of_core": 2, "steps_of_its_rows": 0}
"""How few steps a team has before problems are solved together."""


def on_host(values):
    return values.get() if isinstance(values, cp.ndarray) else values


def check(problems, batch, expected, **wish):
    assert (on_host(batch.proven) == expected.proven).all()
    assert {k: str(e) for k, e in batch.errors.items()} == {
        k: str(e) for k, e in expected.errors.items()
    }
    assert isinstance(batch.row_to_col, cp.ndarray)
    for k, matrix in enumerate(problems):
        if k in expected.errors:
            continue
        one = batch[k]
        gm.verify(matrix, one)
        assert math.isclose(paid(one), paid(expected[k]), abs_tol=1e-11)
        if (
            batch.cost_limit is None and batch.cardinality != "any"
        ):  # else pairs may be worth nothing
            assert one.size == expected[k].size
        assert type(one.objective) is type(expected[k].objective)
        pairs = matrix.get()[on_host(one.row_ind), on_host(one.col_ind)]
        assert on_host(one.pair_costs).tolist() == pairs.tolist()


@pytest.mark.emulated
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_a_list_of_any_problems(wish, maximize):
    rng = np.random.default_rng(15)
    sign = -1 if maximize else 1
    problems = [sign * random_problem(rng) for _ in range(60)]
    if "cost_limit" in wish:
        wish = {**wish, "cost_limit": sign * wish["cost_limit"]}
    wish = {**wish, "maximize": maximize, "on_error": "mark"}
    there = [cp.asarray(matrix) for matrix in problems]
    check(there, gm.assign(there, **wish), gm.assign(problems, **wish))


DTYPES = "?", "i1", "u2", "i4", "u4", "i8", "f2", "f4", "f8"
SHAPES = (40, 50), (50, 40), (64, 64), (300, 20)
TWO_SHAPES_A_DTYPE = [
    (dtype, SHAPES[(k + other) % len(SHAPES)]) for k, dtype in enumerate(DTYPES) for other in (0, 1)
]


@pytest.mark.emulated
@pytest.mark.parametrize(("dtype", "shape"), TWO_SHAPES_A_DTYPE, ids=str)
def test_an_array_of_any_dtype(dtype, shape):
    costs = np.random.default_rng(16).integers(0, 90, (6, *shape)).astype(dtype)
    batch, expected = gm.assign(cp.asarray(costs)), gm.assign(costs)
    assert batch.objective.tolist() == expected.objective.tolist()
    assert batch.stats["backend"] == "cuda"
    check([*cp.asarray(costs)], batch, expected)


@pytest.mark.emulated
@pytest.mark.parametrize("sign", [1, -1])
def test_paths_that_no_float_holds_are_exact(sign):
    most = 2**47 - 3
    there = cp.asarray(sign * chains(127, most, np.random.default_rng(3)))
    wish = {"maximize": sign < 0, "cardinality": "maximum", "cost_limit": sign * most}
    for matrix in (there, there.T):
        a = gm.assign([matrix], **wish)[0]
        gm.verify(matrix, a)
        assert (a.proven, a.gap) == (True, 0)


@pytest.mark.parametrize("n", [150, 700, 1030, 2050, 4100])
def test_blocks_of_all_sizes(n):
    costs = cp.random.default_rng(1).random((2, n, n), np.float32)
    batch = gm.assign(costs)
    gm.verify(costs[1], batch[1])
    one = gm.assign(costs[0], algorithm="hungarian-tree")
    assert math.isclose(float(batch.objective[0]), one.objective, rel_tol=1e-9)


@pytest.mark.parametrize("blocks", [2, 3, 8])
@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_teams_of_blocks(wish, blocks, monkeypatch):
    """Small problems, each by a cluster of blocks."""
    if int(cp.cuda.Device().compute_capability) < 90:
        pytest.skip("the device has no clusters of blocks")
    tune(monkeypatch, device_tuning, of_a_warp=0, of_a_block=(2, 2))
    monkeypatch.setattr(device_batch, "most_blocks", lambda _: blocks)
    rng = np.random.default_rng(21)
    problems = [random_problem(rng) for _ in range(30)]
    problems += [rng.integers(0, 5, (70, 90)), rng.random((300, 200)), np.ones((130, 130))]
    there = [cp.asarray(matrix) for matrix in problems]
    wish = {**wish, "on_error": "mark"}
    check(there, gm.assign(there, **wish), gm.assign(problems, **wish))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("maximize", [False, True])
def test_what_teams_give_up_is_solved_together(maximize, dtype, monkeypatch):
    if int(cp.cuda.Device().compute_capability) < 90:
        pytest.skip("the device has no clusters of blocks")
    tune(monkeypatch, device_tuning, of_a_block=(64, 64), together=64, **AT_ONCE_GIVEN_UP)
    monkeypatch.setattr(device_batches, "SHORT", 64)
    solved, solve = [], device_batch.stacked.solve
    monkeypatch.setattr(
        device_batch.stacked,
        "solve",
        lambda matrices, *given: solved.append(len(matrices)) or solve(matrices, *given),
    )
    rng = np.random.default_rng(22)
    sides = ((70, 70), (100, 130), (200, 200), (3, 90), (300, 290), (20, 20))
    drawn = [rng.integers(-9, 1000, shape) for shape in sides]
    products = np.multiply.outer(np.arange(150), np.arange(150))
    problems = [matrix.astype(dtype) for matrix in (*drawn, products, np.ones((80, 80)))]
    if dtype[0] == "f":
        problems[0][rng.random((70, 70)) < 0.1] = -math.inf if maximize else math.inf
    problems.append(np.full((66, 66), -math.inf if maximize else math.inf))
    if dtype[0] == "i":
        problems.pop()
    wish = {"maximize": maximize, "on_error": "mark"}
    there = [cp.asarray(matrix) for matrix in problems]
    check(there, gm.assign(there, **wish), gm.assign(problems, **wish))
    assert solved[0] >= 2
    even = np.stack([products, rng.permuted(products, axis=0)]).astype(dtype)
    check([*cp.asarray(even)], gm.assign(cp.asarray(even), **wish), gm.assign(even, **wish))
    assert len(solved) == 2


def test_a_stop_is_heard_where_problems_are_solved_together(monkeypatch):
    tune(monkeypatch, device_tuning, together=2048, **AT_ONCE_GIVEN_UP)
    points = cp.random.default_rng(5).random((2, 2, 2048))
    costs = ((points[0, :, :, None] - points[1, :, None, :]) ** 2).astype(np.float32)
    batch = gm.assign(costs, on_error="mark", time_limit=0)
    assert not batch.proven.any()
    batch = gm.assign(costs, on_error="mark")
    for k in range(2):
        gm.verify(costs[k], batch[k])


def test_sizes_and_what_is_too_large_for_a_block():
    costs = np.random.default_rng(17).random((20, 9, 7))
    sizes = 9, np.arange(20) % 8
    batch = gm.assign(cp.asarray(costs), sizes=sizes)
    expected = gm.assign(costs, sizes=sizes)
    assert (batch.row_to_col.get() == expected.row_to_col).all()
    with pytest.raises(gm.InfeasibleError, match="problem 1: "):
        gm.assign(cp.stack([cp.ones((2, 9000)), cp.full((2, 9000), math.inf)]))
    long = [cp.asarray(costs[0]), cp.ones((3, 9000)), cp.asarray(costs[1])]
    batch = gm.assign(long, on_error="mark")
    for k in range(3):
        gm.verify(long[k], batch[k])


@pytest.mark.emulated
def test_errors_are_raised_at_once_or_asked_for():
    costs = cp.random.default_rng(2).random((6, 5, 6))
    costs[3, 2] = math.inf
    costs[4, 1, 1] = math.nan
    with pytest.raises(gm.InfeasibleError, match="problem 3: "):
        gm.assign(costs)
    assert gm.assign(costs, on_error="mark").errors.keys() == {3, 4}


@pytest.mark.emulated
def test_large_integers_and_sparse_matrices_are_solved_one_by_one():
    large = cp.asarray(np.random.default_rng(18).integers(2**50, 2**55, (3, 6, 6)))
    batch = gm.assign(large, on_error="mark")
    for k in range(3):
        gm.verify(large[k], batch[k])
    sparse = [csr_array(np.random.default_rng(k).random((4, 5))) for k in range(2)]
    there = [(*map(cp.asarray, (one.indptr, one.indices, one.data)), one.shape) for one in sparse]
    for k in range(2):
        assert math.isclose(gm.assign(there[k]).objective, gm.assign(sparse)[k].objective)


@pytest.mark.emulated
def test_costs_of_the_host_go_to_the_device_when_asked():
    costs = np.random.default_rng(19).random((4, 8, 9))
    batch = gm.assign(costs, backend="cuda")
    assert isinstance(batch.row_to_col, np.ndarray)
    assert batch.stats["backend"] == "cuda"
    gm.verify(costs, batch)


@pytest.mark.emulated
@pytest.mark.parametrize("cardinality", ["full", "maximum", "any"])
@pytest.mark.parametrize("form", ["list", "array"])
def test_problems_without_columns(form, cardinality):
    """Nothing of them is turned, but kernels must know that they are."""
    if form == "list":
        a = gm.assign([np.ones((1, 0)), np.ones((3, 0))], backend="cuda", cardinality=cardinality)
    else:
        a = gm.assign(np.ones((4, 2, 0)), backend="cuda", cardinality=cardinality)
    assert a.proven.all()
    assert (a.size == 0).all()
    assert (a.row_to_col == -1).all()
    assert device_batch._room(0, np.dtype(np.float32)).size == 1


# -- single problems -------------------------------------------------------------------------------


def single_problem(dtype, shape):
    rng = np.random.default_rng(21)
    costs = rng.random(shape) * 2 - 1 if dtype[0] == "f" else rng.integers(-40, 40, shape)
    return costs.astype(dtype)


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("dtype", "shape", "wish"),
    [
        ("f8", (9, 9), {}),
        ("f4", (4, 70), {"maximize": True}),
        ("i4", (36, 20), {}),
        ("f8", (12, 30), {"cost_limit": 0.1}),
        ("i4", (30, 34), {"cost_limit": -20, "maximize": True}),
        ("i4", (9, 40), {"cost_limit": 0.5}),
        ("f4", (20, 9), {"cardinality": "any"}),
    ],
    ids=str,
)
def test_a_matrix_is_solved_by_one_launch(dtype, shape, wish, monkeypatch):
    costs = single_problem(dtype, shape)
    expected = gm.assign(costs, **wish)
    monkeypatch.setattr("gpumatch.assignment.one_problem.solve", None)
    a = gm.assign(cp.asarray(costs), **wish)
    gm.verify(costs, a)
    assert a.stats["backend"] == "cuda"
    assert [phase["step"] for phase in a.stats["trace"]] == ["team"]
    assert a.proven
    assert type(a.gap) is type(expected.gap)
    assert type(a.objective) is type(expected.objective)
    assert a.size == expected.size == len(a.row_ind)
    pairs = costs[on_host(a.row_ind), on_host(a.col_ind)]
    assert on_host(a.pair_costs).tolist() == pairs.tolist()
    assert a.objective == (sum if dtype[0] == "i" else math.fsum)(pairs.tolist())
    assert math.isclose(a.objective, expected.objective, abs_tol=1e-12)
    for name in ("row_to_col", "col_to_row", "row_dual", "col_dual", "pair_costs"):
        assert isinstance(getattr(a, name), cp.ndarray)
        assert getattr(a, name).dtype == getattr(expected, name).dtype


@pytest.mark.emulated
@pytest.mark.parametrize("gives_up", [False, True])
def test_a_matrix_that_one_launch_leaves_is_solved_in_another_way(gives_up, monkeypatch):
    """A team that has given up is not asked a second time."""
    teams = []
    run_one = device_batch.run_one
    monkeypatch.setattr(device_batch, "run_one", lambda *task: teams.append(1) or run_one(*task))
    tune(monkeypatch, dense_tuning, steps_of_team=(1, 1) if gives_up else (1000, 1000))
    costs = single_problem("f8", (12, 12))
    if not gives_up:
        costs[3] = math.inf
        with pytest.raises(gm.InfeasibleError) as refused:
            gm.assign(cp.asarray(costs))
        assert on_host(refused.value.rows).tolist() == [3]
        return
    a = gm.assign(cp.asarray(costs))
    gm.verify(costs, a)
    assert "team" not in [phase.get("step") for phase in a.stats["trace"]]
    assert not teams
    assert math.isclose(a.objective, gm.assign(costs).objective)


@pytest.mark.emulated
def test_an_invalid_matrix_on_a_device_is_refused():
    costs = single_problem("f8", (5, 6))
    costs[2, 3] = math.nan
    with pytest.raises(ValueError, match="NaN"):
        gm.assign(cp.asarray(costs))
