// Kernels for the costs of a product: subtract the least costs before they are solved, and make the
// duals scales afterwards.
//
// Encodings
//   ends[]    extremes of the pairs as in_order(): the complement of the least, or the greatest; 0
//             at first
//   sums[]    the sum of the pairs' costs, for the rows of each block
#include "assignment/sparse/rows.cuh"

enum End { kLeastPrice, kMostPrice, kLeastOfRows, kMostOfRows, kEnds };

__device__ inline unsigned long long greater(unsigned long long one, unsigned long long other) {
  return one > other ? one : other;
}
__device__ inline double sum(double one, double other) { return one + other; }

// Subtract the least cost of its vertex from each cost. No result is negative, so bits_of() orders
// the results.
__global__ void count_from_least(const double* costs, const int* vertices, const double* least,
                                 long long count, double* above, unsigned long long* greatest) {
  unsigned long long own = 0;
  for (long long k = thread_index(); k < count; k += thread_count()) {
    const double here = costs[k] - least[vertices[k]];
    above[k] = here;
    own = greater(own, bits_of(here));
  }
  own = joined_in_block(own, greater);
  if (threadIdx.x == 0) atomicMax(greatest, own);
}

// The cost of each row's pair, the extremes of prices and of cost minus price, and the sums. The
// price of a column is its dual plus the least cost that was subtracted.
__global__ void look_up(Rows<double> rows, const int* row_to_col, const double* col_dual,
                        const double* least, double* paid, unsigned long long* ends, double* sums) {
  const Group group = Group::of(rows.lanes);
  unsigned long long found[kEnds] = {};
  double total = 0;
  for (long long row = group.index; row < rows.nrows; row += group.count) {
    const int col = row_to_col[row];
    for (long long k = rows.indptr[row] + group.member; k < rows.indptr[row + 1]; k += group.lanes) {
      if (rows.indices[k] != col) continue;
      const double cost = rows.weights[k], price = col_dual[col] + least[col];
      paid[row] = cost;
      total += cost;
      found[kLeastPrice] = greater(found[kLeastPrice], ~in_order(price));
      found[kMostPrice] = greater(found[kMostPrice], in_order(price));
      found[kLeastOfRows] = greater(found[kLeastOfRows], ~in_order(cost - price));
      found[kMostOfRows] = greater(found[kMostOfRows], in_order(cost - price));
    }
  }
  for (int end = 0; end < kEnds; ++end) {
    const unsigned long long most = joined_in_block(found[end], greater);
    if (threadIdx.x == 0) atomicMax(ends + end, most);
  }
  total = joined_in_block(total, sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Make prices the columns' scales, and cost minus price the rows' scales. A common factor is moved
// between them, so that the middles of their ranges are equal. The rounding errors of matched
// entries are subtracted from their rows' scales. One block adds the sums.
__global__ void settle(const int* row_to_col, const double* col_dual, const double* least, int nrows,
                       int ncols, const unsigned long long* ends, const double* sums, int nsums,
                       double* paid, double* price, double* total) {
  const double of_prices = (of_order(~ends[kLeastPrice]) + of_order(ends[kMostPrice])) / 2;
  const double of_rows = (of_order(~ends[kLeastOfRows]) + of_order(ends[kMostOfRows])) / 2;
  const double shift = (of_prices - of_rows) / 2;
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    price[j] = col_dual[j] + least[j] - shift;
  }
  for (int row = thread_index(); row < nrows; row += thread_count()) {
    const int col = row_to_col[row];
    paid[row] -= col_dual[col] + least[col] - shift;
  }
  if (blockIdx.x != 0) return;
  double own = 0;
  for (int k = threadIdx.x; k < nsums; k += blockDim.x) own += sums[k];
  own = joined_in_block(own, sum);
  if (threadIdx.x == 0) *total = own;
}
