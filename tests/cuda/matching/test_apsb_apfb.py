"""The paper's kernels on the device, one by one, against what reference/deveci2013.py allows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from gpumatch import BipartiteGraph, maximum_matching, verify
from gpumatch.contracts import MatchingTask
from gpumatch.reference import deveci2013 as reference
from tests.bfs_levels import BfsState, check_bfs_level
from tests.cuda.pools import fresh_pool, room_left

pytestmark = pytest.mark.gpu

LOOPS = pytest.mark.parametrize("host_loop", ["batch", "level"])
VARIANTS = ["apfb-gpubfs", "apfb-gpubfs-wr", "apsb-gpubfs", "apsb-gpubfs-wr"]


class FreeRun:
    """A control that never stops."""

    def tick(self, matched):
        return False

    def phase(self, **numbers):
        pass


def uniform(nrows, ncols, degree, seed):
    return sp.random_array((nrows, ncols), density=degree / ncols, rng=seed, format="csr")


def half_matched(graph, seed):
    """Mates of a greedy matching, every third pair of it undone."""
    mates = np.full(graph.nrows, -1, np.int32), np.full(graph.ncols, -1, np.int32)
    reference.cheap(MatchingTask(graph, *mates, FreeRun(), seed=seed))
    undone = np.flatnonzero(mates[0] >= 0)[::3]
    mates[1][mates[0][undone]] = -1
    mates[0][undone] = -1
    return mates


def search_on_device(A, variant, launch="ct", seed=0):
    """A search on the device in the middle of a run, with its graph on the host."""
    import cupy as cp

    from gpumatch.cuda.matching.apsb_apfb import VARIANTS, ScannedPhases

    graph = BipartiteGraph(A)
    mates = half_matched(graph, seed)
    device = graph.to_device()
    return graph, ScannedPhases(device, *map(cp.asarray, mates), VARIANTS[variant], launch)


def run_level(search, step):
    """Launch one level's kernel of a batch."""
    from gpumatch.cuda.matching.apsb_apfb import _instance

    if step == 0:
        search.kernels["next_batch"]((1,), (256,), (search.board.state,))
    kernel = search.kernels[_instance("gpubfs_kernel", "{Offset}", *search.variant)]
    arguments = search.search_struct(), search.board.state, np.int32(step)
    kernel(search.col_grid, (256,), arguments)


def state_of(search):
    root = search.root.get() if search.variant.roots else None
    arrays = (search.levels, search.row_to_col, search.predecessor)
    return BfsState(*(a.get() for a in arrays), root)


@pytest.mark.parametrize("launch", ["ct", "mt"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", [(400, 300), (300, 400), (60, 2_000)])
def test_every_level_is_one_that_the_reference_allows(variant, launch, shape):
    for seed in range(5):
        graph, search = search_on_device(uniform(*shape, 3, seed), variant, launch, seed)
        start = search.variant.start_level
        search.predecessor.fill(-7)
        search.init_bfs_array()
        free = graph_free_columns(search)
        assert np.array_equal(search.levels.get(), np.where(free, start, start - 1))
        if search.variant.roots:
            assert np.array_equal(search.root.get(), np.where(free, np.arange(graph.ncols), 0))
        for step in range(8):
            before = state_of(search)
            run_level(search, step)
            after = state_of(search)
            search.board.look()
            inserted, found = search.board.seen["inserted"], search.board.seen["found"]
            is_over = step and (
                not inserted[step - 1] or (search.variant.shortest and found[step - 1])
            )
            if is_over:
                for wanted, got in zip(before, after):
                    np.testing.assert_array_equal(wanted, got)  # a level past the end does nothing
                break
            level = start + step
            csr = graph.col_indptr, graph.col_indices
            check_bfs_level(level, before, after, *csr, l0=start)
            assert bool(inserted[step]) == bool((after.bfs_array == level + 1).any())
            new_ends = (after.row_to_col == -2) & (before.row_to_col == -1)
            assert found[step] or not new_ends.any()


def graph_free_columns(search):
    return search.col_to_row.get() == -1


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_alternate_and_fix_matching_augment_once_a_root_reached(variant, everywhere):
    for seed in range(10):
        graph, search = search_on_device(uniform(500, 500, 3, seed), variant, seed=seed)
        before = int((search.row_to_col >= 0).sum())
        search.init_bfs_array()
        assert search.bfs(should_stop=lambda: False)
        ends = int((search.row_to_col == -2).sum())
        search.alternate(everywhere=everywhere)
        search.fix_matching()
        found, matched = search.counts()
        assert found == ends
        rows, cols = search.row_to_col.get(), search.col_to_row.get()
        assert matched == (rows >= 0).sum() == (cols >= 0).sum() > before
        assert rows.min() >= -1
        pairs = np.flatnonzero(rows >= 0)
        assert np.array_equal(cols[rows[pairs]], pairs)
        edges = set(zip(*(a.tolist() for a in graph.edges())))
        assert edges.issuperset(zip(pairs.tolist(), rows[pairs].tolist()))


@pytest.mark.parametrize("shape", [(1, 1), (1_000, 1_000), (50, 5_000), (5_000, 50)])
def test_cheap_matching_is_maximal(shape):
    import cupy as cp

    from gpumatch.cuda.matching import cheap

    graph = BipartiteGraph(uniform(*shape, min(3, shape[1]), 1)).to_device()
    mates = cp.full(shape[0], -1, cp.int32), cp.full(shape[1], -1, cp.int32)
    assert cheap.run(MatchingTask(graph, *mates, FreeRun()))
    rows, cols = graph.edges()
    assert not bool(((mates[0][rows] < 0) & (mates[1][cols] < 0)).any())


@pytest.mark.parametrize("variant", VARIANTS)
def test_trace_counts_what_happened(variant):
    A = uniform(3_000, 3_000, 3, 4)
    m = maximum_matching(A, algorithm=variant, backend="cuda")
    sizes = [m.stats["start_size"], *(phase["matched"] for phase in m.stats["trace"])]
    assert sizes[-1] == sizes[-2] == m.size
    assert sizes == sorted(sizes)
    for phase, low, high in zip(m.stats["trace"], sizes, sizes[1:]):
        assert phase["found"] >= high - low
        assert phase["launches"] > phase["levels"] >= 1
    assert m.stats["trace"][-1]["found"] == 0


def chains(*lengths):
    """Paths of so many rows and columns, and mates that leave one of each free, at its ends."""
    paths = [sp.diags_array([1.0, 1.0], offsets=[0, 1], shape=(n, n)) for n in lengths]
    places = np.concatenate([np.arange(n) for n in lengths])
    sizes = np.repeat(lengths, lengths)
    mates = np.where(places < sizes - 1, np.arange(places.size) + 1, -1)
    return sp.block_diag(paths, format="csr"), mates


@pytest.mark.parametrize("launch", ["ct", "mt"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_launch_a_level_makes_the_levels_of_a_batch(variant, launch):
    """There is one way to search chains; a phase has one launch a level, and three others."""
    A, mates = chains(25, 40, 60)
    wish = {"algorithm": variant, "launch": launch, "init": "none", "initial": mates}
    runs = {
        loop: maximum_matching(A, backend="cuda", host_loop=loop, **wish)
        for loop in ("batch", "level")
    }
    runs["reference"] = maximum_matching(A, backend="reference", **wish)
    levels = {name: [p["levels"] for p in m.stats["trace"]] for name, m in runs.items()}
    assert levels["level"] == levels["batch"] == levels["reference"]
    assert max(levels["level"]) == 60  # several batches
    assert {m.size for m in runs.values()} == {125}
    *phases, last = runs["level"].stats["trace"]
    assert all(phase["launches"] == phase["levels"] + 3 for phase in phases)
    assert last["launches"] == last["levels"] + 1


@LOOPS
@pytest.mark.parametrize("variant", VARIANTS)
def test_both_host_loops_end_with_a_maximum_matching(variant, host_loop):
    for seed in range(5):
        A = uniform(2_000, 1_900, 3, seed)
        m = maximum_matching(A, algorithm=variant, backend="cuda", host_loop=host_loop)
        assert verify(A, m).size == maximum_matching(A, backend="cpu").size
        again = maximum_matching(A, algorithm=variant, backend="reference", initial=m, init="none")
        assert [p["levels"] for p in again.stats["trace"]] == [m.stats["trace"][-1]["levels"]]


@pytest.mark.parametrize("variant", ["apfb-gpubfs", "apfb-gpubfs-wr"])
def test_the_queue_runs_a_level_a_launch_too(variant):
    A = uniform(20_000, 20_000, 2.5, 7)
    runs = [
        maximum_matching(
            A, algorithm=variant, backend="cuda", frontier="queue", host_loop=host_loop
        )
        for host_loop in ("batch", "level")
    ]
    assert runs[0].size == runs[1].size
    assert all(p["launches"] >= p["levels"] for p in runs[1].stats["trace"])
    assert runs[0].stats["trace"][0]["launches"] < runs[1].stats["trace"][0]["launches"]


@pytest.mark.parametrize(
    "options",
    [{"frontier": "scan"}, {"frontier": "queue"}, {"frontier": "scan", "host_loop": "level"}],
)
def test_a_stopped_search_leaves_a_matching_that_goes_on(options):
    A = uniform(20_000, 20_000, 2.5, 7)
    whole = maximum_matching(A, algorithm="apfb-gpubfs-wr", backend="cuda", **options)
    ticks = 0

    def stop(progress):
        nonlocal ticks
        ticks += 1
        return ticks == 3

    part = maximum_matching(A, algorithm="apfb-gpubfs-wr", backend="cuda", callback=stop, **options)
    assert not part.proven
    assert part.size < whole.size
    rest = maximum_matching(
        A, algorithm="apfb-gpubfs-wr", backend="cuda", initial=part, init="none", **options
    )
    assert rest.stats["start_size"] == part.size
    assert verify(A, rest).size == whole.size


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array"])
def test_device_input_gives_device_output_on_the_callers_stream(kind):
    import cupy as cp
    import cupyx.scipy.sparse

    if not hasattr(cupyx.scipy.sparse, kind):
        pytest.skip(f"this CuPy has no {kind}")
    make = getattr(cupyx.scipy.sparse, kind)

    A = uniform(2_000, 1_500, 3, 3)
    device = make(sp.csr_matrix(A.astype(np.float32)))
    cp.cuda.get_current_stream().synchronize()  # the other stream does not wait for the copy
    with cp.cuda.Stream(non_blocking=True):
        m = maximum_matching(device)
        assert m.stats["backend"] == "cuda"
        assert isinstance(m.row_to_col, cp.ndarray)
        assert verify(device, m).size == maximum_matching(A, backend="cuda").size
        assert isinstance(m.vertex_cover()[0], cp.ndarray)
        wide = (device.indptr.astype(cp.int64), device.indices.astype(cp.int64), A.shape)
        assert maximum_matching(wide).size == m.size


@pytest.mark.parametrize("room", [0, 900_000, 2_500_000], ids=["nothing", "half a matching", "it"])
def test_too_little_memory_is_said_before_anything_is_launched(room):
    with fresh_pool() as pool:
        graph = BipartiteGraph(uniform(200_000, 200_000, 2, 1)).to_device()
        graph.col_indptr  # noqa: B018  made now, so that it is not what is short
        said = pytest.raises(MemoryError, match=r"needs \d+ bytes on GPU 0; \d+ are free")
        with room_left(pool, room), said:
            maximum_matching(graph)
        assert maximum_matching(graph).proven


@pytest.mark.parametrize(("variant", "launch"), list(product(VARIANTS, ["ct", "mt"])))
def test_int64_offsets(variant, launch):
    """Offsets past 2**31 take another instance of each kernel: run it on a small graph."""
    A = uniform(3_000, 2_000, 3, 9)
    graph = BipartiteGraph(A).to_device()
    want = maximum_matching(graph).size
    graph._rows = (graph.indptr.astype("i8"), graph.indices)
    graph._cols = (graph.col_indptr.astype("i8"), graph.col_indices)
    for frontier in ("scan", "queue"):
        m = maximum_matching(graph, algorithm=variant, launch=launch, frontier=frontier)
        assert m.size == want == verify(graph, m).size
