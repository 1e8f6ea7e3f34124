// Deep Greedy Switching: its two sides, the differences of exchanges, and each vertex's best
// exchange.
//
// In an exchange, vertex v of one side takes vertex `wanted` of the other. Then wanted's mate, the
// loser, takes v's mate. The difference is the amount by which that lowers the total cost. The
// evaluation finds each vertex's best exchange. Agents and jobs are the two sides of one problem,
// and every function here works for both.
//
// Encodings
//   costs[v * others + w]   cost of vertex v with w of the other side; infinity, or the greatest
//                           64-bit integer, forbids the pair. The other side has the transpose.
//   mate[v]                 the mate of vertex v; -1: unmatched
//   paid[v]                 the cost of v's pair; `idle` if v is unmatched
//   idle                    the cost of an unmatched vertex; far() if all must be matched
//   gain[v], choice[v]      v's best exchange at its last evaluation: its gain, 0 for none; and the
//                           vertex that v takes, -1: v drops its mate
#pragma once

#include "grid.cuh"
#include "numbers.cuh"

constexpr int kTile = 16;       // the paper's t (docs/reproduction/roverso2010.md)
constexpr int kBatch = 8;       // loads in flight of a thread; not measured
constexpr int kMostWarps = 32;  // the most warps of a block in CUDA

template <typename Cost>
struct Side {
  const Cost* costs;
  int size;
  int others;
  int* mate;
  Number<Cost>* paid;
  Number<Cost>* gain;
  int* choice;
  Number<Cost> idle;

  __device__ const Cost* row(int vertex) const {
    return costs + static_cast<long long>(vertex) * others;
  }
  __device__ Number<Cost> cost(int vertex, int other) const { return row(vertex)[other]; }
};

// The arguments of an evaluation other than the sides.
template <typename Cost>
struct Evaluation {
  Number<Cost>* differences;  // of all exchanges, for kByTile: [wanted * size + place in the list]
  int room;                   // the number of costs that fit into a block's shared memory
  int serves_mates;           // 1 if a vertex writes its mate's exchange too
  unsigned* barrier;          // the grid's barrier
};

// The gain if pairs of costs `paid` and `also_paid` become pairs of costs `cost` and `rest`; 0 if
// one of these is forbidden.
template <typename Cost>
__device__ Number<Cost> saving(Number<Cost> paid, Number<Cost> also_paid, Number<Cost> cost,
                               Number<Cost> rest) {
  const Number<Cost> beyond = far<Number<Cost>>();
  return cost >= beyond || rest >= beyond ? 0 : paid + also_paid - (cost + rest);
}

// The gain if a vertex drops its mate.
template <typename Cost>
__device__ Number<Cost> saving_without(const Side<Cost>& own, const Side<Cost>& other, int vertex) {
  if (own.mate[vertex] < 0) return 0;
  return saving<Cost>(own.paid[vertex], 0, own.idle, other.idle);
}

// The cost of the two vertices that an exchange parts from their mates: `loser`, and `mate` of the
// other side. If both exist, it is the cost of their pair.
template <typename Cost>
__device__ Number<Cost> rest_of(const Side<Cost>& own, const Side<Cost>& other, int mate, int loser,
                                Number<Cost> together) {
  if (loser < 0) return mate < 0 ? 0 : other.idle;
  return mate < 0 ? own.idle : together;
}

// -- evaluation -----------------------------------------------------------------------------------

// The best exchange found; of equal ones, that of the lowest choice.
template <typename Cost>
struct Best {
  Number<Cost> gain;
  int choice;

  __device__ void offer(Number<Cost> other_gain, int other_choice) {
    if (other_gain > gain || (other_gain == gain && other_choice < choice)) {
      gain = other_gain;
      choice = other_choice;
    }
  }

  // Combine the best of neighbouring lanes.
  __device__ void share_among(int lanes) {
    for (int step = lanes / 2; step > 0; step /= 2) {
      const Number<Cost> other_gain = __shfl_xor_sync(kWholeWarp, gain, step);
      offer(other_gain, __shfl_xor_sync(kWholeWarp, choice, step));
    }
  }

  // Write the exchange of a vertex. If all are matched, its mate has the same exchanges: the mate
  // takes the loser.
  __device__ void write(const Side<Cost>& own, const Side<Cost>& other, int vertex,
                        const Evaluation<Cost>& evaluation) const {
    own.gain[vertex] = gain;
    own.choice[vertex] = choice;
    if (evaluation.serves_mates) {
      other.gain[own.mate[vertex]] = gain;
      other.choice[own.mate[vertex]] = choice < 0 ? -1 : other.mate[choice];
    }
  }
};

// The exchange in which a vertex drops its mate, before others are compared with it.
template <typename Cost>
__device__ Best<Cost> best_without(const Side<Cost>& own, const Side<Cost>& other, int vertex) {
  return {max(saving_without(own, other, vertex), Number<Cost>(0)), -1};
}

// Section V.A: a thread a vertex, all data in global memory. The paper does not say how its matrix
// is laid out. Here both evaluations read costs from the other side's matrix, so that neighbouring
// threads read neighbouring costs.
template <typename Cost>
__device__ void evaluate_by_thread(const Side<Cost>& own, const Side<Cost>& other, const int* list,
                                   int size, const Evaluation<Cost>& evaluation) {
  for (int at = thread_index(); at < size; at += thread_count()) {
    const int vertex = list[at];
    const int mate = own.mate[vertex];
    const Number<Cost> paid = own.paid[vertex];
    Best<Cost> best = best_without(own, other, vertex);
    for (int first = 0; first < own.others; first += kBatch) {
      Cost cost[kBatch], together[kBatch];
      int loser[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int wanted = min(first + k, own.others - 1);  // the last one may come more than once
        cost[k] = other.row(wanted)[vertex];
        loser[k] = other.mate[wanted];
        together[k] = own.row(max(loser[k], 0))[max(mate, 0)];
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int wanted = min(first + k, own.others - 1);
        const Number<Cost> rest = rest_of<Cost>(own, other, mate, loser[k], together[k]);
        best.offer(saving<Cost>(paid, other.paid[wanted], cost[k], rest), wanted);
      }
    }
    best.write(own, other, vertex, evaluation);
  }
}

// Section V.B: a thread an exchange, in blocks of 16 × 16, with the common data of a tile in shared
// memory. Each thread stores its difference in a matrix. Then a thread for each vertex finds its
// best exchange. This is the paper's second kernel, here behind a barrier. In both, neighbouring
// threads have neighbouring vertices, whose costs and differences lie side by side.
template <typename Cost>
__device__ void evaluate_by_tile(const Side<Cost>& own, const Side<Cost>& other, const int* list,
                                 int size, const Evaluation<Cost>& evaluation) {
  __shared__ int tile_vertex[kTile], tile_mate[kTile], tile_loser[kTile];
  __shared__ Number<Cost> tile_paid[kTile], tile_also_paid[kTile];
  const long long bands = (size + kTile - 1) / kTile, tiles = (own.others + kTile - 1) / kTile;
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  for (long long tile = blockIdx.x; tile < bands * tiles; tile += gridDim.x) {
    const int at = static_cast<int>(tile % bands) * kTile + x;
    const int wanted = static_cast<int>(tile / bands) * kTile + y;
    __syncthreads();
    if (y == 0 && at < size) {
      const int vertex = list[at];
      tile_vertex[x] = vertex;
      tile_mate[x] = own.mate[vertex];
      tile_paid[x] = own.paid[vertex];
    }
    if (x == 0 && wanted < own.others) {
      tile_loser[y] = other.mate[wanted];
      tile_also_paid[y] = other.paid[wanted];
    }
    __syncthreads();
    if (at >= size || wanted >= own.others) continue;
    const Number<Cost> cost = other.cost(wanted, tile_vertex[x]);
    const Number<Cost> together = own.cost(max(tile_loser[y], 0), max(tile_mate[x], 0));
    const Number<Cost> rest = rest_of(own, other, tile_mate[x], tile_loser[y], together);
    evaluation.differences[static_cast<long long>(wanted) * size + at] =
        saving<Cost>(tile_paid[x], tile_also_paid[y], cost, rest);
  }
  grid_barrier(evaluation.barrier);
  for (int at = thread_index(); at < size; at += thread_count()) {
    Best<Cost> best = best_without(own, other, list[at]);
    for (int first = 0; first < own.others; first += kBatch) {
      Number<Cost> difference[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const long long wanted = min(first + k, own.others - 1);  // the last one more than once
        difference[k] = evaluation.differences[wanted * size + at];
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) best.offer(difference[k], min(first + k, own.others - 1));
    }
    best.write(own, other, list[at], evaluation);
  }
  grid_barrier(evaluation.barrier);  // all have read the matrix, which the other side overwrites
}

template <typename Cost>
__device__ void share_in_block(Best<Cost>* best) {
  __shared__ Best<Cost> of_warp[kMostWarps];
  best->share_among(kWarp);
  if (lane_index() == 0) of_warp[threadIdx.x / kWarp] = *best;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < static_cast<int>(blockDim.x / kWarp); ++w) {
      best->offer(of_warp[w].gain, of_warp[w].choice);
    }
  }
}

template <typename Cost>
__device__ void copy_to_block(const Cost* from, int length, Cost* to) {
  for (int first = threadIdx.x; first < length; first += kBatch * blockDim.x) {
    Cost value[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      value[k] = from[min(static_cast<int>(first + k * blockDim.x), length - 1)];
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      to[min(static_cast<int>(first + k * blockDim.x), length - 1)] = value[k];
    }
  }
}

// Not in the paper: a block a vertex. In all exchanges of a vertex, the loser gets the same mate:
// the vertex's own. The block copies that mate's costs into shared memory, if they fit. So all
// reads from global memory are of neighbours.
template <typename Cost>
__device__ void evaluate_by_block(const Side<Cost>& own, const Side<Cost>& other, const int* list,
                                  int size, const Evaluation<Cost>& evaluation) {
  extern __shared__ __align__(16) unsigned char block_memory[];
  Cost* const copy = reinterpret_cast<Cost*>(block_memory);
  for (int at = blockIdx.x; at < size; at += gridDim.x) {
    const int vertex = list[at];
    const int mate = own.mate[vertex];
    const Cost* of_mate = other.row(max(mate, 0));
    if (own.size <= evaluation.room) {
      copy_to_block(of_mate, own.size, copy);
      of_mate = copy;
      __syncthreads();
    }
    const Cost* const costs = own.row(vertex);
    const Number<Cost> paid = own.paid[vertex];
    Best<Cost> best = best_without(own, other, vertex);
    for (int first = threadIdx.x; first < own.others; first += kBatch * blockDim.x) {
      Cost cost[kBatch];
      Number<Cost> also_paid[kBatch];
      int loser[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int wanted = min(static_cast<int>(first + k * blockDim.x), own.others - 1);
        cost[k] = costs[wanted];
        loser[k] = other.mate[wanted];
        also_paid[k] = other.paid[wanted];
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int wanted = min(static_cast<int>(first + k * blockDim.x), own.others - 1);
        const Number<Cost> together = of_mate[max(loser[k], 0)];
        const Number<Cost> rest = rest_of(own, other, mate, loser[k], together);
        best.offer(saving<Cost>(paid, also_paid[k], cost[k], rest), wanted);
      }
    }
    share_in_block(&best);
    if (threadIdx.x == 0) best.write(own, other, vertex, evaluation);
    __syncthreads();
  }
}

enum Form { kByThread, kByTile, kByBlock };

// ADE of the listed agents, or JDE of the listed jobs.
template <typename Cost, int kForm>
__device__ void evaluate_listed(const Side<Cost>& own, const Side<Cost>& other, const int* list,
                                int size, const Evaluation<Cost>& evaluation) {
  if constexpr (kForm == kByThread) evaluate_by_thread(own, other, list, size, evaluation);
  if constexpr (kForm == kByTile) evaluate_by_tile(own, other, list, size, evaluation);
  if constexpr (kForm == kByBlock) evaluate_by_block(own, other, list, size, evaluation);
}

// -- exchanges ------------------------------------------------------------------------------------

// The vertices whose mates an exchange changes; -1 for none.
struct Exchange {
  int vertex, wanted;  // `vertex` is of the own side, `wanted` of the other
  int mate, loser;     // `mate` is of the other side, `loser` of the own
};

template <typename Cost>
__device__ Exchange exchange_of(const Side<Cost>& own, const Side<Cost>& other, int vertex) {
  const int wanted = own.choice[vertex];
  return {vertex, wanted, own.mate[vertex], wanted < 0 ? -1 : other.mate[wanted]};
}

// The current gain of the exchange.
template <typename Cost>
__device__ Number<Cost> difference(const Side<Cost>& own, const Side<Cost>& other, Exchange p) {
  if (p.wanted < 0) return saving_without(own, other, p.vertex);
  const Number<Cost> together = own.cost(max(p.loser, 0), max(p.mate, 0));
  const Number<Cost> rest = rest_of(own, other, p.mate, p.loser, together);
  return saving<Cost>(own.paid[p.vertex], other.paid[p.wanted], own.cost(p.vertex, p.wanted), rest);
}

template <typename Cost>
__device__ void join(const Side<Cost>& own, const Side<Cost>& other, int vertex, int mate) {
  own.mate[vertex] = mate;
  other.mate[mate] = vertex;
  own.paid[vertex] = other.paid[mate] = own.cost(vertex, mate);
}

template <typename Cost>
__device__ void leave(const Side<Cost>& side, int vertex) {
  side.mate[vertex] = -1;
  side.paid[vertex] = side.idle;
}

template <typename Cost>
__device__ void exchange(const Side<Cost>& own, const Side<Cost>& other, Exchange p) {
  if (p.wanted >= 0) {
    join(own, other, p.vertex, p.wanted);
  } else {
    leave(own, p.vertex);
  }
  if (p.mate >= 0 && p.loser >= 0) {
    join(own, other, p.loser, p.mate);
  } else if (p.mate >= 0) {
    leave(other, p.mate);
  } else if (p.loser >= 0) {
    leave(own, p.loser);
  }
}
