// CUDA graphs: what is captured or added is kept as functions, in an order that respects what each waits for, and cudaGraphLaunch runs them one by one.
#include <functional>
#include <map>
#include <memory>
#include <vector>
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive, cudaStreamCaptureStatusInvalidated };
enum cudaGraphNodeType { cudaGraphNodeTypeKernel, cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeMemset, cudaGraphNodeTypeHost, cudaGraphNodeTypeGraph, cudaGraphNodeTypeEmpty, cudaGraphNodeTypeWaitEvent,
                         cudaGraphNodeTypeEventRecord, cudaGraphNodeTypeMemAlloc = 10, cudaGraphNodeTypeMemFree = 11, cudaGraphNodeTypeConditional = 13 };
enum cudaGraphExecUpdateResult { cudaGraphExecUpdateSuccess, cudaGraphExecUpdateError, cudaGraphExecUpdateErrorTopologyChanged };
enum { cudaGraphInstantiateFlagAutoFreeOnLaunch = 1, cudaGraphInstantiateFlagUpload = 2, cudaGraphInstantiateFlagDeviceLaunch = 4, cudaStreamAddCaptureDependencies = 0, cudaStreamSetCaptureDependencies = 1, cudaGraphCondAssignDefault = 1 };
enum cudaGraphConditionalNodeType { cudaGraphCondTypeIf, cudaGraphCondTypeWhile, cudaGraphCondTypeSwitch };
struct CUgraph_st;
struct CUgraphNode_st {
  cudaGraphNodeType type;
  std::function<void()> run;
  std::vector<CUgraphNode_st*> before;
};
typedef CUgraphNode_st* cudaGraphNode_t;
struct CUgraph_st { std::vector<std::shared_ptr<CUgraphNode_st>> nodes; };
typedef CUgraph_st* cudaGraph_t;
struct CUgraphExec_st {
  std::vector<std::pair<cudaGraphNode_t, std::function<void()>>> steps;
  void run() const { for (const auto& step : steps) if (step.second) step.second(); }
};
typedef CUgraphExec_st* cudaGraphExec_t;
typedef unsigned* cudaGraphConditionalHandle;
struct cudaKernelNodeParams { void* func; dim3 gridDim, blockDim; unsigned sharedMemBytes; void** kernelParams; void** extra; };
struct cudaMemsetParams { void* dst; size_t pitch; unsigned value, elementSize; size_t width, height; };
struct cudaHostNodeParams { cudaHostFn_t fn; void* userData; };
struct cudaMemAllocNodeParams { cudaMemPoolProps poolProps; const cudaMemAccessDesc* accessDescs; size_t accessDescCount, bytesize; void* dptr; };
struct cudaConditionalNodeParams { cudaGraphConditionalHandle handle; cudaGraphConditionalNodeType type; unsigned size; cudaGraph_t* phGraph_out; };
struct cudaGraphNodeParams { cudaGraphNodeType type; cudaConditionalNodeParams conditional; cudaKernelNodeParams kernel; cudaMemsetParams memset; cudaHostNodeParams host; };
struct cudaGraphExecUpdateResultInfo { cudaGraphExecUpdateResult result; cudaGraphNode_t errorNode, errorFromNode; };
typedef int cudaGraphEdgeData;

namespace ww {
inline std::map<const void*, size_t>& memory_of_graphs() { static std::map<const void*, size_t> known; return known; }  // theirs for good: a graph may run again
inline cudaGraph_t& graph_of_capture() { static cudaGraph_t graph = nullptr; return graph; }
static inline cudaGraphNode_t add(cudaGraph_t graph, cudaGraphNodeType type, std::function<void()> run, const cudaGraphNode_t* before = nullptr, size_t count = 0) {
  graph->nodes.push_back(std::make_shared<CUgraphNode_st>(CUgraphNode_st{type, std::move(run), std::vector<cudaGraphNode_t>(before, before + (before ? count : 0))}));
  return graph->nodes.back().get();
}
static inline void capture(cudaGraph_t graph) { graph_of_capture() = graph; being_captured() = graph != nullptr; }
static inline bool record(cudaGraphNodeType type, std::function<void()> run) {  // whether a capture took it
  if (!graph_of_capture()) return false;
  add(graph_of_capture(), type, std::move(run));
  return true;
}
template <class F, class... A> static inline void go(F run, const Launch& launch, A... a) {
  if (!record(cudaGraphNodeTypeKernel, [=]() mutable { run(launch, a...); })) run(launch, a...);
}
static inline std::function<void()> kernel_step(const cudaKernelNodeParams& p) {  // the arguments are copied now, as the kernel's types say
  const KernelValue* known = value_at(p.func);
  if (!known) return [] { fail("a graph has a kernel that is not known by its pointer"); };
  const auto call = known->bind(known->launcher, p.kernelParams);
  const Launch launch(p.gridDim, p.blockDim, p.sharedMemBytes);
  return [=] { call(launch); };
}
static inline std::function<void()> memset_step(const cudaMemsetParams& p) {
  return [=] {
    for (size_t y = 0; y < p.height; ++y) for (size_t x = 0; x < p.width; ++x) std::memcpy((char*)p.dst + y * p.pitch + x * p.elementSize, &p.value, p.elementSize);
  };
}
static inline void visit(const std::shared_ptr<CUgraphNode_st>& node, const std::map<cudaGraphNode_t, std::shared_ptr<CUgraphNode_st>>& all, std::map<cudaGraphNode_t, bool>& seen, CUgraphExec_st& into) {
  if (std::exchange(seen[node.get()], true)) return;
  for (const cudaGraphNode_t one : node->before) if (const auto at = all.find(one); at != all.end()) visit(at->second, all, seen, into);
  into.steps.emplace_back(node.get(), node->run);
}
static inline CUgraphExec_st steps(const CUgraph_st& graph) {
  std::map<cudaGraphNode_t, std::shared_ptr<CUgraphNode_st>> all;
  std::map<cudaGraphNode_t, bool> seen;
  CUgraphExec_st made;
  for (const auto& node : graph.nodes) all[node.get()] = node;
  for (const auto& node : graph.nodes) visit(node, all, seen, made);
  return made;
}
static inline cudaError_t added(cudaGraphNode_t* node, cudaGraphNode_t made) { if (node) *node = made; return cudaSuccess; }
}  // namespace ww

static inline cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) { ww::capture(new CUgraph_st); return cudaSuccess; }
static inline cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t graph, const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t, cudaStreamCaptureMode) { ww::capture(graph); return cudaSuccess; }
static inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  if (!ww::graph_of_capture()) return ww::refused() = cudaErrorIllegalState;
  if (graph) *graph = ww::graph_of_capture();
  ww::capture(nullptr);
  return cudaSuccess;
}
static inline cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* s) { *s = ww::graph_of_capture() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone; return cudaSuccess; }
template <class... More> static inline cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus* status, unsigned long long* id = nullptr, cudaGraph_t* graph = nullptr, const cudaGraphNode_t** nodes = nullptr, More... more) {
  cudaStreamIsCapturing(s, status);
  static cudaGraphNode_t last;
  const cudaGraph_t taken = ww::graph_of_capture();
  if (id) *id = 1;
  if (graph) *graph = taken;
  last = taken && !taken->nodes.empty() ? taken->nodes.back().get() : nullptr;
  if (nodes) *nodes = &last;
  const auto count = [&](auto p) { if constexpr (std::is_same_v<decltype(p), size_t*>) { if (p) *p = last != nullptr; } };
  (count(more), ...);
  return cudaSuccess;
}
template <class... A> static inline cudaError_t cudaStreamGetCaptureInfo_v2(A... a) { return cudaStreamGetCaptureInfo(a...); }
template <class... A> static inline cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, A...) { return cudaSuccess; }  // what is captured runs in its own order
static inline cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) { *graph = new CUgraph_st; return cudaSuccess; }
static inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { delete graph; return cudaSuccess; }
static inline cudaError_t cudaGraphClone(cudaGraph_t* copy, cudaGraph_t graph) { *copy = new CUgraph_st(*graph); return cudaSuccess; }
static inline cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes) for (size_t i = 0; i < *count && i < graph->nodes.size(); ++i) nodes[i] = graph->nodes[i].get();
  *count = graph->nodes.size();
  return cudaSuccess;
}
static inline cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) { *type = node->type; return cudaSuccess; }
static inline cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t n) { for (size_t i = 0; i < n; ++i) to[i]->before.push_back(from[i]); return cudaSuccess; }
static inline cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t n) { return ww::added(node, ww::add(graph, cudaGraphNodeTypeEmpty, nullptr, before, n)); }
static inline cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t n, const cudaKernelNodeParams* p) {
  return ww::added(node, ww::add(graph, cudaGraphNodeTypeKernel, ww::kernel_step(*p), before, n));
}
static inline cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t n, const cudaMemsetParams* p) {
  return ww::added(node, ww::add(graph, cudaGraphNodeTypeMemset, ww::memset_step(*p), before, n));
}
static inline cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t n, const cudaHostNodeParams* p) {
  const cudaHostNodeParams kept = *p;
  return ww::added(node, ww::add(graph, cudaGraphNodeTypeHost, [kept] { kept.fn(kept.userData); }, before, n));
}
static inline cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t n, void* to, const void* from, size_t bytes, int) {
  return ww::added(node, ww::add(graph, cudaGraphNodeTypeMemcpy, [=] { cudaMemcpy(to, from, bytes, cudaMemcpyDefault); }, before, n));
}
static inline cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t n, const cudaMemcpy3DParms* p) {
  const cudaMemcpy3DParms kept = *p;
  return ww::added(node, ww::add(graph, cudaGraphNodeTypeMemcpy, [kept] { cudaMemcpy3D(&kept); }, before, n));
}
static inline cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t n, cudaMemAllocNodeParams* p) {
  ww::allocate(&p->dptr, p->bytesize);  // the address has to be known now
  ww::memory_of_graphs()[p->dptr] = p->bytesize;
  return ww::added(node, ww::add(graph, cudaGraphNodeTypeMemAlloc, nullptr, before, n));
}
static inline cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t n, void*) { return ww::added(node, ww::add(graph, cudaGraphNodeTypeMemFree, nullptr, before, n)); }
static inline cudaError_t cudaDeviceGraphMemTrim(int) { return cudaSuccess; }
enum cudaGraphMemAttributeType { cudaGraphMemAttrUsedMemCurrent, cudaGraphMemAttrUsedMemHigh, cudaGraphMemAttrReservedMemCurrent, cudaGraphMemAttrReservedMemHigh };
static inline cudaError_t cudaDeviceGetGraphMemAttribute(int, cudaGraphMemAttributeType, void* value) {  // what graphs have they keep: current and highest are one
  unsigned long long all = 0;
  for (const auto& one : ww::memory_of_graphs()) all += one.second;
  std::memcpy(value, &all, sizeof all);
  return cudaSuccess;
}
static inline cudaError_t cudaDeviceSetGraphMemAttribute(int, cudaGraphMemAttributeType, void*) { return cudaSuccess; }
static inline cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t n, cudaGraph_t child) {
  const auto inner = std::make_shared<CUgraphExec_st>(ww::steps(*child));
  const auto kept = std::make_shared<CUgraph_st>(*child);
  return ww::added(node, ww::add(graph, cudaGraphNodeTypeGraph, [inner, kept] { inner->run(); }, before, n));
}
static inline cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph, unsigned value = 0, unsigned flags = 0) {
  unsigned* const made = new unsigned(value);
  *handle = made;
  if (flags & cudaGraphCondAssignDefault) ww::add(graph, cudaGraphNodeTypeEmpty, [=] { *made = value; });
  return cudaSuccess;
}
static inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) { *handle = value; }
static inline cudaError_t ww_add_conditional(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t n, cudaGraphNodeParams* p) {
  if (p->type == cudaGraphNodeTypeKernel) return cudaGraphAddKernelNode(node, graph, before, n, &p->kernel);
  if (p->type != cudaGraphNodeTypeConditional) return ww::refused() = cudaErrorNotSupported;
  const cudaConditionalNodeParams c = p->conditional;
  const unsigned count = std::max(c.size, 1u);
  auto* const bodies = new std::vector<CUgraph_st>(count);
  auto* const out = new std::vector<cudaGraph_t>(count);
  for (unsigned i = 0; i < count; ++i) (*out)[i] = &(*bodies)[i];
  p->conditional.phGraph_out = out->data();
  const auto body = [=](unsigned i) { ww::steps((*bodies)[i]).run(); };
  return ww::added(node, ww::add(graph, cudaGraphNodeTypeConditional, [=] {
    if (c.type == cudaGraphCondTypeWhile) while (*c.handle && !ww::failed()) body(0);
    else if (c.type == cudaGraphCondTypeSwitch) { if (*c.handle < count) body(*c.handle); }
    else if (*c.handle) body(0);
    else if (count > 1) body(1);
  }, before, n));
}
static inline cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t n, cudaGraphNodeParams* p) { return ww_add_conditional(node, graph, before, n, p); }
static inline cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before, const cudaGraphEdgeData*, size_t n, cudaGraphNodeParams* p) { return ww_add_conditional(node, graph, before, n, p); }
template <class... A> static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t graph, A...) { *e = new CUgraphExec_st(ww::steps(*graph)); return cudaSuccess; }
static inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* e, cudaGraph_t graph, unsigned long long = 0) { return cudaGraphInstantiate(e, graph); }
static inline cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t) {
  if (!ww::record(cudaGraphNodeTypeGraph, [=] { e->run(); })) e->run();
  return ww::status();
}
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) { delete e; return cudaSuccess; }
static inline cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node, const cudaKernelNodeParams* p) {
  for (auto& step : e->steps) if (step.first == node) { step.second = ww::kernel_step(*p); return cudaSuccess; }
  return ww::refused() = cudaErrorInvalidValue;
}
static inline cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* p) { node->run = ww::kernel_step(*p); return cudaSuccess; }
static inline cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node, const cudaMemsetParams* p) {
  for (auto& step : e->steps) if (step.first == node) { step.second = ww::memset_step(*p); return cudaSuccess; }
  return ww::refused() = cudaErrorInvalidValue;
}
static inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t e, cudaGraph_t graph, cudaGraphNode_t*, cudaGraphExecUpdateResult* result) {
  CUgraphExec_st next = ww::steps(*graph);
  *result = next.steps.size() == e->steps.size() ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
  if (*result != cudaGraphExecUpdateSuccess) return ww::refused() = cudaErrorGraphExecUpdateFailure;
  for (size_t i = 0; i < next.steps.size(); ++i) next.steps[i].first = e->steps[i].first;
  *e = std::move(next);
  return cudaSuccess;
}
static inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t e, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) { return cudaGraphExecUpdate(e, graph, &info->errorNode, &info->result); }
template <class... A> static inline cudaError_t cudaGraphDebugDotPrint(A...) { return cudaSuccess; }

namespace ww {  // what a stream is asked to do while it is captured is kept
static inline cudaError_t kept_copy(void* to, const void* from, size_t n, int kind, cudaStream_t s = nullptr) { return record(cudaGraphNodeTypeMemcpy, [=] { cudaMemcpy(to, from, n, kind); }) ? cudaSuccess : cudaMemcpyAsync(to, from, n, kind, s); }
static inline cudaError_t kept_set(void* p, int v, size_t n, cudaStream_t s = nullptr) { return record(cudaGraphNodeTypeMemset, [=] { cudaMemset(p, v, n); }) ? cudaSuccess : cudaMemsetAsync(p, v, n, s); }
static inline cudaError_t kept_call(cudaStream_t s, cudaHostFn_t call, void* data) { return record(cudaGraphNodeTypeHost, [=] { call(data); }) ? cudaSuccess : cudaLaunchHostFunc(s, call, data); }
template <class T> static inline cudaError_t kept_memory(T** p, size_t n, cudaStream_t s) {
  const cudaError_t code = cudaMallocAsync(p, n, s);
  if (record(cudaGraphNodeTypeMemAlloc, nullptr)) memory_of_graphs()[*p] = n;
  return code;
}
static inline cudaError_t kept_free(const void* p, cudaStream_t s = nullptr) { return record(cudaGraphNodeTypeMemFree, nullptr) || memory_of_graphs().count(p) ? cudaSuccess : cudaFreeAsync(p, s); }
}  // namespace ww
#define cudaMemcpyAsync ww::kept_copy
#define cudaMemsetAsync ww::kept_set
#define cudaLaunchHostFunc ww::kept_call
#define cudaMallocAsync ww::kept_memory
#define cudaFreeAsync ww::kept_free
#define cudaFree(p) ww::kept_free(p)
