// List scheduling of a block (listing.py): of what is ready the instruction that is wanted first, or another near it that operands or cycles favour.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t AHEAD = 12;  // so many of what is ready are looked at, if they are wanted within so many places
constexpr double NEAR_OPERANDS = 6.0, NEAR_CYCLES = 24.0;
enum By { PLACE, OPERANDS, CYCLES, TIME };

struct Apart { int earlier; double cycles; };

struct Node {
    int waiting, product, registers[3], pipe;  // product: are all its operands plain registers? registers: by slot, -1 for none
    double occupied;
    std::vector<int> after;
    std::vector<Apart> apart;
};

struct Links { std::vector<Node> nodes; };

struct Entry {
    double wanted;
    int place, node;
    bool operator<(const Entry &other) const { return std::pair(wanted, place) < std::pair(other.wanted, other.place); }
    bool operator>(const Entry &other) const { return other < *this; }
};

// The cycle in which each instruction could issue, as it is listed.
struct Line {
    const Links &links;
    bool pipes;  // do pipes count?
    double now = 0.0;
    std::vector<double> issued, soonest;
    std::unordered_map<int, double> free;

    Line(const Links &links, bool pipes) : links(links), pipes(pipes), issued(links.nodes.size()), soonest(links.nodes.size(), -1.0) {}

    double waits(int node) {
        if (soonest[node] < 0) {
            soonest[node] = 0.0;
            bool any = false;
            for (const Apart &one : links.nodes[node].apart) {
                const double at = issued[one.earlier] + one.cycles;
                soonest[node] = any ? std::max(soonest[node], at) : at;
                any = true;
            }
        }
        const double when = pipes ? free[links.nodes[node].pipe] : 0.0;
        return std::max({0.0, soonest[node] - now, when - now});
    }

    void issue(int node) {
        now += waits(node);
        issued[node] = now;
        free[links.nodes[node].pipe] = now + links.nodes[node].occupied;
        now += 1.0;
    }
};

int shared_slots(const Node &first, const Node &second) {
    int shared = 0;
    if (first.product && second.product)
        for (int slot = 0; slot < 3; ++slot) shared += first.registers[slot] >= 0 && first.registers[slot] == second.registers[slot];
    return shared;
}

struct Ready {
    std::vector<Entry> heap;

    void push(Entry entry) {
        heap.push_back(entry);
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
    Entry pop() {
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        const Entry first = heap.back();
        heap.pop_back();
        return first;
    }
    // Take, of the first few that are near, the one that costs least; of several the one that is wanted first.
    template <class Cost> int pop_near(double near, Cost cost) {
        std::vector<Entry> first;
        while (first.size() < AHEAD && !heap.empty()) first.push_back(pop());
        std::size_t chosen = 0;
        auto least = cost(first[0].node);
        for (std::size_t at = 1; at < first.size() && first[at].wanted <= first[0].wanted + near; ++at) {
            const auto here = cost(first[at].node);
            if (here < least) least = here, chosen = at;
        }
        const int node = first[chosen].node;
        for (std::size_t at = 0; at < first.size(); ++at)
            if (at != chosen) push(first[at]);
        return node;
    }
    // Take, of all, what may issue first, and of that what is wanted first.
    int pop_soonest(Line &line) {
        auto chosen = heap.end();
        double least = std::numeric_limits<double>::infinity();
        for (auto entry = heap.begin(); entry != heap.end(); ++entry) {
            const double wait = line.waits(entry->node);
            if (wait < least || (wait == least && *entry < *chosen)) least = wait, chosen = entry;
        }
        const int node = chosen->node;
        heap.erase(chosen);
        std::make_heap(heap.begin(), heap.end(), std::greater<>());
        return node;
    }
};

int next(Ready &ready, int by, Line &line, const Links &links, const std::vector<int> &done) {
    if (by == TIME) return ready.pop_soonest(line);
    if (by == CYCLES) return ready.pop_near(NEAR_CYCLES, [&](int node) { return line.waits(node); });
    if (by == OPERANDS && !done.empty() && links.nodes[done.back()].product) {
        const Node &last = links.nodes[done.back()];
        return ready.pop_near(NEAR_OPERANDS, [&](int node) { return -shared_slots(last, links.nodes[node]); });
    }
    return ready.pop().node;
}

}  // namespace

extern "C" {

// `numbers`: for each node waiting, product, three registers, pipe, then what comes after it, then what lies before it; `cycles`: for each node how
// long it occupies its pipe, then the cycles from each that lies before it.
Links *links_make(int count, const int *numbers, const double *cycles) {
    auto *links = new Links;
    links->nodes.resize(count);
    for (Node &node : links->nodes) {
        node.waiting = *numbers++, node.product = *numbers++;
        for (int &register_ : node.registers) register_ = *numbers++;
        node.pipe = *numbers++, node.occupied = *cycles++;
        node.after.resize(*numbers++);
        for (int &one : node.after) one = *numbers++;
        node.apart.resize(*numbers++);
        for (Apart &one : node.apart) one = {*numbers++, *cycles++};
    }
    return links;
}

void links_free(Links *links) { delete links; }

// List the nodes, which stand in `order` now, nearest to where each is wanted.
void links_list(const Links *links, const int *order, const double *wanted, int by, int *listed) {
    const int count = static_cast<int>(links->nodes.size());
    std::vector<int> left(count), place(count), done;
    for (int at = 0; at < count; ++at) left[at] = links->nodes[at].waiting, place[order[at]] = at;
    Ready ready;
    for (int at = 0; at < count; ++at)
        if (!left[order[at]]) ready.push({wanted[order[at]], at, order[at]});
    Line line(*links, by == TIME);
    while (!ready.heap.empty()) {
        const int node = next(ready, by, line, *links, done);
        if (by >= CYCLES) line.issue(node);
        done.push_back(node);
        for (int later : links->nodes[node].after)
            if (!--left[later]) ready.push({wanted[later], place[later], later});
    }
    std::copy(done.begin(), done.end(), listed);
}
}
