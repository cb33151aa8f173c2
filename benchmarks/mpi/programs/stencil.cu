// A program that knows nothing of warpwright: processes in a ring exchange the faces of cubes of doubles in GPU memory, 3 thick, and relax; it prints
// a checksum and the microseconds of one exchange. Usage: stencil SIDE STEPS.
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { W = 3 };

__global__ void fill(double* u, int n, int rank) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) u[i] = (i * 7919LL + rank * 104729LL) % 1000;
}

__global__ void relax(const double* u, double* v, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) v[i] = i < W || i >= n - W ? u[i] : 0.5 * u[i] + 0.25 * (u[i - W] + u[i + W]);
}

int main(int argc, char** argv) {
    int rank, size, devices = 1;
    const int side = argc > 1 ? atoi(argv[1]) : 64, steps = argc > 2 ? atoi(argv[2]) : 5, n = side * side * side;
    cudaGetDeviceCount(&devices);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    cudaSetDevice(rank % devices);
    double *u, *v;
    cudaMalloc(&u, n * sizeof(double)), cudaMalloc(&v, n * sizeof(double));
    fill<<<(n + 255) / 256, 256>>>(u, n, rank);
    int sizes[3] = {side, side, side}, face[3] = {side, side, W}, out[2][3] = {{0, 0, W}, {0, 0, side - 2 * W}}, in[2][3] = {{0, 0, 0}, {0, 0, side - W}};
    MPI_Datatype send[2], receive[2];
    for (int s = 0; s < 2; ++s) {
        MPI_Type_create_subarray(3, sizes, face, out[s], MPI_ORDER_C, MPI_DOUBLE, &send[s]);
        MPI_Type_create_subarray(3, sizes, face, in[s], MPI_ORDER_C, MPI_DOUBLE, &receive[s]);
        MPI_Type_commit(&send[s]);
        MPI_Type_commit(&receive[s]);
    }
    double exchange = 0;
    for (int step = 0; step < steps; ++step) {
        cudaDeviceSynchronize();
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        MPI_Request requests[4];
        for (int s = 0; s < 2; ++s) {
            const int peer = (rank + (s ? 1 : size - 1)) % size;
            MPI_Irecv(u, 1, receive[s], peer, 1 - s, MPI_COMM_WORLD, &requests[s]);
            MPI_Isend(u, 1, send[s], peer, s, MPI_COMM_WORLD, &requests[2 + s]);
        }
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        if (step) exchange += MPI_Wtime() - start; // the first one sets things up
        relax<<<(n + 255) / 256, 256>>>(u, v, n);
        double* other = u;
        u = v, v = other;
    }
    double* host = (double*)malloc(n * sizeof(double));
    cudaMemcpy(host, u, n * sizeof(double), cudaMemcpyDeviceToHost);
    double sum = 0, all = 0;
    for (int i = 0; i < n; ++i) sum += host[i] * (1 + i % 17);
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("checksum %.17g\nexchange_us %.1f\n", all, exchange * 1e6 / (steps > 1 ? steps - 1 : 1));
    for (int s = 0; s < 2; ++s) MPI_Type_free(&send[s]), MPI_Type_free(&receive[s]);
    cudaFree(u), cudaFree(v), free(host);
    MPI_Finalize();
    return 0;
}
