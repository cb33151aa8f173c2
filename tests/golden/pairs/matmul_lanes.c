#include <math.h>
#include <stdlib.h>

void op_matmul(const float* restrict x0, const float* restrict x1, float* restrict y) {
  #pragma omp parallel for
  for (int i0 = 0; i0 < 2; ++i0) {
    for (int j0 = 0; j0 < 20; j0 += 16) {
      const int count = 20 - j0 < 16 ? 20 - j0 : 16;
      float s[4][16];
      for (int row = 0; row < 4; ++row) {
        for (int l = 0; l < 16; ++l) s[row][l] = 0.0f;
      }
      for (int k = 0; k < 12; ++k) {
        for (int row = 0; row < 4; ++row) {
          #pragma omp simd
          for (int l = 0; l < count; ++l) {
            int j = j0 + l;
            s[row][l] += (x0[((i0 * 4) + row) * 12 + k] * x1[k * 20 + j]);
          }
        }
      }
      for (int row = 0; row < 4; ++row) {
        for (int l = 0; l < count; ++l) {
          int j = j0 + l;
          y[((i0 * 4) + row) * 20 + j] = s[row][l];
        }
      }
    }
  }
}
