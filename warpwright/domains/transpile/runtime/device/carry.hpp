// PTX's sums with a carry (`add.cc`, `addc`, `madc.hi.cc`): the carry of a thread lives between asm statements, so its kernels run on fibers, which are only
// left where threads wait.
namespace ww {
inline unsigned& carry() { static thread_local unsigned flag = 0; return flag; }
template <class T, bool takes, bool leaves> static inline T add_carry(T a, T b) {
  const T sum = (T)(a + b), all = (T)(sum + (takes ? (T)carry() : 0));
  if (leaves) carry() = sum < a || all < sum;
  return all;
}
template <class T, bool takes, bool leaves> static inline T sub_carry(T a, T b) {  // the flag is the borrow
  const T lent = takes ? (T)carry() : 0, rest = (T)(a - b), all = (T)(rest - lent);
  if (leaves) carry() = a < b || rest < lent;
  return all;
}
template <class T> static inline T high_product(T a, T b) { return sizeof(T) == 4 ? (T)((unsigned long long)a * b >> 32) : (T)__umul64hi(a, b); }
template <class T, bool high, bool takes, bool leaves> static inline T mad_carry(T a, T b, T c) { return add_carry<T, takes, leaves>(high ? high_product(a, b) : (T)(a * b), c); }
}  // namespace ww
