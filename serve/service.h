// What the server answers: every route.
#pragma once

#include <string>

#include "serve/http_server.h"
#include "serve/metrics.h"
#include "serve/response_store.h"
#include "serve/served_model.h"

namespace weft {

class Service {
 public:
  explicit Service(const ServiceLimits& limits) : limits_(limits) {}

  // Before the server serves; both must live as long as it does.
  void AddRoutes(HttpServer* server);

  // Before the server lets requests through (HttpServer::SetRefusal).
  void SetModel(ServedModel model) { model_ = std::move(model); }
  const ServedModel& model() const { return model_; }

 private:
  void Health(HttpCall* call) const;
  void Models(HttpCall* call) const;
  void Model(HttpCall* call) const;
  void Props(HttpCall* call) const;
  void Metrics(HttpCall* call) const;
  void Tokenize(HttpCall* call) const;
  void Detokenize(HttpCall* call) const;
  void ApplyTemplate(HttpCall* call) const;
  SchedulerStats Stats() const;

  const ServiceLimits limits_;
  ServedModel model_;
  HttpServer* server_ = nullptr;
  HttpCounters counters_;
  ResponseStore responses_;
};

}  // namespace weft
