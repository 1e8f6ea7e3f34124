// The numbers in which costs are counted: of 64 bits, so that sums fit and ties are exact.
//
// Integers stay integers, in units of 2**-shift if fractions of them are needed; others become
// double. Or all become integers: costs of floating type count in units of 1 / scale, a power of
// two.
#pragma once

template <typename Cost>
struct NumberOf {
  using type = long long;
};
template <>
struct NumberOf<float> {
  using type = double;
};
template <>
struct NumberOf<double> {
  using type = double;
};

template <typename Cost>
using Number = typename NumberOf<Cost>::type;

constexpr long long kNever = 0x7fffffffffffffffll;  // beyond all integers that occur

// Beyond all numbers that occur.
template <typename Number>
__device__ Number far();
template <>
__device__ inline long long far<long long>() {
  return kNever;
}
template <>
__device__ inline double far<double>() {
  return __longlong_as_double(0x7ff0000000000000ll);
}

// The bits of a number in the order of the numbers, from 0 on: what is below 0 counts as 0.
__device__ inline unsigned long long bits_of(long long number) { return number > 0 ? number : 0; }
__device__ inline unsigned long long bits_of(double number) {
  return number > 0 ? __double_as_longlong(number) : 0;  // -0.0 has other bits
}

// The number of such bits; the second argument says of which type.
__device__ inline long long number_of(unsigned long long bits, long long) {
  return static_cast<long long>(bits);
}
__device__ inline double number_of(unsigned long long bits, double) {
  return __longlong_as_double(static_cast<long long>(bits));
}

// Any number as an integer in the same order, and back. None is 0, nor is its complement: so both can
// be raised from zeros.
constexpr unsigned long long kSign = 0x8000000000000000ull;
__device__ inline unsigned long long in_order(double number) {
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(number));
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}
__device__ inline double of_order(unsigned long long place) {
  const unsigned long long bits = (place & kSign) != 0 ? place ^ kSign : ~place;
  return __longlong_as_double(static_cast<long long>(bits));
}

// In the numbers of its type.
__device__ inline long long counted(int cost, int shift) {
  return static_cast<long long>(cost) << shift;
}
__device__ inline long long counted(long long cost, int shift) { return cost << shift; }
__device__ inline double counted(float cost, int) { return cost; }
__device__ inline double counted(double cost, int) { return cost; }

// The difference of two numbers, rounded down. The least of such differences is the greatest number
// that is not above the least exact difference.
__device__ inline long long difference_below(long long one, long long other) { return one - other; }
__device__ inline double difference_below(double one, double other) {
  return __dsub_rd(one, other);
}

// As an integer; kNever if the pair is forbidden.
__device__ inline long long fixed(double, int cost) { return cost; }
__device__ inline long long fixed(double, long long cost) { return cost; }
__device__ inline long long fixed(double scale, float cost) {
  return isinf(cost) ? kNever : __double2ll_rn(scale * static_cast<double>(cost));
}
__device__ inline long long fixed(double scale, double cost) {
  return isinf(cost) ? kNever : __double2ll_rn(scale * cost);
}
