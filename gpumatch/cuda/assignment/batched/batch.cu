// Many dense problems, each solved by a team of threads, from the first read to the proof. A team
// is a warp for the smallest problems, else a block, or a cluster of blocks if the problems are
// large and fewer than the multiprocessors.
//
// A problem has n rows and m >= n columns. Each row gets one column, or stays unmatched at `limit`.
// If a problem has more rows than columns, the kernel `turn` first makes its transposed copy.
// Numbers are double, in which integers up to `largest` are exact, as batch_contracts.py states.
//
// `solve` has three steps:
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
//              most about `rows_at_once`. A column whose distance falls is scanned again. The
//              search ends when no column is nearer than the nearest unmatched one. So columns at
//              one distance end it together. A team of one warp scans one row in each step.
//   proof.cuh  The duals of the rows are their least reduced costs, for which the matrix is read
//              once more.
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
//   states[k]           SOLVED, INFEASIBLE, UNFIT or UNSOLVED, as in batch_contracts.py
//   pairs[k]            the number of pairs
#include "grid.cuh"
#include "numbers.cuh"

constexpr int kMostWarps = 64;    // the most warps of a team: two for each lane
constexpr int kMostBidders = 32;  // one for each lane of the warp that decides
constexpr int kMostThreads = 1024;
constexpr int kTile = 32;
constexpr int kMostBlocks = 8;    // the most blocks of a team: some devices have no larger clusters
constexpr double kUlps = 8.0;     // the rounding of a proven gap, as in gpumatch/numeric/gaps.py
constexpr int kNobody = 0x7fffffff;  // no row or column yet: above all numbers

enum State { kSolved, kInfeasible, kUnfit, kUnsolved };

struct Wish {
  double sign;
  double limit;    // the cost of an unmatched row; infinity if each row must be matched
  int takes_equal;  // 1 if a row prefers a column that costs as much as the limit
  double most;     // pairs that cost more are forbidden
  double largest;  // a cost of greater magnitude makes a problem unfit
  int may_lack;    // 1 if rows without a path may stay unmatched: the problem is then unsolved
  int whole;       // 1 if numbers are written as integers
  int bids;        // the mean number of bids of a row after its first
  int fewest;      // the number of unmatched rows at which bids end
  int rows_at_once;
  int most_steps;   // the most steps of a problem's searches; it is unsolved if it takes more, or
  int first_steps;  // if an estimate says so after these
  int lengthens;    // 1 if the estimate assumes that later paths are longer
  int is_given;     // 1 if the results have the pairs and the columns' duals, for the proof only
};

// The places of the problems. If `places` is not null, it has for each problem the addresses of its
// costs and of its transposed copy (0: none), the step from row to row, the rows, the columns, and
// its number. If it is null, all have one size, and are `apart` from each other.
template <typename Cost>
struct Batch {
  const Cost* costs;
  Cost* turned;
  const long long* places;
  long long apart;
  long long step;
  int rows;
  int cols;
};

struct Results {
  int* mates;  // the mates of most_rows rows, then of most_cols columns
  double* numbers;  // the duals of these, then the costs of the rows' pairs
  double* objective;
  double* gap;
  long long* pairs;
  long long* states;
  bool* proven;
  int most_rows;
  int most_cols;
};

template <typename Cost>
struct Place {
  const Cost* costs;
  Cost* turned;
  long long step;
  int rows;
  int cols;
  int number;
};

// The place of the k-th problem of this launch.
template <typename Cost>
__device__ Place<Cost> place_of(const Batch<Cost>& batch, int k) {
  if (batch.places == nullptr) {
    const long long size = static_cast<long long>(batch.rows) * batch.cols;
    return {batch.costs + k * batch.apart,
            batch.turned == nullptr ? nullptr : batch.turned + k * size, batch.step, batch.rows,
            batch.cols, k};
  }
  const long long* own = batch.places + 6ll * k;
  return {reinterpret_cast<const Cost*>(own[0]), reinterpret_cast<Cost*>(own[1]), own[2],
          static_cast<int>(own[3]), static_cast<int>(own[4]), static_cast<int>(own[5])};
}

// Make the transposed copies, each with `parts` blocks of kTile * 8 threads.
template <typename Cost>
__global__ void turn(Batch<Cost> batch, int parts) {
  __shared__ Cost tile[kTile][kTile + 1];
  const Place<Cost> place = place_of(batch, blockIdx.x / parts);
  if (place.turned == nullptr) return;
  const int across = (place.cols + kTile - 1) / kTile;
  const int tiles = across * ((place.rows + kTile - 1) / kTile);
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile, height = blockDim.x / kTile;
  for (int k = blockIdx.x % parts; k < tiles; k += parts) {
    const int row = k / across * kTile, col = k % across * kTile;
    for (int r = y; r < kTile; r += height) {
      if (row + r < place.rows && col + x < place.cols) {
        tile[r][x] = place.costs[(row + r) * place.step + col + x];
      }
    }
    __syncthreads();
    for (int c = y; c < kTile; c += height) {
      if (col + c < place.cols && row + x < place.rows) {
        place.turned[static_cast<long long>(col + c) * place.rows + row + x] = tile[x][c];
      }
    }
    __syncthreads();
  }
}

// -- numbers of a warp ----------------------------------------------------------------------------

// A number as an unsigned integer of equal order.
__device__ __forceinline__ unsigned long long key_of(double number) {
  constexpr unsigned long long kSign = 1ull << 63;
  const unsigned long long bits = __double_as_longlong(number + 0.0);  // no zero has a sign
  return bits & kSign ? ~bits : bits | kSign;
}

// The least number of a warp.
__device__ __forceinline__ double least_of_warp(double own) {
  constexpr unsigned long long kSign = 1ull << 63;
  const unsigned long long key = key_of(own);
  const unsigned high = static_cast<unsigned>(key >> 32);
  const unsigned least = __reduce_min_sync(kWholeWarp, high);
  const unsigned low =
      __reduce_min_sync(kWholeWarp, high == least ? static_cast<unsigned>(key) : 0xffffffffu);
  const unsigned long long found = static_cast<unsigned long long>(least) << 32 | low;
  return __longlong_as_double(found & kSign ? found ^ kSign : ~found);
}

// The lanes that have the least number. Mostly one lane has the least upper half, and no lower
// halves are compared.
__device__ __forceinline__ unsigned lanes_with_least(double own) {
  const unsigned long long key = key_of(own);
  const unsigned high = static_cast<unsigned>(key >> 32), low = static_cast<unsigned>(key);
  const bool is_high = high == __reduce_min_sync(kWholeWarp, high);
  const unsigned lanes = __ballot_sync(kWholeWarp, is_high);
  if (__popc(lanes) == 1) return lanes;
  const unsigned least = __reduce_min_sync(kWholeWarp, is_high ? low : 0xffffffffu);
  return __ballot_sync(kWholeWarp, is_high && low == least);
}

__device__ inline double no_less(double number, double bound) {
  return number < bound ? bound : number;
}

// -- a team of blocks -----------------------------------------------------------------------------

// Wait for all blocks of a cluster. Their writes are visible after it.
__device__ __forceinline__ void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// A place in the shared memory of another block of the cluster.
template <typename T>
__device__ __forceinline__ T* of_block(T* place, int block) {
#if __CUDA_ARCH__ >= 900
  T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(place), "r"(block));
  return there;
#else
  return place;
#endif
}

struct Bid {
  double price;
  double dual;
  int row;
  int col;  // or kStays, kLeaves
};
constexpr int kStays = -1;   // the row bids no more
constexpr int kLeaves = -2;  // the row stays unmatched

// The nearest column of a warp that is not scanned.
struct Named {
  double distance;  // infinity if there is none
  double dual;      // the dual of the row
  int col;
  int row;  // the row matched to the column; -1 if the column is unmatched
};

// The memory that a team shares: the blocks of a cluster, or a block, or with kAlone a warp.
template <bool kAlone>
struct Shared {
  double* price;
  double* dual;
  int* mate;
  int* pred;
  int* held;
  int* ring;
  int* left;
  Bid* bids;     // two for each bidder
  double* gaps;  // one for each warp
  Named* named;  // two for each warp
  int* votes;
  int* head;
  int* count;
  int* waiting;  // the length of left

  int blocks;    // the blocks of the team
  int block;     // the number of this block

  __device__ int thread() const { return kAlone ? lane_index() : block * blockDim.x + threadIdx.x; }
  __device__ int threads() const { return kAlone ? kWarp : blocks * blockDim.x; }
  __device__ int warp() const { return kAlone ? 0 : thread() / kWarp; }
  __device__ int warps() const { return kAlone ? 1 : threads() / kWarp; }
  __device__ bool is_one_block() const { return kAlone || blocks == 1; }

  // The number of this thread among those that share a copy of the arrays, and their count.
  __device__ int thread_here() const { return kAlone ? lane_index() : threadIdx.x; }
  __device__ int threads_here() const { return kAlone ? kWarp : blockDim.x; }

  // Wait for the threads that share this copy.
  __device__ void wait_here() const {
    if (kAlone) __syncwarp();
    else __syncthreads();
  }

  // Wait for the team.
  __device__ void wait() const {
    if (is_one_block()) wait_here();
    else wait_for_cluster();
  }

  // Write a value to all copies.
  template <typename T>
  __device__ void put(T* place, T value) const {
    if (is_one_block()) {
      *place = value;
    } else {
      for (int other = 0; other < blocks; ++other) *of_block(place, other) = value;
    }
  }

  // Write a value to all copies, by a warp that has it in each lane.
  template <typename T>
  __device__ void put_together(T* place, T value) const {
    if (is_one_block()) {
      if (lane_index() == 0) *place = value;
    } else if (lane_index() < blocks) {
      *of_block(place, lane_index()) = value;
    }
  }

  // True if any thread of the team votes. It waits for the team, and may be called once a launch.
  __device__ bool any_votes(bool vote) const {
    if (kAlone) {
      __syncwarp();
      return __any_sync(kWholeWarp, vote);
    }
    const int own = __syncthreads_count(vote);
    if (blocks == 1) return own > 0;
    if (threadIdx.x == 0) put(votes + block, own);
    wait();
    int all = 0;
    for (int other = 0; other < blocks; ++other) all += votes[other];
    return all > 0;
  }
};

// The problem of a block, in the orientation in which it is solved.
template <typename Cost>
struct Problem {
  const Cost* costs;
  long long step;
  int rows;
  int cols;
  Wish wish;

  // True if a cost is valid.
  __device__ __forceinline__ bool fits(Cost cost) const {
    const double paid = wish.sign * static_cast<double>(cost);
    return paid >= -wish.largest && (paid <= wish.largest || paid == far<double>());
  }

  // A cost with the sign of the problem; infinity if the pair is forbidden.
  __device__ __forceinline__ double paid(Cost cost) const {
    const double paid = wish.sign * static_cast<double>(cost);
    return paid <= wish.most ? paid : far<double>();
  }

  __device__ __forceinline__ double cost(int row, int col) const {
    return paid(costs[row * step + col]);
  }

  // True if a row stays unmatched at the distance `leave` rather than take a column at the distance
  // `there`. Both are infinite only if there is no limit and no path, and then it stays unmatched.
  //
  // If rows take what is equal, no row and column are both unmatched at the end whose pair costs
  // the limit or less, however sums are rounded. A search that scans a row may leave it unmatched
  // at base + limit. It reaches an unmatched column, whose price is 0, at base + cost. Rounding
  // keeps the order of the two, and so does `no_less`. So the column is at most as far, and is
  // taken.
  __device__ __forceinline__ bool goes_without(double leave, double there) const {
    return leave < there || (leave == there && !wish.takes_equal);
  }
};

// Visit columns of a row from `begin` on, by a warp, kLoaded a lane at once, as long as all lanes
// have that many. Returns the first column not visited. All costs are loaded before the first is
// used.
template <int kLoaded, typename Cost, typename Visit>
__device__ __forceinline__ int for_columns(const Problem<Cost>& problem, int row, int begin,
                                           Visit visit) {
  const Cost* const costs = problem.costs + row * problem.step + lane_index();
  for (; begin + kLoaded * static_cast<int>(kWarp) <= problem.cols; begin += kLoaded * kWarp) {
    Cost loaded[kLoaded];
#pragma unroll
    for (int k = 0; k < kLoaded; ++k) loaded[k] = costs[begin + k * kWarp];
#pragma unroll
    for (int k = 0; k < kLoaded; ++k) {
      visit(begin + k * static_cast<int>(kWarp) + lane_index(), loaded[k]);
    }
  }
  return begin;
}

// Visit the remaining columns of a row from `begin` on, by a warp, at most kLoaded a lane.
template <int kLoaded, typename Cost, typename Visit>
__device__ __forceinline__ void for_rest(const Problem<Cost>& problem, int row, int begin,
                                         Visit visit) {
  const Cost* const costs = problem.costs + row * problem.step;
  Cost loaded[kLoaded];
#pragma unroll
  for (int k = 0; k < kLoaded; ++k) {
    const int col = begin + k * static_cast<int>(kWarp) + lane_index();
    loaded[k] = costs[col < problem.cols ? col : 0];
  }
#pragma unroll
  for (int k = 0; k < kLoaded; ++k) {
    const int col = begin + k * static_cast<int>(kWarp) + lane_index();
    if (col < problem.cols) visit(col, loaded[k]);
  }
}

// Visit the columns of a row, by a warp: visit(col, cost).
template <typename Cost, bool kAlone, typename Visit>
__device__ __forceinline__ void for_row(const Problem<Cost>& problem, const Shared<kAlone>&,
                                        int row, Visit visit) {
  int begin = kAlone ? 0 : for_columns<8>(problem, row, 0, visit);
  if (kAlone || problem.cols - begin <= 2 * static_cast<int>(kWarp)) {
    for_rest<2>(problem, row, begin, visit);
  } else {
    for_rest<8>(problem, row, begin, visit);
  }
}

// -- bids -----------------------------------------------------------------------------------------

// Append the rows of some lanes, in their order, to `items`, a ring of `room`. Returns their
// number.
__device__ inline int append(bool wanted, int row, int* items, int from, int room) {
  const unsigned all = __ballot_sync(kWholeWarp, wanted);
  if (wanted) items[(from + __popc(all & ((1u << lane_index()) - 1))) % room] = row;
  return __popc(all);
}

// Begin without pairs, and with prices of 0. kNobody is above all rows and columns.
template <typename Team>
__device__ inline void begin(const Team& shared, int rows, int cols) {
  for (int col = shared.thread_here(); col < cols; col += shared.threads_here()) {
    shared.price[col] = 0.0;
    shared.mate[col] = kNobody;
  }
  for (int row = shared.thread_here(); row < rows; row += shared.threads_here()) {
    shared.held[row] = kNobody;
    shared.dual[row] = 0.0;
  }
  shared.wait();
}

// Make the lists of rows, in their order, by one warp: rows that bid next, and rows for paths.
template <typename Team, typename Bids, typename Stays>
__device__ inline void list_rows(const Team& shared, int rows, Bids bids, Stays stays) {
  int count = 0, waiting = 0;
  for (int first = 0; first < rows; first += kWarp) {
    const int row = first + lane_index();
    const bool is_row = row < rows, next = is_row && bids(row), left = is_row && stays(row);
    count += append(next, row, shared.ring, count, rows);
    waiting += append(left, row, shared.left, waiting, rows);
  }
  if (lane_index() == 0) {
    *shared.head = 0;
    *shared.count = count;
    *shared.waiting = waiting;
  }
}

// Set the price of each column of a square problem to its least cost, and match it to the first row
// with this cost, unless an earlier column has this row. Returns false if a cost is not valid.
template <typename Cost, typename Team>
__device__ __forceinline__ bool reduce_columns(const Problem<Cost>& problem, const Team& shared) {
  const int rows = problem.rows, cols = problem.cols;
  bool fit = true;
  for (int col = shared.thread(); col < cols; col += shared.threads()) {
    double least = far<double>();
    int nearest = -1;
#pragma unroll 16
    for (int row = 0; row < rows; ++row) {
      const Cost cost = problem.costs[row * problem.step + col];
      const double paid = problem.paid(cost);
      fit &= problem.fits(cost);
      nearest = paid < least ? row : nearest;
      least = paid < least ? paid : least;
    }
    shared.put(shared.pred + col, nearest);
    if (nearest >= 0) shared.put(shared.price + col, least);
  }
  if (shared.any_votes(!fit)) return false;
  for (int col = shared.thread_here(); col < cols; col += shared.threads_here()) {
    if (shared.pred[col] >= 0) atomicMin(shared.held + shared.pred[col], col);
  }
  shared.wait_here();
  for (int col = shared.thread_here(); col < cols; col += shared.threads_here()) {
    const int row = shared.pred[col];
    shared.mate[col] = row >= 0 && shared.held[row] == col ? row : -1;
  }
  shared.wait_here();
  if (shared.thread_here() < static_cast<int>(kWarp)) {
    list_rows(
        shared, rows,
        [&](int row) {
          const bool is_free = shared.held[row] == kNobody;
          if (is_free) shared.held[row] = -1;
          return is_free;
        },
        [](int) { return false; });
  }
  shared.wait_here();
  return true;
}

// The bid of a row, by a warp. With kFirst all prices are 0, all columns are unmatched, and costs
// are checked.
template <bool kFirst, typename Cost, typename Team>
__device__ __forceinline__ Bid bid_of(const Problem<Cost>& problem, const Team& shared,
                                      int row, bool& fit) {
  const int cols = problem.cols, begin = static_cast<int>(1ll * row * cols / problem.rows);
  double least = far<double>(), second = far<double>();
  unsigned rank = 0xffffffffu;  // of equally near columns, unmatched ones come first
  for_row(problem, shared, row, [&](int col, Cost cost) {
    if (kFirst) fit &= problem.fits(cost);
    const double there = kFirst ? problem.paid(cost) : problem.paid(cost) - shared.price[col];
    if (there <= least && there < far<double>()) {
      const bool is_free = kFirst || shared.mate[col] < 0;
      const unsigned own = (is_free ? 0 : cols) + col - begin + (col < begin ? cols : 0);
      second = least;
      rank = there < least ? own : min(rank, own);
      least = there;
    } else if (there < second) {
      second = there;
    }
  });
  const double nearest = least_of_warp(least);
  const bool is_nearest = least == nearest;
  const bool is_tied = __popc(__ballot_sync(kWholeWarp, is_nearest)) > 1;
  second = least_of_warp(is_nearest && !is_tied ? second : least);
  rank = __reduce_min_sync(kWholeWarp, is_nearest ? rank : 0xffffffffu);
  if (problem.goes_without(problem.wish.limit, nearest)) {
    return {0.0, 0.0, row, problem.wish.limit < far<double>() ? kLeaves : kStays};
  }
  const bool is_taken = rank >= static_cast<unsigned>(cols);
  int col = static_cast<int>(is_taken ? rank - cols : rank) + begin;
  if (col >= cols) col -= cols;
  second = min(second, problem.wish.limit);
  if (second == far<double>()) second = nearest;  // the row has one column only
  const double before = kFirst ? 0.0 : shared.price[col], price = before - (second - nearest);
  if (is_taken && !(price < before)) return {0.0, 0.0, row, kStays};
  return {price, second, row, col};
}

// Lower a number in this block's memory that is not above 0. The bits of such numbers ascend as the
// numbers fall.
__device__ __forceinline__ void lower(double* place, double value) {
  atomicMax(reinterpret_cast<unsigned long long*>(place),
            static_cast<unsigned long long>(__double_as_longlong(value)));
}

// Bid for all rows at prices of 0. The lowest price gets a column, and of equal prices that of the
// first row. Returns false if a cost is not valid.
template <typename Cost, typename Team>
__device__ __forceinline__ bool bid_first(const Problem<Cost>& problem, const Team& shared) {
  const int rows = problem.rows;
  bool fit = true;
  for (int row = shared.warp(); row < rows; row += shared.warps()) {
    const Bid own = bid_of<true>(problem, shared, row, fit);
    shared.put_together(shared.left + row, own.col);
    shared.put_together(shared.dual + row, own.dual);
  }
  if (shared.any_votes(!fit)) return false;
  const auto bid = [&](int row, int col) {
    return 0.0 - (shared.dual[row] - problem.cost(row, col));
  };
  for (int row = shared.thread_here(); row < rows; row += shared.threads_here()) {
    const int col = shared.left[row];
    if (col >= 0) lower(shared.price + col, bid(row, col));
  }
  shared.wait_here();
  for (int row = shared.thread_here(); row < rows; row += shared.threads_here()) {
    const int col = shared.left[row];
    if (col >= 0 && bid(row, col) == shared.price[col]) atomicMin(shared.mate + col, row);
  }
  shared.wait_here();
  if (shared.thread_here() < static_cast<int>(kWarp)) {
    list_rows(
        shared, rows,
        [&](int row) {
          const int col = shared.left[row];
          const bool has_it = col >= 0 && shared.mate[col] == row;
          shared.held[row] = has_it ? col : -1;
          return col >= 0 && !has_it;
        },
        [&](int row) { return shared.left[row] == kStays; });
  }
  shared.wait_here();
  for (int col = shared.thread_here(); col < problem.cols; col += shared.threads_here()) {
    if (shared.mate[col] == kNobody) shared.mate[col] = -1;
  }
  shared.wait_here();
  return true;
}

// Match columns to the bidders with the lowest prices, by one warp with a bid a lane.
template <typename Team>
__device__ inline void decide(const Team& shared, const Bid* bids, int bidders,
                              int rows) {
  const int lane = lane_index();
  Bid own = {0.0, 0.0, -1, -kMostThreads - lane};
  if (lane < bidders) own = bids[lane];
  const bool wants = own.col >= 0;
  const int key = wants ? own.col : -kMostThreads - lane;  // equal to the key of no other lane
  bool wins = wants;
  for (unsigned others = __match_any_sync(kWholeWarp, key) & ~(1u << lane); others != 0;
       others &= others - 1) {
    const int other = __ffs(others) - 1;
    const double price = bids[other].price;
    wins &= own.price < price || (own.price == price && lane < other);
  }
  int again = wants && !wins ? own.row : -1;
  if (wins) {
    again = shared.mate[own.col];
    if (again >= 0) shared.held[again] = -1;
    shared.mate[own.col] = own.row;
    shared.price[own.col] = own.price;
    shared.held[own.row] = own.col;
    shared.dual[own.row] = own.dual;
  }
  __syncwarp();
  const int head = *shared.head, count = *shared.count, waiting = *shared.waiting;
  const int more = append(again >= 0, again, shared.ring, head + count, rows);
  const bool stays = lane < bidders && own.col == kStays;
  const int stay = append(stays, own.row, shared.left, waiting, rows);
  __syncwarp();
  if (lane == 0) {
    *shared.head = (head + bidders) % rows;
    *shared.count = count - bidders + more;
    *shared.waiting = waiting + stay;
  }
}

// Bid for the listed rows, with a warp for each.
template <typename Cost>
__device__ __forceinline__ void hold_bids(const Problem<Cost>& problem,
                                          const Shared<false>& shared) {
  const int warp = shared.warp(), warps = min(shared.warps(), kMostBidders);
  const int rows = problem.rows, most = rows * problem.wish.bids;
  bool fit = true;
  Bid* bids = shared.bids;
  for (int spent = 0; *shared.count > problem.wish.fewest && spent < most;) {
    const int bidders = min(warps, *shared.count);
    if (warp < bidders) {
      const int row = shared.ring[(*shared.head + warp) % rows];
      const Bid own = bid_of<false>(problem, shared, row, fit);
      if (lane_index() == 0) shared.put(bids + warp, own);
    }
    shared.wait();
    if (threadIdx.x < kWarp) decide(shared, bids, bidders, rows);
    spent += bidders;
    bids = shared.bids + (bids == shared.bids ? kMostBidders : 0);  // other blocks may still decide
    __syncthreads();
  }
}

// Move the rows that are still listed to `left`, and return its length. It waits for the team.
template <typename Team>
__device__ inline int leave_rows(const Team& shared, int rows) {
  const int count = *shared.count, waiting = *shared.waiting;
  for (int k = shared.thread_here(); k < count; k += shared.threads_here()) {
    shared.left[waiting + k] = shared.ring[(*shared.head + k) % rows];
  }
  shared.wait();
  return waiting + count;
}

// -- paths ----------------------------------------------------------------------------------------

// The end of a search.
struct Ending {
  double distance;  // infinity if there is no path
  int col;          // the unmatched column; -1 if a row becomes unmatched instead
  int row;          // that row
};
constexpr int kTired = -1;  // instead of a number of rows: the steps are spent

// The columns of a thread: every threads()-th from thread() on.
template <int kColumns>
struct Columns {
  double price[kColumns];
  double distance[kColumns];
  int mate[kColumns];
  int pred[kColumns];
  unsigned scanned;  // a bit for each column
};

// About `most` of the nearest lanes of a mask. It keeps the lanes below the mean distance,
// repeatedly.
__device__ __forceinline__ unsigned nearest_lanes(unsigned lanes, double distance, int most) {
  const float own = static_cast<float>(distance);  // precise enough for a choice
  while (__popc(lanes) > most) {
    const bool counts = (lanes >> lane_index() & 1) != 0;
    float sum = counts ? own : 0.0f;
#pragma unroll
    for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, step);
    const unsigned nearer = __ballot_sync(kWholeWarp, counts && own * __popc(lanes) <= sum);
    if (nearer == 0 || nearer == lanes) break;
    lanes = nearer;
  }
  return lanes;
}

// The warps whose columns are chosen: those with the numbers of `lanes`, or kWarp more if `later`.
struct Choice {
  unsigned lanes;
  unsigned later;

  __device__ int next() {
    const int lane = __ffs(lanes) - 1;
    lanes &= lanes - 1;
    return lane + (later >> lane & 1) * kWarp;
  }

  __device__ bool has(int warp) const {
    const int lane = warp % kWarp;
    return (lanes >> lane & 1) != 0 && static_cast<int>(later >> lane & 1) == warp / kWarp;
  }
};

// Put the nearer of the columns that warps lane and lane + kWarp name into `seen`. Returns the
// lanes for which it is that of the later warp.
__device__ __forceinline__ unsigned see_later(const Named* named, int warps, Named& seen) {
  const int later = lane_index() + kWarp;
  bool is_nearer = false;
  if (later < warps) {
    const Named other = named[later];
    is_nearer =
        other.distance < seen.distance || (other.distance == seen.distance && other.row < 0);
    if (is_nearer) seen = other;
  }
  return __ballot_sync(kWholeWarp, is_nearer);
}

// The number of rows whose costs a thread loads before it uses the first.
template <int kColumns>
__device__ constexpr int rows_together() {
  return kColumns == 1 ? 8 : kColumns == 8 ? 2 : 4;
}

// Relax the columns of this thread by some of the chosen rows.
template <int kColumns, typename Cost, typename Team>
__device__ __forceinline__ void relax(const Problem<Cost>& problem, const Team& shared,
                                      const Named* named, Choice& choice, Columns<kColumns>& own,
                                      Ending& leave) {
  constexpr int kRows = rows_together<kColumns>();
  Cost there[kRows][kColumns];
  Choice rest = choice;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (rest.lanes == 0) break;
    const Cost* const costs = problem.costs + named[rest.next()].row * problem.step;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int col = shared.thread() + c * shared.threads();
      there[r][c] = costs[col < problem.cols ? col : 0];
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (choice.lanes == 0) break;
    const Named via = named[choice.next()];
    const double base = via.distance - via.dual;
    const double going = no_less(base + problem.wish.limit, via.distance);
    const bool is_first = going < leave.distance;
    leave.distance = is_first ? going : leave.distance;
    leave.row = is_first ? via.row : leave.row;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const double through =
          no_less(base + (problem.paid(there[r][c]) - own.price[c]), via.distance);
      const bool is_nearer = through < own.distance[c];
      own.distance[c] = is_nearer ? through : own.distance[c];
      own.pred[c] = is_nearer ? via.row : own.pred[c];
      own.scanned &= ~(static_cast<unsigned>(is_nearer) << c);
    }
  }
}

// The nearest column of this warp that is not scanned. `lane` gets the lane that has it, and `at`
// its place there.
template <int kColumns, typename Team>
__device__ __forceinline__ Named name_nearest(const Team& shared, const Columns<kColumns>& own,
                                              int& lane, int& at) {
  double nearest = far<double>();
  int mate = 0;
  at = 0;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const bool is_scanned = own.scanned >> c & 1;
    const double there = is_scanned ? far<double>() : own.distance[c];
    if (there < nearest || (there == nearest && own.mate[c] < 0)) {
      nearest = there;
      at = c;
      mate = own.mate[c];
    }
  }
  const unsigned lanes = lanes_with_least(nearest);
  const unsigned free = lanes & __ballot_sync(kWholeWarp, mate < 0);
  lane = __ffs(free != 0 ? free : lanes) - 1;
  const double least = __shfl_sync(kWholeWarp, nearest, lane);
  const int col = __shfl_sync(kWholeWarp, shared.thread() + at * shared.threads(), lane);
  const int row = __shfl_sync(kWholeWarp, mate, lane);
  const double dual = row < 0 || least == far<double>() ? 0.0 : shared.dual[row];
  return {least, dual, col, row};
}

// Begin a search: the distances of this thread's columns from a root.
template <int kColumns, typename Cost, typename Team>
__device__ __forceinline__ void see_from(const Problem<Cost>& problem, const Team& shared, int root,
                                         Columns<kColumns>& own) {
  own.scanned = 0;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int col = shared.thread() + c * shared.threads();
    own.distance[c] = far<double>();
    own.mate[c] = 0;
    own.pred[c] = root;
    if (col >= problem.cols) continue;
    own.distance[c] = problem.cost(root, col) - own.price[c];
    own.mate[c] = shared.mate[col];
  }
}

// Search for the nearest unmatched column of a root, and find the distances of all nearer columns.
template <int kColumns, typename Cost>
__device__ __forceinline__ Ending search(const Problem<Cost>& problem, const Shared<false>& shared,
                                         int root, Columns<kColumns>& own, int& steps) {
  const int warp = shared.warp(), warps = shared.warps();
  see_from(problem, shared, root, own);
  Ending leave = {problem.wish.limit, -1, root};
  for (;;) {
    if (++steps > problem.wish.most_steps) return leave;
    Named* const named = shared.named + (steps & 1) * kMostWarps;
    int chosen, at;
    shared.put_together(named + warp, name_nearest(shared, own, chosen, at));
    shared.wait();
    Named seen = {far<double>(), 0.0, -1, -1};
    if (lane_index() < warps) seen = named[lane_index()];
    Choice choice = {0, 0};
    if (warps > static_cast<int>(kWarp)) choice.later = see_later(named, warps, seen);
    const double free = least_of_warp(seen.row < 0 ? seen.distance : far<double>());
    const bool is_nearer =
        seen.distance < free && !problem.goes_without(leave.distance, seen.distance);
    choice.lanes = __ballot_sync(kWholeWarp, seen.row >= 0 && is_nearer);
    if (choice.lanes == 0) {
      if (problem.goes_without(leave.distance, free)) return leave;
      const unsigned ends = __ballot_sync(kWholeWarp, seen.row < 0 && seen.distance == free);
      return {free, __shfl_sync(kWholeWarp, seen.col, __ffs(ends) - 1), -1};
    }
    if (__popc(choice.lanes) > problem.wish.rows_at_once) {
      choice.lanes = nearest_lanes(choice.lanes, seen.distance, problem.wish.rows_at_once);
    }
    if (choice.has(warp) && lane_index() == chosen) own.scanned |= 1u << at;
    while (choice.lanes != 0) relax(problem, shared, named, choice, own, leave);
  }
}

// The search of a team of one warp, which scans one row in each step.
template <int kColumns, typename Cost>
__device__ __forceinline__ Ending search(const Problem<Cost>& problem, const Shared<true>& shared,
                                         int root, Columns<kColumns>& own, int& steps) {
  see_from(problem, shared, root, own);
  Ending leave = {problem.wish.limit, -1, root};
  for (;;) {
    if (++steps > problem.wish.most_steps) return leave;
    int chosen, at;
    const Named via = name_nearest(shared, own, chosen, at);
    if (problem.goes_without(leave.distance, via.distance)) return leave;
    if (via.row < 0) return {via.distance, via.col, -1};
    if (lane_index() == chosen) own.scanned |= 1u << at;
    const double base = via.distance - via.dual;
    const double going = no_less(base + problem.wish.limit, via.distance);
    if (going < leave.distance) leave = {going, -1, via.row};
    const Cost* const costs = problem.costs + via.row * problem.step;
    Cost there[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int col = lane_index() + c * kWarp;
      there[c] = costs[col < problem.cols ? col : 0];
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const double through =
          no_less(base + (problem.paid(there[c]) - own.price[c]), via.distance);
      const bool is_nearer = through < own.distance[c];
      own.distance[c] = is_nearer ? through : own.distance[c];
      own.pred[c] = is_nearer ? via.row : own.pred[c];
    }
  }
}

// Augment along the path to the end of the search, by one thread.
template <typename Team>
__device__ inline void augment(const Team& shared, int root, Ending ending) {
  int col = ending.col;
  if (col < 0) {
    col = shared.held[ending.row];
    shared.held[ending.row] = -1;
    if (ending.row == root) return;
  }
  for (;;) {
    const int row = shared.pred[col], next = shared.held[row];
    shared.mate[col] = row;
    shared.held[row] = col;
    if (row == root) return;
    col = next;
  }
}

// The share of the steps for all rows that the served rows have taken. If paths lengthen, it is s *
// s, where s is the share if the k-th path from the end takes a k-th of the last one's steps. This
// was so for uniform costs and points of 4,096 rows.
__device__ inline double share_of(const Wish& wish, int served, int rows) {
  if (!wish.lengthens) return static_cast<double>(served) / rows;
  const double all = rows + 1.0;
  const double share = log(all / (all - served)) / log(all);
  return share * share;
}

// True if the steps for all rows are estimated to exceed the limit, from those for the served rows.
__device__ inline bool is_tired(const Wish& wish, int steps, int served, int rows) {
  if (steps <= wish.first_steps) return false;
  return steps > wish.most_steps * share_of(wish, served, rows);
}

// Match the unmatched rows by shortest paths. Returns the number of rows without a path, or kTired.
template <int kColumns, typename Cost, typename Team>
__device__ __forceinline__ int find_paths(const Problem<Cost>& problem, const Team& shared,
                                          int waiting) {
  const int thread = shared.thread(), threads = shared.threads();
  Columns<kColumns> own;
  int stuck = 0, steps = 0;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int col = thread + c * threads;
    own.price[c] = col < problem.cols ? shared.price[col] : -far<double>();  // never reached
  }
  for (int k = 0; k < waiting; ++k) {
    const int root = shared.left[k];
    const Ending ending = search(problem, shared, root, own, steps);
    if (is_tired(problem.wish, steps, k + 1, waiting)) return kTired;
    if (ending.distance == far<double>()) {
      ++stuck;
      if (!problem.wish.may_lack) break;
      continue;
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (own.distance[c] > ending.distance) continue;
      shared.put(shared.pred + thread + c * threads, own.pred[c]);
      if (own.distance[c] == ending.distance) continue;
      const double nearer = ending.distance - own.distance[c];
      own.price[c] -= nearer;
      shared.put(shared.dual + own.mate[c], shared.dual[own.mate[c]] + nearer);
    }
    if (shared.thread_here() == 0) shared.dual[root] = ending.distance;
    shared.wait();
    if (shared.thread_here() == 0) augment(shared, root, ending);
    shared.wait_here();
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int col = thread + c * threads;
    if (col < problem.cols) shared.put(shared.price + col, own.price[c]);
  }
  shared.wait();
  return stuck;
}

// -- proof ----------------------------------------------------------------------------------------

// A sum as two doubles: the rounded sum and the rounding errors.
struct Sum {
  double high;
  double low;
};

__device__ inline Sum plus(Sum sum, double term) {
  const double total = sum.high + term, back = total - sum.high;
  return {total, sum.low + ((sum.high - (total - back)) + (term - back))};
}

__device__ inline void put(double* place, double number, bool whole) {
  if (whole) *reinterpret_cast<long long*>(place) = __double2ll_rn(number);
  else *place = number;
}

// The results of the rows or of the columns of a caller's problem.
struct Side {
  int* mates;
  double* duals;
};

// Shift the prices of a square problem so that the greatest is 0.
template <typename Team>
__device__ inline void lower_to_zero(const Team& shared, int cols) {
  double greatest = far<double>();
  for (int col = lane_index(); col < cols; col += kWarp) {
    greatest = min(greatest, -shared.price[col]);
  }
  greatest = -least_of_warp(greatest);
  shared.wait_here();
  for (int col = shared.thread_here(); col < cols; col += shared.threads_here()) {
    shared.price[col] -= greatest;
  }
  shared.wait_here();
}

__device__ inline double number_at(const double* place, bool whole) {
  return whole ? static_cast<double>(*reinterpret_cast<const long long*>(place)) : *place;
}

// Take the pairs and the duals of the columns from the results.
template <typename Cost, typename Team>
__device__ inline void take_given(const Problem<Cost>& problem, const Team& shared, Side rows,
                                  Side cols) {
  for (int col = shared.thread_here(); col < problem.cols; col += shared.threads_here()) {
    shared.price[col] = problem.wish.sign * number_at(cols.duals + col, problem.wish.whole);
    shared.mate[col] = cols.mates[col];
  }
  for (int row = shared.thread_here(); row < problem.rows; row += shared.threads_here()) {
    shared.held[row] = rows.mates[row];
  }
  shared.wait();  // all have read the results, which are overwritten from here on
}

// The slack of a pair, cost - price - base - dual, with the rounding errors of its first
// differences.
__device__ inline double left_of(double cost, double price, double base, double dual) {
  const double paid = cost - price, back = paid - cost, rest = paid - base;
  const double lost = (cost - (paid - back)) - (price + back);
  const double after = rest - paid, lost_again = (paid - (rest - after)) - (base + after);
  return (rest - dual) + (lost + lost_again);
}

// Write the pairs and the duals. Then `dual` has the costs of the rows' pairs, and `gaps` of a warp
// has the sum of the slacks of its rows' pairs. The duals of rows are rounded down, so that no
// slack is negative.
template <typename Cost, typename Team>
__device__ __forceinline__ void write(const Problem<Cost>& problem, const Team& shared,
                                      Side rows, Side cols, double* paid, bool turned) {
  const Wish& wish = problem.wish;
  const int warp = shared.warp(), warps = shared.warps();
  const double base = wish.limit < far<double>() ? wish.limit : 0.0;
  double gap = 0.0;
  for (int row = warp; row < problem.rows; row += warps) {
    double nearest = wish.limit;
    for_row(problem, shared, row, [&](int col, Cost cost) {
      nearest = min(nearest, __dsub_rd(problem.paid(cost), shared.price[col]));
    });
    const double dual = __dsub_rd(least_of_warp(nearest), base);
    const int col = shared.held[row];
    const double cost = col < 0 ? 0.0 : problem.cost(row, col);
    gap += col < 0 ? -dual : left_of(cost, shared.price[col], base, dual);
    __syncwarp();
    if (lane_index() == 0) {
      rows.mates[row] = col;
      put(rows.duals + row, wish.sign * dual, wish.whole);
      if (col >= 0) put(paid + (turned ? col : row), wish.sign * cost, wish.whole);
      shared.put(shared.dual + row, wish.sign * cost);
    }
  }
  for (int col = shared.thread(); col < problem.cols; col += shared.threads()) {
    cols.mates[col] = shared.mate[col];
    put(cols.duals + col, wish.sign * shared.price[col], wish.whole);
  }
  if (lane_index() == 0) shared.put(shared.gaps + warp, gap);
  shared.wait();
}

// Add up the costs of the pairs and the gap, by one warp.
template <typename Cost, typename Team>
__device__ __forceinline__ void add_up(const Problem<Cost>& problem,
                                       const Team& shared, Results& results, int k) {
  Sum sum = {0.0, 0.0};
  long long whole = 0;
  int pairs = 0;
  double used = problem.wish.limit < far<double>() ? fabs(problem.wish.limit) : 0.0;
  double largest = 0.0;  // the largest magnitude of the columns' duals
  for (int col = lane_index(); col < problem.cols; col += kWarp) {
    largest = max(largest, fabs(shared.price[col]));
  }
  for (int row = lane_index(); row < problem.rows; row += kWarp) {
    used = max(used, fabs(shared.dual[row]));
    if (problem.wish.whole) whole += __double2ll_rn(shared.dual[row]);
    else sum = plus(sum, shared.dual[row]);
    pairs += shared.held[row] >= 0;
  }
  for (int step = kWarp / 2; step > 0; step /= 2) {
    whole += __shfl_xor_sync(kWholeWarp, whole, step);
    used = max(used, __shfl_xor_sync(kWholeWarp, used, step));
    largest = max(largest, __shfl_xor_sync(kWholeWarp, largest, step));
    pairs += __shfl_xor_sync(kWholeWarp, pairs, step);
    const double high = __shfl_xor_sync(kWholeWarp, sum.high, step);
    const double low = __shfl_xor_sync(kWholeWarp, sum.low, step);
    sum = plus(sum, high);
    sum.low += low;
  }
  if (lane_index() != 0) return;
  double gap = 0.0;
  for (int warp = 0; warp < shared.warps(); ++warp) gap += shared.gaps[warp];
  if (problem.wish.whole) *reinterpret_cast<long long*>(results.objective + k) = whole;
  else results.objective[k] = sum.high + sum.low;
  gap = fabs(gap);
  // As in gpumatch/numeric/gaps.py. Duals larger than an assignment needs exceed no cost here, but
  // they allow no gap either.
  const int most = min(problem.rows, problem.cols);
  const bool is_small = gap <= kUlps * 0x1p-52 * most * max(used, largest) &&
                        largest <= 4.0 * (most + 1) * used;
  results.gap[k] = gap;
  results.pairs[k] = pairs;
  results.states[k] = kSolved;
  results.proven[k] = gap == 0.0 || (is_small && !problem.wish.whole);
}

// -- kernels --------------------------------------------------------------------------------------

extern __shared__ double block_numbers[];

// The arrays in a block's shared memory: 16 bytes a column, 20 a row.
template <bool kAlone>
__device__ inline Shared<kAlone> shared_for(int rows, int cols, int blocks) {
  __shared__ Bid bids[kAlone ? 1 : 2 * kMostBidders];
  __shared__ double gaps[kAlone ? 1 : kMostWarps];
  __shared__ Named named[kAlone ? 1 : 2 * kMostWarps];
  __shared__ int votes[kMostBlocks];
  __shared__ int counts[3];
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
  shared.votes = votes;
  shared.head = counts;
  shared.count = counts + 1;
  shared.waiting = counts + 2;
  shared.blocks = blocks;
  shared.block = blockIdx.x % blocks;
  return shared;
}

// Write results without pairs, by `threads` threads.
__device__ inline void clear(Results& results, int k, int* mates, double* numbers, int thread,
                             int threads) {
  const int both = results.most_rows + results.most_cols;
  for (int i = thread; i < both; i += threads) mates[i] = -1;
  for (int i = thread; i < both + results.most_rows; i += threads) numbers[i] = 0.0;
  if (thread == 0) {
    results.objective[k] = 0.0;
    results.gap[k] = far<double>();
    results.pairs[k] = 0;
    results.proven[k] = false;
  }
}

// Find the pairs and the prices of a problem. `reduces` is true if all rows and columns must be
// matched.
template <int kColumns, typename Cost, bool kAlone>
__device__ __forceinline__ State solve_problem(const Problem<Cost>& problem,
                                               const Shared<kAlone>& shared, bool reduces) {
  begin(shared, problem.rows, problem.cols);
  if (!(reduces ? reduce_columns(problem, shared) : bid_first(problem, shared))) return kUnfit;
  if constexpr (!kAlone) hold_bids(problem, shared);
  const int waiting = leave_rows(shared, problem.rows);
  const int stuck = waiting > 0 ? find_paths<kColumns>(problem, shared, waiting) : 0;
  if (stuck == 0) return kSolved;
  return stuck != kTired && !problem.wish.may_lack ? kInfeasible : kUnsolved;
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
  if (reduces) lower_to_zero(shared, problem.cols);
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
