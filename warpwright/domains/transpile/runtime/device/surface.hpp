// Surface objects: an array that kernels read and write. Positions along x count bytes; what lies outside is a fault of the kernel (trap), left out (zero),
// or the nearest element (clamp).
typedef unsigned long long cudaSurfaceObject_t;
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };
static inline cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* o, const cudaResourceDesc* r) {
  if (r->resType != cudaResourceTypeArray || !(r->res.array.array->flags & cudaArraySurfaceLoadStore)) return ww::refused() = cudaErrorInvalidValue;
  *o = (cudaSurfaceObject_t)r->res.array.array;
  return cudaSuccess;
}
static inline cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t) { return cudaSuccess; }
namespace ww {
static inline char* surface_at(cudaSurfaceObject_t o, size_t size, long x, long y, long z, cudaSurfaceBoundaryMode mode) {
  const cudaArray& a = *(const cudaArray*)o;
  const long row = (long)(a.width * a.texel()), rows = std::max((long)a.height, 1l), slices = std::max((long)a.depth, 1l), n = (long)size;
  if (x < 0 || x + n > row || y < 0 || y >= rows || z < 0 || z >= slices) {
    if (mode == cudaBoundaryModeZero) return nullptr;
    if (mode == cudaBoundaryModeTrap) {
      fail("an access outside of a surface, at byte " + std::to_string(x) + " of row " + std::to_string(y));
      return nullptr;
    }
    x = std::clamp(x, 0l, row - n), y = std::clamp(y, 0l, rows - 1), z = std::clamp(z, 0l, slices - 1);
  }
  return a.data + (z * rows + y) * row + x;
}
template <class T> static inline T surface_read(cudaSurfaceObject_t o, long x, long y, long z, cudaSurfaceBoundaryMode mode) {
  T value{};
  if (const char* at = surface_at(o, sizeof(T), x, y, z, mode)) std::memcpy(&value, at, sizeof(T));
  return value;
}
template <class T> static inline void surface_write(const T& value, cudaSurfaceObject_t o, long x, long y, long z, cudaSurfaceBoundaryMode mode) {
  if (char* at = surface_at(o, sizeof(T), x, y, z, mode)) std::memcpy(at, &value, sizeof(T));
}
}  // namespace ww
#define WW_SURFACE(NAME, X, Y, Z, ...) \
  template <class T> static inline T surf##NAME##read(cudaSurfaceObject_t o, __VA_ARGS__, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) { return ww::surface_read<T>(o, X, Y, Z, mode); } \
  template <class T> static inline void surf##NAME##read(T* to, cudaSurfaceObject_t o, __VA_ARGS__, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) { *to = ww::surface_read<T>(o, X, Y, Z, mode); } \
  template <class T> static inline void surf##NAME##write(T value, cudaSurfaceObject_t o, __VA_ARGS__, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) { ww::surface_write(value, o, X, Y, Z, mode); }
WW_SURFACE(1D, x, 0, 0, int x)
WW_SURFACE(2D, x, y, 0, int x, int y)
WW_SURFACE(3D, x, y, z, int x, int y, int z)
WW_SURFACE(1DLayered, x, 0, layer, int x, int layer)
WW_SURFACE(2DLayered, x, y, layer, int x, int y, int layer)
WW_SURFACE(Cubemap, x, y, face, int x, int y, int face)
WW_SURFACE(CubemapLayered, x, y, face, int x, int y, int face)
#undef WW_SURFACE
