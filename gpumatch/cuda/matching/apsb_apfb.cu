// The kernels of APsB and APFB (Deveci et al. 2013), as the driver apsb_apfb.py launches them.
//
// counters[]  kInserted + k, kFound + k: what level k of a batch did (gpubfs.cuh)
//             kLevel: the level of the batch's first step
//             kEnds, kMatched: of the last phase: ends of paths found, rows matched after it
#include "matching/alternate.cuh"
#include "matching/cheap.cuh"
#include "matching/gpubfs.cuh"

constexpr int kBatch = 16;  // levels launched between two looks of the host
constexpr int kInserted = 0;
constexpr int kFound = kBatch;
constexpr int kLevel = 2 * kBatch;
constexpr int kEnds = 2 * kBatch + 1;
constexpr int kMatched = 2 * kBatch + 2;

template <typename Offset>
__global__ void cheap_matching_kernel(int ncols, const Offset* col_indptr, const int* col_indices,
                                      int* row_to_col, int* col_to_row) {
  cheap_matching(ncols, col_indptr, col_indices, row_to_col, col_to_row);
}

// Also sets kLevel, so that the first next_batch() turns it into L0.
template <bool kRoots, bool kPaths>
__global__ void init_bfs_array_kernel(int ncols, const int* col_to_row, int* levels, int* root,
                                      int* counters) {
  init_bfs_array<kRoots, kPaths>(ncols, col_to_row, levels, root);
  if (thread_index() == 0) counters[kLevel] = kStart<kPaths> - kBatch;
}

__global__ void next_batch(int* counters) {
  if (threadIdx.x < 2 * kBatch) counters[threadIdx.x] = 0;
  if (threadIdx.x == kLevel) counters[kLevel] += kBatch;
}

// Level `step` of a batch. Whether it runs at all is the inner loop of Algorithm 1, decided here by
// what the level before has left, so that the host need not look after every level.
template <typename Offset, bool kRoots, bool kPaths, bool kShortest>
__global__ void gpubfs_kernel(Search<Offset> s, int* counters, int step) {
  if (step > 0 && counters[kInserted + step - 1] == 0) return;
  if (kShortest && step > 0 && counters[kFound + step - 1] != 0) return;
  gpubfs<Offset, kRoots, kPaths>(s, counters[kLevel] + step, counters + kInserted + step,
                                 counters + kFound + step);
}

template <bool kPaths>
__global__ void alternate_kernel(int nrows, int* row_to_col, int* col_to_row,
                                 const int* predecessor, const int* levels, const int* root,
                                 int* counters) {
  const int ends = alternate<kPaths>(nrows, row_to_col, col_to_row, predecessor, levels, root);
  add_to(counters + kEnds, ends);
}

__global__ void fix_matching_kernel(int nrows, int* row_to_col, const int* col_to_row,
                                    int* counters) {
  add_to(counters + kMatched, fix_matching(nrows, row_to_col, col_to_row));
}
