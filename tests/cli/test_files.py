"""Files at the command line: what is read from them, in all commands alike."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cli.outcomes import assert_rejected
from tests.io.stored_files import stored
from tests.io.test_matrix_market import text_of


def test_the_command_line_reads_the_same(gpumatch_cli, tmp_path):
    lines = "1 1 1.5D-3\n1 2 0.15000-101\n2 1 +2\n2 2 1\n"
    path = stored(tmp_path / "a.mtx", text_of(lines, sizes="2 2 4"))
    code, out, _ = gpumatch_cli("assign", path, "--pairs", "--json")
    assert code == 0
    assert '"objective": 1.0015' in out
    path = stored(tmp_path / "a.mtx", text_of(lines.replace("-3", "-3abc"), sizes="2 2 4"))
    for command in ("assign", "match", "dmperm", "scale"):
        outcome = gpumatch_cli(command, path)
        assert_rejected(outcome, "a.mtx: line 3: '1.5D-3abc' is not a real number")


# Lists of edges ---------------------------------------------------------------------------------

LABELLED = "source,target,similarity\nA-001,B-17,.9\nA-002,B-17,.8\nA-001,900000001,.5\n"
COMMANDS = ("assign", "match", "dmperm", "scale")


def test_labels_come_out_again(gpumatch_cli, tmp_path):
    path, output = stored(tmp_path / "e.csv", LABELLED), tmp_path / "pairs.csv"
    for command, costs in (("assign", [0.5, 0.8]), ("match", [])):
        more = ["--maximize"] * (command == "assign")
        code, out, _ = gpumatch_cli(command, path, "--pairs", "--json", "--output", output, *more)
        report = json.loads(out)
        assert (code, report["rows"], report["columns"]) == (0, 2, 2)
        pairs = [["A-001", "900000001"], ["A-002", "B-17"]]
        assert [pair[:2] for pair in report["pairs"]] == pairs
        assert [cost for pair in report["pairs"] for cost in pair[2:]] == costs
        lines = output.read_text().splitlines()
        assert lines[0] == "source,target" + ",cost" * (command == "assign")
        assert [line.split(",")[:2] for line in lines[1:]] == pairs
        again = gpumatch_cli(command, path, "--initial", output, "--json", *more)
        assert json.loads(again[1])["size"] == 2
    out = gpumatch_cli("match", path, "--pairs")[1]
    assert "\nA-001  900000001\nA-002  B-17\n" in out
    assert gpumatch_cli("assign", path, "--objective", "bottleneck", "--pairs")[0] == 0
    assert all(gpumatch_cli(command, path)[0] == 0 for command in COMMANDS)


def test_labels_are_not_for_several_ranks(gpumatch_cli, tmp_path):
    path = stored(tmp_path / "e.csv", LABELLED)
    for command in ("assign", "match"):
        outcome = gpumatch_cli(command, path, "--distributed")
        assert_rejected(outcome, "labels of rows and columns are not for --distributed")
    path = stored(tmp_path / "a.mtx", text_of("1 1 1\n"))
    outcome = gpumatch_cli("match", path, "--distributed", "--duplicates", "sum")
    assert_rejected(outcome, "--duplicates is not for --distributed")


@pytest.mark.parametrize("source", ["e.csv", "-"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,1,7\n1,0,8\n", ["three numbers in each line", "--format list"]),
        ("row,col,val\n", ["has no edges"]),
        ("source,target,score\n", ["has no edges"]),
        ("row,col,val\n0,1,.9\n0,1,.5\n", ["line 3 names the pair 0, 1 of line 2", "--duplicates"]),
        ("row,col,val\n0,900000001,1\n", ["index pointers of 1 x 900000002"]),
    ],
)
def test_all_commands_say_the_same(gpumatch_cli, tmp_path, monkeypatch, source, text, words):
    path = stored(tmp_path / "e.csv", text)
    for command in COMMANDS:
        with open(path) as file:
            monkeypatch.setattr("sys.stdin", file)
            outcome = gpumatch_cli(command, path if source == "e.csv" else source)
        assert_rejected(outcome, *words)


def test_the_options_say_how_text_is_read(gpumatch_cli, tmp_path):
    path = stored(tmp_path / "e.csv", "0,1,7\n1,0,8\n1,0,2\n")
    for command, sizes in (("assign", (2, 3)), ("match", (2, 3))):
        for form, more, size in (
            ("list", ["--duplicates", "min"], sizes[0]),
            ("table", [], sizes[1]),
        ):
            code, out, _ = gpumatch_cli(command, path, "--format", form, *more, "--json")
            assert (code, json.loads(out)["size"]) == (0, size)
    code, out, _ = gpumatch_cli("assign", path, "--format=list", "--duplicates=last", "--json")
    assert json.loads(out)["objective"] == 9
    for name, words in (("format", "'auto', 'list', 'table'"), ("duplicates", "'error', 'sum'")):
        outcome = gpumatch_cli("match", path, f"--{name}", "mean")
        assert_rejected(outcome, f"{name} must be one of", words)
        outcome = gpumatch_cli("match", "HB/west0067", f"--{name}", "list")
        assert_rejected(outcome, f"--{name} is not for a matrix of the collection")


def test_quiet_prints_the_pairs_and_nothing_else(gpumatch_cli, tmp_path):
    """As CSV, in the labels of the file, so that another command can read it."""
    path = tmp_path / "scores.csv"
    path.write_text('ours,theirs,score\na,"x, y",3\na,z,2\nb,"x, y",2\n')
    code, out, err = gpumatch_cli("assign", path, "--maximize", "--pairs", "--quiet")
    assert (code, err) == (0, "")
    assert out == 'source,target,cost\na,z,2\nb,"x, y",2\n'
    assert gpumatch_cli("assign", path, "--maximize", "--quiet") == (0, "", "")
    assert gpumatch_cli("match", path, "--pairs", "--quiet")[1].startswith("source,target\n")
    path.write_text("0 0\n0 1\n1 0\n")
    numbers = tmp_path / "pairs.csv"
    numbers.write_text("row,column\n0,1\n")
    out = gpumatch_cli("match", numbers, "--pairs", "--quiet")[1]
    assert out == "row,column\n0,1\n"
    np.save(tmp_path / "costs.npy", np.eye(2))
    masses = "--supply", "1", "--demand", "1"
    out = gpumatch_cli("transport", tmp_path / "costs.npy", *masses, "--pairs", "--quiet")[1]
    assert out == "row,column,flow,cost\n0,1,1,0.0\n1,0,1,0.0\n"


def test_nan_is_named_with_its_file_and_place(gpumatch_cli, tmp_path):
    dense, labelled, numbered = (tmp_path / f"costs.{e}" for e in ("npy", "csv", "mtx"))
    np.save(dense, np.array([[1, 2], [3, np.nan]]))
    labelled.write_text("source,target,cost\na,b,1\nc,d,nan\n")
    numbered.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 nan\n")
    for path, at in ((dense, "row 1, column 1"), (labelled, "row c, column d")):
        assert_rejected(gpumatch_cli("assign", path), str(path), f"NaN at {at}")
    assert_rejected(gpumatch_cli("scale", numbered), str(numbered), "NaN at row 1, column 0")
    masses = "--supply", "1", "--demand", "1"
    assert_rejected(gpumatch_cli("transport", dense, *masses), str(dense), "NaN at row 1")
    weights = gpumatch_cli("match", "--general", "--weights", labelled)
    assert_rejected(weights, str(labelled), "NaN at row c, column d")
    assert gpumatch_cli("match", "--general", labelled)[0] == 0


def test_nan_is_named_by_rank_0(gpumatch_cli, tmp_path):
    for name in ("costs.npy", "costs.csv"):
        path = tmp_path / name
        np.save(path, np.array([[1, 2], [3, np.nan]]))
        if name.endswith("csv"):
            path.write_text("1,2\n3,nan\n")
        outcome = gpumatch_cli("assign", "--distributed", path)
        assert_rejected(outcome, f"{path}: NaN at row 1, column 1")


def test_nan_in_other_files_is_named_too(gpumatch_cli, tmp_path):
    whole, broken, masses = (tmp_path / name for name in ("x.npy", "y.npy", "masses.txt"))
    np.save(whole, np.ones((2, 2)))
    np.save(broken, np.array([[1, 2], [np.nan, 3]]))
    masses.write_text("1 nan")
    points = gpumatch_cli("assign", "--points", whole, broken)
    assert_rejected(points, f"{broken}: NaN at row 1, column 0")
    for sides in ((masses, 1), (1, masses)):
        given = "--supply", sides[0], "--demand", sides[1]
        outcome = gpumatch_cli("transport", whole, *given)
        assert_rejected(outcome, f"{masses}: NaN at number 1")
