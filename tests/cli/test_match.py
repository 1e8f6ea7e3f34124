"""``gpumatch match``: what it prints, writes and exits with, on good input and bad."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array, save_npz

import gpumatch
from gpumatch import cli, io
from gpumatch.cli import running
from gpumatch.running.control import COMPILATION, Control
from tests.cli.outcomes import MATRIX, assert_rejected

MATCH_KEYS = {
    *("source", "rows", "columns", "entries", "size", "structural_rank"),
    *("rows_left", "columns_left", "proven", "certificate", "algorithm", "backend", "init"),
    *("phases", "levels", "start_size", "seconds", "output", "pairs"),
}


# -- what it prints --------------------------------------------------------------------------------


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
    parts = ["read", "compilation", "graph", "transfer", "start", "search", "certificate"]
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


# -- files ----------------------------------------------------------------------------------------


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


# -- exit codes -----------------------------------------------------------------------------------


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


def test_options_are_not_abbreviated(gpumatch_cli, file):
    code, _, err = gpumatch_cli("match", file, "--ini", "cheap")
    assert code == 2
    assert "unrecognized arguments: --ini" in err


def test_the_reader_of_the_output_has_closed_it(file):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "gpumatch", "match", file]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("has_result", [False, True])
@pytest.mark.parametrize("is_asked", [False, True])
def test_an_interrupt_writes_nothing_unless_asked_to_and_there_is_a_result(
    gpumatch_cli, file, tmp_path, monkeypatch, has_result, is_asked
):
    def interrupted(matrix, **_):
        exc = KeyboardInterrupt()
        exc.result = best if has_result else None
        raise exc

    best = gpumatch.maximum_matching(MATRIX, backend="cpu")
    monkeypatch.setattr(gpumatch, "maximum_matching", interrupted)
    output = tmp_path / "best.npy"
    code, _, err = gpumatch_cli("match", file, *(["--output", output] if is_asked else []))
    assert code == 130
    assert err.endswith("gpumatch: interrupted\n")
    assert ("wrote" in err) == output.exists() == (has_result and is_asked)


def test_a_file_of_this_folder_is_written_without_a_path(gpumatch_cli, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert gpumatch_cli("match", file, "--output", "m.npy")[0] == 0
    assert gpumatch_cli("dmperm", file, "--plot", "p.png", "--output", "d.npz")[0] == 0
    assert {path.name for path in tmp_path.iterdir()} >= {"m.npy", "p.png", "d.npz"}


def test_an_error_of_the_system_needs_no_file(gpumatch_cli, file, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gpumatch, "maximum_matching", full)
    outcome = gpumatch_cli("match", file)
    assert_rejected(outcome, "gpumatch: error: [Errno 28] No space left on device")


def test_interrupt_before_there_is_a_result(gpumatch_cli, file, tmp_path, monkeypatch):
    def interrupted(path, **_):
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
    ids=["empty", "no banner", "entry missing", "row outside", "too many promised"],
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
        (["--distributed", "--algorithm", "hk"], ["--distributed has no algorithm 'hk'"]),
    ],
)
def test_wrong_options_are_named(gpumatch_cli, file, arguments, words):
    assert_rejected(gpumatch_cli("match", file, *arguments), *words)


def test_initial_that_is_no_matching_of_the_graph(gpumatch_cli, file, tmp_path):
    initial = tmp_path / "initial.npy"
    np.save(initial, np.array([3, -1, -1]))
    outcome = gpumatch_cli("match", file, "--initial", initial)
    assert_rejected(outcome, "initial", "row 0", "column 3")


def same_path(file, tmp_path):
    return file


def other_spelling(file, tmp_path):
    (tmp_path / "folder").mkdir()
    return os.path.join(tmp_path, "folder", "..", os.path.basename(file))


def symbolic_link(file, tmp_path):
    os.symlink(file, tmp_path / "link.mtx")
    return tmp_path / "link.mtx"


def hard_link(file, tmp_path):
    os.link(file, tmp_path / "link.mtx")
    return tmp_path / "link.mtx"


def link_to_a_folder(file, tmp_path):
    os.symlink(tmp_path, tmp_path / "folder", target_is_directory=True)
    return tmp_path / "folder" / os.path.basename(file)


@pytest.mark.parametrize("command", ["match", "assign"])
@pytest.mark.parametrize(
    "name", [same_path, other_spelling, symbolic_link, hard_link, link_to_a_folder]
)
def test_the_output_never_overwrites_the_input(gpumatch_cli, file, tmp_path, name, command):
    before = Path(file).read_bytes()
    output = name(file, tmp_path)
    assert_rejected(gpumatch_cli(command, file, "--output", output), "would overwrite the input")
    assert Path(file).read_bytes() == before


@pytest.mark.parametrize("command", ["match", "assign"])
def test_the_output_never_overwrites_a_matrix_of_the_collection(
    gpumatch_cli, file, monkeypatch, command
):
    before = Path(file).read_bytes()
    monkeypatch.setenv("GPUMATCH_DATA", os.path.dirname(file))
    outcome = gpumatch_cli(command, "Group/matrix", "--output", file)
    assert_rejected(outcome, "would overwrite the input")
    assert Path(file).read_bytes() == before


def test_an_older_output_is_overwritten(gpumatch_cli, file, tmp_path):
    for _ in range(2):
        assert gpumatch_cli("match", file, "--output", tmp_path / "matching.mtx")[0] == 0


def test_cuda_where_there_is_none(gpumatch_cli, file, monkeypatch):
    monkeypatch.setattr(
        "gpumatch.dispatch.backends.why_no_cuda", lambda: "the driver is on holiday"
    )
    assert_rejected(gpumatch_cli("match", file, "--backend", "cuda"), "the driver is on holiday")


@pytest.mark.parametrize("error", [ValueError, TypeError, RuntimeError, MemoryError, ImportError])
def test_what_a_run_refuses_is_said_in_a_line(gpumatch_cli, file, monkeypatch, error):
    for reason, told in (("no room\nfor it",), "no room for it"), ((), error.__name__):

        def refuse(*_, reason=reason, **__):
            raise error(*reason)

        monkeypatch.setattr(gpumatch, "maximum_matching", refuse)
        assert_rejected(gpumatch_cli("match", file), f"gpumatch: error: {told}")


def test_a_broken_certificate_is_no_bad_input(gpumatch_cli, file, monkeypatch):
    def broken(*_):
        raise gpumatch.CertificateError("the cover misses an edge")

    monkeypatch.setattr(gpumatch, "verify", broken)
    with pytest.raises(gpumatch.CertificateError):
        gpumatch_cli("match", file)


def test_compilations_of_the_command_and_of_the_run_add_up():
    clock = Control()
    clock.seconds.update({"read": 1.0, COMPILATION: 2.0, "certificate": 4.0})
    stats = {"seconds": {"search": 8.0, COMPILATION: 16.0}}
    expected = {"read": 1.0, "search": 8.0, COMPILATION: 18.0, "certificate": 4.0}
    assert running.seconds_of(stats, clock) == expected
