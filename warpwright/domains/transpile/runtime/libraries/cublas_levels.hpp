// The rest of cuBLAS's levels 1 to 3, for real and complex numbers, as loops over what an element of the matrix is, however it is stored: dense, packed, banded,
// a triangle of a symmetric or Hermitian one. The definitions are the reference BLAS's; sums are in the matrices' type, in the order of k.
// Where alpha is 0, what it multiplies is not read: NaN there does not come out.
#include <complex>
namespace ww::blas_levels {
using C = std::complex<float>;
using Z = std::complex<double>;
template <class T> using real_of = decltype(std::real(T()));
static inline float conj(float x) { return x; }
static inline double conj(double x) { return x; }
static inline C conj(C x) { return std::conj(x); }
static inline Z conj(Z x) { return std::conj(x); }
template <class T> static T only_real(T x) { return T(std::real(x)); }
template <class T> static T times(real_of<T> by, T x) { return by * x; }
template <class T> static real_of<T> size_of(T x) { return std::abs(std::real(x)) + std::abs(std::imag(x)); }  // as Icamax and Scasum mean it
// Where a matrix keeps its elements. A fill says which triangle is there; `at` is only asked for what is there.
template <class T> struct Dense { T* a; long ld; T& at(long i, long j) const { return a[j * ld + i]; } bool in_band(long, long) const { return true; } };
template <class T> struct Packed {
  T* a; long n; bool upper;
  T& at(long i, long j) const { return upper ? a[i + j * (j + 1) / 2] : a[i + (2 * n - j - 1) * j / 2]; }
  bool in_band(long, long) const { return true; }
};
template <class T> struct Band {  // of `below` diagonals below the main one and `above` above it
  T* a; long ld, below, above;
  T& at(long i, long j) const { return a[j * ld + above + i - j]; }
  bool in_band(long i, long j) const { return i - j <= below && j - i <= above; }
};
enum Kind { GENERAL, SYMMETRIC, HERMITIAN, TRIANGULAR, UNIT };
// An element of the whole matrix that a stored part stands for.
template <class T, class M> static T element(const M& m, Kind kind, bool upper, long i, long j) {
  if (kind == UNIT && i == j) return T(1);
  const bool there = kind == GENERAL || (upper ? i <= j : i >= j);
  if (!there && (kind == TRIANGULAR || kind == UNIT)) return T(0);
  if (!there) std::swap(i, j);
  if (!m.in_band(i, j)) return T(0);
  const T v = m.at(i, j);
  return kind == HERMITIAN ? i == j ? only_real(v) : there ? v : conj(v) : v;
}
template <class T, class M> static T turned(const M& m, Kind kind, bool upper, cublasOperation_t turn, long i, long j) {
  return turn == CUBLAS_OP_N ? element<T>(m, kind, upper, i, j) : turn == CUBLAS_OP_T ? element<T>(m, kind, upper, j, i) : conj(element<T>(m, kind, upper, j, i));
}
// y = alpha op(A) x + beta y
template <class T, class M> static cublasStatus_t product(const M& a, Kind kind, bool upper, cublasOperation_t turn, long rows, long inner, T alpha, const T* x, int by_x, T beta, T* y, int by_y) {
  if (rows < 0 || inner < 0 || by_x == 0 || by_y == 0) return CUBLAS_STATUS_INVALID_VALUE;
  x = first_of(x, inner, by_x), y = first_of(y, rows, by_y);
  for (long i = 0; i < rows; ++i) {
    T sum(0);
    for (long l = 0; l < inner && alpha != T(0); ++l) sum += turned<T>(a, kind, upper, turn, i, l) * x[l * by_x];
    y[i * by_y] = beta == T(0) ? alpha * sum : alpha * sum + beta * y[i * by_y];
  }
  return CUBLAS_STATUS_SUCCESS;
}
// x = op(A) x of a triangle
template <class T, class M> static cublasStatus_t triangle_product(const M& a, bool unit, bool upper, cublasOperation_t turn, long n, T* x, int by) {
  if (n < 0 || by == 0) return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<T> y((size_t)n);
  product<T>(a, unit ? UNIT : TRIANGULAR, upper, turn, n, n, T(1), x, by, T(0), y.data(), 1);
  x = first_of(x, n, by);
  for (long i = 0; i < n; ++i) x[i * by] = y[(size_t)i];
  return CUBLAS_STATUS_SUCCESS;
}
// op(A) x = b in place of b
template <class T, class M> static cublasStatus_t triangle_solve(const M& a, bool unit, bool upper, cublasOperation_t turn, long n, T* x, int by) {
  if (n < 0 || by == 0) return CUBLAS_STATUS_INVALID_VALUE;
  x = first_of(x, n, by);
  const bool from_end = upper == (turn == CUBLAS_OP_N);
  for (long step = 0; step < n; ++step) {
    const long i = from_end ? n - 1 - step : step;
    T sum = x[i * by];
    for (long j = from_end ? i + 1 : 0; j < (from_end ? n : i); ++j) sum -= turned<T>(a, TRIANGULAR, upper, turn, i, j) * x[j * by];
    x[i * by] = unit ? sum : sum / turned<T>(a, TRIANGULAR, upper, turn, i, i);
  }
  return CUBLAS_STATUS_SUCCESS;
}
// Calls f(element, i, j) for a stored triangle; a Hermitian one's diagonal is made real.
template <class T, class M, class F> static cublasStatus_t each(const M& a, bool hermitian, bool upper, long n, F f) {
  if (n < 0) return CUBLAS_STATUS_INVALID_VALUE;
  for (long j = 0; j < n; ++j) for (long i = upper ? 0 : j; i < (upper ? j + 1 : n); ++i) {
    T& to = a.at(i, j);
    f(to, i, j);
    if (hermitian && i == j) to = only_real(to);
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T, class M> static cublasStatus_t rank_1(const M& a, bool hermitian, bool upper, long n, T alpha, const T* x, int by) {
  if (alpha == T(0)) return CUBLAS_STATUS_SUCCESS;
  x = first_of(x, n, by);
  return each<T>(a, hermitian, upper, n, [&](T& to, long i, long j) { to += alpha * x[i * by] * (hermitian ? conj(x[j * by]) : x[j * by]); });
}
template <class T, class M> static cublasStatus_t rank_2(const M& a, bool hermitian, bool upper, long n, T alpha, const T* x, int by_x, const T* y, int by_y) {
  if (alpha == T(0)) return CUBLAS_STATUS_SUCCESS;
  x = first_of(x, n, by_x), y = first_of(y, n, by_y);
  return each<T>(a, hermitian, upper, n, [&](T& to, long i, long j) {
    to += alpha * x[i * by_x] * (hermitian ? conj(y[j * by_y]) : y[j * by_y]) + (hermitian ? conj(alpha) : alpha) * y[i * by_y] * (hermitian ? conj(x[j * by_x]) : x[j * by_x]);
  });
}
// C = alpha f(i, j) + beta C, f the element of a product
template <class T, class F> static void combine(long m, long n, T alpha, T beta, T* c, long ldc, F f) {
  for (long j = 0; j < n; ++j) for (long i = 0; i < m; ++i) { const T v = alpha == T(0) ? T(0) : alpha * f(i, j); c[j * ldc + i] = beta == T(0) ? v : v + beta * c[j * ldc + i]; }
}
template <class T> static cublasStatus_t gemm(cublasOperation_t ta, cublasOperation_t tb, long m, long n, long k, T alpha, const T* a, long lda, const T* b, long ldb, T beta, T* c, long ldc) {
  if (m < 0 || n < 0 || k < 0 || ldc < std::max(1L, m) || lda < std::max(1L, ta == CUBLAS_OP_N ? m : k) || ldb < std::max(1L, tb == CUBLAS_OP_N ? k : n)) return CUBLAS_STATUS_INVALID_VALUE;
  const Dense<const T> A{a, lda}, B{b, ldb};
  combine<T>(m, n, alpha, beta, c, ldc, [&](long i, long j) { T s(0); for (long l = 0; l < k; ++l) s += turned<T>(A, GENERAL, false, ta, i, l) * turned<T>(B, GENERAL, false, tb, l, j); return s; });
  return CUBLAS_STATUS_SUCCESS;
}
// C = alpha A B + beta C, or B A: A a symmetric, Hermitian or triangular matrix of which one triangle is there
template <class T> static cublasStatus_t side_product(Kind kind, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t turn, long m, long n, T alpha, const T* a, long lda, const T* b, long ldb, T beta, T* c, long ldc) {
  const bool left = side == CUBLAS_SIDE_LEFT, upper = fill == CUBLAS_FILL_MODE_UPPER;
  if (m < 0 || n < 0 || lda < std::max(1L, left ? m : n) || ldb < std::max(1L, m) || ldc < std::max(1L, m)) return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<T> kept;  // trmm may be told to write over B
  if (b == c) { kept.resize((size_t)(n * ldb)); for (long j = 0; j < n; ++j) std::copy(b + j * ldb, b + j * ldb + m, kept.begin() + j * ldb); b = kept.data(); }
  const Dense<const T> A{a, lda};
  combine<T>(m, n, alpha, beta, c, ldc, [&](long i, long j) {
    T s(0);
    if (left) for (long l = 0; l < m; ++l) s += turned<T>(A, kind, upper, turn, i, l) * b[j * ldb + l];
    else for (long l = 0; l < n; ++l) s += b[l * ldb + i] * turned<T>(A, kind, upper, turn, l, j);
    return s;
  });
  return CUBLAS_STATUS_SUCCESS;
}
// A triangle of C = alpha op(A) op(B)' + beta C, and with `both` + alpha' op(B) op(A)'
template <class T> static cublasStatus_t rank_k(bool hermitian, bool both, cublasFillMode_t fill, cublasOperation_t turn, long n, long k, T alpha, const T* a, long lda, const T* b, long ldb, T beta, T* c, long ldc) {
  const auto other = hermitian ? CUBLAS_OP_C : CUBLAS_OP_T;
  if (n < 0 || k < 0 || fill == CUBLAS_FILL_MODE_FULL || (turn != CUBLAS_OP_N && turn != other && !std::is_floating_point_v<T>) || ldc < std::max(1L, n)) return CUBLAS_STATUS_INVALID_VALUE;
  const auto op = [&](const T* x, long ld, long i, long l) { return turn == CUBLAS_OP_N ? x[l * ld + i] : hermitian ? conj(x[i * ld + l]) : x[i * ld + l]; };
  const auto its = [&](T x) { return hermitian ? conj(x) : x; };
  return each<T>(Dense<T>{c, ldc}, hermitian, fill == CUBLAS_FILL_MODE_UPPER, n, [&](T& to, long i, long j) {
    T s(0), t(0);
    for (long l = 0; l < k && alpha != T(0); ++l) { s += op(a, lda, i, l) * its(op(b, ldb, j, l)); if (both) t += op(b, ldb, i, l) * its(op(a, lda, j, l)); }
    const T v = both ? alpha * s + its(alpha) * t : alpha * s;
    to = beta == T(0) ? v : v + beta * (hermitian && i == j ? only_real(to) : to);
  });
}
template <class T> static cublasStatus_t solve_sides(cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, long m, long n, T alpha, const T* a, long lda, T* b, long ldb) {
  if (fill == CUBLAS_FILL_MODE_FULL || m < 0 || n < 0) return CUBLAS_STATUS_INVALID_VALUE;
  const bool left = side == CUBLAS_SIDE_LEFT, upper = fill == CUBLAS_FILL_MODE_UPPER, unit = diagonal == CUBLAS_DIAG_UNIT;
  for (long j = 0; j < n; ++j) for (long i = 0; i < m; ++i) b[j * ldb + i] = alpha == T(0) ? T(0) : alpha * b[j * ldb + i];
  if (alpha == T(0)) return CUBLAS_STATUS_SUCCESS;
  const Dense<const T> A{a, lda};
  if (left) { for (long j = 0; j < n; ++j) triangle_solve<T>(A, unit, upper, turn, m, b + j * ldb, 1); return CUBLAS_STATUS_SUCCESS; }
  // X op(A) = B is op(A)^T X^T = B^T; where op is the conjugate's, A^T conj(X)^T = conj(B)^T has no transpose left but a conjugate, so all is conjugated
  for (long i = 0; i < m; ++i) {
    if (turn != CUBLAS_OP_C) { triangle_solve<T>(A, unit, upper, turn == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N, n, b + i, (int)ldb); continue; }
    for (long j = 0; j < n; ++j) b[j * ldb + i] = conj(b[j * ldb + i]);
    triangle_solve<T>(A, unit, upper, CUBLAS_OP_N, n, b + i, (int)ldb);
    for (long j = 0; j < n; ++j) b[j * ldb + i] = conj(b[j * ldb + i]);
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T, class S, class R> static cublasStatus_t rotate(long n, T* x, int by_x, T* y, int by_y, R c, S s) {
  x = first_of(x, n, by_x), y = first_of(y, n, by_y);
  for (long i = 0; i < n; ++i) { const T u = x[i * by_x], v = y[i * by_y]; x[i * by_x] = times<T>(c, u) + T(s) * v, y[i * by_y] = times<T>(c, v) - conj(T(s)) * u; }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T> static cublasStatus_t rotation(T* a, T* b, T* c, T* s) {  // of real numbers
  const T biggest = std::fabs(*a) > std::fabs(*b) ? *a : *b, r = std::copysign((T)std::hypot(*a, *b), biggest);
  if (r == T(0)) { *c = 1, *s = 0, *a = 0, *b = 0; return CUBLAS_STATUS_SUCCESS; }
  *c = *a / r, *s = *b / r;
  const T z = std::fabs(*a) > std::fabs(*b) ? *s : *c != T(0) ? T(1) / *c : T(1);
  *a = r, *b = z;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T> static cublasStatus_t rotation(T* a, const T* b, real_of<T>* c, T* s) {
  const auto of_a = std::abs(*a), of_b = std::abs(*b);
  if (of_a == 0) { *c = 0, *s = T(1), *a = *b; return CUBLAS_STATUS_SUCCESS; }
  const auto norm = std::hypot(of_a, of_b);
  const T along = *a / of_a;
  *c = of_a / norm, *s = along * std::conj(*b) / norm, *a = along * norm;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T> static cublasStatus_t rotate_modified(long n, T* x, int by_x, T* y, int by_y, const T* p) {
  if (p[0] == T(-2)) return CUBLAS_STATUS_SUCCESS;
  const T h11 = p[0] == T(0) ? T(1) : p[1], h21 = p[0] == T(1) ? T(-1) : p[2], h12 = p[0] == T(1) ? T(1) : p[3], h22 = p[0] == T(0) ? T(1) : p[4];
  x = first_of(x, n, by_x), y = first_of(y, n, by_y);
  for (long i = 0; i < n; ++i) { const T u = x[i * by_x], v = y[i * by_y]; x[i * by_x] = h11 * u + h12 * v, y[i * by_y] = h21 * u + h22 * v; }
  return CUBLAS_STATUS_SUCCESS;
}
template <class T> static cublasStatus_t modified_rotation(T* d1, T* d2, T* x1, const T* y1, T* p) {  // the reference BLAS's rotmg
  const T gam = 4096, gam2 = gam * gam;
  T flag, h11 = 0, h12 = 0, h21 = 0, h22 = 0;
  const auto zero = [&] { flag = -1, h11 = h12 = h21 = h22 = 0, *d1 = *d2 = *x1 = 0; };
  if (*d1 < 0) zero();
  else {
    const T p2 = *d2 * *y1;
    if (p2 == 0) { p[0] = -2; return CUBLAS_STATUS_SUCCESS; }
    const T p1 = *d1 * *x1, q2 = p2 * *y1, q1 = p1 * *x1;
    if (std::fabs(q1) > std::fabs(q2)) {
      h21 = -*y1 / *x1, h12 = p2 / p1;
      const T u = T(1) - h12 * h21;
      if (u > 0) flag = 0, *d1 /= u, *d2 /= u, *x1 *= u;
      else zero();
    } else if (q2 < 0) zero();
    else {
      flag = 1, h11 = p1 / p2, h22 = *x1 / *y1;
      const T u = T(1) + h11 * h22, t = *d2 / u;
      *d2 = *d1 / u, *d1 = t, *x1 = *y1 * u;
    }
    const auto full = [&] { if (flag == 0) h11 = 1, h22 = 1; else if (flag == 1) h21 = -1, h12 = 1; flag = -1; };
    if (*d1 != 0) while (*d1 <= T(1) / gam2 || *d1 >= gam2) { full(); if (*d1 <= T(1) / gam2) *d1 *= gam2, *x1 /= gam, h11 /= gam, h12 /= gam; else *d1 /= gam2, *x1 *= gam, h11 *= gam, h12 *= gam; }
    if (*d2 != 0) while (std::fabs(*d2) <= T(1) / gam2 || std::fabs(*d2) >= gam2) { full(); if (std::fabs(*d2) <= T(1) / gam2) *d2 *= gam2, h21 /= gam, h22 /= gam; else *d2 /= gam2, h21 *= gam, h22 *= gam; }
  }
  if (flag < 0) p[1] = h11, p[2] = h21, p[3] = h12, p[4] = h22;
  else if (flag == 0) p[2] = h21, p[3] = h12;
  else p[1] = h11, p[4] = h22;
  p[0] = flag;
  return CUBLAS_STATUS_SUCCESS;
}
}  // namespace ww::blas_levels
#define WW_IN(x) ((const T*)(const void*)(x))
#define WW_OUT(x) ((T*)(void*)(x))
#define WW_OF(x) (*(const T*)(const void*)(x))
#define WW_LEVELS(U, TYPE, LETTER) \
  static inline cublasStatus_t cublas##LETTER##trmv(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, int n, const U* a, int lda, U* x, int by) { using namespace ww::blas_levels; using T = TYPE; return triangle_product<T>(Dense<const T>{WW_IN(a), lda}, diagonal == CUBLAS_DIAG_UNIT, fill == CUBLAS_FILL_MODE_UPPER, turn, n, WW_OUT(x), by); } \
  static inline cublasStatus_t cublas##LETTER##trsv(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, int n, const U* a, int lda, U* x, int by) { using namespace ww::blas_levels; using T = TYPE; return triangle_solve<T>(Dense<const T>{WW_IN(a), lda}, diagonal == CUBLAS_DIAG_UNIT, fill == CUBLAS_FILL_MODE_UPPER, turn, n, WW_OUT(x), by); } \
  static inline cublasStatus_t cublas##LETTER##tbmv(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, int n, int k, const U* a, int lda, U* x, int by) { using namespace ww::blas_levels; using T = TYPE; return triangle_product<T>(Band<const T>{WW_IN(a), lda, fill == CUBLAS_FILL_MODE_UPPER ? 0 : k, fill == CUBLAS_FILL_MODE_UPPER ? k : 0}, diagonal == CUBLAS_DIAG_UNIT, fill == CUBLAS_FILL_MODE_UPPER, turn, n, WW_OUT(x), by); } \
  static inline cublasStatus_t cublas##LETTER##tbsv(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, int n, int k, const U* a, int lda, U* x, int by) { using namespace ww::blas_levels; using T = TYPE; return triangle_solve<T>(Band<const T>{WW_IN(a), lda, fill == CUBLAS_FILL_MODE_UPPER ? 0 : k, fill == CUBLAS_FILL_MODE_UPPER ? k : 0}, diagonal == CUBLAS_DIAG_UNIT, fill == CUBLAS_FILL_MODE_UPPER, turn, n, WW_OUT(x), by); } \
  static inline cublasStatus_t cublas##LETTER##tpmv(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, int n, const U* a, U* x, int by) { using namespace ww::blas_levels; using T = TYPE; return triangle_product<T>(Packed<const T>{WW_IN(a), n, fill == CUBLAS_FILL_MODE_UPPER}, diagonal == CUBLAS_DIAG_UNIT, fill == CUBLAS_FILL_MODE_UPPER, turn, n, WW_OUT(x), by); } \
  static inline cublasStatus_t cublas##LETTER##tpsv(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, int n, const U* a, U* x, int by) { using namespace ww::blas_levels; using T = TYPE; return triangle_solve<T>(Packed<const T>{WW_IN(a), n, fill == CUBLAS_FILL_MODE_UPPER}, diagonal == CUBLAS_DIAG_UNIT, fill == CUBLAS_FILL_MODE_UPPER, turn, n, WW_OUT(x), by); } \
  static inline cublasStatus_t cublas##LETTER##gbmv(cublasHandle_t, cublasOperation_t turn, int m, int n, int below, int above, const U* alpha, const U* a, int lda, const U* x, int by_x, const U* beta, U* y, int by_y) { using namespace ww::blas_levels; using T = TYPE; const bool plain = turn == CUBLAS_OP_N; if (m < 0 || n < 0 || lda < below + above + 1) return CUBLAS_STATUS_INVALID_VALUE; return product<T>(Band<const T>{WW_IN(a), lda, below, above}, GENERAL, false, turn, plain ? m : n, plain ? n : m, WW_OF(alpha), WW_IN(x), by_x, WW_OF(beta), WW_OUT(y), by_y); } \
  static inline cublasStatus_t cublas##LETTER##symv(cublasHandle_t, cublasFillMode_t fill, int n, const U* alpha, const U* a, int lda, const U* x, int by_x, const U* beta, U* y, int by_y) { using namespace ww::blas_levels; using T = TYPE; return product<T>(Dense<const T>{WW_IN(a), lda}, SYMMETRIC, fill == CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, n, n, WW_OF(alpha), WW_IN(x), by_x, WW_OF(beta), WW_OUT(y), by_y); } \
  static inline cublasStatus_t cublas##LETTER##syr(cublasHandle_t, cublasFillMode_t fill, int n, const U* alpha, const U* x, int by, U* a, int lda) { using namespace ww::blas_levels; using T = TYPE; return rank_1<T>(Dense<T>{WW_OUT(a), lda}, false, fill == CUBLAS_FILL_MODE_UPPER, n, WW_OF(alpha), WW_IN(x), by); } \
  static inline cublasStatus_t cublas##LETTER##syr2(cublasHandle_t, cublasFillMode_t fill, int n, const U* alpha, const U* x, int by_x, const U* y, int by_y, U* a, int lda) { using namespace ww::blas_levels; using T = TYPE; return rank_2<T>(Dense<T>{WW_OUT(a), lda}, false, fill == CUBLAS_FILL_MODE_UPPER, n, WW_OF(alpha), WW_IN(x), by_x, WW_IN(y), by_y); } \
  static inline cublasStatus_t cublas##LETTER##symm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill, int m, int n, const U* alpha, const U* a, int lda, const U* b, int ldb, const U* beta, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; return side_product<T>(SYMMETRIC, side, fill, CUBLAS_OP_N, m, n, WW_OF(alpha), WW_IN(a), lda, WW_IN(b), ldb, WW_OF(beta), WW_OUT(c), ldc); } \
  static inline cublasStatus_t cublas##LETTER##trmm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, int m, int n, const U* alpha, const U* a, int lda, const U* b, int ldb, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; return side_product<T>(diagonal == CUBLAS_DIAG_UNIT ? UNIT : TRIANGULAR, side, fill, turn, m, n, WW_OF(alpha), WW_IN(a), lda, WW_IN(b), ldb, T(0), WW_OUT(c), ldc); } \
  static inline cublasStatus_t cublas##LETTER##syr2k(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, int n, int k, const U* alpha, const U* a, int lda, const U* b, int ldb, const U* beta, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; return rank_k<T>(false, true, fill, turn, n, k, WW_OF(alpha), WW_IN(a), lda, WW_IN(b), ldb, WW_OF(beta), WW_OUT(c), ldc); } \
  static inline cublasStatus_t cublas##LETTER##syrkx(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, int n, int k, const U* alpha, const U* a, int lda, const U* b, int ldb, const U* beta, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; return rank_k<T>(false, false, fill, turn, n, k, WW_OF(alpha), WW_IN(a), lda, WW_IN(b), ldb, WW_OF(beta), WW_OUT(c), ldc); } \
  static inline cublasStatus_t cublas##LETTER##dgmm(cublasHandle_t, cublasSideMode_t side, int m, int n, const U* a, int lda, const U* x, int by, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; const T* from = ww::first_of(WW_IN(x), side == CUBLAS_SIDE_LEFT ? m : n, by); for (long j = 0; j < n; ++j) for (long i = 0; i < m; ++i) WW_OUT(c)[j * ldc + i] = WW_IN(a)[j * lda + i] * from[(side == CUBLAS_SIDE_LEFT ? i : j) * by]; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##tpttr(cublasHandle_t, cublasFillMode_t fill, int n, const U* packed, U* a, int lda) { using namespace ww::blas_levels; using T = TYPE; const Packed<const T> from{WW_IN(packed), n, fill == CUBLAS_FILL_MODE_UPPER}; return each<T>(Dense<T>{WW_OUT(a), lda}, false, fill == CUBLAS_FILL_MODE_UPPER, n, [&](T& to, long i, long j) { to = from.at(i, j); }); } \
  static inline cublasStatus_t cublas##LETTER##trttp(cublasHandle_t, cublasFillMode_t fill, int n, const U* a, int lda, U* packed) { using namespace ww::blas_levels; using T = TYPE; const Dense<const T> from{WW_IN(a), lda}; return each<T>(Packed<T>{WW_OUT(packed), n, fill == CUBLAS_FILL_MODE_UPPER}, false, fill == CUBLAS_FILL_MODE_UPPER, n, [&](T& to, long i, long j) { to = from.at(i, j); }); }
#define WW_REAL_LEVELS(U, TYPE, LETTER) \
  static inline cublasStatus_t cublas##LETTER##sbmv(cublasHandle_t, cublasFillMode_t fill, int n, int k, const U* alpha, const U* a, int lda, const U* x, int by_x, const U* beta, U* y, int by_y) { using namespace ww::blas_levels; using T = TYPE; return product<T>(Band<const T>{a, lda, fill == CUBLAS_FILL_MODE_UPPER ? 0 : k, fill == CUBLAS_FILL_MODE_UPPER ? k : 0}, SYMMETRIC, fill == CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, n, n, *alpha, x, by_x, *beta, y, by_y); } \
  static inline cublasStatus_t cublas##LETTER##spmv(cublasHandle_t, cublasFillMode_t fill, int n, const U* alpha, const U* a, const U* x, int by_x, const U* beta, U* y, int by_y) { using namespace ww::blas_levels; using T = TYPE; return product<T>(Packed<const T>{a, n, fill == CUBLAS_FILL_MODE_UPPER}, SYMMETRIC, fill == CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, n, n, *alpha, x, by_x, *beta, y, by_y); } \
  static inline cublasStatus_t cublas##LETTER##spr(cublasHandle_t, cublasFillMode_t fill, int n, const U* alpha, const U* x, int by, U* a) { using namespace ww::blas_levels; using T = TYPE; return rank_1<T>(Packed<T>{a, n, fill == CUBLAS_FILL_MODE_UPPER}, false, fill == CUBLAS_FILL_MODE_UPPER, n, *alpha, x, by); } \
  static inline cublasStatus_t cublas##LETTER##spr2(cublasHandle_t, cublasFillMode_t fill, int n, const U* alpha, const U* x, int by_x, const U* y, int by_y, U* a) { using namespace ww::blas_levels; using T = TYPE; return rank_2<T>(Packed<T>{a, n, fill == CUBLAS_FILL_MODE_UPPER}, false, fill == CUBLAS_FILL_MODE_UPPER, n, *alpha, x, by_x, y, by_y); } \
  static inline cublasStatus_t cublas##LETTER##rot(cublasHandle_t, int n, U* x, int by_x, U* y, int by_y, const U* c, const U* s) { using namespace ww::blas_levels; using T = TYPE; return rotate<T>(n, x, by_x, y, by_y, *c, *s); } \
  static inline cublasStatus_t cublas##LETTER##rotg(cublasHandle_t, U* a, U* b, U* c, U* s) { using namespace ww::blas_levels; using T = TYPE; return rotation<T>(a, b, c, s); } \
  static inline cublasStatus_t cublas##LETTER##rotm(cublasHandle_t, int n, U* x, int by_x, U* y, int by_y, const U* p) { using namespace ww::blas_levels; using T = TYPE; return rotate_modified<T>(n, x, by_x, y, by_y, p); } \
  static inline cublasStatus_t cublas##LETTER##rotmg(cublasHandle_t, U* d1, U* d2, U* x1, const U* y1, U* p) { using namespace ww::blas_levels; using T = TYPE; return modified_rotation<T>(d1, d2, x1, y1, p); } \
  static inline cublasStatus_t cublas##LETTER##gemmGroupedBatched(cublasHandle_t, const cublasOperation_t ta[], const cublasOperation_t tb[], const int m[], const int n[], const int k[], const U alpha[], const U* const a[], const int lda[], const U* const b[], const int ldb[], const U beta[], U* const c[], const int ldc[], int groups, const int size[]) { for (long g = 0, at = 0; g < groups; ++g) for (int i = 0; i < size[g]; ++i, ++at) if (const auto s = ww::gemm<U>(ta[g], tb[g], m[g], n[g], k[g], alpha[g], a[at], lda[g], b[at], ldb[g], beta[g], c[at], ldc[g])) return s; return CUBLAS_STATUS_SUCCESS; }
#define WW_COMPLEX_LEVELS(U, TYPE, R, LETTER, REAL_LETTER, NORM_LETTERS, I_LETTER) \
  static inline cublasStatus_t cublas##LETTER##gemm(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const U* alpha, const U* a, int lda, const U* b, int ldb, const U* beta, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; return ww::blas_levels::gemm<T>(ta, tb, m, n, k, WW_OF(alpha), WW_IN(a), lda, WW_IN(b), ldb, WW_OF(beta), WW_OUT(c), ldc); } \
  static inline cublasStatus_t cublas##LETTER##gemm3m(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const U* alpha, const U* a, int lda, const U* b, int ldb, const U* beta, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; return ww::blas_levels::gemm<T>(ta, tb, m, n, k, WW_OF(alpha), WW_IN(a), lda, WW_IN(b), ldb, WW_OF(beta), WW_OUT(c), ldc); } \
  static inline cublasStatus_t cublas##LETTER##gemmStridedBatched(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const U* alpha, const U* a, int lda, long long step_a, const U* b, int ldb, long long step_b, const U* beta, U* c, int ldc, long long step_c, int count) { using namespace ww::blas_levels; using T = TYPE; for (long i = 0; i < count; ++i) if (const auto s = ww::blas_levels::gemm<T>(ta, tb, m, n, k, WW_OF(alpha), WW_IN(a + i * step_a), lda, WW_IN(b + i * step_b), ldb, WW_OF(beta), WW_OUT(c + i * step_c), ldc)) return s; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##gemmBatched(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const U* alpha, const U* const a[], int lda, const U* const b[], int ldb, const U* beta, U* const c[], int ldc, int count) { using namespace ww::blas_levels; using T = TYPE; for (long i = 0; i < count; ++i) if (const auto s = ww::blas_levels::gemm<T>(ta, tb, m, n, k, WW_OF(alpha), WW_IN(a[i]), lda, WW_IN(b[i]), ldb, WW_OF(beta), WW_OUT(c[i]), ldc)) return s; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##gemv(cublasHandle_t, cublasOperation_t turn, int m, int n, const U* alpha, const U* a, int lda, const U* x, int by_x, const U* beta, U* y, int by_y) { using namespace ww::blas_levels; using T = TYPE; const bool plain = turn == CUBLAS_OP_N; if (m < 0 || n < 0 || lda < std::max(1, m)) return CUBLAS_STATUS_INVALID_VALUE; return product<T>(Dense<const T>{WW_IN(a), lda}, GENERAL, false, turn, plain ? m : n, plain ? n : m, WW_OF(alpha), WW_IN(x), by_x, WW_OF(beta), WW_OUT(y), by_y); } \
  static inline cublasStatus_t cublas##LETTER##geru(cublasHandle_t, int m, int n, const U* alpha, const U* x, int by_x, const U* y, int by_y, U* a, int lda) { using namespace ww::blas_levels; using T = TYPE; const T *from_x = ww::first_of(WW_IN(x), m, by_x), *from_y = ww::first_of(WW_IN(y), n, by_y); for (long j = 0; j < n && WW_OF(alpha) != T(0); ++j) for (long i = 0; i < m; ++i) WW_OUT(a)[j * lda + i] += WW_OF(alpha) * from_x[i * by_x] * from_y[j * by_y]; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##gerc(cublasHandle_t, int m, int n, const U* alpha, const U* x, int by_x, const U* y, int by_y, U* a, int lda) { using namespace ww::blas_levels; using T = TYPE; const T *from_x = ww::first_of(WW_IN(x), m, by_x), *from_y = ww::first_of(WW_IN(y), n, by_y); for (long j = 0; j < n && WW_OF(alpha) != T(0); ++j) for (long i = 0; i < m; ++i) WW_OUT(a)[j * lda + i] += WW_OF(alpha) * from_x[i * by_x] * conj(from_y[j * by_y]); return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##geam(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, const U* alpha, const U* a, int lda, const U* beta, const U* b, int ldb, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; const T p = WW_OF(alpha), q = WW_OF(beta); for (long j = 0; j < n; ++j) for (long i = 0; i < m; ++i) WW_OUT(c)[j * ldc + i] = (p == T(0) ? T(0) : p * turned<T>(Dense<const T>{WW_IN(a), lda}, GENERAL, false, ta, i, j)) + (q == T(0) ? T(0) : q * turned<T>(Dense<const T>{WW_IN(b), ldb}, GENERAL, false, tb, i, j)); return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##axpy(cublasHandle_t, int n, const U* alpha, const U* x, int by_x, U* y, int by_y) { using namespace ww::blas_levels; using T = TYPE; const T* from = ww::first_of(WW_IN(x), n, by_x); T* to = ww::first_of(WW_OUT(y), n, by_y); for (long i = 0; i < n && WW_OF(alpha) != T(0); ++i) to[i * by_y] += WW_OF(alpha) * from[i * by_x]; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##scal(cublasHandle_t, int n, const U* alpha, U* x, int by) { using namespace ww::blas_levels; using T = TYPE; for (long i = 0; i < n && by > 0; ++i) WW_OUT(x)[i * by] *= WW_OF(alpha); return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER####REAL_LETTER##scal(cublasHandle_t, int n, const R* alpha, U* x, int by) { using namespace ww::blas_levels; using T = TYPE; for (long i = 0; i < n && by > 0; ++i) WW_OUT(x)[i * by] *= *alpha; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##copy(cublasHandle_t, int n, const U* x, int by_x, U* y, int by_y) { x = ww::first_of(x, n, by_x), y = ww::first_of(y, n, by_y); for (long i = 0; i < n; ++i) y[i * by_y] = x[i * by_x]; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##swap(cublasHandle_t, int n, U* x, int by_x, U* y, int by_y) { x = ww::first_of(x, n, by_x), y = ww::first_of(y, n, by_y); for (long i = 0; i < n; ++i) std::swap(y[i * by_y], x[i * by_x]); return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##dotu(cublasHandle_t, int n, const U* x, int by_x, const U* y, int by_y, U* r) { using namespace ww::blas_levels; using T = TYPE; const T *from_x = ww::first_of(WW_IN(x), n, by_x), *from_y = ww::first_of(WW_IN(y), n, by_y); Z s = 0; for (long i = 0; i < n; ++i) s += (Z)from_x[i * by_x] * (Z)from_y[i * by_y]; *WW_OUT(r) = (T)s; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##dotc(cublasHandle_t, int n, const U* x, int by_x, const U* y, int by_y, U* r) { using namespace ww::blas_levels; using T = TYPE; const T *from_x = ww::first_of(WW_IN(x), n, by_x), *from_y = ww::first_of(WW_IN(y), n, by_y); Z s = 0; for (long i = 0; i < n; ++i) s += conj((Z)from_x[i * by_x]) * (Z)from_y[i * by_y]; *WW_OUT(r) = (T)s; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##NORM_LETTERS##nrm2(cublasHandle_t, int n, const U* x, int by, R* r) { using namespace ww::blas_levels; using T = TYPE; *r = (R)ww::length_of(by > 0 ? 2l * n : 0, [=](long i) { const Z z = (Z)WW_IN(x)[i / 2 * by]; return i % 2 ? std::imag(z) : std::real(z); }); return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##NORM_LETTERS##asum(cublasHandle_t, int n, const U* x, int by, R* r) { using namespace ww::blas_levels; using T = TYPE; double s = 0; for (long i = 0; i < n && by > 0; ++i) s += size_of<Z>((Z)WW_IN(x)[i * by]); *r = (R)s; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublasI##I_LETTER##amax(cublasHandle_t, int n, const U* x, int by, int* r) { using namespace ww::blas_levels; using T = TYPE; int b = 0; for (int i = 1; i < n && by > 0; ++i) if (size_of(WW_IN(x)[(long)i * by]) > size_of(WW_IN(x)[(long)b * by])) b = i; *r = n > 0 && by > 0 ? b + 1 : 0; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublasI##I_LETTER##amin(cublasHandle_t, int n, const U* x, int by, int* r) { using namespace ww::blas_levels; using T = TYPE; int b = 0; for (int i = 1; i < n && by > 0; ++i) if (size_of(WW_IN(x)[(long)i * by]) < size_of(WW_IN(x)[(long)b * by])) b = i; *r = n > 0 && by > 0 ? b + 1 : 0; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##hemv(cublasHandle_t, cublasFillMode_t fill, int n, const U* alpha, const U* a, int lda, const U* x, int by_x, const U* beta, U* y, int by_y) { using namespace ww::blas_levels; using T = TYPE; return product<T>(Dense<const T>{WW_IN(a), lda}, HERMITIAN, fill == CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, n, n, WW_OF(alpha), WW_IN(x), by_x, WW_OF(beta), WW_OUT(y), by_y); } \
  static inline cublasStatus_t cublas##LETTER##hbmv(cublasHandle_t, cublasFillMode_t fill, int n, int k, const U* alpha, const U* a, int lda, const U* x, int by_x, const U* beta, U* y, int by_y) { using namespace ww::blas_levels; using T = TYPE; return product<T>(Band<const T>{WW_IN(a), lda, fill == CUBLAS_FILL_MODE_UPPER ? 0 : k, fill == CUBLAS_FILL_MODE_UPPER ? k : 0}, HERMITIAN, fill == CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, n, n, WW_OF(alpha), WW_IN(x), by_x, WW_OF(beta), WW_OUT(y), by_y); } \
  static inline cublasStatus_t cublas##LETTER##hpmv(cublasHandle_t, cublasFillMode_t fill, int n, const U* alpha, const U* a, const U* x, int by_x, const U* beta, U* y, int by_y) { using namespace ww::blas_levels; using T = TYPE; return product<T>(Packed<const T>{WW_IN(a), n, fill == CUBLAS_FILL_MODE_UPPER}, HERMITIAN, fill == CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, n, n, WW_OF(alpha), WW_IN(x), by_x, WW_OF(beta), WW_OUT(y), by_y); } \
  static inline cublasStatus_t cublas##LETTER##her(cublasHandle_t, cublasFillMode_t fill, int n, const R* alpha, const U* x, int by, U* a, int lda) { using namespace ww::blas_levels; using T = TYPE; return rank_1<T>(Dense<T>{WW_OUT(a), lda}, true, fill == CUBLAS_FILL_MODE_UPPER, n, T(*alpha), WW_IN(x), by); } \
  static inline cublasStatus_t cublas##LETTER##her2(cublasHandle_t, cublasFillMode_t fill, int n, const U* alpha, const U* x, int by_x, const U* y, int by_y, U* a, int lda) { using namespace ww::blas_levels; using T = TYPE; return rank_2<T>(Dense<T>{WW_OUT(a), lda}, true, fill == CUBLAS_FILL_MODE_UPPER, n, WW_OF(alpha), WW_IN(x), by_x, WW_IN(y), by_y); } \
  static inline cublasStatus_t cublas##LETTER##hpr(cublasHandle_t, cublasFillMode_t fill, int n, const R* alpha, const U* x, int by, U* a) { using namespace ww::blas_levels; using T = TYPE; return rank_1<T>(Packed<T>{WW_OUT(a), n, fill == CUBLAS_FILL_MODE_UPPER}, true, fill == CUBLAS_FILL_MODE_UPPER, n, T(*alpha), WW_IN(x), by); } \
  static inline cublasStatus_t cublas##LETTER##hpr2(cublasHandle_t, cublasFillMode_t fill, int n, const U* alpha, const U* x, int by_x, const U* y, int by_y, U* a) { using namespace ww::blas_levels; using T = TYPE; return rank_2<T>(Packed<T>{WW_OUT(a), n, fill == CUBLAS_FILL_MODE_UPPER}, true, fill == CUBLAS_FILL_MODE_UPPER, n, WW_OF(alpha), WW_IN(x), by_x, WW_IN(y), by_y); } \
  static inline cublasStatus_t cublas##LETTER##hemm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill, int m, int n, const U* alpha, const U* a, int lda, const U* b, int ldb, const U* beta, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; return side_product<T>(HERMITIAN, side, fill, CUBLAS_OP_N, m, n, WW_OF(alpha), WW_IN(a), lda, WW_IN(b), ldb, WW_OF(beta), WW_OUT(c), ldc); } \
  static inline cublasStatus_t cublas##LETTER##syrk(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, int n, int k, const U* alpha, const U* a, int lda, const U* beta, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; return rank_k<T>(false, false, fill, turn, n, k, WW_OF(alpha), WW_IN(a), lda, WW_IN(a), lda, WW_OF(beta), WW_OUT(c), ldc); } \
  static inline cublasStatus_t cublas##LETTER##herk(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, int n, int k, const R* alpha, const U* a, int lda, const R* beta, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; return rank_k<T>(true, false, fill, turn, n, k, T(*alpha), WW_IN(a), lda, WW_IN(a), lda, T(*beta), WW_OUT(c), ldc); } \
  static inline cublasStatus_t cublas##LETTER##herkx(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, int n, int k, const U* alpha, const U* a, int lda, const U* b, int ldb, const R* beta, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; return rank_k<T>(true, false, fill, turn, n, k, WW_OF(alpha), WW_IN(a), lda, WW_IN(b), ldb, T(*beta), WW_OUT(c), ldc); } \
  static inline cublasStatus_t cublas##LETTER##her2k(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t turn, int n, int k, const U* alpha, const U* a, int lda, const U* b, int ldb, const R* beta, U* c, int ldc) { using namespace ww::blas_levels; using T = TYPE; return rank_k<T>(true, true, fill, turn, n, k, WW_OF(alpha), WW_IN(a), lda, WW_IN(b), ldb, T(*beta), WW_OUT(c), ldc); } \
  static inline cublasStatus_t cublas##LETTER##trsm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, int m, int n, const U* alpha, const U* a, int lda, U* b, int ldb) { using namespace ww::blas_levels; using T = TYPE; return solve_sides<T>(side, fill, turn, diagonal, m, n, WW_OF(alpha), WW_IN(a), lda, WW_OUT(b), ldb); } \
  static inline cublasStatus_t cublas##LETTER##trsmBatched(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t turn, cublasDiagType_t diagonal, int m, int n, const U* alpha, const U* const a[], int lda, U* const b[], int ldb, int count) { using namespace ww::blas_levels; using T = TYPE; for (long i = 0; i < count; ++i) if (const auto s = solve_sides<T>(side, fill, turn, diagonal, m, n, WW_OF(alpha), WW_IN(a[i]), lda, WW_OUT(b[i]), ldb)) return s; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##rot(cublasHandle_t, int n, U* x, int by_x, U* y, int by_y, const R* c, const U* s) { using namespace ww::blas_levels; using T = TYPE; return rotate<T>(n, WW_OUT(x), by_x, WW_OUT(y), by_y, *c, WW_OF(s)); } \
  static inline cublasStatus_t cublas##LETTER####REAL_LETTER##rot(cublasHandle_t, int n, U* x, int by_x, U* y, int by_y, const R* c, const R* s) { using namespace ww::blas_levels; using T = TYPE; return rotate<T>(n, WW_OUT(x), by_x, WW_OUT(y), by_y, *c, *s); } \
  static inline cublasStatus_t cublas##LETTER##rotg(cublasHandle_t, U* a, U* b, R* c, U* s) { using namespace ww::blas_levels; using T = TYPE; return rotation(WW_OUT(a), WW_IN(b), c, WW_OUT(s)); }
WW_LEVELS(float, float, S) WW_LEVELS(double, double, D) WW_LEVELS(cuComplex, C, C) WW_LEVELS(cuDoubleComplex, Z, Z)
WW_REAL_LEVELS(float, float, S) WW_REAL_LEVELS(double, double, D)
WW_COMPLEX_LEVELS(cuComplex, C, float, C, s, Sc, c) WW_COMPLEX_LEVELS(cuDoubleComplex, Z, double, Z, d, Dz, z)
namespace ww::blas_levels {
// Vectors of any type, an element at a time, as double complex numbers.
static inline bool known(cudaDataType_t kind) { return kind == CUDA_R_16F || kind == CUDA_R_16BF || kind == CUDA_R_32F || kind == CUDA_R_64F || kind == CUDA_C_32F || kind == CUDA_C_64F; }
static inline Z got(const void* x, cudaDataType_t kind, long at) {
  switch (kind) {
    case CUDA_R_16F: return (double)(float)((const __half*)x)[at];
    case CUDA_R_16BF: return (double)(float)((const __nv_bfloat16*)x)[at];
    case CUDA_R_32F: return (double)((const float*)x)[at];
    case CUDA_R_64F: return ((const double*)x)[at];
    case CUDA_C_32F: return (Z)((const C*)x)[at];
    default: return ((const Z*)x)[at];
  }
}
static inline void put(void* x, cudaDataType_t kind, long at, Z v) {
  switch (kind) {
    case CUDA_R_16F: ((__half*)x)[at] = __float2half((float)v.real()); break;
    case CUDA_R_16BF: ((__nv_bfloat16*)x)[at] = __float2bfloat16((float)v.real()); break;
    case CUDA_R_32F: ((float*)x)[at] = (float)v.real(); break;
    case CUDA_R_64F: ((double*)x)[at] = v.real(); break;
    case CUDA_C_32F: ((C*)x)[at] = (C)v; break;
    default: ((Z*)x)[at] = v;
  }
}
static inline long place(long i, long n, int by) { return by < 0 ? (i - (n - 1)) * by : i * by; }
static inline cublasStatus_t dot(bool conjugated, int n, const void* x, cudaDataType_t kind_x, int by_x, const void* y, cudaDataType_t kind_y, int by_y, void* r, cudaDataType_t kind_r) {
  if (!known(kind_x) || !known(kind_y) || !known(kind_r)) return CUBLAS_STATUS_NOT_SUPPORTED;
  Z s = 0;
  for (long i = 0; i < n; ++i) { const Z u = got(x, kind_x, place(i, n, by_x)); s += (conjugated ? std::conj(u) : u) * got(y, kind_y, place(i, n, by_y)); }
  put(r, kind_r, 0, s);
  return CUBLAS_STATUS_SUCCESS;
}
}  // namespace ww::blas_levels
static inline cublasStatus_t cublasAxpyEx(cublasHandle_t, int n, const void* alpha, cudaDataType_t kind, const void* x, cudaDataType_t kind_x, int by_x, void* y, cudaDataType_t kind_y, int by_y, cudaDataType_t) {
  using namespace ww::blas_levels;
  if (!known(kind) || !known(kind_x) || !known(kind_y)) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (long i = 0; i < n && got(alpha, kind, 0) != Z(0); ++i) put(y, kind_y, place(i, n, by_y), got(alpha, kind, 0) * got(x, kind_x, place(i, n, by_x)) + got(y, kind_y, place(i, n, by_y)));
  return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasScalEx(cublasHandle_t, int n, const void* alpha, cudaDataType_t kind, void* x, cudaDataType_t kind_x, int by, cudaDataType_t) {
  using namespace ww::blas_levels;
  if (!known(kind) || !known(kind_x)) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (long i = 0; i < n && by > 0; ++i) put(x, kind_x, i * by, got(alpha, kind, 0) * got(x, kind_x, i * by));
  return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasNrm2Ex(cublasHandle_t, int n, const void* x, cudaDataType_t kind_x, int by, void* r, cudaDataType_t kind_r, cudaDataType_t) {
  using namespace ww::blas_levels;
  if (!known(kind_x) || !known(kind_r)) return CUBLAS_STATUS_NOT_SUPPORTED;
  put(r, kind_r, 0, ww::length_of(by > 0 ? 2l * n : 0, [=](long i) { const auto z = got(x, kind_x, i / 2 * by); return i % 2 ? std::imag(z) : std::real(z); }));
  return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasDotEx(cublasHandle_t, int n, const void* x, cudaDataType_t kind_x, int by_x, const void* y, cudaDataType_t kind_y, int by_y, void* r, cudaDataType_t kind_r, cudaDataType_t) {
  return ww::blas_levels::dot(false, n, x, kind_x, by_x, y, kind_y, by_y, r, kind_r);
}
static inline cublasStatus_t cublasDotcEx(cublasHandle_t, int n, const void* x, cudaDataType_t kind_x, int by_x, const void* y, cudaDataType_t kind_y, int by_y, void* r, cudaDataType_t kind_r, cudaDataType_t) {
  return ww::blas_levels::dot(true, n, x, kind_x, by_x, y, kind_y, by_y, r, kind_r);
}
#undef WW_IN
#undef WW_OUT
#undef WW_OF
#undef WW_LEVELS
#undef WW_REAL_LEVELS
#undef WW_COMPLEX_LEVELS
