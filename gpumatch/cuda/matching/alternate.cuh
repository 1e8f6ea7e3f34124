// Augment along the paths that a search has found, and repair what races left: Alternate (Algorithm
// 3) and FixMatching of Deveci, Kaya, Uçar, Çatalyürek, Euro-Par 2013. Encodings as in gpubfs.cuh.
//
// Several ends may lead back to one root. Each thread walks from an end towards the root and swaps
// matched and unmatched edges on its way. It stops where another thread has passed. Lanes of one
// warp may pass the same column together. Then one of them owns the column in the end, and
// FixMatching frees the row of the other. At every column where walks meet, at least one goes on.
// So at least one of all walks towards a root arrives, and the matching grows by one for each root
// reached.
#pragma once

#include "grid.cuh"

// With kPaths only the end that its root's entry in levels[] names is walked from. Returns the
// number of ends this thread saw. Other threads write both mates in the meantime.
template <bool kPaths>
__device__ int alternate(int nrows, int* row_to_col, int* col_to_row, const int* predecessor,
                         const int* levels, const int* root) {
  int ends = 0;
  for (int end = thread_index(); end < nrows; end += thread_count()) {
    if (now(row_to_col[end]) != -2) continue;
    ++ends;
    if (kPaths && levels[root[predecessor[end]]] != -end) continue;
    int row = end;
    while (row != -1) {
      const int matched_col = predecessor[row];
      const int matched_row = now(col_to_row[matched_col]);
      if (matched_row != -1 && predecessor[matched_row] == matched_col) break;
      set_now(col_to_row[matched_col], row);
      set_now(row_to_col[row], matched_col);
      row = matched_row;
    }
  }
  return ends;
}

// Free every row that its column does not name, and the ends no walk has matched. Returns the
// number of matched rows this thread saw.
__device__ inline int fix_matching(int nrows, int* row_to_col, const int* col_to_row) {
  int matched = 0;
  for (int row = thread_index(); row < nrows; row += thread_count()) {
    const int col = row_to_col[row];
    if (col >= 0 && col_to_row[col] == row) {
      ++matched;
    } else if (col != -1) {
      row_to_col[row] = -1;
    }
  }
  return matched;
}
