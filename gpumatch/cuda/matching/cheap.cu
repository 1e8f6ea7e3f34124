// Cheap matching: every free column takes the first free row it can get (the usual start of
// maximum matching algorithms: Duff, Kaya, Uçar, ACM TOMS 2011). The result is maximal.
#include "grid.cuh"

template <typename Offset>
__global__ void cheap_matching_kernel(int ncols, const Offset* col_indptr, const int* col_indices,
                                      int* row_to_col, int* col_to_row) {
  for (int col = thread_index(); col < ncols; col += thread_count()) {
    if (col_to_row[col] != -1) continue;
    const Offset end = col_indptr[col + 1];
    for (Offset j = col_indptr[col]; j < end; ++j) {
      const int row = col_indices[j];
      if (row_to_col[row] == -1 && atomicCAS(row_to_col + row, -1, col) == -1) {
        col_to_row[col] = row;
        break;
      }
    }
  }
}
