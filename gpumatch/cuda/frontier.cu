// The searches that a frontier's queue drives, each a bounded cooperative launch: GPUBFS-WR
// (gpubfs.cuh) and the alternating search behind König's vertex cover.
//
// state[]  [0, 3) the frontier's sizes; [3] its level; [4, 7) what the visitor found: with GPUBFS-WR
//          turning with the level (gpubfs.cuh), with the cover a free column + 1 in [4].
#include "frontier.cuh"
#include "matching/gpubfs.cuh"

constexpr int kSizes = 0;
constexpr int kLevel = 3;
constexpr int kFound = 4;

__device__ inline Frontier frontier_of(int* queue, int* other, int* state, unsigned* barrier) {
  return {{queue, other}, state + kSizes, state + kLevel, barrier};
}

// Predicate of the compaction that makes the first queue: the unmatched vertices.
__global__ void flag_free(const int* mates, int length, int* flags) {
  for (int i = thread_index(); i < length; i += thread_count()) flags[i] = mates[i] == -1;
}

// Its last step, after the prefix sum: queue the flagged vertices as level `level`.
__global__ void start_frontier(const int* ends, int length, int level, int* queue, int* state) {
  scatter_flagged(ends, length, queue);
  if (thread_index() == 0) {
    for (int i = 0; i < 3; ++i) {
      state[kSizes + i] = 0;
      state[kFound + i] = 0;
    }
    if (length > 0) state[kSizes + level % 3] = ends[length - 1];
    state[kLevel] = level;
  }
}

template <typename Offset, bool kPaths, bool kShortest>
__global__ void search_gpubfs_wr(Search<Offset> s, int* queue, int* other, int* state,
                                 unsigned* barrier, int max_levels) {
  const QueuedGpubfsWr<Offset, kPaths, kShortest> visitor = {s, state + kFound};
  search_levels(frontier_of(queue, other, state, barrier), visitor, max_levels);
}

// From free rows along any edge to a column, from a column along its matched edge to a row.
template <typename Offset>
struct CoverVisitor {
  const Offset* indptr;
  const int* indices;
  const int* col_to_row;
  int* row_seen;
  int* col_seen;
  int* free_col;  // a free column reached + 1: the matching is not maximum
  Queue<int> out;
  int level;

  __device__ Walk enter(int row) const {
    return {row, 0, indices + indptr[row], indices + indptr[row + 1]};
  }

  __device__ int look(int col) const { return col_seen[col]; }

  __device__ void visit(int, int, int col, int seen) const {
    if (seen != 0 || atomicExch(col_seen + col, 1) != 0) return;
    const int mate = col_to_row[col];
    if (mate < 0) {
      *free_col = col + 1;
    } else {
      row_seen[mate] = 1;
      push(out, mate);
    }
  }

  __device__ bool done(int) const { return false; }
};

template <typename Offset>
__global__ void search_cover(const Offset* indptr, const int* indices, const int* col_to_row,
                             int* row_seen, int* col_seen, int* queue, int* other, int* state,
                             unsigned* barrier, int max_levels) {
  const CoverVisitor<Offset> visitor = {indptr,   indices,  col_to_row,
                                        row_seen, col_seen, state + kFound};
  search_levels(frontier_of(queue, other, state, barrier), visitor, max_levels);
}
