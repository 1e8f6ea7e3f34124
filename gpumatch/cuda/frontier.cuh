// Frontiers, their expansion and stream compaction: the basis of the breadth-first searches, but for
// the scans of APsB and APFB (matching/gpubfs.cuh). docs/develop.md lists which source uses what.
//
// A search goes level by level. Its frontier is a queue. Expanding it visits every neighbour of
// every queued vertex, and the visits push what they reach on the queue of the next level.
//
// Encodings
//   Frontier   items[l & 1] is level l's queue, state->sizes[l % 3] its size. Of the three sizes,
//              one is read, the next is filled, and the one after must be cleared already, because
//              no block may clear what another still reads.
//   Segment    items[base .. base + size) of a log that queues one level after the other
//   Team       the threads that work together: a whole grid, or one block
//
// A visitor is a struct with
//   Walk enter(Item item)      whose neighbours to visit; none to skip it
//   Sight look(int neighbour)  what to load of a neighbour before visiting it
//   void visit(int vertex, int tag, int neighbour, Sight sight)   which may push
// and, if it gathers what it pushes, an overload of end_turn(visitor).
#pragma once

#include "grid.cuh"

struct Walk {
  int vertex;
  int tag;  // goes with the visits
  const int* begin;
  const int* end;
};

struct Team {
  int index;
  int count;  // a multiple of the warp
};

// What a search leaves for the host, and for its next launch.
struct SearchState {
  int sizes[3];
  int level;     // the level that is expanded next
  int found[3];  // what the visitor has found
};

struct Frontier {
  int* items[2];
  SearchState* state;
  unsigned* barrier;
  int* counts;  // for compaction, a number a block
};

struct Segment {
  int base;
  int size;
};

// Neighbours a lane may walk alone; the warp walks longer ones. Not measured: with more, each lane
// of the warp has one at least.
constexpr int kLaneDegree = 32;

// Neighbours that a lane looks at before it visits the first. With eight, the matching engine takes
// 2 % longer (docs/algorithms/gpu_engine_trials.md).
constexpr int kSights = 4;

__device__ inline Team whole_grid() { return {thread_index(), thread_count()}; }
__device__ inline Team own_block() {
  return {static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
}

// use(i, load(i)) for all i < count, by all threads of the grid. Several loads wait together, so no
// load may read what a use writes. After each turn, the lanes of a warp call end_turn() together.
template <typename Load, typename Use, typename EndTurn>
__device__ void for_all(int count, Load load, Use use, EndTurn end_turn) {
  const unsigned stride = thread_count(), end = count;
  for (unsigned base = thread_index() - lane_index(); base < end; base += kSights * stride) {
    const unsigned first = base + lane_index();
    decltype(load(0)) loaded[kSights];
#pragma unroll
    for (int k = 0; k < kSights; ++k) {
      if (first + k * stride < end) loaded[k] = load(first + k * stride);
    }
#pragma unroll
    for (int k = 0; k < kSights; ++k) {
      if (first + k * stride < end) use(first + k * stride, loaded[k]);
    }
    end_turn();
  }
}

template <typename Load, typename Use>
__device__ void for_all(int count, Load load, Use use) {
  for_all(count, load, use, [] {});
}

// Lanes that share a vertex: all that are left over if a level is small, because then the time is
// the latency of one vertex's neighbours read one after the other.
__device__ inline int lanes_for(int size, int threads, int most = kWarp) {
  const int each = min(threads / max(size, 1), most);
  return each < 2 ? 1 : 1 << (31 - __clz(each));
}

// Visit count neighbours, each `stride` entries after the one before. Several are looked at before
// the first is visited, so that their loads wait together. A search waits for these loads.
template <typename Visitor>
__device__ void visit_neighbours(Visitor& visitor, const Walk& walk, const int* first, int stride,
                                 int count) {
  using Sight = decltype(visitor.look(0));
  for (int done = 0; done < count; done += kSights, first += kSights * stride) {
    int neighbours[kSights];
    Sight sights[kSights];
#pragma unroll
    for (int i = 0; i < kSights; ++i) {
      if (done + i < count) neighbours[i] = first[i * stride];
    }
#pragma unroll
    for (int i = 0; i < kSights; ++i) {
      if (done + i < count) sights[i] = visitor.look(neighbours[i]);
    }
#pragma unroll
    for (int i = 0; i < kSights; ++i) {
      if (done + i < count) visitor.visit(walk.vertex, walk.tag, neighbours[i], sights[i]);
    }
  }
}

// Called after each turn by the lanes of a warp together. Visitors that gather overload it.
template <typename Visitor>
__device__ void end_turn(Visitor&) {}

// How many of `degree` neighbours one of `members` visits, if they take turns.
__device__ inline int share_of(int degree, int member, int members) {
  return degree > member ? (degree - member - 1) / members + 1 : 0;
}

// Visit all neighbours of all items[0 .. size). Contraction comes first: an item that enter() skips
// has no neighbours here. The whole warp walks the long adjacencies of its vertices, one after the
// other.
//
// Items next to each other often meet at the same neighbour. If the one with the lower number, or
// the higher one, always came first, whole trees would drift across a mesh. So half of the warps
// take their items, and half of the vertices their neighbours, in the opposite order.
template <typename Item, typename Visitor>
__device__ void expand(Team team, const Item* items, int size, Visitor& visitor) {
  const int lanes = lanes_for(size, team.count);
  const int slots = kWarp / lanes;
  const int slot = lane_index() / lanes, member = lane_index() % lanes;
  const int first = (team.index - lane_index()) / lanes, stride = team.count / lanes;
  for (int base = first; base < size; base += stride) {
    const int at = base + (coin(base) ? slots - 1 - slot : slot);
    if (at < size - stride) prefetch(items + at + stride);
    const Walk walk = at < size ? visitor.enter(items[at]) : Walk{0, 0, nullptr, nullptr};
    const int degree = static_cast<int>(walk.end - walk.begin);
    const bool is_long = degree >= kLaneDegree * lanes;
    for (unsigned todo = __ballot_sync(kWholeWarp, is_long && member == 0); todo != 0;
         todo &= todo - 1) {
      const int owner = __ffs(todo) - 1;
      const auto begin = reinterpret_cast<const int*>(
          __shfl_sync(kWholeWarp, reinterpret_cast<unsigned long long>(walk.begin), owner));
      const Walk its = {__shfl_sync(kWholeWarp, walk.vertex, owner),
                        __shfl_sync(kWholeWarp, walk.tag, owner), begin,
                        begin + __shfl_sync(kWholeWarp, degree, owner)};
      visit_neighbours(visitor, its, begin + lane_index(), kWarp,
                       share_of(static_cast<int>(its.end - begin), lane_index(), kWarp));
    }
    if (!is_long) {
      const bool backwards = coin(walk.vertex);
      visit_neighbours(visitor, walk, backwards ? walk.end - 1 - member : walk.begin + member,
                       backwards ? -lanes : lanes, share_of(degree, member, lanes));
    }
    end_turn(visitor);
  }
}

// Where a frontier that one block expands alone has come to.
struct Advance {
  Segment frontier;
  int levels;   // expanded
  int visited;  // items of these
};

// Expand level after level with one block while the frontier stays small: at most `most` items, for
// at most `most_levels` levels. The levels are queued in `log`, one behind the other.
template <typename Item, typename Visitor>
__device__ Advance expand_alone(Visitor visitor, Item* log, Segment frontier, int most,
                                int most_levels) {
  __shared__ int sizes[2];
  int level = 0, visited = 0;
  do {
    int* size = sizes + (level & 1);
    if (threadIdx.x == 0) *size = 0;
    __syncthreads();
    const int next = frontier.base + frontier.size;
    visitor.out = {log + next, size};
    expand(own_block(), log + frontier.base, frontier.size, visitor);
    visited += frontier.size;
    __syncthreads();
    frontier = {next, *size};
    ++level;
  } while (frontier.size != 0 && frontier.size <= most && level < most_levels);
  return {frontier, level, visited};
}

// Expand level after level inside one cooperative launch, until the frontier is empty, the visitor
// is done, or `max_levels` have passed. Leaves *level at the next level to expand. The visitor has
//   Queue<int> out; int level;   set for each level
//   bool done(int level)         after a level: whether to end; the same answer in every block
template <typename Visitor>
__device__ void search_levels(Frontier frontier, Visitor visitor, int max_levels) {
  SearchState& state = *frontier.state;
  const int start = state.level;
  int level = start;
  while (level - start < max_levels) {
    const int size = now(state.sizes[level % 3]);
    if (size == 0) break;
    if (thread_index() == 0) state.sizes[(level + 2) % 3] = 0;
    visitor.level = level;
    visitor.out = {frontier.items[(level + 1) & 1], state.sizes + (level + 1) % 3};
    expand(whole_grid(), frontier.items[level & 1], size, visitor);
    grid_barrier(frontier.barrier);
    ++level;
    if (visitor.done(level - 1)) break;
  }
  grid_barrier(frontier.barrier);  // every block has read the level and the sizes
  if (thread_index() == 0) state.level = level;
}

// -- the other way round --------------------------------------------------------------------------

// The packs of neighbouring vertices that each block has in pull().
__device__ inline int packs_a_block(int packs) { return (packs + gridDim.x - 1) / gridDim.x; }

// Expansion where every edge exists: all vertices of the other side look at the whole frontier, a
// thread each. They come in packs of kWidth, as their data is loaded, and each block has some
// neighbouring packs. The visitor has
//   void enter(int vertex)         what to load before the look
//   Sight look(int first, int packs)   by the block's threads together: packs from `first` on; each
//                                  thread gets what there is for its vertex
//   void visit(int vertex, Sight sight)
template <int kWidth, typename Visitor>
__device__ void pull(int packs, Visitor& visitor) {
  const int self = threadIdx.x, at_once = static_cast<int>(blockDim.x) / kWidth;
  const int share = packs_a_block(packs);
  const int end = min(packs, static_cast<int>(blockIdx.x + 1) * share);
  for (int first = blockIdx.x * share; first < end; first += at_once) {
    const int some = min(at_once, end - first);
    const int vertex = first * kWidth + self;
    const bool has_vertex = self < some * kWidth;
    if (has_vertex) visitor.enter(vertex);
    const auto sight = visitor.look(first, some);
    if (has_vertex) visitor.visit(vertex, sight);
  }
}

// -- compaction -----------------------------------------------------------------------------------

// What compact() needs of the grid.
struct Compaction {
  int* counts;  // a number a block
  unsigned* barrier;
};

// A prefix sum: of the numbers before one's own, and of all.
struct Prefix {
  int before;
  int all;
};

// Over the grid, of a number a block. There must be a grid barrier after numbers[] are written.
__device__ inline Prefix prefix_over_grid(const int* numbers) {
  __shared__ Prefix sums;
  if (threadIdx.x == 0) sums = {0, 0};
  __syncthreads();
  Prefix own = {0, 0};
  for (unsigned block = threadIdx.x; block < gridDim.x; block += blockDim.x) {
    const int number = now(numbers[block]);
    own.all += number;
    if (block < blockIdx.x) own.before += number;
  }
  add_to(&sums.before, own.before);
  add_to(&sums.all, own.all);
  __syncthreads();
  return sums;
}

// How many elements are chosen before this lane's in its warp, and in all, by a ballot.
__device__ inline Prefix prefix_in_warp(bool is_chosen) {
  const unsigned chosen = __ballot_sync(kWholeWarp, is_chosen);
  return {__popc(chosen & ((1u << lane_index()) - 1)), __popc(chosen)};
}

// The same in a block, by the ballots of its warps. Called by all its threads.
__device__ inline Prefix prefix_in_block(bool is_chosen) {
  __shared__ int of_warp[kWarp];
  const Prefix in_warp = prefix_in_warp(is_chosen);
  __syncthreads();
  if (lane_index() == 0) of_warp[threadIdx.x / kWarp] = in_warp.all;
  __syncthreads();
  Prefix sums = {in_warp.before, 0};
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) {
    if (warp < threadIdx.x / kWarp) sums.before += of_warp[warp];
    sums.all += of_warp[warp];
  }
  return sums;
}

// Stream compaction (Harris, Sengupta, GPU Gems 2, chapter 36): call put(place, i) for all i < count
// that are relevant, with the places 0, 1, 2, .. in the order of i; return how many there are.
//
// Each block has a slice of the numbers. It counts what is relevant there; a prefix sum of the
// counts gives the slice its first place, and ballots place each element in its slice. So a number
// is asked twice, with a grid barrier between, and must be relevant both times or neither. Before
// the next compaction, and before others read what was put, there must be another barrier.
template <typename IsRelevant, typename Put>
__device__ int compact(const Compaction& grid, int count, IsRelevant is_relevant, Put put) {
  const unsigned share = (count + gridDim.x - 1) / gridDim.x;
  const unsigned begin = min(blockIdx.x * share, static_cast<unsigned>(count));
  const unsigned end = min(begin + share, static_cast<unsigned>(count));
  int found = 0;
  for (unsigned first = begin; first < end; first += blockDim.x) {
    const unsigned i = first + threadIdx.x;
    found += __syncthreads_count(i < end && is_relevant(static_cast<int>(i)));
  }
  if (threadIdx.x == 0) grid.counts[blockIdx.x] = found;
  grid_barrier(grid.barrier);
  const Prefix of_blocks = prefix_over_grid(grid.counts);
  int place = of_blocks.before;
  for (unsigned first = begin; found != 0 && first < end; first += blockDim.x) {
    const unsigned i = first + threadIdx.x;
    const bool is_chosen = i < end && is_relevant(static_cast<int>(i));
    const Prefix own = prefix_in_block(is_chosen);
    if (is_chosen) put(place + own.before, static_cast<int>(i));
    place += own.all;
  }
  return of_blocks.all;
}

// The same in one warp, of what its lanes have looked at already: bit b of a lane's `relevant` is its
// b-th element of kElements. Calls put(place, b). The places are in the order of b, then of lanes.
template <int kElements, typename Put>
__device__ int compact_in_warp(unsigned relevant, Put put) {
  int count = 0;
  if (!__any_sync(kWholeWarp, relevant != 0)) return count;
  for (int b = 0; b < kElements; ++b) {
    const bool is_chosen = (relevant >> b & 1) != 0;
    const Prefix own = prefix_in_warp(is_chosen);
    if (is_chosen) put(count + own.before, b);
    count += own.all;
  }
  return count;
}

// -- the first frontier ---------------------------------------------------------------------------

// Queue the unmatched vertices as level `level`. A cooperative launch.
__global__ void start_frontier(const int* mates, int length, int level, Frontier frontier) {
  int* items = frontier.items[level & 1];
  const int size = compact(
      Compaction{frontier.counts, frontier.barrier}, length, [&](int v) { return mates[v] == -1; },
      [&](int place, int v) { items[place] = v; });
  if (thread_index() != 0) return;
  SearchState& state = *frontier.state;
  for (int i = 0; i < 3; ++i) state.sizes[i] = state.found[i] = 0;
  state.sizes[level % 3] = size;
  state.level = level;
}
