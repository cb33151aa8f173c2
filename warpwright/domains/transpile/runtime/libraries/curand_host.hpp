// cuRAND's host interface. Philox4_32_10 is the one that the device has; the other pseudo-random generators are this one under their names: numbers of the
// right distribution, in another order than NVIDIA's. Quasi-random: Sobol's without scrambling (sobol.hpp); the others are refused by their status.
enum curandStatus_t { CURAND_STATUS_SUCCESS = 0, CURAND_STATUS_VERSION_MISMATCH = 100, CURAND_STATUS_NOT_INITIALIZED = 101, CURAND_STATUS_ALLOCATION_FAILED = 102, CURAND_STATUS_TYPE_ERROR = 103, CURAND_STATUS_OUT_OF_RANGE = 104,
                      CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105, CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106, CURAND_STATUS_LAUNCH_FAILURE = 201, CURAND_STATUS_PREEXISTING_FAILURE = 202, CURAND_STATUS_INITIALIZATION_FAILED = 203,
                      CURAND_STATUS_ARCH_MISMATCH = 204, CURAND_STATUS_INTERNAL_ERROR = 999 };
typedef curandStatus_t curandStatus;
enum curandRngType_t { CURAND_RNG_TEST = 0, CURAND_RNG_PSEUDO_DEFAULT = 100, CURAND_RNG_PSEUDO_XORWOW = 101, CURAND_RNG_PSEUDO_MRG32K3A = 121, CURAND_RNG_PSEUDO_MTGP32 = 141, CURAND_RNG_PSEUDO_MT19937 = 142, CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
                       CURAND_RNG_QUASI_DEFAULT = 200, CURAND_RNG_QUASI_SOBOL32 = 201, CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 202, CURAND_RNG_QUASI_SOBOL64 = 203, CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 204 };
typedef curandRngType_t curandRngType;
enum curandOrdering_t { CURAND_ORDERING_PSEUDO_BEST = 100, CURAND_ORDERING_PSEUDO_DEFAULT = 101, CURAND_ORDERING_PSEUDO_SEEDED = 102, CURAND_ORDERING_PSEUDO_LEGACY = 103, CURAND_ORDERING_QUASI_DEFAULT = 201 };
struct curandGenerator_st { curandStatePhilox4_32_10 state; curandRngType_t kind = CURAND_RNG_PSEUDO_DEFAULT; unsigned dimensions = 1; unsigned long long offset = 0; };
typedef curandGenerator_st* curandGenerator_t;
static inline curandStatus_t curandCreateGenerator(curandGenerator_t* g, curandRngType_t kind) {
  if (kind > CURAND_RNG_QUASI_SOBOL32 && kind != CURAND_RNG_QUASI_SOBOL64) return CURAND_STATUS_TYPE_ERROR;
  *g = new curandGenerator_st;
  (*g)->kind = kind;
  curand_init(0, 0, 0, &(*g)->state);
  return CURAND_STATUS_SUCCESS;
}
static inline curandStatus_t curandCreateGeneratorHost(curandGenerator_t* g, curandRngType_t kind) { return curandCreateGenerator(g, kind); }
static inline curandStatus_t curandDestroyGenerator(curandGenerator_t g) { delete g; return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t g, unsigned long long seed) { curand_init(seed, 0, 0, &g->state); return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandSetGeneratorOffset(curandGenerator_t g, unsigned long long n) { g->offset = n; ww::philox_skip(g->state.ctr, n / 4); return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandSetGeneratorOrdering(curandGenerator_t, curandOrdering_t) { return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t g, unsigned n) {
  if (g->kind < CURAND_RNG_QUASI_DEFAULT) return CURAND_STATUS_TYPE_ERROR;
  if (n < 1 || n > (unsigned)ww::sobol_dimensions) return CURAND_STATUS_OUT_OF_RANGE;
  g->dimensions = n;
  return CURAND_STATUS_SUCCESS;
}
static inline curandStatus_t curandSetStream(curandGenerator_t, cudaStream_t) { return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandGenerateSeeds(curandGenerator_t) { return CURAND_STATUS_SUCCESS; }
namespace ww {
static inline double uniform_double(curandStatePhilox4_32_10* s) { return curand_uniform_double(s); }
static inline void normals(curandStatePhilox4_32_10* s, double* two) {  // Box-Muller
  const double radius = std::sqrt(-2 * std::log(uniform_double(s))), angle = 6.283185307179586 * uniform_double(s);
  two[0] = radius * std::cos(angle), two[1] = radius * std::sin(angle);
}
template <class T, class F> static curandStatus_t normal_numbers(curandGenerator_t g, T* to, size_t n, F of) {
  if (g->kind >= CURAND_RNG_QUASI_DEFAULT) return CURAND_STATUS_TYPE_ERROR;
  if (n % 2) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  for (size_t i = 0; i < n; i += 2) { double two[2]; normals(&g->state, two); to[i] = (T)of(two[0]), to[i + 1] = (T)of(two[1]); }
  return CURAND_STATUS_SUCCESS;
}
}  // namespace ww
namespace ww {
// The numbers of a quasi-random generator: all of the first dimension, then all of the second, and so on. `take` makes one of a state.
template <class T, class V, class F> static curandStatus_t quasi(curandGenerator_t g, V* to, size_t n, F take) {
  if (n % g->dimensions) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  const size_t each = n / g->dimensions;
  for (unsigned d = 0; d < g->dimensions; ++d) {
    ww_sobol<T> state;
    T directions[8 * sizeof(T)];
    sobol_directions(d, directions);
    curand_init(directions, g->offset, &state);
    for (size_t i = 0; i < each; ++i) *to++ = take(&state);
  }
  g->offset += each;
  return CURAND_STATUS_SUCCESS;
}
static inline bool is_quasi(curandGenerator_t g) { return g->kind >= CURAND_RNG_QUASI_DEFAULT; }
}  // namespace ww
static inline curandStatus_t curandGetDirectionVectors32(curandDirectionVectors32_t** to, curandDirectionVectorSet_t set) {
  static curandDirectionVectors32_t all[ww::sobol_dimensions];
  if (set != CURAND_DIRECTION_VECTORS_32_JOEKUO6) return CURAND_STATUS_OUT_OF_RANGE;
  for (int d = 0; d < ww::sobol_dimensions; ++d) ww::sobol_directions(d, all[d]);
  *to = all;
  return CURAND_STATUS_SUCCESS;
}
static inline curandStatus_t curandGetDirectionVectors64(curandDirectionVectors64_t** to, curandDirectionVectorSet_t set) {
  static curandDirectionVectors64_t all[ww::sobol_dimensions];
  if (set != CURAND_DIRECTION_VECTORS_64_JOEKUO6) return CURAND_STATUS_OUT_OF_RANGE;
  for (int d = 0; d < ww::sobol_dimensions; ++d) ww::sobol_directions(d, all[d]);
  *to = all;
  return CURAND_STATUS_SUCCESS;
}
static inline curandStatus_t curandGenerate(curandGenerator_t g, unsigned* to, size_t n) { if (ww::is_quasi(g)) return g->kind == CURAND_RNG_QUASI_SOBOL64 ? CURAND_STATUS_TYPE_ERROR : ww::quasi<unsigned>(g, to, n, [](auto* s) { return curand(s); }); for (size_t i = 0; i < n; ++i) to[i] = curand(&g->state); return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandGenerateUniform(curandGenerator_t g, float* to, size_t n) { if (ww::is_quasi(g)) return ww::quasi<unsigned>(g, to, n, [](auto* s) { return curand_uniform(s); }); for (size_t i = 0; i < n; ++i) to[i] = curand_uniform(&g->state); return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandGenerateUniformDouble(curandGenerator_t g, double* to, size_t n) { if (ww::is_quasi(g)) return g->kind == CURAND_RNG_QUASI_SOBOL64 ? ww::quasi<unsigned long long>(g, to, n, [](auto* s) { return curand_uniform_double(s); }) : ww::quasi<unsigned>(g, to, n, [](auto* s) { return curand_uniform_double(s); }); for (size_t i = 0; i < n; ++i) to[i] = ww::uniform_double(&g->state); return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandGenerateNormal(curandGenerator_t g, float* to, size_t n, float mean, float deviation) { return ww::normal_numbers(g, to, n, [=](double v) { return mean + deviation * v; }); }
static inline curandStatus_t curandGenerateNormalDouble(curandGenerator_t g, double* to, size_t n, double mean, double deviation) { return ww::normal_numbers(g, to, n, [=](double v) { return mean + deviation * v; }); }
static inline curandStatus_t curandGenerateLogNormal(curandGenerator_t g, float* to, size_t n, float mean, float deviation) { return ww::normal_numbers(g, to, n, [=](double v) { return std::exp(mean + deviation * v); }); }
static inline curandStatus_t curandGenerateLongLong(curandGenerator_t g, unsigned long long* to, size_t n) {
  return g->kind == CURAND_RNG_QUASI_SOBOL64 ? ww::quasi<unsigned long long>(g, to, n, [](auto* s) { return curand(s); }) : CURAND_STATUS_TYPE_ERROR;
}
