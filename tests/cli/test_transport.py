"""``gpumatch transport``: what it prints, writes and exits with, on good input and bad."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.io import mmread, mmwrite
from scipy.sparse import coo_array

import gpumatch as gm
from tests.cli.outcomes import assert_rejected

COSTS = np.array([[4, 1, 3, 9], [2, 0, 5, 9], [3, 2, 2, 1]])
KEYS = {
    *("source", "rows", "columns", "entries", "maximize", "cardinality", "cost_limit"),
    *("size", "total", "objective", "gap", "proven", "certificate", "algorithm", "backend"),
    *("phases", "seconds", "output", "pairs"),
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with costs and masses."""
    monkeypatch.chdir(tmp_path)
    np.save("C.npy", COSTS)
    (tmp_path / "a.csv").write_text("2\n3\n4\n")
    (tmp_path / "b.txt").write_text("3, 1, 4.5, 6")
    np.save("b.npy", np.array([3, 1, 4, 6]))
    return tmp_path


def test_it_says_what_was_found_and_proven(gpumatch_cli, files):
    code, out, err = gpumatch_cli("transport", "C.npy", "--supply", "a.csv", "--demand", "b.npy")
    lines = dict(line.split("  ", 1) for line in out.splitlines() if not line.startswith("  "))
    found = {key: value.strip() for key, value in lines.items()}
    want = gm.transport(COSTS, [2, 3, 4], [3, 1, 4, 6])
    assert (code, err) == (0, "")
    assert found["costs"] == "3 rows, 4 columns, 12 entries"
    assert found["flow"] == f"9 on {want.size} pairs, optimal"
    assert found["objective"] == str(want.objective)
    assert found["gap"] == "0"
    assert found["algorithm"] == "engine on cpu"
    assert found["certificate"].endswith("checked on 12 pairs")


def test_capacities_of_pairs(gpumatch_cli, files):
    command = ("transport", "C.npy", "--supply", "2", "--demand", "3", "--json", "--pairs")
    np.save("k.npy", COSTS % 3)
    for given, capacity in (("1", 1), ("k.npy", COSTS % 3)):
        code, out, _ = gpumatch_cli(*command, "--pair-capacity", given)
        report = json.loads(out)
        want = gm.transport(COSTS, 2, 3, pair_capacity=capacity)
        assert (code, report["objective"]) == (0, want.objective)
        assert max(pair[2] for pair in report["pairs"]) <= np.max(capacity)
    code, _, err = gpumatch_cli(*command, "--pair-capacity", "k.npy", "--output", "k.npy")
    assert code == 2
    assert "k.npy" in err


def test_json_and_pairs(gpumatch_cli, files):
    command = ("transport", "C.npy", "--supply", "2", "--demand", "b.txt", "--json", "--pairs")
    code, out, _ = gpumatch_cli(*command, "--cost-limit", "2", "--maximize")
    report = json.loads(out)
    want = gm.transport(COSTS, 2, [3, 1, 4.5, 6], cost_limit=2, maximize=True)
    assert code == 0
    assert report.keys() == KEYS
    assert (report["objective"], report["total"]) == (want.objective, want.total)
    assert [pair[2] for pair in report["pairs"]] == want.flow.tolist()
    _, out, _ = gpumatch_cli("transport", "C.npy", "--supply", "1", "--demand", "1", "--pairs")
    assert "row  column  flow  cost" in out


@pytest.mark.parametrize("ending", ["npy", "csv", "mtx", "npz"])
def test_the_flow_is_written(gpumatch_cli, files, ending):
    path = f"flow.{ending}"
    command = ("transport", "C.npy", "--supply", "a.csv", "--demand", "b.npy", "--output", path)
    code, out, _ = gpumatch_cli(*command)
    assert code == 0
    assert out.splitlines()[-1].split() == ["written", path]
    want = gm.transport(COSTS, [2, 3, 4], [3, 1, 4, 6])
    if ending == "npz":
        with np.load(path) as found:
            assert found["flow"].tolist() == want.flow.tolist()
            assert found["shape"].tolist() == [3, 4]
            assert found["objective"] == want.objective
        return
    if ending == "csv":
        rows, cols, flow = np.loadtxt(path, delimiter=",", dtype=np.int64, unpack=True)
        dense = coo_array((flow, (rows, cols)), shape=(3, 4)).toarray()
    else:
        dense = np.load(path) if ending == "npy" else mmread(path).toarray()
    assert (dense == want.to_matrix().toarray()).all()


def test_a_run_that_is_stopped_is_not_proven(gpumatch_cli, files):
    command = ("transport", "C.npy", "--supply", "2", "--demand", "3", "--time-limit", "0")
    code, out, _ = gpumatch_cli(*command)
    assert code == 3
    assert "not proven optimal" in out


def test_bad_input(gpumatch_cli, files):
    mmwrite("S.mtx", coo_array(([1, 2], ([0, 1], [0, 0])), shape=(2, 2)))
    (files / "words.csv").write_text("1\nmany\n")
    for arguments, text in (
        (("C.npy", "--supply", "-1", "--demand", "1"), "supply[0] is -1"),
        (("C.npy", "--supply", "1", "--demand", "a.csv"), "demand must be a number, or 4 numbers"),
        (("C.npy", "--supply", "none.csv", "--demand", "1"), "none.csv"),
        (("C.npy", "--supply", "words.csv", "--demand", "1"), "words.csv must hold numbers only"),
        (("S.mtx", "--supply", "1", "--demand", "1"), "the masses are infeasible"),
        (("C.npy", "--supply", "a.csv", "--demand", "1", "--output", "a.csv"), "would overwrite"),
    ):
        assert_rejected(gpumatch_cli("transport", *arguments), text)
