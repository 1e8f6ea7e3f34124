// The exact end of a transport in CSR: forests of shortest paths from all rows with units to ship.
//
// A round finds the distance of each vertex from the nearest root: the least sum of reduced costs on
// a path of the residual network. A path goes from a row to a column by any entry, and from a column
// to a row by an entry with flow. Then duals rise so that no reduced cost is negative and the paths
// to all columns within a bound are tight. Each column with room there takes units along its path:
// as many as the root has, the column takes and each entry gives back that the path goes backwards.
// All columns do so at once. A path first takes its units from the entries and from its root, and
// gives them back if one of them has fewer by now.
//
// Labels beyond a limit are not kept. The limit is raised, and the round begins again, if few columns
// with room are within it. So most rounds look at the neighbourhoods of the roots only.
//
// Distances are found by hops, from rows to columns and back (Bellman, Ford). In a hop, vertices
// whose labels have fallen offer labels to the other side. Predecessors are found at the end: a
// neighbour whose offer is the label, and whose own label is less, or as low and fell earlier. There
// is one, because a neighbour whose label falls later offers again. So the predecessors are a forest
// although many reduced costs are 0.
//
// Encodings
//   row_dual, price   the reduced cost of entry k is costs[k] - row_dual[i] + price[j]; what
//                     rounding takes below 0 counts as 0, and backwards every entry counts as 0
//   row_dist, col_dist   distances, as integers in their order; kNever if unreached
//   row_pred[i]       the place of the entry by which row i was reached; -1 for a root
//   col_pred[j]       the place of the entry by which column j was reached
//   row_stamp, col_stamp   the last hop in which the label fell, and 1; hops are counted over all
//                     rounds
//   nearest[i]        the distance of the nearest column with room in the tree of root i
//   long_rows, long_cols   the vertices with more than kWide entries
//   Front             vertices whose labels have fallen, of even and of odd hops; those with more
//                     than kWide entries are apart, because all threads read each of them
#include "transport/sparse/network.cuh"

constexpr int kBlock = 256;
constexpr int kWide = 2048;
constexpr int kSmall = 8;  // rows that a block reads as fast as the grid does with its barriers
constexpr int kShare = 8;   // a round ends with paths to one in this many columns that are wanted
constexpr int kFactor = 4;  // from one limit to the next
constexpr int kPasses = 3;  // how often the columns try their paths in a round

// What a launch does next, or why it has ended: all roots are served; no column with room is within
// reach; no path has carried a unit, because each had taken what another one lacked.
enum Stage { kPlant, kSearch, kServed, kStuck, kHeld };

// The columns that units are to reach: the nearest one of each root; all, which must be full; or all,
// from the one root that fills them.
enum Wish { kNearest, kAll, kFill };

struct Sizes {
  int narrow[2];
  int wide[2];
};

struct State {
  Sizes rows;
  Sizes cols;
  int stage;
  int hop;
  int rounds;
  int all_paths;
  long long limit;    // of labels
  long long largest;  // the magnitude of integer duals
  unsigned long long waiting;  // units of roots
  // What a round counts, from here on.
  int roots;
  int holes;    // columns with room
  int reached;  // those of them that have a distance
  int paths;
  int is_cut;  // 1 if a label was beyond the limit
  long long bound;
};

template <typename Number>
struct Search {
  Number* row_dual;
  Number* price;
  long long* row_dist;
  long long* col_dist;
  long long* row_pred;
  long long* col_pred;
  int* row_stamp;
  int* col_stamp;
  long long* nearest;
  int* narrow_rows[2];
  int* narrow_cols[2];
  int* wide_rows[2];
  int* wide_cols[2];
  const int* long_rows;
  const int* long_cols;
  int nlong_rows;
  int nlong_cols;
  State* state;
  unsigned* barrier;
};

// A side's vertices whose labels have fallen in the hops of one parity.
struct Front {
  int* narrow;
  int* wide;
  int* nnarrow;
  int* nwide;

  __device__ GatheringQueue<int> gathering(Gathered<int>* gathered) const {
    return {Queue<int>{narrow, nnarrow}, gathered};
  }

  __device__ void add(int vertex, long long entries, Gathered<int>* gathered) const {
    if (entries > kWide) push(Queue<int>{wide, nwide}, vertex);
    else push(gathering(gathered), vertex);
  }

  __device__ bool is_empty() const { return now(*nnarrow) == 0 && now(*nwide) == 0; }

  __device__ bool is_small() const { return now(*nnarrow) <= kSmall && now(*nwide) == 0; }

  __device__ void clear() const { *nnarrow = *nwide = 0; }
};

template <typename Number>
__device__ Front front_of_rows(const Search<Number>& s, int turn) {
  return turn == 0 ? Front{s.narrow_rows[0], s.wide_rows[0], s.state->rows.narrow,
                           s.state->rows.wide}
                   : Front{s.narrow_rows[1], s.wide_rows[1], s.state->rows.narrow + 1,
                           s.state->rows.wide + 1};
}

template <typename Number>
__device__ Front front_of_cols(const Search<Number>& s, int turn) {
  return turn == 0 ? Front{s.narrow_cols[0], s.wide_cols[0], s.state->cols.narrow,
                           s.state->cols.wide}
                   : Front{s.narrow_cols[1], s.wide_cols[1], s.state->cols.narrow + 1,
                           s.state->cols.wide + 1};
}

// The threads that visit a front together: those of the grid, or of its first block.
struct Team {
  int index;
  int count;
  unsigned* barrier;  // null in a block
  Gathered<int>* gathered;  // what this warp adds to a front

  __device__ void wait() const {
    if (barrier != nullptr) grid_barrier(barrier);
    else __syncthreads();
  }
};

// Visit each entry of a front: of narrow vertices by groups of lanes, of wide ones by all threads.
template <typename Visit>
__device__ void visit_entries(const Team& team, const Front& front, const long long* begins,
                              int lanes, Visit visit) {
  const int nnarrow = now(*front.nnarrow), nwide = now(*front.nwide);
  if (static_cast<long long>(nnarrow) * kWarp <= team.count) lanes = kWarp;
  const Group group = {lanes, lane_index() & (lanes - 1), team.index / lanes, team.count / lanes};
  for (long long at = group.index; at < nnarrow; at += group.count) {
    const int vertex = front.narrow[at];
    const long long begin = begins[vertex], end = begins[vertex + 1];
    for (long long k = begin + group.member; k < end; k += group.lanes) visit(vertex, k);
  }
  for (int at = 0; at < nwide; ++at) {
    const int vertex = front.wide[at];
    const long long begin = begins[vertex], end = begins[vertex + 1];
    for (long long k = begin + team.index; k < end; k += team.count) {
      visit(vertex, k);
    }
  }
}

// -- duals and flow to begin from -----------------------------------------------------------------

// The bound of a computed slack whose exact value is 0.
__device__ inline long long rounding(long long, long long) { return 0; }
__device__ inline double rounding(double cost, double price) {
  return 0x1p-50 * (fabs(cost) + fabs(price));
}

// The dual of each row is its least reduced cost, or 0 if it has no entries. If `ends_slack`, the
// flow of entries that are not tight ends.
template <typename Number>
__global__ void reduce_rows(Network<Number> net, Search<Number> s, int ends_slack) {
  const Group group = Group::of(net.lanes);
  for (long long first = group.index - lane_index() / group.lanes; first < net.nrows;
       first += group.count) {
    const long long row = first + lane_index() / group.lanes;
    const bool is_row = row < net.nrows;
    const long long begin = is_row ? net.indptr[row] + group.member : 0;
    const long long end = is_row ? net.indptr[row + 1] : 0;
    Number least = far<Number>();
#pragma unroll 4
    for (long long k = begin; k < end; k += group.lanes) {
      const Number cost = net.costs[k] + s.price[net.indices[k]];
      if (cost < least) least = cost;
    }
    least = least_of_group(least, group.lanes);
    if (is_row && group.member == 0) s.row_dual[row] = least < far<Number>() ? least : 0;
    if (ends_slack == 0) continue;
    for (long long k = begin; k < end; k += group.lanes) {
      const long long t = net.places[k], units = net.flow[t];
      if (units == 0) continue;
      const int j = net.indices[k];
      if (net.costs[k] + s.price[j] - least <= rounding(net.costs[k], s.price[j])) continue;
      net.flow[t] = 0;
      add_units(net.excess + row, units);
      add_units(net.room + j, units);
    }
  }
}

// -- a round --------------------------------------------------------------------------------------

// Clear what a round counts. All threads have read it before, and read it after a barrier.
__device__ inline void open_round(State* state) {
  state->roots = state->holes = state->reached = state->paths = state->is_cut = 0;
  state->bound = 0;
  state->waiting = 0;
}

// No vertex has a label but the roots: the rows from `first` on, up to `last`, with units to ship.
template <typename Number>
__device__ void plant(const Team& team, const Network<Number>& net, const Search<Number>& s,
                      int first, int last, int hop) {
  const Front front = front_of_rows(s, hop & 1);
  int roots = 0, holes = 0;
  unsigned long long waiting = 0;
  for (int j = thread_index(); j < net.ncols; j += thread_count()) {
    s.col_dist[j] = kNever;
    s.col_pred[j] = -1;
    holes += net.room[j] > 0;
  }
  for (int i = thread_index(); i < net.nrows; i += thread_count()) {
    const long long excess = net.excess[i];
    const bool is_root = excess > 0 && i >= first && i < last;
    s.row_dist[i] = is_root ? 0 : kNever;
    s.row_pred[i] = -1;
    s.nearest[i] = kNever;
    if (!is_root) continue;
    front.add(i, net.indptr[i + 1] - net.indptr[i], team.gathered);
    ++roots;
    waiting += static_cast<unsigned long long>(excess);
  }
  append_gathered(front.gathering(team.gathered), 1);
  add_to(&s.state->roots, roots);
  add_to(&s.state->holes, holes);
  add_to(&s.state->waiting, waiting);
}

__device__ inline long long as_label(long long distance) { return distance; }
__device__ inline long long as_label(double distance) { return __double_as_longlong(distance); }

// The label that a row offers by entry k.
template <typename Number>
__device__ long long offered(const Network<Number>& net, const Search<Number>& s, int row,
                             long long k) {
  const Number reduced = net.costs[k] - s.row_dual[row] + s.price[net.indices[k]];
  return as_label(number_of(static_cast<unsigned long long>(s.row_dist[row]), Number{}) +
                  (reduced > 0 ? reduced : 0));
}

template <typename Number>
__device__ void offer_to_columns(const Team& team, const Network<Number>& net,
                                 const Search<Number>& s, int hop) {
  const int turn = hop & 1;
  const long long limit = now(s.state->limit);
  const Front out = front_of_cols(s, turn);
  visit_entries(team, front_of_rows(s, turn), net.indptr, net.lanes,
                [&](int row, long long k) {
                  const int j = net.indices[k];
                  const long long label = offered(net, s, row, k);
                  if (label > limit) {
                    set_now(s.state->is_cut, 1);
                    return;
                  }
                  if (label >= now(s.col_dist[j])) return;
                  if (atomicMin(s.col_dist + j, label) <= label) return;
                  if (atomicExch(s.col_stamp + j, hop + 1) == hop + 1) return;
                  out.add(j, net.colptr[j + 1] - net.colptr[j], team.gathered);
                });
  append_gathered(out.gathering(team.gathered), 1);
}

template <typename Number>
__device__ void offer_to_rows(const Team& team, const Network<Number>& net,
                              const Search<Number>& s, int hop) {
  const int turn = hop & 1;
  const Front out = front_of_rows(s, turn ^ 1);
  visit_entries(team, front_of_cols(s, turn), net.colptr, net.lanes,
                [&](int col, long long t) {
                  const long long label = s.col_dist[col];
                  if (net.flow[t] == 0) return;
                  const int i = net.owners[t];
                  if (label >= now(s.row_dist[i])) return;
                  if (atomicMin(s.row_dist + i, label) <= label) return;
                  if (atomicExch(s.row_stamp + i, hop + 1) == hop + 1) return;
                  out.add(i, net.indptr[i + 1] - net.indptr[i], team.gathered);
                });
  append_gathered(out.gathering(team.gathered), 1);
}

// Hops of a team, until no label falls, or up to the hop `end`, or until the front is not small any
// more (if the team is a block) or small (if it is the grid).
template <typename Number>
__device__ int hops_of(const Team& team, const Network<Number>& net, const Search<Number>& s,
                       int hop, int end) {
  while (true) {
    const Front front = front_of_rows(s, hop & 1);
    const bool is_small = front.is_small();
    if (front.is_empty() || hop == end || is_small != (team.barrier == nullptr)) return hop;
    if (team.index == 0) front_of_rows(s, (hop & 1) ^ 1).clear();
    offer_to_columns(team, net, s, hop);
    team.wait();
    if (team.index == 0) front_of_cols(s, (hop & 1) ^ 1).clear();
    offer_to_rows(team, net, s, hop);
    team.wait();
    ++hop;
  }
}

// Lower labels until none falls, or up to the hop `end`, which returns false. The first block makes
// hops from small fronts alone.
template <typename Number>
__device__ bool find_distances(const Team& grid, const Network<Number>& net,
                               const Search<Number>& s, int& hop, int end) {
  const Team block = {static_cast<int>(threadIdx.x), kBlock, nullptr, grid.gathered};
  while (true) {
    hop = hops_of(grid, net, s, hop, end);
    grid_barrier(s.barrier);
    if (hop == end || front_of_rows(s, hop & 1).is_empty()) break;
    if (blockIdx.x == 0) {
      hop = hops_of(block, net, s, hop, end);
      if (threadIdx.x == 0) set_now(s.state->hop, hop);
    }
    grid_barrier(s.barrier);
    hop = now(s.state->hop);
    if (hop == end || front_of_rows(s, hop & 1).is_empty()) break;
  }
  return front_of_rows(s, hop & 1).is_empty();
}

// Visit the entries of all vertices: those of long ones by all threads.
template <typename Visit>
__device__ void visit_all(const long long* begins, int count, const int* longs, int nlongs,
                          int lanes, Visit visit) {
  const Group group = Group::of(lanes);
  for (long long at = group.index; at < count; at += group.count) {
    const int vertex = static_cast<int>(at);
    const long long begin = begins[vertex], end = begins[vertex + 1];
    if (end - begin > kWide) continue;
    for (long long k = begin + group.member; k < end; k += group.lanes) visit(vertex, k);
  }
  for (int at = 0; at < nlongs; ++at) {
    const int vertex = longs[at];
    const long long end = begins[vertex + 1];
    for (long long k = begins[vertex] + thread_index(); k < end; k += thread_count()) {
      visit(vertex, k);
    }
  }
}

// Point each vertex with a label to the one that has offered it. Of equal labels, that of a column
// comes before those of rows of the same hop, and after those of rows of an earlier one.
template <typename Number>
__device__ void find_predecessors(const Network<Number>& net, const Search<Number>& s) {
  visit_all(net.indptr, net.nrows, s.long_rows, s.nlong_rows, net.lanes,
            [&](int row, long long k) {
              const long long own = s.row_dist[row];
              if (own == kNever) return;
              const int j = net.indices[k];
              const long long label = s.col_dist[j];
              if (own > label || offered(net, s, row, k) != label) return;
              if (own < label || s.row_stamp[row] < s.col_stamp[j]) s.col_pred[j] = net.places[k];
            });
  visit_all(net.colptr, net.ncols, s.long_cols, s.nlong_cols, net.lanes,
            [&](int col, long long t) {
              const long long label = s.col_dist[col];
              if (label == kNever || net.flow[t] == 0) return;
              const int i = net.owners[t];
              if (s.row_dist[i] == label && s.col_stamp[col] <= s.row_stamp[i]) s.row_pred[i] = t;
            });
}

// The row at the beginning of the path to a column.
template <typename Number>
__device__ int root_of(const Network<Number>& net, const Search<Number>& s, int col) {
  while (true) {
    const int row = net.owners[s.col_pred[col]];
    const long long t = s.row_pred[row];
    if (t < 0) return row;
    col = net.holders[t];
  }
}

// Find the distance of the nearest column with room in each tree, or the greatest distance of any if
// all are wanted.
template <typename Number>
__device__ void find_nearest(const Network<Number>& net, const Search<Number>& s, Wish wish) {
  int reached = 0;
  long long bound = 0;
  for (int j = thread_index(); j < net.ncols; j += thread_count()) {
    const long long distance = s.col_dist[j];
    if (net.room[j] == 0 || distance == kNever) continue;
    ++reached;
    bound = max(bound, distance);
    if (wish == kNearest) atomicMin(s.nearest + root_of(net, s, j), distance);
  }
  if (wish != kNearest && bound > now(s.state->bound)) atomicMax(&s.state->bound, bound);
  add_to(&s.state->reached, reached);
}

// The bound is the greatest of these distances.
template <typename Number>
__device__ void find_bound(const Network<Number>& net, const Search<Number>& s) {
  for (int i = thread_index(); i < net.nrows; i += thread_count()) {
    const long long nearest = s.nearest[i];
    if (nearest != kNever && nearest > now(s.state->bound)) atomicMax(&s.state->bound, nearest);
  }
}

__device__ inline long long magnitude(long long number) { return number < 0 ? -number : number; }
__device__ inline long long magnitude(double) { return 0; }

// Raise the duals of vertices within the bound by what they are nearer.
template <typename Number>
__device__ void raise_duals(const Network<Number>& net, const Search<Number>& s) {
  const long long bound = now(s.state->bound);
  const Number far_end = number_of(static_cast<unsigned long long>(bound), Number{});
  long long largest = 0;
  for (int i = thread_index(); i < net.nrows; i += thread_count()) {
    const long long label = s.row_dist[i];
    if (label >= bound) continue;
    s.row_dual[i] += far_end - number_of(static_cast<unsigned long long>(label), Number{});
    largest = max(largest, magnitude(s.row_dual[i]));
  }
  for (int j = thread_index(); j < net.ncols; j += thread_count()) {
    const long long label = s.col_dist[j];
    if (label >= bound) continue;
    s.price[j] += far_end - number_of(static_cast<unsigned long long>(label), Number{});
    largest = max(largest, magnitude(s.price[j]));
  }
  if (largest > now(s.state->largest)) atomicMax(&s.state->largest, largest);
}

// Ship along the path to a column what the whole path carries; false if that is nothing by now.
template <typename Number>
__device__ bool ship_along(const Network<Number>& net, const Search<Number>& s, int leaf) {
  long long units = net.room[leaf];
  int col = leaf, root = -1;
  while (units > 0) {
    root = net.owners[s.col_pred[col]];
    const long long t = s.row_pred[root];
    if (t < 0) break;
    units = min(units, now(net.flow[t]));
    col = net.holders[t];
  }
  if (units > 0) units = min(units, now(net.excess[root]));
  if (units <= 0) return false;
  long long missing = -2;  // the place that has fewer units by now; -1 is the root
  for (col = leaf; missing == -2;) {
    const int row = net.owners[s.col_pred[col]];
    const long long t = s.row_pred[row];
    if (!take_units(t < 0 ? net.excess + row : net.flow + t, units)) missing = t;
    if (t < 0) break;
    col = net.holders[t];
  }
  for (col = leaf;;) {
    const long long taken = s.col_pred[col], t = s.row_pred[net.owners[taken]];
    if (missing == -2) add_units(net.flow + taken, units);
    else if (t == missing) return false;
    else add_units(net.flow + t, units);
    if (t < 0) break;
    col = net.holders[t];
  }
  net.room[leaf] -= units;
  return true;
}

// Each column with room within the bound takes units along its path.
template <typename Number>
__device__ void ship(const Network<Number>& net, const Search<Number>& s) {
  const long long bound = now(s.state->bound);
  for (int j = thread_index(); j < net.ncols; j += thread_count()) {
    if (net.room[j] == 0 || s.col_dist[j] > bound) continue;
    if (ship_along(net, s, j)) atomicAdd(&s.state->paths, 1);
  }
}

// The next limit of labels.
__device__ inline long long raised(long long limit, long long) {
  return limit > kNever / (2 * kFactor) ? kNever - 1 : limit * kFactor;
}
__device__ inline long long raised(long long limit, double) {
  return min(as_label(__longlong_as_double(limit) * kFactor), kNever - 1);
}

// Rounds from the rows from `first` on, up to `last`, until they are served or `most` hops are made.
template <typename Number>
__global__ void __launch_bounds__(kBlock)
    run_rounds(Network<Number> net, Search<Number> s, int first, int last, int wished, int most) {
  __shared__ Gathered<int> gathered[kBlock / kWarp];
  const Team grid = {thread_index(), thread_count(), s.barrier, gathered + threadIdx.x / kWarp};
  if (lane_index() == 0) grid.gathered->count = 0;
  __syncwarp();
  const Wish wish = static_cast<Wish>(wished);
  State& state = *s.state;
  int stage = now(state.stage), hop = now(state.hop);
  const int end = hop + most;
  const bool is_first = thread_index() == 0;
  while (stage == kPlant || stage == kSearch) {
    if (stage == kPlant) {
      if (hop >= end) break;
      plant(grid, net, s, first, last, hop);
      grid_barrier(s.barrier);
      stage = now(state.roots) > 0 ? kSearch : kServed;
      if (stage == kServed) break;
    }
    if (!find_distances(grid, net, s, hop, end)) break;
    find_predecessors(net, s);
    grid_barrier(s.barrier);
    find_nearest(net, s, wish);
    grid_barrier(s.barrier);
    const int holes = now(state.holes), reached = now(state.reached);
    const int wanted = wish == kFill ? holes : min(holes, now(state.roots));
    if (now(state.is_cut) != 0 && reached < (wanted + kShare - 1) / kShare) {
      grid_barrier(s.barrier);
      if (is_first) {
        state.limit = raised(state.limit, Number{});
        open_round(&state);
      }
      grid_barrier(s.barrier);
      stage = kPlant;
      continue;
    }
    if (reached == 0) {
      stage = kStuck;
      break;
    }
    if (wish == kNearest) {
      find_bound(net, s);
      grid_barrier(s.barrier);
    }
    raise_duals(net, s);
    for (int pass = 0; pass < kPasses; ++pass) {
      ship(net, s);
      grid_barrier(s.barrier);
    }
    const int paths = now(state.paths);
    if (paths == 0) {
      stage = kHeld;
      break;
    }
    grid_barrier(s.barrier);
    if (is_first) {
      ++state.rounds;
      state.all_paths += paths;
      open_round(&state);
    }
    grid_barrier(s.barrier);
    stage = kPlant;
  }
  if (is_first) {
    state.stage = stage;
    state.hop = hop;
  }
}

// One column after the other tries its path, so the first one succeeds. One thread calls this.
template <typename Number>
__global__ void ship_alone(Network<Number> net, Search<Number> s) {
  ship(net, s);
  s.state->all_paths += s.state->paths;
  ++s.state->rounds;
  s.state->stage = s.state->paths > 0 ? kPlant : kHeld;
  open_round(s.state);
}
