"""Moving points: where they are, how far they go, which leave, and that the truth is right."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gpumatch as gm
from graphs.moving_points import Frame, distances, moving_points


def test_frames_have_all_points_in_the_box_in_random_order():
    frames = moving_points(200, 6, seed=1)
    assert len(frames) == 6
    for frame in frames:
        assert frame.points.shape == (200, 3)
        assert ((frame.points >= 0) & (frame.points < 1)).all()
        assert np.unique(frame.names).size == 200
        assert (frame.names != np.sort(frame.names)).any()


def test_who_stays_goes_no_further_than_a_step():
    first, second = moving_points(300, 2, persistence=0.5, step=0.01, seed=2)
    truth = first.truth(second)
    stays = truth >= 0
    way = np.linalg.norm(second.points[truth[stays]] - first.points[stays], axis=1)
    assert way.max() <= 0.01 * (1 + 1e-9)
    assert way.min() < 0.9 * 0.01 < way.max()


def test_points_leave_and_others_enter_at_the_sides():
    first, second = moving_points(1000, 2, step=0.1, seed=3)
    truth = first.truth(second)
    entered = np.setdiff1d(np.arange(1000), truth)
    assert entered.size == np.count_nonzero(truth < 0) > 50
    assert not np.isin(second.names[entered], first.names).any()
    at_side = np.minimum(second.points[entered], 1 - second.points[entered]).min(axis=1)
    assert at_side.max() < 1e-12
    left = first.points[truth < 0]
    assert np.minimum(left, 1 - left).min(axis=1).max() <= 0.1


def test_who_enters_moves_inwards():
    first, second, third = moving_points(1000, 3, persistence=1, step=0.05, seed=3)
    entered = ~np.isin(second.names, first.names)
    stayed = second.truth(third)[entered] >= 0
    assert stayed.mean() > 0.9  # the others came in at an edge, and passed over it


def test_in_a_closed_box_all_stay_and_go_no_further_than_a_step():
    frames = moving_points(400, 5, step=0.3, box="closed", seed=3)
    for first, second in itertools.pairwise(frames):
        truth = first.truth(second)
        assert (truth >= 0).all()
        assert ((second.points >= 0) & (second.points < 1)).all()
        way = np.linalg.norm(second.points[truth] - first.points, axis=1)
        assert way.max() <= 0.3 * (1 + 1e-9)


def test_the_sides_of_a_closed_box_mirror_the_way():
    """Who is thrown back goes on in the mirrored direction, so that two steps make one line."""
    frames = moving_points(1000, 3, persistence=1, step=0.05, box="closed", seed=3)
    points = [f.points[frames[0].truth(f)] for f in frames]
    steps = np.diff(points, axis=0)
    thrown = np.linalg.norm(steps[0], axis=1) < 0.05 * (1 - 1e-9)
    assert 50 < thrown.sum() < 200
    assert np.linalg.norm(steps[1][~thrown], axis=1).max() == pytest.approx(0.05)
    once = np.linalg.norm(steps[1], axis=1) > 0.05 * (1 - 1e-9)
    assert (thrown & once).sum() > 0.9 * thrown.sum()  # it does not pass the same side again


def test_a_box_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match=r"box must be one of \('open', 'closed'\); got 'ajar'"):
        moving_points(5, 2, box="ajar")


def test_names_are_never_given_again():
    frames = moving_points(100, 30, step=0.1, seed=4)
    for name in np.unique(np.concatenate([frame.names for frame in frames])):
        seen = np.flatnonzero([name in frame.names for frame in frames])
        assert (np.diff(seen) == 1).all()


@pytest.mark.parametrize("persistence", [0, 0.5, 1])
def test_persistence_keeps_the_direction(persistence):
    frames = moving_points(500, 3, persistence=persistence, step=0.001, seed=5)
    one, two = frames[0].truth(frames[1]), frames[0].truth(frames[2])
    stays = (one >= 0) & (two >= 0)
    points = [frames[0].points[stays], frames[1].points[one[stays]], frames[2].points[two[stays]]]
    steps = np.diff(points, axis=0)
    cosine = (steps[0] * steps[1]).sum(axis=1) / np.linalg.norm(steps, axis=2).prod(axis=0)
    mean = {0: 0, 0.5: 0.66, 1: 1}[persistence]
    assert cosine.mean() == pytest.approx(mean, abs=0.1)


def test_the_truth_by_hand():
    points = np.zeros((3, 3))
    earlier = Frame(points, np.array([7, 3, 9]))
    later = Frame(points, np.array([9, 4, 7]))
    assert earlier.truth(later).tolist() == [2, -1, 0]
    assert earlier.accuracy(later, np.array([2, 1, 1])) == 0.5


def test_short_steps_are_matched_rightly():
    first, second = moving_points(300, 2, step=0.002, seed=6)
    a = gm.assign(distances(first, second))
    assert first.accuracy(second, a.row_to_col) > 0.99
    assert first.accuracy(second, np.arange(300)) < 0.1


def test_one_seed_makes_one_world():
    one, two, other = (moving_points(50, 3, seed=seed) for seed in (1, 1, 2))
    assert all((a.points == b.points).all() for a, b in zip(one, two))
    assert (one[0].points != other[0].points).any()


def test_a_persistence_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"persistence must be in \[0, 1\]; got 1.5"):
        moving_points(5, 2, persistence=1.5)
