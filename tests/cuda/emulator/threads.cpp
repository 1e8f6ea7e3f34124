// The threads of a grid, one at a time, in an order drawn from a seed.
//
// Kernels are compiled with -fsanitize=thread. The compiler then puts a call before each access to
// memory. The functions that it calls are not the sanitizer's, but those at the end of this file:
// one time in `odds` they let another thread go on. So accesses of different threads come in any
// order that one memory allows. What caches may still hold is not shown.
//
// Threads that wait read memory again and again, but write nothing. So if there was no write for many
// turns, all wait for each other.

// Some compilers have jumps between stacks end the program, if this is not said.
#undef _FORTIFY_SOURCE

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <ucontext.h>
#include <vector>

#include "cuda.h"

namespace {

constexpr std::size_t kStack = 1 << 16;
constexpr unsigned long long kMostTurns = 1ull << 32;  // of a launch that ends
constexpr int kGarbage = 0xa5;  // what shared memory holds until it is written

struct Thread {
  unsigned block;
  unsigned index;
  bool has_begun = false;
  ucontext_t beginning;
  jmp_buf place;
  std::unique_ptr<char[]> stack{new char[kStack]};
};

struct Block {
  unsigned arrived = 0;
  unsigned generation = 0;
  int votes[2] = {0, 0};  // of a generation and the one before
};

struct Exchange {
  long long brought[32];
  unsigned present = 0;
  unsigned taken = 0;
  bool is_taking = false;
};

std::vector<std::unique_ptr<Thread>> threads;
std::vector<Thread*> live;
std::vector<Block> blocks;
Block everyone;
std::map<char*, std::size_t> shared;  // the copies of each variable, and the size of one
std::vector<std::map<unsigned, Exchange>> exchanges;  // of each warp, by mask
std::function<void()> body;
ucontext_t host;
Thread* self = nullptr;
unsigned random_state, odds;
unsigned first_block = 0, row_of_blocks = 0;
unsigned stay = 0;
unsigned long long patience;  // turns without a write after which all wait for each other
unsigned long long turns;     // since the last write
unsigned long long all_turns;

unsigned draw() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  return random_state ^= random_state << 5;
}

void go_on_with(Thread* next) {
  self = next;
  if (next->has_begun) _longjmp(next->place, 1);
  next->has_begun = true;
  setcontext(&next->beginning);
}

void run_thread() {
  body();
  for (Thread*& thread : live) {
    if (thread != self) continue;
    thread = live.back();
    live.pop_back();
    break;
  }
  if (live.empty()) {
    self = nullptr;
    setcontext(&host);
  }
  go_on_with(live[draw() % live.size()]);
}

}  // namespace

Size gridDim, blockDim;

Size own_thread() { return {self->index, 0}; }
Size own_block_index() { return {first_block + self->block, row_of_blocks}; }

extern "C" void begin_with_block(unsigned number) { first_block = number; }

// Rows of blocks are launched one after the other.
extern "C" void begin_with_row(unsigned number, unsigned rows) {
  row_of_blocks = number;
  gridDim.y = rows;
}

extern "C" void let_blocks_stay(unsigned turns) { stay = turns; }
extern "C" void let_threads_wait(unsigned long long turns) { patience = turns; }

void has_written() { turns = 0; }

void yield() {
  Thread* next = live[draw() % live.size()];
  if (stay != 0 && draw() % stay != 0) {  // one of the same block
    for (unsigned k = 0; k < 8 * gridDim.x && next->block != self->block; ++k) {
      next = live[draw() % live.size()];
    }
  }
  if (++turns > patience || ++all_turns > kMostTurns) {
    const bool is_deadlock = turns > patience;
    std::fputs(is_deadlock ? "the threads wait for each other\n" : "no end of a launch\n", stderr);
    std::abort();
  }
  if (next != self && _setjmp(self->place) == 0) go_on_with(next);
}

void may_yield() {
  if (self != nullptr && draw() % odds == 0) yield();
}

int count_in_block(bool vote) {
  Block& block = blocks[self->block];
  const unsigned generation = block.generation;
  block.votes[generation & 1] += vote;
  if (++block.arrived == blockDim.x) {
    block.arrived = 0;
    ++block.generation;
    block.votes[block.generation & 1] = 0;
  }
  while (block.generation == generation) yield();
  return block.votes[generation & 1];
}

void wait_for_all() {
  const unsigned generation = everyone.generation;
  if (++everyone.arrived == gridDim.x * blockDim.x) {
    everyone.arrived = 0;
    ++everyone.generation;
  }
  while (everyone.generation == generation) yield();
}

void keep_shared(void* all, std::size_t size) {
  if (shared.emplace(static_cast<char*>(all), size).second) {
    std::memset(all, kGarbage, kBlocks * size);
  }
}

void* shared_of_block(void* own, unsigned block) {
  auto it = shared.upper_bound(static_cast<char*>(own));
  --it;  // the last that begins before it
  const std::size_t offset = static_cast<char*>(own) - it->first;
  return it->first + (first_block + block) % kBlocks * it->second + offset % it->second;
}

void exchange(unsigned mask, long long own, long long* all) {
  const unsigned bit = 1u << self->index % 32;
  Exchange& it = exchanges[(self->block * blockDim.x + self->index) / 32][mask];
  while (it.is_taking) yield();  // the last one is not over
  it.brought[self->index % 32] = own;
  it.present |= bit;
  if (it.present == mask) it.is_taking = true;
  while (!it.is_taking) yield();
  std::copy(it.brought, it.brought + 32, all);
  it.taken |= bit;
  if (it.taken == mask) it = Exchange();
}

void launch(unsigned nblocks, unsigned nthreads, unsigned seed, unsigned chance,
            const std::function<void()>& kernel) {
  random_state = seed * 2654435761u | 1;
  odds = chance;
  turns = all_turns = 0;
  body = kernel;
  gridDim.x = nblocks;
  blockDim.x = nthreads;
  blocks.assign(nblocks, Block());
  everyone = Block();
  exchanges.assign((nblocks * nthreads + 31) / 32, {});
  for (const auto& [all, size] : shared) {  // nothing is left of the launch before
    for (unsigned b = 0; b < nblocks; ++b) {
      std::memset(all + (first_block + b) % kBlocks * size, kGarbage, size);
    }
  }
  live.clear();
  for (unsigned i = 0; i < nblocks * nthreads; ++i) {
    if (i == threads.size()) threads.emplace_back(new Thread);
    Thread& thread = *threads[i];
    thread.block = i / nthreads;
    thread.index = i % nthreads;
    thread.has_begun = false;
    getcontext(&thread.beginning);
    thread.beginning.uc_stack.ss_sp = thread.stack.get();
    thread.beginning.uc_stack.ss_size = kStack;
    makecontext(&thread.beginning, run_thread, 0);
    live.push_back(&thread);
  }
  volatile bool is_over = false;
  getcontext(&host);
  if (is_over) return;
  is_over = true;
  go_on_with(live[draw() % live.size()]);
}

// -- what the compiler calls ----------------------------------------------------------------------

void reads() { may_yield(); }
void writes() {
  may_yield();
  has_written();
}

#define ACCESS(name, does) \
  void __tsan_##name(void*) { does(); }
#define SIZES(name, does) \
  ACCESS(name##1, does)   \
  ACCESS(name##2, does) ACCESS(name##4, does) ACCESS(name##8, does) ACCESS(name##16, does)

extern "C" {
SIZES(read, reads)
SIZES(write, writes)
SIZES(volatile_read, reads)
SIZES(volatile_write, writes)
SIZES(unaligned_read, reads)
SIZES(unaligned_write, writes)
void __tsan_read_range(void*, unsigned long) { reads(); }
void __tsan_write_range(void*, unsigned long) { writes(); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}
