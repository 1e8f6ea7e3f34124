"""What shell users ask of ``match`` and ``assign``: standard input, pairs, files of other tools."""

from __future__ import annotations

import io as bytesio
import json
import sys

import numpy as np
import pytest

from gpumatch import io
from tests.cli.outcomes import assert_rejected

LIST = b"row,column,cost\n0,0,4\n0,1,1\n1,0,2\n1,1,9\n2,1,3\n"


@pytest.fixture
def standard_input(monkeypatch):
    def give(content):
        monkeypatch.setattr(sys, "stdin", bytesio.TextIOWrapper(bytesio.BytesIO(content)))

    return give


def test_match_reads_standard_input_and_prints_pairs(gpumatch_cli, standard_input):
    standard_input(b"0 1\n1 0\n")
    code, out, _ = gpumatch_cli("match", "-", "--pairs")
    assert code == 0
    assert out.endswith("\n\nrow  column\n0    1\n1    0\n")


def test_a_single_pair_is_printed(gpumatch_cli, standard_input):
    standard_input(b"0 0\n")
    assert gpumatch_cli("match", "-", "--pairs")[1].endswith("\n\nrow  column\n0    0\n")


def test_assign_reads_standard_input_and_prints_pairs(gpumatch_cli, standard_input):
    standard_input(LIST)
    code, out, _ = gpumatch_cli("assign", "-", "--pairs")
    assert code == 0
    assert out.endswith("\n\nrow  column  cost\n0    1       1\n1    0       2\n")


@pytest.mark.parametrize(
    ("command", "pairs"), [("match", [[0, 1], [1, 0]]), ("assign", [[0, 1, 1], [1, 0, 2]])]
)
def test_pairs_in_json(gpumatch_cli, standard_input, command, pairs):
    standard_input(LIST)
    found = json.loads(gpumatch_cli(command, "-", "--pairs", "--json")[1])
    assert found["source"] == "-"
    if command == "assign":
        assert found["pairs"] == pairs
    else:
        assert len(found["pairs"]) == found["size"] == 2
    standard_input(LIST)
    assert json.loads(gpumatch_cli(command, "-", "--json")[1])["pairs"] is None


def test_no_pairs_are_no_lines(gpumatch_cli, standard_input):
    standard_input(b"%%MatrixMarket matrix coordinate pattern general\n2 2 0\n")
    code, out, _ = gpumatch_cli("match", "-", "--pairs")
    assert code == 0
    assert "column\n" not in out


@pytest.mark.parametrize(
    "content", [b"", b"x y\nz w\n", b"\x93NUMPY"], ids=["empty", "names", "cut"]
)
def test_wrong_standard_input_is_named(gpumatch_cli, standard_input, content):
    standard_input(content)
    assert_rejected(gpumatch_cli("match", "-"), "the open file: ")


def test_a_list_of_pairs_is_written_with_costs(gpumatch_cli, standard_input, tmp_path):
    standard_input(LIST)
    path = tmp_path / "pairs.csv"
    assert gpumatch_cli("assign", "-", "--output", path)[0] == 0
    assert path.read_text() == "row,column,cost\n0,1,1\n1,0,2\n"
    assert io.read_costs(path).toarray().tolist() == [[0, 1], [2, 0]]
    standard_input(LIST)
    path = tmp_path / "edges.csv"
    assert gpumatch_cli("match", "-", "--output", path, "--initial", tmp_path / "pairs.csv")[0] == 0
    assert path.read_text() == "row,column\n0,1\n1,0\n"


def test_an_archive_holds_the_duals(gpumatch_cli, standard_input, tmp_path):
    standard_input(LIST)
    path = tmp_path / "pairs.npz"
    assert gpumatch_cli("assign", "-", "--output", path)[0] == 0
    with np.load(path) as found:
        names = {"row_to_col", "col_to_row", "row_dual", "col_dual", "objective"}
        assert set(found) == names
        assert found["row_to_col"].tolist() == [1, 0, -1]
        assert found["col_to_row"].tolist() == [1, 0]
        assert found["objective"] == found["row_dual"].sum() + found["col_dual"].sum() == 3
    standard_input(LIST)
    path = tmp_path / "edges.npz"
    assert gpumatch_cli("match", "-", "--output", path)[0] == 0
    with np.load(path) as found:
        assert set(found) == {"row_to_col", "col_to_row"}


def test_a_wrong_name_of_the_collection_is_corrected(gpumatch_cli, tmp_path, monkeypatch):
    def unreachable(*_, **__):
        raise OSError("no route to host")

    monkeypatch.setenv("GPUMATCH_DATA", str(tmp_path))
    monkeypatch.setattr("pooch.create", unreachable)
    outcome = gpumatch_cli("match", "HB/west0670")
    assert_rejected(outcome, "HB/west0670", "did you mean HB/west0067?")


def test_a_name_with_a_slash_is_no_missing_file(gpumatch_cli):
    code, _, err = gpumatch_cli("match", "HB/-west0067")
    assert (code, err) == (
        2,
        "gpumatch: error: 'HB/-west0067' is not of the form Group/Name; did you mean "
        "HB/west0067?\n",
    )


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["mach", "x.mtx"], "; did you mean 'match'?"),
        (["match", "x.csv", "--algorithm", "hkd"], "; did you mean 'hkdw'?"),
        (["match", "x.csv", "--init", "chaep"], "; did you mean 'cheap'?"),
        (["match", "x.csv", "--innit", "cheap"], "--innit cheap; did you mean '--init'?"),
        (["match", "x.csv", "--host_loop=level"], "did you mean '--host-loop'?"),
        (["match", "x.csv", "y.csv"], "gpumatch match: error: unrecognized arguments: y.csv"),
        (["match", "west0067"], "not of the form Group/Name; did you mean HB/west0067?"),
        (["match", "west"], "there is no file west, and 'west' is not of the form Group/Name"),
        (["assign", "west"], "there is no file west, and 'west' is not of the form Group/Name"),
        (["assign", "a/../b"], "a/../b: unknown format ''"),
        (
            ["assign", "names.txt"],
            "line 1, field 1: 'ann' is no number; above labels, put a header such as source,target",
        ),
        (
            ["assign", "names.csv"],
            "three numbers in each line may be row, column and value, or a row of a table",
        ),
        (["assign", "x.csv", "--cost-limit", "much"], "'much' is no number"),
    ],
)
def test_slips_of_the_pen_are_answered(gpumatch_cli, tmp_path, monkeypatch, command, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("0,1\n")
    (tmp_path / "names.txt").write_text("ann web 4\nbob 7 2\n")
    (tmp_path / "names.csv").write_text("a,b,c\n0,1,4\n")
    assert_rejected(gpumatch_cli(*command), text)


def test_a_matrix_of_the_collection_has_costs(gpumatch_cli):
    code, out, _ = gpumatch_cli("assign", "HB/west0067", "--maximize", "--json")
    report = json.loads(out)
    assert code == 0
    assert (report["source"], report["size"], report["entries"]) == ("HB/west0067", 67, 294)
