// The alternating tree variant of the Hungarian algorithm: Date, Nagi, Parallel Computing 57, 2016.
//
// From all rows that want a column, alternating trees grow at once. Every column keeps its slack,
// the least of those of the edges that lead to it from a tree, so that a dual update costs O(n) and
// the search goes on where it stood (Algorithms 4 and 9). Here one cooperative kernel makes all
// iterations, and its stages are the paper's kernels:
//
//   kCheck       Algorithm 2, the optimality check; the roots are gathered, the arrays reset
//   kForward     Algorithm 4: the frontier's rows lower the columns' slacks. Rows of a large
//                frontier are shared out among several threads a column, who agree on the slack
//                first and on the predecessor then. The columns whose slack is the least join the
//                trees and their mates the next frontier.
//   kDualUpdate  Algorithm 9
//   kReverse, kAugment   Algorithms 5 and 6 (hungarian_trees.cuh)
//
// Algorithm 9 subtracts the least slack from all others after each level. Here it is added to one
// number, by how much the duals have been raised in this search; dist[j] is the slack of column j
// plus that number, and the duals of rows and columns are written once, when the search ends.
//
// A launch makes a bounded number of steps and leaves in `State` where it stands, so that the host
// can look in between. At each of these points the pairs are a matching, and tight.
#include "hungarian_trees.cuh"

struct Slacks {
  long long* dist;
  int* covered;      // columns: in a tree, or a leaf
  int* row_is_leaf;  // rows that may go without: is a leaf
};

// Algorithm 4 for a frontier of few rows: each thread owns columns. Returns the least distance of
// those that are uncovered.
template <typename Cost, bool kAligned>
__device__ long long lower_own_slacks(const Problem<Cost>& p, const Trees& t, const Slacks& s,
                                      const Member* frontier, int size) {
  constexpr int kWidth = Pack<Cost, kAligned>::kWidth;
  long long best = kNever;
  for (int pack = spread_index(); pack < p.ncols / kWidth; pack += thread_count()) {
    long long least[kWidth];
    int nearest[kWidth];
#pragma unroll
    for (int w = 0; w < kWidth; ++w) {
      const int col = pack * kWidth + w;
      const long long dist = s.dist[col];
      least[w] = dist == kNever ? kNever : dist + p.col_dual[col];
      nearest[w] = -1;
    }
    lower_to_members<Cost, kAligned>(p, frontier, size, 0, 1, pack, least, nearest);
#pragma unroll
    for (int w = 0; w < kWidth; ++w) {
      const int col = pack * kWidth + w;
      const long long dist = least[w] == kNever ? kNever : least[w] - p.col_dual[col];
      if (nearest[w] >= 0) {
        s.dist[col] = dist;
        t.col_pred[col] = nearest[w];
      }
      if (s.covered[col] == 0) best = min(best, dist);
    }
  }
  return best;
}

// The same for a larger frontier, its rows shared out among the threads that look at a column. They
// agree on the distance first, and on the row that it comes from after a grid barrier.
template <typename Cost, bool kAligned>
__device__ long long lower_shared_slacks(const Problem<Cost>& p, const Trees& t, const Slacks& s,
                                         const Member* frontier, int size, int shares) {
  constexpr int kWidth = Pack<Cost, kAligned>::kWidth;
  const int packs = p.ncols / kWidth;
  const int pack = thread_index() % packs, share = thread_index() / packs;
  long long least[kWidth];
  int nearest[kWidth];
#pragma unroll
  for (int w = 0; w < kWidth; ++w) nearest[w] = -1;
  if (share < shares) {
#pragma unroll
    for (int w = 0; w < kWidth; ++w) {
      const int col = pack * kWidth + w;
      const long long dist = now(s.dist[col]);
      least[w] = dist == kNever ? kNever : dist + p.col_dual[col];
    }
    lower_to_members<Cost, kAligned>(p, frontier, size, share, shares, pack, least, nearest);
#pragma unroll
    for (int w = 0; w < kWidth; ++w) {
      const int col = pack * kWidth + w;
      if (nearest[w] < 0) continue;
      least[w] -= p.col_dual[col];
      atomicMin(s.dist + col, least[w]);
    }
  }
  grid_barrier(t.barrier);
#pragma unroll
  for (int w = 0; w < kWidth; ++w) {
    const int col = pack * kWidth + w;
    if (nearest[w] >= 0 && s.dist[col] == least[w]) t.col_pred[col] = nearest[w];
  }
  long long best = kNever;
  for (int col = thread_index(); col < p.ncols; col += thread_count()) {
    if (s.covered[col] == 0) best = min(best, s.dist[col]);
  }
  return best;
}

// The least distance at which a row in a tree may go without a column.
template <typename Cost>
__device__ long long least_limit(const Problem<Cost>& p, const Trees& t, const Slacks& s,
                                 int members) {
  long long best = kNever;
  for (int k = thread_index(); k < members; k += thread_count()) {
    const Member m = t.members[k];
    if (s.row_is_leaf[m.row] == 0) best = min(best, m.base + p.limit);
  }
  return best;
}

// Contraction: what lies at distance `raised` joins the trees or is a leaf.
template <typename Cost>
__device__ void join(const Problem<Cost>& p, const Trees& t, const Slacks& s, int members,
                     long long raised) {
  State& state = *t.state;
  const Queue<Member> joined = {t.members, &state.joined};
  const Queue<int> leaves = {t.leaves, &state.found_leaves};
  for (int col = spread_index(); col < p.ncols; col += thread_count()) {
    if (s.dist[col] != raised || s.covered[col] != 0) continue;
    s.covered[col] = 1;
    const int mate = p.col_to_row[col];
    if (mate == -1) {
      push(leaves, col);
    } else {
      t.row_pred[mate] = col;
      push(joined, Member{raised - p.row_dual[mate], mate});
    }
  }
  for (int k = thread_index(); p.has_limit() && k < members; k += thread_count()) {
    const Member m = t.members[k];
    if (m.base + p.limit != raised || s.row_is_leaf[m.row] != 0) continue;
    s.row_is_leaf[m.row] = 1;
    push(leaves, ~m.row);
  }
}

// Algorithm 9, for all that the search has raised.
template <typename Cost>
__device__ void update_duals(const Problem<Cost>& p, const Trees& t, const Slacks& s, int members,
                             long long raised) {
  for (int k = thread_index(); k < members; k += thread_count()) {
    const Member m = t.members[k];
    p.row_dual[m.row] = raised - m.base;
    if (t.may_grow && raised - m.base > kMost) t.state->is_too_fine = 1;
  }
  for (int col = thread_index(); col < p.ncols; col += thread_count()) {
    if (s.covered[col] != 0) p.col_dual[col] -= raised - s.dist[col];
  }
}

template <typename Cost>
__device__ void check(const Problem<Cost>& p, const Trees& t, const Slacks& s) {
  for (int col = thread_index(); col < p.ncols; col += thread_count()) {
    s.dist[col] = kNever;
    s.covered[col] = 0;
    t.col_pred[col] = -1;
  }
  for (int i = thread_index(); i < p.nrows; i += thread_count()) {
    t.row_pred[i] = t.row_next[i] = -1;
    s.row_is_leaf[i] = 0;
    if (p.wants(i)) push(Queue<Member>{t.members, &t.state->joined}, Member{-p.row_dual[i], i});
  }
}

template <typename Cost, bool kAligned>
__global__ void __launch_bounds__(kBlock)
    hungarian_tree(Problem<Cost> p, Trees t, Slacks s, int max_steps) {
  State& state = *t.state;
  const bool is_first = thread_index() == 0;
  const int packs = p.ncols / Pack<Cost, kAligned>::kWidth;
  int stage = state.stage, step = state.step, phase = state.phase;
  int roots = state.roots, members = state.members, leaves = state.leaves;  // alike in all blocks
  int begin = state.bases[0];  // the frontier
  long long raised = state.raised;
  if (is_first) state.clock = nanoseconds();
  for (int steps = 0; steps < max_steps && stage < kDone; ++steps, ++step) {
    Part part = kForwardPass;
    switch (stage) {
      case kCheck:
        check(p, t, s);
        grid_barrier(t.barrier);
        roots = members = now(state.joined);
        begin = leaves = 0;
        raised = 0;
        stage = roots == 0 ? kDone : now(state.is_too_fine) != 0 ? kTooFine : kForward;
        break;
      case kForward: {
        const Member* frontier = t.members + begin;
        const int size = members - begin;
        const int shares = size <= kFewRows ? 1 : shares_for(size, packs);
        if (is_first) state.least[(step + 1) & 1] = kNever;
        long long best =
            shares == 1 ? lower_own_slacks<Cost, kAligned>(p, t, s, frontier, size)
                        : lower_shared_slacks<Cost, kAligned>(p, t, s, frontier, size, shares);
        if (p.has_limit()) best = min(best, least_limit(p, t, s, members));
        lower_to_least(&state.least[step & 1], best);
        grid_barrier(t.barrier);
        best = now(state.least[step & 1]);
        begin = members;
        if (best == kNever || (best > raised && leaves != 0)) {
          stage = leaves != 0 ? kDualUpdate : kDone;
          break;
        }
        if (is_first) {
          ++state.levels;
          state.updates += best > raised;
        }
        raised = best;
        if (t.may_grow && raised > kMost) {
          stage = kTooFine;
          break;
        }
        join(p, t, s, members, raised);
        grid_barrier(t.barrier);
        members = now(state.joined);
        leaves = now(state.found_leaves);
        break;
      }
      case kDualUpdate:
        update_duals(p, t, s, members, raised);
        if (is_first) state.joined = state.found_leaves = 0;
        part = kDuals;
        stage = kReverse;
        grid_barrier(t.barrier);
        break;
      case kReverse:
        reverse_pass(t, leaves);
        part = kReverseAndAugmentation;
        stage = kAugment;
        grid_barrier(t.barrier);
        break;
      case kAugment:
        augmentation_pass(t, roots, p.row_to_col, p.col_to_row, phase);
        if (is_first) record_phase(t, phase);
        part = kReverseAndAugmentation;
        ++phase;
        stage = kCheck;
        grid_barrier(t.barrier);
        break;
    }
    if (is_first) spend(state, part);
  }
  if (is_first) {
    state.stage = stage;
    state.step = step;
    state.phase = phase;
    state.roots = roots;
    state.members = members;
    state.leaves = leaves;
    state.bases[0] = begin;
    state.raised = raised;
  }
}
