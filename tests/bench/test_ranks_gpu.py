"""Tables 4 and 5 from stored results of several GPUs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import ranks_gpu
from bench.__main__ import main


def run(n, ranks, seconds, pricing, dtype="int32"):
    steps = {"pricing": pricing, "core": seconds - pricing}
    return {
        "n": n, "ranks": ranks, "seconds": seconds, "steps": steps, "verify": 1.0,
        "algorithm": "engine", "dtype": dtype,
    }  # fmt: skip


def test_the_model_divides_what_reads_costs_and_nothing_else():
    data = {"measured": [run(10_000, 1, 10.0, 8.0), run(10_000, 2, 7.0, 4.0)]}
    results = ranks_gpu.Results(data, "engine", "int32")
    assert results.modelled(10_000, 1) == 10
    assert results.modelled(10_000, 2) == 7
    assert results.modelled(10_000, 4) == pytest.approx(8 / 4 + 3)
    assert results.strong(10_000, 4) == pytest.approx(10 / (4 * 5))
    assert results.modelled(14_142, 4) is None


def test_repeated_runs_count_with_their_median():
    data = {"measured": [run(10_000, 1, seconds, 1.0) for seconds in (3.0, 9.0, 4.0)]}
    assert ranks_gpu.Results(data, "engine", "int32").median(10_000, 1) == 4


def test_a_report_without_any_run_has_the_papers_figures(tmp_path, capsys):
    file = Path(tmp_path) / "out.json"
    data = {"suite": "ranks-gpu", "settings": {"threshold": 0.0}, "runs": [], "measured": []}
    file.write_text(json.dumps(data))
    assert main(["report", str(file)]) == 0
    assert "| 20,000 | 16 | model |" in capsys.readouterr().out
