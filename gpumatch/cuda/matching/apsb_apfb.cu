// The kernels of APsB and APFB (Deveci et al. 2013), as the driver apsb_apfb.py launches them.
#include "matching/alternate.cuh"
#include "matching/gpubfs.cuh"

constexpr int kBatch = 16;  // levels launched between two looks of the host

// What the kernels leave for the host, and for each other.
struct Counters {
  int inserted[kBatch];  // whether level k of a batch did, and
  int found[kBatch];     // whether it found a path (gpubfs.cuh)
  int level;             // of the batch's first step
  int ends;              // of the last phase: ends of paths found
  int matched;           // rows matched after it
};

// Also sets the level, so that the first next_batch() turns it into L0.
template <bool kRoots, bool kPaths>
__global__ void init_bfs_array_kernel(int ncols, const int* col_to_row, int* levels, int* root,
                                      Counters* counters) {
  init_bfs_array<kRoots, kPaths>(ncols, col_to_row, levels, root);
  if (thread_index() == 0) counters->level = kStart<kPaths> - kBatch;
}

__global__ void next_batch(Counters* counters) {
  if (threadIdx.x < kBatch) counters->inserted[threadIdx.x] = counters->found[threadIdx.x] = 0;
  if (threadIdx.x == kBatch) counters->level += kBatch;
}

// Level `step` of a batch. The inner loop of Algorithm 1 decides whether it runs at all. It is
// decided here, by what the level before has left, so that the host does not have to look after
// every level.
template <typename Offset, bool kRoots, bool kPaths, bool kShortest>
__global__ void gpubfs_kernel(Search<Offset> s, Counters* counters, int step) {
  if (step > 0 && counters->inserted[step - 1] == 0) return;
  if (kShortest && step > 0 && counters->found[step - 1] != 0) return;
  gpubfs<Offset, kRoots, kPaths>(s, counters->level + step, counters->inserted + step,
                                 counters->found + step);
}

template <bool kPaths>
__global__ void alternate_kernel(int nrows, int* row_to_col, int* col_to_row,
                                 const int* predecessor, const int* levels, const int* root,
                                 Counters* counters) {
  const int ends = alternate<kPaths>(nrows, row_to_col, col_to_row, predecessor, levels, root);
  add_to(&counters->ends, ends);
}

__global__ void fix_matching_kernel(int nrows, int* row_to_col, const int* col_to_row,
                                    Counters* counters) {
  add_to(&counters->matched, fix_matching(nrows, row_to_col, col_to_row));
}
