#include "runtime/api/engine.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "models/default_model.h"
#include "ops/kernels/slot_layout.h"
#include "ops/kv_types.h"
#include "ops/pooling.h"
#include "ops/reference.h"
#include "runtime/cache/prompt_files.h"
#include "runtime/execution/next_token_block.h"
#include "runtime/machine/arena.h"
#include "runtime/machine/cpus.h"
#include "runtime/machine/memory.h"
#include "runtime/plan/plan_identity.h"
#include "runtime/plan/slot_updates.h"
#include "runtime/plan/streamed_experts.h"

namespace weft {
namespace {

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since)
      .count();
}

// Of those that are asked for.
int64_t GuessRows(const Plan& plan, const EngineOptions& options) {
  if (!plan.model.generates()) return 0;
  std::set<int> states;
  for (const SlotUpdate& update : SlotUpdates(plan.buckets.back())) {
    // The history keeps the rows of one node for each.
    if (!states.insert(update.state).second) return 0;
  }
  return std::clamp<int64_t>(options.guess_rows, 0, plan.max_tokens() - 1);
}

// With what guesses need.
EngineOptions Resolved(const Plan& plan, EngineOptions options) {
  options.guess_rows = GuessRows(plan, options);
  if (options.guess_rows > 0) {
    // And the one of the token before them.
    options.rewind_rows = std::max(
        options.rewind_rows, static_cast<int32_t>(options.guess_rows) + 1);
  }
  return options;
}

int ThreadsOf(const EngineOptions& options) {
  if (options.shared_threads) return options.shared_threads->threads();
  return options.threads > 0 ? options.threads : DefaultThreads();
}

int64_t PeakOf(const Plan& plan, const EngineOptions& options) {
  int64_t page_bytes = 0, slot_bytes = 0;
  for (const StateBytes& state : StatesOf(plan)) {
    (state.by_sequence ? slot_bytes : page_bytes) += state.bytes;
  }
  return MemoryOf(plan, options.slots,
                  plan.model.encoder ? plan.max_tokens()
                                     : options.slots + options.more_logit_rows,
                  options.kv_pages, options.checkpoints, options.rewind_rows,
                  options.guess_rows)
             .peak(ThreadsOf(options)) +
         options.beside_bytes +
         (options.keeps_prompts ? PromptFiles::Bytes(page_bytes, slot_bytes)
                                : 0);
}

absl::Status CheckMemory(const Plan& plan, const EngineOptions& options,
                         const std::string& path) {
  if (options.force) return absl::OkStatus();
  const int64_t need = PeakOf(plan, options);
  const int64_t have = AvailableMemory();
  if (need <= have) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "not enough memory: %s: the plan needs %d MiB at its peak, %d MiB are "
      "available: choose a smaller --context or --kv-type, or --force",
      path.empty() ? kDefaultModelName : path, (need >> 20) + 1, have >> 20));
}

// For weights that lie in a plan file; those that were made lie in an Arena,
// which has asked.
void AdviseWeights(const Plan& plan) {
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;
  const Graph& graph = plan.buckets.front();
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (plan.weight_checksums.count(graph.value(id).name) == 0) continue;
    const absl::Span<const uint8_t> bytes = graph.value(id).data.bytes;
    if (begin == nullptr || bytes.data() < begin) begin = bytes.data();
    end = std::max(end, bytes.data() + bytes.size());
  }
  if (begin != nullptr) AdviseHugePages(begin, end - begin);
}

// A plan file has the block that it was compiled with, or none; without need
// for it, it takes no memory.
absl::Status TakeNextTokenBlock(const EngineOptions& options,
                                const std::string& path, Plan* plan) {
  if (!options.model.graph.next_token_block) {
    plan->next_token_buckets.clear();
    return absl::OkStatus();
  }
  if (!plan->next_token_buckets.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the plan has no next-token block: ", path,
      ": compile the model with --next-token-block, if its file has one, or "
      "let another guess (lookup, draft:MODEL)"));
}

// Of a process that runs the model with others: the part that is its own.
absl::Status TakeRank(EngineOptions* options, std::string* path) {
  if (options->model.graph.next_token_block) {
    return absl::UnimplementedError(
        "--speculate mtp: not with several ranks: let another guess (lookup)");
  }
  if (options->keeps_prompts) {
    return absl::UnimplementedError(
        "prompts are not kept in files with several ranks: leave out "
        "--cache-dir and --prompt-cache");
  }
  if (options->memory_budget > 0) {
    return absl::UnimplementedError(
        "--memory-budget: not with several ranks: leave one out");
  }
  const int64_t rank = options->communicator->rank();
  const int64_t ranks = options->communicator->ranks();
  options->model.compile.shard = {rank, ranks};
  const std::string own = PathOfRank(*path, rank);
  std::error_code error;
  if (IsPlanFile(own)) {
    *path = own;
  } else if (!path->empty() && !std::filesystem::exists(*path, error)) {
    return absl::NotFoundError(
        absl::StrCat("no such file: ", *path, ", nor is there ", own,
                     ": compile the model with --shards ", ranks, " -o ", *path,
                     ", or give the .gguf file"));
  }
  return absl::OkStatus();
}

std::string HexOrUnknown(uint64_t hash) {
  return hash == 0 ? std::string() : absl::StrCat(absl::Hex(hash));
}

// What decides bits, and what the caches of all ranks must have alike.
std::vector<RankFact> RankFacts(const Plan& plan,
                                const EngineOptions& options) {
  const CompileOptions& compile = plan.options;
  std::vector<std::string> adapters;
  for (const AdapterInfo& adapter : plan.model.adapters) {
    adapters.push_back(absl::StrCat("rank ", adapter.rank));
  }
  const auto number = [](int64_t n) { return absl::StrCat(n); };
  const auto list = [](const auto& names) {
    return names.empty() ? std::string("none") : absl::StrJoin(names, ",");
  };
  return {
      {"model",
       plan.model.name.empty() ? plan.model.architecture : plan.model.name},
      {"bytes of the model", number(plan.model.file_bytes)},
      {"header", plan.source ? HexOrUnknown(plan.source->header_xxh3) : ""},
      {"weights and adapters", HexOrUnknown(plan.parts_xxh3)},
      // Of GGUF files it is not made.
      {"all weights",
       plan.source ? HexOrUnknown(plan.source->tensors_xxh3) : ""},
      {"adapters", list(adapters)},
      {"parts", number(compile.shard.ranks)},
      {"instruction set", Name(compile.isa)},
      {"F16 products in",
       compile.f16_compute == F16Compute::kBF16 ? "bf16" : "f32"},
      {"passes left out", list(compile.disabled_passes)},
      {"gives", NameOf(plan.model.gives)},
      {"KV cache", KvTypes::Of(plan.buckets.back()).ToString()},
      {"context", number(plan.context())},
      {"steps of tokens", absl::StrJoin(compile.buckets, ",")},
      {"exchanges", ExchangesOf(plan)},
      {"sequences", number(options.slots)},
      {"pages", number(options.kv_pages)},
      {"checkpoints", number(options.checkpoints)},
      {"rows back", number(options.rewind_rows)},
      {"program", HexOrUnknown(HashOfThisProgram())},
  };
}

// That the plan is this rank's, and that all ranks run the same.
absl::Status CheckRank(const Plan& plan, const EngineOptions& options,
                       const std::string& path) {
  const ShardOptions& shard = plan.options.shard;
  const ShardOptions& want = options.model.compile.shard;
  if (options.communicator == nullptr) {
    if (shard.ranks == 1) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "the plan is part ", shard.rank + 1, " of ", shard.ranks, ": ", path,
        ": run it as mpirun -n ", shard.ranks, " weft ..."));
  }
  WEFT_RETURN_IF_ERROR(CheckSameOnAllRanks(options.communicator.get(),
                                           RankFacts(plan, options)));
  if (shard.rank == want.rank && shard.ranks == want.ranks) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the plan is ",
      shard.ranks == 1
          ? "for one process alone"
          : absl::StrCat("part ", shard.rank + 1, " of ", shard.ranks),
      ", and this is rank ", want.rank, " of ", want.ranks, ": ", path,
      ": compile the model with --shards ", want.ranks,
      ", or give the .gguf file"));
}

// What the slot of one state holds, transposed: windows [columns][rows],
// matrices [heads][values][keys].
void AppendTransposed(const ValueType& type, const float* slot,
                      std::vector<float>* out) {
  const bool window = type.layout == "window";
  const int64_t heads = window ? 1 : type.shape[0].value;
  const int64_t rows = type.shape[window ? 0 : 1].value;
  const int64_t columns = type.shape[window ? 1 : 2].value;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t row = 0; row < rows; ++row) {
        out->push_back(window ? slot[row * columns + column]
                              : slot[MatrixElement(rows, row, column)]);
      }
    }
    if (!window) slot += MatrixFloats(rows, columns);
  }
}

}  // namespace

ModelOptions DefaultModelOptions() {
  ModelOptions options;
  options.compile.isa = DetectIsa();
  return options;
}

Engine::~Engine() {
  // A rank that is gone has ended the others already.
  if (leader_ != nullptr) leader_->End().IgnoreError();
}

absl::StatusOr<int64_t> Engine::PeakBytes(const std::string& path,
                                          const EngineOptions& options) {
  ModelOptions model = options.model;
  model.reads_weights = false;
  WEFT_ASSIGN_OR_RETURN(Plan plan, LoadPlan(path, model));
  WEFT_RETURN_IF_ERROR(TakeNextTokenBlock(options, path, &plan));
  return PeakBytes(plan, options);
}

int64_t Engine::PeakBytes(const Plan& plan, const EngineOptions& options) {
  const int64_t peak = PeakOf(plan, Resolved(plan, options));
  return options.memory_budget > 0 ? std::min(peak, options.memory_budget)
                                   : peak;
}

absl::Status Engine::KeepToBudget(const std::string& path,
                                  const EngineOptions& options, Plan* plan) {
  if (options.memory_budget == 0) return absl::OkStatus();
  const EngineOptions resolved = Resolved(*plan, options);
  return StreamWithin(
      options.memory_budget, path.empty() ? kDefaultModelName : path,
      [&] { return PeakOf(*plan, resolved); }, plan);
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Load(
    const std::string& model_path, const EngineOptions& asked) {
  EngineOptions options = asked;
  std::string path = model_path;
  if (options.communicator != nullptr) {
    WEFT_RETURN_IF_ERROR(TakeRank(&options, &path));
  }
  const auto start = std::chrono::steady_clock::now();
  if (options.kv_pages < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid engine option: kv_pages: ", options.kv_pages,
                     ", must be 0 (whole contexts) or above"));
  }
  WEFT_ASSIGN_OR_RETURN(Plan plan, LoadPlan(path, options.model));
  WEFT_RETURN_IF_ERROR(TakeNextTokenBlock(options, path, &plan));
  if (options.rewind_rows < 0 || options.rewind_rows > plan.max_tokens()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "invalid engine option: rewind_rows: ", options.rewind_rows,
        ", must be 0 to ", plan.max_tokens(), ", the tokens of a step"));
  }
  options = Resolved(plan, std::move(options));
  WEFT_RETURN_IF_ERROR(CheckRank(plan, options, path));
  if (!options.chat_template.empty()) {
    plan.vocabulary.set_chat_template(options.chat_template);
  }
  std::unique_ptr<Engine> engine(new Engine);
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<const Tokenizer> tokenizer,
      Tokenizer::Create(plan.vocabulary, {options.normalize}));
  engine->tokenizer_ = std::move(tokenizer);
  engine->threads_ = options.shared_threads;
  if (engine->threads_ == nullptr) {
    WEFT_ASSIGN_OR_RETURN(
        engine->threads_,
        ThreadPool::Create(ThreadsOf(options), options.affinity));
  }

  WEFT_RETURN_IF_ERROR(KeepToBudget(path, options, &plan));
  const bool streams = !plan.streamed.empty();
  if (streams) {
    WEFT_RETURN_IF_ERROR(CheckStreams(plan, path));
    if (options.copy_model) {
      return absl::InvalidArgumentError(
          "invalid engine option: copy_model: does not go with a memory_budget "
          "below what the plan takes, where experts stay in the file");
    }
  }
  WEFT_RETURN_IF_ERROR(CheckMemory(plan, options, path));
  WEFT_RETURN_IF_ERROR(MakeWeights(plan, *engine->threads_, options.huge_pages,
                                   options.progress,
                                   options.copy_model || streams));
  engine->plan_ = std::make_shared<Plan>(std::move(plan));
  if (streams) {
    engine->plan_->files.front()->LeavePageCache();
    WEFT_ASSIGN_OR_RETURN(
        engine->experts_,
        ExpertStream::Create(*engine->plan_, options.huge_pages));
  } else if (options.huge_pages) {
    AdviseWeights(*engine->plan_);
  }

  KvCacheShape shape;
  shape.states = StatesOf(*engine->plan_);
  shape.slots = options.slots;
  shape.pages_per_sequence =
      (engine->plan_->context() + kPageTokens - 1) / kPageTokens;
  shape.pages = options.kv_pages > 0 ? options.kv_pages
                                     : shape.pages_per_sequence * options.slots;
  shape.checkpoints = options.checkpoints;
  shape.marks = options.rewind_rows > 0;
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<KvCache> cache,
                        KvCache::Create(shape, options.huge_pages));
  engine->cache_ = std::move(cache);
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<Executor> executor,
      Executor::Create(engine->plan_, engine->threads_.get(),
                       engine->cache_.get(), options.huge_pages,
                       options.rewind_rows, /*first_state=*/0,
                       options.communicator.get(), engine->experts_.get()));
  engine->executor_ = std::move(executor);
  if (options.communicator != nullptr) engine->JoinRanks(options);
  if (!engine->plan_->next_token_buckets.empty()) {
    const size_t states = StatesOf(engine->plan_->buckets.back()).size();
    WEFT_ASSIGN_OR_RETURN(
        engine->next_token_executor_,
        Executor::Create(
            std::make_shared<const Plan>(NextTokenPlan(*engine->plan_)),
            engine->threads_.get(), engine->cache_.get(), options.huge_pages,
            /*rewind_rows=*/0, static_cast<int>(states)));
  }
  engine->guess_rows_ = options.guess_rows;
  engine->load_seconds_ = Seconds(start);
  return engine;
}

void Engine::JoinRanks(const EngineOptions& options) {
  communicator_ = options.communicator;
  if (communicator_->rank() > 0) return;
  leader_ = std::make_unique<StepLeader>(
      communicator_.get(), plan_->max_tokens(),
      static_cast<int64_t>(plan_->model.adapters.size()));
  cache_->Observe(leader_.get());
  executor_->LeadBy(leader_.get());
}

absl::Status Engine::Follow() {
  return FollowSteps(communicator_.get(), executor_.get(), cache_.get(),
                     *plan_);
}

absl::StatusOr<std::vector<float>> Engine::SlotStates(
    absl::Span<const int32_t> tokens, int64_t chunk) {
  if (!cache_->has_slots()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has no recurrent states: ", plan_->model.architecture,
        " keeps keys and values only"));
  }
  WEFT_RETURN_IF_ERROR(CheckFiles());
  const absl::MutexLock lock(&mutex_);
  Session session(*plan_, executor_.get(), cache_.get(), 0);
  WEFT_RETURN_IF_ERROR(session.Append(tokens, chunk));
  std::vector<float> numbers;
  const Graph& graph = plan_->buckets.back();
  size_t state = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kState) continue;
    const KvState& memory = cache_->states()[state++];
    if (!IsSlotState(value.type)) continue;
    AppendTransposed(value.type, SlotOf(memory, 0), &numbers);
  }
  return numbers;
}

absl::Status CheckGenerates(const Plan& plan) {
  if (plan.model.generates()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the model generates nothing: ", plan.model.architecture,
      plan.model.encoder ? " is an encoder" : " was made for vectors",
      ": weft eval writes them (--embedding, --hidden, --score)"));
}

absl::Status Engine::Vectors(absl::Span<const int32_t> tokens,
                             absl::Span<const int64_t> positions, int64_t chunk,
                             const LogitsCallback& callback) {
  const ModelInfo& model = plan_->model;
  if (model.generates()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has no vectors to give: ", model.architecture,
        " was made to write text: ask for its vectors when it is loaded"));
  }
  const int64_t most = model.encoder
                           ? std::min(plan_->max_tokens(), plan_->context())
                           : plan_->context();
  const int64_t count = static_cast<int64_t>(tokens.size());
  if (count < 1 || count > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "text is too ", count < 1 ? "short" : "long", ": ", count,
        " tokens: ", model.encoder ? "each looks at all others, so " : "",
        "the model takes ", "1 to ", most, model.encoder ? " at once" : ""));
  }
  WEFT_RETURN_IF_ERROR(CheckFiles());
  const absl::MutexLock lock(&mutex_);
  Session session(*plan_, executor_.get(), cache_.get(), 0);
  return session.Evaluate(tokens, positions, model.encoder ? 0 : chunk,
                          callback);
}

absl::Status Engine::Hidden(absl::Span<const int32_t> tokens,
                            const LogitsCallback& callback, int64_t chunk) {
  if (IsOfText(plan_->model.gives)) {
    return absl::InvalidArgumentError(
        "the plan has no vectors of tokens: it gives one row of a text: ask "
        "for hidden vectors when it is loaded");
  }
  std::vector<int64_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), int64_t{0});
  return Vectors(tokens, positions, chunk, callback);
}

absl::StatusOr<std::vector<float>> Engine::Embed(
    absl::Span<const int32_t> tokens, int64_t chunk) {
  const ModelInfo& model = plan_->model;
  const int64_t row = model.RowOfText(static_cast<int64_t>(tokens.size()));
  if (row < 0) {
    Pooler pooler(model.pooling, model.embedding_length);
    WEFT_RETURN_IF_ERROR(Hidden(
        tokens,
        [&](int64_t, absl::Span<const float> vector) {
          pooler.Add(vector);
          return absl::OkStatus();
        },
        chunk));
    return pooler.Result();
  }
  std::vector<float> result;
  WEFT_RETURN_IF_ERROR(Vectors(tokens, {row}, chunk,
                               [&](int64_t, absl::Span<const float> given) {
                                 result.assign(given.begin(), given.end());
                                 return absl::OkStatus();
                               }));
  return result;
}

absl::Status Engine::Evaluate(absl::Span<const int32_t> tokens,
                              absl::Span<const int64_t> positions,
                              int64_t chunk, const LogitsCallback& callback) {
  WEFT_RETURN_IF_ERROR(CheckGenerates(*plan_));
  WEFT_RETURN_IF_ERROR(CheckFiles());
  const absl::MutexLock lock(&mutex_);
  Session session(*plan_, executor_.get(), cache_.get(), 0);
  return session.Evaluate(tokens, positions, chunk, callback);
}

absl::Status Engine::EvaluateNextTokenBlock(absl::Span<const int32_t> tokens,
                                            int64_t chunk,
                                            const LogitsCallback& callback) {
  if (next_token_executor_ == nullptr) {
    return absl::InvalidArgumentError(
        "the plan has no next-token block: ask for it when it is loaded");
  }
  if (tokens.size() < 2) {
    return absl::InvalidArgumentError(
        "next-token block: there is one token: it tells what comes after two");
  }
  WEFT_RETURN_IF_ERROR(CheckFiles());
  const absl::MutexLock lock(&mutex_);
  const int64_t d = plan_->model.embedding_length;
  const int64_t most = plan_->max_tokens();
  if (chunk <= 0 || chunk > most) chunk = most;
  Session session(*plan_, executor_.get(), cache_.get(), 0);
  NextTokenBlock block(next_token_executor_.get());
  std::vector<int32_t> positions, output_rows;
  const std::vector<int32_t> slots(chunk, 0);
  std::vector<float> logits, hidden;
  // The last token has none behind it that the block could read.
  for (int64_t begin = 0, rows; begin + 1 < static_cast<int64_t>(tokens.size());
       begin += rows) {
    rows = std::min(chunk, static_cast<int64_t>(tokens.size()) - 1 - begin);
    WEFT_RETURN_IF_ERROR(session.Append(tokens.subspan(begin, rows)));
    positions.resize(rows);
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(begin));
    output_rows.resize(rows);
    std::iota(output_rows.begin(), output_rows.end(), 0);
    logits.resize(rows * plan_->model.vocabulary_size);
    hidden.resize(rows * d);
    NextTokenRows step;
    step.ids = tokens.subspan(begin + 1, rows);
    step.positions = positions;
    step.slots = absl::MakeConstSpan(slots).first(rows);
    step.previous_hidden = executor_->hidden_rows().data();
    step.output_rows = output_rows;
    step.logits = logits.data();
    step.hidden = hidden.data();
    WEFT_RETURN_IF_ERROR(block.Run(step));
    absl::Span<const float> left = logits;
    for (int64_t row = 0; row < rows; ++row) {
      const size_t columns = plan_->model.vocabulary_size;
      WEFT_RETURN_IF_ERROR(callback(begin + row, left.first(columns)));
      left.remove_prefix(columns);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
