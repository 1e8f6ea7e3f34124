"""The benchmarks' command line, the suite of the CPU, the graphs' folder, the machine."""

from __future__ import annotations

import hashlib

import pytest
from scipy.io import mmwrite

import graphs
from bench import harness, machine
from bench.__main__ import _chosen, main
from bench.instances import Folder, Instance, generated, real, with_permutations
from bench.suites import cpu
from tests.bench.suites.test_deveci2013 import made_data, made_graph


@pytest.fixture
def run(tmp_path):
    """Runs a suite of the command line into this test's folder; gives the exit code."""

    def run(*arguments):
        places = ["--out", str(tmp_path / "out.json"), "--cache", str(tmp_path / "graphs")]
        return main([arguments[0], *places, *map(str, arguments[1:])])

    return run


# -- the suite of the CPU --------------------------------------------------------------------------


def test_the_cpu_suite_measures_and_reports(run, tmp_path, capsys):
    assert run("cpu", "--quick", "--repeats", 1, "--threshold", 0) == 0
    assert main(["report", str(tmp_path / "out.json")]) == 0
    out = capsys.readouterr().out
    assert "| ladder-12 |" in out
    assert "| dead_end_ladder-12 |" in out
    assert "Where SciPy takes 0 s or more (2 graphs): geometric mean" in out
    assert main(["report", str(tmp_path / "out.json"), "--threshold", "1e9"]) == 0
    assert "SciPy takes 1e+09 s or more on no graph." in capsys.readouterr().out


def test_ratios_count_where_scipy_takes_long_enough():
    data = made_data(
        made_graph("fast", gpumatch=1.0, scipy=0.01),
        made_graph("four", gpumatch=1.0, scipy=4.0),
        made_graph("nine", gpumatch=1.0, scipy=-9.0),
    )
    text = cpu.report(data, 0.05)
    assert "(2 graphs): geometric mean ≥ 6 times faster, worst 4 (four)" in text
    assert "| nine | 100 | 1 | ≥ 9 | ≥ 9 |" in text
    assert "on no graph" in cpu.report(data, 100.0)


def test_the_whole_call_past_its_cap_overruns():
    ladder = generated("ladder-9", "ladder", 9)
    problem = cpu.problem(ladder, ladder.make(), "cpu")
    with pytest.raises(harness.Overrun):
        cpu.WholeCall("gpumatch", 1).measure(problem, harness.Limits(cap=0.0))


# -- the command line ------------------------------------------------------------------------------


def test_graphs_are_chosen_by_their_own_name_or_their_originals():
    originals = generated("ladder-9", "ladder", 9), generated("grid-4", "grid", 4)
    every = with_permutations(originals)
    for pattern, names in (
        ("ladder-9", ["ladder-9", "ladder-9_RCP"]),
        ("*_RCP", ["ladder-9_RCP", "grid-4_RCP"]),
        ("grid*", ["grid-4", "grid-4_RCP"]),
    ):
        assert [graph.name for graph in _chosen(every, [pattern])] == names
    assert len(_chosen(every, ["grid-4", "ladder*"])) == 4
    with pytest.raises(ValueError, match="no graph is called mesh or tree"):
        _chosen(every, ["mesh", "tree"])


def test_cut_by_minutes_and_resumed(run, tmp_path):
    arguments = ("cpu", "--quick", "--repeats", 1, "--graphs", "ladder*")
    assert run(*arguments, "--minutes", 0) == 3
    assert not (tmp_path / "out.json").exists()
    assert run(*arguments) == 0
    assert set(harness.read(tmp_path / "out.json")["graphs"]) == {"ladder-12"}
    assert run(*arguments[:-2]) == 0
    data = harness.read(tmp_path / "out.json")
    assert set(data["graphs"]) == {"ladder-12", "dead_end_ladder-12"}
    assert data["graphs"]["ladder-12"]["results"]["gpumatch"]["run"] == 0
    assert data["graphs"]["dead_end_ladder-12"]["results"]["gpumatch"]["run"] == 1


def test_chosen_contenders_run_and_the_others_later(run, tmp_path):
    def measured():
        (graph,) = harness.read(tmp_path / "out.json")["graphs"].values()
        return {name: result["run"] for name, result in graph["results"].items()}

    arguments = ("cpu", "--quick", "--repeats", 1, "--graphs", "ladder*")
    assert run(*arguments, "--contenders", "sci*") == 0
    assert measured() == {"scipy": 0}
    assert run(*arguments, "--contenders", "gpumatch", "sci*") == 0
    assert measured() == {"scipy": 0, "gpumatch": 1}


@pytest.mark.parametrize("option", ["--graphs", "--contenders"])
def test_unknown_names_are_told(run, capsys, option):
    assert run("cpu", "--quick", option, "atlantis") == 2
    assert "atlantis" in capsys.readouterr().err


def test_missing_files_are_told(tmp_path, capsys):
    assert main(["report", str(tmp_path / "missing.json")]) == 2
    assert "missing.json" in capsys.readouterr().err


# -- graphs ----------------------------------------------------------------------------------------


def test_permuted_graphs_follow_their_originals():
    pair = with_permutations([generated("grid-4", "grid", 4)])
    assert [(graph.name, graph.family) for graph in pair] == [
        ("grid-4", "grid"),
        ("grid-4_RCP", "grid_RCP"),
    ]
    original, permuted = (graph.make() for graph in pair)
    assert (original != graphs.grid(4)).nnz == 0
    assert (permuted != graphs.rcp(graphs.grid(4))).nnz == 0


def test_real_matrices_come_from_a_folder(tmp_path):
    (tmp_path / "matrices").mkdir()
    mmwrite(tmp_path / "matrices" / "tiny.mtx", graphs.grid(3).astype(int))
    (tmp_path / "README.md").write_text("not a matrix")
    (found,) = real(tmp_path)
    assert found.name == "tiny"
    assert found.make().nnz == graphs.grid(3).nnz
    assert real(None) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_graphs_are_made_once(tmp_path, processes):
    folder = Folder(tmp_path, processes)
    wanted = with_permutations([generated("grid-4", "grid", 4), generated("grid-5", "grid", 5)])
    folder.prepare(wanted)
    assert {path.name for path in tmp_path.iterdir()} == {f"{graph.name}.npz" for graph in wanted}
    for graph in wanted:
        assert (folder.load(graph) != graph.make()).nnz == 0
    elsewhere = Instance("grid-4", "grid", tmp_path / "never-read.mtx")
    assert folder.load(elsewhere).nnz == graphs.grid(4).nnz


# -- machine ---------------------------------------------------------------------------------------


def test_the_source_hash_changes_with_paths_and_content(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "b.cu").write_text("kernel")
    (package / "a.py").write_text("code")
    (package / "c.txt").write_text("no source")
    expected = hashlib.sha256(b"package/a.py\0code" + b"package/b.cu\0kernel").hexdigest()
    assert machine.source_hash(package) == expected


def test_the_machine_is_described():
    described = machine.describe()
    assert {"date", "processor", "memory_bytes", "versions", "threads", "devices"} <= set(described)
    assert described["memory_bytes"] > 2**28
