// Of each row of a dense matrix, the few columns with the least reduced costs below a bound; and the
// least slack of each column.
//
// A block reads a row. It keeps the columns below the bound in shared memory. Before they can run
// out of room it sorts them, drops all but the best, and lowers the bound to the worst of these. So
// the costs are read once, however many columns are wanted, and from most rows few columns are kept.
//
// Encodings
//   values[i * ncols + j]   cost of row i and column j; infinity, or the greatest 64-bit integer,
//                           forbids the pair
//   bound[i]                columns are wanted whose cost less their dual is below this
//   cols[i * most + k]      the k-th best of them, -1 if there are not as many
//   costs[i * most + k]     its cost
#include "grid.cuh"
#include "numbers.cuh"

constexpr int kBlock = 256;
constexpr int kEach = 8;     // costs that a thread loads at once
constexpr int kPlaces = 3072;  // columns that a block keeps
constexpr int kMost = 1024;  // columns wanted of a row, at most: beside them is room for a batch

template <typename Cost>
struct Found {
  Number<Cost> numbers[kPlaces];
  int cols[kPlaces];
  int count;

  __device__ bool is_before(int i, int k) const {
    return numbers[i] != numbers[k] ? numbers[i] < numbers[k] : cols[i] < cols[k];
  }
};

// Sort what is found, by a bitonic network. All threads of the block take part, here and below.
template <typename Cost>
__device__ void sort(Found<Cost>& found) {
  const int self = threadIdx.x, count = found.count;
  int size = 1;
  while (size < count) size *= 2;
  for (int i = count + self; i < size; i += kBlock) {
    found.numbers[i] = far<Number<Cost>>();
    found.cols[i] = 0x7fffffff;
  }
  __syncthreads();
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      for (int i = self; i < size; i += kBlock) {
        const int other = i ^ step;
        if (other < i || found.is_before(other, i) != ((i & run) == 0)) continue;
        const Number<Cost> number = found.numbers[i];
        const int col = found.cols[i];
        found.numbers[i] = found.numbers[other];
        found.cols[i] = found.cols[other];
        found.numbers[other] = number;
        found.cols[other] = col;
      }
      __syncthreads();
    }
  }
}

// Keep the best, at most `most`. Returns what further columns have to be below.
template <typename Cost>
__device__ Number<Cost> keep_best(Found<Cost>& found, int most, Number<Cost> bound) {
  sort(found);
  const int count = found.count;
  if (count >= most) bound = found.numbers[most - 1];
  __syncthreads();
  if (threadIdx.x == 0) found.count = min(count, most);
  __syncthreads();
  return bound;
}

template <typename Cost>
struct Batch {
  Cost costs[kEach];

  __device__ void load(const Cost* row, int begin, int ncols) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int col = begin + e * kBlock + threadIdx.x;
      if (col < ncols) costs[e] = row[col];
    }
  }
};

template <typename Cost>
__global__ void __launch_bounds__(kBlock)
    nearest_columns(const Cost* values, int nrows, int ncols, const Number<Cost>* col_dual,
                    const Number<Cost>* bound, int most, int* cols, Cost* costs) {
  constexpr int kBatch = kEach * kBlock;
  __shared__ Found<Cost> found;
  for (int i = blockIdx.x; i < nrows; i += gridDim.x) {
    const Cost* row = values + static_cast<long long>(i) * ncols;
    Number<Cost> below = bound[i];
    Batch<Cost> next, own;
    next.load(row, 0, ncols);
    if (threadIdx.x == 0) found.count = 0;
    __syncthreads();
    for (int begin = 0; begin < ncols; begin += kBatch) {
      own = next;
      next.load(row, begin + kBatch, ncols);
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const int col = begin + e * kBlock + threadIdx.x;
        if (col >= ncols) continue;
        const Number<Cost> cost = counted(own.costs[e], 0);
        if (cost == far<Number<Cost>>()) continue;
        const Number<Cost> here = cost - col_dual[col];
        if (!(here < below)) continue;
        const int place = take_place(&found.count);
        found.numbers[place] = here;
        found.cols[place] = col;
      }
      __syncthreads();
      const int count = found.count;
      __syncthreads();  // before a thread goes on and finds more
      if (count > kPlaces - kBatch) below = keep_best(found, most, below);
    }
    sort(found);
    for (int k = threadIdx.x; k < most; k += kBlock) {
      const long long place = static_cast<long long>(i) * most + k;
      cols[place] = k < found.count ? found.cols[k] : -1;
      if (k < found.count) costs[place] = row[found.cols[k]];
    }
    __syncthreads();
  }
}

// The bits of a number that is not below 0, in the order of the numbers.
__device__ inline unsigned long long ordered(long long number) { return number; }
__device__ inline unsigned long long ordered(double number) {
  return number > 0 ? __double_as_longlong(number) : 0;  // -0.0 has other bits
}

// least[j], in the bits of a number, is lowered to the least cost of column j less the dual of its
// row. All of these are at least 0. A thread a column. The grid has as many blocks as the columns
// take, some times: each time for another share of the rows.
template <typename Cost>
__global__ void least_of_columns(const Cost* values, int nrows, int ncols,
                                 const Number<Cost>* row_dual, unsigned long long* least) {
  const int slices = (ncols + blockDim.x - 1) / blockDim.x, shares = gridDim.x / slices;
  const int col = blockIdx.x % slices * blockDim.x + threadIdx.x;
  if (col >= ncols) return;
  Number<Cost> best = far<Number<Cost>>();
#pragma unroll 8
  for (int i = blockIdx.x / slices; i < nrows; i += shares) {
    const Number<Cost> cost = counted(values[static_cast<long long>(i) * ncols + col], 0);
    if (cost == far<Number<Cost>>()) continue;
    const Number<Cost> here = cost - row_dual[i];
    if (here < best) best = here;
  }
  atomicMin(least + col, ordered(best));
}
