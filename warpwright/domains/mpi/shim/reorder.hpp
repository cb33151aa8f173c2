// MPI_Dist_graph_create_adjacent with `reorder`: processes that exchange much come to lie on one host. Asked for by WARPWRIGHT_MPI_REORDER=on, since
// all processes of the communicator have to take part; on one host nothing is done.
#pragma once
#include <unistd.h>

#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "collectives.hpp"
#include "partition.hpp"

namespace warpwright::mpi {

inline Original<int(const void*, int, Handle, void*, int, Handle, Handle)> allgather("MPI_Allgather");
inline Original<int(const void*, int, Handle, void*, const int*, const int*, Handle, Handle)> allgatherv("MPI_Allgatherv");
inline Original<int(Handle, int, int, Handle*)> comm_split("MPI_Comm_split");
inline Original<int(Handle*)> comm_free("MPI_Comm_free");
inline Original<int(Handle, int, const int*, const int*, int, const int*, const int*, Handle, int, Handle*)> dist_graph_create_adjacent("MPI_Dist_graph_create_adjacent");

inline bool reordering() {
    static const bool asked = [] {
        const char* value = std::getenv("WARPWRIGHT_MPI_REORDER");
        return value && !std::strcmp(value, "on");
    }();
    return enabled && asked;
}

// What tells this host, as it runs now, from others. WARPWRIGHT_MPI_HOST: another name, so that one host can be taken for several.
inline std::uint64_t this_host() {
    std::string name;
    if (const char* value = std::getenv("WARPWRIGHT_MPI_HOST")) name = value;
    else std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), name);
    if (char host[256] = {}; name.empty() && !gethostname(host, sizeof host - 1)) name = host;
    std::uint64_t hash = 0xcbf29ce484222325ULL; // FNV-1a
    for (char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
    return hash;
}

// What one process says of its vertex: sources, their weights, destinations, their weights.
struct Vertex {
    std::uint64_t host;
    int in, out, in_weighted, out_weighted;
};

struct Graph {
    std::vector<Vertex> vertices;
    std::vector<std::vector<int>> numbers; // of each vertex, as above

    // The parts of vertex v: 0 sources, 1 their weights, 2 destinations, 3 their weights.
    const int* part(std::size_t v, int which) const {
        const Vertex& one = vertices[v];
        const int sizes[] = {one.in, one.in_weighted ? one.in : 0, one.out, one.out_weighted ? one.out : 0};
        return numbers[v].data() + std::accumulate(sizes, sizes + which, 0);
    }

    std::vector<int> hosts() const { // 0, 1, ... in the order of the ranks
        std::map<std::uint64_t, int> known;
        std::vector<int> result;
        for (const Vertex& vertex : vertices) result.push_back(known.emplace(vertex.host, static_cast<int>(known.size())).first->second);
        return result;
    }

    std::vector<Edge> edges() const {
        std::vector<Edge> result;
        for (std::size_t v = 0; v < vertices.size(); ++v)
            for (int i = 0; i < vertices[v].out; ++i)
                result.push_back({static_cast<int>(v), part(v, 2)[i], vertices[v].out_weighted ? std::max(0, part(v, 3)[i]) : 1});
        return result;
    }
};

// The whole graph, in every process. Returns the library's code.
inline int gather(Handle comm, const Vertex& mine, const std::vector<int>& numbers, Graph& graph) {
    int size = 0;
    if (const int code = comm_size(comm, &size)) return code;
    graph.vertices.resize(static_cast<std::size_t>(size));
    constexpr int bytes = static_cast<int>(sizeof(Vertex));
    if (const int code = allgather(&mine, bytes, packed_handle(), graph.vertices.data(), bytes, packed_handle(), comm)) return code;
    std::vector<int> counts, starts{0};
    for (const Vertex& one : graph.vertices) {
        counts.push_back(static_cast<int>(sizeof(int)) * (one.in * (1 + one.in_weighted) + one.out * (1 + one.out_weighted)));
        starts.push_back(starts.back() + counts.back());
    }
    std::vector<int> all(static_cast<std::size_t>(starts.back()) / sizeof(int) + 1);
    const int own = static_cast<int>(sizeof(int) * numbers.size());
    if (const int code = allgatherv(numbers.data(), own, packed_handle(), all.data(), counts.data(), starts.data(), packed_handle(), comm)) return code;
    for (std::size_t v = 0; v < counts.size(); ++v) {
        const int* first = all.data() + static_cast<std::size_t>(starts[v]) / sizeof(int);
        graph.numbers.emplace_back(first, first + static_cast<std::size_t>(counts[v]) / sizeof(int));
    }
    return 0;
}

// The graph on processes that have changed places: every process plays the vertex that was chosen for it. Nothing where all stay.
inline std::optional<int> reordered(Handle comm, const Graph& graph, Handle info, const int* unweighted, Handle* made) {
    const std::vector<int> before = graph.hosts();
    const Partition partition(before, graph.edges());
    const std::vector<int> after = partition.solved();
    if (partition.cut(after) >= partition.cut(before)) return std::nullopt;
    int rank = 0;
    if (const int code = comm_rank(comm, &rank)) return code;
    const int vertex = vertices_of(before, after)[static_cast<std::size_t>(rank)];
    Handle placed;
    if (const int code = comm_split(comm, 0, vertex, &placed)) return code;
    const auto v = static_cast<std::size_t>(vertex);
    const Vertex& mine = graph.vertices[v];
    const int *in = mine.in_weighted ? graph.part(v, 1) : unweighted, *out = mine.out_weighted ? graph.part(v, 3) : unweighted;
    const int code = dist_graph_create_adjacent(placed, mine.in, graph.part(v, 0), in, mine.out, graph.part(v, 2), out, info, 0, made);
    comm_free(&placed);
    return code;
}

} // namespace warpwright::mpi

WARPWRIGHT_API int MPI_Dist_graph_create_adjacent(Handle comm, int in, const int* sources, const int* in_weights, int out, const int* destinations,
                                                  const int* out_weights, Handle info, int reorder, Handle* made) {
    const auto forward = [&] { return dist_graph_create_adjacent(comm, in, sources, in_weights, out, destinations, out_weights, info, reorder, made); };
    int inter = 1;
    if (!reorder || !reordering() || in < 0 || out < 0 || comm_test_inter(comm, &inter) || inter) return forward();
    const int* unweighted = unweighted_place();
    const Vertex mine{this_host(), in, out, in_weights != unweighted, out_weights != unweighted};
    std::vector<int> numbers(sources, sources + in);
    if (mine.in_weighted) numbers.insert(numbers.end(), in_weights, in_weights + in);
    numbers.insert(numbers.end(), destinations, destinations + out);
    if (mine.out_weighted) numbers.insert(numbers.end(), out_weights, out_weights + out);
    Graph graph;
    if (const int code = gather(comm, mine, numbers, graph)) return code;
    if (const auto code = reordered(comm, graph, info, unweighted, made)) return *code;
    return forward();
}
