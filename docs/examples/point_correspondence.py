"""Which point of one frame is which of the next? Points in space, followed by assignment.

This is the correspondence problem of Vasconcelos and Rosenhahn (2009, section 6). Only the places
of the points are known, in another order in each frame. Between two frames, some points leave the
field of view, and others enter it. The pairs of two frames are those of least total distance. A
`cost_limit` of twice the length of a step leaves points unpaired that would have to go further. So
a point that has left is rarely taken for one that has entered.

Distances are taken from where a point was, as in the paper, or from where it would be if it had
gone on as before. The second helps more if more of the direction persists. Run it from the
repository's root::

    python -m docs.examples.point_correspondence --picture tracks.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import gpumatch as gm
from graphs.moving_points import Frame, distances, moving_points

PERSISTENCE = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
_RIGHT, _WRONG = "#0072B2", "#D55E00"  # Okabe and Ito's, which all readers can tell apart


class Tracking(NamedTuple):
    """The frames; for each except the last, its points' partners in the next one, -1 for none."""

    frames: list[Frame]
    partners: list[np.ndarray]

    @property
    def accuracy(self) -> float:
        """The share of the points in both of two frames whose partner is the right one."""
        steps = zip(pairwise(self.frames), self.partners)
        return float(np.mean([frame.accuracy(later, mates) for (frame, later), mates in steps]))

    @property
    def mistaken(self) -> float:
        """The share of the points that have left, but are taken for others."""
        steps = zip(pairwise(self.frames), self.partners)
        of_steps = [mates[frame.truth(later) < 0] >= 0 for (frame, later), mates in steps]
        taken = np.concatenate(of_steps)
        return float(taken.mean()) if taken.size else 0.0


def track(frames: list[Frame], cost_limit: float | None, *, goes_on: bool) -> Tracking:
    """Find the pairs of each two frames.

    Parameters
    ----------
    frames : list of Frame
        What is seen.
    cost_limit : float or None
        Two points further apart than this are no pair.
    goes_on : bool
        Whether a point is looked for where its last step would lead it, not where it was.
    """
    partners = []
    velocity = np.zeros_like(frames[0].points)
    for frame, later in pairwise(frames):
        expected = Frame(frame.points + velocity, frame.names)
        mates = gm.assign(distances(expected, later), cost_limit=cost_limit).row_to_col
        partners.append(mates)
        velocity = np.zeros_like(later.points)
        if goes_on:
            known = np.flatnonzero(mates >= 0)
            velocity[mates[known]] = later.points[mates[known]] - frame.points[known]
    return Tracking(frames, partners)


class Row(NamedTuple):
    """The results for one persistence: shares, by where points are looked for."""

    persistence: float
    was: float
    goes_on: float
    mistaken: float
    mistaken_without_limit: float


def table(n: int, frames: int, step: float, seeds: int) -> list[Row]:
    """Track points of several persistences; means over the seeds."""
    rows = []
    for persistence in PERSISTENCE:
        found = []
        for seed in range(seeds):
            seen = moving_points(n, frames, persistence, step, seed=seed)
            was = track(seen, 2 * step, goes_on=False)
            goes_on = track(seen, 2 * step, goes_on=True)
            full = track(seen, None, goes_on=False)
            found.append((was.accuracy, goes_on.accuracy, was.mistaken, full.mistaken))
        rows.append(Row(persistence, *np.mean(found, axis=0).tolist()))
    return rows


def text(rows: list[Row]) -> str:
    """The table, in per cent."""
    heads = ("persistence", "was", "goes on", "left, paired", "without limit")
    lines = ["  ".join(f"{head:>13}" for head in heads)]
    for row in rows:
        cells = [f"{row.persistence:.2f}", *(f"{share:.1%}" for share in row[1:])]
        lines.append("  ".join(f"{cell:>13}" for cell in cells))
    return "\n".join(lines)


# -- the picture -----------------------------------------------------------------------------------


def picture(path: str, rows: list[Row], n: int, frames: int, step: float) -> None:
    """Draw tracks of little and of much persistence, and the table, into a file."""
    import matplotlib
    from PIL import Image

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(12, 4.2), dpi=100, layout="constrained")
    for place, persistence in enumerate((0.25, 0.9), 1):
        seen = moving_points(n, frames, persistence, step)
        axes = figure.add_subplot(1, 3, place, projection="3d")
        draw_tracks(axes, track(seen, 2 * step, goes_on=True))
        axes.set_title(f"persistence {persistence}")
    axes = figure.add_subplot(1, 3, 3)
    at = [row.persistence for row in rows]
    for shares, line, colour, label in (
        ([row.goes_on for row in rows], "o-", _RIGHT, "expected where it goes on to"),
        ([row.was for row in rows], "s--", _WRONG, "expected where it was"),
    ):
        axes.plot(at, 100 * np.array(shares), line, color=colour, label=label)
    axes.set(xlabel="persistence", title="right partners, %")
    axes.legend()
    figure.savefig(path)
    plt.close(figure)
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)  # a third of the size


def draw_tracks(axes: Any, tracking: Tracking) -> None:
    """Draw a line for each pair, wrong pairs above the others."""
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    steps = list(zip(pairwise(tracking.frames), tracking.partners))
    for is_right, colour, width in ((True, _RIGHT, 0.7), (False, _WRONG, 2.0)):
        lines = []
        for (frame, later), mates in steps:
            paired = np.flatnonzero((mates >= 0) & ((mates == frame.truth(later)) == is_right))
            lines.append(np.stack([frame.points[paired], later.points[mates[paired]]], axis=1))
        drawn = Line3DCollection(np.concatenate(lines), colors=colour, linewidths=width)
        axes.add_collection3d(drawn, autolim=False)
    axes.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1), xticks=(0, 1), yticks=(0, 1), zticks=(0, 1))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and draw the picture if a file is named."""
    parser = argparse.ArgumentParser(description="Follow points in space by assignment.")
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--step", type=float, default=0.03, help="length; the box has sides of 1")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--picture", metavar="FILE")
    options = parser.parse_args(arguments)
    rows = table(options.points, options.frames, options.step, options.seeds)
    print(text(rows))
    if options.picture:
        picture(options.picture, rows, options.points, options.frames, options.step)


if __name__ == "__main__":
    main()
