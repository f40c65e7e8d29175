// What the server answers: every route.
#pragma once

#include <functional>

#include "serve/http_server.h"
#include "serve/metrics.h"
#include "serve/model_set.h"
#include "serve/response_store.h"

namespace weft {

class Service {
 public:
  explicit Service(const ServiceLimits& limits) : limits_(limits) {}

  // Before the server serves; both must live as long as it does.
  void AddRoutes(HttpServer* server);

  // To be filled before the server lets requests through
  // (HttpServer::SetRefusal).
  ModelSet& models() { return models_; }

 private:
  // What a request asks of the model that it names.
  using Question =
      std::function<void(const ServedModel& model, HttpCall* call)>;

  void Ask(const Question& question, HttpCall* call);
  void Health(HttpCall* call);
  void Models(HttpCall* call);
  void Model(HttpCall* call);
  void Metrics(HttpCall* call);

  const ServiceLimits limits_;
  ModelSet models_;
  HttpServer* server_ = nullptr;
  HttpCounters counters_;
  ResponseStore responses_;
};

}  // namespace weft
