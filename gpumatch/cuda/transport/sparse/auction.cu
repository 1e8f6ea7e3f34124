// An auction of lots: rows bid for units of columns, all rows at once, with an epsilon.
//
// A row with units to ship bids for its cheapest column: up to what its second cheapest one costs,
// and epsilon more. All units of one row in one column are a lot, and its offer is the greatest bid
// for it. A column with more units than it takes gives back those of the lowest offers. Then it is
// full, and its price is the lowest offer that it keeps. Prices only rise within a phase, so a lot
// costs its row at most epsilon more than any other column would. Any number of units moves at
// once, and the masses do not matter. (Bertsekas, Castanon, Annals of Operations Research 20, 1989:
// similar persons and objects, in rounds of bids.)
//
// The entries of a network are changed by one thread at a time: those of a row while rows bid, those
// of a column while columns settle, with a barrier between.
//
// Encodings
//   price[j]      what a unit of column j costs, beside the cost of the pair; none is NaN
//   offers[t]     the offer of the lot at place t; it counts only while the lot has units
//   bidders[r & 1]   the rows that bid in round r, each with units to ship and with an entry
//   full          the columns that a round has filled, or more than that
//   stamp[j]      the last round in which column j became one of these, and 1
#include "transport/sparse/network.cuh"

struct State {
  int nbidders[2];
  int nfull[2];
  int round;
};

struct Auction {
  double* price;
  double* offers;
  const long long* demand;
  int* bidders[2];
  int* full;
  int* stamp;
  double epsilon;
  double jump;  // what a row bids that has one column only
  State* state;
  unsigned* barrier;
};

// The least of some numbers, the second least, and where the least is; -1 if there is none.
struct Cheapest {
  double least;
  double second;
  long long entry;

  __device__ static Cheapest none() { return {far<double>(), far<double>(), -1}; }

  __device__ void consider(double cost, long long k) {
    if (cost < least) {
      second = least;
      least = cost;
      entry = k;
    } else if (cost < second) {
      second = cost;
    }
  }
};

// The cheapest of all lanes of a group. All lanes of the warp take part.
__device__ inline Cheapest of_group(Cheapest own, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    const double least = __shfl_xor_sync(kWholeWarp, own.least, step);
    const double second = __shfl_xor_sync(kWholeWarp, own.second, step);
    const long long entry = __shfl_xor_sync(kWholeWarp, own.entry, step);
    const bool is_less = least < own.least || (least == own.least && entry > own.entry);
    const double beaten = is_less ? own.least : least;
    own.second = fmin(fmin(own.second, second), beaten);
    if (is_less) own = {least, own.second, entry};
  }
  return own;
}

// The cheapest entries of a row at the prices, by its group of lanes.
template <typename Cost>
__device__ Cheapest cheapest_of(const Network<Cost>& net, const double* price, int row,
                                const Group& group) {
  Cheapest own = Cheapest::none();
  if (row >= 0) {
    const long long end = net.indptr[row + 1];
#pragma unroll 4
    for (long long k = net.indptr[row] + group.member; k < end; k += group.lanes) {
      own.consider(static_cast<double>(net.costs[k]) + price[net.indices[k]], k);
    }
  }
  return of_group(own, group.lanes);
}

// What the second cheapest entry of every step-th row costs more than the cheapest one; not finite
// if it has fewer.
template <typename Cost>
__global__ void find_savings(Network<Cost> net, const double* price, int nrows, int step,
                             double* savings) {
  const Group group = Group::of(net.lanes);
  for (long long first = group.index - lane_index() / group.lanes; first * step < nrows;
       first += group.count) {
    const long long at = first + lane_index() / group.lanes, row = at * step;
    const Cheapest best = cheapest_of(net, price, row < nrows ? static_cast<int>(row) : -1, group);
    if (row < nrows && group.member == 0) savings[at] = best.second - best.least;
  }
}

// Begin a phase: end the flow of pairs that cost a row more than epsilon too much. Others become
// lots with the greatest offer that is allowed. Rows with units to ship are the first bidders.
template <typename Cost>
__global__ void begin_phase(Network<Cost> net, Auction a, int nrows) {
  const Group group = Group::of(net.lanes);
  const int turn = now(a.state->round) & 1;
  for (long long first = group.index - lane_index() / group.lanes; first < nrows;
       first += group.count) {
    const long long at = first + lane_index() / group.lanes;
    const int row = at < nrows ? static_cast<int>(at) : -1;
    const Cheapest best = cheapest_of(net, a.price, row, group);
    long long freed = 0;
    if (row >= 0) {
      for (long long k = net.indptr[row] + group.member; k < net.indptr[row + 1];
           k += group.lanes) {
        const long long t = net.places[k], units = net.flow[t];
        if (units == 0) continue;
        const int j = net.indices[k];
        const double cost = static_cast<double>(net.costs[k]);
        if (cost + a.price[j] - best.least > a.epsilon) {
          net.flow[t] = 0;
          freed += units;
          add_units(net.room + j, units);
        } else {
          a.offers[t] = best.least - cost + a.epsilon;
        }
      }
    }
    for (int step = group.lanes / 2; step > 0; step /= 2) {
      freed += __shfl_xor_sync(kWholeWarp, freed, step);
    }
    if (row >= 0 && group.member == 0) {
      const long long excess = net.excess[row] + freed;
      net.excess[row] = excess;
      if (excess > 0 && best.entry >= 0) {
        push(Queue<int>{a.bidders[turn], a.state->nbidders + turn}, row);
      }
    }
  }
}

// A round's first half: each bidder bids with all its units.
template <typename Cost>
__device__ void bid(const Network<Cost>& net, const Auction& a, int round, int count) {
  const int turn = round & 1;
  const bool is_narrow = static_cast<long long>(count) * kWarp <= thread_count();
  const Group group = Group::of(is_narrow ? kWarp : net.lanes);
  for (long long first = group.index - lane_index() / group.lanes; first < count;
       first += group.count) {
    const long long at = first + lane_index() / group.lanes;
    const int row = at < count ? a.bidders[turn][at] : -1;
    const Cheapest best = cheapest_of(net, a.price, row, group);
    if (row < 0 || group.member != 0) continue;
    const int j = net.indices[best.entry];
    const long long t = net.places[best.entry], had = net.excess[row];
    const long long units = min(had, a.demand[j]);
    const double lead = best.second < far<double>() ? best.second - best.least : a.jump;
    const double offer = a.price[j] + lead + a.epsilon;
    a.offers[t] = net.flow[t] > 0 ? fmax(a.offers[t], offer) : offer;
    net.flow[t] += units;
    net.excess[row] = had - units;
    if (had > units) push(Queue<int>{a.bidders[turn ^ 1], a.state->nbidders + (turn ^ 1)}, row);
    const bool is_full = add_units(net.room + j, -units) <= units;
    if (is_full && atomicExch(a.stamp + j, round + 1) != round + 1) {
      push(Queue<int>{a.full, a.state->nfull + turn}, j);
    }
  }
}

// Its second half: each column gives back what it cannot take, and gets its price.
template <typename Cost>
__device__ void settle(const Network<Cost>& net, const Auction& a, int round) {
  const int turn = round & 1, count = now(a.state->nfull[turn]);
  const Group warp = Group::of(kWarp);
  const Queue<int> bidders = {a.bidders[turn ^ 1], a.state->nbidders + (turn ^ 1)};
  for (long long at = warp.index; at < count; at += warp.count) {
    const int j = a.full[at];
    long long over = -now(net.room[j]);
    const long long begin = net.colptr[j], end = net.colptr[j + 1];
    while (true) {
      Cheapest own = Cheapest::none();
      for (long long t = begin + warp.member; t < end; t += kWarp) {
        if (net.flow[t] > 0) own.consider(a.offers[t], t);
      }
      own = of_group(own, kWarp);
      if (over <= 0) {
        if (warp.member == 0) a.price[j] = fmax(a.price[j], own.least);
        break;
      }
      const long long units = min(over, net.flow[own.entry]);
      over -= units;
      __syncwarp();
      if (warp.member == 0) {
        net.flow[own.entry] -= units;
        const int row = net.owners[own.entry];
        if (add_units(net.excess + row, units) == 0) push(bidders, row);
      }
      __syncwarp();
    }
    if (warp.member == 0) net.room[j] = 0;
  }
}

// Hold rounds until at most `few` rows bid, or for `most` rounds.
template <typename Cost>
__global__ void hold_rounds(Network<Cost> net, Auction a, int few, int most) {
  int round = now(a.state->round);
  for (const int last = round + most; round < last; ++round) {
    const int turn = round & 1, count = now(a.state->nbidders[turn]);
    if (count <= few) break;
    if (thread_index() == 0) a.state->nfull[turn ^ 1] = 0;
    bid(net, a, round, count);
    grid_barrier(a.barrier);
    if (thread_index() == 0) a.state->nbidders[turn] = 0;
    settle(net, a, round);
    grid_barrier(a.barrier);
  }
  if (thread_index() == 0) a.state->round = round;
}
