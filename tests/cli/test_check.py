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


def test_what_a_bottleneck_proves_is_accepted(gpumatch_cli, costs, tmp_path):
    proof = str(tmp_path / "proof.txt")
    assert gpumatch_cli("assign", costs, "--objective", "bottleneck", "--proof", proof)[0] == 0
    code, out, _ = gpumatch_cli("check", proof, costs)
    assert code == 0
    assert out.startswith("optimal: 3 pairs up to 2,")


def test_what_transport_proves_is_accepted_for_its_masses(gpumatch_cli, costs, tmp_path):
    proof, supply, demand = (str(tmp_path / name) for name in ("p.npz", "supply.txt", "demand.txt"))
    for path, numbers in ((supply, "2 3 1"), (demand, "2 2 2")):
        with open(path, "w", encoding="ascii") as file:
            file.write(numbers)
    masses = "--supply", supply, "--demand", demand, "--pair-capacity", "2"
    assert gpumatch_cli("transport", costs, *masses, "--proof", proof)[0] == 0
    for given in ((), masses):
        code, out, _ = gpumatch_cli("check", proof, costs, *given)
        assert code == 0
        assert "pairs with flow of total" in out
    for wrong, told in (
        (("--supply", demand), "supply 1 is 2.0, but the result has 3"),
        (("--pair-capacity", "1"), "the capacity of a pair is 1 units, but the result has 2"),
    ):
        code, out, _ = gpumatch_cli("check", proof, costs, *wrong)
        assert code == 1
        assert told in out


@pytest.mark.parametrize("objective", ["sum", "bottleneck"])
def test_what_points_prove_is_accepted(objective, gpumatch_cli, tmp_path):
    files, proof = [str(tmp_path / name) for name in ("x.npy", "y.csv")], str(tmp_path / "p.txt")
    np.save(files[0], np.array([[0.5, 1], [2, 5]]))
    np.savetxt(files[1], np.array([[3.0, 4], [1, 1], [0, 9]]), delimiter=",")
    points = "--points", *files, "--metric", "euclidean"
    assert gpumatch_cli("assign", *points, "--objective", objective, "--proof", proof)[0] == 0
    code, out, err = gpumatch_cli("check", proof, *points)
    assert (code, err) == (0, "")
    assert out.startswith("optimal: 2 pairs")
    code, out, _ = gpumatch_cli("check", proof, *points[:3])
    assert (code, out) == (
        1, "refused: the proof is one of costs euclidean, but these are sqeuclidean\n"
    )  # fmt: skip
    assert_rejected(gpumatch_cli("check", proof, files[0], *points), "--points")
    assert_rejected(gpumatch_cli("check", proof), "there are no costs")


@pytest.mark.parametrize("triangle", ["both", "upper"])
@pytest.mark.parametrize("how", [(), ("--weights", "--cardinality", "maximum")])
def test_what_a_graph_proves_is_accepted(how, triangle, gpumatch_cli, tmp_path):
    file, proof = tmp_path / "graph.csv", str(tmp_path / "proof.txt")
    file.write_text("row,column,value\n0,1,5\n1,2,6\n2,0,7\n2,3,1\n")
    how = *how, "--triangle", triangle
    assert gpumatch_cli("match", file, "--general", *how, "--proof", proof)[0] == 0
    code, out, _ = gpumatch_cli("check", proof, file, "--triangle", triangle)
    assert code == 0
    assert ": 2 edges of total 6" in out if "--weights" in how else "a matching of 2 edges" in out
    if triangle == "upper":
        assert "another problem" in gpumatch_cli("check", proof, file)[1]


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
    assert_rejected(gpumatch_cli("match", file, "--proof", "proof.mtx"), ".txt, .npz")
    assert_rejected(gpumatch_cli("assign", costs, "--distributed", "--proof", proof), "no proof")
    assert_rejected(gpumatch_cli("assign", costs, "--objective", "fair", "--proof", proof), "fair")
    given = "match", file, "--general", "--weights", "--algorithm", "suitor", "--proof", proof
    assert_rejected(gpumatch_cli(*given), "suitor")
    gpumatch_cli("assign", costs, "--proof", proof)
    assert_rejected(gpumatch_cli("check", proof, costs, "--supply", "3"), "supply")
    for version, told in (("2", "no problem assignment in version 2"), ("4", "version 4")):
        proof.write_text(f"gpumatch-proof {version}\nproblem assignment\n")
        assert_rejected(gpumatch_cli("check", proof, costs), "proof.txt", told)
    proof.write_bytes(bytes(range(256)))
    assert_rejected(gpumatch_cli("check", proof, costs), "proof.txt")
    assert_rejected(gpumatch_cli("check", tmp_path / "none.npz", costs), "none.npz")
