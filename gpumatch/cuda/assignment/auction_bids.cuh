// The reduced costs of a bidder in the auction: the least and the second least of its row.
//
// Costs are read as they are stored, dense or sparse, and counted in 64-bit numbers. Integers count
// in units of 2**-shift, so that the last epsilon is a whole number. Other costs count as double.
//
// Encodings
//   price[j]       the dual of column j; the reduced cost is the cost minus the price
//   Best           the least reduced cost of a row, the second least, and the column of the least;
//                  far() and -1 if there is none
//   lanes          the threads that read one row together: a power of two, up to a block
#pragma once

#include "assignment/dense/costs.cuh"
#include "grid.cuh"
#include "numbers.cuh"

// -- the best of a row ----------------------------------------------------------------------------

template <typename Number>
struct Best {
  Number least;
  Number second;
  int col;

  __device__ static Best none() { return {far<Number>(), far<Number>(), -1}; }

  __device__ void consider(Number here, int j) {
    if (here < least) {
      second = least;
      least = here;
      col = j;
    } else if (here < second) {
      second = here;
    }
  }
};

// Numbers as integers of equal order, and back.
__device__ inline long long ordered(long long number) { return number; }
__device__ inline long long ordered(double number) {
  const long long bits = __double_as_longlong(number);
  return bits ^ ((bits >> 63) & 0x7fffffffffffffffll);
}
template <typename Number>
__device__ Number of_ordered(long long number);
template <>
__device__ inline long long of_ordered<long long>(long long number) {
  return number;
}
template <>
__device__ inline double of_ordered<double>(long long number) {
  return __longlong_as_double(number ^ ((number >> 63) & 0x7fffffffffffffffll));
}

// The least number of the lanes in a mask, found by its upper half, then by its lower half.
__device__ inline long long least_of(unsigned mask, long long number) {
  const int upper = static_cast<int>(number >> 32);
  const int least = __reduce_min_sync(mask, upper);
  const unsigned lower = upper == least ? static_cast<unsigned>(number) : 0xffffffffu;
  return (static_cast<long long>(least) << 32) | __reduce_min_sync(mask, lower);
}

// The best of the lanes in a mask; of equal columns the first. Several lanes may have read one
// column.
__device__ inline Best<long long> best_of(unsigned mask, const Best<long long>& own) {
  const long long least = least_of(mask, own.least);
  const unsigned none = 0xffffffffu;
  const int col = __reduce_min_sync(mask, own.least == least ? own.col : none);
  return {least, least_of(mask, own.col == col ? own.second : own.least), col};
}

// The best of the lanes of a row. All threads of the block take part.
template <typename Number>
__device__ Best<Number> best_of_lanes(const Best<Number>& seen, int lanes) {
  constexpr int kLanes = kWarp;
  Best<long long> best = {ordered(seen.least), ordered(seen.second), seen.col};
  const unsigned mask = lanes < kLanes ? ((1u << lanes) - 1) << (lane_index() & -lanes) : kWholeWarp;
  best = best_of(mask, best);
  if (lanes > kLanes) {
    __shared__ Best<long long> of_warp[kBlock / kLanes];
    const int warps = lanes / kLanes, first = (threadIdx.x & -lanes) / kLanes;
    if (lane_index() == 0) of_warp[threadIdx.x / kLanes] = best;
    __syncthreads();
    best = best_of(kWholeWarp, of_warp[first + (lane_index() & (warps - 1))]);
    __syncthreads();
  }
  return {of_ordered<Number>(best.least), of_ordered<Number>(best.second), best.col};
}

// -- dense and sparse costs -----------------------------------------------------------------------

template <typename Number, int kCount>
struct alignas(kCount == 1 ? sizeof(Number) : 16) Prices {
  Number value[kCount];
};

template <typename Cost, bool kAligned>
struct Dense {
  using Number = typename NumberOf<Cost>::type;
  static constexpr int kWidth = Pack<Cost, kAligned>::kWidth;
  static constexpr int kLeastLanes = 8;  // the least number of lanes that read a row together
  static constexpr int kBatch = 4;       // loads in flight for each lane

  const Cost* values;
  int length;
  int shift;

  __device__ int loads() const { return length / kWidth; }

  __device__ Best<Number> look(int row, const Number* price, int member, int lanes) const {
    const Cost* costs = values + static_cast<long long>(row) * length;
    Best<Number> best = Best<Number>::none();
    for (int first = member; first < loads(); first += kBatch * lanes) {
      typename Pack<Cost, kAligned>::Values cost[kBatch];
      Prices<Number, kWidth> paid[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int pack = first + b * lanes;
        if (pack >= loads()) continue;
        cost[b] = Pack<Cost, kAligned>::load(costs, pack);
        paid[b] = reinterpret_cast<const Prices<Number, kWidth>*>(price)[pack];
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int pack = first + b * lanes;
        if (pack >= loads()) continue;
#pragma unroll
        for (int w = 0; w < kWidth; ++w) {
          best.consider(counted(cost[b].value[w], shift) - paid[b].value[w], pack * kWidth + w);
        }
      }
    }
    return best;
  }
};

template <typename Cost>
struct Sparse {
  using Number = typename NumberOf<Cost>::type;
  static constexpr int kLeastLanes = 1;

  const long long* indptr;
  const int* indices;
  const Cost* weights;
  int length;  // the mean length of a row
  int shift;

  __device__ int loads() const { return length; }

  __device__ Best<Number> look(int row, const Number* price, int member, int lanes) const {
    Best<Number> best = Best<Number>::none();
#pragma unroll 4
    for (long long k = indptr[row] + member; k < indptr[row + 1]; k += lanes) {
      best.consider(counted(weights[k], shift) - price[indices[k]], indices[k]);
    }
    return best;
  }
};
