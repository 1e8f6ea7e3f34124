// The auction of Vasconcelos and Rosenhahn (Bipartite graph matching computation on GPU, EMMCVPR
// 2009): in each round all bidders bid, then objects are awarded, until all bidders are served.
//
// The paper's persons are the bidders here, and its objects are what they bid for. Rows bid for
// columns; in the columns' auction after that, columns bid for rows. A round has the paper's two
// kernels. Here they are steps of one cooperative kernel that holds many rounds, with grid barriers
// between the steps:
//
//   bidding_kernel     Every person without an object bids. Lanes of a warp, a warp or a block read
//                      one row together, as many as there are threads for each bidder.
//   compare_offers     Each object finds its best offer. Of equal offers it takes that of the first
//   assignment_kernel  bidder, so the order of threads does not change the auction. The object goes
//                      to that bidder, and the bidder that had it bids again.
//
// If few bidders remain, one block holds the rounds alone, and its first warp awards without
// atomics. Most rounds are of this kind, because the last bidders need many rounds.
//
// The convergence test is the paper's: a counter of the objects that have got their first bid,
// which are as many as the persons assigned; or a boolean stream of these objects and its
// reduction. Both also count the bidders that stay unmatched, which the paper does not have. The
// host reads the counter once a launch.
//
// Names of the paper: price p_j other_dual, negative; bid value and target bid_offer, bid_target.
//
// Encodings
//   bidders[r & 1]   the bidders of round r, in any order: a queue as of frontier.cuh
//   bid_target[k]    the object that bidder k of the queue bids for; -1: to stay unmatched is
//                    cheaper
//   bid_offer[k]     the dual that the object would get; the lowest offer wins
//   best[j]          the best offer for object j, as ordered(); between rounds its dual
//   winner[j]        stamp() of the bidder with the best offer
//   is_served[]      bytes: 1 at j if object j has got its first bid in this auction, and at
//                    nobjects + i if bidder i stays unmatched. Null with the counter.
#include "assignment/auction_bids.cuh"
#include "frontier.cuh"

// Not measured. A round of one block needs no grid barriers, but reads with one multiprocessor.
// Both are chosen so that it reads for about as long as a few barriers take.
constexpr int kAloneBidders = 2;             // one block alone, however long their rows are
constexpr long long kAloneEntries = 1 << 15;  // or with this many entries to read

struct State {
  int round;
  int goal;      // bidders to serve
  int waiting;   // bidders in the queue when the launch ended
  int assigned;  // objects that have got their first bid: the paper's counter
  int without;   // bidders that stay unmatched
  int pushed;    // length of the queue for the next round
};

template <typename Number>
struct Auction {
  int nbidders;
  int nobjects;
  Number* own_dual;
  Number* other_dual;
  int* own_mate;
  int* other_mate;
  int* bidders[2];
  int* bid_target;
  Number* bid_offer;
  long long* best;
  unsigned long long* winner;
  unsigned char* is_served;
  long long* sums;  // of is_served, a block each
  State* state;
  unsigned* barrier;
};

// The terms of the bids.
template <typename Number>
struct Terms {
  const Number* cap;  // the bound of bidders' duals; far() if there is no limit
  Number jump;        // the increment of a bidder with one object only
  Number epsilon;
};

struct Counts {
  int assigned;
  int without;
};

// A number that is greater for later rounds, and in one round greatest for the first bidder.
__device__ inline unsigned long long stamp(int round, int bidder) {
  return (static_cast<unsigned long long>(round + 1) << 32) | (0xffffffffu - bidder);
}

// -- bidding --------------------------------------------------------------------------------------

template <typename Number>
struct Bid {
  int object;     // -1: to stay unmatched is cheaper for the bidder
  Number offer;
  int holder;     // the bidder that has the object now, -1 if none
};

// A bidder's offer for its best object. The bidder's dual becomes the second least reduced cost
// plus epsilon.
template <typename Number>
__device__ Bid<Number> bid_for(const Auction<Number>& a, Terms<Number> t, Number cap, int bidder,
                               const Best<Number>& best) {
  const bool has_cap = cap < far<Number>(), has_second = best.second < far<Number>();
  if (best.col < 0 || (has_cap && cap - best.least <= t.epsilon)) {
    a.own_dual[bidder] = cap;
    return {-1, far<Number>(), -1};
  }
  const Number price = a.other_dual[best.col];
  const int holder = a.other_mate[best.col];
  const Number lead = has_second ? best.second - best.least + t.epsilon : t.jump + t.epsilon;
  const Number raise = has_cap && (!has_second || cap - best.least < lead) ? cap - best.least : lead;
  a.own_dual[bidder] = best.least + raise;
  return {best.col, price - raise, holder};
}

// The paper's bidding kernel for bidders[0 .. size), on block `block` of `blocks`.
template <typename Entries, typename Number, typename Submit>
__device__ void bidding_kernel(const Entries& entries, const Auction<Number>& a, Terms<Number> t,
                               Number cap, const int* bidders, int size, int block, int blocks,
                               Submit submit) {
  const int most = min(entries.loads(), kBlock);
  const int lanes = max(lanes_for(size, blocks * kBlock, most), Entries::kLeastLanes);
  const int log_lanes = __ffs(lanes) - 1;  // a shift is quicker than a division
  const int member = threadIdx.x & (lanes - 1);
  const int teams = (kBlock >> log_lanes) * blocks;
  const int team = static_cast<int>(threadIdx.x >> log_lanes) * blocks + block;
  for (int first = 0; first < size; first += teams) {
    const int k = first + team;
    const int bidder = k < size ? bidders[k] : -1;
    Best<Number> best = Best<Number>::none();
    if (bidder >= 0) best = entries.look(bidder, a.other_dual, member, lanes);
    best = best_of_lanes(best, lanes);
    if (bidder >= 0 && member == 0) submit(k, bid_for(a, t, cap, bidder, best));
  }
}

// -- assignment -----------------------------------------------------------------------------------

// Move an object from its holder, -1 for none, to a bidder.
template <typename Number>
__device__ void assign(const Auction<Number>& a, int object, int bidder, Number offer,
                       int holder) {
  a.other_dual[object] = offer;
  a.other_mate[object] = bidder;
  a.own_mate[bidder] = object;
  if (holder >= 0) {
    a.own_mate[holder] = -1;
  } else if (a.is_served != nullptr) {
    a.is_served[object] = 1;
  }
}

template <typename Number>
__device__ void go_without(const Auction<Number>& a, int bidder) {
  if (a.is_served != nullptr) a.is_served[a.nobjects + bidder] = 1;
}

template <typename Number>
__device__ void compare_offers(const Auction<Number>& a, const int* bidders, int size, int round) {
  for (int k = thread_index(); k < size; k += thread_count()) {
    const int object = a.bid_target[k];
    if (object >= 0 && now(a.best[object]) == ordered(a.bid_offer[k])) {
      atomicMax(a.winner + object, stamp(round, bidders[k]));
    }
  }
}

// The paper's assignment kernel, with a thread for each bid: an object without a bid has no work.
template <typename Number>
__device__ void assignment_kernel(const Auction<Number>& a, const int* bidders, int size,
                                  int round) {
  const Queue<int> again = {a.bidders[(round + 1) & 1], &a.state->pushed};
  int assigned = 0, without = 0;
  for (int k = thread_index(); k < size; k += thread_count()) {
    const int bidder = bidders[k], object = a.bid_target[k];
    int waits = bidder;
    if (object < 0) {
      go_without(a, bidder);
      ++without;
      continue;
    }
    if (now(a.winner[object]) == stamp(round, bidder)) {
      waits = a.other_mate[object];
      assign(a, object, bidder, a.bid_offer[k], waits);
    }
    if (waits >= 0) {
      push(again, waits);
    } else {
      ++assigned;
    }
  }
  if (a.is_served != nullptr) return;
  add_to(&a.state->assigned, assigned);
  add_to(&a.state->without, without);
}

// Compare and award up to a warp of bids, with a lane for each. Returns the bidder that loses its
// object, or must bid again; -1 for none.
template <typename Number>
__device__ int award_by_warp(const Auction<Number>& a, int bidder, const Bid<Number>& bid, int size,
                             Counts& counts) {
  bool is_beaten = false;
  for (int k = 0; k < size; ++k) {
    const bool is_rival = __shfl_sync(kWholeWarp, bid.object, k) == bid.object && k != lane_index();
    const Number offer = __shfl_sync(kWholeWarp, bid.offer, k);
    const int rival = __shfl_sync(kWholeWarp, bidder, k);
    is_beaten |= is_rival && (offer < bid.offer || (offer == bid.offer && rival < bidder));
  }
  int waits = bidder;
  const bool is_without = bidder >= 0 && bid.object < 0;
  if (is_without) {
    go_without(a, bidder);
    waits = -1;
  } else if (bidder >= 0 && !is_beaten) {
    assign(a, bid.object, bidder, bid.offer, bid.holder);
    waits = bid.holder;
  }
  const bool is_first = bidder >= 0 && !is_without && waits < 0;
  counts.assigned += __popc(__ballot_sync(kWholeWarp, is_first));
  counts.without += __popc(__ballot_sync(kWholeWarp, is_without));
  return waits;
}

// -- convergence ----------------------------------------------------------------------------------

__device__ inline long long sum_of_block(long long number) {
  __shared__ long long of_warp[kBlock / kWarp];
  for (int step = kWarp / 2; step > 0; step /= 2) {
    number += __shfl_down_sync(kWholeWarp, number, step);
  }
  if (lane_index() == 0) of_warp[threadIdx.x / kWarp] = number;
  __syncthreads();
  number = 0;
  for (int w = 0; w < kBlock / static_cast<int>(kWarp); ++w) number += of_warp[w];
  __syncthreads();
  return number;
}

// The paper's test without atomics: reduce the stream, with both counts in one number.
template <typename Number>
__device__ Counts count_served(const Auction<Number>& a, int block, int blocks) {
  constexpr long long kWithout = 1ll << 32;
  long long sum = 0;
  for (int i = block * kBlock + threadIdx.x; i < a.nobjects + a.nbidders; i += blocks * kBlock) {
    if (a.is_served[i] != 0) sum += i < a.nobjects ? 1 : kWithout;
  }
  sum = sum_of_block(sum);
  if (blocks > 1) {
    if (threadIdx.x == 0) a.sums[block] = sum;
    grid_barrier(a.barrier);
    sum = 0;
    for (int b = threadIdx.x; b < blocks; b += kBlock) sum += a.sums[b];
    sum = sum_of_block(sum);
  }
  return {static_cast<int>(sum % kWithout), static_cast<int>(sum / kWithout)};
}

// -- rounds ---------------------------------------------------------------------------------------

// True if one block is fastest. The number of bidders never increases, so this stays true.
template <typename Entries>
__device__ bool is_for_one_block(const Entries& entries, int bidders) {
  return bidders <= static_cast<int>(kWarp) &&
         (bidders <= kAloneBidders || 1ll * bidders * entries.length <= kAloneEntries);
}

// Hold rounds with one block, up to round `last` or the end of the budget. Each entry counts as
// many times as the grid has blocks, because one block reads that much slower. Writes the queue and
// the counts back.
template <typename Entries, typename Number>
__device__ void hold_rounds_alone(const Entries& entries, const Auction<Number>& a,
                                  Terms<Number> t, int round, int waiting, int last,
                                  long long budget) {
  __shared__ int bidders[kWarp];
  __shared__ Bid<Number> bids[kWarp];
  __shared__ Counts shared_counts;
  State& state = *a.state;
  const Number cap = *t.cap;
  const int goal = state.goal;
  const int lane = lane_index();
  Counts counts = {state.assigned, state.without};
  if (static_cast<int>(threadIdx.x) < waiting) {
    bidders[threadIdx.x] = a.bidders[round & 1][threadIdx.x];
  }
  __syncthreads();
  for (; waiting > 0 && round < last && budget > 0; ++round) {
    bidding_kernel(entries, a, t, cap, bidders, waiting, 0, 1,
                   [&](int k, const Bid<Number>& bid) { bids[k] = bid; });
    __syncthreads();
    if (threadIdx.x < kWarp) {
      const bool has_bid = lane < waiting;
      const Bid<Number> bid = has_bid ? bids[lane] : Bid<Number>{-1, far<Number>(), -1};
      const int waits = award_by_warp(a, has_bid ? bidders[lane] : -1, bid, waiting, counts);
      const unsigned all = __ballot_sync(kWholeWarp, waits >= 0);
      __syncwarp();  // every lane has read its bidder
      if (waits >= 0) bidders[__popc(all & ((1u << lane) - 1))] = waits;
      if (lane == 0) shared_counts = counts;
    }
    __syncthreads();
    budget -= static_cast<long long>(waiting) * entries.length * gridDim.x;
    counts = a.is_served == nullptr ? shared_counts : count_served(a, 0, 1);
    waiting = goal - counts.assigned - counts.without;
  }
  if (static_cast<int>(threadIdx.x) < waiting) {
    a.bidders[round & 1][threadIdx.x] = bidders[threadIdx.x];
  }
  if (threadIdx.x == 0) {
    state.round = round;
    state.waiting = waiting;
    state.assigned = counts.assigned;
    state.without = counts.without;
  }
}

// Hold rounds until all bidders are served, `max_rounds` are over, or `budget` entries are read.
template <typename Entries>
__global__ void __launch_bounds__(kBlock)
    hold_rounds(Entries entries, Auction<typename Entries::Number> a,
                Terms<typename Entries::Number> t, int max_rounds, long long budget) {
  using Number = typename Entries::Number;
  State& state = *a.state;
  const bool is_first = thread_index() == 0;
  const Number cap = *t.cap;
  const int goal = state.goal, last = state.round + max_rounds;
  int round = state.round, waiting = state.waiting;  // the same in all blocks
  Counts counts = {};
  const int began = round;
  while (waiting > 0 && round < last && budget > 0 && !is_for_one_block(entries, waiting)) {
    const int* bidders = a.bidders[round & 1];
    if (is_first) state.pushed = 0;
    bidding_kernel(entries, a, t, cap, bidders, waiting, blockIdx.x, gridDim.x,
                   [&](int k, const Bid<Number>& bid) {
                     a.bid_target[k] = bid.object;
                     a.bid_offer[k] = bid.offer;
                     if (bid.object >= 0) atomicMin(a.best + bid.object, ordered(bid.offer));
                   });
    grid_barrier(a.barrier);
    compare_offers(a, bidders, waiting, round);
    grid_barrier(a.barrier);
    assignment_kernel(a, bidders, waiting, round);
    grid_barrier(a.barrier);
    budget -= static_cast<long long>(waiting) * entries.length;
    counts = a.is_served == nullptr ? Counts{now(state.assigned), now(state.without)}
                                    : count_served(a, blockIdx.x, gridDim.x);
    waiting = goal - counts.assigned - counts.without;
    ++round;
  }
  grid_barrier(a.barrier);  // all have read what is written after this
  if (blockIdx.x != 0) return;
  if (is_first && round > began) {
    state.round = round;
    state.waiting = waiting;
    state.assigned = counts.assigned;
    state.without = counts.without;
  }
  __syncthreads();
  if (is_for_one_block(entries, waiting) && budget > 0) {
    hold_rounds_alone(entries, a, t, round, waiting, last, budget);
  }
}

// -- before and after -----------------------------------------------------------------------------

// Make the first queue by compaction, of unmatched bidders with a dual below the cap, and the state
// of an auction without bids.
template <typename Cost>
__global__ void open_auction(Auction<Number<Cost>> a, const Number<Cost>* cap, int* counts) {
  const int size = compact(
      Compaction{counts, a.barrier}, a.nbidders,
      [&](int i) { return a.own_mate[i] < 0 && a.own_dual[i] < *cap; },
      [&](int place, int i) { a.bidders[0][place] = i; });
  for (int j = thread_index(); j < a.nobjects; j += thread_count()) {
    a.best[j] = ordered(a.other_dual[j]);
    a.winner[j] = 0;
  }
  if (a.is_served != nullptr) {
    for (int i = thread_index(); i < a.nobjects + a.nbidders; i += thread_count()) {
      a.is_served[i] = 0;
    }
  }
  if (thread_index() == 0) *a.state = {0, size, size, 0, 0, 0};
}

// least[i]: the least reduced cost of row i at the prices. A warp a row.
template <typename Entries>
__global__ void least_reduced(Entries entries, int nrows, const typename Entries::Number* price,
                              typename Entries::Number* least) {
  using Number = typename Entries::Number;
  for (int i = thread_index() / kWarp; i < nrows; i += thread_count() / kWarp) {
    const Best<Number> best =
        best_of_lanes(entries.look(i, price, lane_index(), kWarp), static_cast<int>(kWarp));
    if (lane_index() == 0) least[i] = best.least;
  }
}
