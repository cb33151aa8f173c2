// cudaLaunchCooperativeKernel (grid.hpp runs it).
template <class F> static inline cudaError_t cudaLaunchCooperativeKernel(F* kernel, dim3 grid, dim3 block, void** arguments, size_t shared = 0, cudaStream_t = nullptr) {
  const ww::Launch launch(grid, block, shared);
  if (launch.blocks() > ww::most_blocks_together) return ww::refused() = cudaErrorCooperativeLaunchTooLarge;
  if (launch.blocks() > 1) ww::together() = ww::run_together;
  const cudaError_t code = ww::launch_value((const void*)kernel, launch, arguments);
  ww::together() = nullptr;
  return code;
}
