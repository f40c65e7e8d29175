// weft inspect: what a model file holds and what its plan takes.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/direct_file.h"
#include "base/status.h"
#include "cli/cluster.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/plan_summary.h"
#include "models/default_model.h"
#include "ops/attributes.h"
#include "runtime/machine/cpus.h"
#include "runtime/machine/limits.h"
#include "text/printable.h"
#include "xxhash.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string model;
  bool hash = false, check = false, kernels = false, json = false;
  int64_t shards = 0;  // 0: nobody asked
  double link_gbps = 10, link_us = 50;
  std::string cluster;
  double disk_gbps = 0;
  CompileFlags compile;
};

// XXH3, 64 bits, as 16 hexadecimal digits.
std::string Hash(absl::Span<const uint8_t> bytes) {
  return absl::StrFormat("%016x", XXH3_64bits(bytes.data(), bytes.size()));
}

// Of the file as it lies on disk; of a split model, of the part named.
absl::StatusOr<std::string> HashOfFile(const std::string& path) {
  if (path.empty()) return Hash(DefaultModel());
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path));
  return Hash(file->bytes());
}

// Whole numbers as such.
Json NumberJson(double value) {
  const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
  return whole ? Json(static_cast<int64_t>(value)) : Json(value);
}

Json ModelJson(const ModelInfo& model) {
  Json json = {{"architecture", model.architecture},
               {"name", model.name},
               {"parameters", model.parameters},
               {"context_length", model.context_length},
               {"vocabulary", model.vocabulary_size},
               {"embedding_length", model.embedding_length}};
  for (const auto& [name, values] : model.hyper_parameters) {
    Json numbers = Json::array();
    for (const double value : values) numbers.push_back(NumberJson(value));
    json[name] = values.size() == 1 ? numbers[0] : numbers;
  }
  for (const AdapterInfo& adapter : model.adapters) {
    json["adapters"].push_back({{"path", adapter.path},
                                {"rank", adapter.rank},
                                {"scale", adapter.scale}});
  }
  for (const auto& [name, value] : model.suggested_sampling) {
    json["suggested_sampling"][name] = NumberJson(value);
  }
  json["file_bytes"] = model.file_bytes;
  return json;
}

// Bits per weight of matrices by what they are (their names without the block's
// number), and of all tensors.
Json BitsJson(const ModelInfo& model) {
  struct Sum {
    double bits = 0, weights = 0;
  };
  std::map<std::string, Sum> groups;
  Sum all;
  for (const TensorInfo& info : model.tensors) {
    Sum here;
    here.bits = 8.0 * static_cast<double>(info.bytes);
    here.weights = 1.0;
    for (int64_t n : info.shape) here.weights *= static_cast<double>(n);
    all.bits += here.bits;
    all.weights += here.weights;
    if (info.shape.size() < 2) continue;
    absl::string_view name = info.name;
    if (absl::ConsumePrefix(&name, "blk.")) {
      name.remove_prefix(std::min(name.find('.') + 1, name.size()));
    }
    absl::ConsumeSuffix(&name, ".weight");
    Sum& group = groups[std::string(name)];
    group.bits += here.bits;
    group.weights += here.weights;
  }
  Json bits;
  for (const auto& [name, sum] : groups) {
    if (sum.weights > 0) bits[name] = sum.bits / sum.weights;
  }
  if (all.weights > 0) bits["all"] = all.bits / all.weights;
  return bits;
}

Json TensorsJson(const ModelInfo& model, const GgufFile* hashed) {
  Json tensors = Json::array();
  for (const TensorInfo& info : model.tensors) {
    Json tensor = {{"name", info.name},
                   {"type", UpperName(info.type)},
                   {"shape", info.shape},
                   {"bytes", info.bytes},
                   {"offset", info.offset}};
    if (hashed != nullptr) {
      const GgufTensor* data = hashed->FindTensor(info.name);
      if (data != nullptr) tensor["xxh3"] = Hash(data->data);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Of streamed experts, by the rate that was given or is measured with reads as
// they will be.
absl::StatusOr<Json> Streaming(const Flags& flags, const Plan& plan) {
  double rate = flags.disk_gbps * 1e9;
  if (rate == 0 && !plan.streamed.empty()) {
    int64_t piece = 0;
    for (const ExpertGroup& group : plan.streamed) {
      for (const ExpertGroup::Weight& weight : group.weights) {
        piece = std::max(piece, weight.expert_bytes);
      }
    }
    WEFT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> mapped,
                          MappedFile::Open(flags.model));
    WEFT_ASSIGN_OR_RETURN(
        const DirectFile file,
        DirectFile::Open(mapped->DescriptorPath(), flags.model));
    WEFT_ASSIGN_OR_RETURN(
        rate, file.MeasureRate(static_cast<int64_t>(mapped->bytes().size()),
                               piece, ExpertStream::kReaders));
  }
  return StreamingJson(plan, rate);
}

// A file without tensors: a vocabulary alone.
ModelInfo VocabularyInfo(const GgufFile& file) {
  const auto text = [&](const char* key) {
    const GgufValue* value = file.FindValue(key);
    const std::optional<absl::string_view> found =
        value == nullptr ? std::nullopt : value->ToString();
    return std::string(found.value_or(""));
  };
  ModelInfo model;
  model.architecture = text("general.architecture");
  model.name = text("general.name");
  model.file_bytes = file.file_bytes();
  if (const GgufValue* tokens = file.FindValue("tokenizer.ggml.tokens")) {
    model.vocabulary_size = static_cast<int64_t>(tokens->count());
  }
  return model;
}

void Print(const Json& result, const GgufFile* file) {
  std::cout << "model\n";
  for (const auto& [key, value] : result["model"].items()) {
    PrintValue(key, value);
  }
  if (file != nullptr) {
    std::cout << "\nmetadata\n";
    for (const GgufKeyValue& entry : file->metadata()) {
      std::cout << absl::StreamFormat("  %-40s %s\n",
                                      PrintableLine(std::string(entry.key)),
                                      entry.value.Print());
    }
  }
  std::cout << "\ntensors\n";
  for (const Json& t : result["tensors"]) {
    std::cout << absl::StreamFormat(
        "  %-32s %-6s %-18s %12d bytes at %d", PrintableLine(t["name"]),
        t["type"].get<std::string>(), t["shape"].dump(),
        t["bytes"].get<int64_t>(), t["offset"].get<int64_t>());
    if (t.contains("xxh3")) {
      std::cout << "  " << t["xxh3"].get<std::string>();
    }
    std::cout << "\n";
  }
  if (!result["bits_per_weight"].empty()) {
    std::cout << "\nbits per weight\n";
    for (const auto& [name, bits] : result["bits_per_weight"].items()) {
      std::cout << absl::StreamFormat("  %-32s %7.4f\n", PrintableLine(name),
                                      bits.get<double>());
    }
  }
  if (!result["plan"].is_null()) PrintPlan(result["plan"], result["memory"]);
  const Json cluster = result.value("cluster", Json::object());
  if (cluster.contains("ranks")) PrintCluster(cluster["ranks"]);
  if (cluster.contains("streaming") && !cluster["streaming"].is_null()) {
    std::cout
        << "\nexperts that are streamed, if all are chosen equally often\n";
    for (const auto& [key, value] : cluster["streaming"].items()) {
      PrintValue(key, value);
    }
  }
}

// The ranks that flags ask for: this machine's limits for each of --shards, or
// what a file says.
absl::StatusOr<Cluster> ClusterOf(const Flags& flags, Isa isa, int threads) {
  if (!flags.cluster.empty()) {
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(flags.cluster));
    return ParseCluster(text);
  }
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadPool> pool,
                        ThreadPool::Create(threads));
  WEFT_ASSIGN_OR_RETURN(const Limits limits, MeasureLimits(*pool, isa));
  Cluster cluster;
  cluster.machines.assign(flags.shards,
                          {limits.read_bytes_per_second,
                           std::max({limits.int8_ops, limits.f32_flops}), 0});
  cluster.link = {flags.link_gbps * 1e9 / 8, flags.link_us * 1e-6};
  cluster.ranks = {1};
  if (flags.shards > 1) cluster.ranks.push_back(flags.shards);
  return cluster;
}

absl::StatusOr<int> Inspect(const Flags& flags, const CommonFlags& common) {
  WEFT_RETURN_IF_ERROR(flags.compile.CheckModel(flags.model));
  if (flags.check) {
    if (!IsPlanFile(flags.model)) {
      // One that cannot be read has an error of its own.
      WEFT_ASSIGN_OR_RETURN(GgufFile model, OpenModel(flags.model));
      return UsageError(absl::StrCat("--check: ", model.path(),
                                     " is no plan: only plans have checksums"));
    }
    WEFT_RETURN_IF_ERROR(CheckPlanAndModel(flags.model));
  }
  WEFT_ASSIGN_OR_RETURN(EngineOptions options, flags.compile.ToOptions(common));
  const int threads = options.threads > 0 ? options.threads : DefaultThreads();
  std::optional<GgufFile> file;
  ModelInfo model;
  Json plan_json, memory_json, streaming_json;
  options.model.reads_weights = false;
  const auto look_at = [&](Plan& plan) -> absl::Status {
    WEFT_RETURN_IF_ERROR(Engine::KeepToBudget(flags.model, options, &plan));
    model = plan.model;
    plan_json = PlanJson(plan, threads, flags.kernels);
    memory_json = MemoryJson(plan, threads);
    WEFT_ASSIGN_OR_RETURN(streaming_json, Streaming(flags, plan));
    return absl::OkStatus();
  };
  if (IsPlanFile(flags.model)) {
    WEFT_ASSIGN_OR_RETURN(Plan plan, LoadPlan(flags.model, options.model));
    WEFT_RETURN_IF_ERROR(look_at(plan));
  } else {
    WEFT_ASSIGN_OR_RETURN(GgufFile opened, OpenModel(flags.model));
    file = std::move(opened);
    if (file->tensors().empty() &&
        file->FindValue("tokenizer.ggml.tokens") != nullptr) {
      model = VocabularyInfo(*file);
    } else {
      WEFT_ASSIGN_OR_RETURN(Plan plan, CompileModel(*file, options.model));
      WEFT_RETURN_IF_ERROR(look_at(plan));
    }
  }
  Json ranks;
  if (flags.shards > 0 || !flags.cluster.empty()) {
    if (!file) {
      return UsageError(
          "--shards, --cluster: want a .gguf file: a plan is made for its "
          "number of ranks already");
    }
    WEFT_ASSIGN_OR_RETURN(const Cluster cluster,
                          ClusterOf(flags, options.model.compile.isa, threads));
    WEFT_ASSIGN_OR_RETURN(ranks, ClusterJson(*file, options.model, cluster));
  }
  Json result;
  result["model"] = ModelJson(model);
  if (flags.hash) {
    WEFT_ASSIGN_OR_RETURN(std::string hash, HashOfFile(flags.model));
    result["model"]["xxh3"] = hash;
  }
  result["tensors"] = TensorsJson(model, flags.hash && file ? &*file : nullptr);
  result["bits_per_weight"] = BitsJson(model);
  result["memory"] = std::move(memory_json);
  result["plan"] = std::move(plan_json);
  if (!ranks.is_null()) result["cluster"]["ranks"] = std::move(ranks);
  if (flags.compile.memory_budget > 0) {
    result["cluster"]["streaming"] = std::move(streaming_json);
  }
  if (flags.json) {
    PrintJson(result);
  } else {
    Print(result, file ? &*file : nullptr);
  }
  return kExitOk;
}

}  // namespace

void AddInspect(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Metadata and tensors of a model, and a summary of its plan");
  command
      ->add_option("MODEL", flags->model,
                   absl::StrCat("a .gguf or .weft file ", kEmbeddedByName))
      ->required();
  command->add_flag("--hash", flags->hash,
                    "xxh3 of every tensor and of the file");
  command->add_flag("--check", flags->check,
                    "compare the checksums of all weights of a plan first");
  command->add_flag("--kernels", flags->kernels,
                    "the kernel of each kind of node, and why not another");
  command
      ->add_option("--shards", flags->shards,
                   "what so many ranks need that run the model together, each "
                   "as fast as this machine")
      ->check(CLI::Range(int64_t{1}, kMostRanksOfPlan));
  command
      ->add_option("--link-gbps", flags->link_gbps,
                   "of their network, in 10^9 bits per second")
      ->check(CLI::Range(1e-3, 1e6))
      ->capture_default_str();
  command
      ->add_option("--link-us", flags->link_us,
                   "microseconds that a message takes")
      ->check(CLI::Range(1e-3, 1e7))
      ->capture_default_str();
  command->add_option("--cluster", flags->cluster,
                      "a JSON file of machines and their link: what 1, 2, 4 "
                      "... of them need, and how fast they are at most");
  command
      ->add_option("--disk-gbps", flags->disk_gbps,
                   "what the disk reads, in gigabytes per second, for the "
                   "speeds of --memory-budget (default: measured on MODEL, for "
                   "a second)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", flags->json, "print one JSON object");
  flags->compile.AddTo(*command);
  flags->compile.AddMemoryBudgetTo(*command);
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return Inspect(*flags, common); };
  });
}

}  // namespace weft
