#include "ops/kernels/kernel_table.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "ops/kernels/attention/attention_kernels.h"
#include "ops/kernels/collectives/collective_kernels.h"
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

// What no entry may be, or empty.
std::string WhatIsWrongWith(const KernelEntry& entry) {
  if (entry.name().empty()) return "give it a name";
  const OpDef* op = FindOp(entry.op());
  if (op == nullptr) {
    return absl::StrCat("there is no op '", entry.op(), "': register it first");
  }
  if (op->view) return absl::StrCat(op->name, " is a view: none runs");
  if (FindWeightLayout(entry.weight_layout()) == nullptr) {
    return absl::StrCat("there is no weight layout '", entry.weight_layout(),
                        "'");
  }
  if (entry.summation().empty()) return "name its summation order";
  return "";
}

class Table {
 public:
  static Table& Get() {
    static auto* table = new Table;
    return *table;
  }

  const KernelEntries& entries() {
    FollowOps();
    return entries_;
  }

  const KernelEntry* Find(absl::string_view name) {
    FollowOps();
    const auto it = by_name_.find(std::string(name));
    return it == by_name_.end() ? nullptr : it->second;
  }

  Registration Add(std::unique_ptr<KernelEntry> entry) {
    const KernelEntry* added = entry.get();
    by_name_[added->name()] = added;
    entries_.insert(entries_.begin(), std::move(entry));
    return Registration([this, added] {
      by_name_.erase(added->name());
      entries_.erase(std::find_if(
          entries_.begin(), entries_.end(),
          [added](const auto& other) { return other.get() == added; }));
    });
  }

 private:
  Table() {
    AddMatmulKernels(&entries_);
    AddExpertKernels(&entries_);
    AddHeadKernels(&entries_);
    AddAttentionKernels(&entries_);
    AddRowKernels(&entries_);
    AddRecurrentKernels(&entries_);
    AddCollectiveKernels(&entries_);
    for (const auto& entry : entries_) {
      std::string wrong = WhatIsWrongWith(*entry);
      if (!by_name_.emplace(entry->name(), entry.get()).second) wrong = kTaken;
      // A mistake in a family's list.
      if (!wrong.empty()) {
        std::cerr << "kernel table: " << entry->name() << ": " << wrong << "\n";
        std::abort();
      }
    }
  }

  // Every op but views has its reference entry behind all others: what runs
  // where nothing else does. Ops come and go by registration.
  void FollowOps() {
    const int64_t version = OpTableVersion();
    if (followed_.load(std::memory_order_acquire) == version) return;
    const absl::MutexLock lock(&following_);
    if (followed_.load(std::memory_order_relaxed) == version) return;
    const auto gone = [this](const auto& entry) {
      const bool reference = entry->name() == entry->op() + "_ref";
      if (!reference || FindOp(entry->op()) != nullptr) return false;
      by_name_.erase(entry->name());
      return true;
    };
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), gone),
                   entries_.end());
    for (const OpDef* op : AllOps()) {
      if (op->view || by_name_.count(absl::StrCat(op->name, "_ref")) > 0) {
        continue;
      }
      entries_.push_back(ReferenceRowFor(*op));
      by_name_.emplace(entries_.back()->name(), entries_.back().get());
    }
    followed_.store(version, std::memory_order_release);
  }

  KernelEntries entries_;
  std::unordered_map<std::string, const KernelEntry*> by_name_;
  absl::Mutex following_;
  std::atomic<int64_t> followed_{-1};
};

}  // namespace

std::string WhyNot(const KernelEntry& entry, const NodeView& view) {
  if (!Includes(view.options.isa, entry.isa())) {
    return absl::StrCat("needs ", Name(entry.isa()));
  }
  std::string why = entry.NotAskedFor(view.options);
  return why.empty() ? entry.Refuses(view) : why;
}

const KernelEntries& AllKernels() { return Table::Get().entries(); }

const KernelEntry* FindKernel(absl::string_view name) {
  return Table::Get().Find(name);
}

absl::StatusOr<Registration> RegisterKernel(
    std::unique_ptr<KernelEntry> entry) {
  std::string wrong =
      entry == nullptr ? "give it a name" : WhatIsWrongWith(*entry);
  if (wrong.empty() && FindKernel(entry->name()) != nullptr) wrong = kTaken;
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot register kernel: ", entry ? entry->name() : "?", ": ", wrong));
  }
  return Table::Get().Add(std::move(entry));
}

KernelChoice ChooseKernel(const NodeView& view, KernelPreference preference) {
  KernelChoice choice;
  for (const auto& entry : AllKernels()) {
    if (!entry->Computes(view.node)) continue;
    if (choice.entry != nullptr &&
        (preference == KernelPreference::kBest ||
         entry->summation() != choice.entry->summation())) {
      continue;
    }
    std::string reason = WhyNot(*entry, view);
    if (reason.empty()) {
      choice.entry = entry.get();
    } else if (choice.entry == nullptr) {
      choice.refused.emplace_back(entry.get(), std::move(reason));
    }
  }
  return choice;
}

}  // namespace weft
