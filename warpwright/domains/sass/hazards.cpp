// The model of hazards.py in C++, for what a search asks of it thousands of times a second: does a block pass, and what does it lack?
//
// Tables come from native_hazards.py, which says what each number is; the rules are numbered there and in hazards.py, and are the same. A test holds
// the two against one another over random edits. What a search keeps in the end is judged by hazards.py.
//
// Registers are numbered from 0: those that the kernel names, then six scoreboards, the last fences, the pipes; an operation i is `registers + i`.

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <vector>

namespace {

constexpr int HORIZON = 40, BOARDS = 6, NO_BOARD = 7, MOST_STALL = 15, LONGEST_HELD_STALL = 11;
constexpr int ROUNDS = 6, REPAIRS = 24;  // times that one instruction is examined; waits and stalls that one edit may add
constexpr int REUSE_REACH = 34;          // a reuse flag is kept when its reader stands at most this far behind: compilers' own do
enum Kind { FENCE_KIND, MEMORY, VARIABLE, FIXED };
enum Rule { RAW, WAW, WAR, GMMA, DISTANCE, FLIGHT };
enum Hazard { H_RAW, H_WAW, H_WAR, H_SET, H_AFTER };
enum Flag { IS_GMMA = 1, WAITS_FOR_GMMA = 2, IS_END = 4, GUARDED = 8, QUEUED = 16, PRIVATE = 32 };

struct Use { int register_; std::vector<int> consumers; };
struct Definition { int register_, producer, consumer; };

struct Instruction {
    int kind, flags, drained, latency_class, late_class, pipe, spacing, group, reader, read_before, fence_name, kind_consumer;
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
    int now = 0;
    std::bitset<256> gmma;
};

struct Engine {
    int registers, names, consumers, board, fence, pipes;
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
        for (const Age &age : state.ages)
            if (age.register_ == register_ && state.now - age.cycle < HORIZON) watch.compare(H_SET, age.name, 0, state.now - age.cycle, index, register_);
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
    if (state.ages.size() > 96) forget_over(state);
}

bool lengthened(int *controls, int place, int cycles) {
    for (int before = place - 1; before >= 0 && cycles; --before) {
        const int stall = stall_of(controls[before]), more = std::min(cycles, MOST_STALL - stall);
        if (more) controls[before] = with_stall(controls[before], stall + more);
        cycles -= more;
    }
    return !cycles;
}

// Add waits to a control word and cycles before it until the model finds nothing.
bool settled_at(State &state, int index, int *controls, int place, Watch &watch) {
    for (int round = 0; round < ROUNDS; ++round) {
        watch.found.clear();
        examine(state, index, controls[place], watch);
        if (watch.found.empty()) return true;
        int missing = 0;
        for (const Violation &violation : watch.found) {
            if (violation.rule == DISTANCE) {
                missing = std::max(missing, violation.needed - violation.cycles);
                continue;
            }
            if (!violation.cover) return false;
            int board = 0;
            while (!(violation.cover >> board & 1)) ++board;
            controls[place] |= 1 << (11 + board);
        }
        if (missing) {
            if (!lengthened(controls, place, missing)) return false;
            state.now += missing;
        }
    }
    return false;
}

// Add a wait or cycles for what a walk found first; is that possible?
bool repaired(const Engine &engine, int count, const int *order, int *controls, const Violation &found) {
    const int place = static_cast<int>(std::find(order, order + count, found.index) - order);
    if (found.rule != DISTANCE) {
        for (int board = 0; board < BOARDS; ++board)
            if (found.cover >> board & 1) {
                controls[place] |= 1 << (11 + board);
                return true;
            }
        return false;
    }
    int missing = found.needed - found.cycles;
    for (int before = place - 1; before >= 0; --before) {
        if (engine.instructions[order[before]].has(IS_END)) return false;
        const int stall = stall_of(controls[before]), longer = std::min(MOST_STALL, stall + missing);
        missing -= longer - stall;
        controls[before] = with_stall(controls[before], longer);
        if (missing <= 0) return true;
    }
    return false;
}

template <class Accesses> bool touches(const Accesses &accesses, int register_) {
    return std::any_of(accesses.begin(), accesses.end(), [&](const auto &one) { return one.register_ == register_; });
}

// Is an operand read again, through the same slot, before it is written?
bool read_again(const Engine &engine, int count, const int *order, int place, int slot) {
    const int own = engine.instructions[order[place]].slots[slot], register_ = own < 0 ? -1 : engine.general[own];
    if (register_ < 0) return false;
    for (int later = place + 1; later < std::min(count, place + 1 + REUSE_REACH); ++later) {
        const Instruction &instruction = engine.instructions[order[later]];
        if (instruction.slots[slot] == own && touches(instruction.uses, register_)) return true;
        if (touches(instruction.definitions, register_)) return false;
    }
    return false;
}

void drop_stale_reuse(const Engine &engine, int count, const int *order, int *controls, int first, int last) {
    for (int place = first; place < last; ++place)
        for (int slot = 0; slot < 3; ++slot)
            if (controls[place] >> (17 + slot) & 1 && !read_again(engine, count, order, place, slot)) controls[place] &= ~(1 << (17 + slot));
}

// Keep an operand for the next instruction where that reads it through the same slot; among arithmetic on plain registers alone. Compilers set every
// such flag: in ten kernels not one was left to be set.
void add_reuse(const Engine &engine, int count, const int *order, int *controls) {
    for (int place = 0; place + 1 < count; ++place) {
        const Instruction &here = engine.instructions[order[place]], &there = engine.instructions[order[place + 1]];
        const bool held = controls[place] >> 4 & 1 && stall_of(controls[place]) <= LONGEST_HELD_STALL;
        for (int slot = 0; held && slot < 3; ++slot) {
            if (!(here.product & there.product & 1 << slot) || here.slots[slot] != there.slots[slot]) continue;
            const int register_ = engine.general[here.slots[slot]];
            if (register_ < 0 || !touches(here.definitions, register_)) controls[place] |= 1 << (17 + slot);
        }
    }
}

struct Reader {
    const int *at;
    int next() { return *at++; }
    std::vector<int> list() {
        std::vector<int> values(next());
        for (int &value : values) value = next();
        return values;
    }
};

}  // namespace

extern "C" {

Engine *engine_make(const int *data) {
    Reader read{data};
    auto *engine = new Engine;
    engine->registers = read.next(), engine->names = read.next(), engine->consumers = read.next();
    engine->board = read.next(), engine->fence = read.next(), engine->pipes = read.next();
    for (int late : read.list()) engine->is_late.push_back(static_cast<char>(late));
    engine->general = read.list();
    engine->needed = read.list();
    engine->instructions.resize(read.next());
    for (auto &one : engine->instructions) {
        for (int *value : {&one.kind, &one.flags, &one.drained, &one.latency_class, &one.late_class, &one.pipe, &one.spacing, &one.group, &one.reader,
                           &one.read_before, &one.fence_name, &one.kind_consumer, &one.slots[0], &one.slots[1], &one.slots[2], &one.product})
            *value = read.next();
        one.uses.resize(read.next());
        for (auto &use : one.uses) use.register_ = read.next(), use.consumers = read.list();
        one.definitions.resize(read.next());
        for (auto &definition : one.definitions)
            definition.register_ = read.next(), definition.producer = read.next(), definition.consumer = read.next();
        one.tracked = read.list(), one.late = read.list(), one.allowed = read.list(), one.gmma = read.list();
    }
    engine->accepted.resize(read.next());
    for (auto &one : engine->accepted) {
        one = {};
        for (int *value : {&one.rule, &one.index, &one.register_, &one.pending, &one.fact, &one.hazard, &one.name, &one.consumer, &one.cycles})
            *value = read.next();
    }
    return engine;
}

void engine_free(Engine *engine) { delete engine; }

State *state_make(const Engine *engine, const int *data) {
    Reader read{data};
    auto *state = new State;
    state->pending.resize(engine->registers + engine->instructions.size());
    state->young.resize(engine->registers);
    state->now = read.next();
    for (int count = read.next(); count; --count) {
        const int register_ = read.next(), pending = read.next(), index = read.next(), cover = read.next();
        put_fact(*state, register_, pending, index, cover);
    }
    for (int count = read.next(); count; --count) {
        const int register_ = read.next(), name = read.next(), cycle = read.next();
        put_age(*state, register_, name, cycle);
    }
    for (int register_ : read.list()) state->gmma.set(register_);
    return state;
}

State *state_copy(const State *state) { return new State(*state); }

void state_free(State *state) { delete state; }

// Rule 6: take in what may be in flight on another path; was that anything new?
int state_join(State *mine, const State *other) {
    bool changed = false;
    for (const Fact &fact : other->facts) {
        Fact *known = find_fact(*mine, fact.register_, fact.pending, fact.index);
        const int both = known ? known->cover & fact.cover : fact.cover;
        if (known && known->cover == both) continue;
        put_fact(*mine, fact.register_, fact.pending, fact.index, both);
        changed = true;
    }
    for (const Age &age : other->ages) {
        const int cycles = other->now - age.cycle;
        if (cycles >= HORIZON) continue;
        const Age *known = find_age(*mine, age.register_, age.name);
        if (known && cycles >= mine->now - known->cycle) continue;
        put_age(*mine, age.register_, age.name, mine->now - cycles);
        changed = true;
    }
    const auto both = mine->gmma | other->gmma;
    changed |= both != mine->gmma;
    mine->gmma = both;
    return changed;
}

int state_within(State *mine, State *other) {
    for (const Fact &fact : mine->facts) {
        const Fact *known = find_fact(*other, fact.register_, fact.pending, fact.index);
        if (!known || known->cover & ~fact.cover) return false;
    }
    for (const Age &age : mine->ages) {
        const int cycles = mine->now - age.cycle;
        if (cycles >= HORIZON) continue;
        const Age *known = find_age(*other, age.register_, age.name);
        if (!known || other->now - known->cycle > cycles) return false;
    }
    return (mine->gmma & ~other->gmma).none();
}

// Issue a block until its first violation, which is told, or to its end; returns whether it passed. `state` is changed.
int block_run(const Engine *engine, State *state, int count, const int *order, const int *controls, int silent, Violation *first) {
    Watch watch(*engine, silent);
    for (int place = 0; place < count; ++place) {
        const int index = order[place];
        examine(*state, index, controls[place], watch);
        if (!watch.found.empty()) {
            *first = watch.found[0];
            return 0;
        }
        issue(*state, *engine, index, controls[place]);
        watch.issued[index] = 1;
    }
    return 1;
}

// Drop the reuse flags of some places whose operand is not read again; what comes behind them is there to be looked at.
void block_reuse(const Engine *engine, int count, const int *order, int *controls, int last) { drop_stale_reuse(*engine, count, order, controls, 0, last); }

// Add the waits and stalls that a block lacks. `shortest`: cut stalls to one cycle first, but of fences and of the last, which order more than
// registers; `listed`: the block has another order, so reuse flags are settled first. Returns whether that was possible.
int block_settle(const Engine *engine, State *state, int count, const int *order, int *controls, int shortest, int listed) {
    Watch watch(*engine, false);
    if (listed) {
        drop_stale_reuse(*engine, count, order, controls, 0, count);
        add_reuse(*engine, count, order, controls);
    }
    for (int place = 0; place < count; ++place) {
        const int index = order[place];
        const Instruction &instruction = engine->instructions[index];
        if (shortest && place + 1 < count && instruction.kind != FENCE_KIND && !instruction.has(IS_END)) controls[place] = with_stall(controls[place], 1);
        if (!settled_at(*state, index, controls, place, watch)) return 0;
        issue(*state, *engine, index, controls[place]);
        watch.issued[index] = 1;
    }
    return 1;
}

// Add waits and stalls, one by one, for what a walk from the block's start finds first; returns whether it finds nothing in the end.
int block_repair(const Engine *engine, const State *entry, int count, const int *order, int *controls) {
    for (int round = 0; round < REPAIRS; ++round) {
        State state(*entry);
        Violation found;
        if (block_run(engine, &state, count, order, controls, 0, &found)) return 1;
        if (!repaired(*engine, count, order, controls, found)) return 0;
    }
    return 0;
}
}
