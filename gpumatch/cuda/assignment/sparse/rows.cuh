// Sparse costs by rows, and groups of lanes that scan a row together.
//
// Encodings
//   indptr, indices, weights   CSR; the columns of a row in any order
//   lanes                      the threads of a group: a power of two, up to a warp
#pragma once

#include "grid.cuh"
#include "numbers.cuh"

template <typename Cost>
struct Rows {
  const long long* indptr;
  const int* indices;
  const Cost* weights;
  int nrows;
  int ncols;
  int lanes;
};

// The lanes of a warp that scan one row, and the number of this thread among them.
struct Group {
  int lanes;
  int member;
  long long index;
  long long count;

  __device__ static Group of(int lanes) {
    return {lanes, lane_index() & (lanes - 1), thread_index() / lanes, thread_count() / lanes};
  }
};

// The least number of the lanes of a group. All lanes of the warp take part.
template <typename Number>
__device__ Number least_of_group(Number number, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    const Number other = __shfl_xor_sync(kWholeWarp, number, step);
    if (other < number) number = other;
  }
  return number;
}
