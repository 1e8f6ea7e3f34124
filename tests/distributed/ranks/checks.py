"""What the tests check of a result on all ranks, beside what `distributed.verify` does."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gpumatch
from gpumatch import distributed
from tests.assignment_checks import check_limit
from tests.distributed.shares import starts_of


def share(matrix, comm, seed=0):
    """This rank's rows; how many differs from rank to rank, and may be none."""
    starts = starts_of(matrix.shape[0], comm.size, seed)
    return matrix[starts[comm.rank] : starts[comm.rank + 1]]


def some_of(cases, comm):
    """All cases, except that three ranks take every second one, and two or four ranks the others.

    Several ranks take the time of several cores, and those without a core wait for each other.
    """
    first, step = {2: (1, 2), 3: (0, 2), 4: (1, 2)}.get(comm.size, (0, 1))
    return list(cases)[first::step]


def check_matching(graph, size, comm, backend="cpu", block=None):
    block = share(graph, comm) if block is None else block
    matching = distributed.maximum_matching(block, comm=comm, backend=backend)
    assert (matching.size, matching.proven) == (size, True)
    assert matching.stats["backend"] == backend
    certificate = distributed.verify(block, matching, comm=comm)
    assert (certificate.size, certificate.edges) == (size, graph.nnz)
    rows, cols = (
        np.concatenate(comm.allgather(part)) for part in (matching.row_ind, matching.col_ind)
    )
    assert rows.size == size == np.unique(rows).size == np.unique(cols).size
    assert matching.shape == graph.shape
    assert (rows.dtype, cols.dtype) == (np.int64, np.int64)
    found = sum(phase["found"] for phase in matching.stats["trace"])
    assert matching.stats["start_size"] + found == size
    edges = tuple(phase.get("edges") for phase in matching.stats["trace"])
    assert set(comm.allgather(edges)) == {edges}  # those of all ranks


def worth(a):
    """What is least: a pair at the limit, which may be made or not, counts nothing."""
    return a.objective - ((a.cost_limit or 0) * a.size if is_free(a) else 0)


def is_free(a):
    """Whether a row may go without a column at a price."""
    return a.cardinality == "any" or (a.cardinality == "full" and a.cost_limit is not None)


SHARED = ("col_to_row", "col_dual", "objective", "gap", "maximize", "cardinality", "cost_limit")


def check_assignment(costs, comm, algorithm="auto", backend="cpu", **wish):
    block = share(costs, comm)
    given = gpumatch.assign(costs, **wish)
    a = distributed.assign(block, comm=comm, algorithm=algorithm, backend=backend, **wish)
    assert a.proven
    assert type(a.objective) is type(given.objective)
    assert worth(a) == pytest.approx(worth(given), rel=0 if isinstance(a.objective, int) else 1e-9)
    assert a.size == given.size or is_free(a)
    certificate = distributed.verify(block, a, comm=comm)
    assert certificate.objective == a.objective
    assert (a.row_ind.dtype, a.col_ind.dtype) == (np.int64, np.int64)
    whole = SimpleNamespace(
        row_to_col=np.concatenate(comm.allgather(a.row_to_col)),
        row_dual=np.concatenate(comm.allgather(a.row_dual)),
        **{name: getattr(a, name) for name in SHARED},
    )
    if a.cover is not None:
        rows = np.concatenate(comm.allgather(a.cover[0]))
        whole.vertex_cover = lambda: (np.flatnonzero(rows), np.flatnonzero(a.cover[1]))
    whole.row_ind = np.flatnonzero(whole.row_to_col >= 0)
    whole.col_ind = whole.row_to_col[whole.row_ind]
    assert gpumatch.verify(costs, whole).objective == a.objective  # the checker for one place
    assert sum(comm.allgather(a.pair_costs.sum())) == pytest.approx(float(a.objective))
    if a.cost_limit is not None:
        check_limit(costs, whole, a.cost_limit)
    return a


def raises_everywhere(comm, kind, pattern, run):
    """All ranks raise the same, and then work together again."""
    with pytest.raises(kind, match=pattern) as caught:
        run()
    texts = comm.allgather(str(caught.value))
    assert len(set(texts)) == 1, texts
