"""Proofs in files whose false claims agree with themselves are refused."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch import certificates
from tests.certificates.proof_problems import (
    PATH,
    C,
    rewritten,
    write_problem,
)

TRIANGLE_AND_TAIL = csr_array(
    (np.array([5, 6, 7, 1]), (np.array([0, 1, 0, 2]), np.array([1, 2, 2, 3]))), shape=(4, 4)
)


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


# -- numbers that no result has ------------------------------------------------------------------


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
