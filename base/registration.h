// What a program added to one of weft's tables (ops, kernels, passes), for as
// long as this object lives.
//
// The end of a registration takes the entry out again, so a test can plant one
// and have the tables back as they were. Nothing that uses the entry may
// outlive it: no graph with the op, no plan or executor with the kernel.
//
// Tables are read without locks. Register before the first graph is built or
// compiled, and end a registration when nothing is: no other thread may use
// weft meanwhile.
#pragma once

#include <functional>
#include <utility>

namespace weft {

class Registration {
 public:
  Registration() = default;
  // `remove` is called once, at the end.
  explicit Registration(std::function<void()> remove)
      : remove_(std::move(remove)) {}
  ~Registration() { End(); }
  Registration(Registration&& other) noexcept
      : remove_(std::exchange(other.remove_, nullptr)) {}
  Registration& operator=(Registration&& other) noexcept {
    if (this != &other) {
      End();
      remove_ = std::exchange(other.remove_, nullptr);
    }
    return *this;
  }

  // Before the object's life ends.
  void End() {
    if (remove_) std::exchange(remove_, nullptr)();
  }
  // The entry stays until the process ends.
  void Keep() { remove_ = nullptr; }

 private:
  std::function<void()> remove_;
};

}  // namespace weft
