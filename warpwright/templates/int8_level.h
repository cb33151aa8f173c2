// How many slices a tile of the product needs: the level, 3, 4 or 5 (int8_reference.py has the same rule in Python, and where its terms come from).
//
// a and b describe 128 rows each: alpha = nonzero elements over the sum of their squares in scaled units, its mean over the rows, at least an eighth of
// its largest; share = the mean share of elements within 2^-10 of their row's largest one.

struct Errors {  // squared, of a term of the sum in scaled units: what the orders left out hold, and the rounding of a last slice, over the other's square
    float left_out, rounding;
};

__device__ __forceinline__ Errors errors_of(int level) {
    if (level == 3) return {2.12e-7f, 1.94e-11f};
    if (level == 4) return {4.85e-12f, 2.97e-16f};
    return {9.87e-17f, 4.52e-21f};
}

// (2.4e-8)^2 times terms / 2: float32's own error is 2.4e-8 sqrt(terms / 2) of the result.
__device__ __forceinline__ float float32_error(float terms) { return 5.76e-16f * fmaxf(fminf(terms, 4096.0f) * 0.5f, 1.0f); }

// What a tile may err by. Of up to eight terms that count one may be all, and float32 then errs by rounding it alone, which slices do as well; and such
// rows err up to seven times their blocks' mean (exp(4N) at k = 128): an eighth of that rounding.
__device__ __forceinline__ float allowed_error(float terms) { return terms > 8.0f ? float32_error(terms) : 9.0e-18f; }

__device__ __forceinline__ int tile_level(float a_alpha, float a_share, float b_alpha, float b_share, float k) {
    const float allowed = allowed_error(a_share * b_share * k), product = a_alpha * b_alpha, sum = a_alpha + b_alpha;
    for (int level = 3; level < 5; ++level) {
        const Errors errors = errors_of(level);
        if (errors.left_out * product + errors.rounding * sum <= allowed) return level;
    }
    return 5;
}
