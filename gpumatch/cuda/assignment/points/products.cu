// The kernel for matrix products that tell squared distances: the least numbers of each row below a
// bound.
//
// A warp serves a row, or one of several parts of a row if rows are few. Its lanes hold the least
// numbers so far, in order. After the first few hundred columns hardly any number is below the last
// of them, so a column costs little more than its reading.
//
// Encodings
//   products[i * ncols + j]  for squared distances, the cost less the price of column j; else the
//                            squared distance, so that the cost less the price is
//                            sign * root(product) - price[j]
//   error[i]                 what the products of a row are wrong by, at most, if a root is taken
//   bound[i]                 only numbers below it are wanted
//   found[t * count + k]     the column of the k-th least number of part t, -1 if there are fewer;
//                            the parts of row i are i * parts and those after it
//   values[t * count + k]    the number; infinity if there is none
#include "grid.cuh"

constexpr int kBlock = 256;
constexpr int kEach = 8;  // products that a lane loads at once

template <typename Real>
__global__ void __launch_bounds__(kBlock)
    find_near(const Real* products, int nrows, int ncols, int parts, int is_root, Real sign,
              const Real* error, const Real* price, const Real* bound, int count, int* found,
              Real* values) {
  constexpr int kStep = kEach * static_cast<int>(kWarp);
  const Real infinity = static_cast<Real>(__longlong_as_double(0x7ff0000000000000ll));
  const int step = thread_count() / static_cast<int>(kWarp), lane = lane_index();
  for (int t = thread_index() / static_cast<int>(kWarp); t < nrows * parts; t += step) {
    const int i = t / parts, part = t % parts;
    const Real* row = products + static_cast<long long>(i) * ncols;
    const int first = static_cast<int>(static_cast<long long>(part) * ncols / parts);
    const int end = static_cast<int>(static_cast<long long>(part + 1) * ncols / parts);
    const Real wrong = is_root ? error[i] : Real(0);
    Real value = infinity, most = bound[i];
    int its = -1;
    for (int begin = first; begin < end; begin += kStep) {
      Real here[kEach];
      bool has_any = false;
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const int col = begin + e * static_cast<int>(kWarp) + lane;
        here[e] = col < end ? row[col] : infinity;
      }
      if (is_root) {
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
          const int col = begin + e * static_cast<int>(kWarp) + lane;
          if (col >= end) continue;
          const Real square = here[e] - sign * wrong;
          here[e] = sign * sqrt(square > 0 ? square : Real(0)) - price[col];
        }
      }
#pragma unroll
      for (int e = 0; e < kEach; ++e) has_any = has_any || here[e] < most;
      if (!__any_sync(kWholeWarp, has_any)) continue;
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        unsigned better = __ballot_sync(kWholeWarp, here[e] < most);
        while (better != 0) {
          const int other = __ffs(better) - 1;
          better &= better - 1;
          const Real number = __shfl_sync(kWholeWarp, here[e], other);
          if (!(number < most)) continue;  // equal in all lanes
          const int at = __popc(__ballot_sync(kWholeWarp, value <= number));
          const Real before = __shfl_sync(kWholeWarp, value, (lane + 31) % 32);
          const int its_before = __shfl_sync(kWholeWarp, its, (lane + 31) % 32);
          if (lane > at) {
            value = before;
            its = its_before;
          } else if (lane == at) {
            value = number;
            its = begin + e * static_cast<int>(kWarp) + other;
          }
          const Real last = __shfl_sync(kWholeWarp, value, count - 1);
          most = last < most ? last : most;
        }
      }
    }
    if (lane < count) {
      found[static_cast<long long>(t) * count + lane] = its;
      values[static_cast<long long>(t) * count + lane] = value;
    }
  }
}
