// The columns with the least numbers of a row, in the lanes of a warp.
//
// Encodings
//   value, its   a lane holds the number and the column of one place of the list, in order;
//                beyond all numbers, and -1, if there are fewer
//   most         what a number must be below to come into the list, the same in all lanes
#pragma once

template <typename Number>
struct Nearest {
  Number value;
  Number most;
  int its;

  // A lane brings the number of column `first` plus its own place. The list holds `count`.
  __device__ void add(Number here, int first, int count) {
    unsigned better = __ballot_sync(kWholeWarp, here < most);
    while (better != 0) {
      const int other = __ffs(better) - 1;
      better &= better - 1;
      const Number new_value = __shfl_sync(kWholeWarp, here, other);
      if (!(new_value < most)) continue;
      const int lane = lane_index();
      const int at = __popc(__ballot_sync(kWholeWarp, value <= new_value));
      const Number before = __shfl_sync(kWholeWarp, value, (lane + 31) % 32);
      const int its_before = __shfl_sync(kWholeWarp, its, (lane + 31) % 32);
      if (lane > at) {
        value = before;
        its = its_before;
      } else if (lane == at) {
        value = new_value;
        its = first + other;
      }
      const Number last = __shfl_sync(kWholeWarp, value, count - 1);
      if (last < most) most = last;
    }
  }
};
