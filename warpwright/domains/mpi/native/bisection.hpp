// Vertices for hosts by halving: the hosts in two, the vertices with them so that little passes between the halves, and so on. A half grows from one
// vertex, and is refined by moves to and fro that may cost something before they gain (Kernighan and Lin 1970, by single moves as Fiduccia and
// Mattheyses 1982), so that both halves keep their sizes. Growing host by host, as partition.hpp also does, cuts strips off a grid: twice what blocks
// cut on 16 x 16.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace warpwright::mpi {

class Bisection {
public:
    using Neighbours = std::vector<std::vector<std::pair<int, std::int64_t>>>;

    // `room[h]`: how many vertices host h gets; all together as many as there are.
    Bisection(const Neighbours& neighbours, const std::vector<int>& room)
        : neighbours_(neighbours), room_(room), side_(neighbours.size(), outside), tied_(neighbours.size()), order_(neighbours.size()), hosts_(neighbours.size()) {}

    std::vector<int> solved() {
        std::vector<int> all(neighbours_.size());
        std::iota(all.begin(), all.end(), 0);
        split(all, 0, room_.size());
        return hosts_;
    }

private:
    static constexpr signed char outside = -1;
    static constexpr int patience = 50; // pairs of moves without a gain

    void split(const std::vector<int>& vertices, std::size_t first, std::size_t last) {
        if (last - first < 2) {
            for (int v : vertices) hosts_[at(v)] = static_cast<int>(first);
            return;
        }
        const std::size_t middle = (first + last) / 2;
        const auto size = static_cast<std::size_t>(std::accumulate(room_.begin() + static_cast<long>(first), room_.begin() + static_cast<long>(middle), 0));
        std::vector<signed char> best;
        std::int64_t least = 0;
        for (int start : starts(vertices)) {
            grow(vertices, size, start);
            while (improve(vertices)) {}
            if (const std::int64_t cost = cut(vertices); best.empty() || cost < least) {
                least = cost, best.clear();
                for (int v : vertices) best.push_back(side_[at(v)]);
            }
        }
        std::vector<int> halves[2];
        for (std::size_t i = 0; i < vertices.size(); ++i) halves[best[i]].push_back(vertices[i]), side_[at(vertices[i])] = outside;
        split(halves[0], first, middle), split(halves[1], middle, last);
    }

    // Places to grow from: what lies farthest from the first, what lies farthest from that, and eight of all.
    std::vector<int> starts(const std::vector<int>& vertices) {
        if (vertices.empty()) return {0};
        const int one = farthest(vertices, vertices.front());
        std::vector<int> result{one, farthest(vertices, one)};
        for (std::size_t i = 0; i < 8; ++i) result.push_back(vertices[i * vertices.size() / 8]);
        return result;
    }

    int farthest(const std::vector<int>& vertices, int start) {
        for (int v : vertices) side_[at(v)] = 1;
        std::vector<int> seen{start};
        side_[at(start)] = 0;
        for (std::size_t next = 0; next < seen.size(); ++next)
            for (const auto& [peer, weight] : neighbours_[at(seen[next])])
                if (side_[at(peer)] == 1) side_[at(peer)] = 0, seen.push_back(peer);
        return seen.back();
    }

    // Half 0 takes what costs least, of equals what it has touched for longest. `tied_` is, of each vertex, what it has in the other half less what it
    // has in its own: what a move gains.
    void grow(const std::vector<int>& vertices, std::size_t size, int start) {
        for (int v : vertices) side_[at(v)] = 1, order_[at(v)] = static_cast<int>(vertices.size());
        for (int v : vertices) {
            tied_[at(v)] = 0;
            for (const auto& [peer, weight] : neighbours_[at(v)])
                if (side_[at(peer)] != outside) tied_[at(v)] -= weight;
        }
        for (std::size_t taken = 0; taken < size; ++taken) {
            int best = taken ? -1 : start;
            if (best < 0)
                for (int v : vertices)
                    if (side_[at(v)] == 1 && (best < 0 || std::pair(-tied_[at(v)], order_[at(v)]) < std::pair(-tied_[at(best)], order_[at(best)]))) best = v;
            move(best);
            for (const auto& [peer, weight] : neighbours_[at(best)]) order_[at(peer)] = std::min(order_[at(peer)], static_cast<int>(taken));
        }
    }

    // One round of moves in pairs, each vertex once, as far as it gained; false where nothing did.
    bool improve(const std::vector<int>& vertices) {
        std::vector<char> free(neighbours_.size(), 1);
        std::vector<int> moved;
        std::int64_t sum = 0, most = 0;
        std::size_t kept = 0;
        while (moved.size() < kept + 2 * patience) {
            const std::int64_t before = sum;
            int pair[2];
            for (int from : {0, 1}) {
                int& best = pair[from] = -1;
                for (int v : vertices)
                    if (side_[at(v)] == from && free[at(v)] && (best < 0 || tied_[at(v)] > tied_[at(best)])) best = v;
                if (best < 0) break;
                sum += tied_[at(best)], free[at(best)] = 0;
                move(best);
            }
            if (pair[0] < 0) break;
            if (pair[1] < 0) {
                move(pair[0]), sum = before;
                break;
            }
            moved.insert(moved.end(), {pair[0], pair[1]});
            if (sum > most) most = sum, kept = moved.size();
        }
        for (std::size_t i = moved.size(); i-- > kept;) move(moved[i]);
        return most > 0;
    }

    void move(int v) {
        const signed char from = side_[at(v)];
        side_[at(v)] = static_cast<signed char>(1 - from);
        tied_[at(v)] = -tied_[at(v)];
        for (const auto& [peer, weight] : neighbours_[at(v)]) tied_[at(peer)] += side_[at(peer)] == from ? 2 * weight : -2 * weight;
    }

    std::int64_t cut(const std::vector<int>& vertices) const {
        std::int64_t twice = 0;
        for (int v : vertices)
            for (const auto& [peer, weight] : neighbours_[at(v)])
                if (side_[at(peer)] == 1 - side_[at(v)]) twice += weight;
        return twice / 2;
    }

    static std::size_t at(int v) { return static_cast<std::size_t>(v); }

    const Neighbours& neighbours_;
    const std::vector<int>& room_;
    std::vector<signed char> side_; // of the vertices that are being halved
    std::vector<std::int64_t> tied_;
    std::vector<int> order_, hosts_;
};

} // namespace warpwright::mpi
