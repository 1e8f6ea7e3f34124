"""The suite of weighted matchings of any graph runs, and its report has each contender."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("networkx")

from bench import __main__ as bench
from bench.suites import general


def test_a_quick_run(tmp_path, capsys):
    out = tmp_path / "general.json"
    ours = [general.SUITOR, general.HALF, general.ENGINE, general.NETWORKX]
    run = ["general", "--quick", "--device", "cpu", "--out", str(out), "--cache", str(tmp_path)]
    assert bench.main([*run, "--repeats", "1", "--contenders", *ours]) == 0
    data = json.loads(out.read_text())
    assert len(data["graphs"]) == len(general.WEIGHTS)
    for graph in data["graphs"].values():
        results = graph["results"]
        assert set(results) == set(ours)
        best = results[general.ENGINE]["objective"]
        assert results[general.NETWORKX]["objective"] == pytest.approx(best)
        for name in ours[:2]:
            assert best / 2 <= results[name]["weight"] <= best * (1 + 1e-9)
            assert results[name]["bound"] >= best * (1 - 1e-9)
    said = general.report(data, 0.0)
    assert all(name in said for name in (*data["graphs"], general.SUITOR))


def test_exact_contenders_are_not_asked_for_large_graphs():
    large = max(general.instances(quick=False, data=None), key=lambda one: one.edges)
    assert not large.takes(general.NETWORKX)
    assert large.takes(general.SUITOR)
