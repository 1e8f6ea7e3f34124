"""The whole call on the CPU, graph and start included, against SciPy and igraph.

What is timed is `maximum_matching(A)` on a SciPy matrix with the defaults of the library, warm,
against `scipy.sparse.csgraph.maximum_bipartite_matching(A)` and igraph's matching of a graph that
is built already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy.sparse import csr_array

import gpumatch as gm
from bench.harness import Contender, Limits, Overrun, Result, repeat
from bench.instances import Instance, generated, real, small
from bench.peers import Peer, timed
from bench.report.tables import (
    Graph,
    Time,
    geometric_mean,
    markdown,
    page,
    time_of,
    times_as_long,
)

THREADS = 2
THRESHOLD = 0.05  # seconds of SciPy from which a graph counts in the mean
PEERS = ("scipy", "igraph")
OURS = "gpumatch"


# -- problem and contenders ----------------------------------------------------------------------


class Matrix:
    """A matrix as the caller has it."""

    def __init__(self, instance: Instance, matrix: csr_array, device: str) -> None:
        self.matrix = matrix
        self.facts = instance.facts(matrix)


problem = Matrix


@dataclass(frozen=True)
class WholeCall:
    """`maximum_matching(A)` with the defaults of the CPU."""

    name: str
    threads: int

    def measure(self, problem: Matrix, limits: Limits) -> Result:
        return whole_call(problem.matrix, limits, backend="cpu", threads=self.threads)


def whole_call(source: Any, limits: Limits, **options: Any) -> Result:
    """`maximum_matching` of a matrix or graph, in wall-clock time."""

    def size() -> int:
        matching = gm.maximum_matching(source, time_limit=limits.cap, **options)
        if not matching.proven:
            raise Overrun
        return matching.size

    return repeat(lambda: timed(size), limits)


def contenders(device: str, threads: int) -> list[Contender]:
    """The library and the peers that are installed."""
    peers = [peer for peer in map(Peer, PEERS) if peer.installed]
    return [WholeCall(OURS, threads), *peers]


# -- graphs --------------------------------------------------------------------------------------

warming = small


def instances(quick: bool, data: str | None) -> list[Instance]:
    """The real matrices, and ladders, on which searches that mark too little never end."""
    levels = 12 if quick else 2000
    ladders = [
        generated(f"{kind}-{levels}", kind, levels) for kind in ("ladder", "dead_end_ladder")
    ]
    return ladders if quick else [*real(data), *ladders]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times and ratios graph by graph, and the mean and the worst ratio to SciPy."""
    graphs = data["graphs"]
    ratios = {name: times_slower(graph, "scipy") for name, graph in graphs.items()}
    rows = [
        [name, graph["entries"], *(time_of(graph, code) for code in (OURS, *PEERS)), ratios[name]]
        for name, graph in graphs.items()
    ]
    return page(
        data,
        [
            "### Seconds of the whole call on the CPU\n\n"
            + markdown(["graph", "entries", OURS, *PEERS, "scipy / gpumatch"], rows)
        ],
        [_summary(graphs, ratios, threshold)],
    )


def times_slower(graph: Graph, peer: str) -> Time | None:
    """How many times longer a peer takes than the library."""
    return times_as_long(graph, peer, OURS)


def _summary(graphs: dict[str, Graph], ratios: dict[str, Time | None], threshold: float) -> str:
    """Mean and worst ratio over the graphs on which SciPy takes at least the threshold."""
    counted = {
        name: ratio
        for name, ratio in ratios.items()
        if ratio is not None and (taken := time_of(graphs[name], "scipy")) is not None
        if taken.seconds >= threshold
    }
    if not counted:
        return f"SciPy takes {threshold:g} s or more on no graph."
    worst = min(counted, key=lambda name: counted[name].seconds)
    return (
        f"Where SciPy takes {threshold:g} s or more ({len(counted)} graphs): geometric mean "
        f"{geometric_mean(counted.values())} times faster, worst {counted[worst]} ({worst})."
    )
