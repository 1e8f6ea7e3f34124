// Prices for dense costs by an auction without rounds, in which each row remembers a few columns.
//
// A block bids for the best column of a row. If its offer evicts another row, the block continues
// with that row, until an offer evicts none. Blocks never wait for each other (offers.cuh).
//
// Each row has up to kKnown known columns and a bound. In its last look, which read all its costs,
// no other column had a reduced cost below the bound. Prices only fall, so reduced costs only rise,
// and the bound holds until the row looks again. A row bids for its best known column if the
// reduced cost of that is within the bound. Otherwise it looks again. (Bus and Tvrdik's look-back
// auction remembers bids in this way; so does the CPU's engine.)
//
// The block's first warp bids, with a lane for each known column. The whole block looks. Each
// thread keeps the best and the second best of its columns. The bound is the least second best of
// all threads, because every column below it is the best of its thread. So a look reads a row once,
// and sorts only a few of these bests.
//
// An auction ends when `goal` rows are served. It only finds prices, which need not be exact.
//
// Encodings
//   values[i * ncols + j]  cost; infinity, or the greatest 64-bit integer, forbids the pair
//   cols, costs            at i * kKnown: the known columns of row i, -1 for none, and their costs
//                          in units. Of equal columns, those after the row's own place come first
//   bound[i]               the bound of all other columns, in units; minus infinity before a look
//   rows[]                 the rows that bid
#include "assignment/sparse/offers.cuh"

constexpr int kBlock = 256;
constexpr int kKnown = 32;
constexpr int kAtOnce = 8;  // costs that a thread loads before it uses the first

template <typename Cost>
struct Lines {
  const Cost* values;
  int* cols;
  double* costs;
  double* bound;
  const int* rows;
  int nrows;
  int ncols;
  int size;  // the length of rows
};

// The progress of an auction.
struct Progress {
  int served;  // rows that are matched, or that stay unmatched because they have no column
  int looks;
};

// A thread's best column, and its second least reduced cost.
struct Seen {
  double least;
  double second;
  double cost;
  int col;
  int place;
};

// The least number of all threads of the block.
__device__ inline double least_of_block(double number) {
  constexpr int kWarps = kBlock / kWarp;
  __shared__ double of_warp[kWarps];
  for (int step = kWarp / 2; step > 0; step /= 2) {
    number = fmin(number, __shfl_xor_sync(kWholeWarp, number, step));
  }
  if (lane_index() == 0) of_warp[threadIdx.x / kWarp] = number;
  __syncthreads();
  for (int w = 0; w < kWarps; ++w) number = fmin(number, of_warp[w]);
  return number;
}

// The best of this thread's columns of a row.
template <typename Cost>
__device__ Seen see(const Lines<Cost>& l, const Terms& t, const unsigned long long* offers, int row) {
  const double infinity = far<double>();
  const Cost* values = l.values + static_cast<long long>(row) * l.ncols;
  const int start = static_cast<int>(static_cast<long long>(row) * l.ncols / l.nrows);
  const int last = l.ncols - start;  // the place of column 0
  Seen seen = {infinity, infinity, infinity, -1, 0x7fffffff};
  for (int begin = threadIdx.x; begin < l.ncols; begin += kAtOnce * kBlock) {
    Cost costs[kAtOnce];
    unsigned long long its[kAtOnce];
#pragma unroll
    for (int e = 0; e < kAtOnce; ++e) {
      const int place = begin + e * kBlock;
      if (place >= l.ncols) continue;
      const int col = place < last ? place + start : place - last;
      costs[e] = values[col];
      its[e] = __ldcg(offers + col);
    }
#pragma unroll
    for (int e = 0; e < kAtOnce; ++e) {
      const int place = begin + e * kBlock;
      if (place >= l.ncols || counted(costs[e], 0) == far<Number<Cost>>()) continue;
      const double cost = (static_cast<double>(costs[e]) - t.low) * t.scale;
      const double here = cost + static_cast<double>(t.fallen(its[e]));
      if (here < seen.least) {
        seen = {here, seen.least, cost, place < last ? place + start : place - last, place};
      } else if (here < seen.second) {
        seen.second = here;
      }
    }
  }
  return seen;
}

// Find the known columns and the bound of a row. All threads of the block take part.
template <typename Cost>
__device__ void look(const Lines<Cost>& l, const Terms& t, const unsigned long long* offers,
                     int row) {
  __shared__ double leasts[kBlock];
  __shared__ int places[kBlock];
  __shared__ int count;
  __shared__ double beyond;  // the least reduced cost of a column that exceeds kKnown
  const Seen seen = see(l, t, offers, row);
  if (threadIdx.x == 0) {
    count = 0;
    beyond = far<double>();
  }
  const double bound = least_of_block(seen.second);
  const bool is_known = seen.col >= 0 && seen.least <= bound;
  if (is_known) {
    const int at = take_place(&count);
    leasts[at] = seen.least;
    places[at] = seen.place;
  }
  __syncthreads();
  int rank = 0;
  if (is_known) {
    for (int k = 0; k < count; ++k) {
      rank += leasts[k] < seen.least || (leasts[k] == seen.least && places[k] < seen.place);
    }
    if (rank == kKnown) beyond = seen.least;
  }
  const long long base = static_cast<long long>(row) * kKnown;
  if (is_known && rank < kKnown) {
    l.cols[base + rank] = seen.col;
    l.costs[base + rank] = seen.cost;
  }
  for (int k = count + threadIdx.x; k < kKnown; k += kBlock) l.cols[base + k] = -1;
  __syncthreads();
  if (threadIdx.x == 0) l.bound[row] = fmin(bound, beyond);
  __threadfence();  // all is written before another block may evict the row
  __syncthreads();
}

// A lane's known column of a row, and the bound of the row.
struct Known {
  double cost;
  double bound;
  int col;

  template <typename Cost>
  __device__ void recall(const Lines<Cost>& l, int row) {
    const long long at = static_cast<long long>(row) * kKnown + lane_index();
    col = __ldcg(l.cols + at);
    cost = __ldcg(l.costs + at);
    bound = __ldcg(l.bound + row);
  }
};

// Bid for a row, then for the row that is evicted, and so on. Returns a row that must look first,
// or -1 if the chain has ended. All lanes of a warp take part.
template <typename Cost>
__device__ int bid(const Lines<Cost>& l, const Terms& t, unsigned long long* offers,
                   Progress* progress, int row, int* steps) {
  const double infinity = far<double>();
  Known known;
  known.recall(l, row);
  while (true) {
    const bool is_over = now(progress->served) >= t.goal;
    if (__any_sync(kWholeWarp, is_over) || ++*steps > t.longest) return -1;
    Choice choice = {infinity, infinity, 0, -1};
    if (known.col >= 0) {
      const unsigned long long offer = __ldcg(offers + known.col);
      choice.consider(known.cost + static_cast<double>(t.fallen(offer)), offer, known.col);
    }
    choice = choice_of_group(choice, kWarp);
    if (choice.least > known.bound) return row;
    int next = -1;
    if (lane_index() == 0) {
      const double second = fmin(choice.second, known.bound);
      const double lead = second < infinity ? second - choice.least : static_cast<double>(t.jump);
      const long long fallen = t.fallen(choice.offer) + static_cast<long long>(lead) + t.epsilon;
      if (choice.col < 0 || fallen > t.most) {
        atomicAdd(&progress->served, 1);  // the row stays unmatched
      } else {
        const unsigned long long offer = t.offer(fallen, row);
        const unsigned long long before = atomicMax(offers + choice.col, offer);
        next = row;  // it bids again if the price has fallen in the meantime
        if (before < offer) {
          next = t.row_of(before);
          if (next < 0) atomicAdd(&progress->served, 1);
        }
      }
    }
    next = __shfl_sync(kWholeWarp, next, 0);
    if (next < 0) return -1;
    if (next != row) known.recall(l, next);
    row = next;
  }
}

template <typename Cost>
__global__ void __launch_bounds__(kBlock)
    hold_auction(Lines<Cost> l, Terms t, unsigned long long* offers, Progress* progress) {
  __shared__ int to_look;
  int steps = 0;
  for (int k = blockIdx.x; k < l.size; k += gridDim.x) {
    int row = l.rows[k];
    while (row >= 0) {
      if (threadIdx.x < kWarp) {
        const int next = bid(l, t, offers, progress, row, &steps);
        if (lane_index() == 0) to_look = next;
      }
      __syncthreads();
      row = to_look;
      __syncthreads();
      if (row < 0) break;
      if (threadIdx.x == 0) atomicAdd(&progress->looks, 1);
      look(l, t, offers, row);
    }
  }
}
