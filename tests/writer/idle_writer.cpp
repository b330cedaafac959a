// What metadata_test traces: FOLDER. Between marks it seals five rows, one after the other, and then idles.

#include <unistd.h>

#include <chrono>
#include <thread>

#include "ranklog/writer/writer.hpp"

namespace {

using namespace std::chrono_literals;

void mark(const char* name) {
  static_cast<void>(::access(name, F_OK));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  ranklog::Options options;
  options.log_dir = argv[1];
  options.project = "project";
  options.experiment = "job";
  options.rank = 0;
  options.world_size = 1;
  options.seal_interval = 100ms;
  options.sync_interval = 20ms;
  auto log = ranklog::Writer::open(options);
  log.log({{"i", 0}});
  std::this_thread::sleep_for(500ms);
  mark("/mark-seals");
  for (int i = 0; i < 5; ++i) {
    log.log({{"i", i}});
    std::this_thread::sleep_for(500ms);
  }
  mark("/mark-idle");
  std::this_thread::sleep_for(2s);
  mark("/mark-end");
  return log.finish().durable ? 0 : 1;
}
