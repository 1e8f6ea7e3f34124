// The initial reduction (Algorithm 1 of Date, Nagi, Parallel Computing 57, 2016): the least of cost
// minus the other side's dual, for rows and columns.
#include "assignment/dense/costs.cuh"

// least[i]: the least of cost minus column dual in row i; kNever if all its pairs are forbidden. A
// warp a row.
template <typename Cost>
__global__ void row_minima(Problem<Cost> p, long long* least) {
  for (int i = thread_index() / kWarp; i < p.nrows; i += thread_count() / kWarp) {
    const Cost* costs = p.row(i);
    long long best = kNever;
#pragma unroll 4
    for (int col = lane_index(); col < p.ncols; col += kWarp) {
      best = min(best, reach(p, costs[col], -p.col_dual[col]));
    }
    for (int step = kWarp / 2; step > 0; step /= 2) {
      best = min(best, __shfl_down_sync(kWholeWarp, best, step));
    }
    if (lane_index() == 0) least[i] = best;
  }
}

// Lower least[j], which is kNever at first, to the least of cost minus row dual in column j. Each
// of the grid's rows of blocks has a thread for each column, and reads a share of the matrix's
// rows.
template <typename Cost>
__global__ void column_minima(Problem<Cost> p, long long* least) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= p.ncols) return;
  long long best = kNever;
#pragma unroll 4
  for (int i = blockIdx.y; i < p.nrows; i += gridDim.y) {
    best = min(best, reach(p, p.row(i)[col], -p.row_dual[i]));
  }
  if (best != kNever) atomicMin(least + col, best);
}
