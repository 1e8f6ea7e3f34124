"""Matchings of the graphs of the case tables, and of real matrices."""

from __future__ import annotations

from tests import cases, test_real_matrices
from tests.distributed.ranks.checks import check_matching, some_of

LONG_PATHS = {"chain(5000)", "dead_end_ladder(2000)", "ladder(2000)", "rope(12000)"}
"""On these a search has so many levels that ranks with no core to themselves take minutes."""
SMALL_GRAPH = 150  # vertices and edges


def matching(comm):
    for case in cases.CASES:
        if sum(case.graph.shape) + case.graph.nnz <= SMALL_GRAPH:
            yield case.name
            check_matching(case.graph, case.size, comm)


def every_matching(comm, **how):
    for case in some_of(cases.CASES, comm):
        if case.name not in LONG_PATHS:
            yield case.name
            check_matching(case.graph, case.size, comm, **how)


def real(comm, **how):
    """The real matrices."""
    for name, rank in some_of(test_real_matrices.RANKS.items(), comm):
        yield name
        check_matching(test_real_matrices.graph_of(name).to_csr(bool), rank, comm, **how)


GROUPS = matching, every_matching, real
