// Programmatic dependent launch, on Hopper and later: a kernel of a launch plan may begin while the one before it still runs. It waits until that one
// has ended and all that it wrote can be read, before it reads or writes any memory of the GPU itself. By NVIDIA's manuals neither does anything in a
// kernel that was launched in the ordinary way. A kernel that waits has no operand `const __restrict__`: the two words say that nobody writes it while
// the kernel runs, so that the compiler might read it before the wait, or through a cache that is not kept coherent.
__device__ __forceinline__ void wait_for_prerequisites() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// The next kernel may begin as soon as all blocks have said so, or have ended.
__device__ __forceinline__ void launch_dependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
