// The CUDA runtime's host functions on the CPU: memory is memory, a launch has ended when it returns, streams and events are order only.
#include <map>
#include <thread>
typedef int cudaError_t;
typedef int CUresult;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorLaunchFailure = 719, cudaErrorNotReady = 600, cudaErrorNoDevice = 100, cudaErrorPeerAccessAlreadyEnabled = 704, cudaErrorPeerAccessNotEnabled = 705, cudaErrorAssert = 710, cudaErrorInvalidConfiguration = 9, cudaErrorInvalidDevice = 101, cudaErrorIllegalAddress = 700, cudaErrorLaunchOutOfResources = 701, cudaErrorLaunchTimeout = 702, cudaErrorNotSupported = 801, cudaErrorInitializationError = 3, cudaErrorInvalidDevicePointer = 17, cudaErrorUnknown = 999 };
typedef cudaError_t cudaError;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxSharedMemoryPerBlock = 8, cudaDevAttrWarpSize = 10, cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97, cudaDevAttrClockRate = 13, cudaDevAttrL2CacheSize = 38, cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81, cudaDevAttrComputeMode = 20, cudaDevAttrConcurrentKernels = 31, cudaDevAttrManagedMemory = 83, cudaDevAttrConcurrentManagedAccess = 89, cudaDevAttrCooperativeLaunch = 95, cudaDevAttrMemoryPoolsSupported = 115, cudaDevAttrMaxThreadsPerMultiProcessor = 39 };
enum { cudaComputeModeDefault = 0, cudaComputeModeExclusive = 1, cudaComputeModeProhibited = 2 };
enum cudaMemLocationType { cudaMemLocationTypeInvalid, cudaMemLocationTypeDevice, cudaMemLocationTypeHost };
struct cudaMemLocation { cudaMemLocationType type; int id; };
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
typedef struct CUmemPool_st* cudaMemPool_t;
struct cudaExtent { size_t width, height, depth; };
struct cudaPos { size_t x, y, z; };
struct cudaPitchedPtr { void* ptr; size_t pitch, xsize, ysize; };
enum cudaMemoryAdvise { cudaMemAdviseSetReadMostly = 1, cudaMemAdviseUnsetReadMostly, cudaMemAdviseSetPreferredLocation, cudaMemAdviseUnsetPreferredLocation, cudaMemAdviseSetAccessedBy, cudaMemAdviseUnsetAccessedBy };
enum { cudaMemAttachGlobal = 1, cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4, cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2, cudaMemAttachHost = 2, cudaMemAttachSingle = 4, cudaStreamNonBlocking = 1, cudaStreamDefault = 0, cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2, cudaDeviceScheduleAuto = 0, cudaDeviceMapHost = 8, cudaCpuDeviceId = -1 };
struct CUstream_st { int unused; };
struct CUevent_st { double when = 0; };
typedef CUstream_st* cudaStream_t;
typedef CUevent_st* cudaEvent_t;
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, totalConstMem, sharedMemPerMultiprocessor, sharedMemPerBlockOptin, memPitch, textureAlignment, texturePitchAlignment, surfaceAlignment;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate, major, minor, multiProcessorCount, maxThreadsPerMultiProcessor, memoryClockRate, memoryBusWidth,
      l2CacheSize, concurrentKernels, integrated, canMapHostMemory, computeMode, ECCEnabled, asyncEngineCount, unifiedAddressing, managedMemory, cooperativeLaunch, regsPerMultiprocessor, deviceOverlap, kernelExecTimeoutEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, streamPrioritiesSupported,
      concurrentManagedAccess, pageableMemoryAccess, isMultiGpuBoard, maxTexture1D, maxTexture2D[2], maxTexture3D[3];
};
struct cudaFuncAttributes { size_t sharedSizeBytes, constSizeBytes, localSizeBytes; int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, maxDynamicSharedSizeBytes; };

namespace ww {
inline int& last_error() { static int code = cudaSuccess; return code; }
inline int& refused() { static int code = cudaSuccess; return code; }  // of a call that did nothing: told once, by cudaGetLastError
static inline int status() {
  if (failed()) {
    std::fprintf(stderr, "kernel failed: %s\n", error_text().c_str());
    last_error() = error_text().rfind("assertion", 0) == 0 ? cudaErrorAssert : cudaErrorLaunchFailure;
    error_text().clear();
  }
  return last_error();
}
static inline double now_ms() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
static inline int allocate(void** p, size_t bytes) {
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
  if (*p) return cudaSuccess;
  std::fprintf(stderr, "out of memory: %zu bytes are not to be had\n", bytes);
  return cudaErrorMemoryAllocation;
}
}  // namespace ww

// Sources in C that the program links see these by name; hidden, so that a library made of this text neither gives them to others nor takes others'.
#define WW_C extern "C" inline __attribute__((used, visibility("hidden")))
WW_C cudaError_t cudaMalloc(void** p, size_t bytes) { return ww::allocate(p, bytes); }
WW_C cudaError_t cudaMallocHost(void** p, size_t bytes) { return ww::allocate(p, bytes); }
template <class T> static inline cudaError_t cudaMalloc(T** p, size_t bytes) { return ww::allocate((void**)p, bytes); }
template <class T> static inline cudaError_t cudaMallocManaged(T** p, size_t bytes, unsigned = 1) { return ww::allocate((void**)p, bytes); }
template <class T> static inline cudaError_t cudaMallocHost(T** p, size_t bytes, unsigned = 0) { return ww::allocate((void**)p, bytes); }
template <class T> static inline cudaError_t cudaHostAlloc(T** p, size_t bytes, unsigned = 0) { return ww::allocate((void**)p, bytes); }
template <class T> static inline cudaError_t cudaMallocAsync(T** p, size_t bytes, cudaStream_t) { return ww::allocate((void**)p, bytes); }
template <class T> static inline cudaError_t cudaMallocPitch(T** p, size_t* pitch, size_t width, size_t height) { *pitch = (width + 255) / 256 * 256; return ww::allocate((void**)p, *pitch * height); }
WW_C cudaError_t cudaFree(const void* p) { std::free((void*)p); return cudaSuccess; }
WW_C cudaError_t cudaFreeHost(const void* p) { return cudaFree(p); }
static inline cudaError_t cudaFreeAsync(const void* p, cudaStream_t) { return cudaFree(p); }
static inline cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
static inline cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
template <class T> static inline cudaError_t cudaHostGetDevicePointer(T** d, void* h, unsigned) { *d = (T*)h; return cudaSuccess; }
WW_C cudaError_t cudaMemcpy(void* to, const void* from, size_t n, int) {
  if (n && (!to || !from)) return ww::refused() = cudaErrorInvalidValue;  // programs copy the empty vectors of what they do not use, and go on
  if (n) std::memmove(to, from, n);
  return ww::status();
}
static inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, int k, cudaStream_t = nullptr) { return cudaMemcpy(to, from, n, k); }
static inline cudaError_t cudaMemcpy2D(void* to, size_t tp, const void* from, size_t fp, size_t width, size_t height, int) {
  for (size_t r = 0; r < height; ++r) std::memcpy((char*)to + r * tp, (const char*)from + r * fp, width);
  return ww::status();
}
static inline cudaError_t cudaMemcpy2DAsync(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, int k, cudaStream_t = nullptr) { return cudaMemcpy2D(to, tp, from, fp, w, h, k); }
WW_C cudaError_t cudaMemset(void* p, int v, size_t n) { if (n) std::memset(p, v, n); return cudaSuccess; }
static inline cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t = nullptr) { return cudaMemset(p, v, n); }
static inline cudaError_t cudaMemset2D(void* p, size_t pitch, int v, size_t w, size_t h) { for (size_t r = 0; r < h; ++r) std::memset((char*)p + r * pitch, v, w); return cudaSuccess; }
template <class T> static inline cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t n, size_t offset = 0, int = 1) { std::memcpy((char*)&symbol + offset, from, n); return cudaSuccess; }
template <class T> static inline cudaError_t cudaMemcpyToSymbol(T*&&, const void*, size_t, size_t = 0, int = 1) { return 13; }  // an address that was computed is no symbol
template <size_t N> static inline cudaError_t cudaMemcpyToSymbol(const char (&)[N], const void*, size_t, size_t = 0, int = 1) { return ww::refused() = 13; }  // nor is a name, since CUDA 5
template <class T> static inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t n, size_t offset = 0, int = 2) { std::memcpy(to, (const char*)&symbol + offset, n); return ww::status(); }
template <class T> static inline cudaError_t cudaMemcpyToSymbolAsync(T& s, const void* f, size_t n, size_t o = 0, int k = 1, cudaStream_t = nullptr) { return cudaMemcpyToSymbol(s, f, n, o, k); }
template <class T> static inline cudaError_t cudaMemcpyFromSymbolAsync(void* t, const T& s, size_t n, size_t o = 0, int k = 2, cudaStream_t = nullptr) { return cudaMemcpyFromSymbol(t, s, n, o, k); }
template <class P, class T> static inline cudaError_t cudaGetSymbolAddress(P** p, T& symbol) { *p = (P*)&symbol; return cudaSuccess; }
WW_C cudaError_t cudaMemGetInfo(size_t* available, size_t* total) { *available = *total = (size_t)8 << 30; return cudaSuccess; }
enum { CUDA_SUCCESS = 0 };  // of the driver's interface: what programs on the runtime's ask beside it
static inline CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
template <class T> static inline CUresult cuMemGetInfo(T* available, T* total) {  // words of 32 bits until CUDA 3
  size_t a, t;
  cudaMemGetInfo(&a, &t);
  *available = a > (T)-1 ? (T)-1 : (T)a;
  *total = t > (T)-1 ? (T)-1 : (T)t;
  return CUDA_SUCCESS;
}
static inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
static inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t = nullptr) { return cudaSuccess; }
static inline cudaError_t cudaMemAdvise(const void*, size_t, int, int) { return cudaSuccess; }
static inline cudaError_t cudaMemAdvise(const void*, size_t, int, cudaMemLocation) { return cudaSuccess; }
static inline cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) { return {w, h, d}; }
static inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
static inline cudaPitchedPtr make_cudaPitchedPtr(void* p, size_t pitch, size_t xsize, size_t ysize) { return {p, pitch, xsize, ysize}; }
static inline cudaError_t cudaMalloc3D(cudaPitchedPtr* p, cudaExtent e) {
  p->pitch = (e.width + 255) / 256 * 256; p->xsize = e.width; p->ysize = e.height;
  return ww::allocate(&p->ptr, p->pitch * e.height * e.depth);
}
static inline cudaError_t cudaMemset3D(cudaPitchedPtr p, int v, cudaExtent e) {
  for (size_t r = 0; r < e.height * e.depth; ++r) std::memset((char*)p.ptr + r / e.height * p.pitch * p.ysize + r % e.height * p.pitch, v, e.width);
  return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) { *pool = nullptr; return cudaSuccess; }
static inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, int, void*) { return cudaSuccess; }
static inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }

WW_C cudaError_t cudaDeviceSynchronize() { return ww::status(); }
WW_C cudaError_t cudaThreadSynchronize() { return ww::status(); }
WW_C cudaError_t cudaDeviceReset() { return cudaSuccess; }
WW_C cudaError_t cudaGetLastError() {
  const int code = ww::status() ? ww::status() : ww::refused();
  ww::last_error() = ww::refused() = cudaSuccess;
  return code;
}
WW_C cudaError_t cudaPeekAtLastError() { return ww::status(); }
WW_C const char* cudaGetErrorString(cudaError_t e) { return e == cudaSuccess ? "no error" : e == cudaErrorMemoryAllocation ? "out of memory" : e == cudaErrorLaunchFailure ? "unspecified launch failure" : e == cudaErrorAssert ? "device-side assert triggered" : "invalid argument"; }
static inline const char* cudaGetErrorName(cudaError_t e) { return e == cudaSuccess ? "cudaSuccess" : "cudaError"; }
WW_C cudaError_t cudaSetDevice(int) { return cudaSuccess; }
WW_C cudaError_t cudaGetDevice(int* d) { *d = 0; return cudaSuccess; }
WW_C cudaError_t cudaGetDeviceCount(int* n) { *n = 1; return cudaSuccess; }
WW_C cudaError_t cudaThreadExit() { return cudaSuccess; }
static inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
static inline cudaError_t cudaDeviceSetLimit(int, size_t) { return cudaSuccess; }
static inline cudaError_t cudaDeviceSetCacheConfig(int) { return cudaSuccess; }
static inline cudaError_t cudaDeviceSetSharedMemConfig(int) { return cudaSuccess; }
template <class F> static inline cudaError_t cudaFuncSetCacheConfig(F, int) { return cudaSuccess; }
template <class F> static inline cudaError_t cudaFuncSetAttribute(F, int attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || (size_t)value > ww::most_shared) return ww::refused() = cudaErrorInvalidValue;
  ww::shared_limit() = std::max(ww::shared_limit(), (size_t)value);  // for all kernels: which one is meant is not kept
  return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int* v, int a, int) {
  static const std::map<int, int> known = {{16, 16}, {1, 1024}, {8, 49152}, {10, 32}, {75, 8}, {76, 0}, {97, 166912}, {13, 1000000}, {38, 1 << 20}, {81, 167936}, {31, 1}, {83, 1}, {89, 1}, {39, 2048}, {115, 1}};
  const auto at = known.find(a);
  *v = at == known.end() ? 0 : at->second;
  return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  std::memset(p, 0, sizeof *p);
  std::strcpy(p->name, "CPU, by warpwright transpile");
  p->totalGlobalMem = (size_t)8 << 30; p->sharedMemPerBlock = 49152; p->totalConstMem = 65536; p->sharedMemPerMultiprocessor = 167936; p->sharedMemPerBlockOptin = 166912;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536; p->warpSize = 32; p->maxThreadsPerBlock = 1024; p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024; p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647; p->maxGridSize[1] = p->maxGridSize[2] = 65535; p->clockRate = 1000000; p->major = 8; p->minor = 0; p->multiProcessorCount = 16;
  p->maxThreadsPerMultiProcessor = 2048; p->memoryClockRate = 1000000; p->memoryBusWidth = 128; p->l2CacheSize = 1 << 20; p->concurrentKernels = 1; p->unifiedAddressing = p->managedMemory = 1;
  p->deviceOverlap = p->asyncEngineCount = 1;  // as every GPU of sm_80 says; programs end without
  p->memPitch = 2147483647; p->textureAlignment = 512; p->texturePitchAlignment = 32; p->maxTexture1D = p->maxTexture2D[0] = 131072; p->maxTexture2D[1] = 65536;
  p->maxTexture3D[0] = p->maxTexture3D[1] = p->maxTexture3D[2] = 16384;
  return cudaSuccess;
}
template <class F> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, F) { std::memset(a, 0, sizeof *a); a->maxThreadsPerBlock = 1024; return cudaSuccess; }
template <class F> static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, F, int, size_t) { *n = 2; return cudaSuccess; }
template <class F> static inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F, size_t = 0, int = 0) { *grid = 32; *block = 256; return cudaSuccess; }
static inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaErrorInvalidDevice; }
static inline cudaError_t cudaDeviceDisablePeerAccess(int) { return cudaErrorPeerAccessNotEnabled; }
static inline cudaError_t cudaDeviceGetStreamPriorityRange(int* low, int* high) { *low = 0; *high = -1; return cudaSuccess; }
static inline cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { *can = 0; return cudaSuccess; }
static inline cudaError_t cudaDriverGetVersion(int* v) { *v = 12000; return cudaSuccess; }
static inline cudaError_t cudaRuntimeGetVersion(int* v) { *v = 12000; return cudaSuccess; }
static inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
static inline cudaError_t cudaProfilerStop() { return cudaSuccess; }

static inline cudaError_t cudaStreamCreate(cudaStream_t* s) { *s = new CUstream_st{}; return cudaSuccess; }
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { return cudaStreamCreate(s); }
static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int) { return cudaStreamCreate(s); }
static inline cudaError_t cudaStreamDestroy(cudaStream_t s) { delete s; return cudaSuccess; }
static inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return ww::status(); }
static inline cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
static inline cudaError_t cudaEventCreate(cudaEvent_t* e) { *e = new CUevent_st{}; return cudaSuccess; }
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { return cudaEventCreate(e); }
static inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t = nullptr) { e->when = ww::now_ms(); return cudaSuccess; }
static inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return ww::status(); }
static inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
static inline cudaError_t cudaEventDestroy(cudaEvent_t e) { delete e; return cudaSuccess; }
static inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) { *ms = (float)(b->when - a->when); return cudaSuccess; }
template <class T> static inline void checkCudaErrors(T code) { if (code) { std::fprintf(stderr, "CUDA error %d\n", (int)code); std::exit(1); } }
#define getLastCudaError(message) checkCudaErrors(cudaGetLastError())
