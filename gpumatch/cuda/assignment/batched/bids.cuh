// The bids of a problem of a batch: column reduction or a first bid for all rows, then augmenting
// row reduction, or bids with an epsilon. batch.cu describes them, and the encodings.
#pragma once

#include "assignment/batched/team.cuh"

// Append the rows of some lanes, in their order, to `items`, a ring of `room`. Returns their
// number.
__device__ inline int append(bool wanted, int row, int* items, int from, int room) {
  const unsigned all = __ballot_sync(kWholeWarp, wanted);
  if (wanted) items[(from + __popc(all & ((1u << lane_index()) - 1))) % room] = row;
  return __popc(all);
}

// Begin without pairs, and with prices of 0. kNobody is above all rows and columns.
template <typename Team>
__device__ inline void begin(const Team& shared, int rows, int cols) {
#pragma unroll 1
  for (int col = shared.thread_here(); col < cols; col += shared.threads_here()) {
    shared.price[col] = 0.0;
    shared.mate[col] = kNobody;
  }
#pragma unroll 1
  for (int row = shared.thread_here(); row < rows; row += shared.threads_here()) {
    shared.held[row] = kNobody;
    shared.dual[row] = 0.0;
  }
  shared.wait();
}

// Make the lists of rows, in their order, by one warp: rows that bid next, and rows for paths.
template <typename Team, typename Bids, typename Stays>
__device__ inline void list_rows(const Team& shared, int rows, Bids bids, Stays stays) {
  int count = 0, waiting = 0;
#pragma unroll 1
  for (int first = 0; first < rows; first += kWarp) {
    const int row = first + lane_index();
    const bool is_row = row < rows, next = is_row && bids(row), left = is_row && stays(row);
    count += append(next, row, shared.ring, count, rows);
    waiting += append(left, row, shared.left, waiting, rows);
  }
  if (lane_index() == 0) {
    *shared.head = 0;
    *shared.count = count;
    *shared.waiting = waiting;
  }
}

// The least cost of a column, and the first row that has it; -1 if all pairs are forbidden. The rows
// are seen by turns in kStreams independent ways, because one comparison waits for the one before.
template <typename Cost>
__device__ __forceinline__ double least_of_column(const Problem<Cost>& problem, int col,
                                                  int& nearest, bool& fit) {
  constexpr int kStreams = 4, kLoaded = sizeof(Cost) == 8 ? 8 : 16;
  const Cost* const costs = problem.costs + col;
  double least[kStreams];
  int first[kStreams];
#pragma unroll
  for (int s = 0; s < kStreams; ++s) {
    least[s] = far<double>();
    first[s] = -1;
  }
  const auto see = [&](Cost cost, int row, int s) {
    const double paid = problem.paid(cost);
    fit &= problem.fits(cost);
    first[s] = paid < least[s] ? row : first[s];
    least[s] = paid < least[s] ? paid : least[s];
  };
  int row = 0;
  for (; row + kLoaded <= problem.rows; row += kLoaded) {
    Cost loaded[kLoaded];
#pragma unroll
    for (int k = 0; k < kLoaded; ++k) loaded[k] = costs[(row + k) * problem.step];
#pragma unroll
    for (int k = 0; k < kLoaded; ++k) see(loaded[k], row + k, k % kStreams);
  }
#pragma unroll 1
  for (; row < problem.rows; ++row) see(costs[row * problem.step], row, 0);
#pragma unroll
  for (int s = 1; s < kStreams; ++s) {
    const bool is_earlier = least[s] == least[0] && first[s] >= 0 && first[s] < first[0];
    if (least[s] < least[0] || is_earlier) {
      least[0] = least[s];
      first[0] = first[s];
    }
  }
  nearest = first[0];
  return least[0];
}

// Set the price of each column of a square problem to its least cost, and match it to the first row
// with this cost, unless an earlier column has this row. Returns false if a cost is not valid.
template <typename Cost, typename Team>
__device__ __forceinline__ bool reduce_columns(const Problem<Cost>& problem, const Team& shared) {
  const int rows = problem.rows, cols = problem.cols;
  bool fit = true;
#pragma unroll 1
  for (int col = shared.thread(); col < cols; col += shared.threads()) {
    int nearest;
    const double least = least_of_column(problem, col, nearest, fit);
    shared.put(shared.pred + col, nearest);
    if (nearest >= 0) shared.put(shared.price + col, least);
  }
  if (shared.any_votes(!fit)) return false;
#pragma unroll 1
  for (int col = shared.thread_here(); col < cols; col += shared.threads_here()) {
    if (shared.pred[col] >= 0) atomicMin(shared.held + shared.pred[col], col);
  }
  shared.wait_here();
#pragma unroll 1
  for (int col = shared.thread_here(); col < cols; col += shared.threads_here()) {
    const int row = shared.pred[col];
    shared.mate[col] = row >= 0 && shared.held[row] == col ? row : -1;
  }
  shared.wait_here();
  if (shared.thread_here() < static_cast<int>(kWarp)) {
    list_rows(
        shared, rows,
        [&](int row) {
          const bool is_free = shared.held[row] == kNobody;
          if (is_free) shared.held[row] = -1;
          return is_free;
        },
        [](int) { return false; });
  }
  shared.wait_here();
  return true;
}

// The bid of a row, by a warp. The price that it offers is lower by epsilon than that at which the
// second nearest column is as near. With kFirst all prices are 0, all columns are unmatched, and
// costs are checked.
template <bool kFirst, typename Cost, typename Team>
__device__ __forceinline__ Bid bid_of(const Problem<Cost>& problem, const Team& shared,
                                      int row, double epsilon, bool& fit) {
  const int cols = problem.cols;
  const auto cost_at = [&](int col, Cost cost) {
    return kFirst ? problem.paid(cost) : problem.paid(cost) - shared.price[col];
  };
  double least = far<double>(), second = far<double>();
  int col = 0;
  for_row(problem, shared, row, [&](int other, Cost cost) {
    if (kFirst) fit &= problem.fits(cost);
    const double there = cost_at(other, cost);
    const bool is_less = there < least;
    second = is_less ? least : (there < second ? there : second);
    col = is_less ? other : col;
    least = is_less ? there : least;
  });
  const double nearest = least_of_warp(least);
  if (problem.goes_without(problem.wish.limit, nearest)) {
    return {0.0, 0.0, row, problem.wish.limit < far<double>() ? kLeaves : kStays};
  }
  const bool is_nearest = least == nearest;
  const unsigned lanes = __ballot_sync(kWholeWarp, is_nearest);
  second = least_of_warp(is_nearest && __popc(lanes) == 1 ? second : least);
  bool is_taken;
  if (second == nearest) {  // of equally near columns, unmatched ones come first
    const int begin = static_cast<int>(1ll * row * cols / problem.rows);
    unsigned rank = 0xffffffffu;
    for_row_in_short(problem, shared, row, [&](int other, Cost cost) {
      if (cost_at(other, cost) != nearest) return;
      const bool is_free = kFirst || shared.mate[other] < 0;
      rank = min(rank, (is_free ? 0u : cols) + other - begin + (other < begin ? cols : 0));
    });
    rank = __reduce_min_sync(kWholeWarp, rank);
    is_taken = rank >= static_cast<unsigned>(cols);
    col = static_cast<int>(is_taken ? rank - cols : rank) + begin;
    if (col >= cols) col -= cols;
  } else {
    col = __shfl_sync(kWholeWarp, col, __ffs(lanes) - 1);
    is_taken = !kFirst && shared.mate[col] >= 0;
  }
  second = min(second, problem.wish.limit);
  if (second == far<double>()) second = nearest;  // the row has one column only
  const double before = kFirst ? 0.0 : shared.price[col];
  const double price = before - (second - nearest + epsilon);
  if (is_taken && !(price < before)) return {0.0, 0.0, row, kStays};
  return {price, second, row, col};
}

// Lower a number in this block's memory that is not above 0. The bits of such numbers ascend as the
// numbers fall.
__device__ __forceinline__ void lower(double* place, double value) {
  atomicMax(reinterpret_cast<unsigned long long*>(place),
            static_cast<unsigned long long>(__double_as_longlong(value)));
}

// Bid for all rows at prices of 0. The lowest price gets a column, and of equal prices that of the
// first row. Returns false if a cost is not valid.
template <typename Cost, typename Team>
__device__ __forceinline__ bool bid_first(const Problem<Cost>& problem, const Team& shared) {
  const int rows = problem.rows;
  bool fit = true;
#pragma unroll 1
  for (int row = shared.warp(); row < rows; row += shared.warps()) {
    const Bid own = bid_of<true>(problem, shared, row, 0.0, fit);
    shared.put_together(shared.left + row, own.col);
    shared.put_together(shared.dual + row, own.dual);
  }
  if (shared.any_votes(!fit)) return false;
  const auto bid = [&](int row, int col) {
    return 0.0 - (shared.dual[row] - problem.cost(row, col));
  };
#pragma unroll 1
  for (int row = shared.thread_here(); row < rows; row += shared.threads_here()) {
    const int col = shared.left[row];
    if (col >= 0) lower(shared.price + col, bid(row, col));
  }
  shared.wait_here();
#pragma unroll 1
  for (int row = shared.thread_here(); row < rows; row += shared.threads_here()) {
    const int col = shared.left[row];
    if (col >= 0 && bid(row, col) == shared.price[col]) atomicMin(shared.mate + col, row);
  }
  shared.wait_here();
  if (shared.thread_here() < static_cast<int>(kWarp)) {
    list_rows(
        shared, rows,
        [&](int row) {
          const int col = shared.left[row];
          const bool has_it = col >= 0 && shared.mate[col] == row;
          shared.held[row] = has_it ? col : -1;
          return col >= 0 && !has_it;
        },
        [&](int row) { return shared.left[row] == kStays; });
  }
  shared.wait_here();
#pragma unroll 1
  for (int col = shared.thread_here(); col < problem.cols; col += shared.threads_here()) {
    if (shared.mate[col] == kNobody) shared.mate[col] = -1;
  }
  shared.wait_here();
  return true;
}

// Match columns to the bidders with the lowest prices, by one warp with a bid a lane. `next_count`
// gets the number of listed rows, of which there were `count`.
template <typename Team>
__device__ inline void decide(const Team& shared, const Bid* bids, int bidders, int rows, int count,
                              int* next_count) {
  const int lane = lane_index();
  Bid own = {0.0, 0.0, -1, -kMostThreads - lane};
  if (lane < bidders) own = bids[lane];
  const bool wants = own.col >= 0;
  const int key = wants ? own.col : -kMostThreads - lane;  // equal to the key of no other lane
  bool wins = wants;
#pragma unroll 1
  for (unsigned others = __match_any_sync(kWholeWarp, key) & ~(1u << lane); others != 0;
       others &= others - 1) {
    const int other = __ffs(others) - 1;
    const double price = bids[other].price;
    wins &= own.price < price || (own.price == price && lane < other);
  }
  int again = wants && !wins ? own.row : -1;
  if (wins) {
    again = shared.mate[own.col];
    if (again >= 0) shared.held[again] = -1;
    shared.mate[own.col] = own.row;
    shared.price[own.col] = own.price;
    shared.held[own.row] = own.col;
    shared.dual[own.row] = own.dual;
  }
  __syncwarp();
  const int head = *shared.head, waiting = *shared.waiting;
  const int more = append(again >= 0, again, shared.ring, head + count, rows);
  const bool stays = lane < bidders && own.col == kStays;
  const int stay = append(stays, own.row, shared.left, waiting, rows);
  __syncwarp();
  if (lane == 0) {
    *shared.head = (head + bidders) % rows;
    *next_count = count - bidders + more;
    *shared.waiting = waiting + stay;
  }
}

// Bid for the listed rows, with a warp for each, until no more than `fewest` are listed, or `most`
// bids are made. Returns the number of rounds.
//
// In a team of several blocks, only warps that bid are waited for. Another one may read the number
// of listed rows when the next round is already decided, but not the one after that. So two rounds
// have two places for that number.
template <typename Cost>
__device__ __forceinline__ int hold_bids(const Problem<Cost>& problem, const Shared<false>& shared,
                                         double epsilon, int fewest, int most) {
  const int warps = min(shared.warps(), kMostBidders), rows = problem.rows;
  const int bidder = threadIdx.x / kWarp * shared.blocks + shared.block;
  bool fit = true;
  int rounds = 0, count = *shared.count;
  Bid* bids = shared.bids;
#pragma unroll 1
  for (int spent = 0; count > fewest && spent < most; ++rounds) {
    const int bidders = min(warps, count);
    int* const next_count = shared.next_count + (rounds & 1);
    shared.expect(max(bidders, shared.blocks), sizeof(Bid));
    if (bidder < bidders) {
      const int row = shared.ring[(*shared.head + bidder) % rows];
      shared.send(bids + bidder, bid_of<false>(problem, shared, row, epsilon, fit));
    } else if (bidder < shared.blocks) {
      shared.send(shared.bids + 2 * kMostBidders, Bid{0.0, 0.0, -1, kStays});
    }
    shared.receive();
    if (threadIdx.x < kWarp) decide(shared, bids, bidders, rows, count, next_count);
    spent += bidders;
    bids = shared.bids + (bids == shared.bids ? kMostBidders : 0);  // other blocks may still decide
    __syncthreads();
    count = *next_count;
  }
  if (threadIdx.x == 0) *shared.count = count;
  __syncthreads();
  return rounds;
}

// Move the rows that are still listed to `left`, and return its length. It waits for the team.
template <typename Team>
__device__ inline int leave_rows(const Team& shared, int rows) {
  const int count = *shared.count, waiting = *shared.waiting;
#pragma unroll 1
  for (int k = shared.thread_here(); k < count; k += shared.threads_here()) {
    shared.left[waiting + k] = shared.ring[(*shared.head + k) % rows];
  }
  shared.wait();
  return waiting + count;
}
