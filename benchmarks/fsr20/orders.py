"""Kernels that put values in order."""

from benchmarks.fsr20 import Kernel

SORT = Kernel("sort", """
__global__ void copy_values_kernel(const float* from, float* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

__global__ void exchange_kernel(float* x, int n, int run, int distance) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int first = distance % run;
    if (i >= first && i + distance < n && (i - first) / distance % 2 == 0 && i / (2 * run) == (i + distance) / (2 * run)) {
        float a = x[i];
        float b = x[i + distance];
        if (a > b) {
            x[i] = b;
            x[i + distance] = a;
        }
    }
}

extern "C" void sort_values(const float* in, float* out, int n) {
    int blocks = (n + 255) / 256;
    copy_values_kernel<<<blocks, 256>>>(in, out, n);
    for (int run = 1; run < n; run *= 2) {
        for (int distance = run; distance > 0; distance /= 2) {
            exchange_kernel<<<blocks, 256>>>(out, n, run, distance);
        }
    }
}
""", """
def get_inputs():
    return [torch.randn(@N)]


def reference(x):
    return x.sort().values


def launch(kernel, x):
    out = torch.empty_like(x)
    kernel.sort_values(x, out, x.numel())
    return out
""", (1 << 24, 0), (1 << 14, 0), "Sort a vector in ascending order.", tolerance=0.0)  # fmt: skip

TOP_K = Kernel("top_k", """
__device__ unsigned long long key_of(float value, int index) {
    unsigned int bits = __float_as_uint(value);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ((unsigned long long)bits << 32) | (unsigned int)index;
}

__global__ void largest_kernel(const float* x, unsigned long long* keys, int n, int round) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned long long key = key_of(x[i], i);
        if ((round == 0 || key < keys[round - 1]) && key > keys[round]) {
            atomicMax(&keys[round], key);
        }
    }
}

__global__ void values_kernel(const float* x, const unsigned long long* keys, float* out, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) out[i] = x[(int)(keys[i] & 0xffffffffull)];
}

extern "C" void top_k(const float* x, unsigned long long* keys, float* out, int n, int k) {
    cudaMemset(keys, 0, k * sizeof(unsigned long long));
    for (int round = 0; round < k; ++round) {
        largest_kernel<<<(n + 255) / 256, 256>>>(x, keys, n, round);
    }
    values_kernel<<<(k + 31) / 32, 32>>>(x, keys, out, k);
}
""", """
def get_inputs():
    return [torch.randn(@N)]


def reference(x):
    return x.topk(@M).values


def launch(kernel, x):
    keys, out = x.new_empty(@M, dtype=torch.int64), x.new_empty(@M)
    kernel.top_k(x, keys, out, x.numel(), @M)
    return out
""", (1 << 26, 32), (1 << 16, 8), "Return the largest elements of a vector, in descending order.",
    ((1, 1), (2, 1), (3, 3), (31, 7), (33, 33), (257, 5), (1000, 8)), tolerance=0.0)  # fmt: skip

KERNELS = (SORT, TOP_K)
