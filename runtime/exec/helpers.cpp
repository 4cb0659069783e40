// The table of helpers, from helpers.def (helpers.h).
#include "runtime/exec/helpers.h"

namespace dynvm::runtime {

const codegen::HelperTable& helper_table() {
  static const codegen::HelperTable table = [] {
    codegen::HelperTable out;
#define H(op, form, function, sentence)                                    \
  out.by_op[static_cast<size_t>(ir::Op::k_##op)] = {                       \
      reinterpret_cast<const void*>(&helpers::function), codegen::HelperShape::form};
#include "runtime/exec/helpers.def"
#undef H
    out.unbox_int = reinterpret_cast<const void*>(&helpers::unbox_int);
    out.dict_of = reinterpret_cast<const void*>(&helpers::dict_of);
    return out;
  }();
  return table;
}

}  // namespace dynvm::runtime
