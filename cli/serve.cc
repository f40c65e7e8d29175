// weft serve: an OpenAI-compatible server.
//
// The address is taken first, so that a port in use is told at once; then the
// model is loaded while /health says so; then standard output gets one line,
// the address. A request to end (SIGTERM, Ctrl-C) lets running requests finish
// for a while; a second one does not wait.
#include "cli/serve.h"

#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/converted_folder.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/model_folder.h"
#include "cli/output.h"
#include "loaders/convert/convert.h"
#include "runtime/api/scheduler.h"
#include "runtime/generation/constraint_cache.h"
#include "runtime/machine/memory.h"
#include "runtime/ranks/mpi_communicator.h"
#include "serve/api_keys.h"
#include "serve/http_checks.h"
#include "serve/http_server.h"
#include "serve/request_log.h"
#include "serve/service.h"
#include "text/answer/marker_tokens.h"
#include "text/printable.h"

namespace weft {
namespace {

// For answers that are written but not yet sent.
constexpr absl::Duration kLastBytes = absl::Seconds(2);
// For connections to notice that they are closed.
constexpr absl::Duration kLastWork = absl::Seconds(1);

struct Flags : ServedModelFlags {
  Flags() { speculation.mode = "lookup"; }

  std::string host = "127.0.0.1";
  int port = 8080;
  std::string api_key_file, cors_origin, log_requests, slot_folder;
  std::string folder;        // of models; empty: there is one
  int64_t model_memory = 0;  // 0: most of what is available
  std::vector<std::string> hosts, aliases;
  int64_t max_body_bytes = 8 << 20;
  int64_t max_header_bytes = 16 << 10;
  int64_t max_answer_bytes = 64 << 20;
  int64_t max_prompt_tokens = 0;
  int64_t max_generated_tokens = 0;
  int64_t max_choices = 16;
  int connections = 128;
  int header_seconds = 10, body_seconds = 30, idle_seconds = 30;
  int write_seconds = 30, drain_seconds = 30, silence_seconds = 5;
  bool no_prefix_cache = false, no_parse_special = false;
};

// Serves from a thread of its own until it goes.
class ServerThread {
 public:
  explicit ServerThread(HttpServer* server)
      : server_(server), thread_([this] {
          server_->Serve();
          ended_.Notify();
        }) {}
  ~ServerThread() {
    server_->Stop(kLastBytes);
    thread_.join();
  }

  // Ends the process here if connections are still busy with what nobody waits
  // for any more, such as the tokens of a long text.
  void End(int code) {
    server_->Stop(kLastBytes);
    if (ended_.WaitForNotificationWithTimeout(kLastWork)) return;
    std::cout << std::flush;
    std::_Exit(code);
  }

 private:
  HttpServer* server_;
  absl::Notification ended_;
  std::thread thread_;
};

absl::StatusOr<ApiKeys> ReadKeys(const std::string& path) {
  if (path.empty()) return ApiKeys();
  WEFT_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path));
  absl::StatusOr<ApiKeys> keys = ApiKeys::Parse(text);
  if (keys.ok()) return keys;
  return absl::InvalidArgumentError(
      absl::StrCat("API keys: ", path, ": ", keys.status().message()));
}

HttpOptions ToHttpOptions(const Flags& flags) {
  HttpOptions options;
  options.connections = flags.connections;
  options.origin.cors_origin = flags.cors_origin;
  options.origin.hosts = flags.hosts;
  options.limits.body_bytes = flags.max_body_bytes;
  options.limits.header_bytes = flags.max_header_bytes;
  options.limits.header_time = absl::Seconds(flags.header_seconds);
  options.limits.body_time = absl::Seconds(flags.body_seconds);
  options.limits.idle_time = absl::Seconds(flags.idle_seconds);
  options.limits.write_time = absl::Seconds(flags.write_seconds);
  return options;
}

ServiceLimits ToServiceLimits(const Flags& flags) {
  ServiceLimits limits;
  limits.prompt_tokens = flags.max_prompt_tokens;
  limits.answer_bytes = flags.max_answer_bytes;
  limits.slot_folder = flags.slot_folder;
  limits.silence = absl::Seconds(flags.silence_seconds);
  limits.request.choices = flags.max_choices;
  limits.request.parse_special = !flags.no_parse_special;
  if (flags.max_generated_tokens > 0) {
    limits.request.generated_tokens = flags.max_generated_tokens;
  }
  return limits;
}

// The file's name without folder and ending; the embedded model has one inside.
std::string ModelName(const ServedModelFlags& flags, const Plan& plan) {
  if (!flags.model_name.empty()) return flags.model_name;
  const std::string stem = std::filesystem::path(flags.model).stem().string();
  if (!stem.empty()) return stem;
  return absl::StrReplaceAll(plan.model.name, {{" ", "-"}});
}

ConstraintCache::Limits GrammarLimits(const ServedModelFlags& flags) {
  ConstraintCache::Limits limits;
  limits.alive_bytes = flags.max_grammar_bytes;
  limits.kept_bytes = std::min(limits.kept_bytes, flags.max_grammar_bytes / 4);
  return limits;
}

// Tells what a model's owner should know.
void Warn(const ServedModelFlags& flags, const CommonFlags& common,
          const std::string& line) {
  if (!flags.one_of_several()) return PrintWarnings(common, {line});
  const std::string with_name = absl::StrCat(flags.model_name, ": ", line);
  if (flags.told->insert(with_name).second) PrintWarnings(common, {with_name});
}

// What a model that is served takes.
std::function<void(EngineOptions*)> ServedOptions(const ServedModelFlags& flags,
                                                  const std::string& source) {
  return [&flags, source](EngineOptions* options) {
    options->slots = flags.slots;
    options->chat_template = source;
    flags.text.ApplyTo(options);
    options->kv_pages = (flags.kv_tokens + kPageTokens - 1) / kPageTokens;
    options->checkpoints =
        flags.checkpoints < 0 ? 2 * flags.slots : flags.checkpoints;
    options->beside_bytes = GrammarLimits(flags).peak();
    options->more_logit_rows = flags.scheduler.prompt_logprob_rows;
    options->keeps_prompts = !flags.scheduler.cache_folder.empty();
    flags.speculation.ApplyTo(options);
    options->model.graph.context_at_most = flags.one_of_several();
  };
}

}  // namespace

absl::StatusOr<ServedModel> LoadServedModel(const ServedModelFlags& flags,
                                            const std::string& source,
                                            const CommonFlags& common) {
  const auto served = ServedOptions(flags, source);
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      LoadEngine(
          flags.model, flags.compile, common, [&](EngineOptions* options) {
            served(options);
            if (!options->model.warn || !flags.one_of_several()) return;
            options->model.warn = [flags, common](const std::string& warning) {
              Warn(flags, common, warning);
            };
          }));
  if (const int64_t context = engine->plan().context();
      context < flags.compile.context) {
    Warn(flags, common,
         absl::StrCat("has a context of ", context, ": --context ",
                      flags.compile.context, " is more than the model takes"));
  }
  std::string warning;
  WEFT_ASSIGN_OR_RETURN(ChatTemplate chat_template,
                        ChatTemplateOf(engine->plan().vocabulary, &warning));
  if (engine->plan().model.generates() && !warning.empty()) {
    Warn(flags, common, warning);
  }
  ServedModel model;
  model.id = ModelName(flags, engine->plan());
  if (!flags.model.empty()) {
    std::error_code error;
    model.path = std::filesystem::absolute(flags.model, error).string();
  }
  model.created = absl::ToUnixSeconds(absl::Now());
  model.customs = answer::CustomsOf(chat_template, engine->tokenizer());
  if (engine->plan().model.generates() && warning.empty() &&
      !model.customs.shows_tools) {
    Warn(flags, common,
         "chat template: it shows no tools: the model does not see those of a "
         "request; give one that does (--chat-template)");
  }
  model.chat_template =
      std::make_unique<const ChatTemplate>(std::move(chat_template));
  SchedulerOptions options = flags.scheduler;
  if (flags.one_of_several() && !options.cache_folder.empty()) {
    // The others' are.
    const absl::Status keeps = CheckKeepsPrompts(*engine, options.cache_bytes);
    if (!keeps.ok()) {
      Warn(flags, common, std::string(keeps.message()));
      options.cache_folder.clear();
    }
  }
  options.client_queue_limit =
      flags.client_queue > 0 ? flags.client_queue
                             : options.queue_limit - options.queue_limit / 4;
  options.log = [common](const std::string& line) {
    PrintWarnings(common, {line});
  };
  if (engine->plan().model.generates()) {
    WEFT_ASSIGN_OR_RETURN(
        options.proposer,
        flags.speculation.Make(*engine, flags.compile, common));
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Scheduler> scheduler,
                        Scheduler::Create(std::move(engine), options));
  model.scheduler = std::move(scheduler);
  model.slots = std::make_shared<Slots>(flags.slots);
  model.adapters = std::make_shared<DefaultAdapters>(
      model.engine().plan().model.AdapterScales());
  model.marker_tokens =
      answer::MarkerTokens(model.tokenizer(), model.customs.forms);
  model.grammars = std::make_unique<OutputGrammars>(
      &model.tokenizer(), GrammarLimits(flags), model.marker_tokens);
  return model;
}

namespace {

// A published folder is converted here, when its model is first asked for.
absl::StatusOr<ServedModelFlags> WithModel(const ServedModelFlags& flags,
                                           const ModelSet::Source& source,
                                           const CommonFlags& common) {
  ServedModelFlags one = flags;
  one.model = source.path;
  if (IsConvertibleFolder(source.path)) {
    WEFT_ASSIGN_OR_RETURN(one.model, ConvertedFolder(source.path, common));
  }
  one.model_name = source.id;
  if (IsPlanFile(one.model)) {
    if (const absl::Status s = one.compile.CheckModel(one.model); !s.ok()) {
      Warn(one, common, std::string(s.message()));
    }
    one.compile.compile_time.clear();
    one.compile.context = 0;
  }
  return one;
}

// With what a server can do about too little memory beside what any command
// can.
absl::StatusOr<ServedModel> LoadForServer(const ServedModelFlags& flags,
                                          const std::string& chat_template,
                                          const CommonFlags& common) {
  absl::StatusOr<ServedModel> model =
      LoadServedModel(flags, chat_template, common);
  if (!absl::IsResourceExhausted(model.status())) return model;
  return absl::ResourceExhaustedError(
      absl::StrCat(model.status().message(), ", or fewer --slots (",
                   flags.slots, ") or --kv-tokens, which all slots share"));
}

// The one model, or those of the folder.
absl::Status AddModels(const Flags& flags, const CommonFlags& common,
                       const std::string& chat_template, RequestLog* log,
                       ModelSet* models) {
  if (flags.folder.empty()) {
    WEFT_ASSIGN_OR_RETURN(ServedModel model,
                          LoadForServer(flags, chat_template, common));
    model.log = log;
    if (!common.quiet) {
      std::cerr << absl::StreamFormat(
          "weft: %s is ready: loaded in %.3f s, %d slots, up to %d tokens in "
          "each\n",
          PrintableLine(model.id), model.engine().load_seconds(), flags.slots,
          model.capacity());
    }
    models->SetOnly(std::move(model));
    return absl::OkStatus();
  }
  if (!flags.compile.lora.empty()) {
    return UsageError(
        "--lora: an adapter is of one model: leave out --models and name that "
        "one as MODEL, or make a plan with the adapter in it for the folder: "
        "weft compile MODEL --lora FILE -o FOLDER/NAME.weft");
  }
  if (absl::StartsWith(flags.speculation.mode, "draft:")) {
    return UsageError(
        "--speculate draft:MODEL: is for one model: leave out "
        "--models");
  }
  WEFT_ASSIGN_OR_RETURN(std::vector<ModelSet::Source> sources,
                        ModelsIn(flags.folder, flags.aliases));
  if (!flags.model.empty()) {
    WEFT_RETURN_IF_ERROR(PutFirst(flags.model, &sources));
  }
  const int64_t budget =
      flags.model_memory > 0 ? flags.model_memory : AvailableMemory() / 10 * 9;
  if (!common.quiet) {
    std::cerr << "weft: " << sources.size()
              << " models, loaded when they are asked for, in up to "
              << (budget >> 20) << " MiB; " << PrintableLine(sources[0].id)
              << " where none is named\n";
  }
  ModelSet::Loader loader;
  loader.identity = FilesIdentity;
  ServedModelFlags each = flags;
  each.told = std::make_shared<std::set<std::string>>();
  loader.bytes = [each, common, chat_template](
                     const auto& source) -> absl::StatusOr<int64_t> {
    WEFT_ASSIGN_OR_RETURN(const ServedModelFlags one,
                          WithModel(each, source, common));
    return PeakBytes(one.model, one.compile, common,
                     ServedOptions(one, chat_template));
  };
  loader.load = [each, common, chat_template,
                 log](const auto& source) -> absl::StatusOr<ServedModel> {
    WEFT_ASSIGN_OR_RETURN(const ServedModelFlags one,
                          WithModel(each, source, common));
    WEFT_ASSIGN_OR_RETURN(ServedModel model,
                          LoadForServer(one, chat_template, common));
    model.log = log;
    return model;
  };
  // What can never be loaded is better known now.
  const absl::StatusOr<int64_t> first = loader.bytes(sources[0]);
  if (first.ok() && *first > budget) {
    PrintWarnings(common,
                  {absl::StrCat(sources[0].id, " needs ", (*first >> 20) + 1,
                                " MiB: more than --model-memory allows")});
  }
  models->SetSources(std::move(sources), std::move(loader), budget);
  return absl::OkStatus();
}

// Of one model, --alias gives it its name.
absl::Status TakeAlias(Flags* flags) {
  if (!flags->folder.empty() || flags->aliases.empty()) return absl::OkStatus();
  if (flags->aliases.size() > 1 || flags->aliases[0].empty() ||
      absl::StrContains(flags->aliases[0], "=")) {
    return UsageError(
        "--alias: one model has one name: write --alias NAME; NAME=MODEL is "
        "for several (--models)");
  }
  flags->model_name = flags->aliases[0];
  return absl::OkStatus();
}

absl::StatusOr<int> Run(Flags flags, const CommonFlags& common) {
  WEFT_RETURN_IF_ERROR(TakeAlias(&flags));
#ifdef M_ARENA_MAX
  // Else each connection's thread may take from a heap of its own, and what one
  // frees is of no use to the others: with many large grammars the process grew
  // to three times their budget.
  mallopt(M_ARENA_MAX, 1);
#endif
  WEFT_RETURN_IF_ERROR(flags.speculation.Check());
  ServiceLimits limits = ToServiceLimits(flags);
  WEFT_ASSIGN_OR_RETURN(limits.overflow, flags.compile.Overflow());
  WEFT_ASSIGN_OR_RETURN(const std::string source, flags.chat_template.Source());
  if (RanksStarted() > 1 && !flags.folder.empty()) {
    return UsageError(
        "--models: ranks run one model together: name it, and leave out "
        "--models");
  }
  if (RankStarted() > 0) {
    // It follows rank 0, which listens.
    return LoadEngine(flags.model, flags.compile, common,
                      ServedOptions(flags, source))
        .status();
  }
  WEFT_ASSIGN_OR_RETURN(ApiKeys keys, ReadKeys(flags.api_key_file));
  std::unique_ptr<RequestLog> log;  // outlives what writes to it
  if (!flags.log_requests.empty()) {
    std::vector<std::string> inputs = FilesOfModel(flags.model, flags.compile);
    inputs.push_back(flags.api_key_file);
    WEFT_RETURN_IF_ERROR(
        CheckOverwritesNoInput("serve", flags.log_requests, inputs));
    WEFT_ASSIGN_OR_RETURN(log,
                          RequestLog::Open(flags.log_requests,
                                           [&common](const std::string& line) {
                                             PrintWarnings(common, {line});
                                           }));
  }
  const bool open = keys.empty();
  Service service(limits);
  HttpServer server(ToHttpOptions(flags), std::move(keys));
  service.AddRoutes(&server);
  WEFT_RETURN_IF_ERROR(server.Listen(flags.host, flags.port));
  if (open && !server.loopback()) {
    PrintWarnings(common,
                  {absl::StrCat("anybody who reaches ", flags.host,
                                " may use this server: see --api-key-file")});
  }
  server.SetRefusal("the model is being loaded");
  ServerThread thread(&server);
  WEFT_RETURN_IF_ERROR(
      AddModels(flags, common, source, log.get(), &service.models()));
  WaitForInterrupt interrupt;
  server.SetRefusal("");
  std::cout << "http://"
            << (absl::StrContains(flags.host, ":")
                    ? absl::StrCat("[", flags.host, "]")
                    : flags.host)
            << ":" << server.port() << std::endl;
  const int signal = interrupt.Wait();
  server.SetRefusal("the server is shutting down");
  const int64_t cancelled =
      service.models().Drain(absl::Seconds(flags.drain_seconds));
  if (cancelled > 0 && !common.quiet) {
    std::cerr << "weft: " << cancelled << " requests were not finished\n";
  }
  const int code = signal == SIGINT ? kExitInterrupted : kExitOk;
  thread.End(code);
  return code;
}

void AddLimits(CLI::App* command, Flags* flags) {
  const auto add = [&](const char* name, auto* value, auto least, auto most,
                       const char* help) {
    command->add_option(name, *value, help)
        ->check(CLI::Range(least, most))
        ->capture_default_str()
        ->group("Limits");
  };
  const int64_t huge = int64_t{1} << 40;
  const int day = 86400;
  add("--max-body-bytes", &flags->max_body_bytes, int64_t{1}, huge,
      "of a request");
  add("--max-header-bytes", &flags->max_header_bytes, int64_t{256}, huge,
      "of a request, its first line included");
  add("--max-answer-bytes", &flags->max_answer_bytes, int64_t{1}, huge,
      "of an answer that is no stream");
  add("--max-grammar-bytes", &flags->max_grammar_bytes, int64_t{1}, huge,
      "of all grammars and schemas that requests bring, waiting ones included");
  add("--max-prompt-tokens", &flags->max_prompt_tokens, int64_t{0}, huge,
      "0: what the context holds");
  add("--max-generated-tokens", &flags->max_generated_tokens, int64_t{0}, huge,
      "of each text; 0: what the context holds");
  add("--max-choices", &flags->max_choices, int64_t{1}, int64_t{kMaxChoices},
      "texts for one prompt (n)");
  add("--connections", &flags->connections, 1, kMostConnections,
      "at the same time; more are told 503");
  add("--queue", &flags->scheduler.queue_limit, int64_t{1}, huge,
      "texts that wait for a slot; more are told 429");
  add("--client-queue", &flags->client_queue, int64_t{0}, huge,
      "of them, how many may be of one client; 0: three quarters");
  add("--header-seconds", &flags->header_seconds, 1, day,
      "for the headers of a request to come");
  add("--body-seconds", &flags->body_seconds, 1, day,
      "for the body of a request to come");
  add("--idle-seconds", &flags->idle_seconds, 1, day,
      "for the next request on a connection to begin");
  add("--write-seconds", &flags->write_seconds, 1, day,
      "for a client that reads nothing");
  add("--silence-seconds", &flags->silence_seconds, 1, day,
      "after which a stream with nothing to say tells that it is still there");
  add("--drain-seconds", &flags->drain_seconds, 0, day,
      "for running requests to finish when the server is to end");
}

}  // namespace

void AddServe(CLI::App& app, const CommonFlags& common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "serve", "Serves an OpenAI-compatible API and a chat page over HTTP");
  command->add_option("MODEL", flags->model, kModelHelp);
  command
      ->add_option("--host", flags->host,
                   "the address to listen at; 0.0.0.0 is every one")
      ->capture_default_str();
  command->add_option("--port", flags->port, "0: any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--api-key-file", flags->api_key_file,
                      "a file of keys, one per line, of which clients must "
                      "show one (default: no key is wanted)");
  command
      ->add_option("--cors-origin", flags->cors_origin,
                   "pages of this origin may use the server, as in "
                   "https://chat.example; * is any (default: only its own "
                   "page)")
      ->check([](const std::string& origin) {
        return std::string(CheckOriginName(origin).message());
      });
  command
      ->add_option("--allowed-hosts,--allow-host", flags->hosts,
                   "names, with commas between, that requests may have as "
                   "Host, beside those of this machine: a proxy's, say")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check([](const std::string& name) {
        return std::string(CheckHostName(name).message());
      });
  CLI::Option* name =
      command->add_option("--model-name", flags->model_name,
                          "the model's name in the API (default: the file's)");
  CLI::Option* folder =
      command
          ->add_option("--models", flags->folder,
                       "serve every model of this folder (files, plans, and "
                       "folders of published models) by its name, loaded when "
                       "a request's `model` asks for it; MODEL is the one of "
                       "those that name none")
          ->check(CLI::ExistingDirectory)
          ->excludes(name);
  command
      ->add_option("--alias", flags->aliases,
                   "NAME=MODEL: another name of a model of the folder; NAME: "
                   "of the one model, as --model-name")
      ->allow_extra_args(false)
      ->excludes(name);
  command
      ->add_option("--model-memory", flags->model_memory,
                   "that all loaded models may take together, as in 16GB; the "
                   "one asked for longest ago makes room for another (default: "
                   "nine tenths of what is available)")
      ->transform(SizeInBytes())
      ->needs(folder);
  command
      ->add_option("--slots", flags->slots,
                   "texts that are written at the same time")
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  command
      ->add_option("--kv-tokens", flags->kv_tokens,
                   "positions of the KV cache, which all slots share (default: "
                   "a whole context for each)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command
      ->add_option("--checkpoints", flags->checkpoints,
                   "of models with recurrent blocks: states that are kept, so "
                   "that a prompt which begins like another need not run from "
                   "its beginning (default: two for each slot); inspect says "
                   "what one takes: state_bytes_per_sequence")
      ->check(CLI::Range(0, 1 << 20));
  command
      ->add_option("--prefill-tokens", flags->scheduler.prefill_tokens,
                   "tokens of new prompts in one step while texts are being "
                   "written")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  CLI::Option* cache_folder = command->add_option(
      "--cache-dir", flags->scheduler.cache_folder,
      "a folder for pages of prompts, which are there after a "
      "restart: the same bits, sooner; made if it is not there");
  command
      ->add_option("--cache-size", flags->scheduler.cache_bytes,
                   "of its files, as in 8GB; those not used for longest go")
      ->transform(SizeInBytes())
      ->default_str("8GB")
      ->needs(cache_folder);
  command->add_option("--log-requests", flags->log_requests,
                      "a file to which every request that generates is added, "
                      "with its seed and answer: weft replay runs it again");
  command
      ->add_option("--slot-save-path", flags->slot_folder,
                   "the folder of POST /slots/N?action=save and restore, for "
                   "ids of tokens; what is computed of them --cache-dir keeps "
                   "(default: none, and neither is there)")
      ->check(CLI::ExistingDirectory);
  command->add_flag("--no-parse-special", flags->no_parse_special,
                    "control tokens in the prompts of raw completions are text "
                    "unless a request says parse_special");
  command->add_flag("--no-prefix-cache", flags->no_prefix_cache,
                    "keep nothing of earlier prompts");
  flags->chat_template.AddTo(*command);
  flags->text.AddTo(*command);
  flags->speculation.AddTo(*command);
  AddLimits(command, flags.get());
  flags->compile.AddTo(*command);
  flags->compile.AddMemoryBudgetTo(*command);
  flags->compile.AddPlanCacheTo(*command);
  command->callback([flags, &common, action] {
    flags->scheduler.prefix_cache = !flags->no_prefix_cache;
    *action = [flags, &common] { return Run(*flags, common); };
  });
}

}  // namespace weft
