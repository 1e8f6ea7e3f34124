"""The suite of sparse assignment: instances, ratios, and a run of all of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from bench import harness
from bench.__main__ import main
from bench.costs import CostInstance
from bench.harness import Limits
from bench.instances import Instance
from bench.sparse_costs import SparseInstance, logarithms
from bench.sparse_solvers import Engine, InTurns
from bench.suites import sparse_assignment
from bench.suites.batches import Batch
from bench.suites.linear_solvers import MatrixInstance


def graph(**seconds):
    """A problem's results: a contender's seconds, and ours in turns with it if there are two."""
    results = {}
    for name, value in seconds.items():
        theirs, ours = value if isinstance(value, tuple) else (value, None)
        results[name] = {"seconds": [theirs], "size": 9} | ({"ours": [ours]} if ours else {})
    return {"rows": 9, "entries": 30, "cardinality": "full", "results": results}


def reported(threshold, **graphs):
    return sparse_assignment.report({"runs": [], "graphs": graphs}, threshold)


def test_there_are_enough_instances_of_many_families():
    given = sparse_assignment.instances(quick=False, data="nowhere")
    assert len({one.name for one in given}) == len(given) >= 24
    assert len({one.family for one in given}) >= 9


def test_the_best_rival_counts_by_its_turns_with_ours():
    one = graph(engine=1.0, spral=(6.0, 2.0), scipy=4.0)
    one["results"]["spral"]["work"] = [5.0, 4.0, 9.0]
    text = reported(0.05, a=one, b=graph(engine=0.001, scipy=0.002))
    assert "| a | 9 | 30 | full | 1e+03 | 6e+03 | 4e+03 | 3 | 5 |" in text
    assert "it takes 3 times as long as the engine (geometric mean, 1 problems)" in text
    assert "3 times at least, on a." in text
    assert "it takes 5 times as long as the engine of processor time" in text
    assert "times as long" not in reported(5.0, a=one)


def test_a_gpu_has_a_column_and_is_compared_on_large_problems():
    one = graph(**{"engine": 0.3, "or-tools": 0.8, "spral": 0.6, sparse_assignment.ON_GPU: 0.02})
    small = {**one, "rows": 9}
    text = reported(0.05, a={**one, "rows": sparse_assignment.LARGE}, b=small)
    assert "| engine ms | engine on the GPU ms | or-tools ms |" in text
    assert "| b | 9 | 30 | full | 300 | 20 | 800 | 600 |" in text
    assert "the fastest rival takes 30 times as long as the engine on the GPU" in text
    assert "the engine on the CPU takes 15 times as long" in text
    assert "(geometric mean, 1 problems), 15 times at least, on a." in text
    assert "on the GPU" not in reported(0.05, a=graph(engine=0.3, spral=0.6))


def test_rivals_that_want_full_assignments_get_no_others():
    one = SparseInstance("a", "spread", ("spread", 9), "maximum")
    known = ("engine", "or-tools", "spral", "scipy")
    assert [one.takes(name) for name in known] == [True, False, True, False]


def test_logarithms_are_those_of_entries_scaled_by_columns():
    matrix = csr_array(np.array([[1.0, -4.0, 0.0], [math.e, 0.0, 5.0]]))
    found = logarithms(matrix)
    assert np.allclose(found.toarray(), [[1, 0, 0], [0, 0, 0]])
    assert found.nnz == 4


def problem():
    instance = SparseInstance("a", "spread", ("spread", 50))
    return sparse_assignment.problem(instance, instance.original(), "cpu")


def test_the_engine_s_answer_is_checked(monkeypatch):
    found = Engine("engine", 1).measure(problem(), Limits(repeats=1))
    assert found["size"] == 50
    monkeypatch.setattr(gm, "verify", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Engine("engine", 1).measure(problem(), Limits(repeats=1))


def test_a_rival_runs_in_turns():
    rival = InTurns("rival", lambda given: lambda: lambda: (50, 1.5), Engine("engine", 1))
    found = rival.measure(problem(), Limits(repeats=3, budget=math.inf))
    assert len(found["ours"]) == len(found["seconds"]) == len(found["work"]) == 3
    assert (found["size"], found["reached"]) == (50, 1.5)


@pytest.mark.long
def test_the_quick_suite_measures_and_reports(tmp_path, capsys):
    out = tmp_path / "results.json"
    common = ["--out", out, "--cache", tmp_path / "costs", "--quick", "--repeats", 1]
    assert main([*map(str, ["sparse-assignment", *common, "--device", "cpu"])]) == 0
    stored = harness.read(out)["graphs"]
    assert len(stored) == 3
    for name, one in stored.items():
        assert not any("failed" in found for found in one["results"].values()), name
        assert ("scipy" in one["results"]) == (one["cardinality"] == "full")
    one = stored["mesh-7"]["results"]
    assert one["engine"]["objective"] == one["scipy"]["reached"]
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "best rival / engine" in capsys.readouterr().out


def test_suites_keep_what_has_the_same_name_in_files_of_their_own():
    """`bayer10` is a graph, a matrix, and the costs that its logarithms are."""
    kinds = (Instance, MatrixInstance, SparseInstance, CostInstance, Batch)
    assert len({kind.suffix for kind in kinds}) == len(kinds)
