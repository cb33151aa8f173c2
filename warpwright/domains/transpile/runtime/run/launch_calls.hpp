// Launches by a call: cudaLaunchKernel and its relatives, for kernels that became values (values.hpp).
struct cudaLaunchAttribute { int id; union { int cooperative; int programmaticStreamSerializationAllowed; int priority; char pad[64]; } val; };
enum { cudaLaunchAttributeIgnore = 0, cudaLaunchAttributeAccessPolicyWindow, cudaLaunchAttributeCooperative, cudaLaunchAttributeSynchronizationPolicy, cudaLaunchAttributeClusterDimension, cudaLaunchAttributeProgrammaticStreamSerialization = 6, cudaLaunchAttributePriority = 8 };
struct cudaLaunchConfig_t { dim3 gridDim, blockDim; size_t dynamicSmemBytes; cudaStream_t stream; cudaLaunchAttribute* attrs; unsigned numAttrs; };
namespace ww {
static inline cudaError_t launch_value(const void* kernel, const Launch& launch, void** arguments) {
  const KernelValue* known = value_at(kernel);
  if (!known) return refused() = cudaErrorInvalidDeviceFunction;
  known->run(known->launcher, launch, arguments);
  return status();
}
}  // namespace ww
template <class F> static inline cudaError_t cudaLaunchKernel(F* kernel, dim3 grid, dim3 block, void** arguments, size_t shared = 0, cudaStream_t = nullptr) {
  return ww::launch_value((const void*)kernel, ww::Launch(grid, block, shared), arguments);
}
template <class... P, class... A> static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* c, void (*kernel)(P...), A... a) {
  ww::launch_any(ww::Launch(c->gridDim, c->blockDim, c->dynamicSmemBytes), kernel, a...);
  return ww::status();
}
