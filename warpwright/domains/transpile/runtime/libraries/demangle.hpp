// nv_decode.h: kernels' names are the C++ compiler's here.
#include <cxxabi.h>
static inline char* __cu_demangle(const char* id, char* into, size_t* length, int* status) { return abi::__cxa_demangle(id, into, length, status); }
