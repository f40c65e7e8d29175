// Precision by layer: weights of the first block in Q8_0, all others in Q4_0;
// keys and values of block 0 in f32, all others in q8_0.
//   bazel run //examples:layer_precision -- MODEL-F16.gguf /tmp/mixed.gguf
//
// On the command line the same is
//   weft quantize MODEL-F16.gguf /tmp/mixed.gguf Q4_0
//     --tensor-type 'blk.0.*=Q8_0'
//   weft run /tmp/mixed.gguf --kv-type q8_0,0=f32
#include <iostream>

#include "loaders/quantize_model.h"
#include "ops/kv_types.h"
#include "runtime/api/engine.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    return std::cerr << "usage: layer_precision IN.gguf OUT.gguf\n", 2;
  }
  weft::QuantizeOptions quantize;
  quantize.type = "Q4_0";
  quantize.tensor_types = {"blk.0.*=Q8_0"};
  const auto report = weft::QuantizeModel(argv[1], argv[2], quantize);
  if (!report.ok()) return std::cerr << report.status().message() << "\n", 1;

  for (const char* kv_types : {"f16", "q8_0,0=f32"}) {
    weft::EngineOptions options;
    options.model.graph.kv_type = *weft::KvTypes::Parse(kv_types);
    const auto engine = weft::Engine::Load(argv[2], options);
    if (!engine.ok()) return std::cerr << engine.status().message() << "\n", 1;
    if (kv_types == std::string("f16")) {
      for (const weft::TensorInfo& tensor : (*engine)->plan().model.tensors) {
        if (tensor.name.find("ffn_down") == std::string::npos) continue;
        std::cout << tensor.name << " " << weft::UpperName(tensor.type) << "\n";
      }
    }
    std::cout << "kv " << kv_types << ": "
              << weft::MemoryOf((*engine)->plan(), 1, 1).kv_per_token
              << " bytes per token\n";
  }
}
