// How many vertices of a side are matched: CuPy compiles its own counts for each class of sizes,
// which takes seconds each.

#include "grid.cuh"

// Add to *count how many of the mates are vertices, from 0 up.
template <typename Mate>
__global__ void count_matched(const Mate* mates, long long length, unsigned long long* count) {
  unsigned long long own = 0;
  for (long long i = thread_index(); i < length; i += thread_count()) own += mates[i] >= 0;
  add_to(count, own);
}
