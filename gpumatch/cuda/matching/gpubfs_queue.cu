// GPUBFS and GPUBFS-WR (gpubfs.cuh) driven by a queue, many levels in one bounded cooperative
// launch.
#include "frontier.cuh"
#include "matching/gpubfs.cuh"

// gpubfs() as a visitor of the frontier's queue: the same step on the same arrays, but a column is
// claimed by compare-and-swap, because it must not be queued twice.
template <typename Offset, bool kRoots, bool kPaths, bool kShortest>
struct QueuedGpubfs {
  Search<Offset> s;
  int* found;  // [3], turning with the level like the frontier's sizes
  Queue<int> out;
  int level;

  __device__ Walk enter(int col) const {
    int my_root = col;
    if (kRoots) {
      my_root = s.root[col];
      if (s.levels[my_root] < kStart<kPaths> - 1) return {};
    }
    return {col, my_root, s.col_indices + s.col_indptr[col], s.col_indices + s.col_indptr[col + 1]};
  }

  __device__ int look(int row) const { return s.row_to_col[row]; }

  __device__ void visit(int col, int my_root, int row, int col_match) const {
    constexpr int kUnreached = kStart<kPaths> - 1;
    if (col_match > -1) {
      int* entry = s.levels + col_match;
      if (*entry != kUnreached || atomicCAS(entry, kUnreached, level + 1) != kUnreached) return;
      if (kRoots) s.root[col_match] = my_root;
      s.predecessor[row] = col;
      push(out, col_match);
    } else if (col_match == -1) {
      if (kRoots) s.levels[my_root] = kPaths ? -row : kStart<kPaths> - 2;
      s.row_to_col[row] = -2;
      s.predecessor[row] = col;
      found[level % 3] = 1;
    }
  }

  __device__ bool done(int after) const {
    return kShortest && now(found[after % 3]) != 0;
  }
};

template <typename Offset, bool kRoots, bool kPaths, bool kShortest>
__global__ void search_gpubfs(Search<Offset> s, Frontier frontier, int max_levels) {
  const QueuedGpubfs<Offset, kRoots, kPaths, kShortest> visitor = {s, frontier.state->found};
  search_levels(frontier, visitor, max_levels);
}
