// The CUDA runtime's host functions on the CPU: memory is memory, a launch has ended when it returns, streams and events are order only.
#include <map>
#include <thread>
#include <sys/resource.h>
#include <unistd.h>
#define WW_ERRORS(X) \
  X(Success, 0) X(ErrorInvalidValue, 1) X(ErrorMemoryAllocation, 2) X(ErrorInitializationError, 3) X(ErrorCudartUnloading, 4) \
  X(ErrorProfilerDisabled, 5) X(ErrorInvalidConfiguration, 9) X(ErrorInvalidPitchValue, 12) X(ErrorInvalidSymbol, 13) X(ErrorInvalidHostPointer, 16) \
  X(ErrorInvalidDevicePointer, 17) X(ErrorInvalidTexture, 18) X(ErrorInvalidTextureBinding, 19) X(ErrorInvalidChannelDescriptor, 20) \
  X(ErrorInvalidMemcpyDirection, 21) X(ErrorInvalidFilterSetting, 26) X(ErrorInvalidNormSetting, 27) X(ErrorInsufficientDriver, 35) \
  X(ErrorDuplicateVariableName, 43) X(ErrorDevicesUnavailable, 46) X(ErrorMissingConfiguration, 52) X(ErrorLaunchMaxDepthExceeded, 65) \
  X(ErrorInvalidDeviceFunction, 98) X(ErrorNoDevice, 100) X(ErrorInvalidDevice, 101) X(ErrorStartupFailure, 127) X(ErrorInvalidKernelImage, 200) \
  X(ErrorDeviceUninitialized, 201) X(ErrorMapBufferObjectFailed, 205) X(ErrorNoKernelImageForDevice, 209) X(ErrorECCUncorrectable, 214) \
  X(ErrorPeerAccessUnsupported, 217) X(ErrorInvalidPtx, 218) X(ErrorInvalidSource, 300) X(ErrorFileNotFound, 301) X(ErrorOperatingSystem, 304) \
  X(ErrorInvalidResourceHandle, 400) X(ErrorIllegalState, 401) X(ErrorSymbolNotFound, 500) X(ErrorNotReady, 600) X(ErrorIllegalAddress, 700) \
  X(ErrorLaunchOutOfResources, 701) X(ErrorLaunchTimeout, 702) X(ErrorPeerAccessAlreadyEnabled, 704) X(ErrorPeerAccessNotEnabled, 705) \
  X(ErrorSetOnActiveProcess, 708) X(ErrorContextIsDestroyed, 709) X(ErrorAssert, 710) X(ErrorTooManyPeers, 711) \
  X(ErrorHostMemoryAlreadyRegistered, 712) X(ErrorHostMemoryNotRegistered, 713) X(ErrorHardwareStackError, 714) X(ErrorIllegalInstruction, 715) \
  X(ErrorMisalignedAddress, 716) X(ErrorInvalidAddressSpace, 717) X(ErrorInvalidPc, 718) X(ErrorLaunchFailure, 719) \
  X(ErrorCooperativeLaunchTooLarge, 720) X(ErrorNotPermitted, 800) X(ErrorNotSupported, 801) X(ErrorSystemNotReady, 802) \
  X(ErrorProfilerNotInitialized, 6) X(ErrorProfilerAlreadyStarted, 7) X(ErrorProfilerAlreadyStopped, 8) X(ErrorAddressOfConstant, 22) \
  X(ErrorTextureFetchFailed, 23) X(ErrorTextureNotBound, 24) X(ErrorSynchronizationError, 25) X(ErrorMixedDeviceExecution, 28) \
  X(ErrorNotYetImplemented, 31) X(ErrorMemoryValueTooLarge, 32) X(ErrorStubLibrary, 34) X(ErrorCallRequiresNewerDriver, 36) \
  X(ErrorInvalidSurface, 37) X(ErrorDuplicateTextureName, 44) X(ErrorDuplicateSurfaceName, 45) X(ErrorIncompatibleDriverContext, 49) \
  X(ErrorPriorLaunchFailure, 53) X(ErrorLaunchFileScopedTex, 66) X(ErrorLaunchFileScopedSurf, 67) X(ErrorSyncDepthExceeded, 68) \
  X(ErrorLaunchPendingCountExceeded, 69) X(ErrorDeviceNotLicensed, 102) X(ErrorSoftwareValidityNotEstablished, 103) \
  X(ErrorUnmapBufferObjectFailed, 206) X(ErrorArrayIsMapped, 207) X(ErrorAlreadyMapped, 208) X(ErrorAlreadyAcquired, 210) X(ErrorNotMapped, 211) \
  X(ErrorNotMappedAsArray, 212) X(ErrorNotMappedAsPointer, 213) X(ErrorUnsupportedLimit, 215) X(ErrorDeviceAlreadyInUse, 216) \
  X(ErrorInvalidGraphicsContext, 219) X(ErrorNvlinkUncorrectable, 220) X(ErrorJitCompilerNotFound, 221) X(ErrorUnsupportedPtxVersion, 222) \
  X(ErrorJitCompilationDisabled, 223) X(ErrorSharedObjectSymbolNotFound, 302) X(ErrorSharedObjectInitFailed, 303) \
  X(ErrorLaunchIncompatibleTexturing, 703) X(ErrorSystemDriverMismatch, 803) X(ErrorCompatNotSupportedOnDevice, 804) \
  X(ErrorStreamCaptureMerge, 902) X(ErrorStreamCaptureUnmatched, 903) X(ErrorStreamCaptureUnjoined, 904) X(ErrorStreamCaptureIsolation, 905) \
  X(ErrorStreamCaptureImplicit, 906) X(ErrorCapturedEvent, 907) X(ErrorStreamCaptureWrongThread, 908) X(ErrorTimeout, 909) \
  X(ErrorApiFailureBase, 10000) \
  X(ErrorUnsupportedExecAffinity, 224) X(ErrorUnsupportedDevSideSync, 225) X(ErrorContained, 226) X(ErrorLossyQuery, 402) X(ErrorTensorMemoryLeak, 721) X(ErrorMpsConnectionFailed, 805) \
  X(ErrorMpsRpcFailure, 806) X(ErrorMpsServerNotReady, 807) X(ErrorMpsMaxClientsReached, 808) X(ErrorMpsMaxConnectionsReached, 809) \
  X(ErrorMpsClientTerminated, 810) X(ErrorCdpNotSupported, 811) X(ErrorCdpVersionMismatch, 812) X(ErrorExternalDevice, 911) \
  X(ErrorInvalidClusterSize, 912) X(ErrorFunctionNotLoaded, 913) X(ErrorInvalidResourceType, 914) X(ErrorInvalidResourceConfiguration, 915) X(ErrorStreamDetached, 917) \
  X(ErrorStreamCaptureUnsupported, 900) X(ErrorStreamCaptureInvalidated, 901) X(ErrorGraphExecUpdateFailure, 910) X(ErrorUnknown, 999)
#define WW_ERROR(NAME, CODE) cuda##NAME = CODE,
enum cudaError { WW_ERRORS(WW_ERROR) };
#undef WW_ERROR
typedef enum cudaError cudaError_t;
enum CUresult {
  CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NOT_INITIALIZED = 3, CUDA_ERROR_DEINITIALIZED = 4, CUDA_ERROR_PROFILER_DISABLED = 5, CUDA_ERROR_STUB_LIBRARY = 34, CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101, CUDA_ERROR_INVALID_IMAGE = 200, CUDA_ERROR_INVALID_CONTEXT = 201, CUDA_ERROR_CONTEXT_ALREADY_CURRENT = 202, CUDA_ERROR_MAP_FAILED = 205, CUDA_ERROR_UNMAP_FAILED = 206, CUDA_ERROR_ALREADY_MAPPED = 208,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209, CUDA_ERROR_NOT_MAPPED = 211, CUDA_ERROR_ECC_UNCORRECTABLE = 214, CUDA_ERROR_UNSUPPORTED_LIMIT = 215, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217, CUDA_ERROR_INVALID_PTX = 218, CUDA_ERROR_INVALID_SOURCE = 300,
  CUDA_ERROR_FILE_NOT_FOUND = 301, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303, CUDA_ERROR_OPERATING_SYSTEM = 304, CUDA_ERROR_INVALID_HANDLE = 400, CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_NOT_FOUND = 500, CUDA_ERROR_NOT_READY = 600, CUDA_ERROR_ILLEGAL_ADDRESS = 700, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701, CUDA_ERROR_LAUNCH_TIMEOUT = 702, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709, CUDA_ERROR_ASSERT = 710, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713, CUDA_ERROR_ILLEGAL_INSTRUCTION = 715, CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720, CUDA_ERROR_NOT_PERMITTED = 800, CUDA_ERROR_NOT_SUPPORTED = 801, CUDA_ERROR_UNKNOWN = 999,
  CUDA_ERROR_ALREADY_ACQUIRED = 210, CUDA_ERROR_ARRAY_IS_MAPPED = 207, CUDA_ERROR_CONTEXT_ALREADY_IN_USE = 216, CUDA_ERROR_HARDWARE_STACK_ERROR = 714, CUDA_ERROR_INVALID_ADDRESS_SPACE = 717, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT = 219, CUDA_ERROR_INVALID_PC = 718, CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221, CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703, CUDA_ERROR_NOT_MAPPED_AS_ARRAY = 212, CUDA_ERROR_NOT_MAPPED_AS_POINTER = 213, CUDA_ERROR_NVLINK_UNCORRECTABLE = 220, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708, CUDA_ERROR_PROFILER_NOT_INITIALIZED = 6, CUDA_ERROR_PROFILER_ALREADY_STARTED = 7, CUDA_ERROR_PROFILER_ALREADY_STOPPED = 8, CUDA_ERROR_TOO_MANY_PEERS = 711,
  CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER = 36, CUDA_ERROR_DEVICE_UNAVAILABLE = 46, CUDA_ERROR_DEVICE_NOT_LICENSED = 102, CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222, CUDA_ERROR_JIT_COMPILATION_DISABLED = 223, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY = 224, CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225, CUDA_ERROR_CONTAINED = 226, CUDA_ERROR_LOSSY_QUERY = 402, CUDA_ERROR_TENSOR_MEMORY_LEAK = 721, CUDA_ERROR_SYSTEM_NOT_READY = 802, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804, CUDA_ERROR_MPS_CONNECTION_FAILED = 805, CUDA_ERROR_MPS_RPC_FAILURE = 806, CUDA_ERROR_MPS_SERVER_NOT_READY = 807, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED = 808, CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED = 809, CUDA_ERROR_MPS_CLIENT_TERMINATED = 810, CUDA_ERROR_CDP_NOT_SUPPORTED = 811, CUDA_ERROR_CDP_VERSION_MISMATCH = 812, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901, CUDA_ERROR_STREAM_CAPTURE_MERGE = 902, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903, CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904, CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906, CUDA_ERROR_CAPTURED_EVENT = 907, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908, CUDA_ERROR_TIMEOUT = 909, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910, CUDA_ERROR_EXTERNAL_DEVICE = 911, CUDA_ERROR_INVALID_CLUSTER_SIZE = 912, CUDA_ERROR_FUNCTION_NOT_LOADED = 913, CUDA_ERROR_INVALID_RESOURCE_TYPE = 914, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915, CUDA_ERROR_KEY_ROTATION = 916, CUDA_ERROR_STREAM_DETACHED = 917
};
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9, cudaFuncAttributeNonPortableClusterSizeAllowed = 13 };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
enum cudaSharedCarveout { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxL1 = 0, cudaSharedmemCarveoutMaxShared = 100 };
#define WW_ATTRIBUTES(X) \
  X(MaxThreadsPerBlock, 1, 1024) X(MaxBlockDimX, 2, 1024) X(MaxBlockDimY, 3, 1024) X(MaxBlockDimZ, 4, 64) X(MaxGridDimX, 5, 2147483647) \
  X(MaxGridDimY, 6, 65535) X(MaxGridDimZ, 7, 65535) X(MaxSharedMemoryPerBlock, 8, 49152) X(TotalConstantMemory, 9, 65536) X(WarpSize, 10, 32) \
  X(MaxPitch, 11, 2147483647) X(MaxRegistersPerBlock, 12, 65536) X(ClockRate, 13, 1000000) X(TextureAlignment, 14, 512) X(GpuOverlap, 15, 1) \
  X(MultiProcessorCount, 16, 16) X(KernelExecTimeout, 17, 0) X(Integrated, 18, 0) X(CanMapHostMemory, 19, 1) X(ComputeMode, 20, 0) \
  X(MaxTexture1DWidth, 21, 131072) X(MaxTexture2DWidth, 22, 131072) X(MaxTexture2DHeight, 23, 65536) X(MaxTexture3DWidth, 24, 16384) \
  X(MaxTexture3DHeight, 25, 16384) X(MaxTexture3DDepth, 26, 16384) X(MaxTexture2DLayeredWidth, 27, 32768) X(MaxTexture2DLayeredHeight, 28, 32768) \
  X(MaxTexture2DLayeredLayers, 29, 2048) X(SurfaceAlignment, 30, 512) X(MaxTexture1DLayeredWidth, 42, 32768) X(MaxTexture1DLayeredLayers, 43, 2048) \
  X(PciDomainId, 50, 0) X(TexturePitchAlignment, 51, 32) X(MaxTextureCubemapWidth, 52, 32768) X(MaxSurface1DWidth, 55, 32768) \
  X(MaxSurface2DWidth, 56, 131072) X(MaxSurface2DHeight, 57, 65536) X(MaxSurface3DWidth, 58, 16384) X(MaxTexture1DLinearWidth, 69, 268435456) \
  X(MultiGpuBoardGroupID, 85, 0) X(SingleToDoublePrecisionPerfRatio, 87, 2) X(CanFlushRemoteWrites, 98, 0) \
  X(PageableMemoryAccessUsesHostPageTables, 100, 1) X(SparseCudaArraySupported, 112, 0) X(GPUDirectRDMASupported, 116, 0) X(ClusterLaunch, 120, 0) \
  X(ConcurrentKernels, 31, 1) X(EccEnabled, 32, 0) X(PciBusId, 33, 0) X(PciDeviceId, 34, 0) X(TccDriver, 35, 0) X(MemoryClockRate, 36, 1000000) \
  X(GlobalMemoryBusWidth, 37, 128) X(L2CacheSize, 38, 1048576) X(MaxThreadsPerMultiProcessor, 39, 2048) X(AsyncEngineCount, 40, 1) \
  X(UnifiedAddressing, 41, 1) X(ComputeCapabilityMajor, 75, 8) X(ComputeCapabilityMinor, 76, 0) X(StreamPrioritiesSupported, 78, 1) \
  X(GlobalL1CacheSupported, 79, 1) X(LocalL1CacheSupported, 80, 1) X(MaxSharedMemoryPerMultiprocessor, 81, 167936) \
  X(MaxRegistersPerMultiprocessor, 82, 65536) X(ManagedMemory, 83, 1) X(IsMultiGpuBoard, 84, 0) X(HostNativeAtomicSupported, 86, 1) \
  X(PageableMemoryAccess, 88, 1) X(ConcurrentManagedAccess, 89, 1) X(ComputePreemptionSupported, 90, 0) X(CanUseHostPointerForRegisteredMem, 91, 1) \
  X(CooperativeLaunch, 95, 1) X(CooperativeMultiDeviceLaunch, 96, 0) X(MaxSharedMemoryPerBlockOptin, 97, 166912) X(HostRegisterSupported, 99, 1) \
  X(DirectManagedMemAccessFromHost, 101, 1) X(MaxBlocksPerMultiprocessor, 106, 32) X(MaxPersistingL2CacheSize, 108, 0) \
  X(MaxAccessPolicyWindowSize, 109, 0) X(ReservedSharedMemoryPerBlock, 111, 1024) X(MemoryPoolsSupported, 115, 1)
#define WW_ATTRIBUTE(NAME, NUMBER, VALUE) cudaDevAttr##NAME = NUMBER,
enum cudaDeviceAttr { WW_ATTRIBUTES(WW_ATTRIBUTE) };
#undef WW_ATTRIBUTE
enum { cudaComputeModeDefault = 0, cudaComputeModeExclusive = 1, cudaComputeModeProhibited = 2 };
enum cudaMemLocationType { cudaMemLocationTypeInvalid, cudaMemLocationTypeDevice, cudaMemLocationTypeHost };
struct cudaMemLocation { cudaMemLocationType type; int id; };
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
typedef struct CUmemPool_st* cudaMemPool_t;
struct cudaExtent { size_t width, height, depth; };
struct cudaPos { size_t x, y, z; };
struct cudaPitchedPtr { void* ptr; size_t pitch, xsize, ysize; };
enum cudaMemoryAdvise { cudaMemAdviseSetReadMostly = 1, cudaMemAdviseUnsetReadMostly, cudaMemAdviseSetPreferredLocation, cudaMemAdviseUnsetPreferredLocation, cudaMemAdviseSetAccessedBy, cudaMemAdviseUnsetAccessedBy };
enum { cudaMemAttachGlobal = 1, cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4, cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2, cudaMemAttachHost = 2, cudaMemAttachSingle = 4, cudaStreamNonBlocking = 1, cudaStreamDefault = 0, cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2, cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1, cudaDeviceScheduleYield = 2, cudaDeviceScheduleBlockingSync = 4, cudaDeviceBlockingSync = 4, cudaDeviceScheduleMask = 7, cudaDeviceMapHost = 8, cudaDeviceLmemResizeToMax = 16, cudaEventInterprocess = 4, cudaEventRecordDefault = 0, cudaEventWaitDefault = 0, cudaHostRegisterIoMemory = 4, cudaHostRegisterReadOnly = 8, cudaOccupancyDefault = 0, cudaCpuDeviceId = -1 };
struct CUstream_st { int unused; };
struct CUevent_st { double when = 0; };
typedef CUstream_st* cudaStream_t;
#define cudaStreamLegacy ((cudaStream_t)nullptr)
#define cudaStreamPerThread ((cudaStream_t)nullptr)
#define cudaStreamFireAndForget ((cudaStream_t)nullptr)
typedef CUevent_st* cudaEvent_t;
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, totalConstMem, sharedMemPerMultiprocessor, sharedMemPerBlockOptin, memPitch, textureAlignment, texturePitchAlignment, surfaceAlignment;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate, major, minor, multiProcessorCount, maxThreadsPerMultiProcessor, memoryClockRate, memoryBusWidth,
      l2CacheSize, concurrentKernels, integrated, canMapHostMemory, computeMode, ECCEnabled, asyncEngineCount, unifiedAddressing, managedMemory, cooperativeLaunch, regsPerMultiprocessor, deviceOverlap, kernelExecTimeoutEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, streamPrioritiesSupported,
      concurrentManagedAccess, pageableMemoryAccess, isMultiGpuBoard, maxTexture1D, maxTexture2D[2], maxTexture3D[3], maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemap,
      cooperativeMultiDeviceLaunch, computePreemptionSupported, hostNativeAtomicSupported, localL1CacheSupported, globalL1CacheSupported, maxBlocksPerMultiProcessor, singleToDoublePrecisionPerfRatio,
      persistingL2CacheMaxSize, accessPolicyMaxWindowSize, memoryPoolsSupported, multiGpuBoardGroupID, canUseHostPointerForRegisteredMem, directManagedMemAccessFromHost, hostRegisterSupported,
      pageableMemoryAccessUsesHostPageTables, clusterLaunch, maxTexture1DLinear, maxSurface1D, maxSurface2D[2], maxSurface3D[3];
  size_t reservedSharedMemPerBlock;
  struct { char bytes[16]; } uuid;
  char luid[8];
};
struct cudaFuncAttributes { size_t sharedSizeBytes, constSizeBytes, localSizeBytes; int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, maxDynamicSharedSizeBytes; };

namespace ww {
inline cudaError_t& last_error() { static cudaError_t code = cudaSuccess; return code; }
inline cudaError_t& refused() { static cudaError_t code = cudaSuccess; return code; }  // of a call that did nothing: told once, by cudaGetLastError
static inline cudaError_t status() {
  if (inside()) return failed() ? cudaErrorLaunchFailure : cudaSuccess;  // a kernel that asks leaves the error to the host
  if (failed()) {
    std::fprintf(stderr, "kernel failed: %s\n", error_text().c_str());
    const auto begins = [](const char* with) { return error_text().rfind(with, 0) == 0; };
    last_error() = begins("assertion") ? cudaErrorAssert : begins("expected 1 to 1024 threads") ? cudaErrorInvalidConfiguration : begins("expected at most 1024 blocks") ? cudaErrorCooperativeLaunchTooLarge : begins("expected at most") ? cudaErrorInvalidValue : cudaErrorLaunchFailure;
    error_text().clear();
  }
  return last_error();
}
// A program that never asks whether its kernels failed must not look as if they had not.
inline const int told_at_exit = std::atexit([] {
  if (!failed() || entered_from_outside) return;
  std::fprintf(stderr, "kernel failed, and the program did not ask: %s\n", error_text().c_str());
  std::fflush(nullptr);
  _exit(1);
});
// The memory that a program may have: the machine's, or what its limits leave of it. What is said of a device is a quarter less, for all else.
static inline size_t machine_memory(bool free_only) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t all = (size_t)sysconf(free_only ? _SC_AVPHYS_PAGES : _SC_PHYS_PAGES) * page;
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    size_t used = 0;
    if (std::FILE* file = free_only ? std::fopen("/proc/self/statm", "r") : nullptr) {
      if (std::fscanf(file, "%zu", &used) != 1) used = 0;
      std::fclose(file);
    }
    all = std::min(all, (size_t)limit.rlim_cur - std::min((size_t)limit.rlim_cur, used * page));
  }
  return all / 4 * 3;
}
static inline double now_ms() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
// The sanitizer's, of any of the program's files; hidden, so that libraries keep to their own.
inline __attribute__((visibility("hidden"))) void (*on_allocate)(const void*, size_t) = nullptr, (*on_free)(const void*) = nullptr;
static inline cudaError_t allocate(void** p, size_t bytes) {
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
  if (*p && on_allocate) on_allocate(*p, bytes);
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
WW_C cudaError_t cudaFree(const void* p) { if (ww::on_free) ww::on_free(p); std::free((void*)p); return cudaSuccess; }
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
template <class T> static inline cudaError_t cudaMemcpyToSymbol(T*&&, const void*, size_t, size_t = 0, int = 1) { return cudaErrorInvalidSymbol; }  // an address that was computed is no symbol
template <size_t N> static inline cudaError_t cudaMemcpyToSymbol(const char (&)[N], const void*, size_t, size_t = 0, int = 1) { return ww::refused() = cudaErrorInvalidSymbol; }  // nor is a name, since CUDA 5
template <class T> static inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t n, size_t offset = 0, int = 2) { std::memcpy(to, (const char*)&symbol + offset, n); return ww::status(); }
template <class T> static inline cudaError_t cudaMemcpyToSymbolAsync(T& s, const void* f, size_t n, size_t o = 0, int k = 1, cudaStream_t = nullptr) { return cudaMemcpyToSymbol(s, f, n, o, k); }
template <class T> static inline cudaError_t cudaMemcpyFromSymbolAsync(void* t, const T& s, size_t n, size_t o = 0, int k = 2, cudaStream_t = nullptr) { return cudaMemcpyFromSymbol(t, s, n, o, k); }
template <class P, class T> static inline cudaError_t cudaGetSymbolAddress(P** p, T& symbol) { *p = (P*)&symbol; return cudaSuccess; }
WW_C cudaError_t cudaMemGetInfo(size_t* available, size_t* total) { *total = ww::machine_memory(false), *available = std::min(ww::machine_memory(true), *total); return cudaSuccess; }
// Of the driver's interface: what programs on the runtime's ask beside it.
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

WW_C cudaError_t cudaDeviceSynchronize() {
  if (ww::inside() && ww::when_waiting) ww::when_waiting();
  return ww::status();
}
WW_C cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
WW_C cudaError_t cudaDeviceReset() { return cudaSuccess; }
WW_C cudaError_t cudaGetLastError() {
  if (ww::inside()) return ww::status();
  const cudaError_t code = ww::status() ? ww::status() : ww::refused();
  ww::last_error() = ww::refused() = cudaSuccess;
  return code;
}
WW_C cudaError_t cudaPeekAtLastError() { return ww::status(); }
#define WW_ERROR(NAME, CODE) case CODE: return "cuda" #NAME;
WW_C const char* cudaGetErrorName(cudaError_t e) { switch ((int)e) { WW_ERRORS(WW_ERROR) } return "unrecognized error code"; }
#undef WW_ERROR
WW_C const char* cudaGetErrorString(cudaError_t e) {
  switch ((int)e) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorAssert: return "device-side assert triggered";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorNotSupported: return "operation not supported";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorCooperativeLaunchTooLarge: return "too many blocks in cooperative launch";
    default: return cudaGetErrorName(e);
  }
}
WW_C cudaError_t cudaSetDevice(int) { return cudaSuccess; }
WW_C cudaError_t cudaGetDevice(int* d) { *d = 0; return cudaSuccess; }
WW_C cudaError_t cudaGetDeviceCount(int* n) { *n = 1; return cudaSuccess; }
WW_C cudaError_t cudaThreadExit() { return cudaSuccess; }
static inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
static inline cudaError_t cudaDeviceSetCacheConfig(int) { return cudaSuccess; }
static inline cudaError_t cudaDeviceSetSharedMemConfig(int) { return cudaSuccess; }
static inline cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) { *config = cudaSharedMemBankSizeFourByte; return cudaSuccess; }
template <class F> static inline cudaError_t cudaFuncSetCacheConfig(F, int) { return cudaSuccess; }
template <class F> static inline cudaError_t cudaFuncSetSharedMemConfig(F, int) { return cudaSuccess; }
template <class F> static inline cudaError_t cudaFuncSetAttribute(F, int attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || (size_t)value > ww::most_shared) return ww::refused() = cudaErrorInvalidValue;
  ww::shared_limit() = std::max(ww::shared_limit(), (size_t)value);  // for all kernels: which one is meant is not kept
  return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int* v, int a, int) {
  switch (a) {
#define WW_ATTRIBUTE(NAME, NUMBER, VALUE) case NUMBER: *v = VALUE; break;
    WW_ATTRIBUTES(WW_ATTRIBUTE)
#undef WW_ATTRIBUTE
    default: *v = 0;
  }
  return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  std::memset(p, 0, sizeof *p);
  std::strcpy(p->name, "CPU, by warpwright transpile");
  p->totalGlobalMem = ww::machine_memory(false); p->sharedMemPerBlock = 49152; p->totalConstMem = 65536; p->sharedMemPerMultiprocessor = 167936; p->sharedMemPerBlockOptin = 166912;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536; p->warpSize = 32; p->maxThreadsPerBlock = 1024; p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024; p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647; p->maxGridSize[1] = p->maxGridSize[2] = 65535; p->clockRate = 1000000; p->major = 8; p->minor = 0; p->multiProcessorCount = 16;
  p->maxThreadsPerMultiProcessor = 2048; p->memoryClockRate = 1000000; p->memoryBusWidth = 128; p->l2CacheSize = 1 << 20; p->concurrentKernels = 1; p->unifiedAddressing = p->managedMemory = 1;
  p->canMapHostMemory = p->cooperativeLaunch = p->concurrentManagedAccess = p->pageableMemoryAccess = p->hostNativeAtomicSupported = p->memoryPoolsSupported = p->streamPrioritiesSupported = 1;
  p->maxBlocksPerMultiProcessor = 32; p->singleToDoublePrecisionPerfRatio = 2; p->maxTexture1DLayered[0] = 32768; p->maxTexture2DLayered[0] = p->maxTexture2DLayered[1] = 32768;
  p->maxTexture1DLayered[1] = p->maxTexture2DLayered[2] = 2048; p->globalL1CacheSupported = p->localL1CacheSupported = 1;
  p->persistingL2CacheMaxSize = 3 << 18; p->accessPolicyMaxWindowSize = 1 << 20;  // a hint, which changes nothing
  p->deviceOverlap = p->asyncEngineCount = 1;  // as every GPU of sm_80 says; programs end without
  p->memPitch = 2147483647; p->textureAlignment = 512; p->texturePitchAlignment = 32; p->maxTexture1D = p->maxTexture2D[0] = 131072; p->maxTexture2D[1] = 65536;
  p->maxTexture3D[0] = p->maxTexture3D[1] = p->maxTexture3D[2] = 16384;
  return cudaSuccess;
}
template <class F> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, F) { std::memset(a, 0, sizeof *a); a->maxThreadsPerBlock = 1024, a->numRegs = 32, a->ptxVersion = a->binaryVersion = 80, a->maxDynamicSharedSizeBytes = 49152; return cudaSuccess; }
template <class F> static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, F, int, size_t) { *n = 2; return cudaSuccess; }
template <class F> static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, F, int, size_t, unsigned) { *n = 2; return cudaSuccess; }
template <class F> static inline cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* n, F, int, int) { *n = 49152; return cudaSuccess; }
template <class F, class S> static inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, F, S, int = 0) { *grid = 32; *block = 256; return cudaSuccess; }
template <class F> static inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F, size_t = 0, int = 0) { *grid = 32; *block = 256; return cudaSuccess; }
static inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaErrorInvalidDevice; }
static inline cudaError_t cudaDeviceDisablePeerAccess(int) { return cudaErrorPeerAccessNotEnabled; }
static inline cudaError_t cudaDeviceGetStreamPriorityRange(int* low, int* high) { *low = 0; *high = -1; return cudaSuccess; }
static inline cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { *can = 0; return cudaSuccess; }
static inline cudaError_t cudaDriverGetVersion(int* v) { *v = 12040; return cudaSuccess; }
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
static inline cudaError_t cudaEventCreate(cudaEvent_t* e, unsigned) { return cudaEventCreate(e); }
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { return cudaEventCreate(e); }
static inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t = nullptr) { e->when = ww::now_ms(); return cudaSuccess; }
static inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return ww::status(); }
static inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
static inline cudaError_t cudaEventDestroy(cudaEvent_t e) { delete e; return cudaSuccess; }
static inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) { *ms = (float)(b->when - a->when); return cudaSuccess; }
template <class T> static inline void checkCudaErrors(T code) { if (code) { std::fprintf(stderr, "CUDA error %d\n", (int)code); std::exit(1); } }
#define getLastCudaError(message) checkCudaErrors(cudaGetLastError())
