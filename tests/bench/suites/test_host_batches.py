"""The suite of batches and frames on the CPU: what it measures, and that all of it works."""

from __future__ import annotations

import numpy as np
import pytest

from bench.__main__ import main
from bench.harness import Limits
from bench.suites import host_batches


def drawn(family, shape):
    batch = host_batches.HostBatch(family, shape)
    return host_batches.OnHost(batch, np.array([1]), "cpu")


def test_integers_are_drawn_as_integers():
    assert drawn("integers", (2, 5, 5)).costs.dtype == np.int32


@pytest.mark.parametrize("family", host_batches.GATES)
def test_all_agree_on_frames(family):
    problem = drawn(family, (4, 6, 9))
    for solver in host_batches.contenders("cpu", 1):
        if host_batches.HostBatch(family, (4, 6, 9)).takes(solver.name):
            assert len(solver.measure(problem, Limits(repeats=1))["seconds"]) == 1


def test_a_gate_leaves_rows_without_a_column():
    problem = drawn("frames-limited", (40, 2, 2))
    pairs = host_batches.scipys(problem)()
    paid = [costs[rows, cols] for costs, (rows, cols) in zip(problem.costs, pairs)]
    assert 0 < sum(own.size for own in paid) < 80
    assert np.concatenate(paid).max() <= host_batches.GATE


def test_the_quick_suite_measures_and_reports(tmp_path, capsys):
    out = str(tmp_path / "out.json")
    arguments = ["host-batches", "--out", out, "--cache", str(tmp_path), "--quick"]
    assert main([*arguments, "--repeats", "1"]) == 0
    assert main(["report", out]) == 0
    printed = capsys.readouterr().out
    assert "loop takes" in printed
    assert "with all threads from 32² on" in printed
    assert "frames-maximum" in printed
    assert "**" not in printed
