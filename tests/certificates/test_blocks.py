"""The checker of Dulmage–Mendelsohn decompositions catches what is wrong, and says where."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gpumatch as gm
from gpumatch.linalg import btf, dmperm
from tests.linalg.oracle import PATTERNS, SQUARES, of_result
from tests.linalg.test_dmperm import EXAMPLE


def claim(**wrong):
    return dmperm(EXAMPLE)._replace(**{name: np.array(part) for name, part in wrong.items()})


def test_a_right_claim_is_certified():
    certificate = gm.verify(EXAMPLE, claim())
    assert (certificate.problem, certificate.size, certificate.bound) == ("blocks", 5, 5)
    assert str(certificate) == "finest: 4 blocks on a diagonal of 5 entries, checked on 13 entries"


WRONG = {
    "no permutation": ({"p": [0, 1, 2, 3, 4, 4]}, "p is no permutation of 0 to 5"),
    "too short": ({"q": [0, 1]}, r"q must be 6 integers; got int64 of shape \(2,\)"),
    "permutation of floats": ({"p": [0.0, 1, 2, 3, 4, 5]}, "p must be 6 integers; got float64"),
    "bounds in two dimensions": ({"r": [[0, 6]]}, r"r must be a list of .* shape \(1, 2\)"),
    "no bounds": ({"s": np.zeros(0, int)}, r"s must be a list of integers; got int64 .* \(0,\)"),
    "floats": ({"rr": [0.0, 1, 4, 5, 6]}, "rr must be a list of integers; got float64"),
    "too few parts": ({"rr": [0, 1, 4, 6]}, "rr must have 5 entries; got 4"),
    "parts that fall": ({"cc": [0, 2, 1, 5, 6]}, "cc must rise from 0 to 6"),
    "parts that end early": ({"r": [0, 1, 3, 4, 5]}, "r must rise from 0 to 6"),
    "parts that differ": ({"rr": [0, 1, 3, 5, 6]}, "R2 has 2 rows, but C2 has 3 columns"),
    "blocks that differ": ({"s": [0, 2, 4, 6]}, "r has 5 entries, but s has 4"),
    "blocks in other places": ({"r": [0, 2, 3, 4, 6]}, "r and s do not begin and end"),
    "a block that is not square": (
        {"s": [0, 2, 3, 5, 6]},
        "block 1 has 2 rows and 1 columns, but must be square",
    ),
    "blocks too fine": (
        {"r": [0, 1, 2, 3, 4, 6], "s": [0, 2, 3, 4, 5, 6]},
        "entry of row . and column . lies below",
    ),
    "blocks too coarse": ({"r": [0, 1, 4, 6], "s": [0, 2, 5, 6]}, "block 1 is not strongly"),
    "blocks in the wrong order": (
        {"p": [0, 3, 1, 2, 4, 5], "q": [0, 1, 4, 2, 3, 5], "r": [0, 1, 2, 4, 6],
         "s": [0, 2, 3, 5, 6]},
        "entry of row 1 and column 4 lies below",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_claim_is_refused_and_says_where(wrong, message):
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify(EXAMPLE, claim(**wrong))


def test_a_diagonal_without_an_entry_is_refused():
    A = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    d = dmperm(A)
    assert d.r.tolist() == [0, 3]
    with pytest.raises(gm.CertificateError, match="with column 2, but there is no entry"):
        gm.verify(A, d._replace(p=np.arange(3), q=np.array([2, 0, 1])))


@pytest.mark.parametrize(
    ("cc", "rr"), [([0, 0, 2, 2, 2], [0, 2, 2, 2, 2]), ([0, 0, 0, 0, 2], [0, 0, 0, 2, 2])]
)
def test_a_part_that_no_free_vertex_reaches_is_refused(cc, rr):
    """The pattern is square and well determined, but claimed to be all R1, or all R3."""
    bounds = {name: np.array(part) for name, part in (("cc", cc), ("rr", rr))}
    d = dmperm(np.ones((2, 2)))
    assert gm.verify(np.ones((2, 2)), d).blocks == 1
    with pytest.raises(gm.CertificateError, match="block 0 is not strongly connected"):
        gm.verify(np.ones((2, 2)), d._replace(**bounds))


@given(A=PATTERNS, data=st.data())
def test_any_change_is_caught_unless_it_says_the_same(A, data):
    d = dmperm(A)
    name = data.draw(st.sampled_from(d._fields))
    part = getattr(d, name).tolist()
    assume(part)
    at = data.draw(st.integers(0, len(part) - 1))
    other = data.draw(st.integers(0, len(part) - 1))
    if data.draw(st.booleans()):
        part[at], part[other] = part[other], part[at]
    else:
        part[at] = data.draw(st.integers(-1, max(part) + 1))
    changed = d._replace(**{name: np.array(part)})
    try:
        gm.verify(A, changed)
    except gm.CertificateError:
        return
    assert of_result(changed) == of_result(d)


# -- block triangular forms ------------------------------------------------------------------------

SQUARE = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]])


@given(A=SQUARES)
def test_forms_that_are_found_are_accepted(A):
    proof = gm.verify(A, btf(A))
    assert proof.problem == "form"
    assert proof.size == gm.linalg.sprank(A)
    assert proof.blocks == btf(A).r.size - 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"p": [0, 0, 1, 2]}, "p is no permutation"),
        ({"r": [0, 4]}, "block 0 is not strongly connected"),
        ({"r": [0, 2, 3]}, "r must rise from 0 to 4"),
        ({"r": [0, 1, 2, 3, 4]}, "lies below the diagonal blocks"),
        ({"r": [0, 0, 4]}, "block 0 has 0 rows"),
    ],
)
def test_wrong_forms_are_refused(changes, message):
    form = btf(SQUARE)._replace(**{name: np.array(value) for name, value in changes.items()})
    with pytest.raises(gm.CertificateError, match=message):
        gm.verify(SQUARE, form)


def test_a_form_of_a_matrix_that_is_not_square():
    with pytest.raises(gm.CertificateError, match="A must be square; got 2 rows and 4 columns"):
        gm.verify(SQUARE[:2], btf(SQUARE))
