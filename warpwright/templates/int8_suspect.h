// Which results may be small because large elements meet zeros: what slices leave out is a share of a row's largest elements, of float32's error it is one
// of the terms. (The last row of a triangular matrix has one element. Where the other side's element that it meets is 1e-8 of its column's largest, the
// slices lose what the row's results consist of.) The product looks at its own results, which costs next to nothing, and plain_rows looks closer.
//
// A row of a tile is suspect where its largest result is below a quarter of |a| |b| / sqrt(k), the root mean square for independent elements, with the
// scaled rows' norms; likewise a column within 16 rows. Of n normal results all are below a share s with probability (0.8 s)^n: 5e-12 for a quarter and
// 16. For fewer, or norms of which some are much larger than others, the share is what makes it 5e-10.

// From the sums of second and of fourth powers of norms, and how many are not zero: the bound of a result is this times the norm of the row / sqrt(k).
__device__ __forceinline__ float floor_of(float second, float fourth, float count) {
    return count > 0.0f ? fminf(0.25f, 1.25f * exp2f(-31.0f * fourth / (second * second))) * sqrtf(second / count) : 0.0f;
}
