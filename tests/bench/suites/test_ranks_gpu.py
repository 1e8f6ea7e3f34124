"""Tables 4 and 5 from stored results of several GPUs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.report.ranks_published import COMPRESSION, OVERALL, SEARCH, TABLE4, TABLE5
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
    assert results.seconds(10_000, 1) == 10
    assert results.seconds(10_000, 2) == 7
    assert results.seconds(10_000, 4) == pytest.approx(4 / 2 + 3)
    assert results.strong(10_000, 4) == pytest.approx(10 / (4 * 5))
    assert results.seconds(14_142, 4) is None


def test_the_model_begins_with_the_most_gpus_that_were_measured():
    data = {"measured": [run(10_000, 2, 7.0, 4.0), run(10_000, 4, 6.5, 3.0)]}
    results = ranks_gpu.Results(data, "engine", "int32")
    assert results.seconds(10_000, 8) == pytest.approx(3 / 2 + 3.5)


def test_what_was_measured_takes_the_place_of_the_model():
    runs = [run(10_000, 1, 10.0, 8.0), run(10_000, 2, 7.0, 4.0)]
    results = ranks_gpu.Results({"measured": runs}, "engine", "int32")
    assert [results.how(10_000, p) for p in (1, 2, 4)] == ["measured", "measured", "model"]
    assert results.how(20_000, 4) == "not measured yet"
    results = ranks_gpu.Results({"measured": [*runs, run(10_000, 4, 6.5, 2.0)]}, "engine", "int32")
    assert (results.how(10_000, 4), results.seconds(10_000, 4)) == ("measured", 6.5)


def test_in_the_model_each_doubling_makes_each_meeting_longer():
    runs = [
        {**run(10_000, ranks, 10.0, 8.0), "communication": {"calls": 50_000}} for ranks in (1, 2)
    ]
    latency = {"by_gpus": {"1": {"8": [0, 0, 40.0]}, "2": {"8": [0, 0, 60.0]}}}
    results = ranks_gpu.Results({"measured": runs, "latency": latency}, "engine", "int32")
    assert results.seconds(10_000, 8) == pytest.approx(8 / 4 + 2 + 2 * 1.0)


def test_where_one_gpu_has_no_room_two_say_what_scales():
    results = ranks_gpu.Results({"measured": [run(10_000, 2, 7.0, 4.0)]}, "engine", "int32")
    assert results.seconds(10_000, 8) == pytest.approx(8 / 8 + 3)
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


def tree(n, ranks, search, proven=True, *, division=1.0):
    """A run whose columns took a second to divide, or were divided within another step."""
    one = run(n, ranks, search + 1, 0.0, algorithm="hungarian-tree")
    steps = {"forward pass": search - 0.25, "reverse and augmentation": 0.25}
    apart = {} if division is None else {"division of columns": division}
    return {**one, "steps": {**steps, **apart}, "proven": proven}


def test_trees_have_one_basis_and_no_model():
    """The whole call, however its steps were timed."""
    data = {"measured": [tree(10_000, 1, 10.0, division=None), tree(10_000, 2, 7.0)]}
    results = ranks_gpu.Results(data, "hungarian-tree", "int32")
    assert [results.seconds(10_000, p) for p in (1, 2, 4)] == [11.0, 8.0, None]
    assert results.how(10_000, 4) == "not measured yet"
    assert results.strong(10_000, 2, SEARCH) == pytest.approx(10 / (2 * 7))


def test_tables_of_the_trees():
    data = {"runs": [], "measured": [tree(10_000, 1, 10.0, proven=False)]}
    assert "| 10,000 | 1 | not measured yet |  |  |  |  |  |\n" in ranks_gpu.report(data)
    data["measured"] = [tree(10_000, 1, 9.0, division=None), tree(14_142, 2, 12.0)]
    lines = ranks_gpu.report(data).split("\n")
    assert lines.count("| 10,000 | 1 | measured | 9.00 | 1.00 | 10.00 | 1.00 | not apart |") == 2
    assert "| 10,000 | 1 | *paper's* | 15.20 | 1.00 | 16.52 | 1.00 |  |" in lines
    assert "| 14,142 | 2 | measured | 12.00 | 0.75 | 13.00 | 0.77 | 1.00 |" in lines


def test_tables_of_the_classical_variant():
    """Its columns are the paper's; the model has the last one only."""
    steps = {"matrix compression": 8.0, "forward pass": 1.0, "reverse and augmentation": 0.5}
    runs = [
        {**run(10_000, p, 2.0 + 8.0 / p, 0.0, algorithm="hungarian-classical"),
         "steps": {**steps, "matrix compression": 8.0 / p}}
        for p in (1, 2)
    ]  # fmt: skip
    lines = ranks_gpu.report({"runs": [], "measured": runs}).split("\n")
    assert "| 10,000 | 2 | measured | 4.00 | 1.00 | 1.50 | 0.50 | 6.00 | 0.83 |" in lines
    assert "| 10,000 | 2 | *paper's* | 1.89 | 0.97 | 4.97 | 0.50 | 8.15 | 0.68 |" in lines
    assert "| 10,000 | 4 | model |  |  |  |  | 4.00 | 0.62 |" in lines
    (told,) = (line for line in lines if line.startswith("- "))
    assert told.startswith("- Two GPUs take 60 percent of the seconds of one, overall, at n = 10")
    assert told.endswith("; 74 percent in the paper.")


def test_figures_tell_measured_points_from_modelled_ones():
    data = {"measured": [run(10_000, 1, 10.0, 8.0), run(10_000, 2, 7.0, 4.0)]}
    results = ranks_gpu.Results(data, "engine", "int32")
    points = ranks_gpu.strong_points(results, 10_000)
    assert [point.is_measured for point in points] == [True, True, False, False, False]
    assert ranks_gpu.strong_points(results, 10_000, COMPRESSION) == []
    assert [point.gpus for point in ranks_gpu.weak_points(results)] == [1]
    pytest.importorskip("matplotlib")
    assert ranks_gpu.figures(data).keys() == {"figure4", "figure5"}


def test_a_run_takes_the_place_of_earlier_ones_of_its_problem():
    data = {"runs": [{}, {}], "measured": []}
    data["measured"] = [
        {**one, "run": 0}
        for one in (tree(10_000, 1, 5.0), tree(10_000, 2, 4.0), run(10_000, 1, 1.0, 0.5))
    ]
    for seconds in (7.0, 8.0):
        ranks_gpu.add(data, {**tree(10_000, 1, seconds), "pairs": 0})
    kept = [(m["algorithm"], m["ranks"], m["seconds"], m["run"]) for m in data["measured"]]
    assert kept == [
        ("hungarian-tree", 2, 5.0, 0),
        ("engine", 1, 1.0, 0),
        ("hungarian-tree", 1, 8.0, 1),
        ("hungarian-tree", 1, 9.0, 1),
    ]


@pytest.mark.parametrize(("table", "share"), [(TABLE4, 1), (TABLE5, 0)])
def test_printed_efficiencies_are_those_of_the_printed_seconds(table, share):
    """As far as both are rounded; so a misread number shows."""
    for published in table.values():
        (first, *_), columns = published, published[10_000, 1]
        assert first == (10_000, 1)
        for (n, gpus), printed in published.items():
            for column in columns:
                one = published[10_000 if share else n, 1][column].seconds
                of = one / printed[column].seconds / (1 if share else gpus)
                assert of == pytest.approx(printed[column].efficiency, abs=0.01)
    assert TABLE5["hungarian-classical"][20_000, 16][OVERALL].seconds == 12.03


def test_a_report_without_any_run_has_the_papers_figures(tmp_path, capsys):
    file = Path(tmp_path) / "out.json"
    data = {"suite": "ranks-gpu", "settings": {"threshold": 0.0}, "runs": [], "measured": []}
    file.write_text(json.dumps(data))
    assert main(["report", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "| 20,000 | 16 | not measured yet |" in printed
    assert "| 20,000 | 16 | *paper's* | 1.20 | 0.80 | 8.48 | 0.06 | 12.03 | 0.15 |" in printed
