"""Pictures of patterns: where dots and frames are, and what they are of."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.sparse import eye_array

from gpumatch import plot
from gpumatch.linalg import btf, dmperm, maximum_product_matching, mc64

A = np.array([[0, 1, 0, 1], [1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1]])
SINGULAR = np.array([[1, 1, 0], [0, 0, 1], [0, 0, 1]])


def dots(axes):
    (image,) = axes.images
    return image.get_array() > 0


def frames(axes):
    return [(*f.get_xy()[::-1], f.get_height(), f.get_width()) for f in axes.patches]


def test_a_small_pattern_has_a_dot_an_entry():
    axes = plot.spy(A)
    assert np.array_equal(dots(axes), A != 0)
    assert frames(axes) == []
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("4 columns, 8 entries", "4 rows")


@pytest.mark.parametrize("ordered", [dmperm, btf])
def test_blocks_are_framed(ordered):
    order = ordered(A)
    axes = plot.spy(A, order)
    assert np.array_equal(dots(axes), A[order.p][:, order.q] != 0)
    assert frames(axes) == [(k, k, 1, 1) for k in range(4)]


def test_parts_that_are_not_square_are_framed():
    assert sorted(frames(plot.spy(SINGULAR, dmperm(SINGULAR)))) == [(0, 0, 1, 2), (1, 2, 2, 1)]


@pytest.mark.parametrize("ordered", [maximum_product_matching, lambda matrix: mc64(matrix, 1)])
def test_other_permutations(ordered):
    order = ordered(A)
    axes = plot.spy(A, order)
    assert np.array_equal(dots(axes), A[order.row_perm][:, order.col_perm] != 0)


def test_many_entries_share_dots():
    image = plot.spy(eye_array(100_000, format="csr")).images[0].get_array()
    assert max(image.shape) <= 600
    assert np.array_equal(image > 0, np.eye(*image.shape, dtype=bool))
    assert 0.3 < image.max() < 1


@pytest.mark.parametrize(("side", "cell"), [(600, 1), (601, 2), (1200, 2), (1201, 3)])
def test_a_dot_is_as_dark_as_its_share_of_entries(side, cell):
    """From 0.3 on, by the logarithm; as dark as can be if all have an entry."""
    pattern = np.zeros((side, 5))
    pattern[0, 0] = pattern[-1, -1] = 1
    pattern[cell : 2 * cell, :cell] = 1
    image = plot.spy(pattern).images[0].get_array()
    assert image.shape == (-(-side // cell), -(-5 // cell))
    alone = 0.3 + 0.7 * np.log(2) / np.log(1 + cell**2)
    assert image[0, 0] == image[-1, -1] == pytest.approx(alone)
    assert image[1, 0] == 1
    assert np.count_nonzero(image) == 3


def test_a_picture_is_drawn_in_grey_from_the_upper_left_corner():
    axes = plot.spy(np.ones((3, 7)))
    (image,) = axes.images
    assert image.get_extent() == [0, 7, 3, 0]
    assert (image.get_clim(), image.get_cmap().name) == ((0, 1), "Greys")
    assert image.get_interpolation() == "nearest"


def test_only_the_largest_blocks_are_framed():
    diagonal = eye_array(5000, format="csr")
    assert len(frames(plot.spy(diagonal, btf(diagonal)))) == 2000
    diagonal = diagonal.tolil()
    diagonal[7, 4000] = diagonal[4000, 7] = 1
    found = frames(plot.spy(diagonal, btf(diagonal.tocsr())))
    assert sorted(height for *_, height, _ in found)[-2:] == [1, 2]


def test_frames_hide_no_entries():
    axes = plot.spy(A, btf(A))
    assert len(axes.patches) == 4
    assert not any(frame.get_fill() for frame in axes.patches)


def test_it_draws_where_it_is_told():
    own = Figure().subplots()
    assert plot.spy(A, axes=own) is own


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_empty_patterns(shape):
    empty = np.zeros(shape)
    assert not dots(plot.spy(empty, dmperm(empty))).any()


def test_what_has_no_permutations_is_refused():
    with pytest.raises(TypeError, match="order must have permutations, p or row_perm; got list"):
        plot.spy(A, [0, 1])


def test_what_is_missing_can_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"matplotlib.figure.*: pip install 'gpumatch\[viz\]'$"):
        plot.spy(A)
