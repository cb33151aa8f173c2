// The driver's interface beside the runtime's: contexts (there is one, of the one device), memory, copies, streams and events. Modules are in driver_modules.hpp.
enum CUctx_flags { CU_CTX_SCHED_AUTO = 0, CU_CTX_SCHED_SPIN = 1, CU_CTX_SCHED_YIELD = 2, CU_CTX_SCHED_BLOCKING_SYNC = 4, CU_CTX_BLOCKING_SYNC = 4, CU_CTX_MAP_HOST = 8 };
enum CUstream_flags { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum CUevent_flags { CU_EVENT_DEFAULT = 0, CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_MEMHOSTALLOC_PORTABLE = 1, CU_MEMHOSTALLOC_DEVICEMAP = 2, CU_MEMHOSTALLOC_WRITECOMBINED = 4, CU_MEMHOSTREGISTER_DEVICEMAP = 2 };
struct CUuuid { char bytes[16]; };
namespace ww {
inline std::vector<CUcontext>& contexts() { static thread_local std::vector<CUcontext> stack; return stack; }
static inline CUcontext new_context() { return new char; }
static inline CUresult driver_status(cudaError_t code) {
  return code == cudaSuccess ? CUDA_SUCCESS : code == cudaErrorMemoryAllocation ? CUDA_ERROR_OUT_OF_MEMORY : code == cudaErrorAssert ? CUDA_ERROR_ASSERT : code == cudaErrorLaunchFailure ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_INVALID_VALUE;
}
}  // namespace ww
static inline CUresult cuCtxCreate(CUcontext* c, unsigned, CUdevice) { *c = ww::new_context(); ww::contexts().push_back(*c); return CUDA_SUCCESS; }
struct CUctxCreateParams { void* execAffinityParams; int numExecAffinityParams; void* cigParams; };
static inline CUresult cuCtxCreate(CUcontext* c, CUctxCreateParams*, unsigned flags, CUdevice d) { return cuCtxCreate(c, flags, d); }  // CUDA 13
static inline CUresult cuCtxDestroy(CUcontext c) {
  auto& stack = ww::contexts();
  if (!stack.empty() && stack.back() == c) stack.pop_back();
  delete (char*)c;
  return CUDA_SUCCESS;
}
static inline CUresult cuCtxDetach(CUcontext c) { return cuCtxDestroy(c); }
static inline CUresult cuCtxSetCurrent(CUcontext c) { ww::contexts() = {c}; return CUDA_SUCCESS; }
static inline CUresult cuCtxGetCurrent(CUcontext* c) { *c = ww::contexts().empty() ? nullptr : ww::contexts().back(); return CUDA_SUCCESS; }
static inline CUresult cuCtxPushCurrent(CUcontext c) { ww::contexts().push_back(c); return CUDA_SUCCESS; }
static inline CUresult cuCtxPopCurrent(CUcontext* c) {
  if (ww::contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (c) *c = ww::contexts().back();
  ww::contexts().pop_back();
  return CUDA_SUCCESS;
}
static inline CUresult cuCtxGetDevice(CUdevice* d) { *d = 0; return CUDA_SUCCESS; }
static inline CUresult cuCtxSynchronize() { return ww::driver_status(cudaDeviceSynchronize()); }
static inline CUresult cuCtxEnablePeerAccess(CUcontext, unsigned) { return CUDA_ERROR_INVALID_VALUE; }
static inline CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice) { static char one; *c = &one; return CUDA_SUCCESS; }
static inline CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
static inline CUresult cuDeviceGetUuid(CUuuid* id, CUdevice) { *id = {}; return CUDA_SUCCESS; }
static inline CUresult cuMemAlloc(CUdeviceptr* p, size_t n) { void* at; const auto code = cudaMalloc(&at, n); *p = (CUdeviceptr)at; return ww::driver_status(code); }
static inline CUresult cuMemAllocManaged(CUdeviceptr* p, size_t n, unsigned) { return cuMemAlloc(p, n); }
static inline CUresult cuMemAllocPitch(CUdeviceptr* p, size_t* pitch, size_t width, size_t height, unsigned) { *pitch = (width + 255) / 256 * 256; return cuMemAlloc(p, *pitch * height); }
static inline CUresult cuMemFree(CUdeviceptr p) { return ww::driver_status(cudaFree((void*)p)); }
static inline CUresult cuMemAllocHost(void** p, size_t n) { return ww::driver_status(cudaMallocHost(p, n)); }
static inline CUresult cuMemHostAlloc(void** p, size_t n, unsigned) { return cuMemAllocHost(p, n); }
static inline CUresult cuMemFreeHost(void* p) { return ww::driver_status(cudaFreeHost(p)); }
static inline CUresult cuMemHostGetDevicePointer(CUdeviceptr* d, void* h, unsigned) { *d = (CUdeviceptr)h; return CUDA_SUCCESS; }
static inline CUresult cuMemHostRegister(void*, size_t, unsigned) { return CUDA_SUCCESS; }
static inline CUresult cuMemHostUnregister(void*) { return CUDA_SUCCESS; }
static inline CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t n) { return ww::driver_status(cudaMemcpy((void*)to, (const void*)from, n, cudaMemcpyDefault)); }
static inline CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t n) { return cuMemcpy(to, (CUdeviceptr)from, n); }
static inline CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t n) { return cuMemcpy((CUdeviceptr)to, from, n); }
static inline CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t n) { return cuMemcpy(to, from, n); }
static inline CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream) { return cuMemcpy(to, from, n); }
static inline CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t n, CUstream) { return cuMemcpyHtoD(to, from, n); }
static inline CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t n, CUstream) { return cuMemcpyDtoH(to, from, n); }
static inline CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream) { return cuMemcpyDtoD(to, from, n); }
namespace ww { template <class T> static inline CUresult filled(CUdeviceptr p, T v, size_t n) { for (size_t i = 0; i < n; ++i) ((T*)p)[i] = v; return CUDA_SUCCESS; } }
static inline CUresult cuMemsetD8(CUdeviceptr p, unsigned char v, size_t n) { return ww::filled(p, v, n); }
static inline CUresult cuMemsetD16(CUdeviceptr p, unsigned short v, size_t n) { return ww::filled(p, v, n); }
static inline CUresult cuMemsetD32(CUdeviceptr p, unsigned v, size_t n) { return ww::filled(p, v, n); }
static inline CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char v, size_t n, CUstream) { return ww::filled(p, v, n); }
static inline CUresult cuMemsetD32Async(CUdeviceptr p, unsigned v, size_t n, CUstream) { return ww::filled(p, v, n); }
static inline CUresult cuStreamCreate(CUstream* s, unsigned flags) { return ww::driver_status(cudaStreamCreateWithFlags(s, flags)); }
static inline CUresult cuStreamDestroy(CUstream s) { return ww::driver_status(cudaStreamDestroy(s)); }
static inline CUresult cuStreamSynchronize(CUstream s) { return ww::driver_status(cudaStreamSynchronize(s)); }
static inline CUresult cuStreamQuery(CUstream) { return CUDA_SUCCESS; }
static inline CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
static inline CUresult cuEventCreate(CUevent* e, unsigned) { return ww::driver_status(cudaEventCreate(e)); }
static inline CUresult cuEventDestroy(CUevent e) { return ww::driver_status(cudaEventDestroy(e)); }
static inline CUresult cuEventRecord(CUevent e, CUstream s) { return ww::driver_status(cudaEventRecord(e, s)); }
static inline CUresult cuEventSynchronize(CUevent e) { return ww::driver_status(cudaEventSynchronize(e)); }
static inline CUresult cuEventQuery(CUevent) { return CUDA_SUCCESS; }
static inline CUresult cuEventElapsedTime(float* ms, CUevent a, CUevent b) { return ww::driver_status(cudaEventElapsedTime(ms, a, b)); }
