// The largest error of one function of runtime/vmath.hpp or vtrig.hpp over every so manieth bit pattern of a float, against <cmath> in double, whose own errors
// are 10^-8 of a float's last place. What goes before it: the runtime, NAME, EXACT.
#include <cstdio>
#include <cstdlib>

struct Worst { double error = 0.; float at = 0.f; };

// Errors in units in the last place of the exact answer; 1e9 where Inf, NaN or the sign of 0 differ.
static double error_of(float seen, double exact) {
  const float near = (float)exact;
  if (std::isnan(near)) return std::isnan(seen) ? 0. : 1e9;
  if (std::isnan(seen) || std::signbit(seen) != std::signbit(near)) return 1e9;
  if (std::isinf(exact) || std::isinf(seen)) return std::isinf(near) == std::isinf(seen) ? 0. : 1e9;
  const float size = std::fabs(near);
  const double unit = size >= 0x1p127f ? 0x1p104 : (double)std::nextafter(size, INFINITY) - (double)size;
  return std::fabs(seen - exact) / unit;
}

int main(int, char** argument) {
  const unsigned long stride = std::atol(argument[1]), piece = 4096;
  Worst normal, subnormal;
#pragma omp parallel
  {
    Worst mine[2];
#pragma omp for schedule(dynamic, 64)
    for (unsigned long first = 0; first < 1ul << 32; first += stride * piece) {
      float x[piece], y[piece];
      for (unsigned long i = 0; i < piece; ++i) x[i] = ww::bits<float>((unsigned)(first + i * stride));
#pragma omp simd
      for (unsigned long i = 0; i < piece; ++i) y[i] = NAME(x[i]);
      for (unsigned long i = 0; i < piece; ++i) {
        const double exact = EXACT((double)x[i]), error = error_of(y[i], exact);
        Worst& worst = mine[std::fabs(exact) < 0x1p-126];
        if (error > worst.error) worst = {error, x[i]};
      }
    }
#pragma omp critical
    {
      if (mine[0].error > normal.error) normal = mine[0];
      if (mine[1].error > subnormal.error) subnormal = mine[1];
    }
  }
  std::printf("%.4f %.9g %.4f %.9g\n", normal.error, normal.at, subnormal.error, subnormal.at);
}
