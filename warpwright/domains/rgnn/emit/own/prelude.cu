// What the CUDA kernels of relational layers share; their files come after it.
typedef long long i64;

// Adds four numbers to memory; `to` is aligned to 16 bytes.
__device__ inline void add_4(float* to, float a, float b, float c, float d) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
#else
  atomicAdd(to, a), atomicAdd(to + 1, b), atomicAdd(to + 2, c), atomicAdd(to + 3, d);
#endif
}

// Where the rows of up to 32 types lie, each as if those of the types before it lay before them; or (`apart` 0) where all types' rows lie.
struct Places {
  const float* of[32];
  i64 apart;
};

__device__ inline const float* rows_of(const Places& x, int kind) { return x.of[x.apart ? kind : 0]; }

