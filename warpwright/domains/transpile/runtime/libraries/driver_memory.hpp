// The driver's interface to virtual memory: ranges of addresses, memory that is mapped into them, more than once if the program likes, and access to it.
#include <sys/mman.h>
typedef unsigned long long CUmemGenericAllocationHandle;
enum CUmemAllocationType { CU_MEM_ALLOCATION_TYPE_INVALID, CU_MEM_ALLOCATION_TYPE_PINNED };
enum CUmemLocationType { CU_MEM_LOCATION_TYPE_INVALID, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST };
enum CUmemAllocationHandleType { CU_MEM_HANDLE_TYPE_NONE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CU_MEM_HANDLE_TYPE_WIN32 };
enum CUmemAllocationGranularity_flags { CU_MEM_ALLOC_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED };
enum CUmemAccess_flags { CU_MEM_ACCESS_FLAGS_PROT_NONE, CU_MEM_ACCESS_FLAGS_PROT_READ, CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 };
enum { CU_MEM_ALLOCATION_COMP_NONE, CU_MEM_ALLOCATION_COMP_GENERIC };
struct CUmemLocation { CUmemLocationType type; int id; };
struct CUmemAllocationProp {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  struct { unsigned char compressionType, gpuDirectRDMACapable; unsigned short usage; unsigned char reserved[4]; } allocFlags;
};
struct CUmemAccessDesc { CUmemLocation location; CUmemAccess_flags flags; };
namespace ww {
struct Allocation { int file; size_t size; CUmemAllocationProp prop; };
constexpr size_t granule = 2 << 20;
static inline CUresult driver_says(bool fine) { return fine ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
}  // namespace ww
static inline CUresult cuMemGetAllocationGranularity(size_t* n, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) { *n = ww::granule; return CUDA_SUCCESS; }
static inline CUresult cuMemAddressReserve(CUdeviceptr* p, size_t size, size_t alignment, CUdeviceptr wanted, unsigned long long) {
  if (!size || size % ww::granule) return CUDA_ERROR_INVALID_VALUE;
  const size_t unit = std::max(alignment, ww::granule), all = size + unit;
  void* const at = mmap((void*)wanted, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t first = ((size_t)at + unit - 1) / unit * unit, before = first - (size_t)at;
  if (before) munmap(at, before);
  if (all - before - size) munmap((void*)(first + size), all - before - size);
  *p = first;
  return CUDA_SUCCESS;
}
static inline CUresult cuMemAddressFree(CUdeviceptr p, size_t size) { return ww::driver_says(munmap((void*)p, size) == 0); }
static inline CUresult cuMemCreate(CUmemGenericAllocationHandle* h, size_t size, const CUmemAllocationProp* prop, unsigned long long) {
  if (!size || size % ww::granule || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  const int file = memfd_create("warpwright", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, (off_t)size)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUmemAllocationProp kept = *prop;
  kept.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;  // there is no memory that compresses
  *h = (CUmemGenericAllocationHandle) new ww::Allocation{file, size, kept};
  return CUDA_SUCCESS;
}
static inline CUresult cuMemRelease(CUmemGenericAllocationHandle h) {  // what is mapped stays mapped
  auto* const a = (ww::Allocation*)h;
  close(a->file);
  delete a;
  return CUDA_SUCCESS;
}
static inline CUresult cuMemMap(CUdeviceptr p, size_t size, size_t offset, CUmemGenericAllocationHandle h, unsigned long long) {
  const auto* const a = (const ww::Allocation*)h;
  if (offset + size > a->size) return CUDA_ERROR_INVALID_VALUE;
  return ww::driver_says(mmap((void*)p, size, PROT_NONE, MAP_SHARED | MAP_FIXED, a->file, (off_t)offset) != MAP_FAILED);
}
static inline CUresult cuMemUnmap(CUdeviceptr p, size_t size) {
  return ww::driver_says(mmap((void*)p, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED);
}
static inline CUresult cuMemSetAccess(CUdeviceptr p, size_t size, const CUmemAccessDesc* what, size_t count) {
  int access = PROT_NONE;
  for (size_t i = 0; i < count; ++i) access |= (what[i].flags & 1 ? PROT_READ : 0) | (what[i].flags & 2 ? PROT_WRITE : 0);
  return ww::driver_says(mprotect((void*)p, size, access) == 0);
}
static inline CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle h) { *prop = ((const ww::Allocation*)h)->prop; return CUDA_SUCCESS; }
