"""Seeded generators of sparse bipartite graphs, for tests, benchmarks and documentation.

Every generator returns a boolean `scipy.sparse.csr_array`, rows by columns, canonical (sorted,
no duplicates), with int32 indices.  Undirected graphs come as their adjacency matrix.  The same
parameters and seed give the same graph on every machine.

>>> import graphs
>>> graphs.make("grid", 4, 1.0).nnz
48
>>> graphs.matching_size("chain", 1000)
1000

On the command line: ``python -m graphs --list``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scipy.sparse import csr_array

from graphs import permute
from graphs.geometric import rgg
from graphs.grids import grid
from graphs.hard import fewg, hexa, hilo, manyg, rope, rope_layers, zipf
from graphs.kronecker import kron
from graphs.meshes import bubbles, trace
from graphs.permute import rcp
from graphs.roads import road
from graphs.simple import chain, complete, dead_end_ladder, empty, ladder, stars
from graphs.triangulations import delaunay
from graphs.uniform_random import lopsided, uniform

__all__ = [
    "FAMILIES",
    "Family",
    "bubbles",
    "chain",
    "complete",
    "dead_end_ladder",
    "delaunay",
    "empty",
    "fewg",
    "grid",
    "hexa",
    "hilo",
    "kron",
    "ladder",
    "lopsided",
    "make",
    "manyg",
    "matching_size",
    "rcp",
    "rgg",
    "road",
    "rope",
    "stars",
    "trace",
    "uniform",
    "zipf",
]


@dataclass(frozen=True)
class Family:
    """A named family of graphs.

    Attributes
    ----------
    generate : callable
        The generator; its docstring tells what its parameters mean and where it comes from.
    size : callable or None
        The maximum matching's size from the same parameters, if the construction fixes it.
    """

    generate: Callable[..., csr_array]
    size: Callable[..., int] | None = None

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters that choose the graph, by name, without the seed."""
        found = inspect.signature(self.generate, eval_str=True).parameters
        return {name: p for name, p in found.items() if p.kind is not p.KEYWORD_ONLY}

    @property
    def seeded(self) -> bool:
        """True if the family is random."""
        return "seed" in inspect.signature(self.generate).parameters

    @property
    def summary(self) -> str:
        """One line on what the family is."""
        return (self.generate.__doc__ or "").partition("\n")[0]


FAMILIES: dict[str, Family] = {
    "delaunay": Family(delaunay),
    "rgg": Family(rgg),
    "kron": Family(kron),
    "grid": Family(grid),
    "trace": Family(trace),
    "bubbles": Family(bubbles),
    "road": Family(road),
    "uniform": Family(uniform),
    "lopsided": Family(lopsided, lambda nrows, ncols, degree=3: min(nrows, ncols)),
    "fewg": Family(fewg),
    "manyg": Family(manyg),
    "hilo": Family(hilo, lambda k, pieces=1, degree=10: k * pieces),
    "rope": Family(rope, lambda n, degree=6.0: math.prod(rope_layers(n, degree))),
    "hexa": Family(hexa),
    "zipf": Family(zipf),
    "chain": Family(chain, lambda n: n),
    "ladder": Family(ladder, lambda levels, width=2: levels * width + 1),
    "dead_end_ladder": Family(dead_end_ladder, lambda levels: 5 * levels + 1),
    "stars": Family(stars, lambda count, leaves: count if leaves else 0),
    "complete": Family(
        complete, lambda nrows, ncols=None: nrows if ncols is None else min(nrows, ncols)
    ),
    "empty": Family(empty, lambda nrows, ncols=None: 0),
}


def make(name: str, *args: Any, seed: int = 0, rcp: bool = False, **kwargs: Any) -> csr_array:
    """Return a graph of the named family.

    Parameters
    ----------
    name : str
        A key of `FAMILIES`.
    *args, **kwargs
        The family's parameters.
    seed : int
        Seed of the graph and of its permutation.
    rcp : bool
        Whether to permute rows and columns at random.
    """
    family = _family(name)
    if family.seeded:
        kwargs["seed"] = seed
    graph = family.generate(*args, **kwargs)
    return permute.rcp(graph, seed) if rcp else graph


def matching_size(name: str, *args: Any, **kwargs: Any) -> int | None:
    """Return the size of a maximum matching, or None if the construction does not fix it."""
    size = _family(name).size
    return None if size is None else size(*args, **kwargs)


def _family(name: str) -> Family:
    if name not in FAMILIES:
        raise ValueError(f"unknown family {name!r}; known: {', '.join(FAMILIES)}")
    return FAMILIES[name]
