// cuRAND's Philox4_32_10 in device code (Salmon et al., SC11): a subsequence is the upper half of the counter, an offset counts numbers.
struct curandStatePhilox4_32_10 { uint4 ctr, output; uint2 key; unsigned used; };
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
namespace ww {
static inline uint4 philox(uint4 c, uint2 k) {
  for (int round = 0; round < 10; ++round, k.x += 0x9E3779B9u, k.y += 0xBB67AE85u) {
    const uint64_t a = (uint64_t)0xD2511F53u * c.x, b = (uint64_t)0xCD9E8D57u * c.z;
    c = make_uint4((unsigned)(b >> 32) ^ c.y ^ k.x, (unsigned)b, (unsigned)(a >> 32) ^ c.w ^ k.y, (unsigned)a);
  }
  return c;
}
static inline void philox_skip(uint4& c, uint64_t n) {  // the lower half runs over into the upper one
  const uint64_t low = (uint64_t)c.y << 32 | c.x, next = low + n, high = ((uint64_t)c.w << 32 | c.z) + (next < low);
  c = make_uint4((unsigned)next, (unsigned)(next >> 32), (unsigned)high, (unsigned)(high >> 32));
}
static inline float uniform(unsigned x) { return x * 2.3283064e-10f + 2.3283064e-10f / 2; }  // (0, 1]
}  // namespace ww
static inline void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset, curandStatePhilox4_32_10* s) {
  s->key = make_uint2((unsigned)seed, (unsigned)(seed >> 32));
  s->ctr = make_uint4(0, 0, (unsigned)subsequence, (unsigned)(subsequence >> 32));
  ww::philox_skip(s->ctr, offset / 4);
  s->used = (unsigned)(offset % 4), s->output = ww::philox(s->ctr, s->key);
}
static inline unsigned curand(curandStatePhilox4_32_10* s) {
  const unsigned x = (&s->output.x)[s->used++];
  if (s->used == 4) ww::philox_skip(s->ctr, 1), s->output = ww::philox(s->ctr, s->key), s->used = 0;
  return x;
}
static inline uint4 curand4(curandStatePhilox4_32_10* s) {
  uint4 x;
  x.x = curand(s), x.y = curand(s), x.z = curand(s), x.w = curand(s);
  return x;
}
static inline float curand_uniform(curandStatePhilox4_32_10* s) { return ww::uniform(curand(s)); }
static inline float4 curand_uniform4(curandStatePhilox4_32_10* s) {
  const uint4 x = curand4(s);
  return make_float4(ww::uniform(x.x), ww::uniform(x.y), ww::uniform(x.z), ww::uniform(x.w));
}
static inline double curand_uniform_double(curandStatePhilox4_32_10* s) {
  const unsigned long long a = curand(s), b = curand(s);
  return ((a << 21 ^ b >> 11) + 1) * 1.1102230246251565e-16;
}
namespace ww {
static inline float2 box_muller(unsigned x, unsigned y) {
  const float radius = std::sqrt(-2.0f * std::log(uniform(x))), angle = 6.2831855f * uniform(y);
  return {radius * std::sin(angle), radius * std::cos(angle)};
}
}  // namespace ww
static inline float2 curand_normal2(curandStatePhilox4_32_10* s) { const unsigned x = curand(s), y = curand(s); return ww::box_muller(x, y); }
static inline float curand_normal(curandStatePhilox4_32_10* s) { return curand_normal2(s).x; }
static inline float4 curand_normal4(curandStatePhilox4_32_10* s) { const float2 a = curand_normal2(s), b = curand_normal2(s); return {a.x, a.y, b.x, b.y}; }
static inline double curand_normal_double(curandStatePhilox4_32_10* s) {
  const double a = curand_uniform_double(s), b = curand_uniform_double(s);
  return std::sqrt(-2 * std::log(a)) * std::sin(6.283185307179586 * b);
}
static inline float curand_log_normal(curandStatePhilox4_32_10* s, float mean, float deviation) { return std::exp(mean + deviation * curand_normal(s)); }
static inline void skipahead(unsigned long long n, curandStatePhilox4_32_10* s) {
  const unsigned long long all = s->used + n;
  ww::philox_skip(s->ctr, all / 4);
  s->used = (unsigned)(all % 4), s->output = ww::philox(s->ctr, s->key);
}
// XORWOW, MRG32k3a and MTGP32 states are Philox under their names: numbers of the right distribution, in another order than NVIDIA's.
struct curandStateXORWOW : curandStatePhilox4_32_10 {};
struct curandStateMRG32k3a : curandStatePhilox4_32_10 {};
typedef curandStateXORWOW curandState;
typedef curandStateXORWOW curandState_t;
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateMRG32k3a curandStateMRG32k3a_t;
