"""The suites of Date and Nagi, Roverso et al., Vasconcelos and Rosenhahn: tables and figures.

On hand-made results, and on those of a real run on tiny problems.
"""

from __future__ import annotations

import itertools

import pytest

from bench import harness
from bench.__main__ import main
from bench.report import assignment_plots, plots
from bench.solvers import Assign
from bench.suites import assignment, date2016, roverso2010, vasconcelos2009
from bench.suites.date2016 import CLASSICAL, OMP8, OURS, TREE
from gpumatch.dispatch import registry

PNG = b"\x89PNG\r\n\x1a\n"


def result(*seconds, **more):
    return {"seconds": list(seconds), "size": 9, "levels": [], "run": 0, **more}


def capped(seconds):
    return {"failed": f"over {seconds} s", "at_least": seconds, "run": 0}


def graph(family, n, seed=0, **results):
    return {
        "family": family,
        "group": f"{family}-{n}",
        "seed": seed,
        "rows": n,
        "entries": n * n,
        "results": {name.replace("_", " "): found for name, found in results.items()},
    }


def data(suite, *graphs):
    named = {f"{g['group']}-s{g['seed']}": g for g in graphs}
    return {"suite": suite, "settings": {"threshold": 0.0}, "runs": [], "graphs": named}


# -- Date, Nagi ------------------------------------------------------------------------------------


def of_date(factor, n, seed=0, **results):
    names = {"classical": CLASSICAL, "tree": TREE, "ours": OURS, "omp8": OMP8}
    renamed = {names.get(name, name): found for name, found in results.items()}
    return graph(f"uniform x{factor:g}", n, seed) | {"results": renamed}


def tree(*seconds, found=(), updates=(), **parts):
    return result(*seconds, found=list(found), updates=list(updates), parts=parts, objective=70)


def test_times_are_means_over_instances_of_medians():
    graphs = [
        of_date(1, 5000, 0, tree=tree(1.0, 9.0, 2.0), raft=result(8.0)),
        of_date(1, 5000, 1, tree=tree(4.0), raft=capped(12.0)),
    ]
    assert str(date2016.mean_time(graphs, TREE)) == "3"
    assert str(date2016.mean_time(graphs, "raft")) == "≥ 10"
    assert date2016.mean_time(graphs, "lapx") is None


def test_table_1_has_the_paper_s_figures_beside():
    groups = date2016.grouped(
        data(
            "date2016",
            of_date(1, 500, tree=tree(0.25), ours=tree(0.125)),
            of_date(10, 500, tree=tree(9.0)),
        )
    )
    lines = date2016.table1(groups).splitlines()
    assert (
        lines[0]
        == "| n | optimum | paper's optimum | paper's OMP-1 | paper's OMP-8 | paper's CU-CLASS "
        "| CU-TREE | paper's CU-TREE | ours |"
    )
    assert lines[2:] == ["| 500 | 70.0 | 568.0 | 0.07 | 0.13 | 0.51 | 0.25 | 0.45 | 0.125 |"]


def test_assignments_before_the_first_update_of_the_duals_are_the_initial_ones():
    found, updates = [600, 200, 50, 4, 3], [0, 0, 1, 0, 2]
    assert date2016.initial({"found": found, "updates": updates}) == (800, [50, 4, 3])
    assert date2016.initial({"found": [9], "updates": [0]}) == (9, [])


def test_table_2_bins_iterations_by_five():
    after = [10, 9, 8, 7, 6, *[1] * 36]
    found = {"found": [800, *after], "updates": [0, *[1] * 41]}
    at_once = {"found": [900, 100], "updates": [1, 1]}
    groups = date2016.grouped(
        data(
            "date2016",
            of_date(1, 1000, 0, tree=result(1.0, **found), ours=result(1.0, **at_once)),
            of_date(1, 1000, 1, ours=result(1.0, **at_once)),
            of_date(1, 1500, 0, ours=result(1.0, **at_once)),
        )
    )
    assert date2016.table2(groups).splitlines()[2:] == [
        "| 1000 | CU-TREE | 800 | 40 | 5 | 5 | 5 | 5 | 5 | 5 | 6 |",
        "| 1000 | *paper's CU-TREE* | 866 | 96 | 26 | 6 | 6 |  |  |  |  |",
        "| 1000 | ours | 0 | 1000 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
    ]


def test_table_3_shows_each_step():
    slow = result(2.0, parts={"forward pass": 1.5, "dual update": 0.25}, objective=70)
    paper_s = tree(1.0, found=[5, 2, 2], updates=[0, 0, 1])
    quick = tree(0.5, found=[9], updates=[0], **{"forward": 0.25, "dual update": 0.125})
    groups = date2016.grouped(
        data(
            "date2016",
            of_date(10, 20_000, tree=paper_s, ours=quick, omp8=slow, raft=result(4.0)),
        )
    )
    assert date2016.table3(groups, 10.0).splitlines() == [
        "| n | by | optimum | initial | matrix compression | forward pass | dual update | total |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| 20000 | OMP-8 | 70.0 |  |  | 1.5 | 0.25 | 2 |",
        "| 20000 | *paper's OMP-8* | 23393.3 | 16268.7 |  | 121.88 | 0.04 | 137.98 |",
        "| 20000 | *paper's CU-CLASS* | 23393.3 | 16268.7 | 12.99 | 7.18 | 8.36 | 30.05 |",
        "| 20000 | CU-TREE | 70.0 | 7.0 |  |  |  | 1 |",
        "| 20000 | *paper's CU-TREE* | 23393.3 | 16268.7 |  | 10.34 | 1.06 | 12.81 |",
        "| 20000 | ours | 70.0 | 9.0 |  | 0.25 | 0.125 | 0.5 |",
        "| 20000 | raft | 70.0 |  |  |  |  | 4 |",
    ]
    assert date2016.table3(groups, 1.0) == ""


@pytest.mark.parametrize("printed", date2016.TABLE3.values())
def test_the_published_steps_take_no_more_than_the_whole(printed):
    optimum, initially, *seconds = printed
    assert optimum > 0
    assert initially > 0
    assert len(seconds) == sum(map(len, date2016.TABLE3_HAS.values()))
    left = iter(seconds)
    for steps in date2016.TABLE3_HAS.values():
        *parts, total = itertools.islice(left, len(steps))
        assert sum(part or 0 for part in parts) <= total


def test_table_1_shows_the_published_optimum():
    groups = date2016.grouped(data("date2016", of_date(1, 500, omp1=result(1.0, objective=570))))
    header, _, row = date2016.table1(groups).splitlines()
    shown = dict(zip(header.split(" | "), row.split(" | ")))
    assert (shown["optimum"], shown["paper's optimum"]) == ("570.0", "568.0")
    assert shown["paper's OMP-1"] == "0.07"


def test_ratios_are_to_the_same_instance():
    groups = date2016.grouped(
        data(
            "date2016",
            of_date(1, 5000, 0, tree=tree(1.0), raft=result(4.0)),
            of_date(1, 5000, 1, tree=tree(2.0), raft=result(2.0)),
            of_date(1, 10_000, 0, tree=tree(1.0), lapx=result(3.0)),
            of_date(1, 500, 0, tree=tree(1.0), ours=tree(0.5), raft=result(0.1)),
            of_date(1, 1000, 0, tree=capped(1.0), raft=result(0.1)),
        )
    )
    (lines,) = date2016.means(groups)
    assert "raft takes 2 times as long as CU-TREE at n = 5,000 (geometric" in lines
    assert "(geometric mean, 2 problems), 1 times at least (uniform x1-5000-s1)" in lines
    assert "raft takes 0.737 times as long as CU-TREE in all" in lines
    assert "lapx takes 3 times as long as CU-TREE at n = 10,000 (geometric" in lines
    assert "CU-TREE takes 2 times as long as ours in all (geometric" in lines


def test_the_largest_problem_is_told_with_its_certificate():
    largest = graph("float32", 50_000) | {
        "results": {OURS: tree(3.0, forward=2.5) | {"certificate": 0.5}}
    }
    text = date2016.report(data("date2016", largest), 0.0)
    assert "n = 50,000, float32: ours takes 3 s (forward pass 2.5 s, dual update" in text
    assert "checked in 0.5 s" in text


def test_every_aim_is_measured_by_all_of_the_gpu_and_raft():
    instances = date2016.instances(False, None)
    assert len({instance.name for instance in instances}) == len(instances) == 3 * (12 + 9) + 1
    for n in date2016.AIMED:
        of_size = [i for i in instances if i.source[:2] == ("uniform_integer", n)]
        assert len(of_size) == 9
        assert all(i.takes(name) for i in of_size for name in (CLASSICAL, TREE, OURS, "raft"))
    assert [i.name for i in instances if not i.takes(CLASSICAL)] == ["float32-50000-s0"]
    codes = {contender.name: contender for contender in date2016.contenders("cuda", 8)}
    assert codes[TREE].algorithm == codes[OURS].algorithm == "hungarian-tree"
    assert (codes[TREE].options, codes[OURS].options) == ({"search": "paper"}, {})
    names = {*codes}
    assert {CLASSICAL, TREE, OURS, OMP8, "OMP-1", "scipy"} <= names


def test_the_gpu_s_codes_alone_warm_up_on_large_problems():
    larger = [i for i in date2016.warming(False) if i.source[1] > 64]
    assert [i.source[1] for i in larger] == [500, 1000, 5000]
    assert all(i.takes(CLASSICAL) and i.takes(TREE) and not i.takes(OMP8) for i in larger)


# -- Roverso et al. --------------------------------------------------------------------------------


def form(seconds, evaluation, switching, reached=0.0):
    parts = {"difference evaluation": evaluation, "switching": switching}
    return result(seconds, parts=parts, reached=reached)


@pytest.fixture
def switching():
    return data(
        "roverso2010",
        graph(
            "geom",
            1024,
            dgs_cpu=form(2.0, 1.0, 0.5, 996.0),
            dgs_gpu=form(0.5, 0.2, 0.2, 990.0),
            dgs_mixed_shared=form(1.0, 0.25, 0.75, 996.0),
            lapx=result(1.0, objective=1000.0),
            scipy=result(4.0, objective=1000.0),
        ),
        graph("geom", 1024, 1, dgs_cpu=form(4.0, 3.0, 0.5, 1000.0), lapx=result(9.0)),
    )


def test_dgs_is_compared_to_the_optimum(switching):
    text = roverso2010.report(switching, 0.0)
    assert "- dgs cpu: within 0.6 % on 1 of 1 problems, 0.4 % at worst." in text
    assert "- dgs gpu: within 0.6 % on 0 of 1 problems, 1 % at worst." in text
    assert "- n = 1,024: scipy, the fastest exact code, takes 8 times as long as dgs gpu." in text


def test_figures_of_switching_are_tables_too(switching):
    groups = roverso2010.by_size(switching)
    assert "| 1024 | 2 | 0.25 |" in roverso2010.figure1(groups)
    assert "| 1024 | 20 | 75 | 50 |" in roverso2010.figure2(groups)
    assert "| 1024 | 3 | 1 | 0.5 |" in roverso2010.figure3(groups)


def test_statements_of_the_paper_stand_beside_what_came_out(switching):
    table = roverso2010.statements(roverso2010.by_size(switching)).splitlines()
    rows = {row.split(" | ")[0].lstrip("| "): row.rstrip(" |").split(" | ")[1:] for row in table}
    assert rows["Figure 3: CPU / GPU, times"] == [
        *("an order of magnitude for large n", "", "4 to 4"),
    ]
    assert rows["Figure 2: switching in the mixed form, percent"][1:] == ["75 to 75", "50 to 50"]
    assert rows["section I: off the optimum at worst, percent"] == ["0.6", "", "1"]
    assert "Figure 1: growth on the CPU" not in rows  # two sizes make a power


def test_the_power_by_which_evaluation_grows():
    sizes = [graph("geom", n, dgs_cpu=form(1.0, 1e-6 * n**2, 1.0)) for n in (1024, 4096)]
    assert roverso2010.exponent(
        roverso2010.by_size(data("roverso2010", *sizes)), roverso2010.CPU
    ) == pytest.approx(2)


def test_every_form_of_dgs_is_there():
    names = {contender.name for contender in roverso2010.contenders("cuda", 8)}
    assert names >= {*roverso2010.FORMS, *roverso2010.EXACT} - {"lapx"}


def test_the_cpu_takes_part_in_the_first_problem_of_a_size():
    of_size = [i for i in roverso2010.instances(False, None) if i.group == "geom-2048"]
    assert [i.takes("dgs mixed global") for i in of_size] == [True, False, False]
    assert [i.takes("scipy") for i in of_size] == [True, False, False]
    for instance in of_size:
        assert all(map(instance.takes, (roverso2010.GPU, roverso2010.GREEDY, "auction gpu")))


# -- Vasconcelos, Rosenhahn ------------------------------------------------------------------------


def test_auctions_are_compared_by_means_over_data_sets():
    stored = data(
        "vasconcelos2009",
        graph("moving", 100, GPU_Auction=result(0.004, 0.002), CPU_Auction=result(0.001)),
        graph("moving", 200, GPU_Auction=result(0.002), CPU_Auction=capped(0.008)),
    )
    text = vasconcelos2009.report(stored, 0.0)
    assert "| 100 | 1 | 3 |" in text
    assert "| 200 | ≥ 8 | 2 |" in text
    assert "- CPU Auction takes ≥ 1.15 times as long as GPU Auction (geometric mean of 2" in text
    assert "≥ 4 times at 200 points; longer at 200." in text


def test_boxes_have_tables_of_their_own():
    stored = data(
        "vasconcelos2009",
        graph("moving", 100, CPU_Auction=result(0.004), scipy=result(0.001)),
        graph("moving closed", 100, CPU_Auction=result(0.002), scipy=result(0.001)),
    )
    text = vasconcelos2009.report(stored, 0.0)
    closed, opened = text.split("Figure 6, some leave and others enter")
    assert "Figure 6, in a closed box" in closed
    assert "| 100 | 2 | 1 |" in closed
    assert "| 100 | 4 | 1 |" in opened


def test_the_papers_auctions_say_what_they_leave():
    """Rounds are of one data set, shares are of the optimum of all."""
    left = result(0.5, 0.25, rounds=3000, reached=202.0, gap=5.0)
    exact = result(0.5, 0.5, objective=200.0, rounds=7)
    sizes = {300: graph("moving", 300, CPU_Auction=left, scipy=exact)}
    assert vasconcelos2009.rounds_and_gaps(sizes).splitlines()[2] == "| 300 | 2 | 1,500 | 2.5 | 1 |"
    del sizes[300]["results"]["scipy"]
    assert vasconcelos2009.rounds_and_gaps(sizes).splitlines()[2:] == ["| 300 | 2 |"]


def test_the_papers_columns_have_nothing_of_ours():
    """One epsilon, and a gap that is left; on the GPU both tests of convergence and both loops."""
    papers = [
        contender
        for contender in vasconcelos2009.contenders("cuda", 1)
        if isinstance(contender, Assign) and contender.name in vasconcelos2009.OF_PAPER
        if contender.algorithm == "auction"
    ]
    assert all(contender.options["scaling"] == "none" for contender in papers)
    assert all(contender.options["finish"] == "epsilon" for contender in papers)
    ways = [(c.options.get("convergence"), c.options.get("host_loop")) for c in papers]
    assert ways == [(None, None), ("reduction", None), (None, "round"), (None, None)]


def test_what_tells_nothing_new_is_left_out_on_large_problems():
    large = [i for i in vasconcelos2009.instances(False, None) if i.group == "moving-closed-4000"]
    assert [i.takes("GPU Auction") for i in large] == [True]
    assert [i.takes("GPU Auction, reduction") for i in large] == [False]
    assert [i.source for i in large] == [("moving_points", 4000, 2, "closed")]


def test_without_a_gpu_the_cpu_s_auction_is_what_others_are_compared_to():
    of_size = graph("moving", 100, lapx=result(0.004), CPU_Auction=result(0.001))
    text = vasconcelos2009.report(data("vasconcelos2009", of_size), 0.0)
    assert "- lapx takes 4 times as long as CPU Auction (geometric mean of 1 sizes)" in text


# -- figures ---------------------------------------------------------------------------------------


def test_figures_that_lack_results_are_none():
    for suite in ("date2016", "roverso2010", "vasconcelos2009"):
        assert not any(assignment_plots.of(data(suite)).values())
    assert assignment_plots.of(data("cpu")) == {}


def test_bars_of_figure_3_fill_the_time():
    parts = {"forward": 0.25, "dual update": 0.125}
    groups = date2016.grouped(data("date2016", of_date(1, 20_000, tree=tree(0.5, **parts))))
    (axis,) = assignment_plots.contributions(groups).axes
    assert [bar.get_width() for bar in axis.patches] == pytest.approx([0, 50, 25, 25])


# -- end to end ------------------------------------------------------------------------------------

SHOWN = {
    "date2016": ["Table 1", "Table 3", "OMP-8"],
    "roverso2010": ["Figure 1", "Figure 3", "within 0.6 %"],
    "vasconcelos2009": ["Figure 6, in a closed box", "CPU Auction", "Rounds and gap"],
}
DRAWN = {"date2016": ["2"], "roverso2010": ["1", "3"], "vasconcelos2009": ["6"]}


@pytest.mark.long
@pytest.mark.parametrize("suite", SHOWN)
def test_the_quick_suite_measures_reports_and_draws(suite, tmp_path, capsys):
    out = tmp_path / "results.json"
    arguments = [suite, "--out", out, "--cache", tmp_path / "costs", "--quick", "--repeats", 3]
    assert main([*map(str, arguments), "--device", "cpu"]) == 0
    stored = harness.read(out)
    assert len(stored["graphs"]) > 1
    for one in stored["graphs"].values():
        assert one["results"]
        assert not any("failed" in found for found in one["results"].values())
    assert main(["report", str(out), "--plots", str(tmp_path / "plots")]) == 0
    printed = capsys.readouterr().out
    assert all(text in printed for text in SHOWN[suite])
    drawn = {path.name: path.read_bytes() for path in (tmp_path / "plots").iterdir()}
    assert set(drawn) == {f"{suite}-figure{number}.png" for number in DRAWN[suite]}
    assert all(png.startswith(PNG) and len(png) < 150_000 for png in drawn.values())


def test_a_size_alone_makes_no_line(switching):
    figures = assignment_plots.of(switching)
    assert [name for name, figure in figures.items() if figure is not None] == ["figure2"]


def test_plots_know_the_suites(switching, tmp_path):
    large = graph("geom", 2048, dgs_cpu=form(9.0, 3.0, 0.5), dgs_gpu=form(1.0, 0.1, 0.1))
    switching["graphs"]["geom-2048-s0"] = large
    drawn = [file.name for file in plots.draw(switching, 0.0, tmp_path)]
    assert drawn == [f"roverso2010-figure{number}.png" for number in (1, 2, 3)]


@pytest.mark.parametrize(
    "suite", [assignment, date2016, roverso2010, vasconcelos2009], ids=lambda s: s.__name__
)
def test_the_library_has_what_the_suites_ask_of_it(suite):
    known = {algorithm.name: algorithm for algorithm in registry.algorithms("assignment")}
    for contender in suite.contenders("cuda", 8):
        if isinstance(contender, Assign):
            algorithm = known[contender.algorithm]
            assert contender.backend in algorithm.backends
            leaves_a_gap = contender.options.get("finish") == "epsilon"
            assert contender.is_exact == (algorithm.exact and not leaves_a_gap)
            assert algorithm.homes[contender.backend].takes(contender.options)
