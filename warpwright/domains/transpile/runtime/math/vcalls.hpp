// Functions under the names that they share with double (exp, std::sin, ...), where only the argument's type says which is meant.
namespace ww {
#define WW_ANY(NAME) template <class T> WW_MATH auto any_##NAME(T x) { if constexpr (std::is_same_v<T, float>) return NAME##_f(x); else return NAME(x); }
#define WW_ANY_OF_TWO(NAME) \
  template <class A, class B> WW_MATH auto any_##NAME(A a, B b) { \
    if constexpr (std::is_same_v<A, float> && std::is_same_v<B, float>) return NAME##_f(a, b); else return NAME(a, b); }
WW_ANY(exp) WW_ANY(exp2) WW_ANY(exp10) WW_ANY(expm1) WW_ANY(log) WW_ANY(log2) WW_ANY(log10) WW_ANY(log1p) WW_ANY(cbrt) WW_ANY(rcbrt)
WW_ANY(sinh) WW_ANY(cosh) WW_ANY(tanh) WW_ANY(asinh) WW_ANY(acosh) WW_ANY(atanh) WW_ANY(sin) WW_ANY(cos) WW_ANY(tan) WW_ANY(sinpi) WW_ANY(cospi)
WW_ANY(atan) WW_ANY(asin) WW_ANY(acos) WW_ANY(erf) WW_ANY(erfc) WW_ANY(normcdf)
template <class A, class B> WW_MATH auto any_pow(A a, B b) {  // CUDA has a pow of float and int
  if constexpr (std::is_same_v<A, float> && (std::is_same_v<B, float> || std::is_integral_v<B>)) return pow_f(a, b); else return pow(a, b);
}
WW_ANY_OF_TWO(hypot) WW_ANY_OF_TWO(rhypot) WW_ANY_OF_TWO(fdim) WW_ANY_OF_TWO(fmod) WW_ANY_OF_TWO(atan2)
#undef WW_ANY
#undef WW_ANY_OF_TWO
}  // namespace ww
