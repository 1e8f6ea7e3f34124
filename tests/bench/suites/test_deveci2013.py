"""The paper's sets, tables and figures, on hand-made times and from a real run on tiny graphs."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from bench import harness
from bench.__main__ import main
from bench.instances import RCP
from bench.report import analysis, plots, tables
from bench.report import deveci2013_published as published
from bench.suites import deveci2013

GPU = deveci2013.BEST_GPU
PNG = b"\x89PNG\r\n\x1a\n"


def made_graph(base, permuted=False, entries=100, **seconds):
    """A stored graph; a negative time is a cap that was exceeded."""
    results = {
        name.replace("_", "-"): {"seconds": [taken], "size": 9, "levels": [3, 2], "run": 0}
        if taken > 0
        else {"failed": f"over {-taken} s", "at_least": -taken, "run": 0}
        for name, taken in seconds.items()
    }
    facts = {"family": "made", "base": base, "permuted": permuted, "rows": 10, "entries": entries}
    return {**facts, "results": results}


def made_data(*made):
    """Stored results that hold these graphs."""
    names = [graph["base"] + RCP * graph["permuted"] for graph in made]
    return {
        "suite": "deveci2013",
        "settings": {"threshold": 1.0},
        "runs": [],
        "graphs": dict(zip(names, made)),
    }


def with_gpu(graph, seconds):
    graph["results"][GPU] = {"seconds": [seconds], "size": 9, "levels": [4], "run": 0}
    return graph


# -- sets ------------------------------------------------------------------------------------------


def test_s1_has_what_one_sequential_algorithm_needs_longer_than_the_threshold_for():
    data = made_data(
        made_graph("both", pfp=2.0, hk=3.0),
        made_graph("one", pfp=0.1, hk=1.5),
        made_graph("none", pfp=0.9, hk=1.0),
        made_graph("hkdw-is-none-of-the-paper's", pfp=0.1, hk=0.1, hkdw=9.0),
        made_graph("none", permuted=True, pfp=1.1, hk=0.1),
    )
    sets = analysis.select(data, 1.0)
    assert [graph["base"] for graph in sets["O_S1"]] == ["one", "both"]
    assert [graph["base"] for graph in sets["RCP_S1"]] == ["none"]
    assert [graph["base"] for graph in analysis.select(data, 2.5)["O_S1"]] == ["both"]


def test_hardest_are_the_20_with_the_longest_sequential_time_hardest_last():
    graphs = [made_graph(f"g{i}", pfp=0.01 * i, hk=0.5) for i in range(1, 121)]
    hardest = analysis.select(made_data(*graphs), 1.0)["O_Hardest20"]
    assert [graph["base"] for graph in hardest] == [f"g{i}" for i in range(101, 121)]


def test_a_graph_past_the_cap_counts_as_hard_as_the_cap():
    data = made_data(made_graph("capped", pfp=-20.0, hk=0.1), made_graph("done", pfp=19.0, hk=1.0))
    hardest = analysis.select(data, 1.0)["O_Hardest20"]
    assert [graph["base"] for graph in hardest] == ["done", "capped"]


def test_the_paper_s_own_table_is_sorted_by_that_hardness():
    order = [("roadNet-CA", 0.95, 2.48), ("delaunay_n23", 2.68, 1.11), ("Hamrle3", 0.04, 12.61)]
    order += [("hugetrace-00020", 15.95, 15.02), ("rgg_n_2_24_s0", 25.40, 0.12)]
    graphs = [made_graph(name, pfp=pfp, hk=hk) for name, pfp, hk in reversed(order)]
    hardest = analysis.select(made_data(*graphs), 1.0)["O_Hardest20"]
    assert [graph["base"] for graph in hardest] == [name for name, _, _ in order]


# -- numbers ---------------------------------------------------------------------------------------


def test_times_are_medians():
    graph = made_graph("g", pfp=1.0)
    graph["results"]["pfp"]["seconds"] = [9.0, 1.0, 2.0]
    assert tables.time_of(graph, "pfp") == tables.Time(2.0)


def test_geometric_mean_says_when_it_is_a_bound():
    known = tables.geometric_mean([tables.Time(1.0), tables.Time(4.0), None])
    assert known.seconds == pytest.approx(2.0)
    assert str(known) == "2"
    bound = tables.geometric_mean([tables.Time(1.0), tables.Time(4.0, at_least=True)])
    assert str(bound) == "≥ 2"
    assert tables.geometric_mean([None]) is None


def test_a_cap_of_ours_is_no_measure():
    graph = made_graph("g", pfp=1.0, hk=-4.0)
    assert tables.times_as_long(graph, "hk", "pfp") == tables.Time(4.0, at_least=True)
    assert tables.times_as_long(graph, "pfp", "hk") is None
    assert tables.times_as_long(graph, "pfp", "hkdw") is None


def test_a_wrong_result_has_no_time():
    graph = made_graph("g", pfp=1.0)
    graph["results"]["pfp"]["failed"] = "size 8, others [9]"
    assert tables.time_of(graph, "pfp") is None
    assert tables.failures(made_data(graph)) == ["**pfp on g: size 8, others [9]**"]


def test_the_baseline_is_the_faster_sequential_algorithm():
    graphs = [made_graph("a", pfp=1.0, hk=9.0), made_graph("b", pfp=4.0, hk=1.0)]
    assert analysis.baseline(graphs) == "pfp"
    assert analysis.speedups(graphs, "hk", over="pfp") == [1.0 / 9.0, 4.0]


def test_ratios_to_the_best_are_infinite_for_what_did_not_end():
    graphs = [made_graph("a", p_dbfs=1.0, p_hk=3.0), made_graph("b", p_dbfs=-20.0, p_hk=2.0)]
    ratios = analysis.ratios_to_best(graphs, ["p-dbfs", "p-hk", "p-pfp"])
    assert ratios == {"p-dbfs": [1.0, math.inf], "p-hk": [3.0, 1.0]}


def test_profiles():
    x, share = plots._share_of_at_least([3.0, 1.0])
    assert (list(x), list(share)) == ([1.0, 3.0, 3.0], [1.0, 0.5, 0.0])
    x, share = plots._share_of_at_most([1.0, 3.0, math.inf, 2.0], 4.0)
    assert (list(x), list(share)) == ([1, 1, 2, 3, 4], [0, 0.25, 0.5, 0.75, 0.75])


# -- tables ----------------------------------------------------------------------------------------


def test_table_1_is_the_geometric_mean_of_each_set():
    data = made_data(
        with_gpu(made_graph("a", pfp=2.0, hk=2.0), 0.1),
        with_gpu(made_graph("b", pfp=2.0, hk=3.0), 0.4),
        with_gpu(made_graph("c", pfp=0.1, hk=0.1), 0.0125),
    )
    lines = analysis.table1(analysis.select(data, 1.0)).splitlines()
    column = lines[0].split(" | ").index(GPU)
    shown = {line.split(" | ")[0]: line.rstrip(" |").split(" | ")[column] for line in lines[2:]}
    assert shown["| O_S1, here"] == "0.2"
    assert shown["| O_Hardest20, here"] == "0.0794"
    assert shown["| O_S1, published"] == "1.34"
    assert shown["| RCP_Hardest20, published"] == "2.85"


def test_table_2_sets_original_beside_permuted():
    data = made_data(
        with_gpu(made_graph("a", pfp=2.0, hk=4.0, p_dbfs=1.5), 0.1),
        with_gpu(made_graph("a", permuted=True, pfp=-20.0, hk=5.0, p_dbfs=2.5), 0.2),
        made_graph("b", pfp=1.0, hk=1.0),
    )
    lines = analysis.table2(data, analysis.select(data, 1.0)).splitlines()
    assert lines[0].startswith(f"| graph | {GPU} | p-dbfs | pfp | hk | RCP {GPU} |")
    assert lines[2] == "| b |  |  | 1 | 1 |  |  |  |  |"
    assert lines[3] == "| a | 0.1 | 1.5 | 2 | 4 | 0.2 | 2.5 | ≥ 20 | 5 |"


def test_table_2_says_which_graphs_stand_in():
    data = made_data(
        made_graph("delaunay_n20", entries=10, pfp=1.0, hk=2.0),
        made_graph("delaunay_n21", entries=20, pfp=4.0, hk=3.0, p_dbfs=5.0),
        made_graph("delaunay_n21", entries=20, permuted=True, pfp=6.0, hk=7.0),
        made_graph("roadNet-CA", entries=5, pfp=8.0, hk=9.0),
        made_graph("road-9", entries=50, pfp=1.0, hk=1.0),
        made_graph("another", pfp=1.0, hk=1.0),
    )
    ours = analysis.table2(data, analysis.select(data, 0.0))
    assert "| delaunay_n21 | stand-in for delaunay_n23, delaunay_n24 | 5 | 4 | 3 | 6 | 7 |" in ours
    assert "| roadNet-CA | itself |" in ours
    assert "| another |  |" in ours
    original, permuted = (analysis.published_table2(data, kind) for kind in (False, True))
    published = "| delaunay_n23 | 0.96 | 1.26 | 2.68 | 1.11 |"
    assert f"{published} stand-in delaunay_n21 | 5 | 4 | 3 |" in original
    assert "| roadNet-CA | 0.34 | 0.53 | 0.95 | 2.48 | itself |  | 8 | 9 |" in original
    assert "| patents | 0.88 | 0.84 | 92.03 | 16.18 | none |  |  |  |" in original
    assert "| italy_osm | 5.86 | 1.2 | 1.02 | 122.0 | stand-in road-9 |" in original
    published = "| delaunay_n24 | 1.86 | 12.84 | 6.92 | 35.24 |"
    assert f"{published} stand-in delaunay_n21 | 6 | 7 |" in permuted


def test_the_published_tables_agree_with_the_published_figure():
    """Figure 5's ratio of O_Hardest20 is the mean speedup over HK in Table 2."""
    originals = [original for original, _ in published.TABLE2.values()]
    assert len(originals) == 20
    speedups = [times["hk"] / times[GPU] for times in originals]
    assert statistics.geometric_mean(speedups) == pytest.approx(
        published.FIGURE5["O_Hardest20"], rel=0.005
    )
    table1 = published.TABLE1["O_Hardest20"]
    assert len(table1) == 8
    mean = statistics.geometric_mean(times[GPU] for times in originals)
    assert mean == pytest.approx(table1[GPU], rel=0.005)


def test_figure_5_has_the_published_ratios():
    data = made_data(with_gpu(made_graph("a", pfp=2.0, hk=4.0), 0.5))
    lines = analysis.figure5(analysis.select(data, 1.0)).splitlines()
    assert lines[2] == "| O_S1 | 28 | 3.61 | 1 | 4 | 8 |"


def test_the_host_s_loop_is_compared_by_the_number_of_levels():
    def with_loops(base, levels, batch, level):
        graph = with_gpu(made_graph(base, pfp=1.0), batch)
        stepped = {"seconds": [level], "size": 9, "levels": [levels], "run": 0}
        graph["results"][GPU]["levels"] = [levels]
        graph["results"][f"{GPU} level"] = stepped
        return graph

    few, many = with_loops("few", 10, 0.4, 0.2), with_loops("many", 200, 0.1, 0.4)
    lines = analysis.host_loops(made_data(few, many)).splitlines()
    assert lines[2] == f"| {GPU} | 100 at most | 1 | 0.5 | 0.5 | 0.5 | 4e+04 | 2e+04 |"
    assert lines[3] == f"| {GPU} | more | 1 | 4 | 4 | 4 | 500 | 2e+03 |"
    assert analysis.host_loops(made_data(with_gpu(made_graph("a", pfp=1.0), 1.0))) == ""


def test_graphs_on_which_a_multicore_code_wins_are_counted():
    data = made_data(
        with_gpu(made_graph("a", pfp=2.0, p_hk=0.1), 0.5),
        with_gpu(made_graph("b", pfp=0.5, p_dbfs=0.1, p_hk=3.0), 0.5),
        with_gpu(made_graph("c", pfp=0.5, p_dbfs=0.6), 0.5),
        made_graph("d", pfp=0.5, p_dbfs=0.1),
    )
    (line,) = analysis.multicore_wins(data, 1.0)
    assert line.endswith("on 2 of 3 graphs, 1 of them in O_S1 or RCP_S1.")


def test_the_report_says_which_sets_are_too_small():
    text = analysis.report(made_data(made_graph("a", pfp=0.1, hk=0.1)), 1.0)
    assert "O_S1 no graphs" in text
    assert "O_Hardest20 1 graphs (of 20 wanted)" in text
    assert "over 1 s" in text


def test_transfer_is_shown_apart():
    graph = {**with_gpu(made_graph("a", pfp=2.0), 0.1), "transfer": 0.5}
    header, _, row = analysis.every_graph(made_data(graph)).splitlines()
    assert header == f"| graph | rows | entries | {GPU} | pfp | transfer |"
    assert row == "| a | 10 | 100 | 0.1 | 2 | 0.5 |"


def test_columns_and_rows_without_values_are_left_out():
    rows = [["x", None, 1, 2], ["y", None, None, None], ["z", None, None, 3]]
    table = tables.markdown(["graph", "a", "b", "c"], rows)
    assert table.splitlines() == [
        "| graph | b | c |",
        "| --- | ---: | ---: |",
        "| x | 1 | 2 |",
        "| z |  | 3 |",
    ]


# -- contenders and graphs -------------------------------------------------------------------------


def test_the_contenders_are_the_paper_s():
    names = [contender.name for contender in deveci2013.contenders("cuda", 8)]
    eight = [f"{a} {launch}" for a in deveci2013.GPU_ALGORITHMS for launch in ("ct", "mt")]
    assert names[:8] == eight
    plain, wr = ("queue",), ("queue", "level")
    assert names[8:14] == [
        f"{algorithm} ct {form}"
        for algorithm in deveci2013.GPU_ALGORITHMS
        for form in (wr if algorithm.endswith("-wr") else plain)
    ]
    assert names[14:] == ["p-dbfs", "p-pfp", "p-hk", "pfp", "hk", "hkdw", "scipy"]
    threads = {c.name: c.threads for c in deveci2013.contenders("cpu", 8) if c.name != "scipy"}
    assert threads == {"p-dbfs": 8, "p-pfp": 8, "p-hk": 8, "pfp": 1, "hk": 1, "hkdw": 1}


def test_each_kind_comes_at_three_sizes_original_and_permuted():
    graphs = deveci2013.instances(False, None)
    kinds = [graph.family for graph in graphs[:16]]
    assert len(set(kinds)) == 16
    assert [graph.family for graph in graphs] == kinds * 3
    assert [graph.permuted for graph in graphs] == [False, True] * 24
    assert len({graph.name for graph in graphs}) == 48


def test_a_search_starts_from_the_common_matching():
    grid = deveci2013.generated("grid-8", "grid", 8, 0.65)
    problem = deveci2013.problem(grid, grid.make(), "reference")
    _, start = problem.on("cpu")
    assert problem.facts["start"] == int((start >= 0).sum()) > 0
    search = deveci2013.Search("hk", "hk", "cpu")
    result = search.measure(problem, harness.Limits(repeats=1, cap=600.0))  # compiling counts
    assert result["size"] >= problem.facts["start"]


def test_a_search_past_its_cap_overruns():
    ladder = deveci2013.generated("ladder-9", "ladder", 9)
    problem = deveci2013.problem(ladder, ladder.make(), "cpu")
    with pytest.raises(harness.Overrun):
        deveci2013.Search("hk", "hk", "cpu").measure(problem, harness.Limits(cap=0.0))


# -- end to end ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The results of the quick suite, the GPU's algorithms run by the reference."""
    folder = tmp_path_factory.mktemp("deveci2013")
    out = folder / "results.json"
    arguments = ["deveci2013", "--out", out, "--cache", folder / "graphs", "--quick"]
    arguments += ["--device", "reference", "--repeats", 1, "--threshold", 0]
    assert main(list(map(str, arguments))) == 0
    return out


@pytest.mark.long
def test_the_quick_suite_measures_everything(measured):
    data = harness.read(measured)
    contenders = {contender.name for contender in deveci2013.contenders("reference", 8)}
    assert len(data["graphs"]) == 6
    for graph in data["graphs"].values():
        assert set(graph["results"]) == contenders
        assert not any("failed" in result for result in graph["results"].values())
        assert len({result["size"] for result in graph["results"].values()}) == 1
    run = data["runs"][0]
    assert len(run["sources_sha256"]) == 64
    assert set(run["first_call"]) == contenders - {"scipy"}
    assert run["versions"]["numpy"] == np.__version__


@pytest.mark.long
def test_the_report_has_every_table_and_figure(measured, tmp_path, capsys):
    assert main(["report", str(measured), "--plots", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for title in ("Table 1", "Table 2", "Every graph"):
        assert f"### {title}" in out
    assert "| O_S1 |" in out
    for number in (2, 3, 4, 5):
        png = (tmp_path / f"deveci2013-figure{number}.png").read_bytes()
        assert png.startswith(PNG)
        assert len(png) < 150_000


def test_figures_that_lack_results_are_not_drawn(tmp_path):
    data = made_data(made_graph("a", pfp=2.0, hk=3.0, p_dbfs=1.0))
    drawn = [file.name for file in plots.draw(data, 1.0, tmp_path)]
    assert drawn == ["deveci2013-figure3.png", "deveci2013-figure4.png"]
