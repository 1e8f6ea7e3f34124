"""Batches in which each problem has its own limit, or each row of each problem."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.certificates import load, save
from gpumatch.optimize import linear_sum_assignment_batch
from gpumatch.problems import one_by_one
from gpumatch.problems.batch_limits import gates_of
from tests.frames import KINDS, check_pairs, frame

COUNT = 24


def frames(rng, dtype="float64", is_even=False):
    """Frames of all kinds and shapes, a few of them empty."""
    found = []
    for k in range(COUNT):
        rows, cols = (12, 20) if is_even else rng.integers(0, 30, 2).tolist()
        costs = 100 * frame(rng, KINDS[k % (len(KINDS) - 1)], rows, cols)
        found.append(costs.astype(dtype))
    return found


def own_limits(rng, costs, way):
    """One limit for each frame, or for each row of each frame; integers, or with fractions."""
    of_rows, whole = way
    limits = [rng.random(len(one)) * 60 if of_rows else 60 * rng.random() for one in costs]
    return (
        [np.rint(limit).astype(int) if of_rows else round(limit) for limit in limits]
        if whole
        else limits
    )


def check(costs, limits, a, maximize=False):
    """Check each result against SciPy's total, and against the limit that it says it has."""
    gm.verify(costs, a)
    assert a.proven.all()
    for one, matrix, limit in zip(a, costs, limits):
        assert np.array_equal(one.cost_limit, limit)
        assert one.proven
        gm.verify(matrix, one)
        check_pairs((one.row_ind, one.col_ind), matrix, limit, maximize)


@pytest.mark.parametrize("way", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_limits_of_frames_and_of_rows(dtype, way, monkeypatch):
    monkeypatch.setattr(one_by_one.Batch, "_solve_one", None)
    rng = np.random.default_rng(0)
    costs = frames(rng, dtype)
    limits = own_limits(rng, costs, way)
    a = gm.assign(costs, cost_limit=limits)
    check(costs, limits, a)
    is_integer = dtype == "int32" and way[1]
    assert a.objective.dtype == (np.int64 if is_integer else np.float64)
    turned = gm.assign(
        [-one for one in costs], cost_limit=[-limit for limit in limits], maximize=True
    )
    check([-one for one in costs], [-limit for limit in limits], turned, maximize=True)
    assert np.allclose(turned.objective, -a.objective)
    same = gm.assign(costs, cost_limit=limits, cardinality="any", threads=1)
    assert (same.row_to_col == a.row_to_col).all()


def test_limits_of_problems_in_one_array():
    rng = np.random.default_rng(1)
    costs = np.stack(frames(rng, is_even=True))
    for limits in (rng.random(COUNT) * 60, rng.random((COUNT, 12)) * 60):
        check(costs, limits, gm.assign(costs, cost_limit=limits, threads=1))
    sizes = rng.integers(0, 13, COUNT), rng.integers(0, 21, COUNT)
    a = gm.assign(costs, sizes=sizes, cost_limit=limits)
    gm.verify(costs, a, sizes=sizes)
    for k, (rows, cols) in enumerate(zip(*sizes)):
        assert np.array_equal(a[k].cost_limit, limits[k, :rows])
        check_pairs((a[k].row_ind, a[k].col_ind), costs[k, :rows, :cols], limits[k, :rows])


def test_what_a_kernel_does_not_take_is_solved_one_by_one():
    rng = np.random.default_rng(2)
    costs = [rng.integers(0, 50, (4, 6)), rng.integers(0, 50, (5, 5))]
    for limits in ([np.inf, 20], [[np.inf] * 4, [20] * 5], [20, 2**50], [20, [1, 2, 3, 4, 5]]):
        for cardinality in ("full", "maximum"):
            a = gm.assign(costs, cost_limit=limits, cardinality=cardinality)
            gm.verify(costs, a)
            for one, matrix, limit in zip(a, costs, limits):
                alone = gm.assign(matrix, cost_limit=limit, cardinality=cardinality)
                assert one.objective == alone.objective
                assert np.array_equal(one.cost_limit, alone.cost_limit)
    assert gates_of([20, 2**50], np.full((2, 2), 4), True, False) is None
    assert gates_of([2**60 + 1], np.full((1, 2), 4), False, False) is None  # a float rounds it


def test_wrong_limits_name_their_problem():
    costs = [np.ones((2, 3)), np.ones((3, 2))]
    for limits, kind, message in (
        ([1, 2, 3], ValueError, "cost_limit must be a number, or have 2 limits"),
        ([1, np.nan], ValueError, "problem 1: cost_limit must be None or finite"),
        ([1, "2"], TypeError, "problem 1: cost_limit must be None, a number"),
        ([[1, 2], [1, 2]], ValueError, "problem 1: cost_limit must be a number, or 3 numbers"),
        ([[1, 2], [1, 2, 1j]], TypeError, "problem 1: cost_limit must be real numbers"),
    ):
        with pytest.raises(kind, match=message):
            gm.assign(costs, cost_limit=limits)
    a = gm.assign(costs, cost_limit=[1, np.nan], on_error="mark")
    assert list(a.errors) == [1]
    assert a[0].size == 2


def test_a_result_keeps_its_limits(tmp_path):
    rng = np.random.default_rng(3)
    costs = frames(rng)
    limits = own_limits(rng, costs, (True, False))
    a = pickle.loads(pickle.dumps(gm.assign(costs, cost_limit=limits)))
    check(costs, limits, a)
    save(tmp_path / "proof.npz", costs, a)
    gm.verify(costs, load(tmp_path / "proof.npz"))


def test_a_wrong_limit_is_seen():
    costs = [np.array([[1.0, 5.0], [4.0, 2.0]])]
    a = gm.assign(costs, cost_limit=[[3.0, 3.0]])
    gm.verify(costs, a)
    a.cost_limit[0] = np.array([0.5, 3.0])
    with pytest.raises(gm.CertificateError):
        gm.verify(costs, a)


DOORS = {
    "assign": lambda costs, limits: gm.assign(costs, cost_limit=limits),
    "maximum": lambda costs, limits: gm.assign(costs, cost_limit=limits, cardinality="maximum"),
    "optimize": lambda costs, limits: linear_sum_assignment_batch(costs, cost_limit=limits),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "limits",
    [
        {0: 0.5, 1: 0.6, 2: 0.7},
        {0.5, 0.6, 0.7},
        b"abc",
        "0.5",
        True,
        [True, False, True],
        np.array([1j, 1, 2]),
        np.ma.masked_array([0.1, 0.2, 0.3], [False, True, False]),
    ],
    ids=str,
)
def test_what_is_no_list_of_limits_is_refused(limits, door):
    with pytest.raises(TypeError, match="cost_limit"):
        DOORS[door](np.random.default_rng(5).random((3, 4, 5)), limits)


@pytest.mark.parametrize("door", DOORS)
def test_lines_of_an_array_may_be_longer_than_frames(door):
    rng = np.random.default_rng(6)
    costs, limits = [rng.random((rows, 5)) for rows in (2, 0, 4)], rng.random((3, 4))
    found = DOORS[door](costs, limits)
    expected = DOORS[door](costs, [limits[0, :2], limits[1, :0], limits[2]])
    for (rows, cols), (others, theirs) in zip(found, expected):
        assert rows.tolist() == others.tolist()
        assert cols.tolist() == theirs.tolist()


@pytest.mark.parametrize("door", DOORS)
def test_limits_of_pandas_are_taken_in_their_order_and_not_by_their_labels(door):
    pandas = pytest.importorskip("pandas")
    costs = np.random.default_rng(7).random((3, 3, 5))
    for limits in (np.array([0.01, 0.2, 2.0]), np.arange(9.0).reshape(3, 3) / 9):
        kind = pandas.Series if limits.ndim == 1 else pandas.DataFrame
        found = DOORS[door](costs, kind(limits, index=[2, 1, 0]))
        for (rows, cols), (others, theirs) in zip(found, DOORS[door](costs, limits)):
            assert rows.tolist() == others.tolist()
            assert cols.tolist() == theirs.tolist()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_the_largest_integers_are_limits_of_floats_without_a_warning(dtype):
    costs = np.random.default_rng(8).random((2, 3, 3))
    limits = np.array([np.iinfo(dtype).max, 1], dtype)
    a = gm.assign(costs, cost_limit=limits)
    assert a.cost_limit == [float(np.iinfo(dtype).max), 1.0]
    check(costs, a.cost_limit, a)
