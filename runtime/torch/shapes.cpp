// What operations would give for tensors of other sizes: they run on tensors without memory, on torch's meta device.
//
// Inputs: geometry of tensors, ATen calls. Outputs: geometry of the results, and whether they share memory as they did.
// Invariants: below autograd and the recorder's key; no memory of the script's is touched. Some of torch's meta functions are Python code.
// Tests: tests/traces/cases/sizes_*.py.
#include "runtime/torch/shapes.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "runtime/torch/convert.h"
#include "runtime/torch/program.h"
#include "runtime/torch/recorder.h"

namespace dynvm::torch_bridge {
namespace {

const c10::Device kMetaDevice(c10::kMeta);
// What is asked of torch here is neither differentiated nor one of the script's operations, which are counted.
const c10::DispatchKeySet kKeysAbove = c10::autograd_dispatch_keyset | c10::DispatchKeySet(kRecordKey);

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0; expected *= sizes[d]) strides[d] = expected;
  return strides;
}

// Operations whose result has the sizes that their operands broadcast to. Those of mode Result make or copy tensors, in layouts of their own.
const std::unordered_set<std::string>& elementwise() {
  static const auto* names = new std::unordered_set<std::string>([] {
    std::unordered_set<std::string> found;
#define X(name, arguments, mode, formula, sentence) \
  if (std::string_view(#mode) != "Result") found.insert("aten::" #name);
#include "ir/lower/pointwise.def"
#undef X
    return found;
  }());
  return *names;
}

// The sizes of the results of an operation on row-major tensors, themselves row-major. False: torch has to be asked. (Some of its meta functions are
// Python code and take 0.1 to 0.6 ms.)
bool simple_results(const ir::AtenCall& call, const std::vector<ir::TensorMeta>& operands, std::vector<std::vector<int64_t>>* results) {
  if (!call.mutates.empty() || std::any_of(call.result_alias.begin(), call.result_alias.end(), [](int32_t alias) { return alias >= 0; })) return false;
  const std::string& name = call.name;
  auto sizes = [&](size_t argument) { return operands.at(static_cast<size_t>(call.args[argument].operands.at(0))).sizes; };
  if (name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm" || name == "aten::baddbmm") {  // whatever the operands' strides
    const size_t first = name == "aten::mm" || name == "aten::bmm" ? 0 : 1;
    const std::vector<int64_t> a = sizes(first), b = sizes(first + 1);
    const size_t rank = a.size();
    if (rank < 2 || b.size() != rank || a[rank - 1] != b[rank - 2] || (rank == 3 && a[0] != b[0])) return false;
    std::vector<int64_t> made = a;
    made[rank - 1] = b[rank - 1];
    results->push_back(std::move(made));
    return call.results.size() == 1;
  }
  const auto is_row_major = [](const ir::TensorMeta& meta) { return is_contiguous(meta) && elements(meta) != 0; };
  if (!std::all_of(operands.begin(), operands.end(), is_row_major)) return false;
  if (name == "aten::native_layer_norm" && call.results.size() == 3) {
    const std::vector<int64_t> input = sizes(0);
    std::vector<int64_t> rows = input;
    for (size_t k = 0; k < call.args[1].ints.size() && k < rows.size(); ++k) rows[rows.size() - 1 - k] = 1;
    *results = {input, rows, rows};
    return true;
  }
  if (call.results.size() != 1 || elementwise().count(name) == 0) return false;
  std::vector<int64_t> made;
  for (const ir::TensorMeta& operand : operands) {
    std::vector<int64_t> longer = made, shorter = operand.sizes;
    if (longer.size() < shorter.size()) longer.swap(shorter);
    const size_t skip = longer.size() - shorter.size();
    for (size_t d = 0; d < shorter.size(); ++d) {
      int64_t& size = longer[skip + d];
      if (size != shorter[d] && size != 1 && shorter[d] != 1) return false;
      if (size == 1) size = shorter[d];
    }
    made = std::move(longer);
  }
  if (operands.empty()) return false;
  results->push_back(std::move(made));
  return true;
}

class ShapesImpl final : public bridge::Shapes {
 public:
  void input(int32_t tensor, const ir::TensorMeta& meta) override {
    const auto options = at::TensorOptions().dtype(to_scalar_type(meta.dtype)).device(kMetaDevice);
    const c10::InferenceMode none(false);
    const c10::impl::ExcludeDispatchKeyGuard below(kKeysAbove);
    at::Tensor made = at::empty_strided(meta.sizes, meta.strides, options);
    auto known = storages_.find(meta.storage);
    if (known == storages_.end()) {
      at::Tensor whole = at::empty({byte_extent(meta).last / ir::dtype_size(meta.dtype)}, options);
      known = storages_.emplace(meta.storage, whole.storage()).first;
      pointers_.emplace(whole.storage().unsafeGetStorageImpl(), meta.storage);
    }
    made.unsafeGetTensorImpl()->set_storage_keep_dtype(known->second);
    made.unsafeGetTensorImpl()->set_storage_offset(meta.offset);
    if (meta.wrapped_number) made.unsafeGetTensorImpl()->set_wrapped_number(true);
    tensors_[tensor] = std::move(made);
  }

  std::string call(const ir::AtenCall& call, const std::vector<int32_t>& operands, const std::vector<int32_t>& results,
                   const std::vector<ir::TensorMeta>& recorded, std::vector<ir::TensorMeta>* metas) override {
    try {
      const c10::InferenceMode none(false);
      const c10::impl::ExcludeDispatchKeyGuard below(kKeysAbove);
      return run(call, operands, results, recorded, metas);
    } catch (const std::exception& error) {
      const std::string text = error.what();
      return call.name + ": " + text.substr(0, std::min(text.find('\n'), size_t{80}));
    }
  }

 private:
  std::string run(const ir::AtenCall& call, const std::vector<int32_t>& operands, const std::vector<int32_t>& results,
                  const std::vector<ir::TensorMeta>& recorded, std::vector<ir::TensorMeta>* metas) {
    const auto operand = [&](int32_t position) {
      const auto found = tensors_.find(operands.at(static_cast<size_t>(position)));
      return found == tensors_.end() ? at::Tensor() : found->second;
    };
    std::vector<at::Tensor> made;
    std::vector<ir::TensorMeta> geometry(operands.size());
    for (size_t i = 0; i < operands.size(); ++i)
      if (const at::Tensor tensor = operand(static_cast<int32_t>(i)); tensor.defined()) geometry[i] = to_meta(tensor);
    const bool all_tensors = std::all_of(operands.begin(), operands.end(), [&](int32_t number) { return tensors_.count(number) != 0; });
    std::vector<std::vector<int64_t>> sizes;
    if (all_tensors && simple_results(call, geometry, &sizes)) {
      for (size_t i = 0; i < sizes.size(); ++i) {
        const auto options = at::TensorOptions().dtype(to_scalar_type(results[i] < 0 ? ir::DType::kF32 : recorded[i].dtype)).device(kMetaDevice);
        made.push_back(at::empty_strided(sizes[i], contiguous_strides(sizes[i]), options));
      }
    } else if (std::optional<size_t> same = written_alone(call); same) {
      made.push_back(operand(call.args[*same].operands.at(0)));
    } else {
      std::string why = ask_torch(call, operand, geometry, &made);
      if (!why.empty()) return why;
    }
    if (made.size() != results.size()) return call.name + ": another number of results";
    metas->assign(results.size(), {});
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] < 0) continue;
      at::Tensor tensor = made[i];
      if (!tensor.defined()) return call.name + ": an undefined result";
      if (!tensor.is_meta()) tensor = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(kMetaDevice));
      (*metas)[i] = to_meta(tensor);
      if ((*metas)[i].dtype != recorded[i].dtype) return call.name + ": a result of another type";
      const c10::StorageImpl* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
      const auto known = pointers_.find(storage);
      const int32_t wanted = recorded[i].storage;
      if (known == pointers_.end() && storages_.count(wanted) == 0) {
        storages_.emplace(wanted, tensor.storage());
        pointers_.emplace(storage, wanted);
      } else if (known == pointers_.end() || known->second != wanted) {
        return call.name + ": a result shares other memory";
      }
      tensors_[results[i]] = std::move(tensor);
    }
    return "";
  }

  // The argument that an in-place operation gives back, where it does nothing else: its geometry stays.
  static std::optional<size_t> written_alone(const ir::AtenCall& call) {
    if (call.mutates.size() != 1 || call.results.size() != 1 || call.result_alias[0] != call.mutates[0]) return std::nullopt;
    const size_t argument = static_cast<size_t>(call.mutates[0]);
    return call.args[argument].kind == ir::AtenArg::kTensor ? std::optional(argument) : std::nullopt;
  }

  // Equal calls, as those of a model's equal layers, are asked once.
  std::string ask_torch(const ir::AtenCall& call, const std::function<at::Tensor(int32_t)>& operand, const std::vector<ir::TensorMeta>& geometry,
                        std::vector<at::Tensor>* made) {
    const bool views = std::any_of(call.result_alias.begin(), call.result_alias.end(), [](int32_t alias) { return alias >= 0; });
    std::string key;
    if (!views && call.mutates.empty()) {
      key = describe(call, geometry);
      const auto known = answers_.find(key);
      if (known != answers_.end()) {
        for (const at::Tensor& tensor : known->second)
          made->push_back(tensor.defined() ? at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(kMetaDevice)) : at::Tensor());
        return "";
      }
    }
    const auto handle = c10::Dispatcher::singleton().findSchema(c10::OperatorName(call.name, call.overload));
    if (!handle) return "unknown operator " + call.name;
    std::vector<c10::IValue> stack = make_arguments(call, *handle, operand);
    for (c10::IValue& value : stack)
      if (value.isDevice()) value = kMetaDevice;
    handle->callBoxed(stack);
    for (const c10::IValue& value : stack) {
      if (value.isTensor()) {
        made->push_back(value.toTensor());
      } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) made->push_back(tensor);
      } else {
        made->emplace_back();
      }
    }
    if (!key.empty()) answers_.emplace(std::move(key), *made);
    return "";
  }

  static std::string describe(const ir::AtenCall& call, const std::vector<ir::TensorMeta>& geometry) {
    std::string text = call.name + "." + call.overload;
    const auto add = [&](const auto& values) {
      text += '|';
      for (const auto& value : values) text += std::to_string(value) + ",";
    };
    for (const ir::AtenArg& arg : call.args) {
      text += ';' + std::to_string(arg.kind) + ',' + std::to_string(arg.i) + ',' + std::to_string(arg.f) + ',' + arg.s;
      add(arg.operands);
      add(arg.ints);
      add(arg.floats);
    }
    for (const ir::TensorMeta& meta : geometry) {
      text += '#' + std::to_string(static_cast<int>(meta.dtype));
      add(meta.sizes);
      add(meta.strides);
    }
    return text;
  }

  std::unordered_map<std::string, std::vector<at::Tensor>> answers_;
  std::unordered_map<int32_t, at::Tensor> tensors_;
  std::unordered_map<int32_t, c10::Storage> storages_;              // by the trace's number; kept, so that no address comes twice
  std::unordered_map<const c10::StorageImpl*, int32_t> pointers_;
};

}  // namespace

std::unique_ptr<bridge::Shapes> make_shapes() { return std::make_unique<ShapesImpl>(); }

}  // namespace dynvm::torch_bridge
