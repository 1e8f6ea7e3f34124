// Counts of a whole array: matched vertices (mates from 0 up), set marks (bytes from 1 up).

#include "grid.cuh"

// Add to *count how many of the numbers are at least `least`.
template <typename Number>
__global__ void count_from(const Number* numbers, long long length, Number least,
                           unsigned long long* count) {
  unsigned long long own = 0;
  for (long long i = thread_index(); i < length; i += thread_count()) own += numbers[i] >= least;
  add_to(count, own);
}
