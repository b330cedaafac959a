#pragma once
// One open log: what the writer's handle, its artifacts and the background thread share. The thread may
// outlive the handle if the disk hangs, so it holds the core too.

#include <filesystem>

#include "capture_worker.hpp"
#include "fork_guard.hpp"
#include "ranklog/schema/identity.hpp"
#include "recorder.hpp"
#include "sealer.hpp"

namespace ranklog::writer {

struct Core {
  Core(Recorder::Limits limits, std::int64_t next_step, TailQueue::Files files, Sealer::Settings settings,
       RankDatabase database)
      : recorder(limits, next_step, std::move(files)),
        sealer(std::move(settings), std::move(database), recorder) {}

  ForkGuard fork;
  std::filesystem::path folder;  // the experiment's
  Recorder recorder;
  Sealer sealer;
  // Its tasks hold the core, too.
  const std::shared_ptr<CaptureWorker> worker = std::make_shared<CaptureWorker>();
};

}  // namespace ranklog::writer
