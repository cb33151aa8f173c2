// cuRAND's Sobol generators, of 32 and 64 bits: directions by Joe and Kuo (SIAM J. Sci. Comput. 30, 2008; new-joe-kuo-6), 20 dimensions, in the order of
// Gray codes (Antonov and Saleev). The scrambled ones are not offered.
typedef unsigned int curandDirectionVectors32_t[32];
typedef unsigned long long curandDirectionVectors64_t[64];
enum curandDirectionVectorSet_t { CURAND_DIRECTION_VECTORS_32_JOEKUO6 = 101, CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6 = 102, CURAND_DIRECTION_VECTORS_64_JOEKUO6 = 103, CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6 = 104 };
typedef curandDirectionVectorSet_t curandDirectionVectorSet;
namespace ww {
constexpr int sobol_dimensions = 20;
template <class T> static void sobol_directions(int dimension, T* to) {  // from 0
  static const struct { int degree, a; unsigned char m[7]; } known[sobol_dimensions - 1] = {
      {1, 0, {1}}, {2, 1, {1, 3}}, {3, 1, {1, 3, 1}}, {3, 2, {1, 1, 1}}, {4, 1, {1, 1, 3, 3}}, {4, 4, {1, 3, 5, 13}}, {5, 2, {1, 1, 5, 5, 17}},
      {5, 4, {1, 1, 5, 5, 5}}, {5, 7, {1, 1, 7, 11, 19}}, {5, 11, {1, 1, 5, 1, 1}}, {5, 13, {1, 1, 1, 3, 11}}, {5, 14, {1, 3, 5, 5, 31}},
      {6, 1, {1, 3, 3, 9, 7, 49}}, {6, 13, {1, 1, 1, 15, 21, 21}}, {6, 16, {1, 3, 1, 13, 27, 49}}, {6, 19, {1, 1, 1, 15, 7, 5}},
      {6, 22, {1, 3, 1, 15, 13, 25}}, {6, 25, {1, 1, 5, 5, 19, 61}}, {7, 1, {1, 3, 7, 11, 23, 15, 103}}};
  constexpr int bits = 8 * sizeof(T);
  for (int i = 0; i < bits; ++i) {
    const int degree = dimension ? known[dimension - 1].degree : bits;
    if (i < degree) { to[i] = (T)(dimension ? known[dimension - 1].m[i] : 1) << (bits - 1 - i); continue; }
    T v = to[i - degree] ^ (to[i - degree] >> degree);
    for (int k = 1; k < degree; ++k) if (known[dimension - 1].a >> (degree - 1 - k) & 1) v ^= to[i - k];
    to[i] = v;
  }
}
template <class T> static inline T sobol_at(const T* directions, unsigned long long n) {
  T x = 0;
  for (unsigned long long gray = n ^ n >> 1; gray; gray &= gray - 1) x ^= directions[__builtin_ctzll(gray)];
  return x;
}
static inline double sobol_double(unsigned x) { return x * 2.3283064365386963e-10 + 1.1641532182693481e-10; }  // (0, 1]
static inline double sobol_double(unsigned long long x) { return (double)((x >> 11) + 1) * 1.1102230246251565e-16; }
}  // namespace ww
template <class T> struct ww_sobol {
  T directions[8 * sizeof(T)], x;
  unsigned long long i;
};
typedef ww_sobol<unsigned int> curandStateSobol32, curandStateSobol32_t;
typedef ww_sobol<unsigned long long> curandStateSobol64, curandStateSobol64_t;
template <class T> static inline void curand_init(const T* directions, unsigned long long offset, ww_sobol<T>* s) {
  std::memcpy(s->directions, directions, sizeof s->directions);
  s->i = offset, s->x = ww::sobol_at(s->directions, offset);
}
template <class T> static inline T curand(ww_sobol<T>* s) {
  const T x = s->x;
  s->x ^= s->directions[__builtin_ctzll(~s->i++) % (8 * sizeof(T))];
  return x;
}
template <class T> static inline void skipahead(unsigned long long n, ww_sobol<T>* s) { s->i += n, s->x = ww::sobol_at(s->directions, s->i); }
template <class T> static inline double curand_uniform_double(ww_sobol<T>* s) { return ww::sobol_double(curand(s)); }
template <class T> static inline float curand_uniform(ww_sobol<T>* s) { return ww::uniform((unsigned)(curand(s) >> (8 * sizeof(T) - 32))); }
