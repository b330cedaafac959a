#include "ranklog/trainer/c10d_communicator.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <cstring>
#include <future>
#include <thread>

#include "c10d_access.hpp"
#include "c10d_compat.hpp"
#include "c10d_key_store.hpp"
#include "launch_seat.hpp"
#include "network.hpp"
#include "peer_watch.hpp"
#include "ranklog/schema/time.hpp"
#include "ranklog/trainer/first_line.hpp"
#include "ranklog/trainer/in_process_communicator.hpp"
#include "roster.hpp"

namespace ranklog {
namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

// For one call of the store. Not less than a busy machine can need, however short the ranks' own timeout is.
std::chrono::milliseconds store_limit(const Rendezvous& r) {
  return std::max(r.timeout, std::chrono::milliseconds(5000));
}

std::string server_name(const Rendezvous& r) {
  const std::string where = endpoint_name(r.master_addr, r.master_port);
  return (r.agent_serves_store ? "torchrun's agent, which serves the job's store at "
                               : "rank 0, which serves the job's store at ") +
         where + ",";
}

// Runs `call` on a thread of its own and gives up on it at the time limit: a peer that accepts a connection
// and then says nothing would hold some of c10d's calls for ever.
template <typename Call>
auto within(std::chrono::milliseconds limit, const std::string& what, Call call) {
  std::packaged_task<decltype(call())()> task(std::move(call));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(limit) == std::future_status::timeout) throw Error(ErrorCode::kTimeout, what);
  return result.get();
}

StorePtr open_store(const Rendezvous& r, bool serve) {
  c10d::TCPStoreOptions options;
  options.port = r.master_port;
  options.isServer = serve;
  options.waitWorkers = false;
  options.timeout = r.timeout;
  compat::choose_store_server(options);
  StorePtr tcp = c10::make_intrusive<c10d::TCPStore>(r.master_addr, options);
  return c10::make_intrusive<c10d::PrefixStore>("ranklog", tcp);
}

StorePtr connect_to_store(const Rendezvous& r, bool serve) {
  const std::string where = endpoint_name(r.master_addr, r.master_port);
  try {
    return within(r.timeout,
                  "whoever listens at " + where +
                      " does not answer as a c10d store does (another program, or rank 0 is stopped)",
                  [r, serve] {
                    StorePtr store = open_store(r, serve);
                    store->add("hello", 1);  // the first call that waits for an answer
                    return store;
                  });
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(ErrorCode::kIo, "cannot use the job's store at " + where + ": " + first_line(e.what()));
  }
}

StorePtr join_store(const Rendezvous& r) {
  const bool serve = r.rank == 0 && !r.agent_serves_store;
  if (serve) {
    require_free_port(r.master_addr, r.master_port);
  } else {
    wait_for_listener(r.master_addr, r.master_port, r.timeout);
  }
  return connect_to_store(r, serve);
}

SeatRequest seat_request(const Rendezvous& r) {
  return {r.rank, r.size, endpoint_name(r.master_addr, r.master_port), r.timeout};
}

// The name of this launch's part of the store.
std::string find_launch(const Rendezvous& r, const StorePtr& store) {
  if (!r.agent_serves_store) return "launch";
  C10dKeyStore keys(store, server_name(r), store_limit(r));
  return launch_name(join_launch(keys, seat_request(r)));
}

StorePtr part_of(const StorePtr& store, const std::string& prefix) {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
}

// Before the meeting, so that after it every rank knows whether all are on one host.
void tell_host(KeyStore& keys, const Rendezvous& r) {
  const std::string host = own_host_name();
  if (r.rank == 0) keys.set("host", host);
  PollPause pause;
  const auto deadline = std::chrono::steady_clock::now() + r.timeout;
  while (std::chrono::steady_clock::now() < deadline) {
    const auto of_rank_zero = keys.get("host");
    if (of_rank_zero && *of_rank_zero != host) keys.add("other-hosts", 1);
    if (of_rank_zero) return;
    pause.wait();
  }
}

std::string address_for_gloo(const Rendezvous& r, bool several_hosts) {
  std::string address = local_address_towards(r.master_addr, r.master_port);
  if (!several_hosts || !is_loopback(address)) return address;
  return address_for_other_hosts(r.master_addr);
}

// The threads of the calls that build it are left to themselves if a peer goes silent meanwhile.
c10::intrusive_ptr<c10d::ProcessGroup> make_group(const Rendezvous& r, const StorePtr& store,
                                                  bool several_hosts) {
  auto options = c10d::ProcessGroupGloo::Options::create(r.timeout);
  options->threads = 2;
  options->devices.push_back(
      r.interface.empty()
          ? c10d::ProcessGroupGloo::createDeviceForHostname(address_for_gloo(r, several_hosts))
          : c10d::ProcessGroupGloo::createDeviceForInterface(r.interface));
  return within(2 * r.timeout, "the ranks did not connect to each other by Gloo",
                [rank = r.rank, size = r.size, options, part = part_of(store, "gloo")] {
                  return compat::make_gloo_group(part, rank, size, options);
                });
}

class C10dCommunicator : public Communicator {
 public:
  C10dCommunicator(const Rendezvous& r, const StorePtr& whole_store, std::string launch)
      : rank_(r.rank),
        size_(r.size),
        serves_store_(r.rank == 0 && !r.agent_serves_store),
        timeout_(r.timeout),
        launch_(std::move(launch)),
        keys_(part_of(whole_store, launch_), server_name(r), store_limit(r)),
        roster_(keys_, r.rank, r.size) {}

  // Before every other call, with the same. A rank that cannot join leaves as it would later: the one that
  // serves the others goes last, so that each reads why.
  void join(const Rendezvous& r, const StorePtr& whole_store) {
    try {
      roster_.enter();
      if (!r.agent_serves_store) take_seat(keys_, seat_request(r));
      meet_all(r, whole_store);
    } catch (...) {
      leave(kFarewellLimit);
      throw;
    }
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  std::chrono::milliseconds timeout() const noexcept override { return timeout_; }
  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const noexcept { return group_; }

  // The store tells who is missing; Gloo lets all go at once.
  BarrierPassage barrier(std::string_view label, std::chrono::milliseconds timeout) override {
    BarrierPassage passage;
    passage.entered_ns = unix_time_ns();
    roster_.meet(label, timeout);
    collectively([&] { group_->barrier()->wait(); });
    passage.left_ns = unix_time_ns();
    return passage;
  }

  void await_rank_zero(std::string_view label, std::chrono::milliseconds limit) override {
    roster_.await_rank_zero(label, limit, timeout_);
  }

  std::string broadcast(const std::string& of_rank_zero) override {
    std::vector<at::Tensor> size{at::full({1}, static_cast<std::int64_t>(of_rank_zero.size()), at::kLong)};
    collectively([&] { group_->broadcast(size)->wait(); });
    if (size.front().item<std::int64_t>() == 0) return {};
    std::vector<at::Tensor> text{bytes_of(of_rank_zero, size.front().item<std::int64_t>())};
    collectively([&] { group_->broadcast(text)->wait(); });
    return text_of(text.front());
  }

  void all_reduce_sum(std::span<double> values) override { sum(values, at::kDouble); }
  void all_reduce_sum(std::span<float> values) override { sum(values, at::kFloat); }

  // Gloo gathers tensors of one size, so texts are padded to the longest.
  std::vector<std::string> all_gather(const std::string& of_this_rank) override {
    const std::vector<at::Tensor> sizes =
        gather(at::full({1}, static_cast<std::int64_t>(of_this_rank.size()), at::kLong));
    std::int64_t longest = 0;
    for (const at::Tensor& size : sizes) longest = std::max(longest, size.item<std::int64_t>());
    if (longest == 0) return std::vector<std::string>(sizes.size());
    const std::vector<at::Tensor> texts = gather(bytes_of(of_this_rank, longest));
    std::vector<std::string> all;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      all.push_back(text_of(texts[i].slice(0, 0, sizes[i].item<std::int64_t>())));
    }
    return all;
  }

  void report_failure(const std::string& what) noexcept override {
    keys_.set_limit(kFarewellLimit);
    try {
      roster_.note_failure("rank " + std::to_string(rank_) + " failed: " + what);
    } catch (...) {  // the store is gone, and with it rank 0: the others know
    }
    watch_.reset();  // this rank is not stuck: it ends by itself
  }

  void leave(std::chrono::milliseconds limit) noexcept override {
    watch_.reset();
    keys_.set_limit(limit);
    try {
      roster_.leave(serves_store_, limit);
    } catch (...) {  // rank 0 did not wait for us: nothing is left to do here
    }
  }

  // what: in c10d's or Gloo's words.
  [[nodiscard]] Error explain(const std::string& what) {
    constexpr std::chrono::milliseconds kRollCallTime{5000};
    try {
      if (const auto known = roster_.failure()) return {ErrorCode::kTimeout, *known};
      const std::vector<int> silent = roster_.call_roll(std::min(kRollCallTime, timeout_));
      if (const auto known = roster_.failure()) return {ErrorCode::kTimeout, *known};
      const std::string news = silent.empty()
                                   ? "a collective failed although every rank answers: " + first_line(what)
                                   : name_ranks(silent) + (silent.size() == 1 ? " is" : " are") +
                                         " gone (killed, or cut off): no sign of life within " +
                                         name_duration(std::min(kRollCallTime, timeout_));
      roster_.note_failure(news);
      return {ErrorCode::kTimeout, roster_.failure().value_or(news)};
    } catch (const Error& e) {  // the store is gone, too
      return e;
    }
  }

 private:
  static constexpr std::chrono::milliseconds kFarewellLimit{5000};

  void meet_all(const Rendezvous& r, const StorePtr& whole_store) {
    try {
      tell_host(keys_, r);
      roster_.meet("start", timeout_,
                   "check that every rank is started, and reaches MASTER_ADDR:MASTER_PORT " +
                       endpoint_name(r.master_addr, r.master_port));
      const bool several_hosts = keys_.add("other-hosts", 0) > 0;
      watch_ = std::make_unique<PeerWatch>(
          std::make_unique<C10dKeyStore>(part_of(connect_to_store(r, false), launch_), server_name(r),
                                         store_limit(r)),
          rank_, size_, r.patience, r.when_stuck);
      collectively([&] { group_ = make_group(r, part_of(whole_store, launch_), several_hosts); });
    } catch (const std::exception& e) {
      report_failure(first_line(e.what()));
      throw;
    }
  }

  template <typename Call>
  void collectively(Call call) {
    try {
      call();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      throw explain(e.what());
    }
  }

  template <typename T>
  void sum(std::span<T> values, at::ScalarType type) {
    std::vector<at::Tensor> tensors{
        at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::TensorOptions(type))};
    collectively([&] { group_->allreduce(tensors)->wait(); });
  }

  std::vector<at::Tensor> gather(const at::Tensor& mine) {
    std::vector<at::Tensor> input{mine};
    std::vector<std::vector<at::Tensor>> output(1);
    for (int rank = 0; rank < size_; ++rank) output.front().push_back(at::empty_like(mine));
    collectively([&] { group_->allgather(output, input)->wait(); });
    return output.front();
  }

  static at::Tensor bytes_of(const std::string& text, std::int64_t size) {
    at::Tensor bytes = at::zeros({size}, at::kByte);
    std::memcpy(bytes.data_ptr(), text.data(), std::min<std::size_t>(text.size(), bytes.nbytes()));
    return bytes;
  }

  static std::string text_of(const at::Tensor& bytes) {
    return {static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()};
  }

  int rank_;
  int size_;
  bool serves_store_;
  std::chrono::milliseconds timeout_;
  std::string launch_;
  C10dKeyStore keys_;
  Roster roster_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::unique_ptr<PeerWatch> watch_;
};

}  // namespace

std::unique_ptr<Communicator> connect(const Rendezvous& r) {
  if (r.size == 1) return std::move(make_in_process_communicators(1, r.timeout).front());
  if (r.agent_serves_store && !compat::kSpeaksToAgents) {
    throw Error(ErrorCode::kUsage,
                "torchrun's agent serves the job's store in a protocol that LibTorch " TORCH_VERSION
                " does not speak",
                "build with LibTorch 2, or start the ranks with --nproc_per_node, mpirun or srun");
  }
  const StorePtr store = join_store(r);
  auto communicator = std::make_unique<C10dCommunicator>(r, store, find_launch(r, store));
  communicator->join(r, store);
  return communicator;
}

c10::intrusive_ptr<c10d::ProcessGroup> process_group_of(Communicator& communicator) {
  auto* real = dynamic_cast<C10dCommunicator*>(&communicator);
  if (real == nullptr) return {};
  return real->group();
}

Error explain_broken_collective(Communicator& communicator, const std::string& what) {
  if (auto* real = dynamic_cast<C10dCommunicator*>(&communicator)) return real->explain(what);
  return {ErrorCode::kTimeout, what};
}

}  // namespace ranklog
