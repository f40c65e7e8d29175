#include "loaders/convert/convert.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "loaders/architectures/architecture.h"
#include "loaders/convert/checkpoint_config.h"
#include "loaders/convert/family.h"
#include "loaders/convert/tensor_plan.h"
#include "loaders/convert/vocabulary_keys.h"
#include "loaders/convert/vocabulary_source.h"
#include "loaders/gguf.h"
#include "loaders/gguf_writer.h"
#include "loaders/safetensors/json_text.h"
#include "loaders/safetensors/safetensors.h"
#include "loaders/utf8.h"
#include "loaders/vocabulary.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr JsonLimits kConfigLimits = {int64_t{1} << 22, int64_t{1} << 19, 32};
// As many as a vocabulary may have (loaders/vocabulary.cc), and as readers
// take of the others (loaders/config_keys.h).
constexpr int64_t kMaxTokens = int64_t{1} << 24;
constexpr int64_t kMaxDimension = int64_t{1} << 24;
constexpr int64_t kMaxBlocks = int64_t{1} << 16;

absl::Status CannotConvert(absl::string_view where, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot convert: ", where, ": ", why));
}

// `general.file_type` of a file whose matrices are mostly of a type.
uint32_t FileTypeOf(DType type) {
  switch (type) {
    case DType::kF16:
      return 1;
    case DType::kBF16:
      return 32;
    case DType::kMXFP4:
      return 38;
    default:
      return 0;
  }
}

class FolderConverter {
 public:
  FolderConverter(const std::string& folder, const ConvertOptions& options)
      : folder_(folder), options_(options) {}

  absl::StatusOr<ConvertReport> Run(const std::string& result_path) {
    const std::string config_path = absl::StrCat(folder_, "/config.json");
    WEFT_ASSIGN_OR_RETURN(json root, ReadJsonFile(config_path, kConfigLimits));
    const CheckpointConfig config(std::move(root), config_path);
    const Family* const family = FindFamily(config.architecture());
    if (family == nullptr) {
      return CannotConvert(
          config_path,
          absl::StrCat("architectures is '", config.architecture(),
                       "': want one of ", absl::StrJoin(FamilyNames(), ", ")));
    }
    WEFT_ASSIGN_OR_RETURN(SafetensorsFolder tensors,
                          SafetensorsFolder::Open(folder_));
    report_.architecture = std::string(family->architecture);
    Conversion conversion(config, report_.architecture, &writer_,
                          &report_.warnings);
    SetGeneral();
    WEFT_RETURN_IF_ERROR(ReadDimensions(*family, &conversion));
    WEFT_RETURN_IF_ERROR(SetKeys(*family, conversion));
    if (family->finish != nullptr) {
      WEFT_RETURN_IF_ERROR(family->finish(conversion));
    }
    WEFT_RETURN_IF_ERROR(CheckQuantized(*family, config));
    if (family->encoder) WEFT_RETURN_IF_ERROR(SetPooling(conversion));
    WEFT_ASSIGN_OR_RETURN(
        planned_,
        PlanTensors(*family, conversion, tensors.tensors(), options_.type));
    WEFT_RETURN_IF_ERROR(CheckTensors(*family, conversion));
    WEFT_RETURN_IF_ERROR(config.CheckAllRead(&report_.warnings));
    WEFT_RETURN_IF_ERROR(AddVocabulary(*family, config));
    AddTensors(conversion);
    WEFT_RETURN_IF_ERROR(writer_.WriteTo(
        result_path,
        [this](const std::string& written) { return CheckRuns(written); }));
    return std::move(report_);
  }

 private:
  void SetGeneral() {
    writer_.SetString("general.architecture", report_.architecture);
    writer_.SetString("general.type", "model");
    std::string name = options_.name;
    if (name.empty()) {
      std::error_code error;
      const fs::path path = fs::weakly_canonical(folder_, error);
      name = path.filename().string();
    }
    if (!name.empty() && IsValidUtf8(name)) {
      writer_.SetString("general.name", name);
    }
  }

  absl::Status ReadDimensions(const Family& family, Conversion* c) {
    const Family::Dimensions& names = family.dimensions;
    const auto read = [&](absl::string_view key, int64_t usual, int64_t most,
                          int64_t* result) -> absl::Status {
      WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> value,
                            c->config.OptionalInt(key));
      *result = value.value_or(usual);
      if (*result >= 1 && *result <= most) return absl::OkStatus();
      return c->config.BadKey(key, absl::StrCat("a number from 1 to ", most));
    };
    WEFT_RETURN_IF_ERROR(read(names.blocks, 0, kMaxBlocks, &c->blocks));
    WEFT_RETURN_IF_ERROR(
        read(names.embedding, 0, kMaxDimension, &c->embedding));
    WEFT_RETURN_IF_ERROR(
        read(names.heads, names.usual_heads, kMaxDimension, &c->heads));
    WEFT_RETURN_IF_ERROR(
        read(names.heads_kv,
             names.usual_heads_kv > 0 ? names.usual_heads_kv : c->heads,
             kMaxDimension, &c->heads_kv));
    WEFT_RETURN_IF_ERROR(
        read(names.head_length,
             names.usual_head_length > 0
                 ? names.usual_head_length
                 : std::max<int64_t>(1, c->embedding / c->heads),
             kMaxDimension, &c->head_length));
    const auto set = [&](absl::string_view key, int64_t value) {
      writer_.SetUint32(c->Key(key), static_cast<uint32_t>(value));
    };
    set("block_count", c->blocks);
    set("embedding_length", c->embedding);
    set("attention.head_count", c->heads);
    if (c->config.Find(names.heads_kv) != nullptr || names.usual_heads_kv > 0) {
      set("attention.head_count_kv", c->heads_kv);
    }
    if (c->config.Find(names.head_length) != nullptr ||
        names.usual_head_length > 0) {
      set("attention.key_length", c->head_length);
      set("attention.value_length", c->head_length);
    }
    return absl::OkStatus();
  }

  absl::Status SetKeys(const Family& family, const Conversion& c) {
    for (const KeyRule& rule : family.keys) {
      const std::string key = c.Key(rule.gguf);
      std::optional<double> value = rule.otherwise;
      switch (rule.kind) {
        case KeyRule::Kind::kUint: {
          WEFT_ASSIGN_OR_RETURN(const auto number,
                                c.config.OptionalInt(rule.key));
          if (number) value = static_cast<double>(*number);
          if (value) writer_.SetUint32(key, static_cast<uint32_t>(*value));
          break;
        }
        case KeyRule::Kind::kFloat: {
          WEFT_ASSIGN_OR_RETURN(const auto number,
                                c.config.OptionalNumber(rule.key));
          if (number) value = *number;
          if (value) writer_.SetFloat32(key, static_cast<float>(*value));
          break;
        }
        case KeyRule::Kind::kBool: {
          WEFT_ASSIGN_OR_RETURN(const auto flag,
                                c.config.OptionalBool(rule.key));
          if (flag) value = *flag ? 1.0 : 0.0;
          if (value) writer_.SetBool(key, *value != 0.0);
          break;
        }
      }
      if (!value && rule.required) return c.config.BadKey(rule.key, "a value");
    }
    std::vector<json> activations(family.activations.begin(),
                                  family.activations.end());
    // Where both are there, the newer name goes before.
    const bool newer = c.config.Find("hidden_activation") != nullptr;
    c.config.Find("hidden_act");
    return c.config.Expect(newer ? "hidden_activation" : "hidden_act",
                           activations);
  }

  // Weights that were quantised lie otherwise than tables say, but for MXFP4.
  static absl::Status CheckQuantized(const Family& family,
                                     const CheckpointConfig& config) {
    constexpr char kKey[] = "quantization_config";
    const json* found = config.Find(kKey);
    if (found == nullptr) return absl::OkStatus();
    const bool packs =
        std::any_of(family.tensors.begin(), family.tensors.end(),
                    [](const TensorRule& rule) {
                      return rule.packed != TensorRule::Packed::kNo;
                    });
    if (packs && found->is_object() &&
        found->value("quant_method", json()) == "mxfp4") {
      return absl::OkStatus();
    }
    return config.BadKey(kKey,
                         "none: take the folder with the weights before they "
                         "were quantised");
  }

  // As sentence-transformers writes it: modules.json names the folder of the
  // pooling.
  absl::Status SetPooling(Conversion& c) {
    std::error_code error;
    const std::string path = absl::StrCat(folder_, "/1_Pooling/config.json");
    if (!fs::exists(path, error)) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(const json pooling,
                          ReadJsonFile(path, kConfigLimits));
    struct Mode {
      const char* key;
      uint32_t type;  // `pooling_type`
    };
    constexpr Mode kModes[] = {{"pooling_mode_mean_tokens", 1},
                               {"pooling_mode_cls_token", 2},
                               {"pooling_mode_lasttoken", 3}};
    uint32_t type = 0;
    int modes = 0;
    for (const auto& [key, value] : pooling.items()) {
      if (!absl::StartsWith(key, "pooling_mode_") || value != true) continue;
      ++modes;
      for (const Mode& mode : kModes) {
        if (key == mode.key) type = mode.type;
      }
    }
    if (modes != 1 || type == 0) {
      return CannotConvert(path,
                           "want one of pooling_mode_mean_tokens, "
                           "pooling_mode_cls_token and pooling_mode_lasttoken");
    }
    writer_.SetUint32(c.Key("pooling_type"), type);
    return absl::OkStatus();
  }

  const PlannedTensor* FindPlanned(absl::string_view name) const {
    for (const PlannedTensor& tensor : planned_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }

  absl::Status CheckTensors(const Family& family, const Conversion& c) const {
    const PlannedTensor* const embedding = FindPlanned("token_embd.weight");
    if (embedding == nullptr || embedding->dims.size() != 2) {
      return CannotConvert(folder_, "it has no embedding of tokens");
    }
    if (embedding->dims[0] != c.embedding || embedding->dims[1] > kMaxTokens) {
      return CannotConvert(
          folder_,
          absl::StrCat("its embedding is ", embedding->parts[0]->Describe(),
                       ", want ", "rows of ", c.embedding, " (",
                       family.dimensions.embedding, ")"));
    }
    WEFT_RETURN_IF_ERROR(CheckVocabularySize(c.config, embedding->dims[1]));
    std::vector<bool> there(static_cast<size_t>(c.blocks));
    for (const PlannedTensor& tensor : planned_) {
      if (tensor.block >= 0) there[static_cast<size_t>(tensor.block)] = true;
    }
    const auto missing = std::find(there.begin(), there.end(), false);
    if (missing != there.end()) {
      return CannotConvert(
          folder_, absl::StrCat("block ", missing - there.begin(), " of ",
                                c.blocks, " is missing"));
    }
    const bool has_output = std::any_of(
        family.tensors.begin(), family.tensors.end(),
        [](const TensorRule& rule) { return rule.to == "output.weight"; });
    WEFT_ASSIGN_OR_RETURN(const std::optional<bool> tied,
                          c.config.OptionalBool("tie_word_embeddings"));
    if (has_output && tied.has_value() && !*tied &&
        FindPlanned("output.weight") == nullptr && !IsHeadless(c.config)) {
      return CannotConvert(folder_,
                           "there is no lm_head.weight, and config.json says "
                           "tie_word_embeddings: false");
    }
    return absl::OkStatus();
  }

  // The embedding has a row for each token, or so many that a processor likes
  // the number (Nomic).
  absl::Status CheckVocabularySize(const CheckpointConfig& config,
                                   int64_t rows) const {
    WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> size,
                          config.OptionalInt("vocab_size"));
    if (!size.has_value() || *size == rows) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> padded,
                          config.OptionalInt("pad_vocab_size_multiple"));
    const int64_t multiple = std::max<int64_t>(1, padded.value_or(1));
    if ((*size + multiple - 1) / multiple * multiple == rows) {
      return absl::OkStatus();
    }
    return config.BadKey("vocab_size",
                         absl::StrCat(rows, ", the rows of the embedding"));
  }

  // Opens what was written as a model: a tensor that is missing or of another
  // shape than keys say is known to those who build the model, and to no table
  // here.
  absl::Status CheckRuns(const std::string& written) const {
    absl::StatusOr<GgufFile> file = GgufFile::Open(written);
    absl::Status status = file.status();
    if (status.ok()) status = BuildGraph(*file, {}).status();
    if (status.ok()) status = ReadVocabulary(*file).status();
    if (status.ok()) return status;
    return CannotConvert(
        folder_, absl::StrCat("the model cannot run: ",
                              absl::StrReplaceAll(status.message(),
                                                  {{written, "its file"}})));
  }

  // Models that make vectors have no output.
  static bool IsHeadless(const CheckpointConfig& config) {
    return absl::EndsWith(config.architecture(), "Model");
  }

  absl::Status AddVocabulary(const Family& family,
                             const CheckpointConfig& config) {
    WEFT_ASSIGN_OR_RETURN(const VocabularySource source,
                          VocabularySource::Read(folder_));
    VocabularyRules rules;
    rules.size = FindPlanned("token_embd.weight")->dims[1];
    rules.pre = options_.pre;
    rules.preferred_pre = family.pretokenizer;
    WEFT_RETURN_IF_ERROR(
        SetVocabulary(source, config, rules, &writer_, &report_.warnings));
    SetSampling(source.generation_config);
    return absl::OkStatus();
  }

  // What the authors suggest, where they suggest to draw at all.
  void SetSampling(const json& generation) {
    if (generation.value("do_sample", json()) != true) return;
    struct Row {
      const char* key;
      const char* gguf;
    };
    constexpr Row kFloats[] = {
        {"temperature", "general.sampling.temp"},
        {"top_p", "general.sampling.top_p"},
        {"min_p", "general.sampling.min_p"},
        {"repetition_penalty", "general.sampling.penalty_repeat"}};
    for (const Row& row : kFloats) {
      const auto found = generation.find(row.key);
      if (found == generation.end() || !found->is_number()) continue;
      const double value = found->get<double>();
      if (value >= 0 && value <= 1e6) {
        writer_.SetFloat32(row.gguf, static_cast<float>(value));
      }
    }
    const auto top_k = generation.find("top_k");
    if (top_k != generation.end() && top_k->is_number_unsigned() &&
        top_k->get<uint64_t>() <= uint64_t{INT32_MAX}) {
      writer_.SetInt32("general.sampling.top_k", top_k->get<int32_t>());
    }
  }

  void AddTensors(const Conversion& c) {
    std::map<DType, int64_t> bytes;
    const int total = static_cast<int>(planned_.size());
    // Of the model as a whole, so before its parts.
    for (const Conversion::Vector& vector : c.vectors) {
      vectors_.push_back(vector);
    }
    for (const Conversion::Vector& vector : vectors_) {
      writer_.AddTensor(
          vector.name, DType::kF32,
          {static_cast<int64_t>(vector.values.size())},
          absl::MakeConstSpan(
              reinterpret_cast<const uint8_t*>(vector.values.data()),
              vector.values.size() * sizeof(float)));
    }
    for (int i = 0; i < total; ++i) {
      const PlannedTensor& tensor = planned_[static_cast<size_t>(i)];
      int64_t elements = 1;
      for (int64_t dim : tensor.dims) elements *= dim;
      report_.parameters += elements;
      const int64_t size = RowBytes(tensor.type, elements);
      report_.tensor_bytes += size;
      bytes[tensor.type] += size;
      writer_.AddTensor(tensor.name, tensor.type, tensor.dims,
                        [this, &tensor, i, total](const auto& sink) {
                          if (options_.progress) {
                            options_.progress(tensor.name, i, total);
                          }
                          return ProduceTensor(tensor, sink);
                        });
    }
    const auto most = std::max_element(
        bytes.begin(), bytes.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != bytes.end()) report_.type = most->first;
    writer_.SetUint32("general.file_type", FileTypeOf(report_.type));
    writer_.SetUint32("general.quantization_version", 2);
  }

  const std::string& folder_;
  const ConvertOptions& options_;
  GgufWriter writer_;
  ConvertReport report_;
  std::vector<PlannedTensor> planned_;
  std::vector<Conversion::Vector> vectors_;
};

}  // namespace

absl::StatusOr<ConvertReport> ConvertFolder(const std::string& folder,
                                            const std::string& result_path,
                                            const ConvertOptions& options) {
  return FolderConverter(folder, options).Run(result_path);
}

bool IsConvertibleFolder(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  const auto has = [&](const char* name) {
    return fs::exists(absl::StrCat(path, "/", name), error);
  };
  return has("config.json") &&
         (has("model.safetensors") || has("model.safetensors.index.json"));
}

absl::StatusOr<std::string> FolderStamp(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const SafetensorsFolder tensors,
                        SafetensorsFolder::Open(folder));
  std::vector<std::string> paths = tensors.paths();
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json",
        "tokenizer.model", "added_tokens.json", "tokenizer_config.json",
        "chat_template.jinja", "1_Pooling/config.json"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    std::error_code error;
    if (fs::exists(path, error)) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  std::string stamp;
  for (const std::string& path : paths) {
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
      return absl::NotFoundError(
          absl::StrCat("cannot open file: ", path, ": ", std::strerror(errno)));
    }
    absl::StrAppend(&stamp, path, " ", info.st_size, " ", info.st_mtim.tv_sec,
                    ".", info.st_mtim.tv_nsec, "\n");
  }
  return stamp;
}

}  // namespace weft
