"""``gpumatch dmperm`` and ``gpumatch scale``: what they print, write and exit with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gpumatch as gm
from gpumatch import cli
from tests.cli.outcomes import MATRIX, assert_rejected

WEST = str(Path(__file__).parents[2] / "datasets" / "west0067.mtx.gz")
COMMON = {"source", "rows", "columns", "entries", "structural_rank", "seconds", "output"}


def lines_of(out):
    lines = (line.split("  ", 1) for line in out.splitlines() if not line.startswith("  "))
    return {key: value.strip() for key, value in lines}


def test_dmperm_says_what_was_found_and_proven(gpumatch_cli, file):
    code, out, err = gpumatch_cli("dmperm", file)
    found = lines_of(out)
    assert (code, err) == (0, "")
    assert found["matrix"] == "3 rows, 4 columns, 4 entries"
    assert found["structural rank"] == "2"
    assert found["underdetermined"] == "0 rows, 2 columns"
    assert found["well-determined"] == "1 rows, 1 columns"
    assert found["overdetermined"] == "2 rows, 1 columns"
    assert found["blocks"] == "1, the largest of 1 rows"
    assert found["certificate"] == "finest, checked on 4 entries"
    for part in ("read", "search", "certificate"):
        assert f"\n  {part} " in out


def test_json_of_dmperm(gpumatch_cli):
    code, out, _ = gpumatch_cli("dmperm", WEST, "--json", "--threads", 1)
    report = json.loads(out)
    assert code == 0
    assert set(report) == COMMON | {"parts", "blocks", "largest_block", "certificate", "plot"}
    assert all(key in cli.__doc__ for key in report)
    assert (report["structural_rank"], report["blocks"], report["largest_block"]) == (67, 2, 66)
    assert report["parts"]["well_determined"] == {"rows": 67, "columns": 67}
    assert report["certificate"] == {"size": 67, "bound": 67, "edges": 294}


def test_dmperm_of_what_has_no_square_block(gpumatch_cli, tmp_path):
    path = tmp_path / "row.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n1 2 2\n1 1\n1 2\n")
    report = json.loads(gpumatch_cli("dmperm", path, "--json")[1])
    assert (report["blocks"], report["largest_block"]) == (0, 0)


def test_dmperm_counts_no_block_for_rows_without_entries(gpumatch_cli, tmp_path):
    path = tmp_path / "tall.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n3 2 2\n1 1\n2 2\n")
    report = json.loads(gpumatch_cli("dmperm", path, "--json")[1])
    assert (report["blocks"], report["largest_block"]) == (2, 1)
    assert report["parts"]["overdetermined"] == {"rows": 1, "columns": 0}


def test_files_of_dmperm(gpumatch_cli, file, tmp_path):
    output, plot = tmp_path / "d.npz", tmp_path / "d.png"
    code, out, _ = gpumatch_cli("dmperm", file, "--output", output, "--plot", plot)
    assert code == 0
    assert lines_of(out)["written"] == str(output)
    with np.load(output) as d:
        assert gm.verify(MATRIX, gm.linalg.DulmageMendelsohn(**d)).size == 2
    assert plot.read_bytes()[:4] == b"\x89PNG"


def test_scale(gpumatch_cli, tmp_path):
    output = tmp_path / "s.npz"
    code, out, err = gpumatch_cli("scale", WEST, "--output", output)
    assert (code, err) == (0, "")
    assert lines_of(out)["structural rank"] == "67"
    assert lines_of(out)["product"] == "exp(-21.2053)"
    matrix = gm.io.read(WEST)
    with np.load(output) as s:
        scaled = abs(s["row_scale"][:, None] * matrix.toarray() * s["col_scale"])
        assert np.allclose(scaled[s["row_perm"]][:, s["col_perm"]].diagonal(), 1)
        assert np.allclose(np.exp(s["row_log_scale"]), s["row_scale"])
    assert scaled.max() <= 1 + 1e-12


def test_scale_by_the_jobs_of_mc64(gpumatch_cli, tmp_path):
    """Of each the diagonal that the library finds; only job 5 has factors and a certificate."""
    matrix = gm.io.read(WEST)
    for job in (1, 2, 3, 4, 5):
        code, out, _ = gpumatch_cli("scale", WEST, "--job", str(job), "--json")
        assert code == 0
        report = json.loads(out)
        found = gm.linalg.mc64(matrix, job)
        assert (report["row_perm"], report["col_perm"]) == (
            found.row_perm.tolist(),
            found.col_perm.tolist(),
        )
        assert (report["job"], report["structural_rank"]) == (job, 67)
        assert (report["certificate"] is None) == (job < 5)
        if job == 5:
            assert np.allclose(report["row_log_scales"], found.row_log_scale)
            assert np.allclose(report["col_log_scales"], found.col_log_scale)
            assert report["row_log_scale"] == [
                min(report["row_log_scales"]),
                max(report["row_log_scales"]),
            ]
        else:
            diagonal = abs(matrix.toarray()[found.row_perm].diagonal())
            assert report["least"] == diagonal.min()
            assert report["sum"] == pytest.approx(diagonal.sum())
    output = str(tmp_path / "job.npz")
    lines = lines_of(gpumatch_cli("scale", WEST, "--job", "3", "--output", output)[1])
    assert lines["certificate"].startswith("none")
    with np.load(output) as held:
        assert set(held.files) == {"row_perm", "col_perm"}
    assert_rejected(gpumatch_cli("scale", WEST, "--job", "6"), "job must be 1, 2, 3, 4 or 5")


def test_scale_says_what_was_found_and_proven(gpumatch_cli, tmp_path):
    path = tmp_path / "matrix.mtx"
    path.write_text(
        "%%MatrixMarket matrix coordinate real general\n2 3 4\n1 1 8\n1 2 2\n2 2 5\n2 3 1\n"
    )
    s = gm.linalg.maximum_product_matching(gm.io.read(path))
    found = lines_of(gpumatch_cli("scale", path)[1])
    report = json.loads(gpumatch_cli("scale", path, "--json")[1])
    assert found["matrix"] == "2 rows, 3 columns, 4 entries"
    assert (report["rows"], report["columns"], report["entries"]) == (2, 3, 4)
    assert found["product"] == f"exp({np.log(40):.6g})"
    assert report["log_product"] == pytest.approx(np.log(40))
    for name, logs in (("row", s.row_log_scale), ("column", s.col_log_scale)):
        least, greatest = logs.min(), logs.max()
        assert found[f"{name} factors"] == f"exp({least:.4g}) to exp({greatest:.4g})"
        assert report[f"{name[:3]}_log_scale"] == [least, greatest]
    assert found["certificate"] == "no entry above 1, checked on 4 entries"
    assert report["certificate"] == {
        "size": 2,
        "bound": pytest.approx(np.log(40)),
        "edges": 4,
    }
    assert list(report["seconds"]) == ["compilation", "read", "search", "certificate"]


def test_json_of_scale(gpumatch_cli):
    code, out, _ = gpumatch_cli("scale", WEST, "--json")
    report = json.loads(out)
    assert code == 0
    own = {"log_product", "row_log_scale", "col_log_scale", "row_log_scales", "col_log_scales"}
    assert set(report) == COMMON | own | {"row_perm", "col_perm", "job", "certificate"}
    assert all(key in cli.__doc__ for key in report)
    assert report["row_log_scale"][0] < report["row_log_scale"][1]
    assert report["certificate"].keys() == {"size", "bound", "edges"}
    assert {"read", "certificate"} <= report["seconds"].keys()
    assert lines_of(gpumatch_cli("scale", WEST)[1])["source"] == WEST
    assert lines_of(gpumatch_cli("dmperm", WEST)[1])["source"] == WEST


@pytest.mark.parametrize("command", ["dmperm", "scale"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no.mtx"], ["no.mtx", "No such file"]),
        ([WEST, "--output", "x.txt"], ["must end in .npz"]),
        ([WEST, "--output", "no/folder/x.npz"], ["there is no folder no/folder"]),
        ([WEST, "--backend", "gpu"], ["backend must be"]),
        ([WEST, "--threads", "0"], ["threads must be"]),
    ],
    ids=["no file", "ending", "folder", "backend", "threads"],
)
def test_bad_calls(gpumatch_cli, command, arguments, words):
    assert_rejected(gpumatch_cli(command, *arguments), *words)


@pytest.mark.parametrize("command", ["dmperm", "scale"])
def test_the_input_is_not_overwritten(gpumatch_cli, command, tmp_path):
    from scipy.sparse import save_npz

    path = tmp_path / "matrix.npz"
    save_npz(path, MATRIX)
    assert_rejected(gpumatch_cli(command, path, "--output", path), "would overwrite the input")


@pytest.mark.parametrize("command", ["dmperm", "scale"])
def test_a_seed_is_a_number(gpumatch_cli, command):
    assert gpumatch_cli(command, WEST, "--seed", 3)[0] == 0
    assert_rejected(gpumatch_cli(command, WEST, "--seed", "x"), "invalid int value: 'x'")


def test_the_folder_of_a_plot_is_there_before_the_work(gpumatch_cli):
    outcome = gpumatch_cli("dmperm", "no.mtx", "--plot", "no/folder/x.png")
    assert_rejected(outcome, "there is no folder no/folder")


def test_the_input_is_not_plotted_over(gpumatch_cli, tmp_path):
    from scipy.sparse import save_npz

    path = tmp_path / "matrix.npz"
    save_npz(path, MATRIX)
    before = path.read_bytes()
    assert_rejected(gpumatch_cli("dmperm", path, "--plot", path), "would overwrite the input")
    assert path.read_bytes() == before


def test_a_matrix_without_vertices_is_scaled_by_nothing(gpumatch_cli, tmp_path):
    path = tmp_path / "empty.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n0 0 0\n")
    code, out, _ = gpumatch_cli("scale", path, "--json")
    report = json.loads(out)
    assert code == 0
    assert (report["structural_rank"], report["log_product"]) == (0, 0)
    assert report["row_log_scale"] == report["col_log_scale"] == [0, 0]
