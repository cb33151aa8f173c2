// NVTX marks ranges for a profiler: there is none.
typedef unsigned long long nvtxRangeId_t;
typedef void* nvtxDomainHandle_t;
struct nvtxEventAttributes_t { unsigned short version, size; unsigned category; int colorType; unsigned color; int payloadType, reserved0; union { unsigned long long ullValue; } payload; int messageType; union { const char* ascii; } message; };
enum { NVTX_VERSION = 3, NVTX_EVENT_ATTRIB_STRUCT_SIZE = sizeof(nvtxEventAttributes_t), NVTX_COLOR_ARGB = 1, NVTX_MESSAGE_TYPE_ASCII = 1 };
static inline int nvtxRangePush(const char*) { return 0; }
static inline int nvtxRangePushA(const char*) { return 0; }
static inline int nvtxRangePushEx(const nvtxEventAttributes_t*) { return 0; }
static inline int nvtxRangePop() { return 0; }
static inline void nvtxMark(const char*) {}
static inline void nvtxMarkA(const char*) {}
static inline nvtxRangeId_t nvtxRangeStart(const char*) { return 0; }
static inline nvtxRangeId_t nvtxRangeStartA(const char*) { return 0; }
static inline void nvtxRangeEnd(nvtxRangeId_t) {}
