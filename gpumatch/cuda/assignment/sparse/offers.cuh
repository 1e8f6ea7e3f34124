// Offers for columns in auctions without rounds, and prices from them.
//
// An offer is one atomicMax. The highest offer stands, and the old value names the row that it
// evicts. Prices of columns only fall, so a bid by prices that have changed since is still within
// epsilon of the row's best.
//
// Encodings
//   offers[j]   the fall of column j's price, in units, shifted left by row_bits; below it the row
//               that made the offer, plus 1, or 0 if column j is unmatched
#pragma once

#include "grid.cuh"
#include "numbers.cuh"

struct Terms {
  double low;   // the least cost
  double scale;  // units in a cost of 1
  long long epsilon;  // in units
  long long jump;     // the increment of a row with one column only
  long long most;     // the largest fall of a price
  int row_bits;
  int goal;
  int longest;  // chain

  __device__ unsigned long long offer(long long fallen, int row) const {
    return static_cast<unsigned long long>(fallen) << row_bits | (row + 1u);
  }
  __device__ long long fallen(unsigned long long offer) const {
    return static_cast<long long>(offer >> row_bits);
  }
  // The row that made the offer; -1: the column is unmatched.
  __device__ int row_of(unsigned long long offer) const {
    return static_cast<int>(offer & ((1ull << row_bits) - 1)) - 1;
  }
};

// The best column of a row, with its least and second least reduced costs, in units.
struct Choice {
  double least;
  double second;
  unsigned long long offer;  // the offer that stands for the best column
  int col;                   // the best column, -1 for none

  __device__ void consider(double here, unsigned long long its, int j) {
    if (here < least) {
      second = least;
      least = here;
      offer = its;
      col = j;
    } else if (here < second) {
      second = here;
    }
  }
};

// The choice of a group, combined of those of its lanes. All lanes of the warp take part.
__device__ inline Choice choice_of_group(Choice own, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    const Choice other = {__shfl_xor_sync(kWholeWarp, own.least, step),
                          __shfl_xor_sync(kWholeWarp, own.second, step),
                          __shfl_xor_sync(kWholeWarp, own.offer, step),
                          __shfl_xor_sync(kWholeWarp, own.col, step)};
    const bool is_other = other.least < own.least || (other.least == own.least && other.col < own.col);
    const double second = fmin(fmax(own.least, other.least), fmin(own.second, other.second));
    if (is_other) own = other;
    own.second = second;
  }
  return own;
}

// Make all columns unmatched, and keep the prices.
__global__ void free_columns(unsigned long long* offers, int ncols, int row_bits) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    offers[j] = offers[j] >> row_bits << row_bits;
  }
}

// held[]: the column of each row whose offer stands.
__global__ void take_offers(const unsigned long long* offers, int ncols, int row_bits,
                            int* row_to_col) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    const int row = static_cast<int>(offers[j] & ((1ull << row_bits) - 1)) - 1;
    if (row >= 0) row_to_col[row] = j;
  }
}

// The same for both sides.
__global__ void take_pairs(const unsigned long long* offers, int ncols, int row_bits,
                           int* row_to_col, int* col_to_row) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    const int row = static_cast<int>(offers[j] & ((1ull << row_bits) - 1)) - 1;
    if (row < 0) continue;
    row_to_col[row] = j;
    col_to_row[j] = row;
  }
}

// List the rows whose offer stands for no column, in any order.
__global__ void list_unmatched(const int* held, int nrows, int* rows, int* count) {
  for (int i = thread_index(); i < nrows; i += thread_count()) {
    if (held[i] < 0) rows[take_place(count)] = i;
  }
}

__device__ inline long long in_numbers(double number, long long*) { return __double2ll_rn(number); }
__device__ inline double in_numbers(double number, double*) { return number; }

// The duals of the columns, from the falls of their prices.
template <typename Cost>
__global__ void write_prices(const unsigned long long* offers, int ncols, int row_bits, double unit,
                             Number<Cost>* col_dual) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    const double fallen = static_cast<double>(offers[j] >> row_bits);
    col_dual[j] = -in_numbers(fallen * unit, col_dual);
  }
}
