"""networkx's functions on the backend ``gpumatch``, against networkx, and what its import costs.

A run of ``gpumatch`` converts the graph anew, as a first call does; ``gpumatch, converted`` finds
it converted by an earlier call. networkx has no sparse full matching of least weight: it fills a
matrix of all pairs, so it is not asked for large ones. ``import`` is `import networkx` in processes
of their own, in turns with gpumatch's entry points and, as ``without``, with these left out.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from networkx.algorithms import bipartite
from scipy.sparse import csr_array

from bench.harness import Contender, Limits, Result, Sample, repeat
from bench.instances import Instance, small
from bench.report.tables import Graph, Time, markdown, page, time_of, times_as_long

THREADS = 2
THRESHOLD = 0.0  # every graph counts
OURS, CONVERTED, NETWORKX, IMPORT = "gpumatch", "gpumatch, converted", "networkx", "import"
MATCHING, FULL, LOADING = (
    "hopcroft_karp_matching",
    "minimum_weight_full_matching",
    "import networkx",
)
PAIRS = 11  # of processes that import networkx with and without us
FILLED = 2000  # rows up to which networkx is asked for a full matching

_LOAD = """
import importlib.metadata as metadata, json, sys, time
import numpy, scipy
found = metadata.entry_points
ours = sys.argv[1] == "ours"
def entry_points(**wanted):
    return metadata.EntryPoints(e for e in found(**wanted) if ours or e.name != "gpumatch")
metadata.entry_points = entry_points
begin, clock = time.process_time(), time.perf_counter()
import networkx
taken = [time.process_time() - begin, time.perf_counter() - clock]
assert ("gpumatch" in networkx.utils.backends.backends) == ours
print(json.dumps(taken))
"""


# -- problems and contenders ---------------------------------------------------------------------


class Asked:
    """A networkx graph, its rows, and the function that is asked."""

    def __init__(self, instance: Instance, matrix: csr_array, device: str) -> None:
        self.function = instance.family
        self.facts = instance.facts(matrix)
        self.graph = nx.Graph()
        count = matrix.shape[0]
        self.rows = range(count)
        self.graph.add_nodes_from(self.rows, bipartite=0)
        self.graph.add_nodes_from(range(count, sum(matrix.shape)), bipartite=1)
        rows, cols = matrix.nonzero()
        if self.function == FULL:  # one that exists, of weights that are no better than others
            random = np.random.default_rng(0)
            rows = np.concatenate([rows, np.arange(count)])
            cols = np.concatenate([cols, random.permutation(count)])
        weights = np.random.default_rng(1).integers(1, 1000, rows.size)
        self.graph.add_weighted_edges_from(
            zip(rows.tolist(), (cols + count).tolist(), weights.tolist())
        )


problem = Asked


@dataclass(frozen=True)
class Backend:
    """A function on one of the backends."""

    name: str

    def measure(self, problem: Asked, limits: Limits) -> Result:
        function: Callable[..., Any] = getattr(bipartite, problem.function)
        backend = {} if self.name == NETWORKX else {"backend": OURS}

        def sample() -> Sample:
            if self.name == OURS:
                problem.graph.__networkx_cache__.clear()
            begin = time.perf_counter()
            found = function(problem.graph, problem.rows, **backend)
            seconds = time.perf_counter() - begin
            more = {}
            if problem.function == FULL:
                edges = ((u, found[u]) for u in problem.rows)
                more["objective"] = sum(problem.graph.edges[edge]["weight"] for edge in edges)
            return Sample(seconds, len(found) // 2, more=more)

        return repeat(sample, limits)


@dataclass(frozen=True)
class Import:
    """What `import networkx` takes with our entry points, and without."""

    name: str = IMPORT

    def measure(self, problem: Asked, limits: Limits) -> Result:
        pairs = [(_load("ours"), _load("without")) for _ in range(PAIRS)]
        ours, without = ([taken[0] for taken in side] for side in zip(*pairs))
        return {"seconds": ours, "without": without, "size": 0, "levels": []}


def _load(whose: str) -> list[float]:
    command = (sys.executable, "-c", _LOAD, whose)
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return json.loads(printed.stdout)


def contenders(device: str, threads: int) -> list[Contender]:
    """Ours with and without the conversion, networkx, and the import."""
    return [*map(Backend, (OURS, CONVERTED, NETWORKX)), Import()]


# -- graphs --------------------------------------------------------------------------------------

warming = small


@dataclass(frozen=True)
class AskedInstance(Instance):
    """A graph, and by its family the function that is asked of it.

    Attributes
    ----------
    is_filled : bool
        Whether networkx would make a dense matrix of it that is too large to wait for.
    """

    is_filled: bool = False

    def takes(self, contender: str) -> bool:
        if (contender == IMPORT) != (self.family == LOADING):
            return False
        return not (self.is_filled and contender == NETWORKX)


def instances(quick: bool, data: str | None) -> list[Instance]:
    """Uniform random graphs of average degree 3."""
    sizes: dict[str, tuple[int, ...]] = {MATCHING: (1000, 10_000, 100_000), FULL: (1000, 100_000)}
    if quick:
        sizes = {MATCHING: (50,), FULL: (50,)}
    asked = [(function, n) for function, counts in sizes.items() for n in counts]
    graphs = [
        AskedInstance(
            f"{f}, {2 * n} nodes", f, ("uniform", n, 3), is_filled=f == FULL and n > FILLED
        )
        for f, n in asked
    ]
    return [*graphs, AskedInstance(LOADING, LOADING, ("uniform", 1, 1))]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Seconds of each function, how much longer networkx takes, and what the import costs more."""
    graphs: dict[str, Graph] = data["graphs"]
    rows = [
        [
            name,
            *(time_of(graph, code) for code in (OURS, CONVERTED, NETWORKX)),
            times_as_long(graph, NETWORKX, OURS),
        ]
        for name, graph in graphs.items()
    ]
    header = ["function", OURS, CONVERTED, NETWORKX, f"{NETWORKX} / {OURS}"]
    table = markdown(header, rows)
    parts = [table] if table else []
    loaded = graphs.get(LOADING, {"results": {}})["results"].get(IMPORT)
    if loaded is not None and "seconds" in loaded:
        ours, without = (statistics.median(loaded[key]) for key in ("seconds", "without"))
        more = Time(1e3 * (ours - without))
        parts.append(f"`import networkx` takes {more} ms more with gpumatch installed.")
    return page(data, parts)
