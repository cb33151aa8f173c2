// The model of hazards.py in C++, for what a search asks of it thousands of times a second (settling.cpp): does a block pass, and what does it lack?
//
// Tables come from native_model.py, which says what each number is; the rules are hazards.py's, by their numbers there. A test holds the two against one
// another over random edits. What a search keeps in the end is judged by hazards.py.
//
// Registers are numbered from 0: those that the kernel names, then six scoreboards, the last fences, the pipes; an operation i is `registers + i`.

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <vector>

namespace {

constexpr int HORIZON = 40, BOARDS = 6, NO_BOARD = 7, MOST_STALL = 15, LONGEST_HELD_STALL = 11;
enum Kind { FENCE_KIND, MEMORY, VARIABLE, FIXED };
enum Rule { RAW, WAW, WAR, GMMA, DISTANCE, FLIGHT };
enum Hazard { H_RAW, H_WAW, H_WAR, H_SET, H_AFTER };
enum Waiter { WAIT, DRAIN };  // the first two consumers
enum Flag { IS_GMMA = 1, WAITS_FOR_GMMA = 2, IS_END = 4, GUARDED = 8, QUEUED = 16, PRIVATE = 32 };

struct Use { int register_; std::vector<int> consumers; };
struct Definition { int register_, producer, consumer; };

struct Instruction {
    int kind, flags, drained, latency_class, late_class, pipe, spacing, group, reader, read_before, fence_name, kind_consumer;
    int original;  // the compiler's control fields
    int slots[3], product;  // registers of the operand slots, by their own numbers; the slots of a product of plain registers, one bit each
    std::vector<Use> uses;
    std::vector<Definition> definitions;
    std::vector<int> tracked, late, allowed, gmma;  // allowed: operations in flight here in the original, ascending
    bool has(int flag) const { return flags & flag; }
};

struct Fact { int register_, pending, index, cover; };
struct Age { int register_, name, cycle; };

struct Violation { int rule, index, register_, pending, fact, cover, hazard, name, consumer, cycles, needed; };

// What may be in flight at a point of the program. Facts and ages stand in the order in which they came, as in a dict.
struct State {
    std::vector<Fact> facts;
    std::vector<Age> ages;
    std::vector<uint16_t> pending, young;  // how many facts and ages each register has
    int now = 0, tidied = 0;  // tidied: when ages that are over were last dropped
    std::bitset<256> gmma;
};

struct Engine {
    int registers, names, consumers, board, fence, pipes, counted;  // counted: the scoreboards that some DEPBAR counts
    std::vector<Instruction> instructions;
    std::vector<int> needed;            // [hazard][name][consumer]
    std::vector<Violation> accepted;    // false alarms; `cycles`: the fewest
    std::vector<char> is_late;          // is a name that of a late reader?
    std::vector<int> general;           // general register -> its number here, -1 for one that the kernel does not name
    int least(int hazard, int name, int consumer) const { return needed[(static_cast<size_t>(hazard) * names + name) * consumers + consumer]; }
};

bool same_alarm(const Violation &a, const Violation &b) {
    return a.rule == b.rule && a.index == b.index && a.register_ == b.register_ && a.fact == b.fact && a.pending == b.pending
        && a.hazard == b.hazard && a.name == b.name && a.consumer == b.consumer;
}

struct Watch {
    const Engine &engine;
    std::vector<Violation> found;
    std::vector<char> issued;  // instructions of the block that were issued
    bool silent = false;

    Watch(const Engine &engine, bool silent) : engine(engine), issued(engine.instructions.size()), silent(silent) {}

    void report(const Violation &violation) {
        for (const auto &known : engine.accepted)
            if (same_alarm(known, violation) && violation.cycles >= known.cycles) return;
        found.push_back(violation);
    }

    void compare(int hazard, int name, int consumer, int cycles, int index, int register_) {
        const int needed = engine.least(hazard, name, consumer);
        if (cycles < needed) report({DISTANCE, index, register_, -1, -1, 0, hazard, name, consumer, cycles, needed});
    }
};

void forget_over(State &state) {
    auto &ages = state.ages;
    size_t kept = 0;
    for (const Age &age : ages) {
        if (state.now - age.cycle < HORIZON) ages[kept++] = age;
        else --state.young[age.register_];
    }
    ages.resize(kept);
    state.tidied = state.now;
}

void drop_ages(State &state, int register_) {
    if (!state.young[register_]) return;
    auto &ages = state.ages;
    ages.erase(std::remove_if(ages.begin(), ages.end(), [&](const Age &age) { return age.register_ == register_; }), ages.end());
    state.young[register_] = 0;
}

Age *find_age(State &state, int register_, int name) {
    if (state.young[register_])
        for (auto &age : state.ages)
            if (age.register_ == register_ && age.name == name) return &age;
    return nullptr;
}

void put_age(State &state, int register_, int name, int cycle) {
    if (Age *known = find_age(state, register_, name)) {
        known->cycle = cycle;
        return;
    }
    state.ages.push_back({register_, name, cycle});
    ++state.young[register_];
}

Fact *find_fact(State &state, int register_, int pending, int index) {
    if (state.pending[register_])
        for (auto &fact : state.facts)
            if (fact.register_ == register_ && fact.pending == pending && fact.index == index) return &fact;
    return nullptr;
}

void put_fact(State &state, int register_, int pending, int index, int cover) {
    if (Fact *known = find_fact(state, register_, pending, index)) {
        known->cover = cover;
        return;
    }
    state.facts.push_back({register_, pending, index, cover});
    ++state.pending[register_];
}

int stall_of(int control) { return control & 15; }
int write_board(int control) { return control >> 5 & 7; }
int read_board(int control) { return control >> 8 & 7; }
int waits(int control) { return control >> 11 & 63; }

int with_stall(int control, int cycles) {
    if (cycles > LONGEST_HELD_STALL) control &= ~(7 << 17 | 1 << 4);
    return (control & ~15) | cycles;
}

// Rule 3: clear what the instruction waits for.
void wait(State &state, const Instruction &instruction, int index, int control, Watch &watch) {
    const int mask = waits(control) | instruction.drained;
    if (!mask) return;
    size_t kept = 0;
    for (const Fact &fact : state.facts) {
        if (fact.cover & mask) --state.pending[fact.register_];
        else state.facts[kept++] = fact;
    }
    state.facts.resize(kept);
    if (watch.silent) return;
    for (int board = 0; board < BOARDS; ++board) {
        const int register_ = watch.engine.board + board;
        if (!(mask >> board & 1) || !state.young[register_]) continue;
        for (int waiter : {WAIT, DRAIN}) {
            if (!((waiter == WAIT ? waits(control) : instruction.drained) >> board & 1)) continue;
            for (const Age &age : state.ages)
                if (age.register_ == register_ && state.now - age.cycle < HORIZON)
                    watch.compare(H_SET, age.name, waiter, state.now - age.cycle, index, register_);
        }
    }
}

// Rule 7.
void check_flight(const State &state, const Instruction &instruction, int index, Watch &watch) {
    const Engine &engine = watch.engine;
    std::vector<const Fact *> first;
    for (const Fact &fact : state.facts) {
        const int operation = fact.register_ - engine.registers;
        if (operation < 0 || operation == index || engine.instructions[operation].has(PRIVATE)) continue;
        if (operation > index && watch.issued[operation]) continue;
        if (std::binary_search(instruction.allowed.begin(), instruction.allowed.end(), operation)) continue;
        if (std::none_of(first.begin(), first.end(), [&](const Fact *known) { return known->register_ == fact.register_; })) first.push_back(&fact);
    }
    std::sort(first.begin(), first.end(), [](const Fact *a, const Fact *b) { return a->register_ < b->register_; });
    for (const Fact *fact : first) watch.report({FLIGHT, index, fact->register_, fact->pending, fact->index, fact->cover, -1, -1, -1, 0, 0});
}

void check_facts(const State &state, const Instruction &instruction, int index, Watch &watch) {
    const auto &instructions = watch.engine.instructions;
    for (const Use &use : instruction.uses) {
        if (!state.pending[use.register_]) continue;
        for (const Fact &fact : state.facts)
            if (fact.register_ == use.register_ && fact.pending)
                watch.report({RAW, index, fact.register_, 1, fact.index, fact.cover, -1, -1, -1, 0, 0});
    }
    for (const Definition &definition : instruction.definitions) {
        if (!state.pending[definition.register_]) continue;
        for (const Fact &fact : state.facts) {
            if (fact.register_ != definition.register_) continue;
            if (fact.pending) {
                watch.report({WAW, index, fact.register_, 1, fact.index, fact.cover, -1, -1, -1, 0, 0});
            } else {
                const int reader = instructions[fact.index].reader;
                if (reader < 0 || !(instruction.read_before >> reader & 1))
                    watch.report({WAR, index, fact.register_, 0, fact.index, fact.cover, -1, -1, -1, 0, 0});
            }
        }
    }
    if (state.gmma.any() && !instruction.has(IS_GMMA))
        for (int register_ : instruction.gmma)  // ascending
            if (state.gmma[register_]) {
                watch.report({GMMA, index, register_, -1, -1, 0, -1, -1, -1, 0, 0});
                break;
            }
}

void check_distances(const State &state, const Instruction &instruction, int index, Watch &watch) {
    const Engine &engine = watch.engine;
    for (const Use &use : instruction.uses) {
        if (!state.young[use.register_]) continue;
        for (const Age &age : state.ages)
            if (age.register_ == use.register_ && !engine.is_late[age.name] && state.now - age.cycle < HORIZON)
                for (int consumer : use.consumers) watch.compare(H_RAW, age.name, consumer, state.now - age.cycle, index, use.register_);
    }
    for (const Definition &definition : instruction.definitions) {
        if (!state.young[definition.register_]) continue;
        for (const Age &age : state.ages)
            if (age.register_ == definition.register_ && state.now - age.cycle < HORIZON)
                watch.compare(engine.is_late[age.name] ? H_WAR : H_WAW, age.name, definition.consumer, state.now - age.cycle, index, age.register_);
    }
    if (instruction.kind != FIXED && state.young[engine.fence])
        for (const Age &age : state.ages)
            if (age.register_ == engine.fence && state.now - age.cycle < HORIZON)
                watch.compare(H_AFTER, age.name, instruction.kind_consumer, state.now - age.cycle, index, engine.fence);
}

void examine(State &state, int index, int control, Watch &watch) {
    const Instruction &instruction = watch.engine.instructions[index];
    wait(state, instruction, index, control, watch);
    if (watch.silent) return;
    if (instruction.kind == FENCE_KIND || instruction.kind == MEMORY) check_flight(state, instruction, index, watch);
    check_facts(state, instruction, index, watch);
    check_distances(state, instruction, index, watch);
}

// Rules 1 and 2: an operation of variable latency.
void launch(State &state, const Engine &engine, int index, int write, int cover) {
    const Instruction &instruction = engine.instructions[index];
    const int written = write < BOARDS ? 1 << write : 0;
    if (cover)
        for (Fact &fact : state.facts) {
            const Instruction &earlier = engine.instructions[fact.index];
            if (fact.pending) {
                if (written && !fact.cover && earlier.group == instruction.group) fact.cover = written;
            } else if (earlier.reader >= 0 && instruction.read_before >> earlier.reader & 1) {
                fact.cover |= cover;
            } else if (written && earlier.group == instruction.group) {
                fact.cover |= written;
            }
        }
    for (const Definition &definition : instruction.definitions) {
        put_fact(state, definition.register_, 1, index, written);
        drop_ages(state, definition.register_);
    }
    for (int register_ : instruction.tracked) put_fact(state, register_, 0, index, cover);
    if (instruction.kind == MEMORY || instruction.kind == VARIABLE) {
        const bool defines = !instruction.definitions.empty();
        put_fact(state, engine.registers + index, defines, index, defines ? written : cover);
    }
}

void issue(State &state, const Engine &engine, int index, int control) {
    const Instruction &instruction = engine.instructions[index];
    if (instruction.has(IS_GMMA)) {
        for (int register_ : instruction.gmma) state.gmma.set(register_);
    } else if (instruction.has(WAITS_FOR_GMMA)) {
        state.gmma.reset();
    }
    int taken = state.now;
    if (instruction.pipe >= 0) {  // rule 9
        const Age *last = find_age(state, engine.pipes, instruction.pipe);
        taken = std::max(state.now, (last ? last->cycle : state.now - HORIZON) + instruction.spacing);
        put_age(state, engine.pipes, instruction.pipe, taken);
    }
    const int write = write_board(control), read = read_board(control);
    int boards = 0;
    for (int board : {write, read})
        if (board < BOARDS) {
            boards |= 1 << board;
            drop_ages(state, engine.board + board);
            put_age(state, engine.board + board, instruction.latency_class, taken);
        }
    if (instruction.has(QUEUED) || boards) {
        launch(state, engine, index, write, boards);
    } else {
        for (const Definition &definition : instruction.definitions) {
            if (!instruction.has(GUARDED)) drop_ages(state, definition.register_);
            put_age(state, definition.register_, definition.producer, state.now);
        }
    }
    if (instruction.fence_name >= 0) put_age(state, engine.fence, instruction.fence_name, state.now);
    for (int register_ : instruction.late) put_age(state, register_, instruction.late_class, taken);
    state.now += std::max(1, stall_of(control));
    if (state.now - state.tidied > HORIZON / 2) forget_over(state);
}

}  // namespace
