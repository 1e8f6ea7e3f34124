// Kernels for distances: a tile of rows and all columns, the matrices of many clouds, and a list of
// pairs.
//
// Encodings
//   X[i * width + k]        coordinate k of the point of row i; Y likewise of column j
//   across[k * ncols + j]   coordinate k of the point of column j
//   rows[t], cols[t]        numbers of rows and columns
//   values[t * ncols + j]   cost of row rows[t] and column j; values[t] of a pair in a list
#include "assignment/points/metrics.cuh"

constexpr int kBlock = 256;
constexpr int kRows = 8;  // rows for which a thread reads a column's point once

// Two clouds, and where their matrix goes; `first` counts the groups of all clouds before them.
struct Clouds {
  const double* X;
  const double* Y;
  const double* row_offset;
  const double* col_offset;
  double* values;
  long long first;
  int nrows;
  int ncols;
  int width;
  Metric metric;
};

// The costs of some rows and one column, which are written `ncols` apart. Coordinate k of the
// column's point is y[k * step].
__device__ inline void fill_rows(const double* X, const int* row, int count, const double* y,
                                 long long step, int width, const Metric& metric,
                                 const double* row_offset, double col_offset, int ncols,
                                 double* values) {
  double total[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) total[r] = 0;
  for (int k = 0; k < width; ++k) {
    const double here = y[k * step];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      total[r] = metric.joined(total[r], X[static_cast<long long>(row[r]) * width + k] - here);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= count) continue;
    values[static_cast<long long>(r) * ncols] =
        metric.finished(total[r], metric.has_offsets ? row_offset[row[r]] : 0, col_offset);
  }
}

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
    int row[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) row[r] = rows[first + r < nrows ? first + r : first];
    fill_rows(X, row, nrows - first, across + col, ncols, width, metric, row_offset,
              metric.has_offsets ? col_offset[col] : 0, ncols,
              values + static_cast<long long>(first) * ncols + col);
  }
}

// The matrices of many clouds. The blocks take one group of rows and columns after the other, of
// `items` in all; clouds[c] says which are those of cloud c.
__global__ void __launch_bounds__(kBlock)
    fill_clouds(const Clouds* clouds, int count, long long items) {
  for (long long item = blockIdx.x; item < items; item += gridDim.x) {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (clouds[middle].first <= item) {
        low = middle;
      } else {
        high = middle;
      }
    }
    const Clouds& c = clouds[low];
    const int blocks_a_group = (c.ncols + kBlock - 1) / kBlock;
    const long long own = item - c.first;
    const int col = static_cast<int>(own % blocks_a_group) * kBlock + threadIdx.x;
    const int first = static_cast<int>(own / blocks_a_group) * kRows;
    if (col >= c.ncols) continue;
    int row[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) row[r] = first + r < c.nrows ? first + r : first;
    fill_rows(c.X, row, c.nrows - first, c.Y + static_cast<long long>(col) * c.width, 1, c.width,
              c.metric, c.row_offset, c.metric.has_offsets ? c.col_offset[col] : 0, c.ncols,
              c.values + static_cast<long long>(first) * c.ncols + col);
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
