"""Kernels with one thread for each element of a grid."""

from benchmarks.cuda.plain import Plain

SAXPY = Plain("saxpy", """
__global__ void saxpy_kernel(int n, float a, const float* x, const float* y, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}

extern "C" void saxpy(int n, float a, const float* x, const float* y, float* out) {
    saxpy_kernel<<<(n + 255) / 256, 256>>>(n, a, x, y, out);
}
""", """
def get_inputs():
    return [torch.randn(@N), torch.randn(@N)]


def reference(x, y):
    return 2.0 * x + y


def launch(kernel, x, y):
    out = torch.empty_like(x)
    kernel.saxpy(x.numel(), 2.0, x, y, out)
    return out
""", (1 << 25, 0), (1 << 21, 0))  # fmt: skip

MATRIX_ADD = Plain("matrix_add", """
__global__ void matrix_add_kernel(const float* a, const float* b, float* c, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < rows && j < columns) {
        c[i * columns + j] = a[i * columns + j] + b[i * columns + j];
    }
}

extern "C" void matrix_add(const float* a, const float* b, float* c, int rows, int columns) {
    dim3 block(16, 16);
    dim3 grid((rows + 15) / 16, (columns + 15) / 16);
    matrix_add_kernel<<<grid, block>>>(a, b, c, rows, columns);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M), torch.randn(@N, @M)]


def reference(a, b):
    return a + b


def launch(kernel, a, b):
    c = torch.empty_like(a)
    kernel.matrix_add(a, b, c, a.shape[0], a.shape[1])
    return c
""", (8192, 4096), (1024, 1024))  # fmt: skip

TRANSPOSE = Plain("transpose", """
__global__ void transpose_kernel(const float* in, float* out, int rows, int columns) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < columns && y < rows) {
        out[x * rows + y] = in[y * columns + x];
    }
}

extern "C" void transpose(const float* in, float* out, int rows, int columns) {
    dim3 block(16, 16);
    dim3 grid((columns + 15) / 16, (rows + 15) / 16);
    transpose_kernel<<<grid, block>>>(in, out, rows, columns);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M)]


def reference(x):
    return x.t().contiguous()


def launch(kernel, x):
    out = x.new_empty(x.shape[1], x.shape[0])
    kernel.transpose(x, out, x.shape[0], x.shape[1])
    return out
""", (8192, 8000), (1000, 1024))  # fmt: skip

REVERSE = Plain("reverse", """
__global__ void reverse_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[n - 1 - i] = in[i];
    }
}

extern "C" void reverse(const float* in, float* out, int n) {
    reverse_kernel<<<(n + 63) / 64, 64>>>(in, out, n);
}
""", """
def get_inputs():
    return [torch.randn(@N)]


def reference(x):
    return x.flip(0)


def launch(kernel, x):
    out = torch.empty_like(x)
    kernel.reverse(x, out, x.numel())
    return out
""", (1 << 26, 0), (1 << 21, 0))  # fmt: skip

JACOBI = Plain("jacobi", """
__global__ void jacobi_kernel(const float* u, const float* f, float* out, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || x >= width - 1 || y < 1 || y >= height - 1) return;
    float sum = u[(y - 1) * width + x] + u[(y + 1) * width + x] + u[y * width + x - 1] + u[y * width + x + 1];
    out[y * width + x] = 0.25f * (sum + f[y * width + x]);
}

extern "C" void jacobi(const float* u, const float* f, float* out, int height, int width) {
    cudaMemset(out, 0, sizeof(float) * height * width);
    dim3 block(8, 8);
    dim3 grid((width + 7) / 8, (height + 7) / 8);
    jacobi_kernel<<<grid, block>>>(u, f, out, height, width);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M), torch.randn(@N, @M)]


def reference(u, f):
    inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + f[1:-1, 1:-1])
    return torch.nn.functional.pad(inner, (1, 1, 1, 1))


def launch(kernel, u, f):
    out = torch.empty_like(u)
    kernel.jacobi(u, f, out, u.shape[0], u.shape[1])
    return out
""", (6000, 6000), (1000, 1000))  # fmt: skip

CONVOLUTION = Plain("convolution", """
__global__ void convolution_kernel(const float* image, const float* filter, float* out, int height, int width, int taps) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int out_width = width - taps + 1;
    int out_height = height - taps + 1;
    if (x < out_width && y < out_height) {
        float sum = 0.0f;
        for (int i = 0; i < taps; ++i) {
            for (int j = 0; j < taps; ++j) {
                sum += image[(y + i) * width + (x + j)] * filter[i * taps + j];
            }
        }
        out[y * out_width + x] = sum;
    }
}

extern "C" void convolution(const float* image, const float* filter, float* out, int height, int width, int taps) {
    dim3 block(16, 16);
    dim3 grid((width + 15) / 16, (height + 15) / 16);
    convolution_kernel<<<grid, block>>>(image, filter, out, height, width, taps);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M), torch.randn(9, 9)]


def reference(image, taps):
    return torch.nn.functional.conv2d(image[None, None], taps[None, None])[0, 0]


def launch(kernel, image, taps):
    size = taps.shape[0]
    out = image.new_empty(image.shape[0] - size + 1, image.shape[1] - size + 1)
    kernel.convolution(image, taps, out, image.shape[0], image.shape[1], size)
    return out
""", (4096, 4096), (300, 300))  # fmt: skip

KERNELS = (SAXPY, MATRIX_ADD, TRANSPOSE, REVERSE, JACOBI, CONVOLUTION)
