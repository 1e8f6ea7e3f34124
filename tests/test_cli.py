"""The command line end to end: what it prints, writes and exits with, on good input and bad."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array, csr_array, save_npz

import gpumatch
from gpumatch import cli, io
from gpumatch.cli import listings, running

X = math.inf
MATRIX = csr_array(np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]))  # rank 2, 3 by 4
MATCH_KEYS = {
    *("source", "rows", "columns", "entries", "size", "structural_rank"),
    *("rows_left", "columns_left", "proven", "certificate", "algorithm", "backend", "init"),
    *("phases", "levels", "start_size", "seconds", "output"),
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "matrix.mtx"
    mmwrite(path, coo_array(MATRIX))
    return str(path)


@pytest.fixture
def gpumatch_cli(capsys):
    """Runs the command line; gives exit code, stdout, stderr."""

    def run(*arguments):
        code = cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def assert_rejected(outcome, *words):
    """Exit code 2, nothing on stdout, and one line on stderr (after usage) with these words."""
    code, out, err = outcome
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
    message = err.strip().splitlines()[-1]
    assert message.startswith("gpumatch")
    assert ": error: " in message
    for word in words:
        assert word in message


# -- match: what it prints -------------------------------------------------------------------------


def test_text_says_what_was_found_and_proven(gpumatch_cli, file):
    code, out, err = gpumatch_cli("match", file, "--backend", "cpu")
    lines = dict(line.split("  ", 1) for line in out.splitlines() if not line.startswith("  "))
    found = {key: value.strip() for key, value in lines.items()}
    assert code == 0
    assert err == ""
    assert found["graph"] == "3 rows, 4 columns, 4 entries"
    assert found["matching"] == "2 edges, maximum"
    assert found["structural rank"] == "2"
    assert found["left"] == "1 rows, 2 columns"
    assert found["algorithm"] == "engine on cpu, start cheap"
    assert found["certificate"] == "a cover of 2 vertices, checked on 4 edges"
    for part in ("read", "graph", "transfer", "start", "search", "certificate"):
        assert f"\n  {part} " in out


def test_text_is_aligned(gpumatch_cli, file):
    _, out, _ = gpumatch_cli("match", file)
    starts = {len(line) - len(line[17:].lstrip()) for line in out.splitlines()}
    assert starts == {17}


def test_json_has_the_documented_keys(gpumatch_cli, file):
    code, out, _ = gpumatch_cli("match", file, "--json", "--backend", "cpu")
    report = json.loads(out)
    assert code == 0
    assert set(report) == MATCH_KEYS
    assert all(key in cli.__doc__ for key in MATCH_KEYS)
    assert (report["rows"], report["columns"], report["entries"]) == (3, 4, 4)
    assert report["size"] == report["structural_rank"] == 2
    assert (report["rows_left"], report["columns_left"]) == (1, 2)
    assert report["proven"] is True
    assert report["certificate"] == {"size": 2, "bound": 2, "edges": 4}
    parts = ["read", "graph", "transfer", "start", "search", "certificate"]
    assert list(report["seconds"]) == parts
    assert all(taken >= 0 for taken in report["seconds"].values())


@pytest.mark.parametrize(
    "name", [a.name for a in gpumatch.algorithms("matching") if "cpu" in a.backends]
)
def test_every_cpu_algorithm_runs(gpumatch_cli, file, name):
    code, out, _ = gpumatch_cli("match", file, "--algorithm", name, "--backend", "cpu", "--json")
    assert code == 0
    assert json.loads(out)["algorithm"] == name
    assert json.loads(out)["size"] == 2


def test_options_reach_the_library(gpumatch_cli, file, monkeypatch):
    seen = {}

    def spy(matrix, **options):
        seen.update(options)
        return match(matrix, "engine", backend="cpu")

    match = gpumatch.maximum_matching
    monkeypatch.setattr(gpumatch, "maximum_matching", spy)
    gpumatch_cli(
        *("match", file, "--algorithm", "apfb-gpubfs-wr", "--init", "none", "--backend", "cuda"),
        *("--threads", 3, "--seed", 5, "--launch", "mt", "--frontier", "queue"),
        *("--time-limit", 2.5, "--progress"),
    )
    assert seen == {
        "algorithm": "apfb-gpubfs-wr",
        "init": "none",
        "backend": "cuda",
        "initial": None,
        "seed": 5,
        "threads": 3,
        "time_limit": 2.5,
        "progress": True,
        "launch": "mt",
        "frontier": "queue",
    }


def test_launch_is_left_to_the_algorithm_unless_given(gpumatch_cli, file):
    code, out, _ = gpumatch_cli("match", file, "--backend", "reference", "--launch", "mt", "--json")
    assert code == 0
    assert json.loads(out)["backend"] == "reference"


def test_progress_goes_to_stderr(gpumatch_cli, file):
    code, out, err = gpumatch_cli("match", file, "--progress", "--json", "--backend", "cpu")
    assert code == 0
    assert json.loads(out)["size"] == 2
    assert "matched" in err


# -- match: files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".npy", ".mtx"])
def test_output_is_the_matching(gpumatch_cli, file, tmp_path, ending):
    output = tmp_path / f"matching{ending}"
    code, out, _ = gpumatch_cli("match", file, "--output", output)
    row_to_col = io.read_matching(output, MATRIX.shape)
    rows = np.flatnonzero(row_to_col >= 0)
    assert code == 0
    assert str(output) in out
    assert rows.size == 2
    assert all(MATRIX[row, row_to_col[row]] for row in rows)


def test_initial_matching_is_where_the_run_begins(gpumatch_cli, file, tmp_path):
    initial = tmp_path / "initial.npy"
    np.save(initial, np.array([1, 0, -1]))
    arguments = ("match", file, "--initial", initial, "--init", "none", "--json")
    code, out, _ = gpumatch_cli(*arguments, "--backend", "cpu")
    assert code == 0
    assert json.loads(out)["start_size"] == 2


def test_a_matrix_by_its_suitesparse_name(gpumatch_cli, tmp_path, monkeypatch):
    monkeypatch.setenv("GPUMATCH_DATA", str(tmp_path))
    mmwrite(tmp_path / "tiny.mtx", coo_array(MATRIX))
    code, out, _ = gpumatch_cli("match", "Group/tiny", "--json")
    assert code == 0
    assert json.loads(out)["source"] == "Group/tiny"


def test_a_file_comes_before_a_name(gpumatch_cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Group").mkdir()
    (tmp_path / "Group" / "tiny").write_text("")
    assert_rejected(gpumatch_cli("match", "Group/tiny"), "unknown format")


def test_npz(gpumatch_cli, tmp_path):
    save_npz(tmp_path / "matrix.npz", MATRIX)
    assert gpumatch_cli("match", tmp_path / "matrix.npz")[0] == 0


# -- match: exit codes -----------------------------------------------------------------------------


def test_not_proven_in_time(gpumatch_cli, file, tmp_path):
    output = tmp_path / "best.npy"
    arguments = ("match", file, "--time-limit", 0, "--output", output, "--backend", "cpu")
    code, out, _ = gpumatch_cli(*arguments)
    assert code == 3
    assert "not proven maximum" in out
    assert "at least" in out
    assert output.exists()


def test_json_of_what_is_not_proven(gpumatch_cli, file):
    code, out, _ = gpumatch_cli("match", file, "--time-limit", 0, "--json", "--backend", "cpu")
    report = json.loads(out)
    assert code == 3
    assert set(report) == MATCH_KEYS
    assert (report["proven"], report["certificate"], report["structural_rank"]) == (
        False,
        None,
        None,
    )
    assert "certificate" not in report["seconds"]


def test_interrupt_writes_the_best_so_far(gpumatch_cli, file, tmp_path, monkeypatch):
    def interrupted(matrix, **options):
        exc = KeyboardInterrupt()
        exc.result = best
        raise exc

    best = gpumatch.maximum_matching(MATRIX, backend="cpu")
    monkeypatch.setattr(gpumatch, "maximum_matching", interrupted)
    output = tmp_path / "best.npy"
    code, out, err = gpumatch_cli("match", file, "--output", output)
    assert code == 130
    assert out == ""
    assert err == "gpumatch: wrote 2 edges so far\ngpumatch: interrupted\n"
    assert io.read_matching(output, MATRIX.shape).tolist() == best.row_to_col.tolist()


def test_interrupt_before_there_is_a_result(gpumatch_cli, file, tmp_path, monkeypatch):
    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(io, "read", interrupted)
    output = tmp_path / "best.npy"
    assert gpumatch_cli("match", file, "--output", output)[0] == 130
    assert not output.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"not a matrix\n", "matrix.mtx"),
        (b"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1.0\n", "matrix.mtx"),
        (b"%%MatrixMarket matrix coordinate real general\n3 3 1\n9 1 1.0\n", "matrix.mtx"),
        (b"%%MatrixMarket matrix coordinate real general\n3 3 999999999999\n1 1 1\n", "promises"),
    ],
)
def test_malformed_files_are_named(gpumatch_cli, tmp_path, content, words):
    path = tmp_path / "matrix.mtx"
    path.write_bytes(content)
    assert_rejected(gpumatch_cli("match", path), words)


def test_missing_file(gpumatch_cli, tmp_path):
    missing = tmp_path / "missing.mtx"
    assert_rejected(gpumatch_cli("match", missing), str(missing), "No such file")


def test_folder_instead_of_file(gpumatch_cli, tmp_path):
    assert_rejected(gpumatch_cli("match", tmp_path / ".."))


def test_matrix_that_is_not_here_without_a_network(gpumatch_cli, tmp_path, monkeypatch):
    def unreachable(*_, **__):
        raise OSError("no route to host")

    monkeypatch.setenv("GPUMATCH_DATA", str(tmp_path))
    monkeypatch.setattr("pooch.create", unreachable)
    outcome = gpumatch_cli("match", "Group/nowhere")
    assert_rejected(outcome, "Group/nowhere", "no route to host", str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--algorithm", "magic"], ["algorithm", "magic"]),
        (["--backend", "abacus"], ["backend", "abacus"]),
        (["--init", "luck"], ["init", "luck"]),
        (["--threads", "0"], ["threads", "0"]),
        (["--threads", "two"], ["--threads", "two"]),
        (["--seed", "-1"], ["seed", "-1"]),
        (["--time-limit", "-1"], ["time_limit", "-1"]),
        (["--algorithm", "hk", "--launch", "ct"], ["hk", "launch"]),
        (["--backend", "reference", "--launch", "xy"], ["launch", "xy"]),
        (["--initial", "nowhere.npy"], ["nowhere.npy"]),
        (["--output", "matching.txt"], ["--output", "matching.txt", ".npy"]),
        (["--output", "no/such/folder/m.npy"], ["--output", "no/such/folder"]),
        (["--no-such-option"], ["--no-such-option"]),
    ],
)
def test_wrong_options_are_named(gpumatch_cli, file, arguments, words):
    assert_rejected(gpumatch_cli("match", file, *arguments), *words)


def test_initial_that_is_no_matching_of_the_graph(gpumatch_cli, file, tmp_path):
    initial = tmp_path / "initial.npy"
    np.save(initial, np.array([3, -1, -1]))
    outcome = gpumatch_cli("match", file, "--initial", initial)
    assert_rejected(outcome, "initial", "row 0", "column 3")


def test_cuda_where_there_is_none(gpumatch_cli, file, monkeypatch):
    monkeypatch.setattr("gpumatch.backends.why_no_cuda", lambda: "the driver is on holiday")
    assert_rejected(gpumatch_cli("match", file, "--backend", "cuda"), "the driver is on holiday")


def test_a_broken_certificate_is_no_bad_input(gpumatch_cli, file, monkeypatch):
    def broken(*_):
        raise gpumatch.CertificateError("the cover misses an edge")

    monkeypatch.setattr(gpumatch, "verify", broken)
    with pytest.raises(gpumatch.CertificateError):
        gpumatch_cli("match", file)


@pytest.mark.parametrize("arguments", [[], ["match"], ["assign"], ["conquer"]])
def test_usage_errors(gpumatch_cli, arguments):
    assert_rejected(gpumatch_cli(*arguments))


# -- assign ----------------------------------------------------------------------------------------

COSTS = [[4, 1, 3, 9], [2, 0, 5, 9], [3, 2, 2, 9]]
FORBIDDEN = [[1, X, X], [2, X, X], [5, 6, 7]]
ASSIGN_KEYS = {
    *("source", "rows", "columns", "entries", "maximize", "cardinality", "cost_limit"),
    *("size", "objective", "gap", "rows_left", "columns_left", "proven", "certificate"),
    *("algorithm", "backend", "phases", "levels", "seconds", "output"),
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
    assert found["algorithm"] == "shortest-augmenting-path on cpu"
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
    assert list(report["seconds"]) == ["read", "costs", "search", "certificate"]


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
        *(part for name, value in own.items() for part in (f"--{name}", value)),
    )
    assert seen == {
        "algorithm": "dgs",
        "backend": "reference",
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
    running.tell({"seconds": seconds, "output": None}, {}, as_json=False)
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
        ("costs.txt", b"1,2\n", ["unknown format"]),
        ("costs.csv", str(2**62).encode(), ["too large"]),
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
        (["--cost-limit", "inf"], ["cost_limit", "finite"]),
        (["--launch", "ct"], ["--launch"]),
        (["--search", "stack", "--algorithm", "dgs"], ["dgs", "search"]),
        (["--initial", "nowhere.npy"], ["nowhere.npy"]),
        (["--output", "matching.txt"], ["--output", "matching.txt", ".npy"]),
    ],
)
def test_wrong_options_of_assign_are_named(gpumatch_cli, table, arguments, words):
    assert_rejected(gpumatch_cli("assign", table(COSTS), *arguments), *words)


# -- algorithms and info ---------------------------------------------------------------------------


def test_algorithms_table(gpumatch_cli):
    code, out, _ = gpumatch_cli("algorithms")
    header, *rows = out.splitlines()
    assert code == 0
    assert header.split() == ["name", "problem", "backends", "result", "options", "reference"]
    assert [row.split()[0] for row in rows] == [a.name for a in gpumatch.algorithms()]
    results = [" exact" if a.exact else " heuristic" for a in gpumatch.algorithms()]
    assert len({row.index(result) for row, result in zip(rows, results)}) == 1


def test_algorithms_json(gpumatch_cli):
    code, out, _ = gpumatch_cli("algorithms", "--json")
    known = {algorithm["name"]: algorithm for algorithm in json.loads(out)}
    assert code == 0
    assert set(known) == {a.name for a in gpumatch.algorithms()}
    assert known["apfb-gpubfs-wr"] == {
        "name": "apfb-gpubfs-wr",
        "problem": "matching",
        "backends": ["cuda", "reference"],
        "exact": True,
        "reference": known["apfb-gpubfs-wr"]["reference"],
        "options": {"launch": ["ct", "mt"], "frontier": ["scan", "queue"]},
    }


def test_info_says_why_cuda_is_off(gpumatch_cli, monkeypatch):
    monkeypatch.setattr("gpumatch.backends.why_no_cuda", lambda: "the driver is on holiday")
    code, out, _ = gpumatch_cli("info")
    assert code == 0
    assert "off: the driver is on holiday" in out
    assert gpumatch.__version__ in out
    assert np.__version__ in out


def test_info_json(gpumatch_cli, monkeypatch):
    device = {"name": "Abacus 9000", "memory_bytes": 2**34, "free_bytes": 2**33}
    monkeypatch.setattr("gpumatch.backends.why_no_cuda", lambda: None)
    monkeypatch.setattr(listings, "_devices", lambda: [device])
    code, out, _ = gpumatch_cli("info", "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"versions", "python", "platform", "threads", "devices", "cuda_off"}
    assert found["devices"] == [device]
    assert found["cuda_off"] is None
    assert found["threads"] >= 1
    assert "Abacus 9000, 16.0 GiB, 8.0 GiB free" in gpumatch_cli("info")[1]


def test_info_without_cupy(gpumatch_cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    code, out, _ = gpumatch_cli("info", "--json")
    assert code == 0
    assert json.loads(out)["versions"]["cupy"] is None
    assert "CuPy is missing" in json.loads(out)["cuda_off"]


def test_version(gpumatch_cli):
    assert gpumatch_cli("--version")[:2] == (0, f"gpumatch {gpumatch.__version__}\n")


# -- the real command ------------------------------------------------------------------------------


def test_as_a_process(file):
    command = [sys.executable, "-m", "gpumatch", "match", file, "--backend", "reference"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert "2 edges, maximum" in done.stdout
    assert done.stderr == ""


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from gpumatch import cli; cli.main(['--help']); "
        "print(*(set(sys.modules) & {'numpy', 'scipy', 'numba', 'cupy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Exit codes" in done.stdout
    assert done.stdout.splitlines()[-1] == ""
