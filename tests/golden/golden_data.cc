#include "tests/golden/golden_data.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/shared_data.h"

namespace weft {
namespace {

std::string CommittedFolder(const std::string& set) {
  return absl::StrCat("tests/data/golden/", set, "/");
}

}  // namespace

std::string GoldenFolder(const std::string& set) {
  const std::string committed = CommittedFolder(set);
  const std::string all = absl::StrCat(
      SharedFolder("WEFT_GOLDEN_DIR", "golden", committed + "cases.json"), "/",
      set, "/");
  return std::ifstream(all + "cases.json").good() ? all : committed;
}

nlohmann::json ReadCases(const std::string& folder) {
  std::ifstream file(folder + "cases.json");
  return nlohmann::json::parse(file);
}

std::vector<GoldenModel> GoldenModels(const std::string& set) {
  std::vector<GoldenModel> models;
  for (const std::string& folder : {GoldenFolder(set), CommittedFolder(set)}) {
    const nlohmann::json cases = ReadCases(folder);
    for (const auto& [name, data] : cases["models"].items()) {
      const std::string& found = name;
      if (std::none_of(models.begin(), models.end(), [&](const auto& model) {
            return model.name == found;
          })) {
        models.push_back({name, folder, data});
      }
    }
  }
  return models;
}

std::vector<float> ReadFloats(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.begin() + floats.size() * sizeof(float),
            reinterpret_cast<char*>(floats.data()));
  return floats;
}

void ErrorSums::Add(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < b.size(); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    error += d * d;
    power += static_cast<double>(b[i]) * b[i];
  }
}

}  // namespace weft
