"""What networkx reads of the backend, and its own tests and dispatch with it.

networkx finds backends among the installed distributions. So that these tests see this tree's
whatever is installed, `dispatching` puts the entry points of pyproject.toml on the path.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest
from networkx.algorithms import bipartite

from _gpumatch_networkx import get_info
from gpumatch.interop import networkx_backend as backend
from gpumatch.interop.networkx import NodeGraph
from tests import entry_points

ROOT = Path(__file__).parents[2]
PEERS = {
    name: getattr(bipartite, name, None) or getattr(nx, name)
    for name in backend.FUNCTIONS
    if name != "bipartite_min_edge_cover"
} | {"bipartite_min_edge_cover": bipartite.min_edge_cover, "min_edge_cover": nx.min_edge_cover}

# -- with networkx's own dispatch ------------------------------------------------------------------


@pytest.fixture
def dispatching(tmp_path):
    """Run a command of Python where networkx finds the backend of this tree."""
    entry_points.write_to(tmp_path)

    def run(*arguments, **environment):
        env = {**os.environ, **environment, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


COUNTING = """
import collections, json
from gpumatch.interop import networkx_backend as backend

CALLS, REFUSED = collections.Counter(), collections.Counter()

def counted(name, function):
    def call(*args, **kwargs):
        CALLS[name] += 1
        try:
            return function(*args, **kwargs)
        except NotImplementedError:
            REFUSED[name] += 1
            raise
    return call

def can_run(name, args, kwargs, ours=backend.can_run):
    said = ours(name, args, kwargs)
    REFUSED[name] += said is not True
    return said

backend.can_run = can_run
for name, function in (*backend.FUNCTIONS.items(), ("convert_from_nx", backend.convert_from_nx)):
    setattr(backend, name, counted(name, function))

def pytest_sessionfinish():
    with open("calls.json", "w") as file:
        json.dump([CALLS, +REFUSED], file)
"""
SUITES = [
    "networkx.algorithms.bipartite.tests.test_matching",
    "networkx.algorithms.tests.test_matching",
    "networkx.algorithms.tests.test_covering",
    "networkx.algorithms.bipartite.tests.test_covering",
    "networkx.algorithms.bipartite.tests.test_basic",
]


LEFT_OUT = ("not implemented by gpumatch", "with the given arguments")
"""How networkx says that it has left out a test: functions that are none of ours, or directions."""


@pytest.fixture
def tested(dispatching, tmp_path):
    """Run networkx's tests on the backend: their output, calls of functions, and refusals."""

    def run(fallback):
        (tmp_path / "counting.py").write_text(COUNTING)
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        said = dispatching(
            *("-m", "pytest", "-q", "-rxs", "-p", "counting", "-p", "no:cacheprovider"),
            *("-p", "no:xdist", "--pyargs", *SUITES),
            NETWORKX_TEST_BACKEND="gpumatch",
            NETWORKX_FALLBACK_TO_NX=fallback,
        )
        return said, *json.loads((tmp_path / "calls.json").read_text())

    return run


def test_the_tests_of_networkx_pass(tested):
    """All of them, as users call it: networkx itself does what the backend does not have.

    Of the functions here it does so in one test only, which asks for the sides of a directed graph.
    """
    said, calls, refused = tested("True")
    assert set(calls) == {*backend.FUNCTIONS, "convert_from_nx"}
    assert "XFAIL" not in said
    assert "SKIP" not in said
    assert refused == {"sets": 1, "color": 1}


@pytest.mark.long
def test_without_networkx_only_functions_of_others_are_missing(tested):
    said, calls, _ = tested("")
    assert set(calls) == {*backend.FUNCTIONS, "convert_from_nx"}
    expected_to_fail = [line for line in said.splitlines() if line.startswith("XFAIL")]
    assert expected_to_fail
    assert all(line.endswith(LEFT_OUT) for line in expected_to_fail), said
    of_ours = [line for line in expected_to_fail if any(f"'{n}'" in line for n in calls)]
    assert all("test_bipartite_sets_directed" in line for line in of_ours)
    of_matchings = [line for line in expected_to_fail if "TestBipartiteBasic" not in line]
    assert of_matchings == []


def test_importing_networkx_imports_nothing_of_ours(dispatching):
    said = dispatching("-c", "import networkx, sys; print(*sys.modules)").split()
    assert "_gpumatch_networkx" in said
    assert not [name for name in said if name.split(".")[0] in ("gpumatch", "numba", "scipy")]


CACHE = """
import networkx as nx
from gpumatch.interop.networkx import NodeGraph

made, of = [], NodeGraph.of.__func__
NodeGraph.of = classmethod(lambda cls, G, values=None: made.append(G) or of(cls, G, values))
nx.config.warnings_to_ignore.add("cache")

def conversions(function, *args, **kwargs):
    made.clear()
    function(*args, **kwargs)
    return sum(not isinstance(G, NodeGraph) for G in made)

G = nx.complete_bipartite_graph(40, 40)
match = nx.bipartite.hopcroft_karp_matching
print(conversions(match, G, backend="gpumatch"))  # once
print(conversions(match, G, backend="gpumatch"))  # kept
print(conversions(nx.bipartite.minimum_weight_full_matching, G, backend="gpumatch"))  # weights
print(conversions(match, G, backend="gpumatch"))  # those have the edges, too
G.add_edge(0, 80)
print(conversions(match, G, range(40), backend="gpumatch"))  # changed
nx.config.backend_priority.algos = ["gpumatch"]
print(conversions(nx.is_matching, G, {(0, 80)}))  # converted already
print(conversions(nx.is_matching, G.copy(), {(0, 80)}))  # left to networkx
print(conversions(match, nx.complete_bipartite_graph(40, 40)))
print(conversions(match, nx.complete_bipartite_graph(4, 4)))  # left to networkx
"""


def test_a_graph_is_converted_once_until_it_is_changed(dispatching):
    assert dispatching("-c", CACHE).split() == ["1", "0", "1", "0", "1", "0", "0", "1", "0"]


FALLBACK = """
import random
from decimal import Decimal
from fractions import Fraction
import networkx as nx

nx.config.warnings_to_ignore.add("cache")
draw = random.Random(1).randrange
weights = {
    "nanoseconds": lambda: 1_700_000_000_000_000_000 + draw(10**12),
    "beyond int64": lambda: 2**63 + draw(100),
    "thirds": lambda: Fraction(draw(100), 3),
    "decimals": lambda: Decimal(draw(100)) / 10,
}
calls = {
    "full": nx.bipartite.minimum_weight_full_matching,
    "max": nx.max_weight_matching,
    "min": nx.min_weight_matching,
}

def outcome(call, G, **how):
    try:
        found = call(G, **how)
        return sorted({tuple(sorted(edge)) for edge in dict(found).items()})
    except Exception as exc:
        return type(exc).__name__

for kind, weigh in weights.items():
    G = nx.complete_bipartite_graph(25, 25)
    nx.set_edge_attributes(G, {edge: weigh() for edge in G.edges}, "weight")
    for name, call in calls.items():
        by_networkx = outcome(call, G)
        with nx.config(backend_priority=["gpumatch"]):
            ours = outcome(call, G)
        named = outcome(call, G, backend="gpumatch")
        print(kind, name, len(by_networkx), ours == by_networkx, named, sep=", ")
"""


def test_refused_weights_fall_back_to_networkx(dispatching):
    lines = dispatching("-c", FALLBACK).splitlines()
    assert len(lines) == 12
    for line in lines:
        kind, _, size, is_same, named = line.split(", ")
        assert (is_same, named) == ("True", "NotImplementedError"), line
        assert int(size) == 25 or kind != "nanoseconds", line


TOURS = """
import logging
import networkx as nx
from networkx.algorithms.approximation import christofides

nx.config.warnings_to_ignore.add("cache")
G = nx.complete_graph(100)
x, y = ([v * v * v * k % 997 for v in G] for k in (1, 29))
lengths = {(u, v): abs(x[u] - x[v]) + abs(y[u] - y[v]) for u, v in G.edges}
nx.set_edge_attributes(G, lengths, "weight")
logging.getLogger("networkx").setLevel(logging.DEBUG)
logging.getLogger("networkx").addHandler(logging.FileHandler("calls.log"))
with nx.config(backend_priority=["gpumatch"]):
    tour = christofides(G)
print("Using backend 'gpumatch' for call to 'min_weight_matching'" in open("calls.log").read())
tree = nx.minimum_spanning_tree(G)
odd = G.subgraph(v for v, degree in tree.degree if degree % 2)
pairs = nx.min_weight_matching(odd)
most = tree.size("weight") + sum(G.edges[pair]["weight"] for pair in pairs)
print(sorted(tour[1:]) == sorted(G), nx.path_weight(G, tour, "weight") <= most)
"""


def test_what_builds_on_matchings_has_them(dispatching):
    """Christofides' tours are no longer than a least tree and a least matching of its odd nodes."""
    assert dispatching("-c", TOURS).split() == ["True"] * 3


# -- what networkx reads ---------------------------------------------------------------------------


def test_the_information_names_the_functions_there_are():
    info = get_info()
    assert set(info["functions"]) == set(backend.FUNCTIONS)
    assert info["backend_name"] == NodeGraph.__networkx_backend__


@pytest.mark.parametrize("name", backend.FUNCTIONS)
def test_signatures_are_those_of_networkx(name):
    of_networkx = inspect.signature(PEERS[name].orig_func).parameters.values()
    ours = inspect.signature(backend.FUNCTIONS[name]).parameters.values()
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in of_networkx]


ALONG_DIRECTIONS = [
    *("color", "eppstein_matching", "hopcroft_karp_matching", "minimum_weight_full_matching"),
    *("sets", "to_vertex_cover", "is_bipartite_node_set"),
]
SOON_DONE = [
    *("color", "edge_bfs", "is_bipartite", "is_bipartite_node_set", "is_edge_cover"),
    *("is_matching", "is_maximal_matching", "is_perfect_matching", "maximal_matching", "sets"),
]
DATA = nx.DiGraph([(0, 1)])
DATA.add_edge(1, 2, length=5)
MORE = {"to_vertex_cover": ({},), "is_bipartite_node_set": ({0},)}
REFUSED = [
    *((name, (nx.DiGraph([(0, 1)]), *MORE.get(name, ())), "directed") for name in ALONG_DIRECTIONS),
    ("minimum_weight_full_matching", (nx.MultiGraph([(0, 1)]),), "several weights"),
    ("transitive_closure", (nx.path_graph(4),), "directed"),
    ("transitive_closure", (nx.MultiDiGraph([(0, 1)]),), "simple"),
    ("transitive_closure", (DATA,), "data"),
    ("edge_bfs", (nx.path_graph(4),), "directed"),
    ("edge_bfs", (DATA, [0, 1]), "several"),
    ("edge_bfs", (DATA, 0, "reverse"), "orientation"),
    ("min_edge_cover", (nx.path_graph(4), lambda G: {}), "matching_algorithm"),
    ("bipartite_min_edge_cover", (nx.path_graph(4), lambda G: {}), "matching_algorithm"),
    ("bipartite_min_edge_cover", (nx.path_graph(4), nx.max_weight_matching), "one end"),
]


@pytest.mark.parametrize(("name", "args", "why"), REFUSED)
def test_what_it_cannot_do_it_says(name, args, why):
    said = backend.can_run(name, args, {})
    assert isinstance(said, str)
    assert why in said


@pytest.mark.parametrize("name", sorted({*backend.FUNCTIONS} - backend.CHAINS))
def test_it_can_run_on_a_bipartite_graph(name):
    more = {"matching": {}, "cover": set(), "nodes": {0}}
    wanted = inspect.signature(backend.FUNCTIONS[name]).parameters
    kwargs = {key: value for key, value in more.items() if key in wanted}
    G = nx.path_graph(4)
    G.add_edge(3, 3)  # a loop is in no matching
    assert backend.can_run(name, (), {"G": G, **kwargs}) is True


def test_small_graphs_and_quick_checks_are_left_to_networkx():
    small, large = nx.path_graph(9), nx.path_graph(2000)
    assert "small" in backend.should_run("hopcroft_karp_matching", (small,), {})
    assert backend.should_run("hopcroft_karp_matching", (large,), {}) is True
    for name in backend.FUNCTIONS:
        more = [set()] * (len(inspect.signature(backend.FUNCTIONS[name]).parameters) > 1)
        said = backend.should_run(name, (large, *more), {})
        assert ("done before" in str(said)) == (name in SOON_DONE)
    assert "graph of this backend" in backend.should_run("transitive_closure", (large,), {})
    least = nx.path_graph(backend.FEW_EDGES + 1)
    assert backend.should_run("hopcroft_karp_matching", (least,), {}) is True
    least.remove_edge(0, 1)
    assert "small" in backend.should_run("hopcroft_karp_matching", (least,), {})
    small.__networkx_cache__ = {"backends": {"another": {"key": small}}}
    assert "small" in backend.should_run("hopcroft_karp_matching", (small,), {})
    small.__networkx_cache__ = {"backends": {"gpumatch": {"key": small}}}
    assert backend.should_run("hopcroft_karp_matching", (small,), {}) is True


@pytest.mark.parametrize("name", ["eppstein_matching", "hopcroft_karp_matching"])
def test_covers_by_an_algorithm_that_it_has(name):
    given = nx.path_graph(4), getattr(nx.bipartite, name)
    assert backend.can_run("bipartite_min_edge_cover", given, {}) is True
