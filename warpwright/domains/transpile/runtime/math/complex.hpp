// cuComplex.h: complex numbers as CUDA's vector types of two.
typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;
#define WW_COMPLEX(C, R, MAKE, S, ABS) \
  static inline C MAKE(R x, R y) { return {x, y}; } \
  static inline R cuCreal##S(C a) { return a.x; } \
  static inline R cuCimag##S(C a) { return a.y; } \
  static inline C cuConj##S(C a) { return {a.x, -a.y}; } \
  static inline C cuCadd##S(C a, C b) { return {a.x + b.x, a.y + b.y}; } \
  static inline C cuCsub##S(C a, C b) { return {a.x - b.x, a.y - b.y}; } \
  static inline C cuCmul##S(C a, C b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } \
  static inline C cuCdiv##S(C a, C b) { /* scaled, against overflow */ \
    const R s = std::fabs(b.x) + std::fabs(b.y), i = R(1) / s, ax = a.x * i, ay = a.y * i, bx = b.x * i, by = b.y * i, n = R(1) / (bx * bx + by * by); \
    return {(ax * bx + ay * by) * n, (ay * bx - ax * by) * n}; \
  } \
  static inline R cuCabs##S(C a) { return ABS(a.x, a.y); } \
  static inline C cuCfma##S(C a, C b, C c) { return {a.x * b.x + (c.x - a.y * b.y), a.x * b.y + (c.y + a.y * b.x)}; }
WW_COMPLEX(cuFloatComplex, float, make_cuFloatComplex, f, ::hypotf)
WW_COMPLEX(cuDoubleComplex, double, make_cuDoubleComplex, , ::hypot)
#undef WW_COMPLEX
static inline cuComplex make_cuComplex(float x, float y) { return {x, y}; }
static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return {(double)a.x, (double)a.y}; }
static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) { return {(float)a.x, (float)a.y}; }
