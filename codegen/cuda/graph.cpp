// See graph.h. Types and numbers are those of cuda.h: CUgraph, CUgraphNode, CUgraphExec and CUstream are pointers.
#include "codegen/cuda/graph.h"

#include "codegen/cuda/driver.h"
#include "codegen/cuda/library.h"

namespace dynvm::codegen::cuda {
namespace {

// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNodeParams {
  void* function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};

// CUDA_MEMCPY3D_v2: a row of bytes.
struct CopyParams {
  size_t from_x, from_y, from_z, from_level;
  unsigned from_type;
  const void* from_host;
  const void* from;
  void* from_array;
  void* reserved_from;
  size_t from_pitch, from_height;
  size_t to_x, to_y, to_z, to_level;
  unsigned to_type;
  void* to_host;
  void* to;
  void* to_array;
  void* reserved_to;
  size_t to_pitch, to_height;
  size_t width, height, depth;
};
constexpr unsigned kDeviceMemory = 2;  // CU_MEMORYTYPE_DEVICE

constexpr int kThreadLocal = 1;         // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

struct Driver {
  int (*begin_capture)(void*, int) = nullptr;
  int (*end_capture)(void*, void**) = nullptr;
  int (*destroy_graph)(void*) = nullptr;
  int (*instantiate)(void**, void*, unsigned long long) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*launch)(void*, void*) = nullptr;
  int (*set_kernel)(void*, void*, const KernelNodeParams*) = nullptr;
  int (*set_copy)(void*, void*, const CopyParams*, void* context) = nullptr;
  int (*context)(void**) = nullptr;
  int (*is_capturing)(void*, int*) = nullptr;
  int (*capture_info)(void*, int* status, uint64_t* id, void** graph, void* const** dependencies, size_t* count) = nullptr;
  std::string missing;

  Driver() {
    Library library({"libcuda.so.1"});
    library.find(&begin_capture, "cuStreamBeginCapture_v2");
    library.find(&end_capture, "cuStreamEndCapture");
    library.find(&destroy_graph, "cuGraphDestroy");
    library.find(&instantiate, "cuGraphInstantiateWithFlags");
    library.find(&destroy, "cuGraphExecDestroy");
    library.find(&launch, "cuGraphLaunch");
    library.find(&set_kernel, "cuGraphExecKernelNodeSetParams_v2");
    library.find(&set_copy, "cuGraphExecMemcpyNodeSetParams");
    library.find(&context, "cuCtxGetCurrent");
    library.find(&is_capturing, "cuStreamIsCapturing");
    library.find(&capture_info, "cuStreamGetCaptureInfo_v2");
    missing = library.missing();
  }
};

const Driver& driver() {
  static const Driver the_driver;
  return the_driver;
}

}  // namespace

std::string graphs_missing() { return driver().missing; }

int begin_capture(void* stream) { return driver().begin_capture(stream, kThreadLocal); }

base::Status Graph::end_capture(int device, void* stream, std::unique_ptr<Graph>* out) {
  const InContext context(device);
  std::unique_ptr<Graph> graph(new Graph(device));
  int error = driver().end_capture(stream, &graph->captured_);
  if (error == 0) error = driver().instantiate(&graph->exec_, graph->captured_, 0);
  if (error != 0) return base::Status::failure(error_text(error));
  *out = std::move(graph);
  return {};
}

Graph::~Graph() {
  if (exec_ != nullptr) driver().destroy(exec_);  // one that still runs goes when it is done
  if (captured_ != nullptr) driver().destroy_graph(captured_);
}

int Graph::set_kernel(void* node, Launch& launch) {
  const InContext in(device_);
  void* parameters[] = {launch.parameter.data()};
  const KernelNodeParams params{launch.function, launch.grid_x, launch.grid_y, 1, launch.block, 1, 1, launch.shared_bytes, parameters, nullptr, nullptr, nullptr};
  return driver().set_kernel(exec_, node, &params);
}

int Graph::set_copy(void* node, void* to, const void* from, size_t bytes) {
  const InContext in(device_);
  CopyParams params{};
  params.from_type = params.to_type = kDeviceMemory;
  params.from = from;
  params.to = to;
  params.from_pitch = params.to_pitch = params.width = bytes;
  params.from_height = params.to_height = params.height = params.depth = 1;
  void* context = nullptr;
  if (const int error = driver().context(&context)) return error;
  return driver().set_copy(exec_, node, &params, context);
}

int Graph::launch(void* stream) {
  const InContext in(device_);
  return driver().launch(exec_, stream);
}

bool is_capturing(int device, void* stream) {
  const InContext context(device);
  int status = 0;
  return driver().is_capturing(stream, &status) != 0 || status != 0;
}

void* last_node(void* stream) {
  int status = 0;
  uint64_t id = 0;
  void* graph = nullptr;
  void* const* dependencies = nullptr;
  size_t count = 0;
  if (driver().capture_info(stream, &status, &id, &graph, &dependencies, &count) != 0 || status != 1 || count != 1) return nullptr;
  return dependencies[0];
}

}  // namespace dynvm::codegen::cuda
