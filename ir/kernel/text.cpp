// Printer and parser of kernels. The form is described in text.h. Tests: tests/kernel/text_test.cpp.
#include "ir/kernel/text.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "ir/kernel/philox.h"
#include "ir/kernel/symbols.h"

namespace dynvm::ir {

namespace {

void append_float(std::string* out, double value) {
  if (std::isnan(value)) {
    *out += "nan";
  } else if (std::isinf(value)) {
    *out += value < 0 ? "-inf" : "inf";
  } else {
    char buffer[40];
    auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
    out->append(buffer, result.ptr);
  }
}

void append_list(std::string* out, const std::vector<int64_t>& values, const std::vector<int64_t>& symbols = {}) {
  for (size_t i = 0; i < values.size(); ++i) *out += (i ? ", " : "") + symbol_text(values[i], symbols);
}

class Parser {
 public:
  Parser(std::string_view text, Kernel* kernel) : text_(text), kernel_(*kernel) { kernel_ = Kernel(); }

  bool kernel() {
    if (!name() || (accept_word("symbols") && !list('[', ']', &kernel_.symbols))) return false;
    if (!word("sizes") || !list('[', ']', &kernel_.sizes)) return false;
    if (accept_word("reduce")) {
      std::vector<int64_t> dims;
      if (!list('[', ']', &dims)) return false;
      for (int64_t dim : dims) {
        if (dim < 0 || dim >= 32) return fail("a dim");
        kernel_.reduce_dims |= 1u << dim;
      }
    }
    int64_t pointers;
    if (!word("pointers") || !integer(&pointers)) return false;
    kernel_.num_pointers = static_cast<int32_t>(pointers);
    if (accept_word("scalars")) {
      if (!punct('(')) return false;
      do {
        DType dtype;
        if (!dtype_word(&dtype)) return false;
        kernel_.scalar_types.push_back(dtype);
      } while (accept(','));
      if (!punct(')')) return false;
    }
    if (!punct('{')) return false;
    while (!accept('}'))
      if (!line()) return false;
    return true;
  }

  size_t position() const { return at_; }
  std::string error() const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) text_[i] == '\n' ? (++line, column = 1) : ++column;
    return "kernel text, line " + std::to_string(line) + ", column " + std::to_string(column) + ": expected " + expected_;
  }

 private:
  bool fail(std::string expected) {
    expected_ = std::move(expected);
    return false;
  }

  void skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  bool accept(char c) {
    skip();
    if (at_ < text_.size() && text_[at_] == c) return ++at_, true;
    return false;
  }
  bool punct(char c) { return accept(c) || fail(std::string("'") + c + "'"); }

  std::string_view peek_word() {
    skip();
    size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_')) ++end;
    return text_.substr(at_, end - at_);
  }
  bool accept_word(std::string_view wanted) {
    if (peek_word() != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  bool word(std::string_view wanted) { return accept_word(wanted) || fail("'" + std::string(wanted) + "'"); }

  bool dtype_word(DType* dtype) {
    std::string_view found = peek_word();
    if (!dtype_from_name(found, dtype)) return fail("a dtype");
    at_ += found.size();
    return true;
  }

  bool integer(int64_t* value) {
    skip();
    auto result = std::from_chars(text_.data() + at_, text_.data() + text_.size(), *value);
    if (result.ec != std::errc()) return fail("an integer");
    at_ = static_cast<size_t>(result.ptr - text_.data());
    return true;
  }

  // A product of integers and symbols: 768*s0.
  bool product(int64_t* value) {
    *value = 1;
    do {
      int64_t factor;
      skip();
      if (at_ < text_.size() && text_[at_] == 's') {
        if (!index('s', &factor)) return false;
        if (factor < 0 || factor >= static_cast<int64_t>(kernel_.symbols.size())) return fail("a symbol");
        factor = kernel_.symbols[static_cast<size_t>(factor)];
      } else if (!integer(&factor)) {
        return false;
      }
      *value *= factor;
    } while (accept('*'));
    return true;
  }

  bool number(double* value) {
    skip();
    auto result = std::from_chars(text_.data() + at_, text_.data() + text_.size(), *value);  // knows nan and inf
    if (result.ec != std::errc()) return fail("a number");
    at_ = static_cast<size_t>(result.ptr - text_.data());
    return true;
  }

  // A letter and an index: o3, n12, p0, s1, d2.
  bool index(char letter, int64_t* value) {
    skip();
    if (at_ >= text_.size() || text_[at_] != letter) return fail(std::string("'") + letter + "' and an index");
    ++at_;
    return integer(value);
  }
  bool index(char letter, int32_t* value) {
    int64_t wide;
    if (!index(letter, &wide)) return false;
    *value = static_cast<int32_t>(wide);
    return true;
  }

  bool list(char open, char close, std::vector<int64_t>* values) {
    if (!punct(open)) return false;
    if (accept(close)) return true;
    do {
      int64_t value;
      if (!product(&value)) return false;
      values->push_back(value);
    } while (accept(','));
    return punct(close);
  }

  bool name() {
    if (!punct('"')) return false;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) kernel_.name += text_[at_++];
    }
    return punct('"');
  }

  bool line() {
    skip();
    const std::string_view word = peek_word();
    if (word == "store" || word == "store_at" || word == "add_at") {
      KernelStore store;
      accept_word(word);
      if (!index('o', &store.operand) || !punct(',') || !index('n', &store.node)) return false;
      if (word != "store" && (!punct(',') || !index('n', &store.at) || !punct(',') || !index('n', &store.holds))) return false;
      store.adds = word == "add_at";
      kernel_.stores.push_back(store);
      return true;
    }
    int64_t number;
    if (at_ < text_.size() && text_[at_] == 'o') {
      if (!index('o', &number)) return false;
      if (number != static_cast<int64_t>(kernel_.operands.size())) return fail("operands numbered in order");
      return punct('=') && operand();
    }
    if (!index('n', &number)) return fail("an operand, a node, a store or '}'");
    if (number != static_cast<int64_t>(kernel_.nodes.size())) return fail("nodes numbered in order");
    return punct('=') && node();
  }

  bool operand() {
    KernelOperand operand;
    if (!dtype_word(&operand.dtype) || !index('p', &operand.pointer) || !punct('+') || !product(&operand.offset) || !list('{', '}', &operand.strides)) return false;
    kernel_.operands.push_back(std::move(operand));
    return true;
  }

  bool node() {
    KernelNode node;
    std::string_view found = peek_word();
    if (!kop_from_name(found, &node.op)) return fail("a kernel op");
    at_ += found.size();
    if (!dtype_word(&node.dtype)) return false;
    switch (node.op) {
      case KOp::k_load:
        if (!index('o', &node.operand)) return false;
        break;
      case KOp::k_load_at:
        if (!index('o', &node.operand) || !punct(',') || !index('n', &node.a) || !punct(',') || !index('n', &node.b)) return false;
        break;
      case KOp::k_scalar:
        if (!index('s', &node.i)) return false;
        break;
      case KOp::k_index:
        if (!index('d', &node.i)) return false;
        break;
      case KOp::k_draw: {
        DrawForm form;
        if (!index('n', &node.a) || !punct(',') || !index('n', &node.b) || !punct(',') || !index('o', &node.operand) || !word("of") || !integer(&form.threads) || !word("x") ||
            !integer(&form.vector)) return false;
        node.i = form.packed();
        break;
      }
      case KOp::k_const:
        if (!(is_floating(node.dtype) ? number(&node.f) : integer(&node.i))) return false;
        break;
      default: {
        int32_t* args[3] = {&node.a, &node.b, &node.c};
        for (int i = 0; i < kop_info(node.op).arity; ++i)
          if ((i && !punct(',')) || !index('n', args[i])) return false;
      }
    }
    kernel_.nodes.push_back(node);
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  Kernel& kernel_;
  std::string expected_;
};

}  // namespace

std::string print_kernel(const Kernel& kernel) {
  std::string out = "\"";
  for (char c : kernel.name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += "\"";
  if (!kernel.symbols.empty()) {
    out += " symbols [";
    append_list(&out, kernel.symbols);
    out += "]";
  }
  out += " sizes [";
  append_list(&out, kernel.sizes, kernel.symbols);
  out += "]";
  if (kernel.reduce_dims) {
    std::vector<int64_t> dims;
    for (int k = 0; k < 32; ++k)
      if (kernel.reduce_dims >> k & 1) dims.push_back(k);
    out += " reduce [";
    append_list(&out, dims);
    out += "]";
  }
  out += " pointers " + std::to_string(kernel.num_pointers);
  if (!kernel.scalar_types.empty()) {
    out += " scalars (";
    for (size_t i = 0; i < kernel.scalar_types.size(); ++i) out += (i ? ", " : "") + std::string(dtype_name(kernel.scalar_types[i]));
    out += ")";
  }
  out += " {\n";
  for (size_t o = 0; o < kernel.operands.size(); ++o) {
    const KernelOperand& operand = kernel.operands[o];
    out += "  o" + std::to_string(o) + " = " + std::string(dtype_name(operand.dtype)) + " p" + std::to_string(operand.pointer) + " + " +
           symbol_text(operand.offset, kernel.symbols) + " {";
    append_list(&out, operand.strides, kernel.symbols);
    out += "}\n";
  }
  for (size_t n = 0; n < kernel.nodes.size(); ++n) {
    const KernelNode& node = kernel.nodes[n];
    const KOpInfo& info = kop_info(node.op);
    out += "  n" + std::to_string(n) + " = " + std::string(info.name) + " " + std::string(dtype_name(node.dtype)) + " ";
    switch (node.op) {
      case KOp::k_load: out += "o" + std::to_string(node.operand); break;
      case KOp::k_load_at: out += "o" + std::to_string(node.operand) + ", n" + std::to_string(node.a) + ", n" + std::to_string(node.b); break;
      case KOp::k_scalar: out += "s" + std::to_string(node.i); break;
      case KOp::k_index: out += "d" + std::to_string(node.i); break;
      case KOp::k_draw: {
        const DrawForm form = DrawForm::of(node.i);
        out += "n" + std::to_string(node.a) + ", n" + std::to_string(node.b) + ", o" + std::to_string(node.operand) + " of " + std::to_string(form.threads) + " x " + std::to_string(form.vector);
        break;
      }
      case KOp::k_const:
        if (is_floating(node.dtype)) append_float(&out, node.f);
        else out += std::to_string(node.i);
        break;
      default: {
        const int32_t args[3] = {node.a, node.b, node.c};
        for (int i = 0; i < info.arity; ++i) out += (i ? ", n" : "n") + std::to_string(args[i]);
      }
    }
    out += "\n";
  }
  for (const KernelStore& store : kernel.stores) {
    out += std::string(store.adds ? "  add_at" : store.has_place() ? "  store_at" : "  store") + " o" + std::to_string(store.operand) + ", n" + std::to_string(store.node);
    if (store.has_place()) out += ", n" + std::to_string(store.at) + ", n" + std::to_string(store.holds);
    out += "\n";
  }
  return out + "}";
}

base::Status parse_kernel(std::string_view text, Kernel* kernel, size_t* length) {
  Parser parser(text, kernel);
  bool whole = parser.kernel();
  if (length) *length = parser.position();
  return whole ? base::Status() : base::Status::failure(parser.error());
}

}  // namespace dynvm::ir
