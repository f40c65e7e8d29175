// The golden models with their reference logits: committed ones in
// tests/data/golden, all of them where WEFT_GOLDEN_DIR (or ../shared/golden)
// is.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace weft {

// The folder of a set ("austen", "arch"): the complete one if it is there.
std::string GoldenFolder(const std::string& set);

nlohmann::json ReadCases(const std::string& folder);

// A model of `cases.json`.
struct GoldenModel {
  std::string name;
  std::string folder;
  nlohmann::json data;

  std::string path() const { return folder + data["file"].get<std::string>(); }
};

// All of a set's folder, and those that only the committed one has.
std::vector<GoldenModel> GoldenModels(const std::string& set);

// Raw little-endian float32.
std::vector<float> ReadFloats(const std::string& path);

// Sums of (a - b)^2 and of b^2 over all elements.
struct ErrorSums {
  double error = 0;
  double power = 0;
  void Add(const std::vector<float>& a, const std::vector<float>& b);
  double nmse() const { return error / power; }
};

}  // namespace weft
