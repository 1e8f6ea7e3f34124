"""The suite of what linear solvers ask for: instances, the report, and a run of all of it."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from bench import harness
from bench.__main__ import main
from bench.harness import Limits
from bench.instances import Folder
from bench.suites import linear_solvers, sparse_assignment
from tests import nvmath_stand_in


def graph(**results):
    return {"rows": 9, "entries": 30, "results": results}


def reported(threshold, **graphs):
    return linear_solvers.report({"runs": [], "graphs": graphs}, threshold)


def test_instances_have_names_of_their_own_and_known_contenders():
    given = linear_solvers.instances(quick=False, data="nowhere")
    known = {
        "components",
        "ecl-scc",
        *linear_solvers.PATTERN,
        *linear_solvers.SCALING,
        *linear_solvers.EVERY_SOLVE,
    }
    assert len({one.name for one in given}) == len(given) >= 20
    assert {name for one in given for name in one.contenders} == known


def test_ratios_are_those_of_turns():
    spral = {"seconds": [6.0], "ours": [2.0], "work": [5.0], "size": 9}
    one = graph(product={"seconds": [1.0], "size": 9}, spral=spral)
    text = reported(0.02, a=one)
    assert "| a | 9 | 30 | 1e+03 | 6e+03 | 3 | 5 |" in text
    assert "it takes 3 times as long as `max" in text
    assert "5 of processor time" in text
    assert "times as long" not in reported(7.0, a=one)


def test_a_decomposition_has_the_size_of_the_matching():
    """Not that of the matrix, of which a row may be empty."""
    matrix = csr_array(np.array([[1.0, 2.0], [0.0, 0.0]]))
    instance = linear_solvers.MatrixInstance("a", "b", lambda: matrix, ("dmperm",))
    problem = linear_solvers.MatrixProblem(instance, matrix, "cpu")
    (dmperm,) = [one for one in linear_solvers.contenders("cpu", 1) if one.name == "dmperm"]
    result = dmperm.measure(problem, Limits(repeats=1, budget=0.0))
    assert (result["size"], result["blocks"]) == (1, 2)


def test_other_suites_have_other_files_in_the_same_folder(tmp_path):
    """Two of them call a problem kkt-200000, and mean matrices and costs."""
    suites = (linear_solvers, sparse_assignment)
    given = [one for suite in suites for one in suite.instances(quick=False, data=None)]
    folder = Folder(tmp_path, processes=1)
    assert len({one.name for one in given}) < len(given)
    assert len({folder._file(one) for one in given}) == len(given)


def test_cudss_before_and_after(monkeypatch):
    """With SuperLU in its place, which takes the diagonal for pivots as well."""
    nvmath_stand_in.install(monkeypatch)
    monkeypatch.setattr("importlib.util.find_spec", sys.modules.get)
    known = {one.name: one for one in linear_solvers.contenders("cuda", 2)}
    instance = linear_solvers.instances(quick=True, data=None)[0]
    problem = linear_solvers.problem(instance, instance.original(), "cpu")
    told = {
        name: known[name].call(problem, 2)[1] | {"seconds": [0.5], "size": 300}
        for name in linear_solvers.SOLVES_ON_GPU
    }
    assert told["static"]["residual"] > 1e-6 > 1e-10 > told["cudss"]["residual"]
    assert told["cudss"]["fill"] > problem.matrix.nnz / 2
    text = reported(0.02, a=graph(**told))
    assert "## Solves on a GPU" in text
    assert f"| {told['cudss']['residual']:.1e} | {told['cudss']['fill']} | 500 |" in text


def test_what_a_gpu_brings():
    one = graph(**{"product": {"seconds": [0.1], "size": 9}})
    one["results"]["product on the CPU"] = {"seconds": [0.9], "size": 9}
    one["rows"] = 200_000
    text = reported(0.02, a=one)
    assert "| a | 200000 | 30 | 100 | 900 | 9 |" in text
    assert "`product` takes 9 times as long on the CPU as on the GPU" in text
    assert "on the GPU" not in reported(0.02, a=graph(product={"seconds": [0.1], "size": 9}))


def test_residuals_before_and_after():
    bad = {"seconds": [0.1], "residual": None, "fill": 70, "size": 9}
    good = {"seconds": [0.2], "residual": 2e-16, "fill": 40, "size": 9}
    text = reported(0.02, a=graph(natural=bad, splu=good))
    assert "| a | 9 | not finite | 70 | 100 |" in text
    assert "2.0e-16 | 40 | 200 |" in text


def test_a_run_of_all_of_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(linear_solvers, "warming", lambda quick: [])
    out = tmp_path / "solvers.json"
    options = ["--out", str(out), "--quick", "--repeats", "1", "--budget", "0", "--device", "cpu"]
    assert main(["linear-solvers", *options, "--cache", str(tmp_path)]) == 0
    graphs = harness.read(out)["graphs"]
    results = graphs["circuit-300"]["results"]
    assert results["dmperm"]["size"] == results["product"]["size"] == 300
    assert results["splu"]["residual"] < 1e-10
    assert graphs["grid-12"]["results"]["dmperm"]["blocks"] > 1
    main(["report", str(out)])
    assert "### Solves" in capsys.readouterr().out


@pytest.mark.gpu
def test_on_a_device(tmp_path):
    out = tmp_path / "solvers.json"
    options = ["--out", str(out), "--quick", "--repeats", "1", "--device", "cuda"]
    assert main(["linear-solvers", *options, "--cache", str(tmp_path)]) == 0
    results = harness.read(out)["graphs"]["circuit-300"]["results"]
    for where in ("", linear_solvers.ON_CPU):
        assert results["dmperm" + where]["size"] == results["product" + where]["size"] == 300
    assert "splu" not in results


def test_ecl_scc_is_called_with_its_file(tmp_path, monkeypatch):
    """A program in its place: it reads the file, and counts the arcs as components."""
    program = tmp_path / "ecl"
    program.write_text(
        f"#!{sys.executable}\nimport sys, numpy as np\n"
        "n, m, *rest = np.fromfile(sys.argv[1], np.int32).tolist()\n"
        "assert len(rest) == n + 1 + m\n"
        "print(f'compute time: 0.25 s\\n\\nresult:\\nnumber of SCCs: {m}')\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("ECL_SCC", str(program))
    instance = linear_solvers.instances(quick=True, data=None)[0]
    problem = linear_solvers.problem(instance, instance.original(), "cpu")
    result = linear_solvers.EclScc().measure(problem, Limits(1, 0.0, 60.0))
    assert result["seconds"] == [0.25]
    assert result["blocks"] == problem.matrix.nnz
