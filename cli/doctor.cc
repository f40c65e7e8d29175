// weft doctor: what of this machine weft uses, and what would make it faster.
//
// Ten lines of "name  value" and one line of advice for each thing that holds
// it back. The limits are measured here and now (runtime/machine/limits.h).
#include <fstream>
#include <iostream>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/version.h"
#include "ops/kernels/matmul/onednn_tile.h"
#include "runtime/machine/arena.h"
#include "runtime/machine/cpus.h"
#include "runtime/machine/limits.h"
#include "runtime/machine/memory.h"
#include "runtime/machine/system_files.h"
#include "runtime/machine/thread_pool.h"

namespace weft {
namespace {

// oneDNN is tried on products of this depth: that of most models of 1 to 8
// billion parameters.
constexpr int64_t kDepth = 2048;

// What the kernel calls the processor; empty if it does not say.
std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) break;
    return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "";
}

std::string Gibibytes(int64_t bytes) {
  return absl::StrFormat("%.1f GiB", bytes / double(1 << 30));
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  // `value` for programs, `text` for people.
  void Add(const char* name, const nlohmann::ordered_json& value,
           const std::string& text) {
    // Keys are words, without spaces.
    values_[absl::StrReplaceAll(name, {{" ", "_"}})] = value;
    if (!json_) std::cout << absl::StreamFormat("%-12s %s\n", name, text);
  }
  void Advise(const std::string& text) { advice_.push_back(text); }
  void Finish() {
    if (json_) {
      values_["advice"] = advice_;
      return PrintJson(values_);
    }
    for (const std::string& text : advice_) {
      std::cout << absl::StreamFormat("%-12s %s\n", "faster", text);
    }
  }

 private:
  const bool json_;
  nlohmann::ordered_json values_;
  std::vector<std::string> advice_;
};

void ReportThreads(int threads, Report& report) {
  const std::vector<int> cpus = AllowedCpus();
  const int cores = CountPhysicalCores(cpus), quota = CpuQuota();
  std::string text = absl::StrCat(threads, " on ", cores, " cores (",
                                  cpus.size(), " CPUs allowed");
  if (quota < static_cast<int>(cpus.size())) {
    absl::StrAppend(&text, ", a quota of ", quota);
    report.Advise("the control group grants fewer CPUs than the machine has");
  }
  report.Add("threads", threads, text + ")");
}

void ReportHugePages(Report& report) {
  const std::string why = WhyNoHugePages();
  report.Add("huge pages", why.empty(),
             why.empty() ? "to be had, and asked for" : why);
  if (!why.empty()) {
    report.Advise(
        "huge pages are worth some percent of decoding: as root, echo madvise "
        "> /sys/kernel/mm/transparent_hugepage/enabled");
  }
}

void ReportOneDnn(Report& report) {
  if (!Includes(DetectIsa(), Isa::kAvx512Bf16)) {
    report.Add("oneDNN", false,
               "not used: it multiplies bfloat16 with "
               "avx512bf16 alone");
    return;
  }
  const std::string why = WhyNotOneDnn(kDepth);
  report.Add("oneDNN", why.empty(),
             why.empty() ? OneDnnVersion() + ", with --f16-compute bf16"
                         : "not used: " + why);
}

void ReportLimits(const Limits& limits, Report& report) {
  const auto rate = [&](const char* name, double value, double unit,
                        const char* of, const std::string& more) {
    report.Add(name, value,
               value == 0
                   ? "no instruction for it"
                   : absl::StrFormat("%.4g %s%s", value / unit, of, more));
  };
  rate("int8", limits.int8_ops, 1e9, "Gop/s", ": prefill of quantised models");
  rate("int8 tiles", limits.tile_int8_ops, 1e9, "Gop/s", "");
  rate("bfloat16", limits.bf16_flops, 1e9, "Gflop/s", "");
  rate("float32", limits.f32_flops, 1e9, "Gflop/s", "");
  // A model of 8 billion parameters in Q4_K_M.
  constexpr double kExampleBytes = 4.9e9;
  rate("memory read", limits.read_bytes_per_second, 1e9, "GB/s",
       absl::StrFormat(": a model of 4.9 GB (8B, Q4_K_M) decodes at most %.3g "
                       "tokens per second",
                       limits.read_bytes_per_second / kExampleBytes));
}

absl::StatusOr<int> Run(bool json, const CommonFlags& common) {
  const int threads = common.threads > 0 ? common.threads : DefaultThreads();
  const Isa isa = DetectIsa();
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadPool> pool,
                        ThreadPool::Create(threads));
  WEFT_ASSIGN_OR_RETURN(const Limits limits, MeasureLimits(*pool, isa));
  Report report(json);
  const std::string processor = ProcessorName();
  report.Add("weft", VersionLine(), VersionLine());
  report.Add("processor", processor, processor.empty() ? "unknown" : processor);
  report.Add("kernels", Name(isa), Name(isa));
  if (isa == Isa::kRef) {
    report.Advise(
        "this processor has none of AVX2, AVX-512 and NEON: the reference "
        "kernels are slow");
  } else if (isa == Isa::kAvx2 || isa == Isa::kAvx512 || isa == Isa::kNeon) {
    report.Advise(
        "a processor with int8 dot products (VNNI, or dotprod on ARM) reads "
        "prompts about twice as fast");
  }
  ReportThreads(threads, report);
  const int64_t available = AvailableMemory();
  report.Add("memory", available,
             available == INT64_MAX
                 ? "unknown"
                 : Gibibytes(available) +
                       " to be had: inspect MODEL says what a model takes");
  ReportHugePages(report);
  ReportOneDnn(report);
  ReportLimits(limits, report);
  report.Finish();
  return kExitOk;
}

}  // namespace

void AddDoctor(CLI::App& app, const CommonFlags& common, Action* action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "doctor", "What of this machine weft uses, and what it can do");
  command->add_flag("--json", *json, "print one JSON object");
  command->callback([json, &common, action] {
    *action = [json, &common] { return Run(*json, common); };
  });
}

}  // namespace weft
