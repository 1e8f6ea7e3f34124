"""What the generators of graphs, costs and moving points give: two seeds at two sizes of each."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import graphs
from graphs import costs, moving_points
from tests.recorded.record import Fields, Group, hash_of

GRAPHS: dict[str, list[tuple[Any, ...]]] = {
    "bubbles": [(5, 4), (12, 8)],
    "chain": [(7,), (50,)],
    "complete": [(4,), (6, 9)],
    "dead_end_ladder": [(2,), (9,)],
    "delaunay": [(4,), (8,)],
    "empty": [(3,), (4, 7)],
    "fewg": [(64, 4), (256, 5, 16)],
    "grid": [(6,), (20, 0.65)],
    "hexa": [(24,), (300, 5)],
    "hilo": [(8, 2, 3), (30, 1, 5)],
    "kron": [(4, 4), (8,)],
    "ladder": [(3,), (12, 5)],
    "lopsided": [(10, 30), (200, 60, 4)],
    "manyg": [(64, 4, 16), (256, 5, 64)],
    "rgg": [(5,), (9,)],
    "road": [(4,), (9,)],
    "rope": [(24,), (150, 4)],
    "stars": [(3, 5), (9, 4)],
    "trace": [(5,), (14, 6)],
    "uniform": [(20, 2), (300, 3.5, 80)],
    "zipf": [(20,), (300,)],
}
DENSE: dict[str, list[dict[str, Any]]] = {
    "constant": [{"nrows": 3}, {"nrows": 4, "ncols": 6, "cost": 2}],
    "geom": [{"n": 5}, {"n": 30, "side": 7}],
    "geom2": [{"nrows": 5}, {"nrows": 20, "ncols": 30, "side": 7}],
    "low_rank": [{"nrows": 5}, {"nrows": 20, "ncols": 30, "rank": 2}],
    "machol_wien": [{"nrows": 5}, {"nrows": 20, "ncols": 30}],
    "points": [{"nrows": 5}, {"nrows": 20, "ncols": 30, "dim": 3}],
    "two_cost": [{"nrows": 5}, {"nrows": 20, "ncols": 30, "p": 0.2}],
    "uniform_float": [{"nrows": 5}, {"nrows": 20, "ncols": 30}],
    "uniform_integer": [{"nrows": 5}, {"nrows": 20, "ncols": 30, "factor": 0.3}],
}
SPARSE: dict[str, list[dict[str, Any]]] = {
    "circuit": [{"n": 40}, {"n": 200, "sources": 0.2, "decades": 5}],
    "goldberg_kennedy": [
        {"n": 40},
        {"n": 50, "degree": 4, "kind": "low_cost"},
        {"n": 50, "degree": 4, "kind": "two_cost"},
        {"n": 50, "degree": 4, "kind": "fixed_cost"},
        {"n": 50, "degree": 4, "kind": "geometric"},
    ],
    "kkt": [{"n": 40}, {"n": 200, "constraints": 0.2, "decades": 5}],
    "linkage": [{"blocks": 3}, {"blocks": 20, "most": 8}],
    "mesh": [{"k": 4}, {"k": 8, "high": 9}],
    "nearest": [{"n": 30}, {"n": 40, "m": 70, "k": 4, "dimension": 3}],
    "power_law": [{"k": 4}, {"k": 8, "edge_factor": 3, "high": 9}],
    "sparse_uniform": [{"nrows": 20}, {"nrows": 50, "ncols": 90, "degree": 3, "high": 9}],
    "spread": [{"n": 20}, {"n": 90, "degree": 2, "decades": 5}],
}
SEEDS = (1, 2)


def _of_graphs() -> dict[str, Fields]:
    found = {}
    for name, sizes in GRAPHS.items():
        for parameters in sizes:
            for seed in SEEDS if graphs.FAMILIES[name].seeded else SEEDS[:1]:
                graph = graphs.make(name, *parameters, seed=seed)
                found[_named(name, parameters, seed)] = {
                    "edges": graph.nnz,
                    "hash": hash_of(graph.shape, graph.indptr, graph.indices),
                    "permuted": _of_sparse(graphs.rcp(graph, seed))["hash"],
                }
    return found


def _of_costs(families: dict[str, list[dict[str, Any]]]) -> dict[str, Fields]:
    found = {}
    for name, sizes in families.items():
        for parameters in sizes:
            for seed in SEEDS:
                matrix = costs.make(name, **parameters, seed=seed)
                is_dense = families is DENSE
                fields = {"hash": hash_of(matrix)} if is_dense else _of_sparse(matrix)
                found[_named(name, parameters.values(), seed)] = fields
    return found


def _of_sparse(matrix: Any) -> Fields:
    """Values to 9 places, because machines round logarithms, and so differences, differently."""
    values = matrix.data.astype(np.float64).round(9)
    parts = matrix.shape, matrix.indptr, matrix.indices, values
    return {"entries": matrix.nnz, "hash": hash_of(*parts)}


def _of_points() -> dict[str, Fields]:
    found = {}
    for box in ("open", "closed"):
        for parameters in ((6, 4, 0.8, 0.3), (40, 3, 0.2, 0.1)):
            for seed in SEEDS:
                frames = moving_points.moving_points(*parameters, box=box, seed=seed)
                found[_named(box, parameters, seed)] = {
                    "names": hash_of(*(frame.names for frame in frames)),
                    "points": hash_of(*(frame.points for frame in frames)),
                }
    return found


def _named(name: str, parameters: Any, seed: int) -> str:
    return f"{name}({', '.join(map(str, parameters))}), seed {seed}"


GROUPS: dict[str, Group] = {
    "graphs": _of_graphs,
    "dense costs": functools.partial(_of_costs, DENSE),
    "sparse costs": functools.partial(_of_costs, SPARSE),
    "moving points": _of_points,
}
