"""The suite of large dense costs: what it compares, and a run of all of it."""

from __future__ import annotations

import pytest

from bench import harness
from bench.__main__ import main
from bench.suites import large_dense


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


def test_on_a_gpu_the_default_is_beside_its_parts_and_the_cpu():
    names = [contender.name for contender in large_dense.contenders("cuda", 4)]
    assert names == ["engine", "hungarian-tree", "auction", "engine on the CPU"]
    results = {name: {"seconds": [seconds]} for seconds, name in enumerate(names, start=1)}
    graph = {"group": "plane-9", "results": results}
    assert large_dense.to_best(graph).seconds == 2.0
    text = large_dense.report({"graphs": {"plane-9-s0": graph}, "runs": []}, 0.0)
    assert "The whole call on the GPU" in text
    assert "| plane-9 | 1e+03 | 2e+03 | 3e+03 | 4e+03 | 2 |" in text
