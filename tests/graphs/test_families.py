"""What every family promises: form, seeds, shapes, symmetry, planarity, known sizes."""

from __future__ import annotations

import re
from typing import NamedTuple

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

import graphs


class Case(NamedTuple):
    name: str
    parameters: tuple[float, ...]
    shape: tuple[int, int] | None = None  # None where it is random

    @property
    def has_known_size(self) -> bool:
        return graphs.FAMILIES[self.name].size is not None

    def __str__(self) -> str:
        return f"{self.name}{self.parameters}"


CASES = [
    *(Case("delaunay", (k,), (1 << k, 1 << k)) for k in (2, 6, 10)),
    *(Case("rgg", (k,), (1 << k, 1 << k)) for k in (1, 6, 10)),
    *(Case("kron", (k,), (1 << k, 1 << k)) for k in (0, 5, 9)),
    *(Case("grid", (k, 0.65), (k * k, k * k)) for k in (1, 10, 40)),
    *(Case("trace", (k, 4)) for k in (1, 12, 40)),
    *(Case("bubbles", (k, 5)) for k in (2, 12, 40)),
    *(Case("road", (k,)) for k in (1, 6, 20)),
    *(Case("uniform", (n, 3), (n, n)) for n in (1, 40, 1000)),
    Case("uniform", (300, 4, 20), (300, 20)),
    *(Case("lopsided", (n, 17), (n, 17)) for n in (1, 60, 2000)),
    *(Case("fewg", (32 * size,), (32 * size, 32 * size)) for size in (1, 5, 30)),
    *(Case("manyg", (256 * size,), (256 * size, 256 * size)) for size in (1, 3, 8)),
    *(Case("hilo", (k, 3, 4), (3 * k, 3 * k)) for k in (1, 7, 200)),
    *(Case("rope", (n,), (n, n)) for n in (1, 50, 300)),
    *(Case("hexa", (n,), (n, n)) for n in (3, 50, 900)),
    *(Case("zipf", (n,), (n, n)) for n in (2, 50, 900)),
    *(Case("chain", (n,), (n, n)) for n in (1, 2, 500)),
    *(Case("ladder", (levels,), (2 * levels + 1, 2 * levels + 1)) for levels in (1, 6, 300)),
    Case("ladder", (50, 5), (251, 251)),
    # SciPy needs 2**levels steps here.
    *(Case("dead_end_ladder", (n,), (5 * n + 1, 5 * n + 1)) for n in (1, 5, 12)),
    *(Case("stars", (count, 6), (count, 6 * count)) for count in (0, 1, 80)),
    Case("stars", (9, 0), (9, 0)),
    *(Case("complete", (n,), (n, n)) for n in (0, 1, 30)),
    *(Case("complete", (n, 5), (n, 5)) for n in (0, 3, 30)),
    Case("complete", (5, 0), (5, 0)),
    *(Case("empty", (n, 7), (n, 7)) for n in (0, 1, 30)),
]
SYMMETRIC = {"delaunay", "rgg", "kron", "grid", "trace", "bubbles", "road"}
PLANAR = {"delaunay", "grid", "trace", "bubbles", "road"}

every_case = pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.name}{case.parameters}"
)


def make(case: Case, seed: int = 0, rcp: bool = False) -> csr_array:
    return graphs.make(case.name, *case.parameters, seed=seed, rcp=rcp)


def same(a: csr_array, b: csr_array) -> bool:
    return a.shape == b.shape and (a != b).nnz == 0


def test_three_sizes_of_every_family() -> None:
    for name in graphs.FAMILIES:
        assert sum(case.name == name for case in CASES) >= 3, name


@every_case
def test_canonical_pattern(case: Case) -> None:
    graph = make(case)
    assert isinstance(graph, csr_array)
    assert graph.dtype == bool
    assert graph.data.all()
    assert graph.indices.dtype == graph.indptr.dtype == np.int32
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    within_row = np.diff(rows) == 0
    assert (np.diff(graph.indices)[within_row] > 0).all()
    if case.shape:
        assert graph.shape == case.shape


@every_case
def test_seed_fixes_the_graph(case: Case) -> None:
    graph = make(case, seed=7)
    assert same(graph, make(case, seed=7))
    if not graphs.FAMILIES[case.name].seeded:
        assert same(graph, make(case, seed=8))


@pytest.mark.parametrize("name", [n for n, family in graphs.FAMILIES.items() if family.seeded])
def test_another_seed_gives_another_graph(name: str) -> None:
    largest = [case for case in CASES if case.name == name][2]
    assert not same(make(largest, seed=1), make(largest, seed=2))


@pytest.mark.parametrize("case", [case for case in CASES if case.name in SYMMETRIC], ids=str)
def test_adjacency_is_symmetric_and_has_no_loops(case: Case) -> None:
    graph = make(case)
    assert same(graph, graph.T.tocsr())
    assert not graph.diagonal().any()


@pytest.mark.parametrize("case", [case for case in CASES if case.name in PLANAR], ids=str)
def test_planar(case: Case) -> None:
    planar, _ = nx.check_planarity(nx.from_scipy_sparse_array(make(case)))
    assert planar


def scipys_size(graph: csr_array) -> int:
    return int(np.sum(maximum_bipartite_matching(graph) >= 0))


@pytest.mark.parametrize("case", [case for case in CASES if case.has_known_size], ids=str)
@pytest.mark.parametrize("rcp", [False, True])
def test_size_known_by_construction(case: Case, rcp: bool) -> None:
    size = graphs.matching_size(case.name, *case.parameters)
    assert scipys_size(make(case, seed=3, rcp=rcp)) == size


@pytest.mark.parametrize("case", [case for case in CASES if not case.has_known_size], ids=str)
def test_size_of_the_others_depends_on_the_seed_and_on_no_numbering(case: Case) -> None:
    """Some sizes are known by seed: `tests.cases.GENERATED`."""
    assert graphs.matching_size(case.name, *case.parameters) is None
    graph, permuted = make(case, seed=3), make(case, seed=3, rcp=True)
    assert scipys_size(graph) == scipys_size(permuted)
    assert (scipys_size(graph) > 0) == (graph.nnz > 0)


@every_case
def test_permutation_keeps_degrees(case: Case) -> None:
    graph, permuted = make(case), make(case, rcp=True)
    for axis in (0, 1):
        degrees = [np.sort(g.count_nonzero(axis=axis)) for g in (graph, permuted)]
        np.testing.assert_array_equal(*degrees)


def test_permutation_relabels_rows_and_columns_apart() -> None:
    path = graphs.grid(30)
    permuted = graphs.rcp(path, seed=1)
    assert not same(permuted, permuted.T.tocsr())
    assert not same(permuted, graphs.rcp(path, seed=2))
    assert same(permuted, graphs.rcp(path, seed=1))
    # Isomorphic: common neighbours of two rows do not depend on the columns' numbers.
    overlaps = [np.sort((g.astype(int) @ g.T.astype(int)).data) for g in (path, permuted)]
    np.testing.assert_array_equal(*overlaps)


@pytest.mark.parametrize("name", graphs.FAMILIES)
def test_docstring_explains_every_parameter(name: str) -> None:
    family = graphs.FAMILIES[name]
    documented = family.generate.__doc__.partition("Parameters\n")[2]
    for parameter in family.parameters:
        assert re.search(rf"^ *(\w+, )?{parameter}(, \w+)? : ", documented, re.M), parameter


def test_unknown_family() -> None:
    with pytest.raises(ValueError, match=r"unknown family 'mesh'.*delaunay"):
        graphs.make("mesh", 3)
    with pytest.raises(ValueError, match="unknown family"):
        graphs.matching_size("mesh", 3)
