"""What runs in the tests of cpu/matching: algorithms and starts, and matchings to begin from."""

from __future__ import annotations

import functools

import numpy as np

from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching import (
    cheap,
    engine,
    forests,
    hk,
    hkdw,
    karp_sipser,
    level_search,
    lookahead_search,
    p_dbfs,
    p_hk,
    p_pfp,
    pfp,
)
from gpumatch.cpu.numba_tools import workers
from tests.cpu.matching.cases import FreeRun, unmatched

CLASSIC = {"hk": hk, "hkdw": hkdw, "pfp": pfp, "p-hk": p_hk, "p-pfp": p_pfp, "p-dbfs": p_dbfs}
ENGINE = {
    "engine by forests": engine.Tuning(most_read=0),
    "engine row by row": engine.Tuning(few_edges=10**9, readings=10**9, most_read=10**18),
    "engine row by row, then by forests": engine.Tuning(most_read=1),
}
"""Whether small graphs are left to the forests, searched from one row after the other, or both."""
NAMES = [*CLASSIC, *ENGINE]
IN_STEPS = [*CLASSIC, "engine by forests"]
"""Those that return to Python more than once on a small graph."""
BUDGET = 100
"""Edges after which `with_small_budget` lets searches return to Python."""
PARALLEL = ["p-hk", "p-pfp", "p-dbfs", "engine by forests"]
STARTS = {"none": None, "cheap": cheap, "karp-sipser": karp_sipser}


def extend(algorithm, graph, mates=None, control=None, threads=1, **how):
    """Extend the mates by an algorithm's module; whether it finished, and the mates."""
    mates = unmatched(graph) if mates is None else mates
    control = FreeRun() if control is None else control
    return algorithm.run(MatchingTask(graph, *mates, control, threads), **how), mates


def matcher(name):
    """`extend` by the algorithm of this name."""
    if name in CLASSIC:
        return functools.partial(extend, CLASSIC[name])
    return functools.partial(extend, engine, tuning=ENGINE[name])


def start(name, graph, seed=0):
    """The matching that a start makes."""
    mates = unmatched(graph)
    if STARTS[name] is not None:
        STARTS[name].run(MatchingTask(graph, *mates, FreeRun(), seed=seed))
    return mates


def with_small_budget(monkeypatch):
    """Let searches return to Python every few edges."""
    for module in level_search, lookahead_search, p_dbfs, forests:
        monkeypatch.setattr(module, "BUDGET", BUDGET)


def in_a_crowd(monkeypatch):
    """Let small graphs be shared out to all threads, level by level, a few edges at a time."""
    monkeypatch.setattr(workers, "_EDGES_EACH", 1)
    for module in level_search, forests:
        monkeypatch.setattr(module, "_WIDE", 2)
    with_small_budget(monkeypatch)


def scattered(graph, share, seed):
    """A matching of about a share of the rows, each with its first free column."""
    row_to_col, col_to_row = unmatched(graph)
    for row in np.flatnonzero(np.random.default_rng(seed).random(graph.nrows) < share):
        cols = graph.indices[graph.indptr[row] : graph.indptr[row + 1]]
        for col in cols[col_to_row[cols] < 0][:1]:
            row_to_col[row], col_to_row[col] = col, row
    return row_to_col, col_to_row


def shifted(graph):
    """Match each row of a chain to the next column: the path to the free ones passes all rows."""
    row_to_col, col_to_row = unmatched(graph)
    for row in range(graph.nrows):
        last = graph.indices[graph.indptr[row + 1] - 1]
        if last != row:
            row_to_col[row], col_to_row[last] = last, row
    return row_to_col, col_to_row


def rungs(graph):
    """Match each row of a ladder but the first within its level: the path passes all levels."""
    cols = np.arange(-1, graph.nrows - 1, dtype=np.int32)
    rows = np.append(np.arange(1, graph.nrows, dtype=np.int32), [-1, -1]).astype(np.int32)
    return cols, rows
