// Minimum-degree matching (Langguth, Manne, Sanders, ACM JEA 2010): every vertex of one side takes
// the free neighbour that has the fewest neighbours itself, because that one has the fewest other
// chances. The vertices that have one or two neighbours choose first. The result is maximal.
//
// Degrees count by classes, in which a mesh looks regular. Small differences mean nothing there,
// and ties leave a choice. The choice follows no order of the vertices' numbers. Otherwise, if the
// numbers go across a mesh, all would choose in one direction. The free vertices of one side would
// be left at one border and those of the other at the opposite one, and the paths between them
// would cross the mesh.
//
// Encodings
//   standing[v]  of the side that is chosen: the degree's class while v is free, then kTaken. It
//                may lag behind mate[v], whose compare-and-swap decides. A byte, so that those of
//                tens of millions of vertices stay in the second-level cache.
#include "frontier.cuh"

constexpr unsigned char kTaken = 255;
constexpr unsigned char kLeast = 0;  // the class of degree 1: none is better

// That hubs have blocks and that looks end early is measured (docs/algorithms/gpu_engine_trials.md).
// These values are not. They are chosen so that a long list has a neighbour for each lane of a warp,
// a hub several for each thread of a block, and that a vote comes after several looks.
constexpr int kLongList = 32;  // neighbours from which the warp looks through them together
constexpr int kHub = 1024;     // neighbours from which a whole block does, after all others
constexpr int kLooks = 4;      // neighbours that a thread looks at before all ask for an end

template <typename Offset>
struct Choosers {
  const Offset* indptr;
  const int* indices;
  int count;
  int* mate;
  int* chosen_mate;
  unsigned char* standing;
  Queue<int> hubs;  // these wait for their turn
  int seed;
};

struct List {
  const int* begin;
  int length;
};

// 1, 2, 3 to 7, 8 to 31, 32 to 63, 64 to 127 and so on
__device__ inline unsigned char degree_class(int degree) {
  if (degree < 3) return degree - 1;
  if (degree < 8) return 2;
  return degree < 32 ? 3 : 30 - __clz(degree);
}

__global__ void count_degrees(long long nnz, const int* indices, int* degrees) {
  for (long long k = thread_index(); k < nnz; k += thread_count()) {
    atomicAdd(degrees + indices[k], 1);
  }
}

__global__ void classify_counted(int count, const int* degrees, const int* mate,
                                 unsigned char* standing) {
  for (int v = thread_index(); v < count; v += thread_count()) {
    standing[v] = mate[v] == -1 ? degree_class(degrees[v]) : kTaken;
  }
}

template <typename Offset>
__global__ void classify(int count, const Offset* indptr, const int* mate,
                         unsigned char* standing) {
  for (int v = thread_index(); v < count; v += thread_count()) {
    const int degree = static_cast<int>(indptr[v + 1] - indptr[v]);
    standing[v] = mate[v] == -1 ? degree_class(degree) : kTaken;
  }
}

template <typename Offset>
__device__ bool take(const Choosers<Offset>& side, int chooser, int v) {
  const bool is_first = atomicCAS(side.chosen_mate + v, -1, chooser) == -1;
  if (is_first) side.mate[chooser] = v;
  set_now(side.standing[v], kTaken);
  return is_first;
}

// The best free neighbour, the first from a random place in a random direction; -1: none.
__device__ inline int best_of(List list, const unsigned char* standing, unsigned random) {
  const int stride = (random & 1) != 0 ? -1 : 1;
  int k = __umulhi(random, list.length);
  unsigned char least = kTaken;
  int best = -1;
  for (int n = 0; n < list.length && least != kLeast; ++n) {
    const int v = list.begin[k];
    const unsigned char its = now(standing[v]);
    if (its < least) {
      least = its;
      best = v;
    }
    k += stride;
    if (k < 0) k = list.length - 1;
    if (k == list.length) k = 0;
  }
  return best;
}

// What a team that looks through a list together has found.
struct Best {
  unsigned rank;  // the class above, a random number below: ties are broken at random
  int vertex;     // -1: none

  __device__ bool is_least() const { return rank >> 24 == kLeast; }
};

// Look at the `kLooks` neighbours that fall to thread `index` of `count` from the `first` on.
__device__ inline void look(List list, const unsigned char* standing, unsigned random, int first,
                            Team team, Best* best) {
  const int start = __umulhi(random, list.length);
#pragma unroll
  for (int look = 0; look < kLooks; ++look) {
    const int n = first + look * team.count + team.index;
    if (n >= list.length) break;
    const int k = n < list.length - start ? start + n : n - (list.length - start);
    const int v = list.begin[k];
    const unsigned its = now(standing[v]);
    const unsigned rank = its << 24 | scrambled(v ^ random) >> 8;
    if (rank < best->rank) *best = {rank, v};
  }
}

constexpr Best kNone = {static_cast<unsigned>(kTaken) << 24, -1};

// The same by a whole warp, from a random place on.
__device__ inline int best_by_warp(List list, const unsigned char* standing, unsigned random) {
  const Team warp = {lane_index(), static_cast<int>(kWarp)};
  Best best = kNone;
  bool is_over = false;
  for (int first = 0; first < list.length && !is_over; first += kLooks * warp.count) {
    look(list, standing, random, first, warp, &best);
    is_over = __any_sync(kWholeWarp, best.is_least());
  }
  const unsigned least = __reduce_min_sync(kWholeWarp, best.rank);
  const unsigned owners = __ballot_sync(kWholeWarp, best.rank == least);
  return __shfl_sync(kWholeWarp, best.vertex, __ffs(owners) - 1);
}

// And by a whole block.
__device__ inline int best_by_block(List list, const unsigned char* standing, unsigned random) {
  __shared__ unsigned long long least;  // {rank, vertex}
  const Team block = own_block();
  Best best = kNone;
  bool is_over = false;
  if (block.index == 0) least = ~0ull;
  for (int first = 0; first < list.length && !is_over; first += kLooks * block.count) {
    look(list, standing, random, first, block, &best);
    is_over = __syncthreads_or(best.is_least());
  }
  if (best.vertex != -1) {
    atomicMin(&least, static_cast<unsigned long long>(best.rank) << 32 | best.vertex);
  }
  __syncthreads();
  const int vertex = static_cast<int>(least);  // -1 if nothing was found
  __syncthreads();
  return vertex;
}

// Let the vertices with at most `most` neighbours choose; hubs are queued.
template <typename Offset>
__global__ void __launch_bounds__(256, 8) choose(Choosers<Offset> side, int most) {
  const int lane = lane_index();
  for (int base = thread_index() - lane; base < side.count; base += thread_count()) {
    const int own = base + (coin(base ^ side.seed) ? static_cast<int>(kWarp) - 1 - lane : lane);
    List list = {nullptr, 0};
    if (own < side.count && side.mate[own] == -1) {
      const Offset begin = side.indptr[own], degree = side.indptr[own + 1] - begin;
      if (degree >= kHub && degree <= most) push(side.hubs, own);
      else if (degree <= most) list = {side.indices + begin, static_cast<int>(degree)};
    }
    const bool is_long = list.length >= kLongList;
    for (unsigned todo = __ballot_sync(kWholeWarp, is_long); todo != 0; todo &= todo - 1) {
      const int owner = __ffs(todo) - 1;
      const int chooser = __shfl_sync(kWholeWarp, own, owner);
      const List its = {
          reinterpret_cast<const int*>(__shfl_sync(
              kWholeWarp, reinterpret_cast<unsigned long long>(list.begin), owner)),
          __shfl_sync(kWholeWarp, list.length, owner)};
      bool is_done = false;
      while (!is_done) {
        const int v = best_by_warp(its, side.standing, scrambled(chooser ^ side.seed));
        is_done = v == -1 || (lane == 0 && take(side, chooser, v));
        is_done = __any_sync(kWholeWarp, is_done);
      }
    }
    if (is_long || list.length == 0) continue;
    const unsigned random = scrambled(own ^ side.seed);
    for (int v; (v = best_of(list, side.standing, random)) != -1 && !take(side, own, v);) {
    }
  }
}

// Let the hubs choose, a block for each. They are few, but their lists are long. If vertices are
// numbered by degree, 32 hubs would fall to one warp.
template <typename Offset>
__global__ void choose_for_hubs(Choosers<Offset> side) {
  __shared__ bool is_done;
  for (int i = blockIdx.x; i < *side.hubs.size; i += gridDim.x) {
    const int chooser = side.hubs.items[i];
    const Offset begin = side.indptr[chooser];
    const List list = {side.indices + begin, static_cast<int>(side.indptr[chooser + 1] - begin)};
    const unsigned random = scrambled(chooser ^ side.seed);
    do {
      const int v = best_by_block(list, side.standing, random);
      if (threadIdx.x == 0) is_done = v == -1 || take(side, chooser, v);
      __syncthreads();
    } while (!is_done);
  }
}
