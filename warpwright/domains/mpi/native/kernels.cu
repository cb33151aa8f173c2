// Packing on a GPU. Every kernel is flat: thread t moves word t of the packed stream, and computes from t alone where it lies in the object, so that
// the packed side is always coalesced and the typemap's order costs nothing. A word is as wide as the alignment of everything allows (1 to 16 bytes).
//
//     nest_W_D_K   a nest of D strides over one block: W bytes a word, K words a thread
//     group        up to 26 nests of any width in one launch: the faces of a halo, the parts of a Concat
//     tree_W       any layout: a table of nodes, a search where the parts differ in length
//
// Divisions by run-time constants are a multiplication and a shift, exact below 2^31: the caller splits what has more words.

#ifndef GRID_CONSTANT
#define GRID_CONSTANT __grid_constant__
#endif
#define GROUP 26 // requests of one launch: what fits 4 KiB of parameters

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

__device__ __forceinline__ u32 quotient(u32 x, Divisor divisor) { return (u32)(((u64)x * divisor.factor) >> divisor.shift); }

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

template <class Word, int K>
__device__ __forceinline__ void move_words(char* strided, char* packed, u32 words, const Nest& nest, int depth, u32 block, int unpack) {
    u32 first = block * (blockDim.x * K) + threadIdx.x;
    Word value[K];
    i64 at[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
        u32 word = first + k * blockDim.x;
        if (word >= words) continue;
        at[k] = place(nest, depth, sizeof(Word), word);
        value[k] = unpack ? ((Word*)packed)[word] : *(Word*)(strided + at[k]);
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
        u32 word = first + k * blockDim.x;
        if (word >= words) continue;
        if (unpack) *(Word*)(strided + at[k]) = value[k];
        else ((Word*)packed)[word] = value[k];
    }
}

__device__ __forceinline__ void finish(Done done) {
    if (!done.flag) return;
    __syncthreads();
    if (threadIdx.x) return;
    __threadfence_system();
    if (atomicAdd(done.arrived, 1u) + 1 != done.blocks) return;
    *done.arrived = 0;
    __threadfence_system();
    *done.flag = done.ticket;
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

__device__ __forceinline__ void serve(const Request& request, u32 block, int unpack) {
    switch (request.width) {
        case 1: return move_words<unsigned char, 4>(request.strided, request.packed, request.words, request.nest, request.depth, block, unpack);
        case 2: return move_words<unsigned short, 4>(request.strided, request.packed, request.words, request.nest, request.depth, block, unpack);
        case 4: return move_words<u32, 4>(request.strided, request.packed, request.words, request.nest, request.depth, block, unpack);
        case 8: return move_words<uint2, 4>(request.strided, request.packed, request.words, request.nest, request.depth, block, unpack);
        default: return move_words<uint4, 4>(request.strided, request.packed, request.words, request.nest, request.depth, block, unpack);
    }
}

extern "C" __global__ void group(const GRID_CONSTANT Group group, int unpack, Done done) {
    u32 r = 0;
    while (r + 1 < group.count && blockIdx.x >= group.first[r + 1]) ++r;
    serve(group.request[r], blockIdx.x - group.first[r], unpack);
    finish(done);
}

struct TreeNode {
    u32 kind;  // 0 Dense, 1 Strided, 2 Concat of parts of one length, 3 Concat
    u32 first; // Strided: the child's node; Concat: its first entry in the tables of parts
    u32 count; // Concat: the number of parts
    u32 unused;
    Divisor each; // words of a child, or of each part
    i64 step;
};

struct Tree {
    const TreeNode* nodes;
    const u32* starts;   // in words, of each part
    const i64* offsets;  // in bytes, of each part
    const u32* children; // the node of each part
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
        if (here.kind == 2) {
            u32 index = quotient(word, here.each);
            part += index;
            word -= index * here.each.by;
        } else {
            u32 low = 0, high = here.count; // the last part that starts at or before the word
            while (high - low > 1) {
                u32 middle = (low + high) / 2;
                if (tree.starts[here.first + middle] <= word) low = middle;
                else high = middle;
            }
            part += low;
            word -= tree.starts[part];
        }
        at += tree.offsets[part];
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
