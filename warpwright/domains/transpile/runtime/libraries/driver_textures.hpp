// The driver's arrays, copies of rectangles and texture objects: the runtime's under other names.
typedef cudaArray_t CUarray;
typedef cudaTextureObject_t CUtexObject;
enum CUarray_format { CU_AD_FORMAT_UNSIGNED_INT8 = 1, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT8 = 8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_HALF = 16, CU_AD_FORMAT_FLOAT = 32 };
enum CUmemorytype { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_UNIFIED };
enum CUaddress_mode { CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_MIRROR, CU_TR_ADDRESS_MODE_BORDER };
enum CUfilter_mode { CU_TR_FILTER_MODE_POINT, CU_TR_FILTER_MODE_LINEAR };
enum { CU_TRSF_READ_AS_INTEGER = 1, CU_TRSF_NORMALIZED_COORDINATES = 2, CU_TRSF_SRGB = 16 };
enum CUresourcetype { CU_RESOURCE_TYPE_ARRAY, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, CU_RESOURCE_TYPE_LINEAR, CU_RESOURCE_TYPE_PITCH2D };
struct CUDA_ARRAY_DESCRIPTOR { size_t Width, Height; CUarray_format Format; unsigned NumChannels; };
struct CUDA_ARRAY3D_DESCRIPTOR { size_t Width, Height, Depth; CUarray_format Format; unsigned NumChannels, Flags; };
struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY; CUmemorytype srcMemoryType; const void* srcHost; CUdeviceptr srcDevice; CUarray srcArray; size_t srcPitch;
  size_t dstXInBytes, dstY; CUmemorytype dstMemoryType; void* dstHost; CUdeviceptr dstDevice; CUarray dstArray; size_t dstPitch;
  size_t WidthInBytes, Height;
};
struct CUDA_RESOURCE_DESC {
  CUresourcetype resType;
  union {
    struct { CUarray hArray; } array;
    struct { CUdeviceptr devPtr; CUarray_format format; unsigned numChannels; size_t sizeInBytes; } linear;
    struct { CUdeviceptr devPtr; CUarray_format format; unsigned numChannels; size_t width, height, pitchInBytes; } pitch2D;
  } res;
  unsigned flags;
};
struct CUDA_TEXTURE_DESC { CUaddress_mode addressMode[3]; CUfilter_mode filterMode; unsigned flags, maxAnisotropy; CUfilter_mode mipmapFilterMode; float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp, borderColor[4]; int reserved[12]; };
struct CUDA_RESOURCE_VIEW_DESC { int unused; };
namespace ww {
static inline cudaChannelFormatDesc channels(CUarray_format f, unsigned n) {
  const int bits = f == CU_AD_FORMAT_UNSIGNED_INT8 || f == CU_AD_FORMAT_SIGNED_INT8 ? 8 : f == CU_AD_FORMAT_UNSIGNED_INT16 || f == CU_AD_FORMAT_SIGNED_INT16 || f == CU_AD_FORMAT_HALF ? 16 : 32;
  const auto kind = f >= CU_AD_FORMAT_HALF ? cudaChannelFormatKindFloat : f >= CU_AD_FORMAT_SIGNED_INT8 ? cudaChannelFormatKindSigned : cudaChannelFormatKindUnsigned;
  return {bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0, kind};
}
static inline char* corner(CUmemorytype type, const void* host, CUdeviceptr device, CUarray array, size_t& pitch, size_t x, size_t y, size_t width) {
  if (type == CU_MEMORYTYPE_ARRAY) pitch = array->width * array->texel();
  if (!pitch) pitch = width;
  char* const base = type == CU_MEMORYTYPE_ARRAY ? array->data : type == CU_MEMORYTYPE_HOST ? (char*)host : (char*)device;
  return base + y * pitch + x;
}
}  // namespace ww
static inline CUresult cuArrayCreate(CUarray* a, const CUDA_ARRAY_DESCRIPTOR* d) { const auto c = ww::channels(d->Format, d->NumChannels); return ww::driver_status(cudaMallocArray(a, &c, d->Width, d->Height)); }
static inline CUresult cuArray3DCreate(CUarray* a, const CUDA_ARRAY3D_DESCRIPTOR* d) { const auto c = ww::channels(d->Format, d->NumChannels); return ww::driver_status(cudaMalloc3DArray(a, &c, {d->Width, d->Height, d->Depth}, d->Flags)); }
static inline CUresult cuArrayDestroy(CUarray a) { return ww::driver_status(cudaFreeArray(a)); }
static inline CUresult cuMemcpy2D(const CUDA_MEMCPY2D* p) {
  size_t from_pitch = p->srcPitch, to_pitch = p->dstPitch;
  const char* const from = ww::corner(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, from_pitch, p->srcXInBytes, p->srcY, p->WidthInBytes);
  char* const to = ww::corner(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, to_pitch, p->dstXInBytes, p->dstY, p->WidthInBytes);
  return ww::driver_status(cudaMemcpy2D(to, to_pitch, from, from_pitch, p->WidthInBytes, p->Height, 0));
}
static inline CUresult cuTexObjectCreate(CUtexObject* o, const CUDA_RESOURCE_DESC* r, const CUDA_TEXTURE_DESC* t, const CUDA_RESOURCE_VIEW_DESC*) {
  cudaResourceDesc resource{};
  cudaTextureDesc how{};
  resource.resType = (cudaResourceType)r->resType;
  cudaChannelFormatDesc c{};
  if (r->resType == CU_RESOURCE_TYPE_ARRAY) resource.res.array.array = r->res.array.hArray, c = r->res.array.hArray->desc;
  if (r->resType == CU_RESOURCE_TYPE_LINEAR) c = ww::channels(r->res.linear.format, r->res.linear.numChannels), resource.res.linear = {(void*)r->res.linear.devPtr, c, r->res.linear.sizeInBytes};
  if (r->resType == CU_RESOURCE_TYPE_PITCH2D) c = ww::channels(r->res.pitch2D.format, r->res.pitch2D.numChannels), resource.res.pitch2D = {(void*)r->res.pitch2D.devPtr, c, r->res.pitch2D.width, r->res.pitch2D.height, r->res.pitch2D.pitchInBytes};
  for (int a = 0; a < 3; ++a) how.addressMode[a] = (cudaTextureAddressMode)t->addressMode[a];
  how.filterMode = (cudaTextureFilterMode)t->filterMode;
  how.normalizedCoords = (t->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  how.readMode = c.f == cudaChannelFormatKindFloat || c.x == 32 || (t->flags & CU_TRSF_READ_AS_INTEGER) ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  std::copy(t->borderColor, t->borderColor + 4, how.borderColor);
  return ww::driver_status(cudaCreateTextureObject(o, &resource, &how, nullptr));
}
static inline CUresult cuTexObjectDestroy(CUtexObject o) { return ww::driver_status(cudaDestroyTextureObject(o)); }
