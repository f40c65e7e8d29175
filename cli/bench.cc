// weft bench: tokens per second.
//
// Prefill: `batch` prompts of random tokens, one sequence after the other, as
// many tokens in a step as the plan takes. Decode: `batch` sequences, each from
// one first token behind `depth` random ones (0: an empty context), grow
// together by the most likely token, one token of each per step; not for
// encoders. Rates are totals over the batch. One run of each comes before those
// that count: it pays for the first touch of memory. The context is filled
// once, behind the prefills, and every run begins at its end; where layers are
// recurrent, whose states do not go back, where the run before ended. With
// --speculate, texts by a scheduler come last (bench_speculation.h).
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/allocation_counter.h"
#include "base/first_largest.h"
#include "base/status.h"
#include "cli/bench_speculation.h"
#include "cli/command.h"
#include "cli/output.h"
#include "runtime/machine/limits.h"
#include "runtime/machine/memory.h"
#include "runtime/plan/kernel_uses.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string model;
  int64_t prompt = 256, generate = 32, depth = 0, batch = 1, repeat = 5;
  bool limits = false, json = false;
  CompileFlags compile;
  SpeculationFlags speculation{"off"};
};

struct Rates {
  double median, min, max;
};

Rates Summary(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  const size_t n = rates.size();
  return {(rates[(n - 1) / 2] + rates[n / 2]) / 2, rates.front(), rates.back()};
}

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since)
      .count();
}

// Whether a run of decoding begins where the one before ended.
bool GoesOn(Engine& engine, const Flags& flags) {
  return flags.depth > 0 && !engine.plan().model.encoder &&
         engine.cache().has_slots();
}

class Bench {
 public:
  Bench(Engine* engine, const Flags& flags)
      : engine_(*engine),
        flags_(flags),
        vocabulary_(engine->plan().model.vocabulary_size),
        begin_(flags.depth) {
    prompt_ = RandomTokens(flags.prompt, vocabulary_);
    const int32_t bos = engine->tokenizer().bos();
    first_ = bos >= 0 ? bos : 0;
    logits_.resize(flags.batch * vocabulary_);
  }

  // Tokens per second.
  absl::StatusOr<double> Prefill() {
    double seconds = 0;
    for (int64_t slot = 0; slot < flags_.batch; ++slot) {
      Session session(engine_.plan(), &engine_.executor(), &engine_.cache(),
                      static_cast<int32_t>(slot));
      const auto start = std::chrono::steady_clock::now();
      WEFT_RETURN_IF_ERROR(session.Append(prompt_));
      seconds += Seconds(start);
    }
    return flags_.batch * flags_.prompt / std::max(seconds, 1e-9);
  }

  // Brings every sequence to `depth` tokens.
  absl::Status FillContexts() {
    const std::vector<int32_t> tokens = RandomTokens(flags_.depth, vocabulary_);
    for (int64_t slot = 0; slot < flags_.batch; ++slot) {
      contexts_.push_back(std::make_unique<Session>(
          engine_.plan(), &engine_.executor(), &engine_.cache(),
          static_cast<int32_t>(slot)));
      WEFT_RETURN_IF_ERROR(contexts_.back()->Append(tokens));
    }
    return absl::OkStatus();
  }

  // After FillContexts. Tokens per second.
  absl::StatusOr<double> Decode() {
    const int64_t n = flags_.batch;
    std::vector<int32_t> ids(n, first_), positions(n), slots(n), rows(n);
    for (int64_t i = 0; i < n; ++i) slots[i] = rows[i] = static_cast<int>(i);
    const std::vector<float> scales = engine_.plan().model.AdapterScales(n);
    const auto start = std::chrono::steady_clock::now();
    allocations_ = AllocationCount();
    absl::Status status;
    for (int64_t step = 0; step < flags_.generate && status.ok(); ++step) {
      const int64_t position = begin_ + step;
      std::fill(positions.begin(), positions.end(),
                static_cast<int32_t>(position));
      for (int64_t i = 0; i < n && status.ok(); ++i) {
        status = engine_.cache().Reserve(slots[i], position + 1);
      }
      if (!status.ok()) break;
      status = engine_.executor().Run(
          {ids, positions, slots, rows, logits_.data(), scales});
      for (int64_t i = 0; i < n; ++i) {
        ids[i] = static_cast<int32_t>(
            FirstLargest(absl::MakeConstSpan(logits_).subspan(i * vocabulary_,
                                                              vocabulary_)));
      }
    }
    allocations_ = AllocationCount() - allocations_;
    const double seconds = Seconds(start);
    if (!status.ok()) return status;
    if (GoesOn(engine_, flags_)) begin_ += flags_.generate;
    return n * flags_.generate / std::max(seconds, 1e-9);
  }

  // Calls of operator new in the last Decode, all steps together.
  int64_t allocations() const { return allocations_; }

 private:
  Engine& engine_;
  const Flags& flags_;
  const int64_t vocabulary_;
  int64_t begin_;  // of the next run of decoding
  std::vector<int32_t> prompt_;
  int32_t first_;
  std::vector<float> logits_;
  std::vector<std::unique_ptr<Session>> contexts_;
  int64_t allocations_ = 0;
};

// The machine's limits, and what part of them the medians reach: of prefill,
// operations against each kind of arithmetic; of decode, bytes of weights,
// cache and intermediates against reading memory. Bytes and operations are
// those that the ops state (ops/op.h).
absl::Status AddLimits(Engine& engine, const Flags& flags,
                       const CompileFlags& compile, const CommonFlags& common,
                       Json* result) {
  WEFT_ASSIGN_OR_RETURN(EngineOptions options, compile.ToOptions(common));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> threads,
                        ThreadPool::Create(engine.threads(), options.affinity));
  const Plan& plan = engine.plan();
  WEFT_ASSIGN_OR_RETURN(Limits limits,
                        MeasureLimits(*threads, plan.options.isa));
  const auto known = [](double limit) {
    return limit > 0 ? Json(limit) : Json(nullptr);
  };
  const auto share = [](double value, double limit) {
    return limit > 0 ? Json(value / limit) : Json(nullptr);
  };
  Json& json = *result;
  json["limits"] = {{"int8_ops", known(limits.int8_ops)},
                    {"tile_int8_ops", known(limits.tile_int8_ops)},
                    {"bf16_flops", known(limits.bf16_flops)},
                    {"f32_flops", known(limits.f32_flops)},
                    {"read_bytes_per_second", limits.read_bytes_per_second}};
  const int64_t chunk = std::min(flags.prompt, plan.max_tokens());
  const double operations =
      json["prefill_tokens_per_second"]["median"].get<double>() / chunk *
      StepCost(plan.BucketFor(chunk), {chunk, 1, flags.prompt}).operations;
  const bool decodes = !json["decode_tokens_per_second"].is_null();
  const double bytes =
      !decodes ? 0
               : json["decode_tokens_per_second"]["median"].get<double>() /
                     flags.batch *
                     StepCost(plan.BucketFor(flags.batch),
                              {flags.batch, flags.batch,
                               flags.depth + (flags.generate + 1) / 2})
                         .bytes;
  json["shares"] = {
      {"prefill_of_int8_ops", share(operations, limits.int8_ops)},
      {"prefill_of_tile_int8_ops", share(operations, limits.tile_int8_ops)},
      {"prefill_of_bf16_flops", share(operations, limits.bf16_flops)},
      {"prefill_of_f32_flops", share(operations, limits.f32_flops)},
      {"decode_of_read_bytes",
       decodes ? share(bytes, limits.read_bytes_per_second) : Json(nullptr)}};
  return absl::OkStatus();
}

absl::Status Check(const Flags& flags) {
  const std::pair<const char*, int64_t> numbers[] = {
      {"--prompt", flags.prompt},
      {"--generate", flags.generate},
      {"--batch", flags.batch},
      {"--repeat", flags.repeat}};
  for (const auto& [name, value] : numbers) {
    if (value < 1 || value > (1 << 20)) {
      return UsageError(absl::StrCat(name, ": want a number from 1"));
    }
  }
  if (flags.depth < 0 || flags.depth > (1 << 20)) {
    return UsageError("--depth: want a number from 0");
  }
  if (IsKnownRate(flags.speculation.mode)) return absl::OkStatus();
  return flags.speculation.Check();
}

std::string NumberText(const Json& number) {
  if (number.is_null()) return "none";
  return number.is_number() ? absl::StrFormat("%.6g", number.get<double>())
                            : number.dump();
}

void Print(const Json& json) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) {
      std::cout << key << "\n";
      for (const auto& [name, number] : value.items()) {
        std::cout << absl::StreamFormat("  %-24s ", name) << NumberText(number)
                  << "\n";
      }
    } else {
      std::cout << absl::StreamFormat(
          "%-26s %s\n", key,
          value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
}

absl::StatusOr<int> RunBench(const Flags& flags, const CommonFlags& common) {
  WEFT_RETURN_IF_ERROR(Check(flags));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                        LoadEngine(flags.model, flags.compile, common,
                                   [&](EngineOptions* options) {
                                     options->slots =
                                         static_cast<int>(flags.batch);
                                     flags.speculation.ApplyTo(options);
                                   }));
  const Plan& plan = engine->plan();
  if (flags.batch > plan.max_tokens()) {
    return UsageError(absl::StrCat("--batch: the largest bucket takes ",
                                   plan.max_tokens(), " tokens in a step"));
  }
  const int64_t runs = flags.repeat + 1;
  const int64_t behind =
      GoesOn(*engine, flags) ? runs * flags.generate : flags.generate;
  if (std::max(flags.prompt, flags.depth + behind) > plan.context()) {
    return UsageError(absl::StrCat(
        "bench: --prompt, and --depth and --generate, must fit the context of ",
        plan.context(), " positions: choose less, or a larger --context"));
  }
  const bool encoder = plan.model.encoder;
  if (encoder && flags.prompt > plan.max_tokens()) {
    return UsageError(absl::StrCat(
        "--prompt: an encoder looks at all tokens at once: at most ",
        plan.max_tokens()));
  }
  auto bench = std::make_unique<Bench>(engine.get(), flags);
  const Progress progress = MakeProgress(common, "measuring");
  std::vector<double> prefill, decode;
  const ExpertStream* const experts = engine->expert_stream();
  ExpertStream::Stats read_before;
  const int64_t all = plan.model.generates() ? 2 * runs : runs;
  for (int64_t run = 0; run < all; ++run) {
    if (progress) progress(static_cast<double>(run) / all);
    if (run == runs) {
      WEFT_RETURN_IF_ERROR(bench->FillContexts());
    }
    if (run == runs + 1 && experts != nullptr) read_before = experts->stats();
    WEFT_ASSIGN_OR_RETURN(double rate,
                          run < runs ? bench->Prefill() : bench->Decode());
    if (run % runs > 0) (run < runs ? prefill : decode).push_back(rate);
  }
  if (progress) progress(1.0);
  const auto rates = [](const std::vector<double>& all) -> Json {
    if (all.empty()) return nullptr;
    const Rates r = Summary(all);
    return {{"median", r.median}, {"min", r.min}, {"max", r.max}};
  };
  Json json = {{"prefill_tokens_per_second", rates(prefill)},
               {"decode_tokens_per_second", rates(decode)},
               {"load_seconds", engine->load_seconds()},
               {"peak_rss_bytes", PeakResidentBytes()},
               {"threads", engine->threads()},
               {"isa", Name(plan.options.isa)},
               {"prompt", flags.prompt},
               {"generate", flags.generate},
               {"depth", flags.depth},
               {"batch", flags.batch},
               {"repeat", flags.repeat},
               {"allocations_per_decode_step",
                static_cast<double>(bench->allocations()) / flags.generate}};
  if (experts != nullptr && plan.model.generates()) {
    const ExpertStream::Stats read = experts->stats();
    const double tokens =
        static_cast<double>(flags.repeat * flags.generate * flags.batch);
    // Of decoding, the runs that count.
    json["experts"] = {
        {"bytes_read_per_token",
         static_cast<double>(read.bytes - read_before.bytes) / tokens},
        {"found_share",
         static_cast<double>(read.found - read_before.found) /
             std::max(1.0,
                      static_cast<double>(read.chosen - read_before.chosen))}};
  }
  if (flags.limits) {
    WEFT_RETURN_IF_ERROR(
        AddLimits(*engine, flags, flags.compile, common, &json));
  }
  if (flags.speculation.mode != "off") {
    WEFT_RETURN_IF_ERROR(CheckGenerates(plan));
    bench.reset();  // its sequences hold slots
    WEFT_ASSIGN_OR_RETURN(
        json["speculation"],
        BenchSpeculation(std::move(engine),
                         {flags.prompt, flags.generate, flags.batch,
                          flags.repeat, &flags.speculation},
                         flags.compile, common));
  }
  if (flags.json) {
    PrintJson(json);
  } else {
    Print(json);
  }
  return kExitOk;
}

}  // namespace

void AddBench(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("bench", "Measures tokens per second");
  command->add_option("MODEL", flags->model,
                      absl::StrCat("a .gguf or .weft file ", kEmbeddedUsually));
  const auto add = [&](const char* name, int64_t& value, const char* help) {
    command->add_option(name, value, help)->capture_default_str();
  };
  add("--prompt", flags->prompt, "tokens of each prompt");
  add("--generate", flags->generate, "tokens generated by each sequence");
  add("--depth", flags->depth,
      "tokens already in each sequence where generation begins");
  add("--batch", flags->batch, "sequences at a time");
  add("--repeat", flags->repeat, "runs that count");
  flags->speculation.AddTo(*command);
  command->add_flag("--limits", flags->limits,
                    "measure the machine's limits too, and the share of them "
                    "that is reached");
  command->add_flag("--json", flags->json, "print one JSON object");
  flags->compile.AddTo(*command);
  flags->compile.AddMemoryBudgetTo(*command);
  command->callback([flags, &common, action] {
    *action = [flags, &common] { return RunBench(*flags, common); };
  });
}

}  // namespace weft
