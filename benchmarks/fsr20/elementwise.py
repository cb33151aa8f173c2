"""Kernels with a thread for each element of the output."""

from benchmarks.cuda.plain.grids import CONVOLUTION, REVERSE, TRANSPOSE
from benchmarks.fsr20 import GRIDS, VALUES, Kernel, taken

SIGMOID = Kernel("sigmoid", """
__global__ void sigmoid_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = 1.0f / (1.0f + expf(-x[i]));
    }
}

extern "C" void sigmoid(const float* x, float* y, int n) {
    sigmoid_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M)]


def reference(x):
    return torch.sigmoid(x)


def launch(kernel, x):
    y = torch.empty_like(x)
    kernel.sigmoid(x, y, x.numel())
    return y
""", (4096, 16384), (1000, 1024), "Apply the logistic function 1 / (1 + exp(-x)) to every element of a matrix.", GRIDS)  # fmt: skip

RELU = Kernel("relu", """
__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i] > 0.0f ? in[i] : 0.0f;
    }
}

extern "C" void relu(const float* in, float* out, int n) {
    relu_kernel<<<(n + 127) / 128, 128>>>(in, out, n);
}
""", """
def get_inputs():
    return [torch.randn(@N)]


def reference(x):
    return x.clamp(min=0)


def launch(kernel, x):
    out = torch.empty_like(x)
    kernel.relu(x, out, x.numel())
    return out
""", (1 << 26, 0), (1 << 20, 0), "Replace every negative element of a vector by zero.")  # fmt: skip

MATRIX_COPY = Kernel("matrix_copy", """
__global__ void copy_kernel(const float* from, float* to, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) {
        to[row * columns + column] = from[row * columns + column];
    }
}

extern "C" void matrix_copy(const float* from, float* to, int rows, int columns) {
    dim3 block(16, 16);
    dim3 grid((rows + 15) / 16, (columns + 15) / 16);
    copy_kernel<<<grid, block>>>(from, to, rows, columns);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M)]


def reference(x):
    return x.clone()


def launch(kernel, x):
    y = torch.empty_like(x)
    kernel.matrix_copy(x, y, x.shape[0], x.shape[1])
    return y
""", (8192, 8192), (1000, 1024), "Copy a matrix.", GRIDS)  # fmt: skip

MAX_POOL_3D = Kernel("max_pool_3d", """
__global__ void pool_kernel(const float* in, float* out, int planes, int size, int out_size, int taps, int stride, int pad, int dilation) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < planes * out_size * out_size * out_size) {
        int x = i % out_size;
        int y = i / out_size % out_size;
        int z = i / (out_size * out_size) % out_size;
        int plane = i / (out_size * out_size * out_size);
        float best = -INFINITY;
        for (int a = 0; a < taps; ++a) {
            for (int b = 0; b < taps; ++b) {
                for (int c = 0; c < taps; ++c) {
                    int u = z * stride - pad + a * dilation;
                    int v = y * stride - pad + b * dilation;
                    int w = x * stride - pad + c * dilation;
                    if (u >= 0 && u < size && v >= 0 && v < size && w >= 0 && w < size) {
                        float value = in[((plane * size + u) * size + v) * size + w];
                        if (value > best) best = value;
                    }
                }
            }
        }
        out[i] = best;
    }
}

extern "C" void max_pool_3d(const float* in, float* out, int planes, int size, int out_size, int taps, int stride, int pad, int dilation) {
    int n = planes * out_size * out_size * out_size;
    pool_kernel<<<(n + 255) / 256, 256>>>(in, out, planes, size, out_size, taps, stride, pad, dilation);
}
""", """
TAPS, STRIDE, PAD, DILATION = 3, 2, 1, 3


def get_inputs():
    return [torch.randn(@N, @M, @M, @M)]


def reference(x):
    return torch.nn.functional.max_pool3d(x, TAPS, STRIDE, PAD, DILATION)


def launch(kernel, x):
    size = (x.shape[1] + 2 * PAD - DILATION * (TAPS - 1) - 1) // STRIDE + 1
    out = x.new_empty(x.shape[0], size, size, size)
    kernel.max_pool_3d(x, out, x.shape[0], x.shape[1], size, TAPS, STRIDE, PAD, DILATION)
    return out
""", (512, 64), (8, 20), "Take the maximum over windows of 3 x 3 x 3 with stride 2, padding 1 and dilation 3.",
    ((1, 5), (1, 6), (2, 7), (3, 16)))  # fmt: skip

KERNELS = (
    SIGMOID, RELU, MATRIX_COPY, MAX_POOL_3D,
    taken(TRANSPOSE, "Transpose a matrix.", edges=GRIDS),
    taken(REVERSE, "Reverse the order of a vector."),
    taken(CONVOLUTION, "Convolve an image with a filter of 9 x 9, where the filter lies inside the image.", edges=((9, 9), (10, 33), (41, 17)),
          values=tuple(kind for kind in VALUES if kind != "large")),
)  # fmt: skip
