"""The suite of networkx's functions runs, and what is kept of it shows what is promised."""

from __future__ import annotations

import json
import statistics

import pytest

pytest.importorskip("networkx")

from bench import __main__ as bench
from bench.suites import networkx_backend

RECORD = bench.RESULTS / "networkx-2cores.json"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs")
def test_a_quick_run(tmp_path, capsys):
    out = tmp_path / "out.json"
    chosen = ("--graphs", "*nodes", "--cache", str(tmp_path), "--repeats", "1")
    run = ["networkx-backend", "--quick", "--device", "cpu", "--out", str(out), *chosen]
    assert bench.main(run) == bench.DONE
    assert bench.main(["report", str(out)]) == bench.DONE
    assert "failed" not in out.read_text()
    assert "minimum_weight_full_matching, 100 nodes" in capsys.readouterr().out


def test_networkx_is_not_asked_to_fill_80_gigabytes():
    whole = networkx_backend.instances(quick=False, data=None)
    large = [one for one in whole if one.name == "minimum_weight_full_matching, 200000 nodes"]
    assert [one.takes("networkx") for one in large] == [False]
    assert [one.takes("gpumatch") for one in large] == [True]


def test_what_was_measured_shows_what_is_promised():
    graphs = json.loads(RECORD.read_text())["graphs"]

    def seconds(name, contender):
        return statistics.median(graphs[name]["results"][contender]["seconds"])

    large = "hopcroft_karp_matching, 200000 nodes"
    assert seconds(large, "networkx") > 20 * seconds(large, "gpumatch")
    assert seconds("minimum_weight_full_matching, 200000 nodes", "gpumatch") < 10
    loaded = graphs["import networkx"]["results"]["import"]
    assert statistics.median(loaded["seconds"]) - statistics.median(loaded["without"]) < 0.02


@pytest.mark.long
def test_an_import_is_measured():
    with_ours, _ = networkx_backend._load("ours")
    without, _ = networkx_backend._load("without")
    assert 0 < without < 10 * with_ours
