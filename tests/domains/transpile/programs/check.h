#pragma once
#include <cstdio>
#include <cstring>
#include <cmath>
#include <cstdlib>
#include <vector>
static int checks_failed = 0, checks_made = 0;
template <class T> static void expect(const char* name, const T* got_device, const std::vector<T>& want) {
  std::vector<T> got(want.size());
  cudaError_t e = cudaDeviceSynchronize();
  if (e != cudaSuccess) { std::printf("FAIL %s: error %s\n", name, cudaGetErrorString(e)); ++checks_failed; return; }
  cudaMemcpy(got.data(), got_device, want.size() * sizeof(T), cudaMemcpyDeviceToHost);
  int bad = 0;
  for (size_t i = 0; i < want.size(); ++i)
    if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0 && !(got[i] != got[i] && want[i] != want[i]))
      if (bad++ < (std::getenv("ALL") ? 1000 : 4)) std::printf("FAIL %s[%zu]: got %.9g (%llx) want %.9g (%llx)\n", name, i, (double)got[i], (unsigned long long)(long long)got[i], (double)want[i], (unsigned long long)(long long)want[i]);
  ++checks_made;
  if (bad) ++checks_failed;
}
template <class T> static T* device(size_t n) { T* p; cudaMalloc(&p, n * sizeof(T)); cudaMemset(p, 0, n * sizeof(T)); return p; }
template <class T> static T* device(const std::vector<T>& v) { T* p; cudaMalloc(&p, v.size() * sizeof(T)); cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice); return p; }
static int done(const char* name) { std::printf("%s: %d of %d checks failed\n", name, checks_failed, checks_made); return checks_failed != 0; }
