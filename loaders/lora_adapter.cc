#include "loaders/lora_adapter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "graph/standard_inputs.h"
#include "ops/dequantize.h"
#include "ops/lora.h"
#include "ops/ops.h"
#include "ops/quantize.h"

namespace weft {
namespace {

constexpr char kAlpha[] = "adapter.lora.alpha";
// Tokens from which on an activated adapter counts: another way to run it.
constexpr char kInvocation[] = "adapter.alora.invocation_tokens";
constexpr char kTokenTable[] = "token_embd.weight";

absl::Status Bad(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "bad adapter: ", path, ": ", what, ": use a complete LoRA adapter"));
}

absl::Status WantText(const GgufFile& file, absl::string_view key,
                      absl::string_view want) {
  WEFT_ASSIGN_OR_RETURN(const auto found, file.OptionalString(key));
  if (found.value_or("") == want) return absl::OkStatus();
  return Bad(file.path(), absl::StrCat("its ", key, " is ",
                                       QuoteForMessage(found.value_or("")),
                                       ", expected '", want, "'"));
}

// As if the dimensions that a tensor does not have were 1.
int64_t DimOf(const GgufTensor& tensor, size_t i) {
  return i < tensor.dims.size() ? tensor.dims[i] : 1;
}

absl::StatusOr<std::vector<float>> NumbersOf(const GgufTensor& tensor,
                                             const std::string& path) {
  if (!CanDequantize(tensor.type)) {
    return Bad(path, absl::StrCat("tensor ", QuoteForMessage(tensor.name),
                                  " is ", UpperName(tensor.type)));
  }
  std::vector<float> numbers(tensor.elements());
  DequantizeRow(tensor.type, tensor.data.data(), numbers.data(),
                static_cast<int64_t>(numbers.size()));
  for (float number : numbers) {
    if (std::isfinite(number)) continue;
    return Bad(path, absl::StrCat("tensor ", QuoteForMessage(tensor.name),
                                  " holds a number that is not finite"));
  }
  return numbers;
}

// Of each of `parts` matrices of `rows` rows its columns as rows.
std::vector<float> Transposed(const std::vector<float>& from, int64_t parts,
                              int64_t rows, int64_t columns) {
  std::vector<float> to(from.size());
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = part * rows * columns;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        to[first + column * rows + row] = from[first + row * columns + column];
      }
    }
  }
  return to;
}

struct Halves {
  const GgufTensor* a = nullptr;
  const GgufTensor* b = nullptr;
};

absl::StatusOr<LoraAdapter::Pair> ReadPair(const std::string& name,
                                           const Halves& halves, double alpha,
                                           const std::string& path) {
  if (halves.a == nullptr || halves.b == nullptr) {
    return Bad(path, absl::StrCat("tensor ", QuoteForMessage(name), " has no ",
                                  halves.a == nullptr ? "lora_a" : "lora_b"));
  }
  const GgufTensor& a = *halves.a;
  const GgufTensor& b = *halves.b;
  const bool table = name == kTokenTable;
  LoraAdapter::Pair pair;
  pair.tensor = name;
  pair.rank = DimOf(b, 0);
  pair.parts = DimOf(a, 2);
  const int64_t rank_of_a = DimOf(a, table ? 0 : 1);
  if (rank_of_a != pair.rank || DimOf(b, 2) != pair.parts || DimOf(a, 3) != 1 ||
      DimOf(b, 3) != 1 || (table && pair.parts != 1)) {
    return Bad(path,
               absl::StrCat("tensor ", QuoteForMessage(name), ": lora_a is ",
                            a.ShapeText(), " and lora_b ", b.ShapeText(),
                            ", which do not fit each other"));
  }
  if (pair.rank > kMostRanks) {
    return Bad(path,
               absl::StrCat("tensor ", QuoteForMessage(name), ": its rank is ",
                            pair.rank, ", above ", kMostRanks));
  }
  pair.inputs = table ? DimOf(b, 1) : DimOf(a, 0);
  pair.outputs = table ? DimOf(a, 1) : DimOf(b, 1);
  WEFT_ASSIGN_OR_RETURN(std::vector<float> first, NumbersOf(a, path));
  WEFT_ASSIGN_OR_RETURN(std::vector<float> second, NumbersOf(b, path));
  if (table) {
    pair.a = Transposed(second, 1, pair.inputs, pair.rank);
    pair.b = Transposed(first, 1, pair.outputs, pair.rank);
  } else {
    pair.a = std::move(first);
    pair.b = Transposed(second, pair.parts, pair.outputs, pair.rank);
  }
  const double factor = alpha == 0 ? 1 : alpha / static_cast<double>(pair.rank);
  for (float& number : pair.b) {
    number = static_cast<float>(number * factor);
    if (std::isfinite(number)) continue;
    return Bad(path,
               absl::StrCat("tensor ", QuoteForMessage(name), ": with alpha ",
                            alpha, " its numbers are not finite"));
  }
  return pair;
}

absl::Status DoesNotFit(const std::string& adapter, const GgufFile& model,
                        absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("adapter does not fit the model: ", adapter, ": ", what,
                   ": it was made for another than ", model.path()));
}

std::vector<int64_t> WithoutTrailingOnes(std::vector<int64_t> dims) {
  while (!dims.empty() && dims.back() == 1) dims.pop_back();
  return dims;
}

absl::Status OnlyMerged(const LoraAdapter& adapter, const std::string& tensor,
                        absl::string_view why) {
  return absl::UnimplementedError(
      absl::StrCat("cannot apply adapter while running: ", adapter.path(),
                   ": tensor ", QuoteForMessage(tensor), " ", why,
                   ": merge it (weft compile --lora FILE --merge-lora)"));
}

// A product's scale is behind it, where an adapter would be scaled too.
absl::Status CheckNoScale(const LoraAdapter& adapter, const GgufFile& model,
                          const std::string& stem) {
  if (model.FindTensor(stem + ".scale") == nullptr) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "cannot apply adapter: ", adapter.path(), ": ", model.path(),
      " has a factor ", QuoteForMessage(stem + ".scale"),
      " for the tensor: use the model in another type than NVFP4"));
}

WeightData Shared(const std::shared_ptr<const LoraAdapter>& adapter,
                  const std::vector<float>& numbers) {
  WeightData data;
  data.bytes = absl::MakeConstSpan(
      reinterpret_cast<const uint8_t*>(numbers.data()), numbers.size() * 4);
  data.owner = adapter;
  return data;
}

// The weight that `pair` is attached to; kNone where the model has the tensor
// but the graph no use for it.
absl::StatusOr<ValueId> WeightOf(const LoraAdapter& adapter,
                                 const LoraAdapter::Pair& pair,
                                 const GgufFile& model, const Graph& graph) {
  absl::string_view stem = pair.tensor;
  if (!absl::ConsumeSuffix(&stem, ".weight")) {
    return OnlyMerged(adapter, pair.tensor, "is no matrix of a product");
  }
  WEFT_RETURN_IF_ERROR(CheckNoScale(adapter, model, std::string(stem)));
  if (pair.parts != 1) {
    return OnlyMerged(adapter, pair.tensor, "has a matrix for each expert");
  }
  const ValueId weight = graph.FindValue(stem);
  const ValueType want = {
      graph.IsWeight(std::max(weight, 0)) && weight != kNone
          ? graph.value(weight).type.dtype
          : DType::kF32,
      Shape{Dim::Number(pair.outputs), Dim::Number(pair.inputs)}, ""};
  if (weight == kNone || !(graph.value(weight).type == want)) {
    return OnlyMerged(adapter, pair.tensor, "is read otherwise than as it is");
  }
  const std::vector<NodeId> users = graph.Users(weight);
  for (NodeId user : users) {
    const Node& node = graph.node(user);
    std::vector<NodeId> readers = {user};
    // A product with some rows of it.
    if (node.Is(kSliceRowsOp)) readers = graph.Users(node.outputs[0]);
    for (NodeId reader : readers) {
      if (graph.node(reader).Is(kMatmulOp)) continue;
      return OnlyMerged(
          adapter, pair.tensor,
          absl::StrCat("is read by ", graph.node(reader).op->name));
    }
  }
  return users.empty() ? kNone : weight;
}

// What is added to one tensor.
struct Added {
  const LoraAdapter::Pair* pair;
  double scale;
};

absl::StatusOr<std::vector<uint8_t>> Merged(const GgufTensor& tensor,
                                            const std::vector<Added>& all) {
  std::vector<uint8_t> bytes(tensor.data.begin(), tensor.data.end());
  const int64_t inputs = tensor.dims[0];
  const int64_t rows = tensor.elements() / inputs;
  const int64_t row_bytes = RowBytes(tensor.type, inputs);
  std::vector<float> row(inputs);
  std::vector<double> sum(inputs);
  for (int64_t n = 0; n < rows; ++n) {
    uint8_t* const at = bytes.data() + n * row_bytes;
    DequantizeRow(tensor.type, at, row.data(), inputs);
    std::copy(row.begin(), row.end(), sum.begin());
    for (const Added& added : all) {
      const LoraAdapter::Pair& pair = *added.pair;
      const int64_t part = n / pair.outputs, column = n % pair.outputs;
      for (int64_t r = part * pair.rank; r < (part + 1) * pair.rank; ++r) {
        const double b = added.scale * pair.b[r * pair.outputs + column];
        const float* const a = pair.a.data() + r * inputs;
        for (int64_t k = 0; k < inputs; ++k) sum[k] += b * a[k];
      }
    }
    for (int64_t k = 0; k < inputs; ++k) row[k] = static_cast<float>(sum[k]);
    const absl::Status status =
        QuantizeRow(tensor.type, row.data(), at, inputs);
    if (status.ok()) continue;
    return absl::Status(status.code(),
                        absl::StrCat("cannot merge adapter: tensor ",
                                     QuoteForMessage(tensor.name), ": row ", n,
                                     ": ", status.message()));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LoraAdapter>> LoraAdapter::Open(
    const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  return FromFile(file);
}

absl::StatusOr<std::shared_ptr<const LoraAdapter>> LoraAdapter::FromFile(
    const GgufFile& file) {
  WEFT_RETURN_IF_ERROR(WantText(file, "general.type", "adapter"));
  WEFT_RETURN_IF_ERROR(WantText(file, "adapter.type", "lora"));
  std::shared_ptr<LoraAdapter> adapter(new LoraAdapter);
  adapter->path_ = file.path();
  WEFT_ASSIGN_OR_RETURN(adapter->architecture_,
                        file.GetString("general.architecture"));
  WEFT_ASSIGN_OR_RETURN(const double alpha, file.GetFloat(kAlpha));
  if (!std::isfinite(alpha)) {
    return file.BadValue(kAlpha, absl::StrCat(alpha), "a finite number");
  }
  if (file.FindValue(kInvocation) != nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "cannot use adapter: ", file.path(), ": it is activated by tokens (",
        kInvocation, "): use one that always counts"));
  }
  std::map<std::string, Halves> halves;
  for (const GgufTensor& tensor : file.tensors()) {
    absl::string_view name = tensor.name;
    if (absl::ConsumeSuffix(&name, ".lora_a")) {
      halves[std::string(name)].a = &tensor;
    } else if (absl::ConsumeSuffix(&name, ".lora_b")) {
      halves[std::string(name)].b = &tensor;
    } else {
      return Bad(file.path(), absl::StrCat("tensor ", QuoteForMessage(name),
                                           " is neither lora_a nor lora_b"));
    }
  }
  if (halves.empty()) return Bad(file.path(), "it has no tensors");
  for (const auto& [name, both] : halves) {
    WEFT_ASSIGN_OR_RETURN(Pair pair, ReadPair(name, both, alpha, file.path()));
    adapter->rank_ = std::max(adapter->rank_, pair.rank);
    adapter->pairs_.push_back(std::move(pair));
  }
  return adapter;
}

absl::Status LoraAdapter::CheckFits(const GgufFile& model) const {
  WEFT_ASSIGN_OR_RETURN(const auto architecture,
                        model.OptionalString("general.architecture"));
  if (architecture.value_or("") != architecture_) {
    return DoesNotFit(
        path_, model,
        absl::StrCat("its architecture is ", QuoteForMessage(architecture_),
                     ", the model's ",
                     QuoteForMessage(architecture.value_or(""))));
  }
  for (const Pair& pair : pairs_) {
    const GgufTensor* const tensor = model.FindTensor(pair.tensor);
    if (tensor == nullptr) {
      return DoesNotFit(path_, model,
                        absl::StrCat("the model has no tensor ",
                                     QuoteForMessage(pair.tensor)));
    }
    std::vector<int64_t> want = {pair.inputs, pair.outputs};
    if (pair.parts > 1) want.push_back(pair.parts);
    if (WithoutTrailingOnes(tensor->dims) == WithoutTrailingOnes(want)) {
      continue;
    }
    return DoesNotFit(
        path_, model,
        absl::StrCat("tensor ", QuoteForMessage(pair.tensor), " is ",
                     tensor->ShapeText(), ", the adapter is for ",
                     GgufShapeText(want)));
  }
  return absl::OkStatus();
}

std::vector<float> AdapterScales(absl::Span<const AdapterChoice> adapters) {
  std::vector<float> scales;
  for (const AdapterChoice& choice : adapters) scales.push_back(choice.scale);
  return scales;
}

absl::StatusOr<AdapterChoice> OpenAdapter(const std::string& text) {
  AdapterChoice choice;
  std::string path = text;
  const size_t equals = text.rfind('=');
  if (equals != std::string::npos) {
    float scale;
    if (absl::SimpleAtof(text.substr(equals + 1), &scale)) {
      if (!(std::abs(scale) <= kLargestAdapterScale)) {
        return absl::InvalidArgumentError(
            absl::StrCat("bad scale of an adapter: ", text, ": it is ",
                         std::isfinite(scale) ? "too large" : "not finite",
                         ": write FILE or FILE=SCALE, a number from ",
                         -kLargestAdapterScale, " to ", kLargestAdapterScale));
      }
      choice.scale = scale;
      path.resize(equals);
    }
  }
  WEFT_ASSIGN_OR_RETURN(choice.adapter, LoraAdapter::Open(path));
  return choice;
}

absl::Status AttachAdapters(absl::Span<const AdapterChoice> adapters,
                            const GgufFile& model, Graph* graph) {
  if (adapters.empty()) return absl::OkStatus();
  const int64_t count = static_cast<int64_t>(adapters.size());
  if (count > kMostAdapters) {
    return absl::InvalidArgumentError(
        absl::StrCat("too many adapters: ", count, ": at most ", kMostAdapters,
                     " may be loaded with a model"));
  }
  AddInput(graph, StandardInput::kAdapterScales, count);
  std::map<ValueId, int64_t> ranks;
  for (int64_t i = 0; i < count; ++i) {
    const std::shared_ptr<const LoraAdapter>& adapter = adapters[i].adapter;
    WEFT_RETURN_IF_ERROR(adapter->CheckFits(model));
    for (const LoraAdapter::Pair& pair : adapter->pairs()) {
      WEFT_ASSIGN_OR_RETURN(const ValueId weight,
                            WeightOf(*adapter, pair, model, *graph));
      if (weight == kNone) continue;
      if ((ranks[weight] += pair.rank) > kMostRanks) {
        return absl::InvalidArgumentError(
            absl::StrCat("too many adapters: tensor ",
                         QuoteForMessage(pair.tensor), ": their ranks are ",
                         ranks[weight], " together, above ", kMostRanks));
      }
      const std::string name = graph->value(weight).name;
      const auto type = [&](int64_t columns) {
        return ValueType{DType::kF32,
                         Shape{Dim::Number(pair.rank), Dim::Number(columns)},
                         ""};
      };
      graph->AddWeight(LoraAName(name, i), type(pair.inputs),
                       Shared(adapter, pair.a));
      graph->AddWeight(LoraBName(name, i), type(pair.outputs),
                       Shared(adapter, pair.b));
    }
  }
  return absl::OkStatus();
}

absl::Status MergeAdapters(absl::Span<const AdapterChoice> adapters,
                           GgufFile* model) {
  std::map<std::string, std::vector<Added>> tensors;
  for (const AdapterChoice& choice : adapters) {
    WEFT_RETURN_IF_ERROR(choice.adapter->CheckFits(*model));
    for (const LoraAdapter::Pair& pair : choice.adapter->pairs()) {
      WEFT_RETURN_IF_ERROR(
          CheckNoScale(*choice.adapter, *model,
                       std::string(absl::StripSuffix(pair.tensor, ".weight"))));
      // A row without it keeps its bytes.
      if (choice.scale == 0) continue;
      tensors[pair.tensor].push_back({&pair, choice.scale});
    }
  }
  for (const auto& [name, added] : tensors) {
    const GgufTensor& tensor = *model->FindTensor(name);
    if (!CanDequantize(tensor.type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot merge adapter: tensor ", QuoteForMessage(name),
                       ": it is ", UpperName(tensor.type)));
    }
    WEFT_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, Merged(tensor, added));
    model->SetData(
        &tensor - model->tensors().data(),
        std::make_shared<const std::vector<uint8_t>>(std::move(bytes)));
  }
  return absl::OkStatus();
}

}  // namespace weft
