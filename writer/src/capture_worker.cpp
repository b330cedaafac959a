#include "capture_worker.hpp"

#include <exception>
#include <thread>

namespace ranklog::writer {

bool CaptureWorker::add(Task task) {
  const std::lock_guard lock(mutex_);
  if (stop_) return false;
  tasks_.push_back(std::move(task));
  changed_.notify_all();
  if (running_) return true;
  try {
    // Detached: one that hangs in a dead disk cannot be waited for. It holds all that it needs.
    std::thread([self = shared_from_this()] { self->run(); }).detach();
    running_ = true;
    return true;
  } catch (...) {
    tasks_.pop_back();
    throw;
  }
}

void CaptureWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const Task& task = tasks_.front();
    lock.unlock();
    std::string failed;
    try {
      task();
    } catch (const std::exception& error) {
      failed = error.what();
    }
    lock.lock();
    if (!failed.empty() && trouble_.empty()) trouble_ = failed;
    Task done = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    done = nullptr;  // what it holds may take its time to go
    lock.lock();
    changed_.notify_all();
  }
}

bool CaptureWorker::drain(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [&] { return tasks_.empty(); });
}

bool CaptureWorker::is_busy() const {
  const std::lock_guard lock(mutex_);
  return !tasks_.empty();
}

void CaptureWorker::stop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

std::string CaptureWorker::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

}  // namespace ranklog::writer
