// A CUDA driver without a GPU, for tests of the child process: memory is the host's, `fill`, `compare`, `digest` and `guards` are computed, another kernel copies
// its first array to its second. What a cubin's code is decides what its kernel does, by the bytes that the tests put into the padding behind it:
// "WRONG" writes other bits, "ERROR" fails at the next wait, "HANGS" never returns, "SLOWS" takes longer by the events' clock, "GUARD" writes behind its
// array, "LATER" behind it from its fourth launch on, "COLDS" is fast on warm caches and slow where they were flushed, "FASTS" fast on both.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { const char* kind; int helper, launches; } Function;
typedef struct { const char* kind; } Module;

static double now_ms = 0;
static int failed = 0, flushed = 0;

int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int* device, int number) { return *device = number, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = (void*)1, 0; }
int cuCtxSetCurrent(void* context) { return 0; }
int cuDeviceGetName(char* name, int size, int device) { return strncpy(name, "fake", size), 0; }

static int image_size(const uint8_t* image) {
    uint64_t sections;
    uint16_t size, count;
    memcpy(&sections, image + 40, 8), memcpy(&size, image + 58, 2), memcpy(&count, image + 60, 2);
    return (int)(sections + size * count > 1 << 20 ? 1 << 20 : sections + size * count);
}

static const char* marked(const uint8_t* image) {
    static const char* marks[] = {"WRONG", "ERROR", "HANGS", "SLOWS", "GUARD", "LATER", "COLDS", "FASTS"};
    for (int at = 0, size = image_size(image); at + 5 < size; at++)
        for (int i = 0; i < 8; i++)
            if (!memcmp(image + at, marks[i], 5)) return marks[i];
    return "";
}

int cuModuleLoadData(void** module, const uint8_t* image) {
    Module* made = malloc(sizeof(Module));
    made->kind = image[0] == 0x7f ? marked(image) : "";
    return *module = made, 0;
}
int cuModuleUnload(void* module) { return 0; }
int cuModuleGetFunction(void** function, Module* module, const char* name) {
    Function* made = calloc(1, sizeof(Function));
    made->kind = module->kind;
    made->helper = !strcmp(name, "fill") ? 1 : !strcmp(name, "compare") ? 2 : !strcmp(name, "digest") ? 3 : !strcmp(name, "guards") ? 4 : 0;
    return *function = made, 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) { return 0; }
int cuMemAlloc_v2(uint64_t* address, size_t size) { return *address = (uint64_t)calloc(1, size), 0; }
#ifdef FULL
int cuMemGetInfo_v2(size_t* left, size_t* all) { return *left = 1000, *all = 100000, 0; }
#else
int cuMemGetInfo_v2(size_t* left, size_t* all) { return *left = 90000, *all = 100000, 0; }
#endif
int cuMemsetD32_v2(uint64_t address, unsigned word, size_t count) {
    if (count > 1 << 24) return flushed = 1, 0;  // what flushes the caches: nobody reads it
    for (size_t i = 0; i < count; i++) ((uint32_t*)address)[i] = word;
    return 0;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t size) { return memcpy(to, (void*)from, size), 0; }
int cuCtxSynchronize(void) { return failed; }
int cuEventCreate(double** event, unsigned flags) { return *event = calloc(1, sizeof(double)), 0; }
int cuEventRecord(double* event, void* stream) { return *event = now_ms, 0; }
int cuEventElapsedTime(float* ms, double* begin, double* end) { return *ms = (float)(*end - *begin), 0; }

// A stream that captures keeps its launches, which a graph makes when it is launched; their arguments are copied as they are launched.
typedef struct { Function* function; uint64_t values[4]; } Kept;
typedef struct { Kept kept[64]; int count; } Graph;
static Graph* capturing = 0;
int cuStreamCreate(void** stream, unsigned flags) { return *stream = (void*)2, 0; }
int cuStreamBeginCapture_v2(void* stream, int mode) { return capturing = calloc(1, sizeof(Graph)), stream ? 0 : 900; }
int cuStreamEndCapture(void* stream, Graph** graph) { return *graph = capturing, capturing = 0, 0; }
#ifndef BEFORE_11_4
int cuGraphInstantiateWithFlags(Graph** made, Graph* graph, uint64_t flags) { return memcpy(*made = malloc(sizeof(Graph)), graph, sizeof(Graph)), 0; }
#endif
int cuGraphDestroy(Graph* graph) { return free(graph), 0; }
int cuGraphExecDestroy(Graph* graph) { return free(graph), 0; }
int cuLaunchKernel(Function*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
int cuGraphLaunch(Graph* graph, void* stream) {
    for (int i = 0; i < graph->count; i++) {
        void* p[4];
        for (int j = 0; j < 4; j++) p[j] = &graph->kept[i].values[j];
        cuLaunchKernel(graph->kept[i].function, 0, 0, 0, 0, 0, 0, 0, stream, p, 0);
    }
    return 0;
}

int cuLaunchKernel(Function* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream, void** p, void** extra) {
    if (stream) {
        if (!capturing || stream != (void*)2) return 901;
        Kept* kept = &capturing->kept[capturing->count++];
        kept->function = f;
        for (int i = 0; i < 4; i++) memcpy(&kept->values[i], p[i], i == 0 || i == 3 ? 4 : 8);  // of saxpy: (a, x, y, n)
        return 0;
    }
    if (f->helper == 1) {
        uint64_t to = *(uint64_t*)p[0], count = *(uint64_t*)p[1];
        for (uint64_t i = 0; i < count; i++) ((float*)to)[i] = (float)(i * 2654435761u + *(uint32_t*)p[2]) * *(float*)p[3];
    } else if (f->helper == 2) {
        for (uint64_t i = 0; i < *(uint64_t*)p[2]; i++) **(uint64_t**)p[3] += ((uint32_t*)*(uint64_t*)p[0])[i] != ((uint32_t*)*(uint64_t*)p[1])[i];
    } else if (f->helper == 3) {
        for (uint64_t i = 0; i < *(uint64_t*)p[1]; i++) **(uint64_t**)p[2] += ((uint32_t*)*(uint64_t*)p[0])[i] * (i + 1);
    } else if (f->helper == 4) {
        for (uint64_t i = 0; i < *(uint64_t*)p[1]; i++)
            for (unsigned j = 0; j < *(unsigned*)p[2]; j++) {
                unsigned* at = (*(unsigned***)p[0])[i] + j;
                if (*at != *(unsigned*)p[3]) ++**(uint64_t**)p[4], *at = *(unsigned*)p[3];
            }
    } else {  // kernel(a, x, y, n), as tests/targets/cubin/saxpy.py launches it
        float a = *(float*)p[0], *x = *(float**)p[1], *y = *(float**)p[2];
        for (int i = 0; i < *(int*)p[3]; i++) y[i] = a * x[i];
        if (!strcmp(f->kind, "WRONG")) ((uint32_t*)y)[0] ^= 1;
        if (!strcmp(f->kind, "GUARD")) y[*(int*)p[3]] = 1;
        if (!strcmp(f->kind, "LATER") && ++f->launches > 3) y[*(int*)p[3]] = 1;
        if (!strcmp(f->kind, "ERROR")) failed = 700;
        while (!strcmp(f->kind, "HANGS")) sleep(1);
        now_ms += !strcmp(f->kind, "SLOWS") ? 0.022 : !strcmp(f->kind, "COLDS") ? (flushed ? 0.022 : 0.018) : !strcmp(f->kind, "FASTS") ? 0.018 : 0.020;
        flushed = 0;
    }
    return 0;
}
