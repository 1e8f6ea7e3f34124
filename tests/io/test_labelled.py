"""Pairs of labels as a sparse matrix."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm

from_pairs = gm.io.LabelledArray.from_pairs


def test_labels_are_in_the_order_in_which_they_occur():
    matrix = from_pairs(["b", "a", "b"], [7, 7, "x"], [1, 2, 3])
    assert (matrix.row_labels, matrix.col_labels) == (["b", "a"], [7, "x"])
    assert matrix.toarray().tolist() == [[1, 3], [2, 0]]
    assert from_pairs(["b", "a"], "xy").toarray().tolist() == [[1, 0], [0, 1]]
    assert from_pairs([], []).shape == (0, 0)


def test_results_are_in_labels():
    matrix = from_pairs(iter("aab"), iter("xyx"), np.array([0.9, 0.8, 0.7]))
    assert gm.assign(matrix, maximize=True).edges() == [("a", "y"), ("b", "x")]
    assert sorted(gm.maximum_matching(matrix).edges()) == [("a", "y"), ("b", "x")]


def test_repeated_pairs():
    again = (["a", "b", "a"], ["x", "x", "x"], [1, 2, 4])
    with pytest.raises(ValueError, match=r"pair 2 is \('a', 'x'\), as is pair 0"):
        from_pairs(*again)
    for duplicates, number in (("sum", 5), ("min", 1), ("max", 4), ("last", 4)):
        assert from_pairs(*again, duplicates=duplicates).toarray().tolist() == [[number], [2]]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (("ab", "x"), ValueError, "one length; got 2, 1"),
        (("ab", "xy", [1]), ValueError, "one length"),
        (("ab", "xy", ["1", "2"]), TypeError, "real numbers; got dtype <U1"),
        (("ab", "xy", [[1], [2]]), ValueError, r"shape \(2, 1\)"),
        (([["a"]], "x"), TypeError, "unhashable"),
    ],
)
def test_bad_input(given, error, message):
    with pytest.raises(error, match=message):
        from_pairs(*given)
    with pytest.raises(ValueError, match="duplicates must be"):
        from_pairs("a", "x", duplicates="first")


def test_errors_of_texts_lead_here():
    pairs = [("a", "x", 0.5)]
    for call in (gm.assign, gm.maximum_matching):
        with pytest.raises(TypeError, match=r"LabelledArray\.from_pairs"):
            call(pairs)
