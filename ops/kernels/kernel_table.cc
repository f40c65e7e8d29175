#include "ops/kernels/kernel_table.h"

#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "ops/kernels/attention/attention_kernels.h"
#include "ops/kernels/matmul/matmul_kernels.h"
#include "ops/kernels/reference_kernels.h"
#include "ops/kernels/rows/row_kernels.h"

namespace weft {
std::string WhyNot(const KernelRow& row, const NodeView& view) {
  if (!Includes(view.options.isa, row.isa())) {
    return absl::StrCat("needs ", Name(row.isa()));
  }
  std::string why = row.NotAskedFor(view.options);
  return why.empty() ? row.Refuses(view) : why;
}

const KernelRows& AllKernels() {
  static const KernelRows* rows = [] {
    auto* all = new KernelRows;
    AddMatmulKernels(all);
    AddAttentionKernels(all);
    AddRowKernels(all);
    // Last: what runs where nothing else does.
    AddReferenceKernels(all);
    return all;
  }();
  return *rows;
}

const KernelRow* FindKernel(absl::string_view name) {
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string, const KernelRow*>;
    for (const auto& row : AllKernels()) map->emplace(row->name(), row.get());
    return map;
  }();
  const auto it = by_name->find(std::string(name));
  return it == by_name->end() ? nullptr : it->second;
}

KernelChoice ChooseKernel(const NodeView& view, KernelPreference preference) {
  KernelChoice choice;
  for (const auto& row : AllKernels()) {
    if (!row->Computes(view.node)) continue;
    if (choice.row != nullptr &&
        (preference == KernelPreference::kBest ||
         row->summation() != choice.row->summation())) {
      continue;
    }
    std::string reason = WhyNot(*row, view);
    if (reason.empty()) {
      choice.row = row.get();
    } else if (choice.row == nullptr) {
      choice.refused.emplace_back(row.get(), std::move(reason));
    }
  }
  return choice;
}

}  // namespace weft
