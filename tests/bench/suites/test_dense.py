"""The suite of dense assignment on the CPU: ratios and means, and a run of all of it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import gpumatch as gm
from bench import harness
from bench.__main__ import main
from bench.costs import uniform, wide
from bench.harness import Limits
from bench.suites import dense
from graphs import costs


def problem(group, **seconds):
    """A problem's results: a contender's seconds, or the cap it exceeded where negative."""
    results = {
        name: {"seconds": [value], "size": 9}
        if value > 0
        else {"failed": "slow", "at_least": -value}
        for name, value in seconds.items()
    }
    return {"group": group, "results": results}


def reported(*problems):
    return dense.report({"runs": [], "graphs": {p["group"]: p for p in problems}}, 0.0)


def test_a_ratio_above_one_is_ours_the_faster():
    text = reported(problem("a-9", gpumatch=0.002, scipy=0.006, lapx=0.001))
    assert "| a-9 | 2 | 6 | 1 | 3 | 0.5 |" in text


def test_means_and_the_worst_problem():
    text = reported(
        problem("a-9", gpumatch=1.0, scipy=2.0), problem("b-9", gpumatch=1.0, scipy=-8.0)
    )
    assert "| b-9 | 1e+03 | ≥ 8e+03 | ≥ 8 |" in text
    assert "scipy takes ≥ 4 times as long (geometric mean, 2 problems), 2 times at least" in text
    assert "on a-9." in text
    assert "lapx" not in text


def test_where_they_took_turns_ratios_are_of_the_same_run():
    one = problem("a-9", gpumatch=1.0, scipy=1.0)
    one["results"]["scipy"] |= {"seconds": [2.0, 40.0, 9.0], "ours": [1.0, 10.0, 3.0]}
    text = reported(one)
    assert "| a-9 | 1e+03 | 9e+03 | 3 |" in text
    assert "scipy takes 3 times as long" in text
    one["results"]["scipy"]["failed"] = "objective 3, others [2]"
    assert "times as long" not in reported(one)


def test_who_takes_turns_must_find_the_same_total(monkeypatch, tmp_path):
    instance = uniform(5, 10.0)
    instance.save(instance.original(), tmp_path / "costs.npy")
    given = dense.problem(instance, tmp_path / "costs.npy", "cpu")
    found = dense.InTurns("scipy").measure(given, Limits(repeats=3, budget=math.inf))
    assert len(found["ours"]) == len(found["seconds"]) == 3
    diagonal = np.arange(5), np.arange(5)
    monkeypatch.setattr(gm.optimize, "linear_sum_assignment", lambda *_: diagonal)
    with pytest.raises(ValueError, match="ours is"):
        dense.InTurns("scipy").measure(given, Limits(repeats=3))


def test_every_family_is_there_at_every_size():
    groups = {instance.group for instance in dense.instances(quick=False, data=None)}
    for kind in (*dense.KINDS, *dense.STORED, "geom"):
        assert {f"{kind}-{n}" for n in dense.SIZES} <= groups
    for family in {family for family, _ in dense.KINDS.values()}:
        assert {f"{family}-{n}x{2 * n}" for n in dense.WIDE} <= groups
    assert {f"uniform-5000-x{factor:g}" for factor in dense.FACTORS} <= groups


def test_a_wide_problem_tells_its_shape():
    instance = wide("machol_wien", (3, 6), "int64", ("gpumatch", "scipy"))
    facts = instance.facts(instance.original())
    assert (facts["rows"], facts["entries"]) == (3, 18)
    assert [instance.takes(name) for name in (dense.OURS, *dense.PEERS)] == [True, True, False]


def test_small_problems_are_stacks_of_different_ones():
    counts = {one.group: one.count for one in dense.instances(quick=False, data=None)}
    assert counts["geom2-50"] == counts["geom2-30x60"] == counts["half-3"] == dense.STACK
    assert counts["geom2-100"] == counts["constant-3"] == counts["uniform-5000-x1"] == 1
    few = dataclasses.replace(wide("geom2", (2, 3), "float32", ("*",)), seed=1, count=3)
    stack = few.original()
    assert (stack.shape, stack.dtype) == ((3, 2, 3), np.float32)
    assert (stack[2] == costs.geom2(2, 3, seed=5).astype("f4")).all()
    assert (stack[0] != stack[1]).any()
    assert few.facts(stack)["entries"] == 6


@pytest.mark.long
def test_the_quick_suite_measures_and_reports(tmp_path, capsys):
    out = tmp_path / "results.json"
    arguments = ["dense", "--out", out, "--cache", tmp_path / "costs", "--quick", "--repeats", 2]
    assert main([*map(str, arguments)]) == 0
    stored = harness.read(out)["graphs"]
    assert len(stored) == 19
    for one in stored.values():
        assert {"gpumatch", "scipy"} <= one["results"].keys()
        assert not any("failed" in found for found in one["results"].values())
        assert len(one["results"]["scipy"]["ours"]) == len(one["results"]["scipy"]["seconds"])
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "scipy / gpumatch" in capsys.readouterr().out
