// What edits ask of the model (hazards.hpp, which stands before this text): walk a block, settle its waits, stalls and reuse flags, repair it.

#include <utility>

namespace {

constexpr int ROUNDS = 6, REPAIRS = 24;  // times that one instruction is examined; waits and stalls that one edit may add
constexpr int REUSE_REACH = 34;          // a reuse flag is kept when its reader stands at most this far behind: compilers' own do

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

// Give a result that a later operation's scoreboard covers (rule 2) that scoreboard itself: the later one may come later still, or after what reads the
// result. Reuse flags that an earlier edit dropped are back: another order may bear them again.
void complete_boards(const Engine &engine, int count, const int *order, int *controls) {
    std::vector<std::pair<int, int>> boards;  // group of results, scoreboard: few
    for (int place = count - 1; place >= 0; --place) {
        const Instruction &one = engine.instructions[order[place]];
        const int board = write_board(controls[place]);
        const auto known = std::find_if(boards.begin(), boards.end(), [&](const auto &pair) { return pair.first == one.group; });
        if (board < BOARDS) {
            if (known == boards.end()) boards.push_back({one.group, board});
            else known->second = board;
        } else if (known != boards.end() && !one.definitions.empty() && !(engine.counted >> known->second & 1) && one.kind != FENCE_KIND) {
            controls[place] = (controls[place] & ~(7 << 5)) | known->second << 5;
        }
        if (controls[place] >> 4 & 1) controls[place] |= one.original & 7 << 17;
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
    engine->board = read.next(), engine->fence = read.next(), engine->pipes = read.next(), engine->counted = read.next();
    for (int late : read.list()) engine->is_late.push_back(static_cast<char>(late));
    engine->general = read.list();
    engine->needed = read.list();
    engine->instructions.resize(read.next());
    for (auto &one : engine->instructions) {
        for (int *value : {&one.kind, &one.flags, &one.drained, &one.latency_class, &one.late_class, &one.pipe, &one.spacing, &one.group, &one.reader,
                           &one.read_before, &one.fence_name, &one.kind_consumer, &one.original, &one.slots[0], &one.slots[1], &one.slots[2], &one.product})
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
// registers. Returns whether that was possible.
int block_settle(const Engine *engine, State *state, int count, const int *order, int *controls, int shortest) {
    Watch watch(*engine, false);
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

// The same of a block that goes from the order `old` to the order `order`; `controls` come in the old order and leave in the new one.
int block_relist(const Engine *engine, State *state, int count, const int *old, const int *order, int *controls, int shortest) {
    complete_boards(*engine, count, old, controls);
    std::vector<int> of(engine->instructions.size());
    for (int place = 0; place < count; ++place) of[old[place]] = controls[place];
    for (int place = 0; place < count; ++place) controls[place] = of[order[place]];
    drop_stale_reuse(*engine, count, order, controls, 0, count);
    add_reuse(*engine, count, order, controls);
    return block_settle(engine, state, count, order, controls, shortest);
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
