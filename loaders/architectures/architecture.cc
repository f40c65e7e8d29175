#include "loaders/architectures/architecture.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "graph/next_token_block.h"
#include "graph/standard_inputs.h"
#include "loaders/architectures/architectures.h"
#include "ops/dequantize.h"
#include "ops/op_table.h"

namespace weft {
namespace {

#define WEFT_ARCHITECTURE(name) &name,
const Architecture* const kArchitectures[] = {
#include "loaders/architectures/architecture_list.h"
};
#undef WEFT_ARCHITECTURE

// None of a tensor that is only described (loaders/synthesize).
std::vector<float> NumbersOf(const GgufTensor& tensor) {
  std::vector<float> numbers(tensor.data.empty() ? 0 : tensor.elements());
  DequantizeRow(tensor.type, tensor.data.data(), numbers.data(),
                numbers.size());
  return numbers;
}

std::shared_ptr<const void> OwnerOf(const GgufTensor& tensor) {
  if (tensor.made != nullptr) return tensor.made;
  return tensor.file;
}

constexpr int64_t kDefaultContext = 4096;
// Rotation angles are good up to here (ops/kernels/rows/rows.h).
constexpr int64_t kLargestContext = int64_t{1} << 20;
// Factors between these have an inverse that is finite too.
constexpr float kLeastFactor = 1e-30f;
constexpr float kLargestFactor = 1e30f;

absl::StatusOr<int64_t> ContextOf(const ModelConfig& config,
                                  const ModelTraits& traits,
                                  const GraphOptions& options) {
  const int64_t asked = options.context;
  if (asked == 0) {
    // Beyond the original context longrope takes other factors: not unasked.
    const int64_t context = std::min(config.context_length, kDefaultContext);
    return traits.longrope && config.original_context_length > 0
               ? std::min(context, config.original_context_length)
               : context;
  }
  const int64_t most = std::min(config.context_length, kLargestContext);
  if (asked > most && options.context_at_most) return most;
  if (asked < 1 || asked > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("context is out of range: ", asked,
                     ": this model takes 1 to ", most, " positions"));
  }
  return asked;
}

// Between the pooling and the text's vector.
bool HasTextHead(const GgufFile& file) {
  return file.FindTensor("dense_2.weight") != nullptr;
}

absl::StatusOr<ModelOutput> OutputOf(const GgufFile& file,
                                     const ModelConfig& config,
                                     std::optional<ModelOutput> asked) {
  if (!asked.has_value()) {
    if (config.ranks) return ModelOutput::kScores;
    if (config.encoder && HasTextHead(file)) return ModelOutput::kEmbedding;
    return config.encoder || config.pooling != Pooling::kNone
               ? ModelOutput::kHidden
               : ModelOutput::kLogits;
  }
  const auto refuse = [&](const char* why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model gives no ", NameOf(*asked), ": ", file.path(), ": ", why));
  };
  switch (*asked) {
    case ModelOutput::kLogits:
      if (config.encoder) return refuse("it is an encoder: ask for a vector");
      break;
    case ModelOutput::kScores:
      if (!config.ranks)
        return refuse("it has no head that ranks or classifies");
      break;
    case ModelOutput::kEmbedding:
      if (config.ranks) return refuse("it ranks or classifies: ask for scores");
      if (!config.encoder || !HasTextHead(file)) return ModelOutput::kHidden;
      break;
    case ModelOutput::kHidden:
      break;
  }
  return *asked;
}

// Of a decoder, where not its logits are wanted but what they are made of, or
// scores of it.
void GiveInsteadOfLogits(ModelBuilder& m) {
  if (m.gives == ModelOutput::kLogits || !m.ok()) return;
  m.graph().RemoveOutput(NameOf(ModelOutput::kLogits));
  ValueId given = m.hidden;
  if (m.gives == ModelOutput::kScores) {
    const ValueId products = m.Linear("cls.output", given, m.config.score_count,
                                      m.config.embedding_length);
    m.Name("cls.scores");
    given = m.Softmax(products);
  }
  m.graph().AddOutput(NameOf(m.gives), given);
  m.graph().EraseDead();
}

// The number of the block that a tensor is of, and the rest of its name.
std::optional<int64_t> BlockOf(absl::string_view* name) {
  int64_t block;
  const size_t dot = name->find('.', 4);
  if (!absl::StartsWith(*name, "blk.") || dot == name->npos ||
      !absl::SimpleAtoi(name->substr(4, dot - 4), &block)) {
    return std::nullopt;
  }
  name->remove_prefix(dot + 1);
  return block;
}

// The blocks that predict further tokens are those that the metadata counts.
// With another number blocks of the model would be left out. A file may lack
// them altogether.
absl::Status CheckNextTokenBlocks(const GgufFile& file,
                                  const ModelConfig& config) {
  std::map<int64_t, bool> predicts;
  for (const GgufTensor& tensor : file.tensors()) {
    absl::string_view name = tensor.name;
    const std::optional<int64_t> block = BlockOf(&name);
    if (!block.has_value()) continue;
    predicts[*block] |= absl::StartsWith(name, "nextn.");
  }
  for (const auto& [block, does] : predicts) {
    if (does == (block >= config.block_count)) continue;
    if (block >= config.block_count + config.next_token_blocks) break;
    return file.BadValue(
        absl::StrCat(config.architecture, ".", kNextTokenBlocks),
        absl::StrCat(config.next_token_blocks),
        absl::StrCat("the number of blocks with tensors of that kind: block ",
                     block, does ? " has" : " has no", " 'blk.", block,
                     ".nextn.*'"));
  }
  return absl::OkStatus();
}

absl::Status CheckHasNextTokenBlock(const GgufFile& file,
                                    const ModelConfig& config,
                                    const Architecture& architecture) {
  const std::string prefix =
      absl::StrCat("blk.", config.block_count, ".nextn.");
  const bool any = std::any_of(
      file.tensors().begin(), file.tensors().end(),
      [&](const GgufTensor& t) { return absl::StartsWith(t.name, prefix); });
  if (config.next_token_blocks == 0 || !any) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the file has no next-token block: ", file.path(), ": ",
        config.next_token_blocks == 0
            ? absl::StrCat("its metadata counts none (", config.architecture,
                           ".", kNextTokenBlocks, ")")
            : absl::StrCat("there are no tensors '", prefix, "*'"),
        ": use a file that was converted with it, or let another guess "
        "(lookup, draft:MODEL)"));
  }
  if (architecture.build_next_token_block == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("the next-token block of architecture '",
                     config.architecture, "' is not supported: ", file.path(),
                     ": let another guess (lookup, draft:MODEL)"));
  }
  return absl::OkStatus();
}

// The block as a graph of its own. What is wrong with it is told by the
// builder's Finish, or else by that of the model's builder.
absl::Status BuildNextTokenBlock(const Architecture& architecture,
                                 const GraphOptions& options,
                                 TensorSource* tensors, LoadedGraph* loaded) {
  ModelConfig config = loaded->config;
  config.blocks.push_back(config.blocks_behind.front());
  Graph& graph = loaded->next_token_block.emplace();
  graph.name = loaded->graph.name + ".next_token_block";
  graph.bounds = loaded->graph.bounds;
  ModelBuilder builder(tensors, config, options, &graph);
  builder.previous_hidden = graph.AddInput(
      kPreviousHidden,
      {DType::kF32, Shape{Dim::Tokens(), Dim::Number(config.embedding_length)},
       ""});
  architecture.build_next_token_block(builder);
  if (!builder.ok()) return builder.Finish();
  return VerifyGraph(graph);
}

}  // namespace

absl::Span<const Architecture* const> AllArchitectures() {
  return kArchitectures;
}

const Architecture* FindArchitecture(absl::string_view name) {
  for (const Architecture* architecture : AllArchitectures()) {
    if (name == architecture->name) return architecture;
  }
  return nullptr;
}

ModelBuilder::ModelBuilder(TensorSource* tensors, const ModelConfig& config,
                           const GraphOptions& options, Graph* graph)
    : GraphBuilder(graph),
      config(config),
      gives(config.encoder ? ModelOutput::kHidden : ModelOutput::kLogits),
      weights_(*tensors),
      options_(options) {
  ids = AddInput(graph, StandardInput::kIds);
  positions = AddInput(graph, StandardInput::kPositions);
  sequence = AddInput(graph, StandardInput::kSequence);
  output_rows = AddInput(graph, StandardInput::kOutputRows);
  if (config.encoder) {
    last_positions = AddInput(graph, StandardInput::kLastPositions);
  }
}

void ModelBuilder::Fail(absl::Status status) {
  if (error_.ok()) error_ = std::move(status);
}

void ModelBuilder::RefuseKey(absl::string_view key, int64_t found,
                             absl::string_view expected) {
  Fail(absl::InvalidArgumentError(absl::StrCat(
      "bad metadata: ", config.architecture, ".", key, " is ", found,
      ", expected ", expected, ": use a file that was converted anew")));
}

ValueId ModelBuilder::AddMatrix(const std::string& name,
                                const GgufTensor& tensor) {
  const ValueId known = graph().FindValue(name);
  if (known != kNone) return known;
  const int64_t columns = tensor.dims[0];
  const ValueType type = {
      tensor.type,
      Shape{Dim::Number(tensor.elements() / columns), Dim::Number(columns)},
      ""};
  WeightData data;
  data.bytes = tensor.data;
  data.owner = OwnerOf(tensor);
  data.mapped = tensor.made == nullptr;
  return graph().AddWeight(name, type, std::move(data));
}

ValueId ModelBuilder::Matrix(const std::string& name, int64_t rows,
                             int64_t columns) {
  absl::StatusOr<const GgufTensor*> tensor =
      weights_.Require(name + ".weight", std::vector<int64_t>{columns, rows});
  if (!tensor.ok()) {
    Fail(tensor.status());
    return kNone;
  }
  return AddMatrix(name, **tensor);
}

ValueId ModelBuilder::OptionalMatrix(const std::string& name, int64_t rows,
                                     int64_t columns) {
  absl::StatusOr<const GgufTensor*> tensor =
      weights_.Optional(name + ".weight", std::vector<int64_t>{columns, rows});
  if (!tensor.ok()) Fail(tensor.status());
  if (!tensor.ok() || *tensor == nullptr) return kNone;
  return AddMatrix(name, **tensor);
}

ValueId ModelBuilder::HeadMatrix(const std::string& name, int64_t heads,
                                 int64_t rows, int64_t columns) {
  absl::StatusOr<const GgufTensor*> tensor = weights_.Require(
      name + ".weight", std::vector<int64_t>{columns, rows, heads});
  if (!tensor.ok()) {
    Fail(tensor.status());
    return kNone;
  }
  return AddMatrix(name, **tensor);
}

ValueId ModelBuilder::OptionalHeadMatrix(const std::string& name, int64_t heads,
                                         int64_t rows, int64_t columns) {
  absl::StatusOr<const GgufTensor*> tensor = weights_.Optional(
      name + ".weight", std::vector<int64_t>{columns, rows, heads});
  if (!tensor.ok()) Fail(tensor.status());
  if (!tensor.ok() || *tensor == nullptr) return kNone;
  return AddMatrix(name, **tensor);
}

ValueId ModelBuilder::ExpertMatrix(const std::string& name, int64_t experts,
                                   int64_t rows, int64_t columns) {
  const std::string one = absl::StrCat(absl::StripSuffix(name, "_exps"), ".");
  absl::StatusOr<const GgufTensor*> first =
      weights_.Optional(one + "0.weight", std::vector<int64_t>{columns, rows});
  if (!first.ok()) Fail(first.status());
  if (!first.ok()) return kNone;
  if (*first != nullptr) {
    return JoinExperts(name, one, experts, rows, columns);
  }
  absl::StatusOr<const GgufTensor*> tensor = weights_.Require(
      name + ".weight", std::vector<int64_t>{columns, rows, experts});
  if (!tensor.ok()) {
    Fail(tensor.status());
    return kNone;
  }
  return AddMatrix(name, **tensor);
}

ValueId ModelBuilder::JoinExperts(const std::string& name,
                                  const std::string& one, int64_t experts,
                                  int64_t rows, int64_t columns) {
  std::vector<ValueId> matrices;
  for (int64_t i = 0; i < experts; ++i) {
    matrices.push_back(Matrix(absl::StrCat(one, i), rows, columns));
    if (!error_.ok()) return kNone;
    const DType type = graph().value(matrices[i]).type.dtype;
    if (type == graph().value(matrices[0]).type.dtype) continue;
    Fail(absl::UnimplementedError(absl::StrCat(
        "old layout of experts: tensor '", one, i, ".weight': it is ",
        UpperName(type), " and that of expert 0 is ",
        UpperName(graph().value(matrices[0]).type.dtype),
        ": use a model whose experts are one tensor, converted anew")));
    return kNone;
  }
  Name(name);
  return ConcatRows(matrices);
}

bool ModelBuilder::HasTensor(const std::string& tensor) const {
  return weights_.Has(tensor);
}

ValueId ModelBuilder::AddVector(const GgufTensor& tensor) {
  std::string name = tensor.name;
  const std::string suffix = ".weight";
  if (name.size() > suffix.size() &&
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0) {
    name.resize(name.size() - suffix.size());
  }
  const ValueId known = graph().FindValue(name);
  if (known != kNone) return known;
  const int64_t n = tensor.elements();
  const ValueType type = {DType::kF32, Shape{Dim::Number(n)}, ""};
  const bool aligned =
      reinterpret_cast<uintptr_t>(tensor.data.data()) % alignof(float) == 0;
  if (tensor.type == DType::kF32 && aligned) {
    WeightData data;
    data.bytes = tensor.data;
    data.owner = OwnerOf(tensor);
    return graph().AddWeight(name, type, std::move(data));
  }
  return AddNumbers(name, type.shape, NumbersOf(tensor));
}

ValueId ModelBuilder::AddNumbers(const std::string& name, Shape shape,
                                 const std::vector<float>& numbers) {
  WeightData data;
  if (!numbers.empty()) {
    auto bytes = std::make_shared<std::vector<uint8_t>>(numbers.size() * 4);
    std::memcpy(bytes->data(), numbers.data(), bytes->size());
    data.bytes = *bytes;
    data.owner = bytes;
  }
  return graph().AddWeight(name, {DType::kF32, std::move(shape), ""},
                           std::move(data));
}

ValueId ModelBuilder::Vector(const std::string& tensor,
                             std::vector<int64_t> dims) {
  absl::StatusOr<const GgufTensor*> found = weights_.Require(tensor, dims);
  if (!found.ok()) {
    Fail(found.status());
    return kNone;
  }
  return AddVector(**found);
}

ValueId ModelBuilder::OptionalVector(const std::string& tensor,
                                     std::vector<int64_t> dims) {
  absl::StatusOr<const GgufTensor*> found = weights_.Optional(tensor, dims);
  if (!found.ok()) {
    Fail(found.status());
    return kNone;
  }
  CheckAllOrNone(tensor, dims, *found != nullptr);
  return *found == nullptr ? kNone : AddVector(**found);
}

ValueId ModelBuilder::VectorIfThere(const std::string& tensor,
                                    std::vector<int64_t> dims) {
  absl::StatusOr<const GgufTensor*> found = weights_.Optional(tensor, dims);
  if (!found.ok()) Fail(found.status());
  return !found.ok() || *found == nullptr ? kNone : AddVector(**found);
}

ValueId ModelBuilder::Transposed(const std::string& tensor,
                                 std::vector<int64_t> dims) {
  absl::StatusOr<const GgufTensor*> found = weights_.Require(tensor, dims);
  if (!found.ok()) {
    Fail(found.status());
    return kNone;
  }
  const int64_t rows = (*found)->dims[0];
  const int64_t columns = (*found)->elements() / rows;
  const std::vector<float> numbers = NumbersOf(**found);
  std::vector<float> turned(numbers.size());
  for (size_t i = 0; i < turned.size(); ++i) {
    turned[i] = numbers[i % columns * rows + i / columns];
  }
  return AddNumbers(tensor, Shape{Dim::Number(rows), Dim::Number(columns)},
                    turned);
}

ValueId ModelBuilder::Repeated(const std::string& tensor,
                               std::vector<int64_t> dims, int64_t times) {
  absl::StatusOr<const GgufTensor*> found = weights_.Require(tensor, dims);
  if (!found.ok()) {
    Fail(found.status());
    return kNone;
  }
  std::vector<float> repeated;
  for (float number : NumbersOf(**found)) {
    repeated.insert(repeated.end(), times, number);
  }
  return AddNumbers(tensor, Shape{Dim::Number((*found)->elements() * times)},
                    repeated);
}

void ModelBuilder::CheckAllOrNone(const std::string& tensor,
                                  const std::vector<int64_t>& dims, bool has) {
  absl::string_view in_block = tensor;
  if (!absl::ConsumePrefix(&in_block, "blk.")) return;
  in_block.remove_prefix(std::min(in_block.find('.'), in_block.size()));
  const auto [first, added] =
      optional_.insert({std::string(in_block), {tensor, has}});
  if (added || first->second.has == has) return;
  // Requiring what is not there makes the error.
  Fail(weights_.Require(has ? first->second.tensor : tensor, dims).status());
}

ValueId ModelBuilder::OptionalRopeFactors(const std::string& tensor) {
  absl::StatusOr<const GgufTensor*> found = weights_.Optional(
      tensor, std::vector<int64_t>{config.rope_dimension_count / 2});
  if (!found.ok()) Fail(found.status());
  if (!found.ok() || *found == nullptr) return kNone;
  const GgufTensor& factors = **found;
  for (float value : NumbersOf(factors)) {
    if (value >= kLeastFactor && value <= kLargestFactor) continue;
    Fail(absl::InvalidArgumentError(absl::StrCat(
        "bad tensor '", tensor, "': ", factors.file->path(), ": it holds ",
        value, ", expected numbers above 0, not infinite: use a complete ",
        "model")));
    return kNone;
  }
  return AddVector(factors);
}

ValueId ModelBuilder::RopeFactors(const std::string& tensor) {
  absl::StatusOr<const GgufTensor*> found = weights_.Require(
      tensor, std::vector<int64_t>{config.rope_dimension_count / 2});
  if (!found.ok()) {
    Fail(found.status());
    return kNone;
  }
  return OptionalRopeFactors(tensor);
}

bool ModelBuilder::HasTensor(const std::string& tensor,
                             std::vector<int64_t> dims) const {
  const absl::StatusOr<const GgufTensor*> found =
      weights_.Optional(tensor, dims);
  return found.ok() && *found != nullptr;
}

double ModelBuilder::OptionalNumber(const std::string& tensor,
                                    double otherwise) {
  const std::vector<int64_t> dims = {1};
  absl::StatusOr<const GgufTensor*> found = weights_.Optional(tensor, dims);
  if (!found.ok()) {
    Fail(found.status());
    return otherwise;
  }
  CheckAllOrNone(tensor, dims, *found != nullptr);
  // What is only described has no numbers (loaders/synthesize).
  if (*found == nullptr || (*found)->data.empty()) return otherwise;
  float number;
  DequantizeRow((*found)->type, (*found)->data.data(), &number, 1);
  return number;
}

void ModelBuilder::Ignore(const std::string& tensor,
                          std::vector<int64_t> dims) {
  const absl::Status status = weights_.Optional(tensor, dims).status();
  if (!status.ok()) Fail(status);
}

ValueId ModelBuilder::RowVector(const std::string& name, int64_t rows,
                                int64_t columns, int64_t row) {
  absl::StatusOr<const GgufTensor*> found =
      weights_.Require(name + ".weight", std::vector<int64_t>{columns, rows});
  if (!found.ok()) {
    Fail(found.status());
    return kNone;
  }
  const GgufTensor& tensor = **found;
  // What is only described has no rows (loaders/synthesize).
  std::vector<float> numbers(tensor.data.empty() ? 0 : columns);
  if (!numbers.empty()) {
    DequantizeRow(tensor.type,
                  tensor.data.data() + row * RowBytes(tensor.type, columns),
                  numbers.data(), columns);
  }
  return AddNumbers(name, Shape{Dim::Number(columns)}, numbers);
}

ValueId ModelBuilder::Linear(const std::string& name, ValueId x,
                             int64_t outputs, int64_t inputs, Bias bias) {
  const ValueId weight = Matrix(name, outputs, inputs);
  const ValueId added = bias == Bias::kRequired
                            ? Vector(name + ".bias", {outputs})
                            : OptionalVector(name + ".bias", {outputs});
  if (!error_.ok()) return kNone;
  std::vector<float> factor;
  if (graph().value(weight).type.dtype == DType::kNVFP4) {
    factor = FactorsOf(name, 1);
  }
  if (!error_.ok()) return kNone;
  Name(name);
  ValueId y = Matmul(x, weight);
  if (!factor.empty() && factor[0] != 1.0f) y = Scale(y, factor[0]);
  return added == kNone ? y : Add(y, added);
}

ValueId ModelBuilder::ExpertFactors(const std::string& name, ValueId matrix,
                                    int64_t experts, int64_t rows) {
  if (!error_.ok() || graph().value(matrix).type.dtype != DType::kNVFP4) {
    return kNone;
  }
  const std::vector<float> factors = FactorsOf(name, experts);
  if (factors.empty()) return kNone;
  std::vector<float> numbers;
  numbers.reserve(experts * rows);
  for (float factor : factors) numbers.insert(numbers.end(), rows, factor);
  return AddNumbers(name + ".scale", Shape{Dim::Number(experts * rows)},
                    numbers);
}

std::vector<float> ModelBuilder::FactorsOf(const std::string& name,
                                           int64_t count) {
  // For programs that round x to four bits; weft does not.
  Ignore(name + ".input_scale", {count});
  absl::StatusOr<const GgufTensor*> found =
      weights_.Optional(name + ".scale", std::vector<int64_t>{count});
  if (!found.ok()) Fail(found.status());
  // What is only described has no numbers (loaders/synthesize).
  if (!found.ok() || *found == nullptr || (*found)->data.empty()) return {};
  std::vector<float> factors(count);
  DequantizeRow((*found)->type, (*found)->data.data(), factors.data(), count);
  for (float factor : factors) {
    if (!std::isfinite(factor)) {
      Fail(absl::InvalidArgumentError(absl::StrCat(
          "bad tensor '", name, ".scale': ", (*found)->file->path(),
          ": it is not finite: use a complete model")));
      return {};
    }
  }
  return factors;
}

RopeOptions ModelBuilder::UnscaledRopeOf(RopeStyle style) const {
  RopeOptions rope = RopeOf(style);
  rope.scale = 1;
  rope.magnitude = 1;
  rope.ramp_begin = rope.ramp_end = 0;
  return rope;
}

RopeOptions ModelBuilder::RopeOf(RopeStyle style) const {
  RopeOptions rope;
  rope.head_dim = config.key_length;
  rope.rope_dims = config.rope_dimension_count;
  rope.base = AsWritten(config.rope_freq_base);
  rope.scale = AsWritten(config.rope_position_scale);
  rope.style = style;
  rope.magnitude = AsWritten(config.rope_magnitude);
  rope.ramp_begin = config.rope_ramp.begin;
  rope.ramp_end = config.rope_ramp.end;
  return rope;
}

ValueId ModelBuilder::State(int64_t block, const char* layout, int64_t heads,
                            int64_t head_dim) {
  const DType type =
      config.encoder ? DType::kF32 : options_.kv_type.OfBlock(block);
  if (type == DType::kQ8_0 && head_dim % 32 != 0) {
    Fail(absl::InvalidArgumentError(absl::StrCat(
        "kv-type q8_0 does not fit this model: heads have ", head_dim,
        " elements, not a multiple of 32: choose f16, bf16 or f32")));
    return kNone;
  }
  return graph().AddState(
      absl::StrCat("blk.", block, ".", layout),
      {type, Shape{Dim::Context(), Dim::Number(heads), Dim::Number(head_dim)},
       layout});
}

ValueId ModelBuilder::KeyState(int64_t block, int64_t heads, int64_t head_dim) {
  return State(block, "keys", heads, head_dim);
}

ValueId ModelBuilder::ValueState(int64_t block, int64_t heads,
                                 int64_t head_dim) {
  return State(block, "values", heads, head_dim);
}

ValueId ModelBuilder::WindowState(int64_t block, const std::string& name,
                                  int64_t rows, int64_t columns) {
  return graph().AddState(
      absl::StrCat("blk.", block, ".", name),
      {DType::kF32, Shape{Dim::Number(rows), Dim::Number(columns)}, "window"});
}

ValueId ModelBuilder::MatrixState(int64_t block, int64_t heads, int64_t keys,
                                  int64_t values) {
  return graph().AddState(
      absl::StrCat("blk.", block, ".matrices"),
      {DType::kF32,
       Shape{Dim::Number(heads), Dim::Number(keys), Dim::Number(values)},
       "matrices"});
}

ValueId ModelBuilder::KeepState(const std::string& name,
                                const Stepped& stepped) {
  if (stepped.state == kNone) return kNone;
  graph().AddOutput(name, stepped.state);
  return stepped.rows;
}

absl::Status ModelBuilder::Finish() {
  if (!error_.ok()) return error_;
  if (!status().ok()) return status();
  return weights_.CheckAllUsed();
}

absl::StatusOr<LoadedGraph> BuildGraph(const GgufFile& file,
                                       const GraphOptions& options) {
  WEFT_ASSIGN_OR_RETURN(std::string name, ReadArchitecture(file));
  const Architecture* architecture = FindArchitecture(name);
  if (architecture == nullptr) {
    std::vector<std::string> known;
    for (const Architecture* a : AllArchitectures()) known.push_back(a->name);
    return absl::UnimplementedError(absl::StrCat(
        "architecture '", name, "' is not supported: ", file.path(),
        ": supported are ", absl::StrJoin(known, ", ")));
  }
  WEFT_ASSIGN_OR_RETURN(ModelConfig config,
                        ReadModelConfig(file, architecture->traits));
  WEFT_ASSIGN_OR_RETURN(int64_t context,
                        ContextOf(config, architecture->traits, options));
  if (options.kv_type.last_block() >= config.block_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("kv-type names a block that is not there: ",
                     options.kv_type.last_block(),
                     ": this model has blocks 0 to ", config.block_count - 1));
  }

  LoadedGraph loaded;
  loaded.config = config;
  Graph& graph = loaded.graph;
  graph.name = name;
  graph.bounds = {options.tokens, options.tokens, context};
  WeightReader tensors(file);
  const auto& handled = architecture->traits.handled_keys;
  if (std::find(handled.begin(), handled.end(), kNextTokenBlocks) !=
      handled.end()) {
    WEFT_RETURN_IF_ERROR(CheckNextTokenBlocks(file, config));
  }
  // Of several, the first predicts the token after next.
  for (int64_t i = options.next_token_block ? 1 : 0;
       i < config.next_token_blocks; ++i) {
    tensors.LeaveOut(absl::StrCat("blk.", config.block_count + i, "."));
  }
  WEFT_ASSIGN_OR_RETURN(loaded.gives, OutputOf(file, config, options.output));
  if (options.next_token_block) {
    WEFT_RETURN_IF_ERROR(CheckHasNextTokenBlock(file, config, *architecture));
    if (loaded.gives != ModelOutput::kLogits) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the next-token block is for text alone: ", file.path(), ": ",
          NameOf(loaded.gives), " are asked for: leave it out"));
    }
  }
  // Heads that are not asked for.
  if (loaded.gives != ModelOutput::kScores) tensors.LeaveOut("cls.");
  if (loaded.gives != ModelOutput::kEmbedding) tensors.LeaveOut("dense_");
  if (config.encoder) tensors.LeaveOut("output.");
  ModelBuilder builder(&tensors, loaded.config, options, &graph);
  builder.gives = loaded.gives;
  builder.gives_hidden_rows = options.next_token_block;
  architecture->build(builder);
  if (!config.encoder) GiveInsteadOfLogits(builder);
  if (options.next_token_block && builder.ok()) {
    WEFT_RETURN_IF_ERROR(
        BuildNextTokenBlock(*architecture, options, &tensors, &loaded));
  }
  WEFT_RETURN_IF_ERROR(builder.Finish());
  WEFT_RETURN_IF_ERROR(AttachAdapters(options.adapters, file, &graph));
  WEFT_RETURN_IF_ERROR(VerifyGraph(graph));
  return loaded;
}

}  // namespace weft
