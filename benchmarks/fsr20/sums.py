"""Kernels whose outputs are sums over many elements."""

from benchmarks.cuda.plain.products import MATMUL
from benchmarks.cuda.plain.reductions import DOT, HISTOGRAM
from benchmarks.cuda.plain.rows import CROSS_ENTROPY, LAYER_NORM
from benchmarks.fsr20 import GRIDS, Kernel, taken

SOME = ("nominal", "zeros", "negative", "ties", "denormal", "skewed")
"""Without values whose squares or sums leave the range of float32."""

REDUCTION = Kernel("reduction", """
__global__ void reduction_kernel(const float* x, float* total, int n) {
    __shared__ float part[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(total, part[0]);
}

extern "C" void reduction(const float* x, float* total, int n) {
    cudaMemset(total, 0, sizeof(float));
    reduction_kernel<<<(n + 255) / 256, 256>>>(x, total, n);
}
""", """
def get_inputs():
    return [torch.rand(@N)]


def reference(x):
    return x.sum().reshape(1)


def launch(kernel, x):
    total = x.new_empty(1)
    kernel.reduction(x, total, x.numel())
    return total
""", (1 << 26, 0), (1 << 20, 0), "Sum the elements of a vector.", tolerance=1e-4, values=SOME)  # fmt: skip

MEAN_SQUARED_ERROR = Kernel("mse", """
__global__ void mse_kernel(const float* predicted, const float* wanted, float* error, int n) {
    __shared__ float part[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float d = i < n ? predicted[i] - wanted[i] : 0.0f;
    part[threadIdx.x] = d * d;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(error, part[0] / n);
}

extern "C" void mse(const float* predicted, const float* wanted, float* error, int n) {
    cudaMemset(error, 0, sizeof(float));
    mse_kernel<<<(n + 255) / 256, 256>>>(predicted, wanted, error, n);
}
""", """
def get_inputs():
    return [torch.randn(@N), torch.randn(@N)]


def reference(predicted, wanted):
    return (predicted - wanted).square().mean().reshape(1)


def launch(kernel, predicted, wanted):
    error = predicted.new_empty(1)
    kernel.mse(predicted, wanted, error, predicted.numel())
    return error
""", (1 << 26, 0), (1 << 20, 0), "Return the mean of the squared differences of two vectors.", tolerance=1e-4, values=SOME)  # fmt: skip

MONTE_CARLO = Kernel("monte_carlo", """
__global__ void integrate_kernel(const float* samples, float* integral, float a, float b, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int i = t; i < n; i += gridDim.x * blockDim.x) {
        sum += samples[i];
    }
    atomicAdd(integral, sum * (b - a) / n);
}

extern "C" void monte_carlo(const float* samples, float* integral, float a, float b, int n) {
    cudaMemset(integral, 0, sizeof(float));
    integrate_kernel<<<64, 256>>>(samples, integral, a, b, n);
}
""", """
LOW, HIGH = -10.0, 10.0


def get_inputs():
    return [(torch.rand(@N) * (HIGH - LOW) + LOW).square() / 10]


def reference(samples):
    return (samples.mean() * (HIGH - LOW)).reshape(1)


def launch(kernel, samples):
    integral = samples.new_empty(1)
    kernel.monte_carlo(samples, integral, LOW, HIGH, samples.numel())
    return integral
""", (1 << 26, 0), (1 << 20, 0), "Integrate over [-10, 10] from a function's values at random points: their mean times 20.",
    tolerance=1e-4, values=SOME)  # fmt: skip

PREFIX_SUM = Kernel("prefix_sum", """
__global__ void add_kernel(const float* from, float* to, int n, int distance) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        to[i] = i >= distance ? from[i] + from[i - distance] : from[i];
    }
}

extern "C" void prefix_sum(const float* x, float* out, float* scratch, int n) {
    int steps = 1;
    for (int distance = 2; distance < n; distance *= 2) steps += 1;
    const float* from = x;
    for (int step = 0; step < steps; ++step) {
        float* to = (steps - step) % 2 == 1 ? out : scratch;
        add_kernel<<<(n + 255) / 256, 256>>>(from, to, n, 1 << step);
        from = to;
    }
}
""", """
def get_inputs():
    return [torch.rand(@N)]


def reference(x):
    return x.cumsum(0)


def launch(kernel, x):
    out, scratch = torch.empty_like(x), torch.empty_like(x)
    kernel.prefix_sum(x, out, scratch, x.numel())
    return out
""", (1 << 25, 0), (1 << 18, 0), "Return the running sums of a vector: element i is the sum of the first i + 1 elements.", tolerance=1e-4,
    values=SOME)  # fmt: skip

ATTENTION = Kernel("attention", """
__global__ void scores_kernel(const float* q, const float* k, float* scores, int n, int width, int heads) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int head = blockIdx.z;
    if (row < n && column < n) {
        int depth = width / heads;
        float sum = 0.0f;
        for (int d = 0; d < depth; ++d) {
            sum += q[row * width + head * depth + d] * k[column * width + head * depth + d];
        }
        scores[(head * n + row) * n + column] = sum * rsqrtf((float)depth);
    }
}

__global__ void softmax_rows_kernel(float* scores, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float* s = scores + row * n;
        float top = s[0];
        for (int j = 1; j < n; ++j) top = fmaxf(top, s[j]);
        float total = 0.0f;
        for (int j = 0; j < n; ++j) {
            s[j] = expf(s[j] - top);
            total += s[j];
        }
        for (int j = 0; j < n; ++j) s[j] /= total;
    }
}

__global__ void weighted_kernel(const float* scores, const float* v, float* out, int n, int width, int heads) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < width) {
        int head = column / (width / heads);
        float sum = 0.0f;
        for (int j = 0; j < n; ++j) {
            sum += scores[(head * n + row) * n + j] * v[j * width + column];
        }
        out[row * width + column] = sum;
    }
}

extern "C" void attention(const float* q, const float* k, const float* v, float* out, float* scores, int n, int width, int heads) {
    dim3 block(16, 16);
    scores_kernel<<<dim3((n + 15) / 16, (n + 15) / 16, heads), block>>>(q, k, scores, n, width, heads);
    softmax_rows_kernel<<<(heads * n + 127) / 128, 128>>>(scores, heads * n, n);
    weighted_kernel<<<dim3((width + 15) / 16, (n + 15) / 16), block>>>(scores, v, out, n, width, heads);
}
""", """
HEADS = 4 if @M < 1024 else 16


def get_inputs():
    return [torch.randn(@N, @M) for _ in range(3)]


def reference(q, k, v):
    heads = [x.reshape(len(x), HEADS, -1).transpose(0, 1) for x in (q, k, v)]
    weights = torch.softmax(heads[0] @ heads[1].transpose(1, 2) / heads[0].shape[2] ** 0.5, 2)
    return (weights @ heads[2]).transpose(0, 1).reshape(len(q), -1)


def launch(kernel, q, k, v):
    out, scores = torch.empty_like(q), q.new_empty(HEADS, len(q), len(q))
    kernel.attention(q, k, v, out, scores, len(q), q.shape[1], HEADS)
    return out
""", (1024, 1024), (64, 64), "Multi-head self-attention: softmax(q k^T / sqrt(depth)) v for each head; q, k and v are given, heads lie side by side.",
    ((1, 4), (2, 8), (31, 16), (33, 64)), ("nominal", "zeros", "negative", "ties", "denormal"))  # fmt: skip

LEAST_SQUARES = Kernel("least_squares", """
__global__ void gram_kernel(const float* x, const float* y, double* gram, int n, int m) {
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m && j <= m) {
        double sum = 0.0;
        for (int r = 0; r < n; ++r) {
            sum += (double)x[r * m + i] * (j < m ? x[r * m + j] : y[r]);
        }
        gram[i * (m + 1) + j] = sum;
    }
}

__global__ void solve_kernel(double* gram, float* beta, int m) {
    int width = m + 1;
    for (int p = 0; p < m; ++p) {
        for (int i = p + 1; i < m; ++i) {
            double factor = gram[i * width + p] / gram[p * width + p];
            for (int j = p; j < width; ++j) gram[i * width + j] -= factor * gram[p * width + j];
        }
    }
    for (int i = m - 1; i >= 0; --i) {
        double sum = gram[i * width + m];
        for (int j = i + 1; j < m; ++j) sum -= gram[i * width + j] * beta[j];
        beta[i] = (float)(sum / gram[i * width + i]);
    }
}

extern "C" void least_squares(const float* x, const float* y, double* gram, float* beta, int n, int m) {
    dim3 block(16, 16);
    gram_kernel<<<dim3((m + 16) / 16, (m + 15) / 16), block>>>(x, y, gram, n, m);
    solve_kernel<<<1, 1>>>(gram, beta, m);
}
""", """
def get_inputs():
    x = torch.randn(@N, @M) * torch.logspace(0, -1.5, @M)  # condition about 1e3 for the normal equations
    return [x, x @ torch.randn(@M) + 0.1 * torch.randn(@N)]


def reference(x, y):
    return torch.linalg.solve(x.mT @ x, x.mT @ y)


def launch(kernel, x, y):
    n, m = x.shape
    gram, beta = x.new_empty(m, m + 1, dtype=torch.float64), x.new_empty(m)
    kernel.least_squares(x, y, gram, beta, n, m)
    return beta
""", (1 << 20, 64), (2000, 16), "Fit y by a linear combination of the columns of x: ordinary least squares by the normal equations.",
    ((3, 1), (5, 2), (33, 3), (257, 31)), ("nominal", "negative"), tolerance=1e-4)  # fmt: skip

KERNELS = (
    REDUCTION, MEAN_SQUARED_ERROR, MONTE_CARLO, PREFIX_SUM, ATTENTION, LEAST_SQUARES,
    taken(DOT, "Return the dot product of two vectors.", (1 << 26, 0), values=SOME, tolerance=1e-4),
    taken(MATMUL, "Multiply two matrices.", edges=GRIDS, values=SOME),
    taken(LAYER_NORM, "Normalise each row to mean 0 and variance 1, then scale and shift its columns.", edges=GRIDS[1:],
          values=("nominal", "negative", "skewed"), tolerance=1e-4),
    taken(CROSS_ENTROPY, "Return each sample's categorical cross-entropy: log of the sum of exponentials of its logits, less the label's.",
          edges=GRIDS, values=SOME),
    taken(HISTOGRAM, "Count how often each value from 0 to 255 occurs.", values=("nominal", "constant")),
)  # fmt: skip
