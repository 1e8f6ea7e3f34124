// Minus the logarithms of magnitudes, with the least and the greatest of them, by one launch.
//
// Encodings
//   ends[kLow]    the complement of in_order() of the least logarithm; 0 at first
//   ends[kHigh]   in_order() of the greatest logarithm; 0 at first. NaN counts as infinite.

#include "grid.cuh"
#include "numbers.cuh"

enum End { kLow, kHigh };

constexpr double kNear = 1;  // logarithms up to this are computed from the magnitude minus 1

template <typename Part>
struct Complex {
  Part real;
  Part imag;
};

__device__ inline double log_magnitude(double value) { return log(fabs(value)); }

// Correct also for numbers whose magnitude would overflow or underflow.
template <typename Part>
__device__ double log_magnitude(const Complex<Part>& value) {
  const double real = fabs(static_cast<double>(value.real));
  const double imag = fabs(static_cast<double>(value.imag));
  if (real != real || imag != imag) return real + imag;
  const double large = fmax(real, imag), small = fmin(real, imag), ratio = small / large;
  const double sum = log(large) + log1p(ratio * ratio) / 2;
  if (!(fabs(sum) < kNear)) return sum;
  // Both terms may cancel, and so may the sum of squares minus 1. The rounding errors are added to
  // it. Where much cancels, all sums but the last are exact.
  const double one = __dmul_rn(large, large), other = __dmul_rn(small, small);  // not as fma
  const double rest_of_one = fma(large, large, -one), rest_of_other = fma(small, small, -other);
  const double rest = rest_of_one + rest_of_other, part = rest - rest_of_one;
  const double left = (rest_of_one - (rest - part)) + (rest_of_other - part);
  return log1p((((one - 1) + other) + rest) + left) / 2;
}

__device__ inline unsigned long long greater(unsigned long long one, unsigned long long other) {
  return one > other ? one : other;
}

template <typename Value>
__global__ void minus_logarithms(const Value* values, long long count, double* weights,
                                 unsigned long long* ends) {
  unsigned long long low = 0, high = 0;
  for (long long k = thread_index(); k < count; k += thread_count()) {
    const double weight = -log_magnitude(values[k]);
    weights[k] = weight;
    const unsigned long long place = in_order(weight == weight ? weight : far<double>());
    low = greater(low, ~place);
    high = greater(high, place);
  }
  low = joined_in_block(low, greater);
  high = joined_in_block(high, greater);
  if (threadIdx.x != 0) return;
  atomicMax(ends + kLow, low);
  atomicMax(ends + kHigh, high);
}
