"""``gpumatch match --general``: what it prints, writes and exits with."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array

from gpumatch import cli
from gpumatch.cli.running import NOT_PROVEN
from tests.cli.outcomes import assert_rejected

EDGES = "0 1 5\n1 2 9\n0 2 6\n2 3 3\n3 4 1\n"
KEYS = {
    *("source", "vertices", "entries", "size", "vertices_left", "proven", "certificate"),
    *("algorithm", "backend", "phases", "seconds", "output", "pairs"),
}
WEIGHT_KEYS = {"maximize", "cardinality", "objective", "gap"}


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text(EDGES)
    return str(path)


def told(gpumatch_cli, *arguments, code=0):
    got, out, err = gpumatch_cli("match", *arguments, "--json", "--backend", "cpu")
    assert (got, err) == (code, "")
    return json.loads(out)


def test_the_largest_matching(gpumatch_cli, edges):
    report = told(gpumatch_cli, edges, "--general", "--pairs")
    assert set(report) == KEYS
    assert all(key in cli.__doc__ for key in KEYS | WEIGHT_KEYS)
    assert (report["vertices"], report["entries"], report["size"]) == (5, 5, 2)
    assert (report["vertices_left"], report["proven"], report["algorithm"]) == (1, True, "engine")
    assert report["certificate"] == {"size": 2, "bound": 2, "edges": 5}
    assert len({v for pair in report["pairs"] for v in pair}) == 4


@pytest.mark.parametrize(
    ("more", "objective", "size"),
    [
        ((), 10, 2),
        (("--cardinality", "maximum", "--minimize"), 6, 2),
        (("--minimize",), 0, 0),
    ],
)
def test_the_best_total(gpumatch_cli, edges, more, objective, size):
    report = told(gpumatch_cli, edges, "--general", "--weights", *more)
    assert set(report) == KEYS | WEIGHT_KEYS
    assert (report["objective"], report["size"], report["gap"]) == (objective, size, 0)
    assert report["maximize"] is not ("--minimize" in more)


def test_what_is_not_proven_tells_its_bound(gpumatch_cli, tmp_path):
    """The duals of a weight that no perfect matching has leave no bit for those in use."""
    path = tmp_path / "edges.txt"
    path.write_text("0 1 1.5\n1 2 -2\n0 2 1e300\n2 3 1\n")
    asked = str(path), "--general", "--weights", "--cardinality", "perfect"
    report = told(gpumatch_cli, *asked, code=NOT_PROVEN)
    assert (report["objective"], report["proven"]) == (2.5, False)
    assert report["certificate"]["bound"] >= report["objective"] + report["gap"] / 2 > 1e280


def test_suitor_tells_its_bound(gpumatch_cli, edges):
    suitor = "--general", "--weights", "--algorithm", "suitor", "--bound", "half"
    report = told(gpumatch_cli, edges, *suitor, code=3)
    assert report["objective"] == 10
    assert report["certificate"]["bound"] == report["objective"] + report["gap"] == 20
    code, out, _ = gpumatch_cli("match", edges, *suitor)
    assert code == 3
    assert "10, the gap is at most 10" in out
    assert "a bound of 20, checked on 5 edges" in out


def test_text_says_what_was_found(gpumatch_cli, edges):
    code, out, _ = gpumatch_cli("match", edges, "--general")
    assert code == 0
    code, out, _ = gpumatch_cli("match", edges, "--general", "--pairs")
    assert "vertex  vertex\n" in out
    for words in ("5 vertices, 5 entries", "2 edges, 1 vertices left", "maximum", "engine on cpu"):
        assert words in out


def test_labels_of_both_ends_are_one_set(gpumatch_cli, tmp_path):
    path = tmp_path / "friends.csv"
    path.write_text("source,target\nann,bob\nbob,cat\ncat,ann\ncat,dan\n")
    report = told(gpumatch_cli, str(path), "--general", "--pairs")
    assert (report["vertices"], report["size"]) == (4, 2)
    assert sorted(map(sorted, report["pairs"])) == [["ann", "bob"], ["cat", "dan"]]


def test_one_triangle_of_a_matrix(gpumatch_cli, tmp_path):
    matrix = coo_array(np.array([[0, 5, 0], [7, 0, 2], [0, 3, 0]]))
    path = str(tmp_path / "matrix.mtx")
    mmwrite(path, matrix)
    arguments = path, "--general", "--weights", "--triangle"
    assert told(gpumatch_cli, *arguments, "upper")["objective"] == 5
    assert told(gpumatch_cli, *arguments, "lower")["objective"] == 7
    assert_rejected(gpumatch_cli("match", path, "--general", "--weights"), "triangle", "(0, 1)")


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv", ".mtx"])
def test_the_matching_is_written(gpumatch_cli, edges, tmp_path, ending):
    output = tmp_path / f"out{ending}"
    told(gpumatch_cli, edges, "--general", "--weights", "--output", output)
    if ending == ".npy":
        assert np.load(output).tolist() == [-1, 2, 1, 4, 3]
    elif ending == ".npz":
        assert np.load(output)["row_to_col"].tolist() == [-1, 2, 1, 4, 3]
    elif ending == ".csv":
        assert [line.split(",")[:2] for line in output.read_text().split()[1:]] == [
            ["1", "2"],
            ["3", "4"],
        ]
    else:
        assert output.read_text().splitlines()[-2:] == ["2 3", "4 5"]


def test_a_matching_to_begin_from(gpumatch_cli, edges, tmp_path):
    np.save(tmp_path / "first.npy", np.array([1, 0, -1, -1, -1]))
    report = told(gpumatch_cli, edges, "--general", "--initial", tmp_path / "first.npy")
    assert report["size"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--weights",), ("--weights is for --general",)),
        (("--triangle", "upper"), ("--triangle is for --general",)),
        (("--general", "--minimize"), ("--minimize is for --weights",)),
        (("--general", "--bound", "half"), ("--bound is for --weights",)),
        (("--general", "--init", "cheap"), ("--init is not for --general",)),
        (("--general", "--distributed"), ("--distributed is not for --general",)),
        (("--general", "--weights", "--initial", "a.npy"), ("--initial is not for --weights",)),
        (("--general", "--weights", "--cardinality", "perfect"), ("perfect",)),
        (("--general", "--algorithm", "hk"), ("algorithm",)),
    ],
)
def test_wrong_options_are_named(gpumatch_cli, edges, arguments, words):
    assert_rejected(gpumatch_cli("match", edges, *arguments), *words)
