"""The table of algorithms: what each solves, its homes, and the options that it takes there.

To add an algorithm, write its file and add its line to the table below. A home is named as
``module:function``. Its module is imported when it is first chosen.
"""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from gpumatch.running.interrupts import InterruptsHeld

if TYPE_CHECKING:
    from gpumatch.contracts import MatchingTask

__all__ = [
    "BACKENDS",
    "PROBLEMS",
    "STARTS",
    "Algorithm",
    "BackendName",
    "Home",
    "StartName",
    "algorithms",
]

BackendName = Literal["auto", "cpu", "cuda", "reference"]
StartName = Literal["auto", "cheap", "karp-sipser", "min-degree", "none"]
BACKENDS = get_args(BackendName)[1:]
PROBLEMS = ("matching", "assignment", "transport", "general-matching", "general-weights")

Options = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Home:
    """The function of an algorithm on one backend.

    Attributes
    ----------
    function : str
        ``"module:function"``.
    options : mapping
        Options that are passed to the function: name -> values, the default first.
    only : mapping
        Options of other homes of which this home has one form only: name -> the values that name
        this form. A caller may give them. They are not passed to the function.
    fixed : mapping
        Arguments that are always passed to the function. They select one of several algorithms.
    fallback : str, optional
        The function of the CPU that solves what exceeds the GPU's memory, or what an algorithm of
        the GPU cannot solve for another reason.
    takes_least : str, optional
        The function that says of a `TransportTask` whether the function takes what columns must get
        at least.
    takes_points : str, optional
        The function that says of `Points` on a device whether the function takes them in a
        `TransportTask` without their matrix.
    matrices : int
        The number of dense matrices of costs that the function may hold on a GPU at once.
    detects_infeasible : bool
        True if the function detects early that sparse costs have no full assignment, where
        `AssignmentTask.may_be_infeasible` is True.
    """

    function: str
    options: Options = field(default_factory=dict)
    only: Options = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    fallback: str | None = None
    takes_least: str | None = None
    takes_points: str | None = None
    matrices: int = 1
    detects_infeasible: bool = False

    @functools.cached_property
    def values(self) -> Options:
        """All options that a caller may give, with their values."""
        return {**self.options, **self.only}

    def takes(self, given: Mapping[str, Any]) -> bool:
        """True if a caller may give these options."""
        return all(value in self.values.get(name, ()) for name, value in given.items())

    def completed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The given options, and the defaults of all others."""
        return {name: given.get(name, values[0]) for name, values in self.values.items()}

    def run_with(self, options: Mapping[str, Any]) -> Callable[[Any], Any]:
        """The function with those of these options that it takes."""
        told = {name: value for name, value in options.items() if name in self.options}
        return functools.partial(load(self.function), **self.fixed, **told)


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of `gpumatch`.

    Attributes
    ----------
    name, problem : str
        The name that the field uses, and ``"matching"``, ``"assignment"``, ``"transport"``,
        ``"general-matching"`` or ``"general-weights"``.
    backends : tuple of str
        The backends that have it: ``"cpu"``, ``"cuda"``, ``"reference"`` (slow, to follow a paper).
    exact : bool
        True if the result is always optimal.
    reference : str
        The publication.
    options : mapping
        The keyword arguments of its own: name -> values, the default first. Some homes take only
        some of them.
    homes : mapping
        Backend -> `Home`.
    """

    name: str
    problem: str
    exact: bool
    reference: str
    homes: Mapping[str, Home] = field(repr=False)

    @property
    def backends(self) -> tuple[str, ...]:
        return tuple(self.homes)

    @functools.cached_property
    def options(self) -> dict[str, tuple[str, ...]]:
        """The options of all homes."""
        names = dict.fromkeys(name for home in self.homes.values() for name in home.values)
        return {name: self._values(name) for name in names}

    def _values(self, name: str) -> tuple[str, ...]:
        """The values of an option, in the order of the home that has the most of them."""
        lists = [home.values.get(name, ()) for home in self.homes.values()]
        most_first = sorted(lists, key=len, reverse=True)
        return tuple(dict.fromkeys(value for values in most_first for value in values))


# -- the table -------------------------------------------------------------------------------------

_DEVECI = "Deveci, Kaya, Uçar, Çatalyürek, Euro-Par 2013"
_AZAD = "Azad, Halappanavar, Rajamanickam, Boman, Khan, Pothen, IPDPS 2012"
_DATE = "Date, Nagi, Parallel Computing 57, 2016"
_CPU, _CUDA, _REFERENCE = "gpumatch.cpu.", "gpumatch.cuda.", "gpumatch.reference."
_PATHS = _CPU + "assignment.shortest_augmenting_path:run"


def _deveci(name: str, text: str) -> Algorithm:
    """A system of Deveci et al., which may search by a queue on the GPU."""
    launch, named = {"launch": ("ct", "mt")}, {"algorithm": name}
    options = {**launch, "host_loop": ("batch", "level"), "frontier": ("scan", "queue")}
    as_printed = {"host_loop": ("level",), "frontier": ("scan",)}
    homes = {
        "cuda": Home(_CUDA + "matching.apsb_apfb:run", options, fixed=named),
        "reference": Home(_REFERENCE + "deveci2013:run", launch, as_printed, named),
    }
    return Algorithm(name, "matching", True, f"{_DEVECI}: {text}", homes)


def _on_cpu(name: str, reference: str) -> Algorithm:
    home = Home(f"{_CPU}matching.{name.replace('-', '_')}:run")
    return Algorithm(name, "matching", True, reference, {"cpu": home})


_MATCHING = (
    Algorithm(
        "engine",
        "matching",
        True,
        "ours; tree grafting after Azad, Buluç, Pothen, TPDS 2017",
        {"cpu": Home(_CPU + "matching.engine:run"), "cuda": Home(_CUDA + "matching.engine:run")},
    ),
    _deveci("apfb-gpubfs-wr", "APFB with GPUBFS-WR"),
    _deveci("apfb-gpubfs", "APFB with GPUBFS"),
    _deveci("apsb-gpubfs-wr", "APsB with GPUBFS-WR"),
    _deveci("apsb-gpubfs", "APsB with GPUBFS"),
    _on_cpu("hk", "Hopcroft, Karp, SIAM J. Comput. 1973"),
    _on_cpu("hkdw", "Duff, Wiberg, ACM TOMS 1988"),
    _on_cpu("pfp", "Pothen, Fan, ACM TOMS 1990; fairness: Duff, Kaya, Uçar, ACM TOMS 2011"),
    _on_cpu("p-hk", _AZAD),
    _on_cpu("p-pfp", _AZAD),
    _on_cpu("p-dbfs", _AZAD),
)
_ASSIGNMENT = (
    Algorithm(
        "engine",
        "assignment",
        True,
        "ours; auction for prices, then paths or trees; dense on a GPU: few pairs a row first",
        {
            "cpu": Home(_CPU + "assignment.engine:run", detects_infeasible=True),
            "cuda": Home(
                _CUDA + "assignment.engine:run", {"devices": ("one", "all")}, fallback=_PATHS
            ),
        },
    ),
    Algorithm(
        "shortest-augmenting-path",
        "assignment",
        True,
        "Jonker, Volgenant, Computing 1987",
        {"cpu": Home(_PATHS)},
    ),
    Algorithm(
        "hungarian-classical",
        "assignment",
        True,
        f"{_DATE}: classical variant",
        {
            "cpu": Home(_CPU + "assignment.hungarian.classical:run"),
            "cuda": Home(_CUDA + "assignment.hungarian.classical:run"),
            "reference": Home(
                _REFERENCE + "date2016:run", fixed={"algorithm": "hungarian-classical"}
            ),
        },
    ),
    Algorithm(
        "hungarian-tree",
        "assignment",
        True,
        f"{_DATE}: alternating tree variant",
        {
            "cpu": Home(_CPU + "assignment.hungarian.tree:run", {"search": ("levels", "stack")}),
            "cuda": Home(_CUDA + "assignment.hungarian.tree:run", {"search": ("levels", "paper")}),
            "reference": Home(
                _REFERENCE + "date2016:run",
                only={"search": ("levels", "paper")},
                fixed={"algorithm": "hungarian-tree"},
            ),
        },
    ),
    Algorithm(
        "auction",
        "assignment",
        True,
        "Vasconcelos, Rosenhahn, EMMCVPR 2009",
        {
            "cpu": Home(
                _CPU + "assignment.auction:run",
                {"scaling": ("epsilon", "none"), "finish": ("exact", "epsilon")},
                only={"convergence": ("counter",)},
            ),
            "cuda": Home(
                _CUDA + "assignment.auction:run",
                {
                    "scaling": ("epsilon", "none"),
                    "finish": ("exact", "epsilon"),
                    "convergence": ("counter", "reduction"),
                    "host_loop": ("batch", "round"),
                },
                fallback=_PATHS,
                matrices=2,  # with the transposed matrix, in which columns bid
            ),
            "reference": Home(
                _REFERENCE + "vasconcelos2009:run",
                {"finish": ("exact", "epsilon"), "convergence": ("counter", "reduction")},
                only={"scaling": ("none",), "host_loop": ("round",)},
            ),
        },
    ),
    Algorithm(
        "dgs",
        "assignment",
        False,
        "Roverso, Naiem, El-Beltagy, El-Ansary, Haridi, INFOS 2010",
        {
            "cpu": Home(
                _CPU + "assignment.dgs.engine:run",
                {"start": ("random", "greedy")},
                only={"evaluation": ("auto", "cpu"), "switching": ("auto", "sequential")},
            ),
            "cuda": Home(
                "gpumatch.dispatch.mixed_dgs:run",
                {
                    "start": ("random", "greedy"),
                    "evaluation": ("auto", "global", "shared", "block"),
                    "switching": ("auto", "sequential", "parallel"),
                },
                matrices=2,
            ),
            "reference": Home(
                _REFERENCE + "roverso2010:run",
                {
                    "start": ("random", "greedy"),
                    "evaluation": ("auto", "global", "shared"),
                    "switching": ("auto", "sequential", "parallel"),
                },
            ),
        },
    ),
)
_TRANSPORT = (
    Algorithm(
        "engine",
        "transport",
        True,
        "ours",
        {
            "cpu": Home(
                _CPU + "transport.engine:solve",
                takes_least=_CPU + "transport.engine:takes_least",
                takes_points=_CPU + "transport.engine:takes_points",
            ),
            "cuda": Home(
                _CUDA + "transport.engine:solve",
                fallback=_CPU + "transport.engine:solve",
                takes_least=_CUDA + "transport.engine:takes_least",
                takes_points=_CUDA + "transport.engine:takes_points",
            ),
        },
    ),
)
_GENERAL_MATCHING = (
    Algorithm(
        "engine",
        "general-matching",
        True,
        "ours; double cover, then blossoms after Edmonds 1965, Gabow 1976",
        {
            "cpu": Home(_CPU + "general.matching:run"),
            "cuda": Home(
                _CUDA + "general.matching:run", fallback=_CPU + "general.matching:search_rest"
            ),
        },
    ),
)
_GENERAL_WEIGHTS = (
    Algorithm(
        "engine",
        "general-weights",
        True,
        "ours; blossoms by priority queues after Galil, Micali, Gabow, SIAM J. Comput. 1986",
        {
            "cpu": Home(_CPU + "general.weights.engine:run"),
            "cuda": Home(
                _CUDA + "general.weights:run", fallback=_CPU + "general.weights.engine:run"
            ),
        },
    ),
    Algorithm(
        "suitor",
        "general-weights",
        False,
        "Manne, Halappanavar, IPDPS 2014; with duals of ours",
        {
            "cpu": Home(_CPU + "general.half_approximate:run", {"bound": ("tight", "half")}),
            "cuda": Home(_CUDA + "general.half_approximate:run", {"bound": ("tight", "half")}),
        },
    ),
)
_TABLES = {
    problem: {algorithm.name: algorithm for algorithm in algorithms}
    for problem, algorithms in zip(
        PROBLEMS, (_MATCHING, _ASSIGNMENT, _TRANSPORT, _GENERAL_MATCHING, _GENERAL_WEIGHTS)
    )
}

STARTS = {
    "cheap": {
        "cpu": Home(_CPU + "matching.cheap:run"),
        "cuda": Home(_CUDA + "matching.cheap:run"),
        "reference": Home(_REFERENCE + "deveci2013:cheap"),
    },
    "karp-sipser": {"cpu": Home(_CPU + "matching.karp_sipser:run")},
    "min-degree": {"cuda": Home(_CUDA + "matching.min_degree:run")},
    "none": dict.fromkeys(BACKENDS, Home("gpumatch.dispatch.registry:no_start")),
}
"""The starts of a matching: name -> backend -> home."""

COMPONENTS = {
    "cpu": _CPU + "components:strong_components",
    "cuda": _CUDA + "components:strong_components",
}
"""The functions that find strong components: backend -> function."""

DOUBLE_COVERS = {"cpu": _CPU + "matching.engine:run"}
"""The functions that match double covers of general graphs, held on the host, by backend."""

DECOMPOSE = _CPU + "general.matching:decompose"
"""The function that writes the parts of a graph that its largest matching has left open."""

B_MATCHING = _CPU + "matching.b_matching:run"
"""The function that finds maximum b-matchings, on the host."""

CYCLES = _CPU + "ranking.cheapest_cycles:cycles_within"
"""The function that finds the cheapest cycles through arcs, on the host."""

RANKING_SPACE = _CPU + "ranking.state:space_for"
RANKING = _CPU + "ranking.cheapest:rank"
RANKING_PROOF = _CPU + "ranking.proof:prove"
"""The functions that rank assignments on the host: room for them, the search, and its proof."""

LEXICOGRAPHIC = _CPU + "ranking.lexicographic:solve"
"""The function that makes a bottleneck assignment lexicographically least, on the host."""

RANKING_ON_DEVICE, FITS_RANKING = (
    _CUDA + "assignment.batched.ranking:rank_frames",
    _CUDA + "assignment.batched.ranking:fits",
)
"""The functions that rank the assignments of many frames on a GPU, and say if it should."""

BOTTLENECK_PATHS = _CPU + "assignment.bottleneck:raise_threshold"
"""The function that finds bottlenecks by paths."""

BATCHES = {
    "cpu": _CPU + "assignment.small.batch:run",
    "cuda": _CUDA + "assignment.batched.batch:run",
}
"""The functions that solve batches of small dense problems: backend -> function."""

TEAM = _CUDA + "assignment.engine:steps_of_team"
"""The function that says how many steps a team of threads on a GPU may take for one problem."""

SEEMS_SORTED = _CUDA + "assignment.dense.sorting:seems_sorted"
"""The function that says whether samples of a square matrix on a GPU are Monge in some order."""

ONE_OF_A_BATCH = _CPU + "assignment.small.batch:solve_one"
"""The function that solves one problem by the CPU's kernel for batches, without a thread pool."""

ONE_WARM = _CPU + "assignment.small.batch:solve_one_warm"
"""The function that solves one problem from pairs and prices, which it checks."""

SMALL_SPARSE = _CPU + "assignment.sparse.small:solve"
"""The function that solves a small sparse problem on the host in one compiled call."""

SMALL_MATCHING = _CPU + "matching.small:solve"
"""The function that matches a small graph on the host in one compiled call."""

JOIN, JOIN_LISTED = (
    _CPU + "assignment.either.at_limit:join",
    _CPU + "assignment.either.at_limit:join_listed",
)
"""The functions that add pairs whose cost equals the limit: of costs on the host, and of a list."""

FINISH = _CPU + "assignment.either.finish:run"
"""The function that closes the gap of an exact algorithm's result, on the host."""

SMALL_TRANSPORTS = _CPU + "transport.small_batch:solve"
"""The function that solves small dense transport problems on the host in compiled calls."""

ONE_SMALL_TRANSPORT = _CPU + "transport.small_batch:solve_one"
"""The function that solves one of these."""

ONE_SMALL_NETWORK = _CPU + "transport.small_network:solve"
"""The same for a problem in CSR."""

BOUNDED_FLOWS = {"cpu": _CPU + "transport.bounded:solve"}
"""The functions that solve transport with capacities of pairs, by backend."""

FAIR_ROWS = _CPU + "assignment.either.fair_duals:write_fair_duals"
"""The function that writes the largest duals of rows that no pair undercuts, on the host."""

FAIR_ROWS_ON_DEVICE = _CUDA + "transport.fair_rows:write_fair_duals"
"""The function that writes the largest duals of rows that no pair undercuts, on a device."""

FAIR_ROWS_OF_POINTS = {
    "cpu": _CPU + "transport.engine:fair_rows",
    "cuda": _CUDA + "transport.points:fair_rows",
}
"""The functions that find these duals for points, without their matrix: backend -> function."""

SCIPYS_ORDER = _CPU + "assignment.small.scipy_order:columns_of_rows"
"""The function that finds the assignment that SciPy finds, where several are optimal."""


# -- queries ---------------------------------------------------------------------------------------


def algorithms(problem: str | None = None) -> list[Algorithm]:
    """List the algorithms: name, problem, backends, exact or not, reference, options.

    Parameters
    ----------
    problem : {"matching", "assignment", "transport", "general-matching", "general-weights"}
        List those for this problem only. By default, list all.

    Raises
    ------
    ValueError
        If there is no such problem.

    Examples
    --------
    >>> import gpumatch
    >>> [a.name for a in gpumatch.algorithms("matching") if "cpu" in a.backends]
    ['engine', 'hk', 'hkdw', 'pfp', 'p-hk', 'p-pfp', 'p-dbfs']
    """
    if problem is None:
        return [algorithm for known in _TABLES.values() for algorithm in known.values()]
    if problem not in PROBLEMS:
        raise ValueError(f"problem must be None or one of {PROBLEMS}; got {problem!r}")
    return list(_TABLES[problem].values())


def table(problem: str) -> Mapping[str, Algorithm]:
    """The algorithms for a problem by name."""
    return _TABLES[problem]


def takers(problem: str, option: str) -> list[str]:
    """The names of the algorithms for a problem that take an option."""
    return [a.name for a in _TABLES[problem].values() if option in a.options]


@functools.cache
def option_names(problem: str) -> Iterable[str]:
    """The names of all options that algorithms for a problem take."""
    return dict.fromkeys(name for a in _TABLES[problem].values() for name in a.options)


def starts(backend: str) -> list[str]:
    """The names of the starts that `backend` has."""
    return [name for name, homes in STARTS.items() if backend in homes]


@functools.cache
def load(function: str) -> Callable[..., Any]:
    """The function behind ``module:function``."""
    module, name = function.split(":")
    with InterruptsHeld():
        return getattr(importlib.import_module(module), name)


def no_start(_task: MatchingTask) -> bool:
    """Leave the matching unchanged."""
    return True


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """A hint at the known name that is most similar to this one, or an empty string."""
    meant = "cuda" if name == "gpu" else str(name)  # cpu is nearer, but the opposite
    close = difflib.get_close_matches(meant, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""
