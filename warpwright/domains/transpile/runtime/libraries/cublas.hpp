// cuBLAS on the host, column-major: through a BLAS of the machine where there is one (the library that WARPWRIGHT_BLAS names, torch's, OpenBLAS, MKL), else as
// loops whose sums are kept in the matrices' type, in the order of k. Halves are computed as floats.
#include <dlfcn.h>
typedef struct cublasContext* cublasHandle_t;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_ARCH_MISMATCH = 8, CUBLAS_STATUS_MAPPING_ERROR = 11,
                      CUBLAS_STATUS_EXECUTION_FAILED = 13, CUBLAS_STATUS_INTERNAL_ERROR = 14, CUBLAS_STATUS_NOT_SUPPORTED = 15, CUBLAS_STATUS_LICENSE_ERROR = 16 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
enum cublasMath_t { CUBLAS_DEFAULT_MATH, CUBLAS_TENSOR_OP_MATH, CUBLAS_PEDANTIC_MATH, CUBLAS_TF32_TENSOR_OP_MATH };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED, CUBLAS_ATOMICS_ALLOWED };
enum cublasComputeType_t { CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_PEDANTIC = 69, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32I = 72, CUBLAS_COMPUTE_32F_FAST_16F = 74, CUBLAS_COMPUTE_32F_FAST_16BF = 75, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DFALT_TENSOR_OP = 99, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_8I = 3, CUDA_C_32F = 4, CUDA_C_64F = 5, CUDA_C_16F = 6, CUDA_C_8I = 7, CUDA_R_8U = 8, CUDA_C_8U = 9, CUDA_R_32I = 10, CUDA_C_32I = 11, CUDA_R_32U = 12, CUDA_C_32U = 13,
                      CUDA_R_16BF = 14, CUDA_C_16BF = 15, CUDA_R_4I = 16, CUDA_C_4I = 17, CUDA_R_4U = 18, CUDA_C_4U = 19, CUDA_R_16I = 20, CUDA_C_16I = 21, CUDA_R_16U = 22, CUDA_C_16U = 23, CUDA_R_64I = 24, CUDA_C_64I = 25, CUDA_R_64U = 26, CUDA_C_64U = 27,
                      CUDA_R_8F_E4M3 = 28, CUDA_R_8F_E5M2 = 29 };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER, CUBLAS_FILL_MODE_FULL };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT };
typedef cudaDataType_t cudaDataType;
enum cudaEmulationMantissaControl { CUDA_EMULATION_MANTISSA_CONTROL_DYNAMIC, CUDA_EMULATION_MANTISSA_CONTROL_FIXED };
namespace ww {
// The length of the vector of at(0) to at(n - 1). Where the squares leave the range of a double, once more with all divided by the largest, as BLAS does.
template <class At> static double length_of(long n, At at) {
  double sum = 0, most = 0;
  for (long i = 0; i < n; ++i) sum += (double)at(i) * (double)at(i);
  if (sum >= 1e-290 && sum <= std::numeric_limits<double>::max()) return std::sqrt(sum);
  for (long i = 0; i < n; ++i) {
    const double size = std::fabs((double)at(i));
    if (size != size) return size;
    most = size > most ? size : most;
  }
  if (most == 0 || most > std::numeric_limits<double>::max()) return most;
  sum = 0;
  for (long i = 0; i < n; ++i) { const double part = (double)at(i) / most; sum += part * part; }
  return most * std::sqrt(sum);
}
}  // namespace ww
static inline cublasStatus_t cublasCreate(cublasHandle_t* handle) { static char one; *handle = (cublasHandle_t)(void*)&one; return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasGetStream(cublasHandle_t, cudaStream_t* s) { *s = nullptr; return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasGetVersion(cublasHandle_t, int* v) { *v = 120000; return CUBLAS_STATUS_SUCCESS; }
static inline const char* cublasGetStatusString(cublasStatus_t s) { return s == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_INVALID_VALUE"; }
static inline const char* cublasGetStatusName(cublasStatus_t s) { return cublasGetStatusString(s); }
static inline cublasStatus_t cublasSetVector(int n, int size, const void* x, int by_x, void* y, int by_y) {
  for (long i = 0; i < n; ++i) std::memcpy((char*)y + i * by_y * size, (const char*)x + i * by_x * size, (size_t)size);
  return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasGetVector(int n, int size, const void* x, int by_x, void* y, int by_y) { return cublasSetVector(n, size, x, by_x, y, by_y); }
static inline cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* a, int lda, void* b, int ldb) {
  for (long j = 0; j < columns; ++j) std::memcpy((char*)b + j * ldb * size, (const char*)a + j * lda * size, (size_t)rows * size);
  return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* a, int lda, void* b, int ldb) { return cublasSetMatrix(rows, columns, size, a, lda, b, ldb); }
namespace ww {
inline void* blas(const char* name) {  // a function of the machine's BLAS, as Fortran names it; null where there is none
  static void* const library = [] {
    if (const char* asked = std::getenv("WARPWRIGHT_BLAS")) return *asked ? dlopen(asked, RTLD_NOW | RTLD_LOCAL) : nullptr;
    void* found = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);  // in a process that has torch: its MKL or OpenBLAS
    for (const char* name : {"libopenblas.so.0", "libmkl_rt.so.2"}) if (!found) found = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return found;
  }();
  return library ? dlsym(library, name) : nullptr;
}
template <class T> static cublasStatus_t gemm(cublasOperation_t turn_a, cublasOperation_t turn_b, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  if (m < 0 || n < 0 || k < 0 || ldc < std::max(1, m) || lda < std::max(1, turn_a == CUBLAS_OP_N ? m : k) || ldb < std::max(1, turn_b == CUBLAS_OP_N ? k : n)) return CUBLAS_STATUS_INVALID_VALUE;
  if (alpha == T(0)) k = 0;  // A and B are not read: NaN there does not come out
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    typedef void (*Product)(const char*, const char*, const int*, const int*, const int*, const T*, const T*, const int*, const T*, const int*, const T*, T*, const int*);
    static const Product product = (Product)blas(sizeof(T) == 4 ? "sgemm_" : "dgemm_");
    if (product) {
      const char ta = turn_a == CUBLAS_OP_N ? 'N' : 'T', tb = turn_b == CUBLAS_OP_N ? 'N' : 'T';
      product(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
      return CUBLAS_STATUS_SUCCESS;
    }
  }
  std::vector<T> turned;  // op(A), each of its columns in one piece
  if (turn_a != CUBLAS_OP_N) {
    turned.resize((size_t)m * k);
    for (int l = 0; l < k; ++l) for (int i = 0; i < m; ++i) turned[(size_t)l * m + i] = a[(size_t)i * lda + l];
    a = turned.data(), lda = m;
  }
  #pragma omp parallel for
  for (int j = 0; j < n; ++j) {
    T* const column = c + (size_t)j * ldc;
    std::vector<T> sums(m);
    for (int l = 0; l < k; ++l) {
      const T by = turn_b == CUBLAS_OP_N ? b[(size_t)j * ldb + l] : b[(size_t)l * ldb + j];
      const T* const from = a + (size_t)l * lda;
      T* const to = sums.data();
      #pragma omp simd
      for (int i = 0; i < m; ++i) to[i] += from[i] * by;
    }
    for (int i = 0; i < m; ++i) column[i] = beta == T(0) ? alpha * sums[i] : alpha * sums[i] + beta * column[i];
  }
  return CUBLAS_STATUS_SUCCESS;
}
static inline bool is_real(cudaDataType_t kind) { return kind == CUDA_R_32F || kind == CUDA_R_64F || kind == CUDA_R_16F || kind == CUDA_R_16BF || kind == CUDA_R_8I || kind == CUDA_R_32I; }  // of those that are offered
// A matrix of any type as floats (or doubles), in columns without gaps.
template <class T> static std::vector<T> widened(const void* from, cudaDataType_t kind, int rows, int columns, int ld) {
  std::vector<T> to((size_t)rows * columns);
  for (long j = 0; j < columns; ++j) for (long i = 0; i < rows; ++i) {
    const size_t at = (size_t)(j * ld + i);
    T v = 0;
    switch (kind) {
      case CUDA_R_32F: v = (T)((const float*)from)[at]; break;
      case CUDA_R_64F: v = (T)((const double*)from)[at]; break;
      case CUDA_R_16F: v = (T)(float)((const __half*)from)[at]; break;
      case CUDA_R_16BF: v = (T)(float)((const __nv_bfloat16*)from)[at]; break;
      case CUDA_R_8I: v = (T)((const signed char*)from)[at]; break;
      case CUDA_R_32I: v = (T)((const int*)from)[at]; break;
      default: break;  // not offered: asked for before
    }
    to[(size_t)(j * rows + i)] = v;
  }
  return to;
}
template <class T> static void narrowed(const std::vector<T>& from, void* to, cudaDataType_t kind, int rows, int columns, int ld) {
  for (long j = 0; j < columns; ++j) for (long i = 0; i < rows; ++i) {
    const size_t at = (size_t)(j * ld + i);
    const T v = from[(size_t)(j * rows + i)];
    switch (kind) {
      case CUDA_R_32F: ((float*)to)[at] = (float)v; break;
      case CUDA_R_64F: ((double*)to)[at] = (double)v; break;
      case CUDA_R_16F: ((__half*)to)[at] = __float2half((float)v); break;
      case CUDA_R_16BF: ((__nv_bfloat16*)to)[at] = __float2bfloat16((float)v); break;
      case CUDA_R_8I: ((signed char*)to)[at] = (signed char)v; break;
      case CUDA_R_32I: ((int*)to)[at] = (int)v; break;
      default: break;
    }
  }
}
template <class T> static cublasStatus_t gemm_of(cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, T alpha, const void* a, cudaDataType_t kind_a, int lda, const void* b, cudaDataType_t kind_b, int ldb,
                                                 T beta, void* c, cudaDataType_t kind_c, int ldc) {
  if (!is_real(kind_a) || !is_real(kind_b) || !is_real(kind_c)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const int rows_a = ta == CUBLAS_OP_N ? m : k, rows_b = tb == CUBLAS_OP_N ? k : n;
  const auto wide_a = widened<T>(a, kind_a, rows_a, ta == CUBLAS_OP_N ? k : m, lda), wide_b = widened<T>(b, kind_b, rows_b, tb == CUBLAS_OP_N ? n : k, ldb);
  auto wide_c = beta == T(0) ? std::vector<T>((size_t)m * n) : widened<T>(c, kind_c, m, n, ldc);
  const cublasStatus_t status = gemm<T>(ta, tb, m, n, k, alpha, wide_a.data(), std::max(rows_a, 1), wide_b.data(), std::max(rows_b, 1), beta, wide_c.data(), std::max(m, 1));
  if (status == CUBLAS_STATUS_SUCCESS) narrowed(wide_c, c, kind_c, m, n, ldc);
  return status;
}
static inline cublasStatus_t gemm_ex(cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha, const void* a, cudaDataType_t kind_a, int lda, const void* b, cudaDataType_t kind_b, int ldb,
                                     const void* beta, void* c, cudaDataType_t kind_c, int ldc, int how) {
  if (how == CUBLAS_COMPUTE_64F || how == CUDA_R_64F) return gemm_of<double>(ta, tb, m, n, k, *(const double*)alpha, a, kind_a, lda, b, kind_b, ldb, *(const double*)beta, c, kind_c, ldc);
  if (how == CUBLAS_COMPUTE_32I || how == CUDA_R_32I) return gemm_of<double>(ta, tb, m, n, k, *(const int*)alpha, a, kind_a, lda, b, kind_b, ldb, *(const int*)beta, c, kind_c, ldc);
  if (how == CUBLAS_COMPUTE_16F || how == CUDA_R_16F) return gemm_of<float>(ta, tb, m, n, k, (float)*(const __half*)alpha, a, kind_a, lda, b, kind_b, ldb, (float)*(const __half*)beta, c, kind_c, ldc);
  if (kind_a == CUDA_R_32F && kind_b == CUDA_R_32F && kind_c == CUDA_R_32F) return gemm<float>(ta, tb, m, n, k, *(const float*)alpha, (const float*)a, lda, (const float*)b, ldb, *(const float*)beta, (float*)c, ldc);
  return gemm_of<float>(ta, tb, m, n, k, *(const float*)alpha, a, kind_a, lda, b, kind_b, ldb, *(const float*)beta, c, kind_c, ldc);
}
static inline int width_of(cudaDataType_t kind) { return kind == CUDA_R_64F ? 8 : kind == CUDA_R_32F || kind == CUDA_R_32I ? 4 : kind == CUDA_R_8I ? 1 : 2; }
}  // namespace ww
template <class How> static inline cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha, const void* a, cudaDataType_t kind_a, int lda,
                                                               const void* b, cudaDataType_t kind_b, int ldb, const void* beta, void* c, cudaDataType_t kind_c, int ldc, How how, int) {
  return ww::gemm_ex(ta, tb, m, n, k, alpha, a, kind_a, lda, b, kind_b, ldb, beta, c, kind_c, ldc, (int)how);
}
static inline cublasStatus_t cublasSgemmEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float* alpha, const void* a, cudaDataType_t kind_a, int lda, const void* b, cudaDataType_t kind_b,
                                           int ldb, const float* beta, void* c, cudaDataType_t kind_c, int ldc) {
  return ww::gemm_ex(ta, tb, m, n, k, alpha, a, kind_a, lda, b, kind_b, ldb, beta, c, kind_c, ldc, CUBLAS_COMPUTE_32F);
}
template <class How> static inline cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha, const void* a, cudaDataType_t kind_a, int lda,
                                                                             long long step_a, const void* b, cudaDataType_t kind_b, int ldb, long long step_b, const void* beta, void* c, cudaDataType_t kind_c, int ldc,
                                                                             long long step_c, int count, How how, int) {
  for (int i = 0; i < count; ++i)
    if (const auto s = ww::gemm_ex(ta, tb, m, n, k, alpha, (const char*)a + i * step_a * ww::width_of(kind_a), kind_a, lda, (const char*)b + i * step_b * ww::width_of(kind_b), kind_b, ldb, beta,
                                   (char*)c + i * step_c * ww::width_of(kind_c), kind_c, ldc, (int)how)) return s;
  return CUBLAS_STATUS_SUCCESS;
}
namespace ww {
// BLAS walks a vector with a negative step from its end.
template <class T> static T* first_of(T* x, long n, int by) { return by < 0 ? x - (n - 1) * by : x; }
}
#define WW_BLAS(T, LETTER, I_LETTER) \
  static inline cublasStatus_t cublas##LETTER##gemm(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* a, int lda, const T* b, int ldb, \
                                                    const T* beta, T* c, int ldc) { return ww::gemm<T>(ta, tb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc); } \
  static inline cublasStatus_t cublas##LETTER##gemmStridedBatched(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* a, int lda, \
                                                                  long long step_a, const T* b, int ldb, long long step_b, const T* beta, T* c, int ldc, long long step_c, int count) { \
    for (int i = 0; i < count; ++i) if (const auto s = ww::gemm<T>(ta, tb, m, n, k, *alpha, a + i * step_a, lda, b + i * step_b, ldb, *beta, c + i * step_c, ldc)) return s; \
    return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##gemmBatched(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* const* a, int lda, const T* const* b, int ldb, \
                                                           const T* beta, T* const* c, int ldc, int count) { \
    for (int i = 0; i < count; ++i) if (const auto s = ww::gemm<T>(ta, tb, m, n, k, *alpha, a[i], lda, b[i], ldb, *beta, c[i], ldc)) return s; \
    return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##gemv(cublasHandle_t, cublasOperation_t turn, int m, int n, const T* alpha, const T* a, int lda, const T* x, int by_x, const T* beta, T* y, int by_y) { \
    if (m < 0 || n < 0 || lda < std::max(1, m) || by_x == 0 || by_y == 0) return CUBLAS_STATUS_INVALID_VALUE; \
    const int rows = turn == CUBLAS_OP_N ? m : n, inner = *alpha == T(0) ? 0 : turn == CUBLAS_OP_N ? n : m; \
    x = ww::first_of(x, inner, by_x), y = ww::first_of(y, rows, by_y); \
    for (long i = 0; i < rows; ++i) { \
      T sum = 0; \
      for (long l = 0; l < inner; ++l) sum += (turn == CUBLAS_OP_N ? a[l * lda + i] : a[i * lda + l]) * x[l * by_x]; \
      y[i * by_y] = *beta == T(0) ? *alpha * sum : *alpha * sum + *beta * y[i * by_y]; } \
    return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##ger(cublasHandle_t, int m, int n, const T* alpha, const T* x, int by_x, const T* y, int by_y, T* a, int lda) { \
    x = ww::first_of(x, m, by_x), y = ww::first_of(y, n, by_y); \
    for (long j = 0; j < n && *alpha != T(0); ++j) for (long i = 0; i < m; ++i) a[j * lda + i] += *alpha * x[i * by_x] * y[j * by_y]; \
    return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##geam(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c, int ldc) { \
    for (long j = 0; j < n; ++j) for (long i = 0; i < m; ++i) \
      c[j * ldc + i] = (*alpha == T(0) ? T(0) : *alpha * (ta == CUBLAS_OP_N ? a[j * lda + i] : a[i * lda + j])) + (*beta == T(0) ? T(0) : *beta * (tb == CUBLAS_OP_N ? b[j * ldb + i] : b[i * ldb + j])); \
    return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##axpy(cublasHandle_t, int n, const T* alpha, const T* x, int by_x, T* y, int by_y) { x = ww::first_of(x, n, by_x), y = ww::first_of(y, n, by_y); for (long i = 0; i < n && *alpha != T(0); ++i) y[i * by_y] += *alpha * x[i * by_x]; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##scal(cublasHandle_t, int n, const T* alpha, T* x, int by_x) { for (long i = 0; i < n && by_x > 0; ++i) x[i * by_x] *= *alpha; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##copy(cublasHandle_t, int n, const T* x, int by_x, T* y, int by_y) { x = ww::first_of(x, n, by_x), y = ww::first_of(y, n, by_y); for (long i = 0; i < n; ++i) y[i * by_y] = x[i * by_x]; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##swap(cublasHandle_t, int n, T* x, int by_x, T* y, int by_y) { x = ww::first_of(x, n, by_x), y = ww::first_of(y, n, by_y); for (long i = 0; i < n; ++i) std::swap(y[i * by_y], x[i * by_x]); return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##dot(cublasHandle_t, int n, const T* x, int by_x, const T* y, int by_y, T* r) { x = ww::first_of(x, n, by_x), y = ww::first_of(y, n, by_y); double s = 0; for (long i = 0; i < n; ++i) s += (double)x[i * by_x] * y[i * by_y]; *r = (T)s; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##nrm2(cublasHandle_t, int n, const T* x, int by_x, T* r) { *r = (T)ww::length_of(by_x > 0 ? n : 0, [=](long i) { return x[i * by_x]; }); return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublas##LETTER##asum(cublasHandle_t, int n, const T* x, int by_x, T* r) { double s = 0; for (long i = 0; i < n && by_x > 0; ++i) s += std::fabs((double)x[i * by_x]); *r = (T)s; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublasI##I_LETTER##amax(cublasHandle_t, int n, const T* x, int by_x, int* r) { int b = 0; for (int i = 1; i < n; ++i) if (std::fabs(x[(long)i * by_x]) > std::fabs(x[(long)b * by_x])) b = i; *r = n > 0 && by_x > 0 ? b + 1 : 0; return CUBLAS_STATUS_SUCCESS; } \
  static inline cublasStatus_t cublasI##I_LETTER##amin(cublasHandle_t, int n, const T* x, int by_x, int* r) { int b = 0; for (int i = 1; i < n; ++i) if (std::fabs(x[(long)i * by_x]) < std::fabs(x[(long)b * by_x])) b = i; *r = n > 0 && by_x > 0 ? b + 1 : 0; return CUBLAS_STATUS_SUCCESS; }
WW_BLAS(float, S, s) WW_BLAS(double, D, d)
// cublas.h of before CUDA 4: no handle, operations as letters, scalars and results by value.
typedef cublasStatus_t cublasStatus;
namespace ww {
static cublasStatus_t& legacy_status() { static thread_local cublasStatus_t status = CUBLAS_STATUS_SUCCESS; return status; }
static inline void legacy(cublasStatus_t status) { if (status) legacy_status() = status; }
static inline cublasOperation_t operation_of(char letter) {
  if (letter == 'n' || letter == 'N') return CUBLAS_OP_N;
  if (letter == 't' || letter == 'T') return CUBLAS_OP_T;
  if (letter == 'c' || letter == 'C') return CUBLAS_OP_C;
  return legacy(CUBLAS_STATUS_INVALID_VALUE), (cublasOperation_t)-1;
}
}
static inline cublasStatus_t cublasInit() { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasShutdown() { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasGetError() { const auto status = ww::legacy_status(); ww::legacy_status() = CUBLAS_STATUS_SUCCESS; return status; }
static inline cublasStatus_t cublasSetKernelStream(cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasAlloc(int n, int size, void** p) { return cudaMalloc(p, (size_t)n * size) ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasFree(void* p) { return cudaFree(p) ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS; }
#define WW_LEGACY_BLAS(T, LETTER, I_LETTER) \
  static inline void cublas##LETTER##gemm(char ta, char tb, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc) { \
    const auto turn_a = ww::operation_of(ta), turn_b = ww::operation_of(tb); \
    if ((int)turn_a >= 0 && (int)turn_b >= 0) ww::legacy(ww::gemm<T>(turn_a, turn_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)); } \
  static inline void cublas##LETTER##gemv(char turn, int m, int n, T alpha, const T* a, int lda, const T* x, int by_x, T beta, T* y, int by_y) { \
    const auto op = ww::operation_of(turn); \
    if ((int)op >= 0) ww::legacy(cublas##LETTER##gemv((cublasHandle_t) nullptr, op, m, n, &alpha, a, lda, x, by_x, &beta, y, by_y)); } \
  static inline void cublas##LETTER##ger(int m, int n, T alpha, const T* x, int by_x, const T* y, int by_y, T* a, int lda) { cublas##LETTER##ger((cublasHandle_t) nullptr, m, n, &alpha, x, by_x, y, by_y, a, lda); } \
  static inline void cublas##LETTER##axpy(int n, T alpha, const T* x, int by_x, T* y, int by_y) { cublas##LETTER##axpy((cublasHandle_t) nullptr, n, &alpha, x, by_x, y, by_y); } \
  static inline void cublas##LETTER##scal(int n, T alpha, T* x, int by_x) { cublas##LETTER##scal((cublasHandle_t) nullptr, n, &alpha, x, by_x); } \
  static inline void cublas##LETTER##copy(int n, const T* x, int by_x, T* y, int by_y) { cublas##LETTER##copy((cublasHandle_t) nullptr, n, x, by_x, y, by_y); } \
  static inline void cublas##LETTER##swap(int n, T* x, int by_x, T* y, int by_y) { cublas##LETTER##swap((cublasHandle_t) nullptr, n, x, by_x, y, by_y); } \
  static inline T cublas##LETTER##dot(int n, const T* x, int by_x, const T* y, int by_y) { T r = 0; cublas##LETTER##dot((cublasHandle_t) nullptr, n, x, by_x, y, by_y, &r); return r; } \
  static inline T cublas##LETTER##nrm2(int n, const T* x, int by_x) { T r = 0; cublas##LETTER##nrm2((cublasHandle_t) nullptr, n, x, by_x, &r); return r; } \
  static inline T cublas##LETTER##asum(int n, const T* x, int by_x) { T r = 0; cublas##LETTER##asum((cublasHandle_t) nullptr, n, x, by_x, &r); return r; } \
  static inline int cublasI##I_LETTER##amax(int n, const T* x, int by_x) { int r = 0; cublasI##I_LETTER##amax((cublasHandle_t) nullptr, n, x, by_x, &r); return r; } \
  static inline int cublasI##I_LETTER##amin(int n, const T* x, int by_x) { int r = 0; cublasI##I_LETTER##amin((cublasHandle_t) nullptr, n, x, by_x, &r); return r; }
WW_LEGACY_BLAS(float, S, s) WW_LEGACY_BLAS(double, D, d)
static inline cublasStatus_t cublasHgemm(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const __half* alpha, const __half* a, int lda, const __half* b, int ldb, const __half* beta, __half* c, int ldc) {
  return ww::gemm_of<float>(ta, tb, m, n, k, (float)*alpha, a, CUDA_R_16F, lda, b, CUDA_R_16F, ldb, (float)*beta, c, CUDA_R_16F, ldc);
}
typedef struct cublasContext* cublasLtHandle_t;
static inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return cublasCreate(handle); }
static inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
