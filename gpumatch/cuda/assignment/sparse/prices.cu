// Prices for sparse costs by an auction without rounds, and duals and pairs that fit them.
//
// In the auction a group of lanes bids for the best column of a row, as in Bertsekas's auction
// algorithm. The offer is one atomic operation. If it evicts another row, the group continues with
// that row, until an offer evicts none. So groups never wait for each other. A group may bid by
// prices that have changed since. Prices of columns only fall, so the bid is still within epsilon
// of the row's best (Bertsekas, Castanon, Parallel Computing 17, 1991).
//
// If there are more columns than rows, columns bid for rows in the same way after each auction, by the
// transposed costs. Otherwise the prices of columns that nobody wants later would stay low. The duals
// of rows and of columns are both levels: the least reduced cost of a vertex at the prices of the
// other side. A column bids no more at the level `outside`, where its dual is 0.
//
// A launch ends when `goal` of the rows that bid are served, because the last rows would take most
// of the time. It only finds prices, which need not be exact: afterwards each row's dual becomes
// its least reduced cost, and rows are matched to tight columns.
//
// Encodings
//   bidders[]   the rows that bid
//   chain       the rows of a group in order: each was evicted by the one before
#include "assignment/sparse/offers.cuh"
#include "assignment/sparse/rows.cuh"

// A row that bids, and the range of its entries.
struct Bidder {
  int row;  // -1: none
  long long begin;
  long long end;

  template <typename Cost>
  __device__ static Bidder at(const Rows<Cost>& rows, int row) {
    if (row < 0) return {-1, 0, 0};
    return {row, rows.indptr[row], rows.indptr[row + 1]};
  }
};

// The chains of the last rows are long, and each bid waits for memory several times. So independent
// loads are issued together: the row that an offer will probably evict with the offer, and the
// number of served rows with the entries.
template <typename Cost>
__global__ void hold_auction(Rows<Cost> rows, Terms t, double outside, const int* bidders,
                             int nbidders, unsigned long long* offers, int* served) {
  const Group group = Group::of(rows.lanes);
  const double infinity = far<double>();
  long long next = group.index;
  Bidder bidder = {-1, 0, 0};
  int chain = 0;
  while (true) {
    if (bidder.row < 0 && next < nbidders) {
      bidder = Bidder::at(rows, bidders[next]);
      next += group.count;
      chain = 0;
    }
    if (!__any_sync(kWholeWarp, bidder.row >= 0)) return;
    const int had = now(*served);
    Choice choice = {infinity, infinity, 0, -1};
#pragma unroll 4
    for (long long k = bidder.begin + group.member; k < bidder.end; k += group.lanes) {
      const int j = rows.indices[k];
      const unsigned long long offer = __ldcg(offers + j);
      const double cost = (static_cast<double>(rows.weights[k]) - t.low) * t.scale;
      choice.consider(cost + static_cast<double>(t.fallen(offer)), offer, j);
    }
    choice = choice_of_group(choice, group.lanes);
    if (__any_sync(kWholeWarp, had >= t.goal)) return;
    const Bidder likely = Bidder::at(rows, choice.col >= 0 ? t.row_of(choice.offer) : -1);
    int evicted = -1;
    if (bidder.row >= 0 && group.member == 0) {
      choice.second = fmin(choice.second, outside);
      const bool has_second = choice.second < infinity;
      const double lead = has_second ? choice.second - choice.least : static_cast<double>(t.jump);
      const long long fallen = t.fallen(choice.offer) + t.epsilon, room = t.most - fallen;
      if (choice.col < 0 || choice.least >= outside) {
        atomicAdd(served, 1);  // the row stays unmatched
      } else if (lead < static_cast<double>(room) && ++chain <= t.longest) {
        const unsigned long long offer =
            t.offer(fallen + static_cast<long long>(lead), bidder.row);
        const unsigned long long before = atomicMax(offers + choice.col, offer);
        evicted = before < offer ? t.row_of(before) : bidder.row;
        if (evicted < 0) atomicAdd(served, 1);
      }
    }
    evicted = __shfl_sync(kWholeWarp, evicted, lane_index() & ~(group.lanes - 1));
    if (evicted != bidder.row) {
      bidder = evicted == likely.row ? likely : Bidder::at(rows, evicted);
    }
  }
}

// The difference between the two least costs of every step-th row; not finite if it has fewer.
template <typename Cost>
__global__ void find_leads(Rows<Cost> rows, int step, double* leads) {
  const Group group = Group::of(rows.lanes);
  const double infinity = far<double>();
  for (long long first = group.index - lane_index() / group.lanes; first * step < rows.nrows;
       first += group.count) {
    const long long at = first + lane_index() / group.lanes, row = at * step;
    Choice choice = {infinity, infinity, 0, -1};
    if (row < rows.nrows) {
      for (long long k = rows.indptr[row] + group.member; k < rows.indptr[row + 1];
           k += group.lanes) {
        choice.consider(static_cast<double>(rows.weights[k]), 0, rows.indices[k]);
      }
    }
    choice = choice_of_group(choice, group.lanes);
    if (row < rows.nrows && group.member == 0) leads[at] = choice.second - choice.least;
  }
}

// The level of each row, in units: its least reduced cost at the offers of the columns; infinity if
// it has no columns.
template <typename Cost>
__global__ void find_levels(Rows<Cost> rows, Terms t, const unsigned long long* offers,
                            double* levels) {
  const Group group = Group::of(rows.lanes);
  for (long long first = group.index - lane_index() / group.lanes; first < rows.nrows;
       first += group.count) {
    const long long row = first + lane_index() / group.lanes;
    double least = far<double>();
    if (row < rows.nrows) {
      const long long end = rows.indptr[row + 1];
#pragma unroll 4
      for (long long k = rows.indptr[row] + group.member; k < end; k += group.lanes) {
        const double cost = (static_cast<double>(rows.weights[k]) - t.low) * t.scale;
        least = fmin(least, cost + static_cast<double>(t.fallen(offers[rows.indices[k]])));
      }
    }
    least = least_of_group(least, group.lanes);
    if (row < rows.nrows && group.member == 0) levels[row] = least;
  }
}

// Make offers that stand for levels, which fall from `top`, and for the holders of the vertices.
__global__ void offer_levels(const double* levels, int size, double top, int row_bits,
                             const int* holders, unsigned long long* offers) {
  for (int i = thread_index(); i < size; i += thread_count()) {
    const double fallen = levels[i] < top ? ceil(top - levels[i]) : 0.0;
    offers[i] = static_cast<unsigned long long>(fallen) << row_bits | (holders[i] + 1u);
  }
}

// Count the entries of each column.
template <typename Cost>
__global__ void count_entries(Rows<Cost> rows, unsigned long long* counts) {
  for (long long k = thread_index(); k < rows.indptr[rows.nrows]; k += thread_count()) {
    atomicAdd(counts + rows.indices[k], 1ull);
  }
}

// Transpose the costs. places[j] is the next free place of column j.
template <typename Cost>
__global__ void turn(Rows<Cost> rows, unsigned long long* places, int* indices, Cost* weights) {
  const Group group = Group::of(rows.lanes);
  for (long long row = group.index; row < rows.nrows; row += group.count) {
    for (long long k = rows.indptr[row] + group.member; k < rows.indptr[row + 1];
         k += group.lanes) {
      const unsigned long long place = atomicAdd(places + rows.indices[k], 1ull);
      indices[place] = static_cast<int>(row);
      weights[place] = rows.weights[k];
    }
  }
}

// Make offers at the duals of the columns, which are at most `top`, from the rows matched to them.
// The unmatched rows are the bidders.
template <typename Cost>
__global__ void offer_pairs(Rows<Cost> rows, const Number<Cost>* col_dual, Number<Cost> top,
                            double scale, int row_bits, const int* row_to_col,
                            const int* col_to_row, unsigned long long* offers, int* bidders,
                            int* nbidders) {
  for (int j = thread_index(); j < rows.ncols; j += thread_count()) {
    const double fallen = static_cast<double>(top - col_dual[j]) * scale;
    offers[j] = static_cast<unsigned long long>(fallen) << row_bits | (col_to_row[j] + 1u);
  }
  for (int row = thread_index(); row < rows.nrows; row += thread_count()) {
    if (row_to_col[row] < 0) push(Queue<int>{bidders, nbidders}, row);
  }
}

// -- feasible duals, and the first pairs ----------------------------------------------------------

// Lower a number to another. Positive doubles have the order of their bits as integers, negative
// ones the opposite order.
__device__ inline void lower(long long* number, long long to) { atomicMin(number, to); }
__device__ inline void lower(double* number, double to) {
  const long long bits = __double_as_longlong(to + 0.0);  // no -0.0
  if (bits >= 0) {
    atomicMin(reinterpret_cast<long long*>(number), bits);
  } else {
    atomicMax(reinterpret_cast<unsigned long long*>(number), static_cast<unsigned long long>(bits));
  }
}

// Lower the dual of each column, which is the greatest cost of all at first, to its least cost.
template <typename Cost>
__global__ void reduce_columns(Rows<Cost> rows, Number<Cost>* col_dual) {
  for (long long k = thread_index(); k < rows.indptr[rows.nrows]; k += thread_count()) {
    const Number<Cost> cost = counted(rows.weights[k], 0);
    if (cost < now(col_dual[rows.indices[k]])) lower(col_dual + rows.indices[k], cost);
  }
}

// The reduced cost of a pair, rounded to nearest.
struct Nearest {
  template <typename Dual>
  __device__ static Dual reduced(Dual cost, Dual col_dual) {
    return cost - col_dual;
  }
};

// The same, rounded down.
struct Below {
  template <typename Dual>
  __device__ static Dual reduced(Dual cost, Dual col_dual) {
    return difference_below(cost, col_dual);
  }
};

// The dual of each row: its least reduced cost, or 0 if it has no entries.
template <typename How, typename Cost>
__device__ void write_least(const Rows<Cost>& rows, const Number<Cost>* col_dual,
                            Number<Cost>* row_dual) {
  const Group group = Group::of(rows.lanes);
  for (long long first = group.index - lane_index() / group.lanes; first < rows.nrows;
       first += group.count) {
    const long long row = first + lane_index() / group.lanes;
    Number<Cost> least = far<Number<Cost>>();
    if (row < rows.nrows) {
      const long long end = rows.indptr[row + 1];
#pragma unroll 4
      for (long long k = rows.indptr[row] + group.member; k < end; k += group.lanes) {
        const Number<Cost> cost = counted(rows.weights[k], 0);
        const Number<Cost> here = How::reduced(cost, col_dual[rows.indices[k]]);
        if (here < least) least = here;
      }
    }
    least = least_of_group(least, group.lanes);
    if (row < rows.nrows && group.member == 0) {
      row_dual[row] = least < far<Number<Cost>>() ? least : 0;
    }
  }
}

template <typename Cost>
__global__ void reduce_rows(Rows<Cost> rows, const Number<Cost>* col_dual, Number<Cost>* row_dual) {
  write_least<Nearest>(rows, col_dual, row_dual);
}

// The same for the result, rounded down, so that no pair undercuts the duals.
template <typename Cost>
__global__ void write_fair_rows(Rows<Cost> rows, const Number<Cost>* col_dual,
                                Number<Cost>* row_dual) {
  write_least<Below>(rows, col_dual, row_dual);
}

// The bound of a computed slack whose exact value is 0.
__device__ inline long long rounding(long long, long long) { return 0; }
__device__ inline double rounding(double cost, double col_dual) {
  return 0x1p-50 * (fabs(cost) + fabs(col_dual));
}

// Keep the given pairs that are tight up to rounding. All columns are unmatched before.
template <typename Cost>
__global__ void take_tight_pairs(Rows<Cost> rows, const Number<Cost>* row_dual,
                                 const Number<Cost>* col_dual, const int* given, int* row_to_col,
                                 int* col_to_row) {
  for (int row = thread_index(); row < rows.nrows; row += thread_count()) {
    const int col = given[row];
    bool is_tight = false;
    if (col >= 0) {
      for (long long k = rows.indptr[row]; k < rows.indptr[row + 1]; ++k) {
        if (rows.indices[k] != col) continue;
        const Number<Cost> cost = counted(rows.weights[k], 0);
        is_tight = cost - col_dual[col] - row_dual[row] <= rounding(cost, col_dual[col]);
      }
    }
    row_to_col[row] = is_tight ? col : -1;
    if (is_tight) col_to_row[col] = row;
  }
}

// Match each unmatched row to an unmatched tight column, if it has one.
template <typename Cost>
__global__ void match_tight(Rows<Cost> rows, const Number<Cost>* row_dual,
                            const Number<Cost>* col_dual, int* row_to_col, int* col_to_row) {
  const Group group = Group::of(rows.lanes);
  const int base = lane_index() & ~(group.lanes - 1);
  const unsigned mask = (group.lanes < 32 ? (1u << group.lanes) - 1 : kWholeWarp) << base;
  for (long long first = group.index - lane_index() / group.lanes; first < rows.nrows;
       first += group.count) {
    const long long row = first + lane_index() / group.lanes;
    bool wants = row < rows.nrows && row_to_col[row] < 0;
    long long k = wants ? rows.indptr[row] + group.member : 0;
    const long long end = wants ? rows.indptr[row + 1] : 0;
    while (__any_sync(kWholeWarp, wants && k - group.member < end)) {
      const int col = wants && k < end ? rows.indices[k] : -1;
      const bool is_open = col >= 0 && now(col_to_row[col]) < 0 &&
                           counted(rows.weights[k], 0) - col_dual[col] <= row_dual[row];
      unsigned open = __ballot_sync(kWholeWarp, is_open) & mask;
      while (__any_sync(kWholeWarp, open != 0)) {
        const int chosen = open != 0 ? __ffs(open) - 1 : base;
        bool took = false;
        if (open != 0 && lane_index() == chosen) {
          took = atomicCAS(col_to_row + col, -1, static_cast<int>(row)) == -1;
          if (took) row_to_col[row] = col;
        }
        took = __shfl_sync(kWholeWarp, took, chosen);
        wants = wants && !took;
        open = took ? 0 : open & (open - 1);
      }
      k += group.lanes;
    }
  }
}

// The pairs with given columns, and the duals of these columns less the greatest one. If all rows
// are matched, unmatched columns get the dual 0.
template <typename Cost>
__global__ void write_back(const int* row_to_col, const int* col_to_row, const Cost* col_dual,
                           int nrows, int given, Cost top, int all_matched, int* own_col,
                           int* own_row, Cost* own_dual) {
  for (int i = thread_index(); i < nrows; i += thread_count()) {
    own_col[i] = row_to_col[i] < given ? row_to_col[i] : -1;
  }
  for (int j = thread_index(); j < given; j += thread_count()) {
    const int row = col_to_row[j];
    own_row[j] = row;
    own_dual[j] = all_matched && row < 0 ? 0 : col_dual[j] - top;
  }
}
