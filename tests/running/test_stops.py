"""Wherever a callback stops a run, on any of its returns to Python, what comes back is sound.

Searches return often here, so that each place at which one may be stopped is one.
"""

from __future__ import annotations

import contextlib
import itertools
import math

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array, issparse

import gpumatch as gm
from gpumatch.cpu.matching import engine as matching_engine
from graphs import costs, make
from tests.cpu.assignment.tuned import tune
from tests.recorded import assignment, matching
from tests.recorded.record import in_small_steps

MOST = 25  # stops of a run, spread over all of its ticks


@contextlib.contextmanager
def small_steps():
    with (
        in_small_steps([*matching.WITH_BUDGETS, "assignment.bottleneck"], 30),
        in_small_steps(assignment.WITH_BUDGETS, 150),
    ):
        yield


def stops(run):
    """What a run gives at each of some stops; the last is not stopped."""
    ticks = []
    with small_steps():
        whole = run(lambda _: ticks.append(1))
        for stop in np.unique(np.linspace(0, len(ticks) - 1, MOST).astype(int)).tolist():
            calls = itertools.count()

            def callback(_, calls=calls, stop=stop):
                call = next(calls)
                assert call <= stop + 1, "it went on although it was told to stop"
                return call >= stop

            yield run(callback)
        yield whole


def check_mates(result):
    rows = np.flatnonzero(result.row_to_col >= 0)
    assert np.array_equal(result.col_to_row[result.row_to_col[rows]], rows)
    assert np.count_nonzero(result.col_to_row >= 0) == rows.size == result.size


SPARSE = costs.make("mesh", 6, seed=2)
SPARSE_SAME = SPARSE.copy()
SPARSE_SAME.data = np.full(SPARSE.nnz, 3)
WIDE_AND_TALL = block_diag([SPARSE[:20, :], SPARSE[:, :20]], "csr")  # neither has a full one
DENSE = costs.make("low_rank", 40, 46, seed=3)
PROBLEMS = {
    "sparse": (SPARSE, {}),
    "sparse, limit": (SPARSE, {"cost_limit": 300}),
    "sparse, maximum": (SPARSE[:, :50], {"cardinality": "maximum"}),
    "sparse, maximum of two parts": (WIDE_AND_TALL, {"cardinality": "maximum"}),
    "sparse, same": (SPARSE_SAME, {}),
    "dense": (DENSE, {}),
    "dense, maximum": (DENSE, {"cardinality": "maximum"}),
    "square": (DENSE[:, :40], {"maximize": True}),
    "same": (np.full((40, 46), 3), {}),
    "integers, limit": ((DENSE * 1000).astype(int), {"cost_limit": 700}),
}
ALGORITHMS = [a for a in gm.algorithms("assignment") if "cpu" in a.backends]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=[a.name for a in ALGORITHMS])
def test_stopped_assignments(problem, algorithm):
    check_stopped(*PROBLEMS[problem], algorithm, "cpu")


@pytest.mark.parametrize("matrix", [SPARSE / 7, DENSE[:, :40] / 7], ids=["sparse", "dense"])
def test_a_stop_when_all_paths_are_found_comes_too_late(matrix):
    ticks, how = [], {"algorithm": "shortest-augmenting-path", "backend": "cpu"}
    whole = gm.assign(matrix, callback=lambda _: ticks.append(1), **how)
    calls = itertools.count(1)
    a = gm.assign(matrix, callback=lambda _: next(calls) >= len(ticks), **how)
    assert a.proven
    assert a.objective == whole.objective


SMALL = costs.uniform_integer(6, 8, seed=3) % 30
BLOCKED = np.where(SMALL % 3 == 0, math.inf, SMALL)
SMALL_PROBLEMS = {
    "complete": (SMALL, {}),
    "limit": (SMALL, {"cost_limit": 9}),
    "limit below all costs": (SMALL, {"cost_limit": -40}),
    "costs below 0": (SMALL - 40, {}),
    "forbidden pairs": (BLOCKED, {}),
    "maximum": (BLOCKED[:, :5], {"cardinality": "maximum"}),
}
REFERENCES = [a for a in gm.algorithms("assignment") if "reference" in a.backends]


@pytest.mark.parametrize("problem", SMALL_PROBLEMS)
@pytest.mark.parametrize("algorithm", REFERENCES, ids=[a.name for a in REFERENCES])
def test_stopped_references(problem, algorithm):
    check_stopped(*SMALL_PROBLEMS[problem], algorithm, "reference")


def check_stopped(matrix, wish, algorithm, backend):
    best = gm.assign(matrix, algorithm="shortest-augmenting-path", **wish)
    sign = -1 if best.maximize else 1
    limit = sign * (wish.get("cost_limit") or 0)
    entries = matrix.toarray() if issparse(matrix) else matrix

    def run(callback):
        how = {"algorithm": algorithm.name, "backend": backend, "threads": 1}
        return gm.assign(matrix, callback=callback, **how, **wish)

    for a in stops(run):
        check_mates(a)
        rows = np.flatnonzero(a.row_to_col >= 0)
        assert np.array_equal(a.pair_costs, entries[rows, a.row_to_col[rows]])
        assert a.objective == pytest.approx(a.pair_costs.sum(), rel=1e-12)
        if a.gap < math.inf:
            ours, theirs = (sign * x.objective - limit * x.size for x in (a, best))
            assert theirs - 1e-9 <= ours <= theirs + a.gap + 1e-9
        if a.proven:
            gm.verify(matrix, a)
        if a.gap == math.inf:
            with pytest.raises(ValueError, match="only a proven assignment of cardinality"):
                a.cover_ind()
        elif a.cardinality == "maximum":
            assert sum(map(len, a.cover_ind())) == a.size
    assert a.proven or not algorithm.exact


GRAPHS = {
    "delaunay": make("delaunay", 7, seed=1, rcp=True),
    "hexa": make("hexa", 120, seed=1, rcp=True),
    "uniform": make("uniform", 150, 2.5, seed=1),
}


@pytest.mark.parametrize("init", ["none", "cheap", "karp-sipser"])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(
    "algorithm", [a.name for a in gm.algorithms("matching") if "cpu" in a.backends]
)
def test_stopped_matchings(monkeypatch, algorithm, graph, init):
    tune(monkeypatch, matching_engine, most_read=0)

    def run(callback):
        how = {"algorithm": algorithm, "init": init, "backend": "cpu", "threads": 1}
        return gm.maximum_matching(GRAPHS[graph], callback=callback, **how)

    found = list(stops(run))
    assert len(found) > 3
    for m in found:
        check_mates(m)
        assert GRAPHS[graph].toarray()[m.row_ind, m.col_ind].all()
        if m.proven:
            gm.verify(GRAPHS[graph], m)
    assert found[-1].proven
    assert not found[0].proven


@pytest.mark.parametrize("how", ["thresholds", "paths"])
@pytest.mark.parametrize("matrix", [SPARSE, costs.make("kkt", 60, seed=4)], ids=["mesh", "kkt"])
def test_stopped_bottlenecks(how, matrix):
    """The least threshold serves the mesh, and paths must raise it for the other."""

    def run(callback):
        return gm.assign(matrix, objective="bottleneck", algorithm=how, callback=callback)

    *stopped, whole = stops(run)
    for a in stopped:
        check_mates(a)
        assert a.size < whole.size or a.objective >= whole.objective
        if a.proven:
            gm.verify(matrix, a)
    assert not stopped[0].proven
    assert gm.verify(matrix, whole).objective == whole.objective


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_what_is_stopped_before_it_is_found_infeasible_is_no_error(form):
    """A search has ended short of a full assignment, but not that for the reason why."""
    matrix = np.random.default_rng(0).random((30, 30))
    matrix[:, 20:] = 0 if form is csr_array else math.inf
    sizes = []
    for stop in itertools.count(1):
        calls = itertools.count(1)

        def callback(_, calls=calls, stop=stop):
            return next(calls) >= stop

        how = {"algorithm": "shortest-augmenting-path", "backend": "cpu", "threads": 1}
        try:
            a = gm.assign(form(matrix), callback=callback, **how)
        except gm.InfeasibleError:
            break
        assert not a.proven
        sizes.append(a.size)
    assert sizes.count(20) > 1
