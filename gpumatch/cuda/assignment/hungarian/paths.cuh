// The common part of the Hungarian variants of Date and Nagi (Parallel Computing 57, 2016): the
// alternating trees, the reverse pass (Algorithm 5), the augmentation pass (Algorithm 6), and the
// position and the report that a launch leaves for the host.
//
// Their names: A_r row_to_col, A_c col_to_row, D_r row_dual, D_c col_dual, P_r row_pred, P_c
// col_pred, S_r row_next, S_c col_next. A row is uncovered (V_r = 0) when it is in a tree, a column
// covered (V_c = 1) when it is in one.
//
// Encodings
//   members[]    the rows in trees in the order in which they joined: first the roots, last the
//                frontier
//   row_pred[i]  the column by which row i joined, -1 for a root
//   col_pred[j]  the row that leads to column j, -1 if there is none yet
//   row_next[i]  on a path: the column that row i gets, or kNone; -1 off all paths
//   col_next[j]  on a path: the row that loses column j; -1 at the path's end
//   leaves[]     the ends of paths (F_rev): an unmatched column j as j; a row i that becomes
//                unmatched as ~i. Later the roots of the paths (F_aug)
#pragma once

#include "assignment/dense/costs.cuh"
#include "frontier.cuh"

constexpr int kNone = -2;
constexpr int kTraceLength = 4096;  // the most iterations recorded
constexpr int kTraceWidth = 5;      // numbers of each: levels, paths, updates, rows matched, scans

enum Stage { kCheck, kCompress, kForward, kDualUpdate, kAugment, kDone, kFull, kTooFine };
enum Part { kCompression, kForwardPass, kReverseAndAugmentation, kDuals, kParts };

// Counts of the current phase.
struct Tally {
  int levels;
  int updates;  // dual updates
  int scans;    // rows scanned
};

// The position of a kernel. It is equal in all blocks, and the next launch begins with it.
struct Position {
  int stage;
  int step;
  int phase;
  int roots;    // the roots of the search
  int members;  // rows in trees; in tree_paper.cu rows of the frontier
  int leaves;
};

struct State {
  Position at;
  Tally tally;
  int matched;
  int sizes[3];          // the size of the frontier that a step makes, by step % 3
  int bases[3];          // the place among the members where that frontier begins
  int is_stale;          // 1 if the adjacency is older than the duals
  int is_too_fine;       // 1 if a dual exceeds its bound
  long long adjacent;    // the edges of the adjacency, even if they exceed its room
  long long least;       // the least slack
  long long clock;       // the time at which the current part began
  long long spent[kParts];  // nanoseconds in each part
};

struct Trees {
  Member* members;
  int* leaves;
  int* row_pred;
  int* row_next;
  int* col_pred;
  int* col_next;
  State* state;
  int* trace;
  unsigned* barrier;
  int* counts;  // a number for each block, for compaction

  __device__ Compaction compaction() const { return {counts, barrier}; }
};

// Add the time since the last call to a part.
__device__ inline void spend(State& state, Part part) {
  const long long time = nanoseconds();
  state.spent[part] += time - state.clock;
  state.clock = time;
}

// Write the position for the host and the next launch. Called by one thread, at the end.
__device__ inline void leave(State& state, const Position& at, const Tally& tally) {
  spend(state, kForwardPass);
  state.at = at;
  state.tally = tally;
}

// Algorithm 5 for all leaves. Walks in one tree meet in a row. The walk that writes the row's
// successor last becomes the tree's path.
__device__ inline void reverse_pass(const Trees& t, int leaves) {
  for (int k = thread_index(); k < leaves; k += thread_count()) {
    const int leaf = t.leaves[k];
    int row = leaf < 0 ? ~leaf : t.col_pred[leaf];
    if (leaf >= 0) t.col_next[leaf] = -1;
    t.row_next[row] = leaf < 0 ? kNone : leaf;
    for (int col = t.row_pred[row]; col != -1; col = t.row_pred[row]) {
      t.col_next[col] = row;
      row = t.col_pred[col];
      t.row_next[row] = col;
    }
  }
}

// Algorithm 6 for the roots of paths.
template <typename Cost>
__device__ void augmentation_pass(const Problem<Cost>& p, const Trees& t, int paths, int* matched) {
  int gained = 0;
  for (int k = thread_index(); k < paths; k += thread_count()) {
    int row = t.leaves[k];
    int col = t.row_next[row];
    while (row != -1 && col != kNone) {
      p.row_to_col[row] = col;
      p.col_to_row[col] = row;
      row = t.col_next[col];
      if (row != -1) col = t.row_next[row];
    }
    if (col == kNone) p.row_to_col[row] = -1;
    else ++gained;
  }
  add_to(&t.state->matched, gained);
  if (matched != nullptr) add_to(matched, gained);
}

// Augment along a path in each tree that has a leaf, and record the phase, which ends. The next
// stage is the check. leaves[] is F_rev, then F_aug.
template <typename Cost>
__device__ void augment(const Problem<Cost>& p, const Trees& t, Position& at, const Tally& tally) {
  reverse_pass(t, at.leaves);
  grid_barrier(t.barrier);
  const int paths = compact(
      t.compaction(), p.nrows,
      [&](int i) { return p.row_to_col[i] == -1 && t.row_next[i] != -1; },
      [&](int place, int i) { t.leaves[place] = i; });
  grid_barrier(t.barrier);
  int* record = at.phase < kTraceLength ? t.trace + kTraceWidth * at.phase : nullptr;
  augmentation_pass(p, t, paths, record == nullptr ? nullptr : record + 3);
  if (record != nullptr && thread_index() == 0) {
    record[0] = tally.levels;
    record[1] = paths;
    record[2] = tally.updates;
    record[4] = tally.scans;
  }
  ++at.phase;
  at.stage = kCheck;
  grid_barrier(t.barrier);
}
