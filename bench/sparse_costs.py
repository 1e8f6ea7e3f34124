"""Sparse matrices and the sparse costs that suites run on, kept as .npz."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz

import gpumatch as gm
from gpumatch.problems.request import Cardinality
from graphs import costs

OURS, ON_GPU, SPRAL = "engine", "engine on the GPU", "spral"


class Npz:
    """A matrix of a suite, kept as .npz."""

    name: str

    @property
    def base(self) -> str:
        """The name: each matrix is an original."""
        return self.name

    def of(self, original: csr_array) -> csr_array:
        """The matrix, from its original: that itself."""
        return original

    @staticmethod
    def save(matrix: csr_array, file: Path) -> None:
        save_npz(file, matrix)

    @staticmethod
    def load(file: Path) -> csr_array:
        return csr_array(load_npz(file))


@dataclass(frozen=True)
class SparseInstance(Npz):
    """One problem of the suite, kept as .npz.

    Attributes
    ----------
    name : str
    family : str
        What it shares with problems of other sizes.
    source : tuple
        What `graphs.costs.make` takes; or ``("file", path)`` for minus the logarithms of a matrix.
    cardinality : str
        As in `gm.assign`; rivals that want full assignments are not run on others.
    seed : int
    """

    name: str
    family: str
    source: tuple[Any, ...]
    cardinality: Cardinality = "full"
    seed: int = 1
    suits_spral: bool = True  # which may take many minutes if there is no full assignment

    suffix: ClassVar[str] = ".costs.npz"  # other suites keep graphs of the same names

    def takes(self, contender: str) -> bool:
        """True if a contender is to be measured on it."""
        if contender == SPRAL:
            return self.suits_spral
        return self.cardinality == "full" or contender in (OURS, ON_GPU)

    def facts(self, matrix: csr_array) -> dict[str, Any]:
        """What is kept of the problem in addition to its results."""
        nrows, ncols = matrix.shape
        shape = {"rows": nrows, "cols": ncols, "entries": matrix.nnz}
        more = {"dtype": str(matrix.dtype), "cardinality": self.cardinality, "seed": self.seed}
        return {"family": self.family, **shape, **more}

    def original(self) -> csr_array:
        """The costs, generated or read."""
        kind, *parameters = self.source
        if kind == "file":
            return logarithms(gm.io.read(parameters[0]))
        return costs.make(kind, *parameters, seed=self.seed)


def logarithms(matrix: Any) -> csr_array:
    """Minus the logarithms of the entries' sizes, without zeros, columns scaled to 1."""
    kept = csr_array(matrix, dtype=float, copy=True)
    kept.sum_duplicates()
    kept.eliminate_zeros()
    logs = np.log(abs(kept.data))
    greatest = np.full(kept.shape[1], -np.inf)
    np.maximum.at(greatest, kept.indices, logs)
    kept.data = greatest[kept.indices] - logs
    return kept


class SparseProblem:
    """A problem's costs, as contenders take them."""

    def __init__(self, instance: SparseInstance, matrix: csr_array, device: str) -> None:
        self.matrix, self.cardinality = matrix, instance.cardinality
        self.facts = instance.facts(matrix)

    @property
    def is_integer(self) -> bool:
        return self.matrix.dtype.kind == "i"

    @cached_property
    def on_gpu(self) -> tuple[Any, ...]:
        """The costs on a GPU."""
        import cupy

        arrays = self.matrix.indptr, self.matrix.indices, self.matrix.data
        return (*map(cupy.asarray, arrays), self.matrix.shape)

    @cached_property
    def owners(self) -> np.ndarray:
        """The row of each entry."""
        return np.repeat(np.arange(self.matrix.shape[0]), np.diff(self.matrix.indptr))
