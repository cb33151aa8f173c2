// Packing on a GPU. Every kernel is flat: thread t moves word t of the packed stream, and computes from t alone where it lies in the object, so that
// the packed side is always coalesced and the typemap's order costs nothing. A word is as wide as the alignment of everything allows (1 to 16 bytes).
//
//     nest_W_D_K   a nest of D strides over one block: W bytes a word, K words a thread
//     group        up to 26 nests of any width in one launch: the faces of a halo, the parts of a Concat
//     links        up to 15 pairs of nests in one launch: from one strided object into another, which may be a neighbour's
//     tree_W       any layout: a table of nodes, a search where the parts differ in length
//
// Divisions by run-time constants are a multiplication and a shift, exact below 2^31: the caller splits what has more words. What all threads of a
// block read alike (arguments, the first node of a tree) costs one load; what differs between threads is searched in as few steps as tables allow.

#ifndef GRID_CONSTANT
#define GRID_CONSTANT __grid_constant__
#endif
#define GROUP 26 // requests of one launch: what fits 4 KiB of parameters
#define GROUP_WORDS 6 // of a thread: the halo of 256^3 doubles, 3 wide, is then resident on an H200 at once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

struct Divisor { u32 by, factor, shift, unused; };

struct Nest {
    i64 step[4];      // bytes; [0] is the innermost
    Divisor count[4]; // of each level but the outermost
    Divisor block;    // words of a block
};

struct Request {
    char* strided;
    char* packed;
    u32 words, width, depth, unused;
    Nest nest;
};

struct Done { // how the host learns of the end: the last block of `blocks` stores `ticket` to `flag`; no flag: it asks the stream
    u32* arrived;
    volatile u32* flag;
    u32 ticket, blocks;
};

// (2x * factor >> 32) >> (shift - 31): the upper half of a product, without 64-bit shifts.
__device__ __forceinline__ u32 quotient(u32 x, Divisor divisor) { return (u32)(((u64)(x << 1) * divisor.factor) >> 32) >> (divisor.shift - 31); }

__device__ __forceinline__ i64 place(const Nest& nest, int depth, int width, u32 word) {
    u32 index = quotient(word, nest.block);
    i64 at = (i64)(word - index * nest.block.by) * width;
#pragma unroll
    for (int level = 0; level < 4; ++level) {
        if (level == depth - 1) return at + (i64)index * nest.step[level];
        u32 outer = quotient(index, nest.count[level]);
        at += (i64)(index - outer * nest.count[level].by) * nest.step[level];
        index = outer;
    }
    return at;
}

// All loads, then all stores: K in flight. Places are computed where they are used, so that no registers hold them meanwhile.
template <class Word, int K>
__device__ __forceinline__ void move_words(char* strided, char* packed, u32 words, const Nest& nest, int depth, u32 block, int unpack) {
    u32 first = block * (blockDim.x * K) + threadIdx.x;
    Word value[K];
    if (unpack) {
#pragma unroll
        for (int k = 0; k < K; ++k) {
            u32 word = first + k * blockDim.x;
            if (word < words) value[k] = ((Word*)packed)[word];
        }
#pragma unroll
        for (int k = 0; k < K; ++k) {
            u32 word = first + k * blockDim.x;
            if (word < words) *(Word*)(strided + place(nest, depth, sizeof(Word), word)) = value[k];
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
        u32 word = first + k * blockDim.x;
        if (word < words) value[k] = *(Word*)(strided + place(nest, depth, sizeof(Word), word));
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
        u32 word = first + k * blockDim.x;
        if (word < words) ((Word*)packed)[word] = value[k];
    }
}

#ifdef __CUDA_ARCH__
// A block's arrival releases what its threads have stored (after a barrier) to the GPU, and acquires what earlier blocks released; the last one's
// store to the flag releases all of it to the host. A system-wide fence in every block would cost a microsecond.
__device__ __forceinline__ u32 arrive(u32* arrived) {
    u32 before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(__cvta_generic_to_global(arrived)) : "memory");
    return before;
}
__device__ __forceinline__ void publish(volatile u32* flag, u32 ticket) { asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(flag), "r"(ticket) : "memory"); }
#else
inline u32 arrive(u32* arrived) { return (*arrived)++; }
inline void publish(volatile u32* flag, u32 ticket) { *flag = ticket; }
#endif

__device__ __forceinline__ void finish(Done done) {
    if (!done.flag) return;
    __syncthreads();
    if (threadIdx.x) return;
    if (done.blocks > 1) {
        if (arrive(done.arrived) + 1 != done.blocks) return;
        *done.arrived = 0;
    }
    publish(done.flag, done.ticket);
}

#define NEST(W, WORD, D, K) \
    extern "C" __global__ void nest_##W##_##D##_##K(char* strided, char* packed, u32 words, int unpack, Nest nest, Done done) { \
        move_words<WORD, K>(strided, packed, words, nest, D, blockIdx.x, unpack); \
        finish(done); \
    }
#define NESTS(W, WORD) \
    NEST(W, WORD, 1, 1) NEST(W, WORD, 2, 1) NEST(W, WORD, 3, 1) NEST(W, WORD, 4, 1) NEST(W, WORD, 1, 4) NEST(W, WORD, 2, 4) NEST(W, WORD, 3, 4) NEST(W, WORD, 4, 4)

NESTS(1, unsigned char)
NESTS(2, unsigned short)
NESTS(4, u32)
NESTS(8, uint2)
NESTS(16, uint4)

struct Group {
    u32 count;
    u32 first[GROUP + 1]; // the first block of each request, then the number of blocks
    u32 unused[4 - (GROUP + 2) % 4];
    Request request[GROUP];
};

// Levels above a nest's own have a step of 0 and a count of 1: code for two levels and for four serves all. Words of 16 bytes are moved in two halves, so
// that six of them need no more registers than six of 8.
template <class Word>
__device__ __forceinline__ void serve_words(const Request& request, u32 block, int unpack) {
    constexpr int halves = sizeof(Word) > 8 ? 2 : 1, K = GROUP_WORDS / halves;
    for (int half = 0; half < halves; ++half) {
        u32 at = block * halves + half;
        if (request.depth <= 2) move_words<Word, K>(request.strided, request.packed, request.words, request.nest, 2, at, unpack);
        else move_words<Word, K>(request.strided, request.packed, request.words, request.nest, 4, at, unpack);
    }
}

__device__ __forceinline__ void serve(const Request& request, u32 block, int unpack) {
    switch (request.width) {
        case 1: return serve_words<unsigned char>(request, block, unpack);
        case 2: return serve_words<unsigned short>(request, block, unpack);
        case 4: return serve_words<u32>(request, block, unpack);
        case 8: return serve_words<uint2>(request, block, unpack);
        default: return serve_words<uint4>(request, block, unpack);
    }
}

extern "C" __global__ void group(const GRID_CONSTANT Group group, int unpack, Done done) {
    u32 low = 0, high = group.count; // the last request that begins at or before this block
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        if (group.first[middle] <= blockIdx.x) low = middle;
        else high = middle;
    }
    serve(group.request[low], blockIdx.x - group.first[low], unpack);
    finish(done);
}

struct Link {
    char* from;
    char* to;
    u32 words, width, depth, unused; // depth: the greater of both
    Nest source, target;
};

#define LINKS 15 // of one launch: what fits 4 KiB of parameters

struct Links {
    u32 count;
    u32 first[LINKS + 1]; // the first block of each link, then the number of blocks
    u32 unused;
    Link link[LINKS];
};

template <class Word, int K, int D>
__device__ __forceinline__ void link_words(const Link& link, u32 block) {
    u32 first = block * (blockDim.x * K) + threadIdx.x;
    Word value[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
        u32 word = first + k * blockDim.x;
        if (word < link.words) value[k] = *(const Word*)(link.from + place(link.source, D, sizeof(Word), word));
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
        u32 word = first + k * blockDim.x;
        if (word < link.words) *(Word*)(link.to + place(link.target, D, sizeof(Word), word)) = value[k];
    }
}

template <class Word>
__device__ __forceinline__ void serve_link(const Link& link, u32 block) {
    constexpr int halves = sizeof(Word) > 8 ? 2 : 1, K = GROUP_WORDS / halves;
    for (int half = 0; half < halves; ++half) {
        u32 at = block * halves + half;
        if (link.depth <= 2) link_words<Word, K, 2>(link, at);
        else link_words<Word, K, 4>(link, at);
    }
}

extern "C" __global__ void links(const GRID_CONSTANT Links links, Done done) {
    u32 low = 0, high = links.count;
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        if (links.first[middle] <= blockIdx.x) low = middle;
        else high = middle;
    }
    const Link& link = links.link[low];
    u32 block = blockIdx.x - links.first[low];
    switch (link.width) {
        case 1: serve_link<unsigned char>(link, block); break;
        case 2: serve_link<unsigned short>(link, block); break;
        case 4: serve_link<u32>(link, block); break;
        case 8: serve_link<uint2>(link, block); break;
        default: serve_link<uint4>(link, block);
    }
    finish(done);
}

struct TreeNode {
    u32 kind;  // 0 Dense, 1 Strided, 2 Concat of parts of one length, 3 Concat; 4 and 5: as 2 and 3, and all parts are Dense
    u32 first; // Strided: the child's node; Concat: its first entry in the tables of parts
    u32 hint;  // kinds 3 and 5: the first entry in the table of hints
    u32 chunk; // kinds 3 and 5: a hint stands for 2^chunk words
    Divisor each; // words of a child, or of each part
    i64 step;
};

struct Tree {
    const TreeNode* nodes;
    const u32* starts;   // in words, of each part
    const i64* offsets;  // in bytes, of each part
    const u32* children; // the node of each part
    const u32* hints;    // the part, counted from the node's first, that the first word of each chunk lies in
};

__device__ __forceinline__ i64 tree_place(const Tree& tree, int width, u32 word) {
    i64 at = 0;
    u32 node = 0;
    for (;;) {
        const TreeNode& here = tree.nodes[node];
        if (here.kind == 0) return at + (i64)word * width;
        if (here.kind == 1) {
            u32 index = quotient(word, here.each);
            at += (i64)index * here.step;
            word -= index * here.each.by;
            node = here.first;
            continue;
        }
        u32 part = here.first;
        if (here.kind & 1) {
            const u32* hint = tree.hints + here.hint + (word >> here.chunk);
            u32 low = hint[0], high = hint[1] + 1; // the last part that starts at or before the word
            while (high - low > 1) {
                u32 middle = (low + high) / 2;
                if (tree.starts[here.first + middle] <= word) low = middle;
                else high = middle;
            }
            part += low;
            word -= tree.starts[part];
        } else {
            u32 index = quotient(word, here.each);
            part += index;
            word -= index * here.each.by;
        }
        at += tree.offsets[part];
        if (here.kind >= 4) return at + (i64)word * width;
        node = tree.children[part];
    }
}

#define TREE(W, WORD) \
    extern "C" __global__ void tree_##W(char* strided, char* packed, u32 words, int unpack, Tree tree, Done done) { \
        u32 word = blockIdx.x * blockDim.x + threadIdx.x; \
        if (word < words) { \
            WORD* there = (WORD*)(strided + tree_place(tree, W, word)); \
            if (unpack) *there = ((WORD*)packed)[word]; \
            else ((WORD*)packed)[word] = *there; \
        } \
        finish(done); \
    }

TREE(1, unsigned char)
TREE(2, unsigned short)
TREE(4, u32)
TREE(8, uint2)
TREE(16, uint4)
