"""Transport on the CPU: masses from rows to columns, against POT, pylmcf and OR-tools.

What is timed is the whole call from costs and masses to the flow, warm. Peers get their inputs in
the form that they take, made before the clock starts. OR-tools and pylmcf take integer costs:
floats are rounded to multiples of the 2^28th part of the largest, so their flows may cost more than
the optimum. They get no more than 2^23 pairs of images, for which they make 100 bytes each.

    gpumatch     `gpumatch.transport`; the certificate is checked
    pot          `ot.emd`, a network simplex for dense costs
    pylmcf       `pylmcf.Graph`, LEMON's network simplex
    or-tools     `SimpleMinCostFlow`, a cost-scaling push-relabel
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse, load_npz, save_npz

import gpumatch as gm
from bench.harness import Contender, Limits, Overrun, Result, Sample, repeat
from bench.peers import in_process, is_installed, self_timed
from bench.report.tables import markdown, means, milliseconds, page, section, time_of
from graphs.masses import Problem, masses

THREADS = 2
THRESHOLD = 0.0  # every problem counts
OURS, POT, PYLMCF, OR_TOOLS = "gpumatch", "pot", "pylmcf", "or-tools"
DIGITS = 28  # bits of the costs that solvers of integers get, if they are floats
IMAGES = "noise", "smooth", "shapes"
SMALL = 2**14  # entries of problems that take one compiled call, unless it has a time limit
LISTED = 2**23  # pairs that solvers get one by one, at most


# -- problems ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TransportInstance:
    """One problem. `source` is what `graphs.masses.masses` takes."""

    family: str
    source: tuple[Any, ...]
    seed: int = 0

    suffix: ClassVar[str] = ".transport"  # a folder

    @property
    def group(self) -> str:
        return "-".join(map(str, self.source))

    @property
    def name(self) -> str:
        return f"{self.group}-s{self.seed}"

    @property
    def base(self) -> str:
        """The name: each problem is an original."""
        return self.name

    def takes(self, contender: str) -> bool:
        """True if a contender is to be measured on it: POT takes no sparse costs."""
        kind, size = self.source[:2]
        if contender == POT:
            return kind != "network"
        is_image = kind in IMAGES
        return contender == OURS or not is_image or size**4 <= LISTED

    def facts(self, problem: Problem) -> dict[str, Any]:
        """What is kept of the problem in addition to its results."""
        rows, cols = problem.costs.shape
        entries = problem.costs.nnz if issparse(problem.costs) else rows * cols
        return {
            "family": self.family, "group": self.group, "seed": self.seed, "rows": rows,
            "cols": cols, "entries": entries, "mass": int(problem.supply.sum()),
        }  # fmt: skip

    def original(self) -> Problem:
        kind, *sizes = self.source
        return masses(kind, *sizes, seed=self.seed)

    def of(self, original: Problem) -> Problem:
        """The problem, from its original: that itself."""
        return original

    @staticmethod
    def save(problem: Problem, file: Path) -> None:
        file.mkdir(parents=True, exist_ok=True)
        if issparse(problem.costs):
            save_npz(file / "sparse.npz", problem.costs)
        else:
            np.save(file / "dense.npy", problem.costs)
        np.savez(file / "masses.npz", supply=problem.supply, demand=problem.demand)

    @staticmethod
    def load(file: Path) -> Path:
        """The folder itself: peers read it too."""
        return file


class Masses:
    """A folder with a problem, and its facts."""

    def __init__(self, instance: TransportInstance, file: Path, device: str) -> None:
        self.file = file
        self.facts = instance.facts(read(file))


def problem(instance: TransportInstance, file: Path, device: str) -> Masses:
    return Masses(instance, file, device)


def read(file: Path) -> Problem:
    """The problem in a folder."""
    with np.load(file / "masses.npz") as sides:
        supply, demand = sides["supply"], sides["demand"]
    sparse = file / "sparse.npz"
    costs = csr_array(load_npz(sparse)) if sparse.exists() else np.load(file / "dense.npy")
    return Problem(costs, supply, demand)


# -- contenders ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ours:
    """The library."""

    name: str
    threads: int

    def measure(self, problem: Masses, limits: Limits) -> Result:
        given = read(problem.file)
        is_small = problem.facts["entries"] <= SMALL
        limit = None if is_small else limits.cap
        last: list[Any] = []

        def sample() -> Sample:
            begin = time.perf_counter()
            t = gm.transport(*given, backend="cpu", threads=self.threads, time_limit=limit)
            seconds = time.perf_counter() - begin
            if not t.proven:
                raise Overrun
            last[:] = [t]
            return Sample(seconds, int(t.flow.sum()), more={"objective": float(t.objective)})

        result = repeat(sample, limits)
        begin = time.perf_counter()
        gm.verify(given.costs, last[0], supply=given.supply, demand=given.demand)
        return {**result, "certificate": time.perf_counter() - begin}


def pot(given: Problem) -> Callable[[], Sample]:
    """`ot.emd`, from masses as floats."""
    import ot

    supply, demand = (side.astype(np.float64) for side in given[1:])
    costs = np.ascontiguousarray(given.costs, np.float64)
    total = int(given.supply.sum())

    def call() -> Sample:
        begin = time.perf_counter()
        plan = ot.emd(supply, demand, costs, numItermax=10**9)
        seconds = time.perf_counter() - begin
        used = plan.nonzero()
        terms = (plan[used] * costs[used]).tolist()
        return Sample(seconds, total, more={"objective": math.fsum(terms)})

    return call


class Listed(NamedTuple):
    """A problem for solvers that take arcs one by one, with integer costs.

    Attributes
    ----------
    tails, heads : int32 arrays
        Nodes of each arc: rows, then columns.
    costs, units, room : arrays
        The costs, these as integers, and the most units of each arc.
    balance : int64 array
        What each node supplies; less than 0 for columns.
    is_exact : bool
        True if no cost was rounded.
    """

    tails: np.ndarray
    heads: np.ndarray
    costs: np.ndarray
    units: np.ndarray
    room: np.ndarray
    balance: np.ndarray
    is_exact: bool

    @classmethod
    def of(cls, given: Problem) -> Listed:
        nrows, ncols = given.costs.shape
        if issparse(given.costs):
            pairs = given.costs.tocoo()
            rows, cols, costs = pairs.row, pairs.col, pairs.data
        else:
            rows, cols = (part.ravel() for part in np.indices((nrows, ncols)))
            costs = given.costs.ravel()
        scale = 1.0
        if costs.dtype.kind == "f":
            scale = 2.0**DIGITS / float(np.abs(costs).max())
        return cls(
            rows.astype(np.int32), (nrows + cols).astype(np.int32), costs,
            np.rint(costs * scale).astype(np.int64),
            np.minimum(given.supply[rows], given.demand[cols]),
            np.concatenate([given.supply, -given.demand]), scale == 1,
        )  # fmt: skip

    def sample(self, seconds: float, flow: np.ndarray) -> Sample:
        """What a solver has reached with the units of each arc."""
        reached = math.fsum((flow * self.costs.astype(np.float64)).tolist())
        total = int(self.balance[self.balance > 0].sum())
        return Sample(seconds, total, more={"objective" if self.is_exact else "reached": reached})


def pylmcf(given: Problem) -> Callable[[], Sample]:
    """`pylmcf.Graph`; making the graph is part of the time."""
    from pylmcf import Graph

    arcs = Listed.of(given)
    tails, heads = arcs.tails.astype(np.int64), arcs.heads.astype(np.int64)

    def call() -> Sample:
        begin = time.perf_counter()
        graph = Graph(arcs.balance.size, tails, heads)
        graph.set_node_supply(arcs.balance)
        graph.set_edge_costs(arcs.units)
        graph.set_edge_capacities(arcs.room)
        graph.solve()
        seconds = time.perf_counter() - begin
        return arcs.sample(seconds, np.asarray(graph.result()))

    return call


def or_tools(given: Problem) -> Callable[[], Sample]:
    """`ortools.graph.python.min_cost_flow`; adding the arcs is part of the time."""
    from ortools.graph.python import min_cost_flow

    arcs = Listed.of(given)
    nodes = np.arange(arcs.balance.size, dtype=np.int32)

    def call() -> Sample:
        begin = time.perf_counter()
        solver = min_cost_flow.SimpleMinCostFlow()
        places = solver.add_arcs_with_capacity_and_unit_cost(
            arcs.tails, arcs.heads, arcs.room, arcs.units
        )
        solver.set_nodes_supplies(nodes, arcs.balance)
        status = solver.solve()
        seconds = time.perf_counter() - begin
        if status != solver.OPTIMAL:
            raise RuntimeError(f"OR-tools ended with status {status}")
        return arcs.sample(seconds, solver.flows(places))

    return call


CODES = {POT: pot, PYLMCF: pylmcf, OR_TOOLS: or_tools}
_MODULES = {POT: "ot", PYLMCF: "pylmcf", OR_TOOLS: "ortools"}


@dataclass(frozen=True)
class TransportPeer:
    """A peer by its name in `CODES`."""

    name: str

    @property
    def installed(self) -> bool:
        return is_installed(_MODULES[self.name])

    def measure(self, problem: Masses, limits: Limits) -> Result:
        return in_process(_call, (self.name, problem.file), limits, self_timed)


def _call(given: tuple[str, Path]) -> Callable[[], Sample]:
    """In the peer's process: a call that solves the problem and times itself."""
    name, file = given
    return CODES[name](read(file))


def contenders(device: str, threads: int) -> list[Contender]:
    """The library on the CPU, and the peers that are installed."""
    return [Ours(OURS, threads), *(peer for peer in map(TransportPeer, CODES) if peer.installed)]


def instances(quick: bool, data: str | None) -> list[TransportInstance]:
    """Points with masses, few columns, images, and sparse networks."""
    if quick:
        sources: list[tuple[Any, ...]] = [("plane", 30), ("few", 60, 4), ("network", 30, 4, 100)]
        sides = [6]
    else:
        sources = [
            *(("plane", n) for n in (50, 100, 500, 1000, 2000)),
            *(("few", *shape) for shape in ((2000, 10), (20_000, 10), (20_000, 100))),
            *(("network", n, 10, 1000) for n in (100, 300, 1000, 3000, 10_000, 100_000)),
            ("network", 100_000, 10, 10**9),
        ]
        sides = [16, 32, 64, 128]
    images = [(kind, side) for kind in IMAGES for side in sides]
    return [TransportInstance(source[0], source) for source in [*sources, *images]]


def warming(quick: bool) -> list[TransportInstance]:
    """One of each kind."""
    sources = [("plane", 20), ("few", 40, 4), ("noise", 5), ("network", 20, 4, 50)]
    return [TransportInstance("warm", source, seed=9) for source in sources]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times problem by problem, and the means of the ratios."""
    graphs = list(data["graphs"].values())
    codes = [code for code in (OURS, *CODES) if any(code in one["results"] for one in graphs)]
    rows = [
        [
            graph["group"], f"{graph['entries']:,}",
            *(milliseconds(time_of(graph, code)) for code in codes), _certificate(graph),
        ]
        for graph in graphs
    ]  # fmt: skip
    header = ["problem", "pairs", *(f"{code} ms" for code in codes), "certificate ms"]
    return page(
        data,
        section("Transport on the CPU", markdown(header, rows)),
        means(graphs, [code for code in codes if code != OURS], OURS),
    )


def _certificate(graph: dict[str, Any]) -> str | None:
    seconds = graph["results"].get(OURS, {}).get("certificate")
    return None if seconds is None else f"{1e3 * seconds:.3g}"
