"""Which function runs: algorithm name + where the data lives -> the code.

Each algorithm names its home on each backend as ``module:function``; the module is imported when
it is first chosen. To add an algorithm, add its line here.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

# Edges from which a graph on the host repays its copy to the GPU (docs/algorithms/cpu_or_gpu.md
# says how this was measured).
GPU_PAYS_FROM = 100_000
GPU_PAYS_FROM_PAIRS = 2_000_000  # the same for the pairs of a dense matrix of costs
# Share of the pairs that sparse costs must allow for a GPU to make them dense.
DENSE_PAYS_FROM = 1 / 100

BACKENDS = ("cpu", "cuda", "reference")


@dataclass(frozen=True)
class Algorithm:
    """An algorithm `gpumatch` knows.

    Attributes
    ----------
    name, problem : str
        Its name as in the field, and ``"matching"`` or ``"assignment"``.
    backends : tuple of str
        Where it runs: ``"cpu"``, ``"cuda"``, ``"reference"`` (slow, to follow a paper).
    exact : bool
        Whether the result is always optimal.
    reference : str
        Where it was published.
    homes : mapping
        Backend -> ``"module:function"`` of the code.
    options : mapping
        Its own keyword arguments: name -> values, the default first.
    is_variant : bool
        Whether its function serves several algorithms and is told which, as ``algorithm=name``.
    matrices : int
        The dense matrices of costs that it may hold on a GPU at once.
    """

    name: str
    problem: str
    exact: bool
    reference: str
    homes: Mapping[str, str] = field(repr=False)
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_variant: bool = field(default=False, repr=False)
    matrices: int = field(default=1, repr=False)
    fallback: str | None = field(default=None, repr=False)

    @property
    def backends(self) -> tuple[str, ...]:
        return tuple(self.homes)


_DEVECI = "Deveci, Kaya, Uçar, Çatalyürek, Euro-Par 2013"
_AZAD = "Azad, Halappanavar, Rajamanickam, Boman, Khan, Pothen, IPDPS 2012"
_DATE = "Date, Nagi, Parallel Computing 57, 2016"
_PATHS = "gpumatch.cpu.assignment.shortest_augmenting_path:run"
_LAUNCH = {"launch": ("ct", "mt")}
_FRONTIER = {"frontier": ("scan", "queue")}


def _deveci(name: str, text: str, options: Mapping[str, tuple[str, ...]]) -> Algorithm:
    homes = {
        "cuda": "gpumatch.cuda.matching.apsb_apfb:run",
        "reference": "gpumatch.reference.deveci2013:run",
    }
    reference = f"{_DEVECI}: {text}"
    return Algorithm(name, "matching", True, reference, homes, options, is_variant=True)


def _on_cpu(name: str, reference: str) -> Algorithm:
    home = f"gpumatch.cpu.matching.{name.replace('-', '_')}:run"
    return Algorithm(name, "matching", True, reference, {"cpu": home})


def _on_both(cpu: str, cuda: str) -> dict[str, str]:
    return {"cpu": f"gpumatch.cpu.assignment.{cpu}", "cuda": f"gpumatch.cuda.assignment.{cuda}"}


_MATCHING = [
    Algorithm(
        "engine",
        "matching",
        True,
        "ours; tree grafting after Azad, Buluç, Pothen, TPDS 2017",
        {"cpu": "gpumatch.cpu.matching.engine:run", "cuda": "gpumatch.cuda.matching.engine:run"},
    ),
    _deveci("apfb-gpubfs-wr", "APFB with GPUBFS-WR", _LAUNCH | _FRONTIER),
    _deveci("apfb-gpubfs", "APFB with GPUBFS", _LAUNCH),
    _deveci("apsb-gpubfs-wr", "APsB with GPUBFS-WR", _LAUNCH | _FRONTIER),
    _deveci("apsb-gpubfs", "APsB with GPUBFS", _LAUNCH),
    _on_cpu("hk", "Hopcroft, Karp, SIAM J. Comput. 1973"),
    _on_cpu("hkdw", "Duff, Wiberg, ACM TOMS 1988"),
    _on_cpu("pfp", "Pothen, Fan, ACM TOMS 1990; fairness: Duff, Kaya, Uçar, ACM TOMS 2011"),
    _on_cpu("p-hk", _AZAD),
    _on_cpu("p-pfp", _AZAD),
    _on_cpu("p-dbfs", _AZAD),
]
_ASSIGNMENT = [
    Algorithm(
        "engine",
        "assignment",
        True,
        "ours; hungarian-tree while it finds columns, else auction",
        {"cuda": "gpumatch.cuda.assignment.engine:run"},
        fallback=_PATHS,
    ),
    Algorithm(
        "shortest-augmenting-path",
        "assignment",
        True,
        "Jonker, Volgenant, Computing 1987",
        {"cpu": "gpumatch.cpu.assignment.shortest_augmenting_path:run"},
    ),
    Algorithm(
        "hungarian-classical",
        "assignment",
        True,
        f"{_DATE}: classical variant",
        _on_both("hungarian_classical:run", "hungarian:run_classical")
        | {"reference": "gpumatch.reference.date2016:run_classical"},
    ),
    Algorithm(
        "hungarian-tree",
        "assignment",
        True,
        f"{_DATE}: alternating tree variant",
        _on_both("hungarian_tree:run", "hungarian:run_tree")
        | {"reference": "gpumatch.reference.date2016:run_tree"},
        {"search": ("levels", "stack")},
    ),
    Algorithm(
        "auction",
        "assignment",
        True,
        "Vasconcelos, Rosenhahn, EMMCVPR 2009",
        _on_both("auction:run", "auction:run")
        | {"reference": "gpumatch.reference.vasconcelos2009:run"},
        {"finish": ("exact", "epsilon"), "convergence": ("counter", "reduction")},
        matrices=2,  # the transposed one, where columns bid too
        fallback=_PATHS,
    ),
    Algorithm(
        "dgs",
        "assignment",
        False,
        "Roverso, Naiem, El-Beltagy, El-Ansary, Haridi, INFOS 2010",
        {
            "cpu": "gpumatch.cpu.assignment.dgs:run",
            "cuda": "gpumatch.mixed_dgs:run",
            "reference": "gpumatch.reference.roverso2010:run",
        },
        {
            "start": ("random", "greedy"),
            "evaluation": ("auto", "global", "shared", "block", "cpu"),
            "switching": ("auto", "sequential", "parallel"),
        },
        matrices=2,
    ),
]
_TABLE = {algorithm.name: algorithm for algorithm in _MATCHING}
_ASSIGNMENT_TABLE = {algorithm.name: algorithm for algorithm in _ASSIGNMENT}
_DEFAULT = {"cpu": "engine", "cuda": "engine", "reference": "apfb-gpubfs-wr"}

_STARTS = {
    "cheap": {
        "cpu": "gpumatch.cpu.matching.cheap:run",
        "cuda": "gpumatch.cuda.matching.cheap:run",
        "reference": "gpumatch.reference.deveci2013:cheap",
    },
    "karp-sipser": {"cpu": "gpumatch.cpu.matching.karp_sipser:run"},
    "min-degree": {"cuda": "gpumatch.cuda.matching.min_degree:run"},
    "none": dict.fromkeys(BACKENDS, "gpumatch.backends:no_start"),
}

# The searches repair what a cheap start leaves faster than Karp-Sipser finds a better one.
_BEST_START = {("engine", "cuda"): "min-degree"}


def algorithms(problem: str | None = None) -> list[Algorithm]:
    """List the algorithms: name, problem, backends, exact or not, reference, options.

    Parameters
    ----------
    problem : {"matching", "assignment"}, optional
        List those for this problem only.

    Examples
    --------
    >>> import gpumatch
    >>> [a.name for a in gpumatch.algorithms("matching") if "cpu" in a.backends]
    ['engine', 'hk', 'hkdw', 'pfp', 'p-hk', 'p-pfp', 'p-dbfs']
    """
    return [a for a in (*_MATCHING, *_ASSIGNMENT) if problem in (None, a.problem)]


def choose(
    algorithm: str, init: str, backend: str, *, on_device: bool, nnz: int
) -> tuple[Algorithm, str, str]:
    """The algorithm, the name of the start and the backend that serve a call."""
    _check_name("backend", backend, BACKENDS)
    _check_name("algorithm", algorithm, tuple(_TABLE))
    _check_name("init", init, tuple(_STARTS))
    needs = _who_needs_it(backend, algorithm=algorithm, init=init)
    if backend == "auto":
        backend = _where(algorithm, init, on_device, nnz)
    chosen = _TABLE[_DEFAULT[backend] if algorithm == "auto" else algorithm]
    if init == "auto":
        init = _BEST_START.get((chosen.name, backend), "cheap")
    _check_home(f"algorithm {chosen.name!r}", chosen.homes, backend, on_device)
    _check_home(f"init={init!r}", _STARTS[init], backend, on_device)
    _check_cuda(backend, needs)
    return chosen, init, backend


def choose_assignment(algorithm: str, backend: str, costs: Any) -> tuple[Algorithm, str]:
    """The algorithm for an assignment of these costs and the backend that serve a call."""
    _check_name("backend", backend, BACKENDS)
    _check_name("algorithm", algorithm, tuple(_ASSIGNMENT_TABLE))
    needs = _who_needs_it(backend, algorithm=algorithm)
    if backend == "auto":
        backend = _where_assigned(algorithm, costs)
    if algorithm != "auto":
        homes = _ASSIGNMENT_TABLE[algorithm].homes
        _check_home(f"algorithm {algorithm!r}", homes, backend, costs.on_device)
    _check_cuda(backend, needs)
    if algorithm == "auto":
        algorithm = _best_assignment(backend, costs)
    return _ASSIGNMENT_TABLE[algorithm], backend


def _where_assigned(algorithm: str, costs: Any) -> str:
    """As `_where`, for costs."""
    if costs.on_device:
        return "cuda"
    wanted = _ASSIGNMENT_TABLE["engine" if algorithm == "auto" else algorithm]
    can_stay = algorithm == "auto" or "cpu" in wanted.homes
    return "cpu" if can_stay and not _pays_on_gpu(wanted, costs) else "cuda"


def _pays_on_gpu(algorithm: Algorithm, costs: Any) -> bool:
    """Whether costs on the host repay their copy to the GPU: dense ones, where there is room."""
    if not costs.has_matrix or "cuda" not in algorithm.homes or costs.nnz < GPU_PAYS_FROM_PAIRS:
        return False
    return why_no_cuda() is None and _fits(costs, algorithm.matrices)


def _best_assignment(backend: str, costs: Any) -> str:
    """The fastest algorithm for an assignment, of those that have room.

    On a GPU, the auction alone takes sparse costs as they are; but where they are no integers, it
    makes them dense in the end, if there is room, to close the gap.
    """
    if backend == "cpu":
        return "shortest-augmenting-path"
    if backend == "reference":
        return "hungarian-tree"
    if not costs.has_matrix:
        few = costs.nnz < DENSE_PAYS_FROM * math.prod(costs.shape)
        if (few and costs.is_integer) or not _fits(costs, 1):
            return "auction"
    return "engine"


def _fits(costs: Any, matrices: int) -> bool:
    """Whether the GPU has memory for so many dense matrices of the costs, and all else."""
    matrix = math.prod(costs.shape) * costs.itemsize
    try:
        module = module_for("kernels", on_device=True)
        module.require_memory(
            matrices * matrix + max(matrix // 4, costs.unfolding_bytes), "the costs"
        )
    except MemoryError:
        return False
    return True


def _check_home(what: str, homes: Mapping[str, str], backend: str, on_device: bool) -> None:
    if backend not in homes:
        there = " and ".join(map(repr, homes))
        hint = ": pass backend='cpu' to copy the graph to the host" if on_device else ""
        raise ValueError(f"{what} runs on {there}, not on {backend!r}{hint}")


def _who_needs_it(backend: str, **arguments: str) -> str:
    """How an error begins that a GPU is missing: with the argument that asks for one, if any."""
    if backend == "auto":
        for name, value in arguments.items():
            if value != "auto":
                return f"{name} {value!r} needs a GPU: "
    return ""


def _check_cuda(backend: str, needs: str) -> None:
    if backend == "cuda":
        reason = why_no_cuda()
        if reason is not None:
            raise RuntimeError(f"{needs}backend 'cuda' can't run: {reason}")


def _check_name(argument: str, value: str, known: tuple[str, ...]) -> None:
    if value not in ("auto", *known):
        raise ValueError(f"{argument} must be 'auto' or one of {known}; got {value!r}")


def _where(algorithm: str, init: str, on_device: bool, nnz: int) -> str:
    """Device data stays on the device; host data goes there when that pays or nothing else can."""
    if on_device:
        return "cuda"
    homes = {"cpu", "cuda"}
    if algorithm != "auto":
        homes &= _TABLE[algorithm].homes.keys()
    if init != "auto":
        homes &= _STARTS[init].keys()
    pays = "cuda" in homes and nnz >= GPU_PAYS_FROM and why_no_cuda() is None
    return "cpu" if "cpu" in homes and not pays else "cuda"


def start(init: str, backend: str) -> Callable[..., bool]:
    """The function that makes the start `init` on `backend`."""
    return load(_STARTS[init][backend])


def starts(backend: str) -> list[str]:
    """Names of the starts that `backend` has."""
    return [name for name, homes in _STARTS.items() if backend in homes]


def checked_options(algorithm: Algorithm, backend: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The algorithm's own keyword arguments, checked and completed."""
    for name, value in given.items():
        if name not in algorithm.options:
            own = ", ".join(algorithm.options) or "none of its own"
            raise TypeError(f"algorithm {algorithm.name!r} takes no option {name!r} ({own})")
        if value not in algorithm.options[name]:
            raise ValueError(f"{name} must be one of {algorithm.options[name]}; got {value!r}")
    options = {name: values[0] for name, values in algorithm.options.items()} | dict(given)
    if backend == "reference" and options.pop("frontier", "scan") != "scan":
        raise ValueError("frontier='queue' runs on 'cuda', not on 'reference'")
    return options


def checked_seed(seed: int) -> int:
    """The seed of a run, if it is one."""
    if not isinstance(seed, Integral) or not 0 <= seed < 2**63:
        raise ValueError(f"seed must be an integer in [0, 2**63); got {seed!r}")
    return int(seed)


def checked_threads(threads: int | None) -> int:
    """The threads of a run: all cores this process may use where it is None."""
    if threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if not isinstance(threads, Integral) or threads < 1:
        raise ValueError(f"threads must be an integer >= 1; got {threads!r}")
    return int(threads)


def matching(name: str, backend: str) -> Callable[..., bool]:
    """The function of a matching algorithm on `backend`."""
    return load(_TABLE[name].homes[backend])


def load(home: str) -> Callable[..., bool]:
    """The function behind ``module:function``."""
    module, function = home.split(":")
    return getattr(importlib.import_module(module), function)


def module_for(name: str, *, on_device: bool) -> Any:
    """The module `name` of the side where the data lives."""
    return importlib.import_module(f"gpumatch.{'cuda' if on_device else 'cpu'}.{name}")


def no_start(_task: Any) -> bool:
    """Begin from the matching as it is."""
    return True


def why_no_cuda() -> str | None:
    """None when a GPU can be used, else the reason why not and what would help."""
    try:
        import cupy
    except ImportError as exc:
        return f"CuPy is missing ({exc}): pip install 'gpumatch[cuda13]' (or cuda12)"
    except OSError as exc:  # CuPy makes a folder for its kernels when it is imported
        return f"CuPy cannot be imported ({exc}): set CUPY_CACHE_DIR to a folder it can write to"
    try:
        if cupy.cuda.runtime.getDeviceCount() > 0:
            return None
        return "there is no NVIDIA GPU on this machine"
    except cupy.cuda.runtime.CUDARuntimeError as exc:
        return f"no NVIDIA GPU answers ({exc}): install the NVIDIA driver"
