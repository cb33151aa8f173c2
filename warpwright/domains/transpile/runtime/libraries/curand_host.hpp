// cuRAND's host interface. Philox4_32_10 is the one that the device has; the other pseudo-random generators are this one under their names: numbers of the
// right distribution, in another order than NVIDIA's. Quasi-random generators are refused by their status.
enum curandStatus_t { CURAND_STATUS_SUCCESS = 0, CURAND_STATUS_VERSION_MISMATCH = 100, CURAND_STATUS_NOT_INITIALIZED = 101, CURAND_STATUS_ALLOCATION_FAILED = 102, CURAND_STATUS_TYPE_ERROR = 103, CURAND_STATUS_OUT_OF_RANGE = 104,
                      CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105, CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106, CURAND_STATUS_LAUNCH_FAILURE = 201, CURAND_STATUS_PREEXISTING_FAILURE = 202, CURAND_STATUS_INITIALIZATION_FAILED = 203,
                      CURAND_STATUS_ARCH_MISMATCH = 204, CURAND_STATUS_INTERNAL_ERROR = 999 };
typedef curandStatus_t curandStatus;
enum curandRngType_t { CURAND_RNG_TEST = 0, CURAND_RNG_PSEUDO_DEFAULT = 100, CURAND_RNG_PSEUDO_XORWOW = 101, CURAND_RNG_PSEUDO_MRG32K3A = 121, CURAND_RNG_PSEUDO_MTGP32 = 141, CURAND_RNG_PSEUDO_MT19937 = 142, CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
                       CURAND_RNG_QUASI_DEFAULT = 200, CURAND_RNG_QUASI_SOBOL32 = 201, CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 202, CURAND_RNG_QUASI_SOBOL64 = 203, CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 204 };
typedef curandRngType_t curandRngType;
enum curandOrdering_t { CURAND_ORDERING_PSEUDO_BEST = 100, CURAND_ORDERING_PSEUDO_DEFAULT = 101, CURAND_ORDERING_PSEUDO_SEEDED = 102, CURAND_ORDERING_PSEUDO_LEGACY = 103, CURAND_ORDERING_QUASI_DEFAULT = 201 };
struct curandGenerator_st { curandStatePhilox4_32_10 state; };
typedef curandGenerator_st* curandGenerator_t;
static inline curandStatus_t curandCreateGenerator(curandGenerator_t* g, curandRngType_t kind) {
  if (kind >= CURAND_RNG_QUASI_DEFAULT) return CURAND_STATUS_TYPE_ERROR;
  *g = new curandGenerator_st;
  curand_init(0, 0, 0, &(*g)->state);
  return CURAND_STATUS_SUCCESS;
}
static inline curandStatus_t curandCreateGeneratorHost(curandGenerator_t* g, curandRngType_t kind) { return curandCreateGenerator(g, kind); }
static inline curandStatus_t curandDestroyGenerator(curandGenerator_t g) { delete g; return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t g, unsigned long long seed) { curand_init(seed, 0, 0, &g->state); return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandSetGeneratorOffset(curandGenerator_t g, unsigned long long n) { ww::philox_skip(g->state.ctr, n / 4); return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandSetGeneratorOrdering(curandGenerator_t, curandOrdering_t) { return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t, unsigned) { return CURAND_STATUS_TYPE_ERROR; }
static inline curandStatus_t curandSetStream(curandGenerator_t, cudaStream_t) { return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandGenerateSeeds(curandGenerator_t) { return CURAND_STATUS_SUCCESS; }
namespace ww {
static inline double uniform_double(curandStatePhilox4_32_10* s) { return curand_uniform_double(s); }
static inline void normals(curandStatePhilox4_32_10* s, double* two) {  // Box-Muller
  const double radius = std::sqrt(-2 * std::log(uniform_double(s))), angle = 6.283185307179586 * uniform_double(s);
  two[0] = radius * std::cos(angle), two[1] = radius * std::sin(angle);
}
template <class T, class F> static curandStatus_t normal_numbers(curandGenerator_t g, T* to, size_t n, F of) {
  if (n % 2) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  for (size_t i = 0; i < n; i += 2) { double two[2]; normals(&g->state, two); to[i] = (T)of(two[0]), to[i + 1] = (T)of(two[1]); }
  return CURAND_STATUS_SUCCESS;
}
}  // namespace ww
static inline curandStatus_t curandGenerate(curandGenerator_t g, unsigned* to, size_t n) { for (size_t i = 0; i < n; ++i) to[i] = curand(&g->state); return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandGenerateUniform(curandGenerator_t g, float* to, size_t n) { for (size_t i = 0; i < n; ++i) to[i] = curand_uniform(&g->state); return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandGenerateUniformDouble(curandGenerator_t g, double* to, size_t n) { for (size_t i = 0; i < n; ++i) to[i] = ww::uniform_double(&g->state); return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandGenerateNormal(curandGenerator_t g, float* to, size_t n, float mean, float deviation) { return ww::normal_numbers(g, to, n, [=](double v) { return mean + deviation * v; }); }
static inline curandStatus_t curandGenerateNormalDouble(curandGenerator_t g, double* to, size_t n, double mean, double deviation) { return ww::normal_numbers(g, to, n, [=](double v) { return mean + deviation * v; }); }
static inline curandStatus_t curandGenerateLogNormal(curandGenerator_t g, float* to, size_t n, float mean, float deviation) { return ww::normal_numbers(g, to, n, [=](double v) { return std::exp(mean + deviation * v); }); }
