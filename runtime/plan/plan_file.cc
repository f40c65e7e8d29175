#include "runtime/plan/plan_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/output_file.h"
#include "base/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/stubs/logging.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/weight_layout.h"
#include "runtime/machine/arena.h"
#include "runtime/plan/plan_header.h"
#include "runtime/plan/plan_needs.h"
#include "runtime/plan/streamed_experts.h"
#include "runtime/plan/weight_checksum.h"
#include "xxhash.h"

namespace weft {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "plan files are little-endian");

constexpr absl::string_view kMagic = "weftplan";
// Real headers are a few megabytes; what protobuf makes of one is much larger.
constexpr uint64_t kMaxHeaderBytes = uint64_t{256} << 20;
constexpr int64_t kPageBytes = 4096;
constexpr int64_t kHugePageBytes = int64_t{2} << 20;
constexpr int64_t kHugeFrom = int64_t{32} << 20;
constexpr int64_t kWeightAlignment = 64;

// The first bytes of the file.
struct Preamble {
  char magic[8];
  uint32_t version;
  uint32_t zero;
  uint64_t header_bytes;
  uint64_t weights_start;
  uint64_t weights_bytes;
  uint64_t xxh3;  // of the header, seeded with that of what stands before
};
static_assert(sizeof(Preamble) == 48, "no gaps");

uint64_t ChecksumOf(const Preamble& preamble, const uint8_t* header) {
  return XXH3_64bits_withSeed(header, preamble.header_bytes,
                              XXH3_64bits(&preamble, offsetof(Preamble, xxh3)));
}

int64_t RoundUp(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

absl::Status Bad(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("bad plan file: ", path, ": ", what));
}

std::string Serialize(const PlanProto& header) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    header.SerializeToCodedStream(&coded);
  }
  return bytes;
}

// --- Writing.

// A file with room for the header and the weights, still empty.
absl::StatusOr<OutputFile> CreateFile(const std::string& path,
                                      size_t header_bytes, int64_t weight_bytes,
                                      Preamble* preamble) {
  if (header_bytes > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot write plan: ", path, ": a header of ", header_bytes,
        " bytes, at most ", kMaxHeaderBytes, " are possible"));
  }
  *preamble = {};
  std::memcpy(preamble->magic, kMagic.data(), kMagic.size());
  preamble->version = kPlanFormatVersion;
  preamble->header_bytes = header_bytes;
  preamble->weights_start = static_cast<uint64_t>(
      RoundUp(static_cast<int64_t>(sizeof(Preamble) + header_bytes),
              weight_bytes >= kHugeFrom ? kHugePageBytes : kPageBytes));
  preamble->weights_bytes = static_cast<uint64_t>(weight_bytes);
  WEFT_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  WEFT_RETURN_IF_ERROR(file.Resize(
      static_cast<int64_t>(preamble->weights_start) + weight_bytes));
  return file;
}

absl::Status Finish(const std::string& header, Preamble preamble,
                    OutputFile* file) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(header.data());
  preamble.xxh3 = ChecksumOf(preamble, bytes);
  absl::Status s = file->Write(
      0, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(&preamble),
                             sizeof(Preamble)));
  if (!s.ok()) return s;
  s = file->Write(sizeof(Preamble), absl::MakeConstSpan(bytes, header.size()));
  if (!s.ok()) return s;
  return file->Commit();
}

// --- Reading.

struct Contents {
  PlanProto header;
  absl::Span<const uint8_t> weights;
};

absl::StatusOr<Contents> Open(const MappedFile& file) {
  const std::string& path = file.path();
  const absl::Span<const uint8_t> bytes = file.bytes();
  Preamble preamble;
  const size_t known = std::min(bytes.size(), kMagic.size());
  if (known < kMagic.size() ||
      std::memcmp(bytes.data(), kMagic.data(), known) != 0) {
    return Bad(path, "does not begin as one: give a file of weft compile");
  }
  if (bytes.size() < sizeof(Preamble)) return Bad(path, "is cut off");
  std::memcpy(&preamble, bytes.data(), sizeof(Preamble));
  if (preamble.version != kPlanFormatVersion) {
    return Bad(path, absl::StrCat("format version ", preamble.version,
                                  ", this weft reads version ",
                                  kPlanFormatVersion, ": compile it again"));
  }
  const uint64_t behind = bytes.size() - sizeof(Preamble);
  if (preamble.header_bytes > behind) {
    return Bad(
        path, absl::StrCat("is cut off: the header has ", preamble.header_bytes,
                           " bytes, ", behind, " are there"));
  }
  if (preamble.header_bytes > kMaxHeaderBytes) {
    return Bad(path, absl::StrCat("a header of ", preamble.header_bytes,
                                  " bytes, at most ", kMaxHeaderBytes,
                                  " are possible"));
  }
  const uint8_t* header = bytes.data() + sizeof(Preamble);
  if (ChecksumOf(preamble, header) != preamble.xxh3) {
    return Bad(path, "is damaged: the checksum of its header is wrong");
  }
  const uint64_t header_end = sizeof(Preamble) + preamble.header_bytes;
  if (preamble.zero != 0 || preamble.weights_start < header_end ||
      preamble.weights_start % kPageBytes != 0 ||
      preamble.weights_start > bytes.size() ||
      preamble.weights_bytes != bytes.size() - preamble.weights_start) {
    return Bad(path, absl::StrCat("is cut off or damaged: ",
                                  preamble.weights_bytes, " bytes of weights ",
                                  "from byte ", preamble.weights_start,
                                  ", but ", bytes.size(), " bytes in all"));
  }
  // What is wrong is told once, by the error.
  const google::protobuf::LogSilencer silence;
  Contents contents;
  if (!contents.header.ParseFromArray(
          header, static_cast<int>(preamble.header_bytes))) {
    return Bad(path, "its header cannot be read");
  }
  contents.weights = bytes.subspan(preamble.weights_start);
  return contents;
}

using WeightTable = std::map<std::string, absl::Span<const uint8_t>>;

absl::StatusOr<WeightTable> ReadWeights(const Contents& contents,
                                        const std::string& path) {
  const auto& weights = contents.header.weights();
  if (weights.size() != contents.header.weight_xxh3_size()) {
    return Bad(path, "weights and checksums are not as many");
  }
  const int64_t size = static_cast<int64_t>(contents.weights.size());
  WeightTable table;
  int64_t end = 0;
  for (const WeightProto& weight : weights) {
    if (weight.offset() < end || weight.offset() > size ||
        weight.offset() % kWeightAlignment != 0 || weight.bytes() < 1 ||
        weight.bytes() > size - weight.offset()) {
      return Bad(path,
                 absl::StrCat("weight ", weight.name(), ": ", weight.bytes(),
                              " bytes at ", weight.offset(), " of ", size,
                              " cannot be"));
    }
    end = weight.offset() + weight.bytes();
    const auto place =
        contents.weights.subspan(static_cast<size_t>(weight.offset()),
                                 static_cast<size_t>(weight.bytes()));
    if (!table.emplace(weight.name(), place).second) {
      return Bad(path,
                 absl::StrCat("weight ", weight.name(), " stands there twice"));
    }
  }
  return table;
}

using ExpertChecksumTable = std::map<std::string, std::vector<uint64_t>>;

absl::StatusOr<ExpertChecksumTable> ReadExpertChecksums(
    const PlanProto& header, const WeightTable& table,
    const std::string& path) {
  ExpertChecksumTable checksums;
  for (const ExpertChecksumsProto& experts : header.experts()) {
    const auto it = table.find(experts.weight());
    if (it == table.end() || experts.xxh3_size() < 1 ||
        it->second.size() % experts.xxh3_size() != 0) {
      return Bad(path, absl::StrCat("checksums of ", experts.xxh3_size(),
                                    " experts of weight ", experts.weight(),
                                    " cannot be"));
    }
    checksums[experts.weight()].assign(experts.xxh3().begin(),
                                       experts.xxh3().end());
  }
  return checksums;
}

absl::Status AttachWeights(const WeightTable& table,
                           const std::shared_ptr<const MappedFile>& file,
                           Graph* graph) {
  for (ValueId id = 0; id < graph->value_count(); ++id) {
    Value& value = graph->value(id);
    if (value.kind != ValueKind::kWeight) continue;
    const auto it = table.find(value.name);
    if (it == table.end()) {
      return Bad(file->path(),
                 absl::StrCat("weight ", value.name, " is not in its table"));
    }
    value.data.bytes = it->second;
    value.data.owner = file;
  }
  return absl::OkStatus();
}

// A plan for more than this machine has may still use nothing of it.
absl::Status CheckIsa(const Plan& plan, Isa machine, const std::string& path) {
  if (RunsOn(machine, plan.options.isa)) return absl::OkStatus();
  for (const Graph* graph : plan.AllGraphs()) {
    for (NodeId id : graph->order()) {
      const Node& node = graph->node(id);
      if (node.kernel.empty()) continue;
      const KernelEntry* entry = FindKernel(node.kernel);
      if (entry != nullptr && RunsOn(machine, entry->isa())) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "plan is for another CPU: ", path, ": it was compiled for ",
          Name(plan.options.isa), ", this machine has ", Name(machine),
          ": compile it again here, or with --isa ", Name(machine)));
    }
  }
  return absl::OkStatus();
}

// The names of layouts have the version of what reads them.
absl::Status CheckLayouts(const Graph& graph, const std::string& path) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kWeight || value.type.layout.empty() ||
        FindWeightLayout(value.type.layout) != nullptr) {
      continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("plan is for another weft: ", path, ": weight ",
                     value.name, " has the layout ", value.type.layout,
                     ", which this one does not read: compile it again"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsPlanFile(const std::string& path) {
  // A pipe must not be waited for: MappedFile::Open says what it is.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  struct stat info;
  char start[8] = {};
  const bool read = fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
                    pread(file, start, sizeof(start), 0) == sizeof(start);
  close(file);
  return read && absl::string_view(start, sizeof(start)) == kMagic;
}

absl::Status SavePlan(const Plan& plan, const std::string& path,
                      ThreadPool& threads, const Progress& progress) {
  PlanProto header = HeaderOf(plan);
  const std::vector<WeightJob> jobs = WeightJobs(plan, false);
  for (const WeightJob& job : jobs) {
    if (job.bytes == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot write plan: ", path, ": weight ",
                       job.value->name, " has no bytes"));
    }
    WeightProto* weight = header.add_weights();
    weight->set_name(job.value->name);
    weight->set_offset(job.offset);
    weight->set_bytes(job.bytes);
    header.add_weight_xxh3(0);
  }
  // By the place in `jobs`.
  std::vector<ExpertChecksumsProto*> of_experts(jobs.size(), nullptr);
  for (const auto& [name, experts] : ExpertWeights(plan)) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].value->name != name) continue;
      of_experts[i] = header.add_experts();
      of_experts[i]->set_weight(name);
      of_experts[i]->mutable_xxh3()->Resize(static_cast<int>(experts), 0);
    }
  }
  Preamble preamble;
  WEFT_ASSIGN_OR_RETURN(
      OutputFile file,
      CreateFile(path, header.ByteSizeLong(), TotalBytes(jobs), &preamble));
  // Each thread makes one weight at a time in memory of its own.
  int64_t largest = 0;
  for (const WeightJob& job : jobs) {
    if (job.value->data.make) largest = std::max(largest, job.bytes);
  }
  std::vector<Arena> rooms;
  for (int thread = 0; thread < threads.threads(); ++thread) {
    WEFT_ASSIGN_OR_RETURN(Arena room,
                          Arena::Create(largest, "packing weights"));
    rooms.push_back(std::move(room));
  }
  std::vector<uint64_t> checksums(jobs.size());
  std::vector<absl::Status> written(jobs.size());
  RunWeightJobs(jobs, threads, progress, [&](size_t i, int thread) {
    const WeightData& data = jobs[i].value->data;
    absl::Span<const uint8_t> bytes = data.bytes;
    if (data.make != nullptr) {
      data.make(rooms[thread].data());
      bytes = absl::MakeConstSpan(rooms[thread].data(),
                                  static_cast<size_t>(jobs[i].bytes));
    }
    checksums[i] = WeightChecksum(bytes);
    if (auto* experts = of_experts[i]; experts != nullptr) {
      const auto made = ExpertChecksums(bytes, experts->xxh3_size());
      std::copy(made.begin(), made.end(), experts->mutable_xxh3()->begin());
    }
    written[i] = file.Write(
        static_cast<int64_t>(preamble.weights_start) + jobs[i].offset, bytes);
  });
  for (const absl::Status& s : written) {
    if (!s.ok()) return s;
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    header.set_weight_xxh3(static_cast<int>(i), checksums[i]);
  }
  return Finish(Serialize(header), preamble, &file);
}

absl::Status SaveReference(const Plan& plan, const ModelReference& reference,
                           const std::string& path) {
  PlanProto header = HeaderOf(plan);
  header.clear_buckets();
  header.clear_next_token_buckets();
  WriteReference(reference, &header);
  const std::string bytes = Serialize(header);
  Preamble preamble;
  WEFT_ASSIGN_OR_RETURN(OutputFile file,
                        CreateFile(path, bytes.size(), 0, &preamble));
  return Finish(bytes, preamble, &file);
}

absl::StatusOr<PlanFile> LoadPlanFile(std::shared_ptr<const MappedFile> file,
                                      Isa machine) {
  const std::string& path = file->path();
  WEFT_ASSIGN_OR_RETURN(Contents contents, Open(*file));
  WEFT_ASSIGN_OR_RETURN(WeightTable weights, ReadWeights(contents, path));
  if (reinterpret_cast<uintptr_t>(contents.weights.data()) % kWeightAlignment !=
      0) {
    return Bad(path, "its memory is not aligned to 64 bytes");
  }
  std::map<std::string, uint64_t> checksums;
  for (int i = 0; i < contents.header.weights_size(); ++i) {
    checksums[contents.header.weights(i).name()] =
        contents.header.weight_xxh3(i);
  }
  WEFT_ASSIGN_OR_RETURN(ExpertChecksumTable of_experts,
                        ReadExpertChecksums(contents.header, weights, path));
  absl::StatusOr<PlanFile> result = ReadHeader(std::move(contents.header));
  if (!result.ok()) return Bad(path, result.status().message());
  if (result->reference) return result;
  result->plan.weight_checksums = std::move(checksums);
  result->plan.expert_checksums = std::move(of_experts);
  result->plan.files = {file};
  for (Graph* graph : result->plan.AllGraphs()) {
    WEFT_RETURN_IF_ERROR(AttachWeights(weights, file, graph));
  }
  WEFT_RETURN_IF_ERROR(CheckIsa(result->plan, machine, path));
  WEFT_RETURN_IF_ERROR(CheckPlanNeeds(result->plan, path));
  for (const Graph* graph :
       static_cast<const Plan&>(result->plan).AllGraphs()) {
    WEFT_RETURN_IF_ERROR(CheckLayouts(*graph, path));
  }
  if (absl::Status s = VerifyModelPlan(result->plan, machine); !s.ok()) {
    return Bad(path, s.message());
  }
  return result;
}

absl::StatusOr<PlanFile> LoadPlanFile(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path));
  return LoadPlanFile(std::move(file));
}

absl::StatusOr<PlanFile> LoadPlanOptions(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path));
  WEFT_ASSIGN_OR_RETURN(Contents contents, Open(*file));
  absl::StatusOr<PlanFile> result = ReadHeader(std::move(contents.header));
  if (!result.ok()) return Bad(path, result.status().message());
  result->plan.buckets.clear();
  return result;
}

absl::Status CheckPlanFile(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path));
  WEFT_RETURN_IF_ERROR(LoadPlanFile(file).status());
  WEFT_ASSIGN_OR_RETURN(Contents contents, Open(*file));
  WEFT_ASSIGN_OR_RETURN(WeightTable weights, ReadWeights(contents, path));
  for (int i = 0; i < contents.header.weights_size(); ++i) {
    const std::string& name = contents.header.weights(i).name();
    const absl::Span<const uint8_t> bytes = weights.at(name);
    if (WeightChecksum(bytes) != contents.header.weight_xxh3(i)) {
      return Bad(path, absl::StrCat("is damaged: the checksum of weight ", name,
                                    " is wrong: compile it again"));
    }
  }
  for (const ExpertChecksumsProto& experts : contents.header.experts()) {
    const auto made =
        ExpertChecksums(weights.at(experts.weight()), experts.xxh3_size());
    if (!std::equal(made.begin(), made.end(), experts.xxh3().begin())) {
      return Bad(path, absl::StrCat("is damaged: a checksum of an expert of ",
                                    "weight ", experts.weight(),
                                    " is wrong: compile it again"));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
