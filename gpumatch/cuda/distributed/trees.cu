// Alternating trees whose rows are divided among ranks: the work of a single rank on its GPU.
//
// This is the search of gpumatch/distributed/trees.py, which defines its times. A level has these
// steps:
//
//   offer     Lower near[j] of each column outside the trees to the times at which its pairs with
//             this rank's rows of the frontier become tight.
//   (reduce   `slack` becomes the least `near` of all ranks: no kernel of this file)
//   advance   All columns that are tight join. If none is, the duals of the trees' rows first rise
//             until one is. The mates of the columns that join are the next frontier.
//
// After the reduction all ranks have equal numbers, so `advance` has one result on all of them. Of
// several rows with one time, a column takes the least `pred` of all ranks. This is found for all
// columns at once when the search ends. `augment` then writes the duals, finds the root of each
// leaf, and augments one path a tree. `plant` begins the next search.
//
// Encodings. Rows and columns are those of the whole problem unless it says otherwise.
//   values[i * real + j]   cost of this rank's row first + i and column j; infinity, or the
//                          greatest 64-bit integer, forbids the pair
//   real + i               the column of row i's own, at the limit; none if ncols == real
//   time[i]                the time at which row i joined; far() outside the trees
//   near[j], before[j]     the least time at which a pair of column j with a row of this rank
//                          becomes tight, and that row
//   slack[j]               the least near[j] of all ranks; for a row's own column, the time of that
//                          pair
//   pred[j]                while trees grow: before[j] if column j has joined by a time of this
//                          rank, else kNobody. In `augment`: the least pred[j] of all ranks
//   end[i]                 the first leaf in the tree of root i, kNobody if there is none
//   frontier               this rank's rows that have joined last
//   leaves                 unmatched columns in trees
#include "grid.cuh"
#include "numbers.cuh"

constexpr int kBlock = 256;
constexpr int kShares = kBlock / kWarp;  // shares of a frontier: one for each warp of a block
constexpr int kNobody = 0x7fffffff;

enum Stage { kGrowing, kFound, kStuck };  // as in gpumatch/distributed/trees.py

// The state of a search. All its bytes are 0 before `plant`.
template <typename Cost>
struct State {
  Number<Cost> mark;           // the amount by which the duals of the roots have risen
  unsigned long long nearest;  // bits_of() the least slack of a column outside the trees
  int stage;                   // a Stage
  int levels;
  int updates;                 // levels that have raised the duals
  int roots;
  int matched;                 // rows that have a real column
  int rows;                    // rows that have joined
  int joined;                  // rows that have joined in this level
  int leaves;
  int size;                    // the length of the frontier
};

template <typename Cost>
struct Trees {
  const Cost* values;
  int first;  // the first row of this rank
  int count;  // the number of its rows
  int nrows;
  int real;
  int ncols;
  Number<Cost> limit;
  int* row_to_col;
  int* col_to_row;
  Number<Cost>* row_dual;
  Number<Cost>* col_dual;
  Number<Cost>* time;
  Number<Cost>* near;
  int* before;
  Number<Cost>* slack;
  bool* has_joined;
  int* pred;
  int* end;
  int* frontier;
  int* leaves;
  State<Cost>* state;
  unsigned* barrier;

  __device__ void push_own(int row) const {
    if (row >= first && row < first + count) push(Queue<int>{frontier, &state->size}, row);
  }

  // The row by which a column has joined.
  __device__ int before_column(int col) const { return col < real ? pred[col] : col - real; }
};

// The time at which a pair becomes tight whose row joined at `time`; far() if it has not joined.
template <typename Number>
__device__ Number tight_at(Number cost, Number row_dual, Number col_dual, Number since) {
  const Number slack = cost - row_dual - col_dual;
  return slack < far<Number>() - since ? slack + since : far<Number>();
}

template <typename Cost>
__global__ void __launch_bounds__(kBlock) plant(Trees<Cost> t) {
  int roots = 0, matched = 0;
  for (int row = thread_index(); row < t.nrows; row += thread_count()) {
    const int col = t.row_to_col[row];
    roots += col < 0;
    matched += col >= 0 && col < t.real;
    t.time[row] = col < 0 ? 0 : far<Number<Cost>>();
    t.end[row] = kNobody;
    if (col < 0) t.push_own(row);
  }
  for (int col = thread_index(); col < t.ncols; col += thread_count()) {
    t.has_joined[col] = false;
    if (col >= t.real) continue;
    t.near[col] = far<Number<Cost>>();
    t.pred[col] = kNobody;
  }
  add_to(&t.state->roots, roots);
  add_to(&t.state->matched, matched);
}

// A block has as many columns as a warp has lanes. Its warps divide the rows among them.
template <typename Cost>
__global__ void __launch_bounds__(kBlock) offer(Trees<Cost> t) {
  __shared__ Number<Cost> nears[kBlock];
  __shared__ int rows[kBlock];
  const int size = t.state->size, share = threadIdx.x / kWarp, columns = kWarp;
  if (thread_index() == 0) t.state->nearest = bits_of(far<Number<Cost>>());
  if (size == 0) return;
  for (int first = blockIdx.x * columns; first < t.real; first += gridDim.x * columns) {
    const int col = first + lane_index();
    const bool is_open = col < t.real && !t.has_joined[col];
    const Number<Cost> price = is_open ? t.col_dual[col] : 0;
    Number<Cost> near = far<Number<Cost>>();
    int before = kNobody;
    if (is_open) {
#pragma unroll 8
      for (int k = share; k < size; k += kShares) {
        const int row = t.frontier[k];
        const long long place = static_cast<long long>(row - t.first) * t.real + col;
        const Number<Cost> cost = counted(t.values[place], 0);
        if (cost == far<Number<Cost>>()) continue;
        const Number<Cost> here = tight_at(cost, t.row_dual[row], price, t.time[row]);
        if (here < near) {
          near = here;
          before = row;
        }
      }
    }
    nears[threadIdx.x] = near;
    rows[threadIdx.x] = before;
    __syncthreads();
    if (share == 0 && is_open) {
      for (int other = threadIdx.x + kWarp; other < kBlock; other += kWarp) {
        if (!(nears[other] < near)) continue;
        near = nears[other];
        before = rows[other];
      }
      if (near < t.near[col]) {
        t.near[col] = near;
        t.before[col] = before;
      }
    }
    __syncthreads();
  }
}

// A cooperative launch. Thread 0 writes the state once all threads have read it.
template <typename Cost>
__global__ void __launch_bounds__(kBlock) advance(Trees<Cost> t) {
  State<Cost>& state = *t.state;
  if (state.stage != kGrowing) return;
  Number<Cost> delta = state.mark, least = far<Number<Cost>>();
  const int leaves = state.leaves;
  for (int col = thread_index(); col < t.ncols; col += thread_count()) {
    if (t.has_joined[col]) continue;
    const int row = col - t.real;
    if (row >= 0) {
      t.slack[col] = tight_at(t.limit, t.row_dual[row], t.col_dual[col], t.time[row]);
    }
    if (t.slack[col] < least) least = t.slack[col];
  }
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const Number<Cost> other = __shfl_xor_sync(kWholeWarp, least, step);
    if (other < least) least = other;
  }
  if (lane_index() == 0) atomicMin(&state.nearest, bits_of(least));
  if (thread_index() == 0) state.size = 0;
  grid_barrier(t.barrier);

  const unsigned long long nearest = now(state.nearest);
  const bool is_update = nearest > bits_of(delta);
  int stage = kGrowing, joined = 0;
  if (is_update && leaves != 0) stage = kFound;
  else if (is_update && nearest == bits_of(far<Number<Cost>>())) stage = kStuck;
  else if (is_update) delta = number_of(nearest, delta);
  for (int col = thread_index(); stage == kGrowing && col < t.ncols; col += thread_count()) {
    if (t.has_joined[col] || t.slack[col] > delta) continue;
    t.has_joined[col] = true;
    if (col < t.real && t.near[col] == t.slack[col]) t.pred[col] = t.before[col];
    const int row = t.col_to_row[col];
    if (row < 0) {
      push(Queue<int>{t.leaves, &state.leaves}, col);
      continue;
    }
    t.time[row] = delta;
    t.push_own(row);
    ++joined;
  }
  add_to(&state.joined, joined);
  grid_barrier(t.barrier);
  if (thread_index() != 0) return;
  joined = now(state.joined);
  if (stage == kGrowing) {
    state.mark = delta;
    state.updates += is_update;
    if (joined == 0) stage = kFound;  // only leaves have joined
  }
  ++state.levels;
  state.rows += joined;
  state.joined = 0;
  state.stage = stage;
}

// A cooperative launch.
template <typename Cost>
__global__ void __launch_bounds__(kBlock) augment(Trees<Cost> t) {
  for (int row = thread_index(); row < t.nrows; row += thread_count()) {
    if (t.time[row] == far<Number<Cost>>()) continue;
    const Number<Cost> rise = t.state->mark - t.time[row];
    const int col = t.row_to_col[row];
    t.row_dual[row] += rise;
    if (col >= 0) t.col_dual[col] -= rise;
  }
  for (int k = thread_index(); k < t.state->leaves; k += thread_count()) {
    int row = t.before_column(t.leaves[k]);
    while (t.row_to_col[row] >= 0) row = t.before_column(t.row_to_col[row]);
    atomicMin(&t.end[row], t.leaves[k]);
  }
  grid_barrier(t.barrier);
  for (int root = thread_index(); root < t.nrows; root += thread_count()) {
    int col = t.end[root] == kNobody ? -1 : t.end[root];
    while (col >= 0) {
      const int row = t.before_column(col), following = t.row_to_col[row];
      t.row_to_col[row] = col;
      t.col_to_row[col] = row;
      col = following;
    }
  }
}
