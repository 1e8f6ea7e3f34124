"""Points that move in a box of three dimensions, seen from time to time, with the truth about them.

They are for the correspondence problem of Vasconcelos and Rosenhahn: which point of one frame is
which point of the next, if only their places are known? One part of a point's step goes on in its
last direction (a correlated walk), the other is drawn at random each time (the bias).
``persistence`` in [0, 1] is the share of the first part. The box is the field of view. If it is
open and a point moves out of it, a new point enters through a side, so the number of points stays
the same. If it is closed, its sides throw points back, and all points are in all frames.

>>> from graphs.moving_points import distances, moving_points
>>> first, second = moving_points(500, 2, persistence=0.8, seed=1)
>>> distances(first, second).shape
(500, 500)
>>> bool((first.truth(second) < 0).any())  # some have left
True

References
----------
Vasconcelos, Rosenhahn, "Bipartite graph matching computation on GPU", EMMCVPR 2009, section 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

__all__ = ["Frame", "distances", "moving_points"]


@dataclass(frozen=True)
class Frame:
    """What is seen at one time, in random order.

    Attributes
    ----------
    points : float64 array of shape (n, 3)
        Where the points are, in [0, 1)³.
    names : int64 array of length n
        Their numbers, which tell points apart; the matching does not see them.
    """

    points: np.ndarray
    names: np.ndarray

    def truth(self, later: Frame) -> np.ndarray:
        """Return each point's place in a later frame, -1 if it is not there."""
        order = np.argsort(later.names)
        places = np.searchsorted(later.names, self.names, sorter=order)
        places = order[np.minimum(places, order.size - 1)]
        return np.where(later.names[places] == self.names, places, -1)

    def accuracy(self, later: Frame, row_to_col: np.ndarray) -> float:
        """Return the share of the points in both frames whose partner is the right one."""
        truth = self.truth(later)
        there = truth >= 0
        return float(np.mean(row_to_col[there] == truth[there])) if there.any() else 1.0


def moving_points(
    n: int,
    frames: int,
    persistence: float = 0.8,
    step: float = 0.02,
    *,
    box: str = "open",
    seed: int = 0,
) -> list[Frame]:
    """Return the frames of n moving points.

    Parameters
    ----------
    n : int
        Points in each frame.
    frames : int
        How many, one step apart.
    persistence : float
        Share of a step that goes on in the last direction, from 0 (a random walk) to 1 (a straight
        line).
    step : float
        Length of a step if persistence is 0 or 1. It is shorter if the two parts disagree. The
        box has sides of 1.
    box : {"open", "closed"}
        What happens at its sides: points leave and others enter, or they are thrown back.
    """
    if not 0 <= persistence <= 1:
        raise ValueError(f"persistence must be in [0, 1]; got {persistence!r}")
    if box not in _AT_SIDES:
        raise ValueError(f"box must be one of {tuple(_AT_SIDES)}; got {box!r}")
    rng = np.random.default_rng(seed)
    points, direction, names = rng.random((n, 3)), _directions(n, rng), np.arange(n)
    seen = [_seen(points, names, rng)]
    for _ in range(frames - 1):
        velocity = persistence * direction + (1 - persistence) * _directions(n, rng)
        points = points + step * velocity
        direction = velocity / np.linalg.norm(velocity, axis=1, keepdims=True)
        _AT_SIDES[box](points, direction, names, rng)
        seen.append(_seen(points, names, rng))
    return seen


def distances(frame: Frame, later: Frame) -> np.ndarray:
    """Return the Euclidean distances between the points of two frames: the costs."""
    return cdist(frame.points, later.points)


def _directions(n: int, rng: np.random.Generator) -> np.ndarray:
    """Directions of length 1, all equally probable."""
    vectors = rng.standard_normal((n, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _let_enter(
    points: np.ndarray, direction: np.ndarray, names: np.ndarray, rng: np.random.Generator
) -> None:
    """Let a new point enter for each that is out of the box."""
    gone = np.flatnonzero(((points < 0) | (points >= 1)).any(axis=1))
    points[gone], direction[gone] = _entering(gone.size, rng)
    names[gone] = names.max(initial=-1) + 1 + np.arange(gone.size)


def _throw_back(
    points: np.ndarray, direction: np.ndarray, _names: np.ndarray, _rng: np.random.Generator
) -> None:
    """Mirror the way of each point that is out of the box at the side that it has passed."""
    folded = np.mod(points, 2)
    direction[np.mod(np.floor(points), 2) == 1] *= -1
    points[:] = np.minimum(np.where(folded < 1, folded, 2 - folded), np.nextafter(1, 0))


_AT_SIDES = {"open": _let_enter, "closed": _throw_back}


def _entering(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points on the sides of the box that move inwards."""
    points, direction = rng.random((n, 3)), _directions(n, rng)
    axis, is_far = rng.integers(0, 3, n), rng.integers(0, 2, n)
    each = np.arange(n)
    points[each, axis] = np.where(is_far, np.nextafter(1, 0), 0)
    direction[each, axis] = np.abs(direction[each, axis]) * np.where(is_far, -1, 1)
    return points, direction


def _seen(points: np.ndarray, names: np.ndarray, rng: np.random.Generator) -> Frame:
    order = rng.permutation(names.size)
    return Frame(points[order], names[order])
