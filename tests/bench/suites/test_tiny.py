"""The suite `tiny`: it measures, reads what Nsight Compute writes, and reports."""

from __future__ import annotations

import pytest

from bench import harness
from bench.__main__ import main
from bench.instances import generated
from bench.suites import tiny

LOG = """==PROF== Connected to process 7
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","void choose<int>(Choosers<T1>, int)","gpu__time_duration.sum","ns","1,824"
"1","7","cupy_copy__int_int32","gpu__time_duration.sum","ns","960"
==PROF== Disconnected from process 7
"""


def test_the_suite_measures_and_reports(tmp_path, capsys):
    out = tmp_path / "out.json"
    places = ["--out", str(out), "--cache", str(tmp_path)]
    assert main(["tiny", *places, "--quick", "--device", "cpu", "--repeats", "1"]) == 0
    assert main(["report", str(out)]) == 0
    assert "| uniform-3-d1 | 3 | " in capsys.readouterr().out


def test_durations_are_read_from_what_ncu_writes():
    assert tiny.durations_in(LOG.splitlines()) == pytest.approx([1.824e-6, 0.96e-6])


def test_a_report_is_in_microseconds():
    results = {
        "kernels": {"seconds": [5e-5, 4e-5, 7e-5], "size": 1, "kernels": 9},
        "gpu": {"seconds": [4e-4], "size": 1},
    }
    graphs = {"one": {"entries": 1, "results": results}}
    text = tiny.report({"runs": [], "graphs": graphs}, 0.0)
    assert "| one | 1 | 9 | 50 | 400 |" in text


@pytest.mark.gpu
def test_kernels_of_a_call_are_counted():
    if not tiny.Kernels().installed:
        pytest.skip("needs ncu")
    instance = generated("uniform-33-d3", "uniform", 33, 3)
    problem = tiny.problem(instance, instance.make(), "cuda")
    result = tiny.Kernels().measure(problem, harness.Limits())
    assert result["size"] == tiny.Resident("cpu", 1).measure(problem, harness.Limits())["size"]
    assert 3 <= result["kernels"] < 20
    assert len(result["seconds"]) == tiny.CALLS
