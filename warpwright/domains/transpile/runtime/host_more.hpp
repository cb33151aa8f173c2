// What fewer programs ask of the CUDA runtime's host: callbacks, limits, pointers, peers, pools, hints; and what of the driver's interface asks about the device.
#define CUDART_CB
#define CUDAAPI
#define CUDA_CB
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitDevRuntimeSyncDepth, cudaLimitDevRuntimePendingLaunchCount, cudaLimitMaxL2FetchGranularity, cudaLimitPersistingL2CacheSize };
namespace ww { inline size_t& limit(int which) { static size_t sizes[8] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0}; return sizes[which & 7]; } }
static inline cudaError_t cudaDeviceSetLimit(cudaLimit which, size_t size) { ww::limit(which) = size; return cudaSuccess; }
static inline cudaError_t cudaDeviceGetLimit(size_t* size, cudaLimit which) { *size = ww::limit(which); return cudaSuccess; }
static inline cudaError_t cudaThreadSetLimit(cudaLimit which, size_t size) { return cudaDeviceSetLimit(which, size); }
typedef void (*cudaStreamCallback_t)(cudaStream_t, cudaError_t, void*);
typedef void (*cudaHostFn_t)(void*);
static inline cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t call, void* data, unsigned) { call(s, ww::status(), data); return cudaSuccess; }
static inline cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t call, void* data) { call(data); return cudaSuccess; }
template <class T> static inline cudaError_t cudaStreamAttachMemAsync(cudaStream_t, T*, size_t = 0, unsigned = 4) { return cudaSuccess; }
static inline cudaError_t cudaStreamGetPriority(cudaStream_t, int* p) { *p = 0; return cudaSuccess; }
static inline cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned* f) { *f = 0; return cudaSuccess; }
static inline cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t n) { return cudaMemcpy(to, from, n, cudaMemcpyDefault); }
static inline cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t n, cudaStream_t = nullptr) { return cudaMemcpy(to, from, n, cudaMemcpyDefault); }
static inline cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) { *device = 0; return cudaSuccess; }
static inline cudaError_t cudaGetDeviceFlags(unsigned* f) { *f = 0; return cudaSuccess; }
static inline cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int) { std::snprintf(text, (size_t)length, "0000:00:00.0"); return cudaSuccess; }
static inline cudaError_t cudaHostGetFlags(unsigned* f, void*) { *f = cudaHostAllocMapped; return cudaSuccess; }
static inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s = nullptr, unsigned = 0) { return cudaEventRecord(e, s); }
static inline cudaError_t cudaMemset2DAsync(void* p, size_t pitch, int v, size_t w, size_t h, cudaStream_t = nullptr) { return cudaMemset2D(p, pitch, v, w, h); }
static inline cudaError_t cudaMemset3DAsync(cudaPitchedPtr p, int v, cudaExtent e, cudaStream_t = nullptr) { return cudaMemset3D(p, v, e); }
template <class T> static inline cudaError_t cudaGetSymbolSize(size_t* bytes, const T& symbol) { *bytes = sizeof symbol; return cudaSuccess; }
static inline cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* c) { *c = cudaFuncCachePreferNone; return cudaSuccess; }
static inline cudaError_t cudaThreadSetCacheConfig(int) { return cudaSuccess; }
static inline cudaError_t cudaDeviceGetByPCIBusId(int* device, const char*) { *device = 0; return cudaSuccess; }
static inline cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
static inline cudaError_t cudaSetValidDevices(int*, int) { return cudaSuccess; }
static inline cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long* id) { *id = (unsigned long long)(size_t)s; return cudaSuccess; }
enum { cudaInvalidDeviceId = -2 };
template <class F> static inline cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, F f, size_t shared = 0, int limit = 0, unsigned = 0) { return cudaOccupancyMaxPotentialBlockSize(grid, block, f, shared, limit); }
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes { cudaMemoryType type; int device; void *devicePointer, *hostPointer; };
static inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) { *a = {cudaMemoryTypeManaged, 0, (void*)p, (void*)p}; return cudaSuccess; }
static inline cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
enum cudaAccessProperty { cudaAccessPropertyNormal, cudaAccessPropertyStreaming, cudaAccessPropertyPersisting };
struct cudaAccessPolicyWindow { void* base_ptr; size_t num_bytes; float hitRatio; cudaAccessProperty hitProp, missProp; };
union cudaStreamAttrValue { cudaAccessPolicyWindow accessPolicyWindow; int syncPolicy; };
enum cudaStreamAttrID { cudaStreamAttributeAccessPolicyWindow = 1, cudaStreamAttributeSynchronizationPolicy = 3 };
static inline cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) { return cudaSuccess; }
enum cudaMemAllocationType { cudaMemAllocationTypeInvalid, cudaMemAllocationTypePinned };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone };
enum cudaMemAccessFlags { cudaMemAccessFlagsProtNone, cudaMemAccessFlagsProtRead, cudaMemAccessFlagsProtReadWrite = 3 };
struct cudaMemPoolProps { cudaMemAllocationType allocType; cudaMemAllocationHandleType handleTypes; cudaMemLocation location; };
struct cudaMemAccessDesc { cudaMemLocation location; cudaMemAccessFlags flags; };
enum cudaDeviceP2PAttr { cudaDevP2PAttrPerformanceRank = 1, cudaDevP2PAttrAccessSupported, cudaDevP2PAttrNativeAtomicSupported, cudaDevP2PAttrCudaArrayAccessSupported };
static inline cudaError_t cudaDeviceGetP2PAttribute(int*, cudaDeviceP2PAttr, int, int) { return ww::refused() = cudaErrorInvalidDevice; }  // there is one device
struct CUmemPool_st { int unused; };
static inline cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) { *pool = new CUmemPool_st{}; return cudaSuccess; }
static inline cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { delete pool; return cudaSuccess; }
static inline cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) { return cudaSuccess; }
static inline cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int) { *pool = nullptr; return cudaSuccess; }
static inline cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) { return cudaSuccess; }
template <class T> static inline cudaError_t cudaMallocFromPoolAsync(T** p, size_t bytes, cudaMemPool_t, cudaStream_t) { return ww::allocate((void**)p, bytes); }

typedef int CUdevice;
typedef void* CUcontext;
typedef unsigned long long CUdeviceptr;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
enum CUcomputemode { CU_COMPUTEMODE_DEFAULT = 0, CU_COMPUTEMODE_PROHIBITED = 2, CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3 };
enum CUdevice_attribute {
#define WW_DRIVER(NAME, CODE) CU_DEVICE_ATTRIBUTE_##NAME = CODE,
  WW_DRIVER(MAX_THREADS_PER_BLOCK, 1) WW_DRIVER(MAX_BLOCK_DIM_X, 2) WW_DRIVER(MAX_BLOCK_DIM_Y, 3) WW_DRIVER(MAX_BLOCK_DIM_Z, 4) WW_DRIVER(MAX_GRID_DIM_X, 5) WW_DRIVER(MAX_GRID_DIM_Y, 6)
  WW_DRIVER(MAX_GRID_DIM_Z, 7) WW_DRIVER(MAX_SHARED_MEMORY_PER_BLOCK, 8) WW_DRIVER(TOTAL_CONSTANT_MEMORY, 9) WW_DRIVER(WARP_SIZE, 10) WW_DRIVER(MAX_PITCH, 11)
  WW_DRIVER(MAX_REGISTERS_PER_BLOCK, 12) WW_DRIVER(CLOCK_RATE, 13) WW_DRIVER(TEXTURE_ALIGNMENT, 14) WW_DRIVER(GPU_OVERLAP, 15) WW_DRIVER(MULTIPROCESSOR_COUNT, 16)
  WW_DRIVER(KERNEL_EXEC_TIMEOUT, 17) WW_DRIVER(INTEGRATED, 18) WW_DRIVER(CAN_MAP_HOST_MEMORY, 19) WW_DRIVER(COMPUTE_MODE, 20) WW_DRIVER(MAXIMUM_TEXTURE1D_WIDTH, 21)
  WW_DRIVER(MAXIMUM_TEXTURE2D_WIDTH, 22) WW_DRIVER(MAXIMUM_TEXTURE2D_HEIGHT, 23) WW_DRIVER(MAXIMUM_TEXTURE3D_WIDTH, 24) WW_DRIVER(MAXIMUM_TEXTURE3D_HEIGHT, 25)
  WW_DRIVER(MAXIMUM_TEXTURE3D_DEPTH, 26) WW_DRIVER(MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 27) WW_DRIVER(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 28) WW_DRIVER(MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 29)
  WW_DRIVER(SURFACE_ALIGNMENT, 30) WW_DRIVER(CONCURRENT_KERNELS, 31) WW_DRIVER(ECC_ENABLED, 32) WW_DRIVER(PCI_BUS_ID, 33) WW_DRIVER(PCI_DEVICE_ID, 34) WW_DRIVER(TCC_DRIVER, 35)
  WW_DRIVER(MEMORY_CLOCK_RATE, 36) WW_DRIVER(GLOBAL_MEMORY_BUS_WIDTH, 37) WW_DRIVER(L2_CACHE_SIZE, 38) WW_DRIVER(MAX_THREADS_PER_MULTIPROCESSOR, 39) WW_DRIVER(ASYNC_ENGINE_COUNT, 40)
  WW_DRIVER(UNIFIED_ADDRESSING, 41) WW_DRIVER(MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 42) WW_DRIVER(MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 43) WW_DRIVER(PCI_DOMAIN_ID, 50)
  WW_DRIVER(COMPUTE_CAPABILITY_MAJOR, 75) WW_DRIVER(COMPUTE_CAPABILITY_MINOR, 76) WW_DRIVER(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81) WW_DRIVER(MANAGED_MEMORY, 83) WW_DRIVER(CONCURRENT_MANAGED_ACCESS, 89)
  WW_DRIVER(COMPUTE_PREEMPTION_SUPPORTED, 90) WW_DRIVER(STREAM_PRIORITIES_SUPPORTED, 78) WW_DRIVER(GLOBAL_L1_CACHE_SUPPORTED, 79) WW_DRIVER(LOCAL_L1_CACHE_SUPPORTED, 80) WW_DRIVER(MAX_REGISTERS_PER_MULTIPROCESSOR, 82) WW_DRIVER(MULTI_GPU_BOARD, 84)
  WW_DRIVER(HOST_NATIVE_ATOMIC_SUPPORTED, 86) WW_DRIVER(PAGEABLE_MEMORY_ACCESS, 88) WW_DRIVER(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91) WW_DRIVER(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)
  WW_DRIVER(VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 102) WW_DRIVER(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102) WW_DRIVER(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103) WW_DRIVER(GENERIC_COMPRESSION_SUPPORTED, 107)
  WW_DRIVER(MAX_PERSISTING_L2_CACHE_SIZE, 108) WW_DRIVER(MEMORY_POOLS_SUPPORTED, 115) WW_DRIVER(CLUSTER_LAUNCH, 120) WW_DRIVER(COOPERATIVE_LAUNCH, 95) WW_DRIVER(COOPERATIVE_MULTI_DEVICE_LAUNCH, 96)
#undef WW_DRIVER
};
static inline CUresult cuDeviceGetAttribute(int* v, CUdevice_attribute a, CUdevice) {
  if (a == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) *v = 1;  // driver_memory.hpp
  else cudaDeviceGetAttribute(v, a, 0);
  return CUDA_SUCCESS;
}
static inline CUresult cuDeviceGet(CUdevice* device, int) { *device = 0; return CUDA_SUCCESS; }
static inline CUresult cuDeviceGetCount(int* n) { *n = 1; return CUDA_SUCCESS; }
static inline CUresult cuDeviceGetName(char* name, int length, CUdevice) { std::snprintf(name, (size_t)length, "CPU, by warpwright transpile"); return CUDA_SUCCESS; }
static inline CUresult cuDeviceTotalMem(size_t* n, CUdevice) { size_t free; cudaMemGetInfo(&free, n); return CUDA_SUCCESS; }
static inline CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice) { *major = 8; *minor = 0; return CUDA_SUCCESS; }
static inline CUresult cuDriverGetVersion(int* v) { *v = 12040; return CUDA_SUCCESS; }
static inline CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) { *can = 0; return CUDA_SUCCESS; }
static inline CUresult cuGetErrorName(CUresult e, const char** text) { *text = e == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR"; return CUDA_SUCCESS; }
static inline CUresult cuGetErrorString(CUresult e, const char** text) { *text = e == CUDA_SUCCESS ? "no error" : "an error"; return CUDA_SUCCESS; }
