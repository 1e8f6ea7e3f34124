// The exact end of an assignment of sparse costs: alternating trees that grow from all unmatched
// rows at once, in the order of distance.
//
// The distance of a column is the least sum of reduced costs on an alternating path from any
// unmatched row. A round grows the trees, and ends with augmenting paths. It has these steps:
//
//   collect   Put the rows in the trees with distances up to the bound into the frontier. Once
//             labels beyond the bound are kept, rows that were in it before are left out.
//   grow      Rows offer labels to their columns. A label has the distance by way of the row. If a
//             column gets a new label within the bound, its row is scanned next. Columns beyond the
//             bound get labels only if the bound is far, which means a step or more. The growth
//             ends when no label within the bound can be improved.
//   survey    Count the trees that have reached an unmatched column within the bound. If they are
//             too few, raise the bound and collect rows again. The bound doubles until it is far.
//             Then it is raised by a step at a time, so that few rows are scanned often (Meyer,
//             Sanders, Delta-stepping, Journal of Algorithms 49, 2003). With a far bound, one tree
//             is enough.
//   accept    Each such tree takes its nearest unmatched column. Let D be the greatest of their
//             distances.
//   update    A column at distance d < D gets the dual v - (D - d), and its row gets u + (D - d).
//             Then all paths to accepted columns are tight, no reduced cost is negative, and all
//             distances fall by D. Trees that have found a column are removed. The others are kept,
//             and the next round continues them.
//   augment   Augment along the path of each tree that has found a column. Trees share no vertices.
//
// This is Hungarian search from many rows, as in the alternating trees of Date and Nagi, but by
// distances instead of slacks: the label of a column is the distance at which it becomes tight.
//
// If there are more columns than rows, the unmatched columns must have the greatest duals. So once
// all rows are matched, trees grow a second time: from spare rows, as many as there are unmatched
// columns. A spare row may take any column at no cost, and is not stored. All spare rows have one
// dual. Each column has a label of a spare row from the start, and a path that reaches a column
// held by a spare row ends there. The root of a tree is then the column that a spare row takes.
//
// labels.cuh has the labels. levels.cuh grows trees from a wide frontier. paces.cuh grows them from
// a narrow one, until too many rows wait. These are collected, and levels follow again. rounds.cuh
// has the other steps.
#include "assignment/sparse/labels.cuh"
#include "assignment/sparse/levels.cuh"
#include "assignment/sparse/paces.cuh"
#include "assignment/sparse/rounds.cuh"

// The threads of a block. With 1,024 there are too few registers: a million points take 10.5 s
// instead of 7.5 (docs/reproduction/sparse_assignment.md, which also has kWide and kCrowd).
constexpr int kBlock = 512;
constexpr int kWide = 1;            // a frontier with more rows for each warp than this is wide
constexpr int kShare = 8;           // a round ends with at least one in this many wanted paths
constexpr int kTraceLength = 4096;  // the most rounds recorded
constexpr int kTraceWidth = 2;

enum Stage { kCollect, kDone };

// Adds the time that has passed to a part of the search.
struct Clock {
  State& state;
  long long since;

  __device__ void add_to(Part part) {
    if (thread_index() != 0) return;
    const long long time = nanoseconds();
    state.nanoseconds[part] += time - since;
    since = time;
  }
};

// The array of an even or an odd turn. An index would put both into local memory.
template <typename Element>
__device__ Element* of_turn(Element* const (&arrays)[2], int turn) {
  return (turn & 1) == 0 ? arrays[0] : arrays[1];
}

// A round ends with one in this many wanted paths. If rows are long, trees do not grow far for the
// longest paths, because a round scans each row several times.
__device__ inline int share_of_round(int lanes) { return min(max(lanes / 2, 2), kShare); }

// The raised bound, which is at least the least distance beyond. It doubles while that adds at most
// a step.
template <typename Number>
__device__ long long raised(long long bound, long long step, long long beyond) {
  const Number last = as_number<Number>(bound);
  return max(beyond, ordered(last + min(last, as_number<Number>(step))));
}

// -- before the first round -----------------------------------------------------------------------

// Begin the trees. The unmatched rows are the roots, and no column has a label. Or the rows are
// spare, with this dual, and each column has the label of a spare row.
template <typename Cost>
__global__ void plant(Trees<Number<Cost>> t, const Number<Cost>* col_dual, int nrows, int ncols,
                      int has_spares, Number<Cost> spare) {
  for (int j = thread_index(); j < ncols; j += thread_count()) {
    const Number<Cost> dual = col_dual[j], slack = -dual - spare;
    const long long of_spare = slack > 0 ? ordered(slack) : 0;
    t.columns[j] = {dual, has_spares ? of_spare : kNever, kSpareWay, 0};
    t.waiting[j] = 0;
    t.nearest[j] = kNever;
    t.leaf[j] = -1;
  }
  for (int k = thread_index(); k < t.nplaces; k += thread_count()) t.queue[k] = 0;
  if (has_spares) return;
  const Queue<int> roots = {t.roots[0], t.state->nroots};
  for (int i = thread_index(); i < nrows; i += thread_count()) {
    if (t.row_to_col[i] < 0) push(roots, i);
  }
}

// -- the search -----------------------------------------------------------------------------------

// Clear the counters of a growth.
__device__ inline void clear(State& state, int turn) {
  state.taken[turn] = state.over[turn] = state.busiest[turn] = 0;
  state.moved[turn] = 0;
  state.beyond[turn] = kNever;
  state.reached[turn] = 0;
}

// The result of a growth.
struct Grown {
  long long beyond;  // the least distance above the bound that was computed
  bool has_reached;  // true if an unmatched column was reached within the bound
  bool is_over;      // true if it was stopped while rows were waiting
};

// The position of a search, equal in all blocks.
template <typename Cost>
struct Search {
  using Dual = Number<Cost>;
  const Rows<Cost>& rows;
  const Trees<Dual>& trees;
  State& state;
  Clock clock;
  long long least_bound;
  long long longest;  // the longest step
  int stage, round, growth, turn, looks, before;
  int nroots, wanted;
  long long bound, below;
  long long beyond;  // of a growth that has not ended
  Dual spare;
  bool has_spares;

  __device__ Search(const Rows<Cost>& rows, const Trees<Dual>& trees, long long least_bound)
      : rows(rows),
        trees(trees),
        state(*trees.state),
        clock{state, nanoseconds()},
        least_bound(least_bound),
        longest(state.step),
        stage(state.stage),
        round(state.round),
        growth(state.growth),
        turn(state.turn),
        looks(state.looks),
        before(state.before),
        nroots(state.nroots[round & 1]),
        wanted(state.wanted[round & 1]),
        bound(state.bound),
        below(state.below),
        beyond(state.seen_beyond),
        spare(as_number<Dual>(state.spare_dual)),
        has_spares(state.has_spares != 0) {
    grid_barrier(trees.barrier);  // all have read the state
  }

  __device__ bool is_far() const { return bound >= longest; }
  __device__ const int* roots() const { return of_turn(trees.roots, round); }

  // Grow the trees up to the bound. The launch ends when a warp has scanned `last` rows.
  __device__ Grown grow(int last) {
    const int of = growth++ % 3;
    if (thread_index() == 0) clear(state, growth % 3);
    bool reached = false;
    int size = collect_rows(reached);
    clock.add_to(kCollecting);
    const Offers<Cost> offers = {rows, trees, bound, is_far(), beyond, reached};
    while (size > kWide * warp_count() && looks < last) {
      size = grow_level(offers, size);
    }
    const bool is_narrow = looks < last;
    if (size != 0 && is_narrow) {
      Pace<Cost>{offers, trees, of_turn(trees.frontier, turn), size, of, last - looks}.run();
    }
    beyond = least_of_group(beyond, kWarp);
    if (lane_index() == 0 && beyond != kNever) atomicMin(state.beyond + of, beyond);
    if (reached) state.reached[of] = 1;
    grid_barrier(trees.barrier);
    clock.add_to(kGrowing);
    looks += now(state.busiest[of]) + 1;  // the collection counts as one look
    const bool is_over = now(state.over[of]) != 0 || (size != 0 && !is_narrow);
    const long long next = now(state.beyond[of]);
    beyond = is_over ? next : kNever;
    return {next, now(state.reached[of]) != 0, is_over};
  }

  // The queue of the next frontier.
  __device__ Queue<Item> next_frontier() {
    ++turn;
    if (thread_index() == 0) state.sizes[(turn + 1) % 3] = 0;
    return {of_turn(trees.frontier, turn), state.sizes + turn % 3};
  }

  // Collect the frontier of a growth. Returns its size.
  __device__ int collect_rows(bool& reached) {
    collect(trees, next_frontier(), rows.ncols, roots(), nroots, below, bound, beyond, reached);
    grid_barrier(trees.barrier);
    return now(state.sizes[turn % 3]);
  }

  // Grow one level. Returns the size of the next frontier.
  __device__ int grow_level(const Offers<Cost>& offers, int size) {
    const Item* frontier = of_turn(trees.frontier, turn);
    looks += Level<Cost>{offers, next_frontier()}.grow(frontier, size);
    grid_barrier(trees.barrier);
    return now(state.sizes[turn % 3]);
  }

  // The number of trees that have reached an unmatched column within the bound.
  __device__ int count_satisfied(bool has_reached) {
    if (has_reached) {
      ask_for_roots(trees, rows.ncols);
      grid_barrier(trees.barrier);
      find_roots(trees, rows.ncols);
      grid_barrier(trees.barrier);
      survey(trees, rows.ncols, bound);
      grid_barrier(trees.barrier);
    }
    return now(state.satisfied);
  }

  // The number of such trees at which a round ends.
  __device__ int enough() const {
    const int share = share_of_round(rows.lanes);
    return is_far() ? 1 : (wanted + share - 1) / share;
  }

  __device__ void raise_bound(long long next) {
    below = is_far() ? bound : -1;
    bound = raised<Dual>(bound, longest, next);
  }

  // Update the duals, and augment the paths.
  __device__ void end_round() {
    accept_leaves(trees, rows.ncols, bound);
    const bool is_first = thread_index() == 0;
    const int following = (round + 1) & 1;
    if (is_first) {
      state.nroots[following] = 0;
      state.wanted[following] = wanted;
    }
    grid_barrier(trees.barrier);
    const long long farthest = now(state.farthest);
    const Dual risen = as_number<Dual>(farthest);
    update_duals(trees, rows.ncols, roots(), nroots, risen, has_spares, spare);
    spare += risen;
    grid_barrier(trees.barrier);
    if (has_spares) augment_spares(trees, rows.ncols, state.wanted + following);
    else augment(trees, roots(), nroots, {of_turn(trees.roots, following), state.nroots + following});
    grid_barrier(trees.barrier);
    if (has_spares) plant_again(trees, rows.ncols);
    nroots = now(state.nroots[following]);
    const int left = has_spares ? now(state.wanted[following]) : nroots;
    if (is_first) {
      state.wanted[following] = left;
      state.satisfied = 0;
      state.farthest = 0;
      if (round < kTraceLength) {
        trees.trace[kTraceWidth * round] = looks - before;
        trees.trace[kTraceWidth * round + 1] = wanted - left;
      }
    }
    ++round;
    wanted = left;
    before = looks;
    bound = max(min(farthest, longest), least_bound);
    below = -1;
  }

  // Write the state for the next launch.
  __device__ void leave() const {
    if (thread_index() != 0) return;
    state.stage = stage;
    state.round = round;
    state.growth = growth;
    state.turn = turn;
    state.looks = looks;
    state.before = before;
    state.bound = bound;
    state.below = below;
    state.seen_beyond = beyond;
    state.spare_dual = ordered(spare);
  }
};

// Make rounds until all rows are matched, no unmatched column can be reached, or a warp has scanned
// `most` rows.
template <typename Cost>
__global__ void __launch_bounds__(kBlock, 1)
    grow_trees(Rows<Cost> rows, Trees<Number<Cost>> trees, long long least_bound, int most) {
  Search<Cost> search(rows, trees, least_bound);
  const int last = search.looks + most;
  while (search.stage != kDone && search.looks < last) {
    const Grown grown = search.grow(last);
    if (grown.is_over) {
      search.below = search.bound;
      continue;
    }
    const int satisfied = search.count_satisfied(grown.has_reached);
    if (grown.beyond == kNever && satisfied == 0) {
      search.stage = kDone;
    } else if (grown.beyond != kNever && satisfied < search.enough()) {
      search.raise_bound(grown.beyond);
    } else {
      search.end_round();
      if (search.wanted == 0) search.stage = kDone;
    }
    search.clock.add_to(kBetween);
  }
  search.leave();
}
