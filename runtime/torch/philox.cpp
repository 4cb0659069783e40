// See philox.h.
#include "runtime/torch/philox.h"

#include <ATen/Context.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "ir/drawing.h"
#include "runtime/torch/convert.h"
#include "runtime/torch/python_tensor.h"
#include "runtime/torch/recorder.h"
#include "runtime/torch/session.h"

namespace dynvm::torch_bridge {
namespace {

constexpr double kDropped = 0.3;

// The default generator, and another handle of its numbers: setting them through the default one itself would have cuDNN's recurrent layers draw new states for their dropout.
struct Handles {
  explicit Handles(c10::Device device) : generator(at::globalContext().defaultGenerator(device)), lock(generator.mutex()), numbers(generator.graphsafe_get_state()) {}
  GeneratorPlace place() const { return {generator.device(), generator.current_seed(), generator.get_offset()}; }
  void go_to(const GeneratorPlace& place) {
    if (numbers.current_seed() != place.seed) numbers.set_current_seed(place.seed);
    numbers.set_offset(place.offset);
  }
  at::Generator generator;
  std::lock_guard<std::mutex> lock;
  at::Generator numbers;
};

GeneratorPlace place_of(c10::Device device) { return Handles(device).place(); }

// How many threads of blocks of 256 the device holds at once; 0: torch does not say. By functions in C: the recorded frame's are followed.
int32_t threads_of(c10::Device device) {
  const PyGILState_STATE state = PyGILState_Ensure();
  const auto number = [](PyObject* properties, const char* name) {
    PyObject* value = properties == nullptr ? nullptr : PyObject_GetAttrString(properties, name);
    const long out = value == nullptr ? 0 : PyLong_AsLong(value);
    Py_XDECREF(value);
    return out;
  };
  PyObject* cuda = PyDict_GetItemString(PyImport_GetModuleDict(), "torch.cuda");
  PyObject* properties = cuda == nullptr ? nullptr : PyObject_CallMethod(cuda, "_get_device_properties", "i", static_cast<int>(device.index()));
  const long multiprocessors = number(properties, "multi_processor_count"), threads = number(properties, "max_threads_per_multi_processor");
  Py_XDECREF(properties);
  PyErr_Clear();
  PyGILState_Release(state);
  return multiprocessors > 0 && threads > 0 ? static_cast<int32_t>(multiprocessors * (threads / 256) * 256) : 0;
}

// What native_dropout gave for ones, of which the first and the last elements are looked at.
struct Sample {
  int64_t elements = 0;
  uint64_t increment = 0;
  at::Tensor mask, result;  // on the host
};
constexpr uint64_t kSeed = 0x3c6ef372fe94f82b, kOffset = 8;

Sample sample(int64_t elements, c10::Device device, c10::ScalarType type) {
  const GeneratorAt known({device, kSeed, kOffset});
  const auto [result, mask] = at::native_dropout(at::ones({elements}, at::TensorOptions().device(device).dtype(type)), kDropped, true);
  return {elements, place_of(device).offset - kOffset, mask.cpu(), result.to(at::kDouble).cpu()};
}

bool fits(const Sample& sample, const ir::RandomStream& stream, c10::ScalarType type) {
  constexpr int64_t kLooked = 4096;  // at either end
  ir::TensorMeta meta;
  meta.sizes = {sample.elements};
  meta.strides = {1};
  const ir::Drawing drawing = *ir::drawing_of(stream, meta);
  if (static_cast<uint64_t>(drawing.increment) != sample.increment) return false;
  const bool wide = type == at::kDouble;
  const double keep = wide ? 1 - kDropped : static_cast<float>(1 - kDropped), scale = wide ? 1 / keep : static_cast<float>(1 / keep);
  const double kept_one = *at::scalar_tensor(scale, at::kDouble).to(type).to(at::kDouble).const_data_ptr<double>();
  const bool* mask = sample.mask.const_data_ptr<bool>();
  const double* result = sample.result.const_data_ptr<double>();
  for (int64_t e = 0; e < sample.elements; ++e) {
    if (e == kLooked) e = std::max(e, sample.elements - kLooked);
    const bool kept = ir::drawn_number(static_cast<int64_t>(kSeed), static_cast<int64_t>(kOffset), e, drawing.form) < keep;
    if (mask[e] != kept || result[e] != (kept ? kept_one : 0.0)) return false;
  }
  return true;
}

// Throws what torch does.
ir::RandomStream measure(c10::Device device, c10::ScalarType type, std::string* why) {
  const int32_t threads = threads_of(device);
  if (threads == 0) {
    *why = "torch does not tell how many threads the device holds";
    return {};
  }
  const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset | c10::DispatchKeySet(kRecordKey));
  const c10::DeviceGuard guard(device);
  const auto longest = static_cast<int8_t>(16 / c10::elementSize(type));
  std::vector<Sample> samples;
  for (int64_t elements : {int64_t{4096}, int64_t{4098}, int64_t{4099}, int64_t{longest} * threads + 4096}) samples.push_back(sample(elements, device, type));
  for (int8_t vector = longest; vector > 0; vector = static_cast<int8_t>(vector / 2)) {
    const ir::RandomStream stream{threads, vector};
    if (std::all_of(samples.begin(), samples.end(), [&](const Sample& each) { return fits(each, stream, type); })) return stream;
  }
  *why = std::string("native_dropout of ") + c10::toString(type) + " draws in another way than is known";
  return {};
}

ir::RandomStream stream_of(c10::Device device, c10::ScalarType type, std::string* note) {
  struct Known {
    ir::RandomStream stream;
    std::string why;
  };
  static std::mutex mutex;
  static auto* table = new std::map<std::pair<int, int>, Known>;
  const std::pair<int, int> key{device.index(), static_cast<int>(type)};
  const auto find = [&]() -> std::optional<Known> {
    const std::lock_guard lock(mutex);
    const auto known = table->find(key);
    return known == table->end() ? std::nullopt : std::optional(known->second);
  };
  std::optional<Known> known = find();
  if (!known) {
    if (!can_draw(device)) return {};
    known.emplace();
    try {
      known->stream = measure(device, type, &known->why);
    } catch (const c10::Error& error) {
      known->why = std::string("native_dropout could not be measured: ") + error.what_without_backtrace();
    }
    const std::lock_guard lock(mutex);  // not held before: measuring takes the GIL
    known = table->emplace(key, *known).first->second;
  }
  *note = known->why;
  return known->stream;
}

}  // namespace

GeneratorAt::GeneratorAt(const GeneratorPlace& place) {
  Handles handles(place.device);
  before_ = handles.place();
  handles.go_to(place);
}

GeneratorAt::~GeneratorAt() { Handles(before_.device).go_to(before_); }

bool can_draw(c10::Device device) {
  try {
    (void)at::globalContext().defaultGenerator(device).get_offset();
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

ir::RandomStream stream_of_call(const OperatorFacts& facts, const torch::jit::Stack& stack, size_t base, std::string* note) {
  if (!facts.random || facts.name != "aten::native_dropout" || !facts.overload.empty()) return {};
  const c10::IValue &self = stack[base], &dropped = stack[base + 1], &train = stack[base + 2];
  if (!self.isTensor() || !self.toTensor().defined() || !self.toTensor().is_cuda() || !dropped.isDouble()) return {};
  const double p = dropped.toDouble();
  const at::Tensor& tensor = self.toTensor();
  if (!(p > 0 && p < 1) || (train.isBool() && !train.toBool()) || tensor.numel() == 0) return {};
  switch (tensor.scalar_type()) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16: return stream_of(tensor.device(), tensor.scalar_type(), note);
    default: return {};
  }
}

int64_t SessionImpl::seed(int32_t number) const {
  const CallPlan& plan = program_.calls[static_cast<size_t>(number)];
  return static_cast<int64_t>(at::globalContext().defaultGenerator(shadows_[static_cast<size_t>(plan.tensors[0].tensor)].device()).current_seed());
}

int SessionImpl::draw(int32_t number, int64_t increment, int64_t* offset) {
  const CallPlan& plan = program_.calls[static_cast<size_t>(number)];
  try {
    Handles handles(shadows_[static_cast<size_t>(plan.tensors[0].tensor)].device());
    const GeneratorPlace before = handles.place();
    handles.go_to({before.device, before.seed, before.offset + static_cast<uint64_t>(increment)});
    *offset = static_cast<int64_t>(before.offset);
    if (plan.keeps_generator) calls_[static_cast<size_t>(number)].drawn = before;
    return 0;
  } catch (...) {
    set_python_error(std::current_exception());
    return -1;
  }
}

}  // namespace dynvm::torch_bridge
