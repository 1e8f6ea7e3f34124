// Growth of trees from a wide frontier, level by level.
//
// A group of lanes scans each row of the frontier. The rows of the columns with new labels are the
// next frontier.
#pragma once

#include "assignment/sparse/labels.cuh"
#include "frontier.cuh"

constexpr int kLongRow = 64;  // entries for each lane from which a warp scans the row

template <typename Cost>
struct Level {
  const Offers<Cost>& offers;
  Queue<Item> out;

  // Scan the rows of a frontier by groups of lanes. Returns the most rows of a group.
  __device__ int grow(const Item* frontier, int size) const {
    const Rows<Cost>& rows = offers.rows;
    const Group group = Group::of(lanes_for(size, thread_count(), min(2 * rows.lanes, 32)));
    const int slot = lane_index() / group.lanes, leader = lane_index() - group.member;
    for (long long base = group.index - slot; base < size; base += group.count) {
      const long long at = base + slot;
      Look<Cost> look = {-1, -1, 0, 0, 0};
      bool has_row = at < size;
      if (has_row) {
        const Item item = frontier[at];
        look = offers.look_at(row_of(item), col_of(item));
        if (group.member == 0) has_row = offers.is_taken(look.col);
      }
      if (!__shfl_sync(kWholeWarp, has_row, leader)) look.end = look.begin;
      const bool is_long = look.end - look.begin >= kLongRow * group.lanes;
      for (unsigned todo = __ballot_sync(kWholeWarp, is_long && group.member == 0); todo != 0;
           todo &= todo - 1) {
        offer_labels(look.of_lane(__ffs(todo) - 1), lane_index(), kWarp);
      }
      if (!is_long) offer_labels(look, group.member, group.lanes);
    }
    return static_cast<int>((size - 1) / group.count + 1);
  }

  // Offer labels to a lane's share of the columns of a row.
  __device__ void offer_labels(const Look<Cost>& from, int member, int lanes) const {
    for (long long k = from.begin + member; k < from.end; k += lanes) {
      const Entry<Cost> entry = Entry<Cost>::at(offers.rows, k, from.end);
      const Label label = offers.label(from, entry, offers.see(from, entry));
      if (!offers.improve(label)) continue;
      const unsigned long long before = offers.name(from.row, label, label.way);
      if (offers.leads_on(label) && offers.has_to_wait(label)) {
        push(out, item_of(label.mate, label.col));
      }
      offers.complete(from.row, label, before);
    }
  }
};
