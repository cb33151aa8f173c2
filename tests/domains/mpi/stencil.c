/* A program that knows nothing of warpwright: two processes exchange the faces of a cube of doubles, 3 thick, and relax; prints a checksum. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 40, W = 3 };

int main(int argc, char** argv) {
    int rank, size, steps = 5;
    MPI_Init(&argc, &argv);
    MPI_Request none = MPI_REQUEST_NULL; /* the linker moves the objects behind these names into the program */
    MPI_Comm nobody = MPI_COMM_NULL;
    MPI_Datatype bytes = MPI_PACKED;
    MPI_Type_size(bytes, &size);
    if (argc > 9) printf("%d %d\n", none == MPI_REQUEST_NULL, nobody == MPI_COMM_NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double* u = malloc(sizeof(double) * N * N * N);
    for (int i = 0; i < N * N * N; ++i) u[i] = (i * 7919 + rank * 104729) % 1000;
    int sizes[3] = {N, N, N}, face[3] = {N, N, W}, out[2][3] = {{0, 0, W}, {0, 0, N - 2 * W}}, in[2][3] = {{0, 0, 0}, {0, 0, N - W}};
    MPI_Datatype send[2], receive[2];
    for (int s = 0; s < 2; ++s) {
        MPI_Type_create_subarray(3, sizes, face, out[s], MPI_ORDER_C, MPI_DOUBLE, &send[s]);
        MPI_Type_create_subarray(3, sizes, face, in[s], MPI_ORDER_C, MPI_DOUBLE, &receive[s]);
        MPI_Type_commit(&send[s]);
        MPI_Type_commit(&receive[s]);
    }
    for (int step = 0; step < steps; ++step) {
        MPI_Request requests[4];
        for (int s = 0; s < 2; ++s) {
            int peer = (rank + (s ? 1 : size - 1)) % size;
            MPI_Irecv(u, 1, receive[s], peer, 1 - s, MPI_COMM_WORLD, &requests[s]);
            MPI_Isend(u, 1, send[s], peer, s, MPI_COMM_WORLD, &requests[2 + s]);
        }
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        MPI_Isend(u, 1, send[0], rank, 9, MPI_COMM_WORLD, &requests[0]);
        MPI_Request_free(&requests[0]);
        if (requests[0] != MPI_REQUEST_NULL) printf("the request was not freed\n");
        MPI_Recv(u, 1, send[0], rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = W; i < N * N * N - W; ++i) u[i] = 0.5 * u[i] + 0.25 * (u[i - W] + u[i + W]);
    }
    double sum = 0, all = 0;
    for (int i = 0; i < N * N * N; ++i) sum += u[i] * (1 + i % 17);
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("checksum %.17g\n", all);
    for (int s = 0; s < 2; ++s) MPI_Type_free(&send[s]), MPI_Type_free(&receive[s]);
    free(u);
    MPI_Finalize();
    return 0;
}
