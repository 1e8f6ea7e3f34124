"""Tables 4 and 5 from stored results of several GPUs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.suites import ranks_gpu


def run(n, ranks, seconds, pricing, dtype="int32", algorithm="engine"):
    steps = {"pricing": pricing, "core": seconds - pricing}
    return {
        "n": n, "ranks": ranks, "seconds": seconds, "steps": steps, "verify": 1.0,
        "algorithm": algorithm, "dtype": dtype,
    }  # fmt: skip


def test_the_model_divides_what_reads_costs_and_nothing_else():
    data = {"measured": [run(10_000, 1, 10.0, 8.0), run(10_000, 2, 7.0, 4.0)]}
    results = ranks_gpu.Results(data, "engine", "int32")
    assert results.modelled(10_000, 1) == 10
    assert results.modelled(10_000, 2) == 7
    assert results.modelled(10_000, 4) == pytest.approx(8 / 4 + 3)
    assert results.strong(10_000, 4) == pytest.approx(10 / (4 * 5))
    assert results.modelled(14_142, 4) is None


def test_in_the_model_each_doubling_makes_each_meeting_longer():
    runs = [
        {**run(10_000, ranks, 10.0, 8.0), "communication": {"calls": 50_000}} for ranks in (1, 2)
    ]
    latency = {"by_gpus": {"1": {"8": [0, 0, 40.0]}, "2": {"8": [0, 0, 60.0]}}}
    results = ranks_gpu.Results({"measured": runs, "latency": latency}, "engine", "int32")
    assert results.modelled(10_000, 8) == pytest.approx(8 / 8 + 2 + 2 * 1.0)


def test_where_one_gpu_has_no_room_two_say_what_scales():
    results = ranks_gpu.Results({"measured": [run(10_000, 2, 7.0, 4.0)]}, "engine", "int32")
    assert results.modelled(10_000, 8) == pytest.approx(8 / 8 + 3)
    assert results.strong(10_000, 8) is None


def test_rows_that_were_not_measured_have_a_power_law():
    runs = [run(n, ranks, n / 1000, 0.0) for n in (10_000, 14_142, 20_000) for ranks in (1, 2)]
    results = ranks_gpu.Results({"measured": runs}, "engine", "int32")
    assert results.extrapolated(14_142, 2) == pytest.approx(14.142)
    assert results.extrapolated(40_000, 16) == pytest.approx(40)
    assert ranks_gpu.Results({"measured": runs[:2]}, "engine", "int32").extrapolated(5, 2) is None


def test_repeated_runs_count_with_their_median():
    data = {"measured": [run(10_000, 1, seconds, 1.0) for seconds in (3.0, 9.0, 4.0)]}
    assert ranks_gpu.Results(data, "engine", "int32").median(10_000, 1) == 4


def tree(n, ranks, search, proven=True):
    """A run whose columns took a second to divide."""
    one = run(n, ranks, search + 1, 0.0, algorithm="hungarian-tree")
    return {**one, "steps": {"division of columns": 1.0, "forward pass": search}, "proven": proven}


def test_the_model_of_trees_goes_through_both_measurements():
    data = {"measured": [tree(10_000, 1, 10.0), tree(10_000, 2, 7.0)]}
    results = ranks_gpu.Trees(data, "hungarian-tree", "int32")
    assert [results.modelled(10_000, p) for p in (1, 2, 4)] == pytest.approx([10, 7, 5.5])
    assert results.modelled(14_142, 4) is None


def test_trees_have_tables_once_they_were_measured_to_the_end():
    data = {"runs": [], "measured": [tree(10_000, 1, 10.0, proven=False)]}
    assert "trees" not in ranks_gpu.report(data)
    data["measured"] = [tree(10_000, 1, 9.0), tree(14_142, 2, 12.0)]
    report = ranks_gpu.report(data)
    assert "| 10,000 | 1 | measured | 9.00 | 1.00 | 9.00 | 16.52 | 1.00 |" in report
    assert "| 14,142 | 2 | measured | 0.75 | 0.80 |" in report


def test_a_report_without_any_run_has_the_papers_figures(tmp_path, capsys):
    file = Path(tmp_path) / "out.json"
    data = {"suite": "ranks-gpu", "settings": {"threshold": 0.0}, "runs": [], "measured": []}
    file.write_text(json.dumps(data))
    assert main(["report", str(file)]) == 0
    assert "| 20,000 | 16 | model |" in capsys.readouterr().out
