"""The harness itself: its oracles, its judgement, and what it does with crashes."""

from __future__ import annotations

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import gpumatch as gm
from tests.fuzz import oracles, problems
from tests.fuzz.__main__ import Report
from tests.fuzz.bad_worker import serve_badly
from tests.fuzz.judgement import judge
from tests.fuzz.problems import Problem
from tests.fuzz.trials import Trial, Wrong, class_of, run, shrunk
from tests.fuzz.workers import run_seeds


def small_problems(count: int, most: int):
    for seed in itertools.count(1):
        trial = Trial(seed)
        draw = problems.sparse_problem if seed % 3 == 0 else problems.dense_problem
        problem = draw(trial, 2**12)
        if max(problem.shape) <= most and abs(problem.costs.astype(float)).max(initial=0) < 1e15:
            count -= 1
            yield problem
        if count == 0:
            return


def test_oracles_find_what_enumeration_finds():
    for problem in small_problems(60, most=5):
        expected, best = oracles.enumerated(problem), oracles.best(problem)
        assert (expected is None) == (best is None)
        if best is not None:
            net = float(problem.net(*best))
            assert net == pytest.approx(float(expected[1]), rel=1e-12, abs=1e-300)


def test_programming_finds_what_the_oracles_find():
    for problem in small_problems(15, most=9):
        most = abs(problem.costs).max(initial=0)
        if problem.cardinality == "maximum" or not 1e-6 < most < 1e6:
            continue
        best, optimum = oracles.best(problem), oracles.by_programming(problem)
        assert (best is None) == (optimum is None)
        if best is not None:
            assert optimum == pytest.approx(problem.net(*best), abs=1e-6 * (1 + most))


@pytest.mark.parametrize("bits", [20, 50, 60])
@pytest.mark.parametrize("shape", [(6, 6), (5, 8), (8, 5)], ids=str)
def test_exact_paths_find_what_enumeration_finds(bits, shape):
    rng = np.random.default_rng(bits)
    matrix = rng.integers(-(2**bits), 2**bits, shape)
    matrix[rng.random(shape) < 0.2] = oracles.FAR
    np.fill_diagonal(matrix, 7)
    rows, cols = oracles.exactly(matrix)
    rows_of_all, cols_of_all = (range(size) for size in shape)
    least = min(
        sum(int(matrix[pair]) for pair in zip(chosen, order))
        for chosen in itertools.combinations(rows_of_all, min(shape))
        for order in itertools.permutations(cols_of_all, min(shape))
    )
    assert sum(int(matrix[pair]) for pair in zip(rows, cols)) == least


def changed(result, **changes):
    names = ("row_to_col", "col_to_row", "row_dual", "col_dual", "objective", "gap", "proven")
    kept = {name: getattr(result, name) for name in (*names, "size", "pair_costs")}
    return SimpleNamespace(**{**kept, **changes})


def test_judgement_refuses_false_claims():
    C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    rows, cols = (part.ravel() for part in np.indices(C.shape))
    problem = Problem(C.shape, rows, cols, C.ravel())
    best, result = oracles.best(problem), gm.assign(C)
    judge(Trial(0), problem, result, best)
    worse = np.array([0, 1, 2])
    false = [
        changed(result, objective=4),
        changed(result, objective=5.0),
        changed(result, gap=-1),
        changed(result, gap=1),
        changed(result, proven=False),
        changed(result, size=2),
        changed(result, col_to_row=worse),
        changed(result, pair_costs=result.pair_costs + 1),
        changed(result, row_to_col=worse, col_to_row=worse, objective=6, pair_costs=C.diagonal()),
        changed(
            result, proven=False, row_to_col=worse, col_to_row=worse, objective=6,
            pair_costs=C.diagonal(),
        ),
    ]  # fmt: skip
    for claim in false:
        with pytest.raises(Wrong):
            judge(Trial(0), problem, claim, best)


def test_judgement_asks_for_pairs_within_the_limit():
    rows = cols = np.arange(1)
    problem = Problem((1, 1), rows, cols, np.array([2]), limit=2)
    nobody = np.array([-1])
    claim = SimpleNamespace(
        row_to_col=nobody, col_to_row=nobody, size=0, objective=0, gap=0, proven=True,
        pair_costs=np.zeros(0, int), row_dual=np.zeros(1), col_dual=np.zeros(1),
    )  # fmt: skip
    with pytest.raises(Wrong, match="within the limit"):
        judge(Trial(0), problem, claim, oracles.best(problem))
    judge(Trial(0), dataclasses.replace(problem, limit=1), claim, oracles.best(problem))


def test_a_seed_draws_the_same_problem_again():
    """Also if its door is given, as in the command that a fault is printed with."""
    one = Trial(7)
    first = run(one)
    for other in (Trial(7), Trial(7, door=first.door)):
        outcome = run(other)
        assert outcome.kind == first.kind == "ok"
        assert outcome[:4] == first[:4]
        assert repr(other.notes) == repr(one.notes)


def test_a_fault_is_shrunk_as_far_as_it_stays(monkeypatch):
    from tests.fuzz import doors

    def fails(trial):
        size = trial.scaled(trial.integer(50, 60))
        trial.sized(size)
        if size > 10:
            raise Wrong("too large")

    monkeypatch.setitem(doors.DOORS, "fails", doors.Door(fails, 0))
    outcome = run(Trial(3, door="fails"))
    smallest = shrunk(outcome, "cpu", 60)
    assert (outcome.name, smallest.name) == ("3", "3/4")
    assert "too large" in smallest.message


@pytest.mark.parametrize(
    ("count", "name"), [(0, "< 2^8"), (2**17 - 1, "< 2^17"), (2**17, "< 2^18"), (2**21, ">= 2^21")]
)
def test_size_classes(count, name):
    assert class_of(count) == name


# -- processes -------------------------------------------------------------------------------------


def test_a_crash_and_a_hang_are_reported_with_their_seeds():
    report = Report()
    run_seeds(
        iter(range(5)), seconds=60, jobs=2, backend="cpu", limit=0.5, door="assign",
        report=report.add, serve=serve_badly,
    )  # fmt: skip
    found = sorted((outcome.seed, outcome.kind) for outcome in report.faults)
    assert found == [(1, "crashed"), (2, "hung")]
    assert report.total == 5
    assert "5 problems" in str(report)
    assert "2 faults of 2 kinds" in str(report)
    assert report.to_dict()["by size class"]["< 2^8"] == 3
