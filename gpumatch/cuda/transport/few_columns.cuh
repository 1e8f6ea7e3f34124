// The matrix of a problem with few columns as its kernels see it, and the cheapest columns of a row.
//
// Encodings
//   values[i * ncols + j]   cost of row i and column j; infinity, or the greatest 64-bit integer,
//                           forbids the pair
//   forbidden[]             marks of pairs that are forbidden besides; null if there are none
//   limit[i]                the cost of a unit of row i that is not shipped. Such units go to one more
//                           column, `ncols`. Null if every unit must be shipped
#pragma once

#include "grid.cuh"
#include "numbers.cuh"

constexpr int kBlock = 512;
constexpr int kMost = 1026;  // columns at most, those of the limit and of what is spare included

template <typename Cost>
struct Matrix {
  const Cost* values;
  const bool* forbidden;
  const Cost* limit;
  int nrows;
  int ncols;
  int count;  // columns, that of the limit included

  __device__ Cost cost(int row, int col) const {
    if (col == ncols) return limit[row];
    const long long at = static_cast<long long>(row) * ncols + col;
    return forbidden != nullptr && forbidden[at] ? far<Cost>() : values[at];
  }
};

// The two columns of least reduced cost of a row, by their places in the order in which it is read. Of
// equal ones the earlier place counts. A place is -1 if there is no column.
template <typename Price>
struct Cheapest {
  Price least;
  Price second;
  int col;
  int other;

  // A place after all those that were considered.
  __device__ void consider(Price here, int place) {
    if (here < least) {
      second = least;
      other = col;
      least = here;
      col = place;
    } else if (here < second) {
      second = here;
      other = place;
    }
  }

  // Any place, which may be none.
  __device__ void join(Price here, int place) {
    if (place < 0) return;
    if (here < least || (here == least && place < col)) {
      second = least;
      other = col;
      least = here;
      col = place;
    } else if (here < second || (here == second && place < other)) {
      second = here;
      other = place;
    }
  }
};

constexpr int kEach = 8;     // costs that a lane loads before it uses the first
constexpr int kAligned = 4;  // rows are read from multiples of so many columns, because of sectors

// The cheapest columns of a row at these prices. `width` lanes read it together, and all get them. If
// `row` is below 0, the lanes only take part in the exchange. A row is read from a column of its own
// on, so rows with many ties do not all choose the same one; the column of the limit comes last.
template <typename Cost, typename Price>
__device__ Cheapest<Price> cheapest(const Matrix<Cost>& m, const Price* price, int row, int width) {
  const Price never = far<Price>();
  const int ncols = m.ncols, lane = lane_index() % width;
  Cheapest<Price> found = {never, never, -1, -1};
  int start = 0;
  if (row >= 0) {
    start = static_cast<int>(static_cast<long long>(row) * ncols / m.nrows) / kAligned * kAligned;
    const long long base = static_cast<long long>(row) * ncols;
    for (int begin = lane; begin < ncols; begin += kEach * width) {
      Cost costs[kEach];
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        int col = min(begin + e * width, ncols - 1) + start;
        if (col >= ncols) col -= ncols;
        costs[e] = m.values[base + col];
      }
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const int place = begin + e * width;
        if (place >= ncols) continue;
        int col = place + start;
        if (col >= ncols) col -= ncols;
        if (!(costs[e] < far<Cost>())) continue;
        if (m.forbidden != nullptr && m.forbidden[base + col]) continue;
        found.consider(static_cast<Price>(costs[e]) - price[col], place);
      }
    }
    if (lane == 0 && m.count > ncols) {
      found.consider(static_cast<Price>(m.limit[row]) - price[ncols], ncols);
    }
  }
  for (int step = width / 2; step > 0; step /= 2) {
    const Price least = __shfl_xor_sync(kWholeWarp, found.least, step);
    const Price second = __shfl_xor_sync(kWholeWarp, found.second, step);
    const int col = __shfl_xor_sync(kWholeWarp, found.col, step);
    const int other = __shfl_xor_sync(kWholeWarp, found.other, step);
    found.join(least, col);
    found.join(second, other);
  }
  const auto at = [&](int place) {
    if (place < 0 || place >= ncols) return place;
    return place + start < ncols ? place + start : place + start - ncols;
  };
  found.col = at(found.col);
  found.other = at(found.other);
  return found;
}
