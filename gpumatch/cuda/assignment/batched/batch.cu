// Many dense problems, each solved by a team of threads, from the first read to the proof. A team
// is a warp for the smallest problems, else a block, or a cluster of blocks if the problems are
// large and fewer than the multiprocessors.
//
// A problem has n rows and m >= n columns. Each row gets one column, or stays unmatched at `limit`.
// If a problem has more rows than columns, the kernel `turn` first makes its transposed copy.
// Numbers are double, in which integers up to `largest` are exact, as contracts/batch.py states.
//
// `solve` has these steps:
//   bids.cuh   All costs are read once, and checked. In a square problem, the price of each column
//              is its least cost, and a row with this cost gets it (column reduction). In other
//              problems all rows bid once for their nearest columns. Then each warp bids for an
//              unmatched row: it lowers the price of the nearest column until the second nearest is
//              as near (augmenting row reduction). The lowest price gets the column, and the row
//              that had it becomes unmatched. Of equally near columns a row prefers unmatched ones,
//              and of these the first after its own place, so that rows with equal costs choose
//              different columns. A row bids no more if its nearest columns are all matched and
//              tied. The last few rows bid no more either, because their bids would take longer
//              than their paths. In a team of one warp, no row bids a second time, for the same
//              reason.
//   paths.cuh  Each unmatched row gets a shortest augmenting path. In a step, each warp names its
//              nearest column that is not scanned, and the team scans the rows matched to these, at
//              most about `rows_at_once`. A column whose distance falls is scanned again. If that
//              happens to most rows, a step scans only the row of the nearest column from then on.
//              The search ends when no column is nearer than the nearest unmatched one. So columns
//              at one distance end it together. A team of one warp scans one row in each step.
//   auctions.cuh  If all rows must be matched, and paths turn out to take more than `steps_a_row`
//              steps for each row, auctions with falling epsilon serve most rows. Then there are
//              bids and paths again. If there are more columns than rows, all rows must prefer the
//              same ones. A team of one warp holds no auctions.
//   proof.cuh  The duals of the rows are their least reduced costs, for which the matrix is read
//              once more.
//
// Loops that are not at the heart of a step are not unrolled. Unrolled, they are half of the code, and
// the compiler takes twice as long.
//
// Each block of a team has a copy of all arrays. A thread puts its results into all copies.
// Decisions of a single warp are made by a warp of each block, for the block's own copy. The
// columns are divided among the threads of the team.
//
// Jonker, Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment
// problems", Computing 38, 1987.
//
// Encodings
//   price[j], dual[i]   the duals of a column and of a matched row, in shared memory
//   mate[j], held[i]    the row of a column, the column of a row; -1 means unmatched
//   pred[j]             the row from which the search reaches column j
//   ring                unmatched rows that still bid, `count` of them from `head` on, in n places
//   left                unmatched rows that get paths
//   states[k]           SOLVED and others, as in contracts/batch.py
//   pairs[k]            the number of pairs
#include "assignment/batched/auctions.cuh"
#include "assignment/batched/bids.cuh"
#include "assignment/batched/paths.cuh"
#include "assignment/batched/proof.cuh"
#include "assignment/batched/team.cuh"

// Make the transposed copies, each with `parts` blocks of kTile * 8 threads.
template <typename Cost>
__global__ void turn(Batch<Cost> batch, int parts) {
  __shared__ Cost tile[kTile][kTile + 1];
  const Place<Cost> place = place_of(batch, blockIdx.x / parts);
  if (place.turned == nullptr) return;
  const int across = (place.cols + kTile - 1) / kTile;
  const int tiles = across * ((place.rows + kTile - 1) / kTile);
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile, height = blockDim.x / kTile;
#pragma unroll 1
  for (int k = blockIdx.x % parts; k < tiles; k += parts) {
    const int row = k / across * kTile, col = k % across * kTile;
#pragma unroll 1
    for (int r = y; r < kTile; r += height) {
      if (row + r < place.rows && col + x < place.cols) {
        tile[r][x] = place.costs[(row + r) * place.step + col + x];
      }
    }
    __syncthreads();
#pragma unroll 1
    for (int c = y; c < kTile; c += height) {
      if (col + c < place.cols && row + x < place.rows) {
        place.turned[static_cast<long long>(col + c) * place.rows + row + x] = tile[x][c];
      }
    }
    __syncthreads();
  }
}

constexpr double kOrderRounding = 0x1p-50;  // of the costs: by how much differences may be wrong

extern __shared__ double block_numbers[];

// The arrays in a block's shared memory: 16 bytes a column, 20 a row.
template <bool kAlone>
__device__ inline Shared<kAlone> shared_for(int rows, int cols, int blocks) {
  __shared__ Bid bids[kAlone ? 1 : 2 * kMostBidders + 1];
  __shared__ double gaps[kAlone ? 1 : kMostWarps];
  __shared__ Named named[kAlone ? 1 : 2 * kMostWarps];
  __shared__ Via vias[kAlone ? 1 : 2 * kWarp];
  __shared__ unsigned long long mail[2];
  __shared__ int votes[kMostBlocks];
  __shared__ int counts[5];
  Shared<kAlone> shared;
  shared.price = block_numbers;
  shared.dual = shared.price + cols;
  shared.mate = reinterpret_cast<int*>(shared.dual + rows);
  shared.pred = shared.mate + cols;
  shared.held = shared.pred + cols;
  shared.ring = shared.held + rows;
  shared.left = shared.ring + rows;
  shared.bids = bids;
  shared.gaps = gaps;
  shared.named = named;
  shared.vias = vias;
  shared.mail = mail;
  shared.votes = votes;
  shared.head = counts;
  shared.count = counts + 1;
  shared.waiting = counts + 2;
  shared.next_count = counts + 3;
  shared.blocks = blocks;
  shared.block = blockIdx.x % blocks;
  shared.exchanges = 0;
  if (blocks > 1 && threadIdx.x == 0) {
    open_mail(mail);
    open_mail(mail + 1);
  }
  return shared;
}

// Write results without pairs, by `threads` threads.
__device__ inline void clear(Results& results, int k, int* mates, double* numbers, int thread,
                             int threads) {
  const int both = results.most_rows + results.most_cols;
#pragma unroll 1
  for (int i = thread; i < both; i += threads) mates[i] = -1;
#pragma unroll 1
  for (int i = thread; i < both + results.most_rows; i += threads) numbers[i] = 0.0;
  if (thread == 0) {
    results.objective[k] = 0.0;
    results.gap[k] = far<double>();
    results.pairs[k] = 0;
    results.proven[k] = false;
  }
}

// True if three columns order a few rows in one way, or in opposite ones, as in a matrix that is
// Monge in some order. This is the first of the tests in gpumatch/numeric/monge.py.
template <typename Cost>
__device__ bool orders_alike(const Problem<Cost>& problem) {
  constexpr int kRows = 6, kCols = 3;
  const int row = min(lane_index() / kCols, kRows - 1), col = lane_index() % kCols;
  const double own = problem.cost(row * problem.rows / kRows, col * problem.cols / kCols);
  const double rounding = problem.wish.whole ? 0.0 : kOrderRounding * -least_of_warp(-fabs(own));
  const double middle = __shfl_down_sync(kWholeWarp, own, 1);
  const double left = own - middle, right = middle - __shfl_down_sync(kWholeWarp, own, 2);
  const bool counts = col == 0 && lane_index() < kRows * kCols;  // its row's differences
  bool is_alike = false, is_opposite = false;
#pragma unroll 1
  for (int other = 0; other < kRows; ++other) {
    const double rise = left - __shfl_sync(kWholeWarp, left, kCols * other);
    const double its = right - __shfl_sync(kWholeWarp, right, kCols * other);
    is_alike |= counts && rise > rounding && its > rounding;
    is_opposite |= counts && rise > rounding && its < -rounding;
  }
  return !(__any_sync(kWholeWarp, is_alike) && __any_sync(kWholeWarp, is_opposite));
}

// List the unmatched rows as rows for paths. It waits for the team.
template <typename Team>
__device__ inline void list_for_paths(const Team& shared, int rows) {
  if (shared.thread_here() < static_cast<int>(kWarp)) {
    list_rows(
        shared, rows, [](int) { return false; }, [&](int row) { return shared.held[row] < 0; });
  }
  shared.wait();
}

// Find the pairs and the prices of a problem. `reduces` is true if all rows and columns must be
// matched.
template <int kColumns, typename Cost, bool kAlone>
__device__ __forceinline__ State solve_problem(const Problem<Cost>& problem,
                                               const Shared<kAlone>& shared, bool reduces) {
  begin(shared, problem.rows, problem.cols);
  if (!(reduces ? reduce_columns(problem, shared) : bid_first(problem, shared))) return kUnfit;
  int stuck = 0;
  bool leaves_out = false;
  Effort effort = {0, 0.0};
  Auctions auctions = {false, 0.0, 0.0, 0};
  for (bool may_bid = problem.wish.limit == far<double>() && !kAlone;; may_bid = false) {
    if constexpr (!kAlone) {
      const int most = problem.wish.most_steps - effort.steps;
      effort.steps += hold_all_bids(problem, shared, auctions, most);
    }
    const int waiting = leave_rows(shared, problem.rows);
    stuck = waiting == 0 ? 0 : find_paths<kColumns>(problem, shared, waiting, may_bid, effort);
    if (stuck != kLong) break;
    if constexpr (!kAlone) {
      leaves_out = !reduces && leave_out_columns(problem, shared);
      if (reduces || leaves_out) {
        auctions = plan_auctions(problem, shared, effort.fall);
      } else {
        list_for_paths(shared, problem.rows);
      }
    }
  }
  if (stuck != 0) return stuck != kTired && !problem.wish.may_lack ? kInfeasible : kUnsolved;
  if (reduces || leaves_out) lower_to_zero(shared, problem.cols);
  if (leaves_out) take_back_columns(shared, problem.cols);
  return kSolved;
}

// Solve a problem by a team whose threads have kColumns each, and prove it.
template <int kColumns, bool kAlone, typename Cost>
__device__ __forceinline__ void solve_one(const Place<Cost>& place, const Wish& wish,
                                          Results& results, int blocks) {
  const int k = place.number;
  const bool turned = place.turned != nullptr;
  const Problem<Cost> problem = {
      turned ? place.turned : place.costs, turned ? place.rows : place.step,
      turned ? place.cols : place.rows, turned ? place.rows : place.cols, wish};
  const Shared<kAlone> shared = shared_for<kAlone>(problem.rows, problem.cols, blocks);
  const int thread = shared.thread();
  int* const mates = results.mates + 1ll * k * (results.most_rows + results.most_cols);
  double* const numbers =
      results.numbers + 1ll * k * (2ll * results.most_rows + results.most_cols);
  const Side rows = {mates, numbers};
  const Side cols = {mates + results.most_rows, numbers + results.most_rows};
  double* const paid = numbers + results.most_rows + results.most_cols;
  const bool reduces = problem.rows == problem.cols && wish.limit == far<double>();
  if (wish.asks_order && orders_alike(problem)) {
    if (thread == 0) results.states[k] = kOrdered;
    return;
  }
  if (!shared.is_one_block()) shared.wait();  // all blocks of the team have started
  if (wish.is_given) {
    take_given(problem, shared, turned ? cols : rows, turned ? rows : cols);
  } else {
    clear(results, k, mates, numbers, thread, shared.threads());
    const State state = solve_problem<kColumns>(problem, shared, reduces);
    if (state != kSolved) {
      if (thread == 0) results.states[k] = state;
      return;
    }
  }
  if (reduces && wish.is_given) lower_to_zero(shared, problem.cols);
  write(problem, shared, turned ? cols : rows, turned ? rows : cols, paid, turned);
  if (thread < static_cast<int>(kWarp)) add_up(problem, shared, results, k);
}

// Solve problems by teams of `blocks` blocks each: a cluster if there are several.
template <typename Cost, int kColumns>
__global__ void __launch_bounds__(kMostThreads, 1)
    solve(Batch<Cost> batch, Wish wish, Results results, int blocks) {
  solve_one<kColumns, false>(place_of(batch, blockIdx.x / blocks), wish, results, blocks);
}

// Solve problems by teams of one warp, which is a block.
template <typename Cost, int kColumns>
__global__ void __launch_bounds__(kWarp)
    solve_alone(Batch<Cost> batch, Wish wish, Results results, int) {
  solve_one<kColumns, true>(place_of(batch, blockIdx.x), wish, results, 1);
}
