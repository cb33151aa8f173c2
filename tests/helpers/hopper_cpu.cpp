// What hopper_cpu.h declares: a block of Hopper on a CPU.
//
// The threads of a block are fibers of one thread of the machine, each runs until it must wait; blocks run one after another. Copies and products are
// under way until somebody waits for them, and the copy engine and the tensor cores act at the worst time for a kernel that does not wait:
//   seed 0      only when every fiber waits, in the order of issue; the first warp that can go on does;
//   odd seeds   only when every fiber waits, in an order that the seed draws; so it does the warps that go first;
//   even seeds  at any time, drawn too.
// What is under way is poisoned from its issue on, with NaNs: the box that a copy writes, the sums of a product. A product reads shared memory when
// it is done, so that a slot released too early spoils it. When all wait and nothing is under way, that is told with where they wait.
// Not emulated: fences between proxies (the kernels write shared memory by copies alone), clusters, what instructions cost.
// Layouts are the PTX ISA's; of swizzles the one of 128 bytes, which XORs address bits 4 to 6 with bits 7 to 9.
#undef _FORTIFY_SOURCE  // its longjmp refuses to leave one stack for another
#include "hopper_cpu.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <string>
#include <vector>

extern "C" {
__attribute__((aligned(1024))) thread_local char storage[227 * 1024];
}

namespace hopper {

// Shared memory by emulated address: a kilobyte of the system's, the block's static variables, and `storage`, which a kernel has to align itself.
constexpr u32 STATIC_AT = 1024, STATIC_BYTES = 1024, DYNAMIC_AT = STATIC_AT + STATIC_BYTES + 512;

Index thread, block, grid, threads;

struct Fiber;
using Queue = std::vector<Fiber*>;

struct Fiber {
    ucontext_t begin;
    jmp_buf at;
    bool started, done;
    const char* what;  // it waits for, with two numbers to say
    u32 which, more;
    int registers;
};

struct Barrier {  // mbarrier: its phase ends when no arrival and no byte is missing
    int count, missing;
    long long bytes;
    u32 phase;
    bool visible;
    Queue queue;
};

struct Meeting {  // a barrier by number
    int threads, here;
    u64 round;
    std::vector<bool> came;
    Queue queue;
};

struct Warp {  // lanes of one round may read while those of the next write
    u64 values[2][32];
    int here;
    u32 kind;
    u64 round;
    Queue queue;
};

struct Map {  // what 128 bytes of a TensorMap hold here; hopper_cpu.py writes it
    const char* base;
    u32 element, rank;
    u64 sizes[4], strides[4];  // strides in bytes
    u32 box[4];
};

struct Copy {
    u32 to, barrier;
    Map map;
    int at[4];  // its first element
};

struct Product {
    Shape of;
    int issued;  // by how many threads
    void* sums[128];
    u32 registers[128][4];
};

struct Sums {
    void* at;
    u64 last;  // product
    std::vector<u32> values;
};

struct Member {  // a thread of a warpgroup
    u64 issued, committed;
    bool fenced;
    std::vector<Sums> sums;   // of products under way: the values aside
    std::vector<Sums> known;  // all so far, as the last fence saw them
};

struct Warpgroup {
    std::deque<Product> products;  // from number `done` on
    u64 done, wanted;
    std::vector<u64> ends;  // of committed groups
    Member members[128];
    Queue queue;
};

static Launch launched;
static std::string message;
static std::vector<Fiber> fibers;
static char* stacks;
static size_t stacks_size;
static std::vector<Warp> warps;
static std::vector<Warpgroup> warpgroups;
static std::map<u32, Barrier> barriers;
static Meeting meetings[16];
static std::vector<Copy> copies;
static std::vector<Queue> ready;     // of each warp
static std::vector<u32> precedence;  // of each warp
static Fiber* self;
static jmp_buf scheduler, failed;
static const char* statics;  // the first static variable that was asked for
static void (*body)(void*);
static void* argument;
static u64 drawn;

constexpr size_t STACK = 128 * 1024;
constexpr u32 POISON = 0xFFA5A5A5u;  // no small integer, and a signalling NaN: what is computed from it has other bits

static std::string formatted(const char* format, ...) {
    char text[512];
    va_list more;
    va_start(more, format);
    vsnprintf(text, sizeof text, format, more);
    va_end(more);
    return text;
}

void fail(const char* format, ...) {
    char text[4096];
    va_list more;
    va_start(more, format);
    vsnprintf(text, sizeof text, format, more);
    va_end(more);
    message = formatted("block %u, thread %u: ", block.x, thread.x) + text;
    _longjmp(failed, 1);
}

static u32 draw(size_t below) {
    drawn = drawn * 6364136223846793005ull + 1442695040888963407ull;
    return (u32)((drawn >> 33) % below);
}

// ---- fibers ---------------------------------------------------------------------------------------------------------------------------------------

static __attribute__((noinline)) void yield() {
    if (!_setjmp(self->at)) _longjmp(scheduler, 1);
}

static void fiber_main() {
    body(argument);
    self->done = true;
    yield();
}

static __attribute__((noinline)) void resume(Fiber* fiber) {
    self = fiber;
    thread.x = (u32)(fiber - fibers.data());
    if (_setjmp(scheduler)) return;
    if (fiber->started) _longjmp(fiber->at, 1);
    fiber->started = true;
    setcontext(&fiber->begin);
}

static void wake(Queue& queue) {
    for (Fiber* fiber : queue) ready[(fiber - fibers.data()) / 32].push_back(fiber);
    queue.clear();
}

template <class Over>
static void wait_until(Queue& queue, const char* what, u32 which, u32 more, Over over) {
    while (!over()) {
        self->what = what, self->which = which, self->more = more;
        queue.push_back(self);
        yield();
    }
}

// ---- barriers -------------------------------------------------------------------------------------------------------------------------------------

static Barrier& barrier_at(u32 address) {
    const auto found = barriers.find(address);
    if (found == barriers.end()) fail("address %u has no barrier", address);
    if (!found->second.visible) fail("barrier %u is used before the fence after its beginning", address);
    return found->second;
}

void init_barrier(u32 address, u32 count) {
    if (address % 8) fail("a barrier at no multiple of 8 bytes");
    barriers[address] = {(int)count, (int)count, 0, 0, false, {}};
}

void show_barriers() {
    for (auto& [address, barrier] : barriers) barrier.visible = true;
}

static void end_phase_if_complete(Barrier& barrier) {
    if (barrier.missing || barrier.bytes) return;
    ++barrier.phase;
    barrier.missing = barrier.count;
    wake(barrier.queue);
}

void arrive(u32 address, u32 bytes) {
    Barrier& barrier = barrier_at(address);
    if (!barrier.missing) fail("more than %d arrivals at barrier %u", barrier.count, address);
    barrier.bytes += bytes;
    --barrier.missing;
    end_phase_if_complete(barrier);
}

static void complete(u32 address, u32 bytes) {
    Barrier& barrier = barrier_at(address);
    barrier.bytes -= bytes;
    if (barrier.bytes < 0) fail("barrier %u got %lld bytes more than it expects", address, -barrier.bytes);
    end_phase_if_complete(barrier);
}

bool wait_for_barrier(u32 address, u32 parity) {  // until the phase of that parity is over
    Barrier& barrier = barrier_at(address);
    wait_until(barrier.queue, "barrier %u, parity %u", address, parity, [&] { return (barrier.phase & 1) != parity; });
    return true;
}

static Meeting& meeting_of(int number) {
    if (number < 0 || number > 15) fail("a barrier of number %d", number);
    return meetings[number];
}

u64 pass(int number, int threads) {
    Meeting& meeting = meeting_of(number);
    if (threads <= 0 || threads % 32) fail("a barrier by number for %d threads", threads);
    if (meeting.here && meeting.threads != threads) fail("barrier number %d for %d and for %d threads", number, meeting.threads, threads);
    if (!meeting.here) meeting.came.assign(launched.threads, false);
    if (meeting.came[thread.x]) fail("comes twice to barrier number %d before the others", number);
    meeting.came[thread.x] = true;
    meeting.threads = threads;
    const u64 round = meeting.round;
    if (++meeting.here == threads) {
        meeting.here = 0;
        ++meeting.round;
        wake(meeting.queue);
    }
    return round;
}

void meet(int number, int threads) {
    Meeting& meeting = meeting_of(number);
    const u64 round = pass(number, threads);
    wait_until(meeting.queue, "barrier number %u, for %u threads", number, threads, [&] { return meeting.round != round; });
}

u64 exchange(u32 kind, u64 value, u32 source) {
    Warp& warp = warps[thread.x / 32];
    if (warp.here && warp.kind != kind) fail("lanes of one warp are at different warp operations");
    warp.kind = kind;
    const u64 round = warp.round;
    warp.values[round % 2][thread.x % 32] = value;
    if (++warp.here == 32) {
        warp.here = 0;
        ++warp.round;
        wake(warp.queue);
    }
    wait_until(warp.queue, "a warp operation of warp %u (kind %u)", thread.x / 32, kind, [&] { return warp.round != round; });
    return warp.values[round % 2][source];
}

// ---- shared memory and copies ---------------------------------------------------------------------------------------------------------------------

u32 shared_address(const void* p) {
    const char* at = (const char*)p;
    if (at >= storage && at < storage + sizeof storage) return DYNAMIC_AT + (u32)(at - storage);
    if (!statics) statics = at;
    if (at < statics || at >= statics + STATIC_BYTES) fail("static variables that lie too far apart");
    return STATIC_AT + (u32)(at - statics);
}

static char* shared_at(u32 address, u32 bytes) {
    if (address < DYNAMIC_AT || address + bytes > DYNAMIC_AT + launched.shared)
        fail("shared address %u is outside of %u to %u", address, DYNAMIC_AT, DYNAMIC_AT + launched.shared);
    return storage + (address - DYNAMIC_AT);
}

static u32 swizzled(u32 address) { return address ^ (address >> 7 & 7) << 4; }

static u32 box_rows(const Map& map) { return map.box[1] * map.box[2] * map.box[3]; }

static void check(const Copy& copy) {
    const Map& map = copy.map;
    const u32 inner = map.box[0] * map.element;
    if (inner != 128) fail("a box of rows of %u bytes with the swizzle of 128", inner);
    if (copy.to % 1024) fail("a box goes to %u, no multiple of 1,024", copy.to);
    if ((u64)map.base % 16) fail("a tensor that begins at no multiple of 16 bytes");
    for (u32 i = 0; i < map.rank; ++i) {
        if (!map.box[i] || map.box[i] > 256) fail("a box of %u along dimension %u", map.box[i], i);
        if (i && map.strides[i] % 16) fail("a stride of %llu bytes", map.strides[i]);
    }
}

void copy_box(u32 to, const void* map, std::initializer_list<int> at, u32 barrier) {
    Copy copy = {to, barrier};
    memcpy(&copy.map, map, sizeof copy.map);
    std::copy(at.begin(), at.end(), copy.at);
    if (copy.map.rank != at.size()) fail("a copy of %zu dimensions of a tensor of %u", at.size(), copy.map.rank);
    check(copy);
    barrier_at(copy.barrier);
    memset(shared_at(copy.to, 128 * box_rows(copy.map)), 0xFF, 128 * box_rows(copy.map));
    copies.push_back(copy);
}

// Where a row of the box begins in memory, or null where it lies outside.
static const char* row_of(const Copy& copy, u32 row) {
    const Map& map = copy.map;
    const char* from = map.base;
    for (int i = 1; i < 4; ++i) {
        const long long at = copy.at[i] + (long long)(row % map.box[i]);
        row /= map.box[i];
        if (at < 0 || at >= (long long)map.sizes[i]) return nullptr;
        from += at * (long long)map.strides[i];
    }
    return from;
}

static void deliver(const Copy& copy) {
    const Map& map = copy.map;
    for (u32 row = 0; row < box_rows(map); ++row) {
        const char* from = row_of(copy, row);
        for (u32 i = 0; i < map.box[0]; ++i) {
            const long long at = copy.at[0] + (long long)i;
            char* to = shared_at(swizzled(copy.to + 128 * row + i * map.element), map.element);
            if (from && at >= 0 && at < (long long)map.sizes[0])
                memcpy(to, from + at * map.element, map.element);
            else
                memset(to, 0, map.element);
        }
    }
    complete(copy.barrier, 128 * box_rows(map));
}

// ---- products -------------------------------------------------------------------------------------------------------------------------------------

static float widened(u32 bits) {
    if (!launched.half) return of_the_bits<float>(bits << 16);
    const u32 rest = (bits & 0x7FFF) << 13, sign = (bits & 0x8000) << 16;
    const float size = (bits & 0x7C00) == 0x7C00 ? of_the_bits<float>(rest | 0x7F800000) : of_the_bits<float>(rest) * 0x1p112f;
    return of_the_bits<float>(of_the_bits<u32>(size) | sign);
}

static u32 narrowed(float x) {  // to the nearest, ties to even
    const u32 bits = of_the_bits<u32>(x), size = bits & 0x7FFFFFFF, sign = bits >> 16 & 0x8000;
    if (size > 0x7F800000) return 0x7FFF;
    if (!launched.half) return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    if (of_the_bits<float>(size) >= 65520.0f) return sign | 0x7C00;
    if (of_the_bits<float>(size) < 0x1p-14f) return sign | (u32)std::nearbyint(of_the_bits<float>(size) * 0x1p24f);
    return sign | ((size + 0xFFF + (size >> 13 & 1)) >> 13) - (112 << 10);
}

u32 packed(float low, float high) { return narrowed(low) | narrowed(high) << 16; }

struct Matrix {  // a descriptor's fields, in bytes
    u32 start, leading, stride;
};

static Matrix decoded(u64 descriptor) {
    const Matrix made = {(u32)(descriptor & 0x3FFF) << 4, (u32)(descriptor >> 16 & 0x3FFF) << 4, (u32)(descriptor >> 32 & 0x3FFF) << 4};
    if (descriptor >> 62 != 1) fail("descriptor %llx has another swizzle than 128 bytes", descriptor);
    if (descriptor & 0x3FFFC000C000C000ull) fail("descriptor %llx has bits that mean nothing, or a base offset", descriptor);
    if (made.start >> 7 & 7) fail("descriptor %llx begins inside of eight rows of 128 bytes", descriptor);
    return made;
}

// The byte of element (row or column, term) of a matrix whose rows of 128 bytes hold terms, eight rows `stride` from the next.
static u32 among_terms(const Matrix& m, int row, int byte) { return swizzled(m.start + row / 8 * m.stride + row % 8 * 128 + byte); }

// The same where rows of 128 bytes are terms and hold 64 columns; further columns are `leading` away, further eight terms `stride`.
static u32 among_columns(const Matrix& m, int column, int term) {
    return swizzled(m.start + column / 64 * m.leading + term / 8 * m.stride + term % 8 * 128 + column % 64 * 2);
}

static double element(u32 address, bool integers) {
    const unsigned char* at = (const unsigned char*)shared_at(address, integers ? 1 : 2);
    return integers ? (double)(signed char)at[0] : (double)widened(at[0] | at[1] << 8);
}

static void read_a(const Product& product, double (&a)[64][32]) {
    const Shape& of = product.of;
    if (!of.from_registers) {
        const Matrix matrix = decoded(of.a);
        const int width = of.integers ? 1 : 2;
        for (int row = 0; row < 64; ++row)
            for (int term = 0; term < of.terms; ++term) a[row][term] = element(among_terms(matrix, row, width * term), of.integers);
        return;
    }
    for (int t = 0; t < 128; ++t)
        for (int i = 0; i < 8; ++i) {
            const u32 both = product.registers[t][i / 2];
            a[t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8][t % 4 * 2 + i / 4 * 8 + i % 2] = widened(i % 2 ? both >> 16 : both & 0xFFFF);
        }
}

static void read_b(const Shape& of, double (&b)[32][256]) {
    const Matrix matrix = decoded(of.b);
    const int width = of.integers ? 1 : 2;
    for (int term = 0; term < of.terms; ++term)
        for (int column = 0; column < of.columns; ++column)
            b[term][column] = element(of.turned ? among_columns(matrix, column, term) : among_terms(matrix, column, width * term), of.integers);
}

__attribute__((optimize("O3"))) static void multiply_rows(const Shape& of, const double (&a)[64][32], const double (&b)[32][256],
                                                          double (&sum)[64][256]) {
    for (int row = 0; row < 64; ++row) {
        double* const to = sum[row];
        for (int column = 0; column < of.columns; ++column) to[column] = 0;
        for (int term = 0; term < of.terms; ++term) {
            const double x = a[row][term];
            const double* const from = b[term];
            for (int column = 0; column < of.columns; ++column) to[column] += x * from[column];
        }
    }
}

static Sums* found(std::vector<Sums>& among, const void* at) {
    for (Sums& sums : among)
        if (sums.at == at) return &sums;
    return nullptr;
}

static void execute(Warpgroup& group) {  // its first product under way
    static double a[64][32], b[32][256], sum[64][256];
    const Product& product = group.products.front();
    const Shape& of = product.of;
    thread.x = 128 * (u32)(&group - warpgroups.data());  // who is named where it fails
    read_a(product, a);
    read_b(of, b);
    multiply_rows(of, a, b, sum);
    for (int t = 0; t < 128; ++t) {
        u32* const values = found(group.members[t].sums, product.sums[t])->values.data();
        for (int i = 0; i < of.columns / 2; ++i) {
            const double more = sum[t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8][i / 4 * 8 + t % 4 * 2 + i % 2];
            if (of.integers)
                values[i] = (of.add ? values[i] : 0) + (u32)(int)more;
            else
                values[i] = of_the_bits<u32>((float)(of.add ? of_the_bits<float>(values[i]) + more : more));
        }
    }
    group.products.pop_front();
    ++group.done;
    wake(group.queue);
}

static void check_fence(Member& member, const Sums& sums, bool read) {
    Sums* known = found(member.known, sums.at);
    if (known && known->values.size() == sums.values.size()) {
        if (read && known->values != sums.values) fail("sums changed after the last fence");
    } else if (known) {
        known->values = sums.values;
    } else {
        member.known.push_back(sums);
    }
}

static void set_aside(Member& member, void* at, const Shape& of, u64 number) {
    const size_t count = of.columns / 2;
    if (Sums* sums = found(member.sums, at)) {
        if (sums->values.size() != count) fail("products of two sizes under way with the same sums");
        sums->last = number;
        return;
    }
    u32* const values = (u32*)at;
    member.sums.push_back({at, number, std::vector<u32>(values, values + count)});
    check_fence(member, member.sums.back(), of.add);
    std::fill_n(values, count, POISON);
}

static void put_back(Member& member, u64 until) {
    for (size_t i = 0; i < member.sums.size();) {
        Sums& sums = member.sums[i];
        if (sums.last >= until) {
            ++i;
            continue;
        }
        u32* const at = (u32*)sums.at;
        if (std::any_of(at, at + sums.values.size(), [](u32 x) { return x != POISON; })) fail("sums were written while products were under way");
        std::copy(sums.values.begin(), sums.values.end(), at);
        member.sums.erase(member.sums.begin() + (long)i);
    }
}

static Warpgroup& my_warpgroup() { return warpgroups[thread.x / 128]; }
static Member& me() { return my_warpgroup().members[thread.x % 128]; }

static bool alike(const Shape& x, const Shape& y) {
    const auto fields = [](const Shape& of) {
        return std::make_tuple(of.columns, of.terms, of.add, of.integers, of.half, of.from_registers, of.turned, of.a, of.b);
    };
    return fields(x) == fields(y);
}

// Each thread issues on its own; the product may be done once all 128 have.
void multiply(const Shape& of, void* sums, std::initializer_list<u32> registers) {
    Warpgroup& group = my_warpgroup();
    Member& member = me();
    const int t = thread.x % 128;
    if (!of.integers && of.half != launched.half) fail("a product of the other kind of 16-bit numbers");
    if (!member.fenced) fail("a product without a fence since registers may have changed");
    const u64 number = member.issued++;
    if (number == group.done + group.products.size()) group.products.push_back({of});
    Product& product = group.products[number - group.done];
    if (!alike(product.of, of)) fail("threads of one warpgroup issue different products");
    product.sums[t] = sums;
    std::copy(registers.begin(), registers.end(), product.registers[t]);
    ++product.issued;
    set_aside(member, sums, of, number);
}

void fence_products() {
    Member& member = me();
    member.fenced = true;
    for (Sums& sums : member.known) std::copy_n((const u32*)sums.at, sums.values.size(), sums.values.begin());
}

void commit_products() {
    Warpgroup& group = my_warpgroup();
    Member& member = me();
    if (member.committed == group.ends.size()) group.ends.push_back(member.issued);
    if (group.ends[member.committed++] != member.issued) fail("threads of one warpgroup commit different products");
}

void wait_for_products(u64 left) {
    Warpgroup& group = my_warpgroup();
    Member& member = me();
    const u64 until = member.committed > left ? group.ends[member.committed - left - 1] : 0;
    group.wanted = std::max(group.wanted, until);
    wait_until(group.queue, "products of warpgroup %u, to the %u-th", thread.x / 128, (u32)until, [&] { return group.done >= until; });
    put_back(member, until);
    member.fenced = false;
}

void set_registers(int count) {
    if (count < 24 || count > 256 || count % 8) fail("%d registers a thread", count);
    self->registers = count;
}

// ---- the block ------------------------------------------------------------------------------------------------------------------------------------

// Let the copy engine or a tensor core do one thing; false where nothing is left to do. Unless `early`, products are those that somebody waits for.
static bool act(bool early) {
    std::vector<Warpgroup*> able;
    for (Warpgroup& group : warpgroups)
        if (!group.products.empty() && group.products.front().issued == 128 && (early || group.done < group.wanted)) able.push_back(&group);
    if (able.empty() && copies.empty()) return false;
    const u32 which = launched.seed ? draw(able.size() + copies.size()) : copies.empty() ? 0 : (u32)able.size();
    if (which < able.size()) {
        execute(*able[which]);
    } else {
        const auto place = copies.begin() + (which - (u32)able.size());
        const Copy copy = *place;
        copies.erase(place);
        deliver(copy);
    }
    return true;
}

[[noreturn]] static void report_deadlock() {
    std::map<std::string, int> places;
    for (const Fiber& fiber : fibers)
        if (!fiber.done) ++places[formatted(fiber.what, fiber.which, fiber.more)];
    std::string said = "deadlock:";
    for (const auto& [place, count] : places) said += formatted(" %d threads wait for ", count) + place + ";";
    for (const auto& [address, barrier] : barriers)
        said += formatted(" barrier %u is in phase %u and misses %d of %d arrivals and %lld bytes;", address, barrier.phase, barrier.missing,
                          barrier.count, barrier.bytes);
    fail("%s", said.c_str());
}

static void stacks_for(size_t count) {  // kept: pages that are touched stay
    if (stacks_size >= STACK * count) return;
    free(stacks);
    stacks_size = STACK * count;
    stacks = (char*)aligned_alloc(4096, stacks_size);
}

static void draw_precedence() {  // some warps run far ahead of others, whole warpgroups above all
    precedence.assign(launched.threads / 32, 0);
    u32 whole = 0;
    for (size_t i = 0; launched.seed && i < precedence.size(); ++i) {
        if (i % 4 == 0) whole = draw(64) * 64;
        precedence[i] = whole + draw(64);
    }
}

static void begin_block() {
    barriers.clear();
    copies.clear();
    ready.assign(launched.threads / 32, {});
    draw_precedence();
    statics = nullptr;
    for (Meeting& meeting : meetings) meeting = Meeting{};
    memset(storage, 0xFF, sizeof storage);
    warps.assign(launched.threads / 32, Warp{});
    warpgroups = std::vector<Warpgroup>(launched.threads / 128);
    fibers.resize(launched.threads);
    stacks_for(fibers.size());
    for (size_t i = 0; i < fibers.size(); ++i) {
        Fiber& fiber = fibers[i];
        fiber.started = fiber.done = false;
        fiber.registers = 0;
        getcontext(&fiber.begin);
        fiber.begin.uc_stack.ss_sp = stacks + STACK * i + i % 32 * 64;  // equal frames of neighbours would share cache sets
        fiber.begin.uc_stack.ss_size = STACK - 32 * 64;
        fiber.begin.uc_link = nullptr;
        makecontext(&fiber.begin, fiber_main, 0);
        ready[i / 32].push_back(&fiber);
    }
}

static void end_block() {
    if (!copies.empty()) fail("copies are under way at the end");
    for (const Warpgroup& group : warpgroups)
        for (const Member& member : group.members)
            if (member.issued > group.done || !member.sums.empty()) fail("products that nobody waited for are under way at the end");
    for (int i = 0; i < 16; ++i)
        if (meetings[i].here) fail("barrier number %d has %d of %d threads at the end", i, meetings[i].here, meetings[i].threads);
    int registers = 0;
    for (const Fiber& fiber : fibers) registers += fiber.registers;
    const int given = 65536 / launched.threads / 8 * 8 * launched.threads;
    if (registers > given) fail("the block asks for %d registers and has %d", registers, given);
}

static Fiber* next_ready() {
    Queue* first = nullptr;
    u32 most = 0;
    for (size_t i = 0; i < ready.size(); ++i)
        if (!ready[i].empty() && (!first || precedence[i] > most)) first = &ready[i], most = precedence[i];
    if (!first) return nullptr;
    Fiber* const fiber = first->back();
    first->pop_back();
    return fiber;
}

static void run_block() {
    begin_block();
    for (;;) {
        if (launched.seed && draw(4096) == 0) draw_precedence();
        if (launched.seed && launched.seed % 2 == 0 && draw(4) == 0) act(true);
        if (Fiber* const fiber = next_ready())
            resume(fiber);
        else if (!act(false))
            break;
    }
    if (!std::all_of(fibers.begin(), fibers.end(), [](const Fiber& fiber) { return fiber.done; })) report_deadlock();
    end_block();
}

const char* run(const Launch& how, void (*kernel)(void*), void* arguments) {
    launched = how, body = kernel, argument = arguments, drawn = how.seed;
    grid = {(u32)how.grid, 1, 1};
    threads = {(u32)how.threads, 1, 1};
    thread = block = {0, 0, 0};
    if (_setjmp(failed)) return message.c_str();
    if (how.threads % 128 || how.shared + STATIC_BYTES / 2 > sizeof storage) fail("%d threads, %d bytes of shared memory", how.threads, how.shared);
    for (block.x = 0; block.x < grid.x; ++block.x) run_block();
    return nullptr;
}

}  // namespace hopper
