"""The suite of large dense costs: what it compares, and a run of all of it."""

from __future__ import annotations

import pytest

from bench import harness, large_dense
from bench.__main__ import main


def test_pot_is_not_among_the_others_for_assignment():
    taken = {"engine": 1.0, "auction": 3.0, "lapx": 2.0, "pot": 0.5}
    graph = {"results": {name: {"seconds": [seconds]} for name, seconds in taken.items()}}
    assert large_dense.to_best(graph).seconds == 2.0
    assert large_dense.to_best({"results": {"engine": {"seconds": [1.0]}}}) is None


@pytest.mark.long
def test_the_quick_suite_measures_and_reports(tmp_path, capsys):
    out = tmp_path / "results.json"
    arguments = ["large-dense", "--out", out, "--cache", tmp_path / "costs", "--quick"]
    assert main([*map(str, arguments), "--repeats", "2"]) == 0
    stored = harness.read(out)["graphs"]
    assert len(stored) == 11
    for one in stored.values():
        assert {"engine", "auction"} <= one["results"].keys()
        assert not any("failed" in found for found in one["results"].values())
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "best of the others / engine" in capsys.readouterr().out
