// Costs that a device function of the caller computes: tiles of them, lists of pairs, and the
// cheapest columns of each row at given prices.
//
// The driver puts the caller's type and a call of the caller's function in the place of `Cost` and
// `cost_of`. The function is called for the same numbers everywhere and nothing is fused with it,
// so a pair has one cost.
//
// Encodings
//   Given        parts[k]: the address of the caller's array k; rows[i], cols[j]: the caller's
//                number of row i and of column j, null if they are the same; is_turned: not 0 if
//                the rows of a search are the caller's columns; is_negated: not 0 if it takes the
//                negated costs
//   values       the costs of a tile, line by line, or of a list of pairs
//   price[j]     of column j of a search
//   bound[i]     only costs less prices below it are wanted
//   found[i * count + k]   the k-th cheapest column of row i, -1 if there are fewer
//   cheapest     its cost less its price, rounded down; beyond all numbers if there is none
//   stray        set to 1 if a cost is not from `low` to `high`
#include "grid.cuh"
#include "assignment/points/nearest.cuh"
#include "numbers.cuh"

constexpr int kBlock = 256;
constexpr int kParts = 16;  // the most arrays of the caller

struct Given {
  unsigned long long parts[kParts];
  const long long* rows;
  const long long* cols;
  int is_turned;
  int is_negated;
};

// called: begin
using Cost = double;
__device__ inline Cost cost_of(const Given& given, long long i, long long j) { return i - j; }
// called: end

__device__ inline Number<Cost> cost_at(const Given& given, long long i, long long j) {
  return cost_of(given, given.rows == nullptr ? i : given.rows[i],
                 given.cols == nullptr ? j : given.cols[j]);
}

__global__ void __launch_bounds__(kBlock)
    fill_costs(Given given, int first_row, int nrows, int first_col, int ncols,
               Number<Cost>* values) {
  const long long count = static_cast<long long>(nrows) * ncols;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long t = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; t < count;
       t += step) {
    values[t] = cost_at(given, first_row + t / ncols, first_col + t % ncols);
  }
}

__global__ void __launch_bounds__(kBlock)
    costs_at(Given given, const long long* rows, const long long* cols, long long count,
             Number<Cost>* values) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long t = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; t < count;
       t += step) {
    values[t] = cost_at(given, rows[t], cols[t]);
  }
}

// A warp serves a row.
__global__ void __launch_bounds__(kBlock)
    find_cheapest(Given given, int nrows, int ncols, const Number<Cost>* price,
                  const Number<Cost>* bound, int count, Number<Cost> low, Number<Cost> high,
                  int* stray, int* found, Number<Cost>* cheapest) {
  using Value = Number<Cost>;
  const int step = thread_count() / static_cast<int>(kWarp), lane = lane_index();
  bool is_stray = false;
  for (int row = thread_index() / static_cast<int>(kWarp); row < nrows; row += step) {
    Nearest<Value> nearest = {far<Value>(), bound[row], -1};
    for (int first = 0; first < ncols; first += static_cast<int>(kWarp)) {
      const int col = first + lane;
      Value here = far<Value>();
      if (col < ncols) {
        const Value cost = given.is_turned ? cost_at(given, col, row) : cost_at(given, row, col);
        is_stray |= !(low <= cost && cost <= high);
        here = difference_below(given.is_negated ? -cost : cost, price[col]);
      }
      nearest.add(here, first, count);
    }
    if (lane < count) {
      found[static_cast<long long>(row) * count + lane] = nearest.its;
      cheapest[static_cast<long long>(row) * count + lane] = nearest.value;
    }
    __syncwarp();
  }
  if (is_stray) *stray = 1;
}
