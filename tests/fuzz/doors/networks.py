"""networkx graphs: weights of every kind of number, among them such as no float holds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

import gpumatch as gm
from tests.fuzz.judgement import require
from tests.fuzz.trials import Trial


def networks(trial: Trial) -> None:
    import networkx as nx

    nrows, ncols = (trial.scaled(trial.integer(1, 12)) for _ in range(2))
    trial.sized(nrows * ncols)
    kind = trial.pick(("int", "float", "large", "fraction", "numpy", "missing"))
    edges = [
        (f"r{i}", f"c{j}", _weight(trial, kind))
        for i in range(nrows) for j in range(ncols)
        if i == j or trial.chance(0.7)
    ]  # fmt: skip
    G = nx.Graph()
    G.add_nodes_from((f"r{i}" for i in range(nrows)), bipartite=0)
    G.add_nodes_from((f"c{j}" for j in range(ncols)), bipartite=1)
    for row, col, weight in edges:
        G.add_edge(row, col, **({} if weight is None else {"weight": weight}))
    maximize = trial.chance(0.5)
    trial.note(kind=kind, edges=edges, maximize=maximize)
    rows = [f"r{i}" for i in range(nrows)]
    try:
        result = gm.assign(G, row_nodes=rows, maximize=maximize, cardinality="maximum")
    except (ValueError, TypeError) as exc:
        require(kind in ("large", "fraction"), f"refused: {exc}")
        return
    costs = {(row, col): Fraction(1 if w is None else w) for row, col, w in edges}
    total = sum((costs[pair] for pair in result.edges()), Fraction(0))
    best = _optimum(costs, nrows, ncols, maximize)
    require(len(result.edges()) == min(nrows, ncols), "too few pairs")
    room = 0 if kind in ("int", "large", "numpy", "missing") else Fraction(1, 10**9)
    if result.proven:
        require(abs(total - best) <= room, f"called optimal: {total}, but {best} is possible")
    gm.verify(G, result)


def _weight(trial: Trial, kind: str) -> Any:
    small = trial.integer(-9, 9)
    if kind == "float":
        return small / 4
    if kind == "large":
        return 2 ** trial.pick((53, 58, 62, 63, 70)) + small
    if kind == "fraction":
        return Fraction(small, trial.integer(1, 7))
    if kind == "numpy":
        return np.int32(small)
    return None if kind == "missing" and trial.chance(0.5) else small


def _optimum(
    costs: dict[tuple[str, str], Fraction], nrows: int, ncols: int, maximize: bool
) -> Fraction:
    """By augmenting paths in fractions; forbidden pairs cost more than all others together."""
    sign = -1 if maximize else 1
    far = 4 * (nrows + ncols + 1) * (1 + max(map(abs, costs.values())))
    matrix = [
        [sign * costs[f"r{i}", f"c{j}"] if (f"r{i}", f"c{j}") in costs else far
         for j in range(ncols)] for i in range(nrows)
    ]  # fmt: skip
    if nrows > ncols:
        matrix = [list(line) for line in zip(*matrix)]
    mates = _cheapest(matrix)
    return sign * sum((matrix[row][col] for row, col in enumerate(mates)), Fraction(0))


def _cheapest(matrix: list[list[Any]]) -> list[int]:
    """The column of each row, by shortest augmenting paths over Bellman and Ford's distances."""
    ncols = len(matrix[0])
    owner: list[int] = [-1] * ncols
    for start in range(len(matrix)):
        distance: list[Any] = list(matrix[start])
        before = [-1] * ncols
        for _ in range(start + 1):
            for col in range(ncols):
                row = owner[col]
                if row < 0:
                    continue
                through = distance[col] - matrix[row][col]
                for other in range(ncols):
                    if through + matrix[row][other] < distance[other]:
                        distance[other], before[other] = through + matrix[row][other], col
        last = min((col for col in range(ncols) if owner[col] < 0), key=distance.__getitem__)
        while last >= 0:
            previous = before[last]
            owner[last] = start if previous < 0 else owner[previous]
            last = previous
    mates = [-1] * len(matrix)
    for col, row in enumerate(owner):
        if row >= 0:
            mates[row] = col
    return mates
