// What the kernels of batches share: a problem and its place, the arrays of a team, and the reading
// of a row by a warp. batch.cu says what a team is, and how arrays are encoded.
#pragma once

#include "grid.cuh"
#include "numbers.cuh"

constexpr int kMostWarps = 64;    // the most warps of a team: two for each lane
constexpr int kMostBidders = 32;  // one for each lane of the warp that decides
constexpr int kMostThreads = 1024;
constexpr int kTile = 32;
constexpr int kMostBlocks = 8;    // the most blocks of a team: some devices have no larger clusters
constexpr int kNobody = 0x7fffffff;  // no row or column yet: above all numbers

enum State { kSolved, kInfeasible, kUnfit, kUnsolved, kOrdered };

struct Wish {
  double sign;
  double limit;    // the cost of an unmatched row; infinity if each row must be matched
  int takes_equal;  // 1 if a row prefers a column that costs as much as the limit
  double most;     // pairs that cost more are forbidden
  double largest;  // a cost of greater magnitude makes a problem unfit
  int may_lack;    // 1 if rows without a path may stay unmatched: the problem is then unsolved
  int whole;       // 1 if numbers are written as integers
  int bids;        // the mean number of bids of a row after its first
  int fewest;      // the number of unmatched rows at which bids end
  int rows_at_once;
  int most_steps;   // the most steps of a problem's searches; it is unsolved if it takes more, or
  int first_steps;  // if an estimate says so after these
  int lengthens;    // 1 if the estimate assumes that later paths are longer
  int steps_a_row;  // if paths are expected to take more, auctions are held, where they may be
  int steps_a_row_of_some;  // the same if a fourth of the rows to half of them get paths
  int asks_order;   // 1 if a problem that seems to be Monge in some order must be left to others
  int is_given;     // 1 if the results have the pairs and the columns' duals, for the proof only
};

// The places of the problems. If `places` is not null, it has for each problem the addresses of its
// costs and of its transposed copy (0: none), the step from row to row, the rows, the columns, and
// its number. If it is null, all have one size, and are `apart` from each other.
template <typename Cost>
struct Batch {
  const Cost* costs;
  Cost* turned;
  const long long* places;
  long long apart;
  long long step;
  int rows;
  int cols;
};

struct Results {
  int* mates;  // the mates of most_rows rows, then of most_cols columns
  double* numbers;  // the duals of these, then the costs of the rows' pairs
  double* objective;
  double* gap;
  long long* pairs;
  long long* states;
  bool* proven;
  int most_rows;
  int most_cols;
};

template <typename Cost>
struct Place {
  const Cost* costs;
  Cost* turned;
  long long step;
  int rows;
  int cols;
  int number;
};

// The place of the k-th problem of this launch.
template <typename Cost>
__device__ Place<Cost> place_of(const Batch<Cost>& batch, int k) {
  if (batch.places == nullptr) {
    const long long size = static_cast<long long>(batch.rows) * batch.cols;
    return {batch.costs + k * batch.apart,
            batch.turned == nullptr ? nullptr : batch.turned + k * size, batch.step, batch.rows,
            batch.cols, k};
  }
  const long long* own = batch.places + 6ll * k;
  return {reinterpret_cast<const Cost*>(own[0]), reinterpret_cast<Cost*>(own[1]), own[2],
          static_cast<int>(own[3]), static_cast<int>(own[4]), static_cast<int>(own[5])};
}

// -- numbers of a warp ----------------------------------------------------------------------------

// A number as an unsigned integer of equal order.
__device__ __forceinline__ unsigned long long key_of(double number) {
  constexpr unsigned long long kSign = 1ull << 63;
  const unsigned long long bits = __double_as_longlong(number + 0.0);  // no zero has a sign
  return bits & kSign ? ~bits : bits | kSign;
}

// The least number of a warp.
__device__ __forceinline__ double least_of_warp(double own) {
  constexpr unsigned long long kSign = 1ull << 63;
  const unsigned long long key = key_of(own);
  const unsigned high = static_cast<unsigned>(key >> 32);
  const unsigned least = __reduce_min_sync(kWholeWarp, high);
  const unsigned low =
      __reduce_min_sync(kWholeWarp, high == least ? static_cast<unsigned>(key) : 0xffffffffu);
  const unsigned long long found = static_cast<unsigned long long>(least) << 32 | low;
  return __longlong_as_double(found & kSign ? found ^ kSign : ~found);
}

__device__ __forceinline__ float least_of_warp(float own) {
  const int bits = __float_as_int(own);
  const int least = __reduce_min_sync(kWholeWarp, bits ^ (bits >> 31 & 0x7fffffff));
  return __int_as_float(least ^ (least >> 31 & 0x7fffffff));
}

// The lanes that have the least number. Mostly one lane has the least upper half, and no lower
// halves are compared.
__device__ __forceinline__ unsigned lanes_with_least(double own) {
  const unsigned long long key = key_of(own);
  const unsigned high = static_cast<unsigned>(key >> 32), low = static_cast<unsigned>(key);
  const bool is_high = high == __reduce_min_sync(kWholeWarp, high);
  const unsigned lanes = __ballot_sync(kWholeWarp, is_high);
  if (__popc(lanes) == 1) return lanes;
  const unsigned least = __reduce_min_sync(kWholeWarp, is_high ? low : 0xffffffffu);
  return __ballot_sync(kWholeWarp, is_high && low == least);
}

__device__ inline double no_less(double number, double bound) {
  return number < bound ? bound : number;
}

// -- a team of blocks -----------------------------------------------------------------------------

// Wait for all blocks of a cluster. Their writes are visible after it.
__device__ __forceinline__ void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// A place in the shared memory of another block of the cluster.
template <typename T>
__device__ __forceinline__ T* of_block(T* place, int block) {
#if __CUDA_ARCH__ >= 900
  T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(place), "r"(block));
  return there;
#else
  return place;
#endif
}

// Messages of a cluster. A barrier of all blocks first makes all writes visible to the device, which
// takes longer than the rest of a step. So what the blocks tell each other in a step are messages:
// stores that count themselves, once they have arrived, at a barrier in the memory of their block.
// That barrier (mbarrier) counts the bytes. Each block has two, used in turns.

// Begin the mail of a block, by one thread.
__device__ __forceinline__ void open_mail(unsigned long long* mail) {
#if __CUDA_ARCH__ >= 900
  const unsigned barrier = static_cast<unsigned>(__cvta_generic_to_shared(mail));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// Say how many bytes will arrive at this block, by one thread.
__device__ __forceinline__ void expect_mail(unsigned long long* mail, int bytes) {
#if __CUDA_ARCH__ >= 900
  const unsigned barrier = static_cast<unsigned>(__cvta_generic_to_shared(mail));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
#endif
}

// Send a value of three words to the same place in another block.
template <typename T>
__device__ __forceinline__ void send_to_block(T* place, T value, unsigned long long* mail, int block) {
#if __CUDA_ARCH__ >= 900
  static_assert(sizeof(T) == 24, "three words");
  unsigned long long words[3];
  memcpy(words, &value, sizeof words);
  unsigned there, barrier;
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(place));
  const unsigned own = static_cast<unsigned>(__cvta_generic_to_shared(mail));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(from), "r"(block));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(own), "r"(block));
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(
            there + 8 * k),
        "l"(words[k]), "r"(barrier)
        : "memory");
  }
#endif
}

// Wait until all has arrived that this block expects. The parity is that of the times waited before.
__device__ __forceinline__ void wait_for_mail(unsigned long long* mail, int parity) {
#if __CUDA_ARCH__ >= 900
  const unsigned barrier = static_cast<unsigned>(__cvta_generic_to_shared(mail));
  unsigned has_come = 0;
  while (has_come == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
        " selp.u32 %0, 1, 0, p; }"
        : "=r"(has_come)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
#endif
}

struct Bid {
  double price;
  double dual;
  int row;
  int col;  // or kStays, kLeaves
};
constexpr int kStays = -1;   // the row bids no more
constexpr int kLeaves = -2;  // the row stays unmatched

// The nearest column of a warp that is not scanned.
struct Named {
  double distance;  // infinity if there is none
  double dual;      // the dual of the row
  int col;
  int row;  // the row matched to the column; -1 if the column is unmatched
};

// A row that a step of a search scans, as each warp lists it for its lanes.
struct Via {
  double base;      // the distance of its column, less its dual
  double distance;  // of its column
  long long begin;  // of its costs
  int row;          // -1: none, and all is infinitely far
};

// The memory that a team shares: the blocks of a cluster, or a block, or with kAlone a warp.
template <bool kAlone>
struct Shared {
  double* price;
  double* dual;
  int* mate;
  int* pred;
  int* held;
  int* ring;
  int* left;
  Bid* bids;     // two for each bidder, and a last one that is not read
  double* gaps;  // one for each warp
  Named* named;  // two for each warp
  Via* vias;     // two for each lane, for the block
  unsigned long long* mail;  // two barriers
  int* votes;
  int* head;
  int* count;      // the rows in ring, before and after bids
  int* next_count;  // the same while bids are held: of two rounds, in turns
  int* waiting;    // the length of left

  int blocks;    // the blocks of the team
  int block;     // the number of this block
  mutable int exchanges;  // so far, by messages; the same in all threads

  __device__ int thread() const { return kAlone ? lane_index() : block * blockDim.x + threadIdx.x; }
  __device__ int threads() const { return kAlone ? kWarp : blocks * blockDim.x; }
  __device__ int warp() const { return kAlone ? 0 : thread() / kWarp; }
  __device__ int warps() const { return kAlone ? 1 : threads() / kWarp; }
  __device__ bool is_one_block() const { return kAlone || blocks == 1; }

  // The number of this thread among those that share a copy of the arrays, and their count.
  __device__ int thread_here() const { return kAlone ? lane_index() : threadIdx.x; }
  __device__ int threads_here() const { return kAlone ? kWarp : blockDim.x; }

  // Wait for the threads that share this copy.
  __device__ void wait_here() const {
    if (kAlone) __syncwarp();
    else __syncthreads();
  }

  // Wait for the team.
  __device__ void wait() const {
    if (is_one_block()) wait_here();
    else wait_for_cluster();
  }

  // Write a value to all copies.
  template <typename T>
  __device__ void put(T* place, T value) const {
    if (is_one_block()) {
      *place = value;
    } else {
#pragma unroll 1
      for (int other = 0; other < blocks; ++other) *of_block(place, other) = value;
    }
  }

  // Write a value to all copies, by a warp that has it in each lane.
  template <typename T>
  __device__ void put_together(T* place, T value) const {
    if (is_one_block()) {
      if (lane_index() == 0) *place = value;
    } else if (lane_index() < blocks) {
      *of_block(place, lane_index()) = value;
    }
  }

  // An exchange of messages: all threads call `expect`, warps `send`, and all threads call
  // `receive`. Each block must send one message or more, so that no block is an exchange ahead.
  __device__ void expect(int messages, int bytes) const {
    if (!is_one_block() && threadIdx.x == 0) expect_mail(mail + (exchanges & 1), messages * bytes);
  }

  // Write a value to all copies, by a warp that has it in each lane. The block that gets the value
  // first may go on and change what other lanes have still to read for theirs. So they all have
  // their values before one is sent.
  template <typename T>
  __device__ void send(T* place, T value) const {
    if (is_one_block()) {
      if (lane_index() == 0) *place = value;
      return;
    }
    __syncwarp();
    if (lane_index() < blocks) {
      send_to_block(place, value, mail + (exchanges & 1), lane_index());
    }
  }

  // Wait for the messages, or for all threads of a single block.
  __device__ void receive() const {
    if (is_one_block()) {
      wait_here();
    } else {
      wait_for_mail(mail + (exchanges & 1), exchanges >> 1 & 1);
      ++exchanges;
    }
  }

  // True if any thread of the team votes. It waits for the team. The team must have waited once more
  // before the next call.
  __device__ bool any_votes(bool vote) const {
    if (kAlone) {
      __syncwarp();
      return __any_sync(kWholeWarp, vote);
    }
    const int own = __syncthreads_count(vote);
    if (blocks == 1) return own > 0;
    if (threadIdx.x == 0) put(votes + block, own);
    wait();
    int all = 0;
#pragma unroll 1
    for (int other = 0; other < blocks; ++other) all += votes[other];
    return all > 0;
  }
};

// The greatest number of a team's threads. It waits for the team.
template <bool kAlone>
__device__ inline double greatest_of_team(const Shared<kAlone>& shared, double own) {
  double greatest = -least_of_warp(-own);
  if (kAlone) return greatest;
  shared.wait();  // all have read the numbers that were there
  if (lane_index() == 0) shared.put(shared.gaps + shared.warp(), greatest);
  shared.wait();
#pragma unroll 1
  for (int warp = 0; warp < shared.warps(); ++warp) greatest = max(greatest, shared.gaps[warp]);
  return greatest;
}

// Shift the prices of a square problem so that the greatest is 0.
template <typename Team>
__device__ inline void lower_to_zero(const Team& shared, int cols) {
  double greatest = far<double>();
#pragma unroll 1
  for (int col = lane_index(); col < cols; col += kWarp) {
    greatest = min(greatest, -shared.price[col]);
  }
  greatest = -least_of_warp(greatest);
  shared.wait_here();
#pragma unroll 1
  for (int col = shared.thread_here(); col < cols; col += shared.threads_here()) {
    shared.price[col] -= greatest;
  }
  shared.wait_here();
}

// The problem of a block, in the orientation in which it is solved.
template <typename Cost>
struct Problem {
  const Cost* costs;
  long long step;
  int rows;
  int cols;
  Wish wish;

  // True if a cost is valid.
  __device__ __forceinline__ bool fits(Cost cost) const {
    const double paid = wish.sign * static_cast<double>(cost);
    return paid >= -wish.largest && (paid <= wish.largest || paid == far<double>());
  }

  // A cost with the sign of the problem; infinity if the pair is forbidden.
  __device__ __forceinline__ double paid(Cost cost) const {
    const long long sign = __double_as_longlong(wish.sign) & (1ll << 63);
    const double paid = __longlong_as_double(__double_as_longlong(static_cast<double>(cost)) ^ sign);
    return paid <= wish.most ? paid : far<double>();
  }

  __device__ __forceinline__ double cost(int row, int col) const {
    return paid(costs[row * step + col]);
  }

  // True if a row stays unmatched at the distance `leave` rather than take a column at the distance
  // `there`. Both are infinite only if there is no limit and no path, and then it stays unmatched.
  //
  // If rows take what is equal, no row and column are both unmatched at the end whose pair costs
  // the limit or less, however sums are rounded. A search that scans a row may leave it unmatched
  // at base + limit. It reaches an unmatched column, whose price is 0, at base + cost. Rounding
  // keeps the order of the two, and so does `no_less`. So the column is at most as far, and is
  // taken.
  __device__ __forceinline__ bool goes_without(double leave, double there) const {
    return leave < there || (leave == there && !wish.takes_equal);
  }
};

// Visit columns of a row from `begin` on, by a warp, kLoaded a lane at once, as long as all lanes
// have that many. Returns the first column not visited. All costs are loaded before the first is
// used.
template <int kLoaded, typename Cost, typename Visit>
__device__ __forceinline__ int for_columns(const Problem<Cost>& problem, int row, int begin,
                                           Visit visit) {
  const Cost* const costs = problem.costs + row * problem.step + lane_index();
  for (; begin + kLoaded * static_cast<int>(kWarp) <= problem.cols; begin += kLoaded * kWarp) {
    Cost loaded[kLoaded];
#pragma unroll
    for (int k = 0; k < kLoaded; ++k) loaded[k] = costs[begin + k * kWarp];
#pragma unroll
    for (int k = 0; k < kLoaded; ++k) {
      visit(begin + k * static_cast<int>(kWarp) + lane_index(), loaded[k]);
    }
  }
  return begin;
}

// Visit the remaining columns of a row from `begin` on, by a warp, at most kLoaded a lane.
template <int kLoaded, typename Cost, typename Visit>
__device__ __forceinline__ void for_rest(const Problem<Cost>& problem, int row, int begin,
                                         Visit visit) {
  const Cost* const costs = problem.costs + row * problem.step;
  Cost loaded[kLoaded];
#pragma unroll
  for (int k = 0; k < kLoaded; ++k) {
    const int col = begin + k * static_cast<int>(kWarp) + lane_index();
    loaded[k] = costs[col < problem.cols ? col : 0];
  }
#pragma unroll
  for (int k = 0; k < kLoaded; ++k) {
    const int col = begin + k * static_cast<int>(kWarp) + lane_index();
    if (col < problem.cols) visit(col, loaded[k]);
  }
}

// Visit the columns of a row, by a warp, in code that is a third as long as that of `for_row`, and
// somewhat slower: the compiler takes most of its time for such code.
template <typename Cost, bool kAlone, typename Visit>
__device__ __forceinline__ void for_row_in_short(const Problem<Cost>& problem,
                                                 const Shared<kAlone>&, int row, Visit visit) {
  constexpr int kLoaded = kAlone ? 2 : 8;
#pragma unroll 1
  for (int begin = 0; begin < problem.cols; begin += kLoaded * static_cast<int>(kWarp)) {
    for_rest<kLoaded>(problem, row, begin, visit);
  }
}

// Visit the columns of a row, by a warp: visit(col, cost).
template <typename Cost, bool kAlone, typename Visit>
__device__ __forceinline__ void for_row(const Problem<Cost>& problem, const Shared<kAlone>&,
                                        int row, Visit visit) {
  int begin = kAlone ? 0 : for_columns<8>(problem, row, 0, visit);
  if (kAlone || problem.cols - begin <= 2 * static_cast<int>(kWarp)) {
    for_rest<2>(problem, row, begin, visit);
  } else {
    for_rest<8>(problem, row, begin, visit);
  }
}
