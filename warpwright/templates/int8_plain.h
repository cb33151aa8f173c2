// The pass after the product of INT8 slices (int8_product.cu): plain sums for rows that have Inf or NaN, and for results that are small because large
// elements meet zeros (int8_suspect.h says which are suspect). Part of int8_slices.cu, which has the matrices.
//
// A suspect strip of 32 x 128 results is cleared by the top slices of its rows and columns, if that can be; else each of its four squares is looked at:
// which rows and columns are small, whether the slices err much in those by the terms that are there, and a plain sum where they do: 32 terms at a time
// in float32, and those sums in float64. One after another in float32 they err more the longer they are, more than cuBLAS, which cuts them in parts: of
// 8,192 terms, positive times normal numbers, by 1e-6 of the result (counted on a CPU).
//
// NOTES (outcomes; add below)
//   H200, 2026-11-30: the product of two triangles of 4096 took 0.595 ms, of the same with rows and columns moved along in memory (as calls of a stream
//   have them) 2.75. There most suspects are results that meet nothing at all beside full rows, and plain_rows walked the whole of k for their squares,
//   four of a column by one block: up to 376 steps of 32 a block. Since then it looks only at chunks that small rows and columns meet, and neighbours go
//   to other blocks: 8 to 28 steps by count. Since then 0.56 to 0.71 ms.
//   H200, 2026-11-30: where rows are nearly alike, as in the late layers of a deep network that was never trained, 10 to 20 % of the columns are small in
//   16 rows by chance, so that each square has some. None is marked, but plain_rows walked all of k for each: 0.4 ms for 1024 x 1024 x 1024, of which
//   the product takes 0.04 (2,400 to 2,800 clocks of an SM a step of 32). Since then strips of four squares are cleared by 64 or 128 of their top slices
//   (by count: all strips of such layers and of attention's outputs; 1,400 instructions a thread), a walk ends where nothing can be marked any more (1 or
//   2 steps of those squares), and a step has a third of the instructions (340 for 1,000: no division by row, sums by line instead of by warp). 64
//   registers, 40 bytes of stack, none of it in a walk. KernelBench's 3:3, seventeen such layers, took
//   1.23 ms since (7.9 before; 5 to 8 us a look and 1.08 to 1.15 ms predicted), and 2.5 with the judge's weights: they are normal, not uniform, and then
//   96 to 243 of 1,024 of k are needed to clear a strip, not 25 to 75 (by count on a CPU), so that most squares were walked all the same. LOOKED_AT is
//   512 since, for 128.

constexpr int SKEW = 19;  // places that one row of squares or strips moves along: suspects below one another, or along a diagonal, go to many blocks

struct Square {  // of 32 x 32 results: which of its rows and columns are wanted, and the elements they come from, 32 of k at a time
    float a[32][33], b[32][33];
    int rows[32], columns[32];
    double scales[2][32];                // of the rows of A and of B, as they were cut; 0 outside and for Inf and NaN
    float norms[2][32];                  // of the scaled rows
    u32 small_rows, small_columns[2];    // bit by bit: whose results are small, of columns those in the upper and in the lower 16 rows
    u32 chunks[MOST_WORDS];              // of k, bit by bit as Matrix.chunks: where small rows and columns meet anything
    // Lines are of three kinds: rows, columns in the upper half and columns in the lower half.
    float parts[2][3][8][32];            // of the numbers that a kind is multiplied by, at each k, of four rows: the squares, and how many are not zero
    float totals[2][3][32];              // the same of all rows
    float most[3][32], least[3][32];     // `limit` says what
};

struct Corner {  // of a square: its first rows of A and of B, and where the rows of these matrices end
    int a, a_end, b, b_end;
    const float *a_row, *b_row;  // the elements of these first rows
};

// Of elements start to start + 31 of 32 rows, the first at `row`, of which `count` are there, four a thread, zeros outside.
__device__ __forceinline__ void load(float (&to)[4], const Matrix& from, const float* row, int count, int start, int k) {
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const float* first = row + y * from.row_stride + (start + x) * from.k_stride;
    for (int i = 0; i < 4; ++i) to[i] = y + 8 * i < count && start + x < k ? first[8 * i * from.row_stride] : 0.0f;
}

__device__ __forceinline__ float times(float value, double scale) { return scale == 0.0 ? 0.0f : (float)((double)value * scale); }

// 32 of k of both sides, in scaled units or as they are. Each thread then sees the elements that are its own, others after a barrier.
__device__ __forceinline__ void fetch(Square& of, const Matrix& a, const Matrix& b, const Corner& at, int start, int k, bool scaled) {
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    float left[4], right[4];
    load(left, a, at.a_row, at.a_end - at.a, start, k);
    load(right, b, at.b_row, at.b_end - at.b, start, k);
    for (int i = 0; i < 4; ++i) {
        const int row = y + 8 * i;
        of.a[row][x] = scaled ? times(left[i], of.scales[0][row]) : left[i];
        of.b[row][x] = scaled ? times(right[i], of.scales[1][row]) : right[i];
    }
}

__device__ __forceinline__ bool has_chunk(const u32* chunks, int start) { return chunks[start / 4096] >> start / 128 % 32 & 1; }

__device__ __forceinline__ float of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

__device__ __forceinline__ float most_of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, step));
    return x;
}

__device__ __forceinline__ u32 any_of_warp(u32 x) {
    for (int step = 16; step > 0; step /= 2) x |= __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

// A quarter of the root mean square of norms that are not zero, over a warp.
__device__ __forceinline__ float quarter_of(float norm) {
    const float second = of_warp(norm * norm), count = of_warp(norm > 0.0f ? 1.0f : 0.0f);
    return count > 0.0f ? 0.25f * sqrtf(second / count) : 0.0f;
}

// Of the chunks of k those where these rows meet any column, these columns of the upper 16 rows any of those, and likewise of the lower ones.
__device__ __forceinline__ void meet(Square& of, const Matrix& a, const Matrix& b, const Corner& at, u32 rows, u32 upper, u32 lower) {
    const int x = threadIdx.x % 32, y = threadIdx.x / 32, words = words_of(a);
    if (y < words) {
        const u32 row = at.a + x < at.a_end ? a.row_chunks[(at.a + x) * words + y] : 0;
        const u32 column = at.b + x < at.b_end ? b.row_chunks[(at.b + x) * words + y] : 0;
        const u32 of_rows = any_of_warp(rows >> x & 1 ? row : 0) & any_of_warp(column);
        const u32 of_upper = any_of_warp(upper >> x & 1 ? column : 0) & any_of_warp(x < 16 ? row : 0);
        const u32 of_lower = any_of_warp(lower >> x & 1 ? column : 0) & any_of_warp(x < 16 ? 0 : row);
        if (x == 0) of.chunks[y] = of_rows | of_upper | of_lower;
    }
    __syncthreads();
}

// Over the eight threads of a line.
__device__ __forceinline__ float of_line(float x) {
    for (int step = 4; step > 0; step /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

__device__ __forceinline__ float results_of(int kind) { return kind ? 16.0f : 32.0f; }

// The squared error of a line that is let pass, four times float32's, by how many terms it has and the sum of their squares. No term lessens it.
__device__ __forceinline__ float allowed(int kind, float count, float squares) { return 16.0f * float32_error(count / results_of(kind)) * squares; }

struct Known {  // of a row of a matrix, without its elements; zeros outside
    float norm, nonzero, large;  // of the scaled row; how many elements are not zero, and how many are within 2^-10 of the largest
};

__device__ __forceinline__ Known known(const Matrix& of, int row, bool inside, int k) {
    const float norm = inside ? of.norms[row] : 0.0f;
    return {norm, inside ? of.stats[2 * row] * norm * norm : 0.0f, inside ? fmaxf(of.stats[2 * row + 1], 0.0f) * (float)k : 0.0f};
}

struct Others {  // rows that a line is multiplied by: how many are not zero, and the sums of their squared norms and of the rest
    float count, squares, nonzero, large;
};

__device__ __forceinline__ Others others_of_warp(const Known& row) {
    return {of_warp(row.norm > 0.0f ? 1.0f : 0.0f), of_warp(row.norm * row.norm), of_warp(row.nonzero), of_warp(row.large)};
}

struct Limits {  // of a line: the most that its squared error can become, with 1 % to spare for rounding, and the least number of its terms
    float most, least;
};

// Elements that are not zero meet no more of the other side's than there are; those within 2^-10 of the largest, which no scaling loses, meet where both
// sides have more than k together.
__device__ __forceinline__ Limits limits_of(const Known& own, const Others& met, const Errors& errors, int k) {
    const float terms = fminf(met.count * own.nonzero, met.nonzero), numbers = met.count * own.norm * own.norm + met.squares;
    const float most = own.norm > 0.0f ? 1.01f * (errors.left_out * terms + errors.rounding * numbers) : 0.0f;
    return {most, 0.999f * (met.count * (own.large - (float)k) + met.large)};
}

__device__ __forceinline__ bool is_small(const Square& of, int kind, int line) {
    return (kind ? of.small_columns[kind - 1] : of.small_rows) >> line & 1;
}

// Of the lines of a square; lines that are not small can have no error.
__device__ __forceinline__ void limit(Square& of, const Matrix& a, const Matrix& b, const Corner& at, const Errors& errors, int k) {
    const int x = threadIdx.x % 32, kind = threadIdx.x / 32;
    if (kind < 3) {
        const int own = (kind ? at.b : at.a) + x, other = (kind ? at.a : at.b) + x;
        const bool met = other < (kind ? at.a_end : at.b_end) && (kind == 0 || x / 16 == kind - 1);
        const Others others = others_of_warp(known(kind ? a : b, other, met, k));
        const Limits limits = limits_of(known(kind ? b : a, own, own < (kind ? at.b_end : at.a_end), k), others, errors, k);
        of.most[kind][x] = is_small(of, kind, x) ? limits.most : 0.0f;
        of.least[kind][x] = limits.least;
    }
    __syncthreads();
}

struct Strip {  // of 32 x 128 results, four squares side by side
    Others others[6];         // of 32 rows of B each, and of A's upper and lower 16 rows
    float sums[2][16][64];    // of squares of elements, by k: of 8 rows of B each, and of 2 of A
    float totals[2][64];      // the least of those of 32 rows of B, and of 16 of A
    float squares[160];       // of the terms of a result, at least: summed over the 16 or 32 results of each column and each row
};

// No more than the square of an element, but for 2e-5 of it: its top slice is within 0.502.
__device__ __forceinline__ u32 least_square(u32 slices, int i) {
    const int size = abs((int)(signed char)(slices >> 8 * i));
    return (u32)(size * size - size);
}

// Add to the squares of each line those of 64 of k, from `start` on.
__device__ __forceinline__ void add_squares(Strip& of, const Matrix& a, const Matrix& b, const Corner& at, int start) {
    const int word = threadIdx.x % 16, group = threadIdx.x / 16;  // this thread's four of k, and its 8 rows of B and 2 of A
    u32 own[10][2], sums[2][4] = {};  // two squares a word
    for (int i = 0; i < 10; ++i) {
        const int side = i < 8 ? 0 : 1, row = side ? at.a + 2 * group + i - 8 : at.b + 8 * group + i;
        const signed char* from = side ? a.slices + (i64)row * a.padded : b.slices + (i64)row * b.padded;
        const u32 slices = row < (side ? at.a_end : at.b_end) ? *(const u32*)(from + start + 4 * word) : 0;
        for (int j = 0; j < 2; ++j) {
            const u32 one = least_square(slices, 2 * j), next = least_square(slices, 2 * j + 1);
            sums[side][2 * j] += one, sums[side][2 * j + 1] += next;
            own[i][j] = one | next << 16;
        }
    }
    for (int side = 0; side < 2; ++side)
        for (int j = 0; j < 4; ++j) of.sums[side][group][4 * word + j] = (float)sums[side][j];
    __syncthreads();
    if (threadIdx.x < 128) {
        const int side = threadIdx.x / 64, x = threadIdx.x % 64, groups = side ? 8 : 4;
        float least = 3e38f;
        for (int first = 0; first < 16; first += groups) {
            if (of.others[side ? 4 + first / 8 : first / 4].count == 0.0f) continue;
            float total = 0;
            for (int i = first; i < first + groups; ++i) total += of.sums[side][i][x];
            least = fminf(least, total);
        }
        of.totals[side][x] = least;
    }
    __syncthreads();
    for (int i = 0; i < 10; ++i) {
        const float* totals = of.totals[i < 8 ? 1 : 0] + 4 * word;
        float sum = 0;
        for (int j = 0; j < 2; ++j) sum += (float)(own[i][j] & 65535) * totals[2 * j] + (float)(own[i][j] >> 16) * totals[2 * j + 1];
        for (int step = 8; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
        if (word == 0) of.squares[i < 8 ? 8 * group + i : 128 + 2 * group + i - 8] += sum;
    }
    __syncthreads();
}

constexpr int LOOKED_AT = 512;  // of k, at most

// Whether no line of four squares can be marked, by the top slices of 64, 128, ... of k. So it is for nearly all where rows are nearly alike, and to see
// it takes a fourth of what walks of the same length take. It gives up after 128 where a line would not be there by LOOKED_AT either.
__device__ __forceinline__ bool cleared(Strip& of, const Matrix& a, const Matrix& b, const Corner& at, const Errors& errors, int k) {
    const int t = threadIdx.x, x = t % 32, part = t / 32;
    if (part < 6) {
        const int row = part < 4 ? at.b + t : at.a + x;
        const bool inside = part < 4 ? row < at.b_end : x / 16 == part - 4 && row < at.a_end;
        const Others others = others_of_warp(known(part < 4 ? b : a, row, inside, k));
        if (x == 0) of.others[part] = others;
    }
    if (t < 160) of.squares[t] = 0;
    __syncthreads();
#pragma unroll 1
    for (int seen = 64; seen <= min(LOOKED_AT, a.padded); seen += 64) {
        add_squares(of, a, b, at, seen - 64);
        bool open = false, hopeless = false;
        if (t < 160) {
            const int kind = t < 128, row = kind ? at.b + t : at.a + t - 128;
            const Known line = known(kind ? b : a, row, row < (kind ? at.b_end : at.a_end), k);
            for (int i = kind ? 4 : 0; i < (kind ? 6 : 4); ++i) {
                const Limits limits = limits_of(line, of.others[i], errors, k);
                const float let_pass = allowed(kind, limits.least, of.squares[t]);
                open |= let_pass < limits.most;
                hopeless |= let_pass * (float)LOOKED_AT < limits.most * (float)seen;
            }
        }
        if (!__syncthreads_or(open)) return true;
        if (seen >= 128 && __syncthreads_or(hopeless)) return false;
    }
    return false;
}

// Which rows of a square, and which columns of its upper and of its lower half, have small results only. The product has found this of 128 columns and
// of 16 rows, with a bound no larger than this one (2 units more than its own, for it sees sums of orders 0 and 1): all that it found is found again.
// Which of them are right because they meet next to nothing (zeros, in most cases) their own chunks tell, without a walk along k.
__device__ __forceinline__ void find_small(Square& of, const Matrix& a, const Matrix& b, const Corner& at, const float* c, i64 c_pitch, int k) {
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    if (y < 2) {
        const Matrix& from = y ? b : a;
        const int row = (y ? at.b : at.a) + x;
        const bool counts = row < (y ? at.b_end : at.a_end) && !from.flags[row];
        of.scales[y][x] = counts ? 0.00390625 / from.inverse[row] : 0.0;
        of.norms[y][x] = counts ? from.norms[row] : 0.0f;
    }
    if (threadIdx.x == 0) of.small_rows = of.small_columns[0] = of.small_columns[1] = 0;
    __syncthreads();
    const float share = rsqrtf((float)k), bound = share * fmaxf(quarter_of(of.norms[1][x]), b.floors[at.b / 128]);
    float halves[2] = {0, 0};
    for (int i = 0; i < 4; ++i) {
        const int row = y + 8 * i;
        const double scale = of.scales[0][row] * of.scales[1][x];
        const float size = scale == 0.0 ? 0.0f : (float)(fabs((double)c[row * c_pitch + x]) * scale);
        halves[i / 2] = fmaxf(halves[i / 2], size);
        const float peak = most_of_warp(size), norm = of.norms[0][row];
        if (x == 0 && norm > 0.0f && peak < norm * bound + 2.0f) atomicOr(&of.small_rows, 1u << row);
    }
    of.parts[0][0][y][x] = halves[0], of.parts[0][1][y][x] = halves[1];
    __syncthreads();
    if (y < 2) {
        const float rows_bound = share * quarter_of(x / 16 == y ? of.norms[0][x] : 0.0f), norm = of.norms[1][x];
        float peak = 0;
        for (int i = 0; i < 8; ++i) peak = fmaxf(peak, of.parts[0][y][i][x]);
        const u32 small = any_of_warp(rows_bound > 0.0f && norm > 0.0f && peak < norm * rows_bound + 2.0f ? 1u << x : 0u);
        if (x == 0) of.small_columns[y] = small;
    }
    __syncthreads();
    meet(of, a, b, at, of.small_rows, of.small_columns[0], of.small_columns[1]);
}

struct Terms {  // of a row or a column of a square, over its 32 or 16 results, in scaled units: a thread's share
    float squares, count, error;  // of the terms; how many are not zero; the squared error of those by slices

    // A number x, and of those that it is multiplied by the squares and how many are not zero.
    __device__ __forceinline__ void add(float x, float others, float nonzero, const Errors& errors) {
        squares += x * x * others;
        if (x == 0.0f) return;
        count += nonzero;
        error += errors.left_out * nonzero + errors.rounding * (x * x * nonzero + others);
    }
};

// The totals of 32 of k, each thread having fetched four elements of either side.
__device__ __forceinline__ void add_up(Square& of) {
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    float squares[3] = {0, 0, 0}, counts[3] = {0, 0, 0};
    for (int i = 0; i < 4; ++i) {
        const float one = of.a[y + 8 * i][x], other = of.b[y + 8 * i][x];
        squares[0] += other * other, counts[0] += other != 0.0f ? 1.0f : 0.0f;
        squares[1 + i / 2] += one * one, counts[1 + i / 2] += one != 0.0f ? 1.0f : 0.0f;
    }
    for (int kind = 0; kind < 3; ++kind) of.parts[0][kind][y][x] = squares[kind], of.parts[1][kind][y][x] = counts[kind];
    __syncthreads();
    if (y < 6) {
        float total = 0;
        for (int i = 0; i < 8; ++i) total += of.parts[y / 3][y % 3][i][x];
        of.totals[y / 3][y % 3][x] = total;
    }
    __syncthreads();
}

// Mark the small rows and columns of a suspect square whose error by slices exceeds four times float32's, by the model of int8_level.h for the terms that
// are there. Where results are small because large terms cancel, float32 errs as much. Most such lines are small by chance, and few of their terms tell
// that they are right: the walk ends where no small line can be marked any more. That is asked after 1, 2, 4, 8, ... steps.
__device__ __forceinline__ void mark_small(Square& of, const Matrix& a, const Matrix& b, const Corner& at, const Errors& errors, int k) {
    const int line = threadIdx.x / 8, part = threadIdx.x % 8 * 4;  // this thread's lines of each kind, and the first of its four of k
    Terms terms[3] = {};
    int walked = 0;
    limit(of, a, b, at, errors, k);
    for (int start = 0; start < k; start += 32) {
        if (!has_chunk(of.chunks, start)) continue;
        fetch(of, a, b, at, start, k, true);
        add_up(of);
        for (int i = part; i < part + 4; ++i)
            for (int kind = 0; kind < 3; ++kind) terms[kind].add((kind ? of.b : of.a)[line][i], of.totals[0][kind][i], of.totals[1][kind][i], errors);
        __syncthreads();
        ++walked;
        if ((walked & (walked - 1)) != 0) continue;
        bool open = false;
        for (int kind = 0; kind < 3; ++kind) {
            const float count = fmaxf(of_line(terms[kind].count), of.least[kind][line]);
            open |= allowed(kind, count, of_line(terms[kind].squares)) < of.most[kind][line];
        }
        if (!__syncthreads_or(open)) return;
    }
    bool errs[3];
    for (int kind = 0; kind < 3; ++kind) {
        const float limit = allowed(kind, of_line(terms[kind].count), of_line(terms[kind].squares));
        errs[kind] = of_line(terms[kind].error) > limit && is_small(of, kind, line);
    }
    if (part == 0 && errs[0]) of.rows[line] = 1;
    if (part == 0 && (errs[1] || errs[2])) of.columns[line] = 1;
    __syncthreads();
}

constexpr int CLEARED = 128;

struct Suspects {  // of one product: a byte for each 16 rows of a tile of 128 x `width` results, tiles in the order of their places
    unsigned short* found;
    int across, width;

    __device__ __forceinline__ unsigned short& of(int row, int column) const {
        return found[(row / 128 * across + column / width) * 4 + row % 128 / 32];
    }
    __device__ __forceinline__ bool at(int row, int column) const { return (of(row, column) & ~CLEARED) != 0; }

    // Of the square at a row and a column of a matrix that begins at row `top` and ends before `end` and before n columns. A square at the end may have
    // too few rows or columns to tell: there those before it count as well.
    __device__ __forceinline__ bool square(int row, int column, int top, int end, int n) const {
        bool any = at(row, column);
        for (int back = 32; row + 32 > end && back <= 128 && row - back >= top; back += 32) any |= at(row - back, column);
        return any || (column + 32 > n && column >= 128 && at(row, column - 128));
    }
};

// One square: find what is small and wrong, where it is suspect, and put plain sums there and in rows and columns with Inf or NaN.
__device__ __forceinline__ void mend(Square& of, const Matrix& a, const Matrix& b, const Corner& at, float* c, i64 c_pitch, bool suspect,
                                     const Errors& errors, int k) {
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    __syncthreads();
    if (y == 0) of.rows[x] = at.a + x < at.a_end && a.flags[at.a + x], of.columns[x] = at.b + x < at.b_end && b.flags[at.b + x];
    const bool flagged = __syncthreads_or(y == 0 && (of.rows[x] || of.columns[x]));
    if (suspect) {
        find_small(of, a, b, at, c, c_pitch, k);
        if (of.small_rows | of.small_columns[0] | of.small_columns[1]) mark_small(of, a, b, at, errors, k);
    }
    if (!__syncthreads_or(of.rows[x] || of.columns[x])) return;
    const u32 wanted = any_of_warp(of.columns[x] ? 1u << x : 0u);
    meet(of, a, b, at, any_of_warp(of.rows[x] ? 1u << x : 0u), wanted, wanted);
    double sums[4] = {0, 0, 0, 0};
    for (int start = 0; start < k; start += 32) {
        if (!flagged && !has_chunk(of.chunks, start)) continue;  // zeros times Inf are not zeros
        fetch(of, a, b, at, start, k, false);
        __syncthreads();
        const int left = min(32, k - start);
        float parts[4] = {0, 0, 0, 0};
        for (int j = 0; j < left; ++j)
            for (int i = 0; i < 4; ++i) parts[i] += of.a[y + 8 * i][j] * of.b[x][j];
        for (int i = 0; i < 4; ++i) sums[i] += (double)parts[i];
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        const int row = y + 8 * i;
        if (at.a + row < at.a_end && at.b + x < at.b_end && (of.rows[row] || of.columns[x])) c[row * c_pitch + x] = (float)sums[i];
    }
}

// Plain float32 sums in place of what the slices gave: for rows of A and of B with Inf or NaN (their slices are zeros), and, in the tiles that the product
// found suspect, for the rows and columns that `mark_small` marks. A grid of 256 threads a block; it ends at once where there is nothing to do.
// It walks strips of four squares of 32 x 32, and clears them. What remains may mean that all of k is walked for each of the four. So where there are
// many strips it does the first square of each with the clearing, and then the others, which fall to other blocks: what they read is nearly always known by
// then, and where it is not they look for themselves. suspects: of tiles of 128 x `columns`; gets a mark for each strip that is clear.
// `level` > 0 takes the rule's place.
extern "C" __global__ void __launch_bounds__(256, 4)
    plain_rows(const Matrix a, const Matrix b, float* c, i64 c_pitch, int k, unsigned short* suspects, int columns, int level) {
    __shared__ Square square;
    __shared__ Strip strip;
    const bool special = a.worst[2] != 0.0f || b.worst[2] != 0.0f, doubtful = a.worst[3] != 0.0f;
    if (!special && !doubtful) return;
    const int m = a.per, n = b.per, across = (n + 127) / 128, strips = (m + 31) / 32 * across, all = a.batches * strips;
    const bool apart = special || all >= 2 * (int)gridDim.x;
    const Suspects found = {suspects, (n + columns - 1) / columns, columns};
    for (int index = blockIdx.x; index < (apart ? 4 : 1) * all; index += gridDim.x) {
        const int round = index / all, at_strip = index % all, batch = at_strip / strips, down = at_strip % strips / across;
        const int above = batch * m, row = above + down * 32, a_end = above + m, before = batch * n, first = (at_strip + SKEW * down) % across * 128;
        Corner at = {row, a_end, before + first, before + n, 0, 0};
        u32 suspect = 0;
        for (int i = 0; i < 4; ++i)
            if (doubtful && first + 32 * i < n && found.square(row, first + 32 * i, above, a_end, n)) suspect |= 1u << i;
        if (round > 0 && suspect && __syncthreads_or(found.of(row, first) & CLEARED)) suspect = 0;  // the block agrees: another may be writing it
        if (!special && !suspect) continue;
        const float *a_block = a.blocks + row / 128 * 2, *b_block = b.blocks + (before + first) / 128 * 2;
        const Errors errors = errors_of(level ? level : tile_level(a_block[0], a_block[1], b_block[0], b_block[1], (float)k));
        if (round == 0 && suspect && cleared(strip, a, b, at, errors, k)) {
            if (threadIdx.x == 0) found.of(row, first) |= CLEARED;
            suspect = 0;
            if (!special) continue;
        }
        at.a_row = a.x + batch * a.batch_stride + (row - above) * a.row_stride;
        for (int i = apart ? round : 0; i < (apart ? round + 1 : 4); ++i) {
            const int column = first + 32 * i;
            const bool look = suspect >> i & 1;
            if (column >= n || !(special || look)) continue;
            at.b = before + column, at.b_row = b.x + batch * b.batch_stride + column * b.row_stride;
            mend(square, a, b, at, c + row * c_pitch + column, c_pitch, look, errors, k);
        }
    }
}
