// cublasLt's products: column-major matrices, one or a batch of them, with an epilogue of bias, ReLU and GELU (as tanh). What else a descriptor asks for is
// refused by its status.
enum cublasLtMatmulDescAttributes_t { CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, CUBLASLT_MATMUL_DESC_SCALE_TYPE, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSC, CUBLASLT_MATMUL_DESC_FILL_MODE,
                                      CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26 };
enum cublasLtEpilogue_t { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_RELU = 2, CUBLASLT_EPILOGUE_BIAS = 4, CUBLASLT_EPILOGUE_RELU_BIAS = 6, CUBLASLT_EPILOGUE_GELU = 32, CUBLASLT_EPILOGUE_GELU_BIAS = 36, CUBLASLT_EPILOGUE_RELU_AUX = 130,
                          CUBLASLT_EPILOGUE_RELU_AUX_BIAS = 134, CUBLASLT_EPILOGUE_GELU_AUX = 160, CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164, CUBLASLT_EPILOGUE_DGELU = 192, CUBLASLT_EPILOGUE_DGELU_BGRAD = 208, CUBLASLT_EPILOGUE_BGRADA = 256, CUBLASLT_EPILOGUE_BGRADB = 512 };
enum cublasLtOrder_t { CUBLASLT_ORDER_COL, CUBLASLT_ORDER_ROW };
enum cublasLtMatrixLayoutAttribute_t { CUBLASLT_MATRIX_LAYOUT_TYPE, CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_MATRIX_LAYOUT_ROWS, CUBLASLT_MATRIX_LAYOUT_COLS, CUBLASLT_MATRIX_LAYOUT_LD, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET };
enum cublasLtMatmulPreferenceAttributes_t { CUBLASLT_MATMUL_PREF_SEARCH_MODE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES };
struct cublasLtMatmulDescOpaque_t { cublasComputeType_t compute; cudaDataType_t scale; cublasOperation_t turn_a, turn_b; cublasLtEpilogue_t epilogue; const void* bias; cudaDataType_t bias_kind; bool known; };
struct cublasLtMatrixLayoutOpaque_t { cudaDataType_t kind; unsigned long long rows, columns; long long ld, step; int count; bool known; };
struct cublasLtMatmulPreferenceOpaque_t { int unused; };
struct cublasLtMatmulAlgo_t { unsigned long long data[8]; };
struct cublasLtMatmulHeuristicResult_t { cublasLtMatmulAlgo_t algo; size_t workspaceSize; cublasStatus_t state; float wavesCount; int reserved[4]; };
typedef cublasLtMatmulDescOpaque_t* cublasLtMatmulDesc_t;
typedef cublasLtMatrixLayoutOpaque_t* cublasLtMatrixLayout_t;
typedef cublasLtMatmulPreferenceOpaque_t* cublasLtMatmulPreference_t;
static inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t compute, cudaDataType_t scale) {
  *d = new cublasLtMatmulDescOpaque_t{compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, (cudaDataType_t)-1, true};
  return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { delete d; return CUBLAS_STATUS_SUCCESS; }
namespace ww {
template <class T> static inline bool taken(T& to, const void* from, size_t size) { if (size == sizeof to) std::memcpy(&to, from, size); return size == sizeof to; }
}  // namespace ww
static inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, const void* from, size_t size) {
  switch (what) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return ww::taken(d->compute, from, size) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return ww::taken(d->scale, from, size) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_DESC_TRANSA: return ww::taken(d->turn_a, from, size) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_DESC_TRANSB: return ww::taken(d->turn_b, from, size) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return ww::taken(d->epilogue, from, size) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return ww::taken(d->bias, from, size) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return ww::taken(d->bias_kind, from, size) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    default: d->known = false; return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
static inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* m, cudaDataType_t kind, unsigned long long rows, unsigned long long columns, long long ld) {
  *m = new cublasLtMatrixLayoutOpaque_t{kind, rows, columns, ld, 0, 1, true};
  return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t m) { delete m; return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t m, cublasLtMatrixLayoutAttribute_t what, const void* from, size_t size) {
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && ww::taken(m->count, from, size)) return CUBLAS_STATUS_SUCCESS;
  if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && ww::taken(m->step, from, size)) return CUBLAS_STATUS_SUCCESS;
  cublasLtOrder_t order;
  if (what == CUBLASLT_MATRIX_LAYOUT_ORDER && ww::taken(order, from, size) && order == CUBLASLT_ORDER_COL) return CUBLAS_STATUS_SUCCESS;
  m->known = false;
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
static inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) { *p = new cublasLtMatmulPreferenceOpaque_t{0}; return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { delete p; return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*, size_t) { return CUBLAS_STATUS_SUCCESS; }  // hints
namespace ww {
static inline bool lt_known(cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t r) {
  const int e = d->epilogue;
  const bool simple = e == 1 || e == 2 || e == 4 || e == 6 || e == 32 || e == 36;
  return simple && d->known && a->known && b->known && c->known && r->known && a->count == r->count && b->count == r->count && c->count == r->count;
}
}  // namespace ww
static inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t r, cublasLtMatmulPreference_t, int wanted,
                                                            cublasLtMatmulHeuristicResult_t* found, int* count) {
  *count = wanted > 0 && ww::lt_known(d, a, b, c, r) ? 1 : 0;
  if (*count) *found = {};
  return *count ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
static inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void* alpha, const void* a, cublasLtMatrixLayout_t la, const void* b, cublasLtMatrixLayout_t lb, const void* beta, const void* c, cublasLtMatrixLayout_t lc,
                                            void* r, cublasLtMatrixLayout_t lr, const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
  if (!ww::lt_known(d, la, lb, lc, lr) || (lc->kind != lr->kind || (c != r && lc->ld != lr->ld))) return CUBLAS_STATUS_NOT_SUPPORTED;
  const int m = (int)lr->rows, n = (int)lr->columns, k = (int)(d->turn_a == CUBLAS_OP_N ? la->columns : la->rows);
  if (k != (int)(d->turn_b == CUBLAS_OP_N ? lb->rows : lb->columns) || m != (int)(d->turn_a == CUBLAS_OP_N ? la->rows : la->columns) || n != (int)(d->turn_b == CUBLAS_OP_N ? lb->columns : lb->rows)) return CUBLAS_STATUS_INVALID_VALUE;
  for (int batch = 0; batch < lr->count; ++batch) {
    char* const to = (char*)r + batch * lr->step * ww::width_of(lr->kind);
    if (c != r && c) std::memcpy(to, (const char*)c + batch * lc->step * ww::width_of(lc->kind), (size_t)lr->ld * (n - 1) * ww::width_of(lr->kind) + (size_t)m * ww::width_of(lr->kind));
    const auto status = ww::gemm_ex(d->turn_a, d->turn_b, m, n, k, alpha, (const char*)a + batch * la->step * ww::width_of(la->kind), la->kind, (int)la->ld, (const char*)b + batch * lb->step * ww::width_of(lb->kind), lb->kind, (int)lb->ld,
                                    beta, to, lr->kind, (int)lr->ld, (int)d->compute);
    if (status != CUBLAS_STATUS_SUCCESS || d->epilogue == CUBLASLT_EPILOGUE_DEFAULT) { if (status != CUBLAS_STATUS_SUCCESS) return status; continue; }
    auto whole = ww::widened<float>(to, lr->kind, m, n, (int)lr->ld);
    const auto bias = d->epilogue & 4 ? ww::widened<float>(d->bias, (int)d->bias_kind < 0 ? lr->kind : d->bias_kind, m, 1, m) : std::vector<float>((size_t)m);
    for (long j = 0; j < n; ++j) for (long i = 0; i < m; ++i) {
      float& v = whole[(size_t)(j * m + i)];
      v += bias[(size_t)i];
      if (d->epilogue & 2) v = v > 0 ? v : 0;
      if (d->epilogue & 32) v = 0.5f * v * (1 + std::tanh(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
    ww::narrowed(whole, to, lr->kind, m, n, (int)lr->ld);
  }
  return CUBLAS_STATUS_SUCCESS;
}
