// Modules of the driver's interface. An image is what `warpwright transpile --module` writes, a shared library; whatever else a program loads (a cubin, PTX)
// is refused with CUDA_ERROR_INVALID_IMAGE.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
struct CUfunc_st {
  int (*run)(const unsigned*, size_t, void**);
  const char* (*layout)();
  const char* (*error)();
};
struct CUmod_st {
  void* library;
  std::map<std::string, CUfunc_st> kernels;
};
typedef CUmod_st* CUmodule;
typedef CUfunc_st* CUfunction;
enum CUjit_option { CU_JIT_MAX_REGISTERS, CU_JIT_THREADS_PER_BLOCK, CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_TARGET_FROM_CUCONTEXT, CU_JIT_TARGET,
                    CU_JIT_FALLBACK_STRATEGY, CU_JIT_GENERATE_DEBUG_INFO, CU_JIT_LOG_VERBOSE };
enum CUfunction_attribute { CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, CU_FUNC_ATTRIBUTE_NUM_REGS, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };
#define CU_LAUNCH_PARAM_END ((void*)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void*)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void*)2)
namespace ww {
static inline CUresult open_module(CUmodule* m, const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char* (*names)() = library ? (const char* (*)())dlsym(library, "ww_kernels") : nullptr;
  if (!names) {
    std::fprintf(stderr, "a module that `warpwright transpile --module` did not write: %s\n", library ? path : dlerror());
    return CUDA_ERROR_INVALID_IMAGE;
  }
  *m = new CUmod_st{library, {}};
  const std::string all = names();
  int number = 0;
  for (size_t at = 0, end; (end = all.find('\n', at)) != std::string::npos; at = end + 1, ++number) {
    const std::string n = std::to_string(number);
    (*m)->kernels[all.substr(at, end - at)] = {(int (*)(const unsigned*, size_t, void**))dlsym(library, ("ww_run_" + n).c_str()), (const char* (*)())dlsym(library, ("ww_layout_" + n).c_str()), (const char* (*)())dlsym(library, "ww_error")};
  }
  return CUDA_SUCCESS;
}
// Where each argument lies in a buffer of arguments that follow one another, each aligned as its type asks.
static inline std::vector<void*> unpacked(const char* layout, char* buffer) {
  std::vector<void*> at;
  size_t place = 0;
  for (char* next; *layout; layout = next + 1) {
    const size_t size = std::strtoul(layout, &next, 10), unit = std::strtoul(next, &next, 10);
    place = (place + unit - 1) / unit * unit;
    at.push_back(buffer + place);
    place += size;
  }
  return at;
}
}  // namespace ww
static inline CUresult cuModuleLoad(CUmodule* m, const char* file) {
  if (access(file, R_OK)) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string path = file;
  return ww::open_module(m, (path.find('/') == std::string::npos ? "./" + path : path).c_str());
}
static inline CUresult cuModuleLoadData(CUmodule* m, const void* image) {
  const auto* const head = (const Elf64_Ehdr*)image;
  if (std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) {
    std::fprintf(stderr, "an image that `warpwright transpile --module` did not write\n");
    return CUDA_ERROR_INVALID_IMAGE;
  }
  const size_t size = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
  const int file = memfd_create("warpwright", 0);
  if (file < 0 || write(file, image, size) != (ssize_t)size) return CUDA_ERROR_OUT_OF_MEMORY;
  return ww::open_module(m, ("/proc/self/fd/" + std::to_string(file)).c_str());
}
static inline CUresult cuModuleLoadDataEx(CUmodule* m, const void* image, unsigned, CUjit_option*, void**) { return cuModuleLoadData(m, image); }
static inline CUresult cuModuleLoadFatBinary(CUmodule* m, const void* image) { return cuModuleLoadData(m, image); }
static inline CUresult cuModuleUnload(CUmodule m) { delete m; return CUDA_SUCCESS; }  // the library stays: its kernels may be on their way
static inline CUresult cuModuleGetFunction(CUfunction* f, CUmodule m, const char* name) {
  const auto at = m->kernels.find(name);
  if (at == m->kernels.end() || !at->second.run) return CUDA_ERROR_NOT_FOUND;
  *f = &at->second;
  return CUDA_SUCCESS;
}
static inline CUresult cuModuleGetGlobal(CUdeviceptr* p, size_t* size, CUmodule m, const char* name) {
  void* const at = dlsym(m->library, name);
  if (!at) return CUDA_ERROR_NOT_FOUND;
  Dl_info info;
  const Elf64_Sym* symbol = nullptr;
  if (size) *size = dladdr1(at, &info, (void**)&symbol, RTLD_DL_SYMENT) && symbol ? symbol->st_size : 0;
  if (p) *p = (CUdeviceptr)at;
  return CUDA_SUCCESS;
}
static inline CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream, void** arguments, void** extra) {
  const unsigned shape[6] = {gx, gy, gz, bx, by, bz};
  std::vector<void*> from_buffer;
  for (void** e = extra; e && *e != CU_LAUNCH_PARAM_END; e += 2) if (*e == CU_LAUNCH_PARAM_BUFFER_POINTER) from_buffer = ww::unpacked(f->layout(), (char*)e[1]);
  if (!f->run(shape, shared, arguments ? arguments : from_buffer.data())) return CUDA_SUCCESS;
  const std::string why = f->error();
  if (why.rfind("expected ", 0) == 0) {  // nothing was launched
    std::fprintf(stderr, "not launched: %s\n", why.c_str());
    return CUDA_ERROR_INVALID_VALUE;
  }
  ww::fail(why);  // who synchronises is told
  return CUDA_SUCCESS;
}
static inline CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**) { return CUDA_ERROR_NOT_SUPPORTED; }
static inline CUresult cuFuncGetAttribute(int* v, CUfunction_attribute a, CUfunction) { *v = a == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0; return CUDA_SUCCESS; }
static inline CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }  // what a launch may have is 227 KiB
static inline CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, CUfunction, int, size_t) { *n = 2; return CUDA_SUCCESS; }
static inline CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction, void*, size_t, int) { *grid = 32, *block = 256; return CUDA_SUCCESS; }
