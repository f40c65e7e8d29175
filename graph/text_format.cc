#include "graph/text_format.h"

#include <unordered_map>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "graph/attribute_text.h"

namespace weft {
namespace {

bool IsNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '.' || c == '-' || c == '/';
}

bool IsName(absl::string_view text) {
  if (text.empty()) return false;
  for (char c : text) {
    if (!IsNameChar(c)) return false;
  }
  return true;
}

std::string Quoted(absl::string_view text) {
  return IsName(text) ? std::string(text)
                      : absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

std::string TypeText(const Value& value) {
  std::string text = value.type.ToString();
  if (value.offset >= 0) absl::StrAppend(&text, "@", value.offset);
  return text;
}

}  // namespace

std::string FormatAttribute(absl::string_view name,
                            const AttributeValue& value) {
  return absl::StrCat(name, "=", ToText(value));
}

namespace {

std::string NodeLine(const Graph& graph, const Node& node,
                     const std::function<std::string(ValueId)>& name_of) {
  std::string line = "  ";
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    absl::StrAppend(&line, i > 0 ? ", " : "", name_of(node.outputs[i]));
  }
  absl::StrAppend(&line, " = ", node.op->name, "(");
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    absl::StrAppend(&line, i > 0 ? ", " : "", name_of(node.inputs[i]));
  }
  absl::StrAppend(&line, ")");
  ForEachAttribute(node,
                   [&](absl::string_view name, const AttributeValue& value) {
                     absl::StrAppend(&line, " ", FormatAttribute(name, value));
                   });
  absl::StrAppend(&line, "  ");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    absl::StrAppend(&line, i > 0 ? ", " : "",
                    TypeText(graph.value(node.outputs[i])));
  }
  if (node.scratch_offset >= 0) {
    absl::StrAppend(&line, "  scratch@", node.scratch_offset);
  }
  if (!node.name.empty()) absl::StrAppend(&line, "  : ", Quoted(node.name));
  return line + "\n";
}

// A comment for the nodes of the order's places [begin, end).
std::string LeftOut(const Graph& graph, size_t begin, size_t end) {
  if (begin == end) return "";
  const auto name = [&](size_t i) {
    const Node& node = graph.node(graph.order()[i]);
    return Quoted(LabelOf(node));
  };
  return absl::StrCat("  # ", end - begin, " nodes left out: ", name(begin),
                      " to ", name(end - 1), "\n");
}

}  // namespace

std::string Dump(const Graph& graph, const DumpOptions& options) {
  std::string text = absl::StrCat(
      "graph ", Quoted(graph.name), " tokens<=", graph.bounds.tokens,
      " rows<=", graph.bounds.rows, " context<=", graph.bounds.context);
  if (graph.arena.bytes >= 0) {
    absl::StrAppend(&text, " arena=", graph.arena.bytes,
                    " lower_bound=", graph.arena.lower_bound,
                    " sum=", graph.arena.sum_of_intermediates);
  }
  text += "\n";
  const std::vector<int> numbers =
      options.numbers != nullptr ? *options.numbers : NumberValues(graph);
  const std::vector<bool> shown = ShownValues(graph, options.show);
  const auto name_of = [&](ValueId id) {
    return graph.IsWeight(id) ? absl::StrCat("$", Quoted(graph.value(id).name))
                              : absl::StrCat("%", numbers[id]);
  };
  const std::pair<ValueKind, const char*> kinds[] = {
      {ValueKind::kWeight, "weight"},
      {ValueKind::kInput, "input"},
      {ValueKind::kState, "state"}};
  for (const auto& [kind, word] : kinds) {
    int left_out = 0;
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      const Value& value = graph.value(id);
      if (value.kind != kind) continue;
      if (!shown[id]) {
        ++left_out;
        continue;
      }
      absl::StrAppend(&text, "  ", name_of(id), " = ", word,
                      kind == ValueKind::kWeight
                          ? ""
                          : absl::StrCat(" ", Quoted(value.name)),
                      "  ", TypeText(value), "\n");
    }
    if (left_out > 0) {
      absl::StrAppend(&text, "  # ", left_out, " left out: ", word, "\n");
    }
  }
  size_t first_left_out = 0;
  const std::vector<NodeId>& order = graph.order();
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = graph.node(order[i]);
    if (options.show && !options.show(node)) continue;
    text += LeftOut(graph, first_left_out, i);
    first_left_out = i + 1;
    text += NodeLine(graph, node, name_of);
  }
  text += LeftOut(graph, first_left_out, order.size());
  for (const auto& [name, value] : graph.outputs()) {
    if (!shown[value]) continue;
    absl::StrAppend(&text, "  output ", Quoted(name), " = ", name_of(value),
                    "\n");
  }
  return text;
}

namespace {

// Reads one line from left to right; the first failure sticks.
class LineReader {
 public:
  explicit LineReader(absl::string_view text) : rest_(text) {}

  void SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  bool AtEnd() {
    SkipSpace();
    return rest_.empty() || rest_[0] == '#';
  }
  bool Take(absl::string_view token) {
    SkipSpace();
    return absl::ConsumePrefix(&rest_, token);
  }
  // Without skipping space first.
  bool TakeHere(absl::string_view token) {
    return absl::ConsumePrefix(&rest_, token);
  }
  // A run of name characters, or a quoted string.
  bool TakeWord(std::string* word) {
    SkipSpace();
    if (!rest_.empty() && rest_[0] == '"') return TakeQuoted(word);
    size_t n = 0;
    while (n < rest_.size() && IsNameChar(rest_[n])) ++n;
    if (n == 0) return false;
    *word = std::string(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return true;
  }
  bool TakeQuoted(std::string* word) {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') {
      end += rest_[end] == '\\' ? 2 : 1;
    }
    if (end >= rest_.size()) return false;
    if (!absl::CUnescape(rest_.substr(1, end - 1), word)) return false;
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool TakeInt(int64_t* value) {
    size_t n = 0;
    while (n < rest_.size() &&
           (absl::ascii_isdigit(static_cast<unsigned char>(rest_[n])) ||
            (n == 0 && rest_[n] == '-'))) {
      ++n;
    }
    if (!absl::SimpleAtoi(rest_.substr(0, n), value)) return false;
    rest_.remove_prefix(n);
    return true;
  }
  // "%3" or "$name", as it is written.
  bool TakeValueName(std::string* name) {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '%' && rest_[0] != '$')) return false;
    const char sigil = rest_[0];
    rest_.remove_prefix(1);
    std::string word;
    if (rest_.empty() || rest_[0] == ' ' || !TakeWord(&word)) return false;
    *name = absl::StrCat(std::string(1, sigil), word);
    return true;
  }
  absl::string_view rest() const { return rest_; }

 private:
  absl::string_view rest_;
};

class Parser {
 public:
  explicit Parser(OpLookup find) : find_(find) {}

  absl::StatusOr<Graph> Run(absl::string_view text) {
    int number = 0;
    bool header = false;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      LineReader reader(line);
      if (reader.AtEnd()) continue;
      const absl::Status status =
          header ? ParseLine(reader) : ParseHeader(reader);
      if (!status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "cannot read graph text: line ", number, ": ", status.message()));
      }
      header = true;
    }
    if (!header) {
      return absl::InvalidArgumentError(
          "cannot read graph text: line 1: no 'graph' header");
    }
    return std::move(graph_);
  }

 private:
  static absl::Status Error(absl::string_view what) {
    return absl::InvalidArgumentError(what);
  }

  absl::Status ParseHeader(LineReader& in) {
    if (!in.Take("graph ") || !in.TakeWord(&graph_.name) ||
        !in.Take("tokens<=") || !in.TakeInt(&graph_.bounds.tokens) ||
        !in.Take("rows<=") || !in.TakeInt(&graph_.bounds.rows) ||
        !in.Take("context<=") || !in.TakeInt(&graph_.bounds.context)) {
      return Error(
          "want 'graph NAME tokens<=N rows<=N context<=N' as the first line");
    }
    ArenaPlan& arena = graph_.arena;
    if (in.Take("arena=") &&
        (!in.TakeInt(&arena.bytes) || !in.Take("lower_bound=") ||
         !in.TakeInt(&arena.lower_bound) || !in.Take("sum=") ||
         !in.TakeInt(&arena.sum_of_intermediates))) {
      return Error("want 'arena=N lower_bound=N sum=N'");
    }
    if (!in.AtEnd()) return Error("text after the header");
    return absl::OkStatus();
  }

  absl::Status ParseLine(LineReader& in) {
    if (in.Take("output ")) {
      std::string name, value;
      if (!in.TakeWord(&name) || !in.Take("=") || !in.TakeValueName(&value) ||
          !in.AtEnd()) {
        return Error("want 'output NAME = %N'");
      }
      const auto it = values_.find(value);
      if (it == values_.end()) {
        return Error(absl::StrCat("no value ", value, " so far"));
      }
      graph_.AddOutput(name, it->second);
      return absl::OkStatus();
    }
    std::vector<std::string> results(1);
    if (!in.TakeValueName(&results[0])) {
      return Error("want '%N = ...', '$NAME = weight ...' or 'output ...'");
    }
    while (in.Take(",")) {
      results.emplace_back();
      if (!in.TakeValueName(&results.back())) return Error("want a result");
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (values_.count(results[i]) > 0 ||
          std::count(results.begin(), results.end(), results[i]) > 1) {
        return Error(absl::StrCat(results[i], " is made twice"));
      }
    }
    std::string op;
    if (!in.Take("=") || !in.TakeWord(&op)) return Error("want '= OP'");
    return in.Take("(") ? ParseNode(in, results, op)
                        : ParseSource(in, results, op);
  }

  absl::Status ParseSource(LineReader& in,
                           const std::vector<std::string>& results,
                           const std::string& kind) {
    const bool weight = kind == "weight";
    if (results.size() != 1 ||
        (!weight && kind != "input" && kind != "state")) {
      return Error(absl::StrCat("want '", kind, "(...)' or a source"));
    }
    if (weight != (results[0][0] == '$')) {
      return Error("weights, and only weights, are written $NAME");
    }
    std::string name = results[0].substr(1);
    Value value;
    if ((!weight && !in.TakeWord(&name))) return Error("want a name");
    WEFT_RETURN_IF_ERROR(ParseType(in, &value));
    if (!in.AtEnd()) return Error("text after the type");
    const ValueId id = weight ? graph_.AddWeight(name, value.type, {})
                       : kind == "input" ? graph_.AddInput(name, value.type)
                                         : graph_.AddState(name, value.type);
    graph_.value(id).offset = value.offset;
    values_[results[0]] = id;
    return absl::OkStatus();
  }

  absl::Status ParseNode(LineReader& in,
                         const std::vector<std::string>& results,
                         const std::string& op) {
    std::vector<ValueId> inputs;
    if (!in.Take(")")) {
      do {
        std::string name;
        if (!in.TakeValueName(&name)) return Error("want an operand");
        const auto it = values_.find(name);
        if (it == values_.end()) {
          return Error(absl::StrCat("no value ", name, " so far"));
        }
        inputs.push_back(it->second);
      } while (in.Take(","));
      if (!in.Take(")")) return Error("want ')' after the operands");
    }
    for (const std::string& result : results) {
      if (result[0] != '%') return Error("results of nodes are written %N");
    }
    std::vector<std::pair<std::string, AttributeValue>> attributes;
    Value value;
    std::string word;
    // An attribute is a word followed by '='; a type is a word followed by '['.
    while (true) {
      LineReader ahead = in;
      if (!ahead.TakeWord(&word) || !ahead.TakeHere("=")) break;
      absl::Status s = ParseAttribute(ahead, word, &attributes);
      if (!s.ok()) return s;
      in = ahead;
    }
    std::vector<ValueType> types;
    std::vector<int64_t> offsets;
    do {
      value = Value();
      WEFT_RETURN_IF_ERROR(ParseType(in, &value));
      types.push_back(value.type);
      offsets.push_back(value.offset);
    } while (in.Take(","));
    if (types.size() != results.size()) {
      return Error(absl::StrCat(results.size(), " results but ", types.size(),
                                " types"));
    }
    int64_t scratch = -1;
    if (in.Take("scratch@") && (!in.TakeInt(&scratch) || scratch < 0)) {
      return Error("want an offset after scratch@");
    }
    std::string name;
    if (in.Take(":") && !in.TakeWord(&name)) return Error("want a name");
    if (!in.AtEnd())
      return Error(absl::StrCat("cannot read '", in.rest(), "'"));
    WEFT_ASSIGN_OR_RETURN(Node node, MakeNode(op, attributes, find_));
    node.inputs = std::move(inputs);
    node.name = std::move(name);
    const NodeId id = graph_.AddNode(std::move(node), std::move(types));
    graph_.node(id).scratch_offset = scratch;
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId output = graph_.node(id).outputs[i];
      graph_.value(output).offset = offsets[i];
      values_[results[i]] = output;
    }
    return absl::OkStatus();
  }

  static absl::Status ParseAttribute(
      LineReader& in, const std::string& name,
      std::vector<std::pair<std::string, AttributeValue>>* attributes) {
    if (!in.rest().empty() && in.rest()[0] == '"') {
      std::string text;
      if (!in.TakeQuoted(&text)) return Error("string without end");
      attributes->emplace_back(name, text);
      return absl::OkStatus();
    }
    const absl::string_view rest = in.rest();
    const size_t n = std::min(rest.find_first_of(" \t\r#"), rest.size());
    const absl::string_view token = rest.substr(0, n);
    int64_t i;
    double d;
    if (absl::SimpleAtoi(token, &i)) {
      attributes->emplace_back(name, i);
    } else if (absl::SimpleAtod(token, &d)) {
      attributes->emplace_back(name, d);
    } else {
      return Error(absl::StrCat("attribute ", name,
                                " is neither a number nor "
                                "a quoted string"));
    }
    in.TakeHere(token);
    return absl::OkStatus();
  }

  static absl::Status ParseType(LineReader& in, Value* value) {
    std::string word;
    if (!in.TakeWord(&word)) return Error("want a type");
    const std::optional<DType> dtype = DTypeFromName(word);
    if (!dtype) return Error(absl::StrCat("no element type '", word, "'"));
    value->type.dtype = *dtype;
    if (!in.TakeHere("[")) return Error("want '[' after the element type");
    do {
      if (value->type.shape.rank() == Shape::kMaxRank) {
        return Error("more than four dimensions");
      }
      int64_t n;
      if (in.Take("T")) {
        value->type.shape.Append(Dim::Tokens());
      } else if (in.Take("R")) {
        value->type.shape.Append(Dim::Rows());
      } else if (in.Take("S")) {
        value->type.shape.Append(Dim::Context());
      } else if (in.SkipSpace(), in.TakeInt(&n)) {
        value->type.shape.Append(Dim::Number(n));
      } else {
        return Error("want T, R, S or a number as dimension");
      }
    } while (in.Take(","));
    if (!in.Take("]")) return Error("want ']' after the dimensions");
    if (in.TakeHere("{") &&
        (!in.TakeWord(&value->type.layout) || !in.TakeHere("}"))) {
      return Error("want '{LAYOUT}'");
    }
    if (in.TakeHere("@") &&
        (!in.TakeInt(&value->offset) || value->offset < 0)) {
      return Error("want an offset after @");
    }
    return absl::OkStatus();
  }

  const OpLookup find_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> values_;
};

}  // namespace

absl::StatusOr<Graph> Parse(absl::string_view text, OpLookup find) {
  return Parser(find).Run(text);
}

}  // namespace weft
