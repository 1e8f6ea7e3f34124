// Frontier queues, stream compaction and a grid barrier: what breadth-first searches stand on.
//
// A search goes level by level. Its frontier is a queue of vertices; expanding it visits every
// neighbour of every vertex, and what the visits return is pushed on the queue of the next level.
//
// Encodings
//   Queue      items[0 .. *size): vertices in no order, none twice where the visitor claims them
//   Frontier   items[l & 1] is level l's queue, sizes[l % 3] its size. Three sizes take turns, for
//              while one is read and the next is filled, the one after must be cleared already:
//              no block may clear what another still reads.
//
// A visitor is a struct with
//   int  enter(int vertex)                       a tag that goes with its visits, or -1 to skip it
//   int  visit(int vertex, int tag, int neighbour)  the vertex to push, or -1 for none
//   bool done(int level)                         after a level: whether the search may end here;
//                                                must answer alike in every block
#pragma once

struct Queue {
  int* items;
  int* size;
};

struct Frontier {
  int* items[2];
  int* sizes;       // [3]
  int* level;       // [1] the level that is expanded next
  unsigned* barrier;  // [1] arrivals at the grid barrier, 0 before the first launch
};

constexpr unsigned kWarp = 32;
constexpr unsigned kWholeWarp = 0xffffffffu;
constexpr int kWarpDegree = 32;  // neighbours a lane may walk alone; the whole warp walks longer ones

__device__ inline int thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline int thread_count() { return gridDim.x * blockDim.x; }
__device__ inline unsigned lane_index() { return threadIdx.x % kWarp; }

// Append `vertex`. The lanes of a warp that push together share one atomicAdd.
__device__ inline void push(Queue out, int vertex) {
  const unsigned together = __activemask();
  const unsigned before = together & ((1u << lane_index()) - 1);
  const int leader = __ffs(together) - 1;
  int base = 0;
  if (lane_index() == static_cast<unsigned>(leader)) base = atomicAdd(out.size, __popc(together));
  base = __shfl_sync(together, base, leader);
  out.items[base + __popc(before)] = vertex;
}

// Lanes that share a vertex: all that are left over when a level is small, for then the time is the
// latency of one vertex's neighbours read one after the other.
__device__ inline int lanes_for(int size) {
  int lanes = 1;
  while (lanes < static_cast<int>(kWarp) && 2ll * lanes * size <= thread_count()) lanes *= 2;
  return lanes;
}

// Visit all neighbours of all vertices in items[0 .. size) and push what the visits return.
// Contraction comes first: a vertex that enter() turns down has no neighbours here. The long
// adjacencies of a warp's vertices are walked by the whole warp, one after the other.
template <typename Offset, typename Visitor>
__device__ void expand(const int* items, int size, Queue out, const Offset* indptr,
                       const int* indices, Visitor visitor) {
  const int lanes = lanes_for(size);
  const int member = static_cast<int>(lane_index()) % lanes;
  const int first = (thread_index() - static_cast<int>(lane_index())) / lanes;
  for (int base = first; base < size; base += thread_count() / lanes) {
    const int at = base + static_cast<int>(lane_index()) / lanes;
    const int vertex = at < size ? items[at] : -1;
    const int tag = vertex >= 0 ? visitor.enter(vertex) : -1;
    Offset begin = 0, end = 0;
    if (tag >= 0) {
      begin = indptr[vertex];
      end = indptr[vertex + 1];
    }
    const bool is_long = end - begin >= kWarpDegree * lanes;
    for (unsigned todo = __ballot_sync(kWholeWarp, is_long && member == 0); todo != 0;
         todo &= todo - 1) {
      const int owner = __ffs(todo) - 1;
      const int long_vertex = __shfl_sync(kWholeWarp, vertex, owner);
      const int long_tag = __shfl_sync(kWholeWarp, tag, owner);
      const Offset long_begin = __shfl_sync(kWholeWarp, begin, owner);
      const Offset long_end = __shfl_sync(kWholeWarp, end, owner);
      for (Offset k = long_begin + lane_index(); k < long_end; k += kWarp) {
        const int next = visitor.visit(long_vertex, long_tag, indices[k]);
        if (next >= 0) push(out, next);
      }
    }
    if (is_long) continue;
    for (Offset k = begin + member; k < end; k += lanes) {
      const int next = visitor.visit(vertex, tag, indices[k]);
      if (next >= 0) push(out, next);
    }
  }
}

// Wait for all blocks of a grid that is resident as a whole. Block 0 adds what flips the top bit
// once all others have added 1; each waits until the bit it saw has flipped.
__device__ inline void grid_barrier(unsigned* barrier) {
  __syncthreads();
  if (threadIdx.x == 0) {
    constexpr unsigned kTop = 0x80000000u;
    const unsigned share = blockIdx.x == 0 ? kTop - (gridDim.x - 1) : 1u;
    __threadfence();
    const unsigned seen = atomicAdd(barrier, share);
    while (((seen ^ *static_cast<volatile unsigned*>(barrier)) & kTop) == 0) {
    }
    __threadfence();
  }
  __syncthreads();
}

// Expand level after level inside one cooperative launch, until the frontier is empty, the visitor
// is done, or `max_levels` have passed. Leaves *level at the next level to expand.
template <typename Offset, typename Visitor>
__device__ void search_levels(Frontier frontier, const Offset* indptr, const int* indices,
                              Visitor visitor, int max_levels) {
  const int start = *frontier.level;
  int level = start;
  while (level - start < max_levels) {
    const int size = *static_cast<volatile int*>(frontier.sizes + level % 3);
    if (size == 0) break;
    if (thread_index() == 0) frontier.sizes[(level + 2) % 3] = 0;
    visitor.level = level;
    const Queue out = {frontier.items[(level + 1) & 1], frontier.sizes + (level + 1) % 3};
    expand(frontier.items[level & 1], size, out, indptr, indices, visitor);
    grid_barrier(frontier.barrier);
    ++level;
    if (visitor.done(level - 1)) break;
  }
  grid_barrier(frontier.barrier);  // every block has read *level and the sizes
  if (thread_index() == 0) *frontier.level = level;
}

// Stream compaction, last step: items[] become the positions whose flag is set, in order. The
// steps before it are the predicate (flags) and CUB's inclusive prefix sum of them (ends).
__device__ inline void scatter_flagged(const int* ends, int length, int* items) {
  for (int i = thread_index(); i < length; i += thread_count()) {
    const int before = i == 0 ? 0 : ends[i - 1];
    if (ends[i] != before) items[before] = i;
  }
}
