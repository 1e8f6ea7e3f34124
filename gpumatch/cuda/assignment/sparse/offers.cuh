// Offers for columns in auctions without rounds, and prices from them.
//
// An offer is one atomicMax: the highest stands, and says which row it evicts. Prices of columns only
// fall, so a bid by prices that have changed in the meantime is still within epsilon of the row's
// best.
//
// Encodings
//   offers[j]   how far the price of column j has fallen, in units, shifted left by row_bits; below
//               that the row that offered it, plus 1, or 0 if column j is free
#pragma once

#include "grid.cuh"
#include "numbers.cuh"

struct Terms {
  double low;   // the least cost
  double scale;  // units in a cost of 1
  long long epsilon;  // in units
  long long jump;     // the increment of a row with one choice
  long long most;     // a price falls no further than this
  int row_bits;
  int goal;
  int longest;  // chain

  __device__ unsigned long long offer(long long fallen, int row) const {
    return static_cast<unsigned long long>(fallen) << row_bits | (row + 1u);
  }
  __device__ long long fallen(unsigned long long offer) const {
    return static_cast<long long>(offer >> row_bits);
  }
  // The row that offered it, -1: the column is free.
  __device__ int row_of(unsigned long long offer) const {
    return static_cast<int>(offer & ((1ull << row_bits) - 1)) - 1;
  }
};

// What a row sees of its columns: the best and the second best reduced cost, in units.
struct Choice {
  double least;
  double second;
  unsigned long long offer;  // that stands for the best column
  int col;                   // -1 if there is none

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

// The choice of a group, from those of its lanes. All lanes of the warp take part.
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

// Give up the columns, and keep the prices.
__global__ void free_columns(unsigned long long* offers, int ncols, int row_bits) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    offers[j] = offers[j] >> row_bits << row_bits;
  }
}

__device__ inline long long in_numbers(double number, long long*) { return __double2ll_rn(number); }
__device__ inline double in_numbers(double number, double*) { return number; }

// The duals of the columns, from how far their prices have fallen.
template <typename Cost>
__global__ void write_prices(const unsigned long long* offers, int ncols, int row_bits, double unit,
                             Number<Cost>* col_dual) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    const double fallen = static_cast<double>(offers[j] >> row_bits);
    col_dual[j] = -in_numbers(fallen * unit, col_dual);
  }
}
