"""The graphs a suite runs on: generated or real, original or with rows and columns permuted.

Making a large graph takes longer than matching it, so each is kept as a file in a folder. Several
processes make those that are missing there, before any clock runs.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz

import graphs
from gpumatch import io

RCP = "_RCP"


@dataclass(frozen=True)
class Instance:
    """One graph of a suite.

    Attributes
    ----------
    base : str
        The original graph's name.
    family : str
        What it shares with graphs of other sizes.
    source : tuple or path
        What `graphs.make` takes, or a file that `gpumatch.io.read` reads.
    permuted : bool
        Whether rows and columns are permuted at random.
    """

    base: str
    family: str
    source: tuple[Any, ...] | Path
    permuted: bool = False

    suffix: ClassVar[str] = ".npz"

    @property
    def name(self) -> str:
        return self.base + RCP if self.permuted else self.base

    def takes(self, contender: str) -> bool:
        """True if a contender is to be measured on it."""
        return True

    def facts(self, matrix: csr_array) -> dict[str, Any]:
        """What is kept of the graph in addition to its results."""
        rows, cols = matrix.shape
        return {
            "family": self.family,
            "base": self.base,
            "permuted": self.permuted,
            "rows": rows,
            "cols": cols,
            "entries": matrix.nnz,
        }

    def make(self) -> csr_array:
        """The graph, generated or read."""
        return self.of(self.original())

    def original(self) -> csr_array:
        """The graph before any permutation, generated or read."""
        return io.read(self.source) if isinstance(self.source, Path) else graphs.make(*self.source)

    def of(self, original: csr_array) -> csr_array:
        """The graph, from its original."""
        return graphs.rcp(original) if self.permuted else original

    @staticmethod
    def save(matrix: csr_array, file: Path) -> None:
        save_npz(file, matrix, compressed=False)

    @staticmethod
    def load(file: Path) -> csr_array:
        """The graph in a file, as a suite's problem takes it."""
        return load_npz(file)


class KeptSeed:
    """An instance that is too large to be kept: its file has the seed by which it is drawn."""

    seed: ClassVar[int]

    def original(self) -> np.ndarray:
        """The seed."""
        return np.array([self.seed])

    @staticmethod
    def of(original: np.ndarray) -> np.ndarray:
        """The seed, which is its own original."""
        return original

    @staticmethod
    def save(seed: np.ndarray, file: Path) -> None:
        np.save(file, seed)

    @staticmethod
    def load(file: Path) -> np.ndarray:
        """The seed in a file."""
        return np.load(file)


def generated(base: str, family: str, *parameters: float) -> Instance:
    """A graph of a family of `graphs`."""
    return Instance(base, family, (family, *parameters))


def real(folder: str | os.PathLike[str] | None) -> list[Instance]:
    """The matrices in a folder or its subfolder `matrices`; none when there is no folder."""
    if not folder:
        return []
    files = {path for where in (Path(folder), Path(folder, "matrices")) for path in where.glob("*")}
    matrices = sorted(path for path in files if path.name.endswith((".mtx", ".mtx.gz")))
    names = [path.name.split(".mtx")[0] for path in matrices]
    return [Instance(name, name, path) for name, path in zip(names, matrices)]


def with_permutations(originals: Iterable[Instance]) -> list[Instance]:
    """Each graph, followed by the same graph permuted."""
    return [
        Instance(graph.base, graph.family + end, graph.source, permuted)
        for graph in originals
        for end, permuted in (("", False), (RCP, True))
    ]


def small(quick: bool) -> list[Instance]:
    """Two graphs to warm up on: a sparse and irregular one, and a mesh."""
    k = 6 if quick else 14
    return [
        generated(f"warm-uniform-{k}", "uniform", 2**k, 3),
        generated(f"warm-grid-{k}", "grid", 2 ** (k // 2), 0.65),
    ]


class Folder:
    """Graphs kept as files, by name.

    Parameters
    ----------
    path : path
        Made when a graph is first kept in it.
    processes : int
        How many graphs are made at a time.
    """

    def __init__(self, path: str | Path, processes: int) -> None:
        self._path = Path(path)
        self.processes = processes

    def load(self, instance: Instance) -> Any:
        """The graph, made if it is not there."""
        file = self._file(instance)
        if not file.exists():
            _make_files([(instance, file)])
        return instance.load(file)

    def prepare(self, instances: Sequence[Instance]) -> None:
        """Make those of the graphs that are not there, each original once."""
        missing: dict[str, list[tuple[Instance, Path]]] = {}
        for instance in instances:
            if not self._file(instance).exists():
                missing.setdefault(instance.base, []).append((instance, self._file(instance)))
        if min(self.processes, len(missing)) < 2:
            for wanted in missing.values():
                _make_files(wanted)
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.processes, mp_context=context) as pool:
            list(pool.map(_make_files, missing.values()))

    def _file(self, instance: Instance) -> Path:
        return self._path / f"{instance.name}{instance.suffix}"


def _make_files(wanted: list[tuple[Instance, Path]]) -> None:
    """Make graphs of one original and keep them; if this is cut off, no broken file is left."""
    original = wanted[0][0].original()
    for instance, file in wanted:
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_name(f".{os.getpid()}-{file.name}")
        instance.save(instance.of(original), scratch)
        os.replace(scratch, file)
