// cuBLAS's triangular solves and LU decompositions of batches, column-major, as loops: the unblocked algorithms of the textbook (Golub and Van Loan, 3.2, 3.4).
namespace ww {
// LU with the rows exchanged as `pivots` (from 1) says, or without exchanges. Returns 0, or the number (from 1) of the first pivot that is 0.
template <class T> static int lu(int n, T* a, int lda, int* pivots) {
  int info = 0;
  for (long k = 0; k < n; ++k) {
    long best = k;
    if (pivots) {
      for (long i = k + 1; i < n; ++i) if (std::fabs(a[k * lda + i]) > std::fabs(a[k * lda + best])) best = i;
      pivots[k] = (int)best + 1;
      if (best != k) for (long j = 0; j < n; ++j) std::swap(a[j * lda + k], a[j * lda + best]);
    }
    if (a[k * lda + k] == T(0)) { info = info ? info : (int)k + 1; continue; }
    for (long i = k + 1; i < n; ++i) a[k * lda + i] /= a[k * lda + k];
    for (long j = k + 1; j < n; ++j) for (long i = k + 1; i < n; ++i) a[j * lda + i] -= a[k * lda + i] * a[j * lda + k];
  }
  return info;
}
// Solves op(A) x = b in place for a triangle of A.
template <class T> static void triangle(bool upper, bool turned, bool unit, long n, const T* a, long lda, T* x, long by) {
  const auto at = [&](long i, long j) { return turned ? a[i * lda + j] : a[j * lda + i]; };
  const bool from_end = upper != turned;
  for (long step = 0; step < n; ++step) {
    const long i = from_end ? n - 1 - step : step;
    T sum = x[i * by];
    for (long j = from_end ? i + 1 : 0; j < (from_end ? n : i); ++j) sum -= at(i, j) * x[j * by];
    x[i * by] = unit ? sum : sum / at(i, i);
  }
}
// Solves A x = b with A = P^T L U.
template <class T> static void lu_solve(int n, const T* a, int lda, const int* pivots, T* x) {
  if (pivots) for (long k = 0; k < n; ++k) std::swap(x[k], x[pivots[k] - 1]);
  triangle(false, false, true, n, a, lda, x, 1);
  triangle(true, false, false, n, a, lda, x, 1);
}
}  // namespace ww
#define WW_SOLVE(T, LETTER) \
  static inline cublasStatus_t cublas##LETTER##getrfBatched(cublasHandle_t, int n, T* const a[], int lda, int* pivots, int* info, int count) { \
    if (n < 0 || count < 0 || lda < std::max(1, n)) return CUBLAS_STATUS_INVALID_VALUE; \
    for (long i = 0; i < count; ++i) info[i] = ww::lu(n, a[i], lda, pivots ? pivots + i * n : nullptr); \
    return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##getrsBatched(cublasHandle_t, cublasOperation_t turn, int n, int columns, const T* const a[], int lda, const int* pivots, T* const b[], int ldb, int* info, int count) { \
    *info = 0; \
    if (turn != CUBLAS_OP_N) return CUBLAS_STATUS_NOT_SUPPORTED; \
    for (long i = 0; i < count; ++i) for (long j = 0; j < columns; ++j) ww::lu_solve(n, a[i], lda, pivots ? pivots + i * n : nullptr, b[i] + j * ldb); \
    return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##getriBatched(cublasHandle_t, int n, const T* const a[], int lda, const int* pivots, T* const c[], int ldc, int* info, int count) { \
    for (long i = 0; i < count; ++i) { \
      info[i] = 0; \
      for (long j = 0; j < n; ++j) if (a[i][j * lda + j] == T(0) && !info[i]) info[i] = (int)j + 1; \
      for (long j = 0; !info[i] && j < n; ++j) { for (long r = 0; r < n; ++r) c[i][j * ldc + r] = T(r == j); ww::lu_solve(n, a[i], lda, pivots ? pivots + i * n : nullptr, c[i] + j * ldc); } } \
    return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##trsm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, int m, int n, const T* alpha, const T* a, int lda, T* b, int ldb) { \
    if (fill == CUBLAS_FILL_MODE_FULL || m < 0 || n < 0) return CUBLAS_STATUS_INVALID_VALUE; \
    for (long j = 0; j < n; ++j) for (long i = 0; i < m; ++i) b[j * ldb + i] *= *alpha; \
    const bool upper = fill == CUBLAS_FILL_MODE_UPPER, turned = turn != CUBLAS_OP_N, unit = diagonal == CUBLAS_DIAG_UNIT; \
    if (side == CUBLAS_SIDE_LEFT) for (long j = 0; j < n; ++j) ww::triangle(upper, turned, unit, m, a, lda, b + j * ldb, 1); \
    else for (long i = 0; i < m; ++i) ww::triangle(upper, !turned, unit, n, a, lda, b + i, ldb); \
    return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##trsmBatched(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, int m, int n, const T* alpha, const T* const a[], int lda, T* const b[], int ldb, int count) { \
    if (count < 0) return CUBLAS_STATUS_INVALID_VALUE; \
    for (long i = 0; i < count; ++i) if (const auto status = cublas##LETTER##trsm(handle, side, fill, turn, diagonal, m, n, alpha, a[i], lda, b[i], ldb)) return status; \
    return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##syrk(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, int n, int k, const T* alpha, const T* a, int lda, const T* beta, T* c, int ldc) { \
    for (long j = 0; j < n; ++j) for (long i = fill == CUBLAS_FILL_MODE_LOWER ? j : 0; i < (fill == CUBLAS_FILL_MODE_UPPER ? j + 1 : n); ++i) { \
      T sum = 0; \
      for (long l = 0; l < k; ++l) sum += turn == CUBLAS_OP_N ? a[l * lda + i] * a[l * lda + j] : a[i * lda + l] * a[j * lda + l]; \
      c[j * ldc + i] = *beta == T(0) ? *alpha * sum : *alpha * sum + *beta * c[j * ldc + i]; } \
    return CUBLAS_STATUS_SUCCESS; }
WW_SOLVE(float, S) WW_SOLVE(double, D)
#undef WW_SOLVE
