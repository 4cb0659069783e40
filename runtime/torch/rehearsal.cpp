// See rehearsal.h. Invariants: what is given shares memory with the program's tensors and is never written; copies are. The states of all generators that calls may draw from are put back.
// Tests: tests/traces/cases/graph_nodes.py.
#include "runtime/torch/rehearsal.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/torch/call_modes.h"
#include "runtime/torch/calls_again.h"
#include "runtime/torch/convert.h"
#include "runtime/torch/graph_nodes.h"
#include "runtime/torch/python_tensor.h"
#include "runtime/torch/recorder.h"

namespace dynvm::torch_bridge {
namespace {

class RehearsalImpl final : public bridge::Rehearsal {
 public:
  ~RehearsalImpl() override {
    for (auto& [generator, state] : generators_) {
      const std::lock_guard lock(generator.mutex());
      generator.set_state(state);
    }
  }

  bool has(int32_t value) override { return values_.count(value) != 0; }

  bool give(int32_t value, PyObject* object, bool differentiated, bool copy) override {
    return quietly([&] {
      const c10::AutoGradMode no_graph(false);
      const at::Tensor& tensor = unpack(object);
      const size_t needed = tensor.numel() == 0 ? 0 : at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.dtype().itemsize(), tensor.storage_offset());
      const bool is_there = needed == 0 || tensor.is_meta() || tensor.storage().data() != nullptr;  // the recorder frees what is dead (free_data)
      TORCH_CHECK(is_there && tensor.storage().nbytes() >= needed, "its memory has been given back");
      keep_generator(tensor.device());
      at::Tensor made = copy ? tensor.detach().clone() : tensor.detach();
      made.set_requires_grad(differentiated);
      values_[value] = std::move(made);
    });
  }

  bool call(const ir::AtenCall& call, const std::vector<int32_t>& operands, const std::vector<int32_t>& results, bool recorded) override {
    return quietly([&] {
      const auto handle = c10::Dispatcher::singleton().findSchema(c10::OperatorName(call.name, call.overload));
      TORCH_CHECK(handle, "unknown operator");
      if (call.name == "aten::detach" && results.size() == 1) {  // what is detached is marked where it is used
        values_[results[0]] = values_.at(operands.at(0));
        return;
      }
      std::map<int32_t, bool> required;
      for (const ir::AtenArg& arg : call.args)
        if (arg.kind == ir::AtenArg::kTensor || arg.kind == ir::AtenArg::kTensorList)
          for (size_t k = 0; k < arg.operands.size(); ++k) required[arg.operands[k]] = k >= arg.ints.size() || arg.ints[k] != 0;
      c10::Device device(c10::kCPU);
      const auto operand = [&](int32_t position) {
        const at::Tensor& value = values_.at(operands.at(static_cast<size_t>(position)));
        if (!value.device().is_cpu()) device = value.device();
        return !required[position] && value.requires_grad() ? value.detach() : value;
      };
      std::vector<c10::IValue> stack = make_arguments(call, *handle, operand);
      for (const c10::IValue& argument : stack)
        if (argument.isDevice()) device = argument.toDevice();
      keep_generator(device);
      const ModesOfCall modes(call, device.type());
      handle->callBoxed(stack);
      const std::vector<at::Tensor> made = flat_results(stack);
      for (size_t i = 0; i < made.size() && i < results.size(); ++i)
        if (results[i] >= 0) values_[results[i]] = made[i];
    }, recorded);
  }

  void cut(int32_t value) override {
    at::Tensor& known = values_.at(value);
    known = known.detach().set_requires_grad(true);
  }

  PyObject* object(int32_t value) override { return to_python(values_.at(value)); }

  PyObject* gradient(int32_t value) override {
    PyObject* made = nullptr;
    quietly([&] {
      const at::AutoDispatchBelowADInplaceOrView below;
      const at::Tensor& like = values_.at(value);
      made = to_python(at::empty_strided(like.sizes(), gradient_strides(like), like.options().requires_grad(false)).fill_(1));
    });
    return made;
  }

  bool differentiate(const std::vector<int32_t>& outputs, const std::vector<PyObject*>& given, const std::vector<int32_t>& inputs, std::vector<PyObject*>* gradients) override {
    std::vector<at::Tensor> with, found;
    for (PyObject* each : given) with.push_back(unpack(each));
    PyThreadState* const state = PyEval_SaveThread();
    bool fine = true;
    try {
      std::vector<at::Tensor> from, to;
      for (int32_t output : outputs) from.push_back(values_.at(output));
      for (int32_t input : inputs) to.push_back(values_.at(input));
      const c10::impl::ExcludeDispatchKeyGuard guard(c10::autocast_dispatch_keyset);
      found = torch::autograd::grad(from, to, with, true, false, true);
    } catch (const std::exception&) {
      fine = false;
    }
    PyEval_RestoreThread(state);
    for (const at::Tensor& each : found) gradients->push_back(each.defined() ? to_python(each) : nullptr);
    PyErr_Clear();
    return fine;
  }

 private:
  template <class F>
  bool quietly(const F& body, bool recorded = false) {
    try {
      const c10::impl::ExcludeDispatchKeyGuard guard(recorded ? c10::autocast_dispatch_keyset : c10::autocast_dispatch_keyset | c10::DispatchKeySet(kRecordKey));
      body();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  void keep_generator(c10::Device device) {
    for (const auto& [generator, state] : generators_)
      if (generator.device() == device) return;
    if (!device.is_cpu() && !device.is_cuda()) return;
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard lock(generator.mutex());
    generators_.emplace_back(generator, generator.get_state());
  }

  std::map<int32_t, at::Tensor> values_;
  std::vector<std::pair<at::Generator, at::Tensor>> generators_;
};

}  // namespace

std::unique_ptr<bridge::Rehearsal> make_rehearsal() { return std::make_unique<RehearsalImpl>(); }

}  // namespace dynvm::torch_bridge
