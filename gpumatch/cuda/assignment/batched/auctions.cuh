// Auctions with falling epsilon for problems of a batch whose rows and columns must all be matched.
// They serve most rows of problems whose shortest paths are long: in products of numbers, a path
// scans half of all rows in the mean. batch.cu says when auctions are held, and how arrays are
// encoded.
//
// A pair is kept from one auction to the next if it costs its row at most the next epsilon more
// than the nearest column. All other rows bid. An auction ends when few rows are unmatched, because
// their bids would take long. The next auction serves them too. At the end all pairs are tight.
//
// The constants are from counts of rounds and steps for products, matrices of low rank, and points
// on a line, in the plane, and in two clusters, in problems of 100 to 2,048 rows. Products of 512
// rows take 5,000 rounds and steps instead of 125,000.
//
// With more columns than rows, an unmatched column must keep the price 0, so that auctions would
// have to bid for columns, too. They are held where each row prefers the same columns, as many as
// the rows: in products of positive numbers, or where all rows are far from some columns. No row
// needs another column, because one of the preferred ones is free whenever it would take one. So
// the others get the price -infinity, at which no row wants them. In the end the greatest price of
// a preferred column is 0, and each row's dual is at most its cost there. That is no more than any
// column costs that is not preferred. So these get back the price 0.
#pragma once

#include "assignment/batched/bids.cuh"
#include "assignment/batched/paths.cuh"

constexpr double kFirst = 32.0;   // the first epsilon is at most this times the fall of a price
constexpr double kFall = 8.0;     // from an epsilon to the next; 5 is as fast
constexpr int kMostBids = 64;     // the bids for each row at which an auction ends in any case
// For a team of one block, and for a cluster: the last epsilon is kFinest times the first, divided by
// rows**2, and an auction ends when one row in kRowsForOne is unmatched. A cluster takes longer for a
// round than for a step of a path. On an H200, 64 problems of two clusters in 1,024 rows take 35 ms
// with its own limits and 64 with those of a block, and signed products 74 and 99; but products 61
// and 45. 256 of products in 512 rows, with a block each, take 23 ms with a block's and 26 with
// those of a cluster.
constexpr double kFinest = 0.125;
constexpr double kFinestOfCluster = 4.0;
constexpr int kRowsForOne = 128;
constexpr int kRowsForOneOfCluster = 64;

// True for a column that no row needs.
template <typename Team>
__device__ __forceinline__ bool is_left_out(const Team& shared, int col) {
  return shared.price[col] == -far<double>();
}

// Leave out the columns that no row needs, if each row prefers the same ones, as many as the rows.
// Returns whether it does. The first row's order of the columns says which these would be.
template <typename Cost>
__device__ __forceinline__ bool leave_out_columns(const Problem<Cost>& problem,
                                                  const Shared<false>& shared) {
  const int rows = problem.rows, cols = problem.cols;
#pragma unroll 1
  for (int col = shared.thread(); col < cols; col += shared.threads()) {
    const double own = problem.cost(0, col);
    int before = 0;
    for (int other = 0; other < cols; ++other) {
      const double there = problem.cost(0, other);
      before += there < own || (there == own && other < col);
    }
    shared.put(shared.pred + col, static_cast<int>(before < rows));
  }
  shared.wait();
  bool agrees = true;
#pragma unroll 1
  for (int row = shared.warp(); row < rows; row += shared.warps()) {
    double greatest = -far<double>(), least = far<double>();
    for_row_in_short(problem, shared, row, [&](int col, Cost cost) {
      const double paid = problem.paid(cost);
      if (shared.pred[col]) greatest = max(greatest, paid);
      else least = min(least, paid);
    });
    agrees &= -least_of_warp(-greatest) <= least_of_warp(least);
  }
  if (shared.any_votes(!agrees)) return false;
#pragma unroll 1
  for (int col = shared.thread_here(); col < cols; col += shared.threads_here()) {
    if (!shared.pred[col]) shared.price[col] = -far<double>();
  }
  shared.wait_here();
  return true;
}

// Give the columns that were left out their price 0, after the greatest of the others has become 0.
template <typename Team>
__device__ inline void take_back_columns(const Team& shared, int cols) {
#pragma unroll 1
  for (int col = shared.thread_here(); col < cols; col += shared.threads_here()) {
    if (is_left_out(shared, col)) shared.price[col] = 0.0;
  }
  shared.wait_here();
}

// The greatest distance from the nearest column of a row to the nearest ones of the lanes, or
// infinity if a pair is forbidden. Lanes without a column that is not left out do not count.
template <typename Cost>
__device__ __forceinline__ double spread_of(const Problem<Cost>& problem,
                                            const Shared<false>& shared) {
  double spread = 0.0;
#pragma unroll 1
  for (int row = shared.warp(); row < problem.rows; row += shared.warps()) {
    double least = far<double>();
    bool is_allowed = true;
    for_row_in_short(problem, shared, row, [&](int col, Cost cost) {
      const double paid = problem.paid(cost);
      is_allowed &= paid < far<double>();
      least = min(least, paid - shared.price[col]);
    });
    const double nearest = least_of_warp(least);
    const double apart = least < far<double>() ? least - nearest : 0.0;
    spread = max(spread, is_allowed ? apart : far<double>());
  }
  return greatest_of_team(shared, spread);
}

// Part the pairs that cost their rows over epsilon more than the nearest column, and list all
// unmatched rows. The other rows get their duals.
template <typename Cost>
__device__ __forceinline__ void part_pairs(const Problem<Cost>& problem,
                                           const Shared<false>& shared, double epsilon) {
  shared.wait();  // all blocks have decided the last bids
#pragma unroll 1
  for (int row = shared.warp(); row < problem.rows; row += shared.warps()) {
    const int col = shared.held[row];
    double least = far<double>();
    for_row_in_short(problem, shared, row, [&](int other, Cost cost) {
      least = min(least, problem.paid(cost) - shared.price[other]);
    });
    least = least_of_warp(least);
    shared.put_together(shared.dual + row, least);
    if (col >= 0 && problem.cost(row, col) - shared.price[col] - least > epsilon) {
      shared.put_together(shared.held + row, -1);
      shared.put_together(shared.mate + col, -1);
    }
  }
  shared.wait();
  if (shared.thread_here() < static_cast<int>(kWarp)) {
    list_rows(
        shared, problem.rows, [&](int row) { return shared.held[row] < 0; },
        [](int) { return false; });
  }
  shared.wait_here();
}

// The bids to come: auctions with an epsilon that falls, if there are any, then bids without one.
struct Auctions {
  bool are_held;
  double epsilon;  // of the first auction; 0 if none is left
  double last;     // the least epsilon of an auction
  int fewest;      // the number of unmatched rows at which one ends
};

// The auctions from the current prices and pairs. The first epsilon follows from paths rather than
// from costs, because few costs may exceed all others by far. Prices would then be too large for
// their pairs to become tight again.
template <typename Cost>
__device__ __forceinline__ Auctions plan_auctions(const Problem<Cost>& problem,
                                                  const Shared<false>& shared, double fall) {
  const Wish& wish = problem.wish;
  const bool is_block = shared.is_one_block();
  const double finest = is_block ? kFinest : kFinestOfCluster;
  const int rows = problem.rows;
  const double spread = spread_of(problem, shared);
  const double first = spread < far<double>() ? min(spread, kFirst * fall) : 0.0;
  const double last = wish.whole ? 1.0 : first * (finest / rows / rows);
  const int for_one = is_block ? kRowsForOne : kRowsForOneOfCluster;
  return {true, first >= last ? first : 0.0, last, max(wish.fewest, rows / for_one)};
}

// Hold auctions, and then bids without an epsilon, for the listed rows, or all that are unmatched
// after an auction. Returns the number of rounds of auctions, of which there are about `most`. The
// bids are at one place of the code, because the compiler takes long for them.
template <typename Cost>
__device__ __forceinline__ int hold_all_bids(const Problem<Cost>& problem,
                                             const Shared<false>& shared, Auctions auctions,
                                             int most) {
  const Wish& wish = problem.wish;
  const int rows = problem.rows;
  double epsilon = auctions.epsilon;
  for (int rounds = 0;;) {
    const double now = wish.whole ? floor(epsilon) : epsilon;
    const bool is_auction = now > 0.0;
    if (is_auction) lower_to_zero(shared, problem.cols);  // so that prices do not fall and fall
    if (auctions.are_held) part_pairs(problem, shared, now);
    const int fewest = is_auction ? auctions.fewest : wish.fewest;
    const int bids = is_auction ? kMostBids : wish.bids;
    const int held = hold_bids(problem, shared, now, fewest, bids * rows);
    if (!is_auction) return rounds;
    rounds += held;
    epsilon /= kFall;
    if (rounds > most || epsilon < auctions.last) epsilon = 0.0;
  }
}
