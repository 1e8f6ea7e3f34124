// The threads of a grid, one at a time, in an order drawn from a seed.
//
// Kernels are compiled with -fsanitize=thread. The compiler then puts a call before each access to
// memory. The functions that it calls are not the sanitizer's, but those at the end of this file:
// one time in `odds` they let another thread go on. So accesses of different threads come in any
// order that one memory allows. What caches may still hold is not shown.
//
// A thread that waits at a barrier, for its warp or for mail gets no turn until it may go on. If
// nobody may, all wait for each other. Threads that wait for memory read it again and again, but
// write nothing. So if there was no write for many turns, all wait for each other as well.
//
// If `hold` is set, one warp at a time is held back: what wakes its threads gives them no turn until
// no other thread may go on, or until `hold` turns are over. So the others do all that they may do
// without that warp, as when they write to memory that it has still to read.

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
constexpr int kGarbage = 0xa5;  // what shared memory holds until it is written

struct Thread {
  unsigned block;
  unsigned index;
  unsigned number;         // among those that may have a turn
  bool has_begun = false;  // in this launch or in one before
  ucontext_t beginning;
  void* place[5];  // of __builtin_setjmp, which saves neither signals nor registers
  std::unique_ptr<char[]> stack{new char[kStack]};
};

using Waiting = std::vector<Thread*>;

struct Barrier {
  unsigned arrived = 0;
  unsigned generation = 0;
  int votes[2] = {0, 0};  // of a generation and the one before
  Waiting waiting;
};

struct Exchange {
  long long brought[32];
  unsigned present = 0;
  unsigned taken = 0;
  bool is_taking = false;
  Waiting waiting;  // for all lanes to come, or for the exchange before this one to be over
};

std::vector<std::unique_ptr<Thread>> threads;
std::vector<Thread*> live;  // those that may have a turn
std::vector<Thread*> late;  // those that might, but are held back
unsigned begun;             // those that have not ended
std::vector<Barrier> blocks;
Barrier everyone;
std::map<char*, std::size_t> shared;  // the copies of each variable, and the size of one
std::vector<std::map<unsigned, Exchange>> exchanges;  // of each warp, by mask
std::map<void*, Waiting> without_mail;                // by the mail that they wait for
std::function<void()> body;
void* host[5];
Thread* self = nullptr;
unsigned random_state, odds;
unsigned first_block = 0, row_of_blocks = 0;
unsigned stay = 0;
unsigned hold = 0;       // turns
unsigned held_warp = 0;  // of all warps of the launch
unsigned held_for = 0;   // turns
unsigned long long patience;  // turns without a write after which all wait for each other
unsigned long long most_turns;  // of a launch that ends
unsigned long long turns;     // since the last write
unsigned long long all_turns;

unsigned draw() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  return random_state ^= random_state << 5;
}

[[noreturn]] void abort_because(const char* why) {
  std::fputs(why, stderr);
  std::abort();
}

// Neither of the two is inlined, because no function may jump to a place of its own.
[[gnu::noinline]] void go_on_with(Thread* next) {
  self = next;
  if (next->has_begun) __builtin_longjmp(next->place, 1);
  next->has_begun = true;
  setcontext(&next->beginning);
}

[[gnu::noinline]] void go_on_with_host() {
  self = nullptr;
  __builtin_longjmp(host, 1);
}

Thread* any() { return live[draw() % static_cast<unsigned>(live.size())]; }

unsigned warp_of(const Thread& thread) { return (thread.block * blockDim.x + thread.index) / 32; }

void come(Thread* thread) {
  if (hold != 0 && warp_of(*thread) == held_warp) {
    late.push_back(thread);
    return;
  }
  thread->number = live.size();
  live.push_back(thread);
}

// Let the threads that are held back go on, and hold another warp back when it wakes.
void release() {
  for (Thread* thread : late) {
    thread->number = live.size();
    live.push_back(thread);
  }
  late.clear();
  held_for = 0;
  held_warp = draw() % ((gridDim.x * blockDim.x + 31) / 32);
}

// Another thread goes on; this one has no turn until it comes again.
void leave() {
  live[self->number] = live.back();
  live[self->number]->number = self->number;
  live.pop_back();
  if (__builtin_setjmp(self->place) != 0) return;
  if (begun == 0) go_on_with_host();
  if (live.empty()) release();
  if (live.empty()) abort_because("the threads wait for each other\n");
  go_on_with(any());
}

void wait_in(Waiting& waiting) {
  waiting.push_back(self);
  leave();
}

void let_go_on(Waiting& waiting) {
  for (Thread* thread : waiting) come(thread);
  waiting.clear();
}

// The sum of the votes of all that arrive.
int wait_at(Barrier& barrier, unsigned all, bool vote) {
  const unsigned generation = barrier.generation;
  barrier.votes[generation & 1] += vote;
  if (++barrier.arrived == all) {
    barrier.arrived = 0;
    ++barrier.generation;
    barrier.votes[barrier.generation & 1] = 0;
    let_go_on(barrier.waiting);
  } else {
    wait_in(barrier.waiting);
  }
  return barrier.votes[generation & 1];
}

void run_thread() {
  for (;;) {  // each time for a launch
    body();
    --begun;
    leave();
  }
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
extern "C" void hold_warps_back(unsigned turns) { hold = turns; }
extern "C" void let_threads_wait(unsigned long long turns) { patience = turns; }
extern "C" void let_launches_last(unsigned long long turns) { most_turns = turns; }

void has_written() { turns = 0; }

void yield() {
  if (!late.empty() && ++held_for > hold) release();
  Thread* next = any();
  if (stay != 0 && draw() % stay != 0) {  // one of the same block
    for (unsigned k = 0; k < 8 * gridDim.x && next->block != self->block; ++k) next = any();
  }
  if (++turns > patience) abort_because("the threads wait for each other\n");
  if (++all_turns > most_turns) abort_because("no end of a launch\n");
  if (next != self && __builtin_setjmp(self->place) == 0) go_on_with(next);
}

void may_yield() {
  if (self != nullptr && draw() % odds == 0) yield();
}

int count_in_block(bool vote) { return wait_at(blocks[self->block], blockDim.x, vote); }
void wait_for_all() { wait_at(everyone, gridDim.x * blockDim.x, false); }

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
  while (it.is_taking) wait_in(it.waiting);  // the last one is not over
  it.brought[self->index % 32] = own;
  it.present |= bit;
  if (it.present == mask) {
    it.is_taking = true;
    let_go_on(it.waiting);
  }
  while (!it.is_taking) wait_in(it.waiting);
  std::copy(it.brought, it.brought + 32, all);
  it.taken |= bit;
  if (it.taken == mask) {
    it.present = it.taken = 0;
    it.is_taking = false;
    let_go_on(it.waiting);
  }
}

void wait_for_next(void* mail) { wait_in(without_mail[mail]); }
void has_come(void* mail) { let_go_on(without_mail[mail]); }

void launch(unsigned nblocks, unsigned nthreads, unsigned seed, unsigned chance,
            const std::function<void()>& kernel) {
  random_state = seed * 2654435761u | 1;
  odds = chance;
  turns = all_turns = 0;
  body = kernel;
  gridDim.x = nblocks;
  blockDim.x = nthreads;
  blocks.assign(nblocks, Barrier());
  everyone = Barrier();
  exchanges.assign((nblocks * nthreads + 31) / 32, {});
  without_mail.clear();
  for (const auto& [all, size] : shared) {  // nothing is left of the launch before
    for (unsigned b = 0; b < nblocks; ++b) {
      std::memset(all + (first_block + b) % kBlocks * size, kGarbage, size);
    }
  }
  live.clear();
  late.clear();
  held_for = 0;
  held_warp = hold == 0 ? 0 : draw() % ((nblocks * nthreads + 31) / 32);
  begun = nblocks * nthreads;
  for (unsigned i = 0; i < begun; ++i) {
    if (i == threads.size()) {
      threads.emplace_back(new Thread);
      Thread& made = *threads[i];
      getcontext(&made.beginning);
      made.beginning.uc_stack.ss_sp = made.stack.get();
      made.beginning.uc_stack.ss_size = kStack;
      makecontext(&made.beginning, run_thread, 0);
    }
    Thread& thread = *threads[i];
    thread.block = i / nthreads;
    thread.index = i % nthreads;
    come(&thread);
  }
  if (live.empty()) release();
  if (__builtin_setjmp(host) == 0) go_on_with(any());
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
