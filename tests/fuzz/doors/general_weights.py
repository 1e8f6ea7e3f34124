"""`general.maximum_weight_matching` of graphs and weights of all kinds, by each algorithm."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import gpumatch as gm
from tests import general_graphs
from tests.fuzz.judgement import require
from tests.fuzz.trials import Trial
from tests.general_weights import NONE, best_by_subsets

BY_SUBSETS = 11
"""Vertices up to which the best total is found by subsets."""
KINDS = "int8", "uint8", "int64", "huge", "ties", "float32", "float64", "tiny", "vast", "mixed"
INEXACT = "vast", "mixed"
"""Weights of so many magnitudes that duals may have too few bits."""


def maximum_weight_matching(trial: Trial) -> None:
    n = trial.scaled(trial.integer(2, BY_SUBSETS) if trial.chance(0.6) else trial.integer(12, 300))
    pairs = general_graphs.random_graph(max(n, 2), trial.rng)
    edges = np.unique(np.sort(pairs, axis=1), axis=0)
    kind = trial.pick(KINDS)
    weights = _weights(trial, kind, len(edges))
    trial.sized(len(edges))
    options: dict[str, Any] = {
        "cardinality": trial.pick(("any", "maximum", "perfect")),
        "maximize": trial.chance(0.5),
        "threads": trial.integer(1, 3),
    }
    if trial.chance(0.2):
        options |= {"algorithm": "suitor", "cardinality": "any"}
    last = trial.integer(1, 9) if trial.chance(0.1) else None
    G = _given(trial, edges, weights)
    trial.note(edges=edges, weights=weights, kind=kind, last_call=last, **options)
    if last is not None:
        calls = itertools.count(1)
        options["callback"] = lambda _: next(calls) >= last
    sizes = _best_of_sizes(edges, weights, max(n, 2), options["maximize"])
    slack = 1e-12 * abs(weights).max() if sizes and weights.dtype.kind == "f" else 0
    try:
        m = gm.general.maximum_weight_matching(G, **options)
    except gm.general.ImperfectError:
        require(options["cardinality"] == "perfect", "imperfect, but not asked for")
        require(sizes is None or 2 * (len(sizes) - 1) < _order(edges), "there is a perfect one")
        return
    if options.get("algorithm") == "suitor":
        gm.verify(G, m)
        bound = m.bound if m.maximize else -m.bound
        require(sizes is None or bound >= max(sizes) - slack, "too low a bound")
        return
    gm.verify(G, m, optimal=m.proven)
    require(m.proven or last or kind in INEXACT, "a run to the end is not proven")
    if m.proven and sizes is not None:
        best = max(sizes) if options["cardinality"] == "any" else sizes[-1]
        best = best if m.maximize else -best
        require(abs(m.objective - best) <= slack, f"the total is {m.objective}, not {best}")


def _order(edges: np.ndarray) -> int:
    return int(edges.max()) + 1 if edges.size else 0


def _weights(trial: Trial, kind: str, count: int) -> np.ndarray:
    rng = trial.rng
    if kind == "int8":
        return rng.integers(-128, 128, count).astype(np.int8)
    if kind == "uint8":
        return rng.integers(0, 256, count).astype(np.uint8)
    if kind == "int64":
        return rng.integers(-1000, 1000, count)
    if kind == "huge":
        return rng.integers(-(2**44), 2**44, count)
    if kind == "ties":
        return rng.integers(0, 3, count).astype(float)
    if kind == "tiny":
        return rng.integers(-9, 9, count) * 2.0**-1060
    if kind == "vast":
        return rng.normal(size=count) * 1e300
    if kind == "mixed":
        return rng.choice([-1, 1], count) * 10.0 ** rng.uniform(-18, 18, count)
    return rng.normal(size=count).astype(kind)


def _given(trial: Trial, edges: np.ndarray, weights: np.ndarray) -> Any:
    """An edge list, CSR of both triangles, or a networkx graph; on a device as CSR."""
    form = trial.pick(("edges", "csr", "networkx"))
    if form == "networkx" and edges.size and trial.backend == "cpu":
        import networkx as nx

        G = nx.Graph()
        G.add_nodes_from(range(_order(edges)))
        G.add_weighted_edges_from(zip(*edges.T.tolist(), weights.tolist()))
        return G
    if form == "edges" and trial.backend == "cpu":
        return edges, weights
    n = _order(edges)
    tails, heads = np.concatenate([edges, edges[:, ::-1]]).T
    order = np.lexsort((heads, tails))
    indptr = np.searchsorted(tails[order], np.arange(n + 1)).astype(np.int32)
    arrays = indptr, heads[order].astype(np.int32), np.concatenate([weights, weights])[order]
    if trial.backend == "cuda":
        import cupy

        from gpumatch.cuda.general import weights as on_device

        on_device.FEWEST = 0
        arrays = tuple(map(cupy.asarray, arrays))
    return (*arrays, (n, n))


def _best_of_sizes(
    edges: np.ndarray, weights: np.ndarray, n: int, maximize: bool
) -> list[Any] | None:
    """The best gains with 0, 1, ... edges by subsets; None for large graphs and rounded sums."""
    if n > BY_SUBSETS or not edges.size:
        return None
    unit = 1.0
    whole = weights.astype(np.int64)
    if weights.dtype.kind == "f":
        unit = np.ldexp(1.0, int(np.frexp(abs(weights).max())[1]) - 50) or 5e-324
        whole = np.rint(weights / unit).astype(np.int64)
    best = best_by_subsets(edges, whole if maximize else -whole, n)
    return [total * unit if unit != 1 else total for total in best if total > NONE // 2]
