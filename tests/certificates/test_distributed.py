"""The checkers of divided results turn down each wrong share, without ranks: by one, or one of two.

`tests/distributed/ranks/errors.py` has what several ranks tell each other.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.certificates.distributed import (
    verify_share_of_assignment,
    verify_share_of_matching,
)
from gpumatch.costs import as_costs


class OneRank:
    """What a checker needs of the communicator of one rank."""

    rank, size = 0, 1

    def allgather(self, array):
        return [array]

    def allreduce(self, array, how):
        return array

    def exchange(self, parts):
        return parts

    def total(self, number, how="sum"):
        return number


class WithAnother(OneRank):
    """The same beside a rank that has this range of rows."""

    def __init__(self, other):
        self.other = other

    def allgather(self, array):
        return [array, np.array([self.other], np.int64)]


class BehindAnother(OneRank):
    """What it needs as the second of two ranks; the first has rows 0 and 1, and no columns."""

    rank, size = 1, 2

    def allgather(self, array):
        if array.dtype == np.uint8:
            return [array[:0], array]
        return [np.array([[0, array[0, 0]]]), array]

    def exchange(self, parts):
        return parts[1:]


# -- matchings -------------------------------------------------------------------------------------

PATTERN = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0]])


def share_of_matching(**changes):
    """Rows 0 and 1 at columns 1 and 0; row 0 and column 0 cover all."""
    fields = {
        "rows": range(3),
        "cols": range(3),
        "row_to_col": np.array([1, 0, -1]),
        "col_to_row": np.array([1, 0, -1]),
        "cover": (np.array([True, False, False]), np.array([True, False, False])),
        "size": 2,
    }
    return SimpleNamespace(**fields | changes)


def check_matching(world=None, **changes):
    graph = gm.BipartiteGraph(PATTERN)
    return verify_share_of_matching(graph, share_of_matching(**changes), world or OneRank())


def marks(*numbers):
    return np.isin(np.arange(3), numbers)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": range(2)}, "the result is for 2 rows and 3 columns here"),
        ({"cols": range(2)}, "the result is for 3 rows and 2 columns here"),
        ({"rows": range(1, 4)}, "ranges of the ranks do not follow"),
        ({"row_to_col": np.array([1, 3, -1])}, "row 1 is matched to column 3, outside"),
        ({"col_to_row": np.array([3, 0, -1])}, "column 0 is matched to row 3, outside"),
        ({"col_to_row": np.array([2, 0, -1])}, "row 1 is matched to column 0, which is matched"),
        ({"col_to_row": np.array([1, 0, 2])}, "3 columns of this rank are matched, but 2 rows"),
        (
            {"row_to_col": np.array([1, 0, 2]), "col_to_row": np.array([1, 0, 2]), "size": 3},
            "row 2 is matched to column 2, but that is no edge",
        ),
        ({"cover": None}, "has no vertex cover"),
        ({"cover": (marks(0)[:2], marks(0))}, "a mark for each"),
        ({"cover": (marks(0), marks(0)[:2])}, "a mark for each"),
        ({"cover": (marks(0) + 0, marks(0))}, "a mark for each"),
        ({"cover": (marks(0), marks(1))}, "misses the edge of row 1 and column 0"),
        ({"cover": (marks(0, 1), marks(0))}, "2 edges and says 2, but the cover has 3"),
        ({"size": 3}, "2 edges and says 3, but the cover has 2"),
    ],
)
def test_wrong_shares_of_matchings(changes, message):
    with pytest.raises(gm.CertificateError, match=message):
        check_matching(**changes)


def test_a_right_share_of_a_matching():
    assert check_matching() == gm.verify(PATTERN, gm.maximum_matching(PATTERN))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"cover": (marks(0), marks(1))}, "misses the edge of row 3 and column 0"),
        (
            {"row_to_col": np.array([1, 0, 2]), "col_to_row": np.array([3, 2, 4])},
            "row 4 is matched to column 2, but that is no edge",
        ),
        ({"col_to_row": np.array([4, 2, -1])}, "row 3 is matched to column 0, which is matched"),
    ],
)
def test_rows_of_a_later_rank_have_their_own_numbers(changes, message):
    there = {"rows": range(2, 5), "col_to_row": np.array([3, 2, -1])}
    if message is None:
        assert check_matching(BehindAnother(), **there).size == 2
        return
    with pytest.raises(gm.CertificateError, match=message):
        check_matching(BehindAnother(), **there | changes)


@pytest.mark.parametrize("other", [(4, 5), (2, 5)])
def test_ranges_that_do_not_follow_each_other(other):
    with pytest.raises(gm.CertificateError, match="ranges of the ranks do not follow"):
        check_matching(WithAnother(other))


# -- assignments -----------------------------------------------------------------------------------

COSTS = np.array([[4, 1, 3], [2, 0, 5]])
LARGEST = np.array([[np.inf, 5.0], [np.inf, 3.0], [1.0, 2.0]])
TWO = range(2)


def check_assignment(matrix, wish, changes, **how):
    a = gm.assign(matrix, **wish)
    names = "row_to_col col_to_row row_dual col_dual objective gap maximize cardinality cost_limit"
    fields = {name: getattr(a, name) for name in names.split()}
    rows, cols = map(range, matrix.shape)
    cover = None
    if a.cardinality == "maximum":
        cover = tuple(np.isin(side, part) for side, part in zip((rows, cols), a.cover_ind()))
    share = SimpleNamespace(**{**fields, "rows": rows, "cols": cols, "cover": cover, **changes})
    return verify_share_of_assignment(as_costs(matrix), share, OneRank(), **how)


WISHES = [
    (COSTS, {}),
    (COSTS, {"maximize": True}),
    (COSTS.T, {}),
    (COSTS[:, :2], {}),
    (COSTS, {"cost_limit": 1}),
    (COSTS, {"cost_limit": 2.5}),
    (COSTS - 3, {"cardinality": "any"}),
    (COSTS[:0], {}),
    (COSTS[:0, :0], {"cardinality": "any"}),
    (COSTS / 7, {}),
    (LARGEST, {"cardinality": "maximum"}),
    (np.array([[1.0, np.inf], [np.inf, np.inf]]), {"cardinality": "maximum"}),
    (LARGEST, {"cardinality": "maximum", "cost_limit": 3.0}),
]


@pytest.mark.parametrize(("matrix", "wish"), WISHES)
def test_right_shares_of_assignments(matrix, wish):
    assert check_assignment(matrix, wish, {}) == gm.verify(matrix, gm.assign(matrix, **wish))


#   rows 0, 1 at columns 1, 0; their duals are 3 and 2, those of the columns 0, -2, 0
WRONG = [
    ({}, {"rows": range(1)}, "the result is for 1 rows and 3 columns here"),
    ({}, {"cols": TWO}, "the result is for 2 rows and 2 columns here"),
    ({}, {"col_to_row": np.array([1, 1, -1])}, "row 0 is matched to column 1, which is matched"),
    ({}, {"row_to_col": np.array([1, 3])}, "row 1 .*3"),
    ({}, {"row_to_col": np.array([-2, 0])}, "row 0 .*-2"),
    ({}, {"col_to_row": np.array([1, 0, 0])}, "3 columns are matched, but 2 rows"),
    ({}, {"row_to_col": np.array([1, -1]), "col_to_row": np.array([-1, 0, -1])}, "1 pairs are"),
    ({}, {"row_dual": np.array([4, 2])}, "costs less than its duals"),
    ({}, {"row_dual": np.array([3, 100])}, "row 1 and column 0 costs less than its duals, by 98"),
    ({}, {"col_dual": np.array([0, -2, -200])}, "dual of column 2 of this rank is -200, but"),
    ({}, {"row_dual": np.array([3, 61])}, "row 1 and column 0 costs less .*, by 59"),
    ({}, {"row_dual": np.array([3, 60])}, "costs less than its duals"),
    ({}, {"col_dual": np.array([0, -2, -61])}, "dual of column 2 of this rank is -61, but"),
    ({}, {"col_dual": np.array([0, -2, -60])}, "column 2 of this rank is -60, but must be 0"),
    ({}, {"row_dual": np.array([3, 1])}, "the duals prove 2"),
    ({}, {"objective": 4}, "the pairs cost 3 in all, but the objective is 4"),
    ({}, {"gap": 1}, "the gap is 1, but"),
    ({}, {"gap": -1}, "the gap is -1, but"),
    ({}, {"col_dual": np.array([0, -2, 1])}, "dual of column 2 of this rank is 1, .* other sign"),
    ({}, {"col_dual": np.array([0, -2, -1])}, "dual of column 2 of this rank is -1, but must be 0"),
    ({"cardinality": "maximum"}, {"cover": None}, "has no vertex cover"),
    ({"cardinality": "maximum"}, {"cover": (marks(0, 1), marks())}, "rows must be 2 bools"),
    ({"cardinality": "maximum"}, {"cover": (marks(0, 1)[:2], marks().astype(int))}, "columns must"),
    (
        {"cardinality": "maximum"},
        {"cover": (marks(0, 1)[:2], marks(2))},
        "2 pairs are assigned, not 3, as the cover has vertices",
    ),
    ({}, {"row_to_col": np.array([1, -1]), "col_to_row": np.array([-1, 0, -1])}, "smaller side"),
    (
        {"cardinality": "maximum"},
        {"cover": (marks(0)[:2], marks(2)), "row_dual": np.zeros(2, int), "col_dual": marks() + 0},
        "row 1 and column 0 is not in the cover",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("wish", "changes", "message"), WRONG)
def test_wrong_shares_of_assignments(wish, changes, message):
    with pytest.raises(gm.CertificateError, match=message):
        check_assignment(COSTS, wish, changes)


#   the same with their sign turned, so that duals are at least 0
@pytest.mark.parametrize(
    ("wish", "changes", "message"),
    [
        ({}, {"col_dual": np.array([0, 2, -1])}, "column 2 of this rank is -1, .* other sign"),
        ({}, {"col_dual": np.array([0, 2, 1])}, "column 2 of this rank is 1, but must be 0"),
        (
            {},
            {"row_dual": np.array([-4, -2])},
            "row 0 and column 1 costs less .*, by 1",
        ),
        ({}, {"row_dual": np.array([-2, -2])}, "objective is -3, but the duals prove -2"),
        (
            {},
            {"row_dual": np.array([-3, -61])},
            "row 1 and column 0 costs less .*, by 59",
        ),
        ({"cost_limit": -4}, {"row_dual": np.array([0, 2])}, "column 1 costs .* and the limit"),
    ],
)
def test_signs_of_shares_are_those_of_costs_to_be_maximised(wish, changes, message):
    wish = {"maximize": True, **wish}
    assert check_assignment(-COSTS, wish, {}).bound == -3
    with pytest.raises(gm.CertificateError, match=message):
        check_assignment(-COSTS, wish, changes)


def test_a_forbidden_pair_in_a_share():
    crossed = {"row_to_col": np.array([1, 0]), "col_to_row": np.array([1, 0])}
    with pytest.raises(gm.CertificateError, match="row 0 is assigned to column 1, which is forb"):
        check_assignment(np.array([[1.0, np.inf], [2.0, 1.0]]), {}, crossed)


def test_copies_of_columns_that_are_not_as_many():
    class Longer(OneRank):
        def allgather(self, array):
            return [array, array + 1] if array.ndim == 1 else [array]

    a = gm.assign(COSTS)
    a.rows, a.cols, a.cover = TWO, range(3), None
    with pytest.raises(gm.CertificateError, match="mates of the columns are not as many on all"):
        verify_share_of_assignment(as_costs(COSTS), a, Longer())


@pytest.mark.parametrize(
    ("differs", "what"), [("iu", "the mates of the columns"), ("f", "the duals of the columns")]
)
def test_copies_of_columns_that_are_not_the_same(differs, what):
    class Different(OneRank):
        def allreduce(self, array, how):
            return array + (how == "max" and array.dtype.kind in differs)

    a = gm.assign(COSTS / 7)
    a.rows, a.cols, a.cover = TWO, range(3), None
    with pytest.raises(gm.CertificateError, match=f"{what} differ among ranks"):
        verify_share_of_assignment(as_costs(COSTS / 7), a, Different())


def test_duals_of_which_a_difference_is_beyond_int64_buy_nothing():
    """Row 0's pairs cost 13 times `most` less than its dual, which wraps in int64."""
    most = 2**63 // 12 - 5
    matrix = np.array([[-most, -most], [0, 1]])
    wrapped = {
        "row_to_col": np.arange(2), "col_to_row": np.arange(2), "objective": 1 - most,
        "row_dual": np.array([12 * most, -12 * most]), "col_dual": np.array([1 - most, 0]),
    }  # fmt: skip
    with pytest.raises(gm.CertificateError, match="row 0 and column 1 costs less than its duals"):
        check_assignment(matrix, {}, wrapped)


UNUSED = np.array([[1e-9, 900, 1e18], [900, 1e-9, 1e18], [1e18, 1e18, 1e-9]])


def test_unused_costs_allow_nothing():
    assert check_assignment(UNUSED, {}, {}).allowance < 1e-20
    crossed = {
        "row_to_col": np.array([1, 0, 2]), "col_to_row": np.array([1, 0, 2]),
        "row_dual": np.array([900, 900, 1e-9]), "col_dual": np.zeros(3), "objective": 1800 + 1e-9,
    }  # fmt: skip
    with pytest.raises(gm.CertificateError, match="costs less than its duals"):
        check_assignment(UNUSED, {}, crossed)


@pytest.mark.parametrize(("matrix", "wish"), WISHES)
def test_bounds_are_those_of_one_place(matrix, wish):
    """Also with duals that are wrong on both sides, for which all is moved."""
    rng = np.random.default_rng(3)
    wrong = {
        "row_dual": rng.normal(size=matrix.shape[0]) * 3,
        "col_dual": rng.normal(size=matrix.shape[1]) * 3,
        "gap": np.inf,
    }
    a = gm.assign(matrix, **wish)
    vars(a).update(wrong)
    there = check_assignment(matrix, wish, wrong, optimal=False)
    assert there == gm.verify(matrix, a, optimal=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"maximize": "no"}, "maximize must be True or False"),
        ({"cardinality": "foo"}, "the cardinality must be one of"),
        ({"cost_limit": np.nan}, "the limit must be a number"),
        ({"cost_limit": np.inf}, "the limit must be finite"),
        ({"objective": np.nan}, "the objective must be a number"),
        ({"gap": None}, "the gap must be a number"),
        ({"size": 3}, "there are 2 pairs, but the size is 3"),
        ({"pair_costs": np.array([1, 1])}, "pair_costs does not agree"),
        ({"row_to_col": np.array([1, 0], bool)}, "must be 2 integers; got bool"),
        ({"row_dual": np.array([np.inf, 1])}, "must be finite"),
        ({"col_dual": np.array([np.nan, 0, 0])}, "must be finite"),
        ({"row_dual": np.array([3, 2, 1])}, "the duals of the rows must be 2 numbers"),
    ],
)
def test_what_a_share_says_of_itself_is_checked(changes, message):
    with pytest.raises(gm.CertificateError, match=message):
        check_assignment(COSTS, {}, changes)


def test_a_share_without_a_cover_or_of_too_few_pairs_has_no_bound():
    few = {"row_to_col": np.array([1, -1]), "col_to_row": np.array([-1, 0, -1]), "objective": 1}
    found = check_assignment(COSTS, {}, {**few, "gap": np.inf}, optimal=False)
    assert (found.bound, found.gap) == (-np.inf, np.inf)
    wish = {"cardinality": "maximum"}
    found = check_assignment(COSTS, wish, {"cover": None, "gap": np.inf}, optimal=False)
    assert (found.bound, found.gap) == (-np.inf, np.inf)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_pair_within_the_limit_is_not_left_out(sign):
    alone = {
        "row_to_col": np.array([-1, 0]), "col_to_row": np.array([1, -1, -1]), "objective": 2 * sign,
        "row_dual": np.array([0, 0]), "col_dual": np.array([0, 0, 0]), "gap": 0,
    }  # fmt: skip
    matrix = np.array([[4, 3, 5], [2, 9, 5]]) * sign
    wish = {"cost_limit": 2 * sign, "maximize": sign < 0}
    assert check_assignment(matrix, wish, alone).size == 1
    alone |= {"cost_limit": 3 * sign, "row_dual": np.array([0, -1]) * sign}
    with pytest.raises(gm.CertificateError, match="row 0 and column 1 are unmatched, but their"):
        check_assignment(matrix, wish, alone)


def test_ranks_that_claim_different_things():
    class Different(OneRank):
        def allgather(self, array):
            return [array, array[::-1]] if array.dtype == np.uint8 else [array]

    a = gm.assign(COSTS)
    a.rows, a.cols, a.cover = TWO, range(3), None
    with pytest.raises(gm.CertificateError, match="what is claimed differs among ranks"):
        verify_share_of_assignment(as_costs(COSTS), a, Different())
