// The initial reduction (Algorithm 1 of Date, Nagi, Parallel Computing 57, 2016): least costs of
// rows and columns, less the duals of the other side.
#include "assignment/dense/costs.cuh"

// least[i] of row i, minus the columns' duals; kNever if all pairs are forbidden. A warp a row.
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

// least[j], kNever at first, of column j, minus the rows' duals. A thread a column in each of the
// grid's rows of blocks, which share out the matrix's rows.
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
