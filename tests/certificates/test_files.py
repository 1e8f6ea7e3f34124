"""Proofs in files, and the second checker, in C: both accept true ones and refuse others."""

import math
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch import certificates
from gpumatch.certificates.proof_arrays import write_arrays
from gpumatch.certificates.proof_parts import PARTS
from gpumatch.certificates.proof_text import lines_of
from tests.certificates.proof_count import count_corrupted, count_true
from tests.certificates.proof_problems import (
    COMPILER,
    MAKERS,
    UNREAD,
    check_corrupted,
    check_true,
    second_checker,
    solved,
    write_problem,
)


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    """The second checker: what it says of files and options, and its exit status."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    return second_checker(tmp_path_factory.mktemp("standalone"))


@pytest.mark.parametrize("are_unread", [False, True], ids=["both", "ours alone"])
def test_true_proofs_are_accepted(are_unread, second, tmp_path):
    for A, result in solved(40 if are_unread else 210, are_unread=are_unread):
        check_true(second, tmp_path, A, result, is_read=not are_unread)


@pytest.mark.long
@pytest.mark.parametrize("makers", [MAKERS, UNREAD], ids=["both", "ours alone"])
def test_more_true_proofs_are_accepted(makers, second, tmp_path):
    assert count_true(second, tmp_path, 5, 400, makers).total() == 400


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


# -- false claims that agree with themselves -------------------------------------------------------


def rewritten(path, **changes):
    """The text of a proof with other parts, as if a result had claimed them."""
    proof = certificates.load(path)
    record = proof.record._replace(parts=proof.parts | changes)
    path.write_text("".join(lines_of(record)))
    return certificates.load(path)


C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
TRIANGLE_AND_TAIL = csr_array(
    (np.array([5, 6, 7, 1]), (np.array([0, 1, 0, 2]), np.array([1, 2, 2, 3]))), shape=(4, 4)
)
PATH = csr_array((np.array([3, 9, 3]), (np.arange(3), np.arange(1, 4))), shape=(4, 4))


def forged_duals(path):
    """A dual is too high by one, and what it takes away at its pair again gives the same total."""
    certificates.save(path, C, gm.assign(C))
    duals = certificates.load(path).row_dual
    rewritten(path, row_dual=duals + np.array([1, 0, 0]))
    return C


def forged_pairs(path):
    """A worse assignment, with its own total and gap."""
    certificates.save(path, C, gm.assign(C))
    rewritten(path, row_to_col=np.arange(3), col_to_row=np.arange(3), objective=6, gap=1)
    return C


def forged_threshold(path):
    """A cover of all rows touches whatever is better."""
    certificates.save(path, C, gm.assign(C, objective="bottleneck"))
    rewritten(path, threshold_rows=np.arange(3), threshold_cols=np.zeros(0, int))
    return C


def forged_bottleneck(path):
    """A worse bottleneck, whose threshold cover misses better pairs."""
    certificates.save(path, C, gm.assign(C, objective="bottleneck"))
    none = np.zeros(0, int)
    mates = {"row_to_col": np.arange(3), "col_to_row": np.arange(3)}
    rewritten(path, **mates, objective=4, threshold_rows=none, threshold_cols=none)
    return C


def forged_flow(path):
    """A flow of which a unit stays at home, with its own total and gap."""
    result = gm.transport(C - 3, [2, 1, 1], [1, 1, 2], cardinality="any")
    certificates.save(path, C - 3, result)
    proof = certificates.load(path)
    paid = (C - 3)[proof.row_ind, proof.col_ind]
    at = int(paid.argmin())
    kept = np.arange(paid.size) != at
    units = proof.flow_units - ~kept
    kept = units > 0
    rewritten(
        path, row_ind=proof.row_ind[kept], col_ind=proof.col_ind[kept], flow_units=units[kept],
        objective=result.objective - int(paid[at]), gap=-int(paid[at]),
    )  # fmt: skip
    return C - 3


def forged_total(path):
    """Half of a total that is beyond float64 in the units of its masses."""
    costs = 1e300 * np.array([[1.0, 2.0], [2.0, 1.0]])
    certificates.save(path, costs, gm.transport(costs, [0.3, 0.7], [0.3, 0.7]))
    rewritten(path, objective=certificates.load(path).objective / 2)
    return costs


def forged_zero(path):
    """A total that is none in the units of its masses, which are large."""
    costs = np.zeros((1, 1))
    certificates.save(path, costs, gm.transport(costs, [2.0**900], [2.0**900]))
    rewritten(path, objective=2.0**-300)
    return costs


def forged_mass(path):
    """A flow beyond what a column takes."""
    certificates.save(path, C, gm.transport(C, [1, 1, 1], [1, 1, 1]))
    rewritten(path, col_upper=np.array([0, 2, 1]))
    return C


def forged_load(path):
    """A column that takes more than it may, at no cost."""
    costs = np.zeros((2, 1), int)
    certificates.save(path, costs, gm.transport(costs, [1, 1], [1]))
    ends = {"row_ind": np.array([0, 1]), "col_ind": np.array([0, 0])}
    rewritten(path, flow_units=np.array([1, 1]), **ends)
    return costs


def forged_inside(path):
    """A pair of two vertices of the cover, in place of the two pairs that they could have."""
    edges = (np.array([0, 0, 1]), np.array([0, 1, 0]))
    costs = csr_array((np.zeros(3, int), edges), shape=(2, 2))
    certificates.save(path, costs, gm.assign(costs, cardinality="maximum"))
    mates = {"row_to_col": np.array([0, -1]), "col_to_row": np.array([0, -1])}
    rewritten(path, cover_rows=np.array([0]), cover_cols=np.array([0]), **mates)
    return costs


def forged_edges(path):
    """A smaller matching of a graph, with the set that proves the larger one."""
    certificates.save(path, PATH, gm.general.maximum_matching(PATH))
    rewritten(path, mate=np.array([-1, 2, 1, -1]))
    return PATH


def forged_weight(path):
    """A lighter matching, with its own total and gap."""
    certificates.save(path, PATH, gm.general.maximum_weight_matching(PATH))
    rewritten(path, mate=np.array([1, 0, 3, 2]), objective=6, gap=3)
    return PATH


def forged_cardinality(path):
    """The heaviest matching, which is not the largest."""
    certificates.save(path, PATH, gm.general.maximum_weight_matching(PATH))
    rewritten(path, cardinality="maximum")
    return PATH


def forged_sets(path):
    """Two odd sets that overlap."""
    G = TRIANGLE_AND_TAIL
    certificates.save(path, G, gm.general.maximum_weight_matching(G))
    proof = certificates.load(path)
    rewritten(
        path, set_vertices=np.array([0, 1, 2, 3]), set_begin=np.array([0, 1]),
        set_end=np.array([3, 4]), set_dual=np.append(proof.set_dual[:1], 0)[-2:],
    )  # fmt: skip
    return G


def forged_mates(path):
    """An unmatched column that names a row as its mate."""
    certificates.save(path, C[:2], gm.assign(C[:2]))
    col_to_row = certificates.load(path).col_to_row
    rewritten(path, col_to_row=np.where(col_to_row < 0, 0, col_to_row))
    return C[:2]


def forged_problem(path):
    """A proof of costs that differ where no pair is."""
    certificates.save(path, C, gm.assign(C))
    return C + np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]])


FORGERIES = (
    *(forged_mates, forged_problem, forged_load, forged_inside),
    *(forged_duals, forged_pairs, forged_threshold, forged_bottleneck, forged_flow, forged_mass),
    *(forged_total, forged_zero),
    *(forged_edges, forged_weight, forged_cardinality, forged_sets),
)


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_both_refuse_forgeries(forge, second, tmp_path):
    text = tmp_path / "p.txt"
    A = forge(text)
    with pytest.raises(certificates.CertificateError):
        certificates.check(text, A)
    status, told = second(*write_problem(tmp_path, A), text)
    assert status == 1, told


# -- what the second checker does not check --------------------------------------------------------


def forged_ranking(path):
    """The second cheapest assignment is left out: the last one stands in its place."""
    costs = C + np.diag([0, 0, 9])
    certificates.save(path, costs, gm.k_best(costs, 3, proof=True))
    proof = certificates.load(path)
    kept = np.array([0, 2])
    rewritten(
        path, objective=proof.objective[kept], row_to_col=proof.row_to_col[kept].ravel(),
        order=proof.tree.order[kept].ravel(), opened=np.where(proof.opened == 2, 1, proof.opened),
    )  # fmt: skip
    return costs


def forged_bound(path):
    """Duals of a part that do not bound it."""
    certificates.save(path, C, gm.k_best(C, 2, proof=True))
    rewritten(path, differences=certificates.load(path).differences - 1)
    return C


def forged_level(path):
    """A lexicographic assignment that is none, with the levels of one."""
    certificates.save(path, C, gm.assign(C, objective="lexicographic"))
    mates = {"row_to_col": np.array([1, 0, 2]), "col_to_row": np.array([1, 0, 2])}
    levels = {"level_value": np.array([2]), "level_starts": np.array([0, 0])}
    none = np.zeros(0, int)
    rewritten(path, **mates, objective=2, **levels, level_vertices=none, level_dual=none)
    return C


def forged_alternatives(path):
    """Only the pairs of the optimum, as if there were no other."""
    ties = np.array([[1, 1], [1, 1]])
    certificates.save(path, ties, gm.alternatives(ties, gm.assign(ties)))
    few = {"indptr": np.array([0, 1, 2]), "indices": np.array([0, 1]), "extra": np.zeros(2, int)}
    rewritten(path, **few, is_unique=True)
    return ties


def forged_uniqueness(path):
    """Both optima, said to be one."""
    ties = np.array([[0.5, 0.5], [0.5, 0.5]])
    certificates.save(path, ties, gm.alternatives(ties, gm.assign(ties)))
    rewritten(path, is_unique=True)
    return ties


def forged_edge_set(path):
    """An edge that every maximum matching has, but not all of them."""
    certificates.save(path, PATH, gm.forced_edges(PATH))
    rewritten(path, indptr=np.zeros(5, int), indices=np.zeros(0, int))
    return PATH


def forged_batch(path):
    """The second problem of a batch has a worse assignment, with its own total and gap."""
    problems = [C, C + 1]
    certificates.save(path, problems, gm.assign(problems))
    one, other = certificates.load(path).record.parts["problems"]
    worse = {"row_to_col": np.arange(3), "col_to_row": np.arange(3), "objective": 9, "gap": 1}
    rewritten(path, problems=[one, other._replace(parts=other.parts | worse)])
    return problems


def swapped_batch(path):
    """The proofs of two problems in the wrong order."""
    problems = [C, C + 1]
    certificates.save(path, problems, gm.assign(problems))
    rewritten(path, problems=certificates.load(path).record.parts["problems"][::-1])
    return problems


OURS_ALONE = (
    *(forged_ranking, forged_bound, forged_level, forged_alternatives, forged_edge_set),
    *(forged_batch, swapped_batch, forged_uniqueness),
)


@pytest.mark.parametrize("forge", OURS_ALONE, ids=lambda forge: forge.__name__)
def test_other_forgeries_are_refused(forge, second, tmp_path):
    """The second checker says that it does not check such proofs."""
    text = tmp_path / "p.txt"
    A = forge(text)
    with pytest.raises(certificates.CertificateError):
        certificates.check(text, A)
    status, told = second(*write_problem(tmp_path, C), text)
    problem = certificates.load(text).problem
    assert status == 2
    assert f"proofs of problem {problem} are not checked here" in told


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


def test_a_batch_has_one_kind_of_proofs_and_no_batch(tmp_path):
    file = tmp_path / "p.txt"
    certificates.save(file, [C], gm.assign([C]))
    record = certificates.load(file).record
    (one,) = record.parts["problems"]
    matching = one._replace(problem="matching")
    for problems, told in (
        *(([record], "is a batch"), ([one, matching], "several kinds")),
        ([matching], "no batches of problem matching"),
    ):
        changed = record._replace(parts={"problems": problems})
        for path, write in (
            (file, lambda path, record: path.write_text("".join(lines_of(record)))),
            (tmp_path / "p.npz", write_arrays),
        ):
            write(path, changed)
            with pytest.raises(ValueError, match=told):
                certificates.load(path)


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


def array_file(text, words=b""):
    """An array of an .npz file, as its head says."""
    head = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + words


HOSTILE = {
    "no array": {"row_dual": b"hello"},
    "a large array": {
        "row_dual.npy": array_file("{'descr': '<i8', 'fortran_order': False, 'shape': (10**18,)}"),
        "col_dual.npy": array_file(
            "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000000000,)}"
        ),
    },
    "no head": {"row_dual.npy": array_file("{[]: 1}")},
    "an open head": {"row_dual.npy": array_file("(" * 99)},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_archives_that_are_none_are_bad_input(name, tmp_path):
    """Whatever NumPy raises becomes a ValueError that names the file."""
    file = tmp_path / "p.npz"
    certificates.save(file, C, gm.assign(C))
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for part in HOSTILE[name]:
        parts.pop(f"{part.removesuffix('.npy')}.npy")
    with zipfile.ZipFile(file, "w") as archive:
        for part, words in (parts | HOSTILE[name]).items():
            archive.writestr(part, words)
    with pytest.raises(ValueError, match=r"p\.npz"):
        certificates.load(file)


def test_offsets_that_overflow_are_refused(tmp_path):
    """Their differences as int64 would be positive."""
    file, most = tmp_path / "p.txt", 2**63 - 1
    certificates.save(file, PATH, gm.possible_edges(PATH))
    record = certificates.load(file).record
    offsets = np.array([0, most, -most - 1, -1, record.parts["indices"].size])
    for changed in (
        record._replace(parts=record.parts | {"indptr": offsets}),
        record._replace(parts=record.parts | {"indptr": offsets[:0]}, shape=(-1, 4)),
    ):
        file.write_text("".join(lines_of(changed)))
        with pytest.raises(ValueError, match=r"indptr|shape"):
            certificates.load(file)


def test_numbers_that_no_result_has_are_refused(tmp_path):
    """Not by another error than CertificateError, of whatever is computed with them."""
    file, ties = tmp_path / "p.txt", np.array([[1, 1], [1, 1]])
    a = gm.assign(C)
    for A, result, changes in (
        (C, a, {"objective": 10**400}),
        (C, a, {"col_dual": np.array([math.inf, 0, 0])}),
        (C, gm.transport(C, 1, 1), {"row_dual": np.array([0, 1e308, 1e308])}),
        (C, gm.k_best(C, 2, proof=True), {"differences": np.zeros(0)}),
        (PATH, gm.possible_edges(PATH), {"last_block": 2**40}),
        (PATH, gm.possible_edges(PATH), {"last_block": math.inf}),
        (ties, gm.alternatives(ties, gm.assign(ties), within=1), {"within": -1}),
    ):
        certificates.save(file, A, result)
        if "differences" in changes:
            changes = {"differences": certificates.load(file).differences + 0.5}
        rewritten(file, **changes)
        with pytest.raises(certificates.CertificateError):
            certificates.check(file, A)


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
