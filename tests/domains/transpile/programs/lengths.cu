#include "check.h"
#include <algorithm>
#include <cublas_v2.h>
#include <cuda_bf16.h>
__global__ void more(double* o, const double* v) {
  int t = threadIdx.x; float f = (float)v[t];
  o[t] = sinpi(v[t]); o[8 + t] = cospi(v[t]); o[16 + t] = sinpif(f); o[24 + t] = cospif(f); o[32 + t] = erfcx(v[t]); o[40 + t] = erfcxf(f); o[48 + t] = norm3d(v[t], 1, 2); o[56 + t] = umin(0xfffffff0u, (unsigned)t + 0xffffff00u);
}
__global__ void lengths(float* o, float big) { o[0] = norm3df(big, big, big); o[1] = norm4df(3 * big, 4 * big, 0, 0); o[2] = rnorm3df(big, 0, 0); o[3] = norm3df(1e-30f, 0, 0); }
int main() {
  cublasHandle_t h; cublasCreate(&h);
  auto d = [&](std::vector<double> v) { double r = -1; cublasDnrm2(h, (int)v.size(), device(v), 1, &r); return r; };
  auto near = [](double a, double b) { return a == b || std::fabs(a - b) <= 1e-14 * std::fabs(b) || (a != a && b != b); };
  struct { double got, want; } all[] = {{d({3e200, 4e200}), 5e200}, {d({3e-200, -4e-200}), 5e-200}, {d({3, 4}), 5}, {d({0, 0}), 0}, {d({1, INFINITY}), INFINITY}, {d({INFINITY, NAN}), NAN}, {d({1e308, 1e308}), 1e308 * std::sqrt(2.0)}, {d({4e-324}), 4e-324}, {d({1e160, 1}), 1e160}};
  for (auto& one : all) { ++checks_made; if (!near(one.got, one.want)) { std::printf("FAIL nrm2 %g want %g\n", one.got, one.want); ++checks_failed; } }
  { std::vector<cuDoubleComplex> z{{3e200, 0}, {0, -4e200}}; double r; cublasDznrm2(h, 2, device(z), 1, &r); ++checks_made; if (!near(r, 5e200)) { std::printf("FAIL dznrm2 %g\n", r); ++checks_failed; } }
  { std::vector<float> z{3e38f, 1e38f}; float r; cublasSnrm2(h, 2, device(z), 1, &r); ++checks_made; if (!near(r, (float)std::sqrt(9e76 + 1e76))) { std::printf("FAIL snrm2 %g\n", r); ++checks_failed; } }
  { std::vector<double> v{1e9, 0.5, 1e15 + 0.5, -3, 20, 300, -2.25, 1e200}, got(64); double* o = device<double>(64); more<<<1, 8>>>(o, device(v)); cudaDeviceSynchronize(); cudaMemcpy(got.data(), o, 512, cudaMemcpyDeviceToHost);
    double s[] = {0, 1, 1, 0, 0, 0, -std::sqrt(0.5), 0}, c[] = {1, 0, 0, -1, 1, 1, std::sqrt(0.5), 1}; long double e[] = {5.6418958354775628e-10L, 0.61569034419292587L, 5.6418958354775345e-16L, 16205.988853999586L, 0.0281743487410513193L, 0.00188062149737806449L, 315.777L, 5.6418958354775629e-201L};
    for (int i = 0; i < 8; ++i) { auto bad = [&](const char* n, double g, double w, double by) { ++checks_made; if (!(std::fabs(g - w) <= by * std::max(std::fabs(w), 1e-300)) && !(std::fabs(w) == 0 && std::fabs(g) == 0)) { std::printf("FAIL %s(%g) %.17g want %.17g\n", n, v[i], g, w); ++checks_failed; } };
      bad("sinpi", got[i], s[i], 1e-15); bad("cospi", got[8 + i], c[i], 1e-15); if (i != 2 && i != 7) { bad("sinpif", got[16 + i], s[i], 2e-7); bad("cospif", got[24 + i], c[i], 2e-7); } if (i != 6) { bad("erfcx", got[32 + i], (double)e[i], 1e-12); } if (i < 6 && i != 2) bad("erfcxf", got[40 + i], (double)e[i], 3e-7); bad("umin", got[56 + i], std::min<double>(0xfffffff0u, i + 0xffffff00u), 0); } ++checks_made; if (got[55] != 1e200) { std::printf("FAIL norm3d %g\n", got[55]); ++checks_failed; } }
  { float* o = device<float>(4); lengths<<<1, 1>>>(o, 1e30f); expect("lengths", o, std::vector<float>{(float)(1e30f * std::sqrt(3.0)), (float)std::hypot((double)(3 * 1e30f), (double)(4 * 1e30f)), 1 / 1e30f, 1e-30f}); }
  return done("norms");
}
