#include "loaders/convert/tensor_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "loaders/gguf_value.h"
#include "ops/dequantize.h"
#include "ops/quantize.h"

namespace weft {
namespace {

constexpr int64_t kNone = -1;
// Of rows that are made at a time.
constexpr int64_t kChunkBytes = int64_t{1} << 20;
// MXFP4: 32 numbers in 16 bytes and one of scale.
constexpr int64_t kPackedBytes = 16;
constexpr int64_t kPackedElements = 32;

absl::Status BadTensor(const SafetensorsTensor& tensor, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "cannot convert: ", tensor.file->path(), ": tensor ",
      QuoteForMessage(tensor.name), " (", tensor.Describe(), ") ", why));
}

// What stands before all names in one folder or another.
std::string PlainName(absl::string_view name) {
  for (absl::string_view prefix :
       {"language_model.model.", "model.language_model."}) {
    if (absl::ConsumePrefix(&name, prefix)) return absl::StrCat("model.", name);
  }
  if (absl::ConsumePrefix(&name, "language_model.lm_head.")) {
    return absl::StrCat("lm_head.", name);
  }
  for (absl::string_view prefix : {"bert.", "roberta."}) {
    if (absl::ConsumePrefix(&name, prefix)) return PlainName(name);
  }
  // Of models without a head.
  for (absl::string_view first : {"layers.", "embed_tokens.", "norm."}) {
    if (absl::StartsWith(name, first)) return absl::StrCat("model.", name);
  }
  // BERT's oldest names for the two vectors of a norm.
  std::string plain(name);
  if (absl::EndsWith(plain, ".LayerNorm.gamma")) {
    plain.replace(plain.size() - 5, 5, "weight");
  } else if (absl::EndsWith(plain, ".LayerNorm.beta")) {
    plain.replace(plain.size() - 4, 4, "bias");
  }
  return plain;
}

// Of what sees and hears, in folders of models that also read.
bool IsOfOtherPart(absl::string_view name) {
  for (absl::string_view prefix :
       {"vision_tower.", "model.vision_tower.", "multi_modal_projector.",
        "model.multi_modal_projector.", "vision_model.", "visual.",
        "model.visual."}) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

struct Match {
  int64_t block = kNone, expert = kNone;
};

bool ReadNumber(absl::string_view text, int64_t* number) {
  // No sign, no space, no leading zero: one spelling for each number.
  if (text.empty() || text.size() > 6 || (text.size() > 1 && text[0] == '0')) {
    return false;
  }
  for (char c : text) {
    if (c < '0' || c > '9') return false;
  }
  return absl::SimpleAtoi(text, number);
}

// The pattern with its numbers read as {b} and {e}.
std::string ShapeOf(absl::string_view name, std::vector<int64_t>* numbers) {
  std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  for (absl::string_view& part : parts) {
    int64_t number;
    if (!ReadNumber(part, &number)) continue;
    numbers->push_back(number);
    part = numbers->size() == 1 ? "{b}" : "{e}";
  }
  return absl::StrJoin(parts, ".");
}

std::string NameOf(const TensorRule& rule, int64_t block) {
  return absl::StrReplaceAll(rule.to, {{"{b}", absl::StrCat(block)}});
}

std::optional<DType> PlainType(absl::string_view type) {
  if (type == "F32") return DType::kF32;
  if (type == "F16") return DType::kF16;
  if (type == "BF16") return DType::kBF16;
  return std::nullopt;
}

// As public converters have it (llama.cpp, conversion/base.py).
bool IsAlwaysF32(absl::string_view name, size_t dims) {
  if (dims <= 1 || absl::EndsWith(name, "_norm.weight") ||
      !absl::EndsWith(name, ".weight")) {
    return true;
  }
  for (absl::string_view end :
       {"ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight", "ssm_conv1d.weight",
        "shortconv.conv.weight"}) {
    if (absl::EndsWith(name, end)) return true;
  }
  return name == "position_embd.weight" || name == "token_types.weight";
}

// A published tensor as matrices: `outer` of them, of `rows` rows of `columns`
// numbers, which lie so far apart.
struct Matrices {
  int64_t outer = 1, rows = 1, columns = 1;
  int64_t row_step = 1, column_step = 1;
};

// A bias is a column: its elements are rows.
bool IsBias(const TensorRule& rule) { return absl::EndsWith(rule.to, ".bias"); }

std::vector<int64_t> ShapeFor(const SafetensorsTensor& tensor,
                              const TensorRule& rule) {
  std::vector<int64_t> shape = tensor.shape;
  if (rule.packed == TensorRule::Packed::kBlocks && shape.size() >= 2) {
    const int64_t blocks = shape[shape.size() - 2];
    shape.pop_back();
    shape.back() = blocks * kPackedElements;
  }
  if (shape.empty()) shape.push_back(1);
  if (rule.transposed && shape.size() >= 2) {
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  }
  return shape;
}

Matrices MatricesOf(const std::vector<int64_t>& shape, const TensorRule& rule) {
  Matrices m;
  size_t used = 1;
  if (IsBias(rule) || shape.size() == 1) {
    m.rows = shape.back();
  } else {
    m.columns = shape.back();
    m.rows = shape[shape.size() - 2];
    used = 2;
  }
  for (size_t i = 0; i + used < shape.size(); ++i) m.outer *= shape[i];
  m.row_step = rule.transposed ? 1 : m.columns;
  m.column_step = rule.transposed ? m.rows : 1;
  return m;
}

bool TakesHalf(Rows rows) {
  return rows == Rows::kFirstHalf || rows == Rows::kSecondHalf ||
         rows == Rows::kEven || rows == Rows::kOdd;
}

// How many of so many published rows are taken.
int64_t RowsTaken(Rows order, int64_t rows) {
  if (TakesHalf(order)) return rows / 2;
  return order == Rows::kFromThird ? rows - 2 : rows;
}

// The published row that stands at `row` in the file, where there are `rows`
// published ones.
int64_t SourceRow(Rows order, int64_t row, int64_t rows, int64_t heads) {
  switch (order) {
    case Rows::kAll:
    case Rows::kFirstHalf:
      return row;
    case Rows::kSecondHalf:
      return row + rows / 2;
    case Rows::kEven:
      return 2 * row;
    case Rows::kOdd:
      return 2 * row + 1;
    case Rows::kFromThird:
      return row + 2;
    case Rows::kPairsOfQueries:
    case Rows::kPairsOfKeys: {
      const int64_t length = rows / heads;
      const int64_t at = row % length;
      return row - at + (at % 2) * (length / 2) + at / 2;
    }
  }
  return row;
}

class Planner {
 public:
  Planner(const Family& family, const Conversion& conversion,
          std::optional<DType> type)
      : family_(family), conversion_(conversion), type_(type) {
    for (size_t i = 0; i < family.tensors.size(); ++i) {
      const TensorRule& rule = family.tensors[i];
      rules_[rule.from].push_back(i);
    }
  }

  absl::StatusOr<std::vector<PlannedTensor>> Run(
      absl::Span<const SafetensorsTensor> tensors) {
    for (const SafetensorsTensor& tensor : tensors) {
      WEFT_RETURN_IF_ERROR(Add(tensor));
    }
    std::vector<PlannedTensor> planned;
    for (auto& [place, stack] : stacks_) {
      WEFT_ASSIGN_OR_RETURN(PlannedTensor made, Finish(std::move(stack)));
      planned.push_back(std::move(made));
    }
    return planned;
  }

 private:
  // Embedding (-1), blocks, the rest; then by the table; then by name.
  using Place = std::tuple<int64_t, size_t, std::string>;
  struct Stack {
    std::string name;
    int64_t block = kNone;
    const TensorRule* rule = nullptr;
    std::map<int64_t, const SafetensorsTensor*> parts, scales;
  };

  absl::Status Add(const SafetensorsTensor& tensor) {
    if (IsOfOtherPart(tensor.name)) return absl::OkStatus();
    const std::string name = PlainName(tensor.name);
    std::vector<int64_t> numbers;
    const std::string shape = ShapeOf(name, &numbers);
    auto found = rules_.find(shape);
    if (found == rules_.end()) found = rules_.find(name);
    if (found == rules_.end()) {
      return BadTensor(tensor,
                       absl::StrCat("has no place in a model of the kind ",
                                    family_.architecture,
                                    ": it would be another model without it"));
    }
    const int64_t block = numbers.empty() ? kNone : numbers[0];
    const int64_t expert = numbers.size() > 1 ? numbers[1] : kNone;
    if (block >= conversion_.blocks) {
      return BadTensor(
          tensor, absl::StrCat("is of a block beyond the ", conversion_.blocks,
                               " that config.json has"));
    }
    for (size_t index : found->second) {
      const TensorRule& rule = family_.tensors[index];
      if (rule.to.empty()) continue;
      if (rule.to == "output.weight" && tied()) continue;
      const std::string target = NameOf(rule, block);
      const Place place(
          block != kNone ? block : (index < first_of_blocks() ? -1 : INT64_MAX),
          index, target);
      const bool scales = rule.packed == TensorRule::Packed::kScales;
      // Both kinds of tensors that make one have its first rule's place.
      const auto [at, is_new] = places_.emplace(target, place);
      Stack& stack = stacks_[at->second];
      if (is_new) {
        stack.name = target;
        stack.block = block;
        stack.rule = &rule;
      }
      if (!scales) {
        if (!stack.parts.empty() && stack.rule != &rule) {
          return BadTensor(tensor,
                           absl::StrCat("is one of two that are ", target));
        }
        stack.rule = &rule;
      }
      auto& list = scales ? stack.scales : stack.parts;
      if (!list.emplace(expert, &tensor).second) {
        return BadTensor(tensor,
                         absl::StrCat("is one of two that are ", target));
      }
    }
    return absl::OkStatus();
  }

  // The embedding is the output.
  bool tied() const {
    const auto tie = conversion_.config.OptionalBool("tie_word_embeddings");
    return tie.ok() && tie->value_or(false);
  }

  size_t first_of_blocks() const {
    for (size_t i = 0; i < family_.tensors.size(); ++i) {
      if (absl::StrContains(family_.tensors[i].to, "{b}")) return i;
    }
    return family_.tensors.size();
  }

  absl::StatusOr<PlannedTensor> Finish(Stack stack) const {
    PlannedTensor made;
    made.name = std::move(stack.name);
    made.block = stack.block;
    made.rule = stack.rule;
    const SafetensorsTensor* const any = stack.parts.empty()
                                             ? stack.scales.begin()->second
                                             : stack.parts.begin()->second;
    if (stack.parts.empty()) {
      return BadTensor(*any, "has scales for blocks that are not there");
    }
    const TensorRule& rule = *made.rule;
    int64_t expected = 0;
    for (const auto& [expert, part] : stack.parts) {
      if (expert != kNone && expert != expected) {
        return BadTensor(
            *part, absl::StrCat("is there, number ", expected, " is not"));
      }
      if (part->shape != any->shape || part->type != any->type) {
        return BadTensor(*part,
                         absl::StrCat("differs from those it is stacked with (",
                                      any->Describe(), ")"));
      }
      made.parts.push_back(part);
      ++expected;
    }
    const bool stacked = stack.parts.begin()->first != kNone;
    std::vector<int64_t> shape = ShapeFor(*any, rule);
    const bool packed = rule.packed != TensorRule::Packed::kNo;
    if (packed) {
      WEFT_RETURN_IF_ERROR(CheckPacked(stack, *any));
      made.scales.push_back(stack.scales.begin()->second);
    } else if (!stack.scales.empty()) {
      return BadTensor(*stack.scales.begin()->second,
                       "has scales for what are no blocks");
    }
    if (any->elements() == 0) return BadTensor(*any, "is empty");
    if (rule.transposed && shape.size() < 2) {
      return BadTensor(*any, "is no matrix");
    }
    const Matrices m = MatricesOf(shape, rule);
    const size_t row_dim =
        IsBias(rule) || shape.size() == 1 ? shape.size() - 1 : shape.size() - 2;
    if (TakesHalf(rule.rows)) {
      if (m.rows % 2 != 0) return BadTensor(*any, "has no even number of rows");
    }
    if (rule.rows == Rows::kFromThird && m.rows <= 2) {
      return BadTensor(*any, "has no rows behind the first two");
    }
    shape[row_dim] = RowsTaken(rule.rows, shape[row_dim]);
    if (rule.rows == Rows::kPairsOfQueries || rule.rows == Rows::kPairsOfKeys) {
      made.heads = rule.rows == Rows::kPairsOfQueries ? conversion_.heads
                                                      : conversion_.heads_kv;
      if (m.outer != 1 || m.rows % (2 * made.heads) != 0) {
        return BadTensor(*any, absl::StrCat("has no rows for pairs in ",
                                            made.heads, " heads"));
      }
    }
    if (stacked) {
      shape.insert(shape.begin(), static_cast<int64_t>(made.parts.size()));
    }
    if (shape.size() > 4) return BadTensor(*any, "has too many dimensions");
    made.dims.assign(shape.rbegin(), shape.rend());
    if (packed) {
      made.type = DType::kMXFP4;
      return made;
    }
    const std::optional<DType> stored = PlainType(any->type);
    if (!stored.has_value()) {
      return BadTensor(*any,
                       "is of a type that is not converted: want F32, F16 or "
                       "BF16, the weights before they were quantised");
    }
    made.type = IsAlwaysF32(made.name, shape.size()) ? DType::kF32
                                                     : type_.value_or(*stored);
    return made;
  }

  absl::Status CheckPacked(const Stack& stack,
                           const SafetensorsTensor& blocks) const {
    if (stack.parts.size() != 1 || stack.scales.size() != 1) {
      return BadTensor(blocks, "has no scales");
    }
    const SafetensorsTensor& scales = *stack.scales.begin()->second;
    std::vector<int64_t> expected = blocks.shape;
    const bool good = blocks.type == "U8" && scales.type == "U8" &&
                      expected.size() >= 2 && expected.back() == kPackedBytes;
    if (good) expected.pop_back();
    if (good && scales.shape == expected) return absl::OkStatus();
    return BadTensor(blocks, absl::StrCat("and its scales (", scales.Describe(),
                                          ") are no blocks of MXFP4"));
  }

  const Family& family_;
  const Conversion& conversion_;
  const std::optional<DType> type_;
  absl::flat_hash_map<std::string, std::vector<size_t>> rules_;
  absl::flat_hash_map<std::string, Place> places_;  // by target
  std::map<Place, Stack> stacks_;
};

// Rows of numbers, made a few at a time.
class RowProducer {
 public:
  RowProducer(const PlannedTensor& tensor, const SafetensorsTensor& part)
      : tensor_(tensor),
        part_(part),
        shape_(ShapeFor(part, *tensor.rule)),
        m_(MatricesOf(shape_, *tensor.rule)),
        stored_(*PlainType(part.type)),
        stored_bytes_(Info(stored_).block_bytes) {}

  absl::Status Run(const GgufWriter::Sink& sink) {
    const Rows order = tensor_.rule->rows;
    const int64_t rows = RowsTaken(order, m_.rows);
    const bool copies = tensor_.rule->numbers == Numbers::kAsStored &&
                        tensor_.type == stored_ && m_.column_step == 1;
    if (copies && (order == Rows::kAll)) return sink(part_.data);
    const int64_t row_bytes = RowBytes(tensor_.type, m_.columns);
    const int64_t chunk = std::max<int64_t>(1, kChunkBytes / row_bytes);
    std::vector<uint8_t> bytes(
        static_cast<size_t>(std::min(chunk, rows) * row_bytes));
    std::vector<uint8_t> gathered;
    std::vector<float> numbers(static_cast<size_t>(m_.columns));
    for (int64_t outer = 0; outer < m_.outer; ++outer) {
      const uint8_t* const matrix =
          part_.data.data() + outer * m_.rows * m_.columns * stored_bytes_;
      for (int64_t first = 0; first < rows; first += chunk) {
        const int64_t count = std::min(chunk, rows - first);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t source =
              SourceRow(order, first + i, m_.rows, tensor_.heads);
          const uint8_t* row = matrix + source * m_.row_step * stored_bytes_;
          if (m_.column_step != 1) row = Gather(row, &gathered);
          uint8_t* const out = bytes.data() + i * row_bytes;
          if (copies) {
            std::memcpy(out, row, static_cast<size_t>(row_bytes));
            continue;
          }
          DequantizeRow(stored_, row, numbers.data(), m_.columns);
          Change(&numbers);
          WEFT_RETURN_IF_ERROR(Store(numbers, out));
        }
        WEFT_RETURN_IF_ERROR(sink(absl::MakeConstSpan(
            bytes.data(), static_cast<size_t>(count * row_bytes))));
      }
    }
    return absl::OkStatus();
  }

 private:
  const uint8_t* Gather(const uint8_t* row, std::vector<uint8_t>* gathered) {
    gathered->resize(static_cast<size_t>(m_.columns * stored_bytes_));
    for (int64_t c = 0; c < m_.columns; ++c) {
      std::memcpy(gathered->data() + c * stored_bytes_,
                  row + c * m_.column_step * stored_bytes_,
                  static_cast<size_t>(stored_bytes_));
    }
    return gathered->data();
  }

  void Change(std::vector<float>* numbers) const {
    switch (tensor_.rule->numbers) {
      case Numbers::kAsStored:
        return;
      case Numbers::kPlusOne:
        for (float& x : *numbers) x += 1.0f;
        return;
      case Numbers::kMinusExp:
        for (float& x : *numbers) x = -std::exp(x);
        return;
    }
  }

  absl::Status Store(const std::vector<float>& numbers, uint8_t* out) const {
    if (tensor_.type == DType::kF32) {
      std::memcpy(out, numbers.data(), numbers.size() * sizeof(float));
      return absl::OkStatus();
    }
    const absl::Status status =
        QuantizeRow(tensor_.type, numbers.data(), out, m_.columns);
    if (status.ok()) return status;
    return BadTensor(part_,
                     absl::StrCat("as ", UpperName(tensor_.type), ": ",
                                  status.message(), ": choose another --type"));
  }

  const PlannedTensor& tensor_;
  const SafetensorsTensor& part_;
  const std::vector<int64_t> shape_;
  const Matrices m_;
  const DType stored_;
  const int64_t stored_bytes_;
};

// Published blocks have neighbours in one byte, the first in its low half;
// files have numbers i and i + 16.
void RepackBlock(const uint8_t* published, uint8_t scale, uint8_t* block) {
  uint8_t numbers[kPackedElements];
  for (int i = 0; i < kPackedBytes; ++i) {
    numbers[2 * i] = published[i] & 15;
    numbers[2 * i + 1] = published[i] >> 4;
  }
  block[0] = scale;
  for (int i = 0; i < kPackedBytes; ++i) {
    block[1 + i] = static_cast<uint8_t>(numbers[i] |
                                        numbers[i + kPackedElements / 2] << 4);
  }
}

absl::Status ProducePacked(const PlannedTensor& tensor,
                           const GgufWriter::Sink& sink) {
  const SafetensorsTensor& blocks = *tensor.parts[0];
  const SafetensorsTensor& scales = *tensor.scales[0];
  const Matrices m = MatricesOf(ShapeFor(blocks, *tensor.rule), *tensor.rule);
  const Rows order = tensor.rule->rows;
  const int64_t rows = RowsTaken(order, m.rows);
  const int64_t in_row = m.columns / kPackedElements;
  std::vector<uint8_t> row(
      static_cast<size_t>(RowBytes(DType::kMXFP4, m.columns)));
  for (int64_t outer = 0; outer < m.outer; ++outer) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t first =
          (outer * m.rows + SourceRow(order, i, m.rows, 1)) * in_row;
      for (int64_t b = 0; b < in_row; ++b) {
        RepackBlock(blocks.data.data() + (first + b) * kPackedBytes,
                    scales.data[first + b],
                    row.data() + b * (1 + kPackedBytes));
      }
      WEFT_RETURN_IF_ERROR(sink(row));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<PlannedTensor>> PlanTensors(
    const Family& family, const Conversion& conversion,
    absl::Span<const SafetensorsTensor> tensors, std::optional<DType> type) {
  return Planner(family, conversion, type).Run(tensors);
}

absl::Status ProduceTensor(const PlannedTensor& tensor,
                           const GgufWriter::Sink& sink) {
  if (tensor.type == DType::kMXFP4) return ProducePacked(tensor, sink);
  for (const SafetensorsTensor* part : tensor.parts) {
    WEFT_RETURN_IF_ERROR(RowProducer(tensor, *part).Run(sink));
    ReleasePages(part->data);
  }
  return absl::OkStatus();
}

}  // namespace weft
