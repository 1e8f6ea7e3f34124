"""The suite of perfect matchings of points runs; its graphs are symmetric, its contenders agree."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("networkx")

from bench import __main__ as bench
from bench.suites import general_perfect as suite


def test_a_quick_run(tmp_path):
    out, names = tmp_path / "perfect.json", [suite.ENGINE, suite.NETWORKX]
    run = ["general-perfect", "--quick", "--device", "cpu", "--out", str(out)]
    run += ["--cache", str(tmp_path), "--repeats", "1", "--contenders", *names]
    assert bench.main(run) == 0
    data = json.loads(out.read_text())
    assert len(data["graphs"]) == len(suite.instances(quick=True, data=None))
    for graph in data["graphs"].values():
        engine, networkx = (graph["results"][name] for name in names)
        assert engine["objective"] == networkx["objective"] > 0
        assert engine["size"] == networkx["size"] == graph["rows"] // 2
        assert engine["proven"]
    assert suite.ENGINE in suite.report(data, 0.0)


def test_libraries_are_not_asked_for_large_graphs():
    large = max(suite.instances(quick=False, data=None), key=lambda one: one.points)
    assert all(map(large.takes, (suite.ENGINE, suite.LEMON)))
    assert not any(map(large.takes, suite.SMALL))
