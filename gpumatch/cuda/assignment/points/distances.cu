// Kernels for distances: a tile of rows and all columns, and a list of pairs.
//
// Encodings
//   X[i * width + k]        coordinate k of the point of row i; Y likewise of column j
//   across[k * ncols + j]   coordinate k of the point of column j
//   rows[t], cols[t]        numbers of rows and columns
//   values[t * ncols + j]   cost of row rows[t] and column j; values[t] of a pair in a list
#include "assignment/points/metrics.cuh"

constexpr int kBlock = 256;
constexpr int kRows = 8;  // rows for which a thread reads a column's point once

__global__ void __launch_bounds__(kBlock)
    fill_distances(const double* X, const int* rows, int nrows, const double* across, int ncols,
                   int width, Metric metric, const double* row_offset, const double* col_offset,
                   double* values) {
  const long long groups = (nrows + kRows - 1) / kRows;
  const int blocks_a_group = (ncols + kBlock - 1) / kBlock;
  for (long long item = blockIdx.x; item < groups * blocks_a_group; item += gridDim.x) {
    const int col = static_cast<int>(item % blocks_a_group) * kBlock + threadIdx.x;
    const int first = static_cast<int>(item / blocks_a_group) * kRows;
    if (col >= ncols) continue;
    double total[kRows];
    int row[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      total[r] = 0;
      row[r] = rows[first + r < nrows ? first + r : first];
    }
    for (int k = 0; k < width; ++k) {
      const double y = across[static_cast<long long>(k) * ncols + col];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        total[r] = metric.joined(total[r], X[static_cast<long long>(row[r]) * width + k] - y);
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (first + r >= nrows) continue;
      values[static_cast<long long>(first + r) * ncols + col] =
          metric.finished(total[r], metric.has_offsets ? row_offset[row[r]] : 0,
                          metric.has_offsets ? col_offset[col] : 0);
    }
  }
}

__global__ void __launch_bounds__(kBlock)
    distances_at(const double* X, const double* Y, int width, const long long* rows,
                 const long long* cols, long long count, Metric metric, const double* row_offset,
                 const double* col_offset, double* values) {
  const long long step = static_cast<long long>(gridDim.x) * kBlock;
  for (long long t = static_cast<long long>(blockIdx.x) * kBlock + threadIdx.x; t < count;
       t += step) {
    const double* x = X + rows[t] * width;
    const double* y = Y + cols[t] * width;
    double total = 0;
    for (int k = 0; k < width; ++k) total = metric.joined(total, x[k] - y[k]);
    values[t] = metric.finished(total, metric.has_offsets ? row_offset[rows[t]] : 0,
                                metric.has_offsets ? col_offset[cols[t]] : 0);
  }
}
