// Kernels for a dense matrix: the columns of each row with the least reduced costs below a bound,
// the least reduced cost of each row, and the least slack of each column.
//
// A row is read from a column of its own to the last, and then from the first. Of equal columns it
// takes those that it reads first. So rows with many ties do not all choose the same columns.
//
// A block reads a row in batches, and keeps the columns below the bound in shared memory. Let k
// columns be wanted. The first batch lowers the bound to the k-th least of the threads' minima,
// because k threads have found a column within it. Before the shared memory is full, the block
// sorts the columns, keeps the k best, and lowers the bound to the last of these. So the costs are
// read once, however many columns are wanted, and few columns are kept from most rows.
//
// Encodings
//   values[i * ncols + j]   cost of row i and column j; infinity, or the greatest 64-bit integer,
//                           forbids the pair
//   bound[i]                only columns with a reduced cost below this are wanted
//   place                   the position of a column in the order in which its row is read
//   first, total            row i here is row first + i of `total` rows, whose first columns are
//                           evenly spread
//   cols[i * most + k]      the k-th best column of row i, -1 if there are fewer
//   costs[i * most + k]     its cost
#include "grid.cuh"
#include "numbers.cuh"

constexpr int kBlock = 256;
constexpr int kEach = 4;       // costs that a thread loads at once
constexpr int kPlaces = 2048;  // columns that a block keeps: a power of two, since it sorts them
constexpr int kMost = 1024;    // the most columns wanted of a row; a batch must fit beside them
static_assert((kPlaces & (kPlaces - 1)) == 0 && kPlaces >= kMost + kEach * kBlock, "no room");

template <typename Cost>
struct Found {
  Number<Cost> numbers[kPlaces];
  int places[kPlaces];
  int count;

  __device__ bool is_before(int i, int k) const {
    return numbers[i] != numbers[k] ? numbers[i] < numbers[k] : places[i] < places[k];
  }
};

// A row, read from a column of its own.
template <typename Cost>
struct Turned {
  const Cost* row;
  int ncols;
  int start;

  __device__ int col(int place) const {
    const int last = ncols - start;  // the place of column 0
    return place < last ? place + start : place - last;
  }

  __device__ Cost cost(int place) const { return row[col(place)]; }
};

// Sort the columns found, by a bitonic network. All threads of the block take part, here and below.
template <typename Cost>
__device__ void sort(Found<Cost>& found) {
  const int self = threadIdx.x, count = found.count;
  int size = 1;
  while (size < count) size *= 2;
  for (int i = count + self; i < size; i += kBlock) {
    found.numbers[i] = far<Number<Cost>>();
    found.places[i] = 0x7fffffff;
  }
  __syncthreads();
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      for (int i = self; i < size; i += kBlock) {
        const int other = i ^ step;
        if (other < i || found.is_before(other, i) != ((i & run) == 0)) continue;
        const Number<Cost> number = found.numbers[i];
        const int place = found.places[i];
        found.numbers[i] = found.numbers[other];
        found.places[i] = found.places[other];
        found.numbers[other] = number;
        found.places[other] = place;
      }
      __syncthreads();
    }
  }
}

// Keep the `most` best columns. Returns the bound for further columns.
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

// The least number greater than this one.
__device__ inline long long just_above(long long number) { return number + 1; }
__device__ inline double just_above(double number) { return nextafter(number, far<double>()); }

// The bound lowered by the minima of all threads.
template <typename Cost>
__device__ Number<Cost> lowered(Found<Cost>& found, Number<Cost> best, int most,
                                Number<Cost> bound) {
  const int self = threadIdx.x;
  found.numbers[self] = best;
  found.places[self] = self;
  __syncthreads();
  int rank = 0;
  for (int k = 0; k < kBlock; ++k) rank += found.is_before(k, self);
  __syncthreads();
  if (rank == most - 1) found.numbers[0] = best < bound ? just_above(best) : bound;
  __syncthreads();
  const Number<Cost> below = found.numbers[0];
  __syncthreads();
  return below < bound ? below : bound;
}

template <typename Cost>
struct Batch {
  Cost costs[kEach];

  // The least reduced cost of this thread's places from `begin` on.
  __device__ Number<Cost> least(const Turned<Cost>& row, int begin,
                                const Number<Cost>* col_dual) const {
    Number<Cost> best = far<Number<Cost>>();
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int place = begin + e * kBlock + threadIdx.x;
      if (place >= row.ncols) continue;
      const Number<Cost> cost = counted(costs[e], 0);
      if (cost == far<Number<Cost>>()) continue;
      const Number<Cost> here = cost - col_dual[row.col(place)];
      if (here < best) best = here;
    }
    return best;
  }

  __device__ void load(const Turned<Cost>& row, int begin) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int place = begin + e * kBlock + threadIdx.x;
      if (place < row.ncols) costs[e] = row.cost(place);
    }
  }
};

template <typename Cost>
__global__ void __launch_bounds__(kBlock)
    nearest_columns(const Cost* values, int nrows, int ncols, long long first, long long total,
                    const Number<Cost>* col_dual, const Number<Cost>* bound, int most, int* cols,
                    Cost* costs) {
  constexpr int kBatch = kEach * kBlock;
  __shared__ Found<Cost> found;
  for (int i = blockIdx.x; i < nrows; i += gridDim.x) {
    const Turned<Cost> row = {values + static_cast<long long>(i) * ncols, ncols,
                              static_cast<int>((first + i) * ncols / total)};
    Number<Cost> below = bound[i];
    Batch<Cost> next, own;
    next.load(row, 0);
    if (threadIdx.x == 0) found.count = 0;
    __syncthreads();
    for (int begin = 0; begin < ncols; begin += kBatch) {
      own = next;
      next.load(row, begin + kBatch);
      if (begin == 0 && most <= kBlock) {
        below = lowered(found, own.least(row, begin, col_dual), most, below);
      }
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const int place = begin + e * kBlock + threadIdx.x;
        if (place >= ncols) continue;
        const Number<Cost> cost = counted(own.costs[e], 0);
        if (cost == far<Number<Cost>>()) continue;
        const Number<Cost> here = cost - col_dual[row.col(place)];
        if (!(here < below)) continue;
        const int at = take_place(&found.count);
        found.numbers[at] = here;
        found.places[at] = place;
      }
      __syncthreads();
      const int count = found.count;
      __syncthreads();  // all have read the count before a thread adds to it
      if (count > kPlaces - kBatch) below = keep_best(found, most, below);
    }
    sort(found);
    for (int k = threadIdx.x; k < most; k += kBlock) {
      const long long at = static_cast<long long>(i) * most + k;
      cols[at] = k < found.count ? row.col(found.places[k]) : -1;
      if (k < found.count) costs[at] = row.cost(found.places[k]);
    }
    __syncthreads();
  }
}

// The least reduced cost of each row, rounded down: infinity, or the greatest integer, if all its
// pairs are forbidden. A block a row.
template <typename Cost>
__global__ void __launch_bounds__(kBlock)
    least_of_rows(const Cost* values, int nrows, int ncols, const Number<Cost>* col_dual,
                  Number<Cost>* least) {
  constexpr int kWarps = kBlock / kWarp;
  __shared__ Number<Cost> of_warp[kWarps];
  for (int i = blockIdx.x; i < nrows; i += gridDim.x) {
    const Cost* row = values + static_cast<long long>(i) * ncols;
    Number<Cost> best = far<Number<Cost>>();
#pragma unroll 8
    for (int col = threadIdx.x; col < ncols; col += kBlock) {
      const Number<Cost> cost = counted(row[col], 0);
      if (cost == far<Number<Cost>>()) continue;
      const Number<Cost> here = difference_below(cost, col_dual[col]);
      if (here < best) best = here;
    }
    for (int step = kWarp / 2; step > 0; step /= 2) {
      const Number<Cost> other = __shfl_xor_sync(kWholeWarp, best, step);
      if (other < best) best = other;
    }
    if (lane_index() == 0) of_warp[threadIdx.x / kWarp] = best;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < kWarps; ++w) best = of_warp[w] < best ? of_warp[w] : best;
      least[i] = best;
    }
    __syncthreads();
  }
}

// Lower least[j], in the bits of a number, to the least of cost minus row dual in column j. None of
// these differences may be negative. A thread a column. Several groups of blocks cover the columns,
// each for a share of the rows.
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
  atomicMin(least + col, bits_of(best));
}
