// Frontier queues, stream compaction and a grid barrier: what breadth-first searches stand on.
//
// A search goes level by level. Its frontier is a queue; expanding it visits every neighbour of
// every vertex queued, and the visits push what they reach on the queue of the next level.
//
// Encodings
//   Queue      items[0 .. *size) in no order, none twice where the visitor claims what it pushes
//   Frontier   items[l & 1] is level l's queue, sizes[l % 3] its size. Three sizes take turns, for
//              while one is read and the next is filled, the one after must be cleared already:
//              no block may clear what another still reads.
//   Team       the threads that work together: a whole grid, or one block
//
// A visitor is a struct with
//   Walk enter(Item item)      whose neighbours to visit; none to skip it
//   Sight look(int neighbour)  what to load of a neighbour before visiting it
//   void visit(int vertex, int tag, int neighbour, Sight sight)   which may push
// and, where it gathers what it pushes, an overload of end_turn(visitor).
#pragma once

template <typename Item>
struct Queue {
  Item* items;
  int* size;
};

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

struct Frontier {
  int* items[2];
  int* sizes;         // [3]
  int* level;         // [1] the level that is expanded next
  unsigned* barrier;  // [1] arrivals at the grid barrier, 0 before the first launch
};

constexpr unsigned kWarp = 32;
constexpr unsigned kWholeWarp = 0xffffffffu;
constexpr int kLaneDegree = 32;  // neighbours a lane may walk alone; the warp walks longer ones
constexpr int kSights = 4;       // neighbours that a lane looks at before it visits the first

__device__ inline int thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline int thread_count() { return gridDim.x * blockDim.x; }
__device__ inline int lane_index() { return threadIdx.x % kWarp; }

// Scatter the bits of a number, for a choice that must not follow the numbers of the vertices.
__device__ inline unsigned scrambled(unsigned number) {
  number *= 0x9e3779b9u;
  number ^= number >> 15;
  number *= 0x85ebca6bu;
  return number ^ number >> 13;
}

__device__ inline bool coin(unsigned number) {
  number *= 0x9e3779b9u;
  return ((number ^ number >> 15) >> 16 & 1) != 0;
}

__device__ inline Team whole_grid() { return {thread_index(), thread_count()}; }
__device__ inline Team own_block() {
  return {static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
}

__device__ inline long long nanoseconds() {
  long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

// The next free place of a queue with `size` items. The lanes of a warp that take one together share
// one atomicAdd.
__device__ inline int take_place(int* size) {
  const unsigned together = __activemask();
  const unsigned before = together & ((1u << lane_index()) - 1);
  const int leader = __ffs(together) - 1;
  int base = 0;
  if (lane_index() == leader) base = atomicAdd(size, __popc(together));
  return __shfl_sync(together, base, leader) + __popc(before);
}

template <typename Item>
__device__ void push(Queue<Item> out, Item item) {
  out.items[take_place(out.size)] = item;
}

// What a warp pushes, gathered in shared memory to be appended many at a time, for the atomicAdds to
// a queue's size wait for each other. What finds no room is pushed at once.
template <typename Item>
struct Gathered {
  static constexpr int kRoom = 2048 / sizeof(Item);
  Item items[kRoom];
  int count;
};

template <typename Item>
struct GatheringQueue {
  Queue<Item> queue;
  Gathered<Item>* gathered;  // the warp's, shared
};

template <typename Item>
__device__ void push(GatheringQueue<Item> out, Item item) {
  const int at = take_place(&out.gathered->count);
  if (at < Gathered<Item>::kRoom) out.gathered->items[at] = item;
  else push(out.queue, item);
}

// Append what a warp has gathered if that is at least so many items. All its lanes call this: now
// and then, and with 1 after the last push, before the barrier behind which the queue is read.
// `count` must be 0 at first.
template <typename Item>
__device__ void append_gathered(GatheringQueue<Item> out, int least = Gathered<Item>::kRoom / 2) {
  Gathered<Item>& gathered = *out.gathered;
  __syncwarp();
  const int count = min(gathered.count, Gathered<Item>::kRoom);
  __syncwarp();
  if (count < least) return;
  int base = 0;
  if (lane_index() == 0) base = atomicAdd(out.queue.size, count);
  base = __shfl_sync(kWholeWarp, base, 0);
  for (int i = lane_index(); i < count; i += kWarp) out.queue.items[base + i] = gathered.items[i];
  __syncwarp();
  if (lane_index() == 0) gathered.count = 0;
  __syncwarp();
}

// Add up a number of every thread of the grid into *total.
template <typename Number>
__device__ void add_to(Number* total, Number number) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    number += __shfl_down_sync(kWholeWarp, number, step);
  }
  if (lane_index() == 0 && number != 0) atomicAdd(total, number);
}

// Begin to load what will be read soon; a hint, for which any address of the arrays will do.
__device__ inline void prefetch(const void* address) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(address));
}

// use(i, load(i)) for all i < count, by all threads of the grid; several loads wait together, so none
// may read what a use writes. After each turn, the lanes of a warp call end_turn() together.
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

// Lanes that share a vertex: all that are left over when a level is small, for then the time is the
// latency of one vertex's neighbours read one after the other.
__device__ inline int lanes_for(int size, int threads, int most = kWarp) {
  const int each = min(threads / max(size, 1), most);
  return each < 2 ? 1 : 1 << (31 - __clz(each));
}

// Visit count neighbours, each `stride` entries after the one before. Several are looked at before
// the first is visited, so that their loads, which are what a search waits for, wait together.
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

// After each turn, by the lanes of a warp together; to be overloaded for visitors that gather.
template <typename Visitor>
__device__ void end_turn(Visitor&) {}

// How many of `degree` neighbours fall to one of `members` that take turns.
__device__ inline int share_of(int degree, int member, int members) {
  return degree > member ? (degree - member - 1) / members + 1 : 0;
}

// Visit all neighbours of all items[0 .. size). Contraction comes first: an item that enter() turns
// down has no neighbours here. The long adjacencies of a warp's vertices are walked by the whole
// warp, one after the other.
//
// Items next to each other often meet at the same neighbour. Lest the one with the lower number, or
// the higher one, always come first, and whole trees drift across a mesh, half of the warps take
// their items, and half of the vertices their neighbours, in the opposite order.
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

// Where the tests define GPUMATCH_STAGGER, some blocks leave a barrier late, so that what others do
// meanwhile, and must not, shows.
__device__ inline void stagger() {
#ifdef GPUMATCH_STAGGER
  if ((scrambled(blockIdx.x + static_cast<unsigned>(nanoseconds())) & 7) == 0) __nanosleep(20000);
#endif
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
    stagger();
    __threadfence();
  }
  __syncthreads();
}

// Expand level after level inside one cooperative launch, until the frontier is empty, the visitor
// is done, or `max_levels` have passed. Leaves *level at the next level to expand. The visitor has
//   Queue<int> out; int level;   set for each level
//   bool done(int level)         after a level: whether to end; must answer alike in every block
template <typename Visitor>
__device__ void search_levels(Frontier frontier, Visitor visitor, int max_levels) {
  const int start = *frontier.level;
  int level = start;
  while (level - start < max_levels) {
    const int size = *static_cast<volatile int*>(frontier.sizes + level % 3);
    if (size == 0) break;
    if (thread_index() == 0) frontier.sizes[(level + 2) % 3] = 0;
    visitor.level = level;
    visitor.out = {frontier.items[(level + 1) & 1], frontier.sizes + (level + 1) % 3};
    expand(whole_grid(), frontier.items[level & 1], size, visitor);
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
