// One level of breadth-first search from the free columns: GPUBFS and GPUBFS-WR, Algorithms 2 and 4
// of Deveci, Kaya, Uçar, Çatalyürek, "GPU accelerated maximum cardinality matching algorithms for
// bipartite graphs", Euro-Par 2013.
//
// Names: the paper's cxadj, cadj, rmatch, cmatch are col_indptr, col_indices, row_to_col,
// col_to_row.
//
// Encodings, L0 being kStart: 2 with kPaths, else 0
//   row_to_col[r]   column of row r, -1 unmatched, -2 the end of an augmenting path of this phase
//   col_to_row[c]   row of column c, -1 unmatched
//   levels[c]       the paper's bfs_array: L0 - 1 not reached, l >= L0 reached at level l;
//                   of a root whose tree has found a path: L0 - 2, or with kPaths -row of the
//                   path's end, which no level is
//   root[c]         the free column whose tree holds c (with roots only)
//   predecessor[r]  the column from which row r was reached
//   inserted[k], found[k]   of the k-th level of a batch: a column was reached; a path was found
//
// There is no frontier here, and so no push and no compaction. As in the paper, every thread looks
// at each of its columns, and expands those whose entry in levels[] is the current level. A queue
// would change the algorithm, because each column would have to be claimed by one thread before it
// is queued. gpubfs_queue.cu does that.
//
// The races are the paper's: several threads may reach one row or column in a level, and any of
// them may be the last to write each array. FixMatching repairs the result (alternate.cuh).
#pragma once

#include "grid.cuh"

template <bool kPaths>
constexpr int kStart = kPaths ? 2 : 0;  // L0

template <typename Offset>
struct Search {
  const Offset* col_indptr;
  const int* col_indices;
  int ncols;
  int* row_to_col;
  int* col_to_row;
  int* levels;
  int* root;
  int* predecessor;
};

// InitBfsArray: free columns start the search, each as the root of its tree.
template <bool kRoots, bool kPaths>
__device__ void init_bfs_array(int ncols, const int* col_to_row, int* levels, int* root) {
  for (int col = thread_index(); col < ncols; col += thread_count()) {
    const bool is_free = col_to_row[col] == -1;
    levels[col] = is_free ? kStart<kPaths> : kStart<kPaths> - 1;
    if (kRoots) root[col] = is_free ? col : 0;
  }
}

// GPUBFS (Algorithm 2) and, with kRoots, GPUBFS-WR (Algorithm 4). kPaths: the improvement of
// APsB-GPUBFS-WR, where the root's entry names the path's end.
template <typename Offset, bool kRoots, bool kPaths>
__device__ void gpubfs(Search<Offset> s, int level, int* inserted, int* found) {
  bool has_inserted = false, has_found = false;
  for (int col = thread_index(); col < s.ncols; col += thread_count()) {
    if (s.levels[col] != level) continue;
    int my_root = col;
    if (kRoots) {
      my_root = s.root[col];
      if (s.levels[my_root] < kStart<kPaths> - 1) continue;
    }
    const Offset end = s.col_indptr[col + 1];
    for (Offset j = s.col_indptr[col]; j < end; ++j) {
      const int row = s.col_indices[j];
      const int col_match = s.row_to_col[row];
      if (col_match > -1) {
        if (s.levels[col_match] == kStart<kPaths> - 1) {
          has_inserted = true;
          s.levels[col_match] = level + 1;
          if (kRoots) s.root[col_match] = my_root;
          s.predecessor[row] = col;
        }
      } else if (col_match == -1) {
        if (kRoots) s.levels[my_root] = kPaths ? -row : kStart<kPaths> - 2;
        s.row_to_col[row] = -2;
        s.predecessor[row] = col;
        has_found = true;
      }
    }
  }
  if (__syncthreads_or(has_inserted) && threadIdx.x == 0) *inserted = 1;
  if (__syncthreads_or(has_found) && threadIdx.x == 0) *found = 1;
}
