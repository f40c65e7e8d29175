// Writes small safetensors files, whole or damaged. For tests.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace weft {

struct TestTensor {
  std::string name;
  std::string type;
  std::vector<int64_t> shape;  // outermost first
  std::string bytes;
};

// A header and what follows it, whatever they are.
inline std::string WithHeader(const std::string& header,
                              const std::string& data) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) +
         header + data;
}

inline std::string SafetensorsBytes(const std::vector<TestTensor>& tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const TestTensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.type},
        {"shape", tensor.shape},
        {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  return WithHeader(header.dump(), data);
}

inline void WriteFileBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace weft
