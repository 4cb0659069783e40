// See capture.h.
#include "runtime/torch/capture.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "runtime/torch/program.h"
#include "runtime/torch/python_tensor.h"
#include "runtime/torch/recorder.h"
#include "runtime/torch/session.h"
#include "runtime/torch/torch_symbol.h"
#include "runtime/torch/workspaces.h"

namespace dynvm::torch_bridge {

namespace {

using Kind = bridge::StorageSpec::Kind;

// Operations that look at data on the host, keep state of their own between runs, or change whose memory a tensor has.
constexpr std::string_view kOnTheHost[] = {"aten::_cudnn_rnn", "aten::_cudnn_rnn_backward", "aten::_cudnn_rnn_flatten_weight", "aten::_cudnn_init_dropout_state", "aten::set_",
                                           "aten::resize_", "aten::record_stream", "aten::_foreach_norm", "aten::bincount", "aten::histc", "aten::multinomial"};

struct Capture {
  c10::Device device{c10::kCUDA, 0};
  std::optional<c10::DeviceGuard> current;  // until it ends
  std::optional<c10::Stream> before;
  bool collecting = false;  // Python's collector was on
};

struct Kept {
  c10::Storage real;
  int64_t shift = 0;
};

std::string take_python_error() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  std::string text = "a Python exception";
  if (value != nullptr)
    if (PyObject* words = PyObject_Str(value)) {
      if (const char* bytes = PyUnicode_AsUTF8(words)) text = bytes;
      Py_DECREF(words);
    }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  PyErr_Clear();
  return text;
}

// Torch's functions that say where this thread's memory comes from; each a new reference, or null with an exception set. A torch.cuda.CUDAGraph would call them too, but keeps random numbers' seed
// and offset in memory of its own, and captures here draw none.
PyObject* pool_function(const char* name) {
  PyObject* module = PyImport_ImportModule("torch._C");
  PyObject* function = module != nullptr ? PyObject_GetAttrString(module, name) : nullptr;
  Py_XDECREF(module);
  return function;
}
constexpr const char* kBegin = "_cuda_beginAllocateCurrentThreadToPool";
constexpr const char* kEnd = "_cuda_endAllocateToPool";
constexpr const char* kRelease = "_cuda_releasePool";

// The pool of all captures: graphs run one after the other, so what one needs only while it runs the others may use too. What is captured on one stream is never given
// to another. Torch counts who has begun to use a device's and not released it, and ends the pool with the last one for good, so that one stays until there is another.
struct Pool {
  int captures = 0;    // that have it
  bool spare = false;  // one that was dropped still has it too
};
Pool& pool_of(c10::Device device) {
  static auto* const pools = new std::map<int, Pool>;
  return (*pools)[device.index()];
}

// Borrowed, torch.cuda.graph_pool_handle(); null with an exception set.
PyObject* pool_handle() {
  static PyObject* handle = nullptr;
  if (handle != nullptr) return handle;
  if (PyObject* module = PyImport_ImportModule("torch.cuda")) {
    handle = PyObject_CallMethod(module, "graph_pool_handle", nullptr);
    Py_DECREF(module);
  }
  return handle;
}

// False with an exception set.
bool tell_pool(const char* name, c10::Device device) {
  PyObject* handle = pool_handle();
  PyObject* function = handle != nullptr ? pool_function(name) : nullptr;
  PyObject* done = function != nullptr ? PyObject_CallFunction(function, "iO", static_cast<int>(device.index()), handle) : nullptr;
  Py_XDECREF(function);
  Py_XDECREF(done);
  return done != nullptr;
}

// Products that make libraries get ready for the current stream. Where the script has run some, they are, and what these load would take 0.1 s.
void warm_up(c10::Device device) {
  for (c10::ScalarType type : {c10::kFloat, c10::kBFloat16}) {
    const at::Tensor small = at::ones({16, 16}, at::TensorOptions().device(device).dtype(type));
    at::mm(small, small);
  }
}

// Where to capture what will run on `stream`, which is current.
c10::Stream stream_for(c10::Device device, void* stream) {
  static auto* const streams = new std::map<std::pair<int, void*>, std::pair<c10::Stream, void*>>;
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  const auto known = streams->find({device.index(), stream});
  if (known != streams->end()) {
    share_workspaces(stream, known->second.second);
    return known->second.first;
  }
  const c10::Stream made = new_cuda_stream(device);
  const c10::Stream before = cuda.exchangeStream(made);
  void* const side = cuda_stream_function()(device.index());
  streams->emplace(std::pair<int, void*>(device.index(), stream), std::pair(made, side));
  cuda.synchronizeStream(before);
  if (!share_workspaces(stream, side)) {
    try {
      cuda.exchangeStream(before);
      warm_up(device);
      cuda.exchangeStream(made);
      cuda.synchronizeStream(before);
      share_workspaces(stream, side);
      warm_up(device);
    } catch (...) {
      cuda.exchangeStream(before);
      throw;
    }
    cuda.synchronizeStream(made);
  }
  cuda.exchangeStream(before);
  return made;
}

}  // namespace

class CapturesImpl final : public bridge::Captures {
 public:
  void* stream(int device, void* stream, std::string* error) override {
    try {
      const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
      const c10::Device where(c10::kCUDA, static_cast<c10::DeviceIndex>(device));
      const c10::DeviceGuard current(where);
      const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset | c10::DispatchKeySet(kRecordKey));
      const c10::Stream before = cuda.exchangeStream(stream_for(where, stream));
      void* const side = cuda_stream_function()(device);
      cuda.exchangeStream(before);
      return side;
    } catch (const std::exception& e) {
      *error = e.what();
      return nullptr;
    }
  }

  void* begin(int device, void* stream, int64_t bytes, std::string* error) override {
    auto capture = std::make_unique<Capture>();
    capture->device = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device));
    try {
      capture->current.emplace(capture->device);
      const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
      const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset | c10::DispatchKeySet(kRecordKey));
      const c10::Stream side = stream_for(capture->device, stream);
      capture->before = cuda.exchangeStream(side);
    } catch (const std::exception& e) {
      *error = e.what();
      return nullptr;
    }
    capture->collecting = PyGC_Disable() != 0;
    if (!tell_pool(kBegin, capture->device)) {
      *error = take_python_error();
      restore(*capture);
      return nullptr;
    }
    Pool& pool = pool_of(capture->device);
    ++pool.captures;
    if (std::exchange(pool.spare, false) && !tell_pool(kRelease, capture->device)) PyErr_Clear();
    reserve(capture->device, stream, bytes);
    return capture.release();
  }

  bool end(void* opaque, std::string* error) override {
    Capture& capture = *static_cast<Capture*>(opaque);
    const bool done = tell_pool(kEnd, capture.device);
    if (!done) *error = take_python_error();
    restore(capture);
    return done;
  }

  void drop(void* opaque) override {
    const std::unique_ptr<Capture> capture(static_cast<Capture*>(opaque));
    if (!Py_IsInitialized()) return;
    Pool& pool = pool_of(capture->device);
    if (--pool.captures == 0) pool.spare = true;
    else if (!tell_pool(kRelease, capture->device)) PyErr_Clear();
  }

  void* keep(bridge::Session* session, int32_t storage) override {
    const StorageSlot& slot = of(session).storages_[static_cast<size_t>(storage)];
    return slot.real ? new Kept{slot.real, slot.shift} : nullptr;
  }

  void* make(bridge::Session* session, int32_t storage) override {
    const StoragePlan& plan = of(session).program_.storages[static_cast<size_t>(storage)];
    try {
      const c10::DeviceGuard current(plan.device);
      c10::Allocator* allocator = c10::GetAllocator(plan.device.type());
      const size_t bytes = static_cast<size_t>(plan.last_byte - plan.first_byte);
      return new Kept{c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, allocator->allocate(bytes), allocator, /*resizable=*/true)), -plan.first_byte};
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  void put(bridge::Session* session, int32_t storage, void* opaque) override {
    SessionImpl& impl = of(session);
    const Kept& kept = *static_cast<Kept*>(opaque);
    const size_t s = static_cast<size_t>(storage);
    impl.use(s);
    impl.storages_[s].real = kept.real;
    impl.storages_[s].shift = kept.shift;
    impl.point(s, data(opaque));
  }

  void* data(void* opaque) override {
    const Kept& kept = *static_cast<Kept*>(opaque);
    return static_cast<char*>(const_cast<void*>(kept.real.data())) + kept.shift;
  }

  void forget(void* kept) override { delete static_cast<Kept*>(kept); }
  void point(bridge::Session* session, int32_t storage, void* data) override { of(session).point(static_cast<size_t>(storage), data); }

  void extent(bridge::Session* session, int32_t storage, int64_t* first, int64_t* last) override {
    const StoragePlan& plan = of(session).program_.storages[static_cast<size_t>(storage)];
    *first = plan.first_byte;
    *last = plan.last_byte;
  }

  int64_t held(bridge::Session* session, int32_t storage) override {
    const c10::Storage& real = of(session).storages_[static_cast<size_t>(storage)].real;
    return real ? static_cast<int64_t>(real.nbytes()) : 0;
  }

  bool hand_over(bridge::Session* session, int32_t from, int32_t to) override { return of(session).hand_over(static_cast<size_t>(from), static_cast<size_t>(to)); }
  int arrange(bridge::Session* session, std::vector<ir::Piece> pieces) override { return of(session).rearrange(std::move(pieces)); }

  bool is_input(bridge::Session* session, int32_t storage) override {
    const ProgramImpl& program = of(session).program_;
    if (program.storages[static_cast<size_t>(storage)].spec.kind == Kind::kInput) return true;
    return std::any_of(program.calls.begin(), program.calls.end(), [&](const CallPlan& call) {
      return call.how == CallHow::kMovedView && program.tensors[static_cast<size_t>(call.results[0])].meta.storage == storage;
    });
  }

 private:
  static SessionImpl& of(bridge::Session* session) { return *static_cast<SessionImpl*>(session->impl); }

  // Allocations of all sizes, each the first of its kind, would leave a pool in pieces that fit little else. From 1 to 10 MiB torch's allocator gets 20 MiB, beyond that what is asked for.
  static void reserve(c10::Device device, void* stream, int64_t bytes) {
    static auto* const reserved = new std::map<std::pair<int, void*>, int64_t>;
    int64_t& most = (*reserved)[{device.index(), stream}];
    if (bytes < 2 * most || bytes == 0) return;
    most = bytes;
    constexpr int64_t kSmall = 1 << 20, kExact = 10 << 20;
    if (bytes > kSmall) bytes = std::max(bytes, kExact);
    try {
      c10::GetAllocator(c10::kCUDA)->allocate(static_cast<size_t>(bytes));
    } catch (const std::exception&) {  // not in one piece, then
    }
  }

  static void restore(Capture& capture) {
    c10::impl::VirtualGuardImpl(c10::kCUDA).exchangeStream(*capture.before);
    capture.current.reset();
    if (capture.collecting) PyGC_Enable();
  }
};

bridge::Captures* cuda_captures() {
  static CapturesImpl* const captures = []() -> CapturesImpl* {
    if (!c10::impl::hasDeviceGuardImpl(c10::kCUDA)) return nullptr;
    for (const char* name : {kBegin, kEnd, kRelease}) {
      PyObject* function = pool_function(name);
      if (function == nullptr) {  // an older torch
        PyErr_Clear();
        return nullptr;
      }
      Py_DECREF(function);
    }
    return new CapturesImpl;
  }();
  return captures;
}

bridge::CallFacts ProgramImpl::facts(int32_t number) {
  const CallPlan& plan = calls[static_cast<size_t>(number)];
  bridge::CallFacts facts;
  facts.name = plan.call.name;
  if (plan.how == CallHow::kNothing) {
    facts.passive = true;
    return facts;
  }
  facts.capturable = ((plan.how == CallHow::kDirect && plan.direct.anywhere) || plan.how == CallHow::kOut || plan.how == CallHow::kInPlace || plan.how == CallHow::kFunctional) && !plan.leaves && plan.scalars.empty() && plan.snapshots.empty() &&
                     !plan.keeps_generator && !plan.call.is_random && !plan.call.defines_sizes && !(plan.call.results.empty() && plan.call.mutates.empty()) &&
                     std::find(std::begin(kOnTheHost), std::end(kOnTheHost), plan.call.name) == std::end(kOnTheHost);
  bool first = true;
  const auto look = [&](int32_t tensor, bool written) {
    if (tensor < 0) return;
    const ir::TensorMeta& meta = tensors[static_cast<size_t>(tensor)].meta;
    const int device = std::max<int>(meta.device_index, 0);
    facts.capturable &= meta.device_type == 1 && meta.open == 0 && (first || device == facts.device);
    facts.device = device;
    first = false;
    facts.touches.push_back(meta.storage);
    if (written) facts.writes.push_back(meta.storage);
  };
  for (const TensorPlace& place : plan.tensors) look(place.tensor, std::count(plan.call.mutates.begin(), plan.call.mutates.end(), place.argument) != 0);
  for (size_t k = 0; k < plan.results.size(); ++k) {
    look(plan.results[k], plan.call.result_alias[k] < 0);
    if (plan.results[k] < 0 || plan.call.result_alias[k] >= 0) continue;
    const int32_t storage = tensors[static_cast<size_t>(plan.results[k])].meta.storage;
    if (storages[static_cast<size_t>(storage)].spec.kind == Kind::kResult) facts.gives.push_back(storage);
    if (tensors[static_cast<size_t>(plan.results[k])].own_size) facts.sizes.push_back(storage);
  }
  facts.capturable &= !first;
  for (const c10::IValue& constant : plan.constants)  // a tensor that Python's values became lies in the CPU's memory
    if (constant.isTensor() && constant.toTensor().defined() && !constant.toTensor().unsafeGetTensorImpl()->is_wrapped_number()) facts.capturable = false;
  // A view that moves looks at memory that is there already, unless an earlier call has yet to bring it.
  if (plan.how == CallHow::kMovedView && !plan.tensors.empty() && plan.results[0] >= 0) {
    const Kind kind = storages[static_cast<size_t>(tensors[static_cast<size_t>(plan.tensors[0].tensor)].meta.storage)].spec.kind;
    facts.passive = kind != Kind::kResult && kind != Kind::kLent && tensors[static_cast<size_t>(plan.results[0])].meta.open == 0;
  }
  return facts;
}

}  // namespace dynvm::torch_bridge
