"""Seeded generators of matrices with values, as solvers of sparse linear systems meet them.

Each family takes the number of rows, and returns a square canonical `scipy.sparse.csr_array` of
float64 with int32 indices. All are regular. Their values go over many orders of magnitude, and
their diagonals have zeros or small entries, so that elimination fails that takes its pivots from
there. The same parameters and seed give the same matrix on every machine, powers and exponentials
up to their last digit.

>>> from graphs import matrices
>>> matrices.make("recycle", 1000).shape
(1000, 1000)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from graphs.csr import INDEX

__all__ = [
    "FAMILIES",
    "circuit",
    "circuit_entries",
    "kkt",
    "kkt_entries",
    "make",
    "matrix_of",
    "power_flow",
    "recycle",
]

_RESISTANCE = 1e-14  # inside a voltage source

Entries = tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]  # rows, columns, values


def circuit(n: int, sources: float = 0.05, decades: float = 8.0, *, seed: int = 0) -> csr_array:
    """Return a circuit's modified nodal analysis, with the voltage sources' equations first.

    `graphs.costs.circuit` tells what the circuit is like. In addition, every node leaks to the
    ground by the least conductance, and a source has an internal resistance, which is hardly any.
    That is the only entry on its diagonal.

    Parameters
    ----------
    n : int
        Nodes and sources together.
    sources : float
        Share of sources.
    decades : float
        Orders of magnitude of the conductances.
    """
    rows, cols, values = circuit_entries(n, sources, decades, seed)
    nodes = n - int(sources * n)
    between = [-values[0], -values[1], *values[2:]]
    everywhere = np.arange(n)
    leak = np.where(everywhere < nodes, 10.0**-decades, -_RESISTANCE)
    matrix = matrix_of([*rows, everywhere], [*cols, everywhere], [*between, leak], n)
    return _with_last_first(matrix, n - nodes)


def kkt(n: int, constraints: float = 0.4, decades: float = 10.0, *, seed: int = 0) -> csr_array:
    """Return an interior point method's matrix, with the constraints first: [[0, A], [Aᵀ, H]].

    `graphs.costs.kkt` tells what H and A are like.

    Parameters
    ----------
    n : int
        Variables and constraints together.
    constraints : float
        Share of constraints; below one half.
    decades : float
        Orders of magnitude of H.
    """
    matrix = matrix_of(*kkt_entries(n, constraints, decades, seed), n)
    return _with_last_first(matrix, int(constraints * n))


def power_flow(
    n: int, generators: float = 0.1, decades: float = 16.0, *, seed: int = 0
) -> csr_array:
    """Return the Jacobian of a power flow: the change of powers with voltages and angles.

    Buses form a ring, with some lines across. A line's susceptance is about 1, and its conductance
    less by many orders of magnitude. So active power hangs on angles, and reactive power on
    voltages. Equations are ordered by bus, active power first, and unknowns with the voltage first,
    so large entries lie beside the diagonal. A generator holds its voltage: it has an equation and
    an unknown less.

    Parameters
    ----------
    n : int
        Equations.
    generators : float
        Share of the buses that are generators.
    decades : float
        Orders of magnitude of the conductances.
    """
    rng = np.random.default_rng(seed)
    buses = int(np.ceil(n / (2 - generators))) + 1
    load = np.ones(buses, bool)
    load[rng.permutation(buses)[: 2 * buses - n]] = False
    ends = np.concatenate([np.arange(buses), rng.integers(0, buses, buses // 4)])
    others = (ends + np.append(np.ones(buses, int), rng.integers(2, 9, buses // 4))) % buses
    susceptance = rng.uniform(0.5, 2, ends.size)
    conductance = 10.0 ** (-decades * rng.random(ends.size))
    power = np.cumsum(1 + load) - (1 + load)  # the equation of a bus's active power
    voltage, angle = np.where(load, power, -1), power + load
    reactive = np.where(load, power + 1, -1)
    rows, cols, values = [], [], []
    for one, other in ((ends, others), (others, ends)):
        for equation, unknown, change in (
            (power, angle, susceptance),
            (power, voltage, conductance),
            (reactive, voltage, susceptance),
            (reactive, angle, conductance),
        ):
            for place, part in ((one, 1.1 * change), (other, -change)):
                rows.append(equation[one])
                cols.append(unknown[place])
                values.append(part)
    kept = [(row >= 0) & (col >= 0) for row, col in zip(rows, cols)]
    rows, cols, values = (
        [part[keep] for part, keep in zip(lists, kept)] for lists in (rows, cols, values)
    )
    return matrix_of(rows, cols, values, n)


def recycle(n: int, unit: int = 8, decades: float = 12.0, *, seed: int = 0) -> csr_array:
    """Return a chemical process: units one after the other, and a recycle from last to first.

    An equation holds about half of the variables of its unit, and one of the unit before. On one
    of them it hangs much more than on the others; these are off the diagonal. Each equation and
    each variable has a unit of measurement of its own.

    Parameters
    ----------
    n : int
        Equations.
    unit : int
        Equations of a unit.
    decades : float
        Orders of magnitude of the units of measurement, and of how variables matter.
    """
    rng = np.random.default_rng(seed)
    each = unit // 2 + 2
    row = np.repeat(np.arange(n), each)
    first = row // unit * unit
    size = np.minimum(unit, n - first)
    col = first + rng.integers(0, size)
    value = 10.0 ** (-decades * rng.random(row.size)) * rng.choice([-1, 1], row.size)
    kind = np.arange(row.size) % each
    turn = rng.integers(1, unit, n)[first]  # the same for the whole unit
    col = np.where(kind == 0, first + (row - first + turn) % size, col)
    value[kind == 0] = 2 * each
    col = np.where(kind == 1, (col - unit) % n, col)
    scales = 10.0 ** (decades * (rng.random((2, n)) - 0.5))
    matrix = matrix_of([row], [col], [value], n)
    data = matrix.data * np.repeat(scales[0], np.diff(matrix.indptr)) * scales[1][matrix.indices]
    return csr_array((data, matrix.indices, matrix.indptr), shape=(n, n))


# -- what generators of costs use, too -------------------------------------------------------------


def circuit_entries(n: int, sources: float, decades: float, seed: int) -> Entries:
    """The conductances between nodes, twice; those of nodes, twice; the ones of sources, twice."""
    rng = np.random.default_rng(seed)
    count = int(sources * n)
    nodes = n - count
    ends = np.concatenate([np.arange(nodes), rng.integers(0, nodes, nodes // 2)])
    steps = np.rint(rng.pareto(1.2, ends.size) + 1).clip(1, nodes).astype(np.int64)
    others = (ends + steps) % nodes
    conductance = 10.0 ** (-decades * rng.random(ends.size))
    at = rng.permutation(nodes)[:count]
    source = nodes + np.arange(count)
    ones = np.ones(count)
    return (
        [ends, others, ends, others, source, at],
        [others, ends, ends, others, at, source],
        [conductance, conductance, conductance, conductance, ones, ones],
    )


def kkt_entries(n: int, constraints: float, decades: float, seed: int) -> Entries:
    """Those of H, of A and of its transpose; the variables come first."""
    rng = np.random.default_rng(seed)
    count = int(constraints * n)
    variables = n - count
    own = np.arange(variables)
    row = np.repeat(np.arange(count), 5)
    place = (row * (variables / max(count, 1))).astype(np.int64) + rng.integers(-8, 9, row.size)
    place[::5] = np.arange(count)  # so that every constraint has a variable of its own
    place %= max(variables, 1)
    barrier = 10.0 ** (decades * (rng.random(variables) - 0.5))
    value = rng.lognormal(0.0, 2.0, row.size)
    return [own, variables + row, place], [own, place, variables + row], [barrier, value, value]


def matrix_of(
    rows: list[np.ndarray], cols: list[np.ndarray], values: list[np.ndarray], n: int
) -> csr_array:
    """The matrix of these entries, repeated ones added."""
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))
    matrix = coo_array(entries, shape=(n, n)).tocsr()
    matrix.sum_duplicates()
    indices, indptr = matrix.indices.astype(INDEX), matrix.indptr.astype(INDEX)
    return csr_array((matrix.data, indices, indptr), shape=(n, n))


def _with_last_first(matrix: csr_array, count: int) -> csr_array:
    """The matrix with so many of its last rows and columns before the others."""
    order = np.roll(np.arange(matrix.shape[0]), count)
    moved = csr_array(matrix[order][:, order])
    moved.sort_indices()
    return moved


FAMILIES: dict[str, Callable[..., csr_array]] = {
    "circuit": circuit,
    "kkt": kkt,
    "power_flow": power_flow,
    "recycle": recycle,
}


def make(name: str, *args: Any, seed: int = 0, **kwargs: Any) -> csr_array:
    """Return a matrix of the named family.

    Raises
    ------
    ValueError
        If there is no such family.
    """
    if name not in FAMILIES:
        raise ValueError(f"no family {name!r}; there are {', '.join(FAMILIES)}")
    return FAMILIES[name](*args, seed=seed, **kwargs)
