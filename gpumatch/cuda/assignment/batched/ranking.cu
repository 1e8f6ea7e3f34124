// The k cheapest assignments of each frame of a batch, a warp a frame: Murty's partition, best
// first, with Miller, Stone and Cox's inherited duals, as gpumatch/cpu/ranking has it.
//
// A frame has rows, which are the payers, and columns. One more column is the hub: a row takes it
// if it stays unmatched, and whoever takes an unmatched column goes by way of it. Its dual is 0.
//
// Encodings
//   costs[i, j]     cost of the pair; `far` if it is forbidden; costs[i, cols] what the row costs
//                   if it is unmatched
//   slots           assignments: `taken[i]` the column of a row, `cols` for none; duals u, v;
//                   `order` of the rows, `depth` of them fixed; `above`, `place`: the slot and the
//                   place in its order that it was made from; `total`; `state`
//   child_key[q]    bound of the child at place q of a slot, `far` if it is not to be solved;
//                   child_gain[q] the least cost of the last step of its path; best_child: the
//                   least bound
//   label[j]        distance of a column, final where `done[j]`; `lead[j]` the row that leads to it,
//                   kFromHub, or kNobody; `hub_by` the column by which the hub is reached
//   mate[j]         row of a column, kFree, kFixed
//   out             bits of excluded options, `words` of 32 a row
//   place_of[j]     place of the column's row; kLast if it is unmatched, -1 of a fixed row
//
// No more than k slots and a spare one are needed: of those that wait, the worst one gives way.

constexpr int kLanes = 32;
constexpr unsigned kWarp = 0xffffffffu;
constexpr int kFree = -1, kFixed = -2, kNobody = -1, kFromHub = -2, kLast = 1 << 30;

enum SlotState { kSpare, kReady, kTaken };

template <typename Number>
struct Frames {
  const Number* costs;
  Number far;
  int rows;
  int cols;
  int k;
  int words;
  Number* numbers;  // the workspace: for each frame `number_room` of these
  int* links;       //                and `link_room` of these
  long long number_room;
  long long link_room;
  Number* totals;  // [k] of each frame
  int* options;    // [k, rows]: the column of a row, -1 for none
  int* counts;     // how many there are
  int* paths;      // how many assignments were found
};

template <typename Number>
__device__ Number lesser(Number a, Number b) {
  return b < a ? b : a;
}

template <typename Number>
__device__ Number greater(Number a, Number b) {
  return a < b ? b : a;
}

template <typename Number>
struct Least {
  Number value;
  int at;
};

// The least value of all lanes, and where it is; of equal ones, the least place.
template <typename Number>
__device__ Least<Number> least_of(Least<Number> own) {
  for (int step = 16; step > 0; step /= 2) {
    const Number value = __shfl_xor_sync(kWarp, own.value, step);
    const int at = __shfl_xor_sync(kWarp, own.at, step);
    if (value < own.value || (value == own.value && at < own.at)) own = {value, at};
  }
  return own;
}

template <typename Number>
struct Search {
  const Frames<Number>& frames;
  const Number* costs;
  Number far;
  int lane, rows, cols, width;
  Number *u, *v, *child_key, *child_gain, *total, *best_child, *label, *price, *least, *gain,
      *column_gain;
  int *taken, *order, *depth, *above, *place, *state, *lead, *done, *mate, *is_fixed, *place_of,
      *sorted, *hub_by;
  unsigned* out;

  __device__ Search(const Frames<Number>& frames, int frame)
      : frames(frames), far(frames.far), lane(threadIdx.x), rows(frames.rows), cols(frames.cols),
        width(frames.cols + 1) {
    const int slots = frames.k + 1;
    costs = frames.costs + static_cast<long long>(frame) * rows * width;
    Number* number = frames.numbers + frame * frames.number_room;
    u = number;
    v = u + slots * rows;
    child_key = v + slots * cols;
    child_gain = child_key + slots * rows;
    total = child_gain + slots * rows;
    best_child = total + slots;
    label = best_child + slots;
    price = label + width;
    column_gain = price + width;
    least = column_gain + width;
    gain = least + rows;
    int* link = frames.links + frame * frames.link_room;
    taken = link;
    order = taken + slots * rows;
    depth = order + slots * rows;
    above = depth + slots;
    place = above + slots;
    state = place + slots;
    lead = state + slots;
    done = lead + width;
    mate = done + width;
    place_of = mate + width;
    is_fixed = place_of + width;
    sorted = is_fixed + rows;
    hub_by = sorted + rows;
    out = reinterpret_cast<unsigned*>(hub_by + 1);
  }

  __device__ Number cost(int row, int col) const { return costs[row * width + col]; }

  __device__ bool is_excluded(int row, int col) const {
    return out[row * frames.words + col / 32] >> (col % 32) & 1;
  }

  // Read the mates of a slot, and what its part excludes: from `parent` and `at` up.
  __device__ void enter(int slot, int parent, int at) {
    for (int col = lane; col < width; col += kLanes) {
      mate[col] = kFree;
      price[col] = col < cols ? v[slot * cols + col] : Number(0);
    }
    for (int word = lane; word < rows * frames.words; word += kLanes) out[word] = 0;
    __syncwarp();
    for (int q = lane; q < rows; q += kLanes) {
      const int row = order[slot * rows + q], col = taken[slot * rows + row];
      is_fixed[row] = q < depth[slot];
      if (col < cols) mate[col] = q < depth[slot] ? kFixed : row;
    }
    if (lane == 0) {
      for (; parent >= 0; at = place[parent], parent = above[parent]) {
        const int row = order[parent * rows + at], col = taken[parent * rows + row];
        out[row * frames.words + col / 32] |= 1u << (col % 32);
      }
    }
    __syncwarp();
  }

  // Offer a row's options from its distance. Nothing is of use from which the target is no nearer.
  __device__ void look(int slot, int row, Number front, int target, Number last) {
    const Number base = front - u[slot * rows + row], bar = label[target];
    Least<Number> hub = {far, width};
    __syncwarp();
    for (int col = lane; col < width; col += kLanes) {
      const Number paid = cost(row, col);
      if (!(paid < far) || done[col] || mate[col] == kFixed || is_excluded(row, col)) continue;
      const Number there = greater(base + paid - price[col], front);
      if (col == cols || (mate[col] == kFree && col != target)) {
        if (there < hub.value) hub = {there, col};
      } else if (there < label[col] && (col == target || there + last < bar)) {
        label[col] = there;
        lead[col] = row;
      }
    }
    if (__any_sync(kWarp, hub.at < width)) {
      hub = least_of(hub);
      const bool is_near = target == cols || hub.value + last < bar;
      if (lane == 0 && !done[cols] && hub.value < label[cols] && is_near) {
        label[cols] = hub.value;
        lead[cols] = row;
        *hub_by = hub.at;
      }
    }
    __syncwarp();
  }

  // Go on from the hub: columns give up their rows, unmatched rows may take a column.
  __device__ void leave_hub(int slot, int root, Number front, int target, Number last) {
    const Number bar = label[target];
    __syncwarp();
    for (int col = lane; col < cols; col += kLanes) {
      if (done[col] || (mate[col] < 0 && col != target)) continue;
      const Number there = greater(front - price[col], front);
      if (there < label[col] && (col == target || there + last < bar)) {
        label[col] = there;
        lead[col] = kFromHub;
      }
    }
    __syncwarp();
    for (int row = 0; row < rows; ++row) {
      if (taken[slot * rows + row] == cols && !is_fixed[row] && row != root) {
        look(slot, row, front, target, last);
      }
    }
  }

  // Give a row that has lost its option the best one, if that costs less than `most` more.
  __device__ bool find_path(int slot, int root, Number most, Number last) {
    const int target = taken[slot * rows + root];
    for (int col = lane; col < width; col += kLanes) {
      label[col] = col == target ? most : far;
      lead[col] = kNobody;
      done[col] = 0;
    }
    __syncwarp();
    if (lane == 0 && target < cols) mate[target] = kFree;
    __syncwarp();
    int row = root;
    Number front = 0;
    while (true) {
      if (row >= 0) {
        look(slot, row, front, target, last);
      } else {
        leave_hub(slot, root, front, target, last);
      }
      Least<Number> next = {far, width};
      for (int col = lane; col < width; col += kLanes) {
        if (!done[col] && lead[col] != kNobody && label[col] < next.value) {
          next = {label[col], col};
        }
      }
      next = least_of(next);
      if (next.at == width) return false;
      front = next.value;
      if (lane == 0) done[next.at] = 1;
      __syncwarp();
      if (next.at == target) break;
      row = next.at < cols ? mate[next.at] : -1;
    }
    change_duals(slot, root, target, front, last);
    if (lane == 0) follow(slot, root, target);
    __syncwarp();
    return true;
  }

  // The hub keeps its dual of 0, so all others move against it.
  __device__ void change_duals(int slot, int root, int target, Number end, Number last) {
    const Number near = end - last;
    const Number hub = done[cols] ? lesser(label[cols], near) : near;
    for (int col = lane; col < cols; col += kLanes) {
      const int row = mate[col];
      if (row < 0) continue;
      const Number shift = (done[col] ? lesser(label[col], near) : near) - hub;
      v[slot * cols + col] += shift;
      u[slot * rows + row] -= shift;
    }
    __syncwarp();
    if (lane == 0) {
      if (target < cols) v[slot * cols + target] += end - hub;
      u[slot * rows + root] += hub;
    }
    __syncwarp();
  }

  // Change the pairs along the path, from its end on.
  __device__ void follow(int slot, int root, int target) {
    int col = target;
    while (true) {
      const int row = lead[col];
      if (row == kFromHub) {
        mate[col] = kFree;
        col = cols;
        continue;
      }
      const int before = taken[slot * rows + row];
      const int now = col == cols ? *hub_by : col;
      taken[slot * rows + row] = now;
      if (now < cols) mate[now] = row;
      if (row == root) return;
      col = before;
    }
  }

  // What a slot's assignment costs, as a compensated sum (Neumaier).
  __device__ Number total_of(int slot) const {
    Number sum = 0, lost = 0;
    for (int row = 0; row < rows; ++row) {
      const Number term = cost(row, taken[slot * rows + row]), more = sum + term;
      const bool is_larger = greater(sum, -sum) >= greater(term, -term);
      lost += is_larger ? (sum - more) + term : (term - more) + sum;
      sum = more;
    }
    return sum + lost;
  }

  // Match all rows in slot 0; false if there is no assignment.
  __device__ bool solve_root() {
    for (int col = lane; col < width; col += kLanes) {
      mate[col] = kFree;
      price[col] = 0;
      if (col < cols) v[col] = 0;
    }
    for (int word = lane; word < rows * frames.words; word += kLanes) out[word] = 0;
    for (int row = lane; row < rows; row += kLanes) {
      taken[row] = cols;
      order[row] = row;
      is_fixed[row] = 1;
    }
    if (lane == 0) {
      depth[0] = 0;
      above[0] = place[0] = -1;
    }
    __syncwarp();
    for (int row = 0; row < rows; ++row) {
      Least<Number> best = {far, width};
      for (int col = lane; col < width; col += kLanes) {
        const Number paid = cost(row, col);
        if (!(paid < far)) continue;
        const Number slack = paid - (col < cols ? v[col] : Number(0));
        if (slack < best.value) best = {slack, col};
      }
      best = least_of(best);
      if (best.at == width) return false;
      if (lane == 0) u[row] = best.value;
      __syncwarp();
      if (!find_path(0, row, far, Number(0))) return false;
      for (int col = lane; col < cols; col += kLanes) price[col] = v[col];
      __syncwarp();
    }
    return true;
  }

  // Divide the part of a slot: order its free rows, and bound its children.
  __device__ void divide(int slot, Number most) {
    enter(slot, above[slot], place[slot]);
    sort_rows(slot);
    const int first = depth[slot];
    int has_hub = 0;
    for (int col = lane; col < width; col += kLanes) {
      place_of[col] = mate[col] == kFree ? kLast : -1;
      column_gain[col] = far;
      has_hub |= col < cols && mate[col] == kFree;
    }
    __syncwarp();
    for (int q = first + lane; q < rows; q += kLanes) {
      const int row = order[slot * rows + q], col = taken[slot * rows + row];
      if (col < cols) place_of[col] = q;
      has_hub |= cost(row, cols) < far;
    }
    has_hub = __any_sync(kWarp, has_hub != 0);
    __syncwarp();
    for (int q = first; q < rows; ++q) find_gain(slot, q);
    Number best = far;
    for (int q = lane; q < rows; q += kLanes) {
      Number key = far, own = 0;
      if (q >= first) {
        const int col = taken[slot * rows + order[slot * rows + q]];
        if (col < cols) {
          own = column_gain[col];
          if (has_hub) own = lesser(own, -price[col]);
        }
        if (own < far && gain[q] < far) key = total[slot] + gain[q] + own;
        if (!(key < most)) key = far;
      }
      child_key[slot * rows + q] = key;
      child_gain[slot * rows + q] = own;
      best = lesser(best, key);
    }
    best = least_of(Least<Number>{best, 0}).value;
    if (lane == 0) best_child[slot] = best;
    __syncwarp();
  }

  // The least slack of the row at a place, and what it adds to the columns of rows before it.
  __device__ void find_gain(int slot, int q) {
    const int row = order[slot * rows + q], own = taken[slot * rows + row];
    const Number dual = u[slot * rows + row];
    Number best = far;
    for (int col = lane; col < width; col += kLanes) {
      const Number paid = cost(row, col);
      if (!(paid < far) || col == own || is_excluded(row, col)) continue;
      const int where = col == cols ? kLast : place_of[col];
      if (where < 0) continue;
      const Number slack = greater(paid - dual - price[col], Number(0));
      if (where > q) {
        best = lesser(best, slack);
      } else {
        column_gain[col] = lesser(column_gain[col], slack);
      }
    }
    best = least_of(Least<Number>{best, 0}).value;
    if (lane == 0) gain[q] = best;
    __syncwarp();
  }

  // Sort the free rows by the least slack of their other options, greatest first.
  __device__ void sort_rows(int slot) {
    const int first = depth[slot];
    for (int q = first; q < rows; ++q) {
      const int row = order[slot * rows + q], own = taken[slot * rows + row];
      Number best = far;
      for (int col = lane; col < width; col += kLanes) {
        const Number paid = cost(row, col);
        if (!(paid < far) || col == own || is_excluded(row, col)) continue;
        if (col < cols && mate[col] == kFixed) continue;
        best = lesser(best, paid - u[slot * rows + row] - price[col]);
      }
      best = least_of(Least<Number>{best, 0}).value;
      if (lane == 0) least[q] = best;
    }
    __syncwarp();
    for (int q = first + lane; q < rows; q += kLanes) {
      int before = first;
      for (int p = first; p < rows; ++p) {
        before += least[p] > least[q] || (least[p] == least[q] && p < q);
      }
      sorted[before] = order[slot * rows + q];
    }
    __syncwarp();
    for (int q = first + lane; q < rows; q += kLanes) order[slot * rows + q] = sorted[q];
    __syncwarp();
  }

  // Find the best assignment of the child at place q of a slot, if it costs less than `most`.
  __device__ bool solve_child(int parent, int q, int slot, Number most) {
    for (int row = lane; row < rows; row += kLanes) {
      taken[slot * rows + row] = taken[parent * rows + row];
      u[slot * rows + row] = u[parent * rows + row];
      order[slot * rows + row] = order[parent * rows + row];
    }
    for (int col = lane; col < cols; col += kLanes) {
      v[slot * cols + col] = v[parent * cols + col];
    }
    if (lane == 0) {
      depth[slot] = place[slot] = q;
      above[slot] = parent;
    }
    __syncwarp();
    enter(slot, parent, q);
    const Number reach = most < far ? most - total[parent] : far;
    return find_path(slot, order[slot * rows + q], reach, child_gain[parent * rows + q]);
  }

  // The slot of a state with the least total; the greatest if `sign` is -1.
  __device__ Least<Number> extreme(int slots, int wanted, int sign) const {
    Least<Number> own = {far, slots};
    for (int slot = lane; slot < slots; slot += kLanes) {
      if (state[slot] == wanted && (own.at == slots || sign * total[slot] < own.value)) {
        own = {sign * total[slot], slot};
      }
    }
    return least_of(own);
  }

  // The divided slot whose children have the least bound.
  __device__ Least<Number> nearest_parent(int slots) const {
    Least<Number> own = {far, slots};
    for (int slot = lane; slot < slots; slot += kLanes) {
      if (state[slot] == kTaken && best_child[slot] < own.value) own = {best_child[slot], slot};
    }
    return least_of(own);
  }

  // Take the child with the least bound from a slot.
  __device__ int take_child(int slot) {
    Least<Number> first = {far, rows};
    for (int q = lane; q < rows; q += kLanes) {
      if (child_key[slot * rows + q] < first.value) first = {child_key[slot * rows + q], q};
    }
    first = least_of(first);
    __syncwarp();
    if (lane == 0) child_key[slot * rows + first.at] = far;
    __syncwarp();
    Number best = far;
    for (int q = lane; q < rows; q += kLanes) best = lesser(best, child_key[slot * rows + q]);
    best = least_of(Least<Number>{best, 0}).value;
    if (lane == 0) best_child[slot] = best;
    __syncwarp();
    return first.at;
  }

  __device__ void write(int frame, int number, int slot) {
    const long long at = static_cast<long long>(frame) * frames.k + number;
    if (lane == 0) frames.totals[at] = total[slot];
    for (int row = lane; row < rows; row += kLanes) {
      const int col = taken[slot * rows + row];
      frames.options[at * rows + row] = col < cols ? col : -1;
    }
  }
};

template <typename Number>
__global__ void rank_frames(Frames<Number> frames) {
  const int frame = blockIdx.x, slots = frames.k + 1;
  Search<Number> search(frames, frame);
  const int lane = search.lane;
  for (int slot = lane; slot < slots; slot += kLanes) search.state[slot] = kSpare;
  __syncwarp();
  int found = 0, held = 0, spare = 0, paths = 1;
  Number most = frames.far;
  bool has_new = search.solve_root();
  while (found < frames.k) {
    if (has_new) {  // in the spare slot
      const Number total = search.total_of(spare);
      if (lane == 0) {
        search.total[spare] = total;
        search.state[spare] = kReady;
      }
      __syncwarp();
      ++held;
      if (held > frames.k) {
        spare = search.extreme(slots, kReady, -1).at;
        if (lane == 0) search.state[spare] = kSpare;
        __syncwarp();
        --held;
      } else {
        spare = held;
      }
      if (held == frames.k) {
        const Least<Number> worst = search.extreme(slots, kReady, -1);
        if (worst.at < slots) most = -worst.value;
      }
    }
    const Least<Number> ready = search.extreme(slots, kReady, 1);
    const Least<Number> waiting = search.nearest_parent(slots);
    const bool is_ready = ready.at < slots;
    has_new = false;
    if (waiting.at < slots && waiting.value < most && (!is_ready || waiting.value < ready.value)) {
      const int place = search.take_child(waiting.at);
      has_new = search.solve_child(waiting.at, place, spare, most);
      ++paths;
    } else if (is_ready) {
      search.write(frame, found, ready.at);
      if (lane == 0) search.state[ready.at] = kTaken;
      __syncwarp();
      ++found;
      if (found < frames.k) search.divide(ready.at, most);
    } else {
      break;
    }
  }
  if (lane == 0) {
    frames.counts[frame] = found;
    frames.paths[frame] = paths;
  }
}
