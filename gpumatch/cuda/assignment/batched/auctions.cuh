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
#pragma once

#include "assignment/batched/bids.cuh"
#include "assignment/batched/paths.cuh"

constexpr double kFirst = 32.0;   // the first epsilon is at most this times the fall of a price
constexpr double kFall = 8.0;     // from an epsilon to the next; 5 is as fast
constexpr double kFinest = 4.0;   // the last epsilon is this times the first, divided by rows**2
constexpr int kRowsForOne = 64;   // an auction ends when one row in so many is unmatched
constexpr int kMostBids = 64;     // the bids for each row at which an auction ends in any case

// The greatest distance from the nearest column of a row to the nearest ones of the lanes, or
// infinity if a pair is forbidden.
template <typename Cost>
__device__ __forceinline__ double spread_of(const Problem<Cost>& problem,
                                            const Shared<false>& shared) {
  double spread = 0.0;
  for (int row = shared.warp(); row < problem.rows; row += shared.warps()) {
    double least = far<double>();
    bool is_allowed = true;
    for_row(problem, shared, row, [&](int col, Cost cost) {
      const double paid = problem.paid(cost);
      is_allowed &= paid < far<double>();
      least = min(least, paid - shared.price[col]);
    });
    const double nearest = least_of_warp(least);
    spread = max(spread, is_allowed ? least - nearest : far<double>());
  }
  return greatest_of_team(shared, spread);
}

// Part the pairs that cost their rows over epsilon more than the nearest column, and list all
// unmatched rows. The other rows get their duals.
template <typename Cost>
__device__ __forceinline__ void part_pairs(const Problem<Cost>& problem,
                                           const Shared<false>& shared, double epsilon) {
  shared.wait();  // all blocks have decided the last bids
  for (int row = shared.warp(); row < problem.rows; row += shared.warps()) {
    const int col = shared.held[row];
    double least = far<double>();
    for_row(problem, shared, row, [&](int other, Cost cost) {
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

// Hold auctions from the current prices and pairs, then list the unmatched rows. The first epsilon
// follows from paths rather than from costs, because few costs may exceed all others by far. Prices
// would then be too large for their pairs to become tight again.
template <typename Cost>
__device__ __forceinline__ int hold_auctions(const Problem<Cost>& problem,
                                             const Shared<false>& shared, int most,
                                             double fall) {
  const Wish& wish = problem.wish;
  const int rows = problem.rows, fewest = max(wish.fewest, rows / kRowsForOne);
  const double spread = spread_of(problem, shared);
  const double first = spread < far<double>() ? min(spread, kFirst * fall) : 0.0;
  const double last = wish.whole ? 1.0 : first * (kFinest / rows / rows);
  int rounds = 0;
  for (double epsilon = first; epsilon > 0.0 && epsilon >= last; epsilon /= kFall) {
    const double now = wish.whole ? floor(epsilon) : epsilon;
    lower_to_zero(shared, problem.cols);  // so that prices do not fall from auction to auction
    part_pairs(problem, shared, now);
    rounds += hold_bids(problem, shared, now, fewest, kMostBids * rows);
    if (rounds > most) break;
  }
  part_pairs(problem, shared, 0.0);
  return rounds;
}
