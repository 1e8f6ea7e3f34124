"""Follow boxes from frame to frame, as SORT does, with gpumatch's `lapjv` in place of lapx's.

Each track predicts its next box by its velocity. Boxes that are detected are assigned to tracks by
1 less their intersection over union, behind a gate. A track that is missed for some frames ends,
and a detection without a track begins one.

``python -m docs.examples.box_tracking`` makes 2,000 frames with noise, misses and false alarms, and
says how many tracks there are and what share of them keeps to one object.

Reference: Bewley, Ge, Ott, Ramos, Upcroft, "Simple online and realtime tracking", ICIP 2016.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpumatch.interop import lap  # which is all that changes: it was `import lap`

__all__ = ["Frame", "Track", "follow", "ious", "purity", "scene"]

GATE = 0.7
"""1 less the least intersection over union of a track and its detection."""
PATIENCE = 3
"""Frames that a track may be missed."""
FIELD, SPEED = 1000.0, 4.0


@dataclass(frozen=True)
class Frame:
    """The boxes of a frame as corners, and which object each is of: -1 for a false alarm."""

    boxes: np.ndarray
    objects: np.ndarray


@dataclass
class Track:
    """A track: where it is, how it moves, since when it is missed, and what it was given."""

    box: np.ndarray
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(4))
    missed: int = 0
    objects: list[int] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)

    def predicted(self) -> np.ndarray:
        return self.box + self.velocity

    def take(self, box: np.ndarray, object_: int, frame: int) -> None:
        """Go on with a detection."""
        if self.frames:
            steps = frame - self.frames[-1]
            self.velocity = 0.6 * self.velocity + 0.4 * (box - self.box) / steps
        self.box, self.missed = box, 0
        self.objects.append(object_)
        self.frames.append(frame)


def ious(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the intersection over union of each pair of boxes."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    both = np.maximum(high - low, 0).prod(axis=2)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (one, other)]
    return both / (areas[0][:, None] + areas[1] - both)


def scene(frames: int, objects: int, seed: int) -> Iterator[Frame]:
    """Yield frames of objects that move on straight ways and turn back at the borders."""
    rng = np.random.default_rng(seed)
    places, sizes = FIELD * rng.random((objects, 2)), rng.uniform(30, 90, (objects, 2))
    speeds = rng.normal(0, SPEED, (objects, 2))
    for _ in range(frames):
        places += speeds
        is_outside = (places < 0) | (places > FIELD)
        speeds[is_outside] *= -1
        seen = (rng.random(objects) < 0.95).nonzero()[0]
        boxes = np.concatenate([places[seen], places[seen] + sizes[seen]], axis=1)
        boxes += rng.normal(0, 1.0, boxes.shape)
        alarms = FIELD * rng.random((rng.poisson(2), 2))
        boxes = np.concatenate([boxes, np.concatenate([alarms, alarms + 50], axis=1)])
        order = rng.permutation(len(boxes))
        yield Frame(boxes[order], np.append(seen, np.full(len(alarms), -1))[order])


def follow(
    frames: Iterator[Frame], lapjv: Callable[..., Any] = lap.lapjv, gate: float = GATE
) -> list[Track]:
    """Return all tracks, by their begin."""
    tracks: list[Track] = []
    alive: list[Track] = []
    for number, frame in enumerate(frames):
        predicted = np.array([track.predicted() for track in alive]).reshape(-1, 4)
        cost = 1 - ious(predicted, frame.boxes)
        _, columns, rows = lapjv(cost, extend_cost=True, cost_limit=gate)
        for track, column in zip(alive, columns):
            if column >= 0:
                track.take(frame.boxes[column], int(frame.objects[column]), number)
            else:
                track.box, track.missed = track.predicted(), track.missed + 1
        alive = [track for track in alive if track.missed <= PATIENCE]
        for column in (rows < 0).nonzero()[0]:
            track = Track(frame.boxes[column])
            track.take(frame.boxes[column], int(frame.objects[column]), number)
            tracks.append(track)
            alive.append(track)
    return tracks


def purity(tracks: list[Track]) -> float:
    """Return the share of detections that are of the object that most of their track is of."""
    most = sum(Counter(track.objects).most_common(1)[0][1] for track in tracks)
    return most / sum(len(track.objects) for track in tracks)


def main() -> None:
    """Follow the boxes of a scene, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--objects", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    tracks = follow(scene(given.frames, given.objects, given.seed))
    long = [track for track in tracks if len(track.frames) >= 10]
    print(f"{len(tracks)} tracks, {len(long)} of at least 10 frames")
    print(f"{purity(tracks):.1%} of the detections are of the object of their track")


if __name__ == "__main__":
    main()
