// The common part of kernels: the index of a thread, queues that all push to, sums, and a barrier
// for a grid that is resident as a whole.
//
// Encodings
//   Queue      items[0 .. *size) in no order; none is there twice if a thread claims it before
//              the push
//   barrier    arrivals, 0 before the first launch
#pragma once

constexpr unsigned kWarp = 32;
constexpr unsigned kWholeWarp = 0xffffffffu;

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

// The current value of what other threads may write in the meantime.
template <typename T>
__device__ T now(const T& shared) {
  return *static_cast<const volatile T*>(&shared);
}

// Write what other threads may read in the meantime.
template <typename T>
__device__ void set_now(T& shared, T value) {
  *static_cast<volatile T*>(&shared) = value;
}

__device__ inline long long nanoseconds() {
  long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

// -- queues ---------------------------------------------------------------------------------------

template <typename Item>
struct Queue {
  Item* items;
  int* size;
};

// The next free place of a queue with `size` items. The lanes of a warp that take one together
// share one atomicAdd.
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

// What a warp pushes, gathered in shared memory and appended many at a time, because the atomicAdds
// to a queue's size wait for each other. What finds no room is pushed at once.
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

// Append what a warp has gathered if that is at least `least` items. All its lanes call this now
// and then, and with 1 after the last push, before the barrier after which the queue is read.
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

// -- together -------------------------------------------------------------------------------------

// Add up a number of every thread of the grid into *total.
template <typename Number>
__device__ void add_to(Number* total, Number number) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    number += __shfl_down_sync(kWholeWarp, number, step);
  }
  if (lane_index() == 0 && number != 0) atomicAdd(total, number);
}

// Join a number of every thread of a block, two at a time, for its first thread. The block has whole
// warps.
template <typename Number, typename Join>
__device__ Number joined_in_block(Number number, Join join) {
  __shared__ Number of_warps[kWarp];
  for (int step = kWarp / 2; step > 0; step /= 2) {
    number = join(number, __shfl_xor_sync(kWholeWarp, number, step));
  }
  __syncthreads();  // what an earlier call has left was read
  if (lane_index() == 0) of_warps[threadIdx.x / kWarp] = number;
  __syncthreads();
  if (threadIdx.x >= kWarp) return number;
  const int warps = blockDim.x / kWarp;
  number = of_warps[lane_index() < warps ? lane_index() : 0];
  for (int step = 1; step < warps; step *= 2) {
    const Number other = __shfl_down_sync(kWholeWarp, number, step);
    if (lane_index() + step < warps) number = join(number, other);
  }
  return number;
}

// Begin to load what will be read soon. This is a hint; any address in the arrays is allowed.
__device__ inline void prefetch(const void* address) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(address));
}

// If the tests define GPUMATCH_STAGGER, some blocks leave a barrier late. Then errors show that
// other blocks make in the meantime.
__device__ inline void stagger() {
#ifdef GPUMATCH_STAGGER
  if ((scrambled(blockIdx.x + static_cast<unsigned>(nanoseconds())) & 7) == 0) __nanosleep(20000);
#endif
}

// Wait for all blocks of a grid that is resident as a whole. Block 0 adds a number that flips the
// top bit once all others have added 1. Each block waits until the bit that it saw has flipped.
__device__ inline void grid_barrier(unsigned* barrier) {
  __syncthreads();
  if (threadIdx.x == 0) {
    constexpr unsigned kTop = 0x80000000u;
    const unsigned share = blockIdx.x == 0 ? kTop - (gridDim.x - 1) : 1u;
    __threadfence();
    const unsigned seen = atomicAdd(barrier, share);
    while (((seen ^ now(*barrier)) & kTop) == 0) {
    }
    stagger();
    __threadfence();
  }
  __syncthreads();
}
