// One operand's slice of a product's terms, in shared memory as it lies in global memory: SIZE rows (of A; or columns of B) by STEP terms, of which
// the terms are contiguous (TERMS) or the rows are. A line of rows has PAD floats more than rows, one of terms 4, so that the pitches meet no bank twice.
// The THREADS of a block read it a quad a turn.
template <int SIZE, bool TERMS, int PAD>
struct Quads {
    static constexpr int PITCH = TERMS ? STEP + 4 : SIZE + PAD, FLOATS = (TERMS ? SIZE : STEP) * PITCH, TURNS = SIZE * STEP / 4 / THREADS;
    static constexpr int LINE = (TERMS ? STEP : SIZE) / 4;  // quads of a line that is contiguous

    // Read a thread's quads of the slice that begins at (row, term): as they are where all lies inside (WHOLE), else with zeros for what does not. No
    // branch stands between a whole slice's loads and their use, a slice later: behind one the compiler waits for them (2.2 times as slow).
    template <bool WHOLE>
    static __device__ __forceinline__ void read(float4 (&own)[TURNS], const float* from, long long pitch, int row, int rows, int term, int terms) {
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) {
            const int quad = threadIdx.x + turn * THREADS, line = quad / LINE, along = quad % LINE * 4;
            const int r = row + (TERMS ? line : along), t = term + (TERMS ? along : line);
            const float* at = from + (TERMS ? r * pitch + t : t * pitch + r);
            if (WHOLE) {
                own[turn] = *(const float4*)at;
            } else {
                const auto one = [&](int e) { return r + (TERMS ? 0 : e) < rows && t + (TERMS ? e : 0) < terms ? at[e] : 0.0f; };
                own[turn] = make_float4(one(0), one(1), one(2), one(3));
            }
        }
    }

    static __device__ __forceinline__ void write(float* to, const float4 (&own)[TURNS]) {
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) {
            const int quad = threadIdx.x + turn * THREADS;
            *(float4*)(to + quad / LINE * PITCH + quad % LINE * 4) = own[turn];
        }
    }
};
