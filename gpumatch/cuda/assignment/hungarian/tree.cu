// The alternating tree variant of the Hungarian algorithm: Date, Nagi, Parallel Computing 57, 2016.
//
// Alternating trees grow at once from all rows that must still be matched. Every column keeps its
// slack, the least slack of the edges that lead to it from a tree. So a dual update costs O(n), and
// the search continues after it (Algorithms 4 and 9). Here one cooperative kernel makes all
// iterations, and its stages are the paper's kernels:
//
//   kCheck       Algorithm 2, the optimality check; the roots are gathered, the arrays reset
//   kForward     Algorithm 4: the frontier's rows lower the columns' slacks; columns join the
//                trees, and push their mates on the next frontier. (Its order does not matter, and
//                to compact it would take two more grid barriers a level.)
//   kAugment     the leaves are gathered, Algorithm 9, Algorithms 5 and 6 (paths.cuh)
//
// Algorithm 9 subtracts the least slack from all others after each level. Here it is added to one
// number, the amount by which the duals have been raised in this search. A column's distance is its
// slack plus that number. The duals of rows and columns are written once, when the search ends.
//
// Without ties, each dual update makes one edge, and a level has one row. To give the whole device
// work in a level, all columns join whose distance is little above the least. Such a distance may
// be too great. Then the column joins again with a lower one, and its mate is scanned again. All
// distances below the least distance yet to be scanned are final. The range above the least is
// `spread` divided by the number of rows in trees, because each row adds about as many columns.
// `spread` grows while frontiers are small. It shrinks when most columns of a level have joined
// before, down to 0 if there are enough ties.
//
// A column that stays unmatched must keep its dual 0. But the dual of a column in a tree falls by
// the distance from it to the end of the search, and a tree gives a path to one leaf only. So a
// search ends at the latest at the second leaf of any tree (kAtSecondLeaf). Then each nearer leaf
// is the only one of its tree, so it gets a path and becomes matched. A leaf just at the end gets a
// path as well if its tree has no nearer leaf. (The paper's searches end at the nearest leaf, which
// without ties is one path. So do the searches here whose duals might not fit into 64 bits
// otherwise.) A row that may stay unmatched has a leaf of its own: an unmatched column at the
// limit. The dual of that column is not kept. The row's dual, raised above the limit, is set back
// to the limit when the row becomes unmatched, because then none of its pairs must be tight.
//
// If all rows and columns will be matched, no dual must stay 0, and a search may end anywhere. (An
// unmatched column in a tree has slack 0 after the update, like all other columns there.) Beyond
// the nearest leaf, a search ends once it has leaves for a share of the roots, at the farthest of
// them.
//
// A leaf counts for its tree when it joins. It may join again, nearer, perhaps in another tree.
// Then the first count ends the search earlier than necessary, which is not an error.
//
// A launch makes a bounded number of steps and leaves its position in `State` and `Search`, which
// the host reads between launches. At each of these points the pairs are a matching, and tight, and
// every column that may stay unmatched has kept its dual.
#include "assignment/hungarian/paths.cuh"

using Distance = unsigned long long;

constexpr Distance kFar = ~0ull;  // beyond all distances

// Not measured one by one. With smaller frontiers, barriers take most of the time. Larger ones have
// more columns whose distances fall later. With a leaf for half of the roots, there are many paths.
constexpr int kBatch = 128;     // the desired number of rows in a frontier
constexpr int kRootsALeaf = 2;  // a search may end once one in this many roots has a leaf

// The farthest end of a search.
enum Ending { kAtNearestLeaf, kAtSecondLeaf, kAnywhere };

// The results of a level.
struct Level {
  int size;           // the size of the next frontier
  int found;          // unmatched columns that joined
  int again;          // columns that had joined before, with a greater distance
  Distance least;     // the least distance yet to be scanned
  Distance bound;     // the search must not end farther out
  Distance last;      // the greatest distance of a leaf: of a column that joined, or of a root's own
};

constexpr Level kNothing = {0, 0, 0, kFar, kFar, 0};

// The state of a search.
struct Search {
  Distance reach;     // columns up to this distance join
  Distance last;      // the greatest distance with which an unmatched column joined
  Distance end;       // the end of the search, kFar while it is not known
  Distance limit;     // the greatest distance of a root's own leaf, kFar if no row has one
  Distance spread;    // the range of the next frontier's distances, times the rows in trees
  int roots;
  int size;           // the size of the frontier
  int grown;          // rows in trees
  int leaves;
  int depth;          // levels so far; each makes at least the least distance final
};

struct Slacks {
  Distance* dist;       // the distance of each column, kFar while no edge leads to it from a tree
  Distance* joined_at;  // the distance with which it joined last, kFar if it never joined
  Member* frontier[2];  // a step writes the one of step & 1
  Level* made;          // by step % 3: while one is read and the next is filled, one is cleared
  Search* search;
  Distance most;        // the bound of distances of rows that can be matched
  int ending;           // an Ending. The next two arrays exist for kAtSecondLeaf only
  int* col_root;        // for each column, the root of the tree that it joined last
  Distance* first_leaf; // for each root, the distance of its tree's nearest leaf, kFar if none
};

// The data of a column that a level reads and changes.
struct Column {
  Distance dist;
  Distance joined_at;
  long long dual;
  long long mate_dual;
  int mate;
};

// Combine the results of the threads of the grid. Each thread's `own` counts no frontier.
__device__ inline void put_together(Level& made, Level own) {
  constexpr int kWarps = kBlock / kWarp;
  __shared__ Level of_warp[kWarps];
  for (int step = kWarp / 2; step > 0; step /= 2) {
    own.found += __shfl_down_sync(kWholeWarp, own.found, step);
    own.again += __shfl_down_sync(kWholeWarp, own.again, step);
    own.least = min(own.least, __shfl_down_sync(kWholeWarp, own.least, step));
    own.bound = min(own.bound, __shfl_down_sync(kWholeWarp, own.bound, step));
    own.last = max(own.last, __shfl_down_sync(kWholeWarp, own.last, step));
  }
  if (lane_index() == 0) of_warp[threadIdx.x / kWarp] = own;
  __syncthreads();
  if (threadIdx.x >= kWarps) return;
  own = of_warp[threadIdx.x];
  for (int step = kWarps / 2; step > 0; step /= 2) {
    own.found += __shfl_down_sync((1u << kWarps) - 1, own.found, step);
    own.again += __shfl_down_sync((1u << kWarps) - 1, own.again, step);
    own.least = min(own.least, __shfl_down_sync((1u << kWarps) - 1, own.least, step));
    own.bound = min(own.bound, __shfl_down_sync((1u << kWarps) - 1, own.bound, step));
    own.last = max(own.last, __shfl_down_sync((1u << kWarps) - 1, own.last, step));
  }
  if (threadIdx.x != 0) return;
  if (own.found != 0) atomicAdd(&made.found, own.found);
  if (own.again != 0) atomicAdd(&made.again, own.again);
  if (own.least != kFar) atomicMin(&made.least, own.least);
  if (own.bound != kFar) atomicMin(&made.bound, own.bound);
  if (own.last != 0) atomicMax(&made.last, own.last);
}

template <typename Cost>
__device__ Column look_up(const Problem<Cost>& p, const Slacks& s, int col) {
  const int mate = p.col_to_row[col];
  const long long mate_dual = mate == -1 ? 0 : p.row_dual[mate];
  return {s.dist[col], s.joined_at[col], p.col_dual[col], mate_dual, mate};
}

// A column joins a tree. `before` is the distance with which it joined last. If it is a leaf, or
// its row has a leaf of its own, and the tree has another leaf, the search must not end beyond
// both. (If `via` joins another tree in this level, either root may be read. Then this column will
// join again, or it is beyond the end.)
template <typename Cost>
__device__ void join_tree(const Problem<Cost>& p, const Trees& t, const Slacks& s, int col,
                          const Column& c, Distance before, Level& own) {
  const int row = t.col_pred[col], via = t.row_pred[row];
  const int root = via == -1 ? row : s.col_root[via];
  const bool is_same = before != kFar && root == s.col_root[col];
  s.col_root[col] = root;
  if (c.mate != -1 && !p.has_limit()) return;
  const Distance beyond = c.mate == -1 ? 0 : p.limit - c.mate_dual;
  const Distance leaf = c.dist + beyond;
  const Distance first = atomicMin(&s.first_leaf[root], leaf);
  const bool is_itself = is_same && first == before + beyond;
  if (first != kFar && !is_itself) own.bound = min(own.bound, max(first, leaf));
}

// Lower a column's slack (expansion), and let the column join if it is near enough (contraction).
template <typename Cost>
__device__ void look_at(const Problem<Cost>& p, const Trees& t, const Slacks& s, int col,
                        Column& c, Near from, Distance reach, Queue<Member> next, Level& own) {
  const Distance here = static_cast<Distance>(from.reach) - c.dual;
  if (from.row >= 0 && here < c.dist) {
    s.dist[col] = c.dist = here;
    t.col_pred[col] = from.row;
  }
  if (c.mate == -1 && s.ending == kAtNearestLeaf) own.bound = min(own.bound, c.dist);
  if (c.dist >= c.joined_at) return;
  if (c.dist > reach || c.mate != -1) own.least = min(own.least, c.dist);
  if (c.dist > reach) return;
  const Distance before = c.joined_at;
  s.joined_at[col] = c.joined_at = c.dist;
  if (s.ending == kAtSecondLeaf) join_tree(p, t, s, col, c, before, own);
  if (c.mate == -1) {
    own.found += before == kFar;
    own.last = max(own.last, c.dist);
    return;
  }
  own.again += before != kFar;
  if (s.ending == kAtNearestLeaf && p.has_limit()) {
    own.bound = min(own.bound, c.dist + (p.limit - c.mate_dual));
  }
  t.row_pred[c.mate] = col;
  push(next, Member{static_cast<long long>(c.dist) - c.mate_dual, c.mate});
}

// A level's visitor. A thread that has only one column keeps its data in registers.
template <typename Cost, bool kAligned>
struct Growing {
  const Problem<Cost>& p;
  const Trees& t;
  const Slacks& s;
  const Rows& frontier;
  Distance reach;
  Queue<Member> next;
  Column& column;
  bool is_known;
  Level own;

  __device__ void enter(int col) {
    if (!is_known) column = look_up(p, s, col);
  }

  __device__ Near look(int first, int packs) const {
    if (frontier.size == 0) return {kNever, -1};
    return nearest_member<Cost, kAligned>(p, frontier, first, packs);
  }

  __device__ void visit(int col, Near from) {
    look_at(p, t, s, col, column, from, reach, next, own);
  }
};

template <typename Cost, bool kAligned>
__device__ void grow(const Problem<Cost>& p, const Trees& t, const Slacks& s, const Rows& frontier,
                     Distance reach, Queue<Member> next, Column& c, bool is_known, Level& made) {
  constexpr int kWidth = Pack<Cost, kAligned>::kWidth;
  const int packs = p.ncols / kWidth;
  is_known = is_known && packs_a_block(packs) <= kBlock / kWidth;
  Growing<Cost, kAligned> visitor = {p, t, s, frontier, reach, next, c, is_known, kNothing};
  pull<kWidth>(packs, visitor);
  put_together(made, visitor.own);
}

// The amount by which the dual of a row that joined at a distance has risen when the search ends.
__device__ inline long long rise(Distance end, Distance dist) {
  return dist < end ? static_cast<long long>(end - dist) : 0;
}

// True if a leaf just at the end may get its tree's path, because no nearer leaf was counted for
// the tree. (A counted leaf that has joined another tree since is even nearer there. So at least
// one leaf gets a path.)
__device__ inline bool is_open(const Slacks& s, int root, Distance end) {
  return s.ending != kAtSecondLeaf || s.first_leaf[root] >= end;
}

// The distance of a row in a tree, kFar if it is in none.
template <typename Cost>
__device__ Distance distance_of_row(const Problem<Cost>& p, const Slacks& s, int i) {
  const int col = p.row_to_col[i];
  return col >= 0 ? s.dist[col] : p.wants(i) ? 0 : kFar;
}

// True if a row may end a path: its dual will be raised to the limit or beyond.
template <typename Cost>
__device__ bool is_leaf_row(const Problem<Cost>& p, const Slacks& s, int i, Distance end) {
  const Distance dist = distance_of_row(p, s, i);
  const long long dual = p.row_dual[i] + rise(end, dist);
  if (dist > end || dual < p.limit) return false;
  const int col = p.row_to_col[i];
  return dual > p.limit || is_open(s, col >= 0 ? s.col_root[col] : i, end);
}

// True if a column may end a path.
template <typename Cost>
__device__ bool is_leaf_column(const Problem<Cost>& p, const Slacks& s, int col, Distance end) {
  const Distance dist = s.dist[col];
  if (dist > end || p.col_to_row[col] != -1) return false;
  return dist < end || is_open(s, s.col_root[col], end);
}

// F_rev, from the duals before the update. Returns its size.
template <typename Cost>
__device__ int find_leaves(const Problem<Cost>& p, const Trees& t, const Slacks& s, Distance end) {
  const int leaves = compact(
      t.compaction(), p.ncols + (p.has_limit() ? p.nrows : 0),
      [&](int leaf) {
        return leaf < p.ncols ? is_leaf_column(p, s, leaf, end)
                              : is_leaf_row(p, s, leaf - p.ncols, end);
      },
      [&](int place, int leaf) { t.leaves[place] = leaf < p.ncols ? leaf : ~(leaf - p.ncols); });
  grid_barrier(t.barrier);
  return leaves;
}

// Algorithm 9, for all duals that the search has changed. If a search may end anywhere, all duals
// are also shifted so that the first column keeps its dual.
template <typename Cost>
__device__ void update_duals(const Problem<Cost>& p, const Trees& t, const Slacks& s,
                             Distance end) {
  const long long shift = s.ending == kAnywhere ? rise(end, s.dist[0]) : 0;
  bool is_too_fine = false;
  for (int i = thread_index(); i < p.nrows; i += thread_count()) {
    const Distance dist = distance_of_row(p, s, i);
    long long dual = p.row_dual[i] + (rise(end, dist) - shift);
    if (p.has_limit() && dist <= end && dual >= p.limit) dual = p.limit;
    p.row_dual[i] = dual;
    is_too_fine |= dual > p.most || dual < -p.most;
  }
  for (int col = thread_index(); col < p.ncols; col += thread_count()) {
    p.col_dual[col] -= rise(end, s.dist[col]) - shift;
  }
  if (is_too_fine) t.state->is_too_fine = 1;
}

// Algorithm 2. Returns the number of rows that must still be matched.
template <typename Cost>
__device__ int check(const Problem<Cost>& p, const Trees& t, const Slacks& s, Level& made) {
  Level own = kNothing;
  for (int col = thread_index(); col < p.ncols; col += thread_count()) {
    s.dist[col] = s.joined_at[col] = kFar;
    t.col_pred[col] = -1;
  }
  for (int i = thread_index(); i < p.nrows; i += thread_count()) {
    t.row_pred[i] = t.row_next[i] = -1;
    s.first_leaf[i] = kFar;
    if (!p.wants(i) || !p.has_limit()) continue;
    const Distance leaf = p.limit - p.row_dual[i];
    if (s.ending == kAtNearestLeaf) own.bound = min(own.bound, leaf);
    else s.first_leaf[i] = leaf;
    own.last = max(own.last, leaf);
  }
  put_together(made, own);
  const int roots = compact(
      t.compaction(), p.nrows, [&](int i) { return p.wants(i); },
      [&](int place, int i) { t.members[place] = {-p.row_dual[i], i}; });
  grid_barrier(t.barrier);
  return roots;
}

// The first level's reach, once the roots are known.
__device__ inline int begin(Search& at, int roots, const Level& made, bool is_too_fine) {
  at.roots = at.size = at.grown = roots;
  at.leaves = at.depth = 0;
  at.end = made.bound;
  at.limit = made.last == 0 ? kFar : made.last;
  at.last = 0;
  at.reach = min(at.end, at.spread / max(at.roots, 1));
  return at.roots == 0 ? kDone : is_too_fine ? kTooFine : kForward;
}

// Set the next reach after a level, and return the next stage.
__device__ inline int go_on(Search& at, const Level& made, const Slacks& s, Tally& tally) {
  ++at.depth;
  ++tally.levels;
  tally.scans += made.size;
  tally.updates += made.least > at.reach;
  at.size = made.size;
  at.grown += made.size - made.again;
  at.leaves += made.found;
  at.end = min(at.end, made.bound);
  at.last = max(at.last, made.last);
  if (s.ending != kAtNearestLeaf) {
    if (at.leaves >= (at.roots - 1) / kRootsALeaf + 1) at.end = min(at.end, at.last);
    if (made.least == kFar) at.end = min(at.end, at.leaves != 0 ? at.last : at.limit);
  }
  if (made.least > at.end) return kAugment;
  if (made.least > s.most) return made.least == kFar ? kDone : kTooFine;
  if (made.again > max(kBatch, made.size / 2)) at.spread /= 2;
  if (made.size < kBatch) at.spread = min(2 * at.spread + 1, s.most / 2);
  at.reach = min(min(at.end, s.most), made.least + at.spread / at.grown);
  return kForward;
}

__device__ inline Level read(const Level& made) {
  return {now(made.size),  now(made.found), now(made.again),
          now(made.least), now(made.bound), now(made.last)};
}

template <typename Cost, bool kAligned>
__global__ void __launch_bounds__(kBlock)
    hungarian_tree(Problem<Cost> p, Trees t, Slacks s, int max_steps) {
  __shared__ Search search;  // equal in all blocks, like the variables below
  __shared__ Tally tally;
  __shared__ int next_stage;
  State& state = *t.state;
  const bool is_first = thread_index() == 0, leads = threadIdx.x == 0;
  const int place = min(static_cast<int>(threadIdx.x), p.nrows - 1);
  if (leads) {
    search = *s.search;
    tally = state.tally;
  }
  Position at = state.at;
  Column column;
  Rows frontier;
  if (is_first) state.clock = nanoseconds();
  __syncthreads();
  for (int steps = 0; steps < max_steps && at.stage < kDone; ++steps, ++at.step) {
    Level& made = s.made[at.step % 3];
    if (is_first) s.made[(at.step + 1) % 3] = kNothing;
    const int current = at.stage;
    Part part = kForwardPass;
    switch (current) {
      case kCheck:
        at.roots = check(p, t, s, made);
        if (leads) next_stage = begin(search, at.roots, read(made), now(state.is_too_fine) != 0);
        __syncthreads();
        at.stage = next_stage;
        break;
      case kForward: {
        const Queue<Member> next = {s.frontier[at.step & 1], &made.size};
        const bool is_known = search.depth != 0 && steps != 0;
        frontier.items = search.depth == 0 ? t.members : s.frontier[(at.step + 1) & 1];
        frontier.size = search.size;
        if (!is_known) frontier.own = frontier.items[place];
        grow<Cost, kAligned>(p, t, s, frontier, search.reach, next, column, is_known, made);
        grid_barrier(t.barrier);
        frontier.own = next.items[place];
        if (leads) next_stage = go_on(search, read(made), s, tally);
        __syncthreads();
        at.stage = next_stage;
        break;
      }
      case kAugment:
        at.leaves = find_leaves(p, t, s, search.end);
        update_duals(p, t, s, search.end);
        if (is_first) spend(state, kDuals);
        augment(p, t, at, tally);
        if (leads) tally = {0, 0, 0};
        part = kReverseAndAugmentation;
        break;
    }
    if (is_first && at.stage != current) spend(state, part);
  }
  if (is_first) {
    leave(state, at, tally);
    *s.search = search;
  }
}
