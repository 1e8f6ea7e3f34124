"""The search for costs that hurt: what it draws, how it scores, and that it keeps the worst."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bench import adversary
from bench.__main__ import main
from bench.adversary import Problem, Score


def drawn(seed, is_dense=False):
    rng = np.random.default_rng(seed)
    first = adversary.draw(rng, 100, is_dense=is_dense)
    return first, [adversary.draw(rng, 100, first, is_dense) for _ in range(20)]


def test_a_seed_draws_the_same_problems():
    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


@pytest.mark.parametrize("is_dense", [False, True])
def test_a_problem_like_another_differs_in_one_parameter_at_most(is_dense):
    first, others = drawn(1, is_dense)
    assert first.is_dense == is_dense
    for other in others:
        names = first.parameters.keys()
        changed = [name for name in names if first.parameters[name] != other.parameters[name]]
        changed += [
            name
            for name in ("change", "share", "rows")
            if getattr(first, name) != getattr(other, name)
        ]
        assert other.family == first.family
        assert len(changed) <= 1
    assert len({str(other) for other in others}) > 5


@pytest.mark.parametrize("change", adversary.CHANGES)
def test_scores_count_readings(change):
    problem = Problem("few_dear", {"n": 60, "degree": 4}, change, 0.3)
    found = adversary.score(problem, 10.0)
    assert 0 < found.ours < 50
    assert 0 < found.other < 50


@pytest.mark.parametrize("share", [None, 0.3])
def test_dense_costs_score_by_processor_time(share):
    problem = Problem("line", {"nrows": 60, "width": 2.0}, "none", share, 0.5)
    assert problem.costs().shape == (30, 60)
    found = adversary.score(problem, 10.0)
    assert found.ours > 0
    assert found.other > 0
    assert Score(6.0, 1.0, found.least).ratio == 3


def test_sparse_costs_of_fewer_rows():
    problem = Problem("few_dear", {"n": 60, "degree": 4}, rows=0.5)
    assert problem.costs().shape == (30, 60)
    assert adversary.score(problem, 10.0).other < math.inf


def test_few_readings_of_the_other_way_count_as_some():
    assert Score(16, 1).ratio == 2
    assert Score(16, 16).ratio == 1
    assert Score(16, math.inf).ratio == 0


def test_the_worst_are_printed_and_written(monkeypatch, tmp_path, capsys):
    """The search looks at more problems than it keeps, here of made scores."""
    numbers = iter(range(1000))
    monkeypatch.setattr(adversary, "score", lambda *_: Score(float(next(numbers)), 10.0))
    times = iter(range(100))
    monkeypatch.setattr(adversary.time, "monotonic", lambda: float(next(times)))
    out = tmp_path / "worst.json"
    assert main(["adversary", "--minutes", "0.5", "--size", "50", "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    count, worst = found["problems"], found["worst"]
    assert 20 < count <= 29  # no problem twice
    assert [one["ours"] for one in worst] == [float(k) for k in range(count - 1, count - 21, -1)]
    told = {str({**one, "ours": 0, "ratio": 0}) for one in worst}
    assert len(told) == len(worst)
    assert capsys.readouterr().out.startswith(f"{(count - 1) / 10:6.2f} = {count - 1}.0 / 10.0 ")
