"""The suite of costs that hurt: its problems, its contenders in turns, and what the report says."""

from __future__ import annotations

import numpy as np
import pytest

from bench import harness
from bench.__main__ import main
from bench.harness import Limits
from bench.suites import adversarial
from graphs import adversarial as families

NAMES = {"or_tools": "or-tools", "engine_on_the_GPU": "engine on the GPU"}
QUICK = adversarial.instances(quick=True, data=None)


def graph(family, rows, **results):
    """Stored results: the engine's seconds, and of others theirs beside the engine's."""
    made = {"engine": {"seconds": [results.pop("engine")]}}
    for name, (theirs, ours) in results.items():
        made[NAMES.get(name, name)] = {"seconds": [theirs], "ours": [ours]}
    return {"family": family, "rows": rows, "entries": 30, "results": made}


def test_each_family_has_three_sizes():
    given = adversarial.instances(quick=False, data="nowhere")
    assert len({one.name for one in given}) == len(given)
    by_family = {one.family for one in given}
    assert by_family >= {*families.SPARSE, *families.DENSE, "line width 2"}
    assert by_family >= {"far_clusters few values", "nearest_matched rows 0.9", "line rows 0.7"}
    for family in by_family - {"nearest_matched k 24"}:
        assert len([one for one in given if one.family == family]) == 3


@pytest.mark.parametrize("instance", QUICK, ids=lambda one: one.family)
def test_contenders_find_the_same_total(instance):
    problem = adversarial.problem(instance, instance.original(), "cpu")
    limits = Limits(cap=60.0, budget=0.0, repeats=1)
    known = [one for one in adversarial.contenders("cpu", 1) if instance.takes(one.name)]
    assert len(known) >= 3
    engine, *others = (one.measure(problem, limits) for one in known)
    for found in others:
        assert found["reached"] == pytest.approx(engine["objective"], rel=1e-6)
        assert len(found["ours"]) == len(found["seconds"])


@pytest.mark.parametrize("instance", adversarial.instances(quick=False, data=None)[::3])
def test_each_family_is_what_its_name_says(instance):
    """The smallest of each: their number of rows, and whether all costs are given."""
    nrows, ncols = instance.problem.costs().shape
    assert instance.name == f"{instance.family} {ncols}".replace(" ", "-")
    assert ("rows" in instance.family) == (nrows < ncols)
    assert instance.takes("or-tools") == (not instance.problem.is_dense and nrows == ncols)


def test_dense_costs_are_solved_as_an_array():
    instance = QUICK[1]
    problem = adversarial.problem(instance, instance.original(), "cpu")
    expected = families.make("line", 60, seed=1)
    assert QUICK[2].problem.is_dense
    assert isinstance(problem.costs, np.ndarray)
    assert (problem.costs == expected).all()
    assert instance.takes("scipy")
    assert not instance.takes("or-tools")


def test_the_report_has_ratios_and_exponents():
    graphs = {
        "a": graph("line", 100, engine=0.1, scipy=(0.4, 0.2), lapx=(0.9, 0.3), auction=(0.1, 0.2)),
        "b": graph("line", 1000, engine=10.0, scipy=(30.0, 5.0)),
        "c": graph("outer", 100, engine=1e-5, scipy=(4e-5, 1e-5)),
    }
    text = adversarial.report({"runs": [], "graphs": graphs}, 0.01)
    assert "| a | 100 | 30 | 100 |" in text
    assert "the best rival takes 3.46 times as long as the engine" in text
    assert "2 times at least, on a." in text
    assert "the best of our own algorithms takes 0.5 times as long" in text
    assert "| line | 2.00 |" in text
    assert "| outer |" not in text


def test_the_report_compares_a_gpu_on_large_problems():
    graphs = {
        "a": graph("far_clusters", 50_000, engine=0.6, engine_on_the_GPU=(0.2, 0.6)),
        "b": graph("far_clusters", 20_000, engine=0.1, engine_on_the_GPU=(0.2, 0.1)),
    }
    text = adversarial.report({"runs": [], "graphs": graphs}, 0.01)
    assert "the engine on the CPU takes 3 times as long as on the GPU" in text


@pytest.mark.long
def test_the_quick_suite_measures_and_reports(tmp_path, capsys):
    out = tmp_path / "results.json"
    common = ["--out", out, "--cache", tmp_path / "costs", "--quick", "--repeats", 1]
    assert main([*map(str, ["adversarial", *common, "--device", "cpu"])]) == 0
    stored = harness.read(out)["graphs"]
    assert set(stored) == {one.name for one in QUICK}
    for name, one in stored.items():
        assert not any("failed" in found for found in one["results"].values()), name
    capsys.readouterr()
