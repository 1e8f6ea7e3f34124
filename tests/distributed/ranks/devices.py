"""Matchings and assignments with a GPU a rank; two ranks share one if there are no two."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import gpumatch
import graphs
from gpumatch import distributed
from gpumatch.cuda.assignment.dense import rows as dense_rows
from gpumatch.cuda.assignment.dense import tuning
from gpumatch.distributed import searches
from gpumatch.distributed.communicator import even_starts
from graphs import costs as families
from tests.cpu.assignment.tuned import tuned
from tests.distributed.ranks import assignments, matchings, papers
from tests.distributed.ranks.assignments import wishes_of_matrices
from tests.distributed.ranks.checks import check_assignment, check_matching, share
from tests.distributed.ranks.cores import cores_of_lists, cores_of_matrices, given_up
from tests.distributed.ranks.errors import faults, limits
from tests.distributed.ranks.messages import collectives
from tests.distributed.ranks.papers import PAPER_STEPS


def devices(comm):
    """The engine with a GPU a rank; blocks come from the host and from the GPU."""
    import cupy

    yield "collectives"
    yield from device_collectives(comm, cupy)
    yield from wishes_of_matrices(comm, backend="cuda")
    with mock.patch.object(searches, "FEW_ROWS", 0):
        yield from wishes_of_matrices(comm, backend="cuda")
        with tuned(tuning, again=2, more=1):
            yield from cores_of_matrices(comm, backend="cuda")
    for algorithm in PAPER_STEPS:
        for dtype in (np.int32, np.float32):
            for shape in ((20, 20), (15, 20), (20, 15)):
                yield f"{algorithm} {dtype} {shape}"
                costs = np.random.default_rng(2).integers(0, 99, shape).astype(dtype)
                check_assignment(costs, comm, algorithm, backend="cuda")
    costs = families.make("uniform_float", 300, 400, seed=1).astype(np.float32)
    block = share(costs, comm)
    best = gpumatch.assign(costs, backend="cpu").objective
    for given in (block, cupy.asarray(block)):
        yield f"a block of {type(given)}"
        a = distributed.assign(given, comm=comm, backend="cuda")
        assert a.stats["backend"] == "cuda"
        assert a.objective == pytest.approx(best, rel=1e-6)
        assert distributed.verify(given, a, comm=comm).objective == a.objective


def lists_on_devices(comm):
    """Sparse costs, the largest assignments, and batches."""
    how = {"backend": "cuda"}
    with mock.patch.object(searches, "FEW_ROWS", 0):
        with tuned(tuning, again=2, more=1):
            yield from cores_of_lists(comm, **how)
        yield from assignments.wishes(comm, **how)
        yield from assignments.largest(comm, **how)
    yield from assignments.batches(comm, **how)


def given_up_on_devices(comm):
    with (
        mock.patch.object(searches, "FEW_ROWS", 0),
        tuned(tuning, again=2, more=1),
    ):
        yield from given_up(comm, backend="cuda")


def trees_on_devices(comm):
    """Trees on the GPUs for all dense costs. Ranks that share a GPU take turns at each level."""
    with mock.patch.object(searches, "FEW_ROWS", 2**31):
        most = 500 if comm.size == 1 else 40
        yield from assignments.every_assignment(comm, most, backend="cuda")
        for shape in ((300, 300), (200, 500)):
            for dtype in (np.int64, np.float32):
                for wish in ({}, {"cardinality": "any", "cost_limit": 30}):
                    yield f"trees, {shape}, {dtype}, {wish}"
                    costs = families.make("uniform_integer", *shape, seed=1).astype(dtype)
                    a = check_assignment(costs, comm, backend="cuda", **wish)
                    assert a.stats["solved_by"] == "trees on GPUs"
                    assert a.stats["levels"] > 1


def blocks_on_devices(comm):
    """The largest assignments of blocks that are there already, and their proofs there."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    dense_rows.use_own_device(comm.rank)
    rng = np.random.default_rng(4)
    for shape in ((300, 400), (400, 300)):
        costs = csr_array(random_array(shape, density=0.03, rng=rng).astype(np.float32))
        own = csr_array(share(costs, comm))
        parts = [cupy.asarray(part) for part in (own.data, own.indices, own.indptr)]
        for block in (csr_matrix(tuple(parts), shape=own.shape), holed(own, cupy)):
            for limit in (None, 0.5):
                yield f"the largest of {shape}, {type(block)}, {limit}"
                wish = {"cardinality": "maximum", "cost_limit": limit}
                a = distributed.assign(block, comm=comm, backend="cuda", **wish)
                given = gpumatch.assign(costs, **wish, backend="cpu")
                assert a.size == given.size
                assert a.objective == pytest.approx(given.objective, rel=1e-6)
                assert distributed.verify(block, a, comm=comm).objective == a.objective


def holed(costs, cupy):
    """The same as a matrix on the device."""
    values = cupy.full(costs.shape, np.inf, costs.dtype)
    rows = np.repeat(np.arange(costs.shape[0]), np.diff(costs.indptr))
    values[cupy.asarray(rows), cupy.asarray(costs.indices)] = cupy.asarray(costs.data)
    return values


def graphs_on_devices(comm):
    """Matchings with a GPU a rank, of blocks on the host and there."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    for name, size in (
        ("ladder", 90),
        ("rope", 200),
        ("trace", 60),
        ("hexa", 300),
        ("delaunay", 9),
    ):
        yield f"matching of {name}"
        graph = csr_array(graphs.make(name, size, seed=2))
        size = gpumatch.maximum_matching(graph, backend="cpu").size
        check_matching(graph, size, comm, "cuda")
    for seed in range(12):
        yield f"matching of a random graph, {seed}"
        shape = np.random.default_rng(seed).integers(1, 400, 2).tolist()
        graph = csr_array(random_array(shape, density=1.5 / max(shape), rng=seed))
        size = gpumatch.maximum_matching(graph, backend="cpu").size
        check_matching(graph, size, comm, "cuda")
        own = csr_array(share(graph, comm)).astype(np.float32)
        arrays = [cupy.asarray(part) for part in (own.data, own.indices, own.indptr)]
        check_matching(graph, size, comm, "cuda", csr_matrix(tuple(arrays), shape=own.shape))
        with pytest.raises(ValueError, match="block: it is on a GPU: pass backend='cuda'"):
            distributed.maximum_matching(csr_matrix(tuple(arrays), shape=own.shape), comm=comm)
    yield "matching in no time"
    found = distributed.maximum_matching(
        share(graph, comm), comm=comm, backend="cuda", time_limit=0
    )
    assert not found.proven


def every_matching_on_devices(comm):
    yield from matchings.every_matching(comm, backend="cuda")


def real_on_devices(comm):
    yield from matchings.real(comm, backend="cuda")


def every_assignment_on_devices(comm):
    yield from assignments.every_assignment(comm, backend="cuda")


def every_paper_on_devices(comm):
    yield from papers.every_paper(comm, backend="cuda")


def ends_on_devices(comm):
    """What is wrong on one rank, and what stops a search."""
    yield from faults(comm, backend="cuda")
    yield from limits(comm, backend="cuda")


def device_collectives(comm, cupy):
    """The communicator with arrays of CuPy, each on a GPU of its own if there are as many."""
    dense_rows.use_own_device(comm.rank)
    yield from collectives(comm, cupy)


def more_than_two_to_the_32(comm):
    """A graph of 4.4 billion edges, made where it is matched, and its proof."""
    import cupy

    degree, rows = 33, 2**27
    stride = rows // degree

    def made(begin, end):
        row = cupy.arange(begin, end, dtype=np.uint64)
        indices = cupy.empty((end - begin, degree), np.int32)
        for k in range(degree):
            mixed = (row * np.uint64(degree) + np.uint64(k)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0xBF58476D1CE4E5B9)
            indices[:, k] = k * stride + ((mixed >> np.uint64(32)) % np.uint64(stride)).astype(
                np.int32
            )
        indptr = cupy.arange(end - begin + 1, dtype=np.int64) * degree
        return indptr, indices.ravel(), (end - begin, rows)

    yield "a matching"
    first, last = even_starts(rows, comm.size)[[comm.rank, comm.rank + 1]].tolist()
    cupy.cuda.Device(comm.rank % cupy.cuda.runtime.getDeviceCount()).use()
    block = made(first, last)
    m = distributed.maximum_matching(block, comm=comm, backend="cuda")
    certificate = distributed.verify(block, m, comm=comm)
    assert certificate.edges == rows * degree > 2**32
    assert certificate.size == m.size > 0.999 * rows
    if comm.rank == 0:
        print(m, m.stats["seconds"], m.stats["start_size"], len(m.stats["trace"]))


GROUPS = (
    *(devices, graphs_on_devices, lists_on_devices, blocks_on_devices, given_up_on_devices),
    trees_on_devices,
    *(ends_on_devices, more_than_two_to_the_32, every_matching_on_devices, real_on_devices),
    *(every_assignment_on_devices, every_paper_on_devices),
)
