// Parsing traces (text.h; the grammar stands there). Recursive descent with one token of look-ahead.
//
// Inputs: text. Outputs: a Trace or the first error with its line. Invariant: never reads past the text and accepts no unknown word, so
// that a misspelt test fails instead of testing something else. Semantic rules are verify.h's.
// Tests: tests/ir/text.cpp.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ir/kernel/text.h"
#include "ir/text.h"
#include "ir/text_tokens.h"

namespace dynvm::ir {
namespace {

using text::Immediate;
using text::Token;

class Parser {
 public:
  Parser(std::string_view text, Trace* trace) : lexer_(text), trace_(*trace) {}

  bool whole() {
    int64_t id = 0, storages = 0;
    blank_lines();
    if (!word("trace") || !integer(&id) || !string(&trace_.name) || !word("storages") || !integer(&storages)) return false;
    trace_.id = static_cast<int32_t>(id);
    trace_.num_storages = static_cast<int32_t>(storages);
    if (accept_word("symbols") && !integers("[", "]", &trace_.symbols)) return false;
    while (accept_word("sum")) {
      int64_t symbol = 0;
      SymbolSum& sum = trace_.sums.emplace_back();
      if (!numbered("s", &symbol) || !integers("[", "]", &sum.terms)) return false;
      sum.symbol = static_cast<int32_t>(symbol);
    }
    while (!failed()) {
      blank_lines();
      if (token().kind == Token::kEnd) break;
      if (token().kind == Token::kWord && starts_snapshot(token().text)) {
        if (!snapshot()) return false;
      } else if (token().kind == Token::kWord && token().text == "kernel" && kernel_body_follows()) {
        if (!kernel()) return false;
      } else if (!inst()) {
        return false;
      }
      if (token().kind != Token::kLine && token().kind != Token::kEnd) return expected("the end of the line");
    }
    return !failed();
  }

  const std::string& error() const { return error_; }

 private:
  const Token& token() const { return lexer_.token(); }
  bool failed() const { return !error_.empty(); }

  bool fail(const std::string& message) {
    if (error_.empty()) error_ = "line " + std::to_string(lexer_.line()) + ": " + message;
    return false;
  }
  bool expected(const std::string& what) {
    return fail("expected " + what + " before `" + std::string(lexer_.rest().substr(0, 24)) + "`");
  }
  void next() { lexer_.next(); }
  void blank_lines() {
    while (token().kind == Token::kLine) next();
  }

  // --- tokens. accept_*: take it if it is there. The others fail if it is not.
  bool at_punct(std::string_view what) const { return token().kind == Token::kPunct && token().text == what; }
  bool at_word(std::string_view what) const { return token().kind == Token::kWord && token().text == what; }
  bool accept_punct(std::string_view what) {
    if (!at_punct(what)) return false;
    next();
    return true;
  }
  bool accept_word(std::string_view what) {
    if (!at_word(what)) return false;
    next();
    return true;
  }
  bool punct(std::string_view what) { return accept_punct(what) || expected("`" + std::string(what) + "`"); }
  bool word(std::string_view what) { return accept_word(what) || expected("`" + std::string(what) + "`"); }
  bool integer(int64_t* value) {
    if (token().kind != Token::kInt || lexer_.bad()) return expected("an integer");
    *value = token().i;
    next();
    return true;
  }
  template <class T>
  bool small(T* value) {
    int64_t wide = 0;
    if (!integer(&wide)) return false;
    *value = static_cast<T>(wide);
    return *value == wide || fail("the number is too large here");
  }
  bool number(double* value) {
    if (lexer_.bad() || (token().kind != Token::kFloat && token().kind != Token::kInt)) return expected("a number");
    *value = token().kind == Token::kFloat ? token().f : static_cast<double>(token().i);
    next();
    return true;
  }
  bool string(std::string* value) {
    if (token().kind != Token::kString || lexer_.bad()) return expected("a string");
    *value = token().string;
    next();
    return true;
  }
  bool dtype(DType* value) {
    if (token().kind != Token::kWord || !dtype_from_name(token().text, value)) return expected("a dtype");
    next();
    return true;
  }
  // An integer glued to a word: k3, s5, snap7.
  bool numbered(std::string_view prefix, int64_t* value) {
    std::string_view text = token().text;
    if (token().kind != Token::kWord || text.size() <= prefix.size() || text.substr(0, prefix.size()) != prefix ||
        !std::all_of(text.begin() + prefix.size(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) || text.size() > prefix.size() + 9) {
      return expected("`" + std::string(prefix) + "` and a number");
    }
    *value = std::stol(std::string(text.substr(prefix.size())));
    next();
    return true;
  }
  template <class Item>
  bool list(std::string_view close, Item item) {  // after the opening character
    if (accept_punct(close)) return true;
    do {
      if (!item()) return false;
    } while (accept_punct(","));
    return punct(close);
  }
  bool integers(std::string_view open, std::string_view close, std::vector<int64_t>* values) {
    return punct(open) && list(close, [&] { return integer(&values->emplace_back()); });
  }

  // --- names
  bool name(std::string* value) {  // after '%'
    if (token().kind == Token::kInt || token().kind == Token::kWord) {
      *value = token().text;
      next();
      return true;
    }
    return expected("a value's name");
  }
  bool value(Ref* ref) {
    if (accept_word("undef")) {
      *ref = kNoRef;
      return true;
    }
    std::string text;
    if (!punct("%") || !name(&text)) return false;
    auto found = names_.find(text);
    if (found == names_.end()) return fail("%" + text + " is not defined before");
    *ref = found->second;
    return true;
  }

  // --- parts
  bool meta(int32_t* index) {
    TensorMeta meta;
    int64_t storage = -1;
    if (!dtype(&meta.dtype) || !integers("[", "]", &meta.sizes) || !integers("{", "}", &meta.strides)) return false;
    if (accept_word("s")) {  // "s -1": the lexer splits the sign off
      if (!integer(&storage)) return false;
    } else if (!numbered("s", &storage)) {
      return false;
    }
    meta.storage = static_cast<int32_t>(storage);
    for (;;) {
      if (accept_word("offset")) {
        if (!integer(&meta.offset)) return false;
      } else if (accept_word("device")) {
        if (!small(&meta.device_type) || !small(&meta.device_index)) return false;
      } else if (accept_word("grad")) {
        meta.requires_grad = true;
      } else if (accept_word("nonleaf")) {
        meta.is_leaf = false;
      } else if (accept_word("wrapped")) {
        meta.wrapped_number = true;
      } else if (accept_word("param")) {
        meta.is_parameter = true;
      } else if (accept_word("subclass")) {
        meta.is_subclass = true;
      } else if (accept_word("hooks")) {
        meta.has_hooks = true;
      } else if (accept_word("inference")) {
        meta.inference = true;
      } else if (accept_word("open")) {
        int64_t open = 0;
        if (!integer(&open)) return false;
        meta.open = static_cast<uint64_t>(open);
      } else if (accept_word("symbolic")) {
        meta.symbolic = true;
      } else if (accept_word("shown")) {
        if (!integers("{", "}", &meta.shown)) return false;
      } else {
        break;
      }
    }
    for (size_t k = 0; k < trace_.metas.size(); ++k) {
      if (trace_.metas[k] == meta) {
        *index = static_cast<int32_t>(k);
        return true;
      }
    }
    *index = static_cast<int32_t>(trace_.metas.size());
    trace_.metas.push_back(std::move(meta));
    return true;
  }

  bool state(int64_t* index) {
    TorchState state;
    state.grad_mode = false;
    if (!punct("{")) return false;
    while (token().kind == Token::kWord) {
      if (accept_word("grad")) {
        state.grad_mode = true;
      } else if (accept_word("inference")) {
        state.inference_mode = true;
      } else if (accept_word("autocast_cpu")) {
        state.autocast_cpu = true;
      } else if (accept_word("autocast_cuda")) {
        state.autocast_cuda = true;
      } else if (accept_word("deterministic")) {
        state.deterministic = true;
      } else if (accept_word("no_overrides")) {
        state.overrides = false;
      } else if (accept_word("unclean")) {
        state.clean = false;
      } else {
        return expected("a torch mode");
      }
    }
    if (!punct(":") || !dtype(&state.default_dtype) || !small(&state.autocast_cpu_dtype) || !small(&state.autocast_cuda_dtype)) return false;
    if (accept_word("modes") && !small(&state.function_modes)) return false;
    if (!accept_punct("}") && (!small(&state.cuda_device) || !punct("}"))) return false;
    *index = static_cast<int64_t>(trace_.torch_states.size());
    trace_.torch_states.push_back(state);
    return true;
  }

  bool wrap(int64_t* index) {
    Wrap wrap;
    size_t number = trace_.wraps.size();
    for (;;) {
      if (accept_word("grad")) {
        wrap.requires_grad = true;
      } else if (accept_word("nonleaf")) {
        wrap.is_leaf = false;
      } else if (accept_word("fn")) {
        if (!string(&wrap.grad_fn)) return false;
      } else if (accept_word("nr")) {
        if (!small(&wrap.output_nr)) return false;
      } else if (accept_word("freed")) {
        wrap.freed = true;
      } else if (accept_word("forward")) {
        if (!punct("[") || !list("]", [&] { return value(&wrap.forward.emplace_back()); })) return false;
      } else if (accept_word("behind")) {
        const auto node = [&] {
          FreedNode& freed = wrap.freed_behind.emplace_back();
          return value(&freed.value) && string(&freed.grad_fn) && small(&freed.output_nr);
        };
        if (!punct("[") || !list("]", node)) return false;
      } else if (accept_word("node")) {
        if (!node(&wrap.nodes.emplace_back())) return false;
      } else {
        break;
      }
    }
    *index = static_cast<int64_t>(number);
    trace_.wraps.push_back(std::move(wrap));
    return true;
  }

  bool values(std::vector<Ref>* all) { return punct("[") && list("]", [&] { return value(&all->emplace_back()); }); }

  bool node(GraphNode* node) {
    if (!small(&node->number) || !values(&node->outputs)) return false;
    node->names.resize(node->outputs.size());
    for (std::string& name : node->names)
      if (!string(&name)) return false;
    if (!values(&node->inputs)) return false;
    for (size_t k = 0; k < node->inputs.size(); ++k) {
      int64_t reached = 0;
      if (!integer(&reached)) return false;
      node->reached_by.push_back(static_cast<uint64_t>(reached));
    }
    const auto number = [&] {
      CallNumber& made = node->numbers.emplace_back();
      return value(&made.call) && small(&made.argument);
    };
    return punct("[") && list("]", number) && values(&node->saved) && values(&node->sized) && values(&node->calls);
  }

  bool object(int64_t* index) {  // after '@'
    std::string text;
    if (!integer(index) || !string(&text)) return false;
    if (*index < 0 || *index > 1 << 20) return fail("object number out of range");
    if (trace_.objects.size() <= static_cast<size_t>(*index)) trace_.objects.resize(*index + 1);
    Object& object = trace_.objects[*index];
    // Null stays null: the text is how it is told from an object.
    object.pointer = text == "NULL" ? nullptr : reinterpret_cast<void*>(*index + 1);
    object.text = std::move(text);
    return true;
  }

  bool argument(AtenCall* call, std::vector<Ref>* operands) {
    AtenArg arg;
    auto operand = [&] {
      Ref ref;
      if (!value(&ref)) return false;
      arg.operands.push_back(ref == kNoRef ? -1 : static_cast<int32_t>(operands->size()));
      if (ref != kNoRef) operands->push_back(ref);
      return true;
    };
    if (at_punct("%") || at_word("undef")) {
      arg.kind = AtenArg::kTensor;
      if (!operand()) return false;
    } else if (accept_punct("?")) {
      arg.kind = AtenArg::kTensorList;
      arg.is_optional_list = true;
      if (!punct("[") || !list("]", operand)) return false;
    } else if (accept_punct("[")) {
      arg.kind = AtenArg::kTensorList;
      if (!list("]", operand)) return false;
    } else if (accept_punct("$")) {
      arg.kind = AtenArg::kScalar;
      if (!at_punct("%")) {
        arg.kind = AtenArg::kScalarTensor;
        if (!dtype(&arg.dtype)) return false;
      }
      if (!operand()) return false;
    } else if (accept_punct("#")) {
      arg.kind = AtenArg::kNumberTensor;
      if (!dtype(&arg.dtype)) return false;
      if (is_floating(arg.dtype) ? !number(&arg.f) : !integer(&arg.i)) return false;
    } else if (accept_word("none")) {
      arg.kind = AtenArg::kNone;
    } else if (at_word("true") || at_word("false")) {
      arg.kind = AtenArg::kBool;
      arg.i = at_word("true");
      next();
    } else if (accept_word("ints")) {
      arg.kind = AtenArg::kIntList;
      if (!integers("[", "]", &arg.ints)) return false;
    } else if (accept_word("bools")) {
      arg.kind = AtenArg::kBoolList;
      if (!integers("[", "]", &arg.ints)) return false;
    } else if (accept_word("floats")) {
      arg.kind = AtenArg::kFloatList;
      if (!punct("[") || !list("]", [&] { return number(&arg.floats.emplace_back()); })) return false;
    } else if (accept_word("opaque")) {
      arg.kind = AtenArg::kOpaque;
      if (!integer(&arg.i)) return false;
    } else if (token().kind == Token::kInt) {
      arg.kind = AtenArg::kInt;
      if (!integer(&arg.i)) return false;
    } else if (token().kind == Token::kFloat) {
      arg.kind = AtenArg::kFloat;
      if (!number(&arg.f)) return false;
    } else if (token().kind == Token::kString) {
      arg.kind = AtenArg::kString;
      if (!string(&arg.s)) return false;
    } else {
      return expected("an argument");
    }
    call->args.push_back(std::move(arg));
    return true;
  }

  bool call(std::vector<Ref>* operands, int64_t* index) {
    AtenCall call;
    if (!string(&call.name)) return false;
    size_t dot = call.name.find('.');
    if (dot != std::string::npos) {
      call.overload = call.name.substr(dot + 1);
      call.name.resize(dot);
    }
    if (!punct("(") || !list(")", [&] { return argument(&call, operands); })) return false;
    auto result = [&] {
      int64_t alias = -1;
      int32_t index = -1;
      if (!accept_word("undef") && !meta(&index)) return false;
      if (accept_word("alias") && !integer(&alias)) return false;
      call.results.push_back(index);
      call.result_alias.push_back(static_cast<int32_t>(alias));
      return true;
    };
    if (!punct("->") || !punct("(") || !list(")", result)) return false;
    for (;;) {
      if (accept_word("mutates")) {
        if (!punct("[") || !list("]", [&] { return small(&call.mutates.emplace_back()); })) return false;
      } else if (accept_word("sized")) {
        call.defines_sizes = true;
      } else if (accept_word("follows")) {
        call.follows = true;
      } else if (accept_word("random")) {
        call.is_random = true;
      } else if (accept_word("stream")) {
        int32_t vector = 0;
        if (!small(&call.stream.threads) || !accept_word("x") || !small(&vector)) return expected("a stream");
        call.stream.vector = static_cast<int8_t>(vector);
      } else if (accept_word("grad")) {
        call.grad_mode = true;
      } else if (accept_word("inference")) {
        call.inference_mode = true;
      } else if (accept_word("backward")) {
        call.in_backward = true;
      } else if (accept_word("moves")) {
        call.moves = true;
      } else if (accept_word("autocast")) {
        int32_t dtype = 0;
        if (!small(&dtype)) return expected("a dtype's number");
        call.autocast = static_cast<int8_t>(dtype);
      } else if (accept_word("count")) {
        if (!small(&call.count)) return false;
      } else {
        break;
      }
    }
    *index = static_cast<int64_t>(trace_.calls.size());
    trace_.calls.push_back(std::move(call));
    return true;
  }

  bool inst() {
    std::string defined;
    Type type = Type::kVoid;
    if (accept_punct("%")) {
      if (!name(&defined)) return false;
      if (accept_punct(":")) {
        if (token().kind != Token::kWord || token().text.size() != 1 || !text::type_of_letter(token().text[0], &type)) return expected("a type");
        next();
      }
      if (!punct("=")) return false;
      if (names_.count(defined)) return fail("%" + defined + " is defined twice");
    }
    if (token().kind != Token::kWord) return expected("an operation");
    Op op = Op::kCount;
    for (int k = 0; k < static_cast<int>(Op::kCount); ++k)
      if (op_info(static_cast<Op>(k)).name == token().text) op = static_cast<Op>(k);
    if (op == Op::kCount) return fail("no operation is called " + std::string(token().text));
    next();

    std::vector<Ref> operands;
    int64_t imm = 0;
    bool sunk = false, again = false;
    int64_t snapshot = kNoSnapshot;
    int32_t meta_index = -1;
    if (op == Op::k_aten) {
      if (!call(&operands, &imm)) return false;
    } else if (op == Op::k_kernel) {
      if (!numbered("k", &imm) || !punct("(") || !list(")", [&] { return value(&operands.emplace_back()); })) return false;
    } else {
      if (at_punct("%") || at_word("undef")) {
        do {
          if (!value(&operands.emplace_back())) return false;
        } while (accept_punct(","));
      }
      if (!immediate(op, &imm)) return false;
    }
    for (;;) {
      if (accept_word("sunk")) {
        sunk = true;
      } else if (accept_word("again")) {
        again = true;
      } else if (accept_punct("!")) {
        if (!numbered("snap", &snapshot)) return false;
      } else if (accept_punct("->")) {
        if (!meta(&meta_index)) return false;
      } else {
        break;
      }
    }
    if (op == Op::k_unbox_tensor) imm = meta_index;
    Ref ref = trace_.add(op, type, operands, imm, static_cast<int32_t>(snapshot));
    trace_.insts[ref].sunk = sunk;
    trace_.insts[ref].again = again;
    trace_.insts[ref].meta = meta_index;
    if (!defined.empty()) names_.emplace(defined, ref);
    return true;
  }

  bool immediate(Op op, int64_t* imm) {
    switch (text::immediate_of(op)) {
      case Immediate::kObject:
        *imm = -1;
        return !accept_punct("@") || object(imm);
      case Immediate::kFloat: {
        double value = 0;
        if (!number(&value)) return false;
        std::memcpy(imm, &value, sizeof value);
        return true;
      }
      case Immediate::kState: return state(imm);
      case Immediate::kWrap: return wrap(imm);
      case Immediate::kMeta: return true;
      case Immediate::kNumber: return punct("#") && integer(imm);
      case Immediate::kOptionalNumber: return !accept_punct("#") || integer(imm);
    }
    return true;
  }

  static bool starts_snapshot(std::string_view word) {
    return word.size() > 4 && word.substr(0, 4) == "snap" && word[4] >= '0' && word[4] <= '9';
  }

  bool snapshot() {
    int64_t index = 0;
    if (!numbered("snap", &index) || !punct(":")) return false;
    if (index != static_cast<int64_t>(trace_.snapshots.size())) return fail("snapshots are numbered in order");
    Snapshot snapshot;
    snapshot.elsewhere = accept_word("elsewhere");
    if (token().kind != Token::kLine) {
      do {
        if (accept_word("store")) {
          SnapshotStore& store = snapshot.stores.emplace_back();
          if (!value(&store.dict) || !value(&store.key) || !value(&store.value)) return false;
          continue;
        }
        SnapshotFrame parsed;
        if (!frame(&parsed)) return false;
        const uint32_t number = trace_.add_frame(parsed, snapshot.frames.size());
        snapshot.frames.push_back(number);
      } while (accept_punct("|"));
    }
    trace_.snapshots.push_back(std::move(snapshot));
    return true;
  }

  bool frame(SnapshotFrame* frame) {
    if (!accept_word("root") && !value(&frame->function)) return false;
    if (accept_word("code")) {
      int64_t code = 0;
      if (!integer(&code)) return false;
      frame->code = reinterpret_cast<void*>(code);
    }
    if (!word("unit") || !small(&frame->unit)) return false;
    if (accept_word("then") && !small(&frame->continuation)) return false;
    if (accept_word("with") && !value(&frame->continuation_value)) return false;
    return punct("[") && list("]", [&] {
      if (accept_word("_")) {
        frame->slots.push_back(kSlotNull);
        return true;
      }
      if (accept_punct("=")) {
        frame->slots.push_back(kSlotUnchanged);
        return true;
      }
      return value(&frame->slots.emplace_back());
    });
  }

  // `kernel k0 "name" ...` is a body, `kernel k0 (` an instruction.
  bool kernel_body_follows() const {
    std::string_view rest = lexer_.rest();
    size_t at = rest.find_first_of("\"(\n");
    return at != std::string_view::npos && rest[at] == '"';
  }

  bool kernel() {
    int64_t index = 0;
    next();
    if (!numbered("k", &index)) return false;
    if (index != static_cast<int64_t>(trace_.kernels.size())) return fail("kernels are numbered in order");
    size_t length = 0;
    base::Status status = parse_kernel(lexer_.rest(), &trace_.kernels.emplace_back(), &length);
    if (!status.ok()) return fail(status.message());
    lexer_.skip(length);
    return true;
  }

  text::Lexer lexer_;
  Trace& trace_;
  std::unordered_map<std::string, Ref> names_;
  std::string error_;
};

}  // namespace

base::Status parse_trace(std::string_view text, Trace* trace) {
  *trace = Trace();
  Parser parser(text, trace);
  if (!parser.whole()) return base::Status::failure(parser.error());
  return base::Status();
}

}  // namespace dynvm::ir
