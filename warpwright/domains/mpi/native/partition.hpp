// Which vertices of a graph of processes go to which host, so that little passes between hosts. Every host gets exactly as many as it has processes:
// general partitioners balance within some per cent, and a process too many has no place.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "bisection.hpp"

namespace warpwright::mpi {

struct Edge {
    int from, to;
    std::int64_t weight;
};

class Partition {
public:
    // `hosts[v]` is where vertex v lies now, 0 to the number of hosts - 1.
    Partition(std::vector<int> hosts, const std::vector<Edge>& edges) : hosts_(std::move(hosts)), neighbours_(hosts_.size()) {
        for (int host : hosts_) {
            if (static_cast<std::size_t>(host) >= room_.size()) room_.resize(static_cast<std::size_t>(host) + 1);
            ++room_[static_cast<std::size_t>(host)];
        }
        std::map<std::pair<int, int>, std::int64_t> both; // an edge costs the same in either direction
        const auto inside = [&](int vertex) { return vertex >= 0 && static_cast<std::size_t>(vertex) < hosts_.size(); };
        for (const Edge& edge : edges)
            if (inside(edge.from) && inside(edge.to) && edge.from != edge.to) both[std::minmax(edge.from, edge.to)] += edge.weight;
        for (const auto& [ends, weight] : both) {
            neighbours_[static_cast<std::size_t>(ends.first)].push_back({ends.second, weight});
            neighbours_[static_cast<std::size_t>(ends.second)].push_back({ends.first, weight});
        }
    }

    // The host of each vertex: the best of what lies now, what grows host by host and what halving finds, each refined by swaps. Never worse than it
    // lies now.
    std::vector<int> solved() const {
        std::vector<int> best = hosts_;
        refine(best);
        for (std::vector<int> other : {grown(), Bisection(neighbours_, room_).solved()}) {
            refine(other);
            if (cut(other) < cut(best)) best = std::move(other);
        }
        return best;
    }

    // What passes between hosts.
    std::int64_t cut(const std::vector<int>& hosts) const {
        std::int64_t sum = 0;
        for (std::size_t v = 0; v < hosts.size(); ++v)
            for (const auto& [peer, weight] : neighbours_[v])
                if (hosts[v] != hosts[static_cast<std::size_t>(peer)]) sum += weight;
        return sum / 2;
    }

private:
    // Each host takes the vertex that is tied to it most closely, until it is full.
    std::vector<int> grown() const {
        std::vector<int> result(hosts_.size(), -1);
        for (std::size_t host = 0; host < room_.size(); ++host) {
            std::vector<std::int64_t> tied(hosts_.size(), 0);
            for (int taken = 0; taken < room_[host]; ++taken) {
                std::size_t best = hosts_.size();
                for (std::size_t v = 0; v < hosts_.size(); ++v)
                    if (result[v] < 0 && (best == hosts_.size() || tied[v] > tied[best])) best = v;
                result[best] = static_cast<int>(host);
                for (const auto& [peer, weight] : neighbours_[best]) tied[static_cast<std::size_t>(peer)] += weight;
            }
        }
        return result;
    }

    // Swap two vertices of different hosts as long as that helps (Kernighan and Lin 1970, without their look ahead).
    void refine(std::vector<int>& hosts) const {
        const std::size_t width = room_.size();
        std::vector<std::int64_t> tied(hosts.size() * width, 0);
        const auto at = [&](std::size_t v, int host) -> std::int64_t& { return tied[v * width + static_cast<std::size_t>(host)]; };
        for (std::size_t v = 0; v < hosts.size(); ++v)
            for (const auto& [peer, weight] : neighbours_[v]) at(v, hosts[static_cast<std::size_t>(peer)]) += weight;
        const auto between = [&](std::size_t u, std::size_t v) {
            const auto& all = neighbours_[u];
            const auto seen = std::lower_bound(all.begin(), all.end(), static_cast<int>(v), [](const auto& one, int peer) { return one.first < peer; });
            return seen != all.end() && seen->first == static_cast<int>(v) ? seen->second : 0;
        };
        const auto moved = [&](std::size_t v, int from, int to) {
            for (const auto& [peer, weight] : neighbours_[v]) at(static_cast<std::size_t>(peer), from) -= weight, at(static_cast<std::size_t>(peer), to) += weight;
            hosts[v] = to;
        };
        bool better = true;
        for (int pass = 0; better && pass < 16; ++pass) {
            better = false;
            for (std::size_t u = 0; u < hosts.size(); ++u) {
                std::size_t best = u;
                std::int64_t most = 0;
                for (std::size_t v = 0; v < hosts.size(); ++v) {
                    if (hosts[u] == hosts[v]) continue;
                    const std::int64_t gain = at(u, hosts[v]) - at(u, hosts[u]) + at(v, hosts[u]) - at(v, hosts[v]);
                    if (gain > most && gain - 2 * between(u, v) > most) best = v, most = gain - 2 * between(u, v);
                }
                if (best == u) continue;
                const int here = hosts[u], there = hosts[best];
                moved(u, here, there), moved(best, there, here);
                better = true;
            }
        }
    }

    std::vector<int> hosts_, room_;
    Bisection::Neighbours neighbours_; // by vertex, in the order of the peers
};

// The vertex of each process: those that stay on their host keep their process, the rest fill what is left in order.
inline std::vector<int> vertices_of(const std::vector<int>& before, const std::vector<int>& after) {
    std::vector<int> vertex(before.size(), -1);
    for (std::size_t v = 0; v < before.size(); ++v)
        if (before[v] == after[v]) vertex[v] = static_cast<int>(v);
    for (std::size_t v = 0; v < before.size(); ++v) {
        if (before[v] == after[v]) continue;
        for (std::size_t process = 0; process < before.size(); ++process)
            if (vertex[process] < 0 && before[process] == after[v]) {
                vertex[process] = static_cast<int>(v);
                break;
            }
    }
    return vertex;
}

} // namespace warpwright::mpi
