"""The suite of the GPU's assignment engine: what is on it, ratios and means."""

from __future__ import annotations

import pytest

from bench.__main__ import main
from bench.suites import assignment


def problem(group, **seconds):
    names = {name: {"seconds": [value], "size": 9} for name, value in seconds.items()}
    results = {name.replace("_", "-"): found for name, found in names.items()}
    return {"group": group, "results": results}


def reported(*problems):
    return assignment.report({"runs": [], "graphs": {p["group"]: p for p in problems}}, 0.0)


def test_the_engine_is_compared_to_the_better_of_the_two():
    text = reported(
        problem("a-9", engine=0.003, hungarian_tree=0.002, auction=0.004),
        problem("b-9", engine=0.003, hungarian_tree=0.009, auction=0.006),
    )
    assert "| a-9 | 3 | 2 | 4 | 1.5 |" in text
    assert "| b-9 | 3 | 9 | 6 | 0.5 |" in text


def test_means_and_where_a_rival_is_nearest():
    text = reported(
        problem("a-9", engine=1.0, hungarian_tree=2.0),
        problem("b-9", engine=1.0, hungarian_tree=0.5),
        problem("c-9", engine=1.0, raft=64.0),
    )
    assert "hungarian-tree takes 1 times as long as the engine (geometric mean, 2 problems)" in text
    assert "0.5 times at least, on b-9." in text
    assert "raft takes 64 times as long" in text
    assert "scipy" not in text.split("\n\n")[-1]


def test_large_problems_are_for_the_gpu_and_raft_takes_integers_alone():
    for case in assignment.instances(quick=False, data=None):
        takers = {name for name in (assignment.ENGINE, *assignment.RIVALS) if case.takes(name)}
        assert {"engine", "hungarian-tree", "auction"} <= takers
        assert ("raft" in takers) == (case.dtype == "int32")
        assert ("scipy" in takers) == (case.source[1] <= assignment.MOST_ON_CPU)


@pytest.mark.long
def test_the_quick_suite_measures_and_reports(tmp_path, capsys):
    out = tmp_path / "results.json"
    arguments = ["assignment", "--out", out, "--cache", tmp_path / "costs", "--quick"]
    assert main([*map(str, arguments), "--device", "cpu"]) == 0
    assert main(["report", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "low_rank-16-20" in printed
    assert "geom2-20x25" in printed
