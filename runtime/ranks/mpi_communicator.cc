#include "runtime/ranks/mpi_communicator.h"

#include <dlfcn.h>
// The C interface only.
#define OMPI_SKIP_MPICXX 1
#include <mpi/mpi.h>
#include <time.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {
namespace {

// The name that Open MPI's interface has since version 4.
constexpr char kLibrary[] = "libmpi.so.40";

int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  int value;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

struct Mpi {
  decltype(&MPI_Init_thread) init_thread;
  decltype(&MPI_Finalize) finalize;
  decltype(&MPI_Abort) abort;
  decltype(&MPI_Comm_rank) comm_rank;
  decltype(&MPI_Comm_size) comm_size;
  decltype(&MPI_Comm_set_errhandler) comm_set_errhandler;
  decltype(&MPI_Allgatherv) allgatherv;
  decltype(&MPI_Ibcast) ibcast;
  decltype(&MPI_Test) test;
  decltype(&MPI_Error_string) error_string;
  // What the header's MPI_COMM_WORLD and so on are the addresses of.
  MPI_Comm world;
  MPI_Datatype byte;
  MPI_Errhandler errors_return;
};

absl::StatusOr<Mpi> Load() {
  // For all: it loads parts of its own that look for its names.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot run with other ranks: ", why != nullptr ? why : kLibrary,
        ": install Debian's package libopenmpi3, or what has ", kLibrary));
  }
  Mpi mpi;
  bool complete = true;
  const auto find = [&](const char* name, auto* pointer) {
    *pointer = reinterpret_cast<std::remove_pointer_t<decltype(pointer)>>(
        dlsym(library, name));
    complete = complete && *pointer != nullptr;
  };
  find("MPI_Init_thread", &mpi.init_thread);
  find("MPI_Finalize", &mpi.finalize);
  find("MPI_Abort", &mpi.abort);
  find("MPI_Comm_rank", &mpi.comm_rank);
  find("MPI_Comm_size", &mpi.comm_size);
  find("MPI_Comm_set_errhandler", &mpi.comm_set_errhandler);
  find("MPI_Allgatherv", &mpi.allgatherv);
  find("MPI_Ibcast", &mpi.ibcast);
  find("MPI_Test", &mpi.test);
  find("MPI_Error_string", &mpi.error_string);
  find("ompi_mpi_comm_world", &mpi.world);
  find("ompi_mpi_byte", &mpi.byte);
  find("ompi_mpi_errors_return", &mpi.errors_return);
  if (!complete) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot run with other ranks: ", kLibrary,
                     " lacks names of Open MPI: install Debian's libopenmpi3"));
  }
  return mpi;
}

class World : public Communicator {
 public:
  static absl::StatusOr<std::shared_ptr<Communicator>> Create() {
    WEFT_ASSIGN_OR_RETURN(const Mpi mpi, Load());
    // One thread at a time, not always the same one.
    int provided = 0;
    if (mpi.init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) !=
            MPI_SUCCESS ||
        provided < MPI_THREAD_SERIALIZED) {
      return absl::FailedPreconditionError(
          "cannot run with other ranks: MPI does not start for calls from "
          "several threads");
    }
    mpi.comm_set_errhandler(mpi.world, mpi.errors_return);
    std::shared_ptr<World> world(new World(mpi));
    mpi.comm_rank(mpi.world, &world->rank_);
    mpi.comm_size(mpi.world, &world->ranks_);
    world->counts_.resize(world->ranks_);
    world->places_.resize(world->ranks_);
    return world;
  }
  ~World() override { mpi_.finalize(); }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  absl::Status AllGather(const void* own, absl::Span<const int64_t> bytes,
                         uint8_t* all) override {
    int64_t sum = 0;
    for (int r = 0; r < ranks_; ++r) {
      if (bytes[r] > std::numeric_limits<int>::max() - sum) {
        return absl::ResourceExhaustedError(
            "ranks cannot exchange more than 2 GiB at once: choose fewer "
            "tokens in a step (--buckets)");
      }
      counts_[r] = static_cast<int>(bytes[r]);
      places_[r] = static_cast<int>(sum);
      sum += bytes[r];
    }
    return Check(mpi_.allgatherv(own, counts_[rank_], mpi_.byte, all,
                                 counts_.data(), places_.data(), mpi_.byte,
                                 mpi_.world));
  }

  absl::Status Broadcast(void* data, int64_t bytes) override {
    if (bytes > std::numeric_limits<int>::max()) {
      return absl::ResourceExhaustedError("a step of more than 2 GiB");
    }
    MPI_Request request;
    WEFT_RETURN_IF_ERROR(Check(mpi_.ibcast(
        data, static_cast<int>(bytes), mpi_.byte, 0, mpi_.world, &request)));
    // MPI itself would wait with a whole processor; the next step of a server
    // may be hours away.
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    for (int done = 0;;) {
      // As MPI_STATUS_IGNORE.
      WEFT_RETURN_IF_ERROR(Check(mpi_.test(&request, &done, nullptr)));
      if (done != 0) return absl::OkStatus();
      if (Clock::now() - begin > std::chrono::milliseconds(2)) {
        const timespec pause = {0, 100'000};
        nanosleep(&pause, nullptr);
      }
    }
  }

  void Abort(const absl::Status& why) override {
    // At once: lines of several ranks must not mix.
    std::cerr << absl::StrCat("weft: rank ", rank_, " of ", ranks_, ": ",
                              why.message(), "\n")
              << std::flush;
    mpi_.abort(mpi_.world, 1);
  }

 private:
  explicit World(const Mpi& mpi) : mpi_(mpi) {}

  absl::Status Check(int code) const {
    if (code == MPI_SUCCESS) return absl::OkStatus();
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    mpi_.error_string(code, text, &length);
    return absl::UnavailableError(
        absl::StrCat("rank ", rank_, " cannot reach the others: ", text));
  }

  const Mpi mpi_;
  int rank_ = 0, ranks_ = 1;
  std::vector<int> counts_, places_;  // of a gather
};

bool g_started = false;

}  // namespace

int RanksStarted() { return FromEnvironment("OMPI_COMM_WORLD_SIZE", 1); }
int RankStarted() { return FromEnvironment("OMPI_COMM_WORLD_RANK", 0); }

absl::StatusOr<std::shared_ptr<Communicator>> MpiCommunicator() {
  if (RanksStarted() < 2) return std::shared_ptr<Communicator>();
  static const absl::StatusOr<std::shared_ptr<Communicator>> world =
      World::Create();
  g_started = world.ok();
  return world;
}

bool MpiIsStarted() { return g_started; }

}  // namespace weft
