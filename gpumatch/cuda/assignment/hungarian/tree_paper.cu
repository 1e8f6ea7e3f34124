// The alternating tree variant of the Hungarian algorithm as in its paper: Date, Nagi, Parallel
// Computing 57, 2016, sections 4.2 to 4.4. (tree.cu is ours: in each level the columns of a range
// of distances join, and searches continue past the nearest leaf.)
//
// One cooperative kernel makes all iterations. Its stages are the paper's kernels:
//
//   kCheck       Algorithm 2, the optimality check: unmatched rows become active, and all else is
//                reset
//   kForward     a level: Algorithm 4 lowers the columns' slacks, and columns of slack 0 join the
//                trees (expansion). The active rows are then the next frontier (contraction). If
//                there are none, the unmatched columns of slack 0 are F_rev
//   kDualUpdate  theta, the least slack above 0, and Algorithm 9. The rows that become active are
//                the frontier
//   kAugment     Algorithms 5 and 6 (paths.cuh)
//
// All frontiers come from compact() of frontier.cuh, in the order of their rows. Of several rows
// with the least slack, a column takes the first. So the costs and the matching fix all levels of
// an iteration. Only the choice of a tree's path, of several leaves, depends on a race.
//
// Algorithm 9 changes all duals by theta / 2. Here the duals of the trees' rows rise by theta, and
// those of their columns fall by theta. All slacks change by the same amounts, but integers stay
// integers, and the duals of unmatched columns do not change. A row that may stay unmatched does so
// when its dual reaches the limit: the limit minus the dual is the slack of a column of its own.
//
// Encodings
//   slack[j]     the slack of column j, kNever while no edge leads to it from a tree
//   row_mark[i]  kInactive: in no tree, the paper's V_r[i] = 1
//   col_mark[j]  kVisited: in a tree, the paper's V_c[j] = 1; kEnd: unmatched, of slack 0
//                ("reverse")
//   members[]    the frontier
//
// A launch makes a bounded number of steps and leaves its position in `State`, which the host reads
// between launches. At each of these points the pairs are a matching, and tight.
#include "assignment/hungarian/paths.cuh"

enum Mark { kInactive, kActive, kVisited, kEnd };

struct Slacks {
  long long* slack;
  unsigned char* row_mark;
  unsigned char* col_mark;
};

// Algorithm 2. A row that may stay unmatched, and does, is in no tree.
template <typename Cost>
__device__ void check(const Problem<Cost>& p, const Trees& t, const Slacks& s) {
  for (int col = thread_index(); col < p.ncols; col += thread_count()) {
    s.slack[col] = kNever;
    s.col_mark[col] = kInactive;
    t.col_pred[col] = -1;
  }
  for (int i = thread_index(); i < p.nrows; i += thread_count()) {
    s.row_mark[i] = p.wants(i) ? kActive : kInactive;
    t.row_pred[i] = t.row_next[i] = -1;
  }
}

// Contraction: the active rows become the frontier. Returns its size.
template <typename Cost>
__device__ int contract(const Problem<Cost>& p, const Trees& t, const Slacks& s) {
  const int size = compact(
      t.compaction(), p.nrows, [&](int i) { return s.row_mark[i] == kActive; },
      [&](int place, int i) { t.members[place] = {-p.row_dual[i], i}; });
  grid_barrier(t.barrier);
  return size;
}

// Algorithm 4: a column outside the trees scans the whole frontier.
template <typename Cost, bool kAligned>
struct Expansion {
  const Problem<Cost>& p;
  const Trees& t;
  const Slacks& s;
  Rows frontier;

  __device__ void enter(int) const {}

  __device__ Near look(int first, int packs) const {
    return nearest_member<Cost, kAligned>(p, frontier, first, packs);
  }

  __device__ void visit(int col, Near from) const {
    if (s.col_mark[col] == kVisited) return;
    long long slack = s.slack[col];
    if (from.row >= 0 && from.reach - p.col_dual[col] < slack) {
      s.slack[col] = slack = from.reach - p.col_dual[col];
      t.col_pred[col] = from.row;
    }
    if (slack != 0) return;
    const int mate = p.col_to_row[col];
    s.col_mark[col] = mate == -1 ? kEnd : kVisited;
    if (mate == -1) return;
    t.row_pred[mate] = col;
    s.row_mark[mate] = kActive;
  }
};

template <typename Cost, bool kAligned>
__device__ void expand_frontier(const Problem<Cost>& p, const Trees& t, const Slacks& s,
                                int size) {
  const int self = threadIdx.x;
  Expansion<Cost, kAligned> visitor = {p, t, s, {t.members, size, t.members[min(self, size - 1)]}};
  pull<Pack<Cost, kAligned>::kWidth>(p.ncols / Pack<Cost, kAligned>::kWidth, visitor);
  for (int k = thread_index(); k < size; k += thread_count()) {
    s.row_mark[t.members[k].row] = kVisited;
  }
}

// F_rev: unmatched columns of slack 0, and rows of trees that may stay unmatched. Returns its size.
template <typename Cost>
__device__ int find_leaves(const Problem<Cost>& p, const Trees& t, const Slacks& s) {
  const int leaves = compact(
      t.compaction(), p.ncols + (p.has_limit() ? p.nrows : 0),
      [&](int leaf) {
        if (leaf < p.ncols) return s.col_mark[leaf] == kEnd;
        const int i = leaf - p.ncols;
        return s.row_mark[i] != kInactive && p.row_dual[i] == p.limit;
      },
      [&](int place, int leaf) { t.leaves[place] = leaf < p.ncols ? leaf : ~(leaf - p.ncols); });
  grid_barrier(t.barrier);
  return leaves;
}

// Lower *least to theta, by all threads together.
template <typename Cost>
__device__ void find_theta(const Problem<Cost>& p, const Slacks& s, long long* least) {
  long long own = kNever;
  for (int col = thread_index(); col < p.ncols; col += thread_count()) {
    if (s.slack[col] > 0) own = min(own, s.slack[col]);
  }
  for (int i = thread_index(); p.has_limit() && i < p.nrows; i += thread_count()) {
    if (s.row_mark[i] != kInactive) own = min(own, p.limit - p.row_dual[i]);
  }
  lower_to_least(least, own);
}

// Algorithm 9.
template <typename Cost>
__device__ void update_duals(const Problem<Cost>& p, const Trees& t, const Slacks& s,
                             long long theta) {
  for (int i = thread_index(); i < p.nrows; i += thread_count()) {
    if (s.row_mark[i] == kInactive) continue;
    if (p.row_dual[i] > p.most - theta) t.state->is_too_fine = 1;
    p.row_dual[i] += theta;
  }
  for (int col = thread_index(); col < p.ncols; col += thread_count()) {
    if (s.col_mark[col] == kVisited) p.col_dual[col] -= theta;
    const long long slack = s.slack[col];
    if (slack == 0 || slack == kNever) continue;
    s.slack[col] = slack - theta;
    if (slack == theta) s.row_mark[t.col_pred[col]] = kActive;
  }
}

template <typename Cost, bool kAligned>
__global__ void __launch_bounds__(kBlock)
    hungarian_tree_paper(Problem<Cost> p, Trees t, Slacks s, int max_steps) {
  State& state = *t.state;
  const bool is_first = thread_index() == 0;
  Position at = state.at;
  Tally tally = state.tally;
  if (is_first) state.clock = nanoseconds();
  for (int steps = 0; steps < max_steps && at.stage < kDone; ++steps, ++at.step) {
    const int current = at.stage;
    Part part = kForwardPass;
    switch (current) {
      case kCheck:
        check(p, t, s);
        grid_barrier(t.barrier);
        at.roots = at.members = contract(p, t, s);
        at.stage = at.roots == 0 ? kDone : kForward;
        break;
      case kForward:
        if (is_first) state.least = kNever;
        if (at.members != 0) {
          expand_frontier<Cost, kAligned>(p, t, s, at.members);
          ++tally.levels;
          tally.scans += at.members;
          grid_barrier(t.barrier);
          at.members = contract(p, t, s);
        }
        if (at.members != 0) break;
        at.leaves = find_leaves(p, t, s);
        at.stage = at.leaves != 0 ? kAugment : kDualUpdate;
        break;
      case kDualUpdate: {
        find_theta(p, s, &state.least);
        grid_barrier(t.barrier);
        const long long theta = now(state.least);
        part = kDuals;
        at.stage = kDone;
        if (theta == kNever) break;
        update_duals(p, t, s, theta);
        ++tally.updates;
        grid_barrier(t.barrier);
        at.members = contract(p, t, s);
        at.stage = now(state.is_too_fine) != 0 ? kTooFine : kForward;
        break;
      }
      case kAugment:
        augment(p, t, at, tally);
        tally = {0, 0, 0};
        part = kReverseAndAugmentation;
        break;
    }
    if (is_first && at.stage != current) spend(state, part);
  }
  if (is_first) leave(state, at, tally);
}
