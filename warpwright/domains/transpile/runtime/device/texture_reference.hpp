// Texture references (CUDA up to 11): a texture of file scope that the host binds to memory or to an array; reads are those of texture objects.
struct textureReference {
  int normalized;
  cudaTextureFilterMode filterMode;
  cudaTextureAddressMode addressMode[3];
  cudaChannelFormatDesc channelDesc;
  int sRGB;
  ww::Texture bound;
};
template <class T, int axes = 1, cudaTextureReadMode mode = cudaReadModeElementType> struct texture : textureReference {
  texture(int norm = 0, cudaTextureFilterMode filter = cudaFilterModePoint, cudaTextureAddressMode address = cudaAddressModeClamp) : textureReference{} {
    normalized = norm;
    filterMode = filter;
    for (auto& one : addressMode) one = address;
    bound.how.readMode = mode;
  }
};
namespace ww {
template <class T, cudaTextureReadMode mode> struct Read { typedef T type; };
template <> struct Read<unsigned char, cudaReadModeNormalizedFloat> { typedef float type; };
template <> struct Read<signed char, cudaReadModeNormalizedFloat> { typedef float type; };
template <> struct Read<char, cudaReadModeNormalizedFloat> { typedef float type; };
template <> struct Read<short, cudaReadModeNormalizedFloat> { typedef float type; };
template <> struct Read<unsigned short, cudaReadModeNormalizedFloat> { typedef float type; };
template <> struct Read<uchar4, cudaReadModeNormalizedFloat> { typedef float4 type; };
static inline size_t texel_bytes(const cudaChannelFormatDesc& d) { return (size_t)(d.x + d.y + d.z + d.w) / 8; }
// The reference's settings, as they are when it is bound: programs that change them later bind again.
static inline cudaError_t bind(const textureReference& reference, const void* data, cudaChannelFormatDesc desc, long w, long h, long d, size_t pitch) {
  Texture& t = const_cast<textureReference&>(reference).bound;
  t.data = (const char*)data;
  t.desc = desc;
  t.bytes = texel_bytes(desc);
  t.size[0] = w; t.size[1] = h ? h : 1; t.size[2] = d ? d : 1;
  t.pitch = pitch;
  t.slice = pitch * (size_t)t.size[1];
  t.how.filterMode = reference.filterMode;
  t.how.normalizedCoords = reference.normalized;
  for (int a = 0; a < 3; ++a) t.how.addressMode[a] = reference.addressMode[a];
  return cudaSuccess;
}
static inline cudaError_t bind_line(const textureReference& r, size_t* offset, const void* p, const cudaChannelFormatDesc& d, size_t bytes) {
  if (offset) *offset = 0;
  return bind(r, p, d, (long)(bytes / texel_bytes(d)), 1, 1, bytes);
}
static inline cudaError_t bind_array(const textureReference& r, const cudaArray* a, const cudaChannelFormatDesc& d) {
  return bind(r, a->data, d, (long)a->width, (long)a->height, (long)a->depth, a->width * a->texel());
}
static inline unsigned long long object(const textureReference& r) { return (unsigned long long)&r.bound; }
}  // namespace ww

static inline cudaError_t cudaBindTexture(size_t* o, const textureReference* r, const void* p, const cudaChannelFormatDesc* d, size_t n = 0xffffffffu) { return ww::bind_line(*r, o, p, *d, n); }
static inline cudaError_t cudaBindTexture(size_t* o, const textureReference& r, const void* p, const cudaChannelFormatDesc& d, size_t n = 0xffffffffu) { return ww::bind_line(r, o, p, d, n); }
template <class T, int axes, cudaTextureReadMode mode> static inline cudaError_t cudaBindTexture(size_t* o, const texture<T, axes, mode>& r, const void* p, size_t n = 0xffffffffu) {
  return ww::bind_line(r, o, p, cudaCreateChannelDesc<T>(), n);
}
static inline cudaError_t cudaBindTexture2D(size_t* o, const textureReference& r, const void* p, const cudaChannelFormatDesc& d, size_t w, size_t h, size_t pitch) {
  if (o) *o = 0;
  return ww::bind(r, p, d, (long)w, (long)h, 1, pitch);
}
static inline cudaError_t cudaBindTexture2D(size_t* o, const textureReference* r, const void* p, const cudaChannelFormatDesc* d, size_t w, size_t h, size_t pitch) { return cudaBindTexture2D(o, *r, p, *d, w, h, pitch); }
template <class T, int axes, cudaTextureReadMode mode> static inline cudaError_t cudaBindTexture2D(size_t* o, const texture<T, axes, mode>& r, const void* p, size_t w, size_t h, size_t pitch) {
  return cudaBindTexture2D(o, r, p, cudaCreateChannelDesc<T>(), w, h, pitch);
}
static inline cudaError_t cudaBindTextureToArray(const textureReference& r, const cudaArray* a, const cudaChannelFormatDesc& d) { return ww::bind_array(r, a, d); }
static inline cudaError_t cudaBindTextureToArray(const textureReference& r, const cudaArray* a) { return ww::bind_array(r, a, a->desc); }
static inline cudaError_t cudaBindTextureToArray(const textureReference* r, const cudaArray* a, const cudaChannelFormatDesc* d) { return ww::bind_array(*r, a, *d); }
static inline cudaError_t cudaUnbindTexture(const textureReference&) { return cudaSuccess; }
static inline cudaError_t cudaUnbindTexture(const textureReference*) { return cudaSuccess; }
static inline cudaError_t cudaGetTextureAlignmentOffset(size_t* o, const textureReference&) { *o = 0; return cudaSuccess; }
#define WW_READ template <class T, int axes, cudaTextureReadMode mode> static inline typename ww::Read<T, mode>::type
WW_READ tex1Dfetch(const texture<T, axes, mode>& r, int i) { return tex1Dfetch<typename ww::Read<T, mode>::type>(ww::object(r), i); }
WW_READ tex1D(const texture<T, axes, mode>& r, float x) { return tex1D<typename ww::Read<T, mode>::type>(ww::object(r), x); }
WW_READ tex2D(const texture<T, axes, mode>& r, float x, float y) { return tex2D<typename ww::Read<T, mode>::type>(ww::object(r), x, y); }
WW_READ tex3D(const texture<T, axes, mode>& r, float x, float y, float z) { return tex3D<typename ww::Read<T, mode>::type>(ww::object(r), x, y, z); }
#undef WW_READ
