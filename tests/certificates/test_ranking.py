"""The checker of rankings refuses what is wrong in them."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.certificates import CertificateError

COSTS = np.random.default_rng(17).integers(0, 40, (5, 6))


@pytest.fixture(scope="module")
def ranked():
    return gm.k_best(COSTS, 12, proof=True)


def forged(ranked, **fields):
    """The result with other fields, or with other fields of its tree."""
    other = copy.copy(ranked)
    tree = {name: value for name, value in fields.items() if name in ranked.tree._fields}
    other.tree = ranked.tree._replace(**tree)
    for name, value in fields.items():
        if name not in tree:
            setattr(other, name, value)
    return other


def changed(array, at, by):
    array = array.copy()
    array[at] += by
    return array


def test_a_true_one_is_accepted(ranked):
    certificate = gm.verify(COSTS, ranked)
    assert (certificate.size, certificate.first) == (12, int(ranked.objective[0]))
    assert certificate.bound == ranked.objective[-1]


def leaf(ranked):
    (leaves,) = (ranked.tree.opened < 0).nonzero()
    return int(leaves[0])


FORGERIES = {
    "a cost": lambda r: forged(r, objective=changed(r.objective, 3, 1)),
    "order": lambda r: forged(r, objective=r.objective[::-1], row_to_col=r.row_to_col[::-1]),
    "one twice": lambda r: forged(
        r,
        row_to_col=np.concatenate([r.row_to_col[:1], r.row_to_col[:-1]]),
        objective=np.concatenate([r.objective[:1], r.objective[:-1]]),
    ),
    "one left out": lambda r: forged(
        r, row_to_col=r.row_to_col[1:], objective=r.objective[1:], opened=r.tree.opened - 1
    ),
    "a column twice": lambda r: forged(r, row_to_col=changed(r.row_to_col, (0, 0), 0) * 0),
    "a row unmatched": lambda r: forged(r, row_to_col=np.full_like(r.row_to_col, -1)),
    "a wrong maximize": lambda r: forged(r, maximize=True),
    "a completeness": lambda r: forged(r, is_complete=True),
    "a limit": lambda r: forged(r, cost_limit=5),
    "duals too low": lambda r: forged(r, differences=r.tree.differences * 0),
    "no differences of a leaf": lambda r: forged(
        r, differences=changed(r.tree.differences, slice(r.tree.starts[-2], None), -60)
    ),
    "a leaf that is empty": lambda r: forged(r, is_empty=changed(r.tree.is_empty, leaf(r), True)),
    "a child at another place": lambda r: forged(r, place=changed(r.tree.place, 2, 1)),
    "a child of another": lambda r: forged(r, parent=changed(r.tree.parent, 7, -1)),
    "a node before its parent": lambda r: forged(r, parent=changed(r.tree.parent, 1, 5)),
    "an order": lambda r: forged(r, order=r.tree.order[:, ::-1]),
    "another's node": lambda r: forged(r, opened=np.where(r.tree.opened == 1, 2, r.tree.opened)),
    "two that are exchanged": lambda r: forged(r, opened=exchanged(r.tree.opened)),
    "a part that is missing": lambda r: forged(
        r,
        parent=r.tree.parent[:-1], place=r.tree.place[:-1], opened=r.tree.opened[:-1],
        is_empty=r.tree.is_empty[:-1], starts=r.tree.starts[:-1],
        vertices=r.tree.vertices[: r.tree.starts[-2]],
        differences=r.tree.differences[: r.tree.starts[-2]],
    ),
    "the other side": lambda r: forged(r, by_columns=True),
}  # fmt: skip


def exchanged(opened):
    other = opened.copy()
    other[opened == 1], other[opened == 2] = 2, 1
    return other


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused(ranked, name):
    with pytest.raises(CertificateError):
        gm.verify(COSTS, FORGERIES[name](ranked))


def test_a_true_one_is_refused_for_other_costs(ranked):
    for at in np.ndindex(COSTS.shape):
        cheaper = COSTS.copy()
        cheaper[at] = -100
        with pytest.raises(CertificateError):
            gm.verify(cheaper, ranked)


def test_a_complete_one_is_refused_if_there_are_more():
    costs = np.where(np.eye(4) + np.eye(4, k=1) > 0, 1.0, np.inf)
    costs[3, 0] = 2.0
    ranked = gm.k_best(costs, 9, proof=True)
    assert len(ranked) == 2
    gm.verify(costs, ranked)
    more = costs.copy()
    more[1, 0] = 50.0
    with pytest.raises(CertificateError, match="may have an"):
        gm.verify(more, ranked)


def test_without_a_tree_only_the_pairs_are_checked(ranked):
    plain = gm.k_best(COSTS, 3)
    with pytest.raises(CertificateError, match="proof=True"):
        gm.verify(COSTS, plain)
    assert "not proven" in str(gm.verify(COSTS, plain, optimal=False))


def test_a_wrong_problem_of_a_batch_is_named():
    costs = np.random.default_rng(1).random((3, 3, 3))
    batch = gm.k_best(costs, 2, proof=True)
    assert str(gm.verify(costs, batch)).startswith("cheapest: 6 assignments of 3 problems")
    costs[1] = costs[1].T + 1
    with pytest.raises(CertificateError, match="problem 1"):
        gm.verify(costs, batch)
