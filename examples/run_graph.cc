// Runs a graph that is written as text: any graph, not only a language model.
//   bazel run //examples:run_graph -- $PWD/examples/graphs/xor.txt
//       $PWD/examples/graphs/xor.numbers.txt
//
// The second file has a line `name = 1 2 3 ...` for each weight and each input.
// Weights are encoded as the graph says (f32, f16, q8_0, ...).
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "graph/text_format.h"
#include "ops/op_table.h"
#include "runtime/execution/graph_runner.h"

namespace {

using namespace weft;
using Numbers = std::map<std::string, std::vector<float>>;

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!(text << file.rdbuf())) {
    return absl::NotFoundError("cannot read file: " + path);
  }
  return text.str();
}

absl::StatusOr<Numbers> ReadNumbers(const std::string& path) {
  absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return text.status();
  Numbers numbers;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, equals;
    if (!(words >> name)) continue;
    std::vector<float>& row = numbers[name];
    words >> equals;
    for (float x; words >> x;) row.push_back(x);
    if (equals != "=" || !words.eof()) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read numbers: ", path, ": ", line));
    }
  }
  return numbers;
}

absl::Status Run(const std::string& graph_path, const std::string& path) {
  absl::StatusOr<std::string> text = ReadText(graph_path);
  if (!text.ok()) return text.status();
  absl::StatusOr<Numbers> numbers = ReadNumbers(path);
  if (!numbers.ok()) return numbers.status();
  absl::StatusOr<Graph> graph = ParseGraph(*text);
  if (!graph.ok()) return graph.status();
  // Before its types are used: the text may say anything.
  if (absl::Status s = VerifyGraph(*graph); !s.ok()) return s;

  NamedWeights weights;
  std::map<std::string, std::vector<int32_t>> integers;
  std::vector<InputNumbers> inputs;
  int64_t tokens = 1, rows = 1;
  for (ValueId id = 0; id < graph->value_count(); ++id) {
    const Value& value = graph->value(id);
    const Shape& shape = value.type.shape;
    if (value.kind == ValueKind::kTemporary) continue;
    const std::vector<float>& given = (*numbers)[value.name];
    if (value.kind == ValueKind::kWeight) {
      absl::StatusOr<WeightData> data =
          EncodeWeight(value.type.dtype, shape[shape.rank() - 1].value, given);
      if (!data.ok()) return data.status();
      weights[value.name] = *std::move(data);
      continue;
    }
    const int64_t n =
        static_cast<int64_t>(given.size()) / shape.RowElements(graph->bounds);
    if (shape[0] == Dim::Tokens()) tokens = n;
    if (shape[0] == Dim::Rows()) rows = n;
    if (value.type.dtype == DType::kI32) {
      std::vector<int32_t>& whole = integers[value.name];
      for (float x : given) whole.push_back(static_cast<int32_t>(x));
      inputs.push_back({value.name, absl::MakeConstSpan(whole)});
    } else {
      inputs.push_back({value.name, absl::MakeConstSpan(given)});
    }
  }
  // Keeps its own copy of the graph; names above are those of ours.
  auto runner = GraphRunner::Create(*graph, weights);
  if (!runner.ok()) return runner.status();
  std::map<std::string, std::vector<float>> results;
  std::vector<OutputNumbers> outputs;
  for (const Port& port : (*runner)->outputs()) {
    std::vector<float>& result = results[port.name];
    result.resize(port.type.shape.Elements({tokens, rows, 1}));
    outputs.push_back({port.name, absl::MakeSpan(result)});
  }
  if (absl::Status s = (*runner)->Run(inputs, outputs); !s.ok()) return s;
  for (const Port& port : (*runner)->outputs()) {
    const int64_t columns = port.type.shape.RowElements({tokens, rows, 1});
    const std::vector<float>& result = results[port.name];
    for (size_t i = 0; i < result.size(); ++i) {
      if (i % columns == 0) std::cout << port.name << ":";
      std::printf(" %.3f", result[i]);
      std::fflush(stdout);
      if ((i + 1) % columns == 0) std::cout << std::endl;
    }
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return std::cerr << "usage: run_graph GRAPH.txt NUMBERS.txt\n", 2;
  }
  const absl::Status s = Run(argv[1], argv[2]);
  if (!s.ok()) return std::cerr << s.message() << "\n", 1;
}
