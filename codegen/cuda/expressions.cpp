// See expressions.h.
#include "codegen/cuda/expressions.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace dynvm::codegen::cuda {

using ir::DType;
using ir::KernelNode;
using ir::KOp;

const char* value_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16: return "float";
    case DType::kF64: return "double";
    case DType::kI64: return "i64";
    case DType::kI32: return "int";
    case DType::kI16: return "short";
    case DType::kI8: return "signed char";
    case DType::kU8: return "unsigned char";
    default: return "bool";
  }
}

const char* memory_type(DType dtype) {
  return ir::is_reduced_floating(dtype) ? "unsigned short" : ir::is_bool(dtype) ? "unsigned char" : value_type(dtype);
}

std::string from_memory(DType dtype, const std::string& x) {
  return dtype == DType::kF16 ? "f16_to(" + x + ")" : dtype == DType::kBF16 ? "bf16_to(" + x + ")" : ir::is_bool(dtype) ? "(" + x + " != 0)" : x;
}

std::string to_memory(DType dtype, const std::string& x) {
  return dtype == DType::kF16 ? "to_f16(" + x + ")" : dtype == DType::kBF16 ? "to_bf16(" + x + ")" : x;
}

std::string vector_element(DType dtype, const std::string& x) {
  return dtype == DType::kF16 ? "f16_at(" + x + ", e)" : dtype == DType::kBF16 ? "bf16_at(" + x + ", e)" : from_memory(dtype, x + ".v[e]");
}

std::string vector_to_memory(DType dtype, const std::string& x) { return (dtype == DType::kF16 ? "to_f16_all(" : "to_bf16_all(") + x + ")"; }

namespace {

// To the dtype that the node has.
std::string settle(DType dtype, const std::string& x) {
  if (dtype == DType::kF16) return "f16_round(" + x + ")";
  if (dtype == DType::kBF16) return "bf16_round(" + x + ")";
  return ir::is_floating(dtype) ? x : fmt::format("({})({})", value_type(dtype), x);
}

std::string real(DType dtype, double value) {
  if (dtype == DType::kF64) {
    if (!std::isfinite(value)) return fmt::format("__longlong_as_double({:#x}LL)", std::bit_cast<uint64_t>(value));
    std::string text = fmt::format("{:.17g}", value);
    return (text.find_first_of(".e") == std::string::npos ? text + ".0" : text);
  }
  const float narrow = static_cast<float>(value);
  if (!std::isfinite(narrow)) return fmt::format("__int_as_float({:#x})", std::bit_cast<uint32_t>(narrow));
  std::string text = fmt::format("{:.9g}", narrow);
  text = (text.find_first_of(".e") == std::string::npos ? text + ".0f" : text + "f");
  return dtype == DType::kF32 ? text : settle(dtype, text);
}

std::string integer(DType dtype, int64_t value) {
  if (ir::is_bool(dtype)) return value != 0 ? "true" : "false";
  return dtype == DType::kI64 ? fmt::format("(i64){:#x}ULL", static_cast<uint64_t>(value)) : fmt::format("({})({})", value_type(dtype), value == INT32_MIN ? "-2147483647 - 1" : std::to_string(value));
}

}  // namespace

std::string constant(const KernelNode& node) { return ir::is_floating(node.dtype) ? real(node.dtype, node.f) : integer(node.dtype, node.i); }

std::string scalar(const ir::Kernel& kernel, const KernelNode& node, const std::string& bits) {
  const bool floating = kernel.scalar_types[static_cast<size_t>(node.i)] == DType::kF64;
  return convert(node.dtype, floating ? DType::kF64 : DType::kI64, floating ? "__longlong_as_double(" + bits + ")" : bits);
}

std::string convert(DType to, DType from, const std::string& x) {
  if (ir::is_bool(to)) return "(" + x + " != 0)";
  if (ir::is_floating(to)) return to == DType::kF64 ? "(double)" + x : to == DType::kF32 ? "(float)" + x : settle(to, "(float)" + x);
  if (ir::is_floating(from) && to != DType::kI64) return fmt::format("({})(i64){}", value_type(to), x);
  return fmt::format("({}){}", value_type(to), x);
}

std::string expression(const KernelNode& node, DType from, const std::string& a, const std::string& b, const std::string& c) {
  const DType t = node.dtype;
  const bool floating = ir::is_floating(t);
  const std::string name(ir::kop_info(node.op).name);
  const auto infix = [&](const char* op) { return settle(t, "(" + a + " " + op + " " + b + ")"); };
  const auto wrapping = [&](const char* op) {  // signed overflow is undefined in C++
    if (floating) return infix(op);
    const char* wide = t == DType::kI64 ? "u64" : "unsigned";
    return fmt::format("({0})(({1}){2} {3} ({1}){4})", value_type(t), wide, a, op, b);
  };
  const auto of_kind = [&](const char* for_floats, const char* for_ints) { return settle(t, fmt::format("{}({}, {})", floating ? for_floats : for_ints, a, b)); };
  switch (node.op) {
    case KOp::k_cast: return convert(t, from, a);
    case KOp::k_add: return wrapping("+");
    case KOp::k_sub: return wrapping("-");
    case KOp::k_mul: return wrapping("*");
    case KOp::k_div: return infix("/");
    case KOp::k_floordiv: return of_kind("float_floordiv", "int_floordiv");
    case KOp::k_mod: return of_kind("float_mod", "int_mod");
    case KOp::k_fmod: return of_kind("k_fmod", "int_fmod");
    case KOp::k_pow: return of_kind("k_pow", "int_pow");
    case KOp::k_truncdiv: return floating ? settle(t, "k_trunc(" + settle(t, a + " / " + b) + ")") : settle(t, fmt::format("int_truncdiv({}, {})", a, b));
    case KOp::k_neg: return floating ? "-" + a : t == DType::kI64 ? "(i64)(0 - (u64)" + a + ")" : fmt::format("({})(0u - (unsigned){})", value_type(t), a);
    case KOp::k_abs:
      if (floating) return "k_abs(" + a + ")";
      return t == DType::kI64 ? fmt::format("({0} < 0 ? (i64)(0 - (u64){0}) : {0})", a) : fmt::format("({0})({1} < 0 ? 0u - (unsigned){1} : (unsigned){1})", value_type(t), a);
    case KOp::k_reciprocal: return settle(t, (t == DType::kF64 ? "1.0 / " : "1.0f / ") + a);
    case KOp::k_eq: return "(" + a + " == " + b + ")";
    case KOp::k_ne: return "(" + a + " != " + b + ")";
    case KOp::k_lt: return "(" + a + " < " + b + ")";
    case KOp::k_le: return "(" + a + " <= " + b + ")";
    case KOp::k_gt: return "(" + a + " > " + b + ")";
    case KOp::k_ge: return "(" + a + " >= " + b + ")";
    case KOp::k_and: return infix("&");
    case KOp::k_or: return infix("|");
    case KOp::k_xor: return infix("^");
    case KOp::k_not: return ir::is_bool(t) ? "!" + a : settle(t, "~" + a);
    case KOp::k_shl: return settle(t, "int_shl(" + a + ", " + b + ")");
    case KOp::k_shr: return settle(t, "int_shr(" + a + ", " + b + ")");
    case KOp::k_where: return "(" + a + " ? " + b + " : " + c + ")";
    case KOp::k_isnan:
    case KOp::k_isinf:
    case KOp::k_isfinite: return "k_" + name + "(" + a + ")";
    default: break;
  }
  // The rest are functions of the prelude with the op's name.
  std::string call = "k_" + name + "(" + a;
  if (!b.empty()) call += ", " + b;
  if (!c.empty()) call += ", " + c;
  return settle(t, call + ")");
}

const char* combination(KOp op) {
  switch (op) {
    case KOp::k_scan_sum:
    case KOp::k_reduce_sum: return "Sum";
    case KOp::k_scan_prod:
    case KOp::k_reduce_prod: return "Prod";
    case KOp::k_scan_logaddexp: return "LogAddExp";
    case KOp::k_reduce_max: return "Max";
    case KOp::k_reduce_min: return "Min";
    case KOp::k_reduce_any: return "Any";
    case KOp::k_reduce_all: return "All";
    case KOp::k_reduce_argmax: return "ArgMax";
    default: return "ArgMin";
  }
}

std::string identity(KOp op, DType dtype) {
  const int bits = ir::dtype_size(dtype) * 8;
  const bool is_unsigned = dtype == DType::kU8;
  switch (op) {
    case KOp::k_scan_sum:
    case KOp::k_reduce_sum: return ir::is_floating(dtype) ? real(dtype, 0) : integer(dtype, 0);
    case KOp::k_scan_logaddexp: return real(dtype, -INFINITY);
    case KOp::k_scan_prod:
    case KOp::k_reduce_prod: return ir::is_floating(dtype) ? real(dtype, 1) : integer(dtype, 1);
    case KOp::k_reduce_max: return ir::is_floating(dtype) ? real(dtype, -INFINITY) : integer(dtype, is_unsigned ? 0 : -(int64_t{1} << (bits - 2)) * 2);
    case KOp::k_reduce_min:
      return ir::is_floating(dtype) ? real(dtype, INFINITY) : integer(dtype, is_unsigned ? 255 : (int64_t{1} << (bits - 2)) - 1 + (int64_t{1} << (bits - 2)));
    case KOp::k_reduce_any: return "false";
    case KOp::k_reduce_all: return "true";
    default: return fmt::format("Best<{}>{{{}, -1}}", value_type(dtype), ir::is_floating(dtype) ? real(dtype, 0) : integer(dtype, 0));
  }
}

}  // namespace dynvm::codegen::cuda
