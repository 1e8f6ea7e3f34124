// Deep Greedy Switching on the GPU: start, evaluation, parallel switching, bound.
//
// R. Roverso, A. Naiem, M. El-Beltagy, S. El-Ansary, S. Haridi, "A GPU-enabled solver for
// time-constrained linear sum assignment problems", INFOS 2010. Agents are rows and jobs columns.
// differences.cuh defines a side, and has the two evaluations of the paper and ours. No kernel
// is launched with more blocks than are resident.
#include "assignment/dgs/differences.cuh"

// -- preparation ----------------------------------------------------------------------------------

constexpr int kSquare = 32;
constexpr int kSquareRows = 8;  // read by the 256 threads of a block at a time

// out[j * nrows + i] = values[i * ncols + j].
template <typename Cost>
__global__ void transpose(const Cost* values, int nrows, int ncols, Cost* out) {
  __shared__ Cost square[kSquare][kSquare + 1];
  const int across = (ncols + kSquare - 1) / kSquare;
  const long long squares = static_cast<long long>(across) * ((nrows + kSquare - 1) / kSquare);
  const int x = threadIdx.x % kSquare, y = threadIdx.x / kSquare;
  for (long long k = blockIdx.x; k < squares; k += gridDim.x) {
    const int row = static_cast<int>(k / across) * kSquare;
    const int col = static_cast<int>(k % across) * kSquare;
#pragma unroll
    for (int r = y; r < kSquare; r += kSquareRows) {
      if (row + r < nrows && col + x < ncols) {
        square[r][x] = values[static_cast<long long>(row + r) * ncols + col + x];
      }
    }
    __syncthreads();
#pragma unroll
    for (int c = y; c < kSquare; c += kSquareRows) {
      if (col + c < ncols && row + x < nrows) {
        out[static_cast<long long>(col + c) * nrows + row + x] = square[x][c];
      }
    }
    __syncthreads();
  }
}

// Write paid[] of all vertices.
template <typename Cost>
__global__ void pay(Side<Cost> rows, Side<Cost> cols) {
  for (int row = thread_index(); row < rows.size; row += thread_count()) {
    const int mate = rows.mate[row];
    rows.paid[row] = mate < 0 ? rows.idle : rows.cost(row, mate);
  }
  for (int col = thread_index(); col < cols.size; col += thread_count()) {
    const int mate = cols.mate[col];
    cols.paid[col] = mate < 0 ? cols.idle : rows.cost(mate, col);
  }
}

// -- the greedy start -----------------------------------------------------------------------------

// The rows take their cheapest unmatched columns in a given order: row order[p] is the p-th. Each
// row of a window has a block, which claims the row's column. The earlier row gets it. A row that
// lost its column reads its row again, without the columns of earlier rows. When no row has lost
// its column, the result is that of a sequential choice, and the next window begins.
//
// Encodings
//   holder[col]   the place in the order of the row that holds the column; -1: matched before this
//                 window, kNone: unmatched
//   losses[3]     the number of columns lost in a round, by round % 3
constexpr int kNone = 0x7fffffff;

struct Queuing {
  const int* order;
  int count;
  int* holder;
  int* losses;
  unsigned* barrier;
};

// True if an earlier row has taken the column since. All threads of the block get one answer.
__device__ inline bool has_lost(const Queuing& queue, int col, int place) {
  __shared__ bool is_lost;
  if (threadIdx.x == 0) is_lost = now(queue.holder[col]) != place;
  __syncthreads();
  return is_lost;
}

template <typename Cost>
__device__ int cheapest_free(const Side<Cost>& rows, int row, const int* holder, int place) {
  __shared__ int cheapest;
  Best<Cost> best = {-rows.idle, kNone};  // the gain is minus the cost, so the least cost is best
  const Cost* const costs = rows.row(row);
  for (int first = threadIdx.x; first < rows.others; first += kBatch * blockDim.x) {
    Cost cost[kBatch];
    int holder_place[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int col = min(static_cast<int>(first + k * blockDim.x), rows.others - 1);
      cost[k] = costs[col];
      holder_place[k] = __ldcg(holder + col);
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int col = min(static_cast<int>(first + k * blockDim.x), rows.others - 1);
      if (cost[k] < rows.idle && holder_place[k] > place) best.offer(-Number<Cost>(cost[k]), col);
    }
  }
  share_in_block(&best);
  if (threadIdx.x == 0) cheapest = best.choice;
  __syncthreads();
  return cheapest;
}

template <typename Cost>
__global__ void take_cheapest(Side<Cost> rows, Side<Cost> cols, Queuing queue, int first,
                              int windows) {
  int round = 0;
  for (int window = 0; window < windows; ++window, first += gridDim.x) {
    const int place = first + blockIdx.x;
    const int row = place < queue.count ? queue.order[place] : -1;
    int col = kNone;
    for (bool is_first = true;; is_first = false, ++round) {
      const bool is_looking = is_first ? row >= 0 : col != kNone && has_lost(queue, col, place);
      if (is_looking) {
        col = cheapest_free(rows, row, queue.holder, place);
        if (threadIdx.x == 0 && col != kNone) {
          const int before = atomicMin(queue.holder + col, place);
          if (before != kNone) atomicAdd(queue.losses + round % 3, 1);
        }
      }
      grid_barrier(queue.barrier);
      if (thread_index() == 0) queue.losses[(round + 2) % 3] = 0;
      if (now(queue.losses[round % 3]) == 0) break;
    }
    ++round;
    if (threadIdx.x == 0 && col != kNone) {
      rows.mate[row] = col;
      cols.mate[col] = row;
    }
  }
}

// -- evaluation and switching ---------------------------------------------------------------------

template <typename Cost, int kForm>
__global__ void evaluate(Side<Cost> own, Side<Cost> other, const int* list, int size,
                         Evaluation<Cost> evaluation) {
  evaluate_listed<Cost, kForm>(own, other, list, size, evaluation);
}

// Section V.C, in rounds. Of all exchanges that were found and still have a positive gain, a round
// makes those that share no agent and no job with a better one. Their agents and jobs are evaluated
// again. The others keep their exchanges. The paper's two forms evaluate agents and jobs. Ours does
// not evaluate jobs if all have agents, because the agents' evaluation is then that of the jobs
// too.
//
// Encodings. Vertices are numbered rows first, then columns.
//   key[v]       the upper 32 bits of the gain of v's exchange, as a double, then ~v; 0: none. If
//                these bits are equal, which have 20 bits of the fraction, the lower number wins.
//   claim[v]     the greatest key of the exchanges that claim v; 0 between rounds
//   changed      queues of rows and of columns to evaluate
//   Switching    the state between launches; counters by round % 3
struct Switching {
  int round;
  int exchanges;
  int has_ended;  // 1 if the last round made no exchange
  int valid[3];
  int changed_rows[3];
  int changed_cols[3];
};

struct Conflicts {
  unsigned long long* key;
  unsigned long long* claim;
  int* changed_rows;
  int* changed_cols;
  Switching* state;
};

template <typename Number>
__device__ unsigned long long key_of(Number gain, int number) {
  const unsigned long long bits = __double_as_longlong(static_cast<double>(gain));
  return (bits & 0xffffffff00000000ull) | (0xffffffffu - static_cast<unsigned>(number));
}

// Claim all vertices of v's exchange, and return its key. First half of the conflict check
// (Algorithm 4).
template <typename Cost>
__device__ unsigned long long claim(const Side<Cost>& own, const Side<Cost>& other, int vertex,
                                    int number, unsigned long long* own_claim,
                                    unsigned long long* other_claim) {
  if (own.gain[vertex] <= 0) return 0;
  const Exchange p = exchange_of(own, other, vertex);
  const Number<Cost> gain = difference(own, other, p);
  if (gain <= 0) return 0;
  const unsigned long long key = key_of(gain, number);
  atomicMax(own_claim + p.vertex, key);
  if (p.loser >= 0) atomicMax(own_claim + p.loser, key);
  if (p.mate >= 0) atomicMax(other_claim + p.mate, key);
  if (p.wanted >= 0) atomicMax(other_claim + p.wanted, key);
  return key;
}

// Make v's exchange if its key has won all its claims, and return true then. Second half of the
// check, and the switch. A thread whose key has lost a claim may read mates that others are
// changing. It still finds a lost claim, because the exchange that has won v's vertices has won
// their mates too.
template <typename Cost>
__device__ bool switch_if_unrivalled(const Side<Cost>& own, const Side<Cost>& other, int vertex,
                                     unsigned long long key, const unsigned long long* own_claim,
                                     const unsigned long long* other_claim, Queue<int> own_changed,
                                     Queue<int> other_changed) {
  const Exchange p = exchange_of(own, other, vertex);
  const bool is_selected = own_claim[p.vertex] == key &&
                           (p.loser < 0 || own_claim[p.loser] == key) &&
                           (p.mate < 0 || other_claim[p.mate] == key) &&
                           (p.wanted < 0 || other_claim[p.wanted] == key);
  if (!is_selected) return false;
  exchange(own, other, p);
  push(own_changed, p.vertex);
  if (p.loser >= 0) push(own_changed, p.loser);
  if (p.mate >= 0) push(other_changed, p.mate);
  if (p.wanted >= 0) push(other_changed, p.wanted);
  return true;
}

// Make the exchanges of one side. The lanes of a warp push to one queue at a time.
template <typename Cost>
__device__ void switch_side(const Side<Cost>& own, const Side<Cost>& other,
                            const unsigned long long* key, const unsigned long long* own_claim,
                            const unsigned long long* other_claim, Queue<int> own_changed,
                            Queue<int> other_changed, int* exchanges) {
  for (int v = thread_index(); v < own.size; v += thread_count()) {
    if (key[v] == 0) continue;
    const bool is_made = switch_if_unrivalled(own, other, v, key[v], own_claim, other_claim,
                                              own_changed, other_changed);
    if (is_made) atomicAdd(exchanges, 1);
  }
}

template <typename Cost, int kForm>
__global__ void switch_in_parallel(Side<Cost> rows, Side<Cost> cols, Conflicts conflicts,
                                   Evaluation<Cost> evaluation, int most_rounds) {
  Switching* const state = conflicts.state;
  unsigned long long* const row_claim = conflicts.claim;
  unsigned long long* const col_claim = conflicts.claim + rows.size;
  const int vertices = rows.size + cols.size;
  const int start = state->round;
  int round = start;
  bool has_ended = false;
  for (; round - start < most_rounds; ++round) {
    const int turn = round % 3;
    for (int v = thread_index(); v < vertices; v += thread_count()) {
      unsigned long long key = 0;
      if (v < rows.size) {
        key = claim(rows, cols, v, v, row_claim, col_claim);
      } else {
        key = claim(cols, rows, v - rows.size, v, col_claim, row_claim);
      }
      conflicts.key[v] = key;
      if (key != 0) state->valid[turn] = 1;
    }
    grid_barrier(evaluation.barrier);
    has_ended = now(state->valid[turn]) == 0;
    if (has_ended) break;
    if (thread_index() == 0) {
      const int next = (round + 1) % 3;
      state->valid[next] = state->changed_rows[next] = state->changed_cols[next] = 0;
    }
    const Queue<int> changed_rows = {conflicts.changed_rows, state->changed_rows + turn};
    const Queue<int> changed_cols = {conflicts.changed_cols, state->changed_cols + turn};
    switch_side(rows, cols, conflicts.key, row_claim, col_claim, changed_rows, changed_cols,
                &state->exchanges);
    switch_side(cols, rows, conflicts.key + rows.size, col_claim, row_claim, changed_cols,
                changed_rows, &state->exchanges);
    grid_barrier(evaluation.barrier);
    for (int v = thread_index(); v < vertices; v += thread_count()) conflicts.claim[v] = 0;
    evaluate_listed<Cost, kForm>(rows, cols, conflicts.changed_rows,
                                 now(state->changed_rows[turn]), evaluation);
    if (!evaluation.serves_mates) {
      evaluate_listed<Cost, kForm>(cols, rows, conflicts.changed_cols,
                                   now(state->changed_cols[turn]), evaluation);
    }
    grid_barrier(evaluation.barrier);
  }
  if (thread_index() == 0) {
    state->round = round;
    state->has_ended = has_ended;
  }
}

// -- the bound ------------------------------------------------------------------------------------

// Bellman and Ford's relaxation of the column duals, the prices. In each sweep a row's dual becomes
// its least reduced cost, and prices fall until no other row prefers the column to its own. The
// duals of the best sweep are kept.
//
// Encodings
//   price[s % 2]   the prices of sweep s; the other array has the lowered prices
//   held[row]      the reduced cost of the row's pair
//   missed[3]      the sum of held[] minus the rows' duals, by sweep % 3: the gap
//   is_moved[3]    1 if a price fell in the sweep, by sweep % 3
constexpr int kPatience = 2;

struct Sweeps {
  int sweep;
  int in_vain;
  int has_ended;
  int is_moved[3];
  double gap;
  double missed[3];
};

template <typename Cost>
struct Prices {
  Number<Cost>* price[2];
  Number<Cost>* held;
  Number<Cost>* minima;
  Number<Cost>* row_dual;
  Number<Cost>* col_dual;
  Number<Cost> lowest;
  Sweeps* state;
  unsigned* barrier;
};

// The least of a vertex's costs minus subtracted[w] of the other side's vertex w. Called by a warp.
template <typename Cost>
__device__ Number<Cost> least_of(const Side<Cost>& own, int vertex, const Number<Cost>* subtracted) {
  const Cost* const costs = own.row(vertex);
  const Number<Cost> beyond = far<Number<Cost>>();
  Number<Cost> least = beyond;
  for (int first = lane_index(); first < own.others; first += kBatch * kWarp) {
    Cost cost[kBatch];
    Number<Cost> less[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int other = min(static_cast<int>(first + k * kWarp), own.others - 1);
      cost[k] = costs[other];
      less[k] = subtracted[other];
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if (cost[k] < beyond) least = min(least, cost[k] - less[k]);
    }
  }
  for (int step = kWarp / 2; step > 0; step /= 2) {
    least = min(least, __shfl_xor_sync(kWholeWarp, least, step));
  }
  return least;
}

// Add a number of every warp of the grid, which its first lane has, to *total.
__device__ inline void add_warps_to(double* total, double number) {
  __shared__ double of_warp[kMostWarps];
  if (lane_index() == 0) of_warp[threadIdx.x / kWarp] = number;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < static_cast<int>(blockDim.x / kWarp); ++w) number += of_warp[w];
    atomicAdd(total, number);
  }
}

template <typename Cost>
__global__ void sweep_prices(Side<Cost> rows, Side<Cost> cols, Prices<Cost> prices, int most) {
  Sweeps* const state = prices.state;
  const int start = state->sweep;
  const int warp = thread_index() / kWarp, warps = thread_count() / kWarp;
  int sweep = start, in_vain = state->in_vain;
  double gap = state->gap;
  bool has_ended = false;
  for (; sweep - start < most && !has_ended; ++sweep) {
    const int turn = sweep % 3;
    const Number<Cost>* const price = prices.price[sweep % 2];
    Number<Cost>* const lowered = prices.price[1 - sweep % 2];
    for (int row = thread_index(); row < rows.size; row += thread_count()) {
      const int mate = rows.mate[row];
      prices.held[row] = mate < 0 ? rows.idle : rows.paid[row] - price[mate];
    }
    grid_barrier(prices.barrier);
    double missed = 0;
    for (int v = warp; v < rows.size + cols.size; v += warps) {
      if (v < rows.size) {
        const Number<Cost> least = min(rows.idle, least_of(rows, v, price));
        if (lane_index() != 0) continue;
        prices.minima[v] = least;
        missed += static_cast<double>(rows.paid[v] - least);
      } else {
        const int col = v - rows.size;
        const bool is_fixed = cols.mate[col] < 0;
        const Number<Cost> least = is_fixed ? 0 : least_of(cols, col, prices.held);
        if (lane_index() != 0) continue;
        const Number<Cost> before = price[col];
        lowered[col] = is_fixed ? before : min(before, max(least, prices.lowest));
        if (lowered[col] != before) state->is_moved[turn] = 1;
        missed -= static_cast<double>(before);
      }
    }
    add_warps_to(state->missed + turn, missed);
    grid_barrier(prices.barrier);
    missed = now(state->missed[turn]);
    if (thread_index() == 0) {
      state->missed[(sweep + 2) % 3] = 0;
      state->is_moved[(sweep + 2) % 3] = 0;
    }
    in_vain = missed < 0.9 * gap ? 0 : in_vain + 1;
    if (missed < gap) {
      gap = missed;
      for (int row = thread_index(); row < rows.size; row += thread_count()) {
        prices.row_dual[row] = prices.minima[row];
      }
      for (int col = thread_index(); col < cols.size; col += thread_count()) {
        prices.col_dual[col] = price[col];
      }
    }
    has_ended = in_vain == kPatience || now(state->is_moved[turn]) == 0;
  }
  if (thread_index() == 0) {
    state->sweep = sweep;
    state->in_vain = in_vain;
    state->gap = gap;
    state->has_ended = has_ended;
  }
}
