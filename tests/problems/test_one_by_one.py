"""Problems of a batch that are solved one by one, and what stops, limits and callbacks leave."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.cpu.assignment.small import batch as small_batch
from gpumatch.dispatch import registry
from gpumatch.problems import batches

X = math.inf
NAMED = {"algorithm": "hungarian-classical"}  # so that problems are solved one by one


def test_sparse_matrices_and_named_algorithms_are_solved_one_by_one():
    sparse = [csr_array(np.random.default_rng(k).random((4, 5 + k))) for k in range(3)]
    batch = gm.assign(sparse)
    for k in range(3):
        gm.verify(sparse[k], batch[k])
    costs = np.random.default_rng(1).random((3, 4, 5))
    assert np.allclose(
        gm.assign(costs, algorithm="hungarian-classical").objective, gm.assign(costs).objective
    )


def test_options_reach_problems_alone():
    batch = gm.assign(np.eye(3)[None].repeat(2, axis=0), scaling="none")
    assert batch.stats["algorithm"] == "auction"
    assert gm.assign([np.eye(3)]).stats["algorithm"] == "engine"


@pytest.mark.parametrize(
    ("problems", "kind"),
    [
        ([[[7, 3], [1, 9]], [[2]]], "i"),
        ([[[7, 3], [1, 9]], [[2.5]], [[4]]], "f"),
        ([[[2.5]], [[7, 3], [1, 9]]], "f"),
        (np.zeros((0, 3, 4), int), "i"),
        (np.zeros((0, 3, 4)), "f"),
    ],
    ids=["integers", "both", "floats first", "no integers", "no floats"],
)
def test_problems_alone_give_integers_if_all_are_integers(problems, kind):
    if isinstance(problems, list):
        problems = [np.array(matrix) for matrix in problems]
    batch = gm.assign(problems, **NAMED)
    assert batch.row_dual.dtype.kind == batch.col_dual.dtype.kind == kind
    assert batch.objective.dtype.kind == batch.pair_costs.dtype.kind == kind
    assert batch.objective.tolist() == [gm.assign(matrix).objective for matrix in problems]
    assert batch.proven.all()


def test_covers_of_problems_alone():
    holed = [np.array([[X, 5.0], [X, 3.0], [1.0, 2.0]]), np.array([[2.0, X]])]
    batch = gm.assign(holed, cardinality="maximum", **NAMED)
    for matrix, alone in zip(holed, batch):
        gm.verify(matrix, alone)
        one = gm.assign(matrix, cardinality="maximum").vertex_cover()
        assert [part.tolist() for part in alone.vertex_cover()] == [part.tolist() for part in one]


@pytest.mark.parametrize("dtype", ["i8", "f8"])
@pytest.mark.parametrize("limit", [2.0**60 + 0.5, 2**60])
def test_limits_too_large_for_floats_are_exact(dtype, limit):
    costs = np.array([[[5, 7], [3, 9]]] * 2, dtype)
    for a in (gm.assign(costs, cost_limit=limit)[1], gm.assign(costs[0], cost_limit=limit)):
        assert a.objective == 10
        gm.verify(costs[0], a)


def test_a_time_limit_leaves_the_rest_unsolved():
    costs = np.random.default_rng(2).random((5, 4, 4))
    batch = gm.assign(costs, time_limit=0)
    assert not batch.proven.any()
    assert (batch.row_to_col == -1).all()
    assert (batch.gap == math.inf).all()


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_no_problem_is_begun_after_a_stop(form):
    problems = [form(np.random.default_rng(k).random((6, 7))) for k in range(9)]
    calls = []
    whole = gm.assign(problems, callback=calls.append, **NAMED)
    for stop in range(len(calls)):
        later = []

        def stopping(_, later=later, stop=stop):
            later.append(1)
            return len(later) > stop

        batch = gm.assign(problems, callback=stopping, **NAMED)
        assert len(later) <= stop + 2  # that of the problem, and that between problems
        assert (
            batch.proven.tolist() == [True] * batch.proven.sum() + [False] * (~batch.proven).sum()
        )
    assert whole.proven.all()


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_keeps_what_is_solved(threads, monkeypatch):
    costs = np.random.default_rng(3).random((50, 30, 30))
    monkeypatch.setattr(small_batch, "RANGE", 5 * 900)
    calls = []

    def interrupt(progress):
        calls.append(progress)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(costs, threads=threads, callback=interrupt)
    best = caught.value.result
    assert 15 <= best.proven.sum() <= 50
    for k in np.flatnonzero(best.proven):
        gm.verify(costs[k], best[k])
    assert (best.row_to_col[~best.proven] == -1).all()


def test_an_interrupt_between_problems_alone_keeps_those_before():
    costs = np.random.default_rng(3).random((6, 30, 30))
    calls = []

    def interrupt(progress):
        calls.append(progress.matched)
        if progress.matched > 70:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(costs, callback=interrupt, **NAMED)
    best = caught.value.result
    assert len(best) == 6
    assert best.proven[:2].all()
    assert not best.proven[3:].any()
    assert calls == sorted(calls)
    for k in range(2):
        gm.verify(costs[k], best[k])


def test_a_limit_and_a_callback_reach_problems_alone():
    costs = np.random.default_rng(2).random((5, 20, 20))
    assert not gm.assign(costs, time_limit=0, **NAMED).proven.any()
    batch = gm.assign(costs, callback=lambda progress: progress.matched >= 40, **NAMED)
    assert batch.proven[:2].all()
    assert not batch.proven[2:].any()
    assert batch.size[2:].tolist() == [0, 0, 0]


def test_statistics_name_what_has_solved_it():
    costs = np.random.default_rng(1).random((3, 4, 5))
    named = gm.assign(costs, **NAMED).stats
    assert (named["algorithm"], named["backend"]) == ("hungarian-classical", "cpu")
    assert gm.assign(costs).stats["algorithm"] == "engine"


def test_many_problems_are_solved_in_compiled_calls_unless_one_algorithm_is_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(batches, "load", lambda name: asked.append(name) or registry.load(name))
    costs = np.random.default_rng(13).random((3, 4, 4))
    for told, is_compiled in (
        ({}, True),
        ({"backend": "cpu"}, True),
        ({"cardinality": "maximum", "cost_limit": 3, "maximize": True}, True),
        ({"backend": "reference"}, False),
        ({"algorithm": "engine"}, False),
        ({"algorithm": "hungarian-tree", "search": "stack"}, False),
    ):
        asked.clear()
        assert gm.assign(costs, **told).proven.all()
        assert asked == [registry.BATCHES["cpu"]] * is_compiled


@pytest.mark.parametrize("kind", [float, np.int32])
def test_large_problems_between_small_ones_are_solved_alone(kind, monkeypatch):
    monkeypatch.setattr(batches, "MOST", 100)
    rng = np.random.default_rng(15)
    problems = [rng.integers(0, 50, (n, n)).astype(kind) for n in (4, 12, 5, 6, 20, 11, 3, 15)]
    told = []
    batch = gm.assign(problems, callback=lambda progress: told.append(progress.matched))
    assert batch.proven.all()
    assert told == sorted(told)  # those of the small ones count when the others are solved
    assert told[-1] >= batch.size.sum() - 15
    best = [matrix[linear_sum_assignment(matrix)].sum() for matrix in problems]
    assert batch.objective.tolist() == best


def test_a_stop_within_a_problem_leaves_it_without_a_cover():
    problems = np.random.default_rng(4).random((3, 30, 30))
    problems[:, :, 20:] = X
    calls = []
    gm.assign(problems, callback=calls.append, cardinality="maximum", **NAMED)
    parts = set()
    for stop in range(1, len(calls)):
        later = []

        def stopping(_, later=later, stop=stop):
            later.append(1)
            return len(later) >= stop

        batch = gm.assign(problems, callback=stopping, cardinality="maximum", **NAMED)
        parts |= set(zip(batch.proven.tolist(), (batch.size > 0).tolist()))
        for k, is_proven in enumerate(batch.proven):
            if is_proven:
                gm.verify(problems[k], batch[k])
            else:
                with pytest.raises(ValueError, match="only a proven assignment"):
                    batch[k].cover_ind()
    assert {(True, True), (False, True), (False, False)} <= parts
