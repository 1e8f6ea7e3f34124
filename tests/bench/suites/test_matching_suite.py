"""The suite `matching`: ratios, floors and means on hand-made results, and its figure."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from bench.peers import _write_egr
from bench.report import plots
from bench.suites import matching

GRAPHS = {
    "small": {"rows": 1000, "cols": 1000, "entries": 4300},
    "large": {"rows": 2_000_000, "cols": 2_000_000, "entries": 4_300_000, "product": [1e-4]},
}
SECONDS = {
    "small": {"engine": 1e-3, "ecl-mm": 2e-3, "scipy": 0.5},
    "large": {"engine": 2e-3, "ecl-mm": 16e-3, "scipy": 1.2},
}


@pytest.fixture
def data():
    graphs = {
        name: {**facts, "results": {rival: {"seconds": [t]} for rival, t in SECONDS[name].items()}}
        for name, facts in GRAPHS.items()
    }
    for graph, levels in zip(graphs.values(), ([3, 5], [10, 20])):
        graph["results"]["engine"]["levels"] = levels
    return {"suite": "matching", "settings": {"threshold": 1.0}, "runs": [], "graphs": graphs}


def test_report_gives_ratios_floors_and_means(data):
    text = matching.report(data, 1.0)
    assert "| small | 1000 | 4300 | 1 | 2 | 500 |  | 0.016 |" in text
    assert "| large | 2000000 | 4300000 | 2 | 8 | 600 | 20 | 0.06 |" in text
    assert "ecl-mm: 4 times slower than the engine (geometric mean, 2 graphs), 2 times" in text
    assert "scipy: 600 times slower than the engine (geometric mean, 1 graphs)" in text
    assert "The engine takes 20 products (geometric mean, 1 graphs)." in text


def test_traffic_is_the_floor_of_graphs_with_few_levels(data):
    graph = data["graphs"]["large"]
    graph["results"]["engine"]["levels"] = [1]
    traffic = (4 * 4_300_000 + 20 * 2_000_000) / 4.3e12
    assert matching.floor(graph).seconds == pytest.approx(traffic)


def test_figure_shows_every_rival(data, tmp_path):
    (file,) = plots.draw(data, 1.0, tmp_path)
    assert file.name == "matching-rivals.png"
    axis = plots.rivals(data["graphs"]).axes[0]
    shown = {line.get_label() for line in axis.lines if not line.get_label().startswith("_")}
    assert shown == {"ecl-mm", "scipy"}


def test_ecl_reads_each_edge_from_both_ends(tmp_path):
    _write_egr(csr_array([[0, 1], [1, 1]]), tmp_path / "g.egr")
    numbers = np.fromfile(tmp_path / "g.egr", np.int32).tolist()
    assert numbers == [4, 6, 0, 1, 3, 4, 6, 3, 2, 3, 1, 0, 1]
    with pytest.raises(ValueError, match="square"):
        _write_egr(csr_array([[0, 1]]), tmp_path / "g.egr")
