"""The suite of maximum matchings of any graph runs, and its report has each contender."""

from __future__ import annotations

import json
import sys

import pytest

pytest.importorskip("networkx")

from bench import __main__ as bench
from bench.suites import general_matching as suite

LEMON = """#!{python}
import sys
import numpy as np
import networkx as nx

numbers = np.fromfile(sys.argv[1], np.int64)
n, m = numbers[:2]
tails, heads, weights = numbers[2:].reshape(3, m)
assert sys.argv[2] == "cardinality" and weights.all() and tails.max() < n
print(len(nx.max_weight_matching(nx.Graph([*zip(tails, heads)]), True)), 0.5)
"""


def test_a_quick_run(tmp_path, monkeypatch):
    program, out = tmp_path / "lemon", tmp_path / "general.json"
    program.write_text(LEMON.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("GPUMATCH_LEMON", str(program))
    names = [suite.ENGINE, suite.LEMON, suite.NETWORKX]
    run = ["general-matching", "--quick", "--device", "cpu", "--out", str(out)]
    run += ["--cache", str(tmp_path), "--repeats", "1", "--contenders", *names]
    assert bench.main(run) == 0
    data = json.loads(out.read_text())
    (graph,) = data["graphs"].values()
    assert set(graph["results"]) == set(names)
    assert len({graph["results"][name]["size"] for name in names}) == 1
    assert graph["results"][suite.ENGINE]["proven"]
    assert graph["results"][suite.LEMON]["seconds"] == [0.5]
    assert suite.LEMON in suite.report(data, 0.0)


def test_libraries_are_not_asked_for_large_graphs():
    large = max(suite.instances(quick=False, data=None), key=lambda one: one.edges)
    assert not large.takes(suite.NETWORKX)
    assert large.takes(suite.LEMON)


def test_real_matrices_are_symmetrised(tmp_path):
    """Entries that are opposites do not cancel, and a matrix that is not square has two sides."""
    for name, shape, text in (
        ("square", "3 3 3", "1 1 5\n1 2 4\n2 1 -4\n"),
        ("wide", "2 3 3", "1 1 0\n1 3 2\n2 3 2\n"),
    ):
        header = "%%MatrixMarket matrix coordinate real general\n"
        (tmp_path / f"{name}.mtx").write_text(f"{header}{shape}\n{text}")
    square, wide = suite.instances(quick=False, data=str(tmp_path))[-2:]
    assert not square.takes(suite.NETWORKX)
    for instance, n, pairs in ((square, 3, [[0, 1]]), (wide, 5, [[0, 2], [0, 4], [1, 4]])):
        problem = suite.Undirected(instance, instance.make(), "cpu")
        assert problem.matrix.shape == (n, n)
        assert sorted(map(list, zip(*(ends.tolist() for ends in problem.edges)))) == pairs
