// The costs of pairs of points, by the steps of gpumatch.costs.points: the same numbers everywhere.
//
// No step is fused with another. Each is monotone, and so is rounding.
//
// Encodings
//   Metric   kind: 0 squared Euclidean, 1 Euclidean, 2 city block, 3 Chebyshev; scale: 1 or 0.5;
//            sign: 1, or -1 if costs are negated; has_offsets: not 0 if offsets are added
#pragma once

struct Metric {
  int kind;
  int has_offsets;
  double scale;
  double sign;

  // The sum so far and the next coordinate's difference.
  __device__ double joined(double total, double step) const {
    if (kind <= 1) return __dadd_rn(total, __dmul_rn(step, step));
    if (kind == 2) return __dadd_rn(total, fabs(step));
    return fmax(total, fabs(step));
  }

  // The cost, from the sum of all coordinates.
  __device__ double finished(double total, double row_offset, double col_offset) const {
    if (kind == 1) total = __dsqrt_rn(total);
    total = __dmul_rn(total, scale);
    if (has_offsets) total = __dadd_rn(total, __dadd_rn(row_offset, col_offset));
    return __dmul_rn(sign, total);
  }
};
