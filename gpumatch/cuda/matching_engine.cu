// The engine: maximum matching with the whole search on the device.
//
// A phase grows vertex-disjoint alternating trees from all free columns, level by level, until no
// tree grows any more, and then augments along one path in each tree that has reached a free row.
// A row belongs to the tree whose column claims it by compare-and-swap, and a tree ends its growth
// with the first free row it claims: so the paths of a phase share no vertex, and each is walked by
// one thread without conflict. When a phase augments nothing, the trees hold all that alternating
// paths reach from the free columns, and no free row among it: the matching is maximum (Berge).
//
// All of it runs in one kernel, whose blocks step together from barrier to barrier. What a step
// does is `stage`; a launch makes a bounded number of steps and leaves where it stands in state[],
// so that the host can look in between.
//
// Encodings
//   rows[r]         {mate: the row's column or -1; predecessor: the column that claimed it in this
//                   phase or -1}: one load tells both
//   col_to_row[c]   the column's row or -1
//   roots[p & 1][i] the i-th free column of phase p
//   end[i]          the free row that ends the path of the i-th tree, -1 while it has none
//   queue[s & 1]    the frontier of step s: a column and the index of its root
//   state[]         see `State`
#include "frontier.cuh"

struct __align__(8) Row {
  int mate;
  int predecessor;
};

struct __align__(8) Seed {
  int col;
  int root;
};

enum Stage { kCollect, kSeed, kGrow, kAugment, kDone };

// What is kept between launches, and what the host reads.
struct State {
  int stage;
  int step;      // counts barriers; chooses queue and counters
  int phase;
  int levels;    // of this phase so far
  int matched;
  int sizes[3];  // sizes[s % 3]: length of the queue that step s fills
  int nroots[2];
};

constexpr int kTraceLength = 4096;  // phases recorded: levels, paths found
constexpr int kSmall = 512;         // a frontier that one block expands alone

template <typename Offset>
struct Engine {
  const Offset* col_indptr;
  const int* col_indices;
  int nrows;
  int ncols;
  Row* rows;
  int* col_to_row;
  int* roots[2];
  int* end;
  Seed* queue[2];
  State* state;
  int* trace;
  unsigned* barrier;
};

template <typename Offset>
struct Grower {
  const Offset* col_indptr;
  const int* col_indices;
  Row* rows;
  int* end;
  Queue<Seed> out;

  __device__ Walk enter(Seed seed) const {
    if (*static_cast<volatile int*>(end + seed.root) != -1) return {};
    return {seed.col, seed.root, col_indices + col_indptr[seed.col],
            col_indices + col_indptr[seed.col + 1]};
  }

  __device__ void visit(int col, int root, int r) const {
    const long long both = *reinterpret_cast<volatile long long*>(rows + r);
    const int mate = static_cast<int>(both), predecessor = static_cast<int>(both >> 32);
    if (predecessor != -1) return;
    if (mate != -1) {
      if (atomicCAS(&rows[r].predecessor, -1, col) == -1) push(out, Seed{mate, root});
    } else if (*static_cast<volatile int*>(end + root) == -1 &&
               atomicCAS(&rows[r].predecessor, -1, col) == -1 &&
               atomicCAS(end + root, -1, r) != -1) {
      rows[r].predecessor = -1;  // the tree has its path already: leave the row to others
    }
  }
};

// Augment along the path that ends in row r.
__device__ inline void augment(Row* rows, int* col_to_row, int r) {
  while (r != -1) {
    const int col = rows[r].predecessor;
    const int next = col_to_row[col];
    col_to_row[col] = r;
    rows[r].mate = col;
    r = next;
  }
}

// Expand level after level with one block, from queue[step & 1] to queue[(step + 1) & 1].
template <typename Offset>
__device__ int grow_alone(const Engine<Offset>& e, int step, int size, int most, int* levels) {
  __shared__ int next_size[2];
  Grower<Offset> grower = {e.col_indptr, e.col_indices, e.rows, e.end, {}};
  int level = 0;
  while (true) {
    int* counter = next_size + (level & 1);
    if (threadIdx.x == 0) *counter = 0;
    __syncthreads();
    grower.out = {e.queue[(step + level + 1) & 1], counter};
    expand(own_block(), e.queue[(step + level) & 1], size, grower);
    __syncthreads();
    size = *counter;
    ++level;
    // An odd number of levels leaves the frontier where the next step looks for it.
    if ((level & 1) == 1 && (size == 0 || size > kSmall || level >= most)) break;
  }
  *levels = level;
  return size;
}

template <typename Offset>
__global__ void __launch_bounds__(512) matching_engine(Engine<Offset> e, int max_steps) {
  volatile State* state = e.state;
  int stage = state->stage, step = state->step, phase = state->phase;
  for (int done = 0; done < max_steps && stage != kDone; ++done, ++step) {
    int* filled = e.state->sizes + step % 3;
    int* current_roots = e.state->nroots + (phase & 1);
    int* next_roots = e.state->nroots + ((phase + 1) & 1);
    if (thread_index() == 0) e.state->sizes[(step + 1) % 3] = 0;
    switch (stage) {
      case kCollect:
        for (int c = thread_index(); c < e.ncols; c += thread_count()) {
          if (e.col_to_row[c] == -1) push(Queue<int>{e.roots[phase & 1], current_roots}, c);
        }
        grid_barrier(e.barrier);
        stage = kSeed;
        break;
      case kSeed: {
        const int nroots = *static_cast<volatile int*>(current_roots);
        for (int i = thread_index(); i < nroots; i += thread_count()) {
          e.end[i] = -1;
          e.queue[(step + 1) & 1][i] = {e.roots[phase & 1][i], i};
        }
        for (int r = thread_index(); r < e.nrows; r += thread_count()) e.rows[r].predecessor = -1;
        if (thread_index() == 0) {
          *filled = nroots;
          *next_roots = 0;
          state->levels = 0;
        }
        grid_barrier(e.barrier);
        stage = kGrow;
        break;
      }
      case kGrow: {
        const int size = *static_cast<volatile int*>(e.state->sizes + (step + 2) % 3);
        if (size == 0) {
          stage = kAugment;
          // Nothing was done: no block waits for another, and this step's counter stays 0.
          break;
        }
        if (size <= kSmall) {
          if (blockIdx.x == 0) {
            int levels;
            const int left = grow_alone(e, step, size, 64, &levels);
            if (threadIdx.x == 0) {
              *filled = left;
              state->levels += levels;
            }
          }
        } else {
          Grower<Offset> grower = {
              e.col_indptr, e.col_indices, e.rows, e.end, {e.queue[(step + 1) & 1], filled}};
          expand(whole_grid(), e.queue[step & 1], size, grower);
          if (thread_index() == 0) state->levels += 1;
        }
        grid_barrier(e.barrier);
        break;
      }
      case kAugment: {
        const int nroots = *static_cast<volatile int*>(current_roots);
        for (int i = thread_index(); i < nroots; i += thread_count()) {
          const int r = e.end[i];
          if (r != -1) {
            augment(e.rows, e.col_to_row, r);
          } else {
            push(Queue<int>{e.roots[(phase + 1) & 1], next_roots}, e.roots[phase & 1][i]);
          }
        }
        grid_barrier(e.barrier);
        const int found = nroots - *static_cast<volatile int*>(next_roots);
        if (thread_index() == 0) {
          state->matched += found;
          if (phase < kTraceLength) {
            e.trace[2 * phase] = state->levels;
            e.trace[2 * phase + 1] = found;
          }
        }
        ++phase;
        stage = found == 0 || found == nroots ? kDone : kSeed;
        break;
      }
    }
  }
  grid_barrier(e.barrier);  // every block has read the state
  if (thread_index() == 0) {
    state->stage = stage;
    state->step = step;
    state->phase = phase;
  }
}
