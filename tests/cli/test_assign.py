"""``gpumatch assign``: what it prints, writes and exits with, on good input and bad."""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array, save_npz

import gpumatch
from gpumatch import cli, io
from gpumatch.cli import running
from tests.cli.outcomes import assert_rejected

X = math.inf


COSTS = [[4, 1, 3, 9], [2, 0, 5, 9], [3, 2, 2, 9]]
FORBIDDEN = [[1, X, X], [2, X, X], [5, 6, 7]]
ASSIGN_KEYS = {
    *("source", "rows", "columns", "entries", "maximize", "cardinality", "cost_limit"),
    *("size", "objective", "gap", "rows_left", "columns_left", "proven", "certificate"),
    *("algorithm", "backend", "phases", "levels", "seconds", "output", "pairs"),
}


@pytest.fixture
def table(tmp_path):
    """Writes costs as lines of numbers; gives the file's name."""

    def write(rows):
        path = tmp_path / "costs.csv"
        path.write_text("\n".join(",".join(map(str, row)) for row in rows))
        return str(path)

    return write


def test_assign_says_what_was_found_and_proven(gpumatch_cli, table):
    code, out, err = gpumatch_cli("assign", table(COSTS))
    lines = dict(line.split("  ", 1) for line in out.splitlines() if not line.startswith("  "))
    found = {key: value.strip() for key, value in lines.items()}
    assert (code, err) == (0, "")
    assert found["costs"] == "3 rows, 4 columns, 12 entries"
    assert found["assignment"] == "3 pairs, optimal"
    assert (found["objective"], found["gap"]) == ("5", "0")
    assert found["left"] == "0 rows, 1 columns"
    assert found["algorithm"] == "engine on cpu"
    assert found["certificate"] == "dual prices of total 5, checked on 12 pairs"
    for part in ("read", "costs", "search", "certificate"):
        assert f"\n  {part} " in out


def test_assign_as_json(gpumatch_cli, table):
    code, out, _ = gpumatch_cli("assign", table(COSTS), "--json", "--cost-limit", "2")
    report = json.loads(out)
    assert code == 0
    assert set(report) == ASSIGN_KEYS
    assert all(key in cli.__doc__ for key in ASSIGN_KEYS)
    assert (report["rows"], report["columns"], report["entries"]) == (3, 4, 12)
    assert (report["maximize"], report["cardinality"], report["cost_limit"]) == (False, "full", 2)
    assert report["size"] + report["rows_left"] == 3
    assert report["size"] + report["columns_left"] == 4
    assert report["objective"] - 2 * report["size"] == -2
    assert report["certificate"]["bound"] == report["objective"]
    assert report["certificate"]["edges"] == 12
    assert (report["proven"], report["gap"]) == (True, 0)
    assert list(report["seconds"]) == ["read", "compilation", "costs", "search", "certificate"]


@pytest.mark.parametrize("end", ["npy", "csv", "mtx", "mtx.gz", "csv.gz", "npz"])
def test_assign_takes_every_format(gpumatch_cli, tmp_path, end):
    path = tmp_path / f"costs.{end}"
    matrix = np.array(COSTS)
    plain = tmp_path / f"costs.{end.removesuffix('.gz')}"
    if "npy" in end:
        np.save(plain, matrix)
    elif "csv" in end:
        np.savetxt(plain, matrix, fmt="%d", delimiter=",")
    elif "npz" in end:
        save_npz(plain, coo_array(matrix))
    else:
        mmwrite(plain, matrix)
    if end.endswith(".gz"):
        path.write_bytes(gzip.compress(plain.read_bytes()))
    code, out, _ = gpumatch_cli("assign", path, "--json", "--maximize")
    assert code == 0
    assert json.loads(out)["objective"] == 4 + 5 + 9


@pytest.mark.parametrize(
    ("arguments", "objective", "size"),
    [
        ([], 7, 2),
        (["--cost-limit", "4"], 1, 1),
        (["--cost-limit", "0.5"], 0, 0),
    ],
)
def test_assign_as_many_as_can_be(gpumatch_cli, table, arguments, objective, size):
    arguments = [*arguments, "--cardinality", "maximum", "--json"]
    report = json.loads(gpumatch_cli("assign", table(FORBIDDEN), *arguments)[1])
    assert (report["objective"], report["size"]) == (objective, size)


def test_integer_limits_are_exact(gpumatch_cli, table):
    arguments = ("--cost-limit", str(2**53 + 1), "--json")
    assert (
        json.loads(gpumatch_cli("assign", table(COSTS), *arguments)[1])["cost_limit"] == 2**53 + 1
    )


def test_infeasible_costs_are_bad_input(gpumatch_cli, table):
    outcome = gpumatch_cli("assign", table(FORBIDDEN))
    assert_rejected(outcome, "infeasible", "2 rows may be assigned to 1 columns only")


@pytest.mark.parametrize(
    "name", [a.name for a in gpumatch.algorithms("assignment") if "cpu" in a.backends]
)
def test_every_algorithm_for_assignment_runs(gpumatch_cli, table, name):
    arguments = ("--algorithm", name, "--backend", "cpu", "--json")
    code, out, _ = gpumatch_cli("assign", table(COSTS), *arguments)
    report = json.loads(out)
    assert code == (0 if report["proven"] else 3)
    assert report["algorithm"] == name
    assert report["size"] == 3


def test_options_of_assign_reach_the_library(gpumatch_cli, table, monkeypatch):
    seen = {}

    def spy(costs, **options):
        seen.update(options)
        return assign(costs)

    assign = gpumatch.assign
    monkeypatch.setattr(gpumatch, "assign", spy)
    own = {
        name: values[-1] for a in gpumatch.algorithms("assignment") for name, values in
        a.options.items()
    }  # fmt: skip
    gpumatch_cli(
        *("assign", table(COSTS), "--algorithm", "dgs", "--backend", "reference", "--maximize"),
        *("--cardinality", "any", "--cost-limit", "1e1", "--threads", 3, "--seed", 5),
        *("--time-limit", 2.5, "--progress"),
        *(part for name, value in own.items() for part in ("--" + name.replace("_", "-"), value)),
    )
    assert seen == {
        "algorithm": "dgs",
        "backend": "reference",
        "objective": "sum",
        "maximize": True,
        "cardinality": "any",
        "cost_limit": 10.0,
        "initial": None,
        "seed": 5,
        "threads": 3,
        "time_limit": 2.5,
        "progress": True,
        **own,
    }
    assert {"search", "finish", "convergence", "start", "switching"} <= own.keys()


@pytest.mark.parametrize("ending", [".npy", ".mtx"])
def test_assign_writes_what_it_can_begin_from(gpumatch_cli, table, tmp_path, ending):
    output = tmp_path / f"assignment{ending}"
    code, out, _ = gpumatch_cli("assign", table(COSTS), "--output", output)
    assert code == 0
    assert str(output) in out
    assert io.read_matching(output, (3, 4)).tolist() == [1, 0, 2]
    code, out, _ = gpumatch_cli("assign", table(COSTS), "--initial", output, "--json")
    assert json.loads(out)["objective"] == 5


def test_assign_not_proven_in_time(gpumatch_cli, tmp_path):
    path = tmp_path / "costs.npy"
    np.save(path, np.random.default_rng(1).random((60, 60)))
    code, out, _ = gpumatch_cli("assign", path, "--time-limit", 0)
    assert code == 3
    assert "not proven optimal" in out
    assert re.search(r"^gap +unknown$", out, re.M)
    assert re.search(r"^certificate +none$", out, re.M)
    assert re.search(rf"^source +{path}$", out, re.M)
    code, out, _ = gpumatch_cli("assign", path, "--time-limit", 0, "--json")
    report = json.loads(out)
    assert code == 3
    assert set(report) == ASSIGN_KEYS
    assert (report["proven"], report["certificate"], report["gap"]) == (False, None, None)


def test_an_interrupt_writes_the_assignment_so_far(gpumatch_cli, table, tmp_path, monkeypatch):
    def interrupted(costs, **options):
        exc = KeyboardInterrupt()
        exc.result = best
        raise exc

    best = gpumatch.assign(COSTS)
    monkeypatch.setattr(gpumatch, "assign", interrupted)
    output = tmp_path / "best.npy"
    code, out, err = gpumatch_cli("assign", table(COSTS), "--output", output)
    assert (code, out) == (130, "")
    assert err == "gpumatch: wrote 3 edges so far\ngpumatch: interrupted\n"
    assert io.read_matching(output, (3, 4)).tolist() == [1, 0, 2]


def test_times_of_the_parts_are_not_added_to_that_of_the_search(capsys):
    seconds = {"read": 1.0, "costs": 2.0, "forward": 3.0, "search": 4.0}
    options = argparse.Namespace(json=False, quiet=False)
    running.tell({"seconds": seconds, "output": None}, {}, options)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line.split() for line in lines] == [
        ["time", "7.000", "s"],
        ["read", "1.000", "s"],
        ["costs", "2.000", "s"],
        ["search", "4.000", "s"],
        ["forward", "3.000", "s"],
    ]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("costs.csv", b"1,2\n3,x\n", ["costs.csv", "line 2, field 2: 'x' is no number"]),
        ("costs.csv", b"1,2\n3\n", ["line 2 has 1 fields"]),
        ("costs.csv", b"1,nan\n", ["NaN"]),
        ("costs.csv", b"1,-inf\n", ["-inf"]),
        ("costs.csv", b"", ["costs.csv", "empty"]),
        ("costs.npy", b"no array", ["costs.npy"]),
        ("costs.mtx", b"%%MatrixMarket matrix coordinate real general\n3 3 1\n9 1 1\n", ["costs"]),
        (
            "costs.mtx",
            b"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 2\n",
            ["costs must be real numbers"],
        ),
        ("costs.dat", b"1,2\n", ["unknown format"]),
        ("costs.csv", str(2**62).encode(), ["too large"]),
    ],
    ids=[
        "word",
        "short line",
        "NaN",
        "-inf",
        "empty",
        "not npy",
        "row outside",
        "complex",
        "unknown format",
        "too large",
    ],
)
def test_malformed_costs_are_named(gpumatch_cli, tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    assert_rejected(gpumatch_cli("assign", path), *words)


def test_an_array_of_another_dimension(gpumatch_cli, tmp_path):
    np.save(tmp_path / "costs.npy", np.ones((2, 2, 2)))
    assert_rejected(gpumatch_cli("assign", tmp_path / "costs.npy"), "2 dimensions; got 3")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--algorithm", "hk"], ["algorithm", "hk"]),
        (["--cardinality", "most"], ["cardinality", "most"]),
        (["--cost-limit", "low"], ["--cost-limit", "'low' is no number"]),
        (["--cost-limit", "nan"], ["cost_limit", "finite"]),
        (["--launch", "ct"], ["--launch"]),
        (["--search", "stack", "--algorithm", "dgs"], ["dgs", "search"]),
        (["--initial", "nowhere.npy"], ["nowhere.npy"]),
        (["--output", "matching.txt"], ["--output", "matching.txt", ".npy"]),
    ],
)
def test_wrong_options_of_assign_are_named(gpumatch_cli, table, arguments, words):
    assert_rejected(gpumatch_cli("assign", table(COSTS), *arguments), *words)


@pytest.mark.parametrize("more", [[], ["--maximize"]])
def test_bottleneck(gpumatch_cli, table, more):
    code, out, err = gpumatch_cli("assign", table(COSTS[:2]), "--objective", "bottleneck", *more)
    costs = np.array(COSTS[:2])
    best = gpumatch.assign(costs, objective="bottleneck", maximize=bool(more))
    assert (code, err) == (0, "")
    assert re.search(rf"\nbottleneck +{best.objective}\n", out)
    assert "vertices of all better pairs, checked on 8 pairs" in out
    assert "\ngap" not in out


def test_bottleneck_as_json(gpumatch_cli, table):
    code, out, _ = gpumatch_cli("assign", table(COSTS), "--objective", "bottleneck", "--json")
    report = json.loads(out)
    assert (code, set(report)) == (0, ASSIGN_KEYS)
    assert (report["objective"], report["gap"], report["proven"]) == (2, None, True)


def test_an_unknown_objective_is_bad_usage(gpumatch_cli, table):
    assert_rejected(gpumatch_cli("assign", table(COSTS), "--objective", "mean"), "objective")


# -- points ----------------------------------------------------------------------------------------


@pytest.fixture
def clouds(tmp_path):
    """Two files of points."""
    rng = np.random.default_rng(3)
    X, Y = rng.random((12, 2)), rng.random((15, 2))
    np.save(tmp_path / "X.npy", X)
    np.savetxt(tmp_path / "Y.csv", Y, delimiter=",")
    return [str(tmp_path / "X.npy"), str(tmp_path / "Y.csv")]


@pytest.mark.parametrize("more", [[], ["--distributed"]], ids=["here", "ranks"])
def test_assign_takes_points(gpumatch_cli, clouds, more):
    if more:
        pytest.importorskip("mpi4py")
    wish = ["--metric", "euclidean", "--cost-limit", "0.2"]
    code, out, err = gpumatch_cli("assign", "--points", *clouds, *wish, "--json", *more)
    report = json.loads(out)
    X, Y = np.load(clouds[0]), np.loadtxt(clouds[1], delimiter=",")
    a = gpumatch.assign(gpumatch.PointCosts(X, Y, "euclidean"), cost_limit=0.2)
    assert (code, err) == (0, "")
    assert (report["rows"], report["columns"], report["entries"]) == (12, 15, 180)
    assert report["source"] == " ".join(clouds)
    assert report["objective"] - 0.2 * report["size"] == pytest.approx(a.objective - 0.2 * a.size)
    assert report["certificate"]["edges"] == 180


def test_points_are_squared_distances_by_default(gpumatch_cli, clouds):
    _, out, _ = gpumatch_cli("assign", "--points", *clouds, "--json")
    X, Y = np.load(clouds[0]), np.loadtxt(clouds[1], delimiter=",")
    expected = gpumatch.assign(gpumatch.PointCosts(X, Y)).objective
    assert json.loads(out)["objective"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there are no costs"),
        (["costs.npy", "--metric", "cosine"], "--metric is for --points only"),
        (["costs.npy", "--points", "X", "Y"], "--points takes the place of costs"),
        (["--points", "X", "Y", "--metric", "manhattan"], "metric must be one of"),
        (["--points", "X", "Y", "--duplicates", "sum"], "--duplicates is not for --points"),
        (["--points", "X", "Y", "--output", "X"], "would overwrite"),
    ],
)
def test_assign_refuses_points_that_are_asked_for_wrongly(gpumatch_cli, clouds, arguments, message):
    named = dict(zip("XY", clouds))
    outcome = gpumatch_cli("assign", *(named.get(word, word) for word in arguments))
    assert_rejected(outcome, message)
