// How many slices a tile of the product needs: the level, 3, 4 or 5 (int8_reference.py has the same rule in Python, and where its terms come from).
//
// a and b describe 128 rows each: alpha = nonzero elements over the sum of their squares in scaled units, its mean over the rows, at least an eighth of
// its largest; share = the mean share of elements within 2^-10 of their row's largest one.

__device__ __forceinline__ int tile_level(float a_alpha, float a_share, float b_alpha, float b_share, float k) {
    const float terms = fminf(a_share * b_share * k, 4096.0f) * 0.5f;
    const float allowed = 5.76e-16f * fmaxf(terms, 1.0f);  // (2.4e-8)^2: float32's own error is 2.4e-8 sqrt(terms / 2) of the result
    const float product = a_alpha * b_alpha, sum = a_alpha + b_alpha;
    if (2.12e-7f * product + 1.94e-11f * sum <= allowed) return 3;  // the orders left out; the rounding of the last slice
    if (4.85e-12f * product + 2.97e-16f * sum <= allowed) return 4;
    return 5;
}
