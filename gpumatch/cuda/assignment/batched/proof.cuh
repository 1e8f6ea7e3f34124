// The proof of a problem of a batch: its duals, its objective and its gap, and their writing.
// batch.cu describes the step, and the encodings.
#pragma once

#include "assignment/batched/team.cuh"

constexpr double kUlps = 16.0;  // the allowance of a proven gap, as in gpumatch/numeric/gaps.py
constexpr double kFine = 0x1p-40;  // the share of the objective up to which a gap is not coarse

// A sum as two doubles: the rounded sum and the rounding errors.
struct Sum {
  double high;
  double low;
};

__device__ inline Sum plus(Sum sum, double term) {
  const double total = sum.high + term, back = total - sum.high;
  return {total, sum.low + ((sum.high - (total - back)) + (term - back))};
}

__device__ inline void put(double* place, double number, bool whole) {
  if (whole) *reinterpret_cast<long long*>(place) = __double2ll_rn(number);
  else *place = number;
}

// The results of the rows or of the columns of a caller's problem.
struct Side {
  int* mates;
  double* duals;
};

__device__ inline double number_at(const double* place, bool whole) {
  return whole ? static_cast<double>(*reinterpret_cast<const long long*>(place)) : *place;
}

// Take the pairs and the duals of the columns from the results.
template <typename Cost, typename Team>
__device__ inline void take_given(const Problem<Cost>& problem, const Team& shared, Side rows,
                                  Side cols) {
#pragma unroll 1
  for (int col = shared.thread_here(); col < problem.cols; col += shared.threads_here()) {
    shared.price[col] = problem.wish.sign * number_at(cols.duals + col, problem.wish.whole);
    shared.mate[col] = cols.mates[col];
  }
#pragma unroll 1
  for (int row = shared.thread_here(); row < problem.rows; row += shared.threads_here()) {
    shared.held[row] = rows.mates[row];
  }
  shared.wait();  // all have read the results, which are overwritten from here on
}

// The slack of a pair, cost - price - base - dual, rounded up.
__device__ inline double left_of(double cost, double price, double base, double dual) {
  const double paid = cost - price, back = paid - cost, rest = paid - base;
  const double lost = (cost - (paid - back)) - (price + back);
  const double after = rest - paid, lost_again = (paid - (rest - after)) - (base + after);
  return __dadd_ru(__dadd_ru(rest, -dual), __dadd_ru(lost, lost_again));
}

// Write the pairs and the duals. Then `dual` has the costs of the rows' pairs, and `gaps` of a warp
// has the sum of the slacks of its rows' pairs, rounded up. The duals of rows are rounded down, so
// that no slack is negative.
template <typename Cost, typename Team>
__device__ __forceinline__ void write(const Problem<Cost>& problem, const Team& shared,
                                      Side rows, Side cols, double* paid, bool turned) {
  const Wish& wish = problem.wish;
  const int warp = shared.warp(), warps = shared.warps();
  const double base = wish.limit < far<double>() ? wish.limit : 0.0;
  double gap = 0.0;
#pragma unroll 1
  for (int row = warp; row < problem.rows; row += warps) {
    double nearest = wish.limit;
    for_row_in_short(problem, shared, row, [&](int col, Cost cost) {
      nearest = min(nearest, __dsub_rd(problem.paid(cost), shared.price[col]));
    });
    const double dual = __dsub_rd(least_of_warp(nearest), base);
    const int col = shared.held[row];
    const double cost = col < 0 ? 0.0 : problem.cost(row, col);
    gap = __dadd_ru(gap, col < 0 ? -dual : left_of(cost, shared.price[col], base, dual));
    __syncwarp();
    if (lane_index() == 0) {
      rows.mates[row] = col;
      put(rows.duals + row, wish.sign * dual, wish.whole);
      if (col >= 0) put(paid + (turned ? col : row), wish.sign * cost, wish.whole);
      shared.put(shared.dual + row, wish.sign * cost);
    }
  }
#pragma unroll 1
  for (int col = shared.thread(); col < problem.cols; col += shared.threads()) {
    cols.mates[col] = shared.mate[col];
    put(cols.duals + col, wish.sign * shared.price[col], wish.whole);
  }
  if (lane_index() == 0) shared.put(shared.gaps + warp, gap);
  shared.wait();
}

// Add up the costs of the pairs and the gap, by one warp.
template <typename Cost, typename Team>
__device__ __forceinline__ void add_up(const Problem<Cost>& problem,
                                       const Team& shared, Results& results, int k) {
  Sum sum = {0.0, 0.0};
  long long whole = 0;
  int pairs = 0;
  double used = 0.0;
  double largest = 0.0;  // the largest magnitude of the duals of matched columns
#pragma unroll 1
  for (int col = lane_index(); col < problem.cols; col += kWarp) {
    if (shared.mate[col] >= 0) largest = max(largest, fabs(shared.price[col]));
  }
#pragma unroll 1
  for (int row = lane_index(); row < problem.rows; row += kWarp) {
    used = max(used, fabs(shared.dual[row]));
    if (problem.wish.whole) whole += __double2ll_rn(shared.dual[row]);
    else sum = plus(sum, shared.dual[row]);
    pairs += shared.held[row] >= 0;
  }
#pragma unroll 1
  for (int step = kWarp / 2; step > 0; step /= 2) {
    whole += __shfl_xor_sync(kWholeWarp, whole, step);
    used = max(used, __shfl_xor_sync(kWholeWarp, used, step));
    largest = max(largest, __shfl_xor_sync(kWholeWarp, largest, step));
    pairs += __shfl_xor_sync(kWholeWarp, pairs, step);
    const double high = __shfl_xor_sync(kWholeWarp, sum.high, step);
    const double low = __shfl_xor_sync(kWholeWarp, sum.low, step);
    sum = plus(sum, high);
    sum.low += low;
  }
  if (lane_index() != 0) return;
  if (pairs > 0 && problem.wish.limit < far<double>()) used = max(used, fabs(problem.wish.limit));
  double gap = 0.0;
#pragma unroll 1
  for (int warp = 0; warp < shared.warps(); ++warp) gap = __dadd_ru(gap, shared.gaps[warp]);
  if (problem.wish.whole) *reinterpret_cast<long long*>(results.objective + k) = whole;
  else results.objective[k] = sum.high + sum.low;
  // As in gpumatch/numeric/gaps.py, but the duals of rows do not count, which allows less.
  const double unit = kUlps * 0x1p-52 * pairs;
  const bool is_fine = gap <= max(unit * used, kFine * fabs(sum.high + sum.low));
  const bool is_small = gap <= unit * max(used, min(largest, 4.0 * (pairs + 1) * used));
  results.gap[k] = gap;
  results.pairs[k] = pairs;
  results.states[k] = kSolved;
  results.proven[k] = gap == 0.0 || (is_fine && is_small && !problem.wish.whole);
}
