"""The cost matrices a suite runs on, kept as .npy, and where contenders find them.

A problem is one matrix, or a stack of several matrices of one size (an array of three dimensions).
Each run of a contender solves one of the stack, in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from graphs import costs
from graphs.moving_points import distances, moving_points

PERSISTENCE = 0.8


@dataclass(frozen=True)
class CostInstance:
    """One problem of a suite.

    Attributes
    ----------
    group : str
        Its name without the seed: what it shares with problems that are as large.
    family : str
        What it shares with problems of other sizes.
    source : tuple
        What `graphs.costs.make` takes; or ``("moving_points", n, sets, box)``.
    seed : int
    dtype : str
        Of the costs.
    maximize : bool
        Whether the costs are gains.
    only : tuple of str
        The contenders that are measured on it: names, in which * and ? match any.
    count : int
        Matrices of the stack, each with its own seed; 1: no stack.
    """

    group: str
    family: str
    source: tuple[Any, ...]
    seed: int = 0
    dtype: str = "float64"
    maximize: bool = False
    only: tuple[str, ...] = ("*",)
    count: int = 1

    suffix: ClassVar[str] = ".npy"

    @property
    def name(self) -> str:
        return f"{self.group}-s{self.seed}"

    @property
    def base(self) -> str:
        """The same: each problem is an original."""
        return self.name

    def takes(self, contender: str) -> bool:
        """True if a contender is to be measured on it."""
        return any(fnmatch(contender, pattern) for pattern in self.only)

    def facts(self, values: np.ndarray) -> dict[str, Any]:
        """What is kept of the problem in addition to its results."""
        return {
            "family": self.family,
            "group": self.group,
            "seed": self.seed,
            "rows": values.shape[-1],
            "entries": values.shape[-1] ** 2,
            "dtype": self.dtype,
        }

    def original(self) -> np.ndarray:
        """The costs, generated."""
        family, *parameters = self.source
        if family == "moving_points":
            values = _between_frames(*parameters, seed=self.seed)
        elif self.count > 1:
            seeds = range(self.seed * self.count, (self.seed + 1) * self.count)
            values = np.stack([costs.make(family, *parameters, seed=seed) for seed in seeds])
        else:
            values = costs.make(family, *parameters, seed=self.seed)
        return values.astype(self.dtype, copy=False)

    def of(self, original: np.ndarray) -> np.ndarray:
        """The costs, from their original: the same."""
        return original

    @staticmethod
    def save(values: np.ndarray, file: Path) -> None:
        np.save(file, values)

    @staticmethod
    def load(file: Path) -> Path:
        """The file itself: peers read it too."""
        return file


@dataclass(frozen=True)
class WideInstance(CostInstance):
    """A problem with more columns than rows."""

    def facts(self, values: np.ndarray) -> dict[str, Any]:
        nrows, ncols = values.shape[-2:]
        return super().facts(values) | {"rows": nrows, "entries": nrows * ncols}


def uniform(n: int, factor: float, seed: int = 0, only: tuple[str, ...] = ("*",)) -> CostInstance:
    """Integers drawn uniformly from [0, factor · n]."""
    family = f"uniform x{factor:g}"
    return CostInstance(
        f"uniform-{n}-x{factor:g}",
        family,
        ("uniform_integer", n, None, factor),
        seed,
        "int32",
        only=only,
    )


def geom(n: int, seed: int = 0, only: tuple[str, ...] = ("*",)) -> CostInstance:
    """Distances among points of a square, to be maximised."""
    return CostInstance(f"geom-{n}", "geom", ("geom", n), seed, maximize=True, only=only)


def wide(family: str, shape: tuple[int, int], dtype: str, only: tuple[str, ...]) -> WideInstance:
    """Costs of a family with more columns than rows."""
    name = "{}-{}x{}".format(family, *shape)
    return WideInstance(name, f"{family} wide", (family, *shape), dtype=dtype, only=only)


def moving(n: int, sets: int, box: str = "open", only: tuple[str, ...] = ("*",)) -> CostInstance:
    """Distances between two frames of moving points in space, as many pairs of frames as `sets`."""
    family = "moving" if box == "open" else f"moving {box}"
    name = f"{family.replace(' ', '-')}-{n}"
    return CostInstance(name, family, ("moving_points", n, sets, box), only=only)


def _between_frames(n: int, sets: int, box: str, *, seed: int) -> np.ndarray:
    seeds = range(seed * sets, (seed + 1) * sets)
    frames = (moving_points(n, 2, PERSISTENCE, box=box, seed=each) for each in seeds)
    return np.stack([distances(*pair) for pair in frames])


class Matrices:
    """A problem's matrices on the host and, if needed, the device.

    Attributes
    ----------
    file : path
        Where they are kept.
    maximize : bool
    facts : dict
    """

    def __init__(self, instance: CostInstance, file: Path, device: str) -> None:
        self.file, self.maximize = file, instance.maximize
        values = np.load(file)
        self.facts = instance.facts(values)
        self._on_host = self._on_device = stack(values)
        if device == "cuda":
            import cupy

            self._on_device = [cupy.asarray(matrix) for matrix in self._on_host]

    def on(self, backend: str) -> list[Any]:
        """The matrices where `backend` wants them."""
        return self._on_device if backend == "cuda" else self._on_host


problem = Matrices


def stack(values: np.ndarray) -> list[np.ndarray]:
    """The matrices of a file."""
    return [values] if values.ndim == 2 else list(values)
