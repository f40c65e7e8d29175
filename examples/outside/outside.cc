// weft with a pass from another Bazel workspace: counts the products that a
// model is made of.
#include <iostream>

#include "cli/main.h"
#include "ops/ops.h"
#include "passes/pipeline.h"

namespace {

absl::Status CountProducts(weft::Graph& graph, const weft::PassOptions&) {
  int products = 0;
  for (weft::NodeId id : graph.order()) {
    products += graph.node(id).Is(weft::kMatmulOp);
  }
  std::cerr << "count-products: " << products << "\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const auto pass =
      weft::RegisterPass({"count-products", CountProducts, false}, "");
  if (!pass.ok()) return std::cerr << pass.status().message() << "\n", 1;
  return weft::Main(argc, argv);
}
