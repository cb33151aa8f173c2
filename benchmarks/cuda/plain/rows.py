"""Kernels with one thread for each row of a matrix."""

from benchmarks.cuda.plain import Plain

ROW_SUM = Plain("row_sum", """
__global__ void row_sum_kernel(const float* x, float* out, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int j = 0; j < columns; ++j) {
            sum += x[row * columns + j];
        }
        out[row] = sum;
    }
}

extern "C" void row_sum(const float* x, float* out, int rows, int columns) {
    row_sum_kernel<<<(rows + 255) / 256, 256>>>(x, out, rows, columns);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M)]


def reference(x):
    return x.sum(1)


def launch(kernel, x):
    out = x.new_empty(x.shape[0])
    kernel.row_sum(x, out, x.shape[0], x.shape[1])
    return out
""", (32768, 2048), (1024, 1024))  # fmt: skip

SOFTMAX = Plain("softmax", """
__global__ void softmax_kernel(const float* input, float* output, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float largest = -INFINITY;
    for (int j = 0; j < columns; j++) {
        largest = fmaxf(largest, input[row * columns + j]);
    }
    float sum = 0.0f;
    for (int j = 0; j < columns; j++) {
        sum += expf(input[row * columns + j] - largest);
    }
    for (int j = 0; j < columns; j++) {
        output[row * columns + j] = expf(input[row * columns + j] - largest) / sum;
    }
}

extern "C" void softmax(const float* input, float* output, int rows, int columns) {
    softmax_kernel<<<(rows + 127) / 128, 128>>>(input, output, rows, columns);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M)]


def reference(x):
    return torch.softmax(x, 1)


def launch(kernel, x):
    out = torch.empty_like(x)
    kernel.softmax(x, out, x.shape[0], x.shape[1])
    return out
""", (32768, 1024), (1024, 512))  # fmt: skip

LAYER_NORM = Plain("layer_norm", """
__global__ void layer_norm_kernel(const float* x, const float* weight, const float* bias, float* y, int rows, int width, float epsilon) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        float mean = 0.0f;
        for (int i = 0; i < width; i++) mean += x[r * width + i];
        mean /= width;
        float variance = 0.0f;
        for (int i = 0; i < width; i++) {
            float d = x[r * width + i] - mean;
            variance += d * d;
        }
        float scale = rsqrtf(variance / width + epsilon);
        for (int i = 0; i < width; i++) {
            y[r * width + i] = (x[r * width + i] - mean) * scale * weight[i] + bias[i];
        }
    }
}

extern "C" void layer_norm(const float* x, const float* weight, const float* bias, float* y, int rows, int width, float epsilon) {
    layer_norm_kernel<<<(rows + 255) / 256, 256>>>(x, weight, bias, y, rows, width, epsilon);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M), torch.randn(@M), torch.randn(@M)]


def reference(x, weight, bias):
    return torch.nn.functional.layer_norm(x, x.shape[1:], weight, bias, 1e-5)


def launch(kernel, x, weight, bias):
    out = torch.empty_like(x)
    kernel.layer_norm(x, weight, bias, out, x.shape[0], x.shape[1], 1e-5)
    return out
""", (32768, 1024), (1024, 512))  # fmt: skip

MATVEC = Plain("matvec", """
__global__ void matvec_kernel(int m, int n, const float* a, const float* x, float* y) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < m) {
        float s = 0;
        for (int k = 0; k < n; ++k)
            s = s + a[i * n + k] * x[k];
        y[i] = s;
    }
}

extern "C" void matvec(int m, int n, const float* a, const float* x, float* y) {
    int threads = 256;
    matvec_kernel<<<(m + threads - 1) / threads, threads>>>(m, n, a, x, y);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M), torch.randn(@M)]


def reference(a, x):
    return a @ x


def launch(kernel, a, x):
    y = a.new_empty(a.shape[0])
    kernel.matvec(a.shape[0], a.shape[1], a, x, y)
    return y
""", (16384, 4096), (1024, 1024))  # fmt: skip

CROSS_ENTROPY = Plain("cross_entropy", """
__global__ void cross_entropy_kernel(const float* logits, const int* labels, float* loss, int samples, int classes) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= samples) return;
    const float* row = logits + s * classes;
    float top = row[0];
    for (int c = 1; c < classes; ++c) {
        if (row[c] > top) top = row[c];
    }
    float total = 0.0f;
    for (int c = 0; c < classes; ++c) {
        total += expf(row[c] - top);
    }
    loss[s] = logf(total) + top - row[labels[s]];
}

extern "C" void cross_entropy(const float* logits, const int* labels, float* loss, int samples, int classes) {
    cross_entropy_kernel<<<(samples + 255) / 256, 256>>>(logits, labels, loss, samples, classes);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M), torch.randint(0, @M, (@N,), dtype=torch.int32)]


def reference(logits, labels):
    return torch.nn.functional.cross_entropy(logits, labels.long(), reduction="none")


def launch(kernel, logits, labels):
    loss = logits.new_empty(logits.shape[0])
    kernel.cross_entropy(logits, labels, loss, logits.shape[0], logits.shape[1])
    return loss
""", (32768, 1000), (1024, 1000))  # fmt: skip

ROW_MAX = Plain("row_max", """
__global__ void row_max_kernel(const float* x, float* out, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float best = x[row * columns];
        for (int j = 1; j < columns; j++) {
            float v = x[row * columns + j];
            if (v > best) best = v;
        }
        out[row] = best;
    }
}

extern "C" void row_max(const float* x, float* out, int rows, int columns) {
    row_max_kernel<<<(rows + 63) / 64, 64>>>(x, out, rows, columns);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M)]


def reference(x):
    return x.amax(1)


def launch(kernel, x):
    out = x.new_empty(x.shape[0])
    kernel.row_max(x, out, x.shape[0], x.shape[1])
    return out
""", (16384, 4096), (1024, 1024))  # fmt: skip

KERNELS = (ROW_SUM, SOFTMAX, LAYER_NORM, MATVEC, CROSS_ENTROPY, ROW_MAX)
