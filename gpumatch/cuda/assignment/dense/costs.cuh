// A problem as both Hungarian variants see it, and their scans of its dense costs.
//
// All arithmetic is on 64-bit integers, so a tight edge is one whose slack is 0, with no tolerance.
// Costs of floating type count in units of 1 / scale, a power of two.
//
// Encodings
//   values[i * ncols + j]   cost of row i and column j; infinity, or the greatest 64-bit integer,
//                           forbids the pair
//   limit                   the cost of an unmatched row. It is like the cost of a column of the
//                           row's own, always unmatched, whose dual stays 0. kNever if every row
//                           must be matched
//   most                    the bound of all duals
//   Member                  a row in a tree. base: minus its dual, plus the amount by which the
//                           duals had been raised in this search when the row joined. So base +
//                           cost - dual of the column is that column's distance by way of the row.
#pragma once

#include "grid.cuh"
#include "numbers.cuh"

// Not measured here. The matching engine's block of 512 threads was measured against 256 to 1,024
// (docs/algorithms/gpu_engine_trials.md). Eight loads in flight fit into registers.
constexpr int kBlock = 512;
constexpr int kRowsAtOnce = 8;  // costs that a thread loads before it uses the first

struct __align__(16) Member {
  long long base;
  int row;
};

template <typename Cost>
struct Problem {
  const Cost* values;
  int nrows;
  int ncols;
  double scale;
  long long limit;
  long long most;
  int* row_to_col;
  int* col_to_row;
  long long* row_dual;
  long long* col_dual;

  __device__ const Cost* row(int i) const {
    return values + static_cast<long long>(i) * ncols;
  }

  __device__ bool has_limit() const { return limit != kNever; }

  // True if row i is unmatched and its dual is below the limit, at which it may stay unmatched.
  __device__ bool wants(int i) const { return row_to_col[i] == -1 && row_dual[i] < limit; }
};

// cost + base if the pair is allowed, else kNever.
template <typename Cost>
__device__ long long reach(const Problem<Cost>& p, Cost value, long long base) {
  const long long cost = fixed(p.scale, value);
  return cost == kNever ? kNever : cost + base;
}

// The neighbouring costs of a row in one load of 16 bytes; one cost if rows do not begin at
// multiples of 16 bytes.
template <typename Cost, bool kAligned>
struct Pack {
  static constexpr int kWidth = kAligned ? 16 / sizeof(Cost) : 1;
  struct alignas(kWidth * sizeof(Cost)) Values {
    Cost value[kWidth];
  };

  __device__ static Values load(const Cost* row, int pack) {
    return reinterpret_cast<const Values*>(row)[pack];
  }
};

// The number of threads that share the rows of one pack of columns, so that all threads have work.
__device__ inline int shares_for(int rows, int packs) {
  return max(1, min(rows, thread_count() / max(packs, 1)));
}

// Lower least[] to the least reach of members[first], members[first + step], ... in each column of
// a pack. nearest[] gets the row that lowered it.
template <typename Cost, bool kAligned>
__device__ void lower_to_members(const Problem<Cost>& p, const Member* members, int size, int first,
                                 int step, int pack, long long* least, int* nearest) {
  using P = Pack<Cost, kAligned>;
  for (int k = first; k < size; k += kRowsAtOnce * step) {
    typename P::Values values[kRowsAtOnce];
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      if (k + r * step < size) values[r] = P::load(p.row(members[k + r * step].row), pack);
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      if (k + r * step >= size) continue;
      const Member m = members[k + r * step];
#pragma unroll
      for (int w = 0; w < P::kWidth; ++w) {
        const long long here = reach(p, values[r].value[w], m.base);
        if (here < least[w]) {
          least[w] = here;
          nearest[w] = m.row;
        }
      }
    }
  }
}

// A frontier in the registers of each thread.
struct Rows {
  const Member* items;
  int size;
  Member own;  // items[threadIdx.x], if there is one: read early
};

// A row of the frontier, and a column's distance by way of it plus the column's dual.
struct Near {
  long long reach;
  int row;
};

// The least reach of the frontier in a column of the block's slice, a column a thread. Of several
// rows with this reach, it is the one of the lowest number if the frontier is in order. The block's
// threads divide the rows among them, then combine their results.
template <typename Cost, bool kAligned>
__device__ Near nearest_member(const Problem<Cost>& p, const Rows& frontier, int first,
                               int packs) {
  constexpr int kWidth = Pack<Cost, kAligned>::kWidth;
  __shared__ long long reaches[kWidth][kBlock];
  __shared__ int rows[kWidth][kBlock];
  __shared__ Member members[kBlock];
  const int self = threadIdx.x, pack = self % packs, share = self / packs;
  const int shares = min((frontier.size + kRowsAtOnce - 1) / kRowsAtOnce, kBlock / packs);
  long long least[kWidth];
  int nearest[kWidth];
#pragma unroll
  for (int w = 0; w < kWidth; ++w) {
    least[w] = kNever;
    nearest[w] = -1;
  }
  for (int begin = 0; begin < frontier.size; begin += kBlock) {
    const int count = min(kBlock, frontier.size - begin);
    __syncthreads();
    if (self < count) members[self] = begin == 0 ? frontier.own : frontier.items[begin + self];
    __syncthreads();
    if (share < shares) {
      lower_to_members<Cost, kAligned>(p, members, count, share, shares, first + pack, least,
                                       nearest);
    }
  }
#pragma unroll
  for (int w = 0; w < kWidth; ++w) {
    reaches[w][self] = least[w];
    rows[w][self] = nearest[w];
  }
  for (int left = shares; left > 1;) {
    const int half = (left + 1) / 2;
    __syncthreads();
    if (share + half < left) {
#pragma unroll
      for (int w = 0; w < kWidth; ++w) {
        const long long other = reaches[w][self + half * packs];
        const int its = rows[w][self + half * packs];
        if (other > reaches[w][self]) continue;
        if (other == reaches[w][self] && its >= rows[w][self]) continue;
        reaches[w][self] = other;
        rows[w][self] = its;
      }
    }
    left = half;
  }
  __syncthreads();
  const int w = self % kWidth, at = self / kWidth;
  return {reaches[w][at], rows[w][at]};
}

// Lower *total to the least number of all threads of the grid.
__device__ inline void lower_to_least(long long* total, long long number) {
  __shared__ long long of_warp[kBlock / kWarp];
  for (int step = kWarp / 2; step > 0; step /= 2) {
    number = min(number, __shfl_down_sync(kWholeWarp, number, step));
  }
  if (lane_index() == 0) of_warp[threadIdx.x / kWarp] = number;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < static_cast<int>(blockDim.x / kWarp); ++w) number = min(number, of_warp[w]);
    if (number != kNever) atomicMin(total, number);
  }
}
