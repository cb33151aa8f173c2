/* Eight threads of each of two processes exchange columns with the other, each by a tag of its own and by types that it frees in flight. Threads of C
 * meet within the calls far more often than those of an interpreter. Prints "exact" or how many messages were wrong. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 8, ROWS = 70, WIDTH = 16 };

static int rank, turns;

static void* exchange(void* argument) {
    const long thread = (long)argument;
    long wrong = 0;
    double* mine = malloc(sizeof(double) * ROWS * WIDTH);
    double* target = malloc(sizeof(double) * ROWS * WIDTH);
    for (int turn = 0; turn < turns; ++turn) {
        const int rows = 64 + turn % 7, width = 1 + (turn + (int)thread) % 3;
        for (int i = 0; i < ROWS * WIDTH; ++i) mine[i] = 1e6 * rank + 1e4 * (double)thread + turn + i * 1e-4, target[i] = -1;
        MPI_Datatype column;
        MPI_Request requests[2];
        MPI_Type_vector(rows, width, WIDTH, MPI_DOUBLE, &column);
        MPI_Type_commit(&column);
        MPI_Irecv(target, 1, column, 1 - rank, (int)thread, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(mine, 1, column, 1 - rank, (int)thread, MPI_COMM_WORLD, &requests[1]);
        MPI_Type_free(&column);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < ROWS * WIDTH; ++i) {
            const int arrived = i / WIDTH < rows && i % WIDTH < width;
            const double theirs = 1e6 * (1 - rank) + 1e4 * (double)thread + turn + i * 1e-4;
            wrong += target[i] != (arrived ? theirs : -1);
        }
    }
    free(mine), free(target);
    return (void*)wrong;
}

int main(int count, char** words) {
    int provided;
    long wrong = 0, all = 0;
    pthread_t threads[THREADS];
    turns = count > 1 ? atoi(words[1]) : 100;
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (long thread = 0; thread < THREADS; ++thread) pthread_create(&threads[thread], 0, exchange, (void*)thread);
    for (int thread = 0; thread < THREADS; ++thread) {
        void* told;
        pthread_join(threads[thread], &told);
        wrong += (long)told;
    }
    MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank && provided == MPI_THREAD_MULTIPLE && !all) printf("exact\n");
    else if (!rank) printf("wrong %ld, threads %d\n", all, provided);
    MPI_Finalize();
    return 0;
}
