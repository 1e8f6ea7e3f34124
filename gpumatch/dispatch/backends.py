"""The choice of algorithm, backend, options and start of a call.

Each home of an algorithm declares the options that it takes (see `gpumatch.dispatch.registry`). The
arguments of a call narrow the homes down. If no algorithm is named, the options do so too. If
several homes remain, the size of the data decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, cast

from gpumatch.contracts import Components, Costs, Graph
from gpumatch.dispatch.by_device import require_device_memory
from gpumatch.dispatch.devices import why_no_cuda
from gpumatch.dispatch.registry import (
    BACKENDS,
    COMPONENTS,
    STARTS,
    Algorithm,
    BackendName,
    Home,
    did_you_mean,
    load,
    table,
    takers,
)

# A graph or sparse costs on the host repay their copy to the GPU from this number of entries
# (docs/algorithms/cpu_or_gpu.md says how this was measured).
GPU_PAYS_FROM = 100_000
GPU_PAYS_FROM_PAIRS = 2_000_000  # the number of pairs from which dense costs repay their copy
# Costs of a device up to which the host solves transport sooner, both copies included: pairs of a
# matrix, those of a narrow one, and entries of sparse costs. Measured with an H100 and an H200.
TRANSPORT_PAIRS, TRANSPORT_NARROW_PAIRS, TRANSPORT_ENTRIES = 2**19, 2**17, 2**15
_NARROW = 4  # the rows for each column, or columns for each row, of a narrow matrix
# An upper bound of the memory of the GPU's engine for sparse costs, the costs included.
_SPARSE_BYTES_A_VERTEX, _SPARSE_BYTES_AN_ENTRY = 400, 120
_POINT_BYTES_A_VERTEX = 8000  # of the GPU's engine for points, beside the points
_SPARSE_SUMS = 8  # sums in that engine have at most this many costs for each row

_DEFAULT_MATCHING = {"cpu": "engine", "cuda": "engine", "reference": "apfb-gpubfs-wr"}
_DEFAULT_ASSIGNMENT = {"cpu": "engine", "reference": "hungarian-tree"}
# After a cheap start, searches match the remaining rows faster than Karp-Sipser does.
_BEST_START = {("engine", "cuda"): "min-degree"}


class Choice(NamedTuple):
    """The algorithm and backend of a call, with the algorithm's own options, defaults included."""

    algorithm: Algorithm
    backend: str
    options: dict[str, str]

    def names(self) -> dict[str, str]:
        """The names of algorithm and backend, for the statistics of the call."""
        return {"algorithm": self.algorithm.name, "backend": self.backend}

    def search(self) -> Callable[[Any], Any]:
        """The function of the algorithm, with its options set."""
        return self._home.run_with(self.options)

    def fallback(self) -> Callable[[Any], Any] | None:
        """The algorithm of the CPU for what that of the GPU cannot solve; the call imports it."""
        function = self._home.fallback
        return None if function is None else lambda task: load(function)(task)

    def takes_least(self) -> Callable[[Any], bool] | None:
        """Says of a transport task if the algorithm takes what columns must get; None if never."""
        function = self._home.takes_least
        return None if function is None else lambda task: load(function)(task)

    def takes_points(self, costs: Costs) -> bool:
        """True if the algorithm solves transport of these points without their matrix."""
        function, points = self._home.takes_points, costs.points
        return function is not None and points is not None and load(function)(points)

    @property
    def detects_infeasible(self) -> bool:
        """True if the algorithm detects early that sparse costs have no full assignment."""
        return self._home.detects_infeasible

    @property
    def _home(self) -> Home:
        return self.algorithm.homes[self.backend]


def choose_matching(
    algorithm: str,
    init: str,
    backend: str,
    options: Mapping[str, Any],
    *,
    on_device: bool,
    nnz: int,
) -> tuple[Choice, str]:
    """Choose what finds a matching of a graph with `nnz` edges, and the name of its start."""
    _check_name("init", init, STARTS)
    asks = _asks("matching", algorithm, backend, options)
    if init != "auto":
        asks.append(_Ask(f"init={init!r}", tuple(STARTS[init])))
    where = _where(asks, backend, on_device, lambda: nnz >= GPU_PAYS_FROM)
    chosen = _chosen("matching", algorithm, where, options, _DEFAULT_MATCHING[where])
    if init == "auto":
        init = _BEST_START.get((chosen.name, where), "cheap")
    return _choice(chosen, where, options), init


def choose_assignment(
    algorithm: str, backend: str, options: Mapping[str, Any], costs: Costs
) -> Choice:
    """Choose what finds an assignment of these costs."""
    asks = _asks("assignment", algorithm, backend, options)

    def pays_on_gpu() -> bool:
        return _pays_on_gpu(_chosen("assignment", algorithm, "cuda", options, "engine"), costs)

    where = _where(asks, backend, costs.on_device, pays_on_gpu)
    best = _best_assignment(where, costs)
    return _choice(_chosen("assignment", algorithm, where, options, best), where, options)


def choose_transport(
    algorithm: str, backend: str, options: Mapping[str, Any], costs: Costs
) -> Choice:
    """Choose what finds a transport of these costs."""
    asks = _asks("transport", algorithm, backend, options)
    if not asks:
        homes = dict.fromkeys(b for a in table("transport").values() for b in a.backends)
        asks = [_Ask("transport", tuple(homes))]
    on_device = costs.on_device and not (backend == "auto" and _ships_sooner_on_host(costs))
    where = _where(asks, backend, on_device, lambda: False)
    return _choice(_chosen("transport", algorithm, where, options, "engine"), where, options)


def _ships_sooner_on_host(costs: Costs) -> bool:
    """True if transport of these costs of a device is sooner solved on the host."""
    if costs.is_computed:
        return False
    if costs.is_sparse:
        return costs.nnz <= TRANSPORT_ENTRIES
    few, many = sorted(costs.shape)
    return costs.nnz <= (TRANSPORT_NARROW_PAIRS if many >= _NARROW * few else TRANSPORT_PAIRS)


def choose_general(
    problem: str,
    algorithm: str,
    backend: str,
    options: Mapping[str, Any],
    on_device: bool = False,
    nnz: int = 0,
) -> Choice:
    """Choose what solves a problem of a graph that need not be bipartite."""
    asks = _asks(problem, algorithm, backend, options)
    if not asks:
        homes = dict.fromkeys(b for a in table(problem).values() for b in a.backends)
        asks = [_Ask(problem, tuple(homes))]
    where = _where(asks, backend, on_device, lambda: nnz >= GPU_PAYS_FROM)
    return _choice(_chosen(problem, algorithm, where, options, "engine"), where, options)


def choose_components(backend: BackendName, graph: Graph) -> tuple[BackendName, Components]:
    """Choose the backend for strong components of a graph, and return it with its function."""
    _check_name("backend", backend, BACKENDS)
    asks = [_Ask("the search for strong components", tuple(COMPONENTS))]
    where = _where(asks, backend, graph.on_device, lambda: graph.nnz >= GPU_PAYS_FROM)
    return cast(BackendName, where), load(COMPONENTS[where])


def check_backend(backend: str) -> None:
    """Raise ValueError if the backend does not exist, RuntimeError if it can't run."""
    _check_name("backend", backend, BACKENDS)
    _check_cuda(backend, "")


def check_algorithm(problem: str, algorithm: str) -> None:
    """Raise ValueError if no algorithm for this problem has the name."""
    _check_name("algorithm", algorithm, table(problem))


# -- what a call requires --------------------------------------------------------------------------


class _Ask(NamedTuple):
    """A requirement of a call, and the backends that meet it."""

    what: str
    backends: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.what} runs on {' and '.join(map(repr, self.backends))}"


def _asks(problem: str, algorithm: str, backend: str, options: Mapping[str, Any]) -> list[_Ask]:
    """The requirements of a named algorithm and its options, or of the options alone."""
    _check_name("backend", backend, BACKENDS)
    _check_name("algorithm", algorithm, table(problem))
    if algorithm == "auto":
        return _asks_of_options(problem, options) if options else []
    wanted = table(problem)[algorithm]
    for name, value in options.items():
        _check_option(problem, [wanted], name, value, f"algorithm {algorithm!r}")
    return [
        _Ask(f"algorithm {algorithm!r}", wanted.backends),
        *(
            _Ask(f"{name}={value!r}", tuple(_serving([wanted], {name: value})))
            for name, value in options.items()
        ),
    ]


def _asks_of_options(problem: str, options: Mapping[str, Any]) -> list[_Ask]:
    """The requirement of options in a call that names no algorithm."""
    for name, value in options.items():
        _check_option(problem, _exact(problem), name, value, "algorithm 'auto'")
    what = " with ".join(f"{name}={value!r}" for name, value in options.items())
    serving = _serving(_exact(problem), options)
    if not serving:
        raise ValueError(f"no algorithm takes {what}")
    return [_Ask(what, tuple(serving))]


def _exact(problem: str) -> list[Algorithm]:
    return [algorithm for algorithm in table(problem).values() if algorithm.exact]


def _serving(
    algorithms: Iterable[Algorithm], options: Mapping[str, Any]
) -> dict[str, list[Algorithm]]:
    """A map from each backend to the algorithms that take all these options there."""
    found: dict[str, list[Algorithm]] = {}
    for algorithm in algorithms:
        for backend, home in algorithm.homes.items():
            if home.takes(options):
                found.setdefault(backend, []).append(algorithm)
    return found


def _chosen(
    problem: str, algorithm: str, backend: str, options: Mapping[str, Any], best: str
) -> Algorithm:
    """The named algorithm; without a name, an exact algorithm that takes the options.

    `best` comes first, then the others in the order of the table.
    """
    if algorithm != "auto":
        return table(problem)[algorithm]
    able = _serving(_exact(problem), options)[backend]
    return next((a for a in able if a.name == best), able[0])


def _check_name(argument: str, value: str, known: Iterable[str]) -> None:
    if value not in ("auto", *known):
        text = f"{argument} must be 'auto' or one of {tuple(known)}; got {value!r}"
        raise ValueError(text + did_you_mean(value, known))


def _check_option(
    problem: str, algorithms: Iterable[Algorithm], name: str, value: object, what: str
) -> None:
    """Raise an error unless at least one home of the algorithms takes the option."""
    known = tuple(dict.fromkeys(v for a in algorithms for v in a.options.get(name, ())))
    if not known:
        others = ", ".join(map(repr, takers(problem, name)))
        raise TypeError(f"{what} takes no option {name!r}; these do: {others}")
    if not isinstance(value, str) or value not in known:
        text = f"{name} must be one of {known}; got {value!r}"
        raise ValueError(text + did_you_mean(value, known))


# -- where it runs ---------------------------------------------------------------------------------


def _where(
    asks: Collection[_Ask], backend: str, on_device: bool, pays_on_gpu: Callable[[], bool]
) -> str:
    """The backend that meets all requirements and can run."""
    needs = ""
    if backend == "auto":
        backend = _best_backend(asks, on_device, pays_on_gpu)
        needs = "".join(f"{ask.what} needs a GPU: " for ask in asks if "cpu" not in ask.backends)
    for ask in asks:
        if backend not in ask.backends:
            can_move = on_device and all("cpu" in other.backends for other in asks)
            hint = ": pass backend='cpu' to copy the data to the host" if can_move else ""
            raise ValueError(f"{ask}, not on {backend!r}{hint}")
    _check_cuda(backend, needs)
    return backend


def _best_backend(asks: Collection[_Ask], on_device: bool, pays_on_gpu: Callable[[], bool]) -> str:
    """The backend for "auto".

    Device data stay on the device. Host data go there if that pays, or if the CPU does not meet all
    requirements.
    """
    if on_device:
        return "cuda"
    able = [b for b in BACKENDS if all(b in ask.backends for ask in asks)]
    if not able:
        raise ValueError(f"no backend has all that is asked for: {', '.join(map(str, asks))}")
    if "cpu" not in able:
        return "cuda"
    pays = "cuda" in able and pays_on_gpu() and why_no_cuda() is None
    return "cuda" if pays else "cpu"


def _check_cuda(backend: str, needs: str) -> None:
    if backend == "cuda":
        reason = why_no_cuda()
        if reason is not None:
            raise RuntimeError(f"{needs}backend 'cuda' can't run: {reason}")


def _choice(algorithm: Algorithm, backend: str, options: Mapping[str, Any]) -> Choice:
    """The algorithm on this backend, with the given options and the defaults of the others."""
    return Choice(algorithm, backend, algorithm.homes[backend].completed(options))


# -- costs -----------------------------------------------------------------------------------------


def _pays_on_gpu(algorithm: Algorithm, costs: Costs) -> bool:
    """True if costs on the host repay their copy to the GPU, and it has memory for them.

    Dense costs may. Sparse costs may for the engine, which solves them without a dense matrix.
    """
    is_dense = costs.has_matrix or costs.points is not None
    least = GPU_PAYS_FROM_PAIRS if is_dense else GPU_PAYS_FROM
    if costs.nnz < least or why_no_cuda() is not None:
        return False
    if costs.has_matrix:
        return _fits(costs, algorithm.homes["cuda"].matrices)
    if algorithm.name != "engine":
        return False
    if costs.points is not None:
        return _has_room(_POINT_BYTES_A_VERTEX * sum(costs.shape) + 4 * costs.nbytes)
    return costs.is_sparse and _fits_as_csr(costs)


def _best_assignment(backend: str, costs: Costs) -> str:
    """The fastest algorithm for an assignment that has enough memory.

    On a GPU, the engine takes matrices and CSR unchanged. It makes a matrix of all other costs.
    """
    if backend != "cuda":
        return _DEFAULT_ASSIGNMENT[backend]
    has_engine = costs.has_matrix or costs.is_sparse or costs.is_computed
    return "engine" if has_engine or _fits(costs, 1) else "auction"


def _fits(costs: Costs, matrices: int) -> bool:
    """True if the GPU has memory for this many dense matrices of the costs, and all else."""
    matrix = math.prod(costs.shape) * costs.itemsize
    return _has_room(matrices * matrix + max(matrix // 4, costs.unfolding_bytes))


def _fits_as_csr(costs: Costs) -> bool:
    """True if the GPU has memory for sparse costs, and sums of integer costs fit into 64 bits."""
    vertices = sum(costs.shape)
    if costs.is_integer and _SPARSE_SUMS * (min(costs.shape) + 1) * costs.largest >= 2**62:
        return False
    return _has_room(_SPARSE_BYTES_A_VERTEX * vertices + _SPARSE_BYTES_AN_ENTRY * costs.nnz)


def _has_room(nbytes: int) -> bool:
    try:
        require_device_memory(nbytes, "the costs")
    except MemoryError:
        return False
    return True
