"""Kernels with a loop over the inner dimension of a product."""

from benchmarks.cuda.plain import Plain

MATMUL = Plain("matmul", """
__global__ void matmul_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) {
            sum += A[row * K + k] * B[k * N + col];
        }
        C[row * N + col] = sum;
    }
}

extern "C" void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 block(16, 16);
    dim3 grid((N + 15) / 16, (M + 15) / 16);
    matmul_kernel<<<grid, block>>>(A, B, C, M, N, K);
}
""", """
def get_inputs():
    return [torch.randn(@N, @M), torch.randn(@M, @N)]


def reference(a, b):
    return a @ b


def launch(kernel, a, b):
    c = a.new_empty(a.shape[0], b.shape[1])
    kernel.matmul(a, b, c, a.shape[0], b.shape[1], a.shape[1])
    return c
""", (2048, 2048), (200, 200))  # fmt: skip

DISTANCES = Plain("distances", """
__global__ void distance_kernel(const float* points, const float* centres, float* out, int n, int m, int dims) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < m) {
        float sum = 0.0f;
        for (int d = 0; d < dims; ++d) {
            float diff = points[i * dims + d] - centres[j * dims + d];
            sum += diff * diff;
        }
        out[i * m + j] = sqrtf(sum);
    }
}

extern "C" void distances(const float* points, const float* centres, float* out, int n, int m, int dims) {
    dim3 block(16, 16);
    dim3 grid((n + 15) / 16, (m + 15) / 16);
    distance_kernel<<<grid, block>>>(points, centres, out, n, m, dims);
}
""", """
def get_inputs():
    return [torch.randn(@N, 64), torch.randn(@M, 64)]


def reference(points, centres):
    return ((points[:, None, :] - centres[None, :, :]) ** 2).sum(2).sqrt() if points.shape[0] <= 512 else torch.cat(
        [((part[:, None, :] - centres[None, :, :]) ** 2).sum(2).sqrt() for part in points.split(256)])


def launch(kernel, points, centres):
    out = points.new_empty(points.shape[0], centres.shape[0])
    kernel.distances(points, centres, out, points.shape[0], centres.shape[0], points.shape[1])
    return out
""", (4096, 4096), (256, 256))  # fmt: skip

BODIES = Plain("bodies", """
__global__ void bodies_kernel(const float* x, const float* y, const float* z, const float* mass, float* ax, float* ay, float* az, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sx = 0.0f, sy = 0.0f, sz = 0.0f;
        for (int j = 0; j < n; j++) {
            float dx = x[j] - x[i];
            float dy = y[j] - y[i];
            float dz = z[j] - z[i];
            float r2 = dx * dx + dy * dy + dz * dz + 0.01f;
            float inv = 1.0f / sqrtf(r2);
            float s = mass[j] * inv * inv * inv;
            sx += dx * s;
            sy += dy * s;
            sz += dz * s;
        }
        ax[i] = sx;
        ay[i] = sy;
        az[i] = sz;
    }
}

extern "C" void bodies(const float* x, const float* y, const float* z, const float* mass, float* ax, float* ay, float* az, int n) {
    bodies_kernel<<<(n + 255) / 256, 256>>>(x, y, z, mass, ax, ay, az, n);
}
""", """
def get_inputs():
    return [torch.randn(@N), torch.randn(@N), torch.randn(@N), torch.rand(@N)]


def reference(x, y, z, mass):
    def part(at):
        dx, dy, dz = (c[None, :] - c[at][:, None] for c in (x, y, z))
        s = mass[None, :] * (dx * dx + dy * dy + dz * dz + 0.01) ** -1.5
        return [(d * s).sum(1) for d in (dx, dy, dz)]

    parts = [part(slice(at, at + 1024)) for at in range(0, x.shape[0], 1024)]
    return tuple(torch.cat([p[k] for p in parts]) for k in range(3))


def launch(kernel, x, y, z, mass):
    out = tuple(torch.empty_like(x) for _ in range(3))
    kernel.bodies(x, y, z, mass, *out, x.numel())
    return out
""", (16384, 0), (1024, 0))  # fmt: skip

KERNELS = (MATMUL, DISTANCES, BODIES)
