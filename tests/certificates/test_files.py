"""Proofs in files, and the second checker, in C: both accept true ones and refuse others."""

import re
from importlib import resources

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch import certificates
from gpumatch.certificates.proof_parts import PARTS
from tests.certificates.proof_count import count_corrupted, count_true
from tests.certificates.proof_problems import (
    MAKERS,
    UNREAD,
    C,
    check_corrupted,
    check_true,
    rewritten,
    solved,
    write_problem,
)

STANDALONE = resources.files(certificates) / "standalone" / "check.c"


@pytest.mark.parametrize("are_unread", [False, True], ids=["both", "ours alone"])
def test_true_proofs_are_accepted(are_unread, second, tmp_path):
    for A, result in solved(40 if are_unread else 210, are_unread=are_unread):
        check_true(second, tmp_path, A, result, is_read=not are_unread)


@pytest.mark.long
@pytest.mark.parametrize("makers", [MAKERS, UNREAD], ids=["both", "ours alone"])
def test_more_true_proofs_are_accepted(makers, second, tmp_path):
    assert count_true(second, tmp_path, 5, 400, makers).total() == 400


def test_true_proofs_of_tiny_costs_beside_huge_ones(second, tmp_path):
    costs = np.array([[-1e-301, 4e301], [5e-324, 1.0], [2.5e301, 3e-301]])
    for matrix in (costs, csr_array(costs)):
        for wish in ({}, {"cardinality": "maximum"}, {"cost_limit": 1e-301}):
            check_true(second, tmp_path, matrix, gm.assign(matrix, **wish), is_read=True)


def test_the_checks_of_the_second_checker_can_be_read():
    """They are 200 lines of code at most, beside the parser and the exact sums."""
    text = STANDALONE.read_text(encoding="utf-8")
    checks = re.search(r"part 3: the checks -+ \*/(.*)/\* -+ part 4", text, re.S)[1]
    code = re.sub(r"/\*.*?\*/", "", checks, flags=re.S)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 200
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("are_unread", [False, True], ids=["both", "ours alone"])
def test_corrupted_proofs_are_refused(are_unread, second, tmp_path):
    """Whatever ours refuses, the second checker does, too; most changes matter."""
    rng, cases = np.random.default_rng(1), solved(40 if are_unread else 210, are_unread=are_unread)
    refused = sum(
        check_corrupted(second, tmp_path, rng, *cases[k], is_read=not are_unread)
        for k in rng.integers(len(cases), size=180)
    )
    assert refused > 120


@pytest.mark.long
@pytest.mark.parametrize("makers", [MAKERS, UNREAD], ids=["both", "ours alone"])
def test_more_corrupted_proofs_are_refused(makers, second, tmp_path):
    assert count_corrupted(second, tmp_path, 6, 400, makers)[0].total() == 400


def test_results_without_such_a_proof_are_named(tmp_path):
    C = np.eye(3)
    for result in (
        gm.linalg.dmperm(csr_array(C)),
        gm.general.maximum_weight_matching(csr_array(C), algorithm="suitor"),
        gm.maximum_matching(csr_array(C), row_capacity=2),
    ):
        with pytest.raises(TypeError, match=f"no files of proofs for {type(result).__name__}"):
            certificates.save(tmp_path / "p.npz", C, result)
    with pytest.raises(ValueError, match="no tree"):
        certificates.save(tmp_path / "p.npz", C, gm.k_best(C, 2))


# -- points and batches ----------------------------------------------------------------------------


X, Y = (
    np.array([[0.0, 1.0], [2.0, 5.0], [3.0, 3.0]]),
    np.array([[1.0, 1.0], [4.0, 4.0], [0.0, 2.0]]),
)


@pytest.mark.parametrize("changed", ["X", "Y", "row_offset", "metric", "order", "cost"])
def test_a_proof_of_points_is_one_of_these_points(changed, second, tmp_path):
    """Another coordinate, offset, metric or order of the rows is refused, and so is a forgery."""
    given = {
        "X": X,
        "Y": Y,
        "metric": "cityblock",
        "row_offset": np.zeros(3),
        "col_offset": X[0, [0, 0, 0]],
    }
    costs, text = gm.PointCosts(**given), tmp_path / "p.txt"
    certificates.save(text, costs, gm.assign(costs))
    for dtype in (np.float32, int):  # neither rounds these coordinates
        same = gm.PointCosts(**given | {"X": X.astype(dtype), "Y": Y.astype(dtype)})
        assert certificates.check(text, same).gap < 1e-12
    if changed == "cost":
        rewritten(text, objective=certificates.load(text).objective - 1)
    elif changed == "metric":
        given["metric"] = "euclidean"
    elif changed == "order":
        given["X"] = X[[1, 0, 2]]
    else:
        given[changed] = given[changed] + 2.0**-40
    costs = gm.PointCosts(**given)
    with pytest.raises(certificates.CertificateError):
        certificates.check(text, costs)
    words = write_problem(tmp_path, costs)
    if changed == "metric":  # the second checker takes the metric of the proof
        text.write_text(text.read_text().replace("cityblock", "euclidean"))
    status, told = second(*words, text)
    assert status == 1, told


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_cosines_have_the_hash_of_the_points(library, second, tmp_path):
    """Not that of their directions, which are rounded; the second checker has no cosine."""
    xp = pytest.importorskip(library)
    sides = [xp.asarray(side + 1) for side in (X, Y)]
    costs, text = gm.PointCosts(*sides, "cosine"), tmp_path / "p.txt"
    certificates.save(text, costs, gm.assign(costs))
    certificates.check(text, gm.PointCosts(X + 1, Y + 1, "cosine"))
    with pytest.raises(certificates.CertificateError, match="hashes"):
        certificates.check(text, gm.PointCosts(2 * X + 2, Y + 1, "cosine"))
    status, told = second(*write_problem(tmp_path, gm.PointCosts(X + 1, Y + 1)), text)
    assert (status, "cosine" in told) == (2, True)


def test_costs_of_functions_have_no_hash(tmp_path):
    for costs in (
        gm.FunctionCosts(lambda rows, cols: C[rows, cols], C.shape, C.dtype),
        gm.PointCosts(X, Y, lambda x, y: abs(x - y).max()),
    ):
        with pytest.raises(TypeError, match="computed"):
            certificates.save(tmp_path / "p.npz", costs, gm.assign(costs))


@pytest.mark.parametrize("ending", ["txt", "npz"])
def test_a_padded_batch_is_checked_with_its_sizes(ending, tmp_path):
    file, sizes = tmp_path / f"p.{ending}", ([2, 3], [3, 3])
    problems = np.stack([C, C])
    certificates.save(file, problems, gm.assign(problems, sizes=sizes), sizes=sizes)
    assert certificates.check(file, [C[:2], C]).size == 5
    assert certificates.check(file, problems, sizes=sizes).size == 5
    for wrong in (problems, [C[:2]], [C, C[:2]]):
        with pytest.raises(certificates.CertificateError):
            certificates.check(file, wrong)
    proof = certificates.load(file)
    assert str(proof) == "Proof(batch of 2 problems: assignment)"
    certificates.verify(C[:2], proof[0])


def test_integers_and_floats_of_a_batch_stay_what_they_are(tmp_path):
    """Beyond 2**53, float64 would round the integers."""
    problems = [np.array([[2**54 + 1, 2**54 + 3]]), np.array([[0.1]]), np.zeros((0, 2))]
    file = tmp_path / "p.npz"
    certificates.save(file, problems, gm.k_best(problems, 1, proof=True))
    found = [one.objective for one in certificates.load(file)]
    assert [one.tolist() for one in found] == [[2**54 + 1], [0.1], [0.0]]
    assert [one.dtype.kind for one in found] == ["i", "f", "f"]
    assert certificates.check(file, problems).size == 3


@pytest.mark.parametrize("ending", ["txt", "npz"])
def test_totals_beyond_64_bits_are_exact(ending, tmp_path):
    costs, masses = np.full((2, 2), 2**54 + 1), [2**20 + 1, 2**20]
    file = tmp_path / f"p.{ending}"
    result = gm.transport(costs, masses, masses)
    certificates.save(file, costs, result)
    assert certificates.load(file).objective == result.objective > 2**64
    certificates.save(
        file, [costs, costs - 2**54], gm.transport([costs, costs - 2**54], masses, masses)
    )
    found = [one.objective for one in certificates.load(file)]
    assert found == [result.objective, 2**21 + 1]


@pytest.mark.parametrize("form", ["symmetric", "dense", "one triangle"])
def test_the_second_checker_reads_other_forms(form, second, tmp_path):
    """A graph is the same one in each; zeros of a dense matrix are no edges."""
    lines = {
        "symmetric": "coordinate integer symmetric\n4 4 4\n2 1 5\n3 2 6\n3 1 7\n4 3 1\n",
        "dense": "array integer general\n4 4\n" + "\n".join("0570506076010010"),
        "one triangle": "coordinate integer general\n4 4 4\n1 2 5\n2 3 6\n1 3 7\n3 4 1\n",
    }
    text, file = tmp_path / "p.txt", tmp_path / "p.mtx"
    file.write_text(f"%%MatrixMarket matrix {lines[form]}")
    A = gm.io.read(file)
    for result in (gm.general.maximum_matching(A), gm.general.maximum_weight_matching(A)):
        certificates.save(text, A, result)
        assert second(file, text)[0] == 0
    if form != "one triangle":
        certificates.save(text, A, gm.maximum_matching(A))
        assert second(file, text)[0] == 0
    text.write_text(text.read_text().replace("end", "end more"))
    assert second(file, text)[0] == 2


def test_masses_are_those_that_are_given(second, tmp_path):
    """A flow's proof names its masses; both checkers compare them with others."""
    C = np.array([[4, 1], [2, 5]])
    text = tmp_path / "p.txt"
    (file,) = write_problem(tmp_path, C)
    for supply, demand in (([2, 1], [1, 2]), ([0.1, 0.7], [0.5, 0.3])):
        certificates.save(text, C, gm.transport(C, supply, demand))
        wrong = [supply[0], supply[1] + 1]
        assert certificates.check(text, C, supply=supply, demand=demand).gap == 0
        with pytest.raises(certificates.CertificateError, match="supply 1"):
            certificates.check(text, C, supply=wrong, demand=demand)
        for given, status in ((supply, 0), (wrong, 1)):
            masses = [tmp_path / "supply", tmp_path / "demand"]
            for path, numbers in zip(masses, (given, demand)):
                path.write_text(" ".join(map(repr, numbers)))
            assert second(file, text, *masses)[0] == status


def test_a_proof_is_loaded_as_it_was_saved(tmp_path):
    """By both forms, of every problem; its repr names it."""
    shown = set()
    for A, result in (*solved(34), *solved(8, are_unread=True)):
        proofs = []
        for ending in ("txt", "npz"):
            file = tmp_path / f"p.{ending}"
            certificates.save(file, A, result)
            proofs.append(certificates.load(file))
        one, other = proofs
        assert str(one) == str(other)
        assert_alike(one.record, other.record)
        shown.add(one.problem)
    assert shown == set(PARTS)


def assert_alike(one, other):
    """Two records hold the same, and numbers of the same kinds."""
    assert one[:4] == other[:4]
    for name, part in one.parts.items():
        if name == "problems":
            for own, others in zip(part, other.parts[name], strict=True):
                assert_alike(own, others)
        else:
            assert np.array_equal(part, other.parts[name]), name
            kinds = {np.asarray(of[name]).dtype for of in (one.parts, other.parts)}
            assert len(kinds) == 1 or not np.size(part), name
