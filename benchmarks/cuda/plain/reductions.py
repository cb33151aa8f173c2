"""Kernels in which all threads add to few places."""

from benchmarks.cuda.plain import Plain

SUM = Plain("sum", """
__global__ void sum_kernel(const float* x, float* total, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(total, x[i]);
    }
}

extern "C" void sum(const float* x, float* total, int n) {
    cudaMemset(total, 0, sizeof(float));
    sum_kernel<<<(n + 255) / 256, 256>>>(x, total, n);
}
""", """
def get_inputs():
    return [torch.rand(@N)]


def reference(x):
    return x.sum().reshape(1)


def launch(kernel, x):
    total = x.new_empty(1)
    kernel.sum(x, total, x.numel())
    return total
""", (1 << 22, 0), (1 << 19, 0))  # fmt: skip

DOT = Plain("dot", """
#define THREADS 256

__global__ void dot_kernel(const float* a, const float* b, float* result, int n) {
    __shared__ float cache[THREADS];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cache[threadIdx.x] = i < n ? a[i] * b[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            cache[threadIdx.x] += cache[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        atomicAdd(result, cache[0]);
    }
}

extern "C" void dot(const float* a, const float* b, float* result, int n) {
    cudaMemset(result, 0, sizeof(float));
    dot_kernel<<<(n + THREADS - 1) / THREADS, THREADS>>>(a, b, result, n);
}
""", """
def get_inputs():
    return [torch.rand(@N), torch.rand(@N)]


def reference(a, b):
    return (a * b).sum().reshape(1)


def launch(kernel, a, b):
    result = a.new_empty(1)
    kernel.dot(a, b, result, a.numel())
    return result
""", (1 << 25, 0), (1 << 19, 0))  # fmt: skip

MEAN_SQUARED_ERROR = Plain("mean_squared_error", """
__global__ void squared_error_kernel(const float* predicted, const float* target, float* loss, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float difference = predicted[i] - target[i];
    atomicAdd(loss, difference * difference / n);
}

extern "C" void mean_squared_error(const float* predicted, const float* target, float* loss, int n) {
    cudaMemset(loss, 0, sizeof(float));
    squared_error_kernel<<<(n + 255) / 256, 256>>>(predicted, target, loss, n);
}
""", """
def get_inputs():
    return [torch.randn(@N), torch.randn(@N)]


def reference(predicted, target):
    return ((predicted - target) ** 2).mean().reshape(1)


def launch(kernel, predicted, target):
    loss = predicted.new_empty(1)
    kernel.mean_squared_error(predicted, target, loss, predicted.numel())
    return loss
""", (1 << 20, 0), (1 << 19, 0))  # fmt: skip

HISTOGRAM = Plain("histogram", """
__global__ void histogram_kernel(const int* values, int* bins, int n, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int bin = values[i];
        if (bin >= 0 && bin < count) {
            atomicAdd(&bins[bin], 1);
        }
    }
}

extern "C" void histogram(const int* values, int* bins, int n, int count) {
    cudaMemset(bins, 0, count * sizeof(int));
    histogram_kernel<<<(n + 255) / 256, 256>>>(values, bins, n, count);
}
""", """
def get_inputs():
    return [torch.randint(0, 256, (@N,), dtype=torch.int32)]


def reference(values):
    inside = ((values >= 0) & (values < 256)).to(torch.int32)
    return torch.zeros(256, dtype=torch.int32, device=values.device).index_add(0, values.clamp(0, 255), inside)


def launch(kernel, values):
    bins = values.new_empty(256)
    kernel.histogram(values, bins, values.numel(), 256)
    return bins
""", (1 << 26, 0), (1 << 20, 0))  # fmt: skip

INSIDE_CIRCLE = Plain("inside_circle", """
__global__ void inside_kernel(const float* x, const float* y, int* hits, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (x[i] * x[i] + y[i] * y[i] <= 1.0f) {
            atomicAdd(hits, 1);
        }
    }
}

extern "C" void inside_circle(const float* x, const float* y, int* hits, int n) {
    cudaMemset(hits, 0, sizeof(int));
    inside_kernel<<<(n + 31) / 32, 32>>>(x, y, hits, n);
}
""", """
def get_inputs():
    return [torch.randint(0, 2048, (@N,)) / 2048.0, torch.randint(0, 2048, (@N,)) / 2048.0]  # squares and their sum are exact


def reference(x, y):
    return (x * x + y * y <= 1.0).sum().to(torch.int32).reshape(1)


def launch(kernel, x, y):
    hits = torch.empty(1, dtype=torch.int32, device=x.device)
    kernel.inside_circle(x, y, hits, x.numel())
    return hits
""", (1 << 25, 0), (1 << 20, 0))  # fmt: skip

KERNELS = (SUM, DOT, MEAN_SQUARED_ERROR, HISTOGRAM, INSIDE_CIRCLE)
