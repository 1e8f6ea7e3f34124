// Growth of trees from a narrow frontier, without levels: each warp has its own pace.
//
// Paths are long, and frontiers mostly have few rows, so a barrier in each level would take most of
// the time. Each warp scans a row and offers labels to its columns. It continues with the row of
// one column that has taken its label, and puts the rows of the others into a queue, where idle
// warps wait for them. The growth ends when no label up to the bound can be improved, or when too
// many rows wait in the queue.
//
// To hide the latency of memory, independent loads are issued together. While labels are offered,
// the warp loads its next row. While the labels are completed, it loads the entries of that row.
// Items for the queue are held until the columns of these entries are being loaded.
#pragma once

#include "assignment/sparse/labels.cuh"

constexpr int kCrowd = 4;      // the growth ends if more rows than this for each warp wait
constexpr int kPatience = 16;  // looks of a warp between two checks whether all must stop

constexpr Item kNone = 0;  // no item
constexpr Item kStop = 1;  // no item: all warps must stop

__device__ inline int warp_count() { return thread_count() / static_cast<int>(kWarp); }

template <typename Cost>
struct Pace {
  const Offers<Cost>& offers;
  const Trees<Number<Cost>>& trees;
  const Item* frontier;
  int size;  // the size of the frontier
  int turn;
  int most;  // the most rows that a warp may scan

  __device__ void run() const {
    int looks = 0;
    for (int ticket = draw();; ticket = finish()) {
      const Item item = take(ticket);
      if (item == kStop) break;
      Item held = kNone;
      Look<Cost> look = offers.look_at(row_of(item), col_of(item));
      Entry<Cost> entry = entry_at(look, look.begin);
      bool goes_on = is_taken(look.col);
      while (goes_on) {
        if (look.col >= 0 && has_to_stop(looks)) {
          put_off(look.col);
          break;
        }
        goes_on = offer_labels(look, entry, held);
        if (++looks == most) stop_all();
      }
      put(held);
    }
    if (lane_index() == 0) atomicMax(trees.state->busiest + turn, looks);
  }

  // Draw the number of the warp's next item. Only the first lane has it.
  __device__ int draw() const {
    return lane_index() == 0 ? atomicAdd(trees.state->taken + turn, 1) : 0;
  }

  // Wait for the item of this number.
  __device__ Item take(int ticket) const {
    Item item = kNone;
    if (lane_index() == 0) {
      if (ticket < size) {
        item = frontier[ticket];
      } else {
        Item& place = place_of(ticket - size);
        while ((item = now(place)) == kNone) __nanosleep(20);
        set_now(place, kNone);
      }
    }
    return __shfl_sync(kWholeWarp, item, 0);
  }

  __device__ Item& place_of(unsigned number) const {
    return trees.queue[number % static_cast<unsigned>(trees.nplaces)];
  }

  __device__ bool is_taken(int col) const {
    const bool taken = lane_index() == 0 && offers.is_taken(col);
    return __shfl_sync(kWholeWarp, taken, 0);
  }

  // This lane's entry of those from `first` on.
  __device__ Entry<Cost> entry_at(const Look<Cost>& look, long long first) const {
    return Entry<Cost>::at(offers.rows, first + lane_index(), look.end);
  }

  // True if all warps must stop. It is checked every kPatience looks.
  __device__ bool has_to_stop(int looks) const {
    return looks % kPatience == 0 && __shfl_sync(kWholeWarp, now(trees.state->over[turn]), 0) != 0;
  }

  __device__ void stop_all() const {
    if (lane_index() == 0) set_now(trees.state->over[turn], 1);
  }

  // Mark a row for the next collection.
  __device__ void put_off(int col) const {
    if (lane_index() == 0) set_now(trees.waiting[col], 1);
  }

  // Offer labels to all columns of a row, whose first entries are loaded. True: `look` has the
  // warp's next row.
  __device__ bool offer_labels(Look<Cost>& look, Entry<Cost>& entry, Item& held) const {
    const Look<Cost> from = look;
    Entry<Cost> here = entry;
    bool goes_on = false;
    for (long long first = from.begin; first < from.end; first += kWarp) {
      const Sight<Cost> sight = offers.see(from, here);
      put(held);
      const Label label = offers.label(from, here, sight);
      bool leads_on = offers.leads_on(label);
      const bool is_open = !goes_on;
      if (is_open) goes_on = choose(label, leads_on, look);
      const bool is_better = offers.improve(label);
      leads_on = leads_on && is_better;
      if (is_open && goes_on) {
        // False if another row has offered a better label in between.
        const bool holds = __any_sync(kWholeWarp, leads_on && label.col == look.col);
        if (!holds) goes_on = choose(label, leads_on, look);
        if (goes_on) entry = entry_at(look, look.begin);
      }
      here = entry_at(from, first + kWarp);
      const bool has_to_follow = leads_on && !(goes_on && label.col == look.col);
      held = complete(from.row, label, is_better, has_to_follow);
    }
    return goes_on;
  }

  // Load the row of the first column whose label leads on. False: there is none.
  __device__ bool choose(const Label& label, bool leads_on, Look<Cost>& look) const {
    const unsigned lanes = __ballot_sync(kWholeWarp, leads_on);
    if (lanes == 0) return false;
    const int lane = __ffs(lanes) - 1;
    look = offers.look_at(__shfl_sync(kWholeWarp, label.mate, lane),
                          __shfl_sync(kWholeWarp, label.col, lane));
    return true;
  }

  // Complete a label if it is better. Returns the item of its row for the queue, unless the row
  // waits already.
  __device__ Item complete(int row, const Label& label, bool is_better, bool has_to_follow) const {
    if (!is_better) return kNone;
    const unsigned long long before = offers.name(row, label, label.way);
    const bool is_held = has_to_follow && offers.has_to_wait(label);
    offers.complete(row, label, before);
    return is_held ? item_of(label.mate, label.col) : kNone;
  }

  // Put the items that the lanes hold into the queue.
  __device__ void put(Item& held) const {
    const unsigned lanes = __ballot_sync(kWholeWarp, held != kNone);
    if (lanes == 0) return;
    unsigned long long moved = 0;
    if (lane_index() == 0) {
      const unsigned long long many = __popc(lanes);
      moved = atomicAdd(trees.state->moved + turn, many << 32);
    }
    moved = __shfl_sync(kWholeWarp, moved, 0);
    const unsigned number = moved >> 32, finished = static_cast<unsigned>(moved);
    if (static_cast<int>(number + size - finished) > kCrowd * warp_count()) stop_all();
    if (held != kNone) put_at(number + __popc(lanes & ((1u << lane_index()) - 1)), held);
    held = kNone;
  }

  // Put an item at its place. The place is empty unless the warp that takes its old item is slow.
  __device__ void put_at(unsigned number, Item item) const {
    while (atomicCAS(&place_of(number), kNone, item) != kNone) {
    }
  }

  // Count a finished item, and draw the next number. After the last item, all places are empty, and
  // each warp gets a kStop.
  __device__ int finish() const {
    unsigned long long moved = 0;
    if (lane_index() == 0) {
      __threadfence();  // the place of the finished item is empty before it is counted
      moved = atomicAdd(trees.state->moved + turn, 1ull);
    }
    const int ticket = draw();
    moved = __shfl_sync(kWholeWarp, moved, 0);
    const unsigned number = moved >> 32, finished = static_cast<unsigned>(moved) + 1;
    if (finished == number + size) {
      for (int k = lane_index(); k < warp_count(); k += kWarp) {
        set_now(place_of(number + k), kStop);
      }
    }
    return ticket;
  }
};
