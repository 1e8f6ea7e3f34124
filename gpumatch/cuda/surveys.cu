// What one look through arrays tells: how many vertices of a side are matched, whether arrays are
// canonical CSR, and where pairs are in it. CuPy would compile its own counts for each class of
// sizes, seconds each, and fifteen kernels for a search.
//
// Encodings
//   faults[kUnordered]  entries that are not above the one before, less those that begin a row
//   faults[kOutside]    columns out of range, and offsets that decrease or do not begin at 0
//   faults[kEntries]    the last offset; nothing has been looked at if it is out of range

#include "grid.cuh"

using Count = unsigned long long;

// Add to *count how many of the mates are vertices, from 0 up.
template <typename Mate>
__global__ void count_matched(const Mate* mates, long long length, Count* count) {
  Count own = 0;
  for (long long i = thread_index(); i < length; i += thread_count()) own += mates[i] >= 0;
  add_to(count, own);
}

enum Fault { kUnordered, kOutside, kEntries };

// Counts may be below 0 in between: they are added modulo 2^64.
template <typename Offset>
__global__ void check_csr(const Offset* indptr, const int* indices, int nrows, int ncols,
                          long long room, Count* faults) {
  const long long nnz = indptr[nrows];
  if (thread_index() == 0) faults[kEntries] = nnz;
  if (nnz < 0 || nnz > room) return;
  Count unordered = 0, outside = thread_index() == 0 && indptr[0] != 0;
  for (long long k = thread_index(); k < nnz; k += thread_count()) {
    const int col = indices[k];
    outside += col < 0 || col >= ncols;
    unordered += k > 0 && col <= indices[k - 1];
  }
  for (long long row = thread_index(); row < nrows; row += thread_count()) {
    const long long begin = indptr[row], end = indptr[row + 1];
    outside += begin > end;
    if (0 < begin && begin < end && end <= nnz) unordered -= indices[begin] <= indices[begin - 1];
  }
  add_to(faults + kUnordered, unordered);
  add_to(faults + kOutside, outside);
}

// The place of each pair in CSR whose rows ascend, by binary search. A pair that is not there gets a
// place all the same. If there is no `major`, there is a pair for each row.
template <typename Offset>
__global__ void find_pairs(const Offset* indptr, const int* indices, long long nrows,
                           long long nnz, const long long* major, const long long* minor,
                           long long count, long long* places, bool* are_there) {
  for (long long k = thread_index(); k < count; k += thread_count()) {
    const long long row = major == nullptr ? k : major[k], wanted = minor[k];
    long long place = 0, end = 0;
    if (0 <= row && row < nrows) {
      place = indptr[row];
      end = indptr[row + 1];
    }
    const long long last = end;
    while (place < end) {  // what is before `place` is less, and from `end` on it is not
      const long long middle = (place + end) / 2;
      if (indices[middle] < wanted) place = middle + 1;
      else end = middle;
    }
    are_there[k] = place < last && indices[place] == wanted;
    places[k] = min(place, nnz - 1);
  }
}
