"""The searches by themselves: any patience and budget, crowded heaps, and planted faults."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.certificates import CertificateError
from gpumatch.contracts.general_weights import GeneralWeightStart, GeneralWeightTask
from gpumatch.cpu.general.weights import blossoms, engine, search, seats, start, state
from gpumatch.dispatch import registry
from gpumatch.general.graph import weighted_of
from gpumatch.running.control import Control
from tests.general_graphs import chain_of_triangles, complete, factor_critical, flowers
from tests.general_weights import random_small

GRAPHS = {
    "small": lambda rng: random_small(150, rng, 12, 1000).source,
    "dense": lambda rng: weighed(complete(41), rng),
    "ears": lambda rng: weighed(factor_critical(80, rng, 5), rng),
    "triangles": lambda rng: weighed(chain_of_triangles(60), rng),
    "flowers": lambda rng: weighed(flowers(2, 5), rng),
    "plane": lambda rng: points(300, 8, rng),
}


def weighed(edges, rng):
    return edges, rng.integers(0, 100, len(edges))


def points(n, k, rng):
    """The k nearest neighbours of points, by negative distances: many blossoms expand."""
    places = rng.random((n, 2))
    distances = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    near = np.argsort(distances, axis=1)[:, 1 : k + 1]
    edges = np.stack([np.repeat(np.arange(n), k), near.ravel()], axis=1)
    return edges, -np.rint(1000 * distances[edges[:, 0], edges[:, 1]]).astype(np.int64)


def task_of(source, cardinality):
    graph = weighted_of(source)
    largest = int(abs(graph.weights).max())
    level = 0 if cardinality == "any" else -(graph.order * largest + 2)
    arrays = graph.indptr.astype(np.int64), graph.indices, graph.weights
    return GeneralWeightTask(*arrays, level, Control())


def check(task, solution):
    """The inequalities and the equalities of the contract, edge by edge."""
    n, mate, dual = task.indptr.size - 1, solution.mate, solution.vertex_dual
    assert solution.is_optimal
    assert (dual >= task.level).all()
    assert (dual[mate < 0] == task.level).all()
    owners = np.repeat(np.arange(n), np.diff(task.indptr))
    cover = dual[owners] + dual[task.indices]
    vertices, begins, ends, duals = solution.odd_sets
    assert (duals > 0).all()
    for begin, end, z in zip(begins, ends, duals):
        is_in = np.zeros(n, bool)
        is_in[vertices[begin:end]] = True
        assert (end - begin) % 2 == 1
        assert np.count_nonzero(is_in[mate[is_in]] & (mate[is_in] >= 0)) == end - begin - 1
        cover[is_in[owners] & is_in[task.indices]] += z
    slack = cover - 2 * task.weights
    assert (slack >= 0).all()
    is_pair = mate[owners] == task.indices
    assert (slack[is_pair] == 0).all()
    assert np.count_nonzero(is_pair) == np.count_nonzero(mate >= 0)


@pytest.mark.parametrize("cardinality", ["any", "maximum"])
@pytest.mark.parametrize("name", GRAPHS)
def test_any_patience_and_any_budget(name, cardinality, monkeypatch):
    """Searches that are given up, paused or never so, return the same total."""
    task = task_of(GRAPHS[name](np.random.default_rng(3)), cardinality)
    totals = set()
    for first, factor, budget in ((128, 4, 2**21), (1, 2, 2**21), (2**40, 2, 1), (16, 3, 50)):
        monkeypatch.setattr(engine, "FIRST", first)
        monkeypatch.setattr(engine, "FACTOR", factor)
        solution = engine.run(task, budget)
        check(task, solution)
        owners = np.repeat(np.arange(task.indptr.size - 1), np.diff(task.indptr))
        totals.add(int(task.weights[solution.mate[owners] == task.indices].sum()))
    assert len(totals) == 1


def test_blossoms_are_made_and_expanded(monkeypatch):
    """The graphs of these tests reach every step of a search, if that has patience enough."""
    monkeypatch.setattr(engine, "FIRST", 2**40)
    solution = engine.run(task_of(GRAPHS["plane"](np.random.default_rng(3)), "maximum"))
    assert min(solution.stats[name] for name in ("searches", "shrunk", "expanded")) > 20
    assert solution.odd_sets.begin.size > 10
    sizes = solution.odd_sets.end - solution.odd_sets.begin
    assert sizes.max() > 9  # nested ones


def test_a_heap_that_is_too_small_grows(monkeypatch):
    task = task_of(GRAPHS["plane"](np.random.default_rng(4)), "maximum")
    made, codes = state.new_work, []

    def small(n, nnz):
        keys, heap, *rest = made(n, nnz)
        return keys[: nnz + 2 * n + 20], heap[: nnz + 2 * n + 20], *rest

    solve = engine.solve

    def watched(*args):
        codes.append(solve(*args))
        return codes[-1]

    monkeypatch.setattr(engine, "new_work", small)
    monkeypatch.setattr(engine, "solve", watched)
    check(task, engine.run(task))
    assert search.CROWDED in codes


def test_a_run_returns_to_python(monkeypatch):
    """No call looks at many more edges than the budget, and one vertex's."""
    task = task_of(GRAPHS["dense"](np.random.default_rng(5)), "maximum")
    ticks = []
    task.control.tick = lambda edges: ticks.append(edges)
    engine.run(task, 100)
    assert len(ticks) > 20


# -- planted faults --------------------------------------------------------------------------------

FAULTS = [
    (blossoms, "settle", "if count & 1:", "if not count & 1:"),
    (blossoms, "unfold", "1 if place & 1 == 0 else -1", "1"),
    (blossoms, "unfold", "FREE, time - distance", "FREE, 0"),
    (blossoms, "unfold", "nodes[child].dual += 2 * (distance - time)", "pass"),
    (blossoms, "_part", "nodes[vertex].top = child", "pass"),
    (blossoms, "shrink", "nodes[child].dual += 2 * distance", "pass"),
    (search, "_shrink", "nodes[child].dual -= 2 * shift", "pass"),
    (search, "_enter", "nodes[vertex].dual += shift + distance", "nodes[vertex].dual += distance"),
    (search, "_expand", "range(1, steps, 2)", "range(1, steps, 4)"),
    (search, "close", "nodes[node].dual -= 2 * shift", "pass"),
    (search, "_turn", "nodes[inner].base = x", "pass"),
    (search, "_grow", "nodes[node].time += distance", "nodes[node].time = 0"),
]


SOURCES = [points(n, 8, np.random.default_rng(1)) for n in (60, 150, 250)]
SOURCES.append(weighed(factor_critical(60, np.random.default_rng(1), 5), np.random.default_rng(1)))


@pytest.fixture
def as_python(monkeypatch):
    """Have the engine use the functions of a search as Python, one of them with a fault."""

    def use(*fault):
        monkeypatch.setattr(engine, "FIRST", 2**40)
        monkeypatch.setattr(engine, "new_nodes", lambda n: tuple(map(Records, state.new_nodes(n))))
        parts = _as_python(*fault)
        for name in ("greedy", "solve", "write_sets"):
            monkeypatch.setattr(engine, name, parts[name])

    return use


def test_as_python_all_is_well(as_python):
    as_python()
    for source in SOURCES:
        task = task_of(source, "maximum")
        check(task, engine.run(task))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault[1]}: {fault[2]}")
def test_planted_faults_are_seen(fault, as_python):
    """`verify` rejects what the search returns, or it does not return."""
    as_python(*fault)
    for source in SOURCES:
        try:
            gm.verify(source, gm.general.maximum_weight_matching(source, cardinality="maximum"))
        except (CertificateError, RuntimeError, IndexError, Stuck):
            return
    pytest.fail("nobody has seen the fault")


class Records:
    """Records that Python code reads and writes by attributes, as Numba's does."""

    def __init__(self, array):
        self.array = array

    def __getitem__(self, key):
        return self.array[key] if isinstance(key, str) else Record(self.array, key)


class Record:
    def __init__(self, array, place):
        vars(self).update(_array=array, _place=place)

    def __getattr__(self, name):
        return int(self._array[name][self._place])

    def __setattr__(self, name, value):
        self._array[name][self._place] = value


class Stuck(Exception):
    """A loop that does not end."""


def _as_python(*fault):
    """The kernels of a search as Python functions, with a fault in one of them."""
    names: dict = {}
    for module in (state, seats, blossoms, search, start):
        for key, value in vars(module).items():
            names.setdefault(key, value)
    from gpumatch.cpu.searches import heap

    sources = []
    for module in (heap, state, seats, blossoms, search, start):
        for key, value in vars(module).items():
            function = getattr(value, "py_func", None)
            if function is None or function.__module__ != module.__name__:
                continue
            text = textwrap.dedent(inspect.getsource(function)).replace("@kernel\n", "")
            if fault[:2] == (module, key):
                assert fault[2] in text, "the fault is not in the source any more"
                text = text.replace(fault[2], fault[3])
            sources.append(_bounded(text))
    names["_steps"] = iter(range(6 * 10**4))
    names["Stuck"] = Stuck
    names["_step"] = lambda: next(names["_steps"], None)
    exec("\n".join(sources), names)
    return names


def _bounded(text):
    """The source with a count in each endless loop, so that a fault cannot make it one."""
    lines = []
    for line in text.splitlines():
        lines.append(line)
        bare = line.strip()
        if bare.startswith("while "):
            space = " " * (len(line) - len(line.lstrip()) + 4)
            lines.append(f"{space}if _step() is None:")
            lines.append(f"{space}    raise Stuck")
    return "\n".join(lines)


def test_the_registry_leads_here():
    assert (
        registry.load(registry.table("general-weights")["engine"].homes["cpu"].function)
        is engine.run
    )


@pytest.mark.parametrize("cardinality", ["any", "maximum"])
@pytest.mark.parametrize("name", GRAPHS)
def test_any_start_leads_to_the_same_total(name, cardinality):
    """Duals and mates of the optimum, near it, and at random, which may even be no matching."""
    rng = np.random.default_rng(5)
    task = task_of(GRAPHS[name](rng), cardinality)
    n = task.indptr.size - 1
    owners = np.repeat(np.arange(n), np.diff(task.indptr))
    best = engine.run(task)
    largest = 2 * int(abs(task.weights).max())
    alone = best.vertex_dual + largest * (best.odd_sets.begin.size > 0)
    starts = [
        (best.mate, best.vertex_dual),
        (best.mate, alone + rng.random(n) - 0.5),
        (np.full(n, -1, np.int32), np.full(n, -np.inf)),
        (rng.integers(-1, n, n).astype(np.int32), rng.integers(-largest, largest, n)),
        (rng.permutation(n).astype(np.int32), np.full(n, 2.0**80)),
    ]
    paid = task.weights[best.mate[owners] == task.indices].sum()
    searches = []
    for one in starts:
        found = engine.run(dataclasses.replace(task, start=GeneralWeightStart(*one)))
        check(task, found)
        assert task.weights[found.mate[owners] == task.indices].sum() == paid
        searches.append(found.stats["searches"])
    if not best.odd_sets.begin.size:
        assert searches[0] == 0
