// Matrix products of cuBLAS: column-major, C = alpha op(A) op(B) + beta C. Sums are kept in the matrices' type, in the order of k.
typedef struct cublasContext* cublasHandle_t;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_INVALID_VALUE = 7 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
enum cublasMath_t { CUBLAS_DEFAULT_MATH, CUBLAS_TENSOR_OP_MATH, CUBLAS_PEDANTIC_MATH, CUBLAS_TF32_TENSOR_OP_MATH };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE };
static inline cublasStatus_t cublasCreate(cublasHandle_t* handle) { static char one; *handle = (cublasHandle_t)(void*)&one; return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }
namespace ww {
template <class T> static cublasStatus_t gemm(cublasOperation_t turn_a, cublasOperation_t turn_b, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  if (m < 0 || n < 0 || k < 0 || ldc < std::max(1, m) || lda < std::max(1, turn_a == CUBLAS_OP_N ? m : k) || ldb < std::max(1, turn_b == CUBLAS_OP_N ? k : n)) return CUBLAS_STATUS_INVALID_VALUE;
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
}  // namespace ww
#define WW_GEMM(T, LETTER) \
  static inline cublasStatus_t cublas##LETTER##gemm(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* a, int lda, const T* b, int ldb, \
                                                    const T* beta, T* c, int ldc) { return ww::gemm<T>(ta, tb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc); } \
  static inline cublasStatus_t cublas##LETTER##gemmStridedBatched(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* a, int lda, \
                                                                  long long step_a, const T* b, int ldb, long long step_b, const T* beta, T* c, int ldc, long long step_c, int count) { \
    for (int i = 0; i < count; ++i) if (const auto s = ww::gemm<T>(ta, tb, m, n, k, *alpha, a + i * step_a, lda, b + i * step_b, ldb, *beta, c + i * step_c, ldc)) return s; \
    return CUBLAS_STATUS_SUCCESS; }
WW_GEMM(float, S) WW_GEMM(double, D)
