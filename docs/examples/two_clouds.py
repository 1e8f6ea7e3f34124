"""Which sample of noise goes to which sample of data? Two clouds, coupled without a matrix.

Flow matching moves noise to data along straight lines. The lines are shortest if the pairs are an
optimal assignment of squared distances. It is usual to couple small batches one by one instead, and
their lines are longer, because a batch holds other parts of the data than of the noise. This
example couples whole clouds, and batches of several sizes beside them. Run it from the repository's
root::

    python -m docs.examples.two_clouds --picture clouds.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import gpumatch as gm

BATCHES = (50, 200, 1000)
_NOISE, _DATA, _LINE = "#0072B2", "#D55E00", "#BBBBBB"  # readers can tell these apart
_DRAWN, _CELLS = 400, 14  # pairs in the first picture, and cells of a side in the second


class Coupling(NamedTuple):
    """Two clouds of points of the plane, and the data point of each noise point."""

    noise: np.ndarray
    data: np.ndarray
    mates: np.ndarray

    @property
    def steps(self) -> np.ndarray:
        """What must be added to each noise point, of shape (n, 2)."""
        return self.data[self.mates] - self.noise

    @property
    def cost(self) -> float:
        """The mean squared length of a line."""
        return float(np.square(self.steps).sum(axis=1).mean())


def two_clouds(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal noise, and data on two half circles."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n, 2))
    angle = np.pi * rng.random(n)
    side = rng.choice([-1.0, 1.0], n)
    arcs = np.stack([np.cos(angle) - 0.5 * side, side * (np.sin(angle) - 0.4)], axis=1)
    return noise, 2.2 * arcs + 0.08 * rng.normal(size=(n, 2))


def couple(noise: np.ndarray, data: np.ndarray, batch: int | None = None) -> Coupling:
    """The optimal pairs of the clouds, or of each `batch` of their points in turn."""
    size = len(noise) if batch is None else batch
    mates = np.empty(len(noise), np.int64)
    for begin in range(0, len(noise), size):
        part = slice(begin, begin + size)
        mates[part] = begin + gm.assign(gm.PointCosts(noise[part], data[part])).row_to_col
    return Coupling(noise, data, mates)


def table(noise: np.ndarray, data: np.ndarray) -> list[tuple[str, float]]:
    """The mean squared length of the lines: by batches, and of the whole clouds."""
    rows = [(f"batches of {size}", couple(noise, data, size).cost) for size in BATCHES]
    return [*rows, ("the whole clouds", couple(noise, data).cost)]


def text(rows: list[tuple[str, float]]) -> str:
    """The table, and what batches cost more than the optimum."""
    best = rows[-1][1]
    heads = f"{'coupled':<18}{'mean squared length':>21}{'above the optimum':>20}"
    return "\n".join(
        [heads, *(f"{name:<18}{cost:>21.4f}{cost / best - 1:>20.1%}" for name, cost in rows)]
    )


# -- the picture -----------------------------------------------------------------------------------


def picture(path: str, noise: np.ndarray, data: np.ndarray) -> None:
    """Draw some pairs, and the field of the mean steps, into a file."""
    import matplotlib
    from PIL import Image

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), dpi=100, layout="constrained")
    draw_pairs(left, couple(noise[:_DRAWN], data[:_DRAWN]))
    left.set_title(f"the pairs of {_DRAWN} points")
    draw_field(right, couple(noise, data))
    right.set_title(f"mean steps of {len(noise):,} points")
    for axes in (left, right):
        axes.set(xlim=(-4, 4), ylim=(-3.2, 3.2), xticks=(), yticks=(), aspect="equal")
    figure.savefig(path)
    plt.close(figure)
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)  # a third of the size


def draw_pairs(axes: Any, coupling: Coupling) -> None:
    """Draw a line for each pair, between its two points."""
    ends = np.stack([coupling.noise, coupling.data[coupling.mates]], axis=1)
    axes.plot(*ends.transpose(2, 1, 0), color=_LINE, linewidth=0.7, zorder=0)
    axes.scatter(*coupling.noise.T, s=6, color=_NOISE, label="noise")
    axes.scatter(*coupling.data.T, s=6, color=_DATA, label="data")
    axes.legend(loc="lower left")


def draw_field(axes: Any, coupling: Coupling) -> None:
    """Draw the mean step of the points in each cell of a grid as an arrow."""
    cells = np.floor((coupling.noise + 3) / 6 * _CELLS).astype(int)
    inside = ((cells >= 0) & (cells < _CELLS)).all(axis=1)
    number = cells[inside] @ [_CELLS, 1]
    count = np.bincount(number, minlength=_CELLS**2)
    known = count >= 5
    middles, steps = (
        np.stack([np.bincount(number, column, _CELLS**2)[known] for column in values[inside].T])
        / count[known]
        for values in (coupling.noise, coupling.steps)
    )
    axes.scatter(*coupling.data[::5].T, s=1, color=_DATA, alpha=0.4)
    axes.quiver(*middles, *steps, color=_NOISE, angles="xy", scale_units="xy", scale=1, width=0.003)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and draw the picture if a file is named."""
    parser = argparse.ArgumentParser(description="Couple noise with data by assignment.")
    parser.add_argument("--points", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", metavar="FILE")
    options = parser.parse_args(arguments)
    noise, data = two_clouds(options.points, options.seed)
    print(text(table(noise, data)))
    if options.picture:
        picture(options.picture, noise, data)


if __name__ == "__main__":
    main()
