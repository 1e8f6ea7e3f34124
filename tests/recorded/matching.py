"""The runs of matching algorithms that are recorded: every one that needs no GPU, on one thread."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from scipy.sparse import block_diag, csr_array

import graphs
from gpumatch import linalg, maximum_matching
from gpumatch.bipartite import as_bipartite
from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching import engine
from gpumatch.dispatch import registry
from gpumatch.dispatch.by_device import count_matched, no_mates
from gpumatch.running.control import Control
from tests.cases import RUNS, Run, arrow, bow_tie, cycle
from tests.cpu.assignment.tuned import tuned
from tests.recorded.record import Fields, Group, hash_of, in_small_steps, work_of

SMALL_BUDGET = 64
"""Edges between two returns to Python, so that small graphs take many."""
WITH_BUDGETS = [
    f"matching.{module}"
    for module in (
        *("sides", "karp_sipser", "level_search", "lookahead_search", "p_dbfs", "forests"),
    )
]


class Problem(NamedTuple):
    """A graph, and the start that algorithms extend."""

    graph: csr_array
    init: str = "none"


def _made(name: str, *parameters: Any, rcp: bool = True, init: str = "none") -> Problem:
    return Problem(graphs.make(name, *parameters, seed=5, rcp=rcp), init)


def _mixed() -> csr_array:
    """Parts of several kinds, each a component or more, in random order."""
    parts = [graphs.make("hexa", 60, seed=2), graphs.chain(40), graphs.stars(6, 5), bow_tie()]
    return graphs.rcp(csr_array(block_diag(parts)).astype(bool), 3)


@functools.cache
def problems() -> dict[str, Problem]:
    uniform = graphs.make("uniform", 300, 2.5, seed=4)
    return {
        "arrow": Problem(arrow(40)),
        "bubbles": _made("bubbles", 9, 6, init="cheap"),
        "chain": _made("chain", 120),
        "complete, wide": _made("complete", 12, 30),
        "cycle": Problem(cycle(90)),
        "dead_end_ladder": _made("dead_end_ladder", 12),
        "dead_end_ladder in order": _made("dead_end_ladder", 12, rcp=False),
        "delaunay": _made("delaunay", 8),
        "delaunay, cheap": _made("delaunay", 8, init="cheap"),
        "fewg": _made("fewg", 128, 4, init="cheap"),
        "grid": _made("grid", 16, 0.65, init="karp-sipser"),
        "hexa": _made("hexa", 240),
        "hexa, cheap": _made("hexa", 240, init="cheap"),
        "hilo": _made("hilo", 20, 3, 4, init="cheap"),
        "kron": _made("kron", 8, 6, init="karp-sipser"),
        "kron, none": _made("kron", 8, 6),
        "ladder": _made("ladder", 40, init="cheap"),
        "ladder in order": _made("ladder", 40, rcp=False),
        "lopsided": _made("lopsided", 80, 400),
        "manyg": _made("manyg", 128, 4, 32, init="karp-sipser"),
        "mixed": Problem(_mixed(), "cheap"),
        "rgg": _made("rgg", 8),
        "road": _made("road", 8, init="karp-sipser"),
        "rope": _made("rope", 96, init="cheap"),
        "stars": _made("stars", 20, 9),
        "tall": Problem(uniform[:, :120].tocsr()),
        "trace": _made("trace", 12, init="karp-sipser"),
        "uniform": Problem(uniform, "karp-sipser"),
        "uniform, cheap": Problem(uniform, "cheap"),
        "wide": Problem(uniform[:120].tocsr(), "cheap"),
        "zipf": _made("zipf", 250, init="cheap"),
    }


@functools.cache
def larger_problems() -> dict[str, Problem]:
    """Graphs on both sides of the number of edges that are few for the engine."""
    return {
        "larger, few edges": _made("uniform", 2900, 2.8),
        "larger, many edges": _made("uniform", 2900, 2.9),
        "larger delaunay": _made("delaunay", 11, init="cheap"),
    }


def _recorded(problem: Problem, run: Run, has_ticks: bool = False) -> Fields:
    known = registry.starts(run.backend)
    init = problem.init if problem.init in known else "cheap"
    ticks: list[Any] = []
    matching = maximum_matching(
        problem.graph, init=init, threads=1, seed=1, callback=ticks.append, **run.arguments
    )
    sizes = {"size": matching.size, "start_size": matching.stats["start_size"]}
    fields = {**sizes, **work_of(matching.stats)}
    return {**fields, "ticks": len(ticks)} if has_ticks else fields


def _run(run: Run, has_ticks: bool = False) -> dict[str, Fields]:
    known = problems() | (larger_problems() if run.backend == "cpu" else {})
    return {name: _recorded(problem, run, has_ticks) for name, problem in known.items()}


def _run_by_forests() -> dict[str, Fields]:
    """The engine, which leaves so small graphs to a search from row after row otherwise."""
    with tuned(engine, most_read=0):
        return _run(Run("engine", "cpu", {}))


def _run_in_small_steps() -> dict[str, Fields]:
    """Every search that returns to Python on its way, every few edges: how often that is."""
    found = {}
    with tuned(engine, most_read=0), in_small_steps(WITH_BUDGETS, SMALL_BUDGET):
        for algorithm in ("engine", "hk", "hkdw", "pfp", "p-hk", "p-pfp", "p-dbfs"):
            run = Run(algorithm, "cpu", {})
            fields = _run(run, has_ticks=True)
            found |= {f"{algorithm}, {name}": one for name, one in fields.items()}
    return found


def _run_start(start: str, backend: str) -> dict[str, Fields]:
    """A start alone, with two seeds."""
    run, found = registry.STARTS[start][backend].run_with({}), {}
    for name, problem in problems().items():
        sizes = []
        for seed in (1, 2):
            graph = as_bipartite(problem.graph)
            row_to_col, col_to_row = no_mates(graph)
            run(MatchingTask(graph, row_to_col, col_to_row, Control(), 1, seed))
            sizes.append(count_matched(row_to_col))
        found[name] = {"sizes": sizes}
    return found


def _run_starts_in_small_steps() -> dict[str, Fields]:
    """Starts of the CPU, also from pairs that are given: how often they return to Python."""
    found = {}
    with in_small_steps(WITH_BUDGETS, SMALL_BUDGET):
        for start in ("cheap", "karp-sipser"):
            run = registry.STARTS[start]["cpu"].run_with({})
            for name, problem in problems().items():
                graph = as_bipartite(problem.graph)
                ticks, sizes = [], []
                for has_pairs in (False, True):
                    row_to_col, col_to_row = no_mates(graph)
                    if has_pairs:
                        _match_first_edges(graph, row_to_col, col_to_row)
                    count: list[Any] = []
                    control = Control(callback=count.append)
                    run(MatchingTask(graph, row_to_col, col_to_row, control, 1, 1))
                    ticks.append(len(count))
                    sizes.append(count_matched(row_to_col))
                found[f"{start}, {name}"] = {"ticks": ticks, "sizes": sizes}
    return found


def _match_first_edges(graph: Any, row_to_col: Any, col_to_row: Any) -> None:
    """Match each third row to its first column, if that is free."""
    for row in range(0, graph.nrows, 3):
        for col in graph.indices[graph.indptr[row] : graph.indptr[row + 1]][:1]:
            if col_to_row[col] < 0:
                row_to_col[row], col_to_row[col] = col, row


def _decompose() -> dict[str, Fields]:
    """The Dulmage–Mendelsohn decomposition, and strong components of the square graphs."""
    found = {}
    for name, problem in problems().items():
        fields = {"dmperm": hash_of(*linalg.dmperm(problem.graph, backend="cpu", threads=1))}
        if len(set(problem.graph.shape)) == 1:
            fields["strongcomp"] = hash_of(*linalg.strongcomp(problem.graph, backend="cpu"))
        found[name] = fields
    return found


GROUPS: dict[str, Group] = {
    **{str(run): functools.partial(_run, run) for run in RUNS if run.backend != "cuda"},
    "engine-cpu by forests": _run_by_forests,
    "small steps": _run_in_small_steps,
    "starts in small steps": _run_starts_in_small_steps,
    "linalg": _decompose,
    **{
        f"start {start}-{backend}": functools.partial(_run_start, start, backend)
        for start, homes in registry.STARTS.items()
        for backend in homes
        if backend != "cuda" and start != "none"
    },
}
