"""``--proof`` and ``gpumatch check``: proofs that are written, accepted, and refused."""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch import io
from tests.cli.outcomes import assert_rejected


@pytest.fixture
def costs(tmp_path):
    path = tmp_path / "costs.npy"
    np.save(path, np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    return str(path)


@pytest.mark.parametrize("ending", ["txt", "npz"])
def test_what_match_proves_is_accepted(ending, gpumatch_cli, file, tmp_path):
    proof = str(tmp_path / f"proof.{ending}")
    assert gpumatch_cli("match", file, "--proof", proof)[0] == 0
    code, out, err = gpumatch_cli("check", proof, file)
    assert (code, err) == (0, "")
    assert out.startswith("maximum: a matching of 2 edges")


def test_what_assign_proves_is_accepted(gpumatch_cli, costs, tmp_path):
    proof = str(tmp_path / "proof.txt")
    assert gpumatch_cli("assign", costs, "--maximize", "--proof", proof)[0] == 0
    code, out, _ = gpumatch_cli("check", proof, costs)
    assert code == 0
    assert "3 pairs of total 11" in out


def test_a_changed_proof_is_refused(gpumatch_cli, costs, tmp_path):
    proof = tmp_path / "proof.txt"
    gpumatch_cli("assign", costs, "--proof", proof)
    proof.write_text(proof.read_text().replace("objective 5", "objective 4"))
    code, out, err = gpumatch_cli("check", proof, costs)
    assert (code, err) == (1, "")
    assert out.startswith("refused: the pairs cost 5")


def test_a_proof_of_another_problem_is_refused(gpumatch_cli, costs, tmp_path):
    proof = tmp_path / "proof.npz"
    gpumatch_cli("assign", costs, "--proof", proof)
    np.save(costs, io.read_costs(costs) + np.eye(3, dtype=int))
    code, out, _ = gpumatch_cli("check", proof, costs)
    assert code == 1
    assert "another problem" in out


def test_nothing_unproven_is_written(gpumatch_cli, file, tmp_path):
    proof = tmp_path / "proof.txt"
    code, _, _ = gpumatch_cli(
        "match", file, "--init", "none", "--time-limit", "0", "--proof", proof
    )
    assert code == 3
    assert not proof.exists()


def test_bad_calls(gpumatch_cli, costs, file, tmp_path):
    proof = tmp_path / "proof.txt"
    points = tmp_path / "points.npy"
    np.save(points, np.eye(2))
    assert_rejected(gpumatch_cli("match", file, "--proof", "proof.mtx"), ".txt, .npz")
    assert_rejected(
        gpumatch_cli("assign", "--points", points, points, "--proof", proof), "stored costs"
    )
    assert_rejected(
        gpumatch_cli("assign", costs, "--objective", "bottleneck", "--proof", proof), "bottleneck"
    )
    proof.write_text("gpumatch-proof 2\n")
    assert_rejected(gpumatch_cli("check", proof, costs), "proof.txt", "expected 1")
    proof.write_bytes(bytes(range(256)))
    assert_rejected(gpumatch_cli("check", proof, costs), "proof.txt")
    assert_rejected(gpumatch_cli("check", tmp_path / "none.npz", costs), "none.npz")
