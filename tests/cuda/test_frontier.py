"""frontier.cuh on the device: compaction, pushes, expansion by degree, the grid barrier, levels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gpumatch.cuda import kernels as module

pytestmark = pytest.mark.gpu

TEST_KERNELS = """
#include "frontier.cuh"

// Count in visits[] how often each neighbour is met, and push all even ones.
struct Counting {
  const long long* indptr;
  const int* indices;
  int* visits;
  Queue<int> out;
  __device__ Walk enter(int vertex) const {
    if (vertex % 5 == 0) return {};
    return {vertex, 7 * vertex, indices + indptr[vertex], indices + indptr[vertex + 1]};
  }
  __device__ int look(int neighbour) const { return 3 * neighbour; }

  __device__ void visit(int vertex, int tag, int neighbour, int sight) const {
    atomicAdd(visits + neighbour, tag == 7 * vertex && sight == 3 * neighbour);
    if (neighbour % 2 == 0) push(out, neighbour);
  }
};

extern "C" __global__ void expand_once(const int* items, int size, int* out, int* out_size,
                                       const long long* indptr, const int* indices, int* visits) {
  Counting visitor = {indptr, indices, visits, {out, out_size}};
  expand(whole_grid(), items, size, visitor);
}

// Of each warp's numbers, a lane having 8 that follow each other by 32, those with a flag.
extern "C" __global__ void compact_by_warps(const int* flags, int* items, int* sizes) {
  const int warp = thread_index() / kWarp, base = 256 * warp;
  unsigned relevant = 0;
  for (int b = 0; b < 8; ++b) relevant |= (flags[base + 32 * b + lane_index()] != 0) << b;
  const int size = compact_in_warp<8>(relevant, [&](int place, int b) {
    items[base + place] = base + 32 * b + lane_index();
  });
  if (lane_index() == 5) sizes[warp] = size;
}

extern "C" __global__ void compact_twice(const int* flags, int length, int* items, int* sizes,
                                         int* counts, unsigned* barrier) {
  const Compaction grid = {counts, barrier};
  int size = compact(
      grid, length, [&](int i) { return flags[i] != 0; },
      [&](int place, int i) { items[place] = i; });
  if (threadIdx.x == 0) sizes[blockIdx.x] = size;
  grid_barrier(barrier);
  size = compact(
      grid, size, [&](int k) { return items[k] % 2 == 0; },
      [&](int place, int k) { items[length + place] = items[k]; });
  if (thread_index() == 0) sizes[gridDim.x] = size;
}

// Each vertex of a pack of 4 gets 1,000 times its block's packs, plus the first of them.
struct Looking {
  int* entered;
  int* looked;
  __device__ void enter(int vertex) const { atomicAdd(entered + vertex, 1); }
  __device__ int look(int first, int packs) const {
    __syncthreads();
    return 1000 * packs + first;
  }
  __device__ void visit(int vertex, int sight) const { atomicAdd(looked + vertex, sight); }
};

extern "C" __global__ void pull_once(int packs, int* entered, int* looked) {
  Looking visitor = {entered, looked};
  pull<4>(packs, visitor);
}

extern "C" __global__ void push_flagged(const int* flags, int length, int* out, int* out_size) {
  for (int i = thread_index(); i < length; i += thread_count()) {
    if (flags[i]) push(Queue<int>{out, out_size}, i);
  }
}

// Push every number below `length` as often as times[] says. A block has at most 16 warps.
extern "C" __global__ void push_gathered(const int* times, int length, int* out, int* out_size) {
  __shared__ Gathered<int> gathered[16];
  Gathered<int>& own = gathered[threadIdx.x / kWarp];
  if (lane_index() == 0) own.count = 0;
  __syncwarp();
  const GatheringQueue<int> queue = {{out, out_size}, &own};
  for_all(
      length, [&](int i) { return times[i]; },
      [&](int i, int count) {
        for (int k = 0; k < count; ++k) push(queue, i);
      },
      [&] { append_gathered(queue); });
  append_gathered(queue, 1);
}

// In each round every block adds 1; after the barrier all must see gridDim.x more.
extern "C" __global__ void rounds(int count, int* total, int* wrong, unsigned* barrier) {
  for (int round = 1; round <= count; ++round) {
    if (threadIdx.x == 0) atomicAdd(total, 1);
    grid_barrier(barrier);
    if (now(*total) != round * static_cast<int>(gridDim.x)) {
      atomicAdd(wrong, 1);
    }
    grid_barrier(barrier);
  }
}

struct Distances {
  const int* indptr;
  const int* indices;
  int* distance;
  int stop_after;
  Queue<int> out;
  int level;
  __device__ Walk enter(int v) const {
    return {v, 0, indices + indptr[v], indices + indptr[v + 1]};
  }
  __device__ int look(int neighbour) const { return distance[neighbour]; }
  __device__ void visit(int, int, int neighbour, int known) const {
    if (known != -1) return;
    if (atomicCAS(distance + neighbour, -1, level + 1) == -1) push(out, neighbour);
  }
  __device__ bool done(int after) const { return after == stop_after; }
};

extern "C" __global__ void distances(const int* indptr, const int* indices, int* distance,
                                     int stop_after, int* queue, int* other,
                                     SearchState* state, unsigned* barrier, int max_levels) {
  search_levels(Frontier{{queue, other}, state, barrier, nullptr},
                Distances{indptr, indices, distance, stop_after}, max_levels);
}
"""


@pytest.fixture(scope="module")
def kernels():
    import cupy as cp

    return cp.RawModule(
        code=module.with_headers(TEST_KERNELS),
        options=module.COMPILE_OPTIONS,
        enable_cooperative_groups=True,
    )


def random_csr(nrows, ncols, degrees, rng):
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    return indptr.astype(np.int64), rng.integers(0, ncols, indptr[-1]).astype(np.int32)


# 256 blocks hold 65,536 threads: these sizes give 32, 8 and 1 lanes a vertex.
@pytest.mark.parametrize("size", [0, 1, 33, 2_000, 8_000, 70_000])
def test_expand_visits_every_neighbour_once(kernels, size):
    import cupy as cp

    rng = np.random.default_rng(size)
    nvertices, ncols = 100_000, 50_000
    degrees = rng.integers(0, 6, nvertices)
    degrees[rng.integers(0, nvertices, 200)] = rng.integers(0, 3_000, 200)  # long ones as well
    degrees[:4] = [0, 31, 32, 5_000]
    indptr, indices = random_csr(nvertices, ncols, degrees, rng)
    items = np.concatenate([np.arange(min(size, 4)), 4 + rng.permutation(nvertices - 4)])[:size]
    out = cp.full(int(degrees.sum()), -1, cp.int32)
    out_size, visits = cp.zeros(1, cp.int32), cp.zeros(ncols, cp.int32)
    kernels.get_function("expand_once")(
        (256,),
        (module.BLOCK,),
        (
            *(cp.asarray(items.astype(np.int32)), np.int32(size), out, out_size),
            *(cp.asarray(indptr), cp.asarray(indices), visits),
        ),
    )
    entered = items[items % 5 != 0].astype(int)
    met = np.concatenate(
        [indices[indptr[v] : indptr[v + 1]] for v in entered] or [np.array([], int)]
    )
    assert np.array_equal(visits.get(), np.bincount(met, minlength=ncols))
    pushed = out.get()[: int(out_size[0])]
    assert np.array_equal(np.sort(pushed), np.sort(met[met % 2 == 0]))


@pytest.mark.parametrize("blocks", [1, 3, 132, 256])
@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 100_001])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_compaction_keeps_what_is_relevant_in_order(kernels, share, length, blocks):
    """And again what is even of it; every block hears the size."""
    import cupy as cp

    flags = np.random.default_rng(length).random(length) < share
    items, sizes = cp.full(2 * length, -1, cp.int32), cp.full(blocks + 1, -1, cp.int32)
    counts, barrier = cp.full(blocks, -1, cp.int32), cp.zeros(1, cp.uint32)
    kernels.get_function("compact_twice")(
        (blocks,),
        (module.BLOCK,),
        (cp.asarray(flags.astype(np.int32)), np.int32(length), items, sizes, counts, barrier),
    )
    relevant = np.flatnonzero(flags)
    even = relevant[relevant % 2 == 0]
    assert sizes.get().tolist() == [relevant.size] * blocks + [even.size]
    assert np.array_equal(items[: relevant.size].get(), relevant)
    assert np.array_equal(items[length : length + even.size].get(), even)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_a_warp_keeps_what_is_relevant_in_order(kernels, share):
    import cupy as cp

    flags = np.random.default_rng(3).random((64, 256)) < share
    items, sizes = cp.full((64, 256), -1, cp.int32), cp.full(64, -1, cp.int32)
    kernels.get_function("compact_by_warps")(
        (8,), (module.BLOCK,), (cp.asarray(flags.astype(np.int32)), items, sizes)
    )
    for warp, (row, kept, size) in enumerate(zip(flags, items.get(), sizes.get())):
        assert kept[:size].tolist() == (256 * warp + np.flatnonzero(row)).tolist()
        assert (kept[size:] == -1).all()


@pytest.mark.parametrize("packs", [0, 1, 63, 64, 1_000, 70_001])
def test_pull_lets_every_vertex_look_once(kernels, packs):
    import cupy as cp

    entered, looked = cp.zeros((2, 4 * packs), cp.int32)
    kernels.get_function("pull_once")((7,), (module.BLOCK,), (np.int32(packs), entered, looked))
    share = -(-packs // 7)
    place = np.arange(packs)
    begin = place // max(share, 1) * share
    first = begin + (place - begin) // 64 * 64
    some = np.minimum(64, np.minimum(begin + share, packs) - first)
    assert (entered == 1).all()
    assert np.array_equal(looked.get(), np.repeat(1_000 * some + first, 4))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_push_keeps_every_vertex_once(kernels, share):
    import cupy as cp

    flags = np.random.default_rng(1).random(100_001) < share
    out, out_size = cp.full(flags.size, -1, cp.int32), cp.zeros(1, cp.int32)
    kernels.get_function("push_flagged")(
        (64,),
        (module.BLOCK,),
        (cp.asarray(flags.astype(np.int32)), np.int32(flags.size), out, out_size),
    )
    assert np.array_equal(np.sort(out.get()[: int(out_size[0])]), np.flatnonzero(flags))


@pytest.mark.parametrize("length", [0, 1, 31, 33, 4096, 1_000_003])
@pytest.mark.parametrize("most", [1, 3, 100])
def test_what_is_gathered_is_appended(kernels, length, most):
    """Turns of a warp push nothing, less than its room in shared memory, or much more."""
    import cupy as cp

    rng = np.random.default_rng(length + most)
    times = rng.integers(0, most + 1, length)
    times[rng.random(length) < 0.9] = 0 if most > 3 else 1
    out, out_size = cp.full(int(times.sum()), -1, cp.int32), cp.zeros(1, cp.int32)
    kernels.get_function("push_gathered")(
        (7,), (512,), (cp.asarray(times.astype(np.int32)), np.int32(length), out, out_size)
    )
    assert int(out_size[0]) == times.sum()
    assert np.array_equal(np.sort(out.get()), np.repeat(np.arange(length), times))


@pytest.mark.parametrize("blocks", [1, 2, 132, 256])
def test_grid_barrier_holds_all_blocks(kernels, blocks):
    import cupy as cp

    total, wrong, barrier = (cp.zeros(1, t) for t in (cp.int32, cp.int32, cp.uint32))
    for launches in (1, 2):
        total.fill(0)
        kernels.get_function("rounds")(
            (blocks,), (module.BLOCK,), (np.int32(200), total, wrong, barrier)
        )
        assert int(total[0]) == 200 * blocks
        assert int(wrong[0]) == 0, f"launch {launches}"


@pytest.mark.parametrize("length", [0, 1, 255, 100_000])
@pytest.mark.parametrize("level", [0, 2, 5])
def test_first_frontier_is_the_free_vertices_in_order(length, level):
    import cupy as cp

    from gpumatch.cuda.frontier import DeviceFrontier
    from gpumatch.cuda.matching.vertex_cover import SOURCE

    mates = np.random.default_rng(length).integers(-1, 3, length).astype(np.int32)
    kernels = module.kernels_for(SOURCE, Offset=np.dtype(np.int32))
    frontier = DeviceFrontier(kernels, "search_cover<{Offset}>", length, 256)
    frontier.start_from_free(cp.asarray(mates), level)
    free = np.flatnonzero(mates == -1)
    frontier._board.look()
    assert frontier.level == level
    assert frontier._board.seen["sizes"].sum() == frontier.size == free.size
    assert np.array_equal(frontier._queues[level & 1, : free.size].get(), free)


@pytest.mark.parametrize("max_levels", [1, 3, 1_000])
@pytest.mark.parametrize("blocks", [1, 100])
def test_levels_are_distances(kernels, blocks, max_levels):
    import cupy as cp

    graph = sp.random_array((3_000, 3_000), density=0.0006, rng=5, format="csr")
    graph = (graph + sp.eye_array(3_000, k=1)).tocsr()
    want = sp.csgraph.shortest_path(graph, indices=0, unweighted=True)
    want = np.where(np.isinf(want), -1, want).astype(int)
    distance = cp.full(3_000, -1, cp.int32)
    distance[0] = 0
    queues = cp.zeros((2, 3_000), cp.int32)
    state, barrier = cp.array([1, 0, 0, 0, 0, 0, 0], cp.int32), cp.zeros(1, "u4")
    indptr, indices = (cp.asarray(a.astype(np.int32)) for a in (graph.indptr, graph.indices))
    launches = 0
    while int(state[int(state[3]) % 3]):
        launches += 1
        kernels.get_function("distances")(
            (blocks,),
            (module.BLOCK,),
            (
                *(indptr, indices, distance, np.int32(-1), *queues, state, barrier),
                np.int32(max_levels),
            ),
        )
        assert int(state[3]) <= launches * max_levels
    assert np.array_equal(distance.get(), want)
    assert int(state[3]) == want.max() + 1


def test_a_search_ends_when_its_visitor_is_done(kernels):
    import cupy as cp

    path = sp.eye_array(100, k=1, format="csr")
    distance, queues = cp.full(100, -1, cp.int32), cp.zeros((2, 100), cp.int32)
    state, barrier = cp.array([1, 0, 0, 0, 0, 0, 0], cp.int32), cp.zeros(1, "u4")
    indptr, indices = (cp.asarray(a.astype(np.int32)) for a in (path.indptr, path.indices))
    kernels.get_function("distances")(
        (50,),
        (module.BLOCK,),
        (indptr, indices, distance, np.int32(9), *queues, state, barrier, np.int32(1_000)),
    )
    assert int(state[3]) == 10
    assert int(distance.max()) == 10
