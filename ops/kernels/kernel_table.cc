#include "ops/kernels/kernel_table.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "ops/kernels/attention/attention_kernels.h"
#include "ops/kernels/experts/expert_kernels.h"
#include "ops/kernels/heads/head_kernels.h"
#include "ops/kernels/matmul/matmul_kernels.h"
#include "ops/kernels/recurrent/recurrent_kernels.h"
#include "ops/kernels/reference_kernels.h"
#include "ops/kernels/rows/row_kernels.h"
#include "ops/op_table.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

constexpr char kTaken[] = "there is one of this name: choose another";

// What no row may be, or empty.
std::string WhatIsWrongWith(const KernelRow& row) {
  if (row.name().empty()) return "give it a name";
  const OpDef* op = FindOp(row.op());
  if (op == nullptr) {
    return absl::StrCat("there is no op '", row.op(), "': register it first");
  }
  if (op->view) return absl::StrCat(op->name, " is a view: none runs");
  if (FindWeightLayout(row.weight_layout()) == nullptr) {
    return absl::StrCat("there is no weight layout '", row.weight_layout(),
                        "'");
  }
  if (row.summation().empty()) return "name its summation order";
  return "";
}

class Table {
 public:
  static Table& Get() {
    static auto* table = new Table;
    return *table;
  }

  const KernelRows& rows() {
    FollowOps();
    return rows_;
  }

  const KernelRow* Find(absl::string_view name) {
    FollowOps();
    const auto it = by_name_.find(std::string(name));
    return it == by_name_.end() ? nullptr : it->second;
  }

  Registration Add(std::unique_ptr<KernelRow> row) {
    const KernelRow* added = row.get();
    by_name_[added->name()] = added;
    rows_.insert(rows_.begin(), std::move(row));
    return Registration([this, added] {
      by_name_.erase(added->name());
      rows_.erase(std::find_if(
          rows_.begin(), rows_.end(),
          [added](const auto& other) { return other.get() == added; }));
    });
  }

 private:
  Table() {
    AddMatmulKernels(&rows_);
    AddExpertKernels(&rows_);
    AddHeadKernels(&rows_);
    AddAttentionKernels(&rows_);
    AddRowKernels(&rows_);
    AddRecurrentKernels(&rows_);
    for (const auto& row : rows_) {
      std::string wrong = WhatIsWrongWith(*row);
      if (!by_name_.emplace(row->name(), row.get()).second) wrong = kTaken;
      // A mistake in a family's list.
      if (!wrong.empty()) {
        std::cerr << "kernel table: " << row->name() << ": " << wrong << "\n";
        std::abort();
      }
    }
  }

  // Every op but views has its reference row behind all others: what runs where
  // nothing else does. Ops come and go by registration.
  void FollowOps() {
    const int64_t version = OpTableVersion();
    if (followed_.load(std::memory_order_acquire) == version) return;
    const absl::MutexLock lock(&following_);
    if (followed_.load(std::memory_order_relaxed) == version) return;
    const auto gone = [this](const auto& row) {
      const bool reference = row->name() == row->op() + "_ref";
      if (!reference || FindOp(row->op()) != nullptr) return false;
      by_name_.erase(row->name());
      return true;
    };
    rows_.erase(std::remove_if(rows_.begin(), rows_.end(), gone), rows_.end());
    for (const OpDef* op : AllOps()) {
      if (op->view || by_name_.count(absl::StrCat(op->name, "_ref")) > 0) {
        continue;
      }
      rows_.push_back(ReferenceRowFor(*op));
      by_name_.emplace(rows_.back()->name(), rows_.back().get());
    }
    followed_.store(version, std::memory_order_release);
  }

  KernelRows rows_;
  std::unordered_map<std::string, const KernelRow*> by_name_;
  absl::Mutex following_;
  std::atomic<int64_t> followed_{-1};
};

}  // namespace

std::string WhyNot(const KernelRow& row, const NodeView& view) {
  if (!Includes(view.options.isa, row.isa())) {
    return absl::StrCat("needs ", Name(row.isa()));
  }
  std::string why = row.NotAskedFor(view.options);
  return why.empty() ? row.Refuses(view) : why;
}

const KernelRows& AllKernels() { return Table::Get().rows(); }

const KernelRow* FindKernel(absl::string_view name) {
  return Table::Get().Find(name);
}

absl::StatusOr<Registration> RegisterKernel(std::unique_ptr<KernelRow> row) {
  std::string wrong = row == nullptr ? "give it a name" : WhatIsWrongWith(*row);
  if (wrong.empty() && FindKernel(row->name()) != nullptr) wrong = kTaken;
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot register kernel: ", row ? row->name() : "?", ": ", wrong));
  }
  return Table::Get().Add(std::move(row));
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
