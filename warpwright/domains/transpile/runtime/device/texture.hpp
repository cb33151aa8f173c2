// Texture objects on arrays, linear memory and pitched memory: point and linear reads by the rules of CUDA's programming guide (texture fetching),
// with the filter's weights rounded to 8 bits as the guide says; layers and cube maps. One mip level.
typedef unsigned long long cudaTextureObject_t;
enum cudaChannelFormatKind { cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned, cudaChannelFormatKindFloat, cudaChannelFormatKindNone };
enum cudaTextureAddressMode { cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder };
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaResourceType { cudaResourceTypeArray, cudaResourceTypeMipmappedArray, cudaResourceTypeLinear, cudaResourceTypePitch2D };
enum { cudaArrayDefault = 0, cudaArrayLayered = 1, cudaArraySurfaceLoadStore = 2, cudaArrayCubemap = 4, cudaArrayTextureGather = 8 };
struct cudaChannelFormatDesc { int x, y, z, w; cudaChannelFormatKind f; };
struct cudaArray {
  char* data;
  size_t width, height, depth;
  cudaChannelFormatDesc desc;
  unsigned flags;
  size_t texel() const { return (size_t)(desc.x + desc.y + desc.z + desc.w) / 8; }
};
typedef cudaArray* cudaArray_t;
typedef const cudaArray* cudaArray_const_t;
struct cudaResourceDesc {
  cudaResourceType resType;
  struct {
    struct { cudaArray_t array; } array;
    struct { void* devPtr; cudaChannelFormatDesc desc; size_t sizeInBytes; } linear;
    struct { void* devPtr; cudaChannelFormatDesc desc; size_t width, height, pitchInBytes; } pitch2D;
  } res;
};
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
};

namespace ww {
struct Texture {
  const char* data;
  long size[3];
  size_t pitch, slice;
  cudaChannelFormatDesc desc;
  cudaTextureDesc how;
  size_t bytes;  // of a texel
  bool faces;  // of a cube, at whose edges reads are clamped
  size_t texel() const { return (size_t)(desc.x + desc.y + desc.z + desc.w) / 8; }
  // The index of a texel along an axis, or -1 for the border.
  long index(long i, int axis) const { return (unsigned long)i < (unsigned long)size[axis] ? i : outside(i, axis); }
  __attribute__((noinline)) long outside(long i, int axis) const {
    const long n = size[axis];
    if (faces) return i < 0 ? 0 : n - 1;
    const cudaTextureAddressMode mode = how.normalizedCoords || how.addressMode[axis] >= cudaAddressModeMirror ? how.addressMode[axis] : cudaAddressModeClamp;
    if (mode == cudaAddressModeBorder) return -1;
    if (mode == cudaAddressModeWrap) return (i % n + n) % n;
    if (mode == cudaAddressModeMirror && how.normalizedCoords) { const long m = (i % (2 * n) + 2 * n) % (2 * n); return m < n ? m : 2 * n - 1 - m; }
    return i < 0 ? 0 : n - 1;
  }
};
template <class T> static inline T texel(const Texture& t, long i, long j, long k) {
  T value{};
  i = t.index(i, 0); j = t.index(j, 1); k = t.index(k, 2);
  if (i < 0 || j < 0 || k < 0) return value;
  const char* at = t.data + (size_t)k * t.slice + (size_t)j * t.pitch + (size_t)i * t.bytes;
  if (t.how.readMode != cudaReadModeNormalizedFloat) {
    if (sizeof(T) == t.bytes) std::memcpy(&value, at, sizeof(T));
    else std::memcpy(&value, at, std::min(sizeof(T), t.bytes));
    return value;
  }
  float parts[4] = {};
  const bool is_signed = t.desc.f == cudaChannelFormatKindSigned;
  for (int c = 0; c < (int)(t.texel() * 8) / t.desc.x && c < 4; ++c) {
    if (t.desc.x == 8) parts[c] = is_signed ? std::fmax((signed char)at[c] / 127.0f, -1.0f) : (unsigned char)at[c] / 255.0f;
    else { unsigned short half; std::memcpy(&half, at + 2 * c, 2); parts[c] = is_signed ? std::fmax((short)half / 32767.0f, -1.0f) : half / 65535.0f; }
  }
  std::memcpy(&value, parts, sizeof(T) < sizeof parts ? sizeof(T) : sizeof parts);
  return value;
}
// Adds weight * texel, component by component: linear reads are of float types.
template <class T> static inline void blend(T& sum, float weight, const T& value) {
  float a[sizeof(T) / 4 ? sizeof(T) / 4 : 1], b[sizeof(T) / 4 ? sizeof(T) / 4 : 1];
  std::memcpy(a, &sum, sizeof(T)); std::memcpy(b, &value, sizeof(T));
  for (size_t c = 0; c < sizeof(T) / 4; ++c) a[c] += weight * b[c];
  std::memcpy(&sum, a, sizeof(T));
}
// A read with coordinates on `axes` axes; what is left of the axes has the index `layer`.
template <class T, int axes> static inline T read(cudaTextureObject_t object, float x, float y, float z, long layer = 0) {
  const Texture& t = *(const Texture*)object;
  float at[3] = {x, y, z};
  if (t.how.normalizedCoords) for (int a = 0; a < axes; ++a) at[a] *= (float)t.size[a];
  long low[3] = {layer, layer, layer};
  if (axes < 2) low[1] = 0;
  if (axes < 3 && !t.faces) low[2] = std::clamp(layer, 0l, t.size[2] - 1);
  if (t.how.filterMode == cudaFilterModePoint) {
    for (int a = 0; a < axes; ++a) low[a] = (long)std::floor(at[a]);
    return texel<T>(t, low[0], low[1], low[2]);
  }
  float share[3] = {0, 0, 0};
  for (int a = 0; a < axes; ++a) {
    const float b = at[a] - 0.5f, floor = std::floor(b);
    low[a] = (long)floor;
    share[a] = std::floor((b - floor) * 256.0f + 0.5f) / 256.0f;
  }
  T sum{};
#pragma GCC unroll 8
  for (int corner = 0; corner < 1 << axes; ++corner) {
    float weight = 1;
    long i[3] = {low[0], low[1], low[2]};
    for (int a = 0; a < axes; ++a) {
      const int up = corner >> a & 1;
      i[a] += up;
      weight *= up ? share[a] : 1 - share[a];
    }
    blend(sum, weight, texel<T>(t, i[0], i[1], i[2]));
  }
  return sum;
}
// The face of a cube that a direction meets, and where, by the guide's table (cubemap textures).
struct Face { long face; float s, t; };
static inline Face face_at(float x, float y, float z) {
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  if (ax >= ay && ax >= az) return x >= 0 ? Face{0, (-z / ax + 1) / 2, (-y / ax + 1) / 2} : Face{1, (z / ax + 1) / 2, (-y / ax + 1) / 2};
  if (ay >= az) return y >= 0 ? Face{2, (x / ay + 1) / 2, (z / ay + 1) / 2} : Face{3, (x / ay + 1) / 2, (-z / ay + 1) / 2};
  return z >= 0 ? Face{4, (x / az + 1) / 2, (-y / az + 1) / 2} : Face{5, (-x / az + 1) / 2, (-y / az + 1) / 2};
}
template <class T> static inline T read_cube(cudaTextureObject_t object, float x, float y, float z, long layer) {
  const Texture& t = *(const Texture*)object;
  const Face at = face_at(x, y, z);
  const float scale = t.how.normalizedCoords ? 1 : (float)t.size[0];  // a cube's coordinates are a direction, whatever the texture says
  return read<T, 2>(object, at.s * scale, at.t * scale, 0, at.face + 6 * layer);
}
}  // namespace ww

template <class T> static inline T tex1Dfetch(cudaTextureObject_t o, int i) {
  const ww::Texture& t = *(const ww::Texture*)o;
  return i < 0 || i >= t.size[0] ? T{} : ww::texel<T>(t, i, 0, 0);
}
template <class T> static inline T tex1D(cudaTextureObject_t o, float x) { return ww::read<T, 1>(o, x, 0, 0); }
template <class T> static inline T tex2D(cudaTextureObject_t o, float x, float y) { return ww::read<T, 2>(o, x, y, 0); }
template <class T> static inline T tex3D(cudaTextureObject_t o, float x, float y, float z) { return ww::read<T, 3>(o, x, y, z); }
template <class T> static inline T tex1DLayered(cudaTextureObject_t o, float x, int layer) { return ww::read<T, 1>(o, x, 0, 0, layer); }
template <class T> static inline T tex2DLayered(cudaTextureObject_t o, float x, float y, int layer) { return ww::read<T, 2>(o, x, y, 0, layer); }
template <class T> static inline T texCubemap(cudaTextureObject_t o, float x, float y, float z) { return ww::read_cube<T>(o, x, y, z, 0); }
template <class T> static inline T texCubemapLayered(cudaTextureObject_t o, float x, float y, float z, int layer) { return ww::read_cube<T>(o, x, y, z, layer); }
template <class T> static inline void tex1Dfetch(T* r, cudaTextureObject_t o, int i) { *r = tex1Dfetch<T>(o, i); }
template <class T> static inline void tex2D(T* r, cudaTextureObject_t o, float x, float y) { *r = tex2D<T>(o, x, y); }
template <class T> static inline void tex3D(T* r, cudaTextureObject_t o, float x, float y, float z) { *r = tex3D<T>(o, x, y, z); }

static inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) { return {x, y, z, w, f}; }
namespace ww {
template <class T> struct Channel;
#define WW_CHANNEL(T, bits, n, kind) template <> struct Channel<T> { static cudaChannelFormatDesc get() { return {bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0, kind}; } };
WW_CHANNEL(float, 32, 1, cudaChannelFormatKindFloat) WW_CHANNEL(float2, 32, 2, cudaChannelFormatKindFloat) WW_CHANNEL(float4, 32, 4, cudaChannelFormatKindFloat)
WW_CHANNEL(int, 32, 1, cudaChannelFormatKindSigned) WW_CHANNEL(int2, 32, 2, cudaChannelFormatKindSigned) WW_CHANNEL(int4, 32, 4, cudaChannelFormatKindSigned)
WW_CHANNEL(unsigned, 32, 1, cudaChannelFormatKindUnsigned) WW_CHANNEL(uint2, 32, 2, cudaChannelFormatKindUnsigned) WW_CHANNEL(uint4, 32, 4, cudaChannelFormatKindUnsigned)
WW_CHANNEL(unsigned char, 8, 1, cudaChannelFormatKindUnsigned) WW_CHANNEL(uchar2, 8, 2, cudaChannelFormatKindUnsigned) WW_CHANNEL(uchar4, 8, 4, cudaChannelFormatKindUnsigned)
WW_CHANNEL(char, 8, 1, cudaChannelFormatKindSigned) WW_CHANNEL(short, 16, 1, cudaChannelFormatKindSigned) WW_CHANNEL(unsigned short, 16, 1, cudaChannelFormatKindUnsigned)
#undef WW_CHANNEL
}  // namespace ww
template <class T> static inline cudaChannelFormatDesc cudaCreateChannelDesc() { return ww::Channel<T>::get(); }
static inline cudaError_t cudaMalloc3DArray(cudaArray_t* a, const cudaChannelFormatDesc* d, cudaExtent e, unsigned flags = 0) {
  *a = new cudaArray{nullptr, e.width, e.height, e.depth, *d, flags};
  (*a)->data = (char*)std::calloc(e.width * (e.height ? e.height : 1) * (e.depth ? e.depth : 1), (*a)->texel());
  return (*a)->data ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaMallocArray(cudaArray_t* a, const cudaChannelFormatDesc* d, size_t w, size_t h = 0, unsigned flags = 0) { return cudaMalloc3DArray(a, d, {w, h, 0}, flags); }
static inline cudaError_t cudaFreeArray(cudaArray_t a) { if (a) std::free(a->data); delete a; return cudaSuccess; }
static inline cudaError_t cudaMemcpyToArray(cudaArray_t a, size_t x, size_t y, const void* from, size_t n, int) { std::memcpy(a->data + y * a->width * a->texel() + x, from, n); return cudaSuccess; }
static inline cudaError_t cudaMemcpy2DToArray(cudaArray_t a, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height, int) {
  for (size_t r = 0; r < height; ++r) std::memcpy(a->data + (y + r) * a->width * a->texel() + x, (const char*)from + r * pitch, width);
  return cudaSuccess;
}
static inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t* o, const cudaResourceDesc* r, const cudaTextureDesc* d, const void*) {
  ww::Texture* t = new ww::Texture{};
  t->how = *d;
  if (r->resType == cudaResourceTypeArray) {
    const cudaArray& a = *r->res.array.array;
    t->data = a.data; t->desc = a.desc;
    t->size[0] = (long)a.width; t->size[1] = a.height ? (long)a.height : 1; t->size[2] = a.depth ? (long)a.depth : 1;
    t->pitch = a.width * a.texel(); t->slice = t->pitch * t->size[1];
    t->faces = (a.flags & cudaArrayCubemap) != 0;
  } else if (r->resType == cudaResourceTypeLinear) {
    t->data = (const char*)r->res.linear.devPtr; t->desc = r->res.linear.desc;
    t->size[0] = (long)(r->res.linear.sizeInBytes / t->texel()); t->size[1] = t->size[2] = 1;
  } else if (r->resType == cudaResourceTypePitch2D) {
    t->data = (const char*)r->res.pitch2D.devPtr; t->desc = r->res.pitch2D.desc;
    t->size[0] = (long)r->res.pitch2D.width; t->size[1] = (long)r->res.pitch2D.height; t->size[2] = 1;
    t->pitch = r->res.pitch2D.pitchInBytes;
  } else { delete t; return cudaErrorInvalidValue; }
  t->bytes = t->texel();
  *o = (cudaTextureObject_t)t;
  return cudaSuccess;
}
static inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t o) { delete (ww::Texture*)o; return cudaSuccess; }
struct cudaMemcpy3DParms {
  cudaArray_t srcArray; cudaPos srcPos; cudaPitchedPtr srcPtr;
  cudaArray_t dstArray; cudaPos dstPos; cudaPitchedPtr dstPtr;
  cudaExtent extent; cudaMemcpyKind kind;
};
static inline cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {  // with an array, widths and positions count its elements
  const size_t unit = p->srcArray ? p->srcArray->texel() : p->dstArray ? p->dstArray->texel() : 1;
  const auto row = [](const cudaArray* a, const cudaPitchedPtr& q, const cudaPos& at, size_t unit, size_t y, size_t z) {
    if (a) return a->data + (((z + at.z) * std::max(a->height, (size_t)1) + y + at.y) * a->width + at.x) * unit;
    return (char*)q.ptr + ((z + at.z) * q.ysize + y + at.y) * q.pitch + at.x * (unit > 1 ? 1 : unit);
  };
  for (size_t z = 0; z < std::max(p->extent.depth, (size_t)1); ++z)
    for (size_t y = 0; y < std::max(p->extent.height, (size_t)1); ++y)
      std::memcpy(row(p->dstArray, p->dstPtr, p->dstPos, unit, y, z), row(p->srcArray, p->srcPtr, p->srcPos, unit, y, z), p->extent.width * unit);
  return ww::status();
}
static inline cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t = nullptr) { return cudaMemcpy3D(p); }
static inline cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t a, size_t x, size_t y, size_t n, int) { std::memcpy(to, a->data + y * a->width * a->texel() + x, n); return ww::status(); }
static inline cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t a, size_t x, size_t y, size_t width, size_t height, int) {
  for (size_t r = 0; r < height; ++r) std::memcpy((char*)to + r * pitch, a->data + (y + r) * a->width * a->texel() + x, width);
  return ww::status();
}
